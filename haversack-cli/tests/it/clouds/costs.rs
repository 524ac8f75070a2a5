//! What a sync costs in requests, counted.

use super::{Place, in_each_cloud};

in_each_cloud!(requests_of_a_sync);

fn requests_of_a_sync(place: &Place) {
    let files: Vec<(String, String)> =
        (0..60).map(|number| (format!("notes/{number:02}.md"), format!("note {number}\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let machines = place.laptop_and_desktop(&files);
    place.done(&machines, "laptop", &["sync"]);
    let count = |machine: &str, arguments: &[&str]| {
        place.front.forget();
        let shown = place.done(&machines, machine, arguments);
        (place.front.count(), shown)
    };
    for machine in ["laptop", "desktop"] {
        let (requests, shown) = count(machine, &["sync"]);
        assert!(shown.contains("Nothing new."), "{shown}");
        assert_eq!(requests, 1, "an idle sync on {}: {:#?}", place.backend, place.front.seen());
    }
    for number in 0..10 {
        machines.write("laptop", &format!("notes/{:02}.md", number * 6), &format!("changed {number}\n"));
    }
    let (requests, shown) = count("laptop", &["sync"]);
    assert!(shown.contains("Sent 10 files."), "{shown}");
    assert_eq!(requests, 2, "to publish on {}: {:#?}", place.backend, place.front.seen());
    let (requests, shown) = count("desktop", &["sync"]);
    assert!(shown.contains("Received 10 files."), "{shown}");
    assert_eq!(requests, 2, "to take in on {}: {:#?}", place.backend, place.front.seen());
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    // None of these asks anything.
    for arguments in [["status"].as_slice(), &["ls"], &["view", "notes/00.md"], &["conflicts"], &["doctor"]] {
        assert_eq!(count("laptop", arguments).0, 0, "{arguments:?}");
    }
}

//! Counts the requests of a sync.

use haversack_servers::front::Act;

use super::{Place, in_each_cloud};
use crate::machines::Machines;

in_each_cloud!(requests_of_a_sync, requests_of_a_join, machine_without_write_access_does_not_join);

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
    for arguments in [["status"].as_slice(), &["ls"], &["view", "notes/00.md"], &["conflicts"]] {
        assert_eq!(count("laptop", arguments).0, 0, "{arguments:?}");
    }
    // The doctor reads which store is there, and nothing else.
    let (requests, shown) = count("laptop", &["doctor"]);
    assert_eq!(requests, 1, "to check {}: {:#?}", place.backend, place.front.seen());
    assert!(shown.contains("answers, and is this memory's store"), "{shown}");
}

fn requests_of_a_join(place: &Place) {
    let machines = Machines::new();
    machines.write("laptop", "ports.md", "staging: 5433\n");
    place.add(&machines, "laptop", &["--no-mirror"]);
    place.front.forget();
    place.join(&machines, "desktop", &["--no-mirror"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    let seen = place.front.seen();
    let looks: Vec<&str> =
        seen.iter().map(|seen| seen.path.as_str()).filter(|path| !path.contains("probe")).collect();
    // The store's identity, its checkpoints, its commit; and the commits after that, once to show them and once to join.
    assert_eq!(looks.len(), 5, "on {}: {looks:#?}", place.backend);
}

/// A machine without write permission may look at a store, but cannot join it.
fn machine_without_write_access_does_not_join(place: &Place) {
    let machines = Machines::new();
    machines.write("laptop", "ports.md", "staging: 5433\n");
    place.add(&machines, "laptop", &["--no-mirror"]);
    place.front.script(|seen| match seen.is_write() {
        true => Act::answer(403, "<Error><Code>AccessDenied</Code><Message>m</Message></Error>"),
        false => Act::Pass,
    });
    let join = ["join", &place.url, "--device", "desktop", "--credential", "file", "--yes"];
    let shown = place.shown(&machines, &mut place.in_shell(&machines, "desktop", &join));
    assert!(shown.starts_with("exit 1\n") && shown.contains("cannot be used"), "{shown}");
    let left = std::fs::read_dir(machines.env.path("desktop")).into_iter().flatten().flatten();
    let left: Vec<String> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(left, [""; 0], "on {}: {shown}", place.backend);
}

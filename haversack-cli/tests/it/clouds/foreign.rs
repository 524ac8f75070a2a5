//! Objects of other programs beside ours, or in their place.

use haversack_servers::{Act, Gcs};

use super::Place;

const PORTS: &str = "# Ports\n\nstaging listens on 5433\n";

fn put(place: &Place, key: &str, bytes: impl Into<Vec<u8>>) {
    let gcs: &Gcs = place.gcs.as_ref().expect("started");
    gcs.put(&place.container, &format!("memory/{key}"), bytes.into());
}

/// Returns a laptop and a desktop that keep plain copies.
fn machines(place: &Place) -> crate::machines::Machines {
    let machines = crate::machines::Machines::new();
    machines.write("laptop", "ports.md", PORTS);
    place.add(&machines, "laptop", &[]);
    place.join(&machines, "desktop", &[]);
    machines
}

#[test]
fn odd_names_and_strangers_are_left_alone() {
    let place = Place::gcs();
    let machines = machines(&place);
    let gcs = place.gcs.as_ref().expect("started");
    let hostile = ["a//b", "../up", "x/../y", "back\\slash", "cafe\u{301}", "bell\u{7}", "./dot", "tab\tbed"];
    for key in hostile {
        put(&place, key, "theirs");
        put(&place, &format!(".haversack/log/{key}"), "theirs");
    }
    for key in
        ["folder/", ".haversack/log/0000000000000009.tmp", ".haversack/log/zz", ".haversack/other/thing"]
    {
        put(&place, key, "theirs");
    }
    gcs.put(&place.container, "memoryabouts.md", "of somebody else");
    gcs.put(&place.container, "elsewhere/photo.jpg", vec![0_u8; 1000]);
    let before = gcs.keys(&place.container);
    machines.write("laptop", "lamp.md", "white\n");
    for machine in ["laptop", "desktop"] {
        place.done(&machines, machine, &["sync"]);
    }
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    assert_eq!(machines.files("laptop").len(), 2);
    let shown = place.done(&machines, "laptop", &["sync", "--full"]);
    assert!(shown.contains("see all: haversack sync --full --json"), "{shown}");
    let listed = machines.command("laptop", &["sync", "--full", "--json"]).output().expect("ran").stdout;
    let listed: serde_json::Value = serde_json::from_slice(&listed).expect("JSON");
    let odd = listed["odd"].as_array().expect("a list");
    for name in ["memory/a//b", "memory/back\\\\slash", "memory/bell\\u{7}", "memory/.haversack/log/a//b"] {
        assert!(odd.iter().any(|one| one["name"] == name), "{name} is listed: {odd:?}");
    }
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
    let after = gcs.keys(&place.container);
    assert!(before.iter().all(|key| after.contains(key)), "nothing of theirs was removed");
    assert_eq!(gcs.object(&place.container, "memory/a//b").as_deref(), Some(&b"theirs"[..]));
}

#[test]
fn a_plain_object_of_somebody_else_is_taken_in() {
    let place = Place::gcs();
    let machines = machines(&place);
    put(&place, "from-the-console.md", "written in a browser\n");
    place.done(&machines, "laptop", &["sync", "--full"]);
    place.done(&machines, "desktop", &["sync"]);
    assert_eq!(machines.read("desktop", "from-the-console.md").as_deref(), Some("written in a browser\n"));
}

/// A `manifest.json` that we did not write is never replaced, whatever is in it. The log goes on without plain copies.
#[test]
fn manifest_of_100_megabytes_is_left_alone_until_it_is_moved() {
    let place = Place::gcs();
    let machines = machines(&place);
    let foreign = vec![b'['; 100 * 1024 * 1024];
    put(&place, "manifest.json", foreign.clone());
    machines.write("laptop", "lamp.md", "white\n");
    let told = place.done(&machines, "laptop", &["sync"]);
    assert!(told.contains("manifest.json in the remote is the file of another program"), "{told}");
    place.done(&machines, "desktop", &["sync"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    place.done(&machines, "laptop", &["sync", "--full"]);
    assert!(place.objects()["manifest.json"] == foreign);
    assert!(
        machines.shown("laptop", &["status"]).contains("move that file away, then: haversack sync --full")
    );

    put(&place, "manifest.json", "");
    place.done(&machines, "laptop", &["sync", "--full"]);
    let manifest = &place.objects()["manifest.json"];
    let manifest: serde_json::Value = serde_json::from_slice(manifest).expect("ours again");
    assert!(manifest.to_string().contains("lamp.md"), "{manifest}");
    assert_eq!(place.objects()["lamp.md"], "white\n");
}

/// A bucket that another program uses is no remote.
#[test]
fn bucket_with_other_objects_is_no_remote() {
    let place = Place::gcs();
    put(&place, "photos/1.jpg", "theirs");
    let machines = crate::machines::Machines::new();
    machines.write("laptop", "ports.md", PORTS);
    let arguments = ["remote", "add", &place.url, "--credential", "file"];
    let told = place.shown(&machines, &mut place.in_shell(&machines, "laptop", &arguments));
    assert!(told.starts_with("exit 1\n"), "{told}");
    assert!(told.contains("holds other files (photos) and no store of Haversack"), "{told}");
    assert!(told.contains("haversack remote add gs://CONTAINER/memory/haversack"), "{told}");
    assert_eq!(place.objects().len(), 1, "nothing was written there");
}

#[test]
fn an_object_of_two_gigabytes_is_not_looked_at() {
    let place = Place::gcs();
    let machines = machines(&place);
    put(&place, "video.mp4", "x");
    place.front.script(|seen| match (seen.path.contains("list-type"), seen.path.contains("video.mp4")) {
        (true, _) => Act::change(|answer| {
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            let (before, after) = body.split_once("video.mp4").unwrap_or((&body, ""));
            let after = after.replacen("<Size>1</Size>", "<Size>2147483648</Size>", 1);
            answer.body = match body.contains("video.mp4") {
                true => format!("{before}video.mp4{after}").into_bytes(),
                false => body.clone().into_bytes(),
            };
        }),
        (false, true) => panic!("it is read"),
        (false, false) => Act::Pass,
    });
    machines.write("laptop", "lamp.md", "white\n");
    let shown = place.done(&machines, "laptop", &["sync", "--full"]);
    assert!(shown.contains("video.mp4: it is larger than 256 MiB"), "{shown}");
    place.done(&machines, "desktop", &["sync"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
}

#[test]
fn a_stranger_in_the_place_of_a_commit_stops_the_sync_and_costs_nothing() {
    let place = Place::gcs();
    let machines = machines(&place);
    let gcs = place.gcs.as_ref().expect("started");
    machines.write("laptop", "lamp.md", "white\n");
    place.done(&machines, "laptop", &["sync"]);
    let log: Vec<String> =
        gcs.keys(&place.container).into_iter().filter(|key| key.contains("/.haversack/log/")).collect();
    let newest = log.last().expect("a commit");
    let commit = gcs.object(&place.container, newest).expect("there");
    gcs.put(&place.container, newest, vec![0_u8; 1024]);
    machines.write("desktop", "own.md", "mine\n");
    let shown = place.run(&machines, "desktop", &["sync"]);
    assert!(!shown.starts_with("exit 0\n") && shown.contains("cannot be read"), "{shown}");
    assert!(shown.contains("Hint: "), "{shown}");
    gcs.put(&place.container, newest, commit);
    place.done(&machines, "desktop", &["sync"]);
    place.done(&machines, "laptop", &["sync"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    assert_eq!(machines.files("laptop").len(), 3);
}

//! If memory stays on this machine, no request is sent, with any configuration.

use std::process::Command;

use insta::assert_snapshot;

use super::Place;
use crate::machines::Machines;

/// Runs every command under a setting, and checks that no request arrived.
fn nothing_is_asked(place: &Place, machines: &Machines, setting: impl Fn(&mut Command)) {
    let run = |machine: &str, arguments: &[&str]| {
        let mut command = place.in_shell(machines, machine, arguments);
        setting(&mut command);
        place.shown(machines, &mut command)
    };
    machines.write("laptop", "ports.md", "# Ports\n\nstaging listens on 1\n");
    place.front.forget();
    let fine: [&[&str]; 9] = [
        &["status"],
        &["status", "--line"],
        &["status", "--json"],
        &["doctor"],
        &["log"],
        &["diff"],
        &["devices"],
        &["remote", "list"],
        &["sync", "--when-due"],
    ];
    for arguments in fine {
        let shown = run("laptop", arguments);
        assert!(shown.starts_with("exit 0\n"), "{arguments:?}: {shown}");
    }
    let url = place.url.as_str();
    let refused: [(&str, &[&str]); 10] = [
        ("laptop", &["sync"]),
        ("laptop", &["sync", "--full"]),
        ("laptop", &["pull"]),
        ("laptop", &["push"]),
        ("laptop", &["mirror", "--at-once"]),
        ("laptop", &["remote", "test"]),
        ("laptop", &["join", url, "--yes"]),
        ("desktop", &["undo", "--join", "--yes"]),
        ("tablet", &["remote", "add", url, "--credential", "file"]),
        ("tablet", &["join", url, "--credential", "file", "--yes"]),
    ];
    for (machine, arguments) in refused {
        let shown = run(machine, arguments);
        assert!(shown.starts_with("exit 1\n"), "{arguments:?}: {shown}");
        assert!(
            shown.contains(
                "memory is kept on this machine (keep-memory-local): nothing was sent, and nothing was asked"
            ),
            "{arguments:?}: {shown}"
        );
    }
    assert!(!machines.env.path("tablet/credential.toml").exists());
    // Another process may have been started, and would be late.
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(place.front.count(), 0, "{:?}", place.front.seen());
}

fn prepared(place: &Place) -> Machines {
    let machines = Machines::new();
    machines.write("laptop", "ports.md", "# Ports\n\nstaging listens on 5433\n");
    machines.write("desktop", "lamp.md", "white\n");
    place.add(&machines, "laptop", &[]);
    place.join(&machines, "desktop", &[]);
    machines
}

#[test]
fn by_a_variable() {
    let place = Place::gcs();
    let machines = prepared(&place);
    nothing_is_asked(&place, &machines, |command| {
        command.env("HAVERSACK_KEEP_MEMORY_LOCAL", "true");
        // Not even both of these change anything.
        command.env("HAVERSACK_BLOB_ENDPOINT", place.front.url()).env("HAVERSACK_BLOB_CONTAINER", "memory");
    });
    let keep = |arguments: &[&str]| {
        let mut command = machines.command("laptop", arguments);
        place.shown(&machines, command.env("HAVERSACK_KEEP_MEMORY_LOCAL", "true"))
    };
    assert_snapshot!(keep(&["status"]), @r#"
    exit 0
    --- stdout
    On this machine only, because keep-memory-local is set: nothing is sent

      files      1
    --- stderr
    "#);
    assert_snapshot!(keep(&["sync"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: memory is kept on this machine (keep-memory-local): nothing was sent, and nothing was asked
    Hint: If it may leave, unset HAVERSACK_KEEP_MEMORY_LOCAL and keep-memory-local in config.toml
    "#);
    assert_snapshot!(keep(&["sync", "--when-due"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Memory is kept on this machine (keep-memory-local): nothing was sent, and nothing was asked.
    "#);
    assert_snapshot!(keep(&["remote", "list"]), @r#"
    exit 0
    --- stdout
    gs://CONTAINER/memory  this machine is "laptop"  last reached: just now
    --- stderr
    It is not used: memory is kept on this machine (keep-memory-local).
    "#);
    assert_snapshot!(keep(&["doctor"]), @r#"
    exit 0
    --- stdout
    OK    backend   device-local
    OK    remote    none is used: memory is kept on this machine (keep-memory-local)
    WARN  home      laptop (--home): other users of this machine can look into it (mode 755)
                    → chmod 700 laptop/memory
    OK    writes    created, replaced, compared and deleted a test object
    OK    files     1 file, 30 bytes
    OK    kept      no text of another program waits to be merged
    --- stderr
    "#);
    // Waiting changes are sent when they may be.
    place.done(&machines, "laptop", &["sync"]);
    place.done(&machines, "desktop", &["sync"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
}

#[test]
fn by_the_file_of_settings() {
    let place = Place::gcs();
    let machines = prepared(&place);
    for machine in ["laptop", "desktop", "tablet"] {
        std::fs::create_dir_all(machines.env.path(machine)).expect("made");
        let file = machines.env.path(machine).join("config.toml");
        std::fs::write(file, "keep-memory-local = true\n").expect("written");
    }
    nothing_is_asked(&place, &machines, |_| ());
}

#[test]
fn nothing_that_went_wrong_before_is_told_then() {
    let place = Place::gcs();
    let machines = prepared(&place);
    place.front.script(|_| haversack_servers::Act::answer(403, "<Error><Code>AccessDenied</Code></Error>"));
    assert!(place.run(&machines, "laptop", &["sync"]).starts_with("exit 1\n"));
    assert!(place.run(&machines, "laptop", &["status"]).starts_with("exit 1\n"));
    let mut command = machines.command("laptop", &["status"]);
    let shown = place.shown(&machines, command.env("HAVERSACK_KEEP_MEMORY_LOCAL", "true"));
    assert!(shown.starts_with("exit 0\n") && !shown.contains("next try"), "{shown}");
}

//! Names that a hostile writer put into the log of a remote, as every command shows them.
//!
//! The device, agent, session and cause of a commit are text of another machine. A reader's terminal must not obey it, and no name may look like a
//! line of ours.

use std::fs;

use haversack::frame;
use haversack::ids::{ContentHash, Position};
use haversack::log::{Commit, MAX_COMMIT_BYTES, layout};
use haversack::store::{Bytes, Locator};
use serde_json::{Value, json};

#[cfg(unix)]
use crate::agents::Agents;
use crate::machines::Machines;

/// A name that clears the screen, adds a false line to the log, and turns the reading direction around.
const FORGED: &str = "lap\u{1b}[2J\u{7}top\n   9  2026-01-01 00:00  desktop: sync\r\u{9b}31m\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}\u{2028}";

/// A file name with a reading direction in it: it is allowed, and it is shown with an escape.
const FILE: &str = "pl\u{202e}an.md";

/// Adds a commit with forged names to a remote, as a program would that does not care what our own programs write.
///
/// It puts `texts` into files.
fn forge(machines: &Machines, texts: &[(&str, &str)]) {
    let remote = machines.env.path("remote");
    let place = |position: Position| remote.join(layout::commit(position).as_str());
    let newest = (1..)
        .map_while(|number| Position::new(number).filter(|position| place(*position).exists()))
        .last()
        .expect("a commit");
    let bytes = Bytes::from(fs::read(place(newest)).expect("read"));
    let last = Commit::decode(&bytes).expect("a commit");
    let mut state = last.state;
    let mut changes = Vec::new();
    for (path, text) in texts {
        let locator = Locator::parse(path).expect("valid");
        let hash = ContentHash::of(text.as_bytes());
        if let Ok(before) = fs::read(machines.path("laptop", path)) {
            state.remove(&locator, &ContentHash::of(&before));
        }
        state.add(&locator, &hash);
        changes.push(json!({
            "at": path, "put": { "hash": hash.to_string(), "size": text.len(), "inline": text.len() },
        }));
    }
    let position = newest.next().expect("not the last");
    let heading = json!({
        "store": last.store.to_string(),
        "position": serde_json::to_value(position).expect("prints"),
        "id": "00000000000000000000000000000bad",
        "previous": ContentHash::of(&bytes).to_string(),
        "replica": "00000000000000000000000000000bad",
        "device": FORGED,
        "agent": FORGED,
        "session": FORGED,
        "time": serde_json::to_value(last.time).expect("prints"),
        "cause": FORGED,
        "state": state.to_string(),
        "changes": changes,
    });
    let contents: Vec<&[u8]> = texts.iter().map(|(_, text)| text.as_bytes()).collect();
    let forged = frame::encode("commit", 1, &heading, &contents, MAX_COMMIT_BYTES).expect("fits");
    fs::write(place(position), forged).expect("written");
}

/// Panics if a terminal would obey a text, or show it in another order.
fn assert_harmless(what: &str, text: &str) {
    let harmful = |c: &char| {
        let is_turned = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let is_unseen =
            matches!(c, '\u{200b}' | '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{e0000}'..='\u{e007f}');
        (c.is_control() && !matches!(c, '\n' | '\t')) || is_turned || is_unseen
    };
    assert_eq!(text.chars().find(harmful), None, "{what}: {text:?}");
    assert!(!text.contains("\n   9  2026-01-01"), "{what}: a name is a line of its own: {text}");
}

#[test]
fn forged_names_are_escaped_by_every_command() {
    let machines =
        Machines::laptop_and_desktop(&[("ports.md", "staging listens on 5433\n"), ("lamp.md", "white\n")]);
    machines.done("laptop", &["sync"]);
    machines.write("laptop", "ports.md", "staging listens on 5434\n");
    forge(&machines, &[("lamp.md", "red\n"), (FILE, "a plan\n")]);
    // The same passage was changed on the laptop: the merge notes which device the other text is from.
    let forged_ports = "staging listens on 5435\n";
    machines.write("laptop", "lamp.md", "green\n");
    machines.done("laptop", &["sync"]);
    let lamp = machines.read("laptop", "lamp.md").expect("there");
    assert!(lamp.contains("red") && lamp.contains("green") && lamp.contains("[also, from "), "{lamp}");
    assert_harmless("the note of a merge", &lamp);
    machines.write("laptop", "waits.md", forged_ports);
    let remote = machines.env.path("remote").display().to_string();
    let state = machines.env.path("laptop/state/default").display().to_string();
    let url = machines.url();
    let head = machines.done("laptop", &["log", "--json"]);
    assert!(head.contains("\\u202e") || head.contains("u{202e}"), "the forged commit is in the log: {head}");
    let commands: &[&[&str]] = &[
        &["log"],
        &["log", "--json"],
        &["log", FILE],
        &["diff"],
        &["diff", "--at", "3"],
        &["status"],
        &["status", "--json"],
        &["devices"],
        &["devices", "--json"],
        &["devices", "remove", "nobody"],
        &["undo", "--dry-run", "lamp.md"],
        &["undo", "--dry-run", "--session", "last"],
        &["undo", "--dry-run", "--since", "1h"],
        &["conflicts"],
        &["conflicts", "--json"],
        &["why"],
        &["recall", "plan"],
        &["recall", "red", "--json"],
        &["ls"],
        &["ls", "--json"],
        &["debug", "log", &remote],
        &["debug", "log", &remote, "--json"],
        &["debug", "state", &state],
        &["debug", "state", &state, "--json"],
        &["doctor"],
        &["check"],
        &["sync"],
        &["remote", "list"],
    ];
    for arguments in commands {
        assert_harmless(&arguments.join(" "), &machines.shown("laptop", arguments));
    }
    for arguments in [&["join", &url, "--yes", "--json"][..], &["log"], &["status"], &["conflicts"]] {
        assert_harmless(&arguments.join(" "), &machines.shown("tablet", arguments));
    }
    assert_harmless("join", &machines.shown("phone", &["join", &url]));
    // A program that reads JSON gets the name of the file as it is.
    let shown = machines.shown("laptop", &["ls", "--json"]);
    let json = shown.split("--- stdout\n").nth(1).and_then(|rest| rest.split("--- stderr").next());
    let listed: Value = serde_json::from_str(json.expect("stdout")).expect("JSON");
    let names = listed["entries"].as_array().expect("entries").iter().map(|entry| entry["path"].as_str());
    assert!(names.flatten().any(|name| name == FILE), "{listed}");
    assert_eq!(machines.read("laptop", FILE).as_deref(), Some("a plan\n"));
}

#[cfg(unix)]
#[test]
fn forged_names_are_escaped_in_hooks_and_over_mcp() {
    let agents = Agents::laptop_and_desktop();
    let root = agents.repository("laptop", "lighthouse", "git@github.com:me/lighthouse.git");
    agents.start("laptop", &root);
    let file = agents.remember("laptop", &root, "lamp.md", "white\n");
    agents.wrote("laptop", &root, &file);
    agents.rest();
    let prefix = "claude_memory/lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb";
    forge(
        &agents.machines,
        &[
            (&format!("{prefix}/carry_forward.md"), "- ask about the lamp\n"),
            (&format!("{prefix}/{FILE}"), "a plan\n"),
        ],
    );
    for source in ["startup", "resume"] {
        let told = agents.hook("laptop", "SessionStart", &root, json!({ "source": source }));
        for (what, text) in [
            ("message", &told["systemMessage"]),
            ("context", &told["hookSpecificOutput"]["additionalContext"]),
        ] {
            assert_harmless(&format!("{source}, {what}"), text.as_str().unwrap_or_default());
        }
        if source == "startup" {
            assert!(
                told["systemMessage"].as_str().is_some_and(|line| line.contains("2 memories from lap")),
                "{told}"
            );
        }
        agents.rest();
    }
    assert_harmless("hooks.log", &agents.journal("laptop"));
    assert_harmless("why", &agents.done("laptop", &["why"]));
    let mut client = crate::mcp::Client::start(&mut agents.command("laptop", &["mcp"]), "tester");
    for (tool, arguments) in [("history", json!({})), ("status", json!({}))] {
        let (text, is_error) = client.call(tool, arguments);
        assert!(!is_error, "{tool}: {text}");
        assert_harmless(tool, &text);
    }
    assert_eq!(client.end(), Some(0));
}

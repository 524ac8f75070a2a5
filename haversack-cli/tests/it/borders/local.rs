//! Memory that must stay on this machine, and memory that must stay in its project.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::agents::Agents;
use crate::machines::files_below;
use crate::mcp::Client;

const LIGHTHOUSE: &str = "git@github.com:me/lighthouse.git";
const GATEWAY: &str = "https://github.com/acme/gateway";

/// A word that must not leave the machine.
const CANARY: &str = "canary-petrel-2290";

/// Returns everything that is in the remote, as one text.
fn remote(agents: &Agents) -> String {
    files_below(&agents.machines.env.path("remote")).into_values().collect()
}

/// Returns a command in a directory of the laptop.
fn at(agents: &Agents, directory: &Path, arguments: &[&str]) -> Command {
    let mut command = agents.command("laptop", arguments);
    command.current_dir(directory);
    command
}

/// Runs a command in a directory with something on its standard input; returns what it printed, errors too.
fn fed(command: &mut Command, input: &str) -> (bool, String) {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("started");
    // It may refuse before it reads.
    drop(child.stdin.take().expect("piped").write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("ended");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).expect("text"))
}

/// Writes the canary through every face from a directory; each of them must refuse.
fn write_through_every_face(agents: &Agents, directory: &Path) {
    let mut client = Client::start(&mut at(agents, directory, &["mcp"]), "claude-code");
    for (tool, arguments) in [
        ("remember", json!({ "kind": "user", "name": "a fact", "content": CANARY })),
        ("create", json!({ "path": "/memories/behavioral/a.md", "file_text": CANARY })),
        ("event", json!({ "summary": CANARY, "sender": "me", "direction": "inbound" })),
        ("insert", json!({ "path": "/memories/root.md", "insert_line": 0, "insert_text": CANARY })),
        ("str_replace", json!({ "path": "/memories/root.md", "old_str": "root", "new_str": CANARY })),
        ("rename", json!({ "old_path": "/memories/root.md", "new_path": format!("/memories/{CANARY}.md") })),
    ] {
        let (told, is_error) = client.call(tool, arguments);
        assert!(is_error && told.contains("stays on this machine"), "{tool}: {told}");
    }
    client.end();
    let line = json!({ "command": "create", "path": "/memories/tool.md", "file_text": CANARY });
    let (_, told) = fed(&mut at(agents, directory, &["memory-tool"]), &format!("{line}\n"));
    assert!(told.contains("\"is_error\":true") && told.contains("stays on this machine"), "{told}");
    for arguments in [
        &["create", "command.md"][..],
        &["append", "root.md"],
        &["event", CANARY, "--sender", "me", "--direction", "inbound"],
    ] {
        // As an agent runs it.
        let mut command = at(agents, directory, arguments);
        let (is_done, told) = fed(command.env("HAVERSACK_AGENT", "claude-code"), CANARY);
        assert!(!is_done && told.contains("stays on this machine"), "{arguments:?}: {told}");
    }
    // Hooks and the background process.
    agents.start("laptop", directory);
    let compacted = json!({ "compact_summary": format!("We said {CANARY}.") });
    agents.hook("laptop", "PostCompact", directory, compacted);
    agents.hook("laptop", "SessionEnd", directory, json!({}));
    agents.rest();
    agents.machines.settle(&["laptop", "desktop"]);
    assert!(!remote(agents).contains(CANARY), "{}", directory.display());
    let files = files_below(&agents.machines.env.path("laptop/memory"));
    assert!(!files.values().any(|text| text.contains(CANARY)), "{files:?}");
}

#[test]
fn excluded_project_writes_nothing_that_is_carried() {
    let agents = Agents::laptop_and_desktop();
    let root = agents.repository("laptop", "gateway", GATEWAY);
    agents.done("laptop", &["project", "exclude", "github.com/acme"]);
    agents.remember("laptop", &root, "own.md", CANARY);
    write_through_every_face(&agents, &root);
}

#[test]
fn project_without_a_name_writes_nothing_that_is_carried() {
    let agents = Agents::laptop_and_desktop();
    let root = agents.machines.env.path("notes");
    fs::create_dir_all(&root).expect("made");
    let root = root.canonicalize().expect("there");
    agents.remember("laptop", &root, "own.md", CANARY);
    write_through_every_face(&agents, &root);
    // Once it has a name, it does.
    agents.done("laptop", &["project", "name", "notes", "notes"]);
    let mut client = Client::start(&mut at(&agents, &root, &["mcp"]), "claude-code");
    let fact = json!({ "kind": "user", "name": "tide", "content": "The tide is high." });
    let (told, is_error) = client.call("remember", fact);
    assert!(!is_error && told.contains(" notes/user_tide.md"), "{told}");
    client.end();
    agents.rest();
}

#[test]
fn private_worktree_writes_nothing_that_is_carried() {
    let agents = Agents::laptop_and_desktop();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    let worktree = agents.worktree(&root, "wt");
    agents.start("laptop", &root);
    agents.rest();
    agents.done("laptop", &["project", "private", "laptop-code/wt"]);
    write_through_every_face(&agents, &worktree);
}

#[test]
fn unproven_checkout_writes_nothing_that_is_carried() {
    let agents = Agents::laptop_and_desktop();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    agents.remember("laptop", &root, "own.md", "own\n");
    agents.start("laptop", &root);
    agents.rest();
    let archive = agents.archive("laptop", "archive", LIGHTHOUSE);
    write_through_every_face(&agents, &archive);
}

/// The words that each place's memory has.
const WORDS: [(&str, &str); 4] = [
    ("lighthouse", "lampwhite"),
    ("tower", "towerstone"),
    ("gateway", "gatekeeper"),
    ("shared", "tidalwave"),
];

/// A laptop with two projects, one that was excluded after it had been carried, and shared memory.
fn with_three_projects() -> (Agents, Vec<(&'static str, PathBuf)>) {
    let agents = Agents::laptop_and_desktop();
    let mut roots = Vec::new();
    for (name, url) in
        [("lighthouse", LIGHTHOUSE), ("tower", "https://github.com/me/tower"), ("gateway", GATEWAY)]
    {
        let root = agents.repository("laptop", name, url);
        let word = WORDS.iter().find(|(place, _)| *place == name).expect("listed").1;
        agents.remember("laptop", &root, "fact.md", &format!("The secret word is {word}.\n"));
        agents.start("laptop", &root);
        agents.rest();
        roots.push((name, root));
    }
    agents.machines.write("laptop", "behavioral/fact.md", "The secret word is tidalwave.\n");
    agents.machines.settle(&["laptop", "desktop"]);
    agents.done("laptop", &["project", "exclude", "github.com/acme"]);
    agents.machines.settle(&["laptop", "desktop"]);
    (agents, roots)
}

/// Returns the places whose words are in a text.
fn places_in(text: &str) -> Vec<&'static str> {
    WORDS.iter().filter(|(_, word)| text.contains(word)).map(|(place, _)| *place).collect()
}

/// Recalls from a directory in both faces; asserts that both find the same places.
fn recalled(agents: &Agents, directory: &Path, is_everywhere: bool) -> Vec<&'static str> {
    let mut arguments = vec!["recall", "secret", "word", "-n", "50"];
    let mut parameters = json!({ "query": "secret word", "limit": 50 });
    if is_everywhere {
        arguments.push("--everywhere");
        parameters["everywhere"] = Value::Bool(true);
    }
    let shown = agents.machines.env.shown(&mut at(agents, directory, &arguments));
    let mut client = Client::start(&mut at(agents, directory, &["mcp"]), "claude-code");
    let (told, is_error) = client.call("recall", parameters);
    assert!(!is_error, "{told}");
    client.end();
    agents.rest();
    assert_eq!(places_in(&shown), places_in(&told), "{shown}\n{told}");
    places_in(&told)
}

#[test]
fn recall_stays_in_its_project() {
    let (agents, roots) = with_three_projects();
    let root = |name: &str| &roots.iter().find(|(other, _)| *other == name).expect("made").1;
    let outside = agents.machines.env.path("");
    let index = agents.machines.env.path("laptop/index/recall.sqlite");
    // Without an index, with one, with a damaged one, and with one that was made again.
    for state in ["absent", "there", "damaged", "made again"] {
        if state == "damaged" {
            for file in ["recall.sqlite-wal", "recall.sqlite-shm"] {
                drop(fs::remove_file(index.with_file_name(file)));
            }
            fs::write(&index, [b'x'; 5000]).expect("damaged");
        }
        assert_eq!(index.is_file(), state != "absent");
        assert_eq!(recalled(&agents, root("lighthouse"), false), ["lighthouse", "shared"], "{state}");
        assert_eq!(recalled(&agents, root("gateway"), false), ["gateway", "shared"], "{state}");
        assert_eq!(recalled(&agents, &outside, true), ["lighthouse", "tower", "shared"], "{state}");
    }
    assert_eq!(recalled(&agents, root("lighthouse"), false), ["lighthouse", "shared"]);
    assert_eq!(recalled(&agents, root("lighthouse"), true), ["lighthouse", "tower", "shared"]);
    assert_eq!(recalled(&agents, root("tower"), false), ["tower", "shared"]);
    // An excluded project is reached only from its own checkout.
    assert_eq!(recalled(&agents, root("gateway"), false), ["gateway", "shared"]);
    assert_eq!(recalled(&agents, &outside, false), ["lighthouse", "tower", "shared"]);
    assert_eq!(recalled(&agents, &outside, true), ["lighthouse", "tower", "shared"]);
    // A checkout that only claims to be lighthouse gets shared memory alone.
    let archive = agents.archive("laptop", "archive", LIGHTHOUSE);
    assert_eq!(recalled(&agents, &archive, false), ["shared"]);
    // A path does not lead around it.
    let bound = agents.done("laptop", &["mount", "list", "--json"]);
    let tower = bound.split('"').find(|word| word.contains("/tower-")).expect("bound");
    for name in [tower, "tower"] {
        let mut command = at(&agents, root("lighthouse"), &["recall", "secret", "--within", name]);
        let shown = agents.machines.env.shown(&mut command);
        assert!(shown.starts_with("exit 1\n") && shown.contains("--everywhere"), "{shown}");
    }
    // Nor does a list of resources.
    let mut client = Client::start(&mut at(&agents, root("lighthouse"), &["mcp"]), "claude-code");
    let listed = client.ask("resources/list", json!({})).to_string();
    assert!(listed.contains("/lighthouse-") && !listed.contains("memory/tower-"), "{listed}");
    client.end();
    agents.rest();
}

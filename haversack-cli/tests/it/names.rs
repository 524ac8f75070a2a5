//! Names of files as people type and read them: `lighthouse/ports.md`.

use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::json;

use crate::agents::Agents;

const LIGHTHOUSE: &str = "git@github.com:me/lighthouse.git";

/// The place of the project in the store.
const PLACE: &str = "claude_memory/lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb";

/// The content of the project's file about ports.
const PORTS: &str = "---\nname: ports\ndescription: ports of staging\ntype: reference\n---\n\nstaging 8443\n";

/// Returns a machine with a bound project and a file of no project, and the checkout of the project.
fn bound() -> (Agents, PathBuf) {
    let agents = Agents::new();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    agents.remember("laptop", &root, "MEMORY.md", "- [Ports](ports.md) — staging\n");
    agents.remember("laptop", &root, "ports.md", PORTS);
    agents.done("laptop", &["project", "bind", "laptop-code/lighthouse"]);
    agents.done("laptop", &["create", "notes/ideas.md", "a red lamp\n"]);
    (agents, root)
}

/// Runs a command in a directory.
fn run_in(agents: &Agents, directory: &Path, arguments: &[&str]) -> String {
    agents.machines.env.shown(agents.command("laptop", arguments).current_dir(directory))
}

#[test]
fn ls_shows_projects_and_goes_into_them() {
    let (agents, _) = bound();
    assert_snapshot!(agents.shown("laptop", &["ls"]), @r#"
    exit 0
    --- stdout
    -    lighthouse/
    -    notes/
    --- stderr
    "#);
    let records = agents.shown("laptop", &["ls", "-R", "state"]);
    assert!(records.contains("state/projects/lighthouse-d004"), "{records}");
    assert_snapshot!(agents.shown("laptop", &["ls", "lighthouse"]), @r#"
    exit 0
    --- stdout
    32  just now  lighthouse/MEMORY.md
    80  just now  lighthouse/ports.md
    --- stderr
    "#);
    assert_eq!(agents.shown("laptop", &["ls", "claude_memory"]).matches("lighthouse/").count(), 1);
    assert_eq!(agents.shown("laptop", &["ls", PLACE]), agents.shown("laptop", &["ls", "lighthouse/"]));
    assert_snapshot!(agents.shown("laptop", &["ls", "-R"]), @r#"
    exit 0
    --- stdout
    32  just now  lighthouse/MEMORY.md
    80  just now  lighthouse/ports.md
    11  just now  notes/ideas.md
    --- stderr
    "#);
    assert_snapshot!(agents.shown("laptop", &["ls", "--kind", "reference"]), @r#"
    exit 0
    --- stdout
    80  just now  lighthouse/ports.md
    --- stderr
    "#);
    assert_snapshot!(agents.shown("laptop", &["ls", "--kind", "user"]), @r#"
    exit 0
    --- stdout
    --- stderr
    No file here is of the kind user
    "#);
    assert_snapshot!(agents.shown("laptop", &["ls", "--kind", "referense"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: there is no kind referense; did you mean reference?
    Hint: List the kinds: haversack kinds
    "#);
}

#[test]
fn every_form_of_a_name_leads_to_the_file() {
    let (agents, root) = bound();
    let real = agents.memory("laptop", &root).join("ports.md").display().to_string();
    let in_memories = format!("/memories/{PLACE}/ports.md");
    let locator = format!("{PLACE}/ports.md");
    let elsewhere = agents.machines.env.path("");
    for text in ["lighthouse/ports.md", "lighthouse-d004/ports.md", &real, &in_memories, &locator] {
        let shown = run_in(&agents, &elsewhere, &["view", text]);
        assert!(shown.contains("staging 8443"), "{text}: {shown}");
    }
    for (directory, text) in [
        (&root, "ports.md"),
        (&root, "lighthouse/ports.md"),
        (&agents.memory("laptop", &root), "./ports.md"),
        (&agents.memory("laptop", &root), "ports.md"),
    ] {
        let shown = run_in(&agents, directory, &["view", text]);
        assert!(shown.contains("staging 8443"), "{text}: {shown}");
    }
    assert_snapshot!(run_in(&agents, &elsewhere, &["view", "ports.md"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not view ports.md: nothing is there
    Hint: List the files: haversack ls
    "#);
    assert_snapshot!(run_in(&agents, &elsewhere, &["append", &locator, "more"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Added 4 bytes to lighthouse/ports.md
    "#);
    assert_snapshot!(run_in(&agents, &root, &["create", "harbor.md", "deep"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Created lighthouse/harbor.md, with its line in MEMORY.md
    "#);
    assert!(agents.memory("laptop", &root).join("harbor.md").is_file());
    assert_snapshot!(run_in(&agents, &root, &["ls", "."]), @r#"
    exit 0
    --- stdout
    63  just now  lighthouse/MEMORY.md
     4  just now  lighthouse/harbor.md
    84  just now  lighthouse/ports.md
    --- stderr
    "#);
}

#[test]
fn name_with_several_meanings_lists_them() {
    let (agents, root) = bound();
    agents.done("laptop", &["create", "ports.md", "of no project"]);
    assert_snapshot!(run_in(&agents, &root, &["view", "ports.md"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: ports.md could mean 2 places
    Hint: Name one: lighthouse/ports.md or /memories/ports.md
    "#);
    let other = agents.repository("laptop", "other/lighthouse", "git@github.com:other/lighthouse.git");
    agents.remember("laptop", &other, "ports.md", "9000\n");
    agents.done("laptop", &["project", "bind", "laptop-code/other/lighthouse"]);
    assert_snapshot!(agents.shown("laptop", &["ls"]), @r#"
    exit 0
    --- stdout
     -            lighthouse-2de7/
     -            lighthouse-d004/
     -            notes/
    13  just now  ports.md
    --- stderr
    "#);
    assert_snapshot!(agents.shown("laptop", &["view", "lighthouse/ports.md"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: lighthouse/ports.md could mean 2 places
    Hint: Name one: lighthouse-2de7/ports.md or lighthouse-d004/ports.md
    "#);
    assert_snapshot!(agents.shown("laptop", &["create", "lighthouse/new.md", "x"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: lighthouse/new.md could mean 2 places
    Hint: Name one: lighthouse-2de7/new.md or lighthouse-d004/new.md
    "#);
    assert!(agents.done("laptop", &["view", "lighthouse-d004/ports.md"]).contains("8443"));
}

#[test]
fn content_is_shown_as_it_is() {
    let (agents, root) = bound();
    agents.remember("laptop", &root, "place.md", &format!("the store calls it {PLACE}/ports.md\n"));
    for arguments in [&["view", "lighthouse/place.md"][..], &["recall", "store", "calls"]] {
        let shown = agents.done("laptop", arguments);
        assert!(shown.contains(&format!("the store calls it {PLACE}/ports.md")), "{shown}");
    }
}

#[test]
fn mcp_tools_take_and_show_short_names() {
    let (agents, root) = bound();
    let mut client =
        crate::mcp::Client::start(agents.command("laptop", &["mcp"]).current_dir(&root), "tester");
    for path in ["lighthouse/ports.md", "ports.md", &format!("/memories/{PLACE}/ports.md")] {
        let shown = client.done("view", json!({ "path": path }));
        assert!(shown.contains("staging 8443"), "{path}: {shown}");
    }
    let found = client.done("recall", json!({ "query": "staging 8443" }));
    assert!(found.contains("\nlighthouse/ports.md:") && !found.contains(PLACE), "{found}");
    let created = client.done("create", json!({ "path": "lighthouse/lamp.md", "file_text": "white" }));
    assert!(created.starts_with("File created successfully"), "{created}");
    assert!(agents.memory("laptop", &root).join("lamp.md").is_file());
    let history = client.done("history", json!({ "path": "lamp.md" }));
    assert!(history.contains("lighthouse/lamp.md") && !history.contains(PLACE), "{history}");
    client.end();
    agents.rest();
}

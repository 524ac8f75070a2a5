//! The real Claude Code with our server of the Model Context Protocol: by its settings, and by the plugin.

use serde_json::{Value, json};

use super::LIGHTHOUSE;
use super::api::{Api, Say};
use super::client::Client;

#[test]
fn its_model_remembers_and_recalls_with_our_tools() {
    let server = json!({ "command": env!("CARGO_BIN_EXE_haversack"), "args": ["mcp"] });
    let config = json!({ "mcpServers": { "haversack": server } }).to_string();
    let Some(client) = Client::on_laptop_and_desktop() else { return };
    remembers(
        &client,
        &["--mcp-config", &config, "--strict-mcp-config", "--allowedTools", "mcp__haversack"],
        "mcp__haversack__remember",
        "mcp__haversack__recall",
    );
}

#[test]
fn whoever_is_set_up_has_our_tools_once() {
    let plugin = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugin");
    let Some(client) = Client::on_laptop_and_desktop() else { return };
    let told = remembers(
        &client,
        &["--plugin-dir", plugin, "--allowedTools", "mcp__haversack"],
        "mcp__haversack__remember",
        "mcp__haversack__recall",
    );
    assert!(!told.contains("mcp__plugin_haversack"), "the plugin's are the same once more: {told}");
}

#[test]
fn the_plugin_brings_our_tools_along() {
    let plugin = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugin");
    let Some(client) = Client::on_laptop_and_desktop() else { return };
    client.agents.done("laptop", &["setup", "claude-code", "--remove"]);
    remembers(
        &client,
        &["--plugin-dir", plugin, "--allowedTools", "mcp__plugin_haversack_haversack"],
        "mcp__plugin_haversack_haversack__remember",
        "mcp__plugin_haversack_haversack__recall",
    );
}

/// Runs a session in which the model uses our tools, and looks at what it was told, what was written, and under whose name; returns what it was told
/// first.
fn remembers(client: &Client, arguments: &[&str], remember: &'static str, recall: &'static str) -> String {
    let agents = &client.agents;
    let here = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    let fact = json!({ "kind": "project", "name": "Lamp", "content": "The lamp is white." });
    let api = Api::start(vec![
        vec![Say::Use(remember, fact)],
        vec![Say::Use(recall, json!({ "query": "colour of the lamp" }))],
        vec![Say::Text("White.")],
    ]);
    let mut all = arguments.to_vec();
    all.extend(["-p", "Remember that the lamp is white. Which colour has it?"]);
    let printed = client.run("laptop", &here, &api, &all);
    assert_eq!(printed.trim(), "White.");
    let path = "claude_memory/lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb/project_lamp.md";
    let told = api.told();
    let kept = "Remembered in lighthouse/project_lamp.md, and in the index.";
    assert!(!told[0].contains(kept) && told[1].contains(kept), "{}", told[1]);
    let found = "lighthouse/project_lamp.md:";
    assert!(!told[1].contains(found) && told[2].contains(found), "{}", told[2]);
    agents.rest();
    let file = agents.memory("laptop", &here).join("project_lamp.md");
    let text = std::fs::read_to_string(&file).expect("the project's own memory has it");
    assert!(text.ends_with("The lamp is white.\n"), "{text}");
    agents.done("laptop", &["sync"]);
    let log = agents.done("laptop", &["log", "--json"]);
    let log: Value = serde_json::from_str(
        log.split("--- stdout\n").nth(1).and_then(|rest| rest.split("--- stderr").next()).expect("stdout"),
    )
    .expect("JSON");
    let has_it = |change: &&Value| {
        change["files"].as_array().is_some_and(|files| files.iter().any(|file| file["path"] == path))
    };
    let changes = log["changes"].as_array().expect("changes");
    let change = changes.iter().find(has_it).unwrap_or_else(|| panic!("{log:#}"));
    assert_eq!(change["agent"], "claude-code", "{change:#}");
    assert!(change["session"].as_str().is_some_and(|session| !session.is_empty()), "{change:#}");
    told[0].clone()
}

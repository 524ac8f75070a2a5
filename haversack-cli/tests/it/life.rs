//! The life of a user with two machines, typed into terminals: begin, join, work, disagree, take back, leave.
//!
//! A terminal is a pane of tmux, and the sessions are those of the real Claude Code, where `cargo xtask tools` installed them. Elsewhere a terminal is
//! a pty made by `script`, and the test fires the hooks as Claude Code does. If the tools are required, the test fails without them.

mod terminal;

use std::fs;
use std::path::Path;

use serde_json::json;

use self::terminal::{Terminal, program_or_required};
use crate::agents::Agents;
use crate::claude_code::api::{Api, Say, write};
use crate::claude_code::client::Client;

const LIGHTHOUSE: &str = "git@github.com:me/lighthouse.git";

const PORTS: &str = "---\nname: ports\ndescription: ports of staging\ntype: reference\n---\n\nstaging 8443\n";

/// Lets an agent write a file in a session.
fn session_that_writes(
    client: Option<&Client>,
    agents: &Agents,
    (machine, root): (&str, &Path),
    file: &Path,
    text: &str,
) {
    match client {
        Some(client) => {
            let api = Api::start(vec![vec![write(file, text)], vec![Say::Text("Kept.")]]);
            client.run(machine, root, &api, &["-p", "Remember it."]);
        }
        None => {
            agents.start(machine, root);
            fs::write(file, text).expect("written");
            agents.wrote(machine, root, file);
            agents.hook(machine, "SessionEnd", root, json!({ "reason": "exit" }));
        }
    }
    agents.rest();
}

/// Begins a session; returns everything that its model is told.
fn session_that_reads(client: Option<&Client>, agents: &Agents, machine: &str, root: &Path) -> String {
    let told = match client {
        Some(client) => {
            let api = Api::start(vec![vec![Say::Text("Yes.")]]);
            client.run(machine, root, &api, &["-p", "What do you remember?"]);
            api.wait_for(1)
        }
        None => agents.start(machine, root).to_string(),
    };
    agents.rest();
    told
}

/// Returns the paths below a directory that bear our name.
fn ours_below(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(inner) = directories.pop() {
        for entry in fs::read_dir(&inner).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.contains("haversack")
                || ["remember", "digest-session", "refresh-persona"].contains(&name.as_str())
            {
                found.push(entry.path().display().to_string());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn life_of_a_user_on_two_machines() {
    let client = program_or_required("claude").and_then(|_| Client::on_new_machines());
    let without_client;
    let (client, agents) = match &client {
        Some(client) => (Some(client), &client.agents),
        None => {
            without_client = Agents::new();
            (None, &without_client)
        }
    };
    let env = &agents.machines.env;
    let here = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    let there = agents.repository("desktop", "tower", LIGHTHOUSE);
    for machine in ["laptop", "desktop"] {
        fs::create_dir_all(agents.claude(machine)).expect("made");
        match client {
            Some(client) => client.prepare(machine),
            None => agents.link_program(machine),
        }
    }
    let settings = agents.claude("laptop").join("settings.json");
    let settings_before = fs::read_to_string(&settings).ok();
    agents.remember("laptop", &here, "MEMORY.md", "- [Ports](ports.md) — staging\n");
    agents.remember("laptop", &here, "ports.md", PORTS);
    let transcript = agents.memory("laptop", &here).with_file_name("1.jsonl");
    fs::write(transcript, format!("{{\"cwd\":\"{}\",\"type\":\"user\"}}\n", here.display()))
        .expect("written");
    fs::create_dir_all(env.path("Dropbox")).expect("made");
    fs::create_dir_all(env.path(".dropbox")).expect("made");
    let folder = format!("{{\"personal\":{{\"path\":\"{}\"}}}}", env.path("Dropbox").display());
    fs::write(env.path(".dropbox/info.json"), folder).expect("written");

    // Begin: the state names the command, and the command asks once.
    let mut laptop = Terminal::open(agents, "laptop", &here);
    assert!(laptop.run("haversack status").contains("haversack init"));
    laptop.start("haversack init --device laptop");
    laptop.wait_for("Your choice:");
    laptop.answer("1");
    laptop.wait_for("[y/N]");
    laptop.answer("y");
    let begun = laptop.end(0);
    let line = begun
        .lines()
        .find_map(|line| line.strip_prefix("Done. On your other machine:"))
        .expect("a line to copy");
    assert_eq!(line.trim(), "haversack init ~/Dropbox/haversack");

    // Join, with the line that the laptop showed.
    let mut desktop = Terminal::open(agents, "desktop", &there);
    desktop.start(&format!("{} --device desktop", line.trim()));
    desktop.wait_for("[y/N]");
    desktop.answer("y");
    let joined = desktop.end(0);
    assert!(joined.contains("lighthouse is not on this machine yet"), "{joined}");

    // The first session on the desktop has the memory of the laptop.
    let told = session_that_reads(client, agents, "desktop", &there);
    assert!(told.contains("- [Ports](ports.md) — staging"), "{told}");
    assert!(desktop.run("haversack ls lighthouse").contains("lighthouse/ports.md"));

    // A fact of a session on the laptop is found on the desktop.
    let tide = agents.memory("laptop", &here).join("tide.md");
    let fact = "---\nname: tide\ndescription: when to deploy\ntype: project\n---\n\nwait for the tide before a deploy\n";
    session_that_writes(client, agents, ("laptop", &here), &tide, fact);
    session_that_reads(client, agents, "desktop", &there);
    desktop.run("haversack sync");
    let found = desktop.run("haversack recall deploy tide");
    assert!(found.contains("lighthouse/tide.md") && found.contains("wait for the tide"), "{found}");

    // Both change one sentence. The state names the conflict, and a choice settles it everywhere.
    for (machine, root, port) in [("laptop", &here, "8111"), ("desktop", &there, "8555")] {
        agents.remember(machine, root, "ports.md", &PORTS.replace("8443", port));
    }
    laptop.run("haversack sync");
    desktop.run("haversack sync");
    desktop.start("haversack status");
    let state = desktop.end(1);
    assert!(state.contains("ports.md has two versions") && state.contains("haversack conflicts"), "{state}");
    let story = desktop.run("haversack conflicts");
    assert!(story.contains("from laptop") && story.contains("from desktop"), "{story}");
    desktop.start("haversack resolve");
    desktop.wait_for("Keep 1, 2, both, skip or quit?");
    desktop.answer("1");
    assert!(desktop.end(0).contains("No conflicts left"));
    desktop.run("haversack sync");
    laptop.run("haversack sync");
    let ports = || {
        ["laptop", "desktop"].map(|machine| {
            agents.memory(machine, if machine == "laptop" { &here } else { &there }).join("ports.md")
        })
    };
    let [on_laptop, on_desktop] = ports().map(|file| fs::read_to_string(file).expect("there"));
    assert_eq!(on_laptop, on_desktop);
    assert_eq!(
        ["8111", "8555"].map(|port| on_laptop.matches(port).count()).iter().sum::<usize>(),
        1,
        "{on_laptop}"
    );
    assert!(laptop.run("haversack status").contains("In sync."));

    // A wrong change is taken back, on both machines.
    let port = if on_laptop.contains("8111") { "8111" } else { "8555" };
    desktop.run(&format!("haversack str-replace ports.md {port} 1"));
    desktop.run("haversack sync");
    desktop.start("haversack undo");
    desktop.wait_for("[y/N]");
    desktop.answer("y");
    assert!(desktop.end(0).contains("Undone."));
    desktop.run("haversack sync");
    laptop.run("haversack sync");
    assert_eq!(ports().map(|file| fs::read_to_string(file).expect("there")), [on_laptop, on_desktop]);

    // A deleted file comes back.
    // Claude Code completes the fields of a memory that its model writes.
    let fact = fs::read_to_string(&tide).expect("there");
    laptop.run("haversack delete tide.md");
    laptop.run("haversack sync");
    laptop.run("haversack restore tide.md");
    assert_eq!(fs::read_to_string(&tide).expect("it is back"), fact);

    // Leave: the agent is as it was, and the memory stays.
    laptop.start("haversack uninstall");
    laptop.wait_for("[y/N]");
    laptop.answer("y");
    let left = laptop.end(0);
    assert!(left.contains("Memory is where your agents have it"), "{left}");
    assert_eq!(fs::read_to_string(&settings).ok(), settings_before);
    assert_eq!(ours_below(&agents.claude("laptop")), [""; 0]);
    assert_eq!(fs::read_to_string(&tide).expect("it stays"), fact);
}

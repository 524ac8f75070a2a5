//! The graph as a user and an agent use it: commands, `server-memory`'s tools, pictures, two machines, a memory store of Anthropic's.

use std::collections::BTreeSet;
use std::fs;

use haversack_servers::memory_stores::{KEY, MemoryStores, STORE};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::environment::TestEnv;
use crate::machines::Machines;
use crate::mcp::Client;

/// The answers of `@modelcontextprotocol/server-memory` 2026.8.31 to these calls, recorded from the published package, and its list of tools.
const RECORDED: &str = include_str!("../fixtures/server-memory/answers-2026.8.31.json");

fn server(env: &TestEnv) -> Client {
    Client::start(&mut env.command(&["--home", "home", "mcp", "--tools", "server-memory"]), "a client")
}

/// Runs a command that must succeed, and returns its stdout.
fn done(env: &TestEnv, arguments: &[&str]) -> String {
    let output = env.command(&["--home", "home"]).args(arguments).output().expect("it ran");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

fn shown(env: &TestEnv, arguments: &[&str]) -> String {
    env.shown(env.command(&["--home", "home"]).args(arguments))
}

/// Returns a schema whose lists of required fields are sorted: their order means nothing.
fn sorted(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match value {
                Value::Array(names) if name == "required" => {
                    let names: BTreeSet<String> = names.iter().map(Value::to_string).collect();
                    (name.clone(), json!(names))
                }
                value => (name.clone(), sorted(value)),
            })
            .collect(),
        other => other.clone(),
    }
}

#[test]
fn server_memory_gives_the_recorded_answers() {
    let recorded: Value = serde_json::from_str(RECORDED).expect("JSON");
    let env = TestEnv::new();
    let mut client = server(&env);
    for call in recorded["calls"].as_array().expect("calls") {
        let answer =
            client.ask("tools/call", json!({ "name": call["tool"], "arguments": call["arguments"] }));
        for part in ["content", "structuredContent"] {
            assert_eq!(answer["result"][part], call["result"][part], "{part} of {call}");
        }
        let is_error = |result: &Value| result["isError"].as_bool().unwrap_or(false);
        assert_eq!(is_error(&answer["result"]), is_error(&call["result"]), "{call}");
    }
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let theirs = recorded["tools"].as_array().expect("tools");
    assert_eq!(tools.as_array().map(Vec::len), Some(theirs.len()));
    for (ours, theirs) in tools.as_array().expect("tools").iter().zip(theirs) {
        for part in ["name", "title", "description", "annotations"] {
            assert_eq!(ours[part], theirs[part], "{part} of {theirs}");
        }
        assert_eq!(sorted(&ours["inputSchema"]), sorted(&theirs["inputSchema"]));
    }
    let resources = client.ask("resources/list", json!({}))["result"]["resources"].clone();
    assert_eq!(resources, recorded["resources"]);
    let read = client.ask("resources/read", json!({ "uri": "memory://knowledge-graph" }));
    assert_eq!(read["result"]["contents"][0]["text"], "{\n  \"entities\": [],\n  \"relations\": []\n}");
    let wrong = client.ask(
        "tools/call",
        json!({ "name": "create_entities", "arguments": { "entities": [{ "name": 1 }] } }),
    );
    assert_eq!(wrong["result"]["isError"], true, "{wrong}");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn two_servers_keep_every_entity() {
    let env = TestEnv::new();
    let create = |client: &mut Client, who: &str| {
        for number in 0..200 {
            let entity =
                json!({ "name": format!("{who}-{number}"), "entityType": "note", "observations": ["kept"] });
            let answer = client.ask(
                "tools/call",
                json!({ "name": "create_entities", "arguments": { "entities": [entity] } }),
            );
            assert_ne!(answer["result"]["isError"], true, "{answer}");
        }
    };
    let (mut one, mut other) = (server(&env), server(&env));
    std::thread::scope(|scope| {
        scope.spawn(|| create(&mut one, "one"));
        scope.spawn(|| create(&mut other, "other"));
    });
    // One call with 200, and a look by the server that did not write last.
    let many: Vec<Value> = (0..200)
        .map(|number| json!({ "name": format!("many-{number}"), "entityType": "note", "observations": [] }))
        .collect();
    one.ask("tools/call", json!({ "name": "create_entities", "arguments": { "entities": many } }));
    let all = other.ask("tools/call", json!({ "name": "read_graph", "arguments": {} }));
    assert_eq!(all["result"]["structuredContent"]["entities"].as_array().map(Vec::len), Some(600));
    let doctor = shown(&env, &["doctor"]);
    assert!(doctor.contains("every record has its content"), "{doctor}");
}

#[test]
fn graph_by_commands() {
    let env = TestEnv::new();
    assert_snapshot!(shown(&env, &["node", "create", "Person", "x"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: ONTOLOGY_NOT_FOUND: the graph has no ontology yet; the first type makes it: haversack ontology add-node-type NAME
    Hint: haversack ontology add-node-type NAME
    ");
    done(&env, &["ontology", "add-node-type", "Person"]);
    done(&env, &["ontology", "add-node-type", "Project"]);
    done(
        &env,
        &[
            "ontology",
            "add-connection-type",
            "WorksOn",
            "--from",
            "Person",
            "--to",
            "Project",
            "--require",
            "since",
        ],
    );
    assert_snapshot!(done(&env, &["ontology", "show"]), @r"
    node_types:
      - Person
      - Project
    connection_types:
      - name: WorksOn
        from_types: [Person]
        to_types: [Project]
        required_properties: [since]
    ");
    let keeper =
        done(&env, &["node", "create", "Person", "Climbs at dawn.", "-p", "name=keeper", "-p", "rank=2"]);
    let keeper = keeper.trim();
    let lighthouse = done(&env, &["node", "create", "Project", "# Lighthouse", "-p", "name=lighthouse"]);
    let lighthouse = lighthouse.trim();
    let refused = shown(&env, &["connection", "create", "WorksOn", lighthouse, keeper, "-p", "since=2024"]);
    assert!(
        refused.contains("INVALID_TOPOLOGY: WorksOn goes from Person to Project, not from Project to Person"),
        "{refused}"
    );
    let refused = shown(&env, &["connection", "check", "WorksOn", keeper, lighthouse]);
    assert!(refused.contains("REQUIRED_PROPERTY_MISSING"), "{refused}");
    let works = done(
        &env,
        &["connection", "create", "WorksOn", keeper, lighthouse, "-p", "since=2024", "--text", "By hand."],
    );
    assert_snapshot!(done(&env, &["graph", "neighbours", "keeper"]), @r"
    keeper (Person)
      WorksOn → lighthouse (Project)
    ");
    assert!(done(&env, &["node", "show", keeper]).contains("rank=2"));
    assert!(done(&env, &["connection", "show", works.trim()]).contains("By hand."));
    assert!(done(&env, &["node", "list", "-p", "rank=2"]).contains(keeper));
    assert!(done(&env, &["node", "search", "DAWN", "--json"]).contains(keeper));
    done(&env, &["node", "update", keeper, "-p", "rank=3", "--text", "Sleeps."]);
    assert_eq!(done(&env, &["node", "show", keeper, "--content"]), "Sleeps.");
    done(&env, &["ontology", "check"]);
    for (file, start) in [("graph.svg", "<svg "), ("graph.dot", "digraph"), ("graph.mmd", "graph LR")] {
        done(&env, &["graph", "draw", "-o", file]);
        let drawn = fs::read_to_string(env.path(file)).expect("drawn");
        assert!(
            drawn.starts_with(start) && drawn.contains("lighthouse") && drawn.contains("WorksOn"),
            "{drawn}"
        );
    }
    assert!(done(&env, &["graph", "export"]).contains(
        "{\"type\":\"relation\",\"from\":\"keeper\",\"to\":\"lighthouse\",\"relationType\":\"WorksOn\"}"
    ));
    done(&env, &["node", "delete", keeper]);
    let left: Value = serde_json::from_str(&done(&env, &["connection", "list", "--json"])).expect("JSON");
    assert_eq!(left, json!({ "connection_ids": [] }));
    let log = done(&env, &["log"]);
    assert!(log.contains("node"), "{log}");
    done(&env, &["undo", "--yes"]);
    assert!(done(&env, &["node", "list"]).contains(keeper), "undo brings the node back");
}

#[test]
fn nodes_are_found_by_words_or_exact_text() {
    let env = TestEnv::new();
    done(&env, &["ontology", "add-node-type", "Person"]);
    done(&env, &["ontology", "add-node-type", "Project"]);
    let create = |kind: &str, text: &str| done(&env, &["node", "create", kind, text]).trim().to_owned();
    let keeper = create("Person", "The keeper climbs the tower at dawn.");
    let project = create("Project", "The tower gets a new lamp.");
    let ids = |arguments: &[&str]| {
        let found = done(&env, &[&["node", "search", "--json"], arguments].concat());
        serde_json::from_str::<Value>(&found).expect("JSON")["node_ids"].clone()
    };
    assert_eq!(ids(&["climb the tower"])[0], json!(keeper), "the best first");
    assert_eq!(ids(&["climbing dawn"]), json!([keeper]));
    assert_eq!(ids(&["tower", "--type", "Project", "--limit", "1"]), json!([project]));
    assert_eq!(ids(&["tower", "--type", "Person", "--limit", "1"]), json!([keeper]));
    assert_snapshot!(shown(&env, &["node", "search", "daw"]), @r"
    exit 0
    --- stdout
    --- stderr
    No node has these words. Look for a part of a word: haversack node search --exact TEXT
    ");
    assert_eq!(ids(&["--exact", "AT DAW"]), json!([keeper]));
    // An index that cannot be used is no reason to find nothing, and the answer says so.
    let index = env.path("home/index/recall.sqlite");
    fs::remove_file(&index).expect("there");
    fs::create_dir(&index).expect("made");
    let found = shown(&env, &["node", "search", "dawn"]);
    assert!(found.contains(&keeper) && found.contains("Searched without the index: "), "{found}");
}

#[test]
fn import_that_cannot_be_read_names_the_line() {
    let env = TestEnv::new();
    fs::write(
        env.path("bad.jsonl"),
        "{\"type\":\"entity\",\"name\":\"lamp\",\"entityType\":\"thing\"}\nlamp\n",
    )
    .expect("written");
    assert_snapshot!(shown(&env, &["graph", "import", "bad.jsonl"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: INVALID_ARGUMENT: line 2: not JSON from column 1 on
    Hint: Nothing was imported. Correct the line, then: haversack graph import bad.jsonl
    ");
    assert_eq!(done(&env, &["graph", "export"]), "");
}

#[test]
fn links_of_memories_are_edges() {
    let env = TestEnv::new();
    let notes = env.path("home/memory/claude_memory/lighthouse");
    fs::create_dir_all(&notes).expect("made");
    fs::write(notes.join("MEMORY.md"), "# Memory\n\n- [Tone](feedback_tone.md) — how to write\n")
        .expect("written");
    fs::write(
        notes.join("feedback_tone.md"),
        "---\nname: tone\ntype: feedback\n---\nSee [[project_ports]] and [[nowhere]].\n",
    )
    .expect("written");
    fs::write(notes.join("project_ports.md"), "---\nname: ports\ntype: project\n---\n5433\n")
        .expect("written");
    assert_snapshot!(done(&env, &["graph", "neighbours", "feedback_tone"]), @r"
    feedback_tone (feedback)
      links → nowhere (missing)
      links → project_ports (project)
      ← lists MEMORY (index)
    ");
    assert_snapshot!(shown(&env, &["graph", "neighbours", "none_such"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: there is no node and no memory none_such
    Hint: See the nodes and the memories: haversack node list, haversack ls
    ");
}

#[test]
fn doctor_repairs_the_graph() {
    let env = TestEnv::new();
    done(&env, &["ontology", "add-node-type", "Person"]);
    let id = done(&env, &["node", "create", "Person", "text"]);
    let registry = env.path("home/memory/_system/registry.json");
    let whole = fs::read_to_string(&registry).expect("there");
    fs::write(&registry, &whole[..whole.len() / 2]).expect("cut");
    let refused = shown(&env, &["node", "list"]);
    assert!(refused.starts_with("exit 1") && refused.contains("registry.json is damaged"), "{refused}");
    let found = shown(&env, &["doctor"]);
    assert!(found.contains("haversack doctor --fix"), "{found}");
    let fixed = shown(&env, &["doctor", "--fix"]);
    assert!(fixed.contains("Repaired: _system/registry.json is damaged"), "{fixed}");
    assert!(done(&env, &["node", "list"]).contains(id.trim()));
    assert!(shown(&env, &["doctor"]).contains("every record has its content"));
}

#[test]
fn two_machines_add_to_one_graph() {
    let machines = Machines::laptop_and_desktop(&[("notes.md", "a\n")]);
    machines.done("laptop", &["ontology", "add-node-type", "Person"]);
    machines
        .done("laptop", &["ontology", "add-connection-type", "Knows", "--from", "Person", "--to", "Person"]);
    machines.done("laptop", &["node", "ensure", "Person", "shared", "-p", "name=shared"]);
    machines.settle(&["laptop", "desktop"]);
    let stdout = |shown: String| {
        shown
            .split("--- stdout\n")
            .nth(1)
            .and_then(|text| text.split("\n--- stderr").next())
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let shared = stdout(machines.done("desktop", &["node", "ensure", "Person", "shared"]));
    // Neither knows of the other's changes.
    for (machine, property) in [("laptop", "rank=1"), ("desktop", "crew=true")] {
        for number in 0..5 {
            let id = stdout(
                machines
                    .done(machine, &["node", "create", "Person", machine, "-p", &format!("number={number}")]),
            );
            machines.done(machine, &["connection", "create", "Knows", &id, &shared]);
        }
        machines.done(machine, &["node", "update", &shared, "-p", property]);
    }
    machines.settle(&["laptop", "desktop"]);
    for machine in ["laptop", "desktop"] {
        let nodes: Value =
            serde_json::from_str(&stdout(machines.done(machine, &["node", "list", "--json"]))).expect("JSON");
        assert_eq!(nodes["node_ids"].as_array().map(Vec::len), Some(11), "{machine}");
        let connections = stdout(machines.done(machine, &["connection", "list", "--to", &shared, "--json"]));
        let connections: Value = serde_json::from_str(&connections).expect("JSON");
        assert_eq!(connections["connection_ids"].as_array().map(Vec::len), Some(10), "{machine}");
        let node = machines.done(machine, &["node", "show", &shared]);
        assert!(node.contains("crew=true") && node.contains("rank=1"), "{node}");
        assert!(machines.shown(machine, &["doctor"]).contains("every record has its content"), "{machine}");
    }
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
}

#[test]
fn node_that_another_machine_deleted_leaves_no_connection_to_nowhere() {
    let machines = Machines::laptop_and_desktop(&[("notes.md", "a\n")]);
    machines.done("laptop", &["ontology", "add-node-type", "Person"]);
    machines
        .done("laptop", &["ontology", "add-connection-type", "Knows", "--from", "Person", "--to", "Person"]);
    let create = |name: &str| {
        let shown =
            machines.done("laptop", &["node", "create", "Person", "x", "-p", &format!("name={name}")]);
        shown.lines().find(|line| line.starts_with("mem_")).expect("an id").to_owned()
    };
    let (keeper, smith) = (create("keeper"), create("smith"));
    machines.done("laptop", &["connection", "create", "Knows", &smith, &keeper]);
    machines.settle(&["laptop", "desktop"]);
    // Offline: one machine deletes the node, the other one connects it, both ways.
    machines.done("laptop", &["node", "delete", &keeper]);
    machines.done("desktop", &["connection", "create", "Knows", &keeper, &smith]);
    machines.done("desktop", &["connection", "create", "Knows", &smith, &keeper]);
    machines.settle(&["laptop", "desktop"]);
    let leads_nowhere = |machine: &str| {
        let list = machines.done(machine, &["connection", "list", "--json"]);
        let drawn = machines.done(machine, &["graph", "draw", "--format", "mermaid"]);
        let near = machines.done(machine, &["graph", "neighbours", "smith"]);
        list.contains("conn_") || drawn.contains("Knows") || near.contains("Knows")
    };
    for machine in ["laptop", "desktop"] {
        assert!(!leads_nowhere(machine), "{}", machines.shown(machine, &["connection", "list"]));
    }
    let found = machines.shown("desktop", &["doctor"]);
    assert!(found.contains("which is not there"), "{found}");
    machines.shown("desktop", &["doctor", "--fix"]);
    machines.settle(&["laptop", "desktop"]);
    for machine in ["laptop", "desktop"] {
        assert!(!leads_nowhere(machine));
        assert!(machines.shown(machine, &["doctor"]).contains("every record has its content"), "{machine}");
    }
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
}

#[test]
fn full_memory_store_names_its_limit() {
    let env = TestEnv::new();
    let server = MemoryStores::start();
    for number in 0..2000 {
        server.put(&format!("/old/{number}.md"), "x");
    }
    let address = format!("anthropic:{STORE}");
    let run = |arguments: &[&str]| {
        let mut command = env.command(&["--home", "home"]);
        command.args(arguments).env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", server.url());
        env.shown(&mut command)
    };
    fs::create_dir_all(env.path("notes")).expect("made");
    fs::write(env.path("notes/a.md"), "a\n").expect("written");
    assert_snapshot!(run(&["migrate", "notes", &address, "--yes"]), @r"
    exit 2
    --- stdout
    Copied 0 files (0 KB).
    --- stderr
    1 file to copy (1 KB).
      a.md: the server refuses the request: the memory store is full: at most 2000 memories
    INCOMPLETE: 1 file was not copied. Run the same command again: it continues with the missing files.
    ");
    assert!(run(&["mount", "add", &address, "team"]).starts_with("exit 0"));
    fs::create_dir_all(env.path("home/memory/team")).expect("made");
    fs::write(env.path("home/memory/team/c.md"), "c\n").expect("written");
    let synced = run(&["sync"]);
    let held = "team/c.md stays where it is: the server refuses the request: the memory store is full: at most 2000 memories";
    assert!(synced.contains(held) && synced.contains("received 2000 files"), "{synced}");
    assert_eq!(server.memories().len(), 2000);
}

#[test]
fn memory_store_is_copied_both_ways() {
    let env = TestEnv::new();
    let server = MemoryStores::start();
    server.put("/notes/theirs.md", "from the store\n");
    let address = format!("anthropic:{STORE}");
    let migrate = |arguments: &[&str]| {
        let mut command = env.command(&["--home", "home", "migrate"]);
        command.args(arguments).env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", server.url());
        env.shown(&mut command)
    };
    let memory = env.path("home/memory").display().to_string();
    fs::create_dir_all(env.path("home/memory")).expect("made");
    let shown = migrate(&[&address, &memory, "--yes"]);
    assert!(shown.starts_with("exit 0"), "{shown}");
    assert_eq!(
        fs::read_to_string(env.path("home/memory/notes/theirs.md")).expect("copied"),
        "from the store\n"
    );
    fs::write(env.path("home/memory/notes/ours.md"), "from this machine\n").expect("written");
    fs::write(env.path("home/memory/picture.png"), b"\x89PNG\xff").expect("written");
    let shown = migrate(&[&memory, &address, "--yes"]);
    assert!(
        shown.starts_with("exit 2") && shown.contains("picture.png") && shown.contains("text only"),
        "{shown}"
    );
    let paths: Vec<String> = server.memories().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["/notes/ours.md", "/notes/theirs.md"]);
    // It is never a remote.
    let shown = self::shown(&env, &["remote", "add", &address]);
    assert!(shown.starts_with("exit 1") && shown.contains("no place where machines can meet"), "{shown}");
    let mut without_key = env.command(&["--home", "home", "migrate", &address, &memory, "--yes"]);
    let shown = env.shown(without_key.env("ANTHROPIC_BASE_URL", server.url()));
    assert!(shown.starts_with("exit 1") && shown.contains("ANTHROPIC_API_KEY"), "{shown}");
}

#[test]
fn memory_store_is_carried() {
    let env = TestEnv::new();
    let server = MemoryStores::start();
    server.put("/theirs.md", "from the store\n");
    let address = format!("anthropic:{STORE}");
    let run = |arguments: &[&str]| {
        let mut command = env.command(&["--home", "home"]);
        command.args(arguments).env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", server.url());
        env.shown(&mut command)
    };
    let added = run(&["mount", "add", &address, "team"]);
    assert!(added.starts_with("exit 0"), "{added}");
    fs::create_dir_all(env.path("home/memory/team")).expect("made");
    fs::write(env.path("home/memory/team/ours.md"), "from this machine\n").expect("written");
    let synced = run(&["sync"]);
    assert!(synced.contains("sent 1 file, received 1 file, deleted 0 files"), "{synced}");
    assert_eq!(
        fs::read_to_string(env.path("home/memory/team/theirs.md")).expect("received"),
        "from the store\n"
    );
    let paths: Vec<String> = server.memories().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["/ours.md", "/theirs.md"]);
    assert!(run(&["mount", "list"]).contains(&format!("team  {address}")));
    assert!(run(&["mount", "remove", &address]).starts_with("exit 0"));
    assert!(run(&["mount", "add", &address, "team", "--read-only"]).starts_with("exit 0"));
    assert!(run(&["sync"]).contains("sent 0 files, received 0 files"));
    fs::write(env.path("home/memory/team/ours.md"), "changed\n").expect("written");
    let synced = run(&["sync"]);
    assert!(synced.contains("team/ours.md stays where it is: the memory store is only read"), "{synced}");
    assert_eq!(server.memories()[0].1, "from this machine\n");
}

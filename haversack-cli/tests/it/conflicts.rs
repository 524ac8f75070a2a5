//! Conflicts of two devices, shown and resolved.

use std::fs;
use std::path::PathBuf;

use haversack::merge::{Rule, Side, conflict_name, merge};
use haversack::store::Locator;
use insta::assert_snapshot;
use serde_json::Value;

use crate::environment::TestEnv;
use crate::machines::Machines;

fn memory(env: &TestEnv) -> PathBuf {
    let memory = env.path(".local/share/haversack/memory");
    fs::create_dir_all(memory.join("lighthouse")).expect("made");
    memory
}

/// Writes what a laptop and a desktop made of a file into the memory.
fn meet(env: &TestEnv, name: &str, base: &str, laptop: &str, desktop: &str) {
    let locator = Locator::parse(name).expect("a locator");
    let [laptop_bytes, desktop_bytes] = [laptop, desktop].map(str::as_bytes);
    let rule = Rule::of(&locator, [base.as_bytes(), laptop_bytes, desktop_bytes]);
    let merged = merge(
        rule,
        Some(base.as_bytes()),
        Side { bytes: laptop_bytes, device: "laptop" },
        Side { bytes: desktop_bytes, device: "desktop" },
    );
    fs::write(memory(env).join(name), &merged.bytes).expect("written");
    if let Some(copy) = &merged.copy {
        let name = conflict_name(&locator, copy).expect("a name");
        fs::write(memory(env).join(name.as_str()), copy).expect("written");
    }
}

fn with_three(env: &TestEnv) {
    meet(
        env,
        "lighthouse/lamp.md",
        "---\nname: lamp\ndescription: the lamp\ntype: project\n---\n\nThe lamp turns every 10 s.\nIt is white.\n",
        "---\nname: lamp\ndescription: the lamp and its period\ntype: project\n---\n\nThe lamp turns every 12 s; the harbour master measured it twice, once by night.\nIt is white.\n",
        "---\nname: lamp\ndescription: period\ntype: project\n---\n\nThe lamp turns every 15 s.\nIt is white.\n",
    );
    meet(
        env,
        "lighthouse/ports.json",
        "{}",
        "{\"staging\": 5433, \"production\": 443}",
        "{\"staging\": 5434}",
    );
}

#[test]
fn conflicts_are_shown_side_by_side() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["conflicts"]), @r#"
    exit 0
    --- stdout
    --- stderr
    No conflicts
    "#);
    with_three(&env);
    assert_snapshot!(env.run(&["conflicts"]), @r#"
    exit 0
    --- stdout
    1  hgmrgc  lighthouse/lamp.md, lines 3 to 8
       1                                               │ 2, from desktop
       description: the lamp and its period            │ description: period

    2  fphpnn  lighthouse/lamp.md, lines 10 to 12
       1                                               │ 2, from desktop
       The lamp turns every 12 s; the harbour master   │ The lamp turns every 15 s.
       measured it twice, once by night.               │

    3  mqnhfp  lighthouse/ports.json and ports.conflict-13d5e261.json
       1                                               │ 2
       43 bytes, and only here:                        │ 36 bytes, and only here:
       {                                               │ {"staging": 5433, "production": 443}
         "production": 443,                            │
         "staging": 5434                               │
       }                                               │

    --- stderr
    3 conflicts
    Hint: Resolve the first one: haversack resolve hgmrgc --keep 1
    "#);
    assert_snapshot!(env.shown(env.command(&["conflicts", "lighthouse/lamp.md"]).env("COLUMNS", "60")), @r#"
    exit 0
    --- stdout
    1  hgmrgc  lighthouse/lamp.md, lines 3 to 8
       1:
          description: the lamp and its period
       2, from desktop:
          description: period

    2  fphpnn  lighthouse/lamp.md, lines 10 to 12
       1:
          The lamp turns every 12 s; the harbour master measured it twice, once by night.
       2, from desktop:
          The lamp turns every 15 s.

    --- stderr
    2 conflicts
    Hint: Resolve the first one: haversack resolve hgmrgc --keep 1
    "#);
}

#[test]
fn a_conflict_is_settled_by_its_letters_or_its_number() {
    let env = TestEnv::new();
    with_three(&env);
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_slice(&env.command(arguments).output().expect("it ran").stdout).expect("valid JSON")
    };
    let ids: Vec<String> = json(&["conflicts", "--json"])["conflicts"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|conflict| conflict["id"].as_str().map(str::to_owned))
        .collect();
    assert_snapshot!(env.run(&["resolve", &ids[1], "--keep", "2"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Kept 2 in lighthouse/lamp.md
    2 conflicts left
    "#);
    // The numbers go down, the letters stay.
    assert_snapshot!(env.run(&["resolve", &ids[1], "--keep", "2"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: conflict fphpnn does not exist, or changed since you listed it
    Hint: List the conflicts again: haversack conflicts
    "#);
    assert_snapshot!(env.run(&["resolve", "1", "--keep", "2"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Kept 2 in lighthouse/lamp.md
    1 conflict left
    "#);
    assert_snapshot!(env.run(&["view", "lighthouse/lamp.md"]), @r#"
    exit 0
    --- stdout
    ---
    name: lamp
    description: period
    type: project
    ---

    The lamp turns every 15 s.
    It is white.
    --- stderr
    "#);
    assert_snapshot!(env.run(&["resolve", &ids[2], "--keep", "both", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "id": "mqnhfp",
      "kept": "both",
      "left": 0,
      "path": "lighthouse/ports.json",
      "renamed": "lighthouse/ports-2.json"
    }
    --- stderr
    "#);
    assert_snapshot!(env.run(&["ls", "lighthouse"]), @r#"
    exit 0
    --- stdout
    94  just now  lighthouse/lamp.md
    36  just now  lighthouse/ports-2.json
    43  just now  lighthouse/ports.json
    --- stderr
    "#);
}

#[test]
fn mistakes_are_named() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["resolve", "1", "--keep", "1"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: conflict 1 does not exist, or changed since you listed it
    Hint: List the conflicts again: haversack conflicts
    "#);
    assert!(!env.path(".local").exists(), "nothing is made");
    with_three(&env);
    assert_snapshot!(env.run(&["resolve", "0", "--keep", "1"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: conflict 0 does not exist, or changed since you listed it
    Hint: List the conflicts again: haversack conflicts
    "#);
    assert_snapshot!(env.run(&["resolve", "1", "--keep", "3"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not resolve a conflict in lighthouse/lamp.md: it has 2 passages
    Hint: Keep one of 1 to 2, or both: haversack conflicts
    "#);
    assert_snapshot!(env.run(&["resolve", "1", "--keep", "mine"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: invalid value 'mine' for '--keep <1|2|both>': it is neither the number of a passage nor "both"

    For more information, try '--help'.
    "#);
    assert_snapshot!(env.run(&["conflicts", "absent.md"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not view absent.md: nothing is there
    Hint: List the files: haversack ls
    "#);
}

#[test]
fn an_agent_reads_both_passages() {
    let env = TestEnv::new();
    meet(
        &env,
        "MEMORY.md",
        "- [Lamp](lamp.md) — old\n",
        "- [Lamp](lamp.md) — 12 s\n",
        "- [Lamp](lamp.md) — 15 s\n",
    );
    assert_snapshot!(env.run(&["conflicts", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "conflicts": [
        {
          "id": "lrbpgn",
          "lines": [
            1,
            3
          ],
          "number": 1,
          "passages": [
            {
              "device": null,
              "keep": 1,
              "lines": [
                1,
                1
              ],
              "text": "- [Lamp](lamp.md) — 12 s"
            },
            {
              "device": "desktop",
              "keep": 2,
              "lines": [
                3,
                3
              ],
              "text": "- [Lamp](lamp.md) — 15 s"
            }
          ],
          "path": "MEMORY.md"
        }
      ],
      "unread": []
    }
    --- stderr
    "#);
    assert_snapshot!(env.run(&["resolve", "1", "--keep", "2", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "id": "lrbpgn",
      "kept": 2,
      "left": 0,
      "path": "MEMORY.md"
    }
    --- stderr
    "#);
    assert_snapshot!(env.run(&["view", "MEMORY.md"]), @r#"
    exit 0
    --- stdout
    - [Lamp](lamp.md) — 15 s
    --- stderr
    "#);
}

/// Returns a laptop and a desktop that wrote different things in one place; the desktop merged them.
fn parted() -> Machines {
    let machines = Machines::laptop_and_desktop(&[("lamp.md", "The lamp turns every 10 s.\nIt is white.\n")]);
    let edit = |machine: &str, agent: &str, period: &str| {
        let mut command = machines.command(machine, &["str-replace", "lamp.md", "10 s", period]);
        assert!(command.env("HAVERSACK_AGENT", agent).output().expect("it ran").status.success());
    };
    edit("laptop", "claude-code", "12 s");
    edit("desktop", "codex", "15 s");
    machines.done("laptop", &["sync"]);
    machines.done("desktop", &["sync"]);
    machines
}

#[test]
fn conflicts_name_machine_agent_and_time_of_both_passages() {
    let machines = parted();
    for machine in ["desktop", "laptop"] {
        machines.done(machine, &["sync"]);
        let shown = machines.done(machine, &["conflicts"]);
        assert!(shown.contains("from laptop (claude-code), DATE TIME"), "{machine}: {shown}");
        assert!(shown.contains("from desktop (codex), DATE TIME"), "{machine}: {shown}");
    }
    let output = machines.command("laptop", &["conflicts", "--json"]).output().expect("it ran");
    let json: Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
    let passages = json["conflicts"][0]["passages"].as_array().expect("a list");
    let mut agents: Vec<&str> = passages.iter().filter_map(|passage| passage["agent"].as_str()).collect();
    agents.sort_unstable();
    assert_eq!(agents, ["claude-code", "codex"]);
    assert!(passages.iter().all(|passage| passage["time"].is_string()), "{json}");
}

#[test]
fn resolve_asks_on_a_terminal() {
    let machines = parted();
    let asked = |keys: &str| machines.env.on_terminal(&["--home", "desktop", "resolve"], keys);
    let shown = asked("s\n");
    assert!(shown.contains("Nothing was changed. 1 conflict left"), "{shown}");
    let shown = asked("7\n2\n");
    assert!(shown.contains("Keep 1, 2, both, skip or quit?"), "{shown}");
    assert!(shown.contains("Kept 2 in lamp.md") && shown.contains("No conflicts left"), "{shown}");
    machines.settle(&["desktop", "laptop"]);
    let text = machines.read("laptop", "lamp.md").expect("there");
    assert!(!text.contains("[also, from") && text.lines().count() == 2, "{text}");
}

#[test]
fn resolve_without_a_terminal_needs_its_answer() {
    let machines = parted();
    let shown = machines.shown("desktop", &["resolve", "1"]);
    assert!(shown.starts_with("exit 1\n") && shown.contains("--keep 1"), "{shown}");
}

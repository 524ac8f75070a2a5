//! Memory belongs to a project, wherever its files are.

mod private;

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::agents::Agents;
use crate::machines::files_below;

const LIGHTHOUSE: &str = "git@github.com:me/lighthouse.git";

#[test]
fn status_tells_of_checkouts_and_memory_that_are_left_out() {
    let agents = Agents::laptop_and_desktop();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    agents.remember("laptop", &root, "lamp.md", "white\n");
    agents.start("laptop", &root);
    agents.rest();
    agents.machines.settle(&["laptop", "desktop"]);
    assert!(agents.done("laptop", &["status"]).contains("In sync. Last contact"));
    // A checkout that is refused needs the user, until it is bound or excluded.
    let refused = agents.archive("desktop", "lighthouse", LIGHTHOUSE);
    agents.remember("desktop", &refused, "own.md", "own\n");
    let known = serde_json::json!({ "projects": { refused.display().to_string(): {} } });
    fs::write(agents.claude("desktop").join(".claude.json"), known.to_string()).expect("written");
    assert_snapshot!(without_contact(&agents.shown("desktop", &["status"])), @r"
    exit 1
    --- stdout
    1 thing needs you. All you wrote is safe on this machine.

      1  ~/desktop-code/lighthouse gets no memory of lighthouse: it has no commit that we know of this project
         → if it is yours: haversack project bind ~/desktop-code/lighthouse; if it is not: haversack project exclude ~/desktop-code/lighthouse

      files      2
    --- stderr
    ");
    assert!(agents.shown("desktop", &["status", "--line"]).contains("a checkout without memory"));
    agents.done("desktop", &["project", "exclude", "desktop-code/lighthouse"]);
    assert!(agents.done("desktop", &["status"]).contains("In sync. Last contact"));
    // Memory whose project's directory is unknown is named, with the command that sends it.
    agents.remember("desktop", &agents.machines.env.path("gone"), "old.md", "old\n");
    assert_snapshot!(without_contact(&agents.shown("desktop", &["status"])), @r"
    exit 0
    --- stdout
    In sync, except one memory directory of Claude Code, which we do not send.

      files      2
      not sent   1 file in ~/desktop-claude/projects/-BASE-user-gone/memory: its project's directory is unknown. Send it with a project: haversack project bind DIRECTORY --from ~/desktop-claude/projects/-BASE-user-gone/memory
    --- stderr
    ");
    assert!(
        agents.shown("desktop", &["status", "--line"]).contains("haversack: 1 memory directory not sent")
    );
}

/// Takes the lines about machines out of a status.
fn without_contact(status: &str) -> String {
    status.lines().filter(|line| !line.contains("machines   ")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn memory_of_the_current_directory_is_found_without_notes_of_the_client() {
    let agents = Agents::new();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    agents.remember("laptop", &root, "lamp.md", "white\n");
    let mut list = agents.command("laptop", &["project", "list"]);
    let told = agents.machines.env.shown(list.current_dir(&root));
    assert!(told.contains("lighthouse  1         github.com/me/lighthouse"), "{told}");
    assert!(agents.done("laptop", &["project", "list"]).contains("its project's directory is unknown"));
}

#[test]
fn changes_from_before_the_remote_are_no_news_of_another_machine() {
    let agents = Agents::new();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    agents.remember("laptop", &root, "lamp.md", "white\n");
    let from = agents.memory("laptop", &root).display().to_string();
    agents.done("laptop", &["project", "bind", "laptop-code/lighthouse", "--from", &from]);
    agents.link_program("laptop");
    fs::create_dir_all(agents.claude("laptop")).expect("made");
    agents.done("laptop", &["init", &agents.machines.url(), "--device", "beacon", "--yes"]);
    let told = agents.start("laptop", &root);
    let message = told["systemMessage"].as_str().unwrap_or_default();
    assert!(!message.contains(" from "), "{told}");
    agents.rest();
}

#[test]
fn memory_that_belongs_to_the_directory_is_imported_without_an_error() {
    let agents = Agents::new();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    agents.remember("laptop", &root, "lamp.md", "white\n");
    let from = agents.memory("laptop", &root).display().to_string();
    for _ in 0..2 {
        let told = agents.done("laptop", &["project", "bind", "laptop-code/lighthouse", "--from", &from]);
        assert!(told.contains("belong to lighthouse now"), "{told}");
    }
    let other = agents.repository("laptop", "tower", "git@github.com:me/tower.git");
    let told = agents.shown("laptop", &["project", "bind", &other.display().to_string(), "--from", &from]);
    assert!(told.contains("belongs to lighthouse already") && told.contains("mount remove"), "{told}");
}

#[test]
fn a_project_is_found_bound_and_named() {
    let agents = Agents::new();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    agents.remember("laptop", &root, "MEMORY.md", "- [Lamp](lamp.md) — white\n");
    agents.remember("laptop", &root, "lamp.md", "white\n");
    let notes = agents.machines.env.path("notes").join("deep");
    fs::create_dir_all(&notes).expect("made");
    agents.remember("laptop", &notes, "a.md", "a\n");
    let gone = agents.machines.env.path("gone");
    agents.remember("laptop", &gone, "old.md", "old\n");
    let transcript = agents.memory("laptop", &root).with_file_name("7f3a.jsonl");
    fs::write(transcript, format!("{{\"type\":\"summary\"}}\n{{\"cwd\":\"{}\"}}\n", root.display()))
        .expect("written");
    let known = serde_json::json!({ "projects": { notes.display().to_string(): {} } });
    fs::write(agents.claude("laptop").join(".claude.json"), known.to_string()).expect("written");
    assert_snapshot!(agents.shown("laptop", &["project", "list"]), @r#"
    exit 0
    --- stdout
    project                    memories
    -BASE-user-gone  1         its project's directory is unknown: haversack project bind DIRECTORY --from ~/laptop-claude/projects/-BASE-user-gone/memory
    lighthouse                 2         github.com/me/lighthouse
    ~/notes/deep               1         no git remote: stays on this machine until you give it a name (haversack project name ~/notes/deep NAME)
    --- stderr
    "#);
    assert_snapshot!(agents.shown("laptop", &["project", "bind", "notes/deep"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: ~/notes/deep stays on this machine
    Hint: no git remote: stays on this machine until you give it a name (haversack project name ~/notes/deep NAME)
    "#);
    assert_snapshot!(agents.shown("laptop", &["project", "name", "notes/deep", "My Notes"]), @r#"
    exit 0
    --- stdout
    --- stderr
    ~/notes/deep is My-Notes from now on. On another machine: haversack project name DIRECTORY My-Notes
    My-Notes is synced from now on
    "#);
    assert_snapshot!(agents.shown("laptop", &["project", "bind", "laptop-code/lighthouse"]), @r#"
    exit 0
    --- stdout
    --- stderr
    lighthouse is synced from now on
    "#);
    assert_snapshot!(agents.shown("laptop", &["project", "bind", "laptop-code/lighthouse"]), @r#"
    exit 0
    --- stdout
    --- stderr
    lighthouse is synced already
    "#);
    assert_snapshot!(agents.shown("laptop", &["project", "name", "notes", "..."]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: "..." is no name for a project
    Hint: Take a word of letters and digits
    "#);
    let list: Value = {
        let shown = agents.done("laptop", &["project", "list", "--json"]);
        let json = shown
            .split("--- stdout\n")
            .nth(1)
            .and_then(|rest| rest.split("--- stderr").next())
            .expect("printed");
        serde_json::from_str(json).expect("JSON")
    };
    let ids: Vec<&Value> =
        list["projects"].as_array().expect("a list").iter().map(|project| &project["id"]).collect();
    assert!(
        ids.contains(&&"lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb".into())
            && ids.contains(&&"My-Notes".into()),
        "{ids:?}"
    );
    assert_snapshot!(agents.shown("laptop", &["mount", "list"]), @r#"
    exit 0
    --- stdout
    My-Notes  ~/laptop-claude/projects/-BASE-user-notes-deep/memory
    lighthouse  ~/laptop-claude/projects/-BASE-user-laptop-code-lighthouse/memory
    --- stderr
    "#);
}

#[test]
fn two_projects_through_one_store_never_meet() {
    let agents = Agents::laptop_and_desktop();
    let projects = [("lighthouse", LIGHTHOUSE), ("gateway", "https://github.com/acme/lighthouse")];
    for machine in ["laptop", "desktop"] {
        for (name, url) in projects {
            let root = agents.repository(machine, name, url);
            agents.remember(machine, &root, "fact.md", &format!("{name}\n"));
            agents.remember(machine, &root, &format!("{name}-{machine}.md"), "own\n");
            agents.done(machine, &["project", "bind", &root.display().to_string()]);
        }
    }
    agents.machines.settle(&["laptop", "desktop"]);
    for machine in ["laptop", "desktop"] {
        for (name, _) in projects {
            let root =
                agents.machines.env.path(&format!("{machine}-code/{name}")).canonicalize().expect("there");
            let files = files_below(&agents.memory(machine, &root));
            let names: Vec<&str> = files.keys().map(String::as_str).collect();
            assert_eq!(names, ["fact.md", &format!("{name}-desktop.md"), &format!("{name}-laptop.md")]);
            assert_eq!(files["fact.md"], format!("{name}\n"));
        }
    }
    assert_eq!(agents.machines.files("laptop").len(), 1);
}

#[test]
fn a_worktree_shares_and_a_name_joins_two_repositories() {
    let agents = Agents::laptop_and_desktop();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    let worktree = agents.worktree(&root, "wt");
    agents.remember("laptop", &root, "fact.md", "one\n");
    agents.start("laptop", &worktree);
    agents.rest();
    let told = agents.done("laptop", &["mount", "list"]);
    let place = "lighthouse  ~/laptop-claude/projects/-BASE-user-laptop-code-lighthouse/memory\n";
    assert!(told.contains(place), "{told}");
    // A fork is the same project if the user says so; the other machine learns it.
    let fork = agents.repository("desktop", "fork", "https://github.com/a-teammate/lighthouse");
    agents.done(
        "desktop",
        &["project", "name", &fork.display().to_string(), "lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb"],
    );
    agents.done("desktop", &["sync"]);
    assert_eq!(fs::read_to_string(agents.memory("desktop", &fork).join("fact.md")).expect("came"), "one\n");
    agents.done("laptop", &["sync"]);
    let other = agents.repository("laptop", "other", "https://github.com/a-teammate/lighthouse");
    agents.start("laptop", &other);
    agents.rest();
    assert_eq!(fs::read_to_string(agents.memory("laptop", &other).join("fact.md")).expect("came"), "one\n");
}

#[test]
fn what_is_excluded_stays_here() {
    let agents = Agents::laptop_and_desktop();
    let root = agents.repository("laptop", "gateway", "https://github.com/acme/gateway");
    agents.remember("laptop", &root, "a.md", "a\n");
    agents.start("laptop", &root);
    agents.rest();
    assert_eq!(agents.machines.files("desktop").len(), 1);
    assert_snapshot!(agents.shown("laptop", &["project", "exclude", "github.com/acme"]), @r#"
    exit 0
    --- stdout
    --- stderr
    github.com/acme stays on this machine from now on. Files that were sent before stay in the remote
    Stopped syncing gateway. Its files stay where they are
    "#);
    agents.remember("laptop", &root, "b.md", "b\n");
    agents.start("laptop", &root);
    agents.done("laptop", &["sync"]);
    agents.done("desktop", &["sync"]);
    let came = agents.machines.files("desktop");
    assert!(
        came.keys().any(|name| name.ends_with("/a.md")) && !came.keys().any(|name| name.ends_with("/b.md")),
        "{came:?}"
    );
    assert_snapshot!(agents.shown("laptop", &["project", "exclude", "github.com/acme", "--undo"]), @r#"
    exit 0
    --- stdout
    --- stderr
    github.com/acme is synced again
    "#);
    agents.done("laptop", &["sync"]);
    agents.done("desktop", &["sync"]);
    assert_eq!(agents.machines.files("desktop").len(), 3);
    // The setting says the same.
    let by_setting = ["--config", "projects.exclude=~/laptop-code", "project", "list"];
    assert!(agents.done("laptop", &by_setting).contains("not synced (excluded)"));
}

#[test]
fn a_directory_that_holds_another_project_now_waits_for_a_word() {
    let agents = Agents::laptop_and_desktop();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    agents.remember("laptop", &root, "fact.md", "one\n");
    agents.start("laptop", &root);
    agents.rest();
    agents.repository("laptop", "lighthouse", "https://example.org/new/address.git");
    agents.remember("laptop", &root, "new.md", "new\n");
    let told = agents.start("laptop", &root);
    let message = told["systemMessage"].as_str().expect("told").to_owned();
    assert!(
        message.contains("held lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb until now")
            && told["hookSpecificOutput"]["watchPaths"].is_null(),
        "{told}"
    );
    agents.done("laptop", &["sync"]);
    agents.done("desktop", &["sync"]);
    assert!(!agents.machines.files("desktop").keys().any(|name| name.ends_with("new.md")));
    agents.done(
        "laptop",
        &["project", "name", &root.display().to_string(), "lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb"],
    );
    agents.done("laptop", &["sync"]);
    agents.done("desktop", &["sync"]);
    assert!(
        agents
            .machines
            .files("desktop")
            .contains_key("claude_memory/lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb/new.md")
    );
}

#[test]
fn subagents_memory_comes_along() {
    let agents = Agents::laptop_and_desktop();
    for machine in ["laptop", "desktop"] {
        let root = agents.repository(machine, "lighthouse", LIGHTHOUSE);
        for directory in [
            agents.claude(machine).join("agent-memory/reviewer"),
            root.join(".claude/agent-memory-local/tester"),
        ] {
            fs::create_dir_all(&directory).expect("made");
            fs::write(directory.join(format!("{machine}.md")), machine).expect("written");
        }
        agents.done(machine, &["project", "bind", &root.display().to_string()]);
    }
    agents.machines.settle(&["laptop", "desktop"]);
    for machine in ["laptop", "desktop"] {
        let root = agents.machines.env.path(&format!("{machine}-code/lighthouse"));
        for directory in [
            agents.claude(machine).join("agent-memory/reviewer"),
            root.join(".claude/agent-memory-local/tester"),
        ] {
            assert_eq!(files_below(&directory).len(), 2, "{}", directory.display());
        }
    }
}

#[test]
fn new_file_in_a_checkout_belongs_to_the_project_and_its_index() {
    let agents = Agents::new();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    agents.remember("laptop", &root, "MEMORY.md", "- [Lamp](lamp.md) — white\n");
    agents.remember("laptop", &root, "lamp.md", "white\n");
    agents.shown("laptop", &["project", "bind", "laptop-code/lighthouse"]);
    let run = |arguments: &[&str]| {
        let mut command = agents.command("laptop", arguments);
        let shown = agents.machines.env.shown(command.current_dir(&root));
        shown.replace("claude_memory/lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb/", "lighthouse/")
    };
    assert_snapshot!(run(&["create", "ports.md", "staging 5433\n"]), @r"
    exit 0
    --- stdout
    --- stderr
    Created lighthouse/ports.md, with its line in MEMORY.md
    ");
    assert_snapshot!(run(&["create", "ports.md", "staging 5433\n"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: cannot create lighthouse/ports.md: something is there already
    Hint: Change the existing file with edit, str-replace, insert or append, or choose another name
    ");
    assert_snapshot!(run(&["new", "feedback", "Short answers"]), @r"
    exit 0
    --- stdout
    --- stderr
    Created lighthouse/feedback_short_answers.md, with its line in MEMORY.md
    ");
    assert_snapshot!(run(&["create", "notes.txt", "x\n"]), @r"
    exit 0
    --- stdout
    --- stderr
    Created lighthouse/notes.txt
    ");
    assert_snapshot!(run(&["create", "shared/tools.md", "x\n"]), @r"
    exit 0
    --- stdout
    --- stderr
    Created shared/tools.md
    ");
    let index = agents.memory("laptop", &root).join("MEMORY.md");
    assert_snapshot!(fs::read_to_string(index).expect("there"), @r"
    - [Lamp](lamp.md) — white
    - [ports](ports.md) — staging 5433
    - [Short answers](feedback_short_answers.md) — one line by which it is found again
    ");
}

//! A worktree with memory of its own, which never leaves the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::LIGHTHOUSE;
use crate::agents::Agents;
use crate::machines::files_below;

/// A worktree's settings made by hand.
const SETTINGS: &str =
    "{\n  // mine\n  \"permissions\": { \"allow\": [\"Bash(ls:*)\"] },\n  \"z\": 1 // last\n}\n";

/// Returns a laptop with a repository that has memory, and a worktree of it beside it.
fn with_worktree(agents: &Agents) -> (PathBuf, PathBuf) {
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    let worktree = agents.worktree(&root, "wt");
    agents.remember("laptop", &root, "carry_forward.md", "- ask about the lamp\n");
    agents.start("laptop", &root);
    agents.rest();
    (root, worktree)
}

/// Returns where the memory is that a worktree has for itself.
fn own_memory(agents: &Agents, worktree: &Path) -> PathBuf {
    let shared = agents.memory("laptop", worktree);
    let name = shared.parent().and_then(Path::file_name).expect("below").to_string_lossy().into_owned();
    agents.claude("laptop").join("projects").join(format!("{name}.private/memory"))
}

fn local_settings(worktree: &Path) -> PathBuf {
    worktree.join(".claude/settings.local.json")
}

fn context(told: &Value) -> &str {
    told["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default()
}

/// Returns everything that a machine has of the store, with the files of bound directories.
fn carried(agents: &Agents, machine: &str) -> String {
    for machine in ["laptop", machine] {
        agents.done(machine, &["sync"]);
    }
    agents.done(machine, &["ls", "--recursive"])
}

#[test]
fn a_worktree_has_memory_of_its_own_that_stays_here() {
    let agents = Agents::laptop_and_desktop();
    let (root, worktree) = with_worktree(&agents);
    assert_snapshot!(agents.shown("laptop", &["project", "private", "laptop-code/wt"]), @r#"
    exit 0
    --- stdout
    --- stderr
    ~/laptop-code/wt has private memory from now on. It stays on this machine and is never sent
    It is in ~/laptop-claude/projects/-BASE-user-laptop-code-wt.private/memory
    changed ~/laptop-code/wt/.claude/settings.local.json (take it back: haversack project private --undo ~/laptop-code/wt)
    It is for sessions that start in ~/laptop-code/wt itself, not below it; those that are open go on as they began.
    "#);
    assert_snapshot!(agents.shown("laptop", &["project", "private", "laptop-code/wt"]), @r#"
    exit 0
    --- stdout
    --- stderr
    ~/laptop-code/wt has private memory already, in ~/laptop-claude/projects/-BASE-user-laptop-code-wt.private/memory
    "#);
    let memory = own_memory(&agents, &worktree);
    assert_snapshot!(agents.shown("laptop", &["project", "list"]), @r#"
    exit 0
    --- stdout
    project          memories
    lighthouse       1         github.com/me/lighthouse
    lighthouse (wt)  0         private: stays on this machine (to share again: haversack project private --undo ~/laptop-code/wt)
    --- stderr
    "#);
    // The context of a session in it, and of one in the main checkout.
    fs::write(memory.join("carry_forward.md"), "- ask about the cellar\n").expect("written");
    let told = agents.start("laptop", &worktree);
    assert!(context(&told).contains("the cellar") && !context(&told).contains("the lamp"), "{told}");
    assert!(told["hookSpecificOutput"]["watchPaths"].is_null() && told["systemMessage"].is_null(), "{told}");
    let told = agents.start("laptop", &root);
    assert!(context(&told).contains("the lamp") && !context(&told).contains("the cellar"), "{told}");
    // Files written in it, and the summary of a conversation in it, are not sent.
    agents.wrote("laptop", &worktree, &memory.join("carry_forward.md"));
    assert!(
        agents.journal("laptop").contains("PostToolUse session-laptop no memory"),
        "{}",
        agents.journal("laptop")
    );
    agents.hook("laptop", "PostCompact", &worktree, json!({ "compact_summary": "We dug a cellar." }));
    agents.rest();
    let mut why = agents.command("laptop", &["why", "--compacted"]);
    assert!(!agents.machines.env.shown(why.current_dir(&root)).contains("cellar"));
    let mut why = agents.command("laptop", &["why", "--compacted"]);
    assert!(agents.machines.env.shown(why.current_dir(&worktree)).contains("We dug a cellar."));
    let mut why = agents.command("laptop", &["why", "--next"]);
    assert!(agents.machines.env.shown(why.current_dir(&worktree)).contains("- ask about the cellar"));
    let everywhere = carried(&agents, "desktop");
    assert!(everywhere.contains("carry_forward.md") && !everywhere.contains("private"), "{everywhere}");
    let remote = files_below(&agents.machines.env.path("remote"));
    assert!(!remote.values().any(|text| text.contains("cellar")), "{remote:?}");
    assert!(
        agents
            .done("laptop", &["doctor"])
            .contains("private   ~/laptop-code/wt has private memory: 1 file, never sent")
    );
    // Without any record of it, nothing of it is sent.
    fs::remove_file(agents.machines.env.path("laptop/projects.toml")).expect("there");
    agents.start("laptop", &worktree);
    agents.rest();
    assert!(!carried(&agents, "desktop").contains("private"));
    let list: Value = json_of(&agents.done("laptop", &["project", "list", "--json"]));
    let private: Vec<&Value> =
        list["projects"].as_array().expect("a list").iter().filter(|one| one["private"] == true).collect();
    assert_eq!((private.len(), &private[0]["carried"], &private[0]["files"]), (1, &json!(false), &json!(1)));
}

fn json_of(shown: &str) -> Value {
    let json = shown.split("--- stdout\n").nth(1).and_then(|rest| rest.split("--- stderr").next());
    serde_json::from_str(json.expect("printed")).expect("JSON")
}

#[test]
fn taking_it_back_restores_the_settings_and_keeps_every_file() {
    let agents = Agents::laptop_and_desktop();
    let (root, worktree) = with_worktree(&agents);
    let file = local_settings(&worktree);
    let undo = ["project", "private", "--undo", "laptop-code/wt"];
    for before in [None, Some(SETTINGS), Some(""), Some("\u{feff}{\r\n}\r\n")] {
        if let Some(text) = before {
            fs::create_dir_all(file.parent().expect("below")).expect("made");
            fs::write(&file, text).expect("written");
        }
        agents.done("laptop", &["project", "private", "laptop-code/wt"]);
        assert_ne!(fs::read_to_string(&file).ok().as_deref(), before);
        agents.done("laptop", &undo);
        assert_eq!(fs::read_to_string(&file).ok().as_deref(), before);
        assert_eq!(worktree.join(".claude").exists(), before.is_some());
        assert!(!own_memory(&agents, &worktree).exists(), "nothing was in it");
    }
    fs::write(&file, SETTINGS).expect("written");
    agents.done("laptop", &["project", "private", "laptop-code/wt"]);
    let text = fs::read_to_string(&file).expect("there");
    fs::write(&file, text.replace("Bash(ls:*)", "Bash(pwd)")).expect("written");
    let memory = own_memory(&agents, &worktree);
    fs::write(memory.join("cellar.md"), "dug\n").expect("written");
    fs::write(memory.join("carry_forward.md"), "- ask about the cellar\n").expect("written");
    let from = memory.display().to_string();
    assert_snapshot!(agents.shown("laptop", &["project", "bind", "laptop-code/wt", "--from", &from]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: lighthouse (wt) stays on this machine
    Hint: private: stays on this machine (to share again: haversack project private --undo ~/laptop-code/wt)
    "#);
    let told = agents.shown("laptop", &["mount", "add", &from, "claude_memory/x"]);
    assert!(told.starts_with("exit 1\n") && told.contains("is the private memory of"), "{told}");
    assert_snapshot!(agents.shown("laptop", &["project", "bind", "laptop-code/lighthouse", "--from", &from]), @r#"
    exit 1
    --- stdout
    --- stderr
    lighthouse is synced already
    Error: BASE/user/laptop-claude/projects/-BASE-user-laptop-code-wt.private/memory is the private memory of ~/laptop-code/wt
    Hint: Take that back first: haversack project private --undo ~/laptop-code/wt
    "#);
    assert_snapshot!(agents.shown("laptop", &undo), @r#"
    exit 0
    --- stdout
    --- stderr
    ~/laptop-code/wt shares the memory of lighthouse again
    Its 2 private files stay in ~/laptop-claude/projects/-BASE-user-laptop-code-wt.private/memory; to merge them into it: haversack project bind ~/laptop-code/wt --from ~/laptop-claude/projects/-BASE-user-laptop-code-wt.private/memory
    "#);
    assert_eq!(fs::read_to_string(&file).expect("there"), SETTINGS.replace("Bash(ls:*)", "Bash(pwd)"));
    assert_eq!(files_below(&memory).len(), 2);
    assert_snapshot!(agents.shown("laptop", &undo), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: ~/laptop-code/wt has no private memory
    Hint: See which do: haversack project list
    "#);
    let listed = agents.done("laptop", &["project", "list"]);
    assert!(
        listed.contains("was private to a worktree, stays on this machine: haversack project bind"),
        "{listed}"
    );
    // On request it is merged into what all share.
    agents.done("laptop", &["project", "bind", "laptop-code/wt", "--from", &from]);
    agents.done("laptop", &["sync"]);
    let shared = agents.memory("laptop", &root);
    assert_eq!(fs::read_to_string(shared.join("cellar.md")).expect("came"), "dug\n");
    let both = fs::read_to_string(shared.join("carry_forward.md")).expect("there");
    assert!(both.contains("the lamp") && both.contains("the cellar"), "{both}");
    assert!(agents.done("laptop", &["project", "list"]).contains("was private to a worktree; synced"));
}

#[test]
fn what_subagents_learn_in_it_stays_too() {
    let agents = Agents::laptop_and_desktop();
    let (root, worktree) = with_worktree(&agents);
    let learn = |checkout: &Path, name: &str| {
        let directory = checkout.join(".claude/agent-memory-local/tester");
        fs::create_dir_all(&directory).expect("made");
        fs::write(directory.join(name), "x\n").expect("written");
        agents.start("laptop", checkout);
        agents.rest();
    };
    learn(&worktree, "shared.md");
    agents.done("laptop", &["project", "bind", "laptop-code/wt"]);
    assert!(carried(&agents, "desktop").contains("shared.md"));
    agents.done("laptop", &["project", "private", "laptop-code/wt"]);
    learn(&worktree, "own.md");
    assert!(!carried(&agents, "desktop").contains("own.md"));
    // A project that is excluded is excluded with them.
    agents.done("laptop", &["project", "exclude", "laptop-code/lighthouse"]);
    learn(&root, "excluded.md");
    let carried = carried(&agents, "desktop");
    assert!(carried.contains("shared.md") && !carried.contains("excluded.md"), "{carried}");
}

#[test]
fn what_cannot_be_private_is_refused() {
    let agents = Agents::new();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    let worktree = agents.worktree(&root, "wt");
    fs::create_dir_all(agents.machines.env.path("notes")).expect("made");
    for place in ["laptop-code/lighthouse", "notes"] {
        let told = agents.shown("laptop", &["project", "private", place]);
        assert!(told.starts_with("exit 1\n") && told.contains("is no worktree"), "{told}");
    }
    let private = ["project", "private", "laptop-code/wt"];
    for file in [local_settings(&worktree), local_settings(&root)] {
        fs::create_dir_all(file.parent().expect("below")).expect("made");
        for text in ["{\"autoMemoryDirectory\": \"/home/me/notes\"}", "{ \"a\": "] {
            // Broken settings of another checkout are not ours to judge.
            if text.starts_with("{ ") && file == local_settings(&root) {
                continue;
            }
            fs::write(&file, text).expect("written");
            let told = agents.shown("laptop", &private);
            assert!(told.starts_with("exit 1\n"), "{told}");
            assert_eq!(fs::read_to_string(&file).expect("there"), text);
        }
        fs::remove_file(file).expect("there");
    }
    // Settings that are the main checkout's, by a link, would count for everybody.
    for (link, target) in
        [(worktree.join(".claude"), root.join(".claude")), (local_settings(&worktree), local_settings(&root))]
    {
        drop(fs::remove_dir(worktree.join(".claude")));
        fs::create_dir_all(link.parent().expect("below")).expect("made");
        fs::write(local_settings(&root), "{}").expect("written");
        std::os::unix::fs::symlink(target, &link).expect("linked");
        let told = agents.shown("laptop", &private);
        assert!(told.starts_with("exit 1\n") && told.contains("is not its own: it leads to"), "{told}");
        assert_eq!(fs::read_to_string(local_settings(&root)).expect("there"), "{}");
        fs::remove_file(link).expect("there");
    }
    assert!(!local_settings(&worktree).exists() && !own_memory(&agents, &worktree).exists());
    agents.done("laptop", &private);
    assert_snapshot!(agents.shown("laptop", &["project", "bind", "laptop-code/wt"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: lighthouse (wt) stays on this machine
    Hint: private: stays on this machine (to share again: haversack project private --undo ~/laptop-code/wt)
    "#);
}

#[test]
fn a_worktree_that_is_gone_leaves_its_memory() {
    let agents = Agents::laptop_and_desktop();
    let (root, worktree) = with_worktree(&agents);
    agents.done("laptop", &["project", "private", "laptop-code/wt"]);
    let memory = own_memory(&agents, &worktree);
    fs::write(memory.join("cellar.md"), "dug\n").expect("written");
    agents.start("laptop", &worktree);
    agents.rest();
    fs::remove_dir_all(&worktree).expect("there");
    fs::remove_dir_all(root.join(".git/worktrees/wt")).expect("there");
    assert!(agents.start("laptop", &worktree).is_null() || agents.journal("laptop").contains("SessionStart"));
    assert!(context(&agents.start("laptop", &root)).contains("the lamp"));
    agents.rest();
    assert!(carried(&agents, "desktop").contains("carry_forward.md"));
    assert_eq!(fs::read_to_string(memory.join("cellar.md")).expect("there"), "dug\n");
    assert_snapshot!(agents.shown("laptop", &["project", "list"]), @r#"
    exit 0
    --- stdout
    project                                      memories
    lighthouse                                   1         github.com/me/lighthouse
    -BASE-user-laptop-code-wt.private  1         was private to a worktree, stays on this machine: haversack project bind DIRECTORY --from ~/laptop-claude/projects/-BASE-user-laptop-code-wt.private/memory
    --- stderr
    "#);
    let told = agents.done("laptop", &["doctor"]);
    assert!(
        told.contains(
            "WARN  private   ~/laptop-code/wt is gone, and its private memory is still there: 1 file in"
        ),
        "{told}"
    );
    agents.done("laptop", &["uninstall"]);
    let from = memory.display().to_string();
    agents.done("laptop", &["project", "bind", "laptop-code/lighthouse", "--from", &from]);
    assert!(carried(&agents, "desktop").contains("cellar.md"));
    assert!(!agents.done("laptop", &["doctor"]).contains("private"));
}

#[test]
fn a_session_below_the_worktree_is_told_that_it_shares() {
    let agents = Agents::laptop_and_desktop();
    let (_, worktree) = with_worktree(&agents);
    agents.done("laptop", &["project", "private", "laptop-code/wt"]);
    let below = worktree.join("src");
    fs::create_dir_all(&below).expect("made");
    let told = agents.start("laptop", &below);
    // As the client does, which looks for the setting in the directory that it was started in.
    assert!(context(&told).contains("the lamp"), "{told}");
    assert_snapshot!(told["systemMessage"].as_str().unwrap_or_default(), @r#"haversack: this session uses the shared memory of lighthouse. The private memory of ~/laptop-code/wt is for sessions that start in ~/laptop-code/wt itself"#);
    assert!(agents.start("laptop", &below)["systemMessage"].is_null(), "once a day");
    // The directory where a session started counts, not its present one.
    let input = json!({ "cwd": below, "source": "compact" }).to_string();
    let mut command = agents.command("laptop", &["hook", "SessionStart"]);
    let told = agents.fire(command.env("CLAUDE_PROJECT_DIR", &worktree), input.as_bytes());
    assert!(!told.contains("the lamp"), "{told}");
    agents.rest();
}

#[test]
fn uninstall_keeps_private_memory() {
    let agents = Agents::new();
    fs::create_dir_all(agents.claude("laptop")).expect("made");
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    let [empty, full] = ["empty", "full"].map(|name| agents.worktree(&root, name));
    for worktree in [&empty, &full] {
        agents.done("laptop", &["project", "private", &worktree.display().to_string()]);
    }
    fs::write(own_memory(&agents, &full).join("cellar.md"), "dug\n").expect("written");
    let dry = agents.done("laptop", &["uninstall", "--dry-run"]);
    assert!(
        dry.contains("--- a/~/laptop-code/empty/.claude/settings.local.json")
            && local_settings(&empty).exists()
    );
    assert_snapshot!(agents.shown("laptop", &["uninstall"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Nothing of ours was in the settings of Claude Code
    ~/laptop-code/empty shares the memory of its repository again
    ~/laptop-code/full keeps its private memory, 1 file in ~/laptop-claude/projects/-BASE-user-laptop-code-full.private/memory. To stop that: haversack project private --undo ~/laptop-code/full
    Memory is where your agents have it, and they go on with it by themselves.
    Haversack's other files are in ~/laptop. Delete them if you do not need the history or settings
    "#);
    assert!(!empty.join(".claude").exists() && local_settings(&full).exists());
    assert_eq!(files_below(&own_memory(&agents, &full)).len(), 1);
    assert_snapshot!(agents.shown("laptop", &["project", "private", "--undo", "laptop-code/full"]), @r#"
    exit 0
    --- stdout
    --- stderr
    ~/laptop-code/full shares the memory of lighthouse again
    Its private file stays in ~/laptop-claude/projects/-BASE-user-laptop-code-full.private/memory; you can move files to ~/laptop-claude/projects/-BASE-user-laptop-code-lighthouse/memory
    "#);
}

#[test]
fn git_is_asked_whether_it_shows_the_settings() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if Command::new("git").arg("--version").output().is_err() {
        haversack_servers::tools::skip("there is no git");
        return;
    }
    let agents = Agents::new();
    let root = agents.machines.env.path("code");
    let git = |arguments: &[&str]| {
        let mut git = agents.machines.env.program("git");
        git.env("PATH", &path).env("GIT_CONFIG_NOSYSTEM", "1").arg("-C").arg(&root);
        let output =
            git.args(["-c", "user.name=me", "-c", "user.email=me@example.org"]).args(arguments).output();
        assert!(output.expect("it ran").status.success(), "{arguments:?}");
    };
    fs::create_dir_all(root.join(".claude")).expect("made");
    git(&["init", "-q"]);
    fs::write(root.join("a"), "a\n").expect("written");
    git(&["add", "a"]);
    git(&["commit", "-qm", "a"]);
    let [new, ignored, committed] = ["new", "ignored", "committed"].map(|name| {
        git(&["worktree", "add", "-q", &format!("../{name}")]);
        root.with_file_name(name)
    });
    fs::write(ignored.join(".gitignore"), "settings.local.json\n").expect("written");
    fs::create_dir_all(committed.join(".claude")).expect("made");
    fs::write(local_settings(&committed), "{}\n").expect("written");
    let at = committed.display().to_string();
    git(&["-C", &at, "add", "-f", "."]);
    git(&["-C", &at, "commit", "-qm", "b"]);
    let told = |worktree: &Path| {
        let mut command = agents.command("laptop", &["project", "private", &worktree.display().to_string()]);
        let shown = agents.machines.env.shown(command.env("PATH", &path).env("GIT_CONFIG_NOSYSTEM", "1"));
        shown.lines().filter(|line| line.starts_with("git ")).map(str::to_owned).collect::<String>()
    };
    assert_snapshot!(told(&new), @r#"git shows .claude/settings.local.json as a new file; to have it ignored in all your repositories, put its name into ~/.config/git/ignore"#);
    assert_snapshot!(told(&committed), @r#"git has .claude/settings.local.json under version control: do not commit this line of it"#);
    assert_eq!(told(&ignored), "");
}

#[test]
fn our_own_server_writes_nothing_of_it_elsewhere() {
    let agents = Agents::laptop_and_desktop();
    let (_, worktree) = with_worktree(&agents);
    agents.done("laptop", &["project", "private", "laptop-code/wt"]);
    let mut command = agents.command("laptop", &["mcp"]);
    let mut client = crate::mcp::Client::start(command.current_dir(&worktree), "tester");
    let fact = json!({ "kind": "project", "name": "cellar", "content": "There is a cellar." });
    let (told, is_error) = client.call("remember", fact);
    let memory = own_memory(&agents, &worktree);
    assert!(is_error && told.contains(&memory.display().to_string()), "{told}");
    assert_eq!(client.end(), Some(0));
    assert!(!carried(&agents, "desktop").contains("cellar"));
}

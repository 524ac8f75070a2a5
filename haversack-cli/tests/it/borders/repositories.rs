//! A repository that its user cloned or unpacked, and that an attacker wrote.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::agents::Agents;
use crate::checkouts::{add_commit, add_commit_after, checkout};
use crate::machines::files_below;

const LIGHTHOUSE: &str = "git@github.com:me/lighthouse.git";
const ID: &str = "lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb";
const EVIL: &str = "https://example.org/evil/tools.git";

/// A word that only the private project's memory has.
const CANARY: &str = "canary-albatross-7731";

/// A laptop and a desktop; the laptop's lighthouse has a memory with the canary word, and the desktop has received it.
fn with_lighthouse() -> (Agents, PathBuf) {
    let agents = Agents::laptop_and_desktop();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    agents.remember("laptop", &root, "carry_forward.md", &format!("- {CANARY}\n"));
    agents.start("laptop", &root);
    agents.rest();
    agents.machines.settle(&["laptop", "desktop"]);
    (agents, root)
}

/// Returns everything that a machine has sent to the remote, as one text.
fn remote(agents: &Agents) -> String {
    files_below(&agents.machines.env.path("remote")).into_values().collect()
}

fn message(told: &Value) -> &str {
    told["systemMessage"].as_str().unwrap_or_default()
}

#[test]
fn linked_agent_memory_is_never_bound() {
    let agents = Agents::laptop_and_desktop();
    let ssh = agents.machines.env.path(".ssh");
    fs::create_dir_all(&ssh).expect("made");
    fs::write(ssh.join("config"), "Host canary-petrel\n").expect("written");
    let root = agents.repository("laptop", "tools", EVIL);
    fs::create_dir_all(root.join(".claude")).expect("made");
    symlink("../../../.ssh", root.join(".claude/agent-memory")).expect("linked");
    for _ in 0..2 {
        agents.start("laptop", &root);
        agents.rest();
        // Not even if the user says yes to the project.
        agents.shown("laptop", &["project", "bind", "laptop-code/tools"]);
        agents.done("laptop", &["sync"]);
    }
    let mounts = agents.done("laptop", &["mount", "list"]);
    assert!(!mounts.contains(".ssh"), "{mounts}");
    assert!(!remote(&agents).contains("canary-petrel"));
    assert_eq!(files_below(&ssh).len(), 1);
}

#[test]
fn agent_memory_in_a_checkout_waits_for_one_yes() {
    let agents = Agents::laptop_and_desktop();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    let worktree = agents.worktree(&root, "wt");
    for checkout in [&root, &worktree] {
        let directory = checkout.join(".claude/agent-memory/reviewer");
        fs::create_dir_all(&directory).expect("made");
        fs::write(directory.join("notes.md"), "canary-petrel\n").expect("written");
    }
    // Asked once, and not carried.
    let first = agents.start("laptop", &root);
    assert!(message(&first).contains("haversack project bind ~/laptop-code/lighthouse"), "{first}");
    agents.rest();
    assert!(!message(&agents.start("laptop", &root)).contains("project bind"));
    agents.rest();
    agents.done("laptop", &["sync"]);
    assert!(!remote(&agents).contains("canary-petrel"));
    // The yes covers worktrees too.
    let told = agents.done("laptop", &["project", "bind", "laptop-code/lighthouse"]);
    assert!(told.contains("You agreed: ~/laptop-code/lighthouse/.claude/agent-memory is synced"), "{told}");
    agents.start("laptop", &worktree);
    agents.rest();
    let mounts = agents.done("laptop", &["mount", "list"]);
    assert_eq!(mounts.matches(".agents  ").count(), 2, "{mounts}");
    agents.done("laptop", &["sync"]);
    assert!(remote(&agents).contains("canary-petrel"));
}

#[test]
fn directory_named_by_a_project_setting_waits_for_a_yes() {
    let agents = Agents::laptop_and_desktop();
    let other = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    agents.remember("laptop", &other, "carry_forward.md", &format!("- {CANARY}\n"));
    agents.start("laptop", &other);
    agents.rest();
    let user = agents.machines.env.path("");
    for directory in ["Documents", "bin", "laptop-claude/commands"] {
        fs::create_dir_all(user.join(directory)).expect("made");
        fs::write(user.join(directory).join("carry_forward.md"), "canary-petrel\n").expect("written");
    }
    let own_memory = agents.memory("laptop", &other).display().to_string();
    let root = agents.repository("laptop", "tools", EVIL);
    fs::create_dir_all(root.join(".claude")).expect("made");
    for file in [".claude/settings.json", ".claude/settings.local.json"] {
        for named in ["~/Documents", "~/bin", "~/laptop-claude/commands", &own_memory] {
            let settings = format!("{{\"autoMemoryDirectory\": \"{named}\"}}");
            fs::write(root.join(file), settings).expect("written");
            let told = agents.start("laptop", &root);
            let context = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
            assert!(!context.contains("canary"), "{named}: {told}");
            assert!(told["hookSpecificOutput"]["watchPaths"].is_null(), "{named}: {told}");
            agents.rest();
            agents.done("laptop", &["sync"]);
            assert!(!remote(&agents).contains("canary-petrel"), "{named}");
        }
        fs::remove_file(root.join(file)).expect("there");
    }
    // A yes binds a directory that may hold memory, and none that an agent or another project uses.
    for named in ["~/laptop-claude/commands", &own_memory] {
        let settings = format!("{{\"autoMemoryDirectory\": \"{named}\"}}");
        fs::write(root.join(".claude/settings.json"), settings).expect("written");
        let told = agents.shown("laptop", &["project", "bind", "laptop-code/tools"]);
        assert!(told.starts_with("exit 1\n") && told.contains("is not bound"), "{told}");
    }
    fs::write(root.join(".claude/settings.json"), "{\"autoMemoryDirectory\": \"~/notes\"}").expect("written");
    let told = agents.start("laptop", &root);
    assert!(message(&told).contains("keep its memory in ~/notes"), "{told}");
    agents.done("laptop", &["project", "bind", "laptop-code/tools"]);
    fs::write(user.join("notes/tide.md"), "tide\n").expect("written");
    agents.done("laptop", &["sync"]);
    assert!(remote(&agents).contains("tide"));
    // A later commit that names another directory needs another yes.
    let settings = "{\"autoMemoryDirectory\": \"~/Documents\"}";
    fs::write(root.join(".claude/settings.json"), settings).expect("written");
    agents.start("laptop", &root);
    agents.rest();
    agents.done("laptop", &["sync"]);
    assert!(!remote(&agents).contains("canary-petrel"));
}

#[test]
fn bound_directory_that_becomes_a_link_is_unbound() {
    let (agents, root) = with_lighthouse();
    let memory = agents.memory("laptop", &root);
    let documents = agents.machines.env.path("Documents");
    fs::create_dir_all(&documents).expect("made");
    fs::write(documents.join("letter.md"), "canary-petrel\n").expect("written");
    fs::rename(&memory, memory.with_file_name("memory.old")).expect("moved");
    symlink(&documents, &memory).expect("linked");
    let told = agents.done("laptop", &["sync"]);
    assert!(told.contains("became a link"), "{told}");
    agents.done("desktop", &["sync"]);
    // Nothing was sent, nothing was deleted, nothing was written through the link.
    assert!(!remote(&agents).contains("canary-petrel"));
    let carried = agents.machines.read("desktop", &format!("claude_memory/{ID}/carry_forward.md"));
    assert!(carried.is_some_and(|text| text.contains(CANARY)));
    assert_eq!(files_below(&documents).len(), 1);
    let status = agents.shown("laptop", &["status"]);
    assert!(status.starts_with("exit 1\n") && status.contains("became a link"), "{status}");
    // The start of a session does not bind it again.
    let told = agents.start("laptop", &root);
    agents.rest();
    agents.done("laptop", &["sync"]);
    assert!(!remote(&agents).contains("canary-petrel"), "{told}");
    assert_eq!(files_below(&documents).len(), 1);
    // The directory is back: its memory is carried as before.
    fs::remove_file(&memory).expect("there");
    fs::rename(memory.with_file_name("memory.old"), &memory).expect("moved");
    agents.start("laptop", &root);
    agents.rest();
    fs::write(memory.join("tide.md"), "tide\n").expect("written");
    agents.machines.settle(&["laptop", "desktop"]);
    assert!(agents.machines.read("desktop", &format!("claude_memory/{ID}/tide.md")).is_some());
    assert!(agents.done("laptop", &["status"]).contains("In sync"));
}

#[test]
fn private_memory_of_another_worktree_is_not_taken_over() {
    let (agents, root) = with_lighthouse();
    let worktree = agents.worktree(&root, "wt");
    agents.done("laptop", &["project", "private", "laptop-code/wt"]);
    let local = fs::read_to_string(worktree.join(".claude/settings.local.json")).expect("there");
    let memory = serde_json::from_str::<Value>(&local).expect("JSON")["autoMemoryDirectory"]
        .as_str()
        .expect("named")
        .to_owned();
    fs::write(Path::new(&memory).join("carry_forward.md"), "canary-petrel\n").expect("written");
    let evil = agents.repository("laptop", "tools", EVIL);
    fs::create_dir_all(evil.join(".claude")).expect("made");
    fs::write(evil.join(".claude/settings.local.json"), &local).expect("written");
    for _ in 0..3 {
        let told = agents.start("laptop", &evil);
        assert!(!told.to_string().contains("canary-petrel"), "{told}");
        agents.rest();
    }
    assert!(agents.start("laptop", &worktree).to_string().contains("canary-petrel"));
    agents.rest();
    agents.done("laptop", &["sync"]);
    assert!(!remote(&agents).contains("canary-petrel"));
}

/// Asserts that a session in a directory of the desktop gets nothing of lighthouse, in any face.
fn gets_nothing(agents: &Agents, root: &Path) {
    for _ in 0..2 {
        let told = agents.start("desktop", root);
        assert!(!told.to_string().contains(CANARY), "{told}");
        agents.rest();
    }
    agents.done("desktop", &["sync"]);
    let memory = files_below(&agents.memory("desktop", root));
    assert!(!memory.values().any(|text| text.contains(CANARY)), "{memory:?}");
    let mut why = agents.command("desktop", &["why", "--next"]);
    let shown = agents.machines.env.shown(why.current_dir(root));
    assert!(!shown.contains(CANARY), "{shown}");
}

#[test]
fn archive_that_names_an_origin_gets_no_memory() {
    let (agents, _) = with_lighthouse();
    let root = agents.archive("desktop", "archive", LIGHTHOUSE);
    let told = agents.start("desktop", &root);
    assert!(message(&told).contains("haversack project bind ~/desktop-code/archive"), "{told}");
    agents.rest();
    gets_nothing(&agents, &root);
    // A commit of its own proves nothing either, under whatever name it is stored.
    add_commit(&root, "Begin something else\n");
    gets_nothing(&agents, &root);
    // The user's yes does.
    agents.done("desktop", &["project", "bind", "desktop-code/archive"]);
    agents.done("desktop", &["sync"]);
    assert!(files_below(&agents.memory("desktop", &root)).values().any(|text| text.contains(CANARY)));
}

#[test]
fn archive_that_was_there_before_joining_gets_no_memory() {
    let (agents, _) = with_lighthouse();
    let archive = agents.archive("third", "archive", LIGHTHOUSE);
    add_commit(&archive, "Begin something else\n");
    let clone = agents.repository("third", "lighthouse", LIGHTHOUSE);
    for root in [&archive, &clone] {
        agents.remember("third", root, "own.md", "own\n");
        // Without a remote every project is new.
        agents.start("third", root);
    }
    let told = agents.done("third", &["join", &agents.machines.url(), "--device", "third", "--yes"]);
    assert!(told.contains("~/third-code/archive gets no memory"), "{told}");
    agents.start("third", &clone);
    agents.rest();
    agents.machines.settle(&["third", "laptop", "desktop"]);
    let files = files_below(&agents.memory("third", &archive));
    assert!(!files.values().any(|text| text.contains(CANARY)), "{files:?}");
    let files = files_below(&agents.memory("third", &clone));
    assert!(files.values().any(|text| text.contains(CANARY)), "{files:?}");
    // Its commit proves nothing on other machines either.
    let copy = agents.archive("desktop", "archive", LIGHTHOUSE);
    add_commit(&copy, "Begin something else\n");
    gets_nothing(&agents, &copy);
}

#[test]
fn clone_proves_itself_by_the_first_commit() {
    let agents = Agents::laptop_and_desktop();
    let root = agents.archive("laptop", "lighthouse", LIGHTHOUSE);
    let first = add_commit(&root, "Begin\n");
    add_commit_after(&root, Some(&first), "A branch that is gone later\n");
    agents.remember("laptop", &root, "carry_forward.md", &format!("- {CANARY}\n"));
    // The background process finds the first commit, and a later sync sends it.
    agents.start("laptop", &root);
    agents.rest();
    agents.machines.settle(&["laptop", "desktop"]);
    // An undo does not reach the record of the project.
    let undone = agents.shown("laptop", &["undo", "--yes"]);
    assert!(undone.contains("There is nothing to undo"), "{undone}");
    let clone = agents.archive("desktop", "lighthouse", LIGHTHOUSE);
    let first = add_commit(&clone, "Begin\n");
    add_commit_after(&clone, Some(&first), "Another branch\n");
    let told = agents.start("desktop", &clone);
    assert!(told.to_string().contains(CANARY), "{told}");
    agents.rest();
}

/// Turns the newest commit of `origin/main` into the tip of a local branch: nothing was fetched or pushed yet.
fn make_local(root: &Path, branch: &str) {
    let tip = root.join(".git/refs/remotes/origin/main");
    fs::create_dir_all(root.join(".git/refs/heads")).expect("made");
    fs::rename(tip, root.join(".git/refs/heads").join(branch)).expect("there");
}

#[test]
fn repository_that_was_never_pushed_is_proven_by_its_main_branch() {
    let agents = Agents::laptop_and_desktop();
    let root = agents.archive("laptop", "lighthouse", LIGHTHOUSE);
    let first = add_commit(&root, "Begin\n");
    make_local(&root, "main");
    // A stranger's branch that is being reviewed, and is checked out, is no proof.
    add_commit(&root, "A stranger's commit\n");
    make_local(&root, "review");
    fs::write(root.join(".git/HEAD"), "ref: refs/heads/review\n").expect("written");
    agents.remember("laptop", &root, "carry_forward.md", &format!("- {CANARY}\n"));
    agents.start("laptop", &root);
    agents.rest();
    agents.machines.settle(&["laptop", "desktop"]);
    for (name, message) in [("archive", "Begin something else\n"), ("strangers", "A stranger's commit\n")] {
        let archive = agents.archive("desktop", name, LIGHTHOUSE);
        add_commit(&archive, message);
        gets_nothing(&agents, &archive);
        // Its own branches make no proof of it, not on another machine either.
        make_local(&archive, "main");
        gets_nothing(&agents, &archive);
    }
    agents.machines.settle(&["desktop", "laptop"]);
    let copy = agents.archive("laptop", "archive", LIGHTHOUSE);
    add_commit(&copy, "Begin something else\n");
    agents.start("laptop", &copy);
    agents.rest();
    assert!(!files_below(&agents.memory("laptop", &copy)).values().any(|text| text.contains(CANARY)));
    let clone = agents.archive("desktop", "lighthouse", LIGHTHOUSE);
    add_commit(&clone, "Begin\n");
    add_commit_after(&clone, Some(&first), "A later commit\n");
    let told = agents.start("desktop", &clone);
    assert!(told.to_string().contains(CANARY), "{told}");
    agents.rest();
}

#[test]
fn first_commit_after_the_first_session_is_recorded_and_its_amended_version_too() {
    let agents = Agents::laptop_and_desktop();
    let root = agents.archive("laptop", "lighthouse", LIGHTHOUSE);
    agents.remember("laptop", &root, "carry_forward.md", &format!("- {CANARY}\n"));
    agents.start("laptop", &root);
    agents.rest();
    let told = agents.shown("laptop", &["status"]);
    assert!(told.contains("lighthouse has no commit"), "{told}");
    add_commit(&root, "Begin, with a mistake\n");
    make_local(&root, "main");
    agents.start("laptop", &root);
    agents.rest();
    let told = agents.shown("laptop", &["status"]);
    assert!(!told.contains("no commit"), "{told}");
    // The commit is amended and pushed: clones have only the amended one.
    add_commit(&root, "Begin\n");
    agents.start("laptop", &root);
    agents.rest();
    agents.machines.settle(&["laptop", "desktop"]);
    let clone = agents.archive("desktop", "lighthouse", LIGHTHOUSE);
    add_commit(&clone, "Begin\n");
    let told = agents.start("desktop", &clone);
    assert!(told.to_string().contains(CANARY), "{told}");
    agents.rest();
}

#[test]
fn alternates_and_foreign_git_files_prove_nothing() {
    let (agents, _) = with_lighthouse();
    let clone = agents.repository("desktop", "lighthouse", LIGHTHOUSE);
    // An archive that borrows the objects of the clone.
    let borrower = agents.archive("desktop", "borrower", LIGHTHOUSE);
    fs::create_dir_all(borrower.join(".git/objects/info")).expect("made");
    let objects = clone.join(".git/objects").display().to_string();
    fs::write(borrower.join(".git/objects/info/alternates"), format!("{objects}\n")).expect("written");
    gets_nothing(&agents, &borrower);
    let linker = agents.archive("desktop", "linker", LIGHTHOUSE);
    fs::remove_dir_all(linker.join(".git/objects")).expect("there");
    symlink(&objects, linker.join(".git/objects")).expect("linked");
    gets_nothing(&agents, &linker);
    // The clone itself and its worktree need no command.
    let worktree = agents.worktree(&clone, "wt");
    let told = agents.start("desktop", &worktree);
    assert!(told.to_string().contains(CANARY), "{told}");
    agents.rest();
    // A directory whose `.git` file names the repository of the clone, which does not list it.
    for (name, target) in [("gitfile", ".git"), ("thief", ".git/worktrees/wt")] {
        let root = agents.machines.env.path(&format!("desktop-code/{name}"));
        fs::create_dir_all(&root).expect("made");
        fs::write(root.join(".git"), format!("gitdir: {}\n", clone.join(target).display())).expect("written");
        let told = agents.start("desktop", &root);
        assert!(!told.to_string().contains(CANARY), "{name}: {told}");
        agents.rest();
        let mut why = agents.command("desktop", &["why", "--next"]);
        assert!(!agents.machines.env.shown(why.current_dir(&root)).contains(CANARY), "{name}");
    }
    // The clone is still carried.
    assert!(agents.start("desktop", &clone).to_string().contains(CANARY));
    agents.rest();
}

#[test]
fn unknown_shallow_clone_is_asked_about_once() {
    let (agents, _) = with_lighthouse();
    let root = agents.machines.env.path("desktop-code/shallow");
    checkout(&root, LIGHTHOUSE);
    let tip = add_commit(&root, "A later commit\n");
    fs::write(root.join(".git/shallow"), format!("{tip}\n")).expect("written");
    let told = agents.start("desktop", &root);
    assert!(message(&told).contains("it is a shallow clone"), "{told}");
    agents.rest();
    assert_eq!(message(&agents.start("desktop", &root)), "");
    agents.rest();
    agents.done("desktop", &["project", "bind", "desktop-code/shallow"]);
    agents.done("desktop", &["sync"]);
    assert!(agents.start("desktop", &root).to_string().contains(CANARY));
    agents.rest();
    // From now on the record knows that commit: another such clone proves itself.
    agents.machines.settle(&["desktop", "laptop"]);
    let other = agents.machines.env.path("laptop-code/shallow");
    checkout(&other, LIGHTHOUSE);
    add_commit(&other, "A later commit\n");
    let told = agents.start("laptop", &other.canonicalize().expect("there"));
    assert!(told.to_string().contains(CANARY), "{told}");
    agents.rest();
}

#[test]
fn project_ids_have_128_bits() {
    // With 32 bits, another repository could be made to have the same id.
    let (agents, _) = with_lighthouse();
    let stored = agents.machines.env.path("desktop/memory/claude_memory");
    let ids: Vec<String> = fs::read_dir(stored)
        .expect("there")
        .map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(ids.iter().all(|id| id.rsplit('-').next().is_some_and(|hash| hash.len() == 32)), "{ids:?}");
}

#[test]
fn old_ids_are_refused_with_their_cure() {
    let agents = Agents::laptop_and_desktop();
    agents.machines.write("laptop", "claude_memory/lighthouse-d004b9e9/lamp.md", "white\n");
    agents.done("laptop", &["sync"]);
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    let told = agents.shown("laptop", &["project", "bind", &root.display().to_string()]);
    assert!(
        told.starts_with("exit 1\n")
            && told
                .contains(&format!("haversack rename claude_memory/lighthouse-d004b9e9 claude_memory/{ID}")),
        "{told}"
    );
    let doctor = agents.done("laptop", &["doctor"]);
    assert!(doctor.contains("WARN  projects  lighthouse-d004b9e9 is an id of the old form"), "{doctor}");
    let join = agents.shown("third", &["join", &agents.machines.url(), "--yes"]);
    assert!(join.starts_with("exit 1\n") && join.contains("project id of the old form"), "{join}");
    let (old, new) = ("claude_memory/lighthouse-d004b9e9", format!("claude_memory/{ID}"));
    agents.done("laptop", &["rename", old, &new]);
    agents.done("laptop", &["sync"]);
    agents.done("laptop", &["project", "bind", &root.display().to_string()]);
    agents.done("third", &["join", &agents.machines.url(), "--yes"]);
}

#[test]
fn project_file_narrows_and_never_silences_hooks() {
    let (agents, root) = with_lighthouse();
    for broken in ["not toml [", "blob-endpoint = \"https://evil.example\"\n", "projects.exclude = \"~\"\n"] {
        fs::write(root.join(".haversack.toml"), broken).expect("written");
        let mut start = agents.command("laptop", &["hook", "SessionStart"]);
        let input = serde_json::json!({ "cwd": root, "source": "startup" }).to_string();
        let told = agents.fire(start.current_dir(&root), input.as_bytes());
        assert!(told.contains(CANARY), "{broken}: {told}");
        agents.rest();
        let journal = agents.journal("laptop");
        assert!(journal.contains("warning: we ignore the settings of this project"), "{journal}");
    }
    // It may keep the project's memory here, and nothing else changes.
    fs::write(root.join(".haversack.toml"), "keep-memory-local = true\n").expect("written");
    agents.start("laptop", &root);
    agents.rest();
    agents.remember("laptop", &root, "tide.md", "canary-petrel\n");
    agents.machines.write("laptop", "other.md", "other\n");
    agents.machines.settle(&["laptop", "desktop"]);
    assert!(!remote(&agents).contains("canary-petrel"));
    assert_eq!(agents.machines.read("desktop", "other.md").as_deref(), Some("other\n"));
}

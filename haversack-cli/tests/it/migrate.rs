//! Existing files, copied to another storage.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use insta::assert_snapshot;
use serde_json::Value;

use crate::environment::TestEnv;
use crate::machines::Machines;

/// Returns a machine with notes and the memory directory of an agent.
fn with_notes() -> TestEnv {
    let env = TestEnv::new();
    write(&env, "notes/ports.md", &"staging listens on 5433\n".repeat(128));
    write(&env, "notes/team/review.md", "two people\n");
    write(&env, "agent/MEMORY.md", "- ports\n");
    env
}

fn write(env: &TestEnv, path: &str, text: &str) {
    let path = env.path(path);
    fs::create_dir_all(path.parent().expect("in a directory")).expect("made");
    fs::write(path, text).expect("written");
}

fn read(env: &TestEnv, path: &str) -> Option<String> {
    fs::read_to_string(env.path(path)).ok()
}

/// Returns every name below a directory, with what a look at it shows.
fn everything(directory: &Path) -> Vec<(PathBuf, Option<Vec<u8>>, SystemTime)> {
    let mut all = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let modified = fs::metadata(&directory).and_then(|found| found.modified()).expect("a time");
        all.push((directory.clone(), None, modified));
        for entry in fs::read_dir(&directory).expect("listed") {
            let path = entry.expect("readable").path();
            let found = fs::symlink_metadata(&path).expect("there");
            if found.is_dir() {
                directories.push(path);
            } else {
                all.push((path.clone(), fs::read(&path).ok(), found.modified().expect("a time")));
            }
        }
    }
    all.sort();
    all
}

fn url(env: &TestEnv, name: &str) -> String {
    format!("file://{}", env.path(name).display())
}

#[test]
fn several_directories_go_to_a_remote_once() {
    let env = with_notes();
    let before = (everything(&env.path("notes")), everything(&env.path("agent")));
    let to = url(&env, "there");
    let pairs = ["migrate", "notes=behavioral", "agent=claude_memory/lighthouse", &to];
    let run = |more: &[&str]| env.run(&[&pairs[..], more].concat());
    assert_snapshot!(run(&["--dry-run"]), @r#"
    exit 0
    --- stdout
    copy  3 KB  behavioral/ports.md
    copy  1 KB  behavioral/team/review.md
    copy  1 KB  claude_memory/lighthouse/MEMORY.md
    --- stderr
    3 files to copy (3 KB). Nothing was copied: this is a dry run.
    "#);
    assert_snapshot!(run(&[]), @r#"
    exit 1
    --- stdout
    --- stderr
    3 files to copy (3 KB).
    Error: this needs your yes, and this is not a terminal
    Hint: Say it with the command: --yes
    "#);
    assert!(!env.path("there").exists(), "nothing was made");
    assert_snapshot!(run(&["--yes"]), @r#"
    exit 0
    --- stdout
    Copied 3 files (3 KB).
    --- stderr
    3 files to copy (3 KB).
    "#);
    assert_eq!(read(&env, "there/claude_memory/lighthouse/MEMORY.md").as_deref(), Some("- ports\n"));
    assert_eq!(read(&env, "there/behavioral/ports.md"), read(&env, "notes/ports.md"));
    let there = everything(&env.path("there"));
    // Nothing is left to upload, so no question is asked.
    assert_snapshot!(run(&[]), @r#"
    exit 0
    --- stdout
    Copied 0 files (0 KB), skipped 3 that are there already.
    --- stderr
    0 files to copy (0 KB), 3 there already by name and size, to be compared.
    "#);
    assert_eq!(everything(&env.path("there")), there);
    write(&env, "notes/new.md", "new\n");
    assert_snapshot!(run(&["--yes"]), @r#"
    exit 0
    --- stdout
    Copied 1 file (1 KB), skipped 3 that are there already.
    --- stderr
    1 file to copy (1 KB), 3 there already by name and size, to be compared.
    "#);
    fs::remove_file(env.path("notes/new.md")).expect("removed");
    let (notes, agent) = before;
    let contents = |all: &[(PathBuf, Option<Vec<u8>>, SystemTime)]| {
        all.iter().filter(|(_, content, _)| content.is_some()).cloned().collect::<Vec<_>>()
    };
    assert_eq!(contents(&everything(&env.path("notes"))), contents(&notes), "the source is as it was");
    assert_eq!(everything(&env.path("agent")), agent);
}

/// Runs a command on a terminal, like a user who types; `None` if there is no program for that.
fn typed(env: &TestEnv, arguments: &[&str], input: &str) -> Option<(Option<i32>, String)> {
    let binary = env!("CARGO_BIN_EXE_haversack");
    let command = [&[binary], arguments].concat().join(" ");
    let script = ["/usr/bin/script", "/bin/script"].into_iter().find(|path| Path::new(path).exists())?;
    let mut script: Command = env.program(script);
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]).env("SHELL", "/bin/sh");
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
    child.stdin.as_mut().expect("piped").write_all(input.as_bytes()).expect("typed");
    let output = child.wait_with_output().expect("ended");
    Some((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

#[test]
fn somebody_is_asked_before_anything_is_uploaded() {
    let env = with_notes();
    let to = url(&env, "there");
    let question = "Upload existing local memory (~3 KB)? [y/N] ";
    // Without a terminal, only the answer without one is tested, above.
    let Some((code, said)) = typed(&env, &["migrate", "notes", &to], "n\n") else { return };
    assert!(said.contains(question) && said.contains("Nothing was copied."), "{said}");
    assert!(code == Some(1) && !env.path("there").exists());
    let (code, said) = typed(&env, &["migrate", "notes", &to], "y\n").expect("a terminal");
    assert!(said.contains(question) && said.contains("Copied 2 files (3 KB)."), "{said}");
    assert!(code == Some(0) && env.path("there/ports.md").exists());
    // Back to a directory it is no upload.
    let (_, said) = typed(&env, &["migrate", &to, "back"], "\n").expect("a terminal");
    assert!(said.contains("Copy existing memory (~3 KB)? [y/N] "), "{said}");
    assert!(!env.path("back").exists());
}

#[test]
fn what_cannot_be_copied_is_told_and_the_rest_is_copied() {
    let env = with_notes();
    write(&env, "notes/.env", "A=1\n");
    let body: String = ('A'..='Z').chain('a'..='z').rev().collect();
    write(&env, "notes/key.md", &format!("see:\n-----BEGIN OPENSSH {} KEY-----\n{body}\n", "PRIVATE"));
    write(&env, "notes/a:b.md", "x");
    write(&env, "notes/con.md", "x");
    write(&env, "notes/line\nbreak.md", "x");
    write(&env, "notes/back\\slash.md", "x");
    write(&env, "notes/manifest.json", "{}");
    fs::write(env.path("notes").join(std::ffi::OsStr::from_bytes(b"bad\xff.md")), "x").expect("written");
    symlink("/etc/hostname", env.path("notes/link")).expect("linked");
    write(&env, "there/ports.md", "another port\n");
    write(&env, "there/team/review.md", "one person\n");
    let to = url(&env, "there");
    write(&env, "notes/new.md", "new\n");
    assert_snapshot!(env.run(&["migrate", "notes", &to, "--yes"]), @r#"
    exit 2
    --- stdout
    Copied 1 file (1 KB).
    --- stderr
    1 file to copy (1 KB), 1 there already by name and size, to be compared, 10 to be left behind.
      back\\slash.md: "back\\slash.md" is refused: it contains a backslash; separate names with "/"
      bad�.md: its name is not Unicode
      line\nbreak.md: "line\nbreak.md" is refused: it contains a control character
      link: it is a symbolic link, and links are not followed
      .env: held back, a file of this name holds keys or settings
      a:b.md: "a:b.md" is refused: a name with ':' cannot be stored on Windows
      con.md: "con.md" is refused: a device name cannot be stored on Windows
      key.md: held back, line 2 holds a private key (private-key)
      manifest.json: "manifest.json" is refused: the name is kept for Haversack itself
      ports.md: something else has that name in the target
      → Files that are held back look like they hold a secret or are settings: take the secret out, then run the same command again. If one may be copied: haversack migrate SOURCE BASE/user/.local/share/haversack/memory, haversack allow PATH:LINE, then the same command
      team/review.md: something else has that name in the target
    INCOMPLETE: 11 files were not copied. Run the same command again: it continues with the missing files.
    "#);
    assert_eq!(read(&env, "there/ports.md").as_deref(), Some("another port\n"), "nothing is replaced");
    assert_eq!(read(&env, "there/team/review.md").as_deref(), Some("one person\n"));
    let names = fs::read_dir(env.path("there")).expect("listed").count();
    assert_eq!(names, 4, "manifest.json, new.md, ports.md, team");

    let output = env.command(&["migrate", "notes", &to, "--yes", "--json"]).output().expect("it ran");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.starts_with("INCOMPLETE:") && said.lines().count() == 1, "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((report["skipped"].as_u64(), report["is_complete"].as_bool()), (Some(1), Some(false)));
    let reasons = report["left"].as_array().expect("some").iter().map(|left| left["reason"].as_str());
    let count = |reason| reasons.clone().filter(|found| *found == Some(reason)).count();
    assert_eq!((count("held"), count("name"), count("different")), (2, 7, 2), "{report:#}");

    // Files for the own memory need not be held back.
    fs::remove_dir_all(env.path("notes")).expect("removed");
    write(&env, "notes/.env", "A=1\n");
    let to_memory = ["--home", "home", "migrate", "notes", "home/memory", "--yes"];
    assert!(env.run(&to_memory).starts_with("exit 0"));
    assert_eq!(read(&env, "home/memory/.env").as_deref(), Some("A=1\n"));
}

#[test]
fn missing_source_is_skipped_and_counted() {
    let env = with_notes();
    let to = url(&env, "there");
    assert_snapshot!(env.run(&["migrate", "notes", "nowhere=claude_memory", &to, "--yes"]), @r#"
    exit 0
    --- stdout
    Copied 2 files (3 KB). 1 source is not there.
    --- stderr
    There is no directory nowhere: skipped.
    2 files to copy (3 KB).
    "#);
    let mut again = env.command(&["migrate", "notes", "nowhere=claude_memory", &to, "--yes", "--json"]);
    let report: Value = serde_json::from_slice(&again.output().expect("it ran").stdout).expect("JSON");
    assert_eq!(report["missing_sources"], serde_json::json!(["nowhere"]));
    assert!(!env.path("nowhere").exists(), "nothing was made");
}

#[test]
fn migration_writes_state_and_manifest() {
    let env = TestEnv::new();
    write(&env, "data/watched_chats", "19:lighthouse\n");
    write(&env, "data/email_cursor.txt", "2026-04-17T19:58:00Z\n");
    write(&env, "data/interactions/2026-04-17.jsonl", "{}\n");
    let to = url(&env, "there");
    assert!(env.run(&["migrate", "data", &to, "--yes"]).starts_with("exit 0"));
    assert_eq!(read(&env, "there/state/watched_chats").as_deref(), Some("19:lighthouse\n"));
    let manifest = read(&env, "there/manifest.json").expect("an index");
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    let entries = manifest["entries"].as_object().expect("an object");
    let names: Vec<&str> = entries.keys().map(String::as_str).collect();
    assert_eq!(names, ["interactions/2026-04-17.jsonl", "state/email_cursor.txt", "state/watched_chats"]);
    assert_eq!(entries["state/watched_chats"]["size"], 14);
    assert!(env.run(&["migrate", "data", "plain", "--yes"]).starts_with("exit 0"));
    assert!(!env.path("plain/manifest.json").exists(), "a directory of this machine is no storage");
    // A manifest of another program stays as it is.
    write(&env, "app/manifest.json", "{\"icons\": []}");
    let shown = env.run(&["migrate", "data", &url(&env, "app"), "--yes"]);
    assert!(shown.starts_with("exit 0") && shown.contains("is not Haversack's"), "{shown}");
    assert_eq!(read(&env, "app/manifest.json").as_deref(), Some("{\"icons\": []}"));
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_made() {
    let env = with_notes();
    fs::create_dir(env.path("empty")).expect("made");
    symlink("notes", env.path("alias")).expect("linked");
    assert_snapshot!(env.run(&["migrate", "empty", "there"]), @r#"
    exit 0
    --- stdout
    Copied 0 files (0 KB).
    --- stderr
    0 files to copy (0 KB).
    "#);
    assert_snapshot!(env.run(&["migrate", "nowhere", "there", "--yes"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: there is no directory nowhere
    Hint: Name one that is there; in SOURCE=PREFIX the last = separates, so a name with one is written "a=b="
    "#);
    assert_snapshot!(env.run(&["migrate", "notes", "notes/copy", "--yes"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: notes and notes/copy are in each other, so copies would be copied again
    Hint: Name a target outside of the source
    "#);
    for [from, to] in [["notes/team", "notes"], ["notes", "alias"], ["notes", "there/../notes/x"]] {
        let shown = env.run(&["migrate", from, to, "--yes"]);
        assert!(shown.contains("are in each other"), "{from} {to}: {shown}");
    }
    let shown = env.run(&["migrate", "notes", &url(&env, "notes/x"), "--yes"]);
    assert!(shown.contains("are in each other"), "{shown}");
    assert_snapshot!(env.run(&["migrate", "notes", "ftp://x/y"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: "ftp://x/y" is no directory and no address of a storage
    Hint: Name a directory, file:///a/directory, s3://BUCKET/PREFIX, az://CONTAINER/PREFIX or gs://BUCKET/PREFIX
    "#);
    assert_snapshot!(env.run(&["migrate", "notes=../up", "there"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: "../up" is refused: ".." would leave the memory
    Hint: Name a place in the target: SOURCE=behavioral
    "#);
    assert_snapshot!(env.run(&["migrate", "notes", "s3://lighthouse-memory", "--yes"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not open bucket "lighthouse-memory": there is no credential for it; an access key, a profile or a web identity would do
    Hint: Sign in, or say where the credential comes from: --from-credential or --to-credential
    "#);
    let mut local = env.command(&["migrate", "notes", "s3://lighthouse-memory", "--yes"]);
    let shown = env.shown(local.env("HAVERSACK_KEEP_MEMORY_LOCAL", "true"));
    assert!(shown.contains("memory is kept on this machine"), "{shown}");
    assert!(env.run(&["migrate", "notes"]).starts_with("exit 2"), "the target is missing");
    assert!(!env.path("there").exists() && !env.path("notes/copy").exists() && !env.path("notes/x").exists());
    write(&env, ".ssh/id_lighthouse", "x");
    let shown = env.run(&["migrate", ".ssh", &url(&env, "there"), "--yes"]);
    assert!(shown.contains(".ssh is not sent anywhere: .ssh holds keys or settings"), "{shown}");
}

#[test]
fn a_home_is_no_memory_and_its_memory_is() {
    let machines = Machines::new();
    machines.write("laptop", "ports.md", "5433\n");
    machines.done("laptop", &["ls"]);
    machines.done("laptop", &["create", "team.md", "two people\n"]);
    let env = &machines.env;
    for from in ["laptop", "laptop/state", "."] {
        let shown = machines.shown("laptop", &["migrate", from, "there", "--yes"]);
        assert!(shown.contains("is a home of Haversack, or around it"), "{from}: {shown}");
        let shown = machines.shown("laptop", &["migrate", "laptop/memory", from, "--yes"]);
        assert!(shown.contains("is a home of Haversack, or around it"), "{from}: {shown}");
    }
    let shown = machines.shown("desktop", &["migrate", "laptop", "there", "--yes"]);
    assert!(shown.contains("Hint: The memory is in BASE/user/laptop/memory"), "{shown}");
    // From one home's memory to another's, a bound directory included.
    write(env, "agent/MEMORY.md", "- ports\n");
    machines.done("laptop", &["mount", "add", "agent", "claude_memory/lighthouse"]);
    let shown = machines.shown("laptop", &["migrate", "laptop/memory", "desktop/memory", "--yes"]);
    assert!(shown.contains("Copied 3 files"), "{shown}");
    assert_eq!(machines.read("desktop", "claude_memory/lighthouse/MEMORY.md").as_deref(), Some("- ports\n"));
    let shown = machines.shown("desktop", &["migrate", "laptop/memory", "desktop/memory/old", "--yes"]);
    assert!(shown.contains("Copied 2 files"), "another home's bound directories are its own: {shown}");
    assert!(machines.shown("desktop", &["ls", "old"]).contains("ports.md"));
}

#[test]
fn the_way_into_a_store_is_its_memory() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", "5433\n")]);
    write(&machines.env, "notes/team.md", "two people\n");
    let (inside, url) = (format!("{}/notes", machines.url()), machines.url());
    assert_snapshot!(machines.shown("laptop", &["migrate", "notes", &url, "--yes"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: file://BASE/user/remote belongs to a store: plain files beside its log would be taken for edits by hand
    Hint: Bring them into the memory, and it syncs them: haversack migrate SOURCE laptop/memory, then haversack sync
    "#);
    for to in [inside.as_str(), "remote", "remote/notes"] {
        for machine in ["laptop", "tablet"] {
            let shown = machines.shown(machine, &["migrate", "notes", to, "--yes"]);
            assert!(shown.contains("belongs to a store"), "{machine} {to}: {shown}");
        }
    }
    machines.done("laptop", &["migrate", "notes=behavioral", "laptop/memory", "--yes"]);
    machines.done("laptop", &["sync"]);
    machines.done("desktop", &["sync"]);
    assert_eq!(machines.read("desktop", "behavioral/team.md").as_deref(), Some("two people\n"));
}

#[test]
fn a_store_is_read_through_its_log() {
    let machines = Machines::new();
    machines.write("laptop", "ports.md", "5433\n");
    machines.write("laptop", "large.md", &"line\n".repeat(100_000));
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop", "--no-mirror"]);
    machines.done("laptop", &["sync"]);
    let before = everything(&machines.env.path("remote"));
    assert_snapshot!(machines.shown("tablet", &["migrate", &format!("{}=old", machines.url()), "copy", "--yes"]), @r#"
    exit 0
    --- stdout
    Copied 2 files (488 KB).
    --- stderr
    2 files to copy (488 KB).
    "#);
    assert_eq!(everything(&machines.env.path("remote")), before, "the store is only read");
    assert_eq!(read(&machines.env, "copy/old/ports.md").as_deref(), Some("5433\n"));
    assert_eq!(read(&machines.env, "copy/old/large.md").map(|text| text.len()), Some(500_000));
}

/// Issue 29: a plain path in a synced folder received a file with a token.
#[test]
fn files_with_secrets_are_copied_only_into_the_own_memory() {
    let env = with_notes();
    let token = format!("gh{}_{}", "p", "16C7e42F292c6912E7710c838347Ae178B4a");
    write(&env, "notes/deploy.md", &format!("token: {token}\n"));
    write(&env, "notes/.env", "A=1\n");
    fs::create_dir_all(env.path("Shared/.stfolder")).expect("made");
    assert_snapshot!(env.run(&["--home", "home", "migrate", "notes", "Shared/copy", "--yes"]), @r#"
    exit 2
    --- stdout
    Copied 2 files (3 KB).
    --- stderr
    2 files to copy (3 KB), 2 to be left behind.
      .env: held back, a file of this name holds keys or settings
      deploy.md: held back, line 1 holds a GitHub token (github-token)
      → Files that are held back look like they hold a secret or are settings: take the secret out, then run the same command again. If one may be copied: haversack migrate SOURCE home/memory, haversack allow PATH:LINE, then the same command
    INCOMPLETE: 2 files were not copied. Run the same command again: it continues with the missing files.
    "#);
    for target in ["Dropbox/copy", "backup"] {
        let shown = env.run(&["--home", "home", "migrate", "notes", target, "--yes"]);
        assert!(shown.starts_with("exit 2\n"), "{shown}");
        assert!(read(&env, &format!("{target}/ports.md")).is_some());
        assert_eq!(read(&env, &format!("{target}/deploy.md")), None);
        assert_eq!(read(&env, &format!("{target}/.env")), None);
    }
    // The cure works: what is in the own memory can be allowed.
    assert!(env.run(&["--home", "home", "migrate", "notes", "home/memory", "--yes"]).starts_with("exit 0\n"));
    assert!(env.run(&["--home", "home", "allow", "deploy.md:1"]).starts_with("exit 0\n"));
    env.run(&["--home", "home", "migrate", "notes", "Shared/copy", "--yes"]);
    assert!(read(&env, "Shared/copy/deploy.md").is_some());
    assert_eq!(read(&env, "Shared/copy/.env"), None);
}

#[test]
fn memory_that_is_kept_local_is_not_copied_into_a_synced_folder() {
    let env = with_notes();
    let run = |target: &str| {
        env.run(&[
            "--home",
            "home",
            "--config",
            "keep-memory-local=true",
            "migrate",
            "notes",
            target,
            "--yes",
        ])
    };
    assert!(run("Dropbox/copy").contains("memory is kept on this machine"));
    assert!(run("backup").starts_with("exit 0\n"));
}

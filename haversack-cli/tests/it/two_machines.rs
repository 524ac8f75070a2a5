//! Two machines and a directory between them, as their users see it.

use insta::assert_snapshot;

use crate::machines::Machines;

const PORTS: &str = "# Ports\n\nstaging listens on 5433\n";

#[test]
fn from_one_machine_to_the_next() {
    let machines = Machines::new();
    machines.write("laptop", "ports.md", PORTS);
    machines.write("laptop", "notes/lamp.md", "white\n");
    let url = machines.url();
    assert_snapshot!(machines.shown("laptop", &["status"]), @r#"
    exit 0
    --- stdout
    On this machine only: there is no remote. Sync it: haversack init URL

      files      2
    --- stderr
    "#);
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: this memory has no remote, so there is nothing to sync with
    Hint: Name one: haversack remote add file:///a/directory, or join one: haversack join URL
    "#);
    assert_snapshot!(machines.shown("laptop", &["remote", "add", &url, "--device", "laptop"]), @r#"
    exit 0
    --- stdout
    --- stderr
    This machine's name is "laptop" (change it with --device NAME). Send its files: haversack sync
    "#);
    assert_snapshot!(machines.shown("laptop", &["status"]), @r#"
    exit 0
    --- stdout
    All well. 2 changes wait to be sent: haversack sync

      files      2
    --- stderr
    "#);
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 0
    --- stdout
    Sent 2 files.
    --- stderr
    "#);
    assert_snapshot!(machines.shown("laptop", &["status"]), @r#"
    exit 0
    --- stdout
    In sync. Last contact just now with file://BASE/user/remote

      files      2
      machines   laptop (this one)
    --- stderr
    "#);

    machines.write("desktop", "ports.md", "# Ports\n\nstaging listens on 5434\n");
    machines.write("desktop", "own.md", "mine\n");
    assert_snapshot!(machines.shown("desktop", &["remote", "add", &url]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: there is a store already: "laptop"
    Hint: Look at it and join it: haversack join file://BASE/user/remote
    "#);
    assert_snapshot!(machines.shown("desktop", &["join", &url, "--device", "laptop"]), @r#"
    exit 1
    --- stdout
    The store of "laptop": 1 machine (laptop, just now), 2 files.
      same 0 · only here 1 · only there 1 · different 1 (will be merged, nothing is dropped)
    --- stderr
    Error: this needs your yes, and this is not a terminal
    Hint: Say it with the command: --yes
    "#);
    assert_snapshot!(machines.shown("desktop", &["join", &url, "--device", "laptop", "--yes"]), @r#"
    exit 0
    --- stdout
    The store of "laptop": 1 machine (laptop, just now), 2 files.
      same 0 · only here 1 · only there 1 · different 1 (will be merged, nothing is dropped)
    Sent 2 files, received 2 files, merged 1 file.
    --- stderr
    "#);
    assert_snapshot!(machines.shown("desktop", &["status"]), @r#"
    exit 0
    --- stdout
    In sync. Last contact just now with file://BASE/user/remote

      files      3
      machines   laptop-2 (this one) · laptop, just now
    --- stderr
    "#);
    assert_snapshot!(machines.shown("desktop", &["sync"]), @r#"
    exit 0
    --- stdout
    Nothing new.
    --- stderr
    "#);
    machines.done("laptop", &["sync"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    assert_snapshot!(machines.shown("laptop", &["log"]), @r#"
    exit 0
    --- stdout
       2  DATE TIME  laptop-2: import
          2 files   written own.md, appended ports.md
       1  DATE TIME  laptop: import
          2 files   written notes/lamp.md, ports.md
    --- stderr
    "#);
    assert_snapshot!(machines.shown("laptop", &["devices"]), @r#"
    exit 0
    --- stdout
    machine            last change
    laptop (this one)  just now
    laptop-2           just now
    --- stderr
    "#);
    assert_snapshot!(machines.shown("laptop", &["remote", "list"]), @r#"
    exit 0
    --- stdout
    file://BASE/user/remote  this machine is "laptop"  last reached: just now
    --- stderr
    "#);
}

#[test]
fn a_join_is_taken_back() {
    let machines = Machines::new();
    machines.write("laptop", "ports.md", PORTS);
    machines.write("laptop", "lamp.md", "white\n");
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop"]);
    machines.done("laptop", &["sync"]);
    let before = machines.files("laptop");
    machines.write("desktop", "ports.md", "# Ports\n\nstaging listens on 5434\n");
    machines.write("desktop", "own.md", "mine\n");
    let own = machines.files("desktop");
    machines.done("desktop", &["join", &machines.url(), "--device", "desktop", "--yes"]);
    machines.done("laptop", &["sync"]);
    assert_ne!(machines.files("laptop"), before);
    assert_snapshot!(machines.shown("desktop", &["undo", "--join", "--yes"]), @r#"
    exit 0
    --- stdout
    The join of file://BASE/user/remote is taken back:
      lamp.md   deleted
      ports.md   −1 +0
    --- stderr
    Left file://BASE/user/remote. 2 of this machine's files were taken back there. The files here are as they were before the join.
    "#);
    assert_eq!(machines.files("desktop"), own);
    machines.done("laptop", &["sync"]);
    assert_eq!(machines.files("laptop"), before);
    assert_snapshot!(machines.shown("desktop", &["sync"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: this memory has no remote, so there is nothing to sync with
    Hint: Name one: haversack remote add file:///a/directory, or join one: haversack join URL
    "#);
    assert_snapshot!(machines.shown("desktop", &["undo", "--join", "--yes"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: there is no join to take back
    Hint: See the changes that you can undo: haversack log
    "#);
    // It can join again.
    machines.done("desktop", &["join", &machines.url(), "--device", "desktop", "--yes"]);
    machines.done("laptop", &["sync"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
}

#[test]
fn the_same_sentence_twice() {
    let machines = Machines::laptop_and_desktop(&[("project_lighthouse.md", PORTS)]);
    machines.write("laptop", "project_lighthouse.md", "# Ports\n\nstaging listens on 5435\n");
    machines.write("desktop", "project_lighthouse.md", "# Ports\n\nstaging listens on 5434\n");
    machines.done("laptop", &["sync"]);
    assert_snapshot!(machines.shown("desktop", &["sync"]), @r#"
    exit 0
    --- stdout
    Sent 1 file, received 1 file, merged 1 file.
      project_lighthouse.md: both versions of a passage are kept
      → haversack conflicts
    --- stderr
    "#);
    assert_snapshot!(machines.shown("desktop", &["status"]), @r#"
    exit 1
    --- stdout
    1 thing needs you. All you wrote is safe on this machine.

      1  project_lighthouse.md has two versions of one passage (one from laptop)
         → haversack conflicts

      files      1
      machines   desktop (this one) · laptop, just now
    --- stderr
    "#);
    assert_snapshot!(machines.shown("desktop", &["status", "--line"]), @r#"
    exit 1
    --- stdout
    haversack: two versions
    --- stderr
    "#);
    machines.done("desktop", &["resolve", "1", "--keep", "1"]);
    machines.settle(&["desktop", "laptop"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    machines.done("laptop", &["status"]);
}

#[test]
fn what_is_not_sent_yet_is_seen_and_taken_back() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", PORTS), ("lamp.md", "white\n")]);
    machines.write("laptop", "ports.md", "# Ports\n\nstaging listens on 1\n");
    machines.write("laptop", "new.md", "new\n");
    std::fs::remove_file(machines.path("laptop", "lamp.md")).expect("removed");
    assert_snapshot!(machines.shown("laptop", &["log", "-n", "1"]), @r#"
    exit 0
    --- stdout
    not sent yet
          3 files   deleted lamp.md, new new.md, changed ports.md
       1  DATE TIME  laptop: import
          2 files   written lamp.md, ports.md
    --- stderr
    "#);
    let details = machines.done("laptop", &["log", "1"]);
    assert!(
        details.contains("      written   lamp.md  +") && details.contains("      written   ports.md  +"),
        "{details}"
    );
    assert!(details.contains("haversack diff --at 1. Take it back: haversack undo 1\n"), "{details}");
    assert!(!details.contains("not sent yet"), "{details}");
    assert_snapshot!(machines.shown("laptop", &["diff"]), @r#"
    exit 0
    --- stdout
    --- a/lamp.md
    +++ /dev/null
    @@ -1 +0,0 @@
    -white
    --- /dev/null
    +++ b/new.md
    @@ -0,0 +1 @@
    +new
    --- a/ports.md
    +++ b/ports.md
    @@ -1,3 +1,3 @@
     # Ports
     
    -staging listens on 5433
    +staging listens on 1
    --- stderr
    "#);
    assert_snapshot!(machines.shown("laptop", &["status"]), @r#"
    exit 0
    --- stdout
    All well. 3 changes wait to be sent: haversack sync

      files      2
      machines   laptop (this one)
    --- stderr
    "#);
    assert_snapshot!(machines.shown("laptop", &["undo"]), @r#"
    exit 1
    --- stdout
    Not sent yet:
      lamp.md   restored
      new.md   deleted
      ports.md   −1 +1
    --- stderr
    Error: this needs your yes, and this is not a terminal
    Hint: Say it with the command: --yes
    "#);
    assert_snapshot!(machines.shown("laptop", &["undo", "--yes"]), @r#"
    exit 0
    --- stdout
    Not sent yet:
      lamp.md   restored
      new.md   deleted
      ports.md   −1 +1
    --- stderr
    Undone. Your other machines follow at their next sync. Changed your mind: haversack undo
    "#);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    assert_snapshot!(machines.shown("laptop", &["undo", "--yes"]), @r#"
    exit 0
    --- stdout
    The last undo is taken back:
      lamp.md   deleted
      new.md   restored
      ports.md   −1 +1
    --- stderr
    Undone. Your other machines follow at their next sync. Changed your mind: haversack undo
    "#);
    assert_eq!(machines.read("laptop", "new.md").as_deref(), Some("new\n"));
    assert_eq!(machines.read("laptop", "lamp.md"), None);
}

#[test]
fn undo_that_a_later_sync_sends_is_an_undo_in_the_log() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", "staging 8443\n")]);
    machines.done("laptop", &["str-replace", "ports.md", "8443", "8444"]);
    machines.done("laptop", &["sync"]);
    machines.done("laptop", &["undo", "--yes"]);
    machines.write("laptop", "lamp.md", "white\n");
    machines.done("laptop", &["sync"]);
    let log = machines.done("laptop", &["log"]);
    let causes = |file: &str| {
        let lines: Vec<&str> = log.lines().collect();
        let pairs = lines.windows(2).filter(|pair| pair[1].contains(file));
        pairs.map(|pair| pair[0].rsplit(": ").next().unwrap_or_default()).collect::<Vec<_>>()
    };
    assert_eq!(causes("ports.md")[..2], ["undo", "sync"], "{log}");
    assert_eq!(causes("lamp.md"), ["sync"], "{log}");
}

#[test]
fn a_session_is_taken_back_and_later_edits_stay() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", PORTS)]);
    machines.write("laptop", "ports.md", "# Ports\n\nstaging listens on 9\n");
    machines.write("laptop", "feedback_ports.md", "wrong\n");
    let mut sync = machines.command("laptop", &["sync", "-m", "end of session"]);
    sync.env("HAVERSACK_AGENT", "claude-code").env("HAVERSACK_SESSION", "91c2");
    assert!(sync.output().expect("ran").status.success());
    machines.done("desktop", &["sync"]);
    machines.write("desktop", "ports.md", "# Ports\n\nstaging listens on 9\n\nlive listens on 80\n");
    machines.done("desktop", &["sync"]);
    assert_snapshot!(machines.shown("desktop", &["log", "-n", "2"]), @r#"
    exit 0
    --- stdout
       3  DATE TIME  desktop: sync
          appended  ports.md
       2  DATE TIME  laptop claude-code session 91c2: end of session
          2 files   written feedback_ports.md, ports.md
    --- stderr
    "#);
    assert_snapshot!(machines.shown("desktop", &["diff", "--at", "2", "ports.md"]), @r#"
    exit 0
    --- stdout
    --- a/ports.md
    +++ b/ports.md
    @@ -1,3 +1,3 @@
     # Ports
     
    -staging listens on 5433
    +staging listens on 9
    --- stderr
    "#);
    assert_snapshot!(machines.shown("desktop", &["undo", "--session", "91c2", "--yes"]), @r#"
    exit 0
    --- stdout
    Session 91c2, 1 change:
      feedback_ports.md   deleted
      ports.md   −1 +1
    --- stderr
    Undone. Your other machines follow at their next sync. Changed your mind: haversack undo
    "#);
    assert_eq!(
        machines.read("desktop", "ports.md").as_deref(),
        Some("# Ports\n\nstaging listens on 5433\n\nlive listens on 80\n")
    );
    machines.settle(&["desktop", "laptop"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    assert_eq!(machines.read("laptop", "feedback_ports.md"), None);
    assert_snapshot!(machines.shown("laptop", &["undo", "--session", "nobody"]), @r#"
    exit 1
    --- stdout
    --- stderr
    There is nothing to undo. See the changes: haversack log
    "#);
}

#[test]
fn a_file_comes_back_as_it_was() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", PORTS)]);
    machines.write("laptop", "ports.md", "second\n");
    machines.done("laptop", &["sync"]);
    machines.write("laptop", "ports.md", "third\n");
    machines.done("laptop", &["sync"]);
    machines.done("laptop", &["delete", "ports.md"]);
    machines.done("laptop", &["sync"]);
    machines.done("laptop", &["restore", "ports.md"]);
    assert_eq!(machines.read("laptop", "ports.md").as_deref(), Some("third\n"));
    machines.done("laptop", &["restore", "ports.md", "--at", "1"]);
    assert_eq!(machines.read("laptop", "ports.md").as_deref(), Some(PORTS));
    assert_snapshot!(machines.shown("laptop", &["restore", "ports.md", "--at", "77"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: there is no change 77: the newest that this machine knows is 4
    Hint: See the changes and their numbers: haversack log. Get newer ones: haversack sync
    "#);
    assert_snapshot!(machines.shown("laptop", &["restore", "nothing.md"]), @r#"
    exit 1
    --- stdout
    --- stderr
    There is nothing to restore. See the changes: haversack log
    "#);
    assert_snapshot!(machines.shown("laptop", &["restore"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: a file or directory has to be named
    Hint: Give a path, or bring back all files that were deleted last: haversack restore --deleted
    "#);
}

#[test]
fn many_deletions_wait() {
    let files: Vec<(String, String)> =
        (0..23).map(|number| (format!("note-{number:02}.md"), format!("{number}\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let machines = Machines::laptop_and_desktop(&files);
    for (name, _) in &files[..20] {
        std::fs::remove_file(machines.path("laptop", name)).expect("removed");
    }
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 0
    --- stdout
    Nothing new.
      20 files disappeared here. We did not delete them on your other machines
      → to bring them back: haversack restore --deleted; if you meant to delete them: haversack sync --allow-deletes
    --- stderr
    "#);
    assert_snapshot!(machines.shown("laptop", &["status"]), @r#"
    exit 1
    --- stdout
    1 thing needs you. All you wrote is safe on this machine.

      1  20 files disappeared from laptop/memory (note-00.md, note-01.md, note-02.md, note-03.md, note-04.md, …). We did not delete them on your other machines
         → to bring them back: haversack restore --deleted; if you meant to delete them: haversack sync --allow-deletes

      files      3
      machines   laptop (this one)
    --- stderr
    "#);
    machines.done("laptop", &["restore", "--deleted"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    std::fs::remove_dir_all(machines.path("laptop", "")).expect("removed");
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: all files disappeared at once, and Haversack did not delete them on your other machines
    Hint: Bring the directory or its disk back, or: haversack restore --deleted. If you meant to delete the files everywhere: haversack sync --allow-deletes
    "#);
    assert_snapshot!(machines.shown("laptop", &["status"]), @r#"
    exit 1
    --- stdout
    1 thing needs you. All you wrote is safe on this machine.

      1  All 23 files in laptop/memory disappeared. We did not delete them on your other machines
         → to bring them back: haversack restore --deleted; if you meant to delete them: haversack sync --allow-deletes

      files      0
      machines   laptop (this one)
    --- stderr
    "#);
    machines.done("laptop", &["restore", "--deleted"]);
    for (name, _) in &files[..20] {
        std::fs::remove_file(machines.path("laptop", name)).expect("removed");
    }
    machines.done("laptop", &["sync", "--allow-deletes"]);
    // The other machine keeps them until its user says the same.
    machines.done("desktop", &["sync"]);
    assert_eq!(machines.files("desktop").len(), 23);
    machines.done("desktop", &["sync", "--allow-deletes"]);
    assert_eq!(machines.files("desktop").len(), 3);
}

#[test]
fn without_the_remote_everything_works_and_waits() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", PORTS)]);
    let (remote, away) = (machines.env.path("remote"), machines.env.path("away"));
    std::fs::rename(&remote, &away).expect("moved");
    machines.write("laptop", "new.md", "new\n");
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote is not there: BASE/user/remote
    Hint: All you wrote is safe on this machine. Bring the remote back, then: haversack sync. If it is gone for good: haversack remote rebuild
    "#);
    assert_snapshot!(machines.shown("laptop", &["status"]), @r#"
    exit 1
    --- stdout
    1 thing needs you. All you wrote is safe on this machine; 1 change waits to be sent.

      1  Nothing sent: the remote is not there: BASE/user/remote
         → All you wrote is safe on this machine. Bring the remote back, then: haversack sync. If it is gone for good: haversack remote rebuild

      files      2
      next try   in SECONDS, or now: haversack sync
      machines   laptop (this one)
    --- stderr
    "#);
    assert_snapshot!(machines.shown("laptop", &["status", "--line"]), @r#"
    exit 1
    --- stdout
    haversack: 1 waiting, remote fails
    --- stderr
    "#);
    assert_snapshot!(machines.shown("laptop", &["sync", "--when-due"]), @r#"
    exit 0
    --- stdout
    --- stderr
    The remote failed a moment ago. Next try in SECONDS, or now: haversack sync
    "#);
    machines.done("laptop", &["log"]);
    assert!(!remote.exists(), "nothing new is begun in its place");
    std::fs::rename(&away, &remote).expect("moved");
    machines.settle(&["laptop", "desktop"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    machines.done("laptop", &["status"]);
}

#[test]
fn private_files_stay_here() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", PORTS)]);
    machines.write("laptop", "server.pem", "x\n");
    let body: String = ('A'..='Z').chain('a'..='z').rev().collect();
    machines.write("laptop", "notes.md", &format!("-----BEGIN RSA {} KEY-----\n{body}\n", "PRIVATE"));
    machines.write("laptop", "7f3a.jsonl", "{\"parentUuid\":null,\"sessionId\":\"7f3a\"}\n");
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 0
    --- stdout
    Nothing new.
      notes.md stays on this machine: line 1 holds a private key (private-key)
      → edit the line, or, if it may be sent: haversack allow notes.md:1
      2 files stay on this machine
        7f3a.jsonl: it is the transcript of a session
        server.pem: a file with this ending holds a key
      → change them, or give them other names: haversack rename 7f3a.jsonl NAME
    --- stderr
    "#);
    machines.done("desktop", &["sync"]);
    assert_eq!(machines.files("desktop").len(), 1);
    let kept = crate::machines::files_below(&machines.env.path("remote"));
    assert!(!kept.values().any(|text| text.contains(&body)), "{kept:?}");
}

#[test]
fn history_of_a_path_that_never_existed_is_an_error() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", PORTS), ("notes/old.md", "old\n")]);
    std::fs::remove_file(machines.path("laptop", "notes/old.md")).expect("deleted");
    machines.done("laptop", &["sync"]);
    for arguments in [
        &["log", "typo.md"][..],
        &["log", "--json", "typo.md"],
        &["diff", "typo.md"],
        &["diff", "typo.md", "--at", "1"],
    ] {
        assert_eq!(
            machines.shown("laptop", arguments),
            "exit 1\n--- stdout\n--- stderr\nError: there is no typo.md in the memory, nor in its history\nHint: See the files of the memory: haversack ls\n",
            "{arguments:?}"
        );
    }
    // A file that is there and a deleted one have a history, also while nothing waits to be sent.
    for arguments in [
        &["log", "notes/old.md"][..],
        &["log", "notes"],
        &["diff", "notes/old.md"],
        &["diff", "ports.md"],
        &["diff", "ports.md", "--at", "2"],
        &["log", "-n", "0", "ports.md"],
    ] {
        machines.done("laptop", arguments);
    }
}

#[test]
fn one_file_goes_alone() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", PORTS)]);
    machines.write("laptop", "one.md", "one\n");
    machines.write("laptop", "two.md", "two\n");
    assert_snapshot!(machines.shown("laptop", &["push", "one.md"]), @r#"
    exit 0
    --- stdout
    Sent 1 file.
    --- stderr
    "#);
    assert_snapshot!(machines.shown("desktop", &["pull"]), @r#"
    exit 0
    --- stdout
    Received 1 file.
    --- stderr
    "#);
    assert_eq!(machines.read("desktop", "two.md"), None);
}

#[test]
fn addresses_that_are_refused() {
    let machines = Machines::new();
    for url in ["file://relative", "s3://bucket", "floppy://a"] {
        let shown = machines.shown("laptop", &["remote", "add", url]);
        assert!(shown.starts_with("exit 1\n") && shown.contains("Hint: "), "{shown}");
    }
    let synced = machines.env.path("Dropbox");
    std::fs::create_dir_all(synced.join(".dropbox.cache")).expect("made");
    let url = format!("file://{}/memory", synced.display());
    assert_snapshot!(machines.shown("laptop", &["remote", "add", &url]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: could not open file://BASE/user/Dropbox/memory: it is in a folder that Dropbox replicates: two machines at once would not see each other's writes there
    Hint: Name the directory by its plain path, and every machine writes only its own log there: haversack remote add PATH
    "#);
    assert_snapshot!(machines.shown("laptop", &["join", &machines.url(), "--yes"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote is not there: BASE/user/remote
    Hint: Write the address as in file:///home/me/memory. It must be a place where another machine or home began a store
    "#);
}

#[test]
fn hand_edits_in_the_remote_are_imported() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", PORTS)]);
    let plain = machines.env.path("remote").join("ports.md");
    assert_eq!(std::fs::read_to_string(&plain).expect("mirrored"), PORTS);
    std::fs::write(&plain, format!("{PORTS}\nby hand\n")).expect("written");
    machines.done("laptop", &["sync"]);
    assert_snapshot!(machines.shown("laptop", &["sync", "--full"]), @r#"
    exit 0
    --- stdout
    Sent 1 file, merged 1 file, imported 1 file changed by hand in the remote.
    --- stderr
    "#);
    machines.done("desktop", &["sync"]);
    assert!(machines.read("desktop", "ports.md").expect("there").contains("by hand"));
}

#[test]
fn the_plain_copies_of_a_large_store_are_written_later() {
    let machines = Machines::new();
    for number in 0..300 {
        machines.write("laptop", &format!("notes/{number:03}.md"), &format!("{number}\n"));
    }
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop"]);
    machines.done("laptop", &["sync"]);
    // The background process waits for more changes; a command with `--at-once` waits for it.
    let manifest = machines.env.path("remote").join("manifest.json");
    while !std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains("\"position\"")) {
        machines.done("laptop", &["mirror", "--at-once"]);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let plain = crate::machines::files_below(&machines.env.path("remote").join("notes"));
    assert_eq!(plain.len(), 300);
    // The lock is free again.
    machines.done("laptop", &["mirror", "--at-once"]);
    machines.write("laptop", "notes/new.md", "new\n");
    machines.done("laptop", &["remote", "remove"]);
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop", "--no-mirror"]);
    machines.done("laptop", &["sync"]);
    machines.done("laptop", &["sync", "--full"]);
    assert!(!machines.env.path("remote").join("notes/new.md").exists());
}

#[test]
fn a_file_or_the_last_hours_are_taken_back() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", PORTS), ("lamp.md", "white\n")]);
    machines.write("desktop", "ports.md", "# Ports\n\nstaging listens on 7\n");
    machines.done("desktop", &["sync"]);
    machines.write("laptop", "lamp.md", "red\n");
    machines.done("laptop", &["sync"]);
    // The last change of a file, by any machine.
    machines.done("laptop", &["undo", "ports.md", "--yes"]);
    assert_eq!(machines.read("laptop", "ports.md").as_deref(), Some(PORTS));
    machines.done("laptop", &["sync"]);
    assert_eq!(machines.read("laptop", "lamp.md").as_deref(), Some("red\n"));
    let shown = machines.done("laptop", &["undo", "--since", "1h", "--dry-run"]);
    // Both go back to what was there before this machine first synced, not further.
    assert!(shown.contains("lamp.md   −1 +1") && shown.contains("ports.md   stays"), "{shown}");
    assert_eq!(machines.read("laptop", "lamp.md").as_deref(), Some("red\n"), "nothing was changed");
    let shown = machines.shown("laptop", &["undo", "--since", "soon"]);
    assert!(shown.starts_with("exit 2\n") && shown.contains("say it as 30min, 2h, 3d or 1w"), "{shown}");
}

#[test]
fn an_undo_takes_back_the_newest_change() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", PORTS), ("lamp.md", "white\n")]);
    machines.write("laptop", "ports.md", "# Ports\n\nstaging listens on 7\n");
    machines.done("laptop", &["sync"]);
    machines.done("laptop", &["undo", "--yes"]);
    machines.done("laptop", &["sync"]);
    // Sending it changes nothing about it: it is still the newest.
    let shown = machines.done("laptop", &["undo", "--dry-run"]);
    assert!(shown.contains("The last undo is taken back:"), "{shown}");
    // But another change is newer, sent or not.
    machines.write("laptop", "lamp.md", "red\n");
    let shown = machines.done("laptop", &["undo", "--dry-run"]);
    assert!(shown.contains("lamp.md") && !shown.contains("ports.md"), "{shown}");
    machines.done("laptop", &["sync"]);
    let shown = machines.done("laptop", &["undo", "--yes"]);
    assert!(shown.contains("lamp.md") && !shown.contains("ports.md"), "{shown}");
    assert_eq!(machines.read("laptop", "lamp.md").as_deref(), Some("white\n"));
}

/// A link in the place of a file or directory is not looked through, and what was there is not therefore gone on other machines.
#[cfg(unix)]
#[test]
fn unreadable_file_is_not_deleted() {
    let files = [("lamp.md", "white\n"), ("log/june.md", "calm\n"), ("log/july.md", "fog\n")];
    let machines = Machines::laptop_and_desktop(&files);
    let (lamp, log) = (machines.path("laptop", "lamp.md"), machines.path("laptop", "log"));
    let aside = machines.env.path("aside");
    std::fs::rename(&log, &aside).expect("moved");
    std::os::unix::fs::symlink(&aside, &log).expect("linked");
    std::fs::remove_file(&lamp).expect("removed");
    std::os::unix::fs::symlink(aside.join("june.md"), &lamp).expect("linked");
    let synced = machines.done("laptop", &["sync"]);
    assert!(synced.contains("lamp.md could not be looked at: it is a symbolic link"), "{synced}");
    assert!(synced.contains("log could not be looked at: it is a symbolic link"), "{synced}");
    let status = machines.shown("laptop", &["status"]);
    assert!(status.contains("2 things need you.") && status.contains("files      3"), "{status}");
    machines.done("desktop", &["sync"]);
    assert_eq!(machines.files("desktop").len(), 3, "nothing was deleted there");

    // A change of another machine waits until the user makes room for it. The rest is synced.
    machines.write("desktop", "lamp.md", "white\nred\n");
    machines.done("desktop", &["sync"]);
    let synced = machines.done("laptop", &["sync"]);
    assert!(synced.contains("lamp.md could not be looked at: it is a symbolic link"), "{synced}");
    std::fs::remove_file(&lamp).expect("removed");
    std::fs::remove_file(&log).expect("removed");
    std::fs::rename(&aside, &log).expect("back");
    machines.settle(&["laptop", "desktop"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    assert_eq!(machines.read("laptop", "lamp.md").as_deref(), Some("white\nred\n"));
    assert_eq!(machines.files("laptop").len(), 3);
}

#[test]
fn undo_does_not_reach_files_that_were_there_before() {
    let machines = Machines::new();
    machines.write("laptop", "ports.md", PORTS);
    machines.write("laptop", "notes/tide.md", "high\n");
    let undo = |arguments: &[&str]| {
        let shown = machines.shown("laptop", &[&["undo", "--yes"], arguments].concat());
        assert!(shown.starts_with("exit 1\n"), "{arguments:?}: {shown}");
        assert_eq!(machines.files("laptop").len(), 2, "{arguments:?}: {shown}");
    };
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop"]);
    undo(&[]);
    machines.done("laptop", &["sync"]);
    for arguments in [&[][..], &["--since", "1h"], &["--session", "last"], &["ports.md"]] {
        undo(arguments);
    }
    // Later edits are undone, and the files stay.
    machines.write("laptop", "ports.md", "nothing\n");
    machines.done("laptop", &["sync"]);
    machines.done("laptop", &["undo", "--yes"]);
    assert_eq!(machines.read("laptop", "ports.md").as_deref(), Some(PORTS));
}

#[test]
fn undo_takes_the_beginning_of_a_session() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", PORTS)]);
    for (session, name) in [("7f3a-one", "one.md"), ("7f3b-two", "two.md")] {
        let mut create = machines.command("laptop", &["create", name, "x"]);
        create.env("HAVERSACK_AGENT", "claude-code").env("HAVERSACK_SESSION", session);
        machines.env.shown(&mut create);
        machines.done("laptop", &["sync"]);
    }
    let shown = machines.shown("laptop", &["undo", "--session", "7f3", "--yes"]);
    assert!(shown.starts_with("exit 1\n") && shown.contains("7f3a-one, 7f3b-two"), "{shown}");
    machines.done("laptop", &["undo", "--session", "7f3a", "--yes"]);
    assert!(machines.read("laptop", "one.md").is_none() && machines.read("laptop", "two.md").is_some());
}

/// Returns two machines that both have two files in `harbour/` and one beside it. Then the laptop deletes the directory, and the desktop
/// takes the deletion in.
fn with_deleted_directory() -> Machines {
    let machines = Machines::laptop_and_desktop(&[
        ("harbour/tide.md", "high\n"),
        ("harbour/deep/pilot.md", "Ada\n"),
        ("lamp.md", "white\n"),
        ("old.md", "gone on purpose\n"),
        ("rock.md", "1\n"),
        ("buoy.md", "2\n"),
    ]);
    machines.done("laptop", &["delete", "old.md"]);
    machines.settle(&["laptop", "desktop"]);
    // An earlier deletion of another machine is another deletion.
    machines.done("desktop", &["delete", "rock.md"]);
    machines.settle(&["laptop", "desktop"]);
    std::fs::remove_dir_all(machines.path("laptop", "harbour")).expect("removed");
    machines.write("laptop", "lamp.md", "red\n");
    machines.settle(&["laptop", "desktop"]);
    assert_eq!(machines.files("desktop").into_keys().collect::<Vec<_>>(), ["buoy.md", "lamp.md"]);
    machines
}

/// Asserts that both machines have the directory again, and that nothing else came back.
fn directory_is_back(machines: &Machines) {
    machines.settle(&["desktop", "laptop"]);
    for machine in ["laptop", "desktop"] {
        let files: Vec<(String, String)> = machines.files(machine).into_iter().collect();
        let expected = [
            ("buoy.md", "2\n"),
            ("harbour/deep/pilot.md", "Ada\n"),
            ("harbour/tide.md", "high\n"),
            ("lamp.md", "red\n"),
        ];
        assert_eq!(files, expected.map(|(name, text)| (name.to_owned(), text.to_owned())), "{machine}");
    }
}

#[test]
fn restore_of_a_directory_works_where_the_deletion_arrived() {
    let machines = with_deleted_directory();
    assert_snapshot!(machines.shown("desktop", &["restore", "harbour"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Restored harbour/deep/pilot.md
    Restored harbour/tide.md
    laptop deleted this (change 4). To restore the deletion before this one, run the same command again.
    "#);
    directory_is_back(&machines);
}

#[test]
fn restore_deleted_works_where_the_deletion_arrived() {
    let machines = with_deleted_directory();
    assert_snapshot!(machines.shown("desktop", &["restore", "--deleted"]), @r#"
    exit 0
    --- stdout
    --- stderr
    Restored harbour/deep/pilot.md
    Restored harbour/tide.md
    laptop deleted this (change 4). To restore the deletion before this one, run the same command again.
    "#);
    directory_is_back(&machines);
    // Once more brings back the deletion before.
    machines.done("desktop", &["restore", "--deleted"]);
    assert_eq!(machines.read("desktop", "rock.md").as_deref(), Some("1\n"));
    assert!(machines.read("desktop", "old.md").is_none());
    machines.done("desktop", &["restore", "--deleted"]);
    assert!(machines.read("desktop", "old.md").is_some());
    assert!(machines.shown("desktop", &["restore", "--deleted"]).starts_with("exit 1\n"));
}

#[test]
fn undo_of_a_number_works_where_the_change_arrived() {
    let machines = with_deleted_directory();
    let log = machines.done("desktop", &["log", "harbour", "-n", "1"]);
    let number =
        log.lines().nth(2).and_then(|line| line.split_whitespace().next()).expect("a number").to_owned();
    // The change wrote lamp.md as well; a later edit of it stays.
    machines.write("desktop", "lamp.md", "red\n\ngreen on the pier\n");
    assert_snapshot!(machines.shown("desktop", &["undo", &number, "--dry-run"]), @r#"
    exit 0
    --- stdout
    4  DATE TIME  laptop: sync
      harbour/deep/pilot.md   restored
      harbour/tide.md   restored
      lamp.md   −1 +1
    --- stderr
    "#);
    machines.done("desktop", &["undo", &number, "--yes"]);
    machines.settle(&["desktop", "laptop"]);
    for machine in ["laptop", "desktop"] {
        assert_eq!(machines.read(machine, "harbour/tide.md").as_deref(), Some("high\n"));
        assert_eq!(machines.read(machine, "harbour/deep/pilot.md").as_deref(), Some("Ada\n"));
        let lamp = machines.read(machine, "lamp.md").expect("there");
        assert!(lamp.contains("white") && lamp.contains("green on the pier"), "{lamp}");
        assert_eq!(machines.files(machine).len(), 4);
    }
    assert_snapshot!(machines.shown("desktop", &["undo", "1"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: change 1 sent files that were there before Haversack, so undo does not remove them
    Hint: Delete a file: haversack delete PATH. Leave a store that was joined: haversack undo --join
    "#);
    assert_snapshot!(machines.shown("desktop", &["undo", "99"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: there is no change 99: the newest that this machine knows is 5
    Hint: See the changes and their numbers: haversack log. Get newer ones: haversack sync
    "#);
}

#[test]
fn undo_of_a_number_sends_held_files_again() {
    let names: Vec<String> = (0..20).map(|number| format!("notes/{number:02}.md")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "memory\n")).collect();
    for command in [&["undo", "2", "--yes"][..], &["restore", "notes"], &["restore", "notes/07.md"]] {
        let machines = Machines::laptop_and_desktop(&files);
        for name in &names[1..] {
            std::fs::remove_file(machines.path("laptop", name)).expect("there");
        }
        machines.done("laptop", &["sync", "--allow-deletes"]);
        machines.done("desktop", &["sync"]);
        machines.done("desktop", command);
        machines.settle(&["desktop", "laptop"]);
        let expected = if command[1].ends_with(".md") { 2 } else { 20 };
        assert_eq!(machines.files("laptop").len(), expected, "{command:?}");
    }
}

#[test]
fn restore_leaves_moved_and_new_files_alone() {
    let machines = with_deleted_directory();
    // A user wrote one of the files again, and moved another one since.
    machines.write("desktop", "harbour/tide.md", "low\n");
    machines.done("desktop", &["rename", "buoy.md", "harbour/buoy.md"]);
    machines.settle(&["desktop", "laptop"]);
    machines.done("desktop", &["restore", "--deleted"]);
    let files: Vec<String> = machines.files("desktop").into_keys().collect();
    assert_eq!(files, ["harbour/buoy.md", "harbour/deep/pilot.md", "harbour/tide.md", "lamp.md"]);
    assert_eq!(machines.read("desktop", "harbour/tide.md").as_deref(), Some("low\n"));
}

#[test]
fn manifest_has_the_times_of_commits() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", PORTS), ("lamp.md", "white\n")]);
    let place = machines.env.path("remote/manifest.json");
    let read = |path: &std::path::Path| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(path).expect("there")).expect("JSON")
    };
    // Returns the time of the newest commit of each file, as the log tells it.
    let commit_times = || {
        let shown = machines.done("desktop", &["log", "--json"]);
        let (_, json) = shown.split_once("--- stdout\n").expect("stdout");
        let (json, _) = json.split_once("--- stderr").expect("stderr");
        let log: serde_json::Value = serde_json::from_str(json).expect("JSON");
        let mut times = std::collections::BTreeMap::new();
        for change in log["changes"].as_array().expect("changes").iter().rev() {
            for file in change["files"].as_array().expect("files") {
                times.insert(file["path"].as_str().expect("a path").to_owned(), change["time"].clone());
            }
        }
        times
    };
    let assert_times = |what: &str| {
        let manifest = read(&place);
        for (path, time) in commit_times() {
            assert_eq!(manifest["entries"][&path]["mtime"], time, "{what}: {path}: {manifest}");
        }
    };
    assert_times("written by the machine that began");
    machines.write("desktop", "lamp.md", "red\n");
    machines.done("desktop", &["sync"]);
    assert_times("one file changed, the others keep their times");
    // Without the manifest the archive tells the times.
    std::fs::remove_file(&place).expect("removed");
    machines.write("laptop", "tide.md", "high\n");
    machines.done("laptop", &["sync"]);
    machines.done("desktop", &["sync"]);
    assert_times("written anew");
    std::fs::remove_file(machines.env.path("remote/ports.md")).expect("removed");
    machines.write("laptop", "tide.md", "low\n");
    machines.done("laptop", &["sync", "--full"]);
    machines.done("desktop", &["sync"]);
    assert_times("after looking at everything");
}

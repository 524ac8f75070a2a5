//! The history of a home without a remote.

use insta::assert_snapshot;

use crate::machines::Machines;

#[test]
fn history_begins_with_the_first_write() {
    let machines = Machines::new();
    machines.done("laptop", &["create", "ports.md", "staging 5433\n"]);
    machines.done("laptop", &["append", "ports.md", "production 5432\n"]);
    // The user edits by hand.
    machines.write("laptop", "habits.md", "early\n");
    assert_snapshot!(machines.shown("laptop", &["log"]), @r"
    exit 0
    --- stdout
    local-3  DATE TIME  this machine: edit
          written   habits.md
    local-2  DATE TIME  this machine: append
          appended  ports.md
    local-1  DATE TIME  this machine: create
          written   ports.md
    --- stderr
    ");
    assert_snapshot!(machines.shown("laptop", &["diff", "--at", "local-2"]), @r"
    exit 0
    --- stdout
    --- a/ports.md
    +++ b/ports.md
    @@ -1 +1,2 @@
     staging 5433
    +production 5432
    --- stderr
    ");
    machines.done("laptop", &["undo", "local-2", "--yes"]);
    assert_eq!(machines.read("laptop", "ports.md").as_deref(), Some("staging 5433\n"));
    machines.done("laptop", &["delete", "ports.md"]);
    machines.done("laptop", &["restore", "ports.md"]);
    assert_eq!(machines.read("laptop", "ports.md").as_deref(), Some("staging 5433\n"));
}

#[test]
fn files_that_were_there_before_are_no_edits() {
    let machines = Machines::new();
    machines.write("laptop", "habits.md", "early\n");
    machines.done("laptop", &["create", "ports.md", "staging 5433\n"]);
    machines.done("laptop", &["undo", "--yes"]);
    assert_eq!(machines.read("laptop", "ports.md"), None);
    // Nothing is left that undo may take away, but the undo itself.
    machines.done("laptop", &["undo", "--yes"]);
    machines.done("laptop", &["undo", "--since", "1h", "--yes"]);
    assert_eq!(machines.read("laptop", "habits.md").as_deref(), Some("early\n"));
}

#[test]
fn local_changes_stay_on_this_machine() {
    let machines = Machines::new();
    machines.done("laptop", &["create", "ports.md", "the first secret plan\n"]);
    machines.done("laptop", &["str-replace", "ports.md", "the first secret plan", "staging 5433"]);
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop"]);
    machines.done("laptop", &["sync"]);
    machines.done("desktop", &["join", &machines.url(), "--yes", "--device", "desktop"]);
    assert_snapshot!(machines.shown("desktop", &["log"]), @r"
    exit 0
    --- stdout
       1  DATE TIME  laptop: import
          written   ports.md
    --- stderr
    ");
    assert_snapshot!(machines.shown("laptop", &["log"]), @r"
    exit 0
    --- stdout
       1  DATE TIME  laptop: import
          written   ports.md
    local-2  DATE TIME  this machine: str-replace
          written   ports.md
    local-1  DATE TIME  this machine: create
          written   ports.md
    --- stderr
    ");
    // A change from before can still be taken back, and the other machine follows.
    machines.done("laptop", &["undo", "local-2", "--yes"]);
    machines.settle(&["laptop", "desktop"]);
    assert_eq!(machines.read("desktop", "ports.md").as_deref(), Some("the first secret plan\n"));
}

#[test]
fn bases_of_a_left_remote_are_kept() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", "staging 5433\n\nproduction 5432\n")]);
    machines.done("laptop", &["remote", "remove"]);
    let other = machines.url().replace("remote", "other");
    machines.done("laptop", &["remote", "add", &other, "--device", "laptop"]);
    machines.done("laptop", &["sync"]);
    machines.done("laptop", &["str-replace", "ports.md", "\n\nproduction 5432", ""]);
    machines.done("laptop", &["sync"]);
    // Back to the first one. The bases of then tell that the line was removed, so it does not come back.
    machines.done("laptop", &["remote", "remove"]);
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop"]);
    machines.settle(&["laptop", "desktop"]);
    assert_eq!(machines.read("desktop", "ports.md").as_deref(), Some("staging 5433\n"));
    assert_eq!(machines.read("laptop", "ports.md").as_deref(), Some("staging 5433\n"));
}

#[test]
fn changes_of_a_remotes_time_are_no_edit() {
    let machines = Machines::new();
    machines.done("laptop", &["create", "ports.md", "staging 5433\n"]);
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop"]);
    machines.done("laptop", &["sync"]);
    machines.done("laptop", &["append", "ports.md", "production 5432\n"]);
    machines.done("laptop", &["sync"]);
    machines.done("laptop", &["remote", "remove"]);
    machines.done("laptop", &["create", "lamp.md", "red\n"]);
    assert_snapshot!(machines.shown("laptop", &["log", "-n", "3"]), @r"
    exit 0
    --- stdout
    local-3  DATE TIME  this machine: create
          written   lamp.md
    local-2  DATE TIME  this machine: import
          appended  ports.md
    local-1  DATE TIME  this machine: create
          written   ports.md
    --- stderr
    ");
    machines.done("laptop", &["undo", "--yes"]);
    assert_eq!(machines.read("laptop", "lamp.md"), None);
    assert_eq!(machines.read("laptop", "ports.md").as_deref(), Some("staging 5433\nproduction 5432\n"));
}

/// Takes a laptop from its store to another one, where it removes a line, and back with a command.
fn line_stays_removed_after_a_return_with(command: &str) {
    let machines = Machines::laptop_and_desktop(&[("ports.md", "staging 5433\n\nproduction 5432\n")]);
    machines.done("laptop", &["remote", "remove"]);
    let other = machines.url().replace("remote", "other");
    machines.done("laptop", &["remote", "add", &other, "--device", "laptop"]);
    machines.done("laptop", &["sync"]);
    machines.done("laptop", &["str-replace", "ports.md", "\n\nproduction 5432", ""]);
    machines.done("laptop", &["sync"]);
    machines.done("laptop", &["remote", "remove"]);
    machines.done("laptop", &[command, &machines.url(), "--device", "laptop", "--yes"]);
    machines.settle(&["laptop", "desktop"]);
    assert_eq!(machines.read("desktop", "ports.md").as_deref(), Some("staging 5433\n"));
    assert_eq!(machines.read("laptop", "ports.md").as_deref(), Some("staging 5433\n"));
}

#[test]
fn join_of_a_left_store_keeps_its_bases() {
    line_stays_removed_after_a_return_with("join");
}

#[test]
fn init_of_a_left_store_keeps_its_bases() {
    line_stays_removed_after_a_return_with("init");
}

#[test]
fn join_of_a_store_that_was_never_left_is_refused() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", "staging 5433\n")]);
    let other = machines.url().replace("remote", "other");
    machines.done("phone", &["create", "lamp.md", "red\n"]);
    machines.done("phone", &["remote", "add", &other, "--device", "phone"]);
    machines.done("phone", &["sync"]);
    machines.done("laptop", &["remote", "remove"]);
    let shown = machines.shown("laptop", &["join", &other, "--yes"]);
    assert!(shown.starts_with("exit 1\n") && shown.contains("already belongs to the store"), "{shown}");
}

#[test]
fn join_keeps_the_history_from_before() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", "staging 5433\n")]);
    machines.done("phone", &["create", "lamp.md", "red\n"]);
    machines.done("phone", &["append", "lamp.md", "bright\n"]);
    machines.done("phone", &["join", &machines.url(), "--device", "phone", "--yes"]);
    assert_snapshot!(machines.shown("phone", &["log"]), @r"
    exit 0
    --- stdout
       2  DATE TIME  phone: import
          written   lamp.md
       1  DATE TIME  laptop: import
          written   ports.md
    local-2  DATE TIME  this machine: append
          appended  lamp.md
    local-1  DATE TIME  this machine: create
          written   lamp.md
    --- stderr
    ");
    machines.done("phone", &["undo", "local-2", "--yes"]);
    machines.settle(&["phone", "laptop"]);
    assert_eq!(machines.read("laptop", "lamp.md").as_deref(), Some("red\n"));
}

#[test]
fn looking_at_a_history_makes_no_home() {
    let machines = Machines::new();
    assert_snapshot!(machines.shown("laptop", &["log"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: there is no history yet: it begins with the first write
    Hint: Write something: haversack create notes.md TEXT. Or connect an agent: haversack init
    ");
    let home = machines.path("laptop", "");
    assert!(!home.exists(), "{} was made", home.display());
}

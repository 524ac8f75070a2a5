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

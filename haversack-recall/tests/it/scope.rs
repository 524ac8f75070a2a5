//! A query sees its projects only.

use std::collections::BTreeSet;

use haversack::store::InMemory;
use haversack_recall::{Projects, Query};

use crate::{names, once, query, write};

fn only(project: &str) -> Projects {
    Projects::Only(BTreeSet::from([project.to_owned()]))
}

#[test]
fn other_projects_are_not_found() {
    let files = InMemory::new();
    write(&files, "claude_memory/lighthouse/a.md", b"The secret word is lampwhite.\n");
    write(&files, "claude_memory/tower/a.md", b"The secret word is towerstone.\n");
    write(&files, "behavioral/a.md", b"The secret word is tidalwave.\n");
    let found = |projects: Projects| {
        let recalled = once(&files, &Query { projects, ..query("secret word") });
        (names(&recalled).into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), recalled.looked_through)
    };
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(found(only("tower")), (set(&["behavioral/a.md", "claude_memory/tower/a.md"]), 2));
    assert_eq!(found(only("nothing")), (set(&["behavioral/a.md"]), 1));
    let others = Projects::AllBut(BTreeSet::from(["tower".to_owned()]));
    assert_eq!(found(others), (set(&["behavioral/a.md", "claude_memory/lighthouse/a.md"]), 2));
}

#[test]
fn other_projects_do_not_change_an_answer() {
    let files = InMemory::new();
    write(&files, "claude_memory/lighthouse/a.md", b"The lamp.\n");
    write(&files, "claude_memory/lighthouse/b.md", b"The lens, and much more of it.\n");
    let asked = Query { projects: only("lighthouse"), ..query("lamp lens") };
    let alone = once(&files, &asked);
    for number in 0..20 {
        write(&files, &format!("claude_memory/tower/{number}.md"), b"lamp lamp lamp\n");
    }
    write(&files, "claude_memory/tower/huge.md", "lamp ".repeat(300_000).as_bytes());
    assert_eq!(once(&files, &asked), alone, "scores, counts and unread files");
}

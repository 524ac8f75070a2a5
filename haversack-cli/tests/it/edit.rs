//! `haversack edit`: the editor is a shell command that changes the file it is given.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;

use crate::environment::TestEnv;

/// Runs `haversack edit` with an editor, and returns its output and the file afterwards.
fn edit(env: &TestEnv, editor: &str) -> String {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_haversack"));
    let path = format!("{}:/usr/bin:/bin", binary.parent().expect("in a directory").display());
    let mut command = env.command(&["edit", "lamp.md"]);
    // The process id in the name of the draft changes.
    let shown = env.shown(command.env("EDITOR", editor).env("PATH", path));
    let drafts = env.path(".local/share/haversack/state/edit");
    let mut shown = shown;
    for draft in fs::read_dir(&drafts).into_iter().flatten() {
        let name = draft.expect("readable").file_name().into_string().expect("text");
        shown = shown.replace(&name, "PROCESS");
    }
    format!("{shown}{}", env.run(&["view", "lamp.md"]).split_once("--- stdout\n").expect("viewed").1)
}

fn with_lamp() -> TestEnv {
    let env = TestEnv::new();
    env.run(&["create", "lamp.md", "# Lamp\n\nIt turns every 12 s.\n\nThe lens is cleaned on Mondays.\n"]);
    env
}

/// Returns the number of drafts that are left.
fn drafts(env: &TestEnv) -> usize {
    fs::read_dir(env.path(".local/share/haversack/state/edit")).expect("made").count()
}

#[test]
fn edit_writes_the_text_of_the_editor() {
    let env = with_lamp();
    assert_snapshot!(edit(&env, "sed -i 's/12 s/10 s/'"), @r"
    exit 0
    --- stdout
    --- stderr
    Edited lamp.md
    # Lamp

    It turns every 10 s.

    The lens is cleaned on Mondays.
    --- stderr
    ");
    assert_snapshot!(env.run(&["diff", "local-2"]), @r"
    exit 0
    --- stdout
    --- a/lamp.md
    +++ b/lamp.md
    @@ -1,5 +1,5 @@
     # Lamp
     
    -It turns every 12 s.
    +It turns every 10 s.
     
     The lens is cleaned on Mondays.
    --- stderr
    ");
    assert_eq!(drafts(&env), 0);
}

#[test]
fn edit_without_a_change_or_without_a_text_changes_nothing() {
    let env = with_lamp();
    assert_snapshot!(edit(&env, "true"), @r"
    exit 0
    --- stdout
    --- stderr
    lamp.md is unchanged
    # Lamp

    It turns every 12 s.

    The lens is cleaned on Mondays.
    --- stderr
    ");
    assert_snapshot!(edit(&env, "truncate --size 0"), @r"
    exit 0
    --- stdout
    --- stderr
    The text was empty, so lamp.md is unchanged. To delete it: haversack delete
    # Lamp

    It turns every 12 s.

    The lens is cleaned on Mondays.
    --- stderr
    ");
    assert_snapshot!(edit(&env, "false"), @r"
    exit 1
    --- stdout
    --- stderr
    Error: the editor false failed (exit status: 1), so nothing was changed
    Hint: Name another editor with EDITOR or VISUAL
    # Lamp

    It turns every 12 s.

    The lens is cleaned on Mondays.
    --- stderr
    ");
    // The shell's own line differs between systems.
    assert!(
        edit(&env, "no-such-editor").contains("Error: the editor no-such-editor failed (exit status: 127)")
    );
    assert_eq!(drafts(&env), 0);
    assert_eq!(env.run(&["log"]).matches("local-").count(), 1);
}

#[test]
fn edit_merges_a_change_that_was_made_meanwhile() {
    let env = with_lamp();
    let editor =
        "f() { haversack str-replace lamp.md Mondays Fridays 2>/dev/null; sed -i 's/12 s/10 s/' \"$1\"; }; f";
    assert_snapshot!(edit(&env, editor), @r"
    exit 0
    --- stdout
    --- stderr
    Edited lamp.md, merged with a change that another program made while you edited
    # Lamp

    It turns every 10 s.

    The lens is cleaned on Fridays.
    --- stderr
    ");
    assert_eq!(drafts(&env), 0);
}

#[test]
fn edit_opens_the_merge_of_two_changes_of_one_passage() {
    let env = with_lamp();
    // The first time, another program changes the same line. The second time, the editor shows both and the user keeps one.
    let editor = "f() { if grep -q 'also, from' \"$1\"; then cp \"$1\" ~/seen; grep -v '11 s\\|also, from' \"$1\" > ~/kept; cp ~/kept \"$1\"; \
        else haversack str-replace lamp.md 12 11 2>/dev/null; sed -i 's/12 s/10 s/' \"$1\"; fi; }; f";
    assert_snapshot!(edit(&env, editor), @r"
    exit 0
    --- stdout
    --- stderr
    lamp.md changed in the same passage while you edited it. The editor opens the merged text with both passages.
    Edited lamp.md, merged with a change that another program made while you edited
    # Lamp

    It turns every 10 s.

    The lens is cleaned on Mondays.
    --- stderr
    ");
    assert_snapshot!(fs::read_to_string(env.path("seen")).expect("the editor saw the merge"), @r"
    # Lamp

    It turns every 10 s.
    > [also, from the memory:]
    It turns every 11 s.

    The lens is cleaned on Mondays.
    ");
    assert_eq!(drafts(&env), 0);
}

#[test]
fn edit_puts_a_deleted_file_back_with_the_new_text() {
    let env = with_lamp();
    let editor = "f() { haversack delete lamp.md 2>/dev/null; sed -i 's/12 s/10 s/' \"$1\"; }; f";
    assert_snapshot!(edit(&env, editor), @r"
    exit 0
    --- stdout
    --- stderr
    Edited lamp.md, merged with a change that another program made while you edited
    # Lamp

    It turns every 10 s.

    The lens is cleaned on Mondays.
    --- stderr
    ");
}

#[test]
fn edit_keeps_the_text_of_an_editor_that_failed() {
    let env = with_lamp();
    assert_snapshot!(edit(&env, "f() { echo more >> \"$1\"; return 3; }; f"), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the editor f() { echo more >> "$1"; return 3; }; f failed (exit status: 3), so nothing was changed
    Hint: Name another editor with EDITOR or VISUAL. Your text is kept in BASE/user/.local/share/haversack/state/edit/PROCESS/lamp.md
    # Lamp

    It turns every 12 s.

    The lens is cleaned on Mondays.
    --- stderr
    "#);
    let drafts = env.path(".local/share/haversack/state/edit");
    let draft =
        fs::read_dir(drafts).expect("made").next().expect("kept").expect("readable").path().join("lamp.md");
    assert!(fs::read_to_string(&draft).expect("text").ends_with("more\n"));
    assert_eq!(draft.metadata().expect("there").permissions().mode() & 0o077, 0);
}

#[test]
fn edit_names_what_is_missing() {
    let env = with_lamp();
    assert_snapshot!(env.run(&["edit", "lamp.md"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: no editor is set, and there is no terminal for one
    Hint: Name an editor with EDITOR or VISUAL
    ");
    assert_snapshot!(env.run(&["edit", "lens.md"]), @r"
    exit 1
    --- stdout
    --- stderr
    Error: the memory has no file lens.md
    Hint: See the files of the memory: haversack ls
    ");
    assert_snapshot!(env.run(&["edit", "--help"]), @r"
    exit 0
    --- stdout
    Change a file in your editor ($VISUAL or $EDITOR)

    If another program changes the file while you edit, both changes are merged. If both changed the
    same passage, the editor opens the merged text. A text that you leave unchanged or empty changes
    nothing.

    Usage: haversack edit [OPTIONS] <PATH>

    Arguments:
      <PATH>
              The file

    Options:
          --home <DIRECTORY>
              The directory that Haversack keeps everything in

          --config <KEY=VALUE>
              Change a setting for this run; can be given more than once

      -h, --help
              Print help (see a summary with '-h')
    --- stderr
    ");
}

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::environment::TestEnv;

fn is_git_here() -> bool {
    Command::new("git").arg("--version").output().is_ok()
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("listed").map(|entry| entry.expect("readable"));
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Returns the texts of the README's picture with their lines in the file, without those that differ from run to run.
fn texts_of_picture() -> Vec<(usize, String)> {
    let picture = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/pictures/demo.svg"));
    let picture = picture.expect("the picture is there");
    let texts = (1..).zip(picture.lines()).filter_map(|(number, line)| {
        let text = line.strip_suffix("</text>")?.rsplit_once('>')?.1;
        Some((number, text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")))
    });
    // The name of the sandbox, the time and the prompt.
    let differs = |text: &str| {
        ["Two machines, one", "Done in ", "$", "haversack demo"].iter().any(|start| text.starts_with(start))
    };
    texts.filter(|(_, text)| !differs(text) && (is_git_here() || !text.contains("git"))).collect()
}

#[test]
fn the_demo_loses_nothing_and_touches_nothing_of_the_user() {
    let env = TestEnv::new();
    let temporary = env.path("").join("../with space, 100%");
    std::fs::create_dir(&temporary).expect("made");
    // The user's settings do not affect the demo's machines, nor its git.
    let mut command = env.command(&["demo", "--keep"]);
    command
        .env("TMPDIR", &temporary)
        .env("HAVERSACK_HOME", env.path("own"))
        .env("HAVERSACK_AGENT", "own")
        .env("XDG_DATA_HOME", env.path("data"))
        .env("GIT_DIR", env.path("repository"));
    let shown = env.shown(&mut command);
    assert!(shown.starts_with("exit 0\n"), "{shown}");
    let lines = [
        "  1  Both hold the same 5 files                                    laptop = desktop",
        "  2  Both go offline and change the same memory",
        "       MEMORY.md              laptop: + Deploys, + Reviews     desktop: + Staging, − Old dashboard",
        "       project_old.md         laptop: deletes it               –",
        "  3  The laptop starts a sync, and we kill it half-way             kill -9",
        "       haversack status       \"the last sync was interrupted and not finished: the next sync continues it\"",
        "  4  Both come back and sync                                       3 syncs, 2 more find nothing to do",
        "       MEMORY.md              merged     3 added, 1 removed",
        "       voice_calibration.md   merged     2 notes for today, under 1 heading",
        "       commitments.md         merged     c-3 delivered in its new words, c-4 open",
        "       project_lighthouse.md  kept both  2 versions, you or your agent pick: haversack conflicts",
        "       project_old.md         deleted    and it stays deleted",
        "  edits made 12 · found on both machines 12 · lost 0 · deleted but came back 0",
    ];
    for line in lines {
        assert!(shown.contains(&format!("\n{line}\n")), "{line}\n{shown}");
    }
    let rivals = "  the same edits with \"newest file wins\": lost 4, came back 1";
    let git = if is_git_here() { " · with git: stops at 4 conflicts" } else { "" };
    assert!(shown.contains(&format!("\n{rivals}{git}\n")), "{shown}");
    assert!(shown.ends_with("--- stderr\n"), "{shown}");
    for (line, text) in texts_of_picture() {
        assert!(
            shown.contains(&text),
            "docs/pictures/demo.svg:{line} shows {text:?}; make it again: cargo xtask pictures"
        );
    }
    assert_eq!(names_in(&env.path("")), [""; 0], "nothing of the user is touched");
    assert_eq!(names_in(&temporary).len(), 1, "one sandbox");

    assert!(shown.contains("\nIn the browser: ") && shown.contains(" open\n"), "{shown}");
    // The next command that it names works.
    let look = shown.lines().find_map(|line| line.split_once("Look around: ")).expect("it says so").1;
    let home = look.split_once("--home ").expect("a home").1.strip_suffix(" log").expect("the log");
    let home = home.trim_matches('\'').replacen("BASE", &temporary.join("../").display().to_string(), 1);
    let mut log = env.command(&["--home", &home, "log"]);
    let log = env.shown(log.env("XDG_DATA_HOME", env.path("data")));
    assert!(log.contains("laptop: sync") && log.contains("haversack log 3"), "{log}");
}

#[test]
fn demo_deletes_its_sandbox_unless_it_is_kept() {
    let env = TestEnv::new();
    let temporary = env.path("temporary");
    std::fs::create_dir(&temporary).expect("made");
    let shown = env.shown(env.command(&["demo"]).env("TMPDIR", &temporary));
    assert!(shown.starts_with("exit 0\n"), "{shown}");
    assert!(
        shown.contains(" The sandbox is deleted. To look around in one: haversack demo --keep\n"),
        "{shown}"
    );
    assert_eq!(names_in(&temporary), [""; 0]);
}

#[test]
fn the_demo_says_the_same_in_json_without_a_home_and_without_git() {
    let env = TestEnv::new();
    let nowhere = env.path("nowhere");
    let mut command = env.command(&["demo", "--keep", "--json"]);
    command.env("HOME", &nowhere).env("PATH", &nowhere);
    let output = command.output().expect("it ran");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for (key, expected) in [
        ("made", json!(12)),
        ("found_on_both", json!(12)),
        ("lost", json!(0)),
        ("came_back", json!(0)),
        ("syncs", json!(3)),
        ("syncs_with_nothing_to_do", json!(2)),
        ("newest_file_wins", json!({ "lost": 4, "came_back": 1 })),
        ("git", Value::Null),
    ] {
        assert_eq!(shown[key], expected, "{key}");
    }
    assert_eq!(shown["killed"]["signal"], 9);
    assert_eq!(shown["killed"]["commits"], json!([1, 1]));
    assert!(shown["untouched_lines"].as_u64().is_some_and(|lines| lines > 20));
    assert!(shown["milliseconds"].as_u64().is_some_and(|milliseconds| milliseconds < 60_000));
    let edits = shown["edits"].as_array().expect("a list");
    assert_eq!(edits.len(), 12);
    let newest = |fate: &str| edits.iter().filter(|edit| edit["newest_file_wins"] == fate).count();
    assert_eq!([newest("found"), newest("lost"), newest("came back")], [7, 4, 1]);
    assert!(!nowhere.exists(), "the home was not made");

    let sandbox = Path::new(shown["sandbox"].as_str().expect("a path"));
    assert_eq!(names_in(sandbox), ["desktop", "git", "laptop", "shared", "user"]);
    let files = names_in(&sandbox.join("laptop/memory"));
    let visible: Vec<&String> = files.iter().filter(|name| !name.starts_with('.')).collect();
    assert_eq!(visible, ["MEMORY.md", "commitments.md", "project_lighthouse.md", "voice_calibration.md"]);
}

#[test]
fn the_demo_says_where_it_cannot_work() {
    let env = TestEnv::new();
    let shown = env.shown(env.command(&["demo"]).env("TMPDIR", env.path("nowhere")));
    assert!(
        shown.starts_with("exit 1\n--- stdout\n--- stderr\nError: the sandbox could not be made\n"),
        "{shown}"
    );
    assert!(shown.ends_with("Hint: Set TMPDIR to a writable directory\n"), "{shown}");
    assert!(env.run(&["demo", "--slow", "--json"]).starts_with("exit 2\n"));
}

#[test]
fn the_help_is_short_and_hides_what_is_not_for_people() {
    let shown = TestEnv::new().run(&["--help"]);
    assert!(shown.lines().count() < 33, "{shown}");
    assert!(!shown.contains("debug"), "{shown}");
    let all = TestEnv::new().run(&["help", "--all"]);
    for name in ["str-replace", "memory-tool", "pull", "kinds"] {
        assert!(all.contains(&format!("\n  {name} ")), "{all}");
    }
}

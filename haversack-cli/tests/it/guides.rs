//! The guides' examples, run as they are written.
//!
//! A block marked `console` has commands after `$ ` and below each what it prints, stdout and stderr together. All blocks of a
//! guide run in one home, in order. The user's directory is called `/home/me`, also in names made of it, and times of day do not matter.
//! A comment `<!-- clone DIRECTORY URL -->` or `<!-- worktree DIRECTORY NAME -->` makes what the reader has already: a clone with a commit, or
//! a worktree beside one.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::checkouts;
use crate::environment::TestEnv;
use crate::machines::without_times;

/// A command of a guide and what it is said to print.
struct Example {
    line: usize,
    command: String,
    printed: String,
}

fn guides() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide")
}

fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if line.starts_with("<!-- clone ") || line.starts_with("<!-- worktree ") {
            examples.push(Example { line: at + 1, command: line.to_owned(), printed: String::new() });
        } else if let (true, Some(command)) = (inside, line.strip_prefix("$ ")) {
            examples.push(Example { line: at + 1, command: command.to_owned(), printed: String::new() });
        } else if let (true, Some(example)) = (inside, examples.last_mut()) {
            example.printed.push_str(line);
            example.printed.push('\n');
        }
    }
    examples
}

/// Makes what a comment of a guide says that the reader has.
fn make(env: &TestEnv, comment: &str) {
    match comment.split_whitespace().collect::<Vec<_>>()[..] {
        ["<!--", "clone", directory, url, "-->"] => checkouts::clone(&env.path(directory), url),
        ["<!--", "worktree", directory, name, "-->"] => drop(checkouts::worktree(&env.path(directory), name)),
        _ => panic!("a comment that is not understood: {comment}"),
    }
}

fn run(env: &TestEnv, command: &str) -> String {
    if command.starts_with("<!--") {
        make(env, command);
        return String::new();
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_haversack"));
    let path = format!("{}:/usr/bin:/bin", binary.parent().expect("in a directory").display());
    let mut shell = env.program("sh");
    shell.args(["-c", &format!("{{ {command}\n}} 2>&1")]).env("PATH", path).stdin(Stdio::null());
    let output = shell.output().expect("a shell");
    let printed = String::from_utf8(output.stdout).expect("text");
    let home = env.path("").display().to_string();
    // Claude Code names directories after paths.
    let name: String =
        home.trim_end_matches('/').chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let printed = with_one_time(&printed.replace(&name, "-home-me"));
    printed.replace(&home, "/home/me/").replace(home.trim_end_matches('/'), "/home/me").replace("me//", "me/")
}

/// Replaces each time of day at the end of a wait.
fn with_one_time(printed: &str) -> String {
    let mut parts = printed.split("until ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_time = part.get(..5).is_some_and(|time| time.as_bytes()[2] == b':');
        text.push_str(&format!(
            "until {}",
            if is_time { format!("14:30{}", &part[5..]) } else { part.to_owned() }
        ));
    }
    text
}

#[test]
fn every_example_prints_what_it_says() {
    let mut ran = 0;
    for entry in std::fs::read_dir(guides()).expect("there are guides") {
        let path = entry.expect("readable").path();
        let env = TestEnv::new();
        for Example { line, command, printed } in examples(&std::fs::read_to_string(&path).expect("text")) {
            let found = without_times(&run(&env, &command));
            assert_eq!(found, without_times(&printed), "{}:{line}: {command}", path.display());
            ran += 1;
        }
    }
    assert!(ran >= 8, "the examples are found");
}

//! The results of other tools for the same edits: tools where the newest file wins, and git.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::sandbox::read;
use super::script::{Edit, Machine};
use super::tally::Files;

/// The variable that tells where programs are.
const PATH: &str = "PATH";

/// Returns the files if the machine that wrote a file last wins, as a whole.
///
/// The tool is assumed at its best: it knows the state before, so the deletion of a file that the other machine did not change
/// goes through, as it does with a sync client. (Without that knowledge the file would come back.)
pub(super) fn newest_file_wins(before: &Files, edited: [&Files; 2], edits: &[Edit]) -> Files {
    let mut files = before.clone();
    // In the order in which they were made: who comes later replaces who came before.
    for Edit { machine, file, .. } in edits {
        let [laptop, desktop] = edited;
        let side = match machine {
            Machine::Laptop => laptop,
            Machine::Desktop => desktop,
        };
        match side.get(*file) {
            Some(text) => files.insert((*file).to_owned(), text.clone()),
            None => files.remove(*file),
        };
    }
    files
}

/// The result of git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Git {
    /// It is not on this machine.
    NotHere,
    /// It stopped: a person has to resolve these files.
    Stopped { conflicts: Vec<String> },
    /// It merged everything by itself.
    Merged(Files),
    /// It could not be tried.
    Failed(String),
}

/// Lets git merge: two clones of one bare repository, a commit in each, a push from the one, a pull by the other.
pub(super) fn git(directory: &Path, before: &Files, edited: [&Files; 2]) -> Git {
    let made = std::fs::create_dir(directory);
    match made.and_then(|()| is_here(directory)) {
        Ok(false) => Git::NotHere,
        Ok(true) => merge(directory, before, edited).unwrap_or_else(|error| Git::Failed(error.to_string())),
        Err(error) => Git::Failed(error.to_string()),
    }
}

fn is_here(base: &Path) -> io::Result<bool> {
    match run(base, base, &["--version"]) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        ran => ran.map(|output| output.status.success()),
    }
}

fn merge(base: &Path, before: &Files, edited: [&Files; 2]) -> io::Result<Git> {
    let clone = |machine: Machine| base.join(machine.name());
    let (shared, laptop, desktop) = (base.join("shared"), clone(Machine::Laptop), clone(Machine::Desktop));
    for directory in [&shared, &laptop] {
        std::fs::create_dir(directory)?;
    }
    let expect = |directory: &PathBuf, arguments: &[&str]| {
        let output = run(base, directory, arguments)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().next().unwrap_or("it did not say why").to_owned();
        Err(io::Error::other(format!("git {}: {first}", arguments[0])))
    };
    let commit = |directory: &PathBuf, files: &Files| {
        write(directory, files)?;
        expect(directory, &["add", "--all"])?;
        expect(directory, &["commit", "--quiet", "--message", "memory"])
    };
    expect(&shared, &["init", "--quiet", "--bare"])?;
    expect(&laptop, &["init", "--quiet"])?;
    expect(&laptop, &["remote", "add", "origin", "../shared"])?;
    commit(&laptop, before)?;
    expect(&laptop, &["push", "--quiet", "--set-upstream", "origin", "main"])?;
    expect(&base.to_owned(), &["clone", "--quiet", "shared", "desktop"])?;
    commit(&laptop, edited[0])?;
    commit(&desktop, edited[1])?;
    expect(&laptop, &["push", "--quiet"])?;
    if run(base, &desktop, &["pull", "--quiet", "--no-rebase", "--no-edit"])?.status.success() {
        return Ok(Git::Merged(read(&desktop)?));
    }
    let output = run(base, &desktop, &["diff", "--name-only", "--diff-filter=U"])?;
    let conflicts: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    match conflicts.is_empty() {
        true => Err(io::Error::other("git pull failed, and not for a conflict")),
        false => Ok(Git::Stopped { conflicts }),
    }
}

/// Runs git with nothing of the user's: no settings, no hooks, no questions.
fn run(base: &Path, directory: &Path, arguments: &[&str]) -> io::Result<Output> {
    let nothing = base.join("no-settings");
    let mut command = Command::new("git");
    command.env_clear();
    if let Some(path) = std::env::var_os(PATH) {
        command.env(PATH, path);
    }
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "demo").env(format!("GIT_{role}_EMAIL"), "demo@localhost");
    }
    command
        .env("HOME", base)
        .env("GIT_CONFIG_GLOBAL", &nothing)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TEMPLATE_DIR", &nothing)
        .env("GIT_TERMINAL_PROMPT", "0")
        .args(["-c", "init.defaultBranch=main", "-c", "core.autocrlf=false", "-c", "gc.auto=0"])
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
}

/// Makes the files of a directory what they are to be.
fn write(directory: &Path, files: &Files) -> io::Result<()> {
    for name in read(directory)?.keys().filter(|name| !files.contains_key(*name)) {
        std::fs::remove_file(directory.join(name))?;
    }
    for (name, text) in files {
        std::fs::write(directory.join(name), text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::script::tests::{before, edited, today};
    use super::super::script::{COMMITMENTS, FACT, INDEX, OLD, VOICE};
    use super::super::tally::{Tally, tally};
    use super::*;

    #[test]
    fn the_newest_file_replaces_what_the_other_machine_wrote() {
        let script = today();
        let [laptop, desktop] = Machine::BOTH.map(|machine| edited(&script, machine));
        let files = newest_file_wins(&before(&script), [&laptop, &desktop], &script.edits);
        // The laptop was the last to write the index, the desktop wrote the others after the laptop.
        assert_eq!(files[INDEX], laptop[INDEX]);
        for file in [VOICE, COMMITMENTS, FACT] {
            assert_eq!(files[file], desktop[file], "{file}");
        }
        assert!(!files.contains_key(OLD));
        let made = script.edits.len();
        // Lost: the desktop's entry, the laptop's note, delivery and port. Back: the entry that the desktop dropped.
        let expected = Tally { made, found: made - 5, lost: 4, came_back: 1 };
        assert_eq!(tally(&script.edits, &[&files]), expected);
    }

    #[test]
    fn git_merges_what_does_not_touch_and_stops_where_it_does() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = |text: &str| Files::from([("notes.md".to_owned(), text.to_owned())]);
        let base = file("1\n2\n3\n4\n5\n6\n7\n8\n");
        let top = file("one\n2\n3\n4\n5\n6\n7\n8\n");
        let end = file("1\n2\n3\n4\n5\n6\n7\neight\n");
        let clean = git(&directory.path().join("clean"), &base, [&top, &end]);
        if clean == Git::NotHere {
            return;
        }
        assert_eq!(clean, Git::Merged(file("one\n2\n3\n4\n5\n6\n7\neight\n")));
        let other = file("uno\n2\n3\n4\n5\n6\n7\n8\n");
        let stopped = git(&directory.path().join("stopped"), &base, [&top, &other]);
        assert_eq!(stopped, Git::Stopped { conflicts: vec!["notes.md".to_owned()] });
    }
}

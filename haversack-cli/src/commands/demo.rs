//! `haversack demo`: two machines, edits that stand against each other, a killed sync, and nothing lost.
//!
//! Everything that is told was done in this run by the program itself, as a user would call it, and is checked before it is
//! printed; what is not so ends the demo with the difference and exit code 1.

mod crash;
mod outcome;
mod rivals;
mod sandbox;
mod script;
mod tally;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use self::crash::Killed;
use self::outcome::{Outcome, SyncReports};
use self::rivals::Git;
use self::sandbox::Sandbox;
use self::script::{Change, Edit, Machine, Script};
use self::tally::{DemoRun, Fate, Files, Tally};
use crate::error::CommandError;
use crate::settings::shown;
use crate::ui::Ui;

/// The time to read a step.
const PAUSE: Duration = Duration::from_millis(1200);

/// The words of `status` about a killed sync.
const UNFINISHED: &str = "not finished";

/// See it work, in a sandbox
///
/// Two machines change the same memory. We kill one of them during its sync. Then both sync, and both have the same files with every edit.
/// The demo checks each line before it prints it, and exits with 1 if a line is not true. It does not touch your files and needs no network.
///
/// For comparison, the demo makes the same edits with "newest file wins" (the last writer of a file wins) and with git, if git is installed
/// (two clones, one commit in each, a push and a pull).
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Pause after each step, to present it
    #[arg(long, conflicts_with = "json")]
    slow: bool,

    /// Keep the sandbox, so that you can look around in it
    #[arg(long)]
    keep: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_demo(ui: &mut Ui, args: &DemoArgs) -> Result<ExitCode, CommandError> {
    let started = Instant::now();
    let sandbox = Sandbox::new()?;
    let script = script::script(jiff::Zoned::now().date());
    let mut teller =
        StepPrinter { ui, is_silent: args.json, pause: if args.slow { PAUSE } else { Duration::ZERO } };
    let place = shown(&sandbox.base);
    teller
        .tell(&[format!("Two machines, one shared folder, in {place}. Your own memory is not touched.")])?;

    let before = set_up(&sandbox, &script)?;
    let both = format!("Both hold the same {} files", before.len());
    teller.tell(&[String::new(), step(1, &both, "laptop = desktop")])?;

    let edited = edit(&sandbox, &script)?;
    teller.tell(&told_edits(&script))?;

    let killed = crash::kill_in_the_middle(&sandbox, Machine::Laptop)?;
    let status = look_after_kill(&sandbox, &killed, &edited)?;
    teller.tell(&[
        step(3, "The laptop starts a sync, and we kill it half-way", "kill -9"),
        format!("       haversack status       \"{status}\""),
    ])?;

    let end = sync_both(&sandbox)?;
    let course = DemoRun {
        before: &before,
        edited: [&edited[0], &edited[1]],
        after: [("laptop", &end.files[0]), ("desktop", &end.files[1])],
    };
    demand(&sandbox, tally::differences(&script.edits, &course))?;
    let outcomes = outcome::outcomes(&script, &end.files[0], &end.said);
    teller.tell(&told_end(&end, &outcomes))?;

    let tally = tally::tally(&script.edits, &[&end.files[0], &end.files[1]]);
    let newest = rivals::newest_file_wins(&before, course.edited, &script.edits);
    let git = rivals::git(&sandbox.base.join("git"), &before, course.edited);
    let rivals = Rivals { newest: tally::tally(&script.edits, &[&newest]), git };
    teller.tell(&told_figures(&tally, &rivals, &script))?;

    let seconds = started.elapsed().as_secs_f64();
    let home = quoted(&shown(&sandbox.home(Machine::Laptop)));
    let program = quoted(&program());
    let look = match args.keep {
        true => format!("The sandbox stays. Look around: {program} --home {home} log"),
        false => {
            sandbox.delete()?;
            "The sandbox is deleted. To look around in one: haversack demo --keep".to_owned()
        }
    };
    let mut last = vec![String::new(), format!("Done in {seconds:.1} s. {look}")];
    if args.keep {
        last.push(format!("In the browser: {program} --home {home} open"));
    }
    last.push("Next, for your own memory: haversack init, then look at it: haversack open".to_owned());
    teller.tell(&last)?;
    if args.json {
        let fates = script.edits.iter().map(|edit| edit_as_json(edit, &end.files, &newest));
        let untouched = tally::untouched(&course).len();
        ui.json(&json!({
            "sandbox": args.keep.then_some(place),
            "files": outcomes.iter().map(outcome_as_json).collect::<Vec<_>>(),
            "edits": fates.collect::<Vec<_>>(),
            "made": tally.made,
            "found_on_both": tally.found,
            "lost": tally.lost,
            "came_back": tally.came_back,
            "untouched_lines": untouched,
            "killed": { "signal": killed.signal, "status": status, "commits": [killed.commits_before, killed.commits_after] },
            "syncs": end.syncs,
            "syncs_with_nothing_to_do": end.idle_syncs,
            "newest_file_wins": { "lost": rivals.newest.lost, "came_back": rivals.newest.came_back },
            "git": git_as_json(&rivals.git, &script),
            "milliseconds": u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints steps, each with time to read it; prints nothing where only the figures are asked for.
struct StepPrinter<'a> {
    ui: &'a mut Ui,
    is_silent: bool,
    pause: Duration,
}

impl StepPrinter<'_> {
    fn tell(&mut self, lines: &[String]) -> Result<(), CommandError> {
        if self.is_silent {
            return Ok(());
        }
        for line in lines {
            self.ui.line(line.trim_end())?;
        }
        std::thread::sleep(self.pause);
        Ok(())
    }
}

fn step(number: usize, what: &str, outcome: &str) -> String {
    format!("  {number}  {what:<62}{outcome}")
}

/// Ends the demo if something is not as it must be.
fn demand(sandbox: &Sandbox, differences: Vec<String>) -> Result<(), CommandError> {
    if differences.is_empty() {
        return Ok(());
    }
    let message = format!("the demo found a difference\n  {}", differences.join("\n").replace('\n', "\n  "));
    let place = shown(&sandbox.base);
    Err(CommandError::user(message, format!("This is a fault of Haversack. Please report it, with {place}")))
}

/// Makes the files on one machine, and lets the other one join.
fn set_up(sandbox: &Sandbox, script: &Script) -> Result<Files, CommandError> {
    for (name, text) in &script.files {
        sandbox.run_with(Machine::Laptop, &["create", name], text)?;
    }
    let url = sandbox.url()?;
    sandbox.run(Machine::Laptop, &["remote", "add", &url, "--device", Machine::Laptop.name()])?;
    sandbox.run(Machine::Laptop, &["sync"])?;
    sandbox.run(Machine::Desktop, &["join", &url, "--device", Machine::Desktop.name(), "--yes"])?;
    let [laptop, desktop] = sandbox.files_of_both()?;
    let expected: Files =
        script.files.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect();
    let mut found = unlike("laptop", &laptop, &expected);
    found.extend(unlike("desktop", &desktop, &expected));
    demand(sandbox, found)?;
    Ok(expected)
}

/// Makes the edits, and returns what each machine has then.
fn edit(sandbox: &Sandbox, script: &Script) -> Result<[Files; 2], CommandError> {
    for Edit { machine, file, change, .. } in &script.edits {
        match change {
            Change::Replace { old, new } => sandbox.run(*machine, &["str-replace", file, old, new])?,
            Change::Append(text) => sandbox.run(*machine, &["append", file, text])?,
            Change::Delete => sandbox.run(*machine, &["delete", file])?,
        };
    }
    let sides = sandbox.files_of_both()?;
    let mut found = Vec::new();
    for (machine, files) in Machine::BOTH.iter().zip(&sides) {
        for edit in &script.edits {
            // The edit is on its own machine, and not on the other one yet.
            if (tally::fate(edit, files) == Fate::Found) != (edit.machine == *machine) {
                let (name, by) = (machine.name(), edit.machine.name());
                found.push(format!("{}, {} (by {by}) is not as it must be on {name}", edit.file, edit.words));
            }
        }
    }
    demand(sandbox, found)?;
    Ok(sides)
}

/// Checks what the kill left, and returns what `status` says about it.
fn look_after_kill(sandbox: &Sandbox, killed: &Killed, edited: &[Files; 2]) -> Result<String, CommandError> {
    let mut found = killed.differences();
    let files = sandbox.files_of_both()?;
    for ((machine, now), then) in Machine::BOTH.iter().zip(&files).zip(edited) {
        found.extend(unlike(machine.name(), now, then));
    }
    let status = sandbox.run(Machine::Laptop, &["status"])?.stdout;
    let line = status.lines().find(|line| line.contains(UNFINISHED)).map(|line| line.trim().to_owned());
    if line.is_none() {
        found.push(format!("status does not say that a sync was {UNFINISHED}:\n{status}"));
    }
    demand(sandbox, found)?;
    Ok(line.unwrap_or_default())
}

/// The final state of both machines.
struct End {
    files: [Files; 2],
    said: SyncReports,
    /// The number of syncs until then.
    syncs: usize,
    /// The number of further syncs, which had nothing to do.
    idle_syncs: usize,
}

/// Syncs both machines: the one that was not killed comes first, so that the other finds its place in the log taken.
fn sync_both(sandbox: &Sandbox) -> Result<End, CommandError> {
    use Machine::{Desktop, Laptop};
    let (needed, idle) = ([Desktop, Laptop, Desktop], [Laptop, Desktop]);
    let mut said = SyncReports::default();
    for machine in needed {
        let report = sandbox.run(machine, &["sync", "--json"])?.json()?;
        said.merged.extend(names(&report["merged"]));
        said.both_kept.extend(names(&report["both_kept"]));
    }
    let mut found = Vec::new();
    for machine in idle {
        let report = sandbox.run(machine, &["sync", "--json"])?.json()?;
        if ["sent", "received", "merged"].iter().any(|what| !names(&report[*what]).is_empty()) {
            found.push(format!("{} still had something to sync: {report}", machine.name()));
        }
    }
    let mut conflicts = BTreeSet::new();
    for machine in Machine::BOTH {
        let listed = sandbox.run(machine, &["conflicts", "--json"])?.json()?;
        for conflict in listed["conflicts"].as_array().into_iter().flatten() {
            let path = conflict["path"].as_str().unwrap_or_default().to_owned();
            let versions = conflict["passages"].as_array().map_or(0, Vec::len);
            conflicts.insert((machine, path.clone()));
            said.versions.insert(path, versions);
        }
    }
    let expected =
        said.both_kept.iter().flat_map(|file| Machine::BOTH.map(|machine| (machine, file.clone())));
    let expected: BTreeSet<(Machine, String)> = expected.collect();
    if conflicts != expected {
        found.push(format!("conflicts lists {conflicts:?}, and kept twice was {expected:?}"));
    }
    demand(sandbox, found)?;
    Ok(End { files: sandbox.files_of_both()?, said, syncs: needed.len(), idle_syncs: idle.len() })
}

fn names(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns which files of a machine are not as expected.
fn unlike(machine: &str, files: &Files, expected: &Files) -> Vec<String> {
    let names: BTreeSet<&String> = files.keys().chain(expected.keys()).collect();
    let differ = names.into_iter().filter(|name| files.get(*name) != expected.get(*name));
    differ.map(|name| format!("{name} on {machine} has the wrong content")).collect()
}

/// The results of other tools.
struct Rivals {
    newest: Tally,
    git: Git,
}

fn told_edits(script: &Script) -> Vec<String> {
    let mut lines = vec![step(2, "Both go offline and change the same memory", "")];
    for (file, _) in &script.files {
        let by = |machine: Machine| {
            let edits = script.edits.iter().filter(|edit| edit.file == *file && edit.machine == machine);
            let words: Vec<&str> = edits.map(|edit| edit.words).collect();
            if words.is_empty() {
                "–".to_owned()
            } else {
                format!("{}: {}", machine.name(), words.join(", "))
            }
        };
        lines.push(format!("       {file:<22} {:<31}  {}", by(Machine::Laptop), by(Machine::Desktop)));
    }
    lines
}

fn told_end(end: &End, outcomes: &[Outcome]) -> Vec<String> {
    let syncs = format!("{} syncs, {} more find nothing to do", end.syncs, end.idle_syncs);
    let mut lines = vec![step(4, "Both come back and sync", &syncs)];
    for Outcome { file, word, detail } in outcomes {
        lines.push(format!("       {file:<22} {word:<9}  {detail}"));
    }
    lines
}

fn told_figures(tally: &Tally, rivals: &Rivals, script: &Script) -> Vec<String> {
    let Tally { made, found, lost, came_back } = tally;
    let newest = rivals.newest;
    let git = match &rivals.git {
        Git::NotHere => String::new(),
        Git::Stopped { conflicts } => format!(" · with git: stops at {} conflicts", conflicts.len()),
        Git::Merged(files) => {
            let Tally { lost, came_back, .. } = tally::tally(&script.edits, &[files]);
            format!(" · with git: lost {lost}, came back {came_back}")
        }
        Git::Failed(why) => format!(" · with git: could not be tried ({why})"),
    };
    vec![
        String::new(),
        format!(
            "  edits made {made} · found on both machines {found} · lost {lost} · deleted but came back {came_back}"
        ),
        format!(
            "  the same edits with \"newest file wins\": lost {}, came back {}{git}",
            newest.lost, newest.came_back
        ),
    ]
}

/// Returns how this program was called, so that what is told can be typed.
fn program() -> String {
    let called = std::env::args().next().filter(|called| called.contains(std::path::MAIN_SEPARATOR));
    called.unwrap_or("haversack".to_owned())
}

/// Returns a word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:\\".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

fn edit_as_json(edit: &Edit, after: &[Files; 2], newest: &Files) -> Value {
    json!({
        "machine": edit.machine.name(),
        "path": edit.file,
        "what": edit.words,
        "on_laptop": tally::fate(edit, &after[0]).as_str(),
        "on_desktop": tally::fate(edit, &after[1]).as_str(),
        "newest_file_wins": tally::fate(edit, newest).as_str(),
    })
}

fn outcome_as_json(outcome: &Outcome) -> Value {
    json!({ "path": outcome.file, "outcome": outcome.word, "detail": outcome.detail })
}

fn git_as_json(git: &Git, script: &Script) -> Value {
    match git {
        Git::NotHere => Value::Null,
        Git::Stopped { conflicts } => json!({ "conflicts": conflicts }),
        Git::Merged(files) => {
            let Tally { lost, came_back, .. } = tally::tally(&script.edits, &[files]);
            json!({ "conflicts": [], "lost": lost, "came_back": came_back })
        }
        Git::Failed(why) => json!({ "problem": why }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fault;

    #[test]
    fn what_is_not_so_is_told_and_fails() {
        let sandbox = Sandbox { base: "/tmp/haversack-demo-0000".into() };
        assert!(demand(&sandbox, Vec::new()).is_ok());
        let differences = vec!["lost on desktop: MEMORY.md; it holds:\n# Memory\n".to_owned()];
        let error = demand(&sandbox, differences).expect_err("it is not so");
        // The exit code of this is 1.
        assert_eq!(error.fault, Fault::User);
        assert!(
            error.message.contains("\n  lost on desktop: MEMORY.md; it holds:\n  # Memory"),
            "{}",
            error.message
        );
        assert!(error.hint.is_some_and(|hint| hint.contains("/tmp/haversack-demo-0000")));
    }

    #[test]
    fn what_is_to_be_typed_is_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("/tmp/haversack-demo-0f3c/laptop"), "/tmp/haversack-demo-0f3c/laptop");
        assert_eq!(quoted("/my files/it's"), r"'/my files/it'\''s'");
    }

    #[test]
    fn what_git_does_is_told_as_it_is() {
        let script = script::tests::today();
        let files = script::tests::edited(&script, Machine::Laptop);
        let line = |git: Git| {
            let newest = Tally { made: 12, found: 7, lost: 4, came_back: 1 };
            let mut lines = told_figures(&newest, &Rivals { newest, git }, &script);
            lines.pop().unwrap_or_default()
        };
        let newest = "  the same edits with \"newest file wins\": lost 4, came back 1";
        assert_eq!(line(Git::NotHere), newest);
        let conflicts = vec!["a.md".to_owned(), "b.md".to_owned()];
        assert_eq!(line(Git::Stopped { conflicts }), format!("{newest} · with git: stops at 2 conflicts"));
        assert_eq!(line(Git::Merged(files)), format!("{newest} · with git: lost 5, came back 1"));
        let failed = Git::Failed("git init: no".to_owned());
        assert_eq!(line(failed), format!("{newest} · with git: could not be tried (git init: no)"));
    }
}

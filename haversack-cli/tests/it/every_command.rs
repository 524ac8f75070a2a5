//! Every command as people see it: its help, its good output and three mistakes, on terminals of 60 and 100 columns and in a pipe.
//!
//! 1. [`table::ROWS`] holds the lines that a user types, one row for each command.
//! 2. One shell per width runs all lines in turn on a machine of its own, so that a line may change memory.
//! 3. Outputs that are equal at several widths are shown once. Each command has a snapshot in `every_command/`.
//!
//! After a change of an output: `INSTA_UPDATE=always cargo test -p haversack-cli --test it every_command`, then read the difference.

mod scene;
mod table;

use std::collections::BTreeMap;
use std::fmt::Write;

use self::scene::{Scene, Width};
use self::table::{ROWS, Row};

/// The widest line that a snapshot may have at a width of 60, if it holds no command to copy.
const NARROW: usize = 60;

/// The beginnings of a cure, one of which the output of a mistake has.
const CURES: [&str; 6] = ["Hint: ", "tip: ", "Usage: ", "→ ", "For more information", "See the changes: "];

/// The lines whose output is a table, which fits a narrow terminal.
const TABLES: [&str; 6] = [
    "haversack ls",
    "haversack ls -R",
    "haversack devices",
    "haversack kinds",
    "haversack backends",
    "haversack project list",
];

/// Runs lines at every width; returns what each line showed, by width.
fn at_all_widths(lines: &[String], scene: fn() -> Scene) -> Vec<BTreeMap<Width, String>> {
    let outputs: Vec<(Width, Vec<String>)> = std::thread::scope(|threads| {
        let started = Width::ALL.map(|width| (width, threads.spawn(move || scene().run(width, lines))));
        started.into_iter().map(|(width, thread)| (width, thread.join().expect("it ran"))).collect()
    });
    let of_line = |line: usize| outputs.iter().map(|(width, shown)| (*width, shown[line].clone())).collect();
    (0..lines.len()).map(of_line).collect()
}

/// Returns a line with its outputs; widths with the same output share one.
fn shown(line: &str, outputs: &BTreeMap<Width, String>) -> String {
    let mut groups: Vec<(Vec<Width>, &String)> = Vec::new();
    for (width, output) in outputs {
        match groups.iter_mut().find(|(_, known)| *known == output) {
            Some((widths, _)) => widths.push(*width),
            None => groups.push((vec![*width], output)),
        }
    }
    let mut text = String::new();
    for (widths, output) in &groups {
        let names: Vec<&str> = widths.iter().map(|width| width.name()).collect();
        let at = if groups.len() == 1 { String::new() } else { format!("    ({})", names.join(", ")) };
        writeln!(text, "$ {line}{at}\n{output}").expect("a string");
    }
    text
}

fn assert_snapshots(texts: &BTreeMap<&str, String>) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("every_command");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, text) in texts {
            insta::assert_snapshot!(*name, text);
        }
    });
}

/// Returns the command of a line: its first word after `haversack`.
fn command_of(line: &str) -> &str {
    let (_, arguments) = line.split_once("haversack ").expect("a line of ours");
    let mut words = arguments.split(' ');
    let word = words.next().expect("a word");
    // An option for all commands has a value.
    if word.starts_with("--") { words.nth(1).expect("a command") } else { word }
}

#[test]
fn every_command_is_in_the_table() {
    let scene = Scene::empty();
    let page = scene.run(Width::Piped, &["haversack help --all".to_owned()]).remove(0);
    let commands =
        page.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let is_name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let mut listed: Vec<&str> =
        commands.filter(is_name).filter_map(|line| line.split_whitespace().next()).collect();
    listed.sort_unstable();
    let mut rows: Vec<&str> = ROWS.iter().map(|row| row.command).collect();
    rows.sort_unstable();
    assert_eq!(rows, listed);
    for Row { command, errors, good } in ROWS {
        errors.iter().chain(*good).for_each(|line| assert_eq!(command_of(line), *command, "{line}"));
        assert!(!good.is_empty(), "{command}");
    }
}

#[test]
fn every_help_is_as_expected() {
    let reference = include_str!("../../../docs/commands.md");
    let documented =
        reference.lines().filter_map(|line| line.trim_start_matches('#').strip_prefix(" haversack "));
    let hidden = ROWS.iter().map(|row| row.command);
    let mut commands: Vec<&str> = documented.chain(hidden).collect();
    commands.sort_unstable();
    commands.dedup();
    assert!(commands.contains(&"remote add") && commands.contains(&"hook"), "{commands:?}");
    let lines: Vec<String> = commands.iter().map(|command| format!("haversack {command} --help")).collect();
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    let names: Vec<String> = commands
        .iter()
        .map(|command| format!("help-{}", command_of(&format!("haversack {command}"))))
        .collect();
    for ((line, name), outputs) in lines.iter().zip(&names).zip(at_all_widths(&lines, Scene::empty)) {
        for (width, output) in &outputs {
            assert!(output.ends_with("exit 0\n"), "{line}: {output}");
            // The parser of the command line does not break the line of a usage, nor an address.
            let is_breakable = |line: &&str| !line.starts_with("Usage: ") && !line.contains("://");
            let lines = output.lines().filter(is_breakable);
            let longest = lines.map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(
                width.columns().is_none_or(|columns| longest <= columns),
                "{line} at {}: {output}",
                width.name()
            );
        }
        texts.entry(name).or_default().push_str(&shown(line, &outputs));
    }
    assert_snapshots(&texts);
}

#[test]
fn every_output_and_three_mistakes_are_as_expected() {
    let rows: Vec<(&Row, &&str)> =
        ROWS.iter().flat_map(|row| row.errors.iter().chain(row.good).map(move |line| (row, line))).collect();
    let lines: Vec<String> = rows.iter().map(|(_, line)| (**line).to_owned()).collect();
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    let mut faults = Vec::new();
    for ((row, line), outputs) in rows.iter().zip(at_all_widths(&lines, Scene::carried)) {
        for (width, output) in &outputs {
            if let Some(fault) = fault(row, line, *width, output) {
                faults.push(format!("{fault}: {line} ({})\n{output}", width.name()));
            }
        }
        texts.entry(row.command).or_default().push_str(&shown(line, &outputs));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_snapshots(&texts);
}

/// Returns the rule that an output breaks.
fn fault(row: &Row, line: &str, width: Width, output: &str) -> Option<&'static str> {
    let has = |text: &str| output.contains(text);
    let is_table = TABLES.contains(&line);
    // A hook always succeeds, because its agent must go on.
    let is_error = row.errors.contains(&line) && row.command != "hook";
    if has("panicked") || has("exit 255") {
        Some("a fault of ours")
    } else if has("invalid digit") {
        Some("a raw error")
    } else if has("claude_memory/") && row.command != "debug" {
        Some("a long name")
    } else if is_error && !output.ends_with("exit 1\n") && !output.ends_with("exit 2\n") {
        Some("a mistake succeeds")
    } else if is_error && !CURES.into_iter().any(has) {
        Some("no cure")
    } else if !is_error && !output.ends_with("exit 0\n") {
        Some("a good line fails")
    } else if is_table
        && width == Width::Narrow
        && !is_error
        && output.lines().any(|line| line.chars().count() > NARROW)
    {
        Some("too wide")
    } else {
        None
    }
}

//! Finds the fate of edits: looks for the traces of each, in any set of files. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::script::{Edit, Trace};

/// The files of a machine, by name.
pub(super) type Files = BTreeMap<String, String>;

/// The fate of one edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Found,
    /// Its text is missing.
    Lost,
    /// The text that it removed is there.
    CameBack,
    /// Its text is there more than once.
    Doubled,
}

impl Fate {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Fate::Found => "found",
            Fate::Lost => "lost",
            Fate::CameBack => "came back",
            Fate::Doubled => "doubled",
        }
    }
}

/// The number of edits with each fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) made: usize,
    /// Found wherever they were looked for.
    pub(super) found: usize,
    /// Lost somewhere.
    pub(super) lost: usize,
    /// Undone somewhere.
    pub(super) came_back: usize,
}

/// Counts what became of edits in all of several sets of files.
pub(super) fn tally(edits: &[Edit], copies: &[&Files]) -> Tally {
    let mut tally = Tally { made: edits.len(), ..Tally::default() };
    for edit in edits {
        let fates: Vec<Fate> = copies.iter().map(|files| fate(edit, files)).collect();
        tally.found += usize::from(fates.iter().all(|fate| *fate == Fate::Found));
        tally.lost += usize::from(fates.contains(&Fate::Lost));
        tally.came_back += usize::from(fates.contains(&Fate::CameBack));
    }
    tally
}

/// Returns what became of an edit in a set of files: the worst of what its traces tell.
pub(super) fn fate(edit: &Edit, files: &Files) -> Fate {
    let file = files.get(edit.file).map(String::as_str);
    let fates: Vec<Fate> = edit.traces.iter().map(|trace| of_trace(trace, file)).collect();
    let worst = [Fate::Lost, Fate::CameBack, Fate::Doubled].into_iter().find(|fate| fates.contains(fate));
    worst.unwrap_or(Fate::Found)
}

fn of_trace(trace: &Trace, file: Option<&str>) -> Fate {
    let text = file.unwrap_or_default();
    match trace {
        Trace::NoFile if file.is_some() => Fate::CameBack,
        Trace::NoFile => Fate::Found,
        Trace::NoLine(gone) if text.contains(gone) => Fate::CameBack,
        // If the file is missing, the line was not removed from it.
        Trace::NoLine(_) if file.is_none() => Fate::Lost,
        Trace::NoLine(_) => Fate::Found,
        Trace::Line(wanted) => once(text.lines().filter(|line| line.contains(wanted)).count()),
        Trace::Below { heading, text: wanted } => {
            let lines: Vec<Option<&str>> =
                headed(text).filter(|(_, line)| line.contains(wanted)).map(|(above, _)| above).collect();
            match lines[..] {
                [above] if above != Some(heading) => Fate::Lost,
                _ => once(lines.len()),
            }
        }
    }
}

fn once(count: usize) -> Fate {
    match count {
        0 => Fate::Lost,
        1 => Fate::Found,
        _ => Fate::Doubled,
    }
}

/// Returns every line of a text with the heading of the second level that it is below.
pub(super) fn headed(text: &str) -> impl Iterator<Item = (Option<&str>, &str)> {
    let mut above = None;
    text.lines().map(move |line| {
        if line.starts_with("## ") {
            above = Some(line);
        }
        (above, line)
    })
}

/// The files of two machines, before and after.
#[derive(Clone, Debug)]
pub(super) struct DemoRun<'a> {
    /// The files at the start.
    pub(super) before: &'a Files,
    /// Each machine's files after its edits.
    pub(super) edited: [&'a Files; 2],
    /// Each machine's files in the end, with its name.
    pub(super) after: [(&'a str, &'a Files); 2],
}

/// Returns the faults of the end: every edit and every unchanged line must be on both machines, with no additional
/// file, and no difference between the two.
pub(super) fn differences(edits: &[Edit], course: &DemoRun<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, files) in course.after {
        for edit in edits {
            let fate = fate(edit, files);
            if fate != Fate::Found {
                let Edit { machine, file, words, .. } = edit;
                let (by, fate) = (machine.name(), fate.as_str());
                let held = files.get(*file).map_or("there is no such file\n", String::as_str);
                found.push(format!("{fate} on {name}: {file}, {words} (by {by}); it holds:\n{held}"));
            }
        }
        for (file, line) in untouched(course) {
            if !files.get(file).is_some_and(|text| text.lines().any(|other| other == line)) {
                found.push(format!("lost on {name}: {file}, a line that no machine changed: {line}"));
            }
        }
        for file in files.keys().filter(|file| !course.before.contains_key(*file)) {
            found.push(format!("new on {name}: {file}, which no machine created"));
        }
    }
    let [(one, ours), (other, theirs)] = course.after;
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for file in names.into_iter().filter(|file| ours.get(*file) != theirs.get(*file)) {
        found.push(format!("{file} is not the same on {one} and {other}"));
    }
    found
}

/// Returns the lines that were there before and that neither machine took out.
pub(super) fn untouched<'a>(course: &DemoRun<'a>) -> Vec<(&'a str, &'a str)> {
    let mut lines = Vec::new();
    for (file, text) in course.before {
        let is_kept = |line: &&str| {
            let has =
                |files: &&Files| files.get(file).is_some_and(|text| text.lines().any(|other| other == *line));
            !line.trim().is_empty() && course.edited.iter().all(has)
        };
        lines.extend(text.lines().filter(is_kept).map(|line| (file.as_str(), line)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::script::tests::{before, edited, today};
    use super::super::script::{COMMITMENTS, FACT, INDEX, Machine, OLD, VOICE};
    use super::*;

    /// The end as it is to be.
    fn merged() -> Files {
        let script = today();
        let mut files = edited(&script, Machine::Desktop);
        files.remove(OLD);
        let mut edit = |file: &str, old: &str, new: &str| {
            let text = files[file].replacen(old, new, 1);
            assert_ne!(text, files[file], "{file}");
            files.insert(file.to_owned(), text);
        };
        let entries = "- [Deploys](project_lighthouse.md#deploys) — on which days
- [Reviews](project_lighthouse.md#reviews) — who looks first
- [Staging]";
        edit(INDEX, "- [Staging]", entries);
        edit(VOICE, "### LANDED\n", "### MISSED\n- Explained a joke that had landed.\n\n### LANDED\n");
        let wording = "- [c-3] Send the outage report to the team and to support";
        edit(COMMITMENTS, &format!("{wording}\n"), "");
        edit(COMMITMENTS, "## Delivered\n", &format!("## Delivered\n{wording} ✓\n"));
        edit(FACT, "port 5434.\n", "port 5434.\nStaging listens on port 5433.\n");
        files
    }

    fn differences_of(laptop: &Files, desktop: &Files) -> Vec<String> {
        let script = today();
        let (before, sides) = (before(&script), Machine::BOTH.map(|machine| edited(&script, machine)));
        let course = DemoRun {
            before: &before,
            edited: [&sides[0], &sides[1]],
            after: [("laptop", laptop), ("desktop", desktop)],
        };
        assert!(untouched(&course).len() > 20);
        differences(&script.edits, &course)
    }

    #[test]
    fn each_machine_shows_its_own_edits_and_not_the_others() {
        let script = today();
        for machine in Machine::BOTH {
            let files = edited(&script, machine);
            for edit in &script.edits {
                let is_found = fate(edit, &files) == Fate::Found;
                assert_eq!(is_found, edit.machine == machine, "{}: {}", edit.file, edit.words);
            }
        }
        let untouched = before(&script);
        assert_eq!(tally(&script.edits, &[&untouched]).found, 0);
    }

    #[test]
    fn a_good_end_is_good() {
        let files = merged();
        assert_eq!(differences_of(&files, &files), Vec::<String>::new());
        let script = today();
        let made = script.edits.len();
        let expected = Tally { made, found: made, lost: 0, came_back: 0 };
        assert_eq!(tally(&script.edits, &[&files, &files]), expected);
    }

    #[test]
    fn a_doctored_end_is_told_from_it() {
        let good = merged();
        let doctored = |file: &str, old: &str, new: &str| {
            let mut files = good.clone();
            let text = files[file].replacen(old, new, 1);
            assert_ne!(text, files[file], "{file}");
            files.insert(file.to_owned(), text);
            files
        };
        let with = |file: &str, text: &str| {
            let mut files = good.clone();
            files.insert(file.to_owned(), text.to_owned());
            files
        };
        let without = |file: &str| {
            let mut files = good.clone();
            files.remove(file);
            files
        };
        let cases = [
            (
                doctored(INDEX, "- [Deploys]", "- [Deplois]"),
                "lost on desktop: MEMORY.md, + Deploys (by laptop)",
            ),
            (
                doctored(INDEX, "# Memory\n", "# Memory\n- [O](project_old.md)\n"),
                "came back on desktop: MEMORY.md",
            ),
            (with(OLD, "x\n"), "came back on desktop: project_old.md, deletes it (by laptop)"),
            (doctored(VOICE, "## 2026-10-02", "## 2026-10-03"), "lost on desktop: voice_calibration.md"),
            (doctored(FACT, "Never on a Friday.", ""), "a line that no machine changed: Never on a Friday."),
            (
                doctored(FACT, "port 5433.", "port 5433.\nport 5433."),
                "doubled on desktop: project_lighthouse.md",
            ),
            (
                doctored(COMMITMENTS, "\n## Delivered\n", "## Delivered\n"),
                "not the same on laptop and desktop",
            ),
            (with("stray.md", "x\n"), "new on desktop: stray.md, which no machine created"),
            (without(COMMITMENTS), "there is no such file"),
        ];
        for (files, expected) in cases {
            let found = differences_of(&good, &files);
            assert!(found.iter().any(|difference| difference.contains(expected)), "{expected}: {found:#?}");
            let found = differences_of(&files, &files);
            let is_told = found.iter().any(|difference| difference.contains("on laptop"));
            assert!(is_told || expected.starts_with("not the same"), "{expected}: {found:#?}");
        }
    }
}

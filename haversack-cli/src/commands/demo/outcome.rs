//! Describes the result for each file, from the files themselves. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::script::{COMMITMENTS, Script, VOICE};
use super::tally::{Files, headed};

/// The reports of syncs about files.
#[derive(Clone, Debug, Default)]
pub(super) struct SyncReports {
    pub(super) merged: BTreeSet<String>,
    pub(super) both_kept: BTreeSet<String>,
    /// The number of versions of each conflict, by file.
    pub(super) versions: BTreeMap<String, usize>,
}

/// The result for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) file: &'static str,
    pub(super) word: &'static str,
    pub(super) detail: String,
}

/// Returns what became of each file that was there before.
pub(super) fn outcomes(script: &Script, after: &Files, said: &SyncReports) -> Vec<Outcome> {
    let outcome = |(file, old): &(&'static str, String)| {
        let Some(new) = after.get(*file) else {
            let detail = "and it stays deleted".to_owned();
            return Outcome { file, word: "deleted", detail };
        };
        let lines = || {
            let (added, removed) = (missing(new, old), missing(old, new));
            format!("{added} added, {removed} removed")
        };
        let (word, detail) = if said.both_kept.contains(*file) {
            let versions = said.versions.get(*file).copied().unwrap_or(0);
            ("kept both", format!("{versions} versions, you or your agent pick: haversack conflicts"))
        } else if *file == VOICE {
            (merged_or_taken(file, said), notes(new, &script.today))
        } else if *file == COMMITMENTS {
            (merged_or_taken(file, said), promises(old, new))
        } else {
            (merged_or_taken(file, said), lines())
        };
        Outcome { file, word, detail }
    };
    script.files.iter().map(outcome).collect()
}

fn merged_or_taken(file: &str, said: &SyncReports) -> &'static str {
    if said.merged.contains(file) { "merged" } else { "as one left it" }
}

/// Returns how many lines of a text another one does not have.
fn missing(text: &str, other: &str) -> usize {
    let there: BTreeSet<&str> = other.lines().collect();
    text.lines().filter(|line| !there.contains(line)).count()
}

/// Returns how many notes a day has, and under how many headings.
fn notes(text: &str, day: &str) -> String {
    let headings = text.lines().filter(|line| *line == day).count();
    let notes = headed(text).filter(|(above, line)| *above == Some(day) && line.starts_with("- ")).count();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!("{notes} note{} for today, under {headings} heading{}", plural(notes), plural(headings))
}

/// Returns which commitments are not what they were.
fn promises(old: &str, new: &str) -> String {
    let (old, new) = (commitments(old), commitments(new));
    let mut words = Vec::new();
    for (id, (heading, wording)) in &new {
        let state = heading.trim_start_matches("## ").to_lowercase();
        match old.get(id) {
            None => words.push(format!("{id} {state}")),
            Some((then, said)) => {
                let how = if said == wording { "" } else { " in its new words" };
                if then != heading || said != wording {
                    words.push(format!("{id} {state}{how}"));
                }
            }
        }
    }
    words.extend(old.keys().filter(|id| !new.contains_key(*id)).map(|id| format!("{id} is gone")));
    words.join(", ")
}

/// Returns the commitments of a text by their ids, each with the heading it is below and its wording.
fn commitments(text: &str) -> BTreeMap<&str, (&str, &str)> {
    let mut found = BTreeMap::new();
    for (above, line) in headed(text) {
        let rest = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        if let (Some(heading), Some((id, wording))) = (above, rest) {
            found.insert(id, (heading, wording.trim().trim_end_matches('✓').trim_end()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::script::{FACT, INDEX, OLD};
    use super::*;

    #[test]
    fn words_are_made_from_the_files() {
        let before = [
            (INDEX, "- a\n- b\n"),
            (VOICE, "## 1\n- x\n"),
            (
                COMMITMENTS,
                "## Open\n- [c-1] One\n- [c-2] Two\n- [c-3] Three\n## Delivered\n- 1: [c-0] Nil ✓\n",
            ),
            (FACT, "one\n"),
            (OLD, "old\n"),
        ];
        let before = before.map(|(name, text)| (name, text.to_owned())).to_vec();
        let after = [
            (INDEX, "- a\n- c\n- d\n"),
            (VOICE, "## 2\n- y\n\n### LANDED\n- z\n## 1\n- x\n"),
            (
                COMMITMENTS,
                "## Open\n- [c-2] Two\n- [c-4] Four\n## Delivered\n- [c-1] Oneself ✓\n- 1: [c-0] Nil ✓\n",
            ),
            (FACT, "two\nthree\n"),
        ];
        let after: Files = after.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        let said = SyncReports {
            merged: [INDEX, VOICE, FACT].map(str::to_owned).into(),
            both_kept: [FACT.to_owned()].into(),
            versions: BTreeMap::from([(FACT.to_owned(), 2)]),
        };
        let script = Script { files: before, edits: Vec::new(), today: "## 2".to_owned() };
        let outcomes = outcomes(&script, &after, &said);
        let shown: Vec<String> =
            outcomes.iter().map(|outcome| format!("{}: {}", outcome.word, outcome.detail)).collect();
        let expected = [
            "merged: 2 added, 1 removed",
            "merged: 2 notes for today, under 1 heading",
            "as one left it: c-1 delivered in its new words, c-4 open, c-3 is gone",
            "kept both: 2 versions, you or your agent pick: haversack conflicts",
            "deleted: and it stays deleted",
        ];
        assert_eq!(shown, expected);
    }
}

//! The five files of the demo, and what two machines do to them while they cannot reach each other.
//!
//! Each edit knows how to make itself and by which traces to find itself, in any set of files, merged by any
//! tool.

use jiff::civil::Date;

/// The index of the memory.
pub(super) const INDEX: &str = "MEMORY.md";

/// The dated log.
pub(super) const VOICE: &str = "voice_calibration.md";

/// The file of promises.
pub(super) const COMMITMENTS: &str = "commitments.md";

/// The fact that both change.
pub(super) const FACT: &str = "project_lighthouse.md";

/// The fact that one of them deletes.
pub(super) const OLD: &str = "project_old.md";

/// One of the two machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Machine {
    Laptop,
    Desktop,
}

impl Machine {
    pub(super) const BOTH: [Machine; 2] = [Machine::Laptop, Machine::Desktop];

    pub(super) fn name(self) -> &'static str {
        match self {
            Machine::Laptop => "laptop",
            Machine::Desktop => "desktop",
        }
    }
}

/// The files at the start, and the edits of each machine, in order.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) files: Vec<(&'static str, String)>,
    pub(super) edits: Vec<Edit>,
    /// The heading of today's notes.
    pub(super) today: String,
}

/// One edit, which is found again afterwards or not.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) machine: Machine,
    pub(super) file: &'static str,
    pub(super) change: Change,
    /// Its description, in a few words.
    pub(super) words: &'static str,
    /// By what it is known; all of it must be so.
    pub(super) traces: Vec<Trace>,
}

/// How an edit is made.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Replace { old: String, new: String },
    Append(String),
    Delete,
}

/// The trace of an edit.
#[derive(Clone, Debug)]
pub(super) enum Trace {
    /// One line of the file has the text.
    Line(String),
    /// One line of the file has the text, and the heading is above it.
    Below { heading: String, text: String },
    /// No line of the file has the text.
    NoLine(String),
    /// There is no such file.
    NoFile,
}

/// Returns the script as it goes on a day.
pub(super) fn script(today: Date) -> Script {
    let yesterday = today.yesterday().unwrap_or(today);
    let heading = format!("## {today}");
    Script { files: files(yesterday), edits: edits(&heading, yesterday), today: heading }
}

fn files(yesterday: Date) -> Vec<(&'static str, String)> {
    let index = "# Memory

- [Lighthouse](project_lighthouse.md) — what the project is, and where it runs
- [Old dashboard](project_old.md) — how it was built, before the rewrite
- [Voice](voice_calibration.md) — what landed, and what missed
- [Commitments](commitments.md) — what was promised, and what became of it
";
    let voice = format!(
        "---
name: Voice calibration
description: What landed and what missed, by day
type: voice_calibration
---

## {yesterday}

### MISSED
- Three paragraphs where a yes would have done.

### LANDED
- Said first what broke, then why.
"
    );
    let commitments = format!(
        "---
name: Commitments
description: What I promised, and what became of it
type: commitments
---

## Open
- [c-2] Write down how to roll back
- [c-3] Send the outage report to the team

## Delivered
- {yesterday}: [c-1] Rename the staging host ✓
"
    );
    let fact = "---
name: Lighthouse
description: What the project is, and where it runs
type: project
---

## Staging
Staging listens on port 5432.

## Deploys
Never on a Friday.

## Reviews
The on-call engineer reviews first.
";
    let old = "---
name: Old dashboard
description: How it was built, before the rewrite
type: project
---

The dashboard was one large template.
";
    vec![
        (INDEX, index.to_owned()),
        (VOICE, voice),
        (COMMITMENTS, commitments),
        (FACT, fact.to_owned()),
        (OLD, old.to_owned()),
    ]
}

fn edits(today: &str, yesterday: Date) -> Vec<Edit> {
    use Machine::{Desktop, Laptop};
    let entry = |machine, words, line: &str| Edit {
        machine,
        file: INDEX,
        change: Change::Append(format!("{line}\n")),
        words,
        traces: vec![Trace::Line(line.to_owned())],
    };
    let note = |machine, words, section: &str, line: &str| {
        let old = format!("## {yesterday}\n");
        let new = format!("{today}\n\n### {section}\n- {line}\n\n{old}");
        let trace = Trace::Below { heading: today.to_owned(), text: line.to_owned() };
        Edit { machine, file: VOICE, change: Change::Replace { old, new }, words, traces: vec![trace] }
    };
    let replace = |machine, file, words, old: &str, new: &str, traces| {
        let change = Change::Replace { old: old.to_owned(), new: new.to_owned() };
        Edit { machine, file, change, words, traces }
    };
    let below =
        |heading: &str, text: &str| Trace::Below { heading: heading.to_owned(), text: text.to_owned() };
    let line = |text: &str| Trace::Line(text.to_owned());
    let no_line = |text: &str| Trace::NoLine(text.to_owned());
    vec![
        entry(Desktop, "+ Staging", "- [Staging](project_lighthouse.md#staging) — which port it listens on"),
        replace(
            Desktop,
            INDEX,
            "− Old dashboard",
            "- [Old dashboard](project_old.md) — how it was built, before the rewrite\n",
            "",
            vec![no_line("project_old.md")],
        ),
        entry(Laptop, "+ Deploys", "- [Deploys](project_lighthouse.md#deploys) — on which days"),
        entry(Laptop, "+ Reviews", "- [Reviews](project_lighthouse.md#reviews) — who looks first"),
        note(Laptop, "+ a note for today", "MISSED", "Explained a joke that had landed."),
        note(Desktop, "+ another one for today", "LANDED", "One line, and the graph below it."),
        replace(
            Laptop,
            COMMITMENTS,
            "c-3 delivered",
            "- [c-3] Send the outage report to the team\n\n## Delivered\n",
            "\n## Delivered\n- [c-3] Send the outage report to the team ✓\n",
            vec![below("## Delivered", "[c-3]")],
        ),
        replace(
            Desktop,
            COMMITMENTS,
            "c-3 reworded",
            "- [c-3] Send the outage report to the team\n",
            "- [c-3] Send the outage report to the team and to support\n",
            vec![line("[c-3] Send the outage report to the team and to support")],
        ),
        replace(
            Desktop,
            COMMITMENTS,
            "+ c-4",
            "\n## Delivered\n",
            "- [c-4] Try the backup of the registry\n\n## Delivered\n",
            vec![below("## Open", "[c-4] Try the backup of the registry")],
        ),
        replace(
            Laptop,
            FACT,
            "\"port 5433\"",
            "port 5432",
            "port 5433",
            vec![line("port 5433"), no_line("port 5432")],
        ),
        replace(
            Desktop,
            FACT,
            "\"port 5434\"",
            "port 5432",
            "port 5434",
            vec![line("port 5434"), no_line("port 5432")],
        ),
        Edit {
            machine: Laptop,
            file: OLD,
            change: Change::Delete,
            words: "deletes it",
            traces: vec![Trace::NoFile],
        },
    ]
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use haversack::merge::Rule;
    use haversack::store::Locator;
    use jiff::civil::date;

    use super::*;
    use crate::commands::demo::tally::Files;

    pub(crate) fn today() -> Script {
        script(date(2026, 10, 2))
    }

    pub(crate) fn before(script: &Script) -> Files {
        script.files.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect()
    }

    /// Returns what a machine has once it made its edits.
    pub(crate) fn edited(script: &Script, machine: Machine) -> Files {
        let mut files = before(script);
        for edit in script.edits.iter().filter(|edit| edit.machine == machine) {
            match &edit.change {
                Change::Delete => drop(files.remove(edit.file)),
                Change::Append(text) => files.entry(edit.file.to_owned()).or_default().push_str(text),
                Change::Replace { old, new } => {
                    let text = &files[edit.file];
                    assert_eq!(text.matches(old).count(), 1, "{}: {old}", edit.file);
                    files.insert(edit.file.to_owned(), text.replace(old, new));
                }
            }
        }
        files
    }

    #[test]
    fn the_files_merge_by_different_rules_and_each_is_edited() {
        let script = today();
        let rules: BTreeMap<&str, &str> = script
            .files
            .iter()
            .map(|(name, text)| {
                let locator = Locator::parse(name).expect("a plain name");
                (*name, Rule::of(&locator, [text.as_bytes()]).name())
            })
            .collect();
        let expected = [
            (INDEX, "index"),
            (VOICE, "prepend"),
            (COMMITMENTS, "commitments"),
            (FACT, "prose"),
            (OLD, "prose"),
        ];
        assert_eq!(rules, BTreeMap::from(expected));
        for (name, _) in &script.files {
            let by = script.edits.iter().filter(|edit| edit.file == *name).map(|edit| edit.machine);
            let mut by: Vec<Machine> = by.collect();
            by.sort();
            by.dedup();
            let both = &Machine::BOTH[..];
            assert_eq!(by, if *name == OLD { &both[..1] } else { both }, "{name}");
        }
    }
}

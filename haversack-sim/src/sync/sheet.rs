//! The files that users work on: one for every way in which a file merges, and how a user writes into each.
//!
//! A user leaves the file in the form of its kind. A user adds, rewords or removes whole items: an entry, a
//! paragraph, an event, a field; a user who rewords or removes one has read all of it.

mod data;
mod text;

use std::collections::BTreeSet;

use self::text::Text;
use super::unit::{key_in, keys, units_of};
use crate::random::Random;

/// A file that users work on.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) path: &'static str,
    pub(crate) reading: Reading,
    form: Form,
}

/// How the oracle reads what is in a file at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Added units are there, removed units are not.
    Merged,
    /// The furthest mark is there.
    Furthest,
    /// Added units are there, in the file or in a copy beside it.
    Whole,
}

/// How a user writes into a file.
#[derive(Debug)]
enum Form {
    Text(Text),
    /// A list of nodes in JSON.
    Json,
    /// One mark, and nothing else.
    Mark,
}

/// The wanted edit of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Add,
    Reword,
    Remove,
    /// To put an item under another heading.
    Move,
}

/// The new content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) text: String,
    /// The units that are gone.
    pub(crate) removed: BTreeSet<String>,
    /// True if the user's new unit is in it.
    pub(crate) is_added: bool,
    /// The thing that the new unit describes, if it has a name: other units may describe it too.
    pub(crate) about: Option<String>,
}

impl Sheet {
    /// Returns the names that the file can have: its own, and the one that differs from it by case.
    pub(crate) fn spellings(&self) -> impl Iterator<Item = String> {
        std::iter::once(self.path.to_owned()).chain(other_spelling(self.path))
    }

    /// Returns true if users only add to it.
    pub(crate) fn only_grows(&self) -> bool {
        self.path.starts_with("interactions/")
    }

    /// Returns what a file becomes when a user does something to it; a wish that cannot be fulfilled becomes an addition.
    pub(crate) fn edit(
        &self,
        wish: Wish,
        old: Option<&str>,
        unit: &str,
        random: &mut Random,
    ) -> Option<Draft> {
        let before = old.unwrap_or_default();
        let text = match &self.form {
            Form::Text(form) => form.edit(wish, before, unit, random),
            Form::Json => data::edit(wish, before, unit, random)?,
            Form::Mark => format!("{unit}\n"),
        };
        let (had, has) = (units_of(before), units_of(&text));
        let removed = had.difference(&has).cloned().collect();
        let (is_added, about) = (has.contains(unit), self.about(&text, unit));
        (text != before).then_some(Draft { text, removed, is_added, about })
    }

    /// Returns what a unit is said about.
    fn about(&self, text: &str, unit: &str) -> Option<String> {
        let (above, _) = text.split_once(unit)?;
        let about = match &self.form {
            Form::Text(_) => {
                let line = above.rsplit('\n').next().unwrap_or_default();
                key_in(line).or_else(|| line.starts_with(text::DESCRIPTION).then_some(text::DESCRIPTION))
            }
            Form::Json => keys(above).last(),
            Form::Mark => None,
        };
        about.map(str::to_owned)
    }
}

/// Returns the other spelling of a file's name: `NOTES.md` for `notes.md`, and the other way round; `None` if only digits could be spelled
/// otherwise. Directories and the extension stay as they are.
pub(crate) fn other_spelling(path: &str) -> Option<String> {
    let at = path.rfind('/').map_or(0, |slash| slash + 1);
    let end = path[at..].find('.').map_or(path.len(), |dot| at + dot);
    let stem = &path[at..end];
    let upper = stem.to_ascii_uppercase();
    let other = if stem == upper { stem.to_ascii_lowercase() } else { upper };
    (other != stem).then(|| format!("{}{other}{}", &path[..at], &path[end..]))
}

/// Returns the path of the sheet that a path is a spelling of; any other path as it is.
pub(crate) fn path_of_sheet(path: &str) -> String {
    let found = SHEETS.iter().find(|sheet| sheet.path.eq_ignore_ascii_case(path));
    found.map_or(path, |sheet| sheet.path).to_owned()
}

/// The number of files of one schedule: few, so that users meet.
pub(crate) const FILES: usize = 4;

/// The files of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sheets {
    numbers: [usize; FILES],
    /// True if users move items: moved items are judged less strictly.
    pub(crate) are_rearranged: bool,
}

impl Sheets {
    /// Returns some files, no two of them the same.
    pub(crate) fn any(random: &mut Random) -> Sheets {
        // The last sheet takes turns with the log, which it resembles. So seeds that were kept mean what they did, but for those few.
        let mut all: Vec<usize> = (0..PLAIN_SHEETS - 1).collect();
        let mut numbers = [(); FILES].map(|()| all.swap_remove(random.between(0, all.len() - 1)));
        for (turn, number) in numbers.iter_mut().enumerate() {
            if SHEETS[*number].path == LOG && turn % 2 == 1 {
                *number = PLAIN_SHEETS - 1;
            }
        }
        Sheets { numbers, are_rearranged: random.between(1, 4) == 1 }
    }

    /// Returns the same with all files but one below the prefixes of bound directories.
    pub(crate) fn in_directories(self, random: &mut Random) -> Sheets {
        let mut below: Vec<usize> = (PLAIN_SHEETS..AGED_SHEETS).collect();
        let mut numbers = self.numbers;
        for number in &mut numbers[1..] {
            *number = below.swap_remove(random.between(0, below.len() - 1));
        }
        Sheets { numbers, ..self }
    }

    /// Returns the files of which tidies make roll-ups, and a roll-up.
    pub(crate) fn aged(self) -> Sheets {
        Sheets { numbers: std::array::from_fn(|at| AGED_SHEETS + at), are_rearranged: false }
    }

    /// Returns the same with fewer files, so that users meet more often.
    pub(crate) fn crowded(self, files: usize) -> Sheets {
        let numbers = std::array::from_fn(|at| self.numbers[at % files.max(1)]);
        Sheets { numbers, ..self }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Sheet> {
        self.numbers.into_iter().map(|number| &SHEETS[number])
    }

    /// Returns one of them.
    pub(crate) fn pick(&self, random: &mut Random) -> &'static Sheet {
        &SHEETS[self.numbers[random.between(0, FILES - 1)]]
    }
}

/// Returns how the file at a path is read.
pub(crate) fn reading(path: &str) -> Reading {
    SHEETS.iter().find(|sheet| sheet.path == path).map_or(Reading::Merged, |sheet| sheet.reading)
}

const fn sheet(path: &'static str, text: Text) -> Sheet {
    Sheet { path, reading: Reading::Merged, form: Form::Text(text) }
}

/// The number of sheets that lie anywhere; the sheets after them lie below the prefixes of bound directories.
const PLAIN_SHEETS: usize = 19;

/// The number of sheets before those that age.
const AGED_SHEETS: usize = 23;

/// The file of the rule that the last plain sheet resembles.
const LOG: &str = "self_observations.md";

/// Every file.
const SHEETS: [Sheet; AGED_SHEETS + FILES] = [
    sheet("notes.md", Text::lines(|_, unit| format!("line {unit}"))),
    sheet("deep/er.md", Text::lines(|_, unit| format!("- {unit}"))),
    sheet("events.jsonl", Text::events(|key, unit| format!("{{\"id\":\"{key}\",\"text\":\"{unit}\"}}"))),
    sheet("MEMORY.md", Text::under("# Memory\n", |key, unit| format!("- [{key}]({key}.md) — {unit}"))),
    sheet("user_role.md", Text::below_fields("user", "", |_, unit| format!("Keeps the {unit} in order."))),
    sheet(
        LOG,
        Text::by_day("self_observations", &["## 2026-11-03", "## 2026-11-02"], |_, unit| {
            format!("- saw {unit}")
        }),
    ),
    sheet(
        "commitments.md",
        Text::below_fields("commitments", "\n## Open\n\n## Delivered\n", |key, unit| {
            format!("- [ ] c-{key}: mend {unit}")
        }),
    ),
    sheet(
        "callbacks.md",
        Text::below_fields("callbacks", "\n## Active\n\n## Retired\n", |key, unit| {
            format!("- **{key}** — {unit}")
        }),
    ),
    sheet(
        "carry_forward.md",
        Text::below_fields("carry_forward", "\n## Pending\n\n## Consumed\n", |_, unit| {
            format!("- ask about {unit}")
        }),
    ),
    sheet(
        "philosophical_threads.md",
        Text::by_day("philosophical_threads", &["## Light", "## Fog"], |_, unit| format!("What of {unit}?")),
    ),
    sheet(
        "session_digest_2026-11-16.md",
        Text::by_day("session_digest", &["## Arcs", "## Left open"], |_, unit| format!("- {unit} was met")),
    ),
    sheet(
        "summaries/2026-11-16.md",
        Text::under("# 2026-11-16\n\n## Needs you (0)\n\n## Handled (0)\n", |_, unit| {
            format!("- answer {unit}")
        }),
    ),
    sheet(
        "compacted/2026-W46.md",
        Text::by_day("weekly_digest", &["## 2026-11-09", "## 2026-11-10"], |_, unit| format!("On {unit}.")),
    ),
    Sheet { path: "_system/registry.json", reading: Reading::Merged, form: Form::Json },
    sheet("_system/ontology.yaml", Text::lines(|key, unit| format!("{key}: {unit}"))),
    sheet("state/watched_chats", Text::lines(|_, unit| unit.to_owned())),
    Sheet { path: "state/mail_cursor", reading: Reading::Furthest, form: Form::Mark },
    Sheet {
        path: "sketch.bin",
        reading: Reading::Whole,
        form: Form::Text(Text::under("\0sketch\n", |_, unit| unit.to_owned())),
    },
    sheet(
        "voice_calibration.md",
        Text::by_day_on_top(
            "voice_calibration",
            &["## 2026-11-03", "## 2026-11-02", "## 2026-11-04"],
            |_, unit| format!("- said {unit}"),
        ),
    ),
    sheet("lighthouse/notes.md", Text::lines(|_, unit| format!("line {unit}"))),
    sheet(
        "lighthouse/events.jsonl",
        Text::events(|key, unit| format!("{{\"id\":\"{key}\",\"text\":\"{unit}\"}}")),
    ),
    sheet("lighthouse/lamp/notes.md", Text::lines(|_, unit| format!("- {unit}"))),
    sheet(
        "lighthouse/lamp/MEMORY.md",
        Text::under("# Memory\n", |key, unit| format!("- [{key}]({key}.md) — {unit}")),
    ),
    sheet(
        "interactions/2026-11-04.jsonl",
        Text::events(|key, unit| {
            // An event's id is known by its first 13 digits.
            let id = key.replace(['k', 'd'], "-");
            format!(
                "{{\"id\":\"{id}-0000-0000\",\"ts\":\"2026-11-04T10:00:00Z\",\"summary\":\"met {unit}\"}}"
            )
        }),
    ),
    sheet(
        "interactions/2026-11-05.jsonl",
        Text::events(|key, unit| {
            format!("{{\"id\":\"{key}\",\"sender\":\"s\",\"summary\":\"{unit} said\"}}")
        }),
    ),
    sheet(
        "session_digest_2026-11-06.md",
        Text::in_sections(&["## Arcs", "## Left open"], |_, unit| format!("- {unit} was met")),
    ),
    sheet(
        "compacted/2026-W45.md",
        Text::in_sections(&["## 2026-11-04", "## 2026-11-05"], |_, unit| format!("On {unit}.")),
    ),
];

#[cfg(test)]
mod tests {
    use haversack::merge::Rule;
    use haversack_store::Locator;

    use super::*;
    use crate::sync::unit::unit;

    #[test]
    fn spellings_lead_back_to_their_sheet() {
        for (path, other) in [
            ("notes.md", Some("NOTES.md")),
            ("deep/er.md", Some("deep/ER.md")),
            ("compacted/2026-W46.md", Some("compacted/2026-w46.md")),
            ("state/mail_cursor", Some("state/MAIL_CURSOR")),
            ("summaries/2026-11-16.md", None),
        ] {
            assert_eq!(other_spelling(path).as_deref(), other);
            assert!(other.is_none_or(|other| other_spelling(other).as_deref() == Some(path)), "{path}");
            assert!(other.is_none_or(|other| path_of_sheet(other) == path), "{path}");
        }
        assert_eq!(path_of_sheet("other.md"), "other.md");
    }

    /// Every rule has a file, and whatever users do to one, it stays a file of that rule with what they meant in it.
    #[test]
    fn files_stay_what_they_are() {
        let mut rules = BTreeSet::new();
        for sheet in &SHEETS {
            let locator = Locator::parse(sheet.path).expect("a plain name");
            let mut random = Random::new(7);
            let mut text: Option<String> = None;
            for number in 0..200 {
                let wish = [Wish::Add, Wish::Reword, Wish::Remove, Wish::Move][random.between(0, 3)];
                let new = unit(number, 0);
                let before = text.clone().unwrap_or_default();
                let Some(draft) = sheet.edit(wish, text.as_deref(), &new, &mut random) else { continue };
                let mut expected = units_of(&before);
                expected.retain(|unit| !draft.removed.contains(unit));
                expected.extend(draft.is_added.then_some(new));
                assert_eq!(units_of(&draft.text), expected, "{}: {}", sheet.path, draft.text);
                let rule = Rule::of(&locator, [before.as_bytes(), draft.text.as_bytes()]);
                let was_empty = before.trim().is_empty();
                if !was_empty {
                    rules.insert(rule.name());
                    assert_eq!(
                        Rule::of(&locator, [draft.text.as_bytes()]),
                        rule,
                        "{}: {}",
                        sheet.path,
                        draft.text
                    );
                }
                text = Some(draft.text);
            }
        }
        let all: BTreeSet<&str> = Rule::ALL.iter().map(|(name, _)| *name).collect();
        assert_eq!(rules, all);
    }
}

//! Finds what in the memory has become wrong by itself: links, dates, and citations of code.
//!
//! Citations are checked from inside the checkout of their project. The first check writes down a hash of the cited lines; a later check tells when they are
//! others. Editing the memory, or renewing its field `verified`, makes the next check write them down again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use haversack::day::Day;
use haversack::document::Document;
use haversack::ids::ContentHash;
use haversack::stale::{citations, cited, links};
use haversack::store::{BackendExt, Locator, block_on};
use haversack::tidy::is_deprecated;
use serde::{Deserialize, Serialize};

use crate::error::CommandError;
use crate::home::store::open_to_look;
use crate::projects::border;
use crate::records::{self, Weight};
use crate::settings::Settings;

/// The largest source file that is compared, in bytes.
const MAX_SOURCE_BYTES: u64 = 8 * 1024 * 1024;

/// The values of `status` that say that a memory is out of date.
const OVER: [&str; 5] = ["deprecated", "superseded", "obsolete", "outdated", "archived"];

/// Something that is out of date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StaleFinding {
    pub(crate) locator: Locator,
    pub(crate) what: String,
}

/// The result of checking a citation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    /// The hash of the memory that cites.
    memory: String,
    /// The hash of the cited lines.
    lines: String,
    /// The day on which they were written down.
    day: String,
}

type SeenCitations = BTreeMap<String, Seen>;

fn place(settings: &Settings) -> PathBuf {
    settings.state().join("citations.json")
}

/// Looks at every memory below a place.
pub(crate) fn stale(settings: &Settings, below: &Locator) -> Result<Vec<StaleFinding>, CommandError> {
    let memory = open_to_look(settings)?;
    let today = settings.today();
    let names: BTreeSet<Locator> = block_on(memory.files().list_all(&Locator::root()))?.into_iter().collect();
    let project = border::here(settings);
    let checkout = project.as_ref().and_then(|project| Some((project.prefix()?, project.checkout.clone())));
    let mut seen: SeenCitations =
        records::read(&place(settings), "Remove it: the next check writes it again")?.unwrap_or_default();
    let before = seen.clone();
    let mut findings = Vec::new();
    let mut linked: BTreeMap<Locator, BTreeSet<Locator>> = BTreeMap::new();
    let mut bodies: BTreeMap<(Locator, String), (Locator, String)> = BTreeMap::new();
    for locator in names.iter().filter(|name| name.name().ends_with(".md") && name.is_within(below)) {
        let bytes = block_on(memory.files().read(locator))?.bytes;
        let Ok(text) = std::str::from_utf8(&bytes) else { continue };
        let mut found = |what: String| findings.push(StaleFinding { locator: locator.clone(), what });
        let is_index = locator.name() == "MEMORY.md";
        let targets: BTreeSet<Locator> = links(locator, text).into_iter().collect();
        for target in targets.iter().filter(|target| !names.contains(*target)) {
            found(match is_index {
                true => format!("its line links to {target}, which does not exist"),
                false => format!("it links to {target}, which does not exist"),
            });
        }
        if is_index {
            drop(linked.insert(locator.parent().unwrap_or_else(Locator::root), targets));
        }
        for what in out_of_date(locator, text, &names, today) {
            found(what);
        }
        let document = Document::read(text);
        if let Some(name) = document.text("name").filter(|_| !is_deprecated(text, today)) {
            let key = (locator.parent().unwrap_or_else(Locator::root), name.trim().to_lowercase());
            let body = document.body.trim();
            match bodies.get(&key) {
                Some((other, there)) if there != body => {
                    found(format!("it is named \"{}\" like {other}, and says something else", name.trim()));
                }
                Some(_) => {}
                None => drop(bodies.insert(key, (locator.clone(), body.to_owned()))),
            }
        }
        if let Some((_, root)) = checkout.as_ref().filter(|(prefix, _)| locator.is_within(prefix)) {
            let hash = ContentHash::of(&bytes).to_string();
            check_citations(locator, text, &hash, root, &mut seen, &today.to_string())
                .into_iter()
                .for_each(found);
        }
    }
    for (directory, targets) in linked {
        let is_memory = |name: &&Locator| {
            name.parent().as_ref() == Some(&directory) && haversack::remember::is_indexed(name)
        };
        for orphan in names.iter().filter(is_memory).filter(|name| !targets.contains(*name)) {
            let what = "no line of the index beside it links to it".to_owned();
            findings.push(StaleFinding { locator: orphan.clone(), what });
        }
    }
    if seen != before && settings.state().is_dir() {
        records::write(&place(settings), &seen, Weight::Light)?;
    }
    findings.sort_by(|one, other| (&one.locator, &one.what).cmp(&(&other.locator, &other.what)));
    Ok(findings)
}

/// The fields of a memory that say that it is out of date.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgeFields {
    superseded_by: Option<String>,
    status: Option<String>,
    stale_after: Option<String>,
}

/// Why a memory is out of date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outdated<'a> {
    /// The memory with this name replaces it.
    SupersededBy(&'a str),
    /// Its status says so.
    Status(&'a str),
    /// It was to be looked at after this day.
    StaleAfter(Day),
}

impl AgeFields {
    /// Reads the fields of a text.
    pub(crate) fn of(text: &str) -> AgeFields {
        let document = Document::read(text);
        let field = |name: &str| {
            document.text(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        AgeFields {
            superseded_by: field("superseded_by"),
            status: field("status"),
            stale_after: field("stale_after"),
        }
    }

    /// Returns why the memory is out of date; `None` if it is not.
    pub(crate) fn outdated(&self, today: Day) -> Option<Outdated<'_>> {
        let is_over = |status: &&String| OVER.iter().any(|over| status.eq_ignore_ascii_case(over));
        if let Some(by) = &self.superseded_by {
            return Some(Outdated::SupersededBy(by));
        }
        if let Some(status) = self.status.as_ref().filter(is_over) {
            return Some(Outdated::Status(status));
        }
        let stale_after: Option<Day> = self.stale_after.as_ref().and_then(|day| day.get(..10)?.parse().ok());
        stale_after.filter(|day| today > *day).map(Outdated::StaleAfter)
    }
}

/// Returns what a memory's own fields say about its age.
fn out_of_date(locator: &Locator, text: &str, names: &BTreeSet<Locator>, today: Day) -> Vec<String> {
    let document = Document::read(text);
    let mut found = Vec::new();
    if let Some(by) = document.text("superseded_by").filter(|by| !by.is_empty()) {
        let directory = locator.parent().unwrap_or_else(Locator::root);
        let is_there =
            [directory.child(&by), Locator::parse(&by)].iter().flatten().any(|place| names.contains(place));
        found.push(match is_there {
            true => format!("it is superseded by {by}"),
            false => format!("it is superseded by {by}, which does not exist"),
        });
    } else if is_deprecated(text, today) {
        let why = document.text("stale_after").map_or("its status is deprecated".to_owned(), |day| {
            format!("it was to be looked at after {day}")
        });
        found.push(why);
    }
    found
}

fn check_citations(
    locator: &Locator,
    text: &str,
    hash: &str,
    root: &Path,
    seen: &mut SeenCitations,
    today: &str,
) -> Vec<String> {
    let mut found = Vec::new();
    for citation in citations(text) {
        let file = root.join(&citation.path);
        let is_small =
            std::fs::metadata(&file).is_ok_and(|info| info.is_file() && info.len() <= MAX_SOURCE_BYTES);
        let Some(source) = is_small.then(|| std::fs::read_to_string(&file).ok()).flatten() else {
            found.push(format!("it cites {citation}, and the file does not exist"));
            continue;
        };
        let Some(lines) = cited(&citation, &source) else {
            found.push(format!("it cites {citation}, and the file is shorter"));
            continue;
        };
        let lines = ContentHash::of(lines.as_bytes()).to_string();
        let key = format!("{locator} {citation}");
        match seen.get(&key).filter(|seen| seen.memory == hash) {
            Some(seen) if seen.lines != lines => {
                found.push(format!("it cites {citation}, and those lines have changed since {}", seen.day));
            }
            Some(_) => {}
            None => drop(seen.insert(key, Seen { memory: hash.to_owned(), lines, day: today.to_owned() })),
        }
    }
    found
}

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
use haversack::tidy::{AgeFields, Outdated};
use serde::{Deserialize, Serialize};

use super::memories::group_of;
use crate::error::CommandError;
use crate::home::store::open_to_look;
use crate::projects::border;
use crate::records::{self, Weight};
use crate::settings::Settings;

/// The largest source file that is compared, in bytes.
const MAX_SOURCE_BYTES: u64 = 8 * 1024 * 1024;

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
    let mut bodies: BTreeMap<(String, String), (Locator, String)> = BTreeMap::new();
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
        let document = Document::read(text);
        let age = AgeFields::in_document(&document);
        if let Some(what) = out_of_date(locator, &age, &names, today) {
            found(what);
        }
        if let Some(name) = document.text("name").filter(|_| age.outdated(today).is_none()) {
            let key = (group_of(locator).to_owned(), name.trim().to_lowercase());
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

/// Returns what a memory's own fields say about its age. An archived memory is kept on purpose.
fn out_of_date(locator: &Locator, age: &AgeFields, names: &BTreeSet<Locator>, today: Day) -> Option<String> {
    let outdated = age.outdated(today).filter(|_| !age.is_archived())?;
    Some(match outdated {
        Outdated::SupersededBy(by) => {
            let directory = locator.parent().unwrap_or_else(Locator::root);
            let places = [directory.child(by), Locator::parse(by)];
            let is_there = places.iter().flatten().any(|place| names.contains(place));
            let missing = if is_there { "" } else { ", which does not exist" };
            format!("it is superseded by {by}{missing}")
        }
        Outdated::Status(status) => format!("its status is {}", status.to_lowercase()),
        Outdated::StaleAfter(day) => format!("it was to be looked at after {day}"),
    })
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
        let key = format!("{locator} {citation}");
        let file = root.join(&citation.path);
        let is_small =
            std::fs::metadata(&file).is_ok_and(|info| info.is_file() && info.len() <= MAX_SOURCE_BYTES);
        let Some(source) = is_small.then(|| std::fs::read_to_string(&file).ok()).flatten() else {
            if citation.may_be_address() && !seen.contains_key(&key) {
                continue;
            }
            found.push(format!("it cites {citation}, and the file does not exist"));
            continue;
        };
        let Some(lines) = cited(&citation, &source) else {
            found.push(format!("it cites {citation}, and the file is shorter"));
            continue;
        };
        let lines = ContentHash::of(lines.as_bytes()).to_string();
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

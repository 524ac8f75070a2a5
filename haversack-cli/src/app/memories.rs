//! The list of all memories: project, kind, title, size, age, links.
//!
//! [`Catalogue::look_again`] scans the files and reads only those that changed since the last look, so a process that looks often reads little.
//! [`Catalogue::store`] leaves the list in `index/page.json` for the next process. It is derived: losing it costs time alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use futures_lite::StreamExt;
use haversack::conflict;
use haversack::day::Day;
use haversack::document::Document;
use haversack::graph::links::WrittenLinks;
use haversack::ids::{ContentHash, Timestamp};
use haversack::kind::Kinds;
use haversack::store::{EntryKind, ErrorKind, Fingerprint, Info, Locator, block_on};
use haversack::tidy::{AgeFields, Outdated};
use serde::{Deserialize, Serialize};

use crate::error::CommandError;
use crate::home::kinds;
use crate::home::store::{is_local, is_project_record, open_to_look};
use crate::records::{self, Weight};
use crate::settings::Settings;
use crate::ui::moments::timestamp;

/// The longest file that is read for its title and its links.
const MAX_READ_BYTES: u64 = 1024 * 1024;

/// The most links that are kept of one file.
const MAX_LINKS: usize = 500;

/// The longest title, in characters.
const MAX_TITLE_CHARACTERS: usize = 120;

/// A memory in the list.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) locator: Locator,
    pub(crate) title: String,
    pub(crate) kind: String,
    pub(crate) size_bytes: u64,
    pub(crate) modified: Option<Timestamp>,
    /// True if the file can hold two versions of a passage.
    pub(crate) may_conflict: bool,
    /// The links as the graph reads them.
    pub(crate) written: WrittenLinks,
    /// The fields that speak of its age.
    age: AgeFields,
    /// The names that the text links to, as they are written.
    links: Vec<String>,
    /// The mark by which we know that the file is still the same; `None` if it may have changed since.
    settled: Option<Fingerprint>,
}

impl Listed {
    /// Returns the group of the memory.
    pub(crate) fn group(&self) -> &str {
        group_of(&self.locator)
    }

    /// Returns true if tidying leaves the memory alone.
    pub(crate) fn is_pinned(&self) -> bool {
        self.age.is_pinned()
    }

    /// Returns why the memory is out of date, if its fields say so.
    pub(crate) fn outdated(&self, today: Day) -> Option<Outdated<'_>> {
        self.age.outdated(today)
    }
}

/// Returns the id of a memory's project, or the name of its directory at the top.
pub(crate) fn group_of(locator: &Locator) -> &str {
    match haversack_recall::project_of(locator) {
        Some(project) => project,
        None => locator.as_str().split_once('/').map_or("", |(directory, _)| directory),
    }
}

/// All memories as they were at the last look.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalogue {
    all: BTreeMap<Locator, Arc<Listed>>,
    /// The links, found when they are first asked for.
    table: OnceLock<LinkTable>,
}

/// The targets of links.
#[derive(Clone, Debug, Default)]
struct LinkTable {
    /// By the name of the file without its ending, the files.
    by_stem: BTreeMap<String, Vec<Locator>>,
    /// By file, the files that link to it.
    linked_from: BTreeMap<Locator, BTreeSet<Locator>>,
}

impl Catalogue {
    /// Looks at the memory again, and returns the list as it is now.
    pub(crate) fn look_again(self: &Arc<Self>, settings: &Settings) -> Result<Arc<Catalogue>, CommandError> {
        let memory = open_to_look(settings)?;
        let kinds = kinds::load(settings)?;
        let files = memory.files();
        let mut all = BTreeMap::new();
        let mut reused = 0;
        block_on(async {
            let mark = files.touch_mark().await?;
            let mut pages = files.scan(&Locator::root(), None);
            while let Some(page) = pages.next().await {
                let infos = page?.infos.into_iter();
                for info in
                    infos.filter(|info| info.kind == EntryKind::File && !is_project_record(&info.locator))
                {
                    let known = self.all.get(&info.locator);
                    if let Some(known) = known.filter(|known| known.settled == Some(info.fingerprint)) {
                        reused += 1;
                        all.insert(info.locator, known.clone());
                        continue;
                    }
                    let bytes = match info.size_bytes <= MAX_READ_BYTES {
                        true => files.read(&info.locator).await.map(|object| object.bytes.to_vec()),
                        false => Ok(Vec::new()),
                    };
                    match bytes {
                        Ok(bytes) => {
                            let settled = info.fingerprint.is_settled(&mark).then_some(info.fingerprint);
                            let listed = listed(&kinds, &info, &bytes, settled);
                            all.insert(info.locator.clone(), Arc::new(listed));
                        }
                        // The file was deleted since the scan saw it.
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        Err(error) => return Err(CommandError::from(error)),
                    }
                }
            }
            Ok(())
        })?;
        if reused == all.len() && reused == self.all.len() {
            return Ok(self.clone());
        }
        Ok(Arc::new(Catalogue { all, table: OnceLock::new() }))
    }

    /// Returns the targets of links.
    fn table(&self) -> &LinkTable {
        self.table.get_or_init(|| {
            let mut by_stem: BTreeMap<String, Vec<Locator>> = BTreeMap::new();
            for locator in self.all.keys() {
                by_stem.entry(stem(locator.name()).to_lowercase()).or_default().push(locator.clone());
            }
            let mut linked_from: BTreeMap<Locator, BTreeSet<Locator>> = BTreeMap::new();
            for listed in self.all.values() {
                let targets =
                    listed.links.iter().filter_map(|link| self.target_in(&by_stem, &listed.locator, link));
                for target in targets {
                    linked_from.entry(target.clone()).or_default().insert(listed.locator.clone());
                }
            }
            LinkTable { by_stem, linked_from }
        })
    }

    /// Returns the list that an earlier process stored; `None` if there is none, or it was made with other rules.
    pub(crate) fn stored(settings: &Settings) -> Option<Catalogue> {
        let text = std::fs::read(stored_list(settings)?).ok()?;
        let stored: StoredList = serde_json::from_slice(&text).ok()?;
        if stored.rules != rules(settings)? {
            return None;
        }
        let mut all = BTreeMap::new();
        for entry in stored.entries {
            let locator = Locator::parse(&entry.path).ok()?;
            let listed = Listed {
                locator: locator.clone(),
                title: entry.title,
                kind: entry.kind,
                size_bytes: entry.size_bytes,
                modified: entry.modified,
                may_conflict: entry.may_conflict,
                written: entry.written,
                age: entry.age,
                links: entry.links,
                settled: Some(entry.fingerprint.parse().ok()?),
            };
            all.insert(locator, Arc::new(listed));
        }
        Some(Catalogue { all, table: OnceLock::new() })
    }

    /// Stores the list beside the index of the search, so that a later process reads only changed files. A list that cannot be stored costs time alone.
    pub(crate) fn store(&self, settings: &Settings) {
        let (Some(file), Some(rules)) = (stored_list(settings), rules(settings)) else { return };
        let entries = self.iter().filter_map(|listed| {
            Some(StoredEntry {
                path: listed.locator.to_string(),
                title: listed.title.clone(),
                kind: listed.kind.clone(),
                size_bytes: listed.size_bytes,
                modified: listed.modified,
                may_conflict: listed.may_conflict,
                written: listed.written.clone(),
                age: listed.age.clone(),
                links: listed.links.clone(),
                fingerprint: listed.settled?.to_string(),
            })
        });
        let stored = StoredList { rules, entries: entries.collect() };
        if let Ok(text) = serde_json::to_string(&stored) {
            drop(records::write_text(&file, &text, Weight::Light));
        }
    }

    /// Returns all memories, by locator.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Listed> {
        self.all.values().map(Arc::as_ref)
    }

    /// Returns the number of memories.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, locator: &Locator) -> Option<&Listed> {
        self.all.get(locator).map(Arc::as_ref)
    }

    /// Returns the memory that a link in a file leads to: in the same directory first, then in the same project.
    pub(crate) fn target(&self, from: &Locator, link: &str) -> Option<&Locator> {
        let target = self.target_in(&self.table().by_stem, from, link)?;
        self.all.get_key_value(target).map(|(target, _)| target)
    }

    fn target_in<'s>(
        &'s self,
        by_stem: &'s BTreeMap<String, Vec<Locator>>,
        from: &Locator,
        link: &str,
    ) -> Option<&'s Locator> {
        let link = link.split(['#', '|']).next().unwrap_or_default().trim();
        let directory = from.parent().unwrap_or_else(Locator::root);
        let beside = directory.child(link).ok();
        if let Some((found, _)) = beside.and_then(|beside| self.all.get_key_value(&beside)) {
            return Some(found);
        }
        let name = link.rsplit('/').next().unwrap_or_default();
        let candidates = by_stem.get(&stem(name).to_lowercase())?;
        let group = self.get(from).map(Listed::group);
        let is_beside = |candidate: &&Locator| candidate.parent().as_ref() == Some(&directory);
        let is_in_group = |candidate: &&Locator| self.get(candidate).map(Listed::group) == group;
        candidates.iter().find(is_beside).or_else(|| candidates.iter().find(is_in_group))
    }

    /// Returns the memories that a memory links to, each once.
    pub(crate) fn links_of(&self, locator: &Locator) -> BTreeSet<&Locator> {
        let links = self.all.get(locator).map_or(&[][..], |listed| &listed.links);
        links
            .iter()
            .filter_map(|link| self.target(locator, link))
            .filter(|target| *target != locator)
            .collect()
    }

    /// Returns the memories that can hold two versions of a passage.
    pub(crate) fn may_conflict(&self) -> Vec<Locator> {
        self.iter().filter(|listed| listed.may_conflict).map(|listed| listed.locator.clone()).collect()
    }

    /// Returns the memories that link to a memory.
    pub(crate) fn links_to(&self, locator: &Locator) -> impl Iterator<Item = &Locator> {
        self.table().linked_from.get(locator).into_iter().flatten().filter(move |from| *from != locator)
    }
}

/// The list in its file.
#[derive(Serialize, Deserialize)]
struct StoredList {
    /// The hash of the rules that it was made with.
    rules: String,
    entries: Vec<StoredEntry>,
}

#[derive(Serialize, Deserialize)]
struct StoredEntry {
    path: String,
    title: String,
    kind: String,
    size_bytes: u64,
    modified: Option<Timestamp>,
    may_conflict: bool,
    written: WrittenLinks,
    age: AgeFields,
    links: Vec<String>,
    fingerprint: String,
}

/// Returns the file of the list; `None` where a sync client or another machine could change it.
fn stored_list(settings: &Settings) -> Option<PathBuf> {
    let file = settings.store().index().join("page.json");
    (settings.memory().is_dir() && is_local(settings) && file.parent()?.is_dir()).then_some(file)
}

/// Returns a hash of what an entry depends on besides its file: this program and the table of kinds.
fn rules(settings: &Settings) -> Option<String> {
    let kinds = kinds::load(settings).ok()?;
    let all: Vec<String> = kinds.iter().map(|kind| format!("{kind:?}")).collect();
    let text = format!("{} {}", env!("CARGO_PKG_VERSION"), all.join(" "));
    Some(ContentHash::of(text.as_bytes()).to_string())
}

/// Returns the name of a file without its ending.
fn stem(name: &str) -> &str {
    name.strip_suffix(".md").unwrap_or(name)
}

fn listed(kinds: &Kinds, info: &Info, bytes: &[u8], settled: Option<Fingerprint>) -> Listed {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let kind = kinds.of(&info.locator, bytes).name.clone();
    // A file that is too long to be read for the list is looked at with the conflicts.
    let may_conflict = info.size_bytes > MAX_READ_BYTES
        || conflict::original_name(&info.locator).is_some()
        || !conflict::find(&info.locator, text).is_empty();
    Listed {
        locator: info.locator.clone(),
        title: title(&info.locator, text),
        may_conflict,
        written: WrittenLinks::of(&kind, text),
        age: AgeFields::of(text),
        kind,
        size_bytes: info.size_bytes,
        modified: info.modified.map(timestamp),
        links: links(text),
        settled,
    }
}

/// Returns the title of a memory: its name or description field, its first heading, or the name of the file.
fn title(locator: &Locator, text: &str) -> String {
    let document = Document::read(text);
    let field = document.text("name").or_else(|| document.text("title"));
    let heading =
        || document.body.lines().take(40).find_map(|line| line.strip_prefix("# ")).map(str::to_owned);
    let title = field.filter(|field| !field.trim().is_empty()).or_else(heading);
    let title = title.unwrap_or_else(|| stem(locator.name()).replace(['_', '-'], " "));
    title.trim().chars().take(MAX_TITLE_CHARACTERS).collect()
}

/// Returns the names that a text links to: `[[name]]` and `[text](file.md)`.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in text.lines() {
        let wiki = line.split("[[").skip(1).filter_map(|rest| Some(rest.split_once("]]")?.0));
        let inline = line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
        let inline = inline.filter(|target| !target.contains("://"));
        links.extend(wiki.chain(inline).map(str::trim).filter(|link| !link.is_empty()).map(str::to_owned));
        if links.len() >= MAX_LINKS {
            links.truncate(MAX_LINKS);
            break;
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locator(text: &str) -> Locator {
        Locator::parse(text).expect("valid")
    }

    fn catalogue(files: &[(&str, &str)]) -> Catalogue {
        let entry = |(name, text): &(&str, &str)| {
            let listed = Listed {
                locator: locator(name),
                title: title(&locator(name), text),
                kind: "unknown".to_owned(),
                size_bytes: text.len() as u64,
                modified: None,
                may_conflict: false,
                written: WrittenLinks::default(),
                age: AgeFields::default(),
                links: links(text),
                settled: None,
            };
            (locator(name), Arc::new(listed))
        };
        Catalogue { all: files.iter().map(entry).collect(), table: OnceLock::new() }
    }

    #[test]
    fn links_lead_to_files_beside_first_and_never_to_another_project() {
        let catalogue = catalogue(&[
            (
                "claude_memory/lighthouse/MEMORY.md",
                "- [Ports](ports.md)\n- [[lamp]] and [x](https://evil.example/ports.md)",
            ),
            ("claude_memory/lighthouse/ports.md", "see [[Lamp|the lamp]], [[ports]]"),
            ("claude_memory/lighthouse/parts/lamp.md", ""),
            ("claude_memory/harbour/lamp.md", "[[ports]]"),
        ]);
        let index = locator("claude_memory/lighthouse/MEMORY.md");
        let names: Vec<&str> = catalogue.links_of(&index).into_iter().map(Locator::as_str).collect();
        assert_eq!(names, ["claude_memory/lighthouse/parts/lamp.md", "claude_memory/lighthouse/ports.md"]);
        let lamp = locator("claude_memory/lighthouse/parts/lamp.md");
        assert_eq!(catalogue.links_to(&lamp).count(), 2);
        assert!(catalogue.links_of(&locator("claude_memory/harbour/lamp.md")).is_empty());
        let ports = locator("claude_memory/lighthouse/ports.md");
        assert_eq!(catalogue.links_to(&ports).count(), 1, "a link to itself does not count");
    }

    #[test]
    fn title_is_the_name_field_then_the_heading_then_the_file_name() {
        let of = |text| title(&locator("notes/lamp_oil.md"), text);
        assert_eq!(of("---\nname: Oil\n---\n# Lamp\n"), "Oil");
        assert_eq!(of("text\n# Lamp\n"), "Lamp");
        assert_eq!(of("text\n"), "lamp oil");
    }
}

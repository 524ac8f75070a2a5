//! The list of all memories: project, kind, title, size, age, links.
//!
//! [`Catalogue::refresh`] scans the files and reads only those that changed since the last look, so a process that looks often reads little.

use std::collections::{BTreeMap, BTreeSet};

use futures_lite::StreamExt;
use haversack::document::Document;
use haversack::ids::Timestamp;
use haversack::kind::Kinds;
use haversack::store::{EntryKind, ErrorKind, Fingerprint, Info, Locator, block_on};

use crate::error::CommandError;
use crate::home::kinds;
use crate::home::store::{is_project_record, open_to_look};
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
    /// The names that the text links to, as they are written.
    links: Vec<String>,
    /// The mark by which we know that the file is still the same; `None` if it may have changed since.
    settled: Option<Fingerprint>,
}

impl Listed {
    /// Returns the id of the memory's project, or the name of its directory.
    pub(crate) fn group(&self) -> &str {
        match haversack_recall::project_of(&self.locator) {
            Some(project) => project,
            None => self.locator.as_str().split_once('/').map_or("", |(directory, _)| directory),
        }
    }
}

/// All memories as they were at the last look.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    all: BTreeMap<Locator, Listed>,
    /// By the name of the file without its ending, the files.
    by_stem: BTreeMap<String, Vec<Locator>>,
    /// By file, the files that link to it.
    linked_from: BTreeMap<Locator, BTreeSet<Locator>>,
}

impl Catalogue {
    /// Looks at the memory.
    pub(crate) fn refresh(&mut self, settings: &Settings) -> Result<(), CommandError> {
        let memory = open_to_look(settings)?;
        let kinds = kinds::load(settings)?;
        let files = memory.files();
        let mut seen = BTreeMap::new();
        let mut has_changed = false;
        block_on(async {
            let mark = files.touch_mark().await?;
            let mut pages = files.scan(&Locator::root(), None);
            while let Some(page) = pages.next().await {
                let infos = page?.infos.into_iter();
                for info in
                    infos.filter(|info| info.kind == EntryKind::File && !is_project_record(&info.locator))
                {
                    let known = self.all.remove(&info.locator);
                    if let Some(known) = known.filter(|known| known.settled == Some(info.fingerprint)) {
                        seen.insert(info.locator, known);
                        continue;
                    }
                    has_changed = true;
                    let bytes = match info.size_bytes <= MAX_READ_BYTES {
                        true => files.read(&info.locator).await.map(|object| object.bytes.to_vec()),
                        false => Ok(Vec::new()),
                    };
                    match bytes {
                        Ok(bytes) => {
                            let settled = info.fingerprint.is_settled(&mark).then_some(info.fingerprint);
                            seen.insert(info.locator.clone(), listed(&kinds, &info, &bytes, settled));
                        }
                        // The file was deleted since the scan saw it.
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        Err(error) => return Err(CommandError::from(error)),
                    }
                }
            }
            Ok(())
        })?;
        has_changed |= !self.all.is_empty();
        self.all = seen;
        if has_changed {
            self.link();
        }
        Ok(())
    }

    /// Finds the target of every link.
    fn link(&mut self) {
        self.by_stem.clear();
        for locator in self.all.keys() {
            self.by_stem.entry(stem(locator.name()).to_lowercase()).or_default().push(locator.clone());
        }
        let mut linked_from: BTreeMap<Locator, BTreeSet<Locator>> = BTreeMap::new();
        for listed in self.all.values() {
            for target in listed.links.iter().filter_map(|link| self.target(&listed.locator, link)) {
                linked_from.entry(target.clone()).or_default().insert(listed.locator.clone());
            }
        }
        self.linked_from = linked_from;
    }

    /// Returns all memories, by locator.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Listed> {
        self.all.values()
    }

    /// Returns the number of memories.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, locator: &Locator) -> Option<&Listed> {
        self.all.get(locator)
    }

    /// Returns the memory that a link in a file leads to: in the same directory first, then in the same project.
    pub(crate) fn target(&self, from: &Locator, link: &str) -> Option<&Locator> {
        let link = link.split(['#', '|']).next().unwrap_or_default().trim();
        let directory = from.parent().unwrap_or_else(Locator::root);
        let beside = directory.child(link).ok();
        if let Some((found, _)) = beside.and_then(|beside| self.all.get_key_value(&beside)) {
            return Some(found);
        }
        let name = link.rsplit('/').next().unwrap_or_default();
        let candidates = self.by_stem.get(&stem(name).to_lowercase())?;
        let group = self.all.get(from).map(Listed::group);
        let is_beside = |candidate: &&Locator| candidate.parent().as_ref() == Some(&directory);
        let is_in_group = |candidate: &&Locator| self.all.get(*candidate).map(Listed::group) == group;
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

    /// Returns the memories that link to a memory.
    pub(crate) fn links_to(&self, locator: &Locator) -> impl Iterator<Item = &Locator> {
        self.linked_from.get(locator).into_iter().flatten().filter(move |from| *from != locator)
    }
}

/// Returns the name of a file without its ending.
fn stem(name: &str) -> &str {
    name.strip_suffix(".md").unwrap_or(name)
}

fn listed(kinds: &Kinds, info: &Info, bytes: &[u8], settled: Option<Fingerprint>) -> Listed {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    Listed {
        locator: info.locator.clone(),
        title: title(&info.locator, text),
        kind: kinds.of(&info.locator, bytes).name.clone(),
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
                links: links(text),
                settled: None,
            };
            (locator(name), listed)
        };
        let mut catalogue = Catalogue { all: files.iter().map(entry).collect(), ..Catalogue::default() };
        catalogue.link();
        catalogue
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

//! Links that are there already, as edges: `[[name]]` in any memory, and the entries of an index. They are read, never written.
//!
//! A memory is a node called by its file's name without `.md`; its type is the kind of memory that it is. A link to a memory that is not there is
//! shown as dangling.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::document::Document;

/// A link that a memory has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// The memory where it stands.
    pub from: String,
    /// The memory that it leads to.
    pub to: String,
    /// `links` for `[[name]]`, `lists` for an entry of an index.
    pub link_type: &'static str,
    /// True if the memory that it leads to is there.
    pub is_there: bool,
}

/// The memories of a directory and the links between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// The type of each memory, by its name.
    pub memories: BTreeMap<String, String>,
    /// The links, sorted.
    pub links: Vec<Link>,
}

/// Returns the name by which links call a file.
pub fn name_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}

/// The type of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum LinkType {
    /// `[[name]]` in any memory.
    Links,
    /// An entry of an index.
    Lists,
}

impl LinkType {
    fn name(self) -> &'static str {
        match self {
            LinkType::Links => "links",
            LinkType::Lists => "lists",
        }
    }
}

/// The links as one text writes them. Finding them needs the text; connecting them needs only this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenLinks {
    /// The name in the frontmatter, in the form in which names are compared.
    title: Option<String>,
    /// The targets, as they are written, and the type of each link.
    targets: Vec<(String, LinkType)>,
}

impl WrittenLinks {
    /// Finds the links in a text of a kind.
    pub fn of(kind: &str, text: &str) -> WrittenLinks {
        let mut targets: Vec<(String, LinkType)> = Vec::new();
        let mut add = |target: &str, link_type: LinkType| {
            let target = name_of(target.split(['#', '|']).next().unwrap_or(target).trim());
            if !target.is_empty() {
                targets.push((target.to_owned(), link_type));
            }
        };
        let mut is_code = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            }
            if is_code {
                continue;
            }
            for target in between(line, "[[", "]]") {
                add(target, LinkType::Links);
            }
            if kind == "index" {
                for target in between(line, "](", ")").filter(|target| is_local(target)) {
                    add(target, LinkType::Lists);
                }
            }
        }
        WrittenLinks { title: Document::read(text).text("name").map(|title| plain(&title)), targets }
    }
}

/// Finds the links in the texts of one directory. Each text comes with its path and its kind.
pub fn find<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Links {
    let written = texts.into_iter().map(|(path, kind, text)| (path, kind, WrittenLinks::of(kind, text)));
    let written: Vec<(&str, &str, WrittenLinks)> = written.collect();
    connect(written.iter().map(|(path, kind, written)| (*path, *kind, written)))
}

/// Connects the links of the memories of one directory. Each memory comes with its path and its kind.
pub fn connect<'a>(memories: impl IntoIterator<Item = (&'a str, &'a str, &'a WrittenLinks)>) -> Links {
    let all: Vec<(&str, &str, &WrittenLinks)> = memories.into_iter().collect();
    let mut memories = BTreeMap::new();
    // Links use the name in the frontmatter too, and whatever way of writing spaces.
    let mut called: BTreeMap<String, String> = BTreeMap::new();
    for (path, kind, written) in &all {
        let name = name_of(path).to_owned();
        called.insert(plain(&name), name.clone());
        if let Some(title) = &written.title {
            called.entry(title.clone()).or_insert_with(|| name.clone());
        }
        memories.insert(name, (*kind).to_owned());
    }
    let mut links = BTreeSet::new();
    for (path, _, written) in &all {
        let from = name_of(path).to_owned();
        for &(ref target, link_type) in &written.targets {
            let there = called.get(&plain(target));
            let to = there.cloned().unwrap_or_else(|| target.clone());
            if to != from {
                let link_type = link_type.name();
                links.insert(Link { from: from.clone(), to, link_type, is_there: there.is_some() });
            }
        }
    }
    Links { memories, links: links.into_iter().collect() }
}

impl Links {
    /// Returns the links of a memory, either way.
    pub fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Link> {
        self.links.iter().filter(move |link| link.from == name || link.to == name)
    }
}

fn is_local(target: &str) -> bool {
    target.ends_with(".md") && !target.contains("://")
}

fn plain(name: &str) -> String {
    let letter = |c: char| if c == ' ' || c == '_' { '-' } else { c };
    name.trim().to_lowercase().chars().map(letter).collect()
}

fn between<'a>(line: &'a str, open: &'a str, close: &'a str) -> impl Iterator<Item = &'a str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(open)?;
        let (inner, after) = after.split_once(close)?;
        rest = after;
        Some(inner)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_index_entries_are_edges() {
        let index = "# Memory\n\n- [Tone](feedback_tone.md) — how to write\n- [Gone](gone.md) — lost\n- [Site](https://example.org/a.md)\n";
        let tone = "---\nname: Tone of voice\ntype: feedback\n---\nSee [[project-ports]] and [[Nowhere]].\n```\n[[not_a_link]]\n```\n";
        let ports = "---\nname: ports\ntype: project\n---\nBecause of [[tone of voice|the tone]], [[project_ports]].\n";
        let found = find([
            ("a/MEMORY.md", "index", index),
            ("a/feedback_tone.md", "feedback", tone),
            ("a/project_ports.md", "project", ports),
        ]);
        let shown: Vec<String> = found
            .links
            .iter()
            .map(|link| format!("{} {} {} {}", link.from, link.link_type, link.to, link.is_there))
            .collect();
        assert_eq!(
            shown,
            [
                "MEMORY lists feedback_tone true",
                "MEMORY lists gone false",
                "feedback_tone links Nowhere false",
                "feedback_tone links project_ports true",
                "project_ports links feedback_tone true",
            ]
        );
        assert_eq!(found.memories["feedback_tone"], "feedback");
        assert_eq!(found.of("project_ports").count(), 2);
    }
}

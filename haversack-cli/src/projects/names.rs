//! Names of files as people type and read them: `lighthouse/ports.md` for `claude_memory/lighthouse-d004b9e9…/ports.md`.
//!
//! [`Names`] gives each project a short name. [`locate`] finds the place that a text names. It reads the text in all these ways:
//!
//! 1. `/memories/claude_memory/…/ports.md`, as agents write it: this place and no other.
//! 2. A path on this machine (absolute, or with `./`, `../` or `~/` at its start): the place in a bound directory or in the home's `memory/`.
//! 3. A relative path, if the current directory is in a bound directory.
//! 4. `PROJECT/ports.md`: a project by its short name, by its name and the start of its hash, or by its whole id.
//! 5. `ports.md` in a checkout: a file of the project of the current directory.
//! 6. `claude_memory/…/ports.md`: a locator.
//!
//! If a text has several readings, the one that exists is meant. If several exist, the error lists them. If none exists, for example because the
//! file is to be created, the first reading of this list is meant, but a text with several segments is a locator before it is a file of the
//! current project.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use haversack::store::Locator;

use super::{PLACE, border, identity, prefix_of};
use crate::error::CommandError;
use crate::home::mounts;
use crate::home::store::{LookupResult, look_up, place_of};
use crate::settings::{Settings, tilde};
use crate::ui::abbreviations::Abbreviations;

/// The fewest characters of a hash that tell two projects of one name apart.
const MIN_HASH_SHOWN: usize = 4;

/// The short names of the projects of a home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// By id, the short name; `None` if only the locator is unique, and for an id of the old form, which has to be renamed.
    projects: BTreeMap<String, Option<String>>,
}

/// The directory in which a text was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Viewpoint {
    /// The current directory, so paths and bare names are seen from it.
    CurrentDirectory,
    /// An unknown directory, perhaps on another machine.
    Unknown,
}

impl Names {
    /// Returns the names of all projects that have files or a bound directory here. Makes nothing.
    pub(crate) fn of(settings: &Settings) -> Result<Names, CommandError> {
        let place = settings.memory().join(PLACE);
        let mut ids: BTreeSet<String> =
            entries(&place).into_iter().filter(|name| place.join(name).is_dir()).collect();
        let mut others = entries(&settings.memory());
        for mount in mounts::of(settings)? {
            let mut segments = mount.prefix.segments();
            match (segments.next(), segments.next()) {
                (Some(PLACE), Some(id)) => drop(ids.insert(id.to_owned())),
                (Some(first), _) => drop(others.insert(first.to_owned())),
                (None, _) => {}
            }
        }
        others.remove(PLACE);
        Ok(Names::given(&ids, &others))
    }

    /// Gives each project a name that no other project and no other directory at the top of the memory has.
    fn given(ids: &BTreeSet<String>, others: &BTreeSet<String>) -> Names {
        let is_free = |name: &str, own: &str| {
            !others.contains(name) && ids.iter().all(|id| id == own || !Id::parse(id).is_called(name))
        };
        let name = |id: &String| {
            let parsed = Some(Id::parse(id)).filter(|_| !identity::is_old_id(id))?;
            parsed.names().find(|name| is_free(name, id))
        };
        Names { projects: ids.iter().map(|id| (id.clone(), name(id))).collect() }
    }

    /// Returns the places of all projects, in the order of their ids.
    pub(crate) fn places(&self) -> impl Iterator<Item = Locator> {
        self.projects.keys().filter_map(|id| prefix_of(id))
    }

    /// Returns the projects that have a name of their own, with their places.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&str, Locator)> {
        self.projects.iter().filter_map(|(id, name)| Some((name.as_deref()?, prefix_of(id)?)))
    }

    /// Returns the name of a place as people read it.
    pub(crate) fn show(&self, locator: &Locator) -> String {
        self.abbreviations().apply(locator.as_str()).into_owned()
    }

    /// Returns the short names for use in messages.
    pub(crate) fn abbreviations(&self) -> Abbreviations {
        let named = self.projects.iter().filter_map(|(id, name)| Some((id, name.as_ref()?)));
        Abbreviations::new(named.map(|(id, name)| (format!("{PLACE}/{id}"), name.clone())))
    }

    /// Returns the places that a text names if its first segment is the name of a project.
    fn in_projects(&self, text: &str) -> Vec<Locator> {
        let text = text.trim_start_matches('/');
        let (name, below) = text.split_once('/').unwrap_or((text, ""));
        let called = self
            .projects
            .iter()
            .filter(|(id, shown)| shown.as_deref() == Some(name) || Id::parse(id).is_called(name));
        called.filter_map(|(id, _)| prefix_of(id)?.child(below).ok()).collect()
    }
}

/// The id of a project, or of the memory of its subagents: `lighthouse-d004…`, `lighthouse`, `lighthouse-d004….agents`.
struct Id<'i> {
    whole: &'i str,
    word: &'i str,
    hash: Option<&'i str>,
    ending: &'i str,
}

impl<'i> Id<'i> {
    fn parse(whole: &'i str) -> Id<'i> {
        for (at, _) in whole.match_indices('-') {
            let (hash, ending) = match whole[at + 1..].split_once('.') {
                Some((hash, rest)) => (hash, &whole[whole.len() - rest.len() - 1..]),
                None => (&whole[at + 1..], ""),
            };
            if identity::is_hash(hash) {
                return Id { whole, word: &whole[..at], hash: Some(hash), ending };
            }
        }
        Id { whole, word: whole, hash: None, ending: "" }
    }

    /// Returns the names that the project can be shown by, the shortest first.
    fn names(&self) -> impl Iterator<Item = String> {
        let Id { word, ending, .. } = *self;
        let hash = self.hash.unwrap_or_default();
        let with_hash =
            (MIN_HASH_SHOWN..=hash.len()).map(move |length| format!("{word}-{}{ending}", &hash[..length]));
        std::iter::once(format!("{word}{ending}")).chain(with_hash)
    }

    /// Returns true if the name means this project, perhaps among others.
    fn is_called(&self, name: &str) -> bool {
        if name == self.whole {
            return true;
        }
        let Some(rest) = name.strip_suffix(self.ending).and_then(|name| name.strip_prefix(self.word)) else {
            return false;
        };
        let is_start = |start: &str| {
            start.len() >= MIN_HASH_SHOWN && self.hash.is_some_and(|hash| hash.starts_with(start))
        };
        rest.is_empty() || rest.strip_prefix('-').is_some_and(is_start)
    }
}

/// Returns the place that a text names, seen from the current directory. The place may be empty.
pub(crate) fn locate(settings: &Settings, text: &str) -> Result<Locator, CommandError> {
    locate_from(settings, Viewpoint::CurrentDirectory, text)
}

/// Returns the place that a text names, seen from a directory. The place may be empty.
pub(crate) fn locate_from(
    settings: &Settings,
    viewpoint: Viewpoint,
    text: &str,
) -> Result<Locator, CommandError> {
    let readings = readings(settings, viewpoint, text)?;
    if let [only] = &readings[..] {
        return Ok(only.clone());
    }
    let mut found = Vec::new();
    for reading in &readings {
        if look_up(settings, reading)? != LookupResult::Nothing {
            found.push(reading);
        }
    }
    match &found[..] {
        [] => {
            // A name that several projects have says nothing about the one that is meant.
            let names = Names::of(settings)?;
            let named = names.in_projects(text);
            match (named.len(), readings.first()) {
                (0 | 1, Some(first)) => Ok(first.clone()),
                _ => Err(ambiguous(&names, text, "places", &named.iter().collect::<Vec<_>>())),
            }
        }
        [one] => Ok((*one).clone()),
        several => Err(ambiguous(&Names::of(settings)?, text, "places", several)),
    }
}

/// Returns the file or directory that a text names, seen from the current directory. It must be there, or be the whole memory.
pub(crate) fn locate_existing(settings: &Settings, text: &str) -> Result<Locator, CommandError> {
    let locator = locate(settings, text)?;
    match locator.is_root() || look_up(settings, &locator)? != LookupResult::Nothing {
        true => Ok(locator),
        false => Err(CommandError::user(
            format!("there is no {locator} in the memory"),
            "See the files of the memory: haversack ls",
        )),
    }
}

/// Returns the file of the memory that a text names, seen from the current directory.
///
/// A file that was deleted here is known as long as its deletion waits to be sent. Everything else is an error, so that no command
/// does nothing and reports success.
pub(crate) fn locate_file(settings: &Settings, text: &str) -> Result<Locator, CommandError> {
    let mut found = Vec::new();
    let mut is_directory = false;
    let readings = readings(settings, Viewpoint::CurrentDirectory, text)?;
    for reading in &readings {
        match look_up(settings, reading)? {
            LookupResult::File => found.push(reading),
            LookupResult::Directory => is_directory = true,
            LookupResult::Nothing => {}
        }
    }
    match &found[..] {
        [file] => Ok((*file).clone()),
        [] if is_directory => Err(CommandError::user(
            format!("{text} is a directory, and one file is needed"),
            "Name a file in it: haversack ls",
        )),
        [] => Err(CommandError::user(
            format!("the memory has no file {text}"),
            "See the files of the memory: haversack ls",
        )),
        several => Err(ambiguous(&Names::of(settings)?, text, "files", several)),
    }
}

/// Returns the place that a text names as a locator, or as agents write it with `/memories`. The current directory plays no part.
pub(crate) fn parse(text: &str) -> Result<Locator, CommandError> {
    let below = below_memories(text).unwrap_or(text);
    Locator::parse(below).map_err(|error| {
        CommandError::user(error.to_string(), "Name a place inside the memory: haversack ls")
    })
}

/// Returns the place that a text names as a project, or else as a locator. The current directory plays no part.
pub(crate) fn parse_place(settings: &Settings, text: &str) -> Result<Locator, CommandError> {
    match &Names::of(settings)?.in_projects(text)[..] {
        [project] if below_memories(text).is_none() => Ok(project.clone()),
        _ => parse(text),
    }
}

/// Returns true if a place is the one that holds all projects.
pub(crate) fn holds_projects(place: &Locator) -> bool {
    place.as_str() == PLACE
}

/// Returns the ways to read a text, the preferred one first. There is at least one.
fn readings(settings: &Settings, viewpoint: Viewpoint, text: &str) -> Result<Vec<Locator>, CommandError> {
    if text.trim_start_matches('/').is_empty() || below_memories(text).is_some() {
        return Ok(vec![parse(text)?]);
    }
    let is_here = viewpoint == Viewpoint::CurrentDirectory;
    let path = real_path(text).filter(|_| is_here || Path::new(text).is_absolute());
    let at_path = match &path {
        Some(path) => place_of(settings, path)?.map(|(_, locator)| locator),
        None => None,
    };
    let project = if is_here { border::place_here(settings) } else { None };
    if is_explicit_path(text) {
        let is_current_directory = Path::new(text).iter().all(|name| name == ".");
        return match at_path.or(project.filter(|_| is_current_directory)) {
            Some(place) => Ok(vec![place]),
            None => Err(CommandError::user(
                format!(
                    "{text} is not in the memory: it is in no bound directory, and not in {}",
                    tilde(settings, &settings.memory())
                ),
                "See the files of the memory: haversack ls. See the bound directories: haversack mount list",
            )),
        };
    }
    let in_project = project.and_then(|project| project.child(text).ok());
    let as_locator = parse(text);
    let mut readings: Vec<Locator> = at_path.into_iter().collect();
    readings.extend(Names::of(settings)?.in_projects(text));
    match text.trim_end_matches('/').contains('/') {
        true => readings.extend(as_locator.as_ref().ok().cloned().into_iter().chain(in_project)),
        false => readings.extend(in_project.into_iter().chain(as_locator.as_ref().ok().cloned())),
    }
    let mut seen = BTreeSet::new();
    readings.retain(|reading| seen.insert(reading.clone()));
    match readings.is_empty() {
        true => as_locator.map(|locator| vec![locator]),
        false => Ok(readings),
    }
}

fn ambiguous(names: &Names, text: &str, what: &str, choices: &[&Locator]) -> CommandError {
    let choice = |choice: &&Locator| match names.show(choice) {
        name if name != choice.as_str() && name != text => name,
        // This form has one reading only.
        _ => format!("/memories/{choice}"),
    };
    let choices: Vec<String> = choices.iter().map(choice).collect();
    CommandError::user(
        format!("{text} could mean {} {what}", choices.len()),
        format!("Name one: {}", choices.join(" or ")),
    )
}

/// Returns the part below `/memories` of a path as agents write it.
fn below_memories(text: &str) -> Option<&str> {
    text.strip_prefix("/memories").filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the path on this machine that a text means.
fn real_path(text: &str) -> Option<PathBuf> {
    let path = match text.strip_prefix("~/").zip(std::env::home_dir()) {
        Some((below, home)) => home.join(below),
        None => PathBuf::from(text),
    };
    std::path::absolute(path).ok()
}

/// Returns true if a text can only be meant as a path on this machine.
fn is_explicit_path(text: &str) -> bool {
    Path::new(text).is_absolute()
        || matches!(text, "." | "..")
        || ["./", "../", "~/"].iter().any(|start| text.starts_with(start))
}

/// Returns the names of the entries of a directory; none if it cannot be read.
fn entries(directory: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb";
    const OTHER: &str = "lighthouse-d0041111111111111111111111111111";

    fn names(ids: &[&str], others: &[&str]) -> Names {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Names::given(&owned(ids), &owned(others))
    }

    fn shown(names: &Names, id: &str) -> String {
        names.show(&prefix_of(id).expect("a place").child("ports.md").expect("a name"))
    }

    #[test]
    fn project_is_shown_without_its_hash() {
        let agents = format!("{ONE}.agents");
        let names = names(&[ONE, "harbor", &agents], &["notes"]);
        assert_eq!(shown(&names, ONE), "lighthouse/ports.md");
        assert_eq!(shown(&names, "harbor"), "harbor/ports.md");
        assert_eq!(shown(&names, &agents), "lighthouse.agents/ports.md");
        assert_eq!(names.show(&Locator::parse("notes/a.md").expect("valid")), "notes/a.md");
        assert_eq!(shown(&names, "unknown"), "claude_memory/unknown/ports.md");
    }

    #[test]
    fn projects_of_one_name_are_shown_with_enough_of_the_hash() {
        let both = names(&[ONE, OTHER], &[]);
        assert_eq!(shown(&both, ONE), "lighthouse-d004b/ports.md");
        assert_eq!(shown(&both, OTHER), "lighthouse-d0041/ports.md");
        let named = names(&[ONE, "lighthouse"], &[]);
        assert_eq!(shown(&named, ONE), "lighthouse-d004/ports.md");
        assert_eq!(shown(&named, "lighthouse"), "claude_memory/lighthouse/ports.md");
        let beside_directory = names(&[ONE, "harbor"], &["lighthouse", "harbor"]);
        assert_eq!(shown(&beside_directory, ONE), "lighthouse-d004/ports.md");
        assert_eq!(shown(&beside_directory, "harbor"), "claude_memory/harbor/ports.md");
    }

    #[test]
    fn shown_names_are_read_back() {
        for ids in [vec![ONE], vec![ONE, OTHER], vec![ONE, "lighthouse"], vec![ONE, "lighthouse-d004"]] {
            let names = names(&ids, &[]);
            for id in ids {
                let place = prefix_of(id).expect("a place").child("ports.md").expect("a name");
                let text = names.show(&place);
                if !text.starts_with(PLACE) {
                    assert_eq!(names.in_projects(&text), [place], "{text}");
                }
            }
        }
    }

    #[test]
    fn name_of_two_projects_names_both() {
        let names = names(&[ONE, OTHER, "harbor"], &[]);
        assert_eq!(names.in_projects("lighthouse/ports.md").len(), 2);
        assert_eq!(names.in_projects("lighthouse-d004/ports.md").len(), 2);
        assert_eq!(names.in_projects("lighthouse-d00/ports.md").len(), 0);
        assert_eq!(names.in_projects("harbor").len(), 1);
        assert_eq!(names.in_projects(ONE).len(), 1);
    }
}

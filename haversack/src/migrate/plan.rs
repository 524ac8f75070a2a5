//! Plans a migration from the names and sizes on both sides.

use std::collections::{BTreeMap, HashMap};

use haversack_store::{EntryKind, InvalidLocator, Locator};

use super::{Skipped, Why};

/// The largest object that is copied: all of it is held in memory.
pub const MAX_OBJECT_BYTES: u64 = 1 << 30;

/// An object of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The number of the source.
    pub source: usize,
    /// Its locator there.
    pub locator: Locator,
    /// Its size.
    pub size_bytes: u64,
    /// Why it may not leave, if it may not.
    pub held: Option<String>,
}

/// An object to be copied or compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of the source.
    pub source: usize,
    /// Its locator there.
    pub from: Locator,
    /// Its locator in the target.
    pub to: Locator,
    /// Its size.
    pub size_bytes: u64,
}

/// The plan of a migration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Objects that are not in the target yet.
    pub copies: Vec<Step>,
    /// Objects with an object of the same name and size in the target: both have to be read to compare them.
    pub compares: Vec<Step>,
    /// Objects that are not copied.
    pub left: Vec<Skipped>,
}

impl Plan {
    /// Returns how many bytes would be copied.
    pub fn bytes(&self) -> u64 {
        self.copies.iter().map(|step| step.size_bytes).sum()
    }
}

/// Decides what becomes of each object that was found.
///
/// `prefixes` are the sources' places in the target, `there` is what the target holds. What is there is never replaced, and a name is
/// given only if every disk could hold it beside the others. Of two sources that have an object for one place, the first one wins.
pub fn plan(prefixes: &[Locator], found: &[Found], there: &BTreeMap<Locator, u64>) -> Plan {
    let mut plan = Plan::default();
    let mut names = Names::default();
    let mut taken = there.clone();
    for locator in there.keys() {
        // Existing names may be odd; only added names are checked.
        drop(names.claim(locator));
    }
    for Found { source, locator, size_bytes, held } in found {
        let prefix = prefixes.get(*source).cloned().unwrap_or_else(Locator::root);
        let mut leave = |name: &str, why: Why| {
            plan.left.push(Skipped { source: *source, name: name.to_owned(), why });
        };
        let to = match placed(&prefix, locator) {
            Ok(to) => to,
            Err(reason) => {
                leave(locator.as_str(), Why::Name(reason.to_string()));
                continue;
            }
        };
        let step = Step { source: *source, from: locator.clone(), to, size_bytes: *size_bytes };
        let name = step.to.as_str();
        if let Some(why) = held {
            leave(name, Why::Held(why.clone()));
            continue;
        }
        if *size_bytes > MAX_OBJECT_BYTES {
            leave(name, Why::TooLarge { size_bytes: *size_bytes });
            continue;
        }
        match taken.get(&step.to) {
            Some(size) if size == size_bytes => plan.compares.push(step),
            Some(_) => leave(name, Why::Different),
            None => match names.add(&step.to) {
                Ok(()) => {
                    taken.insert(step.to.clone(), *size_bytes);
                    plan.copies.push(step);
                }
                Err(why) => leave(name, Why::Name(why)),
            },
        }
    }
    plan
}

/// Returns what an object of a source is called in the target.
///
/// Without a prefix, operational state at the top of the source goes to `state/`, where its kinds are recognised. A user who names a
/// prefix has decided where the files go.
pub(super) fn placed(prefix: &Locator, locator: &Locator) -> Result<Locator, InvalidLocator> {
    if prefix.is_root() && is_operational_state(locator.as_str()) {
        return Locator::parse(&format!("state/{locator}"));
    }
    if prefix.is_root() { Locator::parse(locator.as_str()) } else { prefix.child(locator.as_str()) }
}

/// Returns true for `watched_chats` and cursor files at the top of a source; a Markdown file is a note, whatever its name.
fn is_operational_state(key: &str) -> bool {
    let is_cursor = key.contains("cursor") && !key.ends_with(".md");
    !key.contains('/') && (key == "watched_chats" || is_cursor)
}

/// The names that are taken, directories too, by how a case-insensitive disk compares them.
#[derive(Default)]
struct Names {
    by_fold: HashMap<String, (Locator, EntryKind)>,
}

impl Names {
    /// Takes a name that is new, if every disk could hold it beside the others.
    fn add(&mut self, locator: &Locator) -> Result<(), String> {
        locator.check_portable().map_err(|reason| reason.to_string())?;
        self.claim(locator)
    }

    fn claim(&mut self, locator: &Locator) -> Result<(), String> {
        let directories = std::iter::successors(locator.parent(), Locator::parent);
        let directories = directories.filter(|directory| !directory.is_root());
        let mut new = vec![(locator.clone(), EntryKind::File)];
        new.extend(directories.map(|directory| (directory, EntryKind::Directory)));
        new.retain(|(name, kind)| self.by_fold.get(&name.folded()) != Some(&(name.clone(), *kind)));
        for (name, kind) in &new {
            match self.by_fold.get(&name.folded()) {
                None => {}
                Some((taken, _)) if taken != name => {
                    return Err(format!(
                        "{taken} differs from it only by case, and some disks cannot hold both"
                    ));
                }
                Some(_) if *kind == EntryKind::File => {
                    return Err("a directory has that name".to_owned());
                }
                Some(_) => return Err(format!("{name} is a file, not a directory")),
            }
        }
        self.by_fold.extend(new.into_iter().map(|(name, kind)| (name.folded(), (name, kind))));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(key: &str) -> Locator {
        Locator::parse(key).expect("valid")
    }

    fn found(source: usize, key: &str, size_bytes: u64) -> Found {
        Found { source, locator: at(key), size_bytes, held: None }
    }

    /// Shows a plan for two sources: one to the root, one to `team`.
    fn planned(found: &[Found], there: &[(&str, u64)]) -> Vec<String> {
        let there = there.iter().map(|(key, size)| (at(key), *size)).collect();
        let Plan { copies, compares, left } = plan(&[Locator::root(), at("team")], found, &there);
        let copies = copies.iter().map(|step| format!("copy {} to {}", step.from, step.to));
        let compares = compares.iter().map(|step| format!("compare {} with {}", step.from, step.to));
        let left = left.iter().map(|left| format!("leave {}: {}", left.name, left.why));
        copies.chain(compares).chain(left).collect()
    }

    #[test]
    fn what_is_there_stays_as_it_is() {
        let there = [("same.md", 3), ("longer.md", 9), ("team/same.md", 3), ("other.md", 1)];
        let found = [
            found(0, "same.md", 3),
            found(0, "longer.md", 3),
            found(0, "new.md", 3),
            found(1, "same.md", 3),
            found(1, "new.md", 0),
        ];
        assert_eq!(
            planned(&found, &there),
            [
                "copy new.md to new.md",
                "copy new.md to team/new.md",
                "compare same.md with same.md",
                "compare same.md with team/same.md",
                "leave longer.md: something else has that name in the target",
            ]
        );
    }

    #[test]
    fn operational_state_goes_to_its_directory() {
        let found = [
            found(0, "watched_chats", 1),
            found(0, "email_cursor.txt", 2),
            found(0, "cursor-keys.md", 3),
            found(0, "state/mail_cursor", 4),
            found(0, "notes/watched_chats", 5),
            found(1, "watched_chats", 6),
        ];
        assert_eq!(
            planned(&found, &[("state/watched_chats", 1)]),
            [
                "copy email_cursor.txt to state/email_cursor.txt",
                "copy cursor-keys.md to cursor-keys.md",
                "copy state/mail_cursor to state/mail_cursor",
                "copy notes/watched_chats to notes/watched_chats",
                "copy watched_chats to team/watched_chats",
                "compare watched_chats with state/watched_chats",
            ]
        );
    }

    #[test]
    fn of_two_sources_with_one_name_the_first_wins() {
        let found = [found(0, "team/a.md", 3), found(0, "team/b.md", 3), found(1, "a.md", 3)];
        let mut with_longer = found.to_vec();
        with_longer.push(Found { source: 1, locator: at("b.md"), size_bytes: 4, held: None });
        assert_eq!(
            planned(&with_longer, &[]),
            [
                "copy team/a.md to team/a.md",
                "copy team/b.md to team/b.md",
                "compare a.md with team/a.md",
                "leave team/b.md: something else has that name in the target",
            ]
        );
    }

    #[test]
    fn names_that_some_disk_cannot_hold_are_left() {
        let long = "x".repeat(255);
        let deep = [long.as_str(); 4].join("/");
        for (key, there, why) in [
            ("a:b.md", vec![], "a name with ':' cannot be stored on Windows"),
            ("con.md", vec![], "a device name cannot be stored on Windows"),
            ("ends.", vec![], "a name that ends in a dot"),
            ("Notes.md", vec![("notes.md", 3)], "notes.md differs from it only by case"),
            ("Notes/a.md", vec![("notes/b.md", 3)], "notes differs from it only by case"),
            ("a/b.md", vec![("a", 3)], "a is a file, not a directory"),
            ("a", vec![("a/b.md", 3)], "a directory has that name"),
        ] {
            let planned = planned(&[found(0, key, 3)], &there);
            assert!(planned.len() == 1 && planned[0].starts_with("leave"), "{key}: {planned:?}");
            assert!(planned[0].contains(why), "{key}: {planned:?}");
        }
        // Below a prefix it would be too long.
        let planned = planned(&[found(1, &deep, 3)], &[]);
        assert!(planned[0].contains("longer than 1024 bytes"), "{planned:?}");
    }

    #[test]
    fn what_is_there_under_an_odd_name_is_compared() {
        assert_eq!(planned(&[found(0, "a:b.md", 3)], &[("a:b.md", 3)]), ["compare a:b.md with a:b.md"]);
        let twins = [("Notes.md", 3), ("notes.md", 3)];
        assert_eq!(planned(&[found(0, "Notes.md", 3)], &twins), ["compare Notes.md with Notes.md"]);
        let twins = [found(0, "Notes.md", 3), found(0, "notes.md", 3)];
        assert_eq!(
            planned(&twins, &[]),
            [
                "copy Notes.md to Notes.md",
                "leave notes.md: Notes.md differs from it only by case, and some disks cannot hold both",
            ]
        );
    }

    #[test]
    fn what_is_held_or_too_large_is_left() {
        let held = Found { held: Some("it holds a key".to_owned()), ..found(0, "key.md", 3) };
        let large = found(0, "image.iso", MAX_OBJECT_BYTES + 1);
        assert_eq!(
            planned(&[held, large, found(0, "fits.iso", MAX_OBJECT_BYTES)], &[]),
            [
                "copy fits.iso to fits.iso",
                "leave key.md: held back, it holds a key",
                "leave image.iso: it is larger than 1 GiB",
            ]
        );
    }
}

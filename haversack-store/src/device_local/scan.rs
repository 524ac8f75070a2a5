//! All objects below a prefix in key order, a page at a time, without reading any.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use super::core::{Core, Served, info_of, served};
use super::fs::{Fs, Name, NodeKind};
use super::recover::Leftover;
use super::walk;
use crate::backend::{Entry, EntryKind, Odd, Page};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::ext::PAGE_OBJECTS;
use crate::locator::{Children, Locator, fold};

/// A walk through a tree that can pause after any page.
pub(super) struct Walk<F: Fs> {
    core: Arc<Core<F>>,
    prefix: Locator,
    after: Option<Locator>,
    /// The directories being walked, outermost first; `None` before the first page.
    stack: Option<Vec<Level<F>>>,
    /// The number of objects on the next page: it grows for a reader that continues.
    page_objects: usize,
    leftovers: Vec<Leftover>,
}

/// The most objects in a page.
const MAX_PAGE_OBJECTS: usize = 16 * PAGE_OBJECTS;

/// The most directories whose files are looked at together, since each of them stays open meanwhile.
const MAX_DIRECTORIES: usize = 64;

/// A directory being walked, with what is left in it, last first.
struct Level<F: Fs> {
    dir: Arc<F::Dir>,
    left: Vec<Child>,
}

struct Child {
    locator: Locator,
    name: String,
    kind: EntryKind,
}

impl<F: Fs> Walk<F> {
    pub(super) fn new(core: Arc<Core<F>>, prefix: Locator, after: Option<Locator>) -> Walk<F> {
        Walk { core, prefix, after, stack: None, page_objects: PAGE_OBJECTS, leftovers: Vec::new() }
    }

    /// Returns the next page; `None` after the last.
    pub(super) fn next_page(&mut self) -> Result<Option<Page>> {
        let mut page = Page::default();
        let mut stack = match self.stack.take() {
            Some(stack) => stack,
            None => self.start(&mut page)?,
        };
        let (mut files, mut directories) = (Vec::new(), 0);
        while let Some(level) = stack.last_mut() {
            let Some(child) = level.left.pop() else {
                stack.pop();
                continue;
            };
            if self.is_before_start(&child) {
                continue;
            }
            match child.kind {
                EntryKind::File => files.push((level.dir.clone(), child)),
                EntryKind::Directory => {
                    directories += 1;
                    match self.core.fs.enter(&level.dir, &child.name) {
                        Ok((dir, names)) => stack.push(self.enter(dir, names, &child.locator, &mut page)),
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        Err(error) => page.odd.push(unseen(child.locator, "the directory", &error)),
                    }
                }
            }
            let is_full = page.infos.len() + files.len() >= self.page_objects;
            if is_full || directories >= MAX_DIRECTORIES {
                self.visit(&mut files, &mut page)?;
                directories = 0;
            }
            // Some of them may be gone.
            if page.infos.len() >= self.page_objects {
                break;
            }
        }
        self.visit(&mut files, &mut page)?;
        self.page_objects = (self.page_objects * 2).min(MAX_PAGE_OBJECTS);
        let ended = stack.is_empty();
        self.stack = Some(stack);
        if ended && !self.leftovers.is_empty() {
            self.core.recover_met(&std::mem::take(&mut self.leftovers))?;
        }
        Ok((!ended || page != Page::default()).then_some(page))
    }

    fn start(&mut self, page: &mut Page) -> Result<Vec<Level<F>>> {
        let prefix = self.prefix.clone();
        match walk::find_dir(&self.core.fs, Operation::Scan, &prefix) {
            Ok(dir) => {
                let names = self.core.fs.names(&dir, usize::MAX);
                let names = names.map_err(|error| Error::from_io(Operation::Scan, prefix.as_str(), error))?;
                Ok(vec![self.enter(dir, names, &prefix, page)])
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            // The prefix is or goes through an object, or something is in the way.
            Err(error) => match self.core.info(&prefix) {
                Ok(info) => {
                    let is_next = self.after.as_ref().is_none_or(|after| info.locator > *after);
                    page.infos.extend(is_next.then_some(info));
                    Ok(Vec::new())
                }
                Err(_) if self.core.goes_through_file(&prefix) => Ok(Vec::new()),
                Err(_) => Err(error),
            },
        }
    }

    /// Puts the names of a directory in the order of the keys below it.
    fn enter(&mut self, dir: Arc<F::Dir>, names: Vec<Name>, locator: &Locator, page: &mut Page) -> Level<F> {
        let mut left = Vec::with_capacity(names.len());
        let mut children = Children::of(locator);
        for name in names {
            match served(&mut children, &name) {
                Served::Entry(Entry { locator, kind }) => {
                    left.push(Child { locator, name: name.text.unwrap_or_default(), kind });
                }
                Served::Odd(odd) => page.odd.push(odd),
                Served::Ours(Some(temp)) => {
                    self.leftovers.push(Leftover { parent: locator.clone(), temp });
                }
                Served::Ours(None) => {}
            }
        }
        report_twins(&left, page);
        leave_out_spellings(&mut left, page);
        left.sort_by(|a, b| key_order(b, a));
        Level { dir, left }
    }

    /// Returns true if everything at and below `child` comes before where the scan resumes.
    fn is_before_start(&self, child: &Child) -> bool {
        let Some(after) = &self.after else { return false };
        match child.kind {
            EntryKind::File => child.locator <= *after,
            EntryKind::Directory => {
                !after.is_within(&child.locator) && format!("{}/", child.locator).as_str() < after.as_str()
            }
        }
    }

    /// Looks at files whose names were read.
    fn visit(&self, files: &mut Vec<(Arc<F::Dir>, Child)>, page: &mut Page) -> Result<()> {
        let names: Vec<(&F::Dir, &str)> =
            files.iter().map(|(dir, child)| (&**dir, child.name.as_str())).collect();
        let stats = self.core.fs.stats(&names);
        page.infos.reserve(stats.len());
        for ((_, child), stat) in files.drain(..).zip(stats) {
            match stat {
                Ok(stat) if stat.kind == NodeKind::File => page.infos.extend(info_of(child.locator, &stat)),
                Ok(_) => page.odd.push(Odd {
                    shown: child.locator.to_string(),
                    why: "it became something else while it was looked at".to_owned(),
                    at: Some(child.locator),
                }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    page.odd.push(unseen(child.locator, "the file", &error));
                }
                Err(error) => return Err(Error::from_io(Operation::Scan, child.locator.as_str(), error)),
            }
        }
        Ok(())
    }
}

/// Says that what is at a place could not be looked at.
fn unseen(at: Locator, what: &str, error: &io::Error) -> Odd {
    Odd { shown: at.to_string(), why: format!("{what} cannot be opened: {error}"), at: Some(at) }
}

/// The order of the keys: a directory sorts as its name with the slash that follows it in them.
fn key_order(a: &Child, b: &Child) -> Ordering {
    // All of them are in one directory, so that whole keys compare as their names do.
    let (a_key, b_key) = (a.locator.as_str().as_bytes(), b.locator.as_str().as_bytes());
    let shared = a_key.len().min(b_key.len());
    let slash = |kind| (kind == EntryKind::Directory).then_some(&b'/');
    a_key[..shared].cmp(&b_key[..shared]).then_with(|| {
        a_key[shared..].iter().chain(slash(a.kind)).cmp(b_key[shared..].iter().chain(slash(b.kind)))
    })
}

/// Leaves out files whose name is another Unicode spelling of a name beside it: both would be one object. They are reported.
fn leave_out_spellings(children: &mut Vec<Child>, page: &mut Page) {
    let is_composed = |child: &Child| child.name == child.locator.name();
    if children.iter().all(is_composed) {
        return;
    }
    let composed: HashSet<Locator> =
        children.iter().filter(|child| is_composed(child)).map(|child| child.locator.clone()).collect();
    children.retain(|child| {
        let is_left_out = !is_composed(child) && composed.contains(&child.locator);
        if is_left_out {
            let parent = child.locator.parent().filter(|parent| !parent.is_root());
            let shown = match parent {
                Some(parent) => format!("{parent}/{}", child.name),
                None => child.name.clone(),
            };
            let why = "its name is another spelling of a name beside it, and only that one is served";
            page.odd.push(Odd { at: None, shown, why: why.to_owned() });
        }
        !is_left_out
    });
}

/// Reports names that a case-insensitive disk would confuse; they are served all the same.
fn report_twins(children: &[Child], page: &mut Page) {
    let differs = |child: &Child| matches!(fold(child.locator.name()), Cow::Owned(_));
    // Names that are written as they are compared cannot be twins of one another.
    if !children.iter().any(differs) {
        return;
    }
    let mut by_fold: HashMap<Cow<'_, str>, &Child> = HashMap::with_capacity(children.len());
    for child in children {
        if let Some(twin) = by_fold.insert(fold(child.locator.name()), child)
            && twin.locator != child.locator
        {
            let (first, second) = (twin.locator.as_str(), child.locator.as_str());
            let (first, second) = if first < second { (first, second) } else { (second, first) };
            page.odd.push(Odd {
                at: None,
                shown: second.to_owned(),
                why: format!("{first} differs from it only by case, and some disks cannot hold both"),
            });
        }
    }
}

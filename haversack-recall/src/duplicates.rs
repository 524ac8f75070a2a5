//! Finds passages of different memories that say nearly the same.
//!
//! Two passages are near-duplicates if they share [`ALIKE`] of their words. Passages are compared only if they share one of their rarest words, so
//! that the number of comparisons stays near the number of passages.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures_lite::StreamExt;
use futures_lite::future::block_on;
use haversack::store::{Backend, EntryKind, Locator, Result};

use crate::query::Projects;
use crate::shares::in_shares;
use crate::text::chunks::cut;

/// Passages with fewer different words are alike by chance.
const MIN_WORDS: usize = 8;

/// The part of their words that two passages share.
const ALIKE: f64 = 0.8;

/// The number of a passage's rarest words by which we look for similar passages.
const RAREST: usize = 4;

/// Words in more passages lead nowhere.
const MAX_SHARING: usize = 50;

/// Larger files are passed over.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A passage of a memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PassageOf {
    /// The memory.
    pub locator: Locator,
    /// The first and the last line, from 1.
    pub lines: (u32, u32),
}

/// Two passages that say nearly the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Duplicate {
    /// The one that comes first by name.
    pub one: PassageOf,
    /// The other.
    pub other: PassageOf,
    /// The part of their words that they share; 1 if they have the same words.
    pub alike: f64,
}

/// Returns the near-duplicates below a place, within the projects that may be seen, in the order of their names.
pub async fn duplicates(
    files: &dyn Backend,
    within: &Locator,
    projects: &Projects,
) -> Result<Vec<Duplicate>> {
    let mut pages = files.scan(within, None);
    let mut passages: Vec<(PassageOf, HashSet<String>)> = Vec::new();
    while let Some(page) = pages.next().await {
        let is_looked_at = |info: &haversack::store::Info| {
            info.kind == EntryKind::File && info.size_bytes <= MAX_FILE_BYTES && projects.hold(&info.locator)
        };
        let infos: Vec<_> = page?.infos.into_iter().filter(is_looked_at).collect();
        let read = in_shares(&infos, |info| {
            let object = block_on(files.read(&info.locator)).ok()?;
            let text = std::str::from_utf8(&object.bytes).ok()?;
            Some(cut(&info.locator, text).chunks)
        });
        for (info, chunks) in infos.iter().zip(read) {
            for chunk in chunks.into_iter().flatten() {
                let words: HashSet<String> = chunk
                    .terms
                    .into_iter()
                    .filter(|(_, count)| count.text > 0)
                    .map(|(term, _)| term)
                    .collect();
                if words.len() >= MIN_WORDS {
                    passages.push((PassageOf { locator: info.locator.clone(), lines: chunk.lines }, words));
                }
            }
        }
    }
    Ok(alike(&passages))
}

fn alike(passages: &[(PassageOf, HashSet<String>)]) -> Vec<Duplicate> {
    let mut having: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, (_, words)) in passages.iter().enumerate() {
        words.iter().for_each(|word| having.entry(word).or_default().push(at));
    }
    let mut found: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for (at, (passage, words)) in passages.iter().enumerate() {
        let mut rarest: Vec<(usize, &str)> =
            words.iter().map(|word| (having[word.as_str()].len(), word.as_str())).collect();
        rarest.sort_unstable();
        // A word that only this passage has leads to no other.
        let leading = rarest.iter().filter(|(count, _)| (2..=MAX_SHARING).contains(count)).take(RAREST);
        for other in leading.flat_map(|(_, word)| having[word].iter().copied()) {
            let pair = (at.min(other), at.max(other));
            if pair.0 == pair.1 || passages[other].0.locator == passage.locator || found.contains_key(&pair) {
                continue;
            }
            let shared = words.intersection(&passages[other].1).count();
            let all = words.len() + passages[other].1.len() - shared;
            let float = |number: usize| u32::try_from(number).map_or(f64::MAX, f64::from);
            if float(shared) >= ALIKE * float(all) {
                found.insert(pair, float(shared) / float(all));
            }
        }
    }
    let mut duplicates: Vec<Duplicate> = Vec::new();
    for ((one, other), alike) in found {
        let (one, other) = (passages[one].0.clone(), passages[other].0.clone());
        let (one, other) = if one <= other { (one, other) } else { (other, one) };
        duplicates.push(Duplicate { one, other, alike });
    }
    duplicates.sort_by(|first, second| (&first.one, &first.other).cmp(&(&second.one, &second.other)));
    duplicates
}

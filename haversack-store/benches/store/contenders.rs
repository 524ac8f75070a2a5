//! One round of one operation, ours or bare.

use haversack_bench::Outcome;
use haversack_bench::measure::{Contender, timed};
use haversack_store::{Condition, Durability, Locator};

use crate::site::{Site, locators};

/// Reads the keys that `keys` names for a round.
pub(crate) fn read<'a>(site: &'a Site, mut keys: impl FnMut(usize) -> Vec<String> + 'a) -> Contender<'a> {
    Box::new(move |round| {
        let mut samples = Vec::new();
        for locator in locators(&keys(round))? {
            drop(timed(&mut samples, || site.store.read(&locator))?);
        }
        Ok(samples)
    })
}

/// Writes the keys that `keys` names for a round, always under the same condition.
pub(crate) fn write<'a>(
    site: &'a Site,
    size: usize,
    condition: Condition,
    mut keys: impl FnMut(usize) -> Vec<String> + 'a,
) -> Contender<'a> {
    Box::new(move |round| {
        let mut samples = Vec::new();
        for locator in locators(&keys(round))? {
            let (bytes, condition) = (site.content(size), condition.clone());
            drop(timed(&mut samples, || site.store.write(&locator, bytes, condition))?);
        }
        Ok(samples)
    })
}

/// Replaces one object again and again, each time naming the version that was written before.
pub(crate) fn write_matching<'a>(
    site: &'a Site,
    size: usize,
    key: &str,
    count: usize,
) -> Outcome<Contender<'a>> {
    let locator = Locator::parse(key)?;
    let mut version = site.store.write(&locator, site.content(size), Condition::Any)?.version;
    Ok(Box::new(move |_| {
        let mut samples = Vec::new();
        for _ in 0..count {
            let (bytes, condition) = (site.content(size), Condition::Matches(version.clone()));
            version = timed(&mut samples, || site.store.write(&locator, bytes, condition))?.version;
        }
        Ok(samples)
    }))
}

/// Appends to one object again and again, durably.
pub(crate) fn append<'a>(site: &'a Site, size: usize, key: &str, count: usize) -> Outcome<Contender<'a>> {
    let locator = Locator::parse(key)?;
    Ok(Box::new(move |_| {
        let mut samples = Vec::new();
        for _ in 0..count {
            let bytes = site.content(size);
            drop(timed(&mut samples, || site.store.append(&locator, bytes, Durability::Now))?);
        }
        Ok(samples)
    }))
}

/// Lets the bare loop do `command` at the keys that `keys` names for a round.
pub(crate) fn bare<'a>(
    site: &'a Site,
    command: &'a str,
    size: usize,
    mut keys: impl FnMut(usize) -> Vec<String> + 'a,
) -> Contender<'a> {
    Box::new(move |round| site.bare.run(command, size, &keys(round)))
}

//! Memory stores of Anthropic's that are carried with this memory: `memory-stores.toml` in the home.
//!
//! Each is bound to a directory of the memory. `haversack sync` brings both together before it syncs with the other machines. A store is never a
//! remote, and what is only read is never written.

use std::path::PathBuf;

use haversack::carried::{Access, Carried, CarryReport, carry};
use haversack::ids::ContentHash;
use haversack::store::cloud::{ANTHROPIC, ANTHROPIC_KEY, ANTHROPIC_READ_ONLY};
use haversack::store::{Backend, Capabilities, DeviceLocal, Locator, OpenOptions, Registry, block_on};
use serde::{Deserialize, Serialize};

use crate::error::CommandError;
use crate::home::gate::NothingPrivate;
use crate::home::kinds;
use crate::home::store::open;
use crate::records;
use crate::settings::{Settings, shown};

/// How the address of a memory store begins.
pub(crate) const ADDRESS: &str = "anthropic:";

/// A memory store and the directory that it is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryStore {
    pub(crate) address: String,
    pub(crate) prefix: Locator,
    pub(crate) access: Access,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    #[serde(default)]
    store: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    address: String,
    prefix: String,
    #[serde(default)]
    read_only: bool,
}

fn file(settings: &Settings) -> PathBuf {
    settings.home.join("memory-stores.toml")
}

/// Returns the memory stores of a home, in the order in which they were added.
pub(crate) fn of(settings: &Settings) -> Result<Vec<MemoryStore>, CommandError> {
    let cure = "Mend it, or remove it and add the stores again: haversack mount add anthropic:STORE PREFIX";
    let lines: Lines = records::read(&file(settings), cure)?.unwrap_or_default();
    let parse = |line: Line| {
        let prefix = Locator::parse(&line.prefix)
            .map_err(|error| CommandError::user(format!("{}: {error}", shown(&file(settings))), cure))?;
        let access = if line.read_only { Access::ReadOnly } else { Access::ReadAndWrite };
        Ok(MemoryStore { address: line.address, prefix, access })
    };
    lines.store.into_iter().map(parse).collect()
}

fn save(settings: &Settings, stores: &[MemoryStore]) -> Result<(), CommandError> {
    let line = |store: &MemoryStore| Line {
        address: store.address.clone(),
        prefix: store.prefix.to_string(),
        read_only: store.access == Access::ReadOnly,
    };
    let lines = Lines { store: stores.iter().map(line).collect() };
    records::write(&file(settings), &lines, records::Weight::Durable)
}

/// Binds a memory store to a directory of the memory. It is opened, so that a mistyped address is told now, and asked nothing.
pub(crate) fn add(settings: &Settings, added: MemoryStore) -> Result<(), CommandError> {
    if added.prefix.is_root() {
        return Err(CommandError::user(
            "a memory store is bound to a place in the memory, not to all of it",
            format!("Name one: haversack mount add {} team", added.address),
        ));
    }
    let mut stores = of(settings)?;
    let overlaps = |other: &&MemoryStore| {
        other.address == added.address
            || other.prefix.is_within(&added.prefix)
            || added.prefix.is_within(&other.prefix)
    };
    if let Some(other) = stores.iter().find(overlaps) {
        return Err(CommandError::user(
            format!("{} is bound to {} already", other.address, other.prefix),
            format!("Unbind it first: haversack mount remove {}", other.address),
        ));
    }
    drop(storage(settings, &added)?);
    stores.push(added);
    save(settings, &stores)
}

/// Lets a memory store go; its files stay on both sides. Tells whether it was bound.
pub(crate) fn remove(settings: &Settings, address: &str) -> Result<bool, CommandError> {
    let mut stores = of(settings)?;
    let before = stores.len();
    stores.retain(|store| store.address != address);
    if stores.len() == before {
        return Ok(false);
    }
    save(settings, &stores)?;
    let agreement = agreement(settings, address);
    // The rest is only a copy: the next binding starts without one.
    drop(std::fs::remove_dir_all(agreement));
    Ok(true)
}

/// A memory store, and the result of bringing it together with its directory.
pub(crate) type CarriedStore = (MemoryStore, Result<CarryReport, CommandError>);

/// Brings every memory store together with its directory.
pub(crate) fn carry_all(settings: &Settings) -> Result<Vec<CarriedStore>, CommandError> {
    if settings.keep_local {
        return Ok(Vec::new());
    }
    let stores = of(settings)?.into_iter();
    Ok(stores.map(|store| (store.clone(), carry_one(settings, &store))).collect())
}

fn carry_one(settings: &Settings, store: &MemoryStore) -> Result<CarryReport, CommandError> {
    let storage = storage(settings, store)?;
    let agreement = DeviceLocal::open(agreement(settings, &store.address), settings.locks())?;
    let (memory, kinds) = (open(settings)?, kinds::load(settings)?);
    let gate = NothingPrivate::of(settings)?.for_copies();
    let carried = Carried {
        memory: &memory,
        prefix: &store.prefix,
        storage: &*storage,
        agreement: &agreement,
        kinds: &kinds,
        gate: &gate,
        access: store.access,
        names: ["this machine", &store.address],
    };
    Ok(block_on(carry(carried))?)
}

fn storage(settings: &Settings, store: &MemoryStore) -> Result<std::sync::Arc<dyn Backend>, CommandError> {
    let mut cloud = settings.cloud.clone();
    if store.access == Access::ReadOnly {
        cloud.set(ANTHROPIC_READ_ONLY, "true");
    }
    let locks = shown(&settings.shared_locks());
    let options = OpenOptions { address: store.address.clone(), locks, settings: cloud };
    let opened = Registry::standard().select(ANTHROPIC, &options, &Capabilities::default());
    opened.map_err(|error| {
        let hint = format!(
            "Name the store as anthropic:memstore_…, and set {ANTHROPIC_KEY} to a key that may use it"
        );
        CommandError { hint: Some(hint), ..CommandError::from(error) }
    })
}

fn agreement(settings: &Settings, address: &str) -> PathBuf {
    let name = &ContentHash::of(address.as_bytes()).to_string()[..16];
    settings.home.join("state").join("memory-stores").join(name)
}

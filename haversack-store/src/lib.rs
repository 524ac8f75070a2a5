//! Bytes at locators, with compare-and-swap: the ground that Haversack stands on.
//!
//! A [`Backend`] keeps bytes at [`Locator`]s; conditions, versions and locks make it safe for several
//! writers. [`DeviceLocal`] keeps them as plain files, [`Vault`] in a folder that a sync client replicates,
//! [`InMemory`] forgets them, a [`Registry`] finds them by name. This is the only library crate of Haversack that touches a disk or a network.
//!
//! ```
//! use std::sync::Arc;
//! use haversack_store::{Blocking, Condition, InMemory, Locator};
//!
//! let store = Blocking::new(Arc::new(InMemory::new()));
//! let notes = Locator::parse("notes/today.md")?;
//! let first = store.write(&notes, "port 5433\n", Condition::Absent)?;
//! store.write(&notes, "port 5434\n", Condition::Matches(first.version.clone()))?;
//! // A writer with the first version gets an error, and nothing is lost.
//! assert!(store.write(&notes, "port 5435\n", Condition::Matches(first.version)).is_err());
//! assert_eq!(store.read_text(&notes)?.as_deref(), Some("port 5434\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Conformance
//! With the feature `conformance` the contract is a public table of cases that any backend can run with
//! one line.

mod backend;
mod blocking;
mod cached;
mod capabilities;
#[cfg(feature = "cloud")]
pub mod cloud;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod device_local;
mod directory_kind;
mod error;
mod ext;
#[cfg(feature = "conformance")]
mod faulty;
mod fence;
mod forward;
mod locator;
mod memory;
mod mounted;
mod prefixed;
mod refuse;
mod registry;
mod shared_directory;
mod split;
mod tier;
pub mod vault;
mod version;

pub use backend::{
    Appended, Backend, BackendFuture, Condition, Displaced, Durability, Entry, EntryKind, Guard, Info,
    Listing, Object, Odd, Page, Pages, Written,
};
pub use blocking::{Blocking, aside, block_on};
pub use bytes::Bytes;
pub use cached::Cached;
pub use capabilities::{Capabilities, ConflictStrategy};
pub use device_local::DeviceLocal;
pub use directory_kind::{Client, DirectoryKind, put_aside, recognise};
pub use error::{Error, ErrorKind, Operation, Result};
pub use ext::BackendExt;
#[cfg(feature = "conformance")]
pub use faulty::{Fault, Faulty};
pub use fence::is_fenced;
pub use locator::{InvalidLocator, Locator, MAX_KEY_BYTES, MAX_SEGMENT_BYTES, Reason};
pub use memory::InMemory;
pub use mounted::{Mounted, Overlay};
pub use prefixed::Prefixed;
pub use registry::{BadRegistration, Lookup, Open, OpenOptions, Registered, Registry, Settings};
pub use shared_directory::{directory_of, file_address, vault_address};
pub use split::SplitBackend;
pub use tier::{Changes, DerivedMaintenance, Sightings, Tier, look_again};
pub use vault::Vault;
pub use version::{Fingerprint, InvalidFingerprint, TouchMark, Version};

/// The guide's examples are run with the documentation's.
#[cfg(all(doctest, feature = "conformance"))]
#[doc = include_str!("../../docs/guide/backends.md")]
struct Guide;

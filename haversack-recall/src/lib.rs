//! Finding a memory again.
//!
//! [`MemorySearch`] answers a [`Query`] from an index, which it keeps true to the memory. The index is of the
//! [`LocalIndex`](haversack::store::Tier::LocalIndex) tier: never authoritative, never carried to another machine, deletable at any time.
//!
//! "Nothing is relevant" is an answer without [hits](Recalled::hits). "Could not look" is an error. Files that could not be looked at are
//! [listed](Recalled::unread).

mod duplicates;
mod error;
mod index;
#[cfg(feature = "semantic")]
mod model;
mod passage;
mod query;
mod rank;
mod recall;
mod same;
mod shares;
mod text;
mod vectors;

pub use self::duplicates::{Duplicate, PassageOf, duplicates};
pub use self::error::{Error, ErrorKind, Result};
pub use self::index::place::{Health, Thoroughness, health};
pub use self::index::vectors::VectorCount;
pub use self::index::{SCHEMA as NEWEST_INDEX, Size};
#[cfg(feature = "semantic")]
pub use self::model::{LazyModel, Model};
pub use self::query::{DEFAULT_LIMIT, Projects, Query, Unit, project_of};
pub use self::rank::Parts;
pub use self::recall::{ByMeaning, FoundBy, Hit, IndexedMemory, MemorySearch, Place, Recalled};
pub use self::same::KnownFacts;
pub use self::text::dates::{Span, UnknownTime};
pub use self::vectors::{Embedder, MODEL, VOCABULARY_FILE, Vector, WEIGHTS_FILE};

//! Maps and sets by texts of files.
//!
//! What a merge spends most of its time on is telling texts apart: every line, item and key is looked up at least once. The usual hasher
//! is made to withstand anybody and takes several times as long on short texts. This one has other keys in every process, too. Who would
//! find texts that collide all the same makes a merge slow, and nothing else: no outcome depends on the order in a map.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

/// A map by texts.
pub(super) type TextMap<K, V> = HashMap<K, V, RandomState>;

/// A set of texts.
pub(super) type TextSet<K> = HashSet<K, RandomState>;

//! Finding a memory again: the index that is derived from a store.
//!
//! This crate will be the only one that links index libraries. Whatever it keeps is of the
//! [`LocalIndex`](haversack::store::Tier::LocalIndex) tier: never authoritative, never carried to another machine,
//! deletable at any time. It learns what to read again from
//! [`look_again`](haversack::store::look_again).

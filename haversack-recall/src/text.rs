//! From texts to passages and terms. Pure.

pub(crate) mod chunks;
pub(crate) mod dates;
pub(crate) mod tokens;

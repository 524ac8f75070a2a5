//! Paths as people read them and as a shell takes them.

use std::path::Path;

pub(crate) use crate::error::quoted;

/// Returns a path as people write it.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

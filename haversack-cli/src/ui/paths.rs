//! Paths as people read them and as a shell takes them.

use std::borrow::Cow;
use std::path::Path;

pub(crate) use crate::error::quoted;

/// Returns a path as people write it.
pub(crate) fn shown(path: &Path) -> String {
    plain(&path.display().to_string()).into_owned()
}

/// Returns a path without the prefix that Windows adds when it resolves links: `C:\work` for `\\?\C:\work`. Other paths stay as they are.
pub(crate) fn plain(path: &str) -> Cow<'_, str> {
    match path.strip_prefix(r"\\?\UNC\") {
        Some(share) => Cow::Owned(format!(r"\\{share}")),
        None => Cow::Borrowed(path.strip_prefix(r"\\?\").unwrap_or(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_of_resolved_windows_paths_is_left_out() {
        for (path, expected) in [
            (r"\\?\C:\work", r"C:\work"),
            (r"\\?\UNC\server\share", r"\\server\share"),
            (r"C:\work", r"C:\work"),
            ("/home/me/work", "/home/me/work"),
        ] {
            assert_eq!(shown(Path::new(path)), expected);
        }
    }
}

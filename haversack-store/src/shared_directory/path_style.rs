//! Paths of directories as addresses hold them, for Unix and for Windows.
//!
//! The path of an address begins with a slash and has slashes only. On Unix it is the directory's path. Windows has drives and network shares:
//!
//! | the directory | the path in its address |
//! |---|---|
//! | `C:\shared` | `/C:/shared` |
//! | `\\?\C:\shared`, as Windows resolves links | `/C:/shared` |
//! | `\\server\share\memory` | `//server/share/memory` |
//! | `\\?\UNC\server\share\memory` | `//server/share/memory` |

/// How a system writes paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathStyle {
    Unix,
    Windows,
}

impl PathStyle {
    /// The style of the system that this program runs on.
    pub(super) const NATIVE: PathStyle = if cfg!(windows) { PathStyle::Windows } else { PathStyle::Unix };

    /// Returns the path of a directory as an address holds it; the error says why no address can hold it.
    pub(super) fn in_address(self, path: &str) -> Result<String, &'static str> {
        if self == PathStyle::Unix {
            return Ok(path.to_owned());
        }
        let path = path.replace('\\', "/");
        let (share, rest) = match path.strip_prefix("//?/") {
            Some(long) => match long.strip_prefix("UNC/") {
                Some(share) => (true, share),
                None => (false, long),
            },
            None => match path.strip_prefix("//") {
                Some(share) => (true, share),
                None => (false, &*path),
            },
        };
        match share {
            true => Ok(format!("//{rest}")),
            false if begins_with_drive(rest) => Ok(format!("/{rest}")),
            false => Err("the path must begin with a drive or a network share"),
        }
    }

    /// Returns the path of a directory from the path of an address, which begins with a slash.
    pub(super) fn path_in(self, path: &str) -> Result<String, &'static str> {
        if self == PathStyle::Unix {
            return Ok(path.to_owned());
        }
        let native = match (path.strip_prefix("//"), path.strip_prefix('/')) {
            (Some(share), _) if !share.starts_with(['/', '?', '.']) => format!("//{share}"),
            (None, Some(rest)) if begins_with_drive(rest) => rest.to_owned(),
            _ => return Err("on Windows the path begins with a drive: file:///C:/memory"),
        };
        Ok(native.replace('/', "\\"))
    }
}

/// Returns true if a path begins with a drive and a slash, or is a drive.
fn begins_with_drive(path: &str) -> bool {
    let mut letters = path.bytes();
    let has_drive =
        letters.next().is_some_and(|letter| letter.is_ascii_alphabetic()) && letters.next() == Some(b':');
    has_drive && matches!(letters.next(), Some(b'/' | b'\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_paths_have_addresses() {
        for (path, address) in [
            (r"C:\shared", Some("/C:/shared")),
            (r"\\?\C:\Users\me\demo-1", Some("/C:/Users/me/demo-1")),
            ("d:/my files", Some("/d:/my files")),
            (r"C:\", Some("/C:/")),
            (r"\\server\share\memory", Some("//server/share/memory")),
            (r"\\?\UNC\server\share\memory", Some("//server/share/memory")),
            (r"\shared", None),
            (r"C:shared", None),
            ("C:", None),
            ("shared", None),
            (r"\\?\GLOBALROOT\x", None),
        ] {
            assert_eq!(PathStyle::Windows.in_address(path).ok().as_deref(), address, "{path}");
        }
    }

    #[test]
    fn addresses_have_windows_paths() {
        for (address, path) in [
            ("/C:/shared", Some(r"C:\shared")),
            ("/d:/my files", Some(r"d:\my files")),
            (r"/C:\shared", Some(r"C:\shared")),
            ("//server/share/memory", Some(r"\\server\share\memory")),
            ("/srv/memory", None),
            ("/C:", None),
            ("/C:memory", None),
            ("///C:/memory", None),
            ("//?/C:/memory", None),
            ("//./pipe/x", None),
        ] {
            assert_eq!(PathStyle::Windows.path_in(address).ok().as_deref(), path, "{address}");
        }
    }

    #[test]
    fn windows_paths_survive_the_way_to_an_address_and_back() {
        for (path, again) in [
            (r"C:\shared\ü", r"C:\shared\ü"),
            (r"\\?\C:\shared", r"C:\shared"),
            (r"\\?\UNC\server\share", r"\\server\share"),
        ] {
            let address = PathStyle::Windows.in_address(path).expect("it has an address");
            assert_eq!(PathStyle::Windows.path_in(&address).as_deref(), Ok(again), "{path}");
        }
    }

    #[test]
    fn unix_paths_stay_as_they_are() {
        for path in ["/srv/memory", "/C:/shared", r"/a\b"] {
            assert_eq!(PathStyle::Unix.in_address(path).as_deref(), Ok(path));
            assert_eq!(PathStyle::Unix.path_in(path).as_deref(), Ok(path));
        }
    }
}

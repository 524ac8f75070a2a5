//! `file://`: a plain directory where the devices of one host meet, or a disk that is carried from one to the next.
//!
//! It is device-local by another door. Two hosts at once need more than a directory: on a network filesystem locks and exclusive
//! creation cannot be trusted, and a folder that a sync client replicates holds whatever the client makes of it. Both are refused:
//! such a place is a [`vault`](crate::vault), whose addresses are read here too.

mod path_style;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::backend::Backend;
use crate::device_local::DeviceLocal;
use crate::directory_kind::recognise;
use crate::error::{Error, ErrorKind, Operation, Result};
use path_style::PathStyle;

/// The name of this way to a directory.
pub(crate) const PROTOCOL: &str = "file";

/// The beginnings of a directory's address.
const SCHEMES: [&str; 2] = ["file://", "vault://"];

/// Characters that an address must encode.
const ENCODED: AsciiSet = CONTROLS.add(b' ').add(b'%').add(b'#').add(b'?').add(b'"').add(b'<').add(b'>');

/// Opens the directory of a `file://` address, making it if need be, with its lock files in the directory `locks`.
pub(crate) fn open(address: &str, locks: &str) -> Result<Arc<dyn Backend>> {
    let directory = directory_of(address)?;
    refuse_shared(address, &directory)?;
    Ok(Arc::new(DeviceLocal::open(&directory, locks)?))
}

/// Returns the directory that a `file://` or `vault://` address names.
pub fn directory_of(address: &str) -> Result<PathBuf> {
    let refused = |message: &str| Error::at(ErrorKind::Invalid, Operation::Open, address, message);
    let path = SCHEMES.iter().find_map(|scheme| address.strip_prefix(scheme));
    let path = path.ok_or_else(|| refused("it begins neither with file:// nor with vault://"))?;
    // `file://host/path` would be another host's.
    if !path.starts_with('/') {
        return Err(refused("the path must be absolute: file:///home/me/memory"));
    }
    let path = percent_decode_str(path).decode_utf8().map_err(|_| refused("it is not UTF-8"))?;
    Ok(PathBuf::from(PathStyle::NATIVE.path_in(&path).map_err(refused)?))
}

/// Returns the `file://` address of a directory, which must be named from the root of the filesystem on.
pub fn file_address(directory: &Path) -> Result<String> {
    address("file", directory)
}

/// Returns the `vault://` address of a folder, which must be named from the root of the filesystem on.
pub fn vault_address(folder: &Path) -> Result<String> {
    address("vault", folder)
}

fn address(scheme: &str, directory: &Path) -> Result<String> {
    let refused = |message: &str| {
        Error::at(ErrorKind::Invalid, Operation::Open, directory.display().to_string(), message)
    };
    if !directory.is_absolute() {
        return Err(refused("the path must be absolute"));
    }
    let path = directory.to_str().ok_or_else(|| refused("it is not UTF-8"))?;
    let path = PathStyle::NATIVE.in_address(path).map_err(refused)?;
    Ok(format!("{scheme}://{}", utf8_percent_encode(&path, &ENCODED)))
}

/// Refuses a directory that other hosts can change while we look.
fn refuse_shared(address: &str, directory: &Path) -> Result<()> {
    let place = recognise(directory, None);
    if !place.is_shared() {
        return Ok(());
    }
    let message = format!("it is {place}: two machines at once would not see each other's writes there");
    Err(Error::at(ErrorKind::Unsupported, Operation::Open, address, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn addresses() {
        for (address, path) in [
            ("file:///srv/memory", Some("/srv/memory")),
            ("file:///with%20space/%C3%BC", Some("/with space/ü")),
            ("file://host/memory", None),
            ("file://memory", None),
            ("file:///100%", Some("/100%")),
            ("file:///a%ff", None),
            ("vault:///srv/memory", Some("/srv/memory")),
            ("vault:///with%20space", Some("/with space")),
            ("vault://host/memory", None),
            ("/srv/memory", None),
            ("s3://bucket", None),
        ] {
            assert_eq!(directory_of(address).ok().as_deref(), path.map(Path::new), "{address}");
        }
    }

    #[cfg(windows)]
    #[test]
    fn addresses_name_drives() {
        assert_eq!(directory_of("file:///C:/my%20files").expect("a directory"), Path::new(r"C:\my files"));
        assert!(directory_of("file:///srv/memory").is_err());
        assert_eq!(file_address(Path::new(r"\\?\C:\shared")).expect("absolute"), "file:///C:/shared");
    }

    #[cfg(unix)]
    #[test]
    fn the_address_of_a_folder_leads_back_to_it() {
        let drive = "/Users/me/Library/Mobile Documents/com~apple~CloudDocs/me%mory #1";
        for folder in ["/srv/memory", "/with space/ü/日記", "/100%", "/a%20b", drive, "/what?", "/a\"b<c>\nd"]
        {
            let address = vault_address(Path::new(folder)).expect("absolute");
            assert_eq!(directory_of(&address).expect("an address"), Path::new(folder), "{address}");
            assert!(!address.contains(' '), "{address}");
            let address = file_address(Path::new(folder)).expect("absolute");
            assert_eq!(directory_of(&address).expect("an address"), Path::new(folder), "{address}");
        }
        assert!(vault_address(Path::new("memory")).is_err() && file_address(Path::new("memory")).is_err());
    }

    #[test]
    fn a_folder_that_is_shared_is_refused() {
        let base = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(base.path().join(".stfolder")).expect("made");
        let error = refuse_shared("file:///x", &base.path().join("memory")).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(
            error.message(),
            "it is in a folder that Syncthing replicates: two machines at once would not see each other's writes there"
        );
    }
}

//! `file://`: a plain directory where the devices of one host meet, or a disk that is carried from one to the next.
//!
//! It is device-local by another door. Two hosts at once need more than a directory: on a network filesystem locks and exclusive
//! creation cannot be trusted, and a folder that a sync client replicates holds whatever the client makes of it. Both are refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::percent_decode_str;

use crate::backend::Backend;
use crate::device_local::DeviceLocal;
use crate::error::{Error, ErrorKind, Operation, Result};

/// The name of this way to a directory.
pub(crate) const PROTOCOL: &str = "file";

/// What an address begins with.
const SCHEME: &str = "file://";

/// Opens the directory of a `file://` address, making it if need be, with its lock files in the directory `locks`.
pub(crate) fn open(address: &str, locks: &str) -> Result<Arc<dyn Backend>> {
    let directory = directory_of(address)?;
    refuse_shared(address, &directory)?;
    Ok(Arc::new(DeviceLocal::open(&directory, locks)?))
}

/// Returns the directory that a `file://` address names.
pub fn directory_of(address: &str) -> Result<PathBuf> {
    let refused = |message: &str| Error::at(ErrorKind::Invalid, Operation::Open, address, message);
    let path = address.strip_prefix(SCHEME).ok_or_else(|| refused("it does not begin with file://"))?;
    // `file://host/path` would be another host's.
    if !path.starts_with('/') {
        return Err(refused("the path must be absolute: file:///home/me/memory"));
    }
    let path = percent_decode_str(path).decode_utf8();
    Ok(PathBuf::from(path.map_err(|_| refused("it is not UTF-8"))?.into_owned()))
}

/// Refuses a directory that other hosts can change while we look.
fn refuse_shared(address: &str, directory: &Path) -> Result<()> {
    let refused = |what: String| {
        let message = format!("{what}: two machines at once would not see each other's writes there");
        Err(Error::at(ErrorKind::Unsupported, Operation::Open, address, message))
    };
    let there = directory.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(directory);
    let there = there.canonicalize().unwrap_or_else(|_| there.to_owned());
    if let Some(filesystem) = network_filesystem(&there) {
        return refused(format!("it is on a network filesystem ({filesystem})"));
    }
    if let Some(client) = synced_by(&there, |path| path.exists()) {
        return refused(format!("it is in a folder that {client} replicates"));
    }
    Ok(())
}

/// Returns the name of the network filesystem that a directory is on, if it is on one.
#[cfg(target_os = "linux")]
fn network_filesystem(directory: &Path) -> Option<&'static str> {
    /// What `statfs` calls filesystems that another host can change.
    const NETWORK: [(u64, &str); 9] = [
        (0x6969, "NFS"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB2"),
        (0x517b, "SMB"),
        (0x0102_1997, "9P"),
        (0x00c3_6400, "Ceph"),
        (0x5346_414f, "AFS"),
        (0x0bd0_0bd0, "Lustre"),
        (0x0116_1970, "GFS2"),
    ];
    let found = rustix::fs::statfs(directory).ok()?;
    let kind = u64::try_from(found.f_type).ok()? & 0xffff_ffff;
    NETWORK.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
fn network_filesystem(_: &Path) -> Option<&'static str> {
    None
}

/// Returns which sync client replicates a folder, by what such clients leave in it or above it.
fn synced_by(directory: &Path, exists: impl Fn(&Path) -> bool) -> Option<&'static str> {
    const MARKS: [(&str, &str); 6] = [
        (".dropbox", "Dropbox"),
        (".dropbox.cache", "Dropbox"),
        (".stfolder", "Syncthing"),
        (".tmp.drivedownload", "Google Drive"),
        (".849C9593-D756-4E56-8D6E-42412F2A707B", "OneDrive"),
        (".sync.ffs_db", "FreeFileSync"),
    ];
    for ancestor in directory.ancestors() {
        let name = ancestor.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let above = ancestor.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        if name == "Mobile Documents" && above == Some("Library") {
            return Some("iCloud Drive");
        }
        if let Some((_, client)) = MARKS.iter().find(|(mark, _)| exists(&ancestor.join(mark))) {
            return Some(client);
        }
        if name == "OneDrive" || name.starts_with("OneDrive - ") {
            return Some("OneDrive");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (address, path) in [
            ("file:///srv/memory", Some("/srv/memory")),
            ("file:///with%20space/%C3%BC", Some("/with space/ü")),
            ("file://host/memory", None),
            ("file://memory", None),
            ("file:///100%", Some("/100%")),
            ("file:///a%ff", None),
            ("/srv/memory", None),
            ("s3://bucket", None),
        ] {
            assert_eq!(directory_of(address).ok().as_deref(), path.map(Path::new), "{address}");
        }
    }

    #[test]
    fn folders_of_sync_clients() {
        let clients = |directory: &str, there: &str| {
            synced_by(Path::new(directory), |path| path == Path::new(there)).unwrap_or("nobody")
        };
        assert_eq!(clients("/home/me/Dropbox/memory", "/home/me/Dropbox/.dropbox.cache"), "Dropbox");
        assert_eq!(clients("/home/me/Sync/deep/er", "/home/me/Sync/.stfolder"), "Syncthing");
        assert_eq!(clients("/Users/me/Library/Mobile Documents/x", ""), "iCloud Drive");
        assert_eq!(clients("/home/me/OneDrive - lighthouse/x", ""), "OneDrive");
        assert_eq!(clients("/home/me/Dropbox/memory", ""), "nobody", "a name alone says nothing");
    }
}

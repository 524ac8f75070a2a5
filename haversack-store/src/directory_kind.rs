//! Recognises the kind of a directory: copied by a sync client, on a network filesystem, or on this machine's own disk.
//!
//! Signs, from the strongest to the weakest:
//!
//! 1. Files that a client leaves in its folder, or a list of folders that it keeps in the user's home directory.
//! 2. The name of the folder, if only a client gives it (`Dropbox`, `OneDrive - Company`, `Library/CloudStorage/…`).
//! 3. The kind of filesystem: network shares and mounted clouds.
//! 4. A name that both clients and people use (`Sync`, `Box`, `MEGA`): [`DirectoryKind::Perhaps`]. The caller asks the user if it needs to know.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A program that replicates folders.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Client {
    /// Dropbox.
    Dropbox,
    /// Microsoft OneDrive.
    OneDrive,
    /// Apple's iCloud Drive.
    ICloud,
    /// Google Drive.
    GoogleDrive,
    /// Syncthing.
    Syncthing,
    /// Nextcloud or ownCloud.
    Nextcloud,
    /// Another one, known by its name.
    Other(String),
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Client::Dropbox => "Dropbox",
            Client::OneDrive => "OneDrive",
            Client::ICloud => "iCloud Drive",
            Client::GoogleDrive => "Google Drive",
            Client::Syncthing => "Syncthing",
            Client::Nextcloud => "Nextcloud",
            Client::Other(name) => name,
        })
    }
}

/// The kind of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryKind {
    /// In a folder that a client replicates.
    Synced {
        /// The sync client.
        by: Client,
        /// The folder it replicates.
        folder: PathBuf,
        /// The sign by which we recognised it.
        mark: String,
    },
    /// On a filesystem that other machines can change.
    Network {
        /// The system's name of the filesystem.
        filesystem: &'static str,
    },
    /// In an Obsidian vault: Obsidian may replicate it or not, and nothing in the folder tells.
    ///
    /// Obsidian Sync leaves out everything that begins with a dot.
    Obsidian {
        /// The directory that holds `.obsidian`.
        folder: PathBuf,
    },
    /// On a disk of this machine, with a sign that a client may copy it. The caller asks the user if it needs to know.
    Perhaps {
        /// The directory with the sign.
        folder: PathBuf,
        /// The sign, as the end of a sentence.
        mark: String,
    },
    /// On a disk of this machine without any sign of another writer.
    Local,
}

impl DirectoryKind {
    /// Returns true if other machines can change it while we look; a weak sign is not enough.
    pub fn is_shared(&self) -> bool {
        match self {
            DirectoryKind::Synced { .. } | DirectoryKind::Network { .. } | DirectoryKind::Obsidian { .. } => {
                true
            }
            DirectoryKind::Perhaps { .. } | DirectoryKind::Local => false,
        }
    }
}

impl fmt::Display for DirectoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DirectoryKind::Synced { by, .. } => write!(f, "in a folder that {by} replicates"),
            DirectoryKind::Network { filesystem } => write!(f, "on a network filesystem ({filesystem})"),
            DirectoryKind::Obsidian { .. } => f.write_str("in an Obsidian vault, which may be replicated"),
            DirectoryKind::Perhaps { mark, .. } => write!(f, "perhaps replicated: {mark}"),
            DirectoryKind::Local => f.write_str("a directory of this machine"),
        }
    }
}

/// Tells what sort of place a directory is, which need not be there yet.
///
/// With the user's home directory, what clients write down there about their folders counts too.
pub fn recognise(directory: &Path, home: Option<&Path>) -> DirectoryKind {
    let there = directory.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(directory);
    let there = there.canonicalize().unwrap_or_else(|_| there.to_owned());
    if let Some((by, folder, mark)) = replicated(&there).or_else(|| written_down(&there, home?)) {
        return DirectoryKind::Synced { by, folder, mark };
    }
    if let Some(filesystem) = network_filesystem(&there) {
        return DirectoryKind::Network { filesystem };
    }
    // The parts that are not there yet have names too.
    let named = directory.ancestors().chain(there.ancestors());
    // A directory around the user's home is named after something else: a user, a disk.
    let named: Vec<&Path> =
        named.filter(|folder| !home.is_some_and(|home| home.starts_with(folder))).collect();
    for folder in &named {
        let name = text(folder.file_name());
        if let Some(by) = found_by_name(name, text(folder.parent().and_then(Path::file_name))) {
            return DirectoryKind::Synced { by, folder: folder.to_path_buf(), mark: called(name) };
        }
    }
    if let Some(folder) = there.ancestors().find(|ancestor| ancestor.join(".obsidian").is_dir()) {
        return DirectoryKind::Obsidian { folder: folder.to_owned() };
    }
    for folder in named {
        if let Some(mark) = weak_sign(text(folder.file_name())) {
            return DirectoryKind::Perhaps { folder: folder.to_owned(), mark };
        }
    }
    match unknown_filesystem(&there) {
        Some(mark) => DirectoryKind::Perhaps { folder: there, mark },
        None => DirectoryKind::Local,
    }
}

/// Returns the directories into which a client moves files that it could not upload, as far as they are there.
///
/// `user` is the user's home directory, `local` where Windows has what programs keep on this machine.
pub fn put_aside(client: &Client, user: Option<&Path>, local: Option<&Path>) -> Vec<PathBuf> {
    if *client != Client::GoogleDrive {
        return Vec::new();
    }
    let of_mac = user.map(|user| user.join("Library").join("Application Support"));
    let of_windows = local.map(Path::to_owned);
    let mut found = Vec::new();
    for drive in of_mac.into_iter().chain(of_windows).map(|above| above.join("Google").join("DriveFS")) {
        // There is one for all accounts, or one for each.
        let accounts = fs::read_dir(&drive).into_iter().flatten().flatten().map(|entry| entry.path());
        let all = std::iter::once(drive.clone()).chain(accounts).map(|above| above.join("lost_and_found"));
        found.extend(all.filter(|directory| directory.is_dir()));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// A client, the folder it replicates and what it was told by.
type Found = (Client, PathBuf, String);

/// Files that clients leave in the folders that they copy.
const MARKS: [(&str, Client); 11] = [
    (DROPBOX_MARK, Client::Dropbox),
    (".dropbox.cache", Client::Dropbox),
    (".stfolder", Client::Syncthing),
    (".stignore", Client::Syncthing),
    (".stversions", Client::Syncthing),
    (".tmp.drivedownload", Client::GoogleDrive),
    (".tmp.driveupload", Client::GoogleDrive),
    (".shortcut-targets-by-id", Client::GoogleDrive),
    (".849C9593-D756-4E56-8D6E-42412F2A707B", Client::OneDrive),
    (".owncloudsync.log", Client::Nextcloud),
    (".nextcloudsync.log", Client::Nextcloud),
];

/// A file in the folder; the directory of this name in every user's home is where the client keeps its own things.
const DROPBOX_MARK: &str = ".dropbox";

/// Files that some other programs leave.
const OTHER_MARKS: [(&str, &str); 2] = [(".sync.ffs_db", "FreeFileSync"), (".megaignore", "MEGA")];

/// A file in the folder's own directory of Resilio Sync; other programs have a directory `.sync` without it.
const RESILIO_MARK: &str = ".sync/ID";

fn replicated(directory: &Path) -> Option<Found> {
    directory.ancestors().find_map(|folder| {
        let found = |client: Client, mark: String| Some((client, folder.to_owned(), mark));
        let names = dotted_names(folder);
        let is_there = |mark: &str| names.iter().any(|name| name == mark) && folder.join(mark).exists();
        for (mark, client) in MARKS {
            if is_there(mark) && (mark != DROPBOX_MARK || folder.join(mark).is_file()) {
                return found(client, format!("{mark} is there"));
            }
        }
        for (mark, client) in OTHER_MARKS {
            if is_there(mark) {
                return found(Client::Other(client.to_owned()), format!("{mark} is there"));
            }
        }
        if names.iter().any(|name| name == ".sync") && folder.join(RESILIO_MARK).exists() {
            return found(Client::Other("Resilio Sync".to_owned()), format!("{RESILIO_MARK} is there"));
        }
        found(Client::Nextcloud, format!("{} is there", journal_among(&names)?))
    })
}

/// Returns the names in a folder that begin with a dot, as all do that clients leave there.
fn dotted_names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        // It may be entered all the same, so that each of them has to be tried.
        let others = OTHER_MARKS.iter().map(|(mark, _)| *mark);
        return MARKS.iter().map(|(mark, _)| *mark).chain(others).map(str::to_owned).collect();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with('.')).collect()
}

fn text(name: Option<&OsStr>) -> &str {
    name.and_then(OsStr::to_str).unwrap_or_default()
}

fn called(name: &str) -> String {
    format!("it is called {name}")
}

/// Names that clients give their folders, and people rarely use.
const NAMES: [(&str, &str); 26] = [
    ("Box Sync", "Box"),
    ("BTSync", "Resilio Sync"),
    ("Dropbox", "Dropbox"),
    ("Google Drive", "Google Drive"),
    ("GoogleDrive", "Google Drive"),
    ("iCloud Drive", "iCloud Drive"),
    ("iCloudDrive", "iCloud Drive"),
    ("iCloud~md~obsidian", "iCloud Drive"),
    ("Jottacloud", "Jottacloud"),
    ("kDrive", "kDrive"),
    ("MEGAsync", "MEGA"),
    ("Mobile Documents", "iCloud Drive"),
    ("Nextcloud", "Nextcloud"),
    ("OneDrive", "OneDrive"),
    ("ownCloud", "Nextcloud"),
    ("pCloud Drive", "pCloud"),
    ("pCloud Sync", "pCloud"),
    ("pCloudDrive", "pCloud"),
    ("pCloudSync", "pCloud"),
    ("Proton Drive", "Proton Drive"),
    ("Resilio Sync", "Resilio Sync"),
    ("Seafile", "Seafile"),
    ("SpiderOak Hive", "SpiderOak"),
    ("SynologyDrive", "Synology Drive"),
    ("Tresorit", "Tresorit"),
    ("Yandex.Disk", "Yandex Disk"),
];

/// Beginnings of such names, with what accounts or numbers follow.
const NAMES_BEGIN: [(&str, &str); 10] = [
    ("Dropbox (", "Dropbox"),
    ("Dropbox-", "Dropbox"),
    ("Google Drive (", "Google Drive"),
    ("GoogleDrive-", "Google Drive"),
    ("My Drive (", "Google Drive"),
    ("Nextcloud - ", "Nextcloud"),
    ("OneDrive - ", "OneDrive"),
    ("OneDrive-", "OneDrive"),
    ("ownCloud - ", "Nextcloud"),
    ("Resilio Sync (", "Resilio Sync"),
];

/// Names that clients give their folders, and people too.
const WEAK_NAMES: [(&str, &str); 6] = [
    ("Box", "Box"),
    ("Drive", "Google Drive or another client"),
    ("MEGA", "MEGA"),
    ("My Drive", "Google Drive"),
    ("Sync", "Syncthing or Sync.com"),
    ("Syncthing", "Syncthing"),
];

fn client_called(name: &str) -> Client {
    match name {
        "Dropbox" => Client::Dropbox,
        "OneDrive" => Client::OneDrive,
        "GoogleDrive" | "Google Drive" => Client::GoogleDrive,
        "iCloud Drive" => Client::ICloud,
        "Nextcloud" => Client::Nextcloud,
        name => Client::Other(name.to_owned()),
    }
}

/// Returns the client that alone gives a folder this name, below a directory called `above`.
fn found_by_name(name: &str, above: &str) -> Option<Client> {
    // The directory where macOS keeps the folders of all clients that use its file provider: `Client-account`.
    if above == "CloudStorage" {
        return Some(client_called(name.split('-').next().unwrap_or(name)));
    }
    let whole = NAMES.iter().find(|(known, _)| *known == name);
    let begun = || NAMES_BEGIN.iter().find(|(beginning, _)| name.starts_with(beginning));
    // Teams have a folder that begins with their own name.
    let of_team = || name.ends_with(" Dropbox").then_some(&("", "Dropbox"));
    whole.or_else(begun).or_else(of_team).map(|(_, client)| client_called(client))
}

/// Returns what makes a folder of this name look like one that is replicated, though that is not certain.
fn weak_sign(name: &str) -> Option<String> {
    let weak = WEAK_NAMES.iter().find(|(known, _)| *known == name);
    // Clients write their names in one way; a person wrote this one.
    let other_case = || NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    let (_, client) = weak.or_else(other_case)?;
    Some(format!("a directory above it, or itself, is called {name}, as {client} calls its folder"))
}

/// Returns the database in which Nextcloud and ownCloud remember what they replicated, if it is among the names in a folder.
fn journal_among(names: &[String]) -> Option<&String> {
    names.iter().find(|name| {
        let rest = name.strip_prefix("._sync_").or_else(|| name.strip_prefix(".sync_"));
        rest.is_some_and(|rest| rest.ends_with(".db"))
    })
}

/// Returns the client that says in the user's home that it replicates a folder which holds `directory`.
fn written_down(directory: &Path, home: &Path) -> Option<Found> {
    listed_by_dropbox(directory, home).or_else(|| listed_by_syncthing(directory, home))
}

/// Syncthing's lists of its folders, below the user's home directory.
const SYNCTHING_LISTS: [&str; 3] = [
    ".local/state/syncthing/config.xml",
    ".config/syncthing/config.xml",
    "Library/Application Support/Syncthing/config.xml",
];

fn listed_by_syncthing(directory: &Path, home: &Path) -> Option<Found> {
    let lists = SYNCTHING_LISTS.iter().filter_map(|list| fs::read_to_string(home.join(list)).ok());
    let path_of = |tag: &str| {
        let path = tag.split_once('>')?.0.split_once(" path=\"")?.1.split_once('"')?.0;
        let path = path.strip_prefix("~/").map_or(PathBuf::from(path), |below| home.join(below));
        path.canonicalize().ok()
    };
    let folders =
        lists.flat_map(|list| list.split("<folder ").skip(1).filter_map(path_of).collect::<Vec<_>>());
    let folder = folders.into_iter().find(|folder| directory.starts_with(folder))?;
    Some((Client::Syncthing, folder, "Syncthing's list of folders names it".to_owned()))
}

fn listed_by_dropbox(directory: &Path, home: &Path) -> Option<Found> {
    let list = home.join(".dropbox").join("info.json");
    let accounts: serde_json::Value = serde_json::from_slice(&fs::read(list).ok()?).ok()?;
    let folders = accounts.as_object()?.values().filter_map(|account| account.get("path")?.as_str());
    let folder = folders
        .filter_map(|folder| Path::new(folder).canonicalize().ok())
        .find(|folder| directory.starts_with(folder))?;
    Some((Client::Dropbox, folder, "~/.dropbox/info.json names it".to_owned()))
}

/// Returns the name of the network filesystem that a directory is on, if it is on one.
#[cfg(target_os = "linux")]
fn network_filesystem(directory: &Path) -> Option<&'static str> {
    /// The `statfs` codes of filesystems that another host can change.
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
    let by_number = NETWORK.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name);
    by_number.or_else(|| network_kind(&mounted_kind(&mounts()?, directory)?))
}

/// Returns the sign that a directory is on a filesystem which may be another machine's.
#[cfg(target_os = "linux")]
fn unknown_filesystem(directory: &Path) -> Option<String> {
    unknown_kind(&mounted_kind(&mounts()?, directory)?)
}

#[cfg(not(target_os = "linux"))]
fn unknown_filesystem(_: &Path) -> Option<String> {
    None
}

#[cfg(target_os = "linux")]
fn mounts() -> Option<String> {
    fs::read_to_string("/proc/self/mountinfo").ok()
}

/// Linux' names of filesystems of other hosts and mounted clouds, with their names for people.
#[cfg(any(target_os = "linux", test))]
const NETWORK_KINDS: [(&str, &str); 32] = [
    ("9p", "9P"),
    ("afs", "AFS"),
    ("ceph", "Ceph"),
    ("cifs", "CIFS"),
    ("davfs", "WebDAV"),
    ("fuse.blobfuse", "a mounted Azure container"),
    ("fuse.blobfuse2", "a mounted Azure container"),
    ("fuse.davfs", "WebDAV"),
    ("fuse.davfs2", "WebDAV"),
    ("fuse.gcsfuse", "a mounted bucket"),
    ("fuse.glusterfs", "GlusterFS"),
    ("fuse.google-drive-ocamlfuse", "a mounted Google Drive"),
    ("fuse.goofys", "a mounted bucket"),
    ("fuse.gvfsd-fuse", "a share of the desktop"),
    ("fuse.juicefs", "JuiceFS"),
    ("fuse.onedriver", "a mounted OneDrive"),
    ("fuse.pcloud", "a mounted pCloud"),
    ("fuse.rclone", "rclone"),
    ("fuse.s3fs", "a mounted bucket"),
    ("fuse.sshfs", "SSHFS"),
    ("fuse.vmhgfs-fuse", "a folder of the host"),
    ("gfs2", "GFS2"),
    ("glusterfs", "GlusterFS"),
    ("lustre", "Lustre"),
    ("ncpfs", "NCP"),
    ("nfs", "NFS"),
    ("nfs4", "NFS"),
    ("ocfs2", "OCFS2"),
    ("smb3", "SMB"),
    ("smbfs", "SMB"),
    ("vboxsf", "a folder of the host"),
    ("webdav", "WebDAV"),
];

/// Filesystems of programs that keep everything on this machine.
#[cfg(any(target_os = "linux", test))]
const LOCAL_PROGRAMS: [&str; 9] = [
    "fuse.bindfs",
    "fuse.cryfs",
    "fuse.encfs",
    "fuse.fuse-overlayfs",
    "fuse.gocryptfs",
    "fuse.mergerfs",
    "fuse.ntfs-3g",
    "fuse.securefs",
    "fuse.veracrypt",
];

#[cfg(any(target_os = "linux", test))]
fn network_kind(kind: &str) -> Option<&'static str> {
    NETWORK_KINDS.iter().find(|(known, _)| *known == kind).map(|(_, name)| *name)
}

/// Returns the sign that a filesystem may be another machine's: a program serves it, and we do not know the program.
#[cfg(any(target_os = "linux", test))]
fn unknown_kind(kind: &str) -> Option<String> {
    let is_known = network_kind(kind).is_some() || LOCAL_PROGRAMS.contains(&kind);
    let is_unknown = (kind == "fuse" || kind.starts_with("fuse.")) && !is_known;
    is_unknown.then(|| format!("it is on a filesystem of the kind {kind}, which may be another machine's"))
}

/// Returns the kind of the filesystem that holds a directory, from the text of `/proc/self/mountinfo`.
///
/// A line is `36 35 98:0 / /mnt/share rw,noatime shared:1 - cifs //host/share rw`. Of several mounts at one place the last one counts.
#[cfg(any(target_os = "linux", test))]
fn mounted_kind(mounts: &str, directory: &Path) -> Option<String> {
    let mut found: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let (Some(point), Some(kind)) = (before.split(' ').nth(4), after.split(' ').next()) else { continue };
        let point = ["\\040", "\\011", "\\012", "\\134"]
            .iter()
            .zip([" ", "\t", "\n", "\\"])
            .fold(point.to_owned(), |point, (escaped, plain)| point.replace(escaped, plain));
        let point = Path::new(&point);
        let depth = point.components().count();
        if directory.starts_with(point) && found.is_none_or(|(deepest, _)| depth >= deepest) {
            found = Some((depth, kind));
        }
    }
    found.map(|(_, kind)| kind.to_owned())
}

/// Returns the name of the network filesystem that a directory is on, if it is on one.
#[cfg(target_vendor = "apple")]
fn network_filesystem(directory: &Path) -> Option<&'static str> {
    /// The flag of filesystems that only this machine can change.
    const LOCAL: u32 = 0x1000;
    const NETWORK: [(&[u8], &str); 4] =
        [(b"smbfs", "SMB"), (b"nfs", "NFS"), (b"afpfs", "AFP"), (b"webdav", "WebDAV")];
    let found = rustix::fs::statfs(directory).ok()?;
    if found.f_flags & LOCAL != 0 {
        return None;
    }
    let kind: Vec<u8> = found
        .f_fstypename
        .iter()
        .map(|letter| letter.cast_unsigned())
        .take_while(|letter| *letter != 0)
        .collect();
    let known = NETWORK.iter().find(|(name, _)| *name == kind);
    Some(known.map_or("of another kind", |(_, name)| *name))
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn network_filesystem(_: &Path) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes `directory` and what `marks` name, directories with a slash at the end, and tells what sort of place it is.
    fn told(directory: &str, marks: &[&str]) -> String {
        let base = tempfile::tempdir().expect("a temporary directory");
        let base = base.path().canonicalize().expect("it is there");
        for mark in marks {
            let path = base.join(mark);
            fs::create_dir_all(path.parent().expect("below the base")).expect("made");
            match mark.ends_with('/') {
                true => fs::create_dir_all(path).expect("made"),
                false => fs::write(path, "x").expect("written"),
            }
        }
        fs::create_dir_all(base.join(directory)).expect("made");
        match recognise(&base.join(directory).join("not/there/yet"), Some(&base.join("home"))) {
            DirectoryKind::Synced { by, folder, .. } => {
                format!("{by} {}", folder.strip_prefix(&base).expect("below the base").display())
            }
            DirectoryKind::Obsidian { folder } => {
                format!("Obsidian {}", folder.strip_prefix(&base).expect("below the base").display())
            }
            place => place.to_string(),
        }
    }

    #[test]
    fn folders_of_sync_clients() {
        for (directory, mark, expected) in [
            ("home/Dropbox/memory", "home/Dropbox/.dropbox.cache/", "Dropbox home/Dropbox"),
            (
                "home/Dropbox (Personal)/memory",
                "home/Dropbox (Personal)/.dropbox",
                "Dropbox home/Dropbox (Personal)",
            ),
            ("home/Sync/deep/er", "home/Sync/.stfolder/", "Syncthing home/Sync"),
            ("home/Drive/x", "home/Drive/.tmp.driveupload/", "Google Drive home/Drive"),
            ("mnt/g/My Drive/x", "mnt/g/.shortcut-targets-by-id/", "Google Drive mnt/g"),
            ("home/GoogleDrive/My Drive/x", "y", "Google Drive home/GoogleDrive"),
            ("home/work/x", "home/work/.849C9593-D756-4E56-8D6E-42412F2A707B", "OneDrive home/work"),
            ("home/OneDrive - lighthouse/x", "y", "OneDrive home/OneDrive - lighthouse"),
            ("home/OneDrive/x", "y", "OneDrive home/OneDrive"),
            ("home/Nextcloud/x", "home/Nextcloud/.sync_0a1b2c3d.db", "Nextcloud home/Nextcloud"),
            ("home/Cloud/x", "home/Cloud/._sync_0a1b2c3d.db", "Nextcloud home/Cloud"),
            ("home/x/y", "home/x/.sync.ffs_db", "FreeFileSync home/x"),
        ] {
            assert_eq!(told(directory, &[mark]), expected);
        }
        for (directory, expected) in [
            (
                "home/Library/Mobile Documents/com~apple~CloudDocs/x",
                "iCloud Drive home/Library/Mobile Documents",
            ),
            ("home/Library/CloudStorage/Dropbox/x", "Dropbox home/Library/CloudStorage/Dropbox"),
            (
                "home/Library/CloudStorage/OneDrive-Personal/x",
                "OneDrive home/Library/CloudStorage/OneDrive-Personal",
            ),
            (
                "home/Library/CloudStorage/GoogleDrive-user@example.com/My Drive/x",
                "Google Drive home/Library/CloudStorage/GoogleDrive-user@example.com",
            ),
            ("home/Library/CloudStorage/Box-Box/x", "Box home/Library/CloudStorage/Box-Box"),
        ] {
            assert_eq!(told(directory, &[]), expected);
        }
    }

    #[test]
    fn what_is_of_this_machine() {
        let local = "a directory of this machine";
        // Every user of Dropbox has these, and not all they have is in Dropbox.
        let own =
            ["home/.dropbox/info.json", "home/.config/syncthing/config.xml", "home/Dropbox/.dropbox.cache/"];
        assert_eq!(told("home/memory", &own), local);
        for name in ["Dropboxes", "my-onedrive", "Drives", "inbox", "Syncing", "box", "Notes"] {
            assert_eq!(told(&format!("home/{name}/memory"), &[]), local, "{name}");
        }
        assert_eq!(told("home/work/memory", &["home/work/.sync/other"]), local);
        assert_eq!(told("home/work/memory", &["home/work/.sync_notes.md", "home/work/app.db"]), local);
    }

    /// Mock layouts of what clients make on Linux, macOS and Windows, without any file that tells them.
    #[test]
    fn folders_are_known_by_their_names() {
        for (directory, expected) in [
            ("home/Dropbox/x", "Dropbox home/Dropbox"),
            ("home/Dropbox (Work)/x", "Dropbox home/Dropbox (Work)"),
            ("home/Lighthouse Dropbox/me/x", "Dropbox home/Lighthouse Dropbox"),
            ("home/OneDrive/x", "OneDrive home/OneDrive"),
            ("home/OneDrive - Lighthouse/x", "OneDrive home/OneDrive - Lighthouse"),
            (
                "home/Library/CloudStorage/OneDrive-Lighthouse/x",
                "OneDrive home/Library/CloudStorage/OneDrive-Lighthouse",
            ),
            (
                "home/Library/Mobile Documents/com~apple~CloudDocs/x",
                "iCloud Drive home/Library/Mobile Documents",
            ),
            ("home/iCloudDrive/x", "iCloud Drive home/iCloudDrive"),
            ("home/iCloud Drive/x", "iCloud Drive home/iCloud Drive"),
            ("home/Google Drive/x", "Google Drive home/Google Drive"),
            ("home/Google Drive/My Drive/x", "Google Drive home/Google Drive"),
            ("home/GoogleDrive-me@example.com/My Drive/x", "Google Drive home/GoogleDrive-me@example.com"),
            ("home/My Drive (me@example.com)/x", "Google Drive home/My Drive (me@example.com)"),
            ("home/Nextcloud/x", "Nextcloud home/Nextcloud"),
            ("home/ownCloud/x", "Nextcloud home/ownCloud"),
            ("home/Box Sync/x", "Box home/Box Sync"),
            ("home/Library/CloudStorage/Box-Box/x", "Box home/Library/CloudStorage/Box-Box"),
            ("home/pCloudDrive/x", "pCloud home/pCloudDrive"),
            ("home/pCloud Drive/x", "pCloud home/pCloud Drive"),
            ("home/MEGAsync/x", "MEGA home/MEGAsync"),
            ("home/Resilio Sync/x", "Resilio Sync home/Resilio Sync"),
            ("home/Seafile/x", "Seafile home/Seafile"),
            ("home/SynologyDrive/x", "Synology Drive home/SynologyDrive"),
        ] {
            assert_eq!(told(directory, &[]), expected);
        }
        for (directory, mark, expected) in [
            ("home/shared/x", "home/shared/.stignore", "Syncthing home/shared"),
            ("home/shared/x", "home/shared/.stversions/", "Syncthing home/shared"),
            ("home/shared/x", "home/shared/.sync/ID", "Resilio Sync home/shared"),
            ("home/shared/x", "home/shared/.megaignore", "MEGA home/shared"),
        ] {
            assert_eq!(told(directory, &[mark]), expected);
        }
    }

    #[test]
    fn weak_names_are_only_a_hint() {
        for (name, client) in [
            ("Sync", "Syncthing or Sync.com"),
            ("Box", "Box"),
            ("MEGA", "MEGA"),
            ("My Drive", "Google Drive"),
            ("dropbox", "Dropbox"),
        ] {
            let expected = format!(
                "perhaps replicated: a directory above it, or itself, is called {name}, as {client} calls its folder"
            );
            assert_eq!(told(&format!("home/{name}/x"), &[]), expected);
        }
        assert!(!recognise(Path::new("/srv/Sync/x"), None).is_shared(), "who names it file:// is believed");
        let of_user = recognise(Path::new("/home/MEGA/memory"), Some(Path::new("/home/MEGA")));
        assert_eq!(of_user, DirectoryKind::Local, "a user of that name");
    }

    #[test]
    fn folders_that_syncthing_lists() {
        let base = tempfile::tempdir().expect("a temporary directory");
        let home = base.path().canonicalize().expect("there");
        fs::create_dir_all(home.join("elsewhere/memory")).expect("made");
        fs::create_dir_all(home.join(".config/syncthing")).expect("made");
        let list =
            "<configuration><folder id=\"a\" label=\"\" path=\"~/elsewhere\" type=\"sendreceive\"></folder>";
        fs::write(home.join(".config/syncthing/config.xml"), list).expect("written");
        let place = recognise(&home.join("elsewhere/memory"), Some(&home));
        assert!(matches!(place, DirectoryKind::Synced { by: Client::Syncthing, .. }), "{place:?}");
        assert_eq!(recognise(&home.join("other"), Some(&home)), DirectoryKind::Local);
    }

    #[test]
    fn network_filesystems_are_known_by_their_kind() {
        let mounts = "\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 0:40 / /mnt/nfs rw,relatime shared:1 - nfs4 host:/export rw
31 22 0:41 / /mnt/smb rw - cifs //host/share rw
32 22 0:42 / /mnt/ssh rw - fuse.sshfs me@host: rw
33 22 0:43 / /mnt/with\\040space rw - fuse.rclone drive: rw
34 22 0:44 / /mnt/dav rw - davfs https://host rw
35 22 0:45 / /mnt/smb/local rw - ext4 /dev/sdb1 rw
36 22 0:46 / /mnt/secret rw - fuse.gocryptfs /x rw
37 22 0:47 / /mnt/odd rw - fuse.something x rw
38 22 0:48 / /mnt/twice rw - ext4 /dev/sdc1 rw
39 22 0:49 / /mnt/twice rw - 9p host rw
40 22 0:50 / /mnt/smb3 rw - smb3 //host/x rw
";
        for (directory, network, is_unknown) in [
            ("/home/me", None, false),
            ("/mnt/nfs/memory", Some("NFS"), false),
            ("/mnt/nfsx", None, false),
            ("/mnt/smb/memory", Some("CIFS"), false),
            ("/mnt/smb/local/memory", None, false),
            ("/mnt/smb3", Some("SMB"), false),
            ("/mnt/ssh/x", Some("SSHFS"), false),
            ("/mnt/with space/x", Some("rclone"), false),
            ("/mnt/dav/x", Some("WebDAV"), false),
            ("/mnt/secret/x", None, false),
            ("/mnt/odd/x", None, true),
            ("/mnt/twice/x", Some("9P"), false),
        ] {
            let kind = mounted_kind(mounts, Path::new(directory)).expect("mounted");
            assert_eq!(
                (network_kind(&kind), unknown_kind(&kind).is_some()),
                (network, is_unknown),
                "{directory}"
            );
        }
    }

    #[test]
    fn an_obsidian_vault_is_replicated_by_whoever_replicates_it() {
        let vault = "home/Notes/.obsidian/";
        assert_eq!(told("home/Notes/memory", &[vault]), "Obsidian home/Notes");
        assert_eq!(told("home/Notes/memory", &[vault, "home/.stfolder/"]), "Syncthing home");
    }

    #[test]
    fn where_google_drive_puts_what_it_could_not_upload() {
        let base = tempfile::tempdir().expect("a temporary directory");
        let (user, local) = (base.path().join("user"), base.path().join("local"));
        let of_mac = user.join("Library/Application Support/Google/DriveFS/lost_and_found");
        let of_account = local.join("Google/DriveFS/1234/lost_and_found");
        for directory in [&of_mac, &of_account, &local.join("Google/DriveFS/Logs")] {
            fs::create_dir_all(directory).expect("made");
        }
        let found = |client| put_aside(&client, Some(&user), Some(&local));
        assert_eq!(found(Client::GoogleDrive), [of_account, of_mac]);
        assert!(found(Client::Dropbox).is_empty());
        assert!(put_aside(&Client::GoogleDrive, None, None).is_empty());
    }

    #[test]
    fn what_dropbox_writes_down() {
        let base = tempfile::tempdir().expect("a temporary directory");
        let folder = base.path().join("elsewhere");
        fs::create_dir_all(base.path().join(".dropbox")).expect("made");
        fs::create_dir_all(folder.join("memory")).expect("made");
        let accounts = serde_json::json!({ "personal": { "path": folder }, "business": { "host": 1 } });
        fs::write(base.path().join(".dropbox/info.json"), accounts.to_string()).expect("written");
        let place = |home| recognise(&folder.join("memory"), home);
        assert!(matches!(place(Some(base.path())), DirectoryKind::Synced { by: Client::Dropbox, .. }));
        assert_eq!(place(None), DirectoryKind::Local);
        for broken in ["", "[]", "{\"personal\": 1}", "{\"personal\": {\"path\": 7}}", "\u{0}"] {
            fs::write(base.path().join(".dropbox/info.json"), broken).expect("written");
            assert_eq!(place(Some(base.path())), DirectoryKind::Local, "{broken:?}");
        }
    }
}

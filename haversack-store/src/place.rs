//! What sort of place a directory is: replicated by a sync client, on a network filesystem, or this machine's own.
//!
//! A client is told by what it leaves in its folder or says about itself. A name alone says nothing, unless only the client gives it.

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

/// What sort of place a directory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a folder that a client replicates.
    Synced {
        /// Which one.
        by: Client,
        /// The folder it replicates.
        folder: PathBuf,
        /// What it was told by.
        mark: String,
    },
    /// On a filesystem that other machines can change.
    Network {
        /// What the system calls it.
        filesystem: &'static str,
    },
    /// In an Obsidian vault: Obsidian may replicate it or not, and nothing in the folder tells.
    ///
    /// Obsidian Sync leaves out everything that begins with a dot.
    Obsidian {
        /// The directory that holds `.obsidian`.
        folder: PathBuf,
    },
    /// On a disk of this machine that nobody else writes to, as far as can be told.
    Local,
}

impl Place {
    /// Tells whether other machines can change it while we look.
    pub fn is_shared(&self) -> bool {
        *self != Place::Local
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Synced { by, .. } => write!(f, "in a folder that {by} replicates"),
            Place::Network { filesystem } => write!(f, "on a network filesystem ({filesystem})"),
            Place::Obsidian { .. } => f.write_str("in an Obsidian vault, which may be replicated"),
            Place::Local => f.write_str("a directory of this machine"),
        }
    }
}

/// Tells what sort of place a directory is, which need not be there yet.
///
/// With the user's home directory, what clients write down there about their folders counts too.
pub fn recognise(directory: &Path, home: Option<&Path>) -> Place {
    let there = directory.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(directory);
    let there = there.canonicalize().unwrap_or_else(|_| there.to_owned());
    if let Some((by, folder, mark)) = replicated(&there).or_else(|| written_down(&there, home?)) {
        return Place::Synced { by, folder, mark };
    }
    if let Some(filesystem) = network_filesystem(&there) {
        return Place::Network { filesystem };
    }
    match there.ancestors().find(|ancestor| ancestor.join(".obsidian").is_dir()) {
        Some(folder) => Place::Obsidian { folder: folder.to_owned() },
        None => Place::Local,
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

/// What clients leave in the folder they replicate.
const MARKS: [(&str, Client); 9] = [
    (DROPBOX_MARK, Client::Dropbox),
    (".dropbox.cache", Client::Dropbox),
    (".stfolder", Client::Syncthing),
    (".tmp.drivedownload", Client::GoogleDrive),
    (".tmp.driveupload", Client::GoogleDrive),
    (".shortcut-targets-by-id", Client::GoogleDrive),
    (".849C9593-D756-4E56-8D6E-42412F2A707B", Client::OneDrive),
    (".owncloudsync.log", Client::Nextcloud),
    (".nextcloudsync.log", Client::Nextcloud),
];

/// A file in the folder; the directory of this name in every user's home is where the client keeps its own things.
const DROPBOX_MARK: &str = ".dropbox";

/// What some other programs leave.
const OTHER_MARKS: [(&str, &str); 1] = [(".sync.ffs_db", "FreeFileSync")];

fn replicated(directory: &Path) -> Option<Found> {
    directory.ancestors().find_map(|folder| {
        let found = |client: Client, mark: String| Some((client, folder.to_owned(), mark));
        let name = text(folder.file_name());
        let above = text(folder.parent().and_then(Path::file_name));
        let by_its_name =
            || found_by_name(name, above).map(|client| (client, folder.to_owned(), named(name)));
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
        by_its_name().or_else(|| found(Client::Nextcloud, format!("{} is there", journal_among(&names)?)))
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

fn named(name: &str) -> String {
    format!("it is called {name}")
}

/// Returns the client that alone gives a folder this name, below a directory called `above`.
fn found_by_name(name: &str, above: &str) -> Option<Client> {
    match above {
        "Library" if name == "Mobile Documents" => return Some(Client::ICloud),
        // Where macOS keeps the folders of all clients that use its file provider: `Client-account`.
        "CloudStorage" => {
            let client = name.split('-').next().unwrap_or(name);
            return Some(match client {
                "Dropbox" => Client::Dropbox,
                "OneDrive" => Client::OneDrive,
                "GoogleDrive" => Client::GoogleDrive,
                "iCloud Drive" => Client::ICloud,
                client => Client::Other(client.to_owned()),
            });
        }
        "Google Drive" | "GoogleDrive" if name == "My Drive" => return Some(Client::GoogleDrive),
        _ => {}
    }
    (name == "OneDrive" || name.starts_with("OneDrive - ")).then_some(Client::OneDrive)
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

/// Returns the name of the network filesystem that a directory is on, if it is on one.
#[cfg(target_vendor = "apple")]
fn network_filesystem(directory: &Path) -> Option<&'static str> {
    /// What the system sets for filesystems that only this machine can change.
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
            Place::Synced { by, folder, .. } => {
                format!("{by} {}", folder.strip_prefix(&base).expect("below the base").display())
            }
            Place::Obsidian { folder } => {
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
            ("home/GoogleDrive/My Drive/x", "y", "Google Drive home/GoogleDrive/My Drive"),
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
        assert_eq!(told("home/Dropbox/memory", &[]), local, "a name alone says nothing");
        // Every user of Dropbox has these, and not all they have is in Dropbox.
        let own =
            ["home/.dropbox/info.json", "home/.config/syncthing/config.xml", "home/Dropbox/.dropbox.cache/"];
        assert_eq!(told("home/memory", &own), local);
        assert_eq!(told("home/My Drive/memory", &[]), local);
        assert_eq!(told("home/work/memory", &["home/work/.sync_notes.md", "home/work/app.db"]), local);
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
        assert!(matches!(place(Some(base.path())), Place::Synced { by: Client::Dropbox, .. }));
        assert_eq!(place(None), Place::Local);
        for broken in ["", "[]", "{\"personal\": 1}", "{\"personal\": {\"path\": 7}}", "\u{0}"] {
            fs::write(base.path().join(".dropbox/info.json"), broken).expect("written");
            assert_eq!(place(Some(base.path())), Place::Local, "{broken:?}");
        }
    }
}

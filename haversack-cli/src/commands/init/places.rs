//! Places on this machine at which the machines of a user can meet: folders of sync clients, profiles of the AWS tools, a login of `az`.

use std::fs;
use std::path::{Path, PathBuf};

use haversack::store::{DirectoryKind, recognise};

/// The most directories that are looked at.
const MAX_DIRECTORIES: usize = 500;

/// The most profiles of the AWS tools that are offered.
const MAX_PROFILES: usize = 5;

/// The directory in a replicated folder that we offer.
const NAME: &str = "haversack";

/// A place that the user can choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RemoteOption {
    /// A folder that a sync client replicates.
    Folder { client: String, directory: PathBuf },
    /// A bucket, with a profile of the AWS tools.
    S3 { profile: String },
    /// A container, with the login of `az`.
    Azure,
}

/// Returns the places that a user's home directory shows. `has_az` is true if the program `az` is there.
pub(super) fn find(user: &Path, has_az: bool) -> Vec<RemoteOption> {
    let mut places = Vec::new();
    let apple = user.join("Library");
    let mut directories = below(user);
    directories.extend(below(&apple.join("CloudStorage")));
    directories.push(apple.join("Mobile Documents").join("com~apple~CloudDocs"));
    for directory in directories.into_iter().filter(|directory| directory.is_dir()).take(MAX_DIRECTORIES) {
        if let DirectoryKind::Synced { by, .. } = recognise(&directory, Some(user)) {
            places.push(RemoteOption::Folder { client: by.to_string(), directory: directory.join(NAME) });
        }
    }
    let aws = ["config", "credentials"].map(|name| fs::read_to_string(user.join(".aws").join(name)));
    let profiles = profiles(&aws.map(Result::unwrap_or_default).join("\n"));
    places.extend(profiles.into_iter().take(MAX_PROFILES).map(|profile| RemoteOption::S3 { profile }));
    if has_az && user.join(".azure").join("azureProfile.json").is_file() {
        places.push(RemoteOption::Azure);
    }
    places
}

/// Returns the visible directories in a directory, by name.
fn below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_visible =
        |path: &PathBuf| path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_visible).collect();
    found.sort();
    found
}

/// Returns the names of the profiles in files of the AWS tools.
fn profiles(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in text.lines() {
        let Some(section) = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
            continue;
        };
        let name = match section.trim().split_once(char::is_whitespace) {
            Some(("profile", name)) => name.trim(),
            // Such as `sso-session` and `services`.
            Some(_) => continue,
            None => section.trim(),
        };
        if !name.is_empty() && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_named_once() {
        let config = "[default]\nregion = x\n[profile work]\n[sso-session corp]\n";
        let credentials = "[work]\naws_access_key_id = a\n[ home ]\n";
        assert_eq!(profiles(&format!("{config}\n{credentials}")), ["default", "work", "home"]);
    }

    #[test]
    fn places_are_folders_profiles_and_a_login() {
        let user = tempfile::TempDir::new().expect("made");
        let user = user.path().canonicalize().expect("there");
        for directory in ["Dropbox", "Documents", "Notes/.stfolder", ".aws", ".azure"] {
            fs::create_dir_all(user.join(directory)).expect("made");
        }
        fs::write(user.join(".aws/config"), "[default]\n").expect("written");
        fs::write(user.join(".azure/azureProfile.json"), "{}").expect("written");
        let folder = |client: &str, name: &str| RemoteOption::Folder {
            client: client.to_owned(),
            directory: user.join(name).join(NAME),
        };
        let profile = RemoteOption::S3 { profile: "default".to_owned() };
        let all = [folder("Dropbox", "Dropbox"), folder("Syncthing", "Notes"), profile, RemoteOption::Azure];
        assert_eq!(find(&user, true), all);
        assert_eq!(find(&user, false), all[..3]);
    }
}

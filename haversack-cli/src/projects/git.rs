//! A repository as its files describe it: its place, its remotes, its commits. Git itself need not be installed, and none is started.

pub(crate) mod history;
pub(crate) mod objects;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file of git's that is read; a configuration is a few hundred bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A repository, seen from a directory in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    /// The directory of the main checkout: all worktrees of a repository have it in common.
    pub(crate) root: PathBuf,
    /// The directory that this checkout begins in.
    pub(crate) checkout: PathBuf,
    /// Git's directory for all worktrees.
    pub(crate) common: PathBuf,
    /// True if this checkout is one of several, and not the main one.
    pub(crate) is_worktree: bool,
    /// True if the repository belongs to this checkout: `.git` is its own directory, or the repository that its `.git` file names
    /// lists this checkout. Anyone can write a `.git` file that names the repository of another checkout.
    pub(crate) is_own: bool,
}

/// Finds the repository that a directory is in.
pub(crate) fn find(directory: &Path) -> Option<Repository> {
    directory.ancestors().find_map(|checkout| at(checkout, &checkout.join(".git")))
}

fn at(checkout: &Path, dot_git: &Path) -> Option<Repository> {
    if dot_git.is_dir() {
        // An empty directory of this name makes no repository.
        let is_one = dot_git.join("HEAD").is_file() || dot_git.join("config").is_file();
        let checkout = checkout.to_owned();
        let common = dot_git.to_owned();
        let is_own = !dot_git.is_symlink();
        return is_one.then(|| Repository {
            root: checkout.clone(),
            checkout,
            common,
            is_worktree: false,
            is_own,
        });
    }
    let line = read(dot_git)?;
    let own = line.strip_prefix("gitdir:")?.trim();
    let own = real(&checkout.join(own))?;
    let Some(common) = read(&own.join("commondir")) else {
        // A submodule, or a repository with its files in another directory: a repository of its own.
        let is_own = worktree_in(&own).is_some_and(|listed| real(checkout) == Some(listed));
        let checkout = checkout.to_owned();
        return Some(Repository {
            root: checkout.clone(),
            checkout,
            common: own,
            is_worktree: false,
            is_own,
        });
    };
    let common = real(&own.join(common.trim()))?;
    let is_plain = common.file_name().is_some_and(|name| name == ".git");
    // The worktrees of a bare repository have no main checkout.
    let root = common.parent().filter(|_| is_plain).unwrap_or(checkout).to_owned();
    let listed = read(&own.join("gitdir")).and_then(|listed| real(&own.join(listed.trim())));
    // A worktree's own directory is below `worktrees` of its repository. Anywhere else, the list may be forged.
    let is_below = own.parent().is_some_and(|parent| parent == common.join("worktrees"));
    let is_own = is_below && !dot_git.is_symlink() && listed.is_some() && listed == real(dot_git);
    Some(Repository { root, checkout: checkout.to_owned(), common, is_worktree: true, is_own })
}

/// Returns the checkout that the configuration of a repository names.
fn worktree_in(own: &Path) -> Option<PathBuf> {
    let config = read(&own.join("config"))?;
    let mut is_core = false;
    let mut found = None;
    for line in config.lines().map(str::trim) {
        let assignment = match line.strip_prefix('[') {
            Some(heading) => {
                let (heading, rest) = split_heading(heading);
                is_core = heading.trim().eq_ignore_ascii_case("core");
                rest
            }
            None => line,
        };
        if let (true, Some((key, value))) = (is_core, assignment.split_once('='))
            && key.trim().eq_ignore_ascii_case("worktree")
        {
            found = Some(plain(value.trim()));
        }
    }
    real(&own.join(found?))
}

impl Repository {
    /// Returns the address of `origin`, or of the only remote there is.
    pub(crate) fn remote(&self) -> Option<String> {
        Some(self.chosen_remote()?.1)
    }

    /// Returns the name of that remote.
    pub(crate) fn remote_name(&self) -> Option<String> {
        Some(self.chosen_remote()?.0)
    }

    /// Returns true if the repository has only the newest part of its history.
    pub(crate) fn is_shallow(&self) -> bool {
        self.common.join("shallow").is_file()
    }

    fn chosen_remote(&self) -> Option<(String, String)> {
        choose(remotes(&read(&self.common.join("config"))?))
    }
}

fn choose(mut remotes: BTreeMap<String, String>) -> Option<(String, String)> {
    match remotes.remove_entry("origin") {
        Some(origin) => Some(origin),
        None if remotes.len() == 1 => remotes.pop_first(),
        None => None,
    }
}

/// Returns the remotes that a configuration names; the first address of each, as git fetches from it.
fn remotes(config: &str) -> BTreeMap<String, String> {
    let mut remotes = BTreeMap::new();
    let mut remote = None;
    for line in config.trim_start_matches('\u{feff}').lines().map(str::trim) {
        let assignment = match line.strip_prefix('[') {
            Some(heading) => {
                let (heading, rest) = split_heading(heading);
                remote = remote_of(heading);
                rest
            }
            None => line,
        };
        if let (Some(remote), Some((key, value))) = (&remote, assignment.split_once('='))
            && key.trim().eq_ignore_ascii_case("url")
        {
            let value = plain(value.trim());
            if !value.is_empty() {
                remotes.entry(String::clone(remote)).or_insert(value);
            }
        }
    }
    remotes
}

/// Splits a line after `[` into the heading and what follows it.
fn split_heading(line: &str) -> (&str, &str) {
    let mut quoted = false;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return (&line[..at], &line[at + 1..]),
            _ => {}
        }
    }
    (line, "")
}

/// Returns the name in a heading such as `remote "origin"`.
fn remote_of(heading: &str) -> Option<String> {
    let (section, name) = heading.trim().split_once(char::is_whitespace)?;
    section.eq_ignore_ascii_case("remote").then(|| plain(name.trim()))
}

/// Takes quotes, escapes and a remark off a value.
fn plain(value: &str) -> String {
    let mut text = String::new();
    let mut quoted = false;
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => quoted = !quoted,
            '\\' => text.extend(characters.next()),
            '#' | ';' if !quoted => break,
            c => text.push(c),
        }
    }
    text.trim().to_owned()
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    let is_file = path.metadata().ok()?.is_file();
    let file = fs::File::open(path).ok().filter(|_| is_file)?;
    file.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes files below a new directory, given by its real path.
    fn with_files(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("made");
        let base = real(directory.path()).expect("there");
        for (name, text) in files {
            let path = base.join(name);
            fs::create_dir_all(path.parent().expect("below")).expect("made");
            fs::write(path, text.replace("BASE", &base.display().to_string())).expect("written");
        }
        (directory, base)
    }

    const CONFIG: &str =
        "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@github.com:me/lighthouse.git\n";

    #[test]
    fn worktrees_submodules_and_bare_repositories() {
        let (_keep, base) = with_files(&[
            ("repo/.git/HEAD", "ref: refs/heads/main\n"),
            ("repo/.git/config", CONFIG),
            ("repo/src/deep/x", ""),
            ("repo/.git/worktrees/wt/commondir", "../..\n"),
            ("wt/.git", "gitdir: BASE/repo/.git/worktrees/wt\n"),
            ("wt/src/x", ""),
            ("repo/sub/.git", "gitdir: ../.git/modules/sub\n"),
            ("repo/.git/modules/sub/config", "[remote \"up\"]\nurl=https://example.org/sub\n"),
            ("bare.git/config", CONFIG),
            ("bare.git/worktrees/b/commondir", "../..\n"),
            ("b/.git", "gitdir: ../bare.git/worktrees/b\n"),
            ("none/x", ""),
            ("empty/.git/x", ""),
            ("broken/.git", "gitdir: ../nowhere\n"),
            ("odd/.git", "what is this\n"),
        ]);
        let cases = [
            ("repo", Some(("repo", "repo", Some("git@github.com:me/lighthouse.git")))),
            ("repo/src/deep", Some(("repo", "repo", Some("git@github.com:me/lighthouse.git")))),
            ("wt/src", Some(("repo", "wt", Some("git@github.com:me/lighthouse.git")))),
            ("repo/sub", Some(("repo/sub", "repo/sub", Some("https://example.org/sub")))),
            ("b", Some(("b", "b", Some("git@github.com:me/lighthouse.git")))),
            ("none", None),
            ("empty", None),
            ("broken", None),
            ("odd", None),
        ];
        for (directory, expected) in cases {
            let repository = find(&base.join(directory));
            let is_worktree = repository.as_ref().is_some_and(|repository| repository.is_worktree);
            assert_eq!(is_worktree, ["wt/src", "b"].contains(&directory), "{directory}");
            let found = repository.map(|found| (found.root.clone(), found.checkout.clone(), found.remote()));
            let expected = expected
                .map(|(root, checkout, url)| (base.join(root), base.join(checkout), url.map(str::to_owned)));
            assert_eq!(found, expected, "{directory}");
        }
    }

    #[test]
    fn configurations() {
        for (config, expected) in [
            (CONFIG, Some("git@github.com:me/lighthouse.git")),
            ("\u{feff}[remote \"origin\"] url = a:b ; remark\n", Some("a:b")),
            ("[Remote \"origin\"]\nURL=\"a:b#c\" # remark", Some("a:b#c")),
            ("[remote \"a\"]\nurl = a:1\n[remote \"b\"]\nurl = b:1\n", None),
            ("[remote \"a\"]\nurl = a:1\n[branch \"x\"]\nurl = b:1\n", Some("a:1")),
            ("[remote \"a\"]\nurl = a:1\nurl = a:2\n[remote \"origin\"]\nurl = o:1\n", Some("o:1")),
            ("[remote \"o\\\"]x\"]\nurl = a:1\n", Some("a:1")),
            ("[remote \"origin\"]\npushurl = a:1\nfetch = +refs\n", None),
            ("[remote \"origin\"]\nurl =\n", None),
            ("[remote", None),
            ("", None),
        ] {
            let chosen = choose(remotes(config)).map(|(_, url)| url);
            assert_eq!(chosen.as_deref(), expected, "{config}");
        }
    }
}

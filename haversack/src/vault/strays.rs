//! Files that do not belong into a synced folder, by their names: locks, which hold on one machine only, and databases, which
//! arrive in pieces.

use crate::store::Locator;

/// The sort of a stray file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stray {
    /// A lock: on another machine it would claim a process that does not run there.
    Lock,
    /// A database, or a part of one: its files belong together and arrive one by one.
    Database,
}

/// The name endings of locks.
const LOCKS: [&str; 5] = [".lock", ".lck", ".lockfile", ".pid", ".mdb-lock"];

/// The name endings of databases.
const DATABASES: [&str; 9] =
    [".sqlite", ".sqlite2", ".sqlite3", ".db", ".db3", ".mdb", ".duckdb", ".realm", ".kuzu"];

/// The endings that SQLite and others add for data that is not in the database yet.
const PARTS: [&str; 5] = ["-wal", "-shm", "-journal", ".wal", "-lock"];

/// Names that end like one of these and are none: lists of dependencies, what a file manager remembers.
const ORDINARY: [&str; 10] = [
    "cargo.lock",
    "composer.lock",
    "flake.lock",
    "gemfile.lock",
    "pdm.lock",
    "pipfile.lock",
    "poetry.lock",
    "thumbs.db",
    "uv.lock",
    "yarn.lock",
];

/// Tells what a file is that should not be in a synced folder, by its name.
pub fn stray(name: &str) -> Option<Stray> {
    let name = name.to_lowercase();
    let name = name.as_str();
    // A client's own journal is where it wants it.
    let is_clients = [".sync_", "._sync_", ".sync."].iter().any(|start| name.starts_with(start));
    if is_clients || ORDINARY.contains(&name) {
        return None;
    }
    let whole = PARTS.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
    if DATABASES.iter().any(|end| whole.ends_with(end)) {
        return Some(Stray::Database);
    }
    let is_lock =
        LOCKS.iter().any(|end| name.ends_with(end)) || name.starts_with(".~lock.") || name == "lock";
    is_lock.then_some(Stray::Lock)
}

/// Returns the files of a folder that should not be there.
///
/// A directory of another program that begins with a dot is that program's business. Our own directory is not skipped.
pub fn strays<'a>(names: impl IntoIterator<Item = &'a Locator>) -> Vec<(Locator, Stray)> {
    let is_foreign = |locator: &Locator| {
        !locator.is_reserved()
            && locator
                .parent()
                .is_some_and(|parent| parent.segments().any(|segment| segment.starts_with('.')))
    };
    let found = names.into_iter().filter(|locator| !is_foreign(locator));
    found.filter_map(|locator| Some((locator.clone(), stray(locator.name())?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_and_databases() {
        for name in [".lock", "memory.lock", "LOCK", "a.lck", ".~lock.notes.odt#", "server.pid", "store.LOCK"]
        {
            assert_eq!(stray(name), Some(Stray::Lock), "{name}");
        }
        for name in [
            "memory.sqlite",
            "memory.sqlite3",
            "index.db",
            "index.db-wal",
            "index.db-shm",
            "index.db-journal",
            "Index.DB",
            "memory.sqlite-wal",
            "data.mdb",
            "x.duckdb.wal",
        ] {
            assert_eq!(stray(name), Some(Stray::Database), "{name}");
        }
        for name in [
            "notes.md",
            "lock.md",
            "Cargo.lock",
            "db.md",
            "database",
            "-wal",
            "notes-journal",
            "Thumbs.db",
            ".sync_0a1b2c3d.db",
            "._sync_0a1b2c3d.db-wal",
            ".sync.ffs_db",
            "a.locked",
        ] {
            assert_eq!(stray(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_somebody_elses_is_left_to_them() {
        let names =
            ["a/x.db", ".obsidian/plugins/x.db", ".haversack/log/x.lock", ".git/index.lock", "x.lock"];
        let names: Vec<Locator> =
            names.iter().map(|name| Locator::from_stored_key(name).expect("a locator")).collect();
        let found: Vec<String> = strays(&names).iter().map(|(locator, _)| locator.to_string()).collect();
        assert_eq!(found, ["a/x.db", ".haversack/log/x.lock", "x.lock"]);
    }
}

//! Machines that meet in a folder which a sync client replicates: each has a copy of it, and a stand-in for the client carries files between
//! them, one path at a time, in any order, half at first, with conflict copies where two wrote the same name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::machines::Machines;
use crate::random_machines::{Chance, FILES, NAMES, Oracle, act, line};

/// The state of a sync client.
#[derive(Default)]
pub(crate) struct Client {
    server: BTreeMap<String, Vec<u8>>,
    /// By machine, what its folder and the server last agreed on.
    agreed: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// By machine, files of which only the beginning has arrived.
    halves: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// Everything that the server had.
    past: Vec<(String, Vec<u8>)>,
}

/// Returns the folder of a machine.
pub(crate) fn folder(machines: &Machines, machine: &str) -> PathBuf {
    machines.env.path(&format!("{machine}-sync")).join("haversack")
}

/// Makes the folder of a machine, as Syncthing would.
pub(crate) fn make_folder(machines: &Machines, machine: &str) -> String {
    let folder = folder(machines, machine);
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::create_dir_all(folder.parent().expect("below").join(".stfolder")).expect("made");
    folder.display().to_string()
}

/// Returns everything below a directory but working names.
fn all_below(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if !entry.file_name().to_string_lossy().starts_with(".~haversack")
                && let Ok(bytes) = std::fs::read(&path)
            {
                files.insert(path.strip_prefix(root).expect("below").display().to_string(), bytes);
            }
        }
    }
    files
}

/// Returns true if a directory lies in a file's place, or a file in the place of a directory on the way to it.
fn is_blocked(root: &Path, path: &str) -> bool {
    let on_the_way = Path::new(path).ancestors().skip(1).filter(|part| !part.as_os_str().is_empty());
    root.join(path).is_dir() || on_the_way.into_iter().any(|part| root.join(part).is_file())
}

fn put(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().expect("below")).expect("made");
    let draft = path.with_file_name(".~client.tmp");
    std::fs::write(&draft, bytes).expect("written");
    std::fs::rename(draft, path).expect("in place");
}

fn copy_name(path: &str, machine: &str, chance: &mut Chance) -> String {
    let (directory, name) = path.rsplit_once('/').map_or(("", path), |(directory, name)| (directory, name));
    let (stem, extension) = name.rsplit_once('.').map_or((name, ""), |(stem, extension)| (stem, extension));
    let dot = if extension.is_empty() { "" } else { "." };
    let number = chance.below(90) + 10;
    let name = match chance.below(3) {
        0 => format!("{stem} ({machine}'s conflicted copy 2026-11-{number}){dot}{extension}"),
        1 => format!("{stem}.sync-conflict-20261116-1011{number}-ABCDEFG{dot}{extension}"),
        _ => format!("{stem} (conflicted copy 2026-11-16 1011{number}){dot}{extension}"),
    };
    if directory.is_empty() { name } else { format!("{directory}/{name}") }
}

impl Client {
    /// Carries one path to or from a machine's folder; returns whether there was anything to carry.
    pub(crate) fn step(
        &mut self,
        machines: &Machines,
        machine: &str,
        is_calm: bool,
        chance: &mut Chance,
    ) -> bool {
        let root = folder(machines, machine);
        let here = all_below(&root);
        let agreed = self.agreed.entry(machine.to_owned()).or_default();
        let halves = self.halves.entry(machine.to_owned()).or_default();
        let local = |path: &String| match (here.get(path), halves.get(path)) {
            (Some(bytes), Some(half)) if bytes == half => agreed.get(path).cloned(),
            (bytes, _) => bytes.cloned(),
        };
        let mut open: Vec<String> = here
            .keys()
            .chain(agreed.keys())
            .chain(self.server.keys())
            .filter(|path| {
                local(path).as_ref() != self.server.get(*path)
                    || agreed.get(*path) != self.server.get(*path)
                    || halves.contains_key(*path)
            })
            .filter(|path| !is_blocked(&root, path))
            .cloned()
            .collect();
        open.sort_unstable();
        open.dedup();
        if open.is_empty() {
            return false;
        }
        let path = open[chance.below(open.len())].clone();
        let (mine, theirs, base) =
            (local(&path), self.server.get(&path).cloned(), agreed.get(&path).cloned());
        let set = |map: &mut BTreeMap<String, Vec<u8>>, bytes: Option<Vec<u8>>| match bytes {
            Some(bytes) => drop(map.insert(path.clone(), bytes)),
            None => drop(map.remove(&path)),
        };
        if mine == theirs && !halves.contains_key(&path) {
            set(agreed, theirs);
        } else if theirs == base && mine != base {
            self.past.extend(theirs.map(|bytes| (path.clone(), bytes)));
            set(&mut self.server, mine.clone());
            set(agreed, mine);
            halves.remove(&path);
        } else if mine == base {
            match &theirs {
                Some(bytes) if !is_calm && bytes.len() > 1 && chance.below(6) == 0 => {
                    let half = bytes[..chance.below(bytes.len())].to_vec();
                    put(&root, &path, &half);
                    halves.insert(path.clone(), half);
                    return true;
                }
                Some(bytes) => put(&root, &path, bytes),
                None => drop(std::fs::remove_file(root.join(&path))),
            }
            halves.remove(&path);
            set(agreed, theirs);
        } else {
            halves.remove(&path);
            match (mine, theirs) {
                (Some(mine), Some(theirs)) => {
                    // The server has it, and what was here becomes a copy.
                    let copy = copy_name(&path, machine, chance);
                    put(&root, &copy, &mine);
                    put(&root, &path, &theirs);
                    set(agreed, Some(theirs));
                }
                (Some(mine), None) => {
                    set(&mut self.server, Some(mine.clone()));
                    set(agreed, Some(mine));
                }
                (None, theirs) => {
                    if let Some(bytes) = &theirs {
                        put(&root, &path, bytes);
                    }
                    set(agreed, theirs);
                }
            }
        }
        true
    }

    /// Makes a mistake that clients make: a content that a plain file had before is in its place again, or lies beside it as a conflict copy.
    pub(crate) fn bring_back(
        &mut self,
        machine: &str,
        is_known: impl Fn(&str, &[u8]) -> bool,
        chance: &mut Chance,
    ) -> Option<String> {
        let known: Vec<_> = self.past.iter().filter(|(path, bytes)| is_known(path, bytes)).collect();
        let (path, bytes) = known.get(chance.below(known.len().max(1)))?;
        let path = match chance.below(2) {
            0 => path.clone(),
            _ => copy_name(path, machine, chance),
        };
        self.server.insert(path.clone(), bytes.clone());
        Some(path)
    }

    pub(crate) fn carry_all(&mut self, machines: &Machines, names: &[&str], chance: &mut Chance) {
        for _ in 0..100_000 {
            if !names.iter().any(|name| self.step(machines, name, true, chance)) {
                return;
            }
        }
        panic!("the client does not come to an end");
    }
}

fn run(seed: u64, count: usize, steps: usize) {
    let machines = Machines::new();
    let names = &NAMES[..count];
    let mut client = Client::default();
    let mut chance = Chance::new(seed);
    machines.write(names[0], "notes.md", "begin\n\n");
    let shown =
        machines.done(names[0], &["remote", "add", &make_folder(&machines, names[0]), "--device", names[0]]);
    assert!(shown.contains("in a folder that Syncthing replicates"), "{shown}");
    machines.done(names[0], &["sync"]);
    for name in &names[1..] {
        let folder = make_folder(&machines, name);
        client.carry_all(&machines, names, &mut chance);
        machines.done(name, &["join", &folder, "--device", name, "--yes"]);
    }
    let mut oracle = Oracle::default();
    for _ in 0..steps {
        let machine = names[chance.below(count)];
        match chance.below(4) {
            0 => {
                for _ in 0..chance.below(20) {
                    client.step(&machines, names[chance.below(count)], false, &mut chance);
                }
            }
            1 => drop(machines.done(machine, &["sync"])),
            // A user edits a plain file in the folder, and claims it.
            2 if chance.below(3) == 0 => {
                let file = FILES[chance.below(FILES.len())];
                let path = folder(&machines, machine).join(file);
                if let Ok(text) = std::fs::read_to_string(&path) {
                    oracle.carry(&text);
                    let token = oracle.token(machine, file);
                    put(
                        &folder(&machines, machine),
                        file,
                        format!("{text}{}", line(file, &token)).as_bytes(),
                    );
                    machines.done(machine, &["sync", "--mine", file]);
                }
            }
            _ => act(&machines, &mut oracle, &mut chance, machine),
        }
    }
    for _ in 0..6 {
        for name in names {
            client.carry_all(&machines, names, &mut chance);
            machines.done(name, &["sync", "--full"]);
        }
    }
    client.carry_all(&machines, names, &mut chance);
    let files = machines.files(names[0]);
    for name in names {
        assert_eq!(machines.files(name), files, "seed {seed}: {name}");
        let plain = crate::machines::files_below(&folder(&machines, name));
        assert_eq!(plain, files, "seed {seed}: the folder of {name}");
    }
    oracle.check(seed, &files);
    let before = client.server.clone();
    for name in names {
        machines.done(name, &["sync"]);
    }
    client.carry_all(&machines, names, &mut chance);
    assert_eq!(client.server, before, "seed {seed}: a further sync wrote something");
}

/// Returns how many schedules are run: about 10,000 operations in a soak.
fn rounds() -> u64 {
    if std::env::var_os("HAVERSACK_SOAK").is_some() { 60 } else { 2 }
}

#[test]
fn two_machines_and_a_client_lose_nothing() {
    (1..=rounds()).for_each(|seed| run(seed, 2, 80));
}

#[test]
fn three_machines_and_a_client_lose_nothing() {
    (1..=rounds()).for_each(|seed| run(1000 + seed, 3, 90));
}

/// A machine is gone, and the folder has lost a part of its log: `status` does not call that in sync, and a machine with a copy restores it.
#[test]
fn lost_folder_logs_are_reported_and_restored() {
    let machines = Machines::new();
    let shared = make_folder(&machines, "laptop");
    machines.write("laptop", "notes.md", "the lamp is lit\n");
    machines.done("laptop", &["remote", "add", &shared, "--device", "laptop"]);
    machines.done("laptop", &["sync"]);
    machines.done("desktop", &["join", &shared, "--device", "desktop", "--yes"]);
    machines.write("desktop", "oil.md", "three barrels\n");
    machines.done("desktop", &["sync"]);
    let logs = all_below(&folder(&machines, "laptop"));
    let (lost, whole) = logs
        .iter()
        .find(|(path, bytes)| path.contains("/log/") && contains(bytes, "laptop"))
        .expect("its log");
    put(&folder(&machines, "laptop"), lost, &whole[..whole.len() / 2]);

    let joined = machines.done("tablet", &["join", &shared, "--device", "tablet", "--yes"]);
    assert!(joined.contains("2 parts of other machines' logs have not arrived whole"), "{joined}");
    let status = machines.done("tablet", &["status"]);
    assert!(
        status.contains(
            "In sync with the files that have arrived. 2 parts of other machines' logs have not arrived yet."
        ),
        "{status}"
    );
    assert!(machines.done("tablet", &["status", "--line"]).contains("haversack: 2 arriving"));
    let mended = machines.done("desktop", &["sync", "--full"]);
    assert!(mended.contains("Put 1 file of logs back that the folder had lost."), "{mended}");
    assert_eq!(all_below(&folder(&machines, "laptop"))[lost], *whole);
    machines.done("tablet", &["sync"]);
    assert_eq!(machines.files("tablet"), machines.files("desktop"));
    let status = machines.done("tablet", &["status"]);
    assert!(status.contains("In sync. Last contact"), "{status}");
}

/// A timer's sync checks edits by hand from time to time.
#[test]
fn timer_sync_checks_everything_from_time_to_time() {
    let machines = Machines::new();
    let shared = make_folder(&machines, "laptop");
    machines.write("laptop", "notes.md", "the lamp is lit\n");
    machines.done("laptop", &["remote", "add", &shared, "--device", "laptop"]);
    machines.done("laptop", &["sync"]);
    // A file that no log names waits, and every status says so.
    put(&folder(&machines, "laptop"), "notes.md", b"the lamp is lit\nby hand\n");
    let looked = machines.done("laptop", &["sync", "--when-due"]);
    assert!(looked.contains("notes.md in the folder differs"), "{looked}");
    let synced = machines.done("laptop", &["sync", "--when-due"]);
    assert!(!synced.contains("notes.md"), "it was looked at a moment ago: {synced}");
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn conflict_that_a_folder_brings_is_told_by_its_sync() {
    let machines = Machines::new();
    let shared = make_folder(&machines, "shared");
    machines.write("laptop", "ports.md", "staging listens on 5433\n");
    machines.done("laptop", &["remote", "add", &shared, "--device", "laptop"]);
    machines.done("laptop", &["sync"]);
    machines.done("desktop", &["join", &shared, "--device", "desktop", "--yes"]);
    machines.write("laptop", "ports.md", "staging listens on 5434\n");
    machines.done("laptop", &["sync"]);
    machines.write("desktop", "ports.md", "staging listens on 5435\n");
    let told = machines.shown("desktop", &["sync"]);
    assert!(told.contains("ports.md: both versions of a passage are kept"), "{told}");
    assert!(told.contains("haversack conflicts"), "{told}");
}

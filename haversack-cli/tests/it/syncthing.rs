//! Two homes whose folders a real Syncthing replicates: users, agents and editors work, syncs and daemons are killed, and people edit the plain
//! files in the folder. Nothing is lost, nothing comes back, and both homes become equal.
//!
//! The schedule is fixed by its number. The moments at which the daemons carry a file are not, and must not matter.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haversack_servers::syncthing::{Syncthing, settle};

use crate::machines::{Machines, files_below};
use crate::random_machines::{Chance, FILES, NAMES, Oracle, edit, kill_sync, line};
use crate::vault::{folder, make_folder};

/// The time in which the daemons must have everything, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The time in which both homes must be equal.
const CONVERGENCE: Duration = Duration::from_secs(300);

/// Returns the directory that a home's daemon replicates: the home's folder is in it.
fn replicated(machines: &Machines, home: &str) -> PathBuf {
    folder(machines, home).parent().expect("the folder is in it").to_owned()
}

/// Appends a line to a plain file in the folder, as an editor does, and says that it was us.
fn edit_in_folder(machines: &Machines, oracle: &mut Oracle, home: &str, file: &str) {
    let path = folder(machines, home).join(file);
    let Ok(text) = std::fs::read_to_string(&path) else { return };
    oracle.carry(&text);
    let token = oracle.token(home, file);
    save(machines, home, &path, &format!("{text}{}", line(file, &token)));
    machines.done(home, &["sync", "--mine", file]);
}

/// Saves a file under a new inode. The draft lies outside of the folder.
fn save(machines: &Machines, home: &str, path: &Path, text: &str) {
    let draft = machines.env.path(&format!("{home}-draft"));
    std::fs::write(&draft, text).expect("written");
    std::fs::rename(draft, path).expect("saved");
}

/// Syncs both homes and lets the daemons carry everything, until homes and folders are equal.
///
/// A plain file that no log names is waited for, a quarter of an hour: an edit whose sync was stopped, or a conflict copy. The user says that
/// it is theirs, and lines in it that were removed elsewhere are there anew.
fn converge(
    machines: &Machines,
    daemons: &[Syncthing; 2],
    homes: &[&str],
    oracle: &mut Oracle,
    seed: u64,
) -> BTreeMap<String, String> {
    let deadline = Instant::now() + CONVERGENCE;
    let carry = || settle(daemons, PATIENCE).unwrap_or_else(|open| panic!("seed {seed}: {open}"));
    loop {
        for home in homes {
            carry();
            machines.done(home, &["sync", "--full"]);
        }
        carry();
        let files = machines.files(homes[0]);
        let all: Vec<_> =
            homes.iter().flat_map(|home| [machines.files(home), plain_files(machines, home)]).collect();
        if all.iter().all(|found| *found == files) {
            return files;
        }
        let status: Vec<_> = homes.iter().map(|home| machines.shown(home, &["status"])).collect();
        assert!(Instant::now() < deadline, "seed {seed}: homes and folders differ: {all:#?}\n{status:#?}");
        for home in homes {
            let known = machines.files(home);
            for (name, text) in plain_files(machines, home) {
                if known.get(&name) != Some(&text) {
                    oracle.carry(&text);
                }
            }
            machines.done(home, &["sync", "--mine"]);
            carry();
        }
    }
}

/// Returns the plain files in a home's folder, without the temporary files that a killed daemon keeps for a day.
fn plain_files(machines: &Machines, home: &str) -> BTreeMap<String, String> {
    let mut files = files_below(&folder(machines, home));
    files.retain(|name, _| !name.contains(".syncthing."));
    files
}

/// Plays a schedule; returns false if Syncthing is not installed.
fn run(seed: u64, steps: usize) -> bool {
    let machines = Machines::new();
    let homes = &NAMES[..2];
    for home in homes {
        make_folder(&machines, home);
    }
    let directories = [replicated(&machines, homes[0]), replicated(&machines, homes[1])];
    let Some(mut daemons) = Syncthing::pair([&directories[0], &directories[1]]) else { return false };
    machines.write(homes[0], "notes.md", "begin\n\n");
    let at = |home: &str| folder(&machines, home).display().to_string();
    let shown = machines.done(homes[0], &["remote", "add", &at(homes[0]), "--device", homes[0]]);
    assert!(shown.contains("in a folder that Syncthing replicates"), "{shown}");
    machines.done(homes[0], &["sync"]);
    settle(&daemons, PATIENCE).expect("the store arrives");
    machines.done(homes[1], &["join", &at(homes[1]), "--device", homes[1], "--yes"]);

    let mut oracle = Oracle::default();
    let mut chance = Chance::new(seed);
    for _ in 0..steps {
        let home = homes[chance.below(2)];
        let file = FILES[chance.below(FILES.len())];
        match chance.below(20) {
            0..=5 => drop(machines.done(home, &["sync"])),
            6 | 7 => edit_in_folder(&machines, &mut oracle, home, file),
            8 => daemons[chance.below(2)].kill(),
            9 => daemons.iter_mut().for_each(Syncthing::start),
            // The daemon looks at once, instead of a second after the last change.
            10 => drop(daemons[chance.below(2)].scan()),
            11 => kill_sync(&machines, &mut chance, home),
            // Rarely, a file is deleted or renamed.
            12 => {
                let choice = 6 + chance.below(2);
                edit(&machines, &mut oracle, &mut chance, home, file, choice);
            }
            _ => {
                let choice = chance.below(6);
                edit(&machines, &mut oracle, &mut chance, home, file, choice);
            }
        }
    }
    daemons.iter_mut().for_each(Syncthing::start);
    let files = converge(&machines, &daemons, homes, &mut oracle, seed);
    oracle.check(seed, &files);
    let logs = |home: &str| files_below(&folder(&machines, home).join(".haversack"));
    let before = [logs(homes[0]), logs(homes[1])];
    for home in homes {
        let shown = machines.done(home, &["sync"]);
        assert!(shown.contains("Nothing new."), "seed {seed}: {home}: {shown}");
    }
    assert_eq!([logs(homes[0]), logs(homes[1])], before, "seed {seed}: a further sync wrote something");
    true
}

/// Returns how many schedules are played, and how long they are.
fn extent() -> (u64, usize) {
    if std::env::var_os("HAVERSACK_SOAK").is_some() { (12, 400) } else { (1, 70) }
}

#[test]
fn syncthing_between_two_homes_loses_nothing() {
    let (rounds, steps) = extent();
    let first = std::env::var("HAVERSACK_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for seed in first..first + rounds {
        if !run(seed, steps) {
            return;
        }
    }
}

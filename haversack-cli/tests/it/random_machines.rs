//! Machines whose users, agents and editors do anything at any moment, and whose syncs are killed: nothing is lost, nothing comes back.
//!
//! The schedule is random and fixed by its number; how far a killed sync came is not, and must not matter.

#[cfg(unix)]
mod player;
#[cfg(unix)]
mod real_use;
#[cfg(unix)]
mod schedule;
#[cfg(unix)]
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::Duration;

use crate::machines::{Machines, files_below};

pub(crate) const NAMES: [&str; 5] = ["laptop", "desktop", "tablet", "server", "phone"];
pub(crate) const FILES: [&str; 6] = [
    "MEMORY.md",
    "notes.md",
    "log.jsonl",
    "project_lighthouse.md",
    "deep/er/ideas.md",
    "voice_calibration.md",
];

/// Numbers that look random, the same for the same seed.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("small")
    }
}

/// Records the writer and remover of each word.
#[derive(Default)]
pub(crate) struct Oracle {
    /// Every line, and the file it was written to.
    written: BTreeMap<String, String>,
    /// Words that an editor removed after seeing them: they must not come back.
    pub(crate) removed: BTreeSet<String>,
    /// Words that were deleted or moved with their file: they may be there or not.
    gone: BTreeSet<String>,
    /// Files that were deleted or moved: an unaware edit brings such a file back whole, as it was there.
    deleted: BTreeSet<String>,
    /// Words in a folder's plain file that was edited in place: a removal elsewhere at the same time may not remove them.
    carried: BTreeSet<String>,
    next: usize,
}

impl Oracle {
    pub(crate) fn token(&mut self, machine: &str, file: &str) -> String {
        self.next += 1;
        let token = format!("{machine}-{:04}", self.next);
        self.written.insert(token.clone(), file.to_owned());
        token
    }

    pub(crate) fn tokens(&self, text: &str) -> Vec<String> {
        self.written.keys().filter(|token| text.contains(*token)).cloned().collect()
    }

    pub(crate) fn delete(&mut self, file: &str, text: &str) {
        self.gone.extend(self.tokens(text));
        self.deleted.insert(file.to_owned());
    }

    /// Notes an edit of a text that may be older than the machine's.
    pub(crate) fn carry(&mut self, text: &str) {
        self.carried.extend(self.tokens(text));
    }

    /// Checks that nothing was lost and nothing came back.
    pub(crate) fn check(&self, seed: u64, files: &BTreeMap<String, String>) {
        let all: String = files.values().cloned().collect();
        for (token, file) in &self.written {
            let is_there = all.contains(token);
            if self.removed.contains(token) {
                let may_return =
                    self.deleted.contains(file) || self.gone.contains(token) || self.carried.contains(token);
                assert!(!is_there || may_return, "seed {seed}: {token} came back: {files:#?}");
            } else {
                assert!(is_there || self.gone.contains(token), "seed {seed}: {token} was lost: {files:#?}");
            }
        }
    }
}

pub(crate) fn line(file: &str, token: &str) -> String {
    if file.ends_with(".jsonl") {
        format!("{{\"id\":\"{token}\",\"text\":\"x\"}}\n")
    } else if file == "MEMORY.md" {
        format!("- [{token}]({token}.md) — x\n")
    } else {
        format!("{token} was here\n\n")
    }
}

/// Acts on a machine as a user, an agent, an editor, or a sync.
pub(crate) fn act(machines: &Machines, oracle: &mut Oracle, chance: &mut Chance, machine: &str) {
    let file = FILES[chance.below(FILES.len())];
    match chance.below(10) {
        8 => kill_sync(machines, chance, machine),
        choice @ 0..=5 => edit(machines, oracle, chance, machine, file, choice),
        choice @ (6 | 7) if chance.below(4) == 0 => edit(machines, oracle, chance, machine, file, choice),
        // Two processes sync at once.
        _ => {
            let start =
                || machines.command(machine, &["sync"]).stdout(Stdio::null()).spawn().expect("started");
            for mut child in [start(), start()] {
                assert!(child.wait().expect("ended").success(), "{machine} synced");
            }
        }
    }
}

/// Starts a sync and kills it.
pub(crate) fn kill_sync(machines: &Machines, chance: &mut Chance, machine: &str) {
    let mut sync = machines.command(machine, &["sync"]);
    let mut child = sync.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
    std::thread::sleep(Duration::from_micros(500 * chance.below(60) as u64));
    drop(child.kill());
    drop(child.wait());
}

/// Lets a user, an agent or an editor change a file: 0 to 4 add a line, 5 removes one, 6 deletes the file, any other choice renames it.
pub(crate) fn edit(
    machines: &Machines,
    oracle: &mut Oracle,
    chance: &mut Chance,
    machine: &str,
    file: &str,
    choice: usize,
) {
    let there = machines.read(machine, file);
    match choice {
        // An agent adds.
        0..=2 => {
            let token = oracle.token(machine, file);
            machines.fed(machine, &["append", file], &line(file, &token));
        }
        // An editor adds, and saves the whole file under a new inode.
        3 | 4 => {
            let token = oracle.token(machine, file);
            let text = format!("{}{}", there.unwrap_or_default(), line(file, &token));
            let draft = machines.env.path(&format!("{machine}-draft"));
            std::fs::write(&draft, text).expect("written");
            let path = machines.path(machine, file);
            std::fs::create_dir_all(path.parent().expect("below")).expect("made");
            std::fs::rename(&draft, path).expect("saved");
        }
        // An editor takes a line out, in place.
        5 => {
            let text = there.unwrap_or_default();
            let tokens = oracle.tokens(&text);
            if tokens.is_empty() {
                return;
            }
            let token = tokens[chance.below(tokens.len())].clone();
            let rest: String = text.split_inclusive('\n').filter(|line| !line.contains(&token)).collect();
            machines.write(machine, file, &rest);
            oracle.removed.insert(token);
        }
        // An agent deletes a file.
        6 => {
            let Some(text) = there else { return };
            oracle.delete(file, &text);
            machines.done(machine, &["delete", file]);
        }
        // A user moves a file.
        _ => {
            let Some(text) = there else { return };
            oracle.delete(file, &text);
            let to = format!("moved-{}-{}.md", machine, chance.below(1000));
            if machines.read(machine, &to).is_none() {
                machines.done(machine, &["rename", file, &to]);
            }
        }
    }
}

fn run(seed: u64, count: usize, steps: usize) {
    let machines = Machines::new();
    let names = &NAMES[..count];
    machines.write(names[0], "notes.md", "begin\n\n");
    machines.done(names[0], &["remote", "add", &machines.url(), "--device", names[0]]);
    machines.done(names[0], &["sync"]);
    for name in &names[1..] {
        machines.done(name, &["join", &machines.url(), "--device", name, "--yes"]);
    }
    let mut oracle = Oracle::default();
    let mut chance = Chance::new(seed);
    for _ in 0..steps {
        let machine = names[chance.below(count)];
        act(&machines, &mut oracle, &mut chance, machine);
    }
    machines.settle(names);
    let files = machines.files(names[0]);
    for name in &names[1..] {
        assert_eq!(machines.files(name), files, "seed {seed}: {name}");
    }
    oracle.check(seed, &files);
    let log = |machines: &Machines| -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for directory in [".haversack/log", ".haversack/segments", ".haversack/checkpoints"] {
            all.extend(files_below(&machines.env.path("remote").join(directory)));
        }
        all.extend(files_below(&machines.env.path("remote")));
        all
    };
    let before = log(&machines);
    for name in names {
        let shown = machines.done(name, &["sync"]);
        assert!(shown.contains("Nothing new."), "seed {seed}: {name}: {shown}");
    }
    assert_eq!(log(&machines), before, "seed {seed}: a further sync wrote something");
}

/// Returns how many schedules are run.
fn rounds() -> u64 {
    if std::env::var_os("HAVERSACK_SOAK").is_some() { 60 } else { 3 }
}

#[test]
fn two_machines_lose_nothing() {
    (1..=rounds()).for_each(|seed| run(seed, 2, 60));
}

#[test]
fn five_machines_lose_nothing() {
    (1..=rounds()).for_each(|seed| run(1000 + seed, 5, 80));
}

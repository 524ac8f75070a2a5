//! Three homes in a folder, with wrong clocks, edits by hand of the plain files, and a client that delays, reorders, duplicates and brings old
//! files back: a line that a user removed stays removed.
//!
//! `HAVERSACK_FAKETIME` names libfaketime, which sets the clocks of the homes; without it all clocks are right. A word that comes back with wrong
//! clocks is printed with its trace, and fails nothing: see docs/proof-diary.md.

use std::collections::{BTreeMap, BTreeSet};

use crate::machines::Machines;
use crate::random_machines::{Chance, NAMES, Oracle, edit, kill_sync, line};
use crate::vault::{Client, folder, make_folder};

const FILES: [&str; 2] = ["log.jsonl", "notes.md"];

/// The variable that names libfaketime.
const LIBRARY: &str = "HAVERSACK_FAKETIME";

/// A schedule that is being played.
struct Folder {
    machines: Machines,
    client: Client,
    oracle: Oracle,
    chance: Chance,
    homes: &'static [&'static str],
    /// By home, by how many seconds its clock is wrong.
    skew: Vec<i64>,
    /// By word, the edits by hand of a text with that word which the user who removed it had not seen, each by the word that it added.
    carried: BTreeMap<String, BTreeSet<String>>,
    /// Contents that files of homes had after a sync. Some log has each of them.
    had: BTreeSet<(String, String)>,
    trace: Vec<String>,
}

impl Folder {
    fn set_clock(&mut self, home: usize, change: i64) {
        self.skew[home] += change;
        let Ok(library) = std::env::var(LIBRARY) else { return };
        let variables = [
            ("LD_PRELOAD", library),
            ("FAKETIME", format!("{:+}", self.skew[home])),
            ("FAKETIME_DONT_RESET", "1".to_owned()),
            // The times of files are the kernel's.
            ("NO_FAKE_STAT", "1".to_owned()),
            ("DONT_FAKE_MONOTONIC", "1".to_owned()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value)).to_vec();
        self.machines.variables.insert(self.homes[home].to_owned(), variables);
    }

    fn note(&mut self, what: String) {
        self.trace.push(what);
    }

    /// Notes that a text with these words was edited by hand.
    fn carry(&mut self, tokens: &[String], edit: &str) {
        for token in tokens {
            self.carried.entry(token.clone()).or_default().insert(edit.to_owned());
        }
    }

    /// Edits a plain file in a home's folder.
    fn edit_by_hand(&mut self, home: &'static str, file: &'static str) {
        let path = folder(&self.machines, home).join(file);
        let Ok(text) = std::fs::read_to_string(&path) else { return };
        let tokens = self.oracle.tokens(&text);
        let (text, is_added) = if self.chance.below(4) == 0 && !tokens.is_empty() {
            let token = tokens[self.chance.below(tokens.len())].clone();
            let rest = text.split_inclusive('\n').filter(|line| !line.contains(&token)).collect();
            self.note(format!("{home}: removes {token} by hand in the folder's {file}"));
            // The text does not show if this edit was imported.
            self.carry(&tokens, "an edit that removes");
            (rest, false)
        } else {
            let token = self.oracle.token(home, file);
            self.note(format!("{home}: adds {token} by hand in the folder's {file}"));
            self.carry(&tokens, &token);
            (format!("{text}{}", line(file, &token)), true)
        };
        let draft = self.machines.env.path(&format!("{home}-draft"));
        std::fs::write(&draft, text).expect("written");
        std::fs::rename(draft, path).expect("saved");
        // An unclaimed edit waits, and may be overwritten before it is imported.
        let is_claimed = is_added || self.chance.below(2) == 0;
        if is_claimed {
            let shown = self.machines.shown(home, &["sync", "--mine", file]);
            self.note(format!("{home}: sync --mine {file} [{}]", shown.replace('\n', " | ")));
        }
    }

    fn sync(&mut self, home: &'static str, options: &[&str]) {
        let shown = self.machines.shown(home, &[&["sync"], options].concat());
        self.note(format!("{home}: sync {options:?} [{}]", shown.replace('\n', " | ")));
        self.had.extend(self.machines.files(home));
    }

    fn step(&mut self) {
        let index = self.chance.below(self.homes.len());
        let (home, file) = (self.homes[index], FILES[self.chance.below(2)]);
        match self.chance.below(16) {
            0..=3 => {
                let steps = self.chance.below(16);
                for _ in 0..steps {
                    let home = self.homes[self.chance.below(self.homes.len())];
                    self.client.step(&self.machines, home, false, &mut self.chance);
                }
                self.note(format!("client: {steps} steps"));
            }
            4..=6 => self.sync(home, &[]),
            7 => self.sync(home, &["--full"]),
            8 | 9 => self.edit_by_hand(home, file),
            10 => {
                kill_sync(&self.machines, &mut self.chance, home);
                self.note(format!("{home}: sync, killed"));
            }
            11 => {
                let had = &self.had;
                let is_known = |path: &str, bytes: &[u8]| {
                    had.contains(&(path.to_owned(), String::from_utf8_lossy(bytes).into_owned()))
                };
                let brought = self.client.bring_back(home, is_known, &mut self.chance);
                self.note(format!("client: brings back {brought:?}"));
            }
            12 => {
                let minutes = [-180, -20, -1, 1, 20, 180][self.chance.below(6)];
                self.set_clock(index, 60 * minutes);
                self.note(format!("{home}: clock {minutes:+} min"));
            }
            choice => {
                let choice = if choice == 13 { 5 } else { self.chance.below(6) };
                let before = self.machines.read(home, file).unwrap_or_default();
                edit(&self.machines, &mut self.oracle, &mut self.chance, home, file, choice);
                let after = self.machines.read(home, file).unwrap_or_default();
                let removed: Vec<_> =
                    self.oracle.tokens(&before).into_iter().filter(|token| !after.contains(token)).collect();
                let added: Vec<_> =
                    self.oracle.tokens(&after).into_iter().filter(|token| !before.contains(token)).collect();
                for token in &removed {
                    let edits = self.carried.entry(token.clone()).or_default();
                    edits.retain(|edit| !before.contains(edit));
                }
                self.note(format!("{home}: {file} adds {added:?} removes {removed:?}"));
            }
        }
    }
}

/// Plays a schedule; returns the traces of words that came back because a clock jumped.
fn run(seed: u64, steps: usize) -> Vec<String> {
    let homes = &NAMES[..3];
    let mut play = Folder {
        machines: Machines::new(),
        client: Client::default(),
        oracle: Oracle::default(),
        chance: Chance::new(seed),
        homes,
        skew: vec![0; 3],
        carried: BTreeMap::new(),
        had: BTreeSet::new(),
        trace: Vec::new(),
    };
    play.machines.write(homes[0], "notes.md", "begin\n\n");
    let at = make_folder(&play.machines, homes[0]);
    play.machines.done(homes[0], &["remote", "add", &at, "--device", homes[0]]);
    play.machines.done(homes[0], &["sync"]);
    for home in &homes[1..] {
        let at = make_folder(&play.machines, home);
        play.client.carry_all(&play.machines, homes, &mut play.chance);
        play.machines.done(home, &["join", &at, "--device", home, "--yes"]);
    }
    for _ in 0..steps {
        play.step();
    }
    for round in 0..8 {
        for (index, home) in homes.iter().enumerate() {
            play.client.carry_all(&play.machines, homes, &mut play.chance);
            play.sync(home, &["--full"]);
            // Waiting edits are imported.
            if round < 4 {
                play.set_clock(index, 1200);
            }
        }
    }
    let files = play.machines.files(homes[0]);
    for home in homes {
        assert_eq!(play.machines.files(home), files, "seed {seed}: {home}: {}", play.trace.join("\n"));
    }
    let all: String = FILES.iter().filter_map(|file| files.get(*file)).cloned().collect();
    let mut back = Vec::new();
    for token in play.oracle.removed.iter().filter(|token| all.contains(*token)) {
        let is_carried = play.carried.get(token).is_some_and(|edits| !edits.is_empty());
        let told = format!("seed {seed}: {token} came back:\n{}\n{files:#?}", play.trace.join("\n"));
        // A clock that jumps ends the wait for the log of an edit by hand; its text is then taken in once more, with what it had.
        assert!(is_carried || std::env::var_os(LIBRARY).is_some(), "{told}");
        if !is_carried {
            back.push(told);
        }
    }
    back
}

/// Returns a number from the environment.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn removed_line_stays_removed_in_a_skewed_folder() {
    let rounds = if std::env::var_os("HAVERSACK_SOAK").is_some() { 60 } else { 2 };
    let (first, rounds) = (number("HAVERSACK_SEED", 1), number("HAVERSACK_SEEDS", rounds));
    for told in (first..first + rounds).flat_map(|seed| run(seed, 90)) {
        haversack_servers::tools::skip(&told);
    }
}

//! Judges what a schedule came to: nothing lost, nothing back, all homes equal, or `status` names the difference.

use std::collections::{BTreeMap, BTreeSet};

use super::player::Player;
use super::schedule::{Kind, Schedule, folded};

/// In how many rounds of syncs all homes have to come to the same files.
const ROUNDS: usize = 6;

/// A promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// A command crashed.
    Crashed,
    /// A word is missing and no `status` says why.
    Lost,
    /// A word is there that was removed or deleted.
    CameBack,
    /// Homes differ and no `status` says why.
    Diverged,
    /// A file is held back, refused or left out, and nothing in the schedule is a reason for that.
    Stuck,
    /// A further sync sent something.
    NotQuiet,
}

/// A broken promise, and what happened until then.
pub(super) struct Failure {
    pub(super) broken: Broken,
    pub(super) why: String,
    pub(super) trace: Vec<String>,
}

/// The state at the end.
struct End {
    files: BTreeMap<&'static str, BTreeMap<String, String>>,
    status: BTreeMap<&'static str, String>,
}

impl End {
    /// Returns true if a home's `status` names a file.
    fn names(&self, home: &str, locator: &str) -> bool {
        let said = folded(&self.status[home]);
        // A second spelling of a name is told with its directory.
        let name = folded(locator.rsplit('/').next().unwrap_or(locator));
        said.contains(&folded(locator))
            || locator.strip_prefix("claude_memory/").is_some_and(|short| said.contains(&folded(short)))
            || said.contains("more that are held back")
            || said.lines().any(|line| line.contains(" disappeared from ") && line.contains(", …)"))
            || said.lines().any(|line| line.contains("is not synced") && line.contains(&name))
    }

    fn anyone_names(&self, locator: &str) -> bool {
        self.status.keys().any(|home| self.names(home, locator))
    }
}

/// Plays a schedule and judges it.
pub(super) fn judge(schedule: &Schedule) -> Result<(), Failure> {
    let mut player = Player::new(schedule);
    for operation in &schedule.operations {
        player.play(operation);
    }
    let found = settle(&mut player);
    found.map_err(|(broken, why)| Failure { broken, why, trace: std::mem::take(&mut player.trace) })
}

/// Ends everything that is in the way, syncs, answers, and judges.
fn settle(player: &mut Player<'_>) -> Result<(), (Broken, String)> {
    let homes = player.schedule.homes;
    for home in homes {
        player.clear(home);
    }
    player.make_roots();
    for round in 0..ROUNDS {
        for home in homes {
            player.carry_all();
            let shown = player.sync(home, &["sync", "--full"]);
            note(player, format!("end {home}: sync --full  [{}]", shown.replace('\n', " | ")));
            if round > 0 && round < 3 {
                answer(player, home);
            }
        }
    }
    player.carry_all();
    if let Some(why) = player.broken.take() {
        return Err((Broken::Crashed, why));
    }
    let mut end = End { files: BTreeMap::new(), status: BTreeMap::new() };
    for home in homes {
        end.files.insert(home, player.files(home));
        let status = player.run(home, &["status"]);
        player.trace.push(format!("end {home}: status  [{}]", status.replace('\n', " | ")));
        end.status.insert(home, status);
    }
    nothing_stuck(player, &end)?;
    nothing_lost(player, &end)?;
    nothing_back(player, &end)?;
    all_equal(player, &end)?;
    for home in homes {
        let shown = player.run(home, &["sync"]);
        if shown.contains("Sent ") || player.files(home) != end.files[home] {
            return Err((Broken::NotQuiet, format!("{home}: {shown}")));
        }
    }
    Ok(())
}

/// Adds a line to the trace, unless it is there.
fn note(player: &mut Player<'_>, line: String) {
    if !player.trace.contains(&line) {
        player.trace.push(line);
    }
}

/// Answers the question whether very many deletions are meant.
fn answer(player: &mut Player<'_>, home: &str) {
    let status = player.run(home, &["status"]);
    if !status.contains("--allow-deletes") {
        return;
    }
    let answer: &[&str] =
        if player.has_lost_a_directory { &["restore", "--deleted"] } else { &["sync", "--allow-deletes"] };
    let shown = player.run(home, answer);
    player.trace.push(format!("end {home}: {answer:?}  [{}]", shown.replace('\n', " | ")));
}

/// Every file that `status` names as held back, refused or left out has a reason in the schedule.
fn nothing_stuck(player: &Player<'_>, end: &End) -> Result<(), (Broken, String)> {
    const STUCK: [&str; 5] = [
        " is held back",
        " cannot be on this disk",
        " cannot be looked at",
        " was left out",
        " could not be written here",
    ];
    for (home, status) in &end.status {
        for line in status.lines() {
            let Some(at) = STUCK.iter().find_map(|words| line.find(words)) else { continue };
            let name = line[..at].trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
            // A file of a project is shown by the project's short name.
            if !player.may_be_held(name) && !player.may_be_held(&format!("claude_memory/{name}")) {
                return Err((Broken::Stuck, format!("{home}: {}", line.trim())));
            }
        }
    }
    Ok(())
}

fn nothing_lost(player: &Player<'_>, end: &End) -> Result<(), (Broken, String)> {
    for (token, known) in &player.tokens {
        if known.is_removed || known.may_be_gone {
            continue;
        }
        let holders: Vec<(&str, &String)> = end
            .files
            .iter()
            .flat_map(|(home, files)| {
                files.iter().filter(|(_, text)| text.contains(token)).map(|(name, _)| (*home, name))
            })
            .collect();
        for home in end.files.keys() {
            let is_here = holders.iter().any(|(holder, _)| holder == home);
            let is_named = holders.iter().any(|(holder, name)| {
                player.may_be_held(name) && (end.names(holder, name) || end.names(home, name))
            });
            if !is_here && !is_named {
                return Err((
                    Broken::Lost,
                    format!("{home} lacks {token}, written to {}; it is in {holders:?}", known.file),
                ));
            }
        }
    }
    Ok(())
}

fn nothing_back(player: &Player<'_>, end: &End) -> Result<(), (Broken, String)> {
    // A home that was behind may rebuild the remote; a line that only others had seen and removed can be back then (ADR 29).
    if player.has_lost_the_remote {
        return Ok(());
    }
    let only_by = |file: &String, home: &str| {
        player.touched.get(file).is_none_or(|homes| homes.iter().all(|touched| *touched == home))
    };
    for (token, known) in &player.tokens {
        let must_be_gone = if known.is_removed {
            !known.may_return && !player.deleted.contains(&known.file)
        } else {
            // No other home ever changed its file, so no edit wins over the deletion.
            !known.may_return
                && !player.has_lost_a_directory
                && known.deleted_by.is_some_and(|home| only_by(&known.file, home))
                && player.schedule.operations.iter().all(|operation| operation.kind != Kind::AddSecret)
        };
        if !must_be_gone {
            continue;
        }
        for (home, files) in &end.files {
            let holder = files.iter().find(|(_, text)| text.contains(token));
            if let Some((name, _)) = holder
                && !end.anyone_names(name)
            {
                return Err((
                    Broken::CameBack,
                    format!("{home} has {token} in {name}, though it was removed or deleted"),
                ));
            }
        }
    }
    Ok(())
}

fn all_equal(player: &Player<'_>, end: &End) -> Result<(), (Broken, String)> {
    let homes = player.schedule.homes;
    let names: BTreeSet<&String> = end.files.values().flat_map(BTreeMap::keys).collect();
    for name in names {
        let texts: Vec<Option<&String>> = homes.iter().map(|home| end.files[home].get(name)).collect();
        let is_equal = texts.windows(2).all(|pair| pair[0] == pair[1]);
        let is_excused = player.may_be_held(name) && end.anyone_names(name);
        if !is_equal && !is_excused {
            let shown: BTreeMap<_, _> = homes.iter().zip(texts).collect();
            return Err((Broken::Diverged, format!("{name} differs, and no status names it: {shown:#?}")));
        }
    }
    Ok(())
}

//! Runs schedules of the sync simulator: `sim [--vault | --weave | --lost | --tidy | --shorten] [--from SEED] [--seeds N | --minutes M]`, `sim --explain SEED`,
//! `sim --shrink SEED`, `sim --mutants`.

#![expect(
    clippy::disallowed_methods,
    reason = "schedules are deterministic; how many run at a time, and how long, is not"
)]

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use haversack::planted::Planted;
use haversack_sim::sync::{Failure, LogsOnlySchedule, Meeting, Run, Schedule, explain, run, shrink};

const USAGE: &str = "Usage: sim [--vault | --weave | --lost | --tidy | --shorten] [--from SEED] [--seeds N | --minutes M]
       sim --explain SEED [--planted NAME]    all that happens in one schedule
       sim --shrink SEED [--planted NAME]     as little of it as breaks the same promise
       sim --mutants [NAME]                   which schedule finds each planted mistake

With --vault devices share a folder that a sync client replicates; with --lost their remote is wiped, restored and replaced; with --tidy days go by and devices tidy; with --shorten old commits lose their contents; with --weave they read each other's logs, and nothing goes wrong.
";

/// Within how many schedules a planted mistake must be found.
const MUTANT_SEEDS: u64 = 100_000;

/// The number of seeds that a thread takes at a time.
const CHUNK: u64 = 64;

struct Plan {
    ground: Subject,
    from: u64,
    seeds: u64,
    until: Option<Instant>,
}

/// The subject of a simulation.
#[derive(Clone, Copy)]
enum Subject {
    Devices(Meeting),
    /// Only what logs come to.
    Logs,
}

impl Subject {
    /// Returns the option that asks for it.
    fn option(self) -> &'static str {
        match self {
            Subject::Devices(Meeting::Log) => "",
            Subject::Devices(Meeting::Vault) => "--vault ",
            Subject::Devices(Meeting::Lost) => "--lost ",
            Subject::Devices(Meeting::Aged) => "--tidy ",
            Subject::Devices(Meeting::Shortened) => "--shorten ",
            Subject::Logs => "--weave ",
        }
    }

    fn run(self, seed: u64) -> Result<(), Failure> {
        match self {
            Subject::Devices(meeting) => run(Run { meeting, ..Run::of(seed) }).map(drop),
            Subject::Logs => LogsOnlySchedule::at(seed).play(),
        }
    }

    /// Shows the shortest schedule that breaks the same promise.
    fn show_shrunk(self, seed: u64) -> ExitCode {
        match self {
            Subject::Devices(meeting) => show_shrunk(Run { meeting, ..Run::of(seed) }),
            Subject::Logs => match LogsOnlySchedule::at(seed).shrink() {
                Some(least) => show_told(&least.explain()),
                None => {
                    say(&format!("seed {seed} holds\n"));
                    ExitCode::SUCCESS
                }
            },
        }
    }
}

/// Shows what happened.
fn show_told((told, result): &(String, Result<(), Failure>)) -> ExitCode {
    say(told);
    match result {
        Ok(()) => {
            say("held\n");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            say(&format!("{failure}\n"));
            ExitCode::FAILURE
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut is_asked = |option: &str| match words.iter().position(|word| *word == option) {
        Some(at) => words.remove(at) == option,
        None => false,
    };
    if is_asked("--weave") {
        return weave(&words);
    }
    let meetings = [
        ("--vault", Meeting::Vault),
        ("--lost", Meeting::Lost),
        ("--tidy", Meeting::Aged),
        ("--shorten", Meeting::Shortened),
    ];
    let asked: Vec<Meeting> =
        meetings.into_iter().filter(|(option, _)| is_asked(option)).map(|(_, meeting)| meeting).collect();
    let meeting = asked.first().copied().unwrap_or(Meeting::Log);
    if let ["--explain" | "--shrink", seed, rest @ ..] = words.as_slice()
        && let Ok(seed) = seed.parse()
        && let Some(planted) = planted(rest)
    {
        let run = Run { seed, planted, meeting };
        let schedule = Schedule::at(meeting, seed);
        return if words[0] == "--shrink" { show_shrunk(run) } else { show(&schedule, planted) };
    }
    if let ["--mutants", rest @ ..] = words.as_slice() {
        return hunt(meeting, rest);
    }
    simulate(Subject::Devices(meeting), &words)
}

/// Does what the words say with devices that only read each other's logs.
fn weave(words: &[&str]) -> ExitCode {
    match words {
        ["--explain", seed] if let Ok(seed) = seed.parse() => {
            show_told(&LogsOnlySchedule::at(seed).explain())
        }
        ["--shrink", seed] if let Ok(seed) = seed.parse() => Subject::Logs.show_shrunk(seed),
        _ => simulate(Subject::Logs, words),
    }
}

/// Returns the mistake that the words `--planted NAME` name; `None` if they make no sense.
fn planted(words: &[&str]) -> Option<Option<Planted>> {
    match words {
        [] => Some(None),
        ["--planted", name] => {
            let mut all = Planted::ALL
                .into_iter()
                .chain(Planted::IN_A_VAULT)
                .chain(Planted::IN_HOMES)
                .chain(Planted::AFTER_A_LOSS)
                .chain(Planted::IN_TIDIES)
                .chain(Planted::IN_SHORT_HISTORIES);
            Some(Some(all.find(|planted| format!("{planted:?}") == *name)?))
        }
        _ => None,
    }
}

/// Shows what a schedule does.
fn show(schedule: &Schedule, planted: Option<Planted>) -> ExitCode {
    let (log, result) = explain(schedule, planted);
    say(&log);
    match result {
        Ok(ended) => {
            say(&format!("held: {ended:?}\n"));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            say(&format!("{failure}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Shows the shortest schedule that breaks the same promise as a run does.
fn show_shrunk(run: Run) -> ExitCode {
    match shrink(run) {
        Some(shrunk) => {
            say(&format!("seed {} in {} actions:\n", run.seed, shrunk.schedule.len()));
            show(&shrunk.schedule, run.planted)
        }
        None => {
            say(&format!("seed {} holds\n", run.seed));
            ExitCode::SUCCESS
        }
    }
}

/// Looks for every planted mistake, from the first seed on.
fn hunt(meeting: Meeting, names: &[&str]) -> ExitCode {
    let mut missed = 0;
    let is_meant = |planted: &Planted| names.is_empty() || names.contains(&&*format!("{planted:?}"));
    let all = match meeting {
        Meeting::Log => Planted::ALL.into_iter().chain(Planted::IN_HOMES).collect(),
        Meeting::Vault => Planted::IN_A_VAULT.to_vec(),
        Meeting::Lost => Planted::AFTER_A_LOSS.to_vec(),
        Meeting::Aged => Planted::IN_TIDIES.to_vec(),
        Meeting::Shortened => Planted::IN_SHORT_HISTORIES.to_vec(),
    };
    for planted in all.into_iter().filter(is_meant) {
        let mut seeds = (0..MUTANT_SEEDS).filter(|seed| Schedule::at(meeting, *seed).may_show(planted));
        // A schedule that fails without the mistake says nothing about it.
        let found = seeds.find_map(|seed| {
            let failure = run(Run { seed, planted: Some(planted), meeting }).err()?;
            run(Run { seed, planted: None, meeting }).is_ok().then_some((seed, failure))
        });
        match found {
            Some((seed, why)) => {
                let why: String = why.to_string().chars().take(60).collect();
                say(&format!("{planted:?}: found by seed {seed}: {why}\n"));
            }
            None => {
                missed += 1;
                say(&format!("{planted:?}: not found in {MUTANT_SEEDS} schedules\n"));
            }
        }
    }
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(ground: Subject, words: &[&str]) -> Option<Plan> {
    let mut plan = Plan { ground, from: 0, seeds: 20_000, until: None };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let number: u64 = words.next()?.parse().ok()?;
        match *word {
            "--from" => plan.from = number,
            "--seeds" => plan.seeds = number,
            "--minutes" => {
                plan.seeds = u64::MAX;
                plan.until = Some(Instant::now() + Duration::from_secs(60 * number));
            }
            _ => return None,
        }
    }
    Some(plan)
}

/// Runs all schedules on all cores, and says how many held.
fn simulate(ground: Subject, words: &[&str]) -> ExitCode {
    let Some(plan) = &parse(ground, words) else {
        say(USAGE);
        return ExitCode::from(2);
    };
    let started = Instant::now();
    let (next, done, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) && plan.until.is_none_or(|until| Instant::now() < until)
                {
                    let first = next.fetch_add(CHUNK, Ordering::Relaxed);
                    if first >= plan.seeds {
                        return;
                    }
                    for number in first..plan.seeds.min(first + CHUNK) {
                        let seed = plan.from.wrapping_add(number);
                        if let Err(why) = plan.ground.run(seed) {
                            failed.store(true, Ordering::Relaxed);
                            say(&format!("seed {seed}: {why}\n"));
                            plan.ground.show_shrunk(seed);
                            let option = plan.ground.option();
                            say(&format!("All of it: cargo xtask sim {option}--explain {seed}\n"));
                            return;
                        }
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (done, elapsed) = (done.into_inner(), started.elapsed().as_secs_f64());
    let outcome = if failed.load(Ordering::Relaxed) { "one broke a promise" } else { "every promise held" };
    let rate = done as f64 / elapsed;
    say(&format!(
        "{done} schedules from seed {}: {outcome}; {elapsed:.0} s, {rate:.0} a second on {cores} cores\n",
        plan.from
    ));
    if failed.into_inner() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn say(text: &str) {
    // A terminal that went away is no reason to stop.
    drop(std::io::stdout().write_all(text.as_bytes()));
}

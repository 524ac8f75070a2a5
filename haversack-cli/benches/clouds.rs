//! Measures the waiting time of a user with two machines and a bucket, compared with rclone on the same server: `cargo xtask bench clouds [--quick]`.
//!
//! Times are taken straight at the server. Requests are counted by a front before it, and there the same is timed again with 50 ms
//! added to every request, as a server far away would.
//!
//! Prints Markdown to stdout, ready for `docs/benchmarks.md`, and what it is doing to stderr.

// The root of a bench looks for its modules beside itself, where each would be a bench of its own.
#[path = "clouds/rivals.rs"]
mod rivals;
#[path = "clouds/servers.rs"]
mod servers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use haversack_bench::bare::{self, Bare};
use haversack_bench::measure::{Nanoseconds, median};
use haversack_bench::report::{Report, say, sized};
use haversack_bench::scratch::Scratch;
use haversack_bench::table::{Goal, Table, grouped, milliseconds, times};
use haversack_bench::{Outcome, machine};

use crate::rivals::{Ours, Rclone, Rival, change_ten, check};
use crate::servers::{Kind, Route, Server};

/// The directory where Cargo lets benches keep files: `target/tmp`.
const TARGET_TMP: &str = env!("CARGO_TARGET_TMPDIR");

/// The delay that a distant server adds to every request.
const FAR_AWAY: Duration = Duration::from_millis(50);

/// The numbers of files that both are timed with.
const SIZES: [usize; 3] = [100, 1_000, 10_000];

/// From so many files on there is a goal.
const LEAST_JUDGED: usize = 1_000;

/// The number of files that every run has far away too.
const ALWAYS_FAR: usize = 1_000;

/// The number of files that only we are timed with, on one of the servers.
const VERY_MANY: usize = 100_000;

/// A file's outside is believed once so much time has passed.
const SETTLED: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    sized(run)
}

fn run(most_files: usize) -> Outcome<()> {
    let target = Path::new(TARGET_TMP).parent().ok_or("target/tmp is in target")?;
    let scratch = Scratch::create(target)?;
    let filesystem = machine::filesystem(target).unwrap_or_else(|| "an unknown filesystem".to_owned());
    let is_quick = most_files < VERY_MANY;
    let mut report = Report::start();
    for kind in [Kind::SeaweedFs, Kind::Azurite] {
        let mut table = Table::new(format!("Meeting at {}, beside rclone", kind.name()), &COLUMNS);
        let mut growth = Vec::new();
        for files in SIZES.into_iter().filter(|files| *files <= kind.most_files()) {
            let bench = Bench { kind, files, is_quick, scratch: scratch.path() };
            growth.push((files, bench.side_by_side(&mut table)?));
        }
        report.add(table)?;
        if !is_quick && kind == Kind::SeaweedFs {
            let bench = Bench { kind, files: VERY_MANY, is_quick, scratch: scratch.path() };
            growth.push((VERY_MANY, bench.alone()?));
        }
        report.add(grown(kind, &growth))?;
    }
    report.end(&[filesystem, Rclone::version()?])
}

const COLUMNS: [&str; 8] =
    ["what", "files", "server", "ours p50 ms", "rclone p50 ms", "faster by", "our requests", "rclone's"];

/// The timed operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Push,
    Join,
    Mirror,
    Idle,
    Send,
    Receive,
}

impl What {
    const ALL: [What; 6] = [What::Idle, What::Send, What::Receive, What::Push, What::Join, What::Mirror];

    fn name(self) -> &'static str {
        match self {
            What::Push => "first push, until others can have it",
            What::Join => "first pull",
            What::Mirror => "first push, with plain copies",
            What::Idle => "nothing changed",
            What::Send => "10 changed, sent",
            What::Receive => "10 changed, received",
        }
    }

    /// Returns how many times faster than rclone it should be.
    fn goal(self) -> Goal {
        match self {
            What::Mirror => Goal::AtLeast(1.0),
            _ => Goal::AtLeast(10.0),
        }
    }

    /// Returns how many requests it may make.
    fn most_requests(self) -> Option<usize> {
        match self {
            What::Idle => Some(1),
            What::Send | What::Receive => Some(2),
            What::Push | What::Join | What::Mirror => None,
        }
    }
}

/// The results of one side.
#[derive(Clone, Default)]
struct Side {
    laps: Vec<f64>,
    requests: Option<usize>,
}

impl Side {
    fn add(&mut self, (nanoseconds, requests): (Nanoseconds, Option<usize>)) {
        self.laps.push(nanoseconds as f64);
        self.requests = requests.or(self.requests);
    }

    fn nanoseconds(&self) -> f64 {
        median(self.laps.iter().copied())
    }
}

/// The results of both sides, by operation.
#[derive(Clone, Default)]
struct Sides {
    ours: [Side; 6],
    rclone: [Side; 6],
}

impl Sides {
    fn ours(&mut self, what: What) -> &mut Side {
        &mut self.ours[what as usize]
    }

    fn rclone(&mut self, what: What) -> &mut Side {
        &mut self.rclone[what as usize]
    }

    /// Returns how many times faster we were: the median over rounds in which both took turns.
    fn factor(&self, what: What) -> f64 {
        let (ours, theirs) = (&self.ours[what as usize].laps, &self.rclone[what as usize].laps);
        median(ours.iter().zip(theirs).map(|(ours, theirs)| theirs / ours))
    }
}

/// One server and one number of files.
struct Bench<'a> {
    kind: Kind,
    files: usize,
    is_quick: bool,
    scratch: &'a Path,
}

impl Bench<'_> {
    fn place(&self, name: &str) -> PathBuf {
        self.scratch.join(format!("{}-{}-{name}", self.kind as u8, self.files))
    }

    fn say(&self, what: &str) {
        say(&format!("{}, {} files: {what}\n", self.kind.name(), grouped(self.files)));
    }

    /// Measures ours and rclone, straight and far away, and adds a row for each.
    fn side_by_side(&self, table: &mut Table) -> Outcome<Sides> {
        let server = Server::start(self.kind)?;
        let straight = Route::straight(&server);
        // Each of rclone's first pushes takes minutes where a server is slow.
        let firsts = if self.files < 10_000 { 3 } else { 1 };
        let laps = if self.is_quick { 5 } else { 9 };
        let is_far = !self.is_quick || self.files == ALWAYS_FAR;
        let mut near = Sides::default();
        let mut pair = None;
        for round in 1..=firsts {
            self.say(&format!("first pushes and pulls, {round} of {firsts}"));
            pair = Some(self.firsts(&server, &straight, &format!("near-{round}"), &mut near)?);
        }
        let (ours, rclone) = pair.ok_or("there is at least one round")?;
        self.say("nothing changed, and ten changes");
        self.laps(&ours, Some(&rclone), &straight, laps, &mut near)?;
        let counted = Route::counted(&server, if is_far { FAR_AWAY } else { Duration::ZERO });
        let mut far = Sides::default();
        if is_far {
            self.say("the same, far away");
            let (ours, rclone) = self.firsts(&server, &counted, "far", &mut far)?;
            self.laps(&ours, Some(&rclone), &counted, 3, &mut far)?;
        } else {
            self.say("counting requests");
            let ours = self.our_firsts(&server, &counted, "counted", &mut far)?;
            self.laps(&ours, Some(&rclone), &counted, 1, &mut far)?;
        }
        for what in What::ALL {
            // The distance of a server does not change the number of requests.
            near.ours(what).requests = far.ours(what).requests;
            near.rclone(what).requests = far.rclone(what).requests;
            self.row(table, what, "beside us", &near);
            if what == What::Join {
                self.floor(table, &near, firsts)?;
            }
        }
        if is_far {
            for what in What::ALL {
                self.row(table, what, "50 ms away", &far);
            }
        }
        Ok(near)
    }

    /// Measures only ours.
    fn alone(&self) -> Outcome<Sides> {
        let server = Server::start(self.kind)?;
        let (straight, counted) = (Route::straight(&server), Route::counted(&server, Duration::ZERO));
        let mut sides = Sides::default();
        self.say("alone");
        let ours = self.our_firsts(&server, &straight, "alone", &mut sides)?;
        self.laps(&ours, None, &straight, 3, &mut sides)?;
        self.say("counting requests");
        let mut counts = Sides::default();
        let ours = self.our_firsts(&server, &counted, "counted", &mut counts)?;
        self.laps(&ours, None, &counted, 1, &mut counts)?;
        for what in What::ALL {
            sides.ours(what).requests = counts.ours(what).requests;
        }
        Ok(sides)
    }

    /// The first push, the first pull and the plain copies of each.
    fn firsts(
        &self,
        server: &Server,
        road: &Route,
        name: &str,
        sides: &mut Sides,
    ) -> Outcome<(Ours, Rclone)> {
        let ours = self.our_firsts(server, road, name, sides)?;
        let rclone = Rclone::begin(&self.place(&format!("{name}-rclone")), server.container(), self.files)?;
        machine::calm(self.scratch);
        let pushed = road.count(|| rclone.send(road))?;
        sides.rclone(What::Push).add(pushed);
        // It has nothing but plain copies.
        sides.rclone(What::Mirror).add(pushed);
        machine::calm(self.scratch);
        sides.rclone(What::Join).add(road.count(|| rclone.join(road))?);
        check(&rclone, self.files)?;
        Ok((ours, rclone))
    }

    fn our_firsts(&self, server: &Server, road: &Route, name: &str, sides: &mut Sides) -> Outcome<Ours> {
        let base = self.place(&format!("{name}-ours"));
        let ours = Ours::begin(&base, server.container(), road, self.files)?;
        machine::calm(self.scratch);
        let pushed = road.count(|| ours.send(road))?;
        sides.ours(What::Push).add(pushed);
        machine::calm(self.scratch);
        sides.ours(What::Join).add(road.count(|| ours.join(road))?);
        check(&ours, self.files)?;
        machine::calm(self.scratch);
        let mirrored = road.count(|| ours.mirror())?;
        let requests = pushed.1.zip(mirrored.1).map(|(pushed, mirrored)| pushed + mirrored);
        sides.ours(What::Mirror).add((pushed.0 + mirrored.0, requests));
        Ok(ours)
    }

    /// Syncs with nothing new, then with ten changes; both take turns.
    fn laps(
        &self,
        ours: &Ours,
        rclone: Option<&Rclone>,
        road: &Route,
        laps: usize,
        sides: &mut Sides,
    ) -> Outcome<()> {
        // Fingerprints are believed once they have settled.
        let settle = || {
            std::thread::sleep(SETTLED);
            ours.send(road)?;
            ours.receive(road)
        };
        settle()?;
        machine::calm(self.scratch);
        for _ in 0..laps {
            sides.ours(What::Idle).add(road.count(|| ours.send(road))?);
            if let Some(rclone) = rclone {
                sides.rclone(What::Idle).add(road.count(|| rclone.send(road))?);
            }
        }
        for round in 1..=laps {
            change_ten(&ours.files(), self.files, round)?;
            sides.ours(What::Send).add(road.count(|| ours.send(road))?);
            sides.ours(What::Receive).add(road.count(|| ours.receive(road))?);
            check(ours, self.files)?;
            settle()?;
            let Some(rclone) = rclone else { continue };
            change_ten(&rclone.files(), self.files, round + laps)?;
            sides.rclone(What::Send).add(road.count(|| rclone.send(road))?);
            sides.rclone(What::Receive).add(road.count(|| rclone.receive(road))?);
            check(rclone, self.files)?;
        }
        Ok(())
    }

    /// The time of a bare C loop that makes as many files durable, with their contents at hand: no pull can be faster.
    fn floor(&self, table: &mut Table, sides: &Sides, rounds: usize) -> Outcome<()> {
        let place = self.place("floor");
        std::fs::create_dir_all(&place)?;
        let bare = Bare::start(&bare::compile(&place)?, &place)?;
        let mut laps = Vec::new();
        for round in 0..rounds {
            machine::calm(self.scratch);
            laps.extend(bare.run("durable", self.files, &[format!("floor-{round}")])?);
        }
        let least = median(laps.into_iter().map(|nanoseconds| nanoseconds as f64));
        let rclone = sides.rclone[What::Join as usize].nanoseconds();
        let nothing = || "–".to_owned();
        let cells = vec![
            "first pull, bare C that has all contents".to_owned(),
            grouped(self.files),
            "none".to_owned(),
            milliseconds(least),
            milliseconds(rclone),
            times(rclone / least),
            nothing(),
            nothing(),
        ];
        table.row(cells, Goal::Reported, rclone / least);
        Ok(())
    }

    fn row(&self, table: &mut Table, what: What, server: &str, sides: &Sides) {
        let (ours, rclone) = (&sides.ours[what as usize], &sides.rclone[what as usize]);
        let factor = sides.factor(what);
        let count = |requests: Option<usize>| requests.map_or("–".to_owned(), grouped);
        let limit = what.most_requests().map_or(String::new(), |most| format!(" of {most}"));
        let cells = vec![
            what.name().to_owned(),
            grouped(self.files),
            server.to_owned(),
            milliseconds(ours.nanoseconds()),
            milliseconds(rclone.nanoseconds()),
            times(factor),
            format!("{}{limit}", count(ours.requests)),
            count(rclone.requests),
        ];
        let has_too_many = what.most_requests() < ours.requests && what.most_requests().is_some();
        let goal = if self.files < LEAST_JUDGED { Goal::Reported } else { what.goal() };
        // Too many requests miss the goal, even if the time is good.
        table.row(cells, goal, if has_too_many { 0.0 } else { factor });
    }
}

/// Returns how ours grows with the number of files.
fn grown(kind: Kind, growth: &[(usize, Sides)]) -> Table {
    let columns: Vec<String> = growth.iter().map(|(files, _)| format!("{} files", grouped(*files))).collect();
    let mut names = vec!["p50 ms (requests)"];
    names.extend(columns.iter().map(String::as_str));
    names.push("last / first");
    let mut table = Table::new(format!("More and more files at {}", kind.name()), &names);
    for what in What::ALL {
        let sides: Vec<&Side> = growth.iter().map(|(_, sides)| &sides.ours[what as usize]).collect();
        let mut cells = vec![what.name().to_owned()];
        cells.extend(sides.iter().map(|side| {
            let requests = side.requests.map_or("–".to_owned(), grouped);
            format!("{} ({requests})", milliseconds(side.nanoseconds()))
        }));
        let factor = match (sides.first(), sides.last()) {
            (Some(first), Some(last)) => last.nanoseconds() / first.nanoseconds(),
            _ => f64::NAN,
        };
        cells.push(times(factor));
        table.row(cells, Goal::Reported, factor);
    }
    table
}

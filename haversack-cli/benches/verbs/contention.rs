//! Processes that edit one file at once: how many of the acknowledged edits are there in the end?

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use haversack::memory_tool::Command;
use haversack_bench::Outcome;
use haversack_bench::measure::median;
use haversack_bench::table::{Goal, Table, grouped};

use crate::sdk::Sdk;
use crate::sides::{Bridge, Side};
use crate::site::{Programs, Site};
use crate::steps::{Step, path};

/// The number of edits in one contest, by all processes together.
const EDITS: usize = 400;

const KEY: &str = "edits.md";

/// The processes of one side, and what became of their edits.
struct Contestants {
    what: &'static str,
    goal: Goal,
    processes: Vec<Box<dyn Side + Send>>,
    file: PathBuf,
    acknowledged: usize,
    survived: usize,
    per_second: Vec<f64>,
}

/// Lets processes edit one file at once, `contests` times for each side in turn, and counts.
pub(crate) fn contention(site: &Site, programs: &Programs, contests: usize) -> Outcome<Table> {
    let mut sides = Vec::new();
    for count in [8, 2] {
        let home = site.path(&format!("contention-{count}"));
        let start = || Ok(Box::new(Bridge::start(&programs.haversack, &home)?) as Box<dyn Side + Send>);
        let files = home.join("memory");
        sides.push(Contestants::start("`haversack memory-tool`", Goal::Every, count, &files, start)?);
    }
    if let Some(python) = &programs.python {
        let directory = site.path("contention-sdk");
        let start = || Ok(Box::new(Sdk::start(python, &directory)?) as Box<dyn Side + Send>);
        let files = directory.join("memories");
        sides.push(Contestants::start("the SDK", Goal::Reported, 2, &files, start)?);
    }
    for _ in 0..contests {
        sides.iter_mut().try_for_each(Contestants::meet)?;
    }
    let columns = ["what", "processes × edits", "acknowledged", "survived", "edits/s"];
    let title = format!("Processes that edit one file at once on {}", site.filesystem);
    let mut table = Table::new(title, &columns);
    for contestants in sides {
        contestants.add_to(&mut table);
    }
    Ok(table)
}

impl Contestants {
    /// Starts processes whose files are in `directory`.
    fn start(
        what: &'static str,
        goal: Goal,
        count: usize,
        directory: &Path,
        start: impl Fn() -> io::Result<Box<dyn Side + Send>>,
    ) -> Outcome<Contestants> {
        fs::create_dir_all(directory)?;
        let processes = (0..count).map(|_| start()).collect::<io::Result<_>>()?;
        let file = directory.join(KEY);
        Ok(Contestants { what, goal, processes, file, acknowledged: 0, survived: 0, per_second: Vec::new() })
    }

    /// Lets all processes edit the same file, and counts what is there in the end.
    fn meet(&mut self) -> Outcome<()> {
        let count = self.processes.len();
        let each = EDITS / count;
        let places = (0..count).flat_map(|process| (0..each).map(move |edit| place(process, edit, OPEN)));
        fs::write(&self.file, places.map(|place| place + "\n").collect::<String>())?;
        let (acknowledged, seconds) = edit_at_once(&mut self.processes, each)?;
        self.acknowledged += acknowledged;
        self.survived += fs::read_to_string(&self.file)?.matches(DONE).count();
        self.per_second.push(acknowledged as f64 / seconds);
        Ok(())
    }

    fn add_to(self, table: &mut Table) {
        let count = self.processes.len();
        let cells = vec![
            self.what.to_owned(),
            format!("{count} × {}", EDITS / count),
            grouped(self.acknowledged),
            grouped(self.survived),
            format!("{:.0}", median(self.per_second.into_iter())),
        ];
        table.row(cells, self.goal, self.survived as f64 / self.acknowledged as f64);
    }
}

/// Lets each process make its edits; returns how many were acknowledged and how many seconds it took.
fn edit_at_once(processes: &mut [Box<dyn Side + Send>], each: usize) -> Outcome<(usize, f64)> {
    let barrier = Barrier::new(processes.len() + 1);
    let work = |number: usize, process: &mut dyn Side| {
        let steps: Vec<Step> = (0..each).map(|edit| finish(number, edit)).collect();
        barrier.wait();
        process.run(&steps)
    };
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (processes.iter_mut().enumerate())
            .map(|(number, process)| scope.spawn(move || work(number, &mut **process)))
            .collect();
        barrier.wait();
        let started = Instant::now();
        let mut acknowledged = 0;
        for thread in threads {
            acknowledged += thread.join().map_err(|_| "an editing thread panicked")??.len();
        }
        Ok((acknowledged, started.elapsed().as_secs_f64()))
    })
}

/// The text of a passage before and after its edit.
const OPEN: &str = "open";
const DONE: &str = "done";

/// Returns the place in the file that one edit is about, and no other.
fn place(process: usize, edit: usize, says: &str) -> String {
    format!("[{process}-{edit:03} {says}]")
}

fn finish(process: usize, edit: usize) -> Step {
    let (old_str, new_str) = (place(process, edit, OPEN), place(process, edit, DONE));
    Step::timed(Command::StrReplace { path: path(KEY), old_str, new_str })
}

//! Two machines with the same files, synced through one container by us and by rclone.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use haversack_bench::Outcome;
use haversack_bench::measure::{Nanoseconds, Picks};
use haversack_servers::tools;

use crate::servers::{Container, Route};

/// The number of directories.
const DIRECTORIES: usize = 20;

/// Something that carries files from one machine to another.
pub(crate) trait Rival {
    /// Returns the directory of the first machine's files.
    fn files(&self) -> PathBuf;

    /// Returns the directory of the second machine's files.
    fn received_files(&self) -> PathBuf;

    /// Sends what is new on the first machine.
    fn send(&self, road: &Route) -> Outcome<Nanoseconds>;

    /// Brings everything to a second machine that has nothing yet.
    fn join(&self, road: &Route) -> Outcome<Nanoseconds>;

    /// Takes in what is new on the second machine.
    fn receive(&self, road: &Route) -> Outcome<Nanoseconds>;
}

/// Two homes; no plain copies are kept unless asked for.
pub(crate) struct Ours {
    base: PathBuf,
    container: Container,
}

impl Ours {
    /// Returns a first machine with new files.
    pub(crate) fn begin(base: &Path, container: Container, road: &Route, files: usize) -> Outcome<Ours> {
        let ours = Ours { base: base.to_owned(), container };
        fill(&ours.files(), files)?;
        let address = ours.container.address();
        let arguments = ["remote", "add", &address, "--device", "one", "--no-mirror", "--credential", "file"];
        timed(ours.command("one").args(arguments).envs(ours.container.variables(road)))?;
        Ok(ours)
    }

    /// Writes the plain copies.
    pub(crate) fn mirror(&self) -> Outcome<Nanoseconds> {
        timed(self.command("one").args(["mirror", "--at-once"]))
    }

    fn command(&self, machine: &str) -> Command {
        let mut command = Command::new(haversack_bench::program(env!("CARGO_BIN_EXE_haversack")));
        command.arg("--home").arg(self.base.join(machine));
        command.env_clear().env("HOME", &self.base);
        command
    }
}

impl Rival for Ours {
    fn files(&self) -> PathBuf {
        self.base.join("one/memory")
    }

    fn received_files(&self) -> PathBuf {
        self.base.join("two/memory")
    }

    fn send(&self, _: &Route) -> Outcome<Nanoseconds> {
        timed(self.command("one").arg("sync"))
    }

    fn join(&self, road: &Route) -> Outcome<Nanoseconds> {
        let address = self.container.address();
        let arguments = ["join", &address, "--device", "two", "--yes", "--no-mirror", "--credential", "file"];
        timed(self.command("two").args(arguments).envs(self.container.variables(road)))
    }

    fn receive(&self, _: &Route) -> Outcome<Nanoseconds> {
        timed(self.command("two").arg("sync"))
    }
}

/// Two directories, and rclone with the options that make it fastest.
pub(crate) struct Rclone {
    base: PathBuf,
    program: PathBuf,
    container: Container,
}

impl Rclone {
    /// Returns a first machine with new files.
    pub(crate) fn begin(base: &Path, container: Container, files: usize) -> Outcome<Rclone> {
        let program = tools::program("rclone").ok_or("rclone is missing: cargo xtask tools all")?;
        let rclone = Rclone { base: base.to_owned(), program, container };
        fill(&rclone.files(), files)?;
        Ok(rclone)
    }

    /// Returns which one it is.
    pub(crate) fn version() -> Outcome<String> {
        let program = tools::program("rclone").ok_or("rclone is missing: cargo xtask tools all")?;
        let output = scrubbed(Command::new(program).arg("version"), Path::new("/")).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }

    fn sync(&self, road: &Route, from: &str, to: &str) -> Outcome<Nanoseconds> {
        let mut command = Command::new(&self.program);
        command.args(["sync", from, to, "--fast-list", "--transfers", "16", "--checkers", "16"]);
        timed(scrubbed(&mut command, &self.base).envs(self.container.rclone_variables(road)))
    }
}

/// Takes everything from rclone that the machine's user may have set.
fn scrubbed<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    let path = "/usr/local/bin:/usr/bin:/bin";
    command.env_clear().env("PATH", path).env("HOME", home).env("RCLONE_CONFIG", "")
}

impl Rival for Rclone {
    fn files(&self) -> PathBuf {
        self.base.join("one")
    }

    fn received_files(&self) -> PathBuf {
        self.base.join("two")
    }

    fn send(&self, road: &Route) -> Outcome<Nanoseconds> {
        self.sync(road, &self.files().display().to_string(), &self.container.rclone_address())
    }

    fn join(&self, road: &Route) -> Outcome<Nanoseconds> {
        self.receive(road)
    }

    fn receive(&self, road: &Route) -> Outcome<Nanoseconds> {
        self.sync(road, &self.container.rclone_address(), &self.received_files().display().to_string())
    }
}

fn timed(command: &mut Command) -> Outcome<Nanoseconds> {
    let started = Instant::now();
    let output = command.stdin(Stdio::null()).output()?;
    let elapsed = started.elapsed().as_nanos();
    match output.status.success() {
        true => Ok(Nanoseconds::try_from(elapsed)?),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn place(number: usize) -> String {
    format!("notes/{:02}/{number:06}.md", number % DIRECTORIES)
}

fn text(number: usize, round: usize, length: usize) -> String {
    let line = format!("note {number}, seen {round} times: the lamp of lighthouse turns in {number} s\n");
    line.repeat(length / line.len() + 1)[..length].to_owned()
}

/// Writes files of 250 to 1,800 bytes.
fn fill(directory: &Path, files: usize) -> Outcome<()> {
    for number in 0..DIRECTORIES {
        std::fs::create_dir_all(directory.join(format!("notes/{number:02}")))?;
    }
    let mut sizes = Picks::start();
    for number in 0..files {
        std::fs::write(directory.join(place(number)), text(number, 0, 250 + sizes.below(1_550)))?;
    }
    Ok(())
}

/// Changes ten of so many files, each to something that it was not before.
pub(crate) fn change_ten(directory: &Path, files: usize, round: usize) -> Outcome<()> {
    for which in 0..10 {
        let number = which * files / 10;
        std::fs::write(directory.join(place(number)), text(number, round, 1_000 + which))?;
    }
    Ok(())
}

/// Makes sure that a second machine has what the first one has.
pub(crate) fn check(rival: &dyn Rival, files: usize) -> Outcome<()> {
    for number in (0..10).map(|which| which * files / 10) {
        let [here, there] =
            [rival.files(), rival.received_files()].map(|at| std::fs::read(at.join(place(number))));
        if here? != there? {
            return Err(format!("{} differs on the second machine", place(number)).into());
        }
    }
    Ok(())
}

//! Two machines with the same files, synced by us and by git.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use haversack_bench::Outcome;
use haversack_bench::measure::Nanoseconds;
use haversack_bench::memory::peak_of;
use haversack_bench::scratch::fill;

/// Something that carries files from one machine to another.
pub(crate) trait Rival {
    /// Returns the directory of the first machine's files.
    fn files(&self) -> PathBuf;

    /// Sends what is new on the first machine.
    fn send(&self) -> Outcome<Nanoseconds>;

    /// Takes in what is new on the second machine.
    fn receive(&self) -> Outcome<Nanoseconds>;
}

/// Two homes and a directory between them, without plain copies.
pub(crate) struct Ours {
    base: PathBuf,
}

impl Ours {
    /// Returns a first machine that has nothing yet.
    pub(crate) fn begin(base: &Path) -> Outcome<Ours> {
        std::fs::create_dir_all(base.join("one/memory"))?;
        let ours = Ours { base: base.to_owned() };
        let url = format!("file://{}", base.join("remote").display());
        // Plain copies are written in the background, which would disturb the next measurement.
        ours.run("one", &["remote", "add", &url, "--device", "one", "--no-mirror"])?;
        Ok(ours)
    }

    /// Returns two machines that have the same files.
    pub(crate) fn with(base: &Path, files: usize) -> Outcome<Ours> {
        let ours = Ours::begin(base)?;
        fill(&ours.files(), files)?;
        ours.send()?;
        ours.join()?;
        std::thread::sleep(std::time::Duration::from_millis(50));
        ours.receive()?;
        Ok(ours)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.base.join("one")
    }

    /// Returns the directory of the second machine's files.
    pub(crate) fn received_files(&self) -> PathBuf {
        self.base.join("two/memory")
    }

    fn run(&self, machine: &str, arguments: &[&str]) -> Outcome<Nanoseconds> {
        timed(&mut self.command(machine, arguments))
    }

    /// Lets the second machine join; returns the most bytes of memory that this took at once.
    pub(crate) fn join(&self) -> Outcome<u64> {
        let url = format!("file://{}", self.base.join("remote").display());
        self.peak("two", &["join", &url, "--device", "two", "--yes", "--no-mirror"])
    }

    /// Runs a command on a machine; returns the most bytes of memory that it took at once.
    pub(crate) fn peak(&self, machine: &str, arguments: &[&str]) -> Outcome<u64> {
        let mut command = self.command(machine, arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match peak_of(&mut command)? {
            (status, peak) if status.success() => Ok(peak),
            (status, _) => Err(format!("{command:?}: {status}").into()),
        }
    }

    fn command(&self, machine: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(haversack_bench::program(env!("CARGO_BIN_EXE_haversack")));
        command.arg("--home").arg(self.base.join(machine)).args(arguments);
        command.env_clear().env("HOME", &self.base);
        command
    }
}

impl Rival for Ours {
    fn files(&self) -> PathBuf {
        self.base.join("one/memory")
    }

    fn send(&self) -> Outcome<Nanoseconds> {
        self.run("one", &["sync"])
    }

    fn receive(&self) -> Outcome<Nanoseconds> {
        self.run("two", &["sync"])
    }
}

/// Two clones and a bare repository between them.
pub(crate) struct Git {
    base: PathBuf,
}

impl Git {
    /// Returns a first clone that has nothing yet.
    pub(crate) fn begin(base: &Path) -> Outcome<Git> {
        std::fs::create_dir_all(base)?;
        let git = Git { base: base.to_owned() };
        git.run(base, &["init", "-q", "--bare", "-b", "main", "remote"])?;
        git.run(base, &["clone", "-q", "remote", "one"])?;
        Ok(git)
    }

    /// Returns two clones that have the same files.
    pub(crate) fn with(base: &Path, files: usize) -> Outcome<Git> {
        let git = Git::begin(base)?;
        fill(&git.files(), files)?;
        git.send()?;
        git.run(base, &["clone", "-q", "remote", "two"])?;
        Ok(git)
    }

    fn run(&self, directory: &Path, arguments: &[&str]) -> Outcome<Nanoseconds> {
        let mut command = Command::new("git");
        command
            .current_dir(directory)
            .args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"])
            .args(arguments);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", &self.base).env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
            command.env(who, "bench");
        }
        timed(&mut command)
    }
}

impl Rival for Git {
    fn files(&self) -> PathBuf {
        self.base.join("one")
    }

    fn send(&self) -> Outcome<Nanoseconds> {
        let directory = self.files();
        let steps = [
            self.run(&directory, &["add", "-A"])?,
            self.run(&directory, &["commit", "-q", "-m", "sync"])?,
            self.run(&directory, &["push", "-q", "origin", "HEAD:main"])?,
        ];
        Ok(steps.into_iter().sum())
    }

    fn receive(&self) -> Outcome<Nanoseconds> {
        self.run(&self.base.join("two"), &["pull", "-q"])
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

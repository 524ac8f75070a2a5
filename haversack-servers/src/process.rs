//! A server that is a program of its own.
//!
//! Invariants:
//! - It ends with its handle, and with this process, even if that is killed. A pipe from here holds it: beside the server a shell
//!   waits for the pipe to close. `process::dies_with_whoever_started_it`
//! - It is ended by its id, while that id is still its own. The shell ends it only if this process is gone.
//! - Its directory goes with it.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The time in which a server must listen, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The interval at which a starting server is checked.
const GLANCE: Duration = Duration::from_millis(20);

/// Keeps watch, then becomes the server: `$1` is where its output goes, `$2` its directory, `$3` what else it leaves behind.
///
/// The watch reads from the pipe. A line says that all is done; its end without a line says that this process is gone.
const WATCH: &str = r#"
log=$1; directory=$2; litter=$3; shift 3
exec 3<&0
(
    if ! read -r _ <&3; then
        kill -9 $$
        tries=0
        while kill -0 $$ 2>/dev/null && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
        rm -rf -- "$directory"
        [ -z "$litter" ] || rm -f -- $litter
    fi
) &
exec "$@" 3<&- </dev/null >>"$log" 2>&1
"#;

/// The program to start.
pub(crate) struct Start {
    /// Its name in errors.
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Files outside its directory that it leaves behind; their names have no spaces.
    pub(crate) litter: Vec<String>,
}

/// A running server; it is ended when this is dropped.
pub(crate) struct Process {
    start: Start,
    directory: TempDir,
    running: Option<Child>,
}

impl Process {
    /// Makes a directory for a server.
    pub(crate) fn directory(name: &str) -> TempDir {
        let made = tempfile::Builder::new().prefix(&format!("haversack-{name}-")).tempdir();
        made.expect("there is a place for temporary files")
    }

    /// Starts a server and waits until `ready` returns something from what it printed so far.
    ///
    /// The error has what it printed.
    pub(crate) fn start<T>(
        start: Start,
        directory: TempDir,
        ready: impl FnMut(&str) -> Option<T>,
    ) -> Result<(Process, T), String> {
        let mut process = Process { start, directory, running: None };
        let found = process.run(ready)?;
        Ok((process, found))
    }

    /// Starts it once more, in the same directory with the same arguments.
    pub(crate) fn restart<T>(&mut self, ready: impl FnMut(&str) -> Option<T>) -> Result<T, String> {
        self.kill();
        drop(std::fs::remove_file(self.log()));
        self.run(ready)
    }

    /// Ends it, as `kill -9` does, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        let Some(mut child) = self.running.take() else { return };
        // Take the pipe first: waiting would close it, and the watch would think that this process is gone.
        let pipe = child.stdin.take();
        // Not waited for yet, so its id is its own even if it ended by itself.
        drop(child.kill());
        drop(child.wait());
        if let Some(mut pipe) = pipe {
            drop(pipe.write_all(b"\n"));
        }
        if let Some(mut watch) = child.stdout.take() {
            drop(watch.read_to_end(&mut Vec::new()));
        }
        for path in &self.start.litter {
            drop(std::fs::remove_file(path));
        }
    }

    /// Returns the server's process id, if it runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.running.as_ref().map(Child::id)
    }

    /// Returns its directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn log(&self) -> PathBuf {
        self.path().join("output.log")
    }

    fn run<T>(&mut self, mut ready: impl FnMut(&str) -> Option<T>) -> Result<T, String> {
        let mut command = Command::new("sh");
        command.args(["-c", WATCH, "sh"]).arg(self.log()).arg(self.path()).arg(self.start.litter.join(" "));
        command.arg(&self.start.program).args(&self.start.arguments).current_dir(self.path());
        // Nothing of the user's session: no proxies, no credentials, no settings.
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
        command.env("HOME", self.path()).env("TMPDIR", self.path());
        command.envs(self.start.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let (log, name) = (self.log(), self.start.name);
        let child = command.spawn().map_err(|error| format!("sh did not start: {error}"))?;
        let child = self.running.insert(child);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let printed = std::fs::read(&log).unwrap_or_default();
            let printed = String::from_utf8_lossy(&printed);
            if let Some(found) = ready(&printed) {
                return Ok(found);
            }
            let ended = !matches!(child.try_wait(), Ok(None));
            if ended || Instant::now() > deadline {
                let what = if ended { "ended by itself" } else { "does not listen" };
                let failed = format!("{name} {what}; it printed:\n{printed}");
                self.kill();
                return Err(failed);
            }
            std::thread::sleep(GLANCE);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns unused ports, all different.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    // Held together, so that no port is given twice.
    let held = [(); N].map(|()| std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports"));
    held.map(|listener| listener.local_addr().expect("it listens").port())
}

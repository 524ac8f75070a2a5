//! A directory on some filesystem in which both sides work, and what is known about the machine.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use haversack_store::{Blocking, Bytes, DeviceLocal, Locator};

use crate::Outcome;
use crate::bare::Bare;

/// A directory that is removed when this is dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes a new directory below `parent`.
    pub(crate) fn create(parent: &Path) -> Outcome<Scratch> {
        let path = parent.join(format!("bench-store-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("no directory for the benchmark: {error}"))?;
        Ok(Scratch(path.canonicalize()?))
    }

    /// Asks for each directory made in here to be put far from all others.
    ///
    /// On an ext4 without a journal a new file is the slower the more were deleted near it a moment ago, by
    /// the run before for example. Where it means nothing it does nothing.
    pub(crate) fn spread(self) -> Scratch {
        drop(Command::new("chattr").arg("+T").arg(self.path()).stderr(Stdio::null()).status());
        self
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays is in a place for things that may go.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Where both sides work, each with a tree of its own under the same keys.
pub(crate) struct Site {
    pub(crate) filesystem: String,
    pub(crate) store: Blocking,
    pub(crate) bare: Bare,
    stamp: Cell<u64>,
    // Last, so that the child has ended when its directory goes.
    scratch: Scratch,
}

impl Site {
    pub(crate) fn open(scratch: Scratch, filesystem: String, bare: &Path) -> Outcome<Site> {
        let path = scratch.path();
        fs::create_dir(path.join("bare"))?;
        let backend = DeviceLocal::open(path.join("ours"), path.join("locks"))?;
        let bare = Bare::start(bare, &path.join("bare"))?;
        let store = Blocking::new(Arc::new(backend));
        Ok(Site { filesystem, store, bare, stamp: Cell::new(0), scratch })
    }

    /// Returns a content of `size` that was never written before.
    pub(crate) fn content(&self, size: usize) -> Bytes {
        let mut bytes = vec![b'o'; size];
        let stamp = self.stamp.get() + 1;
        self.stamp.set(stamp);
        let length = size.min(8);
        bytes[..length].copy_from_slice(&stamp.to_le_bytes()[..length]);
        bytes.into()
    }

    /// Makes a directory on both sides, past the store.
    pub(crate) fn make_dir(&self, key: &str) -> Outcome<()> {
        self.both(key).into_iter().try_for_each(|path| Ok(fs::create_dir_all(path)?))
    }

    /// Makes a file of `size` on both sides, past the store, in a directory that is there.
    pub(crate) fn fill(&self, key: &str, size: usize) -> Outcome<()> {
        let bytes = vec![b'f'; size];
        self.both(key).into_iter().try_for_each(|path| Ok(fs::write(path, &bytes)?))
    }

    /// Makes a file of `size` on our side only, past the store, in a directory that is there.
    pub(crate) fn fill_ours(&self, key: &str, size: usize) -> Outcome<()> {
        Ok(fs::write(self.ours(key), vec![b'f'; size])?)
    }

    /// Removes a file on our side, past the store.
    pub(crate) fn forget_ours(&self, key: &str) -> Outcome<()> {
        Ok(fs::remove_file(self.ours(key))?)
    }

    /// Waits until what was filled in has reached the disk and does not disturb what is measured.
    pub(crate) fn calm(&self) {
        // Where there is no such program the first rounds are a little slower.
        drop(Command::new("sync").arg("--file-system").arg(self.scratch.path()).status());
    }

    fn ours(&self, key: &str) -> PathBuf {
        self.scratch.path().join("ours").join(key)
    }

    fn both(&self, key: &str) -> [PathBuf; 2] {
        ["ours", "bare"].map(|side| self.scratch.path().join(side).join(key))
    }
}

/// Keeps this process, and the children it starts from now on, on one core.
///
/// The sides take turns and never run at once: on one core they meet the same neighbours. Where there is
/// no such program they may not.
pub(crate) fn stay_on_one_core() {
    let last = std::thread::available_parallelism().map_or(0, |cores| usize::from(cores) - 1);
    let mut command = Command::new("taskset");
    command.args(["--all-tasks", "--pid", "--cpu-list", &last.to_string(), &std::process::id().to_string()]);
    drop(command.stdout(Stdio::null()).stderr(Stdio::null()).status());
}

/// Returns the locator of each key.
pub(crate) fn locators<K: AsRef<str>>(keys: &[K]) -> Outcome<Vec<Locator>> {
    Ok(keys.iter().map(|key| Locator::parse(key.as_ref())).collect::<Result<_, _>>()?)
}

/// Returns the name of the filesystem that `path` is on, as the kernel's table of mounts has it.
pub(crate) fn filesystem(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let mut best: Option<(&str, &str, &str)> = None;
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let (Some(device), Some(point), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        // A later mount at the same point hides the earlier one.
        if path.starts_with(point) && best.is_none_or(|(_, other, _)| point.len() >= other.len()) {
            best = Some((device, point, name));
        }
    }
    let (device, _, name) = best?;
    Some(if name == "ext4" && !has_journal(device) {
        format!("{name} without a journal")
    } else {
        name.to_owned()
    })
}

/// Tells whether an ext4 has a journal, since that changes what a sync and a new file cost.
fn has_journal(device: &str) -> bool {
    let name = device.rsplit('/').next().unwrap_or(device);
    let options = fs::read_to_string(format!("/proc/fs/ext4/{name}/options"));
    // How data is ordered with the journal is only said where there is one.
    options.is_ok_and(|options| options.lines().any(|option| option.starts_with("data=")))
}

/// Returns one line about the machine, without anything that names it.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let system = said_by("uname", &["-s", "-r", "-m"]).unwrap_or_else(|| std::env::consts::OS.to_owned());
    format!("{cores} cores ({}), {system}", cpu.as_deref().unwrap_or("unknown CPU"))
}

/// Returns today's date where the system says it.
pub(crate) fn today() -> String {
    said_by("date", &["-u", "+%Y-%m-%d"]).unwrap_or_else(|| "on an unknown day".to_owned())
}

fn said_by(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|out| out.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

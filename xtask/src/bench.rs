//! Benchmarks, each beside its peer in the same run.

use std::fs;
use std::process::Command;

use crate::run::{cargo, say, step};
use crate::tools;

/// Runs the benchmark of the local store; its tables go to stdout.
pub(crate) fn store(options: &[&str]) -> Result<(), String> {
    let arguments = ["bench", "--quiet", "--package", "haversack-store", "--bench", "store", "--"];
    step("bench store", &mut with(cargo(&arguments), options)?)
}

/// Runs the benchmark of hooks; its tables go to stdout.
pub(crate) fn hooks(options: &[&str]) -> Result<(), String> {
    let arguments = ["bench", "--quiet", "--package", "haversack-cli", "--bench", "hooks", "--"];
    step("bench hooks", &mut with(cargo(&arguments), options)?)
}

/// Runs the benchmark of buckets; its tables go to stdout.
pub(crate) fn clouds(options: &[&str]) -> Result<(), String> {
    tools::for_tests()?;
    tools::for_benches()?;
    let arguments = ["bench", "--quiet", "--package", "haversack-cli", "--bench", "clouds", "--"];
    step("bench clouds", &mut with(cargo(&arguments), options)?)
}

/// Runs the benchmark of two machines; its tables go to stdout.
pub(crate) fn machines(options: &[&str]) -> Result<(), String> {
    let arguments = ["bench", "--quiet", "--package", "haversack-cli", "--bench", "machines", "--"];
    step("bench machines", &mut with(cargo(&arguments), options)?)
}

/// Runs the benchmark of the MCP server; its tables go to stdout.
pub(crate) fn mcp(options: &[&str]) -> Result<(), String> {
    let arguments = ["bench", "--quiet", "--package", "haversack-cli", "--bench", "mcp", "--"];
    let mut command = with(cargo(&arguments), options)?;
    match tools::server_memory() {
        Ok(program) => drop(command.arg("--server-memory").arg(program)),
        Err(why) => say(&format!("{why}\nserver-memory is left out of the comparison.\n")),
    }
    step("bench mcp", &mut command)
}

/// Runs the benchmark of events, summaries, digests, contexts and tidying; its tables go to stdout.
pub(crate) fn days(options: &[&str]) -> Result<(), String> {
    let arguments = ["bench", "--quiet", "--package", "haversack-cli", "--bench", "days", "--"];
    step("bench days", &mut with(cargo(&arguments), options)?)
}

/// Runs the benchmark of the graph; its table goes to stdout.
pub(crate) fn graph(options: &[&str]) -> Result<(), String> {
    let arguments = ["bench", "--quiet", "--package", "haversack-cli", "--bench", "graph", "--"];
    let mut command = with(cargo(&arguments), options)?;
    match tools::server_memory() {
        Ok(program) => drop(command.arg("--server-memory").arg(program)),
        Err(why) => say(&format!("{why}\nserver-memory is left out of the comparison.\n")),
    }
    step("bench graph", &mut command)
}

/// Runs the benchmark of merges; its table goes to stdout.
pub(crate) fn merge(options: &[&str]) -> Result<(), String> {
    let arguments = ["bench", "--quiet", "--package", "haversack", "--bench", "merge", "--"];
    step("bench merge", &mut with(cargo(&arguments), options)?)
}

/// Runs the benchmark of the page; its table goes to stdout.
pub(crate) fn page(options: &[&str]) -> Result<(), String> {
    let arguments = ["bench", "--quiet", "--package", "haversack-cli", "--bench", "page", "--"];
    step("bench page", &mut with(cargo(&arguments), options)?)
}

/// Runs the benchmark of looking for secrets; its tables go to stdout.
pub(crate) fn secrets(options: &[&str]) -> Result<(), String> {
    let arguments = ["bench", "--quiet", "--package", "haversack-cli", "--bench", "secrets", "--"];
    step("bench secrets", &mut with(cargo(&arguments), options)?)
}

/// Runs the benchmark of sync; its tables go to stdout.
pub(crate) fn sync(options: &[&str]) -> Result<(), String> {
    let arguments = ["bench", "--quiet", "--package", "haversack-cli", "--bench", "sync", "--"];
    step("bench sync", &mut with(cargo(&arguments), options)?)
}

/// Runs the benchmark of recall; its tables go to stdout.
pub(crate) fn recall(options: &[&str]) -> Result<(), String> {
    step("bench recall", recall_bench().args(options))?;
    if options.contains(&"--no-speed") {
        return Ok(());
    }
    let arguments = ["bench", "--quiet", "--package", "haversack-cli", "--bench", "recall", "--"];
    let mut command = cargo(&arguments);
    command.args(options.iter().filter(|option| **option == "--quick"));
    match tools::server_memory() {
        Ok(program) => drop(command.arg("--server-memory").arg(program)),
        Err(why) => say(&format!("{why}\nserver-memory is left out of the comparison.\n")),
    }
    step("bench recall, process by process", &mut command)
}

/// Scores a developer's own ranking.
pub(crate) fn score_recall(options: &[&str]) -> Result<(), String> {
    step("recall score", recall_bench().arg("score").args(options))
}

fn recall_bench() -> Command {
    cargo(&[
        "bench",
        "--quiet",
        "--package",
        "haversack-recall",
        "--features",
        "semantic",
        "--bench",
        "recall",
        "--",
    ])
}

/// Runs the benchmark of replicated folders; its tables go to stdout.
pub(crate) fn vault(options: &[&str]) -> Result<(), String> {
    let arguments = ["bench", "--quiet", "--package", "haversack-cli", "--bench", "vault", "--"];
    step("bench vault", &mut with(cargo(&arguments), options)?)
}

/// Runs the benchmark of the verbs; its tables go to stdout.
pub(crate) fn verbs(options: &[&str]) -> Result<(), String> {
    let arguments = ["bench", "--quiet", "--package", "haversack-cli", "--bench", "verbs", "--"];
    let mut command = with(cargo(&arguments), options)?;
    match tools::with_anthropic() {
        Ok(python) => drop(command.arg("--python").arg(python)),
        Err(why) => say(&format!(
            "{why}\nThe Anthropic SDK needs python3 with venv, and a package index: it is left out of the comparison.\n"
        )),
    }
    step("bench verbs", &mut command)
}

/// Adds the options of a benchmark. `--program FILE` measures that program instead of the one that cargo builds: the static one, for example.
fn with(mut command: Command, options: &[&str]) -> Result<Command, String> {
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if *option != "--program" {
            command.arg(option);
            continue;
        }
        let program = options.next().ok_or("bench: --program needs a file")?;
        let program = fs::canonicalize(program).map_err(|error| format!("bench: {program}: {error}"))?;
        command.env("HAVERSACK_BENCH_PROGRAM", program);
    }
    Ok(command)
}

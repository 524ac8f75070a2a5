//! The binary as a user runs it: stdout, stderr and exit code, in a home of its own.

#[cfg(unix)]
mod agents;
mod backends;
#[cfg(unix)]
mod borders;
mod checkouts;
#[cfg(unix)]
mod claude_code;
#[cfg(unix)]
mod clouds;
mod completions;
mod config;
mod conflicts;
#[cfg(unix)]
mod continuity;
mod damaged_state;
mod debug;
mod demo;
mod doctor;
#[cfg(unix)]
mod edit;
mod environment;
#[cfg(target_os = "linux")]
mod every_command;
mod expected_verbs;
mod forged_names;
#[cfg(unix)]
mod found_by_real_use;
#[cfg(unix)]
mod graph;
mod guides;
#[cfg(unix)]
mod hooks;
mod kinds;
#[cfg(target_os = "linux")]
mod life;
mod local_history;
mod losses;
mod lost;
mod machines;
mod mcp;
#[cfg(target_os = "linux")]
mod memory;
mod memory_tool;
mod migrate;
#[cfg(feature = "semantic")]
mod model;
mod mounts;
#[cfg(unix)]
mod names;
#[cfg(unix)]
mod older_homes;
#[cfg(unix)]
mod page;
mod private_files;
#[cfg(unix)]
mod program;
#[cfg(unix)]
mod projects;
#[cfg(unix)]
mod provision;
mod random_machines;
mod recall;
#[cfg(unix)]
mod remote_rebuild;
#[cfg(unix)]
mod remotes;
mod secrets;
#[cfg(unix)]
mod setup;
mod short_history;
mod skewed_folder;
#[cfg(unix)]
mod syncthing;
mod tidy;
mod two_machines;
#[cfg(unix)]
mod vault;
mod verbs;

//! The binary as a user runs it: stdout, stderr and exit code, in a home of its own.

mod backends;
#[cfg(unix)]
mod clouds;
mod config;
mod conflicts;
mod damaged_state;
mod debug;
mod demo;
mod doctor;
mod environment;
mod guides;
mod kinds;
mod machines;
mod memory_tool;
mod migrate;
mod mounts;
#[cfg(unix)]
mod provision;
mod random_machines;
mod secrets;
mod two_machines;
mod verbs;

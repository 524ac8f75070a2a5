//! Syncthing: a real sync client between two homes in tests.
//!
//! The version is the one that Debian has, since Debian keeps no older one; the launcher names it. Where there is no `apt-get`, the system's own
//! Syncthing serves.

use std::process::{Command, Stdio};

use super::{bin, debian, script, write};

const NAME: &str = "syncthing";

/// Installs Syncthing if it is not there.
pub(super) fn ready() -> Result<(), String> {
    if starts(&mut Command::new(bin(NAME))) {
        return Ok(());
    }
    if cfg!(windows) {
        // The tests that need it run on Unix only.
        return Ok(());
    }
    let launcher = if starts(&mut Command::new("apt-get")) {
        let version = debian::program(NAME).map_err(|why| {
            format!(
                "Syncthing could not be installed: {why}\nIt comes from Debian: is deb.debian.org reachable?"
            )
        })?;
        script(NAME, &version, &format!("exec \"$tools/{NAME}/usr/bin/{NAME}\" \"$@\""))
    } else if starts(&mut Command::new(NAME)) {
        script(NAME, "of the system", &format!("exec {NAME} \"$@\""))
    } else {
        return Err("Syncthing is needed and was not found. Install it with the system's package manager and run this again.".to_owned());
    };
    write(NAME, &launcher)
}

/// Returns whether a program starts.
fn starts(command: &mut Command) -> bool {
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

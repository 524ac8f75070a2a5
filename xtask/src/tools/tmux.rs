//! tmux: the terminal that a test types into.
//!
//! The version is the one that Debian has. It is unpacked with the libraries that it needs. Where there is no `apt-get`, the system's own tmux serves.

use std::process::{Command, Stdio};

use super::{bin, debian, script, write};

const NAME: &str = "tmux";

/// Finds the unpacked libraries and descriptions of terminals, then becomes tmux.
const LAUNCH: &str = r#"root=$tools/tmux
for place in "$root"/usr/lib/*-linux-* "$root"/lib/*-linux-*; do
    libraries=${libraries:+$libraries:}$place
done
LD_LIBRARY_PATH=$libraries TERMINFO_DIRS=$root/usr/share/terminfo:$root/lib/terminfo:/usr/share/terminfo:/lib/terminfo
export LD_LIBRARY_PATH TERMINFO_DIRS
exec "$root/usr/bin/tmux" "$@""#;

/// Installs tmux if it is not there.
pub(super) fn ready() -> Result<(), String> {
    if starts(&mut Command::new(bin(NAME))) || cfg!(windows) {
        return Ok(());
    }
    let launcher = if Command::new("apt-get").arg("--version").stdout(Stdio::null()).status().is_ok() {
        let version = debian::tree(NAME, &[NAME], NAME).map_err(|why| {
            format!("tmux could not be installed: {why}\nIt comes from Debian: is deb.debian.org reachable?")
        })?;
        script(NAME, &version, LAUNCH)
    } else if starts(&mut Command::new(NAME)) {
        script(NAME, "of the system", &format!("exec {NAME} \"$@\""))
    } else {
        return Err("tmux is needed and was not found. Install it with the system's package manager and run this again.".to_owned());
    };
    write(NAME, &launcher)
}

/// Returns true if a program starts.
fn starts(command: &mut Command) -> bool {
    command.arg("-V").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

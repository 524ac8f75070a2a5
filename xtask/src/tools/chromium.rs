//! Chromium: the real browser that tests open the page with, and that makes its pictures.
//!
//! The version is the one that Debian has. The browser is unpacked with all its libraries and its own fonts, so pictures are the same everywhere.

use std::fs;
use std::process::{Command, Stdio};

use super::{bin, debian, script, tools, write};

const NAME: &str = "chromium";

/// The fonts of the browser, and nothing of the system's.
const FONTS: &str = r#"<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir prefix="relative">usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
  <alias><family>sans-serif</family><prefer><family>Liberation Sans</family></prefer></alias>
  <alias><family>system-ui</family><prefer><family>Liberation Sans</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>Liberation Mono</family></prefer></alias>
  <match><edit name="family" mode="append_last"><string>Liberation Sans</string></edit></match>
</fontconfig>
"#;

/// Finds the unpacked libraries, then becomes the browser.
const LAUNCH: &str = r#"root=$tools/chromium
for place in "$root"/usr/lib/*-linux-* "$root"/usr/lib/*-linux-*/pulseaudio "$root"/usr/lib/*-linux-*/nss "$root"/lib/*-linux-*; do
    libraries=${libraries:+$libraries:}$place
done
LD_LIBRARY_PATH=$libraries FONTCONFIG_FILE=$root/fonts.conf
export LD_LIBRARY_PATH FONTCONFIG_FILE
exec "$root/usr/lib/chromium/chromium" "$@""#;

/// Installs Chromium if it is not there.
pub(super) fn ready() -> Result<(), String> {
    if starts(&mut Command::new(bin(NAME))) || cfg!(windows) {
        return Ok(());
    }
    let launcher = if Command::new("apt-get").arg("--version").stdout(Stdio::null()).status().is_ok() {
        let version = debian::tree(NAME, &[NAME, "fonts-liberation"], "Chromium").map_err(|why| {
            format!(
                "Chromium could not be installed: {why}\nIt comes from Debian: is deb.debian.org reachable?"
            )
        })?;
        fs::write(tools().join(NAME).join("fonts.conf"), FONTS)
            .map_err(|error| format!("fonts.conf: {error}"))?;
        script(NAME, &version, LAUNCH)
    } else if starts(&mut Command::new(NAME)) {
        script(NAME, "of the system", &format!("exec {NAME} \"$@\""))
    } else {
        return Err("Chromium is needed and was not found. Install it with the system's package manager and run this again.".to_owned());
    };
    write(NAME, &launcher)
}

/// Returns whether the browser starts.
fn starts(command: &mut Command) -> bool {
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

//! Shows text that is longer than the screen in the user's pager.

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

/// The pager of a user who named none: it ends by itself on a short text, and leaves the text on the screen.
pub(crate) const DEFAULT: &str = "less -FRX";

/// Shows a text in a pager and waits until the user closes it; returns false if the pager did not start.
pub(super) fn show(pager: &str, text: &[u8]) -> bool {
    let mut command = if cfg!(unix) {
        let mut shell = Command::new("sh");
        shell.args(["-c", pager]);
        shell
    } else {
        let mut words = pager.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command
    };
    if std::env::var_os("LESS").is_none() {
        // As git does: a pager without options of its own shows colours.
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.stdin(Stdio::piped()).spawn() else { return false };
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(text));
    let is_read = match written {
        // The user closed the pager before the end of the text.
        Some(Err(error)) => error.kind() == ErrorKind::BrokenPipe,
        Some(Ok(())) => true,
        None => false,
    };
    // 127 is the shell's answer if there is no such program.
    child.wait().is_ok_and(|status| is_read && status.code() != Some(127))
}

//! Measures the memory of a program.

use std::io;
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// The pause between two looks at a program.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Runs a program; returns how it ended, and the most bytes of memory that it had at once. Zero where the kernel does not tell.
///
/// The kernel keeps the highest count itself (`VmHWM`), and we look at it until the program ends. So the figure is never too high. It is
/// too low only if the program takes most in its last millisecond.
pub fn peak_of(command: &mut Command) -> io::Result<(ExitStatus, u64)> {
    let mut child = command.spawn()?;
    let place = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let status = std::fs::read_to_string(&place).unwrap_or_default();
        peak = peak.max(high_water_mark(&status).unwrap_or(0));
        if let Some(ended) = child.try_wait()? {
            return Ok((ended, peak));
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// Returns the bytes that a status of the kernel names as the most.
fn high_water_mark(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_names_the_most_bytes() {
        assert_eq!(high_water_mark("Name:\tsync\nVmHWM:\t   1234 kB\nVmRSS:\t 1 kB\n"), Some(1234 * 1024));
        assert_eq!(high_water_mark("Name:\tsync\n"), None);
    }
}

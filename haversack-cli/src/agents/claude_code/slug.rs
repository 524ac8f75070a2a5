//! How Claude Code names the directory of a project, pinned by literals that were seen on a disk.

use crate::ui::paths::plain;

/// The longest name that is a path alone, in UTF-16 units.
const MAX_UNITS: usize = 200;

/// Returns the name of the directory that Claude Code keeps for a path.
///
/// Everything but ASCII letters and digits becomes a dash, counted in UTF-16 units; what is too long is cut and gets a hash of the whole path.
pub(crate) fn slug(path: &str) -> String {
    let units: Vec<u16> = plain(path).encode_utf16().collect();
    let letter = |unit: &u16| match u8::try_from(*unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '-',
    };
    if units.len() <= MAX_UNITS {
        return units.iter().map(letter).collect();
    }
    let start: String = units[..MAX_UNITS].iter().map(letter).collect();
    let hash = units.iter().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(*unit)));
    format!("{start}-{}", in_base_36(hash.unsigned_abs()))
}

fn in_base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_pinned_by_literals() {
        for (path, expected) in [
            ("/home/me/lighthouse", "-home-me-lighthouse"),
            ("/home/me/my_proj.v2", "-home-me-my-proj-v2"),
            ("/Volumes/Development HD/lighthouse", "-Volumes-Development-HD-lighthouse"),
            ("C:\\work\\lighthouse", "C--work-lighthouse"),
            // The same directory, as Windows names it when links are resolved.
            (r"\\?\C:\work\lighthouse", "C--work-lighthouse"),
            (r"\\?\UNC\server\share\lighthouse", "--server-share-lighthouse"),
            ("/home/me/Ünï", "-home-me--n-"),
            // One character of two UTF-16 units is two dashes.
            ("/a/🗼b", "-a---b"),
            ("/", "-"),
            ("", ""),
        ] {
            assert_eq!(slug(path), expected, "{path}");
        }
    }

    #[test]
    fn long_paths_are_cut_and_get_a_hash() {
        let path = |last: &str| format!("/{}{last}", "lighthouse/".repeat(30));
        let cut = "-".to_owned() + &"lighthouse-".repeat(30)[..199];
        assert_eq!(slug(&path("a")), format!("{cut}-6xc7g2"));
        assert_eq!(slug(&path("ü")), format!("{cut}-6xc7kd"));
        // Just short enough, and just too long.
        assert_eq!(slug(&"a".repeat(200)), "a".repeat(200));
        assert_eq!(slug(&"a".repeat(201)), format!("{}-rkvsv5", "a".repeat(200)));
    }
}

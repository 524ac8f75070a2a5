//! Makes the names of devices, agents and sessions harmless before they leave this machine.
//!
//! Every commit carries these names, and everybody who has the remote reads them. They come from host names, environment variables and other
//! programs, so they may hold anything.
//!
//! - [`harmless`] changes a name without asking the user: it removes control characters, cuts a long name, and replaces a name that looks
//!   like it holds a secret is replaced by `hidden-` and a short hash.
//! - [`check`] refuses the same names where the user gave one and can give another.

use std::fmt;

use crate::secrets::{self, Rule};

/// The most characters of a name.
pub const MAX_NAME_CHARS: usize = 60;

/// The context of the hash of a hidden name: no other hash of the same bytes is equal to it.
const HASH_CONTEXT: &str = "haversack 2026-11-18 name that holds a secret";

/// Says why a name may not be given to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadName {
    /// It has no visible character.
    Empty,
    /// It has a control character, such as a line end.
    ControlCharacter,
    /// It has more than [`MAX_NAME_CHARS`] characters.
    TooLong,
    /// It looks like it holds a secret.
    Secret(&'static Rule),
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadName::Empty => write!(f, "it is empty"),
            BadName::ControlCharacter => write!(f, "it has a control character"),
            BadName::TooLong => write!(f, "it has more than {MAX_NAME_CHARS} characters"),
            BadName::Secret(rule) => write!(f, "it holds {} ({})", rule.name, rule.id),
        }
    }
}

impl std::error::Error for BadName {}

/// Checks a name that the user gave to a device.
pub fn check(name: &str) -> Result<(), BadName> {
    // The secret first: the message must not lead the user to send a shorter part of it.
    match secret(name) {
        Some(rule) => Err(BadName::Secret(rule)),
        None if name.chars().any(is_control) => Err(BadName::ControlCharacter),
        None if name.trim().is_empty() => Err(BadName::Empty),
        None if name.chars().count() > MAX_NAME_CHARS => Err(BadName::TooLong),
        None => Ok(()),
    }
}

/// Returns a name as it may be sent. A name that is harmless already stays as it is.
pub fn harmless(name: &str) -> String {
    let visible = visible(name);
    if secret(name).is_some() {
        let hash = blake3::derive_key(HASH_CONTEXT, visible.as_bytes());
        return format!("hidden-{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[3]);
    }
    visible.chars().take(MAX_NAME_CHARS).collect()
}

fn visible(name: &str) -> String {
    name.chars().filter(|letter| !is_control(*letter)).collect()
}

/// True for control characters, and for marks that change the direction in which the rest of a line is shown.
fn is_control(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Finds a secret in a name: as it is, and without the control characters, which may split a secret or part it from a word.
fn secret(name: &str) -> Option<&'static Rule> {
    let find = |name: &str| secrets::find(name.as_bytes()).first().map(|finding| finding.rule);
    find(name).or_else(|| find(&visible(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> String {
        format!("gh{}_{}", "p", "q7Rt2LmXw9ZcK4vB8nHs1DfG6jYp3TaE5uQo")
    }

    #[test]
    fn harmless_names_stay_as_they_are() {
        let session = "7d9f2c41-3b8e-4a55-9c1d-2e6f8a0b4c7d";
        for name in ["laptop", "the keeper's laptop", "büro-2", "claude-code", session, ""] {
            assert_eq!(harmless(name), name);
        }
        for name in ["laptop", "the keeper's laptop", "büro-2"] {
            assert_eq!(check(name), Ok(()));
        }
    }

    #[test]
    fn control_characters_are_removed_and_refused() {
        assert_eq!(harmless("lap\u{1b}[31mtop\r\n\u{0}\u{202e}x"), "lap[31mtopx");
        for name in ["a\nb", "a\u{1b}b", "a\u{202e}b"] {
            assert_eq!(check(name), Err(BadName::ControlCharacter), "{name:?}");
        }
        assert_eq!(check("  "), Err(BadName::Empty));
    }

    #[test]
    fn long_names_are_cut_and_refused() {
        let long = "ü".repeat(MAX_NAME_CHARS + 1);
        assert_eq!(harmless(&long), "ü".repeat(MAX_NAME_CHARS));
        assert_eq!(check(&long), Err(BadName::TooLong));
        assert_eq!(check(&"ü".repeat(MAX_NAME_CHARS)), Ok(()));
    }

    #[test]
    fn names_with_a_secret_are_hidden_and_refused() {
        let long = "x ".repeat(MAX_NAME_CHARS);
        let split = token().replace("_", "_\u{0}");
        for name in [token(), format!("laptop {}", token()), format!("{long}{}", token()), split] {
            let hidden = harmless(&name);
            assert!(hidden.starts_with("hidden-") && hidden.len() == "hidden-".len() + 8, "{hidden}");
            assert_eq!(harmless(&name), hidden, "the same name is hidden in the same way");
            assert_eq!(harmless(&hidden), hidden, "a hidden name is harmless");
            let refused = check(&name).expect_err("refused");
            assert!(matches!(refused, BadName::Secret(rule) if rule.id == "github-token"), "{refused:?}");
            assert_eq!(refused.to_string(), "it holds a GitHub token (github-token)");
        }
        assert_ne!(harmless(&token()), harmless(&format!("laptop {}", token())));
    }
}

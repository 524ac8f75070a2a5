//! Versions of objects, and cheap marks that tell if an object changed.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The backend's name for one state of one object. Equal versions of one object mean equal contents.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(Arc<str>);

impl Version {
    /// Returns the version with the backend's own spelling.
    pub fn new(spelling: impl AsRef<str>) -> Version {
        Version(Arc::from(spelling.as_ref()))
    }

    /// Returns the version that names `bytes` by their BLAKE3 hash.
    pub fn of_content(bytes: &[u8]) -> Version {
        Version(Arc::from(blake3::hash(bytes).to_hex().as_str()))
    }

    /// Returns the backend's spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({})", &*self.0)
    }
}

/// An opaque mark of an object's outside (size, times, inode) that changes when its content does.
///
/// It is a hint: equal fingerprints mean equal content only if they are
/// [settled](Fingerprint::is_settled); different fingerprints say nothing, content decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    token: [u64; 2],
    changed: i64,
}

impl Fingerprint {
    /// The number of bytes.
    pub const BYTES: usize = 24;

    /// Returns the fingerprint of what `parts` describe, last changed at `changed` on the backend's own
    /// clock, in its own unit.
    pub fn new(parts: &[u64], changed: i64) -> Fingerprint {
        const START: u64 = 0xcbf2_9ce4_8422_2325;
        // Two mixes with different multipliers: a collision would hide a change.
        let mix = |multiplier: u64| {
            parts.iter().fold(START, |state, part| {
                let state = (state ^ part).wrapping_mul(multiplier);
                state ^ (state >> 29)
            })
        };
        Fingerprint { token: [mix(0x9e37_79b9_7f4a_7c15), mix(0xd6e8_feb8_6659_fd93)], changed }
    }

    /// Returns the fingerprint of an object whose backend gives every state a name of its own.
    pub fn of_version(version: &Version) -> Fingerprint {
        let hash = blake3::hash(version.as_str().as_bytes());
        let word = |at: usize| {
            hash.as_bytes()[at..at + 8].iter().fold(0, |word, byte| (word << 8) | u64::from(*byte))
        };
        Fingerprint { token: [word(0), word(8)], changed: i64::MIN }
    }

    /// Returns its bytes, to be written down and compared.
    pub fn to_bytes(&self) -> [u8; Fingerprint::BYTES] {
        let mut bytes = [0; Fingerprint::BYTES];
        let words = [self.token[0], self.token[1], self.changed.cast_unsigned()];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Returns the fingerprint with these bytes.
    pub fn from_bytes(bytes: [u8; Fingerprint::BYTES]) -> Fingerprint {
        let word =
            |at: usize| (0..8).rev().fold(0u64, |word, byte| (word << 8) | u64::from(bytes[at + byte]));
        Fingerprint { token: [word(0), word(8)], changed: word(16).cast_signed() }
    }

    /// Returns true if the object cannot have changed since without changing this fingerprint.
    ///
    /// False for what was touched so shortly before `mark` that the clock behind the fingerprint might
    /// not have ticked since.
    pub fn is_settled(&self, mark: &TouchMark) -> bool {
        self.changed < mark.moment
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}@{}", self.token[0], self.token[1], self.changed)
    }
}

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    fn from_str(text: &str) -> Result<Fingerprint, InvalidFingerprint> {
        let parse = || {
            let (token, changed) = text.split_once('@')?;
            let word = |range| u64::from_str_radix(token.get(range)?, 16).ok();
            (token.len() == 32).then(|| {
                Some(Fingerprint { token: [word(0..16)?, word(16..32)?], changed: changed.parse().ok()? })
            })?
        };
        parse().ok_or(InvalidFingerprint)
    }
}

/// A text that is not a stored fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidFingerprint;

impl fmt::Display for InvalidFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a fingerprint")
    }
}

impl std::error::Error for InvalidFingerprint {}

/// A moment on a backend's own clock: what changed before it has settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TouchMark {
    moment: i64,
}

impl TouchMark {
    /// Returns the mark for `moment`, in the unit that the backend's fingerprints use.
    pub fn new(moment: i64) -> TouchMark {
        TouchMark { moment }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_survives_storing() {
        let fingerprint = Fingerprint::new(&[1, 2, 3], -7);
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        assert_eq!(Fingerprint::from_bytes(fingerprint.to_bytes()), fingerprint);
        assert_eq!("nonsense".parse::<Fingerprint>(), Err(InvalidFingerprint));
        assert_ne!(fingerprint, Fingerprint::new(&[1, 3, 2], -7));
    }

    #[test]
    fn only_what_is_older_has_settled() {
        let fingerprint = Fingerprint::new(&[1], 10);
        assert!(fingerprint.is_settled(&TouchMark::new(11)));
        assert!(!fingerprint.is_settled(&TouchMark::new(10)));
    }
}

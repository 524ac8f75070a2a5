//! Names of files with gaps in them.

use std::fmt;

use haversack_store::Locator;

/// A name in which `*` stands for anything within a segment, and `#` for a digit.
///
/// One with a `/` is compared with as many segments at the end of a locator as it has. Letters count as the same in capitals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Returns a pattern; any text is one.
    pub fn new(text: impl Into<String>) -> Pattern {
        Pattern(text.into())
    }

    /// Returns true if a place is called like this.
    pub fn matches(&self, locator: &Locator) -> bool {
        if !may_match(self.0.as_bytes(), locator.as_str().as_bytes()) {
            return false;
        }
        let mut segments = locator.as_str().rsplit('/');
        self.0.rsplit('/').all(|pattern| {
            segments.next().is_some_and(|segment| segment_matches(pattern.as_bytes(), segment.as_bytes()))
        })
    }

    /// Returns the name with its gap filled; `None` if it has none, or more than one.
    pub fn filled(&self, with: &str) -> Option<String> {
        let gap = self.0.find(['*', '#'])?;
        let end = self.0.rfind(['*', '#'])? + 1;
        let is_one = self.0[gap..end].bytes().all(|byte| matches!(byte, b'*' | b'#' | b'-' | b'W'));
        is_one.then(|| format!("{}{with}{}", &self.0[..gap], &self.0[end..]))
    }

    /// Returns the pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if it is a name without gaps.
    pub fn is_name(&self) -> bool {
        !self.0.contains(['*', '#'])
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Compares only the first byte of the last segment, and the last byte: most patterns differ from most names there.
fn may_match(pattern: &[u8], name: &[u8]) -> bool {
    let first = |text: &[u8]| text.get(memchr::memrchr(b'/', text).map_or(0, |end| end + 1)).copied();
    let fits = |expected: Option<u8>, byte: Option<u8>| match (expected, byte) {
        (Some(b'*' | b'#'), _) => true,
        (Some(expected), Some(byte)) => expected.eq_ignore_ascii_case(&byte),
        (None, _) | (_, None) => true,
    };
    fits(first(pattern), first(name)) && fits(pattern.last().copied(), name.last().copied())
}

/// Compares with one place to come back to, so that no pattern takes long.
fn segment_matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut name_at) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while name_at < name.len() {
        let is_next = pattern.get(at).is_some_and(|expected| match expected {
            b'#' => name[name_at].is_ascii_digit(),
            expected => expected.eq_ignore_ascii_case(&name[name_at]),
        });
        if pattern.get(at) == Some(&b'*') {
            retry = Some((at + 1, name_at));
            at += 1;
        } else if is_next {
            (at, name_at) = (at + 1, name_at + 1);
        } else if let Some((after, from)) = retry {
            retry = Some((after, from + 1));
            (at, name_at) = (after, from + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_stand_for_anything_within_a_segment() {
        let matches = |pattern: &str, raw: &str| {
            Pattern::new(pattern).matches(&Locator::parse(raw).expect("a locator"))
        };
        assert!(matches("user_*.md", "a/b/user_role.md"));
        assert!(matches("user_*.md", "USER_.md"));
        assert!(!matches("user_*.md", "user_role.md.txt"));
        assert!(!matches("user_*.md", "user_a/b.md"));
        assert!(matches("state/*cursor*", "x/state/email_cursor.txt"));
        assert!(!matches("state/*cursor*", "email_cursor.txt"));
        assert!(!matches("state/*cursor*", "estate/cursor"));
        assert!(matches("compacted/####-W##.md", "compacted/2026-w40.md"));
        assert!(!matches("compacted/####.md", "compacted/202a.md"));
        let many = format!("{}b", "*a".repeat(50));
        assert!(!matches(&many, &"a".repeat(200)));
    }

    #[test]
    fn a_gap_is_filled() {
        let filled = |pattern: &str, with: &str| Pattern::new(pattern).filled(with);
        assert_eq!(filled("user_*.md", "role").as_deref(), Some("user_role.md"));
        assert_eq!(filled("compacted/####-W##.md", "2026-W40").as_deref(), Some("compacted/2026-W40.md"));
        assert_eq!(filled("MEMORY.md", "x"), None);
        assert_eq!(filled("*_cursor_*", "x"), None);
    }
}

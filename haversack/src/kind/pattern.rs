//! Names of files with gaps in them.

use std::fmt;

use haversack_store::Locator;

/// A name in which `*` stands for anything within a segment, and `#` for a digit.
///
/// One with a `/` is compared with as many segments at the end of a locator as it has. Letters count as the same in capitals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    ends: Ends,
}

/// The first and the last byte of the last segment of a name or pattern, in small letters: most patterns differ from most names there. `None` stands for
/// anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    first: Option<u8>,
    last: Option<u8>,
}

impl Ends {
    fn of(text: &str) -> Ends {
        let name = text.as_bytes();
        let start = memchr::memrchr(b'/', name).map_or(0, |end| end + 1);
        let small = |byte: Option<&u8>| byte.map(u8::to_ascii_lowercase);
        Ends { first: small(name[start..].first()), last: small(name[start..].last()) }
    }

    /// Returns the ends of a locator.
    pub(super) fn of_name(locator: &Locator) -> Ends {
        Ends::of(locator.as_str())
    }

    fn of_pattern(text: &str) -> Ends {
        let Ends { first, last } = Ends::of(text);
        let plain = |byte: Option<u8>| byte.filter(|byte| !matches!(byte, b'*' | b'#'));
        Ends { first: plain(first), last: plain(last) }
    }

    fn may_be(self, name: Ends) -> bool {
        let fits =
            |expected: Option<u8>, byte: Option<u8>| expected.is_none() || byte.is_none() || expected == byte;
        fits(self.first, name.first) && fits(self.last, name.last)
    }
}

impl Pattern {
    /// Returns a pattern; any text is one.
    pub fn new(text: impl Into<String>) -> Pattern {
        let text = text.into();
        let ends = Ends::of_pattern(&text);
        Pattern { text, ends }
    }

    /// Returns true if a place is called like this.
    pub fn matches(&self, locator: &Locator) -> bool {
        self.matches_with(locator, Ends::of_name(locator))
    }

    /// Returns true if a place with these ends is called like this.
    pub(super) fn matches_with(&self, locator: &Locator, ends: Ends) -> bool {
        if !self.ends.may_be(ends) {
            return false;
        }
        let mut segments = locator.as_str().rsplit('/');
        self.text.rsplit('/').all(|pattern| {
            segments.next().is_some_and(|segment| segment_matches(pattern.as_bytes(), segment.as_bytes()))
        })
    }

    /// Returns the name with its gap filled; `None` if it has none, or more than one.
    pub fn filled(&self, with: &str) -> Option<String> {
        let gap = self.text.find(['*', '#'])?;
        let end = self.text.rfind(['*', '#'])? + 1;
        let is_one = self.text[gap..end].bytes().all(|byte| matches!(byte, b'*' | b'#' | b'-' | b'W'));
        is_one.then(|| format!("{}{with}{}", &self.text[..gap], &self.text[end..]))
    }

    /// Returns the pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if it is a name without gaps.
    pub fn is_name(&self) -> bool {
        !self.text.contains(['*', '#'])
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
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
        assert!(matches("Compacted/User.MD", "compacted/uSER.md"));
        assert!(matches("a*/*", "x/ab/c"));
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

//! The only name of a place: a normalised, backend-relative key.
//!
//! Only [`Locator::parse`] makes a [`Locator`], so every one
//! cannot address anything outside the backend's root, on any platform.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::sync::Arc;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The longest segment in bytes: what every filesystem in use can hold as one name.
pub const MAX_SEGMENT_BYTES: usize = 255;

/// The longest key in bytes: what every object store in use can hold as one key.
pub const MAX_KEY_BYTES: usize = 1024;

/// The directory that belongs to Haversack itself, at the root of a store.
pub(crate) const OWN_DIRECTORY: &str = ".haversack";

/// The beginning of every working name of Haversack beside a user's file.
pub(crate) const OWN_PREFIX: &str = ".haversack-";

/// The beginning of a working name in a folder that a sync client watches.
pub(crate) const SHY_PREFIX: &str = ".~haversack-";

/// The end of such a name.
pub(crate) const SHY_SUFFIX: &str = ".tmp";

/// The readable index at the root of a store.
pub(crate) const MANIFEST: &str = "manifest.json";

/// A normalised, backend-relative key, segments separated by `/`; the root is the empty key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locator {
    key: Arc<str>,
}

impl Locator {
    /// Returns the locator of the backend's root.
    pub fn root() -> Locator {
        Locator { key: Arc::from("") }
    }

    /// Parses what a user, an agent or a program calls a place.
    ///
    /// Empty and `.` segments are dropped and a leading `/` is ignored; `..`, backslash, NUL and control
    /// characters are refused, and so are the names that Haversack keeps for itself. The result is in
    /// Unicode normalisation form C.
    pub fn parse(raw: &str) -> Result<Locator, InvalidLocator> {
        let locator = Locator::normalise(raw)?;
        if locator.is_reserved() {
            return Err(InvalidLocator::new(raw, Reason::Reserved));
        }
        Ok(locator)
    }

    /// Parses one of the names that Haversack keeps for itself: the engine's own door.
    ///
    /// Anything that [`Locator::parse`] would accept is refused here.
    pub fn reserved(raw: &str) -> Result<Locator, InvalidLocator> {
        let locator = Locator::normalise(raw)?;
        if !locator.is_reserved() {
            return Err(InvalidLocator::new(raw, Reason::NotReserved));
        }
        Ok(locator)
    }

    /// Parses a key of a store that others can write to: it must be its own normal form.
    pub fn from_stored_key(key: &str) -> Result<Locator, InvalidLocator> {
        let locator = Locator::normalise(key)?;
        if locator.as_str() != key {
            return Err(InvalidLocator::new(key, Reason::NotNormal));
        }
        Ok(locator)
    }

    /// Returns true if a key is the key of a user's file, at a glance: nearly all are, and one that is not said to be may be one too.
    pub fn is_plain_key(key: &str) -> bool {
        key.len() <= MAX_KEY_BYTES && key.split('/').all(is_plain)
    }

    fn normalise(raw: &str) -> Result<Locator, InvalidLocator> {
        // Nearly every name is plain, and a state has one for every file.
        if is_normal(raw) { Ok(Locator { key: Arc::from(raw) }) } else { Locator::normalise_slowly(raw) }
    }

    fn normalise_slowly(raw: &str) -> Result<Locator, InvalidLocator> {
        let refuse = |reason| Err(InvalidLocator::new(raw, reason));
        let nfc: String;
        let text = match is_nfc_quick(raw.chars()) {
            IsNormalized::Yes => raw,
            IsNormalized::No | IsNormalized::Maybe => {
                nfc = raw.nfc().collect();
                nfc.as_str()
            }
        };
        let mut key = String::with_capacity(text.len());
        for segment in text.split('/') {
            match segment {
                "" | "." => continue,
                ".." => return refuse(Reason::Climbs),
                _ => {}
            }
            if segment.contains('\\') {
                return refuse(Reason::Backslash);
            }
            if segment.chars().any(char::is_control) {
                return refuse(Reason::ControlCharacter);
            }
            if segment.len() > MAX_SEGMENT_BYTES {
                return refuse(Reason::SegmentTooLong);
            }
            if !key.is_empty() {
                key.push('/');
            }
            key.push_str(segment);
        }
        if key.len() > MAX_KEY_BYTES {
            return refuse(Reason::KeyTooLong);
        }
        Ok(Locator { key: Arc::from(key) })
    }

    /// Returns the key.
    pub fn as_str(&self) -> &str {
        &self.key
    }

    /// Returns true if this is the backend's root.
    pub fn is_root(&self) -> bool {
        self.key.is_empty()
    }

    /// Returns the segments from the root down; none for the root.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.key.split('/').filter(|segment| !segment.is_empty())
    }

    /// Returns the last segment; empty for the root.
    pub fn name(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the directory this is in; `None` for the root.
    pub fn parent(&self) -> Option<Locator> {
        if self.is_root() {
            return None;
        }
        Some(Locator { key: Arc::from(self.parent_key()) })
    }

    /// Returns the key of the directory this is in; empty for the root and what is right below it.
    pub(crate) fn parent_key(&self) -> &str {
        &self.key[..self.key.rfind('/').unwrap_or(0)]
    }

    /// Returns the place called `relative` below this one.
    pub fn child(&self, relative: &str) -> Result<Locator, InvalidLocator> {
        Locator::parse(&format!("{}/{relative}", self.key))
    }

    /// Returns `relative` as seen from this place, reserved or not: the result is valid because both are.
    pub(crate) fn join(&self, relative: &Locator) -> Result<Locator, InvalidLocator> {
        match (self.is_root(), relative.is_root()) {
            (true, _) => Ok(relative.clone()),
            (_, true) => Ok(self.clone()),
            (false, false) => Locator::normalise(&format!("{}/{relative}", self.key)),
        }
    }

    /// Returns what remains of this locator below `prefix`; `None` if it is not below it.
    pub(crate) fn below(&self, prefix: &Locator) -> Option<Locator> {
        if prefix.is_root() {
            return Some(self.clone());
        }
        let rest = self.key.strip_prefix(prefix.as_str())?;
        match rest.strip_prefix('/') {
            Some(rest) => Some(Locator { key: Arc::from(rest) }),
            None => rest.is_empty().then(Locator::root),
        }
    }

    /// Returns true if this place is `prefix` or below it.
    pub fn is_within(&self, prefix: &Locator) -> bool {
        prefix.holds(&self.key)
    }

    /// Returns true if a key is this place's or that of one below it.
    pub fn holds(&self, key: &str) -> bool {
        let rest = key.strip_prefix(self.as_str());
        self.is_root() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns true if this is one of the names that Haversack keeps for itself.
    ///
    /// Compared without case, because a case-insensitive disk would confuse them.
    pub fn is_reserved(&self) -> bool {
        let mut segments = self.segments();
        let Some(first) = segments.next() else {
            return false;
        };
        first.eq_ignore_ascii_case(OWN_DIRECTORY)
            || self.key.eq_ignore_ascii_case(MANIFEST)
            || self.segments().any(is_own_name)
    }

    /// Refuses a name that some platform cannot hold, before it is created.
    ///
    /// An existing object under such a name may still be read, replaced and deleted.
    pub fn check_portable(&self) -> Result<(), InvalidLocator> {
        for segment in self.segments() {
            let reason = if segment.ends_with('.') {
                Reason::TrailingDot
            } else if segment.ends_with(' ') {
                Reason::TrailingSpace
            } else if let Some(character) = segment.chars().find(|c| r#"<>:"|?*"#.contains(*c)) {
                Reason::UnportableCharacter(character)
            } else if is_device_name(segment) {
                Reason::DeviceName
            } else {
                continue;
            };
            return Err(InvalidLocator::new(&self.key, reason));
        }
        Ok(())
    }

    /// Returns the key as a case-insensitive disk would compare it.
    pub fn folded(&self) -> String {
        fold(&self.key).into_owned()
    }

    /// Returns a key without the differences that a case-insensitive disk does not see.
    pub fn fold(key: &str) -> Cow<'_, str> {
        fold(key)
    }
}

/// The names found in one directory, as places below it.
pub(crate) struct Children<'a> {
    parent: &'a Locator,
    /// True if a plain name below the parent needs no normalising.
    plain_parent: bool,
    /// The parent's key with a slash, and room for a name: one allocation for all of them.
    key: String,
    name_at: usize,
}

impl<'a> Children<'a> {
    pub(crate) fn of(parent: &'a Locator) -> Children<'a> {
        let mut key = parent.as_str().to_owned();
        if !parent.is_root() {
            key.push('/');
        }
        Children { parent, plain_parent: !parent.is_reserved(), name_at: key.len(), key }
    }

    /// Returns the directory they are in.
    pub(crate) fn parent(&self) -> &'a Locator {
        self.parent
    }

    /// Returns what [`Locator::parse`] makes of one of the names.
    pub(crate) fn parse(&mut self, name: &str) -> Result<Locator, InvalidLocator> {
        self.key.truncate(self.name_at);
        self.key.push_str(name);
        if self.plain_parent && is_plain(name) && self.key.len() <= MAX_KEY_BYTES {
            return Ok(Locator { key: Arc::from(self.key.as_str()) });
        }
        Locator::parse(&self.key)
    }

    /// Returns what [`Locator::reserved`] makes of one of the names.
    pub(crate) fn reserved(&mut self, name: &str) -> Result<Locator, InvalidLocator> {
        self.key.truncate(self.name_at);
        self.key.push_str(name);
        Locator::reserved(&self.key)
    }
}

/// Returns true if a name is clearly its own normal form and not one of ours: most names are.
fn is_plain(name: &str) -> bool {
    let fits = |byte| matches!(byte, b' '..=b'~') && byte != b'/' && byte != b'\\';
    (1..=MAX_SEGMENT_BYTES).contains(&name.len())
        && name.bytes().all(fits)
        // A name that begins with a dot may lead up or be one of ours; the manifest is ours.
        && !name.starts_with('.')
        && !name.eq_ignore_ascii_case(MANIFEST)
}

/// Returns `text` without the differences that a case-insensitive disk does not see.
pub(crate) fn fold(text: &str) -> Cow<'_, str> {
    if !text.is_ascii() {
        return text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect();
    }
    match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => text.to_ascii_lowercase().into(),
        false => text.into(),
    }
}

/// Returns true if one segment is a working name of ours.
pub(crate) fn is_own_name(segment: &str) -> bool {
    let starts_with =
        |prefix: &str| segment.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    starts_with(OWN_PREFIX) || starts_with(SHY_PREFIX)
}

fn is_device_name(segment: &str) -> bool {
    let stem = segment.split('.').next().unwrap_or_default().trim_end();
    let upper = stem.to_ascii_uppercase();
    if matches!(upper.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") {
        return true;
    }
    let Some(digit) = upper.strip_prefix("COM").or_else(|| upper.strip_prefix("LPT")) else {
        return false;
    };
    let mut characters = digit.chars();
    matches!((characters.next(), characters.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)
    }
}

impl fmt::Debug for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Locator({:?})", &*self.key)
    }
}

impl Borrow<str> for Locator {
    fn borrow(&self) -> &str {
        &self.key
    }
}

/// A name that cannot be a [`Locator`], and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidLocator {
    shown: String,
    reason: Reason,
}

/// Why a name was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It contains a `..` segment.
    Climbs,
    /// It contains a backslash.
    Backslash,
    /// It contains NUL or another control character.
    ControlCharacter,
    /// One segment is longer than [`MAX_SEGMENT_BYTES`].
    SegmentTooLong,
    /// The whole key is longer than [`MAX_KEY_BYTES`].
    KeyTooLong,
    /// It is a name that Haversack keeps for itself.
    Reserved,
    /// It was offered as one of our own names and is not.
    NotReserved,
    /// It was found in a store and is not its own normal form.
    NotNormal,
    /// A segment ends in a dot, which Windows drops.
    TrailingDot,
    /// A segment ends in a space, which Windows drops.
    TrailingSpace,
    /// A segment holds a character that Windows cannot store.
    UnportableCharacter(char),
    /// A segment is the name of a Windows device.
    DeviceName,
}

impl InvalidLocator {
    fn new(raw: &str, reason: Reason) -> InvalidLocator {
        const SHOWN_CHARACTERS: usize = 80;
        let mut shown: String = raw.chars().take(SHOWN_CHARACTERS).flat_map(char::escape_debug).collect();
        if raw.chars().nth(SHOWN_CHARACTERS).is_some() {
            shown.push('…');
        }
        InvalidLocator { shown, reason }
    }

    /// Returns why the name was refused.
    pub fn reason(&self) -> Reason {
        self.reason
    }
}

impl fmt::Display for InvalidLocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is refused: ", self.shown)?;
        match self.reason {
            Reason::Climbs => f.write_str("\"..\" would leave the memory"),
            Reason::Backslash => f.write_str("it contains a backslash; separate names with \"/\""),
            Reason::ControlCharacter => f.write_str("it contains a control character"),
            Reason::SegmentTooLong => write!(f, "one name in it is longer than {MAX_SEGMENT_BYTES} bytes"),
            Reason::KeyTooLong => write!(f, "it is longer than {MAX_KEY_BYTES} bytes"),
            Reason::Reserved => f.write_str("the name is kept for Haversack itself"),
            Reason::NotReserved => f.write_str("it is not one of Haversack's own names"),
            Reason::NotNormal => f.write_str("the stored key is not in its normal form"),
            Reason::TrailingDot => f.write_str("a name that ends in a dot cannot be stored on Windows"),
            Reason::TrailingSpace => f.write_str("a name that ends in a space cannot be stored on Windows"),
            Reason::UnportableCharacter(character) => {
                write!(f, "a name with '{character}' cannot be stored on Windows")
            }
            Reason::DeviceName => f.write_str("a device name cannot be stored on Windows"),
        }
    }
}

impl std::error::Error for InvalidLocator {}

/// Returns true if a key is certainly its own normal form: visible ASCII in whole segments, none too long.
fn is_normal(raw: &str) -> bool {
    let is_plain_segment = |segment: &[u8]| {
        let is_dots = segment.iter().all(|byte| *byte == b'.');
        !is_dots && segment.len() <= MAX_SEGMENT_BYTES
    };
    let bytes = raw.as_bytes();
    bytes.len() <= MAX_KEY_BYTES
        && bytes.iter().all(|byte| (b' '..=b'~').contains(byte) && *byte != b'\\')
        && bytes.split(|byte| *byte == b'/').all(is_plain_segment)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reason(raw: &str) -> Reason {
        Locator::parse(raw).expect_err(raw).reason()
    }

    #[test]
    fn normal_forms() {
        for (raw, key) in [
            ("", ""),
            ("/", ""),
            (".", ""),
            ("a", "a"),
            ("/a//b/./c/", "a/b/c"),
            ("...", "..."),
            ("a/.../x", "a/.../x"),
            ("~/x", "~/x"),
            ("%2e%2e/x", "%2e%2e/x"),
            ("-rf", "-rf"),
            ("e\u{301}.md", "é.md"),
            ("a/manifest.json", "a/manifest.json"),
            (".tmp-1", ".tmp-1"),
        ] {
            assert_eq!(Locator::parse(raw).map(|l| l.to_string()), Ok(key.to_owned()), "{raw:?}");
        }
    }

    #[test]
    fn refused() {
        assert_eq!(reason(".."), Reason::Climbs);
        assert_eq!(reason("a/../b"), Reason::Climbs);
        assert_eq!(reason("a\\b"), Reason::Backslash);
        assert_eq!(reason("a\0b"), Reason::ControlCharacter);
        assert_eq!(reason("a\nb"), Reason::ControlCharacter);
        assert_eq!(reason(&"x".repeat(256)), Reason::SegmentTooLong);
        assert_eq!(reason(&"xx/".repeat(400)), Reason::KeyTooLong);
        for ours in [
            ".haversack",
            ".HAVERSACK/x",
            "manifest.json",
            "Manifest.JSON",
            "a/.haversack-x",
            "a/.~haversack-x",
        ] {
            assert_eq!(reason(ours), Reason::Reserved, "{ours}");
            assert!(Locator::reserved(ours).is_ok(), "{ours}");
        }
        assert_eq!(Locator::reserved("notes.md").map_err(|e| e.reason()), Err(Reason::NotReserved));
    }

    #[test]
    fn stored_keys_must_be_normal() {
        assert!(Locator::from_stored_key("a/b").is_ok());
        for odd in ["/a", "a//b", "a/", "./a", "e\u{301}"] {
            assert_eq!(Locator::from_stored_key(odd).map_err(|e| e.reason()), Err(Reason::NotNormal));
        }
    }

    #[test]
    fn names_some_platform_cannot_hold() {
        for name in [
            "CON",
            "con.md",
            "nul.txt",
            "aux",
            "COM1.md",
            "LPT¹",
            "a:b",
            "x.md::$DATA",
            "x.md.",
            "x.md ",
            "what?",
            "d/prn/x",
        ] {
            let locator = Locator::parse(name).expect("readable");
            assert!(locator.check_portable().is_err(), "{name}");
        }
        for name in ["console.md", "com.md", "lpt10", "COM", "a.b.c", " x", "nullable", "auxiliary/x"] {
            assert_eq!(Locator::parse(name).and_then(|l| l.check_portable()), Ok(()), "{name}");
        }
    }

    #[test]
    fn case_folding() {
        let fold = |raw: &str| Locator::parse(raw).expect("valid").folded();
        assert_eq!(fold("README.md"), fold("readme.md"));
        assert_eq!(fold("straße"), fold("STRASSE"));
        assert_eq!(fold("ΣΑΣ"), fold("σας"));
        assert_ne!(fold("a"), fold("b"));
    }

    #[test]
    fn messages() {
        let text = |raw: &str| Locator::parse(raw).expect_err(raw).to_string();
        assert_eq!(text("../x"), r#""../x" is refused: ".." would leave the memory"#);
        assert_eq!(text("a\u{1b}[2J"), r#""a\u{1b}[2J" is refused: it contains a control character"#);
    }

    #[test]
    fn family() {
        let locator = Locator::parse("a/b/c.md").expect("valid");
        assert_eq!(locator.name(), "c.md");
        assert_eq!(locator.parent().map(|p| p.to_string()), Some("a/b".to_owned()));
        assert_eq!(Locator::root().parent(), None);
        let prefix = Locator::parse("a/b").expect("valid");
        assert_eq!(locator.below(&prefix).map(|l| l.to_string()), Some("c.md".to_owned()));
        assert_eq!(Locator::parse("a/bc").expect("valid").below(&prefix), None);
        assert!(!Locator::parse("a/bc").expect("valid").is_within(&prefix));
        assert!(locator.is_within(&prefix));
    }

    /// Names as a hostile disk has them, in directories of every kind.
    const NAMES: &str = "\\PC{0,12}|[./\\\\a\u{301}é~%\0 ]{0,6}|[a-zA-Z0-9 ._-]{1,300}|\\.haversack[-a-z]{0,4}\
                         |\\.Haversack-x|Manifest\\.json|manifest\\.json|\\.\\.?";

    proptest! {
        #[test]
        fn the_short_way_comes_to_the_same(raw in r"[a-c./\\ ~\x00-\x1f\x7fÅé\u{301}]{0,40}", long in 0..600usize) {
            let raw = format!("{raw}{}", "x".repeat(long));
            prop_assert_eq!(Locator::normalise(&raw).ok(), Locator::normalise_slowly(&raw).ok());
        }

        /// The shortcut for plain names is one: it never says anything else.
        #[test]
        fn names_of_a_directory_parse_like_keys(
            parent in "(a|é|[b-y]{200}|\\.haversack|manifest\\.json)?(/[a-z]{200}){0,4}(/[a-z]{1,30})?",
            names in proptest::collection::vec(NAMES, 1..8),
        ) {
            if let Ok(parent) = Locator::normalise(&parent) {
                let mut children = Children::of(&parent);
                for name in names {
                    let raw = if parent.is_root() { name.clone() } else { format!("{parent}/{name}") };
                    prop_assert_eq!(children.parse(&name), Locator::parse(&raw));
                    prop_assert_eq!(children.reserved(&name), Locator::reserved(&raw));
                }
            }
        }

        /// For every input, the output is its own normal form and does not lead up.
        #[test]
        fn parse_is_idempotent_and_confined(raw in "\\PC{0,40}|[./\\\\a\u{301}é~%\0]{0,40}") {
            if let Ok(locator) = Locator::parse(&raw) {
                prop_assert_eq!(Locator::from_stored_key(locator.as_str()), Ok(locator.clone()));
                prop_assert!(locator.segments().all(|s| s != ".." && s != "." && !s.contains('\\')));
                prop_assert!(!locator.as_str().starts_with('/'));
            }
        }
    }
}

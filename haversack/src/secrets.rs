//! Finds what looks like a secret in a file, and never repeats it.
//!
//! 1. One pass over the bytes looks for the words that secrets come with ([`mod@rules`]).
//! 2. At each word, its rule's pattern is tried on a window of bounded length.
//! 3. A match is judged ([`judge`]): by its entropy, and by whether it is a placeholder or names something else.
//! 4. Encoded and disguised parts of the content are decoded once ([`decode`]), and steps 1 to 3 are done on the decoded text.
//!
//! # Invariants
//! - A finding does not hold the secret: only its rule, its line and a fingerprint (`finding_never_shows_its_secret`).
//! - The time is linear in the size of the content, whatever is in it: patterns see windows of bounded length, and those that look far
//!   see what goes on without a break once (`hostile_contents_are_looked_at_to_their_end`, measured by `cargo xtask bench secrets`).
//! - A secret keeps its fingerprint from version to version (`fingerprints_of_known_secrets_never_change`). The fingerprint of an encoded secret is over
//!   the decoded secret (`encoded_secret_has_the_fingerprint_of_the_plain_one`).
//! - Each rule finds its sample (`every_rule_finds_its_sample`), and ordinary memory has no secret (`secrets::ordinary_memory_has_no_secret`).

mod decode;
mod judge;
mod rules;
#[cfg(test)]
mod samples;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use self::judge::Candidate;
pub use self::rules::Rule;
use self::rules::{FAR, Form, RULES, Start};

/// The most findings for one content. A caller that gets this number has not seen all of them.
pub const MAX_FINDINGS: usize = 1_000;

/// Says that there is something in a content that looks like a secret; not what.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule that it matches.
    pub rule: &'static Rule,
    /// The line it begins in; the first is 1.
    pub line: usize,
    /// By what it can be known again.
    pub fingerprint: Fingerprint,
}

/// By what a secret can be known again without being known: a hash of it and of its rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint([u8; Fingerprint::BYTES]);

impl Fingerprint {
    const BYTES: usize = 8;

    /// The context of the hash: no other hash of the same bytes is equal to it.
    const CONTEXT: &str = "haversack 2026-11-16 fingerprint of a secret";

    fn of(rule: &Rule, secret: &[u8]) -> Fingerprint {
        let mut hasher = blake3::Hasher::new_derive_key(Fingerprint::CONTEXT);
        hasher.update(rule.id.as_bytes()).update(&[0]).update(secret);
        let mut bytes = [0; Fingerprint::BYTES];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..Fingerprint::BYTES]);
        Fingerprint(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// Says that a text is not the fingerprint of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoFingerprint;

impl fmt::Display for NoFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a fingerprint has {} hexadecimal digits", Fingerprint::BYTES * 2)
    }
}

impl std::error::Error for NoFingerprint {}

impl FromStr for Fingerprint {
    type Err = NoFingerprint;

    fn from_str(text: &str) -> Result<Fingerprint, NoFingerprint> {
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if text.len() != Fingerprint::BYTES * 2 || !is_hex {
            return Err(NoFingerprint);
        }
        let mut bytes = [0; Fingerprint::BYTES];
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| NoFingerprint)?;
        }
        Ok(Fingerprint(bytes))
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = NoFingerprint;

    fn try_from(text: String) -> Result<Fingerprint, NoFingerprint> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> String {
        fingerprint.to_string()
    }
}

/// Returns every rule, those that are preferred first.
pub fn rules() -> &'static [Rule] {
    RULES
}

/// Finds what looks like a secret, in the order of lines; at most [`MAX_FINDINGS`].
///
/// Any bytes may be asked about: text in UTF-8 or UTF-16, or something that is no text at all.
pub fn find(content: &[u8]) -> Vec<Finding> {
    let content = &*narrowed(content);
    let mut found: Vec<Found> = Vec::new();
    // 1. Secrets that are written plainly.
    for hit in without_overlaps(hits(content)) {
        found.push(Found {
            fingerprint: hit.fingerprint(content),
            rule: hit.rule,
            start: hit.start,
            secret: hit.secret,
        });
    }
    // 2. Secrets in encoded text, unless the encoded text is a finding already.
    if found.len() < MAX_FINDINGS {
        let decoded = decode::decoded(content);
        for hit in without_overlaps(hits(&decoded.text)) {
            let (start, secret) =
                (decoded.source(&(hit.start..hit.start + 1)).start, decoded.source(&hit.secret));
            let overlaps =
                |other: &Found| start.min(secret.start) < other.secret.end && other.start < secret.end;
            if !found.iter().any(overlaps) {
                found.push(Found {
                    fingerprint: hit.fingerprint(&decoded.text),
                    rule: hit.rule,
                    start,
                    secret,
                });
            }
        }
    }
    found.sort_by_key(|found| found.start);
    found.truncate(MAX_FINDINGS);
    // 3. The line of each.
    let mut line = 1;
    let mut counted = 0;
    let finding = |found: Found| {
        line += memchr::memchr_iter(b'\n', &content[counted..found.start]).count();
        counted = found.start;
        Finding { rule: &RULES[found.rule], line, fingerprint: found.fingerprint }
    };
    found.into_iter().map(finding).collect()
}

/// A finding, with its place in the content.
struct Found {
    fingerprint: Fingerprint,
    /// The rule.
    rule: usize,
    /// The start of the rule's match.
    start: usize,
    /// The range of the secret; if it was encoded, of the encoded text.
    secret: std::ops::Range<usize>,
}

/// Keeps one hit of those that overlap: the one of the earlier rule, which is the more exact one.
fn without_overlaps(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_by_key(|hit| (hit.rule, hit.secret.start));
    let mut kept: Vec<Hit> = Vec::with_capacity(hits.len());
    for hit in hits {
        let overlaps =
            |other: &Hit| hit.secret.start < other.secret.end && other.secret.start < hit.secret.end;
        if !kept.iter().any(overlaps) {
            kept.push(hit);
        }
    }
    kept
}

/// A match of a rule.
struct Hit {
    /// The rule.
    rule: usize,
    /// The start of the match.
    start: usize,
    /// The range of the secret in it.
    secret: std::ops::Range<usize>,
}

impl Hit {
    fn fingerprint(&self, text: &[u8]) -> Fingerprint {
        Fingerprint::of(&RULES[self.rule], &text[self.secret.clone()])
    }
}

/// A text of up to so many bytes is first looked through word by word: making the automaton takes longer, and the reason for a sync is such a
/// text.
const SHORT_BYTES: usize = 64;

/// The words of all rules as one automaton, and whose they are.
struct Words {
    automaton: AhoCorasick,
    owners: Vec<usize>,
}

/// Made when the first content is looked at.
static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let words = || {
        let rules = RULES.iter().enumerate();
        rules.flat_map(|(index, rule)| rule.keywords.iter().map(move |word| (*word, index)))
    };
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words().map(|(word, _)| word))
        .expect("a few hundred short words");
    Words { automaton, owners: words().map(|(_, owner)| owner).collect() }
});

/// Patterns, each made when its first word is met.
static PATTERNS: [OnceLock<Regex>; RULES.len()] = [const { OnceLock::new() }; RULES.len()];

fn pattern(index: usize) -> &'static Regex {
    PATTERNS[index].get_or_init(|| {
        let rule = &RULES[index];
        let pattern = match rule.start {
            Start::Word | Start::Within => format!(r"\A(?:{})", rule.pattern),
            Start::Before(_) => rule.pattern.to_owned(),
        };
        RegexBuilder::new(&pattern).unicode(false).build().expect("one of our own patterns")
    })
}

/// Returns true if a short text has none of the words, without what it takes to look through long ones.
fn is_short_without_words(content: &[u8]) -> bool {
    let has =
        |word: &str| content.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()));
    content.len() <= SHORT_BYTES && !RULES.iter().flat_map(|rule| rule.keywords).any(|word| has(word))
}

fn hits(content: &[u8]) -> Vec<Hit> {
    let mut hits = Vec::new();
    if is_short_without_words(content) {
        return hits;
    }
    // The earliest start of each rule's next match.
    let mut free = [0; RULES.len()];
    for word in WORDS.automaton.find_overlapping_iter(content) {
        let index = WORDS.owners[word.pattern().as_usize()];
        if word.start() < free[index] {
            continue;
        }
        match try_rule(content, index, word.start()) {
            Tried::Found(hit, end) => {
                free[index] = end;
                hits.push(hit);
                if hits.len() == MAX_FINDINGS {
                    break;
                }
            }
            Tried::NothingBefore(end) => free[index] = end,
        }
    }
    hits
}

/// The result of trying a rule.
enum Tried {
    /// Something was found, and ends there.
    Found(Hit, usize),
    /// Nothing, nor is there anything that begins before this place.
    NothingBefore(usize),
}

/// Tries a rule where one of its words stands.
fn try_rule(content: &[u8], index: usize, word: usize) -> Tried {
    let rule = &RULES[index];
    let nothing = Tried::NothingBefore(word + 1);
    let from = match rule.start {
        Start::Word if !stands_apart(content, word) => return nothing,
        Start::Word | Start::Within => word,
        Start::Before(bytes) => word.saturating_sub(bytes),
    };
    if rule.separator_within.is_some_and(|bytes| !introduces_value(content, word, bytes)) {
        return nothing;
    }
    let to = content.len().min(word + rule.reach);
    let window = &content[from..to];
    let pattern = pattern(index);
    if !pattern.is_match(window) {
        // Text without a break is checked once, even if the word is in it many times.
        let is_unbroken = rule.start == Start::Word && rule.reach == FAR;
        return if is_unbroken { Tried::NothingBefore(word + unbroken(&content[word..to])) } else { nothing };
    }
    for found in pattern.captures_iter(window) {
        let whole = found.get_match();
        let (start, end) = (from + whole.start(), from + whole.end());
        if start > word {
            break;
        }
        let is_whole = end == to || !content.get(end).is_some_and(goes_on);
        let is_apart = rule.start == Start::Within || stands_apart(content, start);
        let secret = found.get(1).unwrap_or(whole);
        let candidate = Candidate {
            name: name_before(content, start),
            whole: whole.as_bytes(),
            secret: secret.as_bytes(),
        };
        let is_secret = end > word && is_whole && is_apart && judge::is_secret(rule, &candidate);
        let secret = from + secret.start()..from + secret.end();
        match is_secret {
            true => return Tried::Found(Hit { rule: index, start, secret }, end),
            false if rule.reach == FAR => return Tried::NothingBefore(secret.end),
            // Nor does any part of it that begins later have a digit; of the last part not all was seen.
            false if rule.form == Form::Key && !content[secret.clone()].iter().any(u8::is_ascii_digit) => {
                let unseen = if end == content.len() || end < to { 0 } else { UNSEEN_BYTES };
                return Tried::NothingBefore((end - unseen).max(word + 1));
            }
            false => {}
        }
    }
    nothing
}

/// Returns true if something that introduces a value follows a word: a colon, an equals sign, a bar, an arrow or a verb.
fn introduces_value(content: &[u8], word: usize, bytes: usize) -> bool {
    let rest = &content[word..content.len().min(word + bytes)];
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            b':' | b'=' | b'|' | 0xe2 => return true,
            b'>' if at > 0 && rest[at - 1] == b'-' => return true,
            b' ' | b'\t' => {
                let verbs = [&b"is"[..], b"was", b"to", b"now", b"lautet"];
                let is_verb = |verb: &&[u8]| {
                    rest[at + 1..].get(..verb.len()).is_some_and(|next| next.eq_ignore_ascii_case(verb))
                };
                if verbs.iter().any(is_verb) {
                    return true;
                }
            }
            b'A'..=b'Z' | b'a'..=b'z' | 0x80.. => {}
            b'\'' | b'"' | b'`' | b'*' | b'\\' | b'(' | b')' | b']' | b'_' | b'-' | b'.' => {}
            _ => return false,
        }
    }
    false
}

/// The number of bytes of a value that are checked again if it continues after the window.
const UNSEEN_BYTES: usize = 64;

/// Returns true if a byte would belong to a secret that ends before it.
fn goes_on(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// Returns how many bytes go on without a break.
fn unbroken(content: &[u8]) -> usize {
    content.iter().take_while(|byte| goes_on(byte) || **byte == b'-').count()
}

/// Returns true if what begins here is not the middle of a longer word.
fn stands_apart(content: &[u8], start: usize) -> bool {
    let before = |back: usize| start.checked_sub(back).map(|at| content[at]);
    match before(1) {
        Some(byte) if byte.is_ascii_alphanumeric() => {
            let is_escape = matches!(byte, b'n' | b'r' | b't') && before(2) == Some(b'\\');
            let is_hex = |back| before(back).is_some_and(|byte| byte.is_ascii_hexdigit());
            let is_encoded = before(3) == Some(b'%') && is_hex(1) && is_hex(2);
            // The end of a color, as terminals have it.
            let is_color = byte == b'm' && before(2).is_some_and(|byte| byte.is_ascii_digit());
            is_escape || is_encoded || is_color
        }
        _ => true,
    }
}

/// The most bytes of a name that are looked at before the word that it ends with.
const MAX_NAME_BYTES: usize = 32;

/// Returns the rest of a name that ends at a place: of `next_page_token` before `token`, `next_page_`, and of `page token`, `page`.
fn name_before(content: &[u8], start: usize) -> &[u8] {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let end = if start > 0 && content[start - 1] == b' ' { start - 1 } else { start };
    let before = &content[end.saturating_sub(MAX_NAME_BYTES)..end];
    let length = before.iter().rev().take_while(|byte| is_name(byte)).count();
    &before[before.len() - length..]
}

/// Returns a text in UTF-16 with its characters of one byte each, anything else as it is.
///
/// Lines stay lines, and secrets are made of such characters.
fn narrowed(content: &[u8]) -> Cow<'_, [u8]> {
    let wide = match content {
        [0xff, 0xfe, ..] => 0,
        [0xfe, 0xff, ..] => 1,
        _ => return Cow::Borrowed(content),
    };
    let narrow = |pair: &[u8]| match (pair[wide], pair.get(1 - wide)) {
        (byte, Some(0)) => byte,
        _ => b'?',
    };
    Cow::Owned(content.chunks_exact(2).map(narrow).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::samples::{Numbers, SAMPLES, made};
    use super::*;

    /// Returns what is found, as rule and line.
    fn found(text: impl AsRef<[u8]>) -> Vec<(&'static str, usize)> {
        find(text.as_ref()).iter().map(|finding| (finding.rule.id, finding.line)).collect()
    }

    /// Returns a sample of a rule.
    fn sample(id: &str, seed: u64) -> String {
        let (_, sample) = SAMPLES.iter().find(|(rule, _)| *rule == id).expect("every rule has one");
        made(sample, &mut Numbers::start(seed))
    }

    #[test]
    fn every_rule_has_a_name_of_its_own_and_a_sample() {
        let rules: Vec<&str> = rules().iter().map(|rule| rule.id).collect();
        let unique: BTreeSet<&str> = rules.iter().copied().collect();
        assert_eq!(unique.len(), rules.len());
        let samples: Vec<&str> = SAMPLES.iter().map(|(rule, _)| *rule).collect();
        assert_eq!(samples, rules);
        assert!(rules.len() >= 80, "{}", rules.len());
        for rule in super::rules() {
            assert!(rule.keywords.iter().all(|word| *word == word.to_ascii_lowercase()), "{rule:?}");
            assert!(rule.name.starts_with("a ") || rule.name.starts_with("an "), "{rule:?}");
        }
    }

    /// The number of samples of each rule.
    const SEEDS: u64 = 12;

    /// Returns the texts that a sample is put into, and the line it is in there.
    fn around(sample: &str) -> [(String, usize); 5] {
        let escaped = sample.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        [
            (sample.to_owned(), 1),
            (format!("# Lamp\n\nuse this: {sample}\nand go on\n"), 3),
            (format!("# Lamp\r\n- `{sample}`\r\n"), 2),
            (format!("\u{1b}[32m{sample}\u{1b}[0m"), 1),
            (format!("{{\"n\":1}}\n{{\"text\":\"look:\\n{escaped}\\nend\",\"n\":2}}\n"), 2),
        ]
    }

    #[test]
    fn every_rule_finds_its_sample() {
        let mut missed = Vec::new();
        for (id, _) in SAMPLES {
            for seed in 1..=SEEDS {
                for (number, (content, line)) in around(&sample(id, seed)).into_iter().enumerate() {
                    let found = found(&content);
                    if found != [(*id, line)] {
                        missed.push((*id, seed, number, found));
                    }
                }
            }
            assert!(!missed.iter().any(|(rule, seed, ..)| rule == id && *seed == 1), "{id}: {missed:?}");
        }
        // A few random texts have no digit.
        let tried = SAMPLES.len() * 5 * usize::try_from(SEEDS).expect("few");
        assert!(missed.len() * 500 <= tried, "{} of {tried}: {missed:?}", missed.len());
    }

    #[test]
    fn placeholders_and_documented_examples_are_no_secrets() {
        for (id, sample) in SAMPLES {
            for filler in ["x", "0", "*", "a"] {
                let mut text = String::new();
                let mut rest = *sample;
                while let Some((before, after)) = rest.split_once('{') {
                    let (part, after) = after.split_once('}').expect("a part ends");
                    text.push_str(before);
                    text.push_str(&filler.repeat(part[1..].parse().expect("a number")));
                    rest = after;
                }
                text.push_str(rest);
                let found = found(&text);
                assert!(found.is_empty(), "{id}: {text}: {found:?}");
            }
        }
        let examples = [
            concat!("AKIAIOSFODNN7", "EXAMPLE"),
            concat!("aws_secret_access_key = wJalrXUtnFEMI", "/K7MDENG/bPx", "RfiCYEXAMPLEKEY"),
            "password: <your-password>",
            "password: ${DB_PASSWORD}",
            "password: $DB_PASSWORD2",
            "password: {{ vault.db.password1 }}",
            "password: %DB_PASSWORD%",
            "password: process.env.DB_PASSWORD_1",
            "password: config.get(\"db1\")",
            "password = os.environ[\"DB_PASSWORD\"]",
            "password: changeme123",
            "password: !vault db_main_1",
            "password: ************",
            "Password: 1Password, entry lighthouse",
            "the password is stored in the keychain of the laptop",
            "passwords: argon2id, 64 MiB",
            "pwd: /srv/lighthouse/v2/Current",
            "token: lighthouse-deploy-2024-11",
            "token = cancellationToken2",
            "next_page_token: CAUQAAoJ8fK2mQ7xZ1Tn4s",
            "\"pageToken\": \"CAUQAAoJ8fK2mQ7xZ1Tn4s\"",
            "api_key: YOUR_API_KEY_HERE_123",
            "api_key: see docs/guide/keys-2024.md",
            "api_key = settings.api_key_2",
            "secret: 3f2504e0-4f89-41d3-9a0c-0305e82c3301",
            "secret_name: lighthouse/staging/v2",
            "cache_key: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "public_key: MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE",
            "postgres://postgres:postgres@db.lamp.internal/lighthouse",
            "postgres://app:Dev0nly99@localhost:5433/lighthouse",
            "https://user:password@host.lamp/",
            "https://keeper:${TOKEN}@host.lamp/",
            "ssh://git@host.lamp:2222/lighthouse",
            "http://localhost:4873/@lamp/ports",
            "-----BEGIN PRIVATE KEY----- is how such a file begins, and the rest of it is not for memory",
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n",
            "Authorization: Bearer YOUR_TOKEN_GOES_HERE_1",
            "Authorization: Bearer $TOKEN",
            "max_tokens: 4096, token_count: 18233",
            "deploy --token $DEPLOY_TOKEN_2 --password \"$PASSWORD\"",
        ];
        for example in examples {
            assert_eq!(found(example), [], "{example}");
        }
    }

    #[test]
    fn a_password_in_any_clothes_is_found() {
        let password = made("{A6}#{A5}9z", &mut Numbers::start(3));
        for line in [
            format!("password: {password}"),
            format!("DB_PASSWORD={password}"),
            format!("dbPassword = \"{password}\";"),
            format!("- **Password:** `{password}`"),
            format!("| password | {password} |"),
            format!("the password is {password}."),
            format!("{{\"password\":\"{password}\"}}"),
            format!("{{\"text\":\"{{\\\"password\\\": \\\"{password}\\\"}}\"}}"),
            format!("Server=lamp;User=keeper;Pwd={password};"),
            format!("export PGPASSWORD='{password}'"),
            format!("Passwort: {password}"),
        ] {
            assert_eq!(found(&line), [("assigned-password", 1)], "{line}");
        }
    }

    /// `docs/guide/secrets.md` says so.
    #[test]
    fn guide_tells_what_is_held_and_what_is_not() {
        let token = sample("github-token", 1);
        let held = [
            "postgres://keeper:sunshine@db.lamp.io/lighthouse".to_owned(),
            "DB_PASSWORD=MySecretPass99".to_owned(),
            "postgres://app:MySecretPass99@db.example/app".to_owned(),
            "my PIN is 4821".to_owned(),
            format!("t = \"{}\" + \"{}\"", &token[..12], &token[12..]),
            format!("{}\\\n{}", &token[..12], &token[12..]),
        ];
        for text in held {
            assert_eq!(found(&text).len(), 1, "{text}");
        }
        let not_held = [
            "password: sunshine".to_owned(),
            "password: 48219377".to_owned(),
            "postgres://keeper:Harbour77@localhost/lighthouse".to_owned(),
            "password: mysecretpassword".to_owned(),
            token.chars().rev().collect(),
            format!("{}\n{}", &token[..12], &token[12..]),
        ];
        for text in not_held {
            assert_eq!(found(&text), [], "{text}");
        }
    }

    #[test]
    fn encoded_secret_has_the_fingerprint_of_the_plain_one() {
        let token = sample("github-token", 1);
        let hex: String = token.bytes().map(|byte| format!("{byte:02x}")).collect();
        let escaped =
            [token.replace('_', "\\_"), token.replace('_', "\\u005f"), token.replace('_', "%5F"), hex];
        let plain = find(token.as_bytes())[0].fingerprint;
        for text in escaped {
            let [finding] = &find(format!("one\ntwo {text} three\n").as_bytes())[..] else {
                panic!("one: {text}")
            };
            assert_eq!((finding.fingerprint, finding.line), (plain, 2), "{text}");
        }
    }

    #[test]
    fn where_several_rules_fit_the_most_exact_one_counts() {
        let token = sample("github-token", 1);
        for line in [
            format!("token = \"{token}\""),
            format!("Authorization: Bearer {token}"),
            format!("https://x-access-token:{token}@github.com/lamp/lighthouse"),
        ] {
            assert_eq!(found(&line), [("github-token", 1)], "{line}");
        }
    }

    #[test]
    fn a_fingerprint_knows_a_secret_again_wherever_it_is() {
        let token = sample("github-token", 1);
        let [first] = &find(format!("token: {token}\n").as_bytes())[..] else { panic!("one") };
        let [second] = &find(format!("a\nb\nhere: {token} and so on\n").as_bytes())[..] else {
            panic!("one")
        };
        assert_eq!((first.line, second.line), (1, 3));
        assert_eq!(first.fingerprint, second.fingerprint);
        let [other] = &find(sample("github-token", 2).as_bytes())[..] else { panic!("one") };
        assert_ne!(first.fingerprint, other.fingerprint);
        let shown = first.fingerprint.to_string();
        assert_eq!(shown.parse(), Ok(first.fingerprint));
        for bad in ["", "abc", "zzzzzzzzzzzzzzzz", "ééééééé1", &format!("{shown}0")] {
            assert_eq!(bad.parse::<Fingerprint>(), Err(NoFingerprint), "{bad}");
        }
    }

    /// Users allow a secret by its fingerprint, so a new version of the scanner must not change the fingerprint of a secret that an
    /// older version found. The hash is over the fingerprints of all samples of the first 157 rules.
    #[test]
    fn fingerprints_of_known_secrets_never_change() {
        let mut hasher = blake3::Hasher::new();
        for (id, _) in SAMPLES.iter().take(157) {
            for seed in 1..=SEEDS {
                for (content, _) in around(&sample(id, seed)) {
                    for finding in find(content.as_bytes()) {
                        hasher.update(&finding.fingerprint.0);
                    }
                }
            }
        }
        let hash = hasher.finalize().to_hex();
        assert_eq!(&hash[..16], "949a52208900cb74");
    }

    #[test]
    fn keys_that_begin_alike_have_fingerprints_of_their_own() {
        // The first lines of such keys are the same for all of them.
        let line = made("{B70}", &mut Numbers::start(1));
        let key = |seed| {
            let rest = made("{B70}\n{B40}=", &mut Numbers::start(seed));
            format!(
                "-----BEGIN OPENSSH PRIVATE KEY-----\n{line}\n{rest}\n-----END OPENSSH PRIVATE KEY-----\n"
            )
        };
        let fingerprints: Vec<_> = [2, 3].map(|seed| find(key(seed).as_bytes())[0].fingerprint).into();
        assert_ne!(fingerprints[0], fingerprints[1]);
    }

    #[test]
    fn finding_never_shows_its_secret() {
        for (id, _) in SAMPLES {
            let sample = sample(id, 1);
            let shown = format!("{:?} {:#?}", find(sample.as_bytes()), find(sample.as_bytes()));
            let parts = sample.split(|c: char| !c.is_alphanumeric()).filter(|part| part.len() >= 8);
            for part in parts.filter(|part| part.chars().any(|c| c.is_ascii_digit())) {
                assert!(!shown.contains(part), "{id}: {shown}");
            }
        }
    }

    #[test]
    fn any_bytes_can_be_asked_about() {
        let token = sample("github-token", 1);
        let mut binary: Vec<u8> = (0..=255).cycle().take(70_144).collect();
        binary.extend(token.as_bytes());
        binary.extend([0, 255, 0]);
        assert_eq!(find(&binary).len(), 1);
        let text = format!("key\r\n{token}\r\n");
        let little: Vec<u8> =
            [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
        let big: Vec<u8> =
            [0xfe, 0xff].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect();
        assert_eq!(found(&little), [("github-token", 2)]);
        assert_eq!(found(&big), [("github-token", 2)]);
        assert_eq!(found([]), []);
        assert_eq!(found([0xff, 0xfe, 0x61]), []);
        // Cut anywhere, it is asked about without a panic.
        for (id, _) in SAMPLES {
            let sample = sample(id, 1);
            for end in 0..sample.len() {
                let _ = find(&sample.as_bytes()[..end]);
                let _ = find(&sample.as_bytes()[end..]);
            }
        }
    }

    #[test]
    fn hostile_contents_are_looked_at_to_their_end() {
        let words = [
            "sk-",
            "-eyJ",
            "token=",
            "token=a1",
            "-----BEGIN PRIVATE KEY-----\n",
            "Private-Lines: 1\n",
            "://a:",
            "glpat-",
            "\"private_key\": \"-----BEGIN PRIVATE KEY-----\\n",
            "xoxb-",
            "-eyJaaaaaaaaaaa.",
            "password: ",
            "a",
            "A",
            "-----BEGIN PRIVATE KEY-----\nabcd: a\nabcd: b\n",
            "-ya29.sl.hvs.ops_eyJglc_eyJ",
            " -u a:",
        ];
        for word in words {
            let line = word.repeat(100_000 / word.len());
            assert_eq!(found(&line), [], "{word}");
            let token = sample("github-token", 1);
            assert_eq!(
                found(format!("{line} {token}")),
                [("github-token", 1 + line.matches('\n').count())],
                "{word}"
            );
        }
    }

    #[test]
    fn very_many_secrets_are_not_all_told() {
        let mut numbers = Numbers::start(1);
        let many: String = (0..MAX_FINDINGS + 10).map(|_| made("ghp_{A36}\n", &mut numbers)).collect();
        assert_eq!(find(many.as_bytes()).len(), MAX_FINDINGS);
    }
}

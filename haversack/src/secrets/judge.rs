//! Decides if a match is a secret, or other text in the position of a secret.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::decode;
use super::rules::{Form, Rule};

/// A match of a pattern.
pub(super) struct Candidate<'a> {
    /// The rest of a name before it.
    pub(super) name: &'a [u8],
    /// All that the pattern matched.
    pub(super) whole: &'a [u8],
    /// The secret, if it is one.
    pub(super) secret: &'a [u8],
}

/// Parts of texts, whatever their case, all looked for at once.
type Parts = LazyLock<AhoCorasick>;

fn parts(parts: &[&str]) -> AhoCorasick {
    AhoCorasick::builder().ascii_case_insensitive(true).build(parts).expect("a few short words")
}

/// Words that people write in the place of a secret. A value of nothing but such words is a placeholder.
const PLACEHOLDER_WORDS: &[&str] = &[
    "example",
    "examples",
    "sample",
    "placeholder",
    "changeme",
    "changeit",
    "change",
    "redacted",
    "removed",
    "omitted",
    "hidden",
    "masked",
    "dummy",
    "test",
    "testing",
    "fake",
    "mock",
    "demo",
    "password",
    "passwords",
    "passwd",
    "passwort",
    "kennwort",
    "passphrase",
    "pass",
    "pwd",
    "secret",
    "secrets",
    "token",
    "tokens",
    "key",
    "apikey",
    "your",
    "none",
    "null",
    "nil",
    "undefined",
    "unknown",
    "todo",
    "fixme",
    "tbd",
    "insert",
    "replace",
    "enter",
    "lorem",
    "ipsum",
    "foo",
    "bar",
    "baz",
    "qux",
    "letmein",
    "qwerty",
    "oauth",
    "keychain",
    "string",
    "value",
    "required",
    "optional",
    "empty",
    "deadbeef",
    "cafebabe",
    "credentials",
    "credential",
];

/// Words that go with them: these alone are no placeholder.
const FILLER_WORDS: &[&str] = &[
    "a",
    "access",
    "account",
    "admin",
    "an",
    "and",
    "api",
    "app",
    "are",
    "ask",
    "auth",
    "base",
    "basic",
    "bearer",
    "client",
    "code",
    "data",
    "database",
    "db",
    "default",
    "dev",
    "django",
    "do",
    "env",
    "file",
    "for",
    "from",
    "generated",
    "goes",
    "guest",
    "here",
    "host",
    "id",
    "in",
    "insecure",
    "is",
    "it",
    "local",
    "localhost",
    "login",
    "long",
    "me",
    "mine",
    "mongo",
    "my",
    "mysql",
    "name",
    "new",
    "no",
    "not",
    "of",
    "old",
    "on",
    "or",
    "postgres",
    "prod",
    "put",
    "random",
    "real",
    "redis",
    "root",
    "same",
    "secure",
    "see",
    "server",
    "service",
    "sk",
    "some",
    "strong",
    "super",
    "temp",
    "that",
    "the",
    "this",
    "tmp",
    "to",
    "unsafe",
    "use",
    "user",
    "username",
    "var",
    "variable",
    "very",
    "with",
    "x",
    "you",
];

/// Parts of placeholders. One of them is in every value that may be a filler; no random text has one of them by chance.
static PLACEHOLDERS: Parts = LazyLock::new(|| {
    let orders = ["00000000", "11111111", "12345678", "23456789", "87654321", "abcdefgh", "ghijklmn"];
    let repeats = ["xxxxx", "*****", "....."];
    parts(&[&PLACEHOLDER_PARTS[..], &orders, &repeats, &["eyJzdWIiOiIxMjM0NTY3ODkw"]].concat())
});

/// Those of them that are words.
const PLACEHOLDER_PARTS: [&str; 8] =
    ["example", "placeholder", "changeme", "change_me", "redacted", "deadbeef", "your_", "your-"];

static WORD_PARTS: Parts = LazyLock::new(|| parts(&PLACEHOLDER_PARTS));

/// Endings and parts of the secrets that are shown wherever such secrets are explained.
const DOCUMENTED: [&[u8]; 3] = [b"EXAMPLE", b"EXAMPLEKEY", b"eyJzdWIiOiIxMjM0NTY3ODkw"];

/// Names of functions that make a hash of a password; their results and settings are no passwords.
const HASHES: [&str; 10] =
    ["sha1", "sha2", "sha3", "sha5", "argon2", "bcrypt", "scrypt", "pbkdf2", "$2", "base64"];

/// Words for secret keys: the things that they open.
static KEYS_TO: Parts = LazyLock::new(|| {
    parts(&[
        "api",
        "access",
        "secret",
        "private",
        "auth",
        "sign",
        "encrypt",
        "master",
        "service",
        "client",
        "admin",
        "deploy",
        "webhook",
        "session",
        "account",
        "license",
        "licence",
        "subscription",
        "shared",
        "storage",
        "write",
        "hmac",
    ])
});

/// Words for tokens and keys that are not secrets: positions in a list, words of a model, colors.
static NO_SECRETS: Parts = LazyLock::new(|| {
    parts(&[
        "page",
        "next",
        "prev",
        "cursor",
        "continu",
        "csrf",
        "xsrf",
        "public",
        "sync",
        "design",
        "max",
        "min",
        "count",
        "eos",
        "bos",
        "pad",
        "stop",
        "special",
        "cache",
        "resume",
        "idempoten",
        "publish",
    ])
});

/// Returns true if what a rule found is a secret.
pub(super) fn is_secret(rule: &Rule, candidate: &Candidate<'_>) -> bool {
    let &Candidate { name, whole, secret } = candidate;
    // Seen at once, and never so in a secret of open form: that keeps texts cheap that only talk about secrets.
    let is_open = matches!(rule.form, Form::Mixed | Form::Key | Form::Random);
    if is_open && !Classes::of(secret).is_mixed() {
        return false;
    }
    // A password that people make up may hold a placeholder and still be one; see `is_placeholder`.
    let is_made_up =
        matches!(rule.form, Form::Password | Form::Address | Form::Argument | Form::Credentials | Form::Pin);
    if entropy_tenths(secret) < rule.entropy || !is_made_up && is_filler(secret) {
        return false;
    }
    match rule.form {
        Form::Token | Form::Mixed => true,
        Form::Key => is_key(name, whole, secret),
        Form::Random => is_random(secret),
        Form::Password => is_password(whole, secret),
        Form::Address => is_password_of_address(whole, secret),
        Form::Argument => is_password_of_command(secret),
        Form::Credentials => is_credentials(secret),
        Form::Pin => !is_placeholder(secret),
        Form::Phrase => is_phrase(secret),
    }
}

/// Returns true if most of a value follows an order, repeats one character, or is made of placeholders.
///
/// One such part does not excuse a value: a password may hold `12345678` and still be one.
fn is_filler(value: &[u8]) -> bool {
    if !PLACEHOLDERS.is_match(value) {
        return false;
    }
    if DOCUMENTED[..2].iter().any(|end| value.ends_with(end)) || contains(value, DOCUMENTED[2]) {
        return true;
    }
    let words: usize = WORD_PARTS.find_iter(value).map(|found| found.len()).sum();
    // Words and names with a placeholder among them.
    if words > 0 && is_words(value) {
        return true;
    }
    (words + orderly_bytes(value)) * 2 >= value.len()
}

fn contains(value: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(value, part).is_some()
}

/// The fewest characters in a row that are an order.
const MIN_ORDERLY_BYTES: usize = 4;

/// Counts the bytes that are in a row such as `1234`, `4321`, `abcd` or `xxxx`.
fn orderly_bytes(value: &[u8]) -> usize {
    let step = |pair: &[u8]| match (pair[0], pair[1]) {
        (b'9', b'0') | (b'f', b'0') | (b'9', b'a') => 1,
        (first, second) => i16::from(second) - i16::from(first),
    };
    let (mut orderly, mut length, mut last) = (0, 1, None);
    let mut end = |length: usize| {
        if length >= MIN_ORDERLY_BYTES {
            orderly += length
        }
    };
    for pair in value.windows(2) {
        let step = step(pair);
        if step.abs() <= 1 && last.is_none_or(|last| last == step) {
            length += 1;
            last = Some(step);
        } else {
            end(length);
            (length, last) = if step.abs() <= 1 { (2, Some(step)) } else { (1, None) };
        }
    }
    end(length);
    orderly
}

/// Returns true if a value is a placeholder as a whole: words that stand for a secret, and at most a number such as `123`.
fn is_placeholder(value: &[u8]) -> bool {
    let is_joint = |byte: &u8| matches!(byte, b'-' | b'_' | b'.' | b'/' | b' ' | b':' | b'*' | b'<' | b'>');
    let lower = value.to_ascii_lowercase();
    if lower == b"hunter2" {
        return true;
    }
    let mut has_placeholder = false;
    let mut rest = &lower[..];
    while let Some(first) = rest.first() {
        let length = match first {
            b'a'..=b'z' => rest.iter().take_while(|byte| byte.is_ascii_lowercase()).count(),
            b'0'..=b'9' => rest.iter().take_while(|byte| byte.is_ascii_digit()).count(),
            joint if is_joint(joint) => 1,
            _ => return false,
        };
        let (part, after) = rest.split_at(length);
        let is_same = part.iter().all(|byte| byte == first);
        let is_order = part.windows(2).all(|pair| pair[1] == pair[0] + 1 || pair == b"90");
        match first {
            b'a'..=b'z' if is_same && length >= 3 => has_placeholder = true,
            b'a'..=b'z' => match placeholder_words(part) {
                Some(is_placeholder) => has_placeholder |= is_placeholder,
                None => return false,
            },
            b'1'..=b'3' if length == 1 => {}
            b'0' | b'1' if is_order => has_placeholder |= length >= 4,
            b'0'..=b'9' if is_same && length >= 3 => has_placeholder |= length >= 4,
            b'0'..=b'9' => return false,
            _ => {}
        }
        rest = after;
    }
    has_placeholder
}

/// Tells of letters that are nothing but known words whether one of them is a placeholder. Returns nothing if they have other words.
fn placeholder_words(letters: &[u8]) -> Option<bool> {
    // For each place: whether known words reach it, and whether with a placeholder among them.
    let mut reached: Vec<Option<bool>> = vec![None; letters.len() + 1];
    reached[0] = Some(false);
    for start in 0..letters.len() {
        let Some(has_placeholder) = reached[start] else { continue };
        let mut reach = |words: &[&str], is_placeholder: bool| {
            for word in words.iter().filter(|word| letters[start..].starts_with(word.as_bytes())) {
                let end = &mut reached[start + word.len()];
                *end = Some(end.unwrap_or(false) || has_placeholder || is_placeholder);
            }
        };
        reach(PLACEHOLDER_WORDS, true);
        reach(FILLER_WORDS, false);
    }
    reached[letters.len()]
}

/// Returns Shannon's entropy of a text, in tenths of a bit per byte.
fn entropy_tenths(text: &[u8]) -> u32 {
    let mut counts = [0_u32; 256];
    for byte in text {
        counts[usize::from(*byte)] += 1;
    }
    let length = text.len() as f64;
    let share = |count: &u32| f64::from(*count) / length;
    let bits: f64 =
        counts.iter().filter(|count| **count > 0).map(|count| -share(count) * share(count).log2()).sum();
    // Never negative, and at most 80.
    (bits * 10.0 + 0.001) as u32
}

/// The sorts of characters in a text.
#[derive(Clone, Copy, Debug, Default)]
struct Classes {
    lower: usize,
    upper: usize,
    digits: usize,
    /// Neither letters, digits nor what joins words.
    special: usize,
}

impl Classes {
    fn of(text: &[u8]) -> Classes {
        let mut classes = Classes::default();
        for byte in text {
            match byte {
                b'a'..=b'z' => classes.lower += 1,
                b'A'..=b'Z' => classes.upper += 1,
                b'0'..=b'9' => classes.digits += 1,
                b'-' | b'_' | b'.' | b'/' => {}
                _ => classes.special += 1,
            }
        }
        classes
    }

    fn count(self) -> usize {
        [self.lower, self.upper, self.digits, self.special].into_iter().filter(|count| *count > 0).count()
    }

    fn is_mixed(self) -> bool {
        self.digits > 0 && self.lower + self.upper > 0
    }
}

fn is_key(name: &[u8], whole: &[u8], secret: &[u8]) -> bool {
    let is_any_key = whole.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(b"key"));
    if NO_SECRETS.is_match(name) || is_any_key && !KEYS_TO.is_match(name) {
        return false;
    }
    is_random(secret)
}

/// Returns true if a value is random text, and not a name, a place or a hash.
fn is_random(secret: &[u8]) -> bool {
    let is_hex = secret.iter().all(u8::is_ascii_hexdigit);
    let is_random = if is_hex { secret.len() >= 32 } else { entropy_tenths(secret) >= 33 };
    is_random
        && !is_words(secret)
        && !stands_for_something(secret)
        && !is_hash(secret)
        && !is_placeholder(secret)
}

/// Returns true if a value begins like a hash of a password, or with the name of the function that makes it.
fn is_hash(value: &[u8]) -> bool {
    // An OpenShift token begins with the name of a hash as well.
    let is_token = contains(value, b"~");
    let begins =
        |name: &str| value.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()));
    !is_token && HASHES.iter().any(|name| begins(name))
}

/// How a password is introduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wording {
    /// `PASSWORD=…`, or a value in quotes: what follows is a value, whatever it looks like.
    Value,
    /// `password: …`: a value, or a remark.
    Label,
    /// `the password is …`: a value, or a sentence.
    Prose,
}

impl Wording {
    fn of(whole: &[u8], secret: &[u8]) -> Wording {
        let before = &whole[..whole.len() - secret.len()];
        // The pattern may match what follows the secret, too.
        let before = memchr::memmem::find(whole, secret).map_or(before, |at| &whole[..at]);
        match before.last() {
            Some(b'"' | b'\'' | b'`' | b'=' | b'>') => Wording::Value,
            Some(_) if before.contains(&b':') || before.contains(&b'=') || before.contains(&b'|') => {
                Wording::Label
            }
            _ => Wording::Prose,
        }
    }
}

fn is_password(whole: &[u8], secret: &[u8]) -> bool {
    let wording = Wording::of(whole, secret);
    let value = trimmed(secret);
    let classes = Classes::of(value);
    let is_one_word = !value.iter().any(|byte| matches!(byte, b'-' | b'_' | b'.' | b'/'));
    let is_long = value.len() >= 8;
    let is_strong = match classes.count() {
        _ if classes.lower + classes.upper == 0 => false,
        0 | 1 => false,
        // A word in two cases: `challengePassword`.
        2 if classes.special == 0 && classes.digits == 0 => false,
        2 if classes.special > 0 => is_long && (wording == Wording::Value || has_mark_inside(value)),
        2 => match wording {
            Wording::Value => is_one_word || !is_words(value) || is_words_and_number(value),
            Wording::Label | Wording::Prose => {
                is_long && classes.digits > 1 && (is_one_word || is_words_and_number(value))
            }
        },
        _ if wording == Wording::Value => true,
        // `pass` and `pw` have other meanings too.
        _ if is_vague_name(whole) => is_long && (classes.special > 0 || classes.digits > 1),
        _ => is_long,
    };
    // Names of things have such a form as well: `lighthouse-staging-2`, `settings.password_2`.
    let is_name = !is_one_word && is_words(value) && !is_words_and_number(value);
    let is_password = is_strong && value.len() >= 6 && !is_name || is_joined_phrase(value);
    is_password
        && !stands_for_something(value)
        && !is_reference(secret)
        && !is_hash(value)
        && !is_placeholder(value)
}

/// Returns true if what introduces a password is only `pass` or `pw`.
fn is_vague_name(whole: &[u8]) -> bool {
    let letters = whole.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    whole[..letters].eq_ignore_ascii_case(b"pass") || whole[..letters].eq_ignore_ascii_case(b"pw")
}

/// Returns true if a value has a mark between letters that no name or sentence has there.
fn has_mark_inside(value: &[u8]) -> bool {
    let is_mark = |byte: &u8| matches!(byte, b'!' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'~' | b'@');
    value
        .windows(3)
        .any(|part| part[0].is_ascii_alphanumeric() && is_mark(&part[1]) && part[2].is_ascii_alphanumeric())
}

/// Returns true if a value is made of words and a number, as passwords often are: `foghorn-2031-lamp`, `Bluebird_1977`, `Moonlight-88`.
///
/// Names of things are so, too. They have one case, and a short number if any: `lighthouse-staging-2`, `DB_PASSWORD_12`.
fn is_words_and_number(value: &[u8]) -> bool {
    let classes = Classes::of(value);
    let is_mixed_case = classes.lower > 0 && classes.upper > 0;
    let least = if is_mixed_case { 2 } else { 3 };
    let mut parts = value.split(|byte| matches!(byte, b'-' | b'_'));
    let has_number = parts.any(|part| {
        let letters = part.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let is_number = part.len() - letters >= least && part[letters..].iter().all(u8::is_ascii_digit);
        is_number && (letters == 0 || is_mixed_case && value.contains(&b'_'))
    });
    let is_identifier = value.contains(&b'_') && !is_mixed_case;
    let is_path = value.iter().any(|byte| matches!(byte, b'.' | b'/'));
    has_number && classes.lower + classes.upper >= 6 && !is_identifier && !is_path
}

/// Returns true if a value is four or more ordinary words with dashes between them.
fn is_joined_phrase(value: &[u8]) -> bool {
    let words = || value.split(|byte| *byte == b'-');
    let is_word = |word: &[u8]| (3..=10).contains(&word.len()) && word.iter().all(u8::is_ascii_lowercase);
    words().count() >= 4 && words().all(|word| is_word(word) && !is_common(word))
}

/// Returns true if a value is a passphrase: four or more words, none of which belongs to a sentence about passphrases.
fn is_phrase(value: &[u8]) -> bool {
    let words = value.split(|byte| !byte.is_ascii_lowercase()).filter(|word| !word.is_empty());
    words.take_while(|word| !is_common(word)).count() >= 4
}

/// Words of sentences about passwords and passphrases.
const COMMON_WORDS: &[&str] = &[
    "about",
    "after",
    "again",
    "all",
    "also",
    "always",
    "any",
    "anyone",
    "anywhere",
    "asked",
    "because",
    "been",
    "before",
    "being",
    "but",
    "by",
    "can",
    "changed",
    "checked",
    "chosen",
    "derived",
    "different",
    "each",
    "encrypted",
    "entered",
    "ever",
    "every",
    "few",
    "four",
    "given",
    "handed",
    "has",
    "have",
    "how",
    "if",
    "into",
    "its",
    "just",
    "keep",
    "kept",
    "known",
    "least",
    "less",
    "locked",
    "lost",
    "made",
    "may",
    "more",
    "must",
    "needed",
    "never",
    "now",
    "once",
    "only",
    "our",
    "own",
    "printed",
    "private",
    "read",
    "reset",
    "rotated",
    "safe",
    "saved",
    "set",
    "shared",
    "should",
    "shown",
    "since",
    "sent",
    "six",
    "still",
    "stored",
    "supplied",
    "taken",
    "than",
    "their",
    "them",
    "then",
    "there",
    "they",
    "through",
    "too",
    "twelve",
    "typed",
    "unless",
    "until",
    "used",
    "using",
    "valid",
    "vault",
    "was",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "will",
    "without",
    "words",
    "wrong",
    "written",
];

fn is_common(word: &[u8]) -> bool {
    let is = |known: &&str| known.as_bytes() == word;
    COMMON_WORDS.iter().any(&is) || FILLER_WORDS.iter().any(&is) || PLACEHOLDER_WORDS.iter().any(is)
}

/// Addresses on which only this machine listens.
static NOWHERE: Parts =
    LazyLock::new(|| parts(&["@localhost", "@127.", "@[::1]", "@0.0.0.0", "@host.docker.internal"]));

fn is_password_of_address(whole: &[u8], secret: &[u8]) -> bool {
    let user = &whole[3..whole.len().min(3 + whole[3..].iter().take_while(|byte| **byte != b':').count())];
    let is_only_digits = secret.iter().all(u8::is_ascii_digit);
    let is_short = secret.len() < 6 && Classes::of(secret).count() < 2;
    !user.eq_ignore_ascii_case(secret)
        && !is_only_digits
        && !is_short
        && !is_reference(secret)
        && !is_placeholder(secret)
        && !NOWHERE.is_match(whole)
}

/// Returns true if an argument of a command is a password, where a password belongs.
fn is_password_of_command(secret: &[u8]) -> bool {
    let classes = Classes::of(secret);
    let is_short = secret.len() < 6 && classes.count() < 2;
    let is_only_digits = secret.iter().all(u8::is_ascii_digit);
    let is_name = secret.contains(&b'-')
        && is_words(secret)
        && !is_words_and_number(secret)
        && !is_joined_phrase(secret);
    !is_short && !is_only_digits && !is_name && !stands_for_something(secret) && !is_placeholder(secret)
}

/// Returns true if a value is the base64 of a user's name and password.
fn is_credentials(secret: &[u8]) -> bool {
    let digits = secret.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    let decoded = decode::from_base64(&secret[..digits]);
    let is_text = decoded.iter().all(|byte| matches!(byte, b' '..=b'~'));
    let Some(colon) = memchr::memchr(b':', &decoded) else { return false };
    let (user, password) = (&decoded[..colon], &decoded[colon + 1..]);
    is_text && password.len() >= 4 && user != password && !is_reference(password) && !is_placeholder(password)
}

/// Takes punctuation off the end of a value in prose.
fn trimmed(text: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| matches!(byte, b'.' | b')' | b'*' | b':' | b']' | b'}');
    let length = text.iter().rev().skip_while(|byte| is_end(byte)).count();
    &text[..length]
}

/// Returns true if a value names something instead of being it.
fn stands_for_something(value: &[u8]) -> bool {
    is_reference(value) || is_uuid(value) || is_moment(value) || is_place(value)
}

/// Returns true if a value is a variable, a call or a mark of a template.
fn is_reference(value: &[u8]) -> bool {
    let rest_is_name = |rest: &[u8]| rest.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    match value {
        [b'$', b'{' | b'(' | b'[', ..] | [b'{' | b'<' | b'[' | b'(' | b'@' | b'&' | b'*', ..] => true,
        [b'$', rest @ ..] => rest_is_name(rest),
        // A tag of YAML.
        [b'!', rest @ ..] => rest.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_'),
        [b'%', rest @ ..] => rest_is_name(rest) || rest.ends_with(b"%") || rest.starts_with(b"("),
        _ => is_call(value) || contains(value, b"${") || contains(value, b"{{") || contains(value, b"$("),
    }
}

/// Returns true if a value is a call or an access to a member: `get(`, `config.get()`, `tokens[0]`, `Foo{}`, `Option<T>::from(x)`.
fn is_call(value: &[u8]) -> bool {
    let is_name =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-' | b'&' | b'?');
    let Some(bracket) = value.iter().position(|byte| !is_name(byte)) else { return false };
    let opens = matches!(value[bracket], b'(' | b'[' | b'{');
    let is_rest_code = match value[bracket + 1..] {
        [] => true,
        [.., last] => matches!(last, b')' | b']' | b'}' | b'(' | b'?' | b':' | b'.'),
    };
    bracket > 0 && opens && is_rest_code
}

fn is_uuid(value: &[u8]) -> bool {
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, byte): (usize, &u8)| if is_dash(at) { *byte == b'-' } else { byte.is_ascii_hexdigit() };
    value.len() == 36 && value.iter().enumerate().all(fits)
}

/// Returns true if a value is a date, a time, a version or an amount.
fn is_moment(value: &[u8]) -> bool {
    let fits =
        |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'.' | b'T' | b'Z' | b'+' | b'v');
    value.iter().all(fits)
}

/// Returns true if a value is made of words and numbers, as names of things and identifiers are.
fn is_words(value: &[u8]) -> bool {
    let is_word = |part: &[u8]| {
        let letters = part.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let numbers = part[letters..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_name = letters + numbers == part.len() && numbers <= 4;
        is_name || part.len() <= 4 || part.iter().all(u8::is_ascii_digit)
    };
    let is_joint = |byte: &u8| matches!(byte, b'-' | b'_' | b'.' | b'/' | b'+' | b'=' | b'~');
    value.split(is_joint).all(is_word)
}

/// Returns true if a value is a path, an address or the name of a file.
fn is_place(value: &[u8]) -> bool {
    let starts = [&b"/"[..], b"./", b"../", b"~/", b"http", b"www."];
    let ends = [
        ".md", ".json", ".jsonl", ".toml", ".yaml", ".yml", ".txt", ".env", ".rs", ".py", ".ts", ".js",
        ".pem",
    ];
    let has_mark = |mark: &[u8]| value.windows(mark.len()).any(|window| window == mark);
    let is_mail = value.iter().position(|byte| *byte == b'@').is_some_and(|at| value[at..].contains(&b'.'));
    starts.iter().any(|start| value.starts_with(start))
        || ends.iter().any(|end| value.to_ascii_lowercase().ends_with(end.as_bytes()))
        || has_mark(b"://")
        || is_mail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholder_is_nothing_but_placeholder_words() {
        for value in [
            "changeme",
            "changeme123",
            "your-token-here",
            "YOUR_API_KEY_HERE_123",
            "mysecretpassword",
            "Secret1",
            "test1234",
            "xxxxxxxx",
            "hunter2",
            "1Password",
            "x-oauth-basic",
            "12345678",
        ] {
            assert!(is_placeholder(value.as_bytes()), "{value}");
        }
        for value in [
            "MySecretPass99",
            "MyTestSecret7",
            "TestUser2024",
            "rabbit12345678x",
            "Changeme!2031",
            "Hunter2Hunter",
            "Secret#2025",
            "sunshine",
            "root",
        ] {
            assert!(!is_placeholder(value.as_bytes()), "{value}");
        }
    }
}

//! Whether what a pattern found is a secret, or only stands where one could.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::rules::{Form, Rule};

/// What a pattern found.
pub(super) struct Candidate<'a> {
    /// The rest of a name before it.
    pub(super) name: &'a [u8],
    /// All that the pattern matched.
    pub(super) whole: &'a [u8],
    /// What would be the secret.
    pub(super) secret: &'a [u8],
}

/// Parts of texts, whatever their case, all looked for at once.
type Parts = LazyLock<AhoCorasick>;

fn parts(parts: &[&str]) -> AhoCorasick {
    AhoCorasick::builder().ascii_case_insensitive(true).build(parts).expect("a few short words")
}

/// Parts of what people write in the place of a secret; no random text has one of them by chance.
static PLACEHOLDERS: Parts = LazyLock::new(|| {
    parts(&[
        "example",
        "placeholder",
        "changeme",
        "change_me",
        "redacted",
        "xxxxx",
        "*****",
        ".....",
        "00000000",
        "11111111",
        "12345678",
        "23456789",
        "87654321",
        "abcdefgh",
        "ghijklmn",
        "deadbeef",
        "your_",
        "your-",
        // How the token begins that is shown wherever such tokens are explained.
        "eyJzdWIiOiIxMjM0NTY3ODkw",
    ])
});

/// More of them, of which a random text can have one: these count only where the form of a secret is open.
static WORDS: Parts = LazyLock::new(|| {
    parts(&[
        "your",
        "dummy",
        "sample",
        "test",
        "fake",
        "mock",
        "demo",
        "password",
        "passwd",
        "passwort",
        "secret",
        "token",
        "hidden",
        "masked",
        "none",
        "null",
        "undefined",
        "todo",
        "fixme",
        "insert",
        "replace",
        "enter",
        "lorem",
        "foobar",
        "hunter2",
        "letmein",
        "qwerty",
        "xxx",
        "***",
        "...",
        "argon2",
        "bcrypt",
        "scrypt",
        "pbkdf2",
        "sha256",
        "sha512",
        "sha1",
        "base64",
        "oauth2",
        "keychain",
    ])
});

/// What a key is the key to, if it is a secret.
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

/// What tokens and keys are called that are no secrets: places in a list, words of a model, colors.
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

/// Tells whether what a rule found is a secret.
pub(super) fn is_secret(rule: &Rule, candidate: &Candidate<'_>) -> bool {
    let &Candidate { name, whole, secret } = candidate;
    // Seen at once, and never so in a secret of open form: that keeps texts cheap that only talk about secrets.
    let is_open = matches!(rule.form, Form::Mixed | Form::Key);
    if is_open && !Classes::of(secret).is_mixed() {
        return false;
    }
    if entropy_tenths(secret) < rule.entropy || PLACEHOLDERS.is_match(secret) {
        return false;
    }
    match rule.form {
        Form::Token | Form::Mixed => true,
        Form::Key => is_key(name, whole, secret),
        Form::Password => is_password(secret),
        Form::Address => is_password_of_address(whole, secret),
    }
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

/// Which sorts of characters a text has.
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
    let is_hex = secret.iter().all(u8::is_ascii_hexdigit);
    let is_random = if is_hex { secret.len() >= 32 } else { entropy_tenths(secret) >= 33 };
    is_random && !is_words(secret) && !stands_for_something(secret) && !WORDS.is_match(secret)
}

fn is_password(secret: &[u8]) -> bool {
    let secret = trimmed(secret);
    let classes = Classes::of(secret);
    let is_one_word = !secret.iter().any(|byte| matches!(byte, b'-' | b'_' | b'.' | b'/'));
    let is_strong = match classes.count() {
        _ if classes.lower + classes.upper == 0 => false,
        0 | 1 => false,
        2 => classes.digits > 1 && is_one_word && secret.len() >= 10,
        _ => true,
    };
    // One word with a number behind it is a name, but also what people take for a password.
    let is_name = !is_one_word && is_words(secret);
    is_strong && secret.len() >= 8 && !is_name && !stands_for_something(secret) && !WORDS.is_match(secret)
}

/// Where only this machine listens, or nobody does.
static NOWHERE: Parts = LazyLock::new(|| {
    parts(&["@localhost", "@127.", "@[::1]", "@0.0.0.0", "@host.docker.internal", "@example.", ".example"])
});

fn is_password_of_address(whole: &[u8], secret: &[u8]) -> bool {
    let user = &whole[3..whole.len().min(3 + whole[3..].iter().take_while(|byte| **byte != b':').count())];
    let is_only_digits = secret.iter().all(u8::is_ascii_digit);
    let is_short = secret.len() < 6 && Classes::of(secret).count() < 2;
    !user.eq_ignore_ascii_case(secret)
        && !is_only_digits
        && !is_short
        && !is_reference(secret)
        && !WORDS.is_match(secret)
        && !NOWHERE.is_match(whole)
}

/// Takes punctuation off the end of a value in prose.
fn trimmed(text: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| matches!(byte, b'.' | b')' | b'*' | b':' | b']' | b'}');
    let length = text.iter().rev().skip_while(|byte| is_end(byte)).count();
    &text[..length]
}

/// Tells whether a value names something instead of being it.
fn stands_for_something(value: &[u8]) -> bool {
    is_reference(value) || is_uuid(value) || is_moment(value) || is_place(value)
}

/// Tells whether a value is a variable, a call or a mark of a template.
fn is_reference(value: &[u8]) -> bool {
    let rest_is_name = |rest: &[u8]| rest.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    match value {
        [b'$', b'{' | b'(' | b'[', ..] | [b'{' | b'<' | b'[' | b'(' | b'@' | b'&' | b'*', ..] => true,
        [b'$' | b'!', rest @ ..] => rest_is_name(rest),
        [b'%', rest @ ..] => rest_is_name(rest) || rest.ends_with(b"%"),
        _ => value.iter().any(|byte| matches!(byte, b'(' | b'{' | b'[')),
    }
}

fn is_uuid(value: &[u8]) -> bool {
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, byte): (usize, &u8)| if is_dash(at) { *byte == b'-' } else { byte.is_ascii_hexdigit() };
    value.len() == 36 && value.iter().enumerate().all(fits)
}

/// Tells whether a value is a date, a time, a version or an amount.
fn is_moment(value: &[u8]) -> bool {
    let fits =
        |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'.' | b'T' | b'Z' | b'+' | b'v');
    value.iter().all(fits)
}

/// Tells whether a value is made of words and numbers, as names of things and identifiers are.
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

/// Tells whether a value is a path, an address or the name of a file.
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

//! What never leaves this machine by itself: private keys, and settings and transcripts of agents.

use haversack::store::Locator;
use haversack::sync::Gate;

/// Holds back what is private by its name or its first line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NothingPrivate;

/// Names of files that hold keys or settings.
const PRIVATE_NAMES: [&str; 12] = [
    ".env",
    ".netrc",
    ".credentials.json",
    "credentials.json",
    "settings.json",
    "settings.local.json",
    ".claude.json",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".htpasswd",
];

/// Endings of files that hold keys.
const PRIVATE_ENDINGS: [&str; 6] = [".pem", ".key", ".p12", ".pfx", ".keystore", ".kdbx"];

/// How much of a file is looked at for the beginning of a key.
const LOOKED_AT_BYTES: usize = 64 * 1024;

impl Gate for NothingPrivate {
    fn holds(&self, locator: &Locator, content: &[u8]) -> Option<String> {
        let name = locator.name().to_lowercase();
        let start = &content[..content.len().min(LOOKED_AT_BYTES)];
        let text = String::from_utf8_lossy(start);
        if PRIVATE_NAMES.contains(&name.as_str()) || name.starts_with(".env.") {
            return Some("a file of this name holds keys or settings".to_owned());
        }
        if PRIVATE_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            return Some("a file with this ending holds a key".to_owned());
        }
        if text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----") {
            return Some("it holds a private key".to_owned());
        }
        let is_transcript = |line: &str| line.contains("\"sessionId\":") && line.contains("\"parentUuid\":");
        if name.ends_with(".jsonl") && text.lines().take(20).any(is_transcript) {
            return Some("it is the transcript of a session".to_owned());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_private_stays() {
        let transcript = r#"{"parentUuid":null,"sessionId":"7f3a","type":"user"}"#;
        let cases = [
            ("notes.md", "the key is in the safe", false),
            ("keys.md", "BEGIN with a private key", false),
            ("log.jsonl", "{\"sessionId\":\"7f3a\"}\n", false),
            ("claude_memory/lighthouse/.env", "A=1", true),
            ("deep/ID_RSA", "x", true),
            ("server.PEM", "x", true),
            ("notes.md", "see:\n-----BEGIN OPENSSH PRIVATE KEY-----\nabc", true),
            ("7f3a.jsonl", transcript, true),
            ("settings.json", "{}", true),
        ];
        for (name, content, is_held) in cases {
            let locator = Locator::parse(name).expect("valid");
            assert_eq!(
                NothingPrivate.holds(&locator, content.as_bytes()).is_some(),
                is_held,
                "{name}: {content}"
            );
        }
    }
}

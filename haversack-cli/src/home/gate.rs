//! Holds back files that must not leave this machine: secrets, settings and transcripts of agents.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use haversack::document::Document;
use haversack::ids::ContentHash;
use haversack::secrets::{self, Finding, Fingerprint, MAX_FINDINGS};
use haversack::store::Locator;
use haversack::sync::{Gate, Hold};

use crate::agents;
use crate::error::CommandError;
use crate::home::allowlist;
use crate::settings::Settings;
use crate::ui::paths::quoted;

/// Holds back files that are private by name or content.
#[derive(Debug, Default)]
pub(crate) struct NothingPrivate {
    /// Secrets that may be sent all the same.
    allowed: Vec<Fingerprint>,
    /// Tells if a file of an agent's memory is sent without frontmatter.
    frontmatter: Frontmatter,
    /// The findings in contents that were checked before: a held file is checked again in every round of a sync.
    seen: Mutex<BTreeMap<ContentHash, Vec<Finding>>>,
}

/// The requirement for files in agents' memory directories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Frontmatter {
    /// A file without frontmatter is carried as plain text.
    #[default]
    Optional,
    /// It stays here until it has frontmatter: the persona is set up, which finds its files by it.
    Required,
}

/// Why a file without frontmatter stays here.
const NO_FRONTMATTER: &str =
    "it has no frontmatter, and with the persona set up (haversack setup --persona) none is sent without";

/// The directory of agents' memories in a store.
const AGENT_MEMORIES: &str = "claude_memory/";

/// The index of a memory, which has no frontmatter.
const INDEX: &str = "MEMORY.md";

/// Names of files that hold keys or settings.
const PRIVATE_NAMES: [&str; 20] = [
    ".env",
    ".mcp.json",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".dockercfg",
    "kubeconfig",
    "auth.json",
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

/// The number of bytes of a file that are read to recognise a transcript.
const LOOKED_AT_BYTES: usize = 64 * 1024;

/// The most secrets of a file that are named.
const MAX_NAMED: usize = 3;

impl NothingPrivate {
    /// Returns the gate of a home.
    pub(crate) fn of(settings: &Settings) -> Result<NothingPrivate, CommandError> {
        let allowed = allowlist::of(settings)?.into_iter().map(|allowed| allowed.fingerprint).collect();
        let frontmatter = match agents::has_persona(settings) {
            true => Frontmatter::Required,
            false => Frontmatter::Optional,
        };
        Ok(NothingPrivate { allowed, frontmatter, seen: Mutex::default() })
    }

    /// Returns the gate for plain copies, which carry any text.
    pub(crate) fn for_copies(self) -> NothingPrivate {
        NothingPrivate { frontmatter: Frontmatter::Optional, ..self }
    }

    /// Returns why a file of an agent's memory stays here for its form.
    fn formless(&self, locator: &Locator, content: &[u8]) -> Option<Hold> {
        let is_memory = locator.as_str().starts_with(AGENT_MEMORIES)
            && locator.name() != INDEX
            && locator.name().to_lowercase().ends_with(".md");
        if self.frontmatter == Frontmatter::Optional || !is_memory {
            return None;
        }
        let has_frontmatter =
            std::str::from_utf8(content).is_ok_and(|text| Document::read(text).frontmatter.is_some());
        (!has_frontmatter).then(|| Hold::whole(NO_FRONTMATTER))
    }

    /// Returns the secrets in a content that may not be sent.
    pub(crate) fn secrets(&self, content: &[u8]) -> Vec<Finding> {
        let hash = ContentHash::of(content);
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(&hash).cloned();
        let found = seen.unwrap_or_else(|| {
            let found = secrets::find(content);
            if !found.is_empty() {
                self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(hash, found.clone());
            }
            found
        });
        if found.len() == MAX_FINDINGS {
            // The list is cut: the user cannot have allowed all of them.
            return found;
        }
        found.into_iter().filter(|finding| !self.allowed.contains(&finding.fingerprint)).collect()
    }
}

impl Gate for NothingPrivate {
    fn holds(&self, locator: &Locator, content: &[u8]) -> Option<Hold> {
        private(locator, content)
            .or_else(|| hold(&self.secrets(content)))
            .or_else(|| self.formless(locator, content))
    }

    fn still_holds(&self, locator: &Locator, content: &[u8], sent: &[u8]) -> Option<Hold> {
        let found = self.secrets(content);
        if let Some(hold) =
            private(locator, content).or_else(|| (found.len() == MAX_FINDINGS).then(|| hold(&found))?)
        {
            return Some(hold);
        }
        // The remote has these already: the machine that sent them had allowed them.
        let sent: Vec<Fingerprint> = self.secrets(sent).iter().map(|finding| finding.fingerprint).collect();
        let new: Vec<Finding> =
            found.into_iter().filter(|found| !sent.contains(&found.fingerprint)).collect();
        hold(&new).or_else(|| self.formless(locator, content))
    }
}

/// Returns the reason why a file is private, by its name or its format.
fn private(locator: &Locator, content: &[u8]) -> Option<Hold> {
    let name = own_name(&locator.name().to_lowercase());
    if PRIVATE_NAMES.contains(&name.as_str()) || name.starts_with(".env.") {
        return Some(Hold::whole("a file of this name holds keys or settings"));
    }
    if PRIVATE_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        return Some(Hold::whole("a file with this ending holds a key"));
    }
    if let Some(finding) = secrets::find(locator.as_str().as_bytes()).first() {
        return Some(Hold::whole(format!("its name holds {} ({})", finding.rule.name, finding.rule.id)));
    }
    let is_transcript = |line: &str| line.contains("\"sessionId\":") && line.contains("\"parentUuid\":");
    let start = || String::from_utf8_lossy(&content[..content.len().min(LOOKED_AT_BYTES)]);
    if name.ends_with(".jsonl") && start().lines().take(20).any(is_transcript) {
        return Some(Hold::whole("it is the transcript of a session"));
    }
    None
}

/// Returns the name of a file before its copy or twin got another name: the content is the same.
fn own_name(name: &str) -> String {
    let is_mark = |part: &&str| {
        let mark = part.strip_prefix("conflict-").or_else(|| part.strip_prefix("case-"));
        mark.is_some_and(|mark| mark.len() == 8 && mark.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    name.split('.').filter(|part| !is_mark(part)).collect::<Vec<_>>().join(".")
}

fn hold(found: &[Finding]) -> Option<Hold> {
    if found.is_empty() {
        return None;
    }
    let named = found.iter().take(MAX_NAMED);
    let mut parts: Vec<String> = named
        .map(|finding| format!("line {} holds {} ({})", finding.line, finding.rule.name, finding.rule.id))
        .collect();
    match found.len().saturating_sub(MAX_NAMED) {
        0 => {}
        1 => parts.push("1 more".to_owned()),
        more => parts.push(format!("{more} more")),
    }
    let mut lines: Vec<usize> = found.iter().map(|finding| finding.line).collect();
    lines.dedup();
    Some(Hold::lines(parts.join("; "), lines))
}

/// Returns a file's name for people: a name that holds a secret is not repeated.
pub(crate) fn named(locator: &Locator) -> String {
    if secrets::find(locator.as_str().as_bytes()).is_empty() {
        return locator.to_string();
    }
    let start: String = locator.as_str().chars().take(NAME_START).collect();
    format!("{start}…")
}

/// The number of characters that are shown of a name with a secret.
const NAME_START: usize = 4;

/// Returns the cure for a held file.
pub(crate) fn cure(locator: &Locator, hold: &Hold) -> String {
    if hold.why == NO_FRONTMATTER {
        let title = locator.name().rsplit_once('.').map_or(locator.name(), |(title, _)| title);
        return format!(
            "add frontmatter at its top: printf -- '---\\nname: %s\\n---\\n\\n' {} | haversack insert {} 0",
            quoted(title),
            quoted(&named(locator))
        );
    }
    let places: Vec<String> =
        hold.lines.iter().take(MAX_NAMED).map(|line| quoted(&format!("{locator}:{line}"))).collect();
    match places.len() {
        0 => format!("change it, or give it another name: haversack rename {} NAME", rename_name(locator)),
        1 => format!("edit the line, or, if it may be sent: haversack allow {}", places[0]),
        _ => format!("edit the lines, or, if they may be sent: haversack allow {}", places.join(" ")),
    }
}

/// Returns the name of a file for a command; the start of a name that holds a secret is no name for a shell.
fn rename_name(locator: &Locator) -> String {
    let shown = named(locator);
    if shown == locator.as_str() { quoted(&shown) } else { shown }
}

/// Files that are held back and have one cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldFiles {
    pub(crate) count: usize,
    /// The files and the reasons. If there are several, each has its own line below the first line.
    pub(crate) what: String,
    pub(crate) cure: String,
}

/// The words for a file that is not sent, and for several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wording {
    one: &'static str,
    several: &'static str,
}

/// The words for the state of a home.
pub(crate) const HELD_BACK: Wording = Wording { one: "is held back", several: "are held back" };

/// The words for the outcome of a sync.
pub(crate) const STAYS: Wording = Wording { one: "stays on this machine", several: "stay on this machine" };

/// Groups held files by their cure. A group names at most `limit` files.
pub(crate) fn grouped(held: &[(Locator, Hold)], wording: Wording, limit: usize) -> Vec<HeldFiles> {
    let is_secret = |hold: &Hold| !hold.lines.is_empty();
    let is_formless = |hold: &Hold| hold.why == NO_FRONTMATTER;
    let of =
        |is_meant: &dyn Fn(&Hold) -> bool| held.iter().filter(|(_, hold)| is_meant(hold)).collect::<Vec<_>>();
    let groups = [of(&is_secret), of(&is_formless), of(&|hold| !is_secret(hold) && !is_formless(hold))];
    groups.iter().filter(|group| !group.is_empty()).map(|group| held_files(group, wording, limit)).collect()
}

/// Returns one group. It is not empty.
fn held_files(group: &[&(Locator, Hold)], wording: Wording, limit: usize) -> HeldFiles {
    let count = group.len();
    let (first, hold) = group[0];
    if count == 1 {
        let what = format!("{} {}: {}", named(first), wording.one, hold.why);
        return HeldFiles { count, what, cure: cure(first, hold) };
    }
    let shown = &group[..count.min(limit)];
    let mut what = format!("{count} files {}", wording.several);
    let is_formless = hold.why == NO_FRONTMATTER;
    if is_formless {
        what.push_str(": they have no frontmatter, and with the persona set up (haversack setup --persona) none is sent without");
    }
    for (locator, hold) in shown {
        let why = if is_formless { String::new() } else { format!(": {}", hold.why) };
        what.push_str(&format!("\n{}{why}", named(locator)));
    }
    if count > shown.len() {
        what.push_str(&format!(
            "\n… and {} more that {}: haversack status --all",
            count - shown.len(),
            wording.several
        ));
    }
    let places: Vec<String> = shown
        .iter()
        .flat_map(|(locator, hold)| {
            hold.lines.iter().take(MAX_NAMED).map(move |line| format!("{locator}:{line}"))
        })
        .map(|place| quoted(&place))
        .collect();
    let cure = match (is_formless, places.is_empty()) {
        (true, _) => format!("for each of them, {}", cure(first, hold)),
        (false, true) => {
            format!("change them, or give them other names: haversack rename {} NAME", quoted(&named(first)))
        }
        (false, false) => {
            format!("edit the lines, or, if they may be sent: haversack allow {}", places.join(" "))
        }
    };
    HeldFiles { count, what, cure }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(gate: &NothingPrivate, name: &str, content: &str) -> Option<Hold> {
        gate.holds(&Locator::parse(name).expect("valid"), content.as_bytes())
    }

    /// Returns something that looks like a token, and no other has.
    fn token(seed: &str) -> String {
        format!("gh{}_{}", "p", &ContentHash::of(seed.as_bytes()).to_string()[..36])
    }

    #[test]
    fn what_is_private_stays() {
        let transcript = r#"{"parentUuid":null,"sessionId":"7f3a","type":"user"}"#;
        let body = ContentHash::of(b"lamp").to_string();
        let key = format!("see:\n-----BEGIN OPENSSH {} KEY-----\n{body}", "PRIVATE");
        let cases = [
            ("notes.md", "the key is in the safe", false),
            ("keys.md", "BEGIN with a private key", false),
            ("log.jsonl", "{\"sessionId\":\"7f3a\"}\n", false),
            ("claude_memory/lighthouse/.env", "A=1", true),
            ("deep/ID_RSA", "x", true),
            ("server.PEM", "x", true),
            ("notes.md", &key, true),
            ("7f3a.jsonl", transcript, true),
            ("settings.json", "{}", true),
            ("claude_memory/lighthouse/.mcp.json", "{}", true),
            (".npmrc", "x", true),
            (".pypirc", "x", true),
            (".git-credentials", "x", true),
            (".pgpass", "x", true),
            ("kubeconfig", "x", true),
            ("auth.json", "{}", true),
            (".dockercfg", "{}", true),
            ("npmrc.md", "x", false),
            ("ID_RSA.case-12ab34cd", "x", true),
            ("Credentials.case-12ab34cd.json", "{}", true),
            ("id_ed25519.conflict-00ff00ff", "x", true),
            (&format!("{}.md", token("1")), "x", true),
        ];
        for (name, content, is_held) in cases {
            assert_eq!(
                holds(&NothingPrivate::default(), name, content).is_some(),
                is_held,
                "{name}: {content}"
            );
        }
    }

    #[test]
    fn memory_without_frontmatter_stays_only_with_the_persona() {
        let with_persona = NothingPrivate { frontmatter: Frontmatter::Required, ..NothingPrivate::default() };
        let plain = "the lamp is lit\n";
        let whole = "---\nname: lamp\n---\n\nthe lamp is lit\n";
        for (name, content, is_held) in [
            ("claude_memory/lighthouse/lamp.md", plain, true),
            ("claude_memory/lighthouse/deep/lamp.MD", plain, true),
            ("claude_memory/lighthouse/lamp.md", whole, false),
            ("claude_memory/lighthouse/MEMORY.md", plain, false),
            ("claude_memory/lighthouse/log.jsonl", "{}\n", false),
            ("notes/lamp.md", plain, false),
        ] {
            assert_eq!(holds(&with_persona, name, content).is_some(), is_held, "{name}: {content}");
            assert_eq!(holds(&NothingPrivate::default(), name, content), None, "{name}: {content}");
        }
        let locator = Locator::parse("claude_memory/lighthouse/my lamp.md").expect("valid");
        let hold = with_persona.still_holds(&locator, b"more\n", b"some\n").expect("held");
        assert_eq!(
            cure(&locator, &hold),
            "add frontmatter at its top: printf -- '---\\nname: %s\\n---\\n\\n' 'my lamp' | haversack insert 'claude_memory/lighthouse/my lamp.md' 0"
        );
    }

    #[test]
    fn held_files_are_grouped_by_their_cure() {
        let locator = |name: &str| Locator::parse(name).expect("valid");
        let secret = |name: &str| (locator(name), Hold::lines("line 2 holds a key (key)", vec![2]));
        let private = |name: &str| (locator(name), Hold::whole("a file of this name holds keys or settings"));
        let held = [secret("a.md"), private(".env"), secret("b.md")];
        let expected = [
            HeldFiles {
                count: 2,
                what: "2 files are held back\na.md: line 2 holds a key (key)\nb.md: line 2 holds a key (key)"
                    .to_owned(),
                cure: "edit the lines, or, if they may be sent: haversack allow a.md:2 b.md:2".to_owned(),
            },
            HeldFiles {
                count: 1,
                what: ".env is held back: a file of this name holds keys or settings".to_owned(),
                cure: "change it, or give it another name: haversack rename .env NAME".to_owned(),
            },
        ];
        assert_eq!(grouped(&held, HELD_BACK, 5), expected);
        let many: Vec<_> = (0..21).map(|number| secret(&format!("{number:02}.md"))).collect();
        let groups = grouped(&many, HELD_BACK, 5);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].what.lines().count(), 7, "{}", groups[0].what);
        assert!(
            groups[0].what.ends_with("… and 16 more that are held back: haversack status --all"),
            "{}",
            groups[0].what
        );
        let all = &grouped(&many, HELD_BACK, usize::MAX)[0];
        assert!(all.what.lines().count() == 22 && all.what.contains("\n20.md: "), "{}", all.what);
        assert!(all.cure.ends_with(" 20.md:2"), "{}", all.cure);
    }

    #[test]
    fn a_hold_names_line_and_rule_and_never_the_secret() {
        let text =
            format!("a\n{}\n{}\nb\n{}\n{}\n{}\n", token("1"), token("2"), token("3"), token("4"), token("5"));
        let hold = holds(&NothingPrivate::default(), "a.md", &text).expect("held");
        assert_eq!(
            hold.why,
            "line 2 holds a GitHub token (github-token); line 3 holds a GitHub token (github-token); line 5 holds a GitHub token (github-token); 2 more"
        );
        assert_eq!(hold.lines, [2, 3, 5, 6, 7]);
        let locator = Locator::parse("a.md").expect("valid");
        assert_eq!(
            cure(&locator, &hold),
            "edit the lines, or, if they may be sent: haversack allow a.md:2 a.md:3 a.md:5"
        );
    }

    #[test]
    fn what_is_allowed_passes_wherever_it_is_and_nothing_else_does() {
        let fingerprint = secrets::find(token("1").as_bytes())[0].fingerprint;
        let gate = NothingPrivate { allowed: vec![fingerprint], ..NothingPrivate::default() };
        assert_eq!(holds(&gate, "a.md", &format!("x\ny\n{}\n", token("1"))), None);
        let hold = holds(&gate, "a.md", &format!("{}\n{}\n", token("1"), token("2"))).expect("held");
        assert_eq!(hold.lines, [2]);
        let many: String = (0..MAX_FINDINGS).map(|_| format!("{}\n", token("1"))).collect();
        assert!(holds(&gate, "a.md", &many).is_some(), "nobody saw all of them");
    }

    #[test]
    fn what_the_remote_has_of_a_file_is_no_secret_there() {
        let gate = NothingPrivate::default();
        let locator = Locator::parse("a.md").expect("valid");
        let sent = format!("{}\n", token("1"));
        let more = format!("edited\n{sent}");
        assert_eq!(gate.still_holds(&locator, more.as_bytes(), sent.as_bytes()), None);
        let other = format!("{sent}{}\n", token("2"));
        let hold = gate.still_holds(&locator, other.as_bytes(), sent.as_bytes()).expect("held");
        assert_eq!(hold.lines, [2]);
        let private = Locator::parse(".env").expect("valid");
        assert!(gate.still_holds(&private, b"A=2", b"A=1").is_some());
    }
}

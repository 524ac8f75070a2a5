//! Parses the user's name of a remote: a plain path, or an address with a scheme.
//!
//! 1. A text with `://` is an address. Its scheme must be one that we know.
//! 2. A text with a colon before the first slash looks like an address (`s3:bucket`, `git@host:x.git`, `Dropbox:/x`) and is refused: it
//!    never becomes a directory. A directory with such a name is written `./s3:bucket`.
//! 3. Anything else is a path. The place tells whether other machines see it (`vault://`) or only this one (`file://`). Where the place
//!    gives only a hint, the user is asked.

use std::path::{Path, PathBuf};

use haversack::store::{DirectoryKind, directory_of, file_address, recognise, vault_address};

use super::record::Remote;
use super::site::Asked;
use crate::error::CommandError;
use crate::settings::{Settings, shown};
use crate::ui::paths::quoted;
use crate::ui::{Answer, Ui};

/// The forms of an address, for hints.
const FORMS: &str = "Name a directory (~/Dropbox/haversack), a bucket (s3://BUCKET/PREFIX, az://CONTAINER/PREFIX, gs://BUCKET/PREFIX, \
https://ACCOUNT.blob.core.windows.net/CONTAINER), or say which sort of directory it is (vault:///FOLDER for one that is replicated, \
file:///DIRECTORY for one of this machine)";

/// The schemes of remotes.
const SCHEMES: [&str; 6] = ["file", "vault", "s3", "az", "gs", "https"];

/// A remote that the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Its address, with a scheme.
    pub(crate) url: String,
    /// A remark for the user; only for a plain path.
    pub(crate) note: Option<String>,
}

/// Returns the address of a remote that the user named; asks the user if its kind is unclear.
pub(crate) fn address(ui: &mut Ui, settings: &Settings, asked: Asked<'_>) -> Result<Address, CommandError> {
    let text = asked.typed;
    refuse_mistyped(text)?;
    if text.contains("://") {
        return Ok(Address { url: text.to_owned(), note: None });
    }
    let path = std::path::absolute(in_home(text))?;
    let replicated = vault_address(&path)?;
    let local = file_address(&path)?;
    let name = shown(&path);
    let known = Remote::recorded(settings)?.map(|remote| remote.url);
    if let Some(known) = known.filter(|known| [&replicated, &local].contains(&known)) {
        return Ok(Address { url: known, note: None });
    }
    let place = recognise(&path, std::env::home_dir().as_deref());
    let is_replicated = match &place {
        DirectoryKind::Local => has_logs_of_machines(&path),
        DirectoryKind::Perhaps { mark, .. } => {
            has_logs_of_machines(&path) || ask(ui, asked, &name, mark, [&replicated, &local])?
        }
        _ => true,
    };
    let mark = match &place {
        DirectoryKind::Synced { mark, .. } => format!(" ({mark})"),
        _ => String::new(),
    };
    let how = match &place {
        DirectoryKind::Local | DirectoryKind::Perhaps { .. } => "replicated".to_owned(),
        place => place.to_string(),
    };
    Ok(match is_replicated {
        true => Address {
            url: replicated,
            note: Some(format!(
                "{name} is {how}{mark}: each machine writes only its own log there, and waits for files that arrive late or in parts (vault://)."
            )),
        },
        false => Address { url: local, note: Some(format!("{} (file://).", only_here(&name))) },
    })
}

/// Says that a directory is seen by this machine alone.
pub(crate) fn only_here(name: &str) -> String {
    format!("{name} is on this machine only: your other machines will not see it unless something copies it")
}

/// Refuses a text that looks like an address and is not valid.
pub(crate) fn refuse_mistyped(text: &str) -> Result<(), CommandError> {
    let refused = |what: String, hint: String| Err(CommandError::user(what, hint));
    if text.trim().is_empty() {
        return refused("the address of the remote is empty".to_owned(), FORMS.to_owned());
    }
    let told = without_secrets(text);
    if let Some((scheme, rest)) = text.split_once("://") {
        let is_web = |host: &str| host.split('.').nth(1) != Some("blob");
        return match scheme {
            "file" | "vault" if directory_of(text).is_err() => refused(
                format!("\"{told}\" is no directory: its path does not begin with a slash"),
                format!("{scheme}:///home/me/memory is the directory /home/me/memory. {FORMS}"),
            ),
            "https" if is_web(rest.split('/').next().unwrap_or_default()) => refused(
                format!("\"{told}\" is a web address and not a storage that we know"),
                FORMS.to_owned(),
            ),
            known if SCHEMES.contains(&known) => Ok(()),
            unknown => refused(
                format!(
                    "\"{told}\" is an address of the kind \"{}\", which we do not know",
                    unknown.escape_debug()
                ),
                FORMS.to_owned(),
            ),
        };
    }
    let Some(start) = before_colon(text) else { return Ok(()) };
    if start.contains('@') {
        return refused(
            format!("\"{told}\" looks like an address of git or ssh, which is no storage that we know"),
            FORMS.to_owned(),
        );
    }
    if start.eq_ignore_ascii_case("anthropic") {
        return refused(
            format!(
                "\"{told}\" is a memory store of Anthropic's, and no place where machines can meet: it holds texts only"
            ),
            format!("Copy it into your memory: haversack migrate {told} DIRECTORY. {FORMS}"),
        );
    }
    let rest = text[start.len() + 1..].trim_start_matches('/');
    let meant = match start.to_lowercase().as_str() {
        "file" | "vault" => Some(format!("{}:///{rest}", start.to_lowercase())),
        scheme if SCHEMES.contains(&scheme) => Some(format!("{scheme}://{rest}")),
        _ => None,
    };
    let hint = match meant {
        Some(meant) => format!("Did you mean {}? {FORMS}", quoted(&meant)),
        None => format!("{FORMS}. A directory of this very name: {}", quoted(&format!("./{text}"))),
    };
    refused(
        format!(
            "\"{told}\" looks like an address of the kind \"{}\", but it is not a valid one",
            start.escape_debug()
        ),
        hint,
    )
}

/// Returns the text before the first colon, if it looks like a scheme or a host; `None` for a path.
fn before_colon(text: &str) -> Option<&str> {
    let (start, rest) = text.split_once(':')?;
    let is_path = start.is_empty() || start.contains('/') || (cfg!(windows) && start.contains('\\'));
    let is_drive = cfg!(windows) && start.len() == 1 && rest.starts_with(['/', '\\']);
    (!is_path && !is_drive).then_some(start)
}

/// Returns a text without possible passwords and signatures.
fn without_secrets(text: &str) -> String {
    let text = text.split('?').next().unwrap_or_default();
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    let (host, path) =
        rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
    let host = match host.rsplit_once('@') {
        Some((user, host)) if user.contains(':') => format!("…@{host}"),
        _ => host.to_owned(),
    };
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    format!("{scheme}{host}{path}").escape_debug().to_string()
}

/// Returns a path in which `~` stands for the user's home directory, as a shell would have written it.
fn in_home(text: &str) -> PathBuf {
    let below = match text {
        "~" => Some(""),
        _ => text.strip_prefix("~/").or_else(|| text.strip_prefix("~\\").filter(|_| cfg!(windows))),
    };
    match (below, std::env::home_dir()) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(text),
    }
}

/// Returns true if a store with a log for each machine is there.
fn has_logs_of_machines(directory: &Path) -> bool {
    let logs = std::fs::read_dir(directory.join(".haversack").join("log"));
    let is_log = |name: &str| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    logs.into_iter().flatten().flatten().any(|entry| entry.file_name().to_str().is_some_and(is_log))
}

/// Asks the user if a directory is replicated.
fn ask(
    ui: &mut Ui,
    Asked { command, .. }: Asked<'_>,
    name: &str,
    mark: &str,
    [replicated, local]: [&str; 2],
) -> Result<bool, CommandError> {
    let question = format!(
        "{name} may be synced to other machines ({mark}). Does a sync client, or another machine, write there?"
    );
    match ui.ask(&question) {
        Ok(answer) => Ok(answer == Answer::Yes),
        Err(_) => Err(CommandError::user(
            format!(
                "{name} may be synced to other machines ({mark}). This is not a terminal, so we cannot ask you. Nothing was changed"
            ),
            format!(
                "If a sync client or another machine writes there: {command} {}. If only this machine does: {command} {}",
                quoted(replicated),
                quoted(local)
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_addresses_are_refused() {
        for (text, expected) in [
            ("", "the address of the remote is empty"),
            (" \t", "the address of the remote is empty"),
            (
                "s3:bucket",
                "\"s3:bucket\" looks like an address of the kind \"s3\", but it is not a valid one | Did you mean s3://bucket?",
            ),
            (
                "s3:/bucket",
                "\"s3:/bucket\" looks like an address of the kind \"s3\", but it is not a valid one | Did you mean s3://bucket?",
            ),
            (
                "S3:bucket",
                "\"S3:bucket\" looks like an address of the kind \"S3\", but it is not a valid one | Did you mean s3://bucket?",
            ),
            (
                "S3://bucket",
                "\"S3://bucket\" is an address of the kind \"S3\", which we do not know | Name a directory",
            ),
            (
                "file:/srv/x",
                "\"file:/srv/x\" looks like an address of the kind \"file\", but it is not a valid one | Did you mean file:///srv/x?",
            ),
            (
                "file://srv/x",
                "\"file://srv/x\" is no directory: its path does not begin with a slash | file:///home",
            ),
            ("git@host:me/x.git", "\"git@host:me/x.git\" looks like an address of git or ssh"),
            (
                "host:me/x",
                "\"host:me/x\" looks like an address of the kind \"host\", but it is not a valid one | Name a directory",
            ),
            ("https://example.com/x.git", "\"https://example.com/x.git\" is a web address"),
            ("https://me:word@example.com/x?sig=1", "\"https://…@example.com/x\" is a web address"),
            (
                "http://example.com/x",
                "\"http://example.com/x\" is an address of the kind \"http\", which we do not know",
            ),
            ("ssh://host/x", "\"ssh://host/x\" is an address of the kind \"ssh\", which we do not know"),
            (
                "Dropbox:/x",
                "\"Dropbox:/x\" looks like an address of the kind \"Dropbox\", but it is not a valid one",
            ),
            #[cfg(unix)]
            ("C:foo", "\"C:foo\" looks like an address of the kind \"C\", but it is not a valid one"),
            #[cfg(unix)]
            ("C:\\foo", "\"C:\\\\foo\" looks like an address of the kind \"C\", but it is not a valid one"),
        ] {
            let error = refuse_mistyped(text).expect_err(text);
            let told = format!("{} | {}", error.message, error.hint.unwrap_or_default());
            assert!(told.starts_with(expected), "{text}: {told}");
            assert!(!told.contains("word") && !told.contains("sig"), "{told}");
        }
    }

    #[test]
    fn paths_and_addresses_pass() {
        for text in [
            "remote",
            "/srv/memory",
            "./s3:bucket",
            "/srv/a:b",
            "~/Dropbox/haversack",
            "My Documents/x",
            "me@home",
            "s3://bucket",
            "az://container/x",
            "gs://bucket",
            "https://lighthouse.blob.core.windows.net/memory",
            "file:///srv/memory",
            "vault:///srv/memory",
        ] {
            assert!(refuse_mistyped(text).is_ok(), "{text}");
        }
    }
}

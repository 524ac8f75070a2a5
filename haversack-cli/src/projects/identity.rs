//! What a project is called wherever its files are: an address of a repository, normalised, and the id made of it. Pure.

use haversack::ids::ContentHash;

/// How many characters of the address's hash are in an id.
const HASH_CHARACTERS: usize = 8;

/// The longest readable part of an id.
const MAX_WORD_CHARACTERS: usize = 80;

/// Returns what all spellings of a repository's address have in common: host and path.
///
/// Scheme, user, credentials, port and `.git` are dropped, the host is in lower case. `None` for a path on this machine: on another it
/// would be something else.
pub(crate) fn normalise(url: &str) -> Option<String> {
    let url = url.trim();
    let (authority, path) = match url.split_once("://") {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("file") => return None,
        Some((_, rest)) => rest.split_once('/')?,
        // As scp writes it: `user@host:path`. A slash before the colon, or a single letter, is a path.
        None => url.split_once(':').filter(|(host, _)| !host.contains('/') && host.len() > 1)?,
    };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or_default(),
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let path = segments.join("/");
    let path = path.strip_suffix(".git").unwrap_or(&path).trim_end_matches('/');
    let is_sound = |text: &str| !text.is_empty() && !text.contains(char::is_control);
    (is_sound(host) && is_sound(path)).then(|| format!("{}/{path}", host.to_lowercase()))
}

/// Returns the id of the project of a repository, by its normalised address.
pub(crate) fn id_of_repository(address: &str) -> String {
    let last = address.rsplit('/').next().unwrap_or(address);
    let hash = ContentHash::of(address.as_bytes()).to_string();
    format!("{}-{}", word(last), &hash[..HASH_CHARACTERS])
}

/// Returns the id of a project that somebody named; `None` for a name of which nothing is left.
pub(crate) fn id_of_name(name: &str) -> Option<String> {
    name.chars().any(char::is_alphanumeric).then(|| word(name.trim()))
}

/// Returns a text as a name that every disk and every storage can hold.
fn word(text: &str) -> String {
    let each =
        text.chars().map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' });
    let word: String = each.take(MAX_WORD_CHARACTERS).collect();
    let word = word.trim_matches(['.', '-']);
    if word.is_empty() { "project".to_owned() } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_an_address_are_one() {
        for url in [
            "https://github.com/me/lighthouse",
            "https://github.com/me/lighthouse.git",
            "https://github.com/me/lighthouse.git/",
            "https://GitHub.com:443/me/lighthouse.git",
            "https://me:token@github.com/me/lighthouse",
            "https://me@github.com//me//lighthouse/",
            "http://github.com/me/lighthouse",
            "git://github.com/me/lighthouse.git",
            "ssh://git@github.com/me/lighthouse.git",
            "ssh://git@github.com:22/me/lighthouse.git",
            "git+ssh://git@github.com/me/lighthouse",
            "git@github.com:me/lighthouse.git",
            "git@GITHUB.com:/me/lighthouse.git",
            "github.com:me/lighthouse",
            "  https://github.com/me/lighthouse?x=1#y \n",
        ] {
            assert_eq!(normalise(url).as_deref(), Some("github.com/me/lighthouse"), "{url}");
        }
        for (url, expected) in [
            ("https://github.com/me/Lighthouse", Some("github.com/me/Lighthouse")),
            ("ssh://git@[::1]:2222/me/lighthouse", Some("::1/me/lighthouse")),
            ("host:lighthouse", Some("host/lighthouse")),
            ("/srv/git/lighthouse.git", None),
            ("../lighthouse", None),
            ("./a:b", None),
            ("C:/git/lighthouse", None),
            ("file:///srv/git/lighthouse.git", None),
            ("https://github.com", None),
            ("https://github.com/", None),
            ("https://github.com/.git", None),
            ("https:///me/lighthouse", None),
            ("", None),
            ("lighthouse", None),
        ] {
            assert_eq!(normalise(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn ids_are_pinned_by_literals() {
        assert_eq!(id_of_repository("github.com/me/lighthouse"), "lighthouse-d004b9e9");
        assert_eq!(id_of_repository("github.com/acme/lighthouse"), "lighthouse-23453224");
        assert_eq!(id_of_repository("example.org/~me/läuchtturm 2"), "läuchtturm-2-08592d58");
        assert_eq!(id_of_repository("example.org/.."), "project-acb9c47b");
    }

    #[test]
    fn names_become_ids() {
        for (name, id) in [
            ("notes", Some("notes")),
            (" My Notes ", Some("My-Notes")),
            ("a/b", Some("a-b")),
            ("../up", Some("up")),
            ("", None),
            ("...", None),
            ("lighthouse-1a2b3c4d", Some("lighthouse-1a2b3c4d")),
        ] {
            assert_eq!(id_of_name(name).as_deref(), id, "{name}");
        }
    }
}

//! The identity of a project: the normalised address of its repository, and the id made of that address. Pure.

use haversack::ids::ContentHash;

/// The length of the hash in an id, in hexadecimal characters: 128 bits.
///
/// With 32 bits, a repository whose id collides with another one was found in 37 minutes on one core.
const HASH_CHARACTERS: usize = 32;

/// The length of the hash in ids of the old form, which are refused.
const OLD_HASH_CHARACTERS: usize = 8;

/// The longest readable part of an id.
const MAX_WORD_CHARACTERS: usize = 80;

/// Returns the part that all spellings of a repository's address have in common: host, unusual port, and path.
///
/// Scheme, user, credentials, the scheme's default port and `.git` are dropped, and the host is in lower case. Another port stays: a
/// different server may listen there. Returns `None` for a path on this machine, because the same path on another machine is another
/// repository.
pub(crate) fn normalise(url: &str) -> Option<String> {
    let url = url.trim();
    let (scheme, authority, path) = match url.split_once("://") {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("file") => return None,
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/')?;
            (scheme, authority, path)
        }
        // The form of scp: `user@host:path`. A slash before the colon, or a single letter, makes it a path.
        None => {
            let (host, path) =
                url.split_once(':').filter(|(host, _)| !host.contains('/') && host.len() > 1)?;
            ("ssh", host, path)
        }
    };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => (address, rest.strip_prefix(':').unwrap_or_default()),
        None => host.split_once(':').unwrap_or((host, "")),
    };
    let port = match port {
        "" => String::new(),
        port if Some(port) == default_port(scheme) => String::new(),
        port => format!(":{port}"),
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let path = segments.join("/");
    let path = path.strip_suffix(".git").unwrap_or(&path).trim_end_matches('/');
    let is_sound = |text: &str| !text.is_empty() && !text.contains(char::is_control);
    (is_sound(host) && is_sound(path) && !port.contains(char::is_control))
        .then(|| format!("{}{port}/{path}", host.to_lowercase()))
}

/// Returns the port that a scheme uses if its address names none.
fn default_port(scheme: &str) -> Option<&'static str> {
    match scheme.to_ascii_lowercase().as_str() {
        "https" | "git+https" => Some("443"),
        "http" | "git+http" => Some("80"),
        "ssh" | "git+ssh" | "ssh+git" => Some("22"),
        "git" => Some("9418"),
        _ => None,
    }
}

/// Returns the id of the project of a repository, by its normalised address.
pub(crate) fn id_of_repository(address: &str) -> String {
    id_with_hash(address, HASH_CHARACTERS)
}

/// Returns the id that a repository had in the old form, with a hash of 32 bits.
pub(crate) fn old_id_of_repository(address: &str) -> String {
    id_with_hash(address, OLD_HASH_CHARACTERS)
}

/// Returns true if a text is the hash of an id.
pub(crate) fn is_hash(text: &str) -> bool {
    text.len() == HASH_CHARACTERS && is_hexadecimal(text)
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns true if an id has the old form: a word and a hash of 32 bits.
pub(crate) fn is_old_id(id: &str) -> bool {
    let hash = id.rsplit_once('-').map_or("", |(_, hash)| hash);
    hash.len() == OLD_HASH_CHARACTERS && is_hexadecimal(hash)
}

fn id_with_hash(address: &str, characters: usize) -> String {
    let last = address.rsplit('/').next().unwrap_or(address);
    let hash = ContentHash::of(address.as_bytes()).to_string();
    format!("{}-{}", word(last), &hash[..characters])
}

/// Returns the id of a project that the user named; `None` if the name has no usable characters.
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
            ("ssh://git@[::1]:2222/me/lighthouse", Some("::1:2222/me/lighthouse")),
            ("ssh://git@[::1]:22/me/lighthouse", Some("::1/me/lighthouse")),
            ("ssh://git@example.org:2222/me/lighthouse", Some("example.org:2222/me/lighthouse")),
            ("https://example.org:22/me/lighthouse", Some("example.org:22/me/lighthouse")),
            ("git://example.org:9418/me/lighthouse", Some("example.org/me/lighthouse")),
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
        for (address, id) in [
            ("github.com/me/lighthouse", "lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb"),
            ("github.com/acme/lighthouse", "lighthouse-2345322401ae6ecb2b3a013578c936d6"),
            ("example.org/~me/läuchtturm 2", "läuchtturm-2-08592d582ba11852aecb5729972d54f2"),
            ("example.org/..", "project-acb9c47b7b9994137f962c1fc0a02dbc"),
        ] {
            assert_eq!(id_of_repository(address), id);
        }
        assert_eq!(old_id_of_repository("github.com/me/lighthouse"), "lighthouse-d004b9e9");
        for (id, expected) in [
            ("lighthouse-d004b9e9", true),
            ("lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb", false),
            ("lighthouse-d004b9eg", false),
            ("d004b9e9", false),
            ("notes", false),
        ] {
            assert_eq!(is_old_id(id), expected, "{id}");
        }
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

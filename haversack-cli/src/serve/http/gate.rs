//! Decides if an HTTP request may reach the server: pure, by the headers alone.

use std::fmt;

use haversack::ids::ContentHash;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::http::uri::Authority;

/// The names of this machine by which no other machine can reach it.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The conditions for requests.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    /// Names of hosts besides this machine's own, without a port or with one.
    pub(crate) hosts: Vec<String>,
    /// Origins besides this machine's own, as `https://app.example`.
    pub(crate) origins: Vec<String>,
    /// The hash of the token: two hashes can be compared without telling how much of them is right.
    token: ContentHash,
}

/// Why a request does not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is for another host.
    Host,
    /// It comes from another site's page.
    Origin,
    /// It has no token, or a wrong one.
    Token,
}

impl Gate {
    /// Returns a gate that opens for a token.
    pub(crate) fn new(token: &str, hosts: Vec<String>, origins: Vec<String>) -> Gate {
        Gate { hosts, origins, token: ContentHash::of(token.as_bytes()) }
    }

    /// Lets a request through, or says why not.
    pub(crate) fn judge(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = only(headers, &HOST).flatten().ok_or(Refusal::Host)?;
        if !is_known(host, &self.hosts) {
            return Err(Refusal::Host);
        }
        match only(headers, &ORIGIN) {
            // A program, not a page.
            Some(None) => {}
            Some(Some(origin)) if self.is_allowed(origin) => {}
            Some(Some(_)) | None => return Err(Refusal::Origin),
        }
        let said = only(headers, &AUTHORIZATION).flatten().unwrap_or_default();
        let token = said.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        match token {
            Some((_, token)) if ContentHash::of(token.trim().as_bytes()) == self.token => Ok(()),
            _ => Err(Refusal::Token),
        }
    }

    fn is_allowed(&self, origin: &str) -> bool {
        let site = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let is_ours = site.is_some_and(|site| is_known(site, &[]));
        is_ours || self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }
}

/// Returns the value of a header that may be there once: `Some(None)` if it is not there, `None` if it makes no sense.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Option<&'h str>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Some(None) };
    if values.next().is_some() {
        return None;
    }
    value.to_str().ok().map(Some)
}

/// Returns true if a host, with a port or without, is this machine's or one of `others`.
fn is_known(host: &str, others: &[String]) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    // A user name before an @ is no part of a host.
    if host.contains('@') || authority.as_str() != host {
        return false;
    }
    let name = authority.host();
    LOOPBACK.iter().any(|known| name.eq_ignore_ascii_case(known))
        || others.iter().any(|other| other.eq_ignore_ascii_case(name) || other.eq_ignore_ascii_case(host))
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Host => "this server does not go by that name (haversack serve --allow-host NAME)",
            Refusal::Origin => {
                "a page of that origin may not talk to this server (haversack serve --allow-origin ORIGIN)"
            }
            Refusal::Token => {
                "the token is missing or wrong (Authorization: Bearer …; haversack serve says where it is)"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    const TOKEN: &str = "2f7c";

    fn judged(host: Option<&str>, origin: Option<&str>, authorization: Option<&str>) -> Result<(), Refusal> {
        let gate =
            Gate::new(TOKEN, vec!["lighthouse.example".to_owned()], vec!["https://app.example".to_owned()]);
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, host), (ORIGIN, origin), (AUTHORIZATION, authorization)] {
            if let Some(value) = value {
                headers.insert(name, HeaderValue::from_str(value).expect("a value"));
            }
        }
        gate.judge(&headers)
    }

    /// The whole matrix is tried over a real connection: `mcp::http`.
    #[test]
    fn host_then_origin_then_token() {
        let (here, token) = (Some("localhost:7830"), Some("Bearer 2f7c"));
        assert_eq!(judged(here, None, token), Ok(()));
        assert_eq!(judged(Some("localhost@evil.example"), None, token), Err(Refusal::Host));
        assert_eq!(judged(None, Some("null"), None), Err(Refusal::Host));
        assert_eq!(judged(here, Some("null"), None), Err(Refusal::Origin));
        assert_eq!(judged(here, Some("https://app.example"), None), Err(Refusal::Token));
    }

    #[test]
    fn only_the_whole_token_opens() {
        let here = Some("localhost");
        for wrong in ["Bearer 2f7", "Bearer 2f7cc", "Bearer ", "Bearer", "Basic 2f7c", "2f7c", "Bearer 2F7C"]
        {
            assert_eq!(judged(here, None, Some(wrong)), Err(Refusal::Token), "{wrong}");
        }
        assert_eq!(judged(here, None, Some("bearer 2f7c")), Ok(()));
        let gate = Gate::new(TOKEN, Vec::new(), Vec::new());
        let mut headers = HeaderMap::new();
        headers.append(HOST, HeaderValue::from_static("localhost"));
        headers.append(HOST, HeaderValue::from_static("evil.example"));
        assert_eq!(gate.judge(&headers), Err(Refusal::Host), "of two hosts none is believed");
    }
}

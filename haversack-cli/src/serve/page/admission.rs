//! Decides who may see the page: pure, by the method, the place and the headers alone.
//!
//! Any web page in the user's browser can send requests to this machine, and any program of another user can connect. So a request passes these
//! checks in this order, and the first that fails decides the answer:
//!
//! 1. **Host**: exactly the address that we listen on. A name that an attacker pointed at this machine (DNS rebinding) is refused here, before
//!    anything is looked up or set.
//! 2. **Place**: everything is below a random directory. Browsers send cookies of `127.0.0.1` to every port of it; a cookie with a path does not
//!    reach servers on other ports.
//! 3. **Origin and Sec-Fetch-Site**: a request of another site's page is refused, and so is one that would be shown in a frame. The one
//!    exception is [`Target::Entrance`]: a browser comes to it from a local file, which counts as another site. It shows nothing.
//! 4. **Session**: the cookie, except at the entrance, where a [one-time code](Codes) is exchanged for it.
//! 5. **Token**: a form that changes something must have come from our page. The caller reads it from the body and asks [`Admission::has_token`].

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use haversack::ids::ContentHash;
use hyper::Method;
use hyper::header::{COOKIE, HOST, HeaderMap, HeaderName, ORIGIN};

/// The time during which a code opens the page.
pub(super) const CODE_LIFE: Duration = Duration::from_secs(10 * 60);

/// The name of the cookie.
const COOKIE_NAME: &str = "haversack";

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The part of the server that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The place where a code is exchanged for the cookie.
    Entrance,
    /// Everything else.
    Inside,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is for another host.
    Host,
    /// It comes from another site's page, or would be shown in a frame.
    Site,
    /// It has no cookie, or a wrong one.
    Session,
}

/// The secrets of one run of the server. Only their hashes are kept here: two hashes can be compared without telling how much of them is right.
#[derive(Debug)]
pub(super) struct Admission {
    /// The address and port.
    host: String,
    session: ContentHash,
    token: ContentHash,
}

impl Admission {
    pub(super) fn new(host: String, session: &str, token: &str) -> Admission {
        Admission {
            host,
            session: ContentHash::of(session.as_bytes()),
            token: ContentHash::of(token.as_bytes()),
        }
    }

    /// Lets a request through, or says why not.
    pub(super) fn judge(&self, method: &Method, target: Target, headers: &HeaderMap) -> Result<(), Refusal> {
        match only(headers, &HOST) {
            Header::One(host) if host == self.host => {}
            _ => return Err(Refusal::Host),
        }
        let is_ours = match only(headers, &ORIGIN) {
            Header::None => None,
            Header::One(origin) => Some(origin.strip_prefix("http://") == Some(self.host.as_str())),
            Header::Unclear => Some(false),
        };
        let is_read = *method == Method::GET || *method == Method::HEAD;
        let site = only(headers, &SEC_FETCH_SITE);
        let is_site_fine = match (target, site) {
            // A browser that was started by us, or a link in a terminal.
            (Target::Entrance, Header::One(_) | Header::None) => is_read,
            (_, Header::One("same-origin")) => true,
            // The user typed the address, or reloads the page.
            (_, Header::One("none")) => is_read,
            // A browser without this header, or a program. For a change, its origin must be ours.
            (_, Header::None) => is_read || is_ours == Some(true),
            (_, Header::One(_) | Header::Unclear) => false,
        };
        if is_ours == Some(false) || !is_site_fine {
            return Err(Refusal::Site);
        }
        match only(headers, &SEC_FETCH_DEST) {
            Header::One("iframe" | "frame" | "embed" | "object" | "fencedframe") | Header::Unclear => {
                return Err(Refusal::Site);
            }
            Header::One(_) | Header::None => {}
        }
        match target {
            Target::Entrance => Ok(()),
            Target::Inside if self.has_session(headers) => Ok(()),
            Target::Inside => Err(Refusal::Session),
        }
    }

    /// Tells whether a form has the token of our pages.
    pub(super) fn has_token(&self, token: &str) -> bool {
        ContentHash::of(token.as_bytes()) == self.token
    }

    fn has_session(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs =
            cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let ours = pairs.filter(|(name, _)| *name == COOKIE_NAME);
        // A server on another port can set a cookie of this name. It does not hide the right one.
        ours.map(|(_, value)| ContentHash::of(value.as_bytes())).any(|hash| hash == self.session)
    }
}

/// Returns the header that sets the cookie.
pub(super) fn cookie(session: &str, prefix: &str) -> String {
    format!("{COOKIE_NAME}={session}; Path=/{prefix}/; HttpOnly; SameSite=Strict")
}

/// One-time codes. Each can be exchanged for the cookie once.
#[derive(Debug, Default)]
pub(super) struct Codes {
    open: Mutex<Vec<(ContentHash, Instant)>>,
}

impl Codes {
    pub(super) fn add(&self, code: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push((ContentHash::of(code.as_bytes()), Instant::now()));
    }

    /// Uses a code up; true if it was valid.
    pub(super) fn take(&self, code: &str) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, made)| made.elapsed() < CODE_LIFE);
        let hash = ContentHash::of(code.as_bytes());
        let at = open.iter().position(|(known, _)| *known == hash);
        at.map(|at| open.swap_remove(at)).is_some()
    }
}

enum Header<'h> {
    None,
    One(&'h str),
    /// There are several, or it is no text.
    Unclear,
}

fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Header<'h> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(|value| value.to_str()), values.next()) {
        (None, _) => Header::None,
        (Some(Ok(value)), None) => Header::One(value),
        _ => Header::Unclear,
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Host => {
                "This server does not have that name. Use the address that haversack open printed."
            }
            Refusal::Site => "A page of another site asked for this. It gets nothing.",
            Refusal::Session => "This page is closed. Open it with: haversack open",
        })
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    const HERE: &str = "127.0.0.1:7000";

    fn judged(method: &Method, target: Target, given: &[(&'static str, &str)]) -> Result<(), Refusal> {
        let admission = Admission::new(HERE.to_owned(), "secret", "token");
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"));
        }
        admission.judge(method, target, &headers)
    }

    /// The whole matrix is tried over real connections: `page::admission`.
    #[test]
    fn host_comes_before_everything_and_the_session_is_last() {
        let inside = |given: &[(&'static str, &str)]| judged(&Method::GET, Target::Inside, given);
        let cookie = ("cookie", "other=1; haversack=secret");
        assert_eq!(inside(&[("host", HERE), cookie]), Ok(()));
        assert_eq!(inside(&[("host", "localhost:7000"), cookie]), Err(Refusal::Host));
        assert_eq!(inside(&[("host", HERE), ("host", HERE), cookie]), Err(Refusal::Host));
        assert_eq!(inside(&[cookie]), Err(Refusal::Host));
        assert_eq!(
            inside(&[("host", HERE), ("origin", "http://127.0.0.1:7001"), cookie]),
            Err(Refusal::Site)
        );
        assert_eq!(inside(&[("host", HERE), ("sec-fetch-site", "same-site"), cookie]), Err(Refusal::Site));
        assert_eq!(inside(&[("host", HERE), ("sec-fetch-dest", "iframe"), cookie]), Err(Refusal::Site));
        assert_eq!(inside(&[("host", HERE)]), Err(Refusal::Session));
        assert_eq!(inside(&[("host", HERE), ("cookie", "haversack=secre")]), Err(Refusal::Session));
        assert_eq!(inside(&[("host", HERE), ("cookie", "haversack=planted; haversack=secret")]), Ok(()));
    }

    #[test]
    fn change_needs_our_origin_even_without_fetch_metadata() {
        let change = |given: &[(&'static str, &str)]| {
            let base = [("host", HERE), ("cookie", "haversack=secret")];
            judged(&Method::POST, Target::Inside, &[&base[..], given].concat())
        };
        assert_eq!(change(&[]), Err(Refusal::Site));
        assert_eq!(change(&[("origin", "http://127.0.0.1:7000")]), Ok(()));
        assert_eq!(change(&[("sec-fetch-site", "same-origin")]), Ok(()));
        assert_eq!(change(&[("sec-fetch-site", "none")]), Err(Refusal::Site));
        assert_eq!(change(&[("origin", "null")]), Err(Refusal::Site));
    }

    #[test]
    fn entrance_is_open_to_reads_from_a_local_file_and_to_nothing_else() {
        let enter = |method: &Method, given: &[(&'static str, &str)]| judged(method, Target::Entrance, given);
        assert_eq!(enter(&Method::GET, &[("host", HERE), ("sec-fetch-site", "cross-site")]), Ok(()));
        assert_eq!(enter(&Method::GET, &[("host", "evil.example")]), Err(Refusal::Host));
        assert_eq!(enter(&Method::POST, &[("host", HERE)]), Err(Refusal::Site));
        let framed = [("host", HERE), ("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "iframe")];
        assert_eq!(enter(&Method::GET, &framed), Err(Refusal::Site));
    }

    #[test]
    fn code_opens_once() {
        let codes = Codes::default();
        codes.add("abc");
        assert!(!codes.take("abd"));
        assert!(codes.take("abc"));
        assert!(!codes.take("abc"));
    }
}

//! Every hop failing in every way: the error names the hop, what was said and the cure, and nothing secret.

use std::error::Error as _;
use std::net::TcpListener;
use std::time::Duration;

use futures_lite::future::block_on;
use haversack_store::cloud::AgentIdentity;
use haversack_store::{Error, ErrorKind};

use super::entra::{Entra, Reply, answers};
use super::{BLUEPRINT, Desk, TENANT};

const HOPS: [&str; 3] = ["hop 1 of 3 (blueprint)", "hop 2 of 3 (agent identity)", "hop 3 of 3 (agent user)"];

/// Returns what is said when one hop is answered so and the others well.
fn failing(hop: usize, reply: &Reply) -> Error {
    let reply = reply.clone();
    let entra = Entra::start(answers(move |request| match request.hop() == hop {
        true => reply.clone(),
        false => request.issued(3600),
    }));
    let desk = Desk::new();
    let settings = super::AgentSettings { hop_timeout: patience(), ..desk.settings(&entra.authority()) };
    let identity = AgentIdentity::new(settings).expect("good settings");
    let error = block_on(identity.credential()).expect_err("it fails");
    assert_eq!(entra.asked().len(), hop, "no hop is tried twice, and none after it");
    error
}

/// Long enough for an endpoint in the same process on a busy machine, short enough for one that hangs.
fn patience() -> Duration {
    Duration::from_secs(3)
}

fn told(error: &Error) -> String {
    format!("{error:?}")
}

#[test]
fn every_hop_every_way() {
    let html = Reply::Http { status: 200, headers: String::new(), body: b"<html>Sign in</html>".to_vec() };
    let huge = Reply::json(200, format!(r#"{{"x":"{}"}}"#, "x".repeat(70_000)));
    let moved = Reply::Http {
        status: 302,
        headers: "Location: http://127.0.0.1:1/elsewhere\r\n".to_owned(),
        body: Vec::new(),
    };
    let odd_token = Reply::json(200, "{\"access_token\":\"a\\nb\",\"expires_in\":3600}");
    let sly = Reply::json(200, r#"{"error":"invalid_grant","access_token":"x","expires_in":3600}"#);
    let cases = [
        ("refused", Reply::refusal("invalid_grant", "AADSTS65001: No."), ErrorKind::Denied, "AADSTS65001"),
        ("refused with success", sly, ErrorKind::Denied, "invalid_grant"),
        (
            "numbers only",
            Reply::json(401, r#"{"error":"invalid_client","error_codes":[700027]}"#),
            ErrorKind::Denied,
            "AADSTS700027",
        ),
        (
            "throttled",
            Reply::json(429, "{}"),
            ErrorKind::Unavailable,
            "HTTP 429: there are too many requests",
        ),
        (
            "broken",
            Reply::json(500, r#"{"error":"server_error"}"#),
            ErrorKind::Unavailable,
            "try again later",
        ),
        (
            "broken gateway",
            Reply::Http { status: 502, headers: String::new(), body: b"<html>".to_vec() },
            ErrorKind::Unavailable,
            "HTTP 502",
        ),
        (
            "transient",
            Reply::refusal("temporarily_unavailable", "AADSTS90033: Wait."),
            ErrorKind::Unavailable,
            "AADSTS90033",
        ),
        ("a page", html, ErrorKind::Unavailable, "not that of a token endpoint"),
        ("not a form", Reply::json(200, "[1, 2]"), ErrorKind::Unavailable, "not that of a token endpoint"),
        (
            "no token",
            Reply::json(200, r#"{"token_type":"Bearer","expires_in":3600}"#),
            ErrorKind::Unavailable,
            "missing_token",
        ),
        (
            "empty token",
            Reply::json(200, r#"{"access_token":"","expires_in":3600}"#),
            ErrorKind::Unavailable,
            "missing_token",
        ),
        ("no header", odd_token, ErrorKind::Unavailable, "missing_token"),
        ("huge", huge, ErrorKind::Unavailable, "far too long"),
        ("elsewhere", moved, ErrorKind::Unavailable, "HTTP 302"),
        ("dropped", Reply::Drop, ErrorKind::Unavailable, "cannot be reached"),
    ];
    for (name, reply, kind, words) in cases {
        for hop in 1..=3 {
            let error = failing(hop, &reply);
            assert_eq!(error.kind(), kind, "{name}: {error}");
            assert!(error.message().starts_with(HOPS[hop - 1]), "{name}: {error}");
            assert!(error.message().contains(words), "{name}: {error}");
        }
    }
}

#[test]
fn what_a_refusal_looks_like() {
    let error = failing(3, &Reply::refusal("invalid_grant", "AADSTS65001: The user has not consented."));
    let told = told(&error).replace(error.place(), "AUTHORITY");
    assert_eq!(
        told,
        "Denied: could not sign in at AUTHORITY: hop 3 of 3 (agent user) was refused with AADSTS65001; the agent has no permission \
         on Azure Storage yet: haversack provision azure: invalid_grant: AADSTS65001: The user has not consented."
    );
    let said = error.source().expect("what Entra said").to_string();
    assert_eq!(said, "invalid_grant: AADSTS65001: The user has not consented.");
}

#[test]
fn every_code_has_its_cure() {
    let cases = [
        (1, "AADSTS700027", "certificate is registered with the blueprint"),
        (1, "AADSTS7000215", "certificate is registered with the blueprint"),
        (1, "AADSTS700024", "clock"),
        (1, "AADSTS90002", "check the tenant"),
        (1, "AADSTS700016", "check the blueprint's application id"),
        (1, "AADSTS700211", "the agent identity was made from this blueprint"),
        (2, "AADSTS700016", "check the agent's id"),
        (2, "AADSTS700213", "the agent identity was made from this blueprint"),
        (3, "AADSTS50034", "check the agent user's object id"),
        (3, "AADSTS50057", "the agent user is disabled"),
        (3, "AADSTS53003", "conditional access"),
        (3, "AADSTS500011", "haversack provision azure"),
        (3, "AADSTS1234567", "https://login.microsoftonline.com/error"),
    ];
    for (hop, code, cure) in cases {
        let error = failing(hop, &Reply::refusal("invalid_request", &format!("{code}: Something.")));
        assert!(error.message().contains(code) && error.message().contains(cure), "{error}");
        assert_eq!(error.kind(), ErrorKind::Denied);
    }
    // Without a code, the first hop's only secret is the certificate.
    let error = failing(1, &Reply::json(401, r#"{"error":"invalid_client"}"#));
    assert!(error.message().contains("certificate is registered"), "{error}");
}

#[test]
fn secrets_are_never_printed() {
    // An endpoint, or a proxy before it, that repeats all it was sent.
    for hop in 1..=3 {
        let entra = Entra::start(answers(move |request| match request.hop() == hop {
            true => {
                let echo = ["client_assertion", "user_federated_identity_credential"]
                    .map(|name| request.field(name));
                Reply::refusal(echo[0], &format!("AADSTS700027: '{}' and {}", echo[0], echo[1]))
            }
            false => request.issued(3600),
        }));
        let desk = Desk::new();
        let identity = desk.identity(&entra.authority());
        let error = block_on(identity.credential()).expect_err("refused");
        let all = format!("{error} {error:?} {identity:?} {:?}", desk.settings(&entra.authority()));
        for secret in ["eyJ", "hhhhhhhh", "first-", "second-", "MIIE"] {
            assert!(!all.contains(secret), "{secret}: {all}");
        }
        assert!(all.contains(TENANT) && all.contains(BLUEPRINT), "{all}");
    }
    let entra = Entra::honest();
    let identity = Desk::new().identity(&entra.authority());
    let _ = block_on(identity.credential()).expect("signed in");
    assert!(!format!("{identity:?}").contains("storage-"), "{identity:?}");
}

#[test]
fn an_authority_that_is_not_there() {
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let identity = Desk::new().identity(&format!("http://127.0.0.1:{port}"));
    let error = block_on(identity.credential()).expect_err("nobody is there");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("hop 1 of 3 (blueprint) cannot be reached"), "{error}");
    assert!(error.source().is_some(), "{error:?}");
}

#[test]
fn an_authority_that_hangs() {
    for hop in 1..=3 {
        let entra = Entra::start(answers(move |request| match request.hop() == hop {
            true => Reply::Hang,
            false => request.issued(3600),
        }));
        let desk = Desk::new();
        let settings =
            super::AgentSettings { hop_timeout: Duration::from_secs(1), ..desk.settings(&entra.authority()) };
        let identity = AgentIdentity::new(settings).expect("good settings");
        let error = block_on(identity.credential()).expect_err("it hangs");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("was not answered within 1 seconds"), "{error}");
        assert!(error.message().contains(HOPS[hop - 1]), "{error}");
    }
}

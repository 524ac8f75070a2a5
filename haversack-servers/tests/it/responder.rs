//! Servers that are one function.

use haversack_servers::{Answer, Responder, http};

#[test]
fn answers_and_remembers() {
    let responder = Responder::start(|asked| {
        let who = asked.query("who").or_else(|| asked.form("who")).unwrap_or_default();
        Answer::new(200).with_header("x-who", who.clone()).with_body(format!("hello {who}"))
    });
    let url = format!("{}/greet", responder.url());
    let answer = http::send("GET", &format!("{url}?a=1&who=a%20user"), &[], b"").expect("it answers");
    assert_eq!((answer.text().as_str(), answer.headers.get("X-Who")), ("hello a user", Some("a user")));
    let answer = http::send("POST", &url, &[("x-note", "kept")], b"who=a+teammate").expect("it answers");
    assert_eq!(answer.text(), "hello a teammate");
    let asked = responder.asked();
    assert_eq!(asked[1].method, "POST");
    assert_eq!(asked[1].headers.get("x-note"), Some("kept"));
    assert_eq!(asked[0].path, "/greet?a=1&who=a%20user");
}

#[test]
fn speaks_tls() {
    let responder = Responder::start_tls(|_| Answer::new(204));
    assert_eq!(http::send("GET", responder.url(), &[], b"").expect("it is trusted").status, 204);
    let plain = responder.url().replace("https", "http");
    assert!(http::send("GET", &plain, &[], b"").is_err());
}

#[test]
fn a_head_has_the_length_and_no_body() {
    let responder = Responder::start(|_| Answer::new(200).with_body("twelve bytes"));
    let answer = http::send("HEAD", responder.url(), &[], b"").expect("it answers");
    assert_eq!((answer.headers.get("content-length"), answer.body.len()), (Some("12"), 0));
}

#[test]
fn stops_listening_when_dropped() {
    let responder = Responder::start(|_| Answer::new(200));
    let url = responder.url().to_owned();
    drop(responder);
    assert!(http::send("GET", &url, &[], b"").is_err());
}

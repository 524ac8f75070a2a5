//! A token endpoint on this machine: answers as it is told, and keeps what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;

use super::fixture;

/// The answer.
#[derive(Clone)]
pub(super) enum Reply {
    Http {
        status: u16,
        headers: String,
        body: Vec<u8>,
    },
    /// The connection is closed without a word.
    Drop,
    /// Nothing is ever answered.
    Hang,
}

impl Reply {
    pub(super) fn json(status: u16, body: impl Into<String>) -> Reply {
        let headers = "Content-Type: application/json\r\n".to_owned();
        Reply::Http { status, headers, body: body.into().into_bytes() }
    }

    /// Returns a refusal as Entra writes it.
    pub(super) fn refusal(error: &str, description: &str) -> Reply {
        let description = format!("{description}\r\nTrace ID: 0000aaaa\r\nTimestamp: 2026-01-01 00:00:00Z");
        Reply::json(400, serde_json::json!({ "error": error, "error_description": description }).to_string())
    }
}

/// The request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    headers: BTreeMap<String, String>,
    form: Vec<(String, String)>,
    /// The number of earlier requests of the same hop.
    number: usize,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(super) fn field(&self, name: &str) -> &str {
        self.form.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
    }

    /// Returns which hop this is, told by what only that hop has.
    pub(super) fn hop(&self) -> usize {
        match (self.field("fmi_path"), self.field("grant_type")) {
            ("", "user_fic") => 3,
            ("", _) => 2,
            _ => 1,
        }
    }

    /// Checks that there are these fields, each once, and no others.
    pub(super) fn has_exactly(&self, fields: &[(&str, &str)]) {
        let mut expected: Vec<(String, String)> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut found = self.form.clone();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }

    pub(super) fn next_token(&self) -> String {
        let number = self.number + 1;
        match self.hop() {
            1 => first_token(number),
            2 => second_token(number),
            _ => storage_token(number),
        }
    }

    /// Returns the answer of an endpoint that issues a token.
    pub(super) fn issued(&self, lifetime: u64) -> Reply {
        let token = self.next_token();
        let body =
            serde_json::json!({ "token_type": "Bearer", "expires_in": lifetime, "access_token": token });
        Reply::json(200, body.to_string())
    }
}

// As long as real ones, so that what must not be told would be noticed.
pub(super) fn first_token(number: usize) -> String {
    format!("first-{number}.{}", "h".repeat(300))
}

pub(super) fn second_token(number: usize) -> String {
    format!("second-{number}.{}", "h".repeat(300))
}

pub(super) fn storage_token(number: usize) -> String {
    format!("storage-{number}.{}", "h".repeat(300))
}

type Answers = Box<dyn FnMut(&Request) -> Reply + Send>;

pub(super) fn answers(answer: impl FnMut(&Request) -> Reply + Send + 'static) -> Answers {
    Box::new(answer)
}

/// The endpoint; ends with the test.
pub(super) struct Entra {
    address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    asked: Mutex<Vec<Request>>,
    came: Condvar,
    is_over: AtomicBool,
    hanging: Mutex<Vec<TcpStream>>,
}

impl Entra {
    /// Starts one that issues tokens for an hour.
    pub(super) fn honest() -> Entra {
        Entra::start(answers(|request| request.issued(3600)))
    }

    pub(super) fn start(mut answer: Answers) -> Entra {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State::default());
        let seen = state.clone();
        let serve = move || {
            // One at a time, as the hops come.
            for stream in listener.incoming() {
                if seen.is_over.load(Ordering::SeqCst) {
                    return;
                }
                if let Some((stream, request)) = stream.ok().and_then(|stream| read(stream, &seen)) {
                    let reply = answer(&request);
                    seen.asked.lock().expect("whole").push(request);
                    seen.came.notify_all();
                    send(stream, reply, &seen);
                }
            }
        };
        Entra { address, state, thread: Some(std::thread::spawn(serve)) }
    }

    pub(super) fn authority(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn asked(&self) -> Vec<Request> {
        self.state.asked.lock().expect("whole").clone()
    }

    /// Waits until there were so many requests.
    pub(super) fn wait_for(&self, many: usize) {
        let asked = self.state.asked.lock().expect("whole");
        drop(self.state.came.wait_while(asked, |asked| asked.len() < many).expect("whole"));
    }
}

impl Drop for Entra {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        // A test that failed may have left it waiting.
        if let Some(thread) = self.thread.take().filter(|_| !std::thread::panicking()) {
            drop(thread.join());
        }
    }
}

fn read(stream: TcpStream, state: &State) -> Option<(TcpStream, Request)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    let _ = reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        let _ = reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => drop(headers.insert(name.to_lowercase(), value.to_owned())),
            None => break,
        }
    }
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let form = String::from_utf8(body).ok()?;
    let form = form.split('&').filter_map(|pair| pair.split_once('='));
    let form = form.map(|(name, value)| (decode(name), decode(value))).collect();
    let mut request = Request { method, path, headers, form, number: 0 };
    let asked = state.asked.lock().expect("whole");
    request.number = asked.iter().filter(|before| before.hop() == request.hop()).count();
    Some((reader.into_inner(), request))
}

fn send(mut stream: TcpStream, reply: Reply, state: &State) {
    match reply {
        Reply::Drop => {}
        Reply::Hang => state.hanging.lock().expect("whole").push(stream),
        Reply::Http { status, headers, body } => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} Said\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            // The caller may have gone.
            drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)));
        }
    }
}

/// Checks an assertion as Entra does, and returns its claims: by the certificate that its header names.
pub(super) fn verified(assertion: &str) -> Value {
    let parts: Vec<&str> = assertion.split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("three parts: {assertion}") };
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).expect("base64url without padding");
    let header: Value = serde_json::from_slice(&decode(header)).expect("JSON");
    let certificate =
        CertificateDer::from_pem_file(fixture("test-only-certificate.pem")).expect("a certificate");
    let thumbprint = URL_SAFE_NO_PAD.encode(digest(&SHA256, &certificate));
    assert_eq!(header, serde_json::json!({ "alg": "RS256", "typ": "JWT", "x5t#S256": thumbprint }));
    let signed = &assertion[..assertion.rfind('.').expect("three parts")];
    webpki::EndEntityCert::try_from(&certificate)
        .expect("a certificate")
        .verify_signature(webpki::ring::RSA_PKCS1_2048_8192_SHA256, signed.as_bytes(), &decode(signature))
        .expect("signed with the certificate's key");
    serde_json::from_slice(&decode(claims)).expect("JSON")
}

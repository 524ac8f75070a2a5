//! Many clients over HTTP, and who is not let in.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::Barrier;

use serde_json::{Value, json};

use super::{NEWEST, meta, request, said};
use crate::environment::TestEnv;

/// A running `haversack serve`.
pub(super) struct Serving {
    process: Child,
    pub(super) address: String,
    pub(super) token: String,
}

impl Serving {
    pub(super) fn start(env: &TestEnv, arguments: &[&str]) -> Serving {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
        all.extend(arguments);
        let mut command = env.command(&all);
        command
            .env("HAVERSACK_SYNC", "off")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = command.spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("piped")).read_line(&mut line).expect("it says where");
        let address = line
            .trim()
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix("/mcp"))
            .expect("an address")
            .to_owned();
        let file = env.path(".local/share/haversack/state/serve/token");
        let token = std::fs::read_to_string(file).expect("made").trim().to_owned();
        Serving { process, address, token }
    }

    /// Makes a request with these headers and no others, and returns the status and the rest.
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        stream.write_all(format!("{head}\r\n").as_bytes()).expect("sent");
        // A server that refuses by the headers alone may close before the body.
        drop(stream.write_all(body));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer)
    }

    /// Calls a tool as a client of the newest revision does.
    pub(super) fn call(&self, client: &str, tool: &str, arguments: &Value) -> (String, bool) {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta(client) });
        let body = request(1, "tools/call", params).to_string();
        let bearer = format!("Bearer {}", self.token);
        let headers = [
            ("Host", self.address.as_str()),
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", NEWEST),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", tool),
        ];
        let (status, answer) = self.send("POST", "/mcp", &headers, body.as_bytes());
        assert_eq!(status, 200, "{answer}");
        let json =
            answer.lines().map(|line| line.trim_start_matches("data: ")).find(|line| line.starts_with('{'));
        let answer: Value = serde_json::from_str(json.unwrap_or_else(|| panic!("{answer}"))).expect("JSON");
        said(&answer["result"])
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[test]
fn the_matrix_of_hosts_origins_and_tokens() {
    let env = TestEnv::new();
    let serving = Serving::start(
        &env,
        &["--allow-host", "lighthouse.example", "--allow-origin", "https://app.example"],
    );
    let port = serving.address.rsplit(':').next().expect("a port").to_owned();
    let [here, named, six] = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
    let hosts = [
        (Some(here.as_str()), true),
        (Some(named.as_str()), true),
        (Some(six.as_str()), true),
        (Some("localhost"), true),
        (Some("lighthouse.example"), true),
        (Some("evil.example"), false),
        (Some("localhost.evil.example"), false),
        (Some("127.0.0.1.evil.example"), false),
        (Some("localhost@evil.example"), false),
        (Some("0.0.0.0"), false),
        (Some(""), false),
        (None, false),
    ];
    let origins = [
        (None, true),
        (Some("http://localhost:3000"), true),
        (Some("https://127.0.0.1"), true),
        (Some("https://app.example"), true),
        (Some("null"), false),
        (Some("https://evil.example"), false),
        (Some("http://localhost.evil.example"), false),
        (Some("file://"), false),
    ];
    let bearer = format!("Bearer {}", serving.token);
    let body = request(1, "server/discover", json!({ "_meta": meta("tester") })).to_string();
    let mut cells = 0;
    for (host, host_fits) in hosts {
        for (origin, origin_fits) in origins {
            for token_fits in [true, false] {
                let mut headers = vec![
                    ("Content-Type", "application/json"),
                    ("Accept", "application/json, text/event-stream"),
                    ("MCP-Protocol-Version", NEWEST),
                    ("Mcp-Method", "server/discover"),
                ];
                headers.extend(host.map(|host| ("Host", host)));
                headers.extend(origin.map(|origin| ("Origin", origin)));
                headers.extend(token_fits.then_some(("Authorization", bearer.as_str())));
                let (status, answer) = serving.send("POST", "/mcp", &headers, body.as_bytes());
                let expected = match (host, host_fits && origin_fits, token_fits) {
                    // HTTP itself wants a host; how an empty one is refused is all the same.
                    (None | Some(""), ..) if status == 400 => 400,
                    (_, false, _) => 403,
                    (_, true, false) => 401,
                    (_, true, true) => 200,
                };
                assert_eq!(status, expected, "{host:?} {origin:?} {token_fits}: {answer}");
                assert!(!answer.to_lowercase().contains("access-control-allow"), "{answer}");
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 192);
}

#[test]
fn limits() {
    let env = TestEnv::new();
    let serving = Serving::start(&env, &[]);
    let bearer = format!("Bearer {}", serving.token);
    let all = [
        ("Host", serving.address.as_str()),
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let large = vec![b' '; 5 * 1024 * 1024];
    assert_eq!(serving.send("POST", "/mcp", &all, &large).0, 413);
    assert_eq!(serving.send("POST", "/mcp", &all[..2], b"{}").0, 415);
    let form = [all[0], all[1], ("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(serving.send("POST", "/mcp", &form, b"a=b").0, 415);
    assert_eq!(serving.send("OPTIONS", "/mcp", &all, b"").0, 405);
    assert_eq!(serving.send("PUT", "/mcp", &all, b"{}").0, 405);
    assert_eq!(serving.send("POST", "/", &all, b"{}").0, 404);
    assert_eq!(serving.send("GET", "/../../etc/passwd", &all, b"").0, 404);
    for nonsense in ["", "{", "[]", "{\"jsonrpc\":\"2.0\"}", "\u{0}"] {
        let (status, answer) = serving.send("POST", "/mcp", &all, nonsense.as_bytes());
        assert!((400..500).contains(&status), "{nonsense:?}: {answer}");
    }
    assert!(!serving.call("tester", "status", &json!({})).1, "it is well after all that");
}

#[test]
fn sixty_four_clients_at_once_lose_nothing() {
    const CLIENTS: usize = 64;
    let env = TestEnv::new();
    let serving = Serving::start(&env, &[]);
    serving.call("tester", "create", &json!({ "path": "/memories/shared.md", "file_text": "list\n" }));
    let barrier = Barrier::new(CLIENTS);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (serving, barrier) = (&serving, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for edit in 0..4 {
                    let line = format!("list\nclient {client} edit {edit}");
                    let arguments =
                        json!({ "path": "/memories/shared.md", "old_str": "list", "new_str": line });
                    let (told, is_error) =
                        serving.call(&format!("client-{client}"), "str_replace", &arguments);
                    assert!(!is_error, "{told}");
                }
            });
        }
    });
    let text = std::fs::read_to_string(env.path(".local/share/haversack/memory/shared.md")).expect("there");
    for client in 0..CLIENTS {
        for edit in 0..4 {
            assert!(text.contains(&format!("client {client} edit {edit}\n")), "{client} {edit}");
        }
    }
    assert_eq!(text.lines().count(), CLIENTS * 4 + 1);
}

#[cfg(unix)]
#[test]
fn only_its_user_is_let_in() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    let refused = |arguments: &[&str]| {
        let mut all = vec!["serve"];
        all.extend(arguments);
        env.run(&all)
    };
    for arguments in [
        &["--listen", "0.0.0.0:0"][..],
        &["--listen", "0.0.0.0:0", "--beyond-loopback"],
        &["--listen", "[::]:0", "--token-file", "token"],
    ] {
        let shown = refused(arguments);
        assert!(
            shown.starts_with("exit 1\n") && shown.contains("can be reached from other machines"),
            "{shown}"
        );
    }
    let file = env.path("token");
    let beyond = ["--listen", "0.0.0.0:0", "--beyond-loopback", "--token-file", "token"];
    assert!(
        refused(&beyond).contains("could not read or create the token"),
        "no token is made for other machines"
    );
    std::fs::write(&file, "0123456789abcdef0123456789abcdef\n").expect("written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("set");
    assert!(refused(&beyond).contains("can be read by others"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("set");
    std::fs::write(&file, "short\n").expect("written");
    assert!(refused(&beyond).contains("too short"));
    let serving = Serving::start(&env, &[]);
    let made = std::fs::metadata(env.path(".local/share/haversack/state/serve/token")).expect("made");
    assert_eq!((made.permissions().mode() & 0o777, serving.token.len()), (0o600, 64));
}

/// The most sessions that a server has at once, as the guide says.
const MAX_SESSIONS: usize = 128;

/// Headers of a client of an older revision, which has a session.
fn older<'a>(serving: &'a Serving, bearer: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("Host", serving.address.as_str()),
        ("Authorization", bearer),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ]
}

/// Opens a session as a client of an older revision; returns its id, or the answer that refuses it.
fn open_session(serving: &Serving, bearer: &str) -> Result<String, String> {
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "tester", "version": "1" },
    });
    let body = request(1, "initialize", hello).to_string();
    let (status, answer) = serving.send("POST", "/mcp", &older(serving, bearer), body.as_bytes());
    let id = answer
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(|id| id.trim().to_owned()));
    match id.filter(|_| status == 200) {
        Some(id) => Ok(id),
        None => Err(answer),
    }
}

/// Returns the status of a request in a session: 200 if the session is open, 404 if it is not.
fn ping(serving: &Serving, bearer: &str, session: &str) -> u16 {
    let mut headers = older(serving, bearer);
    headers.push(("Mcp-Session-Id", session));
    headers.push(("MCP-Protocol-Version", "2025-11-25"));
    serving.send("POST", "/mcp", &headers, request(2, "ping", json!({})).to_string().as_bytes()).0
}

#[test]
fn sessions_are_bounded_and_the_oldest_idle_one_is_closed() {
    let env = TestEnv::new();
    let serving = Serving::start(&env, &[]);
    let bearer = format!("Bearer {}", serving.token);
    let opened: Vec<String> = (0..MAX_SESSIONS + 40)
        .map(|_| open_session(&serving, &bearer).expect("there is always room"))
        .collect();
    let open: Vec<bool> = opened.iter().map(|session| ping(&serving, &bearer, session) == 200).collect();
    assert_eq!(open.iter().filter(|is_open| **is_open).count(), MAX_SESSIONS);
    assert!(open[40..].iter().all(|is_open| *is_open), "the newest stay");
    // The first of those that are left was just used, and is not the oldest any more.
    assert_eq!(ping(&serving, &bearer, &opened[40]), 200);
    open_session(&serving, &bearer).expect("the oldest makes room");
    assert_eq!(ping(&serving, &bearer, &opened[40]), 200);
    assert_eq!(ping(&serving, &bearer, &opened[41]), 404);
}

#[test]
fn session_is_refused_with_503_while_all_others_are_in_use() {
    let env = TestEnv::new();
    let serving = Serving::start(&env, &[]);
    let bearer = format!("Bearer {}", serving.token);
    let mut streams = Vec::new();
    for _ in 0..MAX_SESSIONS {
        let session = open_session(&serving, &bearer).expect("there is room");
        let mut stream = TcpStream::connect(&serving.address).expect("it listens");
        let head = format!(
            "GET /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n",
            serving.address
        );
        stream.write_all(head.as_bytes()).expect("sent");
        // The answer has begun: the session is in use from here on.
        let mut line = String::new();
        let mut reader = BufReader::new(stream);
        reader.read_line(&mut line).expect("it answers");
        assert!(line.contains("200"), "{line}");
        streams.push(reader);
    }
    let answer = open_session(&serving, &bearer).expect_err("all are in use");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.to_lowercase().contains("\r\nretry-after: "), "{answer}");
    assert!(answer.contains("128 sessions are in use"), "{answer}");
    // One client leaves, and there is room again.
    drop(streams.pop());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while let Err(answer) = open_session(&serving, &bearer) {
        assert!(std::time::Instant::now() < deadline, "{answer}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Opens a connection that asks for nothing: it says nothing at all, stops within the head, or has no token and stops within the body.
fn stall(serving: &Serving, way: usize) -> TcpStream {
    let mut stream = TcpStream::connect(&serving.address).expect("it listens");
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", serving.address);
    let part = match way {
        0 => String::new(),
        1 => format!("{head}Authori"),
        _ => format!("{head}Content-Length: 100\r\n\r\n{{"),
    };
    // The server may have hung up already.
    drop(stream.write_all(part.as_bytes()));
    stream
}

/// Panics if the server has hung up on a connection, or has answered.
fn assert_connected(stream: &mut TcpStream) {
    stream.set_nonblocking(true).expect("set");
    let heard = stream.read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(heard, Err(std::io::ErrorKind::WouldBlock));
}

#[test]
fn stalled_connections_do_not_keep_a_client_waiting() {
    let env = TestEnv::new();
    let serving = Serving::start(&env, &[]);
    let mut stalled: Vec<TcpStream> = (0..300).map(|number| stall(&serving, number % 2)).collect();
    assert!(!serving.call("tester", "status", &json!({})).1);
    // The answer did not wait for the server to hang up on the others: these have been connected since before it.
    stalled[150..240].iter_mut().for_each(assert_connected);
    stalled.extend((300..1000).map(|number| stall(&serving, number % 3)));
    assert!(!serving.call("tester", "status", &json!({})).1);
    for number in (850..940).filter(|number| number % 3 != 2) {
        assert_connected(&mut stalled[number]);
    }
}

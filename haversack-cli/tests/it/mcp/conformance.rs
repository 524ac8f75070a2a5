//! The protocol's own conformance suite, against `haversack serve`.
//!
//! It cannot send a token: a small proxy adds it, and leaves everything else as it is. `README.md` explains every expected failure.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;

use haversack_servers::tools;
use serde_json::{Value, json};

use super::clients::run;
use super::http::Serving;
use crate::environment::TestEnv;

/// The text after a scenario's name in its directory's name: a time of fixed length.
const TIME_CHARACTERS: usize = "-2026-11-16T19-04-40-743Z".len();

#[test]
fn of_2025_11_25() {
    conforms("2025-11-25");
}

#[test]
fn of_2026_07_28() {
    conforms("2026-07-28");
}

/// Runs what a revision requires; what fails must be what is expected to, no more and no less.
fn conforms(revision: &str) {
    let Some(program) = tools::program_or_skip("mcp_conformance", "cargo xtask tools") else { return };
    let env = TestEnv::new();
    let serving = Serving::start(&env, &[]);
    // A memory to list and read.
    serving.call(
        "tester",
        "create",
        &json!({ "path": "/memories/lamp.md", "file_text": "The lamp is white." }),
    );
    let address = with_token(serving.address.clone(), serving.token.clone());
    let list = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/mcp")
        .join(format!("conformance-expected-failures-{revision}.yml"));
    let mut command = env.program(&program.display().to_string());
    command.args(["server", "--url", &format!("http://{address}/mcp"), "--requirements", revision]);
    command.arg("--expected-failures").arg(&list).arg("-o").arg(env.path("results"));
    let (status, printed, complained) = run(&env, &mut command);
    let (failed, passed) = outcome(&env.path("results"));
    let list = fs::read_to_string(list).expect("committed");
    let expected: BTreeSet<String> =
        list.lines().filter_map(|line| line.strip_prefix("  - ")).map(str::to_owned).collect();
    let unexpected: Vec<_> = failed.difference(&expected).collect();
    let mended: Vec<_> = expected.difference(&failed).collect();
    assert!(unexpected.is_empty() && mended.is_empty(), "unexpected {unexpected:#?}, mended {mended:#?}");
    assert_eq!(status, Some(0), "{printed}\n{complained}");
    assert!(passed > 40, "{passed} passed: {printed}");
}

/// Returns what failed, as `scenario:check`, and how many checks passed.
fn outcome(results: &Path) -> (BTreeSet<String>, usize) {
    let (mut failed, mut passed) = (BTreeSet::new(), 0);
    for directory in fs::read_dir(results).expect("written") {
        let directory = directory.expect("listed");
        let name = directory.file_name().into_string().expect("a plain name");
        let scenario = &name["server-".len()..name.len() - TIME_CHARACTERS];
        let checks = fs::read_to_string(directory.path().join("checks.json")).expect("written");
        let checks: Value = serde_json::from_str(&checks).expect("JSON");
        for check in checks.as_array().expect("a list") {
            match check["status"].as_str().expect("a status") {
                "SUCCESS" => passed += 1,
                "INFO" | "SKIPPED" => {}
                _ => drop(failed.insert(format!("{scenario}:{}", check["id"].as_str().expect("named")))),
            }
        }
    }
    (failed, passed)
}

/// Starts a proxy that adds the token to every request; returns where it listens.
fn with_token(server: String, token: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (server, token) = (server.clone(), token.clone());
            // One that goes away in the middle is the suite's business.
            std::thread::spawn(move || drop(pass(client, &server, &token)));
        }
    });
    address
}

/// Passes one request on, and its answer back as it comes.
fn pass(mut client: TcpStream, server: &str, token: &str) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head);
    // One request for each connection: the next would have no token.
    let lines = head.trim_end().split("\r\n").filter(|line| !line.to_lowercase().starts_with("connection:"));
    let lines: Vec<&str> = lines.collect();
    let mut server = TcpStream::connect(server)?;
    let added = format!("Authorization: Bearer {token}\r\nConnection: close");
    server.write_all(format!("{}\r\n{added}\r\n\r\n", lines.join("\r\n")).as_bytes())?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || {
        drop(std::io::copy(&mut from, &mut to));
        drop(to.shutdown(Shutdown::Both));
    });
    drop(std::io::copy(&mut server, &mut client));
    client.shutdown(Shutdown::Both)
}

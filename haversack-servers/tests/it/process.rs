//! Processes: none is left, however the one that started it ended.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use haversack_servers::{Azurite, Moto, http};

/// Makes [`dies_with_whoever_started_it`] start a server and wait to be killed.
const VICTIM: &str = "HAVERSACK_SERVERS_VICTIM";

/// The time in which the system must end a process.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn ends_with_its_handle() {
    let Some(moto) = Moto::start() else { return };
    let (id, endpoint) = (moto.id().expect("it runs"), moto.endpoint().to_owned());
    assert!(exists(id));
    drop(moto);
    assert!(!exists(id), "{id} is left");
    assert!(http::send("GET", &endpoint, &[], b"").is_err());
}

#[test]
fn leaves_no_file() {
    let Some(azurite) = Azurite::start() else { return };
    let directory = azurite.ca_file().parent().expect("it is in a directory").to_owned();
    drop(azurite);
    assert!(!directory.exists());
}

#[test]
fn dies_with_whoever_started_it() {
    if std::env::var_os(VICTIM).is_some() {
        let azurite = Azurite::shared().expect("the parent has one");
        haversack_servers::tools::skip(&format!(
            "victim {} {}",
            azurite.id().expect("it runs"),
            azurite.ca_file().parent().expect("it is in a directory").display()
        ));
        loop {
            std::thread::sleep(PATIENCE);
        }
    }
    if haversack_servers::tools::program_or_skip("azurite", "cargo xtask tools").is_none() {
        return;
    }
    let mut child = Command::new(std::env::current_exe().expect("this is a program"))
        .args(["--exact", "process::dies_with_whoever_started_it", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this program starts once more");
    let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut lines = lines.map(|line| line.expect("it prints text"));
    let line = lines.find(|line| line.starts_with("skipped: victim ")).expect("it started a server");
    let mut words = line.split(' ').skip(2);
    let id: u32 = words.next().and_then(|id| id.parse().ok()).expect("it printed an id");
    let directory = Path::new(words.next().expect("it printed a directory"));
    assert!(exists(id) && directory.exists());
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    let deadline = Instant::now() + PATIENCE;
    while exists(id) || directory.exists() {
        assert!(Instant::now() < deadline, "{id} or {} is left", directory.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns whether a process is there and not just waiting to be reaped by the system's first one.
fn exists(id: u32) -> bool {
    let state = Command::new("ps").args(["-o", "stat=", "-p", &id.to_string()]).output().expect("ps runs");
    let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

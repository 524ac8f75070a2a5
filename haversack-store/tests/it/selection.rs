//! Choosing a backend by name, without leaving a trace when the answer is no.

use std::fs;

use haversack_store::{Blocking, Capabilities, Condition, ErrorKind, Locator, OpenOptions, Registry};
use tempfile::TempDir;

#[test]
fn a_refusal_creates_nothing() {
    let base = TempDir::new().expect("a temporary directory");
    let path = |name: &str| base.path().join(name).display().to_string();
    let options = OpenOptions { address: path("memory"), locks: path("locks"), ..OpenOptions::default() };
    let registry = Registry::standard();
    let encrypted = Capabilities { encryption: true, ..Capabilities::default() };
    for (name, required, kind) in [
        ("device-local", &encrypted, ErrorKind::Unsupported),
        ("vault", &encrypted, ErrorKind::Unsupported),
        ("vault", &Capabilities::default(), ErrorKind::Invalid),
        ("nowhere", &Capabilities::default(), ErrorKind::Invalid),
        ("", &Capabilities::default(), ErrorKind::Invalid),
    ] {
        let error = registry.select(name, &options, required).expect_err("refused");
        assert_eq!(error.kind(), kind, "{error:?}");
        assert_eq!(fs::read_dir(base.path()).expect("listed").count(), 0, "{name} left a trace");
    }
}

#[test]
fn what_is_named_is_what_is_opened() {
    let base = TempDir::new().expect("a temporary directory");
    let path = |name: &str| base.path().join(name).display().to_string();
    let options = OpenOptions { address: path("memory"), locks: path("locks"), ..OpenOptions::default() };
    let durable = Capabilities { durable: true, ..Capabilities::default() };
    let backend = Registry::standard().select("device-local", &options, &durable).expect("opened");
    let locator = Locator::parse("a.md").expect("valid");
    let _ = Blocking::new(backend).write(&locator, "x", Condition::Absent).expect("written");
    assert_eq!(fs::read_to_string(base.path().join("memory/a.md")).expect("a plain file"), "x");
}

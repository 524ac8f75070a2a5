//! Names that have led other programs out of their directory, at every door.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use haversack_store::{Condition, Durability, ErrorKind, Locator};

use super::{SECRET, Scene, at};

fn payloads() -> Vec<String> {
    let plain = [
        "../x",
        "/memories/../x",
        "/memories/../../etc/passwd",
        "/memories/a/../../x",
        "/memories/./../x",
        "//memories//../x",
        "/memories/..",
        "/memories/.../x",
        "/memoriesX/x",
        "/memories_evil/x",
        "/memories",
        "/",
        "",
        ".",
        "memories/x",
        "/etc/passwd",
        "file:///etc/passwd",
        "~/x",
        "$HOME/x",
        "%2e%2e%2f",
        "..%2f",
        "%2e%2e/",
        "..%252f",
        "%c0%ae%c0%ae/",
        "..%5c",
        "..\\x",
        "\\..\\x",
        "C:\\x",
        "C:x",
        "\\\\server\\share",
        "\\\\?\\C:\\x",
        "\\\\.\\NUL",
        "CON",
        "con.md",
        "nul.txt",
        "aux",
        "COM1.md",
        "LPT\u{b9}",
        "a:b",
        "x.md::$DATA",
        "x.md.",
        "x.md ",
        " x",
        "a\0b",
        "a\nb",
        "a\rb",
        "a\u{1b}[2Jb",
        "\u{202e}x",
        "\u{2024}x",
        "\u{2025}/x",
        "\u{ff0e}\u{ff0e}/x",
        "a\u{2215}b",
        "a\u{ff0f}b",
        "\u{feff}x",
        "\u{e9}",
        "e\u{301}",
        "README.md",
        "readme.md",
        "stra\u{df}e",
        "STRASSE",
        "\u{130}x",
        ".git/config",
        ".memory-internal/x",
        ".haversack/store.json",
        ".haversack-draft-0",
        "manifest.json",
        "-rf",
        ".tmp-1",
        "...",
        "a/.../x",
        "/proc/self/root/etc/passwd",
        "/proc/self/fd/0",
        "/dev/null",
        "..",
        "../..",
        "../../../../../../etc/passwd",
        "a/..",
        "./..",
        "..;/x",
        "..\u{0}/x",
        "%00",
        "a//../../x",
        "/./../x",
        "..../x",
        "*",
        "?",
        "a|b",
        "\"a\"",
        "`id`",
        "$(id)",
        "; rm -rf .",
        "&& x",
        "{a,b}",
        "[a-z]",
        "#x",
        "@x",
        "=x",
        "+x",
        "a/b/c/d/e/f/../../../../../../../x",
        "\u{2028}x",
        "\u{200b}",
        "\u{e0041}",
        "x\u{7f}y",
        "\u{85}",
        "CONIN$",
        "clock$",
        "con .md",
        "desktop.ini",
        "Thumbs.db",
        ".DS_Store",
        ".",
        "./",
        "//",
        "///x",
        "a/./b",
        "a/",
        "/a",
    ];
    let mut all: Vec<String> = plain.iter().map(|name| (*name).to_owned()).collect();
    all.push("n".repeat(256));
    all.push("p".repeat(5000));
    all.push(vec!["d"; 300].join("/"));
    all.push(vec!["d"; 2000].join("/"));
    all.push("../".repeat(200) + "etc/passwd");
    all
}

#[test]
fn no_name_leads_out_at_any_door() {
    let payloads = payloads();
    assert!(payloads.len() >= 120, "{}", payloads.len());
    for payload in &payloads {
        let scene = Scene::new();
        let before = scene.neighbourhood();
        let store = &scene.store;
        let _ = store.write(&at("here.md"), "x", Condition::Any).expect("written");
        for door in [Locator::parse, Locator::reserved, Locator::from_stored_key] {
            let Ok(locator) = door(payload) else { continue };
            // For every answer, it must not panic, hang or reach outside.
            drop(store.read(&locator));
            drop(store.info(&locator));
            drop(store.list(&locator));
            drop(store.list_all(&locator));
            drop(store.mkdir(&locator));
            drop(store.write(&locator, "written", Condition::Absent));
            drop(store.write(&locator, "written", Condition::Any));
            drop(store.append(&locator, "appended", Durability::Now));
            drop(store.rename(&at("here.md"), &locator));
            drop(store.rename(&locator, &at("there.md")));
            drop(store.delete(&locator, Condition::Any));
        }
        assert_eq!(scene.neighbourhood(), before, "{payload:?} reached outside");
        assert!(super::working_names(&scene.root()).is_empty(), "{payload:?} left something behind");
    }
}

#[test]
fn what_is_accepted_is_served_literally() {
    let scene = Scene::new();
    let mut served = 0;
    for payload in payloads() {
        let Ok(locator) = Locator::parse(&payload) else { continue };
        let Ok(_) = scene.store.write(&locator, payload.clone(), Condition::Absent) else { continue };
        let object = scene.store.read(&locator).expect("what was written is there");
        assert_eq!(object.bytes, payload.as_bytes(), "{payload:?}");
        assert!(scene.store.list_all(&Locator::root()).expect("scanned").contains(&locator), "{payload:?}");
        served += 1;
    }
    assert!(served > 30, "{served}");
}

#[test]
fn names_on_the_disk_that_cannot_be_served_are_reported_and_left_alone() {
    let scene = Scene::new();
    let _ = scene.store.write(&at("good.md"), "x", Condition::Any).expect("written");
    let odd: [&[u8]; 4] = [b"not unicode \xff", b"back\\slash", b"new\nline", b"esc\x1b[2J"];
    for name in odd {
        fs::write(scene.root().join(std::ffi::OsStr::from_bytes(name)), "odd").expect("written");
    }
    fs::write(scene.root().join("cafe\u{301}.md"), "decomposed").expect("written");
    fs::write(scene.root().join("aux.md"), "fine here").expect("written");

    let listing = scene.store.list(&Locator::root()).expect("listed");
    let keys: Vec<&str> = listing.entries.iter().map(|entry| entry.locator.as_str()).collect();
    assert_eq!(keys, ["aux.md", "caf\u{e9}.md", "good.md"]);
    assert_eq!(listing.odd.len(), odd.len(), "{:?}", listing.odd);
    assert!(listing.odd.iter().all(|odd| !odd.shown.chars().any(char::is_control)), "{:?}", listing.odd);
    let mut odd_in_scan = 0;
    let visit = |page: haversack_store::Page| {
        odd_in_scan += page.odd.len();
        Ok(())
    };
    scene.store.scan(&Locator::root(), None, visit).expect("scanned");
    assert_eq!(odd_in_scan, odd.len());

    // A name that another program spelled decomposed keeps its spelling and is one object.
    let cafe = at("caf\u{e9}.md");
    let read = scene.store.read(&cafe).expect("read");
    let _ = scene.store.write(&cafe, "changed", Condition::Matches(read.version)).expect("written");
    assert_eq!(fs::read_to_string(scene.root().join("cafe\u{301}.md")).expect("read"), "changed");
    assert!(!scene.root().join("caf\u{e9}.md").exists());
    // An existing name that some platform cannot hold can be read, replaced and deleted.
    let aux = scene.store.read(&at("aux.md")).expect("read");
    let _ = scene.store.write(&at("aux.md"), "y", Condition::Matches(aux.version)).expect("written");
    scene.store.delete(&at("aux.md"), Condition::Any).expect("deleted");
    assert_eq!(fs::read(scene.root().join(std::ffi::OsStr::from_bytes(odd[0]))).expect("left alone"), b"odd");
}

#[test]
fn files_are_private_whatever_the_umask() {
    // The umask is the process's: another process has another one.
    let scene = Scene::new();
    for umask in ["000", "022", "077", "277", "777"] {
        let mut child = super::processes::child(scene.base.path(), "modes", umask);
        let child = child.output().expect("it ran");
        assert!(child.status.success(), "umask {umask}: {}", String::from_utf8_lossy(&child.stdout));
        for (key, mode) in [("dir", 0o700), ("dir/new.md", 0o600), ("dir/log", 0o600)] {
            let path = scene.root().join(umask).join(key);
            let found = fs::symlink_metadata(&path).expect("there").permissions().mode() & 0o777;
            assert_eq!(found, mode, "{key} under umask {umask}");
        }
    }
}

#[test]
fn a_replaced_file_keeps_its_mode() {
    let scene = Scene::new();
    let path = scene.root().join("shared.md");
    fs::write(&path, "old").expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("changed");
    let version = scene.store.read(&at("shared.md")).expect("read").version;
    let _ = scene.store.write(&at("shared.md"), "new", Condition::Matches(version)).expect("written");
    let _ = scene.store.write(&at("shared.md"), "newer", Condition::Any).expect("written");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o640);
}

#[test]
fn locks_inside_the_root_are_refused() {
    let scene = Scene::new();
    let inside = haversack_store::DeviceLocal::open(scene.root(), scene.root().join("locks"));
    assert_eq!(inside.expect_err("refused").kind(), ErrorKind::Invalid);
    assert_eq!(
        haversack_store::DeviceLocal::open("", scene.base.path()).expect_err("refused").kind(),
        ErrorKind::Invalid
    );
    assert_eq!(fs::read_to_string(scene.base.path().join("x")).expect("there"), SECRET);
}

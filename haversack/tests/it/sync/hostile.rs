//! A remote with a hostile writer who knows the formats: names that lead elsewhere, sizes and positions that lie, commits of other
//! stores. Bad parts are left out and reported, and the rest arrives.

use std::sync::Arc;

use futures_lite::future::block_on;
use haversack::ids::{ContentHash, Position};
use haversack::log::{Checkpoint, Folded, MAX_CHANGES, layout};
use haversack::store::{Backend, BackendExt, Bytes, Condition, DeviceLocal, Locator};
use haversack::sync::{Context, Fetching, Mirror};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::lab::{DEVICES, Forged, Lab, add, frame, is_there, objects};
use crate::subjects::at;

/// Names that no file may have.
const ODD: &[&str] = &[
    "../x",
    "a/../../x",
    "/etc/x",
    "a//b.md",
    "./a.md",
    "a.md/",
    "",
    "..",
    "a\\b.md",
    "C:\\x",
    "a\u{0}b",
    "a\nb",
    "\u{1b}[2J",
    "e\u{301}.md",
    ".haversack/x",
    ".haversack/log/0000000000000009",
    ".Haversack/x",
    "manifest.json",
    "notes/.haversack-swap-1",
];

/// Names that are good, and that some disk cannot hold.
const UNPORTABLE: &[&str] = &["CON.md", "what?.md", "end.", "c:/x.md"];

/// Returns a lab in which the laptop has published a few files.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.put("laptop", "a.md", "a\n");
    lab.put("laptop", "dir/b.md", "b\n");
    lab.sync("laptop").expect("synced");
    lab.sync("desktop").expect("synced");
    lab
}

fn keys(lab: &Lab, device: &str) -> Vec<String> {
    lab.files(device).into_keys().collect()
}

fn sorted(keys: &[&str]) -> Vec<String> {
    let mut keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    keys.sort();
    keys
}

/// Returns the files that the log has, odd ones too, as one who joins and reads all of it would write them down.
fn logged(lab: &Lab) -> String {
    let mut all = String::new();
    for (key, bytes) in objects(&*lab.remote).iter().filter(|(key, _)| key.starts_with(".haversack/log/")) {
        all += &format!("{key} {}\n", String::from_utf8_lossy(bytes));
    }
    all
}

/// Fails unless every device has these files, says so quietly, and no commit took anything away.
#[track_caller]
fn all_have(lab: &Lab, case: &str, expected: &[&str]) {
    let files = lab.converge(case);
    assert_eq!(files.into_keys().collect::<Vec<_>>(), sorted(expected), "{case}");
    assert!(!logged(lab).contains("\"delete\""), "{case}: nobody deleted anything");
}

#[test]
fn odd_names_in_a_commit_are_reported_and_the_rest_arrives() {
    for name in ODD {
        let lab = lab();
        lab.forge(&[Forged::put(name, "odd\n"), Forged::put("good.md", "good\n")]);
        lab.put("desktop", "own.md", "own\n");
        for device in ["desktop", "tablet", "laptop"] {
            let report = lab.sync(device).unwrap_or_else(|why| panic!("{name:?}: the {device}: {why}"));
            let odd: Vec<&str> = report.odd.iter().map(|(shown, _)| shown.as_str()).collect();
            assert_eq!(odd.len(), 1, "{name:?}: the {device} reports {odd:?}");
            assert!(!odd[0].contains(['\n', '\u{1b}', '\0']), "{odd:?}");
            assert!(report.odd[0].1.contains("refused"), "{:?}", report.odd);
        }
        all_have(&lab, name, &["a.md", "dir/b.md", "good.md", "own.md"]);
        let inside = objects(&*lab.device("desktop").files).into_keys().collect::<Vec<_>>();
        assert!(inside.iter().all(|key| !key.starts_with(".haversack")), "{name:?}: {inside:?}");
    }
}

#[test]
fn all_odd_names_at_once_survive_being_written_down() {
    let lab = lab();
    let mut changes: Vec<Forged> = ODD.iter().map(|name| Forged::put(name, "odd\n")).collect();
    changes.push(Forged::put("good.md", "good\n"));
    lab.forge(&changes);
    assert_eq!(lab.sync("desktop").expect("synced").odd.len(), ODD.len());
    // From the journal, and then from a snapshot.
    for torn in ["", "0123456789abcdef {"] {
        let journal = objects(&*lab.device("desktop").state)["journal-0"].clone();
        lab.put_state("desktop", "journal-0", [&journal[..], torn.as_bytes()].concat());
        assert_eq!(lab.sync("desktop").expect("synced").published, 0);
    }
    all_have(&lab, "all of them", &["a.md", "dir/b.md", "good.md"]);
}

#[test]
fn an_odd_spelling_does_not_touch_the_file_it_resembles() {
    let lab = lab();
    for number in 0..4 {
        lab.put("laptop", "log.md", format!("{number}\n"));
        lab.sync("laptop").expect("synced");
    }
    assert!(is_there(&*lab.remote, ".haversack/checkpoints/0000000000000004"));
    let lazily = || {
        lab.with("tablet", async |replica, context| {
            let report = replica.sync(Context { fetching: Fetching::WhenAsked, ..context }).await?;
            Ok((report, replica.unfetched()))
        })
        .expect("synced")
    };
    assert!(lazily().1.contains(&at("dir/b.md")));
    lab.forge(&[Forged::put("dir//b.md", "odd\n"), Forged::put("./a.md", "odd\n")]);
    lab.put("tablet", "own.md", "own\n");
    let (_, unfetched) = lazily();
    assert!(unfetched.contains(&at("dir/b.md")) && unfetched.contains(&at("a.md")), "{unfetched:?}");
    lazily();
    all_have(&lab, "resembling", &["a.md", "dir/b.md", "log.md", "own.md"]);
}

#[test]
fn twins_in_one_commit_are_not_deleted_by_who_cannot_hold_both() {
    let lab = lab();
    lab.forge(&[Forged::put("README.md", "one\n"), Forged::put("readme.md", "two\n")]);
    for device in ["desktop", "tablet"] {
        let report = lab.sync(device).expect("synced");
        assert_eq!(report.odd.len(), 1, "{device}: {report:?}");
        lab.put(device, &format!("{device}.md"), "own\n");
        lab.reconcile(device, Mirror::Off).expect("reconciled");
        lab.sync(device).expect("synced");
    }
    all_have(&lab, "twins", &["README.md", "a.md", "desktop.md", "dir/b.md", "tablet.md"]);
}

#[test]
fn twins_in_two_commits_and_files_in_the_way_are_refused_and_the_rest_arrives() {
    for (first, second) in
        [("README.md", "readme.md"), ("x", "x/y.md"), ("x/y.md", "x"), ("Dir/c.md", "z.md")]
    {
        let case = format!("{first} and {second}");
        let lab = lab();
        lab.forge(&[Forged::put(first, "first\n")]);
        lab.forge(&[Forged::put(second, "second\n"), Forged::put("good.md", "good\n")]);
        for device in ["desktop", "tablet", "laptop"] {
            let report = lab.sync(device).unwrap_or_else(|why| panic!("{case}: the {device}: {why}"));
            assert_eq!(report.refused.len(), 1, "{case}: the {device}: {report:?}");
            lab.put(device, &format!("{device}.md"), "own\n");
            let report =
                lab.reconcile(device, Mirror::On).unwrap_or_else(|why| panic!("{case}: {device}: {why}"));
            assert_eq!(report.published, 1, "{case}: the {device}: {report:?}");
        }
        // The file that a device has depends on the first to arrive; nothing else does.
        for device in DEVICES.iter().chain(&DEVICES) {
            lab.sync(device).unwrap_or_else(|why| panic!("{case}: the {device}: {why}"));
        }
        for device in DEVICES {
            let rest = ["a.md", "desktop.md", "good.md", "laptop.md", "tablet.md"];
            let missing: Vec<_> =
                rest.into_iter().filter(|key| !lab.files(device).contains_key(*key)).collect();
            assert_eq!(missing, Vec::<&str>::new(), "{case}: the {device}");
            assert_eq!(lab.sync(device).expect("synced").published, 0, "{case}: the {device} is quiet");
        }
        assert!(!logged(&lab).contains("\"delete\""), "{case}: nobody deleted anything");
        assert!(is_there(&*lab.remote, "good.md"), "{case}: the rest is mirrored");
    }
}

#[test]
fn a_directory_of_mine_where_they_have_a_file() {
    for on_disk in [false, true] {
        let lab = lab();
        let base = TempDir::new().expect("a temporary directory");
        let open =
            || DeviceLocal::open(base.path().join("files"), base.path().join("locks")).expect("it opens");
        lab.put("desktop", "notes/mine.md", "mine\n");
        lab.put("laptop", "notes", "a file\n");
        lab.put("laptop", "z.md", "z\n");
        lab.sync("laptop").expect("synced");
        let report = match on_disk {
            false => lab.sync("desktop"),
            true => {
                let disk = Arc::new(open());
                for (key, bytes) in lab.files("desktop") {
                    let _ = block_on(disk.write(&at(&key), bytes, Condition::Any)).expect("written");
                }
                lab.with_backends("desktop", disk, lab.remote.clone(), async |replica, context| {
                    replica.sync(context).await?;
                    replica.reconcile(context, Mirror::Off).await
                })
            }
        };
        let report = report.expect("it goes on");
        assert_eq!(report.held.len(), 1, "on disk: {on_disk}: {report:?}");
        if !on_disk {
            assert_eq!(report.refused, [at("notes")]);
            assert_eq!(keys(&lab, "desktop"), sorted(&["a.md", "dir/b.md", "notes/mine.md", "z.md"]));
            lab.reconcile("desktop", Mirror::Off).expect("it goes on");
            lab.sync("laptop").expect("synced");
            assert_eq!(keys(&lab, "laptop"), sorted(&["a.md", "dir/b.md", "notes", "z.md"]));
        }
    }
}

#[test]
fn a_name_too_long_to_step_aside_stays() {
    let lab = lab();
    let long = "x".repeat(250);
    lab.put("desktop", &long, "mine\n");
    lab.forge(&[Forged::put(&long.to_uppercase(), "theirs\n"), Forged::put("good.md", "good\n")]);
    let report = lab.sync("desktop").expect("it goes on");
    assert_eq!((report.refused.len(), report.held.len()), (1, 1), "{report:?}");
    assert_eq!(lab.text("desktop", &long), "mine\n");
    assert_eq!(lab.text("desktop", "good.md"), "good\n");
}

#[test]
fn names_that_a_disk_cannot_hold_stop_neither_files_nor_mirror() {
    let lab = lab();
    let mut changes: Vec<Forged> = UNPORTABLE.iter().map(|name| Forged::put(name, "x\n")).collect();
    changes.push(Forged::put("good.md", "good\n"));
    lab.forge(&changes);
    for device in ["desktop", "tablet", "laptop"] {
        let report = lab.sync(device).expect("it goes on");
        assert_eq!(report.refused.len(), UNPORTABLE.len(), "{report:?}");
        let mirrored = lab.mirror(device).expect("it goes on");
        assert_eq!(mirrored.refused.len(), UNPORTABLE.len(), "{mirrored:?}");
        lab.reconcile(device, Mirror::On).expect("it goes on");
    }
    assert!(is_there(&*lab.remote, "good.md") && is_there(&*lab.remote, "a.md"));
    let before = objects(&*lab.remote);
    lab.mirror("laptop").expect("mirrored");
    assert!(objects(&*lab.remote) == before, "and then it is quiet");
    all_have(&lab, "unportable", &["a.md", "dir/b.md", "good.md"]);
}

#[test]
fn sizes_that_lie() {
    for size in [0, 3, u64::MAX, u64::MAX / 2 + 1] {
        let lab = lab();
        let (one, two) = ("first content\n", "second content\n");
        for text in [one, two] {
            lab.put_remote(layout::object(&ContentHash::of(text.as_bytes())).as_str(), text.to_owned());
        }
        lab.forge(&[
            Forged::object("lie1.md", ContentHash::of(one.as_bytes()), size),
            Forged::object("lie2.md", ContentHash::of(two.as_bytes()), size),
            Forged::object("gone.md", ContentHash::of(b"nowhere"), 7),
            Forged::put("good.md", "good\n"),
        ]);
        for device in ["desktop", "tablet", "laptop"] {
            for _ in 0..2 {
                lab.sync(device).unwrap_or_else(|why| panic!("{size}: the {device}: {why}"));
                lab.reconcile(device, Mirror::Off).unwrap_or_else(|why| panic!("{size}: {device}: {why}"));
            }
            lab.put(device, &format!("{device}.md"), "own\n");
        }
        lab.converge(&format!("size {size}"));
        let report = lab.reconcile("tablet", Mirror::Off).expect("it goes on");
        assert_eq!(report.missing, [at("gone.md"), at("lie1.md"), at("lie2.md")], "{size}");
        assert_eq!(lab.text("tablet", "good.md"), "good\n");
        assert!(!logged(&lab).contains("\"delete\""), "{size}: nobody deleted anything");
    }
}

#[test]
fn what_does_not_belong_at_a_position_stops_there_and_is_not_written_over() {
    type Forge = fn(&Lab) -> (Position, Bytes);
    let cases: [(&str, &str, Forge); 7] = [
        ("a commit of another store", "another store", |lab| {
            let other = self::lab();
            other.forge(&[Forged::put("x.md", "x\n")]);
            let position = other.last_position();
            let bytes = objects(&*other.remote)[layout::commit(position).as_str()].clone();
            let (mut heading, contents) = parts(&bytes);
            heading["store"] = json!("00000000000000000000000000000bad");
            (lab.last_position().next().expect("a next one"), frame("commit", &heading, &contents))
        }),
        ("a commit of another position", "belongs at 9", |lab| {
            (
                lab.last_position().next().expect("a next one"),
                with(lab, |heading| heading["position"] = json!(9)),
            )
        }),
        ("a commit built on something else", "history has changed", |lab| {
            let other = ContentHash::of(b"something else");
            let forged = with(lab, |heading| heading["previous"] = json!(other));
            (lab.last_position().next().expect("a next one"), forged)
        }),
        ("a commit of a state that is not so", "does not fit", |lab| {
            let forged = with(lab, |heading| heading["state"] = json!("0".repeat(64)));
            (lab.last_position().next().expect("a next one"), forged)
        }),
        ("a commit of too many changes", "more than 10000 changes", |lab| {
            let line = |number| json!({"at": format!("{number}.md"), "delete": {}});
            let lines: Vec<Value> = (0..=MAX_CHANGES).map(line).collect();
            (
                lab.last_position().next().expect("a next one"),
                with(lab, |heading| heading["changes"] = json!(lines)),
            )
        }),
        ("a change that is not known", "newer version", |lab| {
            let line = json!({"at": "x.md", "link": {"to": "a.md"}});
            (
                lab.last_position().next().expect("a next one"),
                with(lab, |heading| heading["changes"] = json!([line])),
            )
        }),
        ("a position that jumps", "has a gap", |lab| {
            (Position::LAST, with(lab, |heading| heading["position"] = json!(Position::LAST)))
        }),
    ];
    for (case, says, forge) in cases {
        let lab = lab();
        let (position, bytes) = forge(&lab);
        let key = layout::commit(position).to_string();
        lab.put_remote(&key, bytes);
        let before = objects(&*lab.remote);
        lab.put("desktop", "own.md", "own\n");
        let why = lab.sync("desktop").expect_err(case);
        assert!(why.contains(says), "{case}: {why}");
        assert_eq!(objects(&*lab.remote), before, "{case}: nothing was written");
        assert_eq!(keys(&lab, "desktop"), sorted(&["a.md", "dir/b.md", "own.md"]), "{case}");
        lab.remove_remote(&key);
        all_have(&lab, case, &["a.md", "dir/b.md", "own.md"]);
    }
}

/// Returns the last commit once more, for the next position and with something changed.
fn with(lab: &Lab, change: impl FnOnce(&mut Value)) -> Bytes {
    let position = lab.last_position();
    let bytes = objects(&*lab.remote)[layout::commit(position).as_str()].clone();
    let (mut heading, _) = parts(&bytes);
    heading["position"] = json!(position.number() + 1);
    heading["previous"] = json!(ContentHash::of(&bytes));
    heading["changes"] = json!([]);
    change(&mut heading);
    frame("commit", &heading, b"")
}

/// Returns the heading and the contents of a frame.
fn parts(bytes: &[u8]) -> (Value, Vec<u8>) {
    let mut lines = bytes.splitn(4, |byte| *byte == b'\n').skip(2);
    let heading = serde_json::from_slice(lines.next().expect("a heading")).expect("JSON");
    (heading, lines.next().expect("contents").to_vec())
}

/// Returns a lab whose log is folded: nine commits, of which four are in a segment and the newest checkpoint is at the eighth.
fn folded_lab() -> Lab {
    let lab = lab();
    for number in 2..=9 {
        lab.put("laptop", "log.md", format!("{number}\n"));
        lab.sync("laptop").expect("synced");
    }
    assert!(is_there(&*lab.remote, ".haversack/checkpoints/0000000000000008"));
    assert!(is_there(&*lab.remote, ".haversack/segments/0000000000000005-0000000000000008"));
    lab
}

const FOLDED_FILES: &[&str] = &["a.md", "dir/b.md", "log.md"];

#[test]
fn checkpoints_that_lie_cost_time_only() {
    let newest = ".haversack/checkpoints/0000000000000008";
    let forge = |lab: &Lab, change: &dyn Fn(&mut Value)| {
        let (mut heading, contents) = parts(&objects(&*lab.remote)[newest]);
        change(&mut heading);
        frame("checkpoint", &heading, &contents)
    };
    type Lie<'a> = (&'a str, &'a dyn Fn(&mut Value));
    let lies: [Lie<'_>; 4] = [
        ("of another store", &|heading| heading["store"] = json!("00000000000000000000000000000bad")),
        ("of another position", &|heading| heading["position"] = json!(7)),
        ("of another commit", &|heading| heading["commit"] = json!(ContentHash::of(b"x"))),
        ("of nothing", &|heading| {
            heading["files"] = json!([]);
            heading["state"] = json!("0".repeat(64));
        }),
    ];
    for (case, change) in lies {
        let lab = folded_lab();
        lab.put_remote(newest, forge(&lab, change));
        assert_eq!(lab.sync("tablet").expect(case).taken, 5, "{case}: after the one at 4");
        all_have(&lab, case, FOLDED_FILES);
    }
    let lab = folded_lab();
    for number in [10, 1_000_000, Position::LAST.number() - 1, Position::LAST.number()] {
        let position = Position::new(number).expect("a position");
        let beyond = forge(&lab, &|heading| heading["position"] = json!(position));
        lab.put_remote(layout::checkpoint(position).as_str(), beyond);
    }
    assert_eq!(lab.sync("tablet").expect("joined").taken, 9, "the log is read from its start");
    all_have(&lab, "far beyond the log", FOLDED_FILES);
}

#[test]
fn odd_names_in_a_checkpoint_are_reported_and_the_rest_arrives() {
    let names = ["../x", "Good.md", "a//b.md", "good.md", "manifest.json"];
    let lab = lab();
    lab.forge(&names.map(|name| Forged::put(name, "x\n")));
    let position = lab.last_position();
    let bytes = objects(&*lab.remote)[layout::commit(position).as_str()].clone();
    let (commit, _) = parts(&bytes);
    let mut files = Vec::new();
    let mut all = names.to_vec();
    all.extend(["a.md", "dir/b.md"]);
    all.sort_unstable();
    let mut contents = Vec::new();
    for name in all {
        let text = match name {
            "a.md" => "a\n",
            "dir/b.md" => "b\n",
            _ => "x\n",
        };
        let hash = ContentHash::of(text.as_bytes());
        files.push(json!({"at": name, "hash": hash, "size": 2, "inline": 2}));
        contents.extend_from_slice(text.as_bytes());
    }
    let heading = json!({"store": commit["store"], "position": position, "commit": ContentHash::of(&bytes),
        "state": commit["state"], "packs": [], "files": files});
    let forged = frame("checkpoint", &heading, &contents);
    assert_eq!(Checkpoint::decode(&forged).expect("a good frame").odd.len(), 4);
    lab.put_remote(layout::checkpoint(position).as_str(), forged);
    let report = lab.sync("tablet").expect("joined");
    assert_eq!((report.odd.len(), report.taken), (4, 0), "{report:?}");
    lab.put("tablet", "own.md", "own\n");
    assert_eq!(lab.sync("tablet").expect("synced").published, 1);
    assert_eq!(keys(&lab, "tablet"), sorted(&["Good.md", "a.md", "dir/b.md", "own.md"]));
    lab.sync("desktop").expect("synced");
    assert!(!logged(&lab).contains("\"delete\""), "nobody deleted anything");
}

#[test]
fn segments_that_lie_cost_time_only() {
    let lab = folded_lab();
    let segments = ".haversack/segments/";
    let real = objects(&*lab.remote)[&format!("{segments}0000000000000001-0000000000000004")].clone();
    for range in [
        "0000000000000001-9999999999999999",
        "0000000000000005-9999999999999998",
        "0000000000000009-0000000000000012",
        "0000000000000002-0000000000000003",
    ] {
        lab.put_remote(&format!("{segments}{range}"), real.clone());
    }
    lab.put_remote(&format!("{segments}0000000000000001-0000000000000001"), &b"garbage"[..]);
    for number in 10..=17 {
        lab.put("laptop", "log.md", format!("{number}\n"));
        assert_eq!(lab.sync("laptop").expect("synced").not_folded, None);
    }
    assert!(
        is_there(&*lab.remote, &format!("{segments}0000000000000013-0000000000000016")),
        "it is still folded"
    );
    for key in objects(&*lab.remote).keys().filter(|key| key.starts_with(".haversack/checkpoints/")) {
        lab.remove_remote(key);
    }
    assert_eq!(lab.sync("tablet").expect("joined").taken, 17);
    all_have(&lab, "lying segments", FOLDED_FILES);
}

#[test]
fn folded_positions_that_lie_are_told() {
    let lab = folded_lab();
    let store = Folded { first: Position::FIRST, last: Position::FIRST, store: id_of(&lab) };
    let position = |number| Position::new(number).expect("a position");
    for (case, folded) in [
        ("at itself", Folded { first: position(9), last: position(9), ..store }),
        ("at another range", Folded { first: position(1), last: position(4), ..store }),
        ("at everything", Folded { first: position(1), last: Position::LAST, ..store }),
        (
            "at another store",
            Folded {
                store: haversack::ids::StoreId::from_bytes([9; 16]),
                first: position(5),
                last: position(8),
            },
        ),
    ] {
        let key = layout::commit(position(9)).to_string();
        let real = objects(&*lab.remote)[&key].clone();
        lab.put_remote(&key, folded.encode().expect("small"));
        let before = objects(&*lab.remote);
        for device in ["desktop", "tablet"] {
            let why = lab.sync(device).expect_err(case);
            assert!(why.contains("position 9") || why.contains("the segment"), "{case}: {why}");
        }
        lab.put("laptop", "own.md", case.to_owned());
        let why = lab.sync("laptop").expect_err(case);
        assert!(why.contains("position 9") || why.contains("the segment"), "{case}: {why}");
        assert_eq!(objects(&*lab.remote), before, "{case}: nothing was written");
        lab.put_remote(&key, real);
    }
    all_have(&lab, "lying positions", &["a.md", "dir/b.md", "log.md", "own.md"]);
}

fn id_of(lab: &Lab) -> haversack::ids::StoreId {
    let bytes = objects(&*lab.remote)[".haversack/store.json"].clone();
    haversack::log::StoreFile::decode(&bytes).expect("whole").store
}

#[test]
fn keys_that_are_nothing_of_ours_are_passed_over() {
    let lab = folded_lab();
    for key in [
        ".haversack/log/10",
        ".haversack/log/0000000000000010.tmp",
        ".haversack/log/sub/0000000000000011",
        ".haversack/log/latest",
        ".haversack/segments/latest",
        ".haversack/segments/0000000000000009-0000000000000001",
        ".haversack/checkpoints/latest",
        ".haversack/checkpoints/0000000000000009/x",
        ".haversack/objects/af1349",
        ".haversack/other/x",
        ".haversack-x",
    ] {
        lab.put_remote(key, &b"nothing of ours"[..]);
    }
    lab.put("desktop", "own.md", "own\n");
    let before = objects(&*lab.remote);
    all_have(&lab, "odd keys", &["a.md", "dir/b.md", "log.md", "own.md"]);
    let after = objects(&*lab.remote);
    assert!(before.iter().all(|(key, bytes)| after.get(key) == Some(bytes)), "all of it stays");
}

#[test]
fn a_store_that_lost_its_name_is_not_made_another_one() {
    for folded in [false, true] {
        let lab = if folded { folded_lab() } else { lab() };
        let store = id_of(&lab);
        lab.remove_remote(".haversack/store.json");
        if folded {
            // It says so by the segment it names.
            let folded =
                Folded { store, first: Position::FIRST, last: Position::new(4).expect("a position") };
            lab.put_remote(layout::commit(Position::FIRST).as_str(), folded.encode().expect("small"));
        }
        lab.put("tablet", "own.md", "own\n");
        lab.sync("tablet").expect("joined");
        assert_eq!(id_of(&lab), store, "folded: {folded}");
        let files = lab.converge_fully("its name is back");
        assert!(files.contains_key("own.md"));
    }
    // If the log cannot be read, no device gives the file another name.
    let lab = lab();
    lab.remove_remote(".haversack/store.json");
    lab.put_remote(layout::commit(Position::FIRST).as_str(), &b"garbage"[..]);
    let why = lab.sync("tablet").expect_err("it cannot be told");
    assert!(why.contains("position 1"), "{why}");
    assert!(!is_there(&*lab.remote, ".haversack/store.json"));
}

#[test]
fn manifests_that_lie() {
    let hash = |text: &str| ContentHash::of(text.as_bytes());
    let many: serde_json::Map<String, Value> =
        (0..5_000).map(|number| (format!("many/{number}.md"), json!({"size": 1}))).collect();
    for (case, manifest) in [
        ("far ahead", json!({"schema_version": 1, "position": Position::LAST, "entries": {}})),
        (
            "of another store",
            json!({"schema_version": 1, "store": "00000000000000000000000000000bad",
            "position": 7, "entries": {"a.md": {"size": 1, "hash": hash("by hand\n")}}}),
        ),
        (
            "odd names",
            json!({"schema_version": 1, "entries": {"../x": {"hash": hash("x")}, "/etc/x": {},
            "a//b.md": {}, ".haversack/store.json": {"hash": hash("x")}, "manifest.json": {}, "": {}}}),
        ),
        ("a directory as a file", json!({"schema_version": 1, "entries": {"dir": {"hash": hash("x")}}})),
        (
            "wrong versions and hashes",
            json!({"schema_version": 1, "entries": {
            "a.md": {"size": 1, "hash": hash("x"), "version": "1"}, "dir/b.md": {"version": ""}}}),
        ),
        ("very many", json!({"schema_version": 1, "entries": many})),
    ] {
        let lab = lab();
        lab.mirror("laptop").expect("mirrored");
        lab.put_remote("by hand.md", "by hand\n");
        lab.put_remote("manifest.json", manifest.to_string());
        let before = objects(&*lab.remote);
        lab.put("laptop", "new.md", "new\n");
        lab.sync("laptop").expect("synced");
        lab.mirror("laptop").unwrap_or_else(|why| panic!("{case}: {why}"));
        let after = objects(&*lab.remote);
        for (key, bytes) in before.iter().filter(|(key, _)| *key != "manifest.json") {
            assert!(after.get(key) == Some(bytes), "{case}: {key} was written over");
        }
        assert!(after.contains_key("new.md"), "{case}: the mirror goes on");
        let report = lab.reconcile("laptop", Mirror::On).unwrap_or_else(|why| panic!("{case}: {why}"));
        assert_eq!(report.foreign, [at("by hand.md")], "{case}");
        all_have(&lab, case, &["a.md", "by hand.md", "dir/b.md", "new.md"]);
    }
}

#[test]
fn an_edit_in_the_mirror_that_no_disk_can_hold_is_not_removed() {
    let lab = lab();
    lab.mirror("laptop").expect("mirrored");
    // A remote holds what a working directory does not: here, a file where this device has a directory.
    lab.put_remote("by hand", "by hand\n");
    lab.put("laptop", "by hand/mine.md", "mine\n");
    for _ in 0..3 {
        lab.reconcile("laptop", Mirror::On).expect("reconciled");
        let kept = objects(&*lab.remote).get("by hand").cloned();
        assert_eq!(kept.as_deref(), Some(&b"by hand\n"[..]), "what was not taken in stays");
    }
    assert_eq!(lab.text("laptop", "by hand/mine.md"), "mine\n");
}

#[test]
fn odd_names_in_a_mirror_are_reported_and_stay() {
    let lab = lab();
    let base = TempDir::new().expect("a temporary directory");
    let remote =
        Arc::new(DeviceLocal::open(base.path().join("remote"), base.path().join("locks")).expect("it opens"));
    let sync = |device: &str| {
        lab.with_backends(
            device,
            lab.device(device).files.clone(),
            remote.clone(),
            async |replica, context| replica.reconcile(context, Mirror::On).await,
        )
    };
    lab.forget("laptop");
    sync("laptop").expect("published");
    let odd =
        tempfile::Builder::new().prefix("back\\slash").rand_bytes(0).tempfile_in(base.path().join("remote"));
    let odd = odd.expect("made");
    let report = sync("laptop").expect("it goes on");
    assert_eq!(report.odd.len(), 1, "{report:?}");
    assert!(report.odd[0].0.contains("slash"), "{report:?}");
    odd.close().expect("it was still there");
    assert_eq!(block_on(remote.list_all(&Locator::root())).expect("listed").len(), 2);
}

#[test]
fn a_mark_by_its_definition_is_the_engines() {
    let mut mark = haversack::log::StateMark::empty();
    mark.add(&at("a.md"), &ContentHash::of(b"a"));
    let mut ours = haversack::log::StateMark::empty();
    add(&mut ours, "a.md", &ContentHash::of(b"a"));
    assert_eq!(ours, mark);
}

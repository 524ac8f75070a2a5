//! A state in which something is cut, changed, replaced or gone: what is derived is made anew, everything else is refused with its cure, and
//! no working file and nothing in the remote suffers from it.

use std::sync::{Arc, LazyLock};

use futures_lite::future::block_on;
use haversack::log::layout;
use haversack::store::{Backend, Bytes, Durability, ErrorKind, Fault, Faulty};

use super::lab::{
    CONVERGED, Damage, Image, Lab, Objects, STORE, broken, frame, is_there, nothing_lost,
    nothing_overwritten, objects, place, replaced, shown,
};

const CURE: &str = "move the state away, and the next sync starts from the beginning";

/// At how many places of a file damage is tried.
const PLACES: usize = 16;

/// Lets the desktop sync until something of its state is there, by failing after ever more operations.
fn interrupted(name: &str, of: Failing, set_up: impl Fn() -> Lab) -> Lab {
    for operations in 0..400 {
        let lab = set_up();
        let files = Arc::new(Faulty::new(lab.device("desktop").files.clone()));
        let remote = Arc::new(Faulty::new(lab.remote.clone()));
        let failing = if of == Failing::Files { &files } else { &remote };
        let works = std::iter::repeat_n(Fault::None, operations);
        failing.plan(works.chain(std::iter::repeat_n(Fault::Refused(ErrorKind::Unavailable), 1000)));
        let synced =
            lab.with_backends("desktop", files, remote, async |replica, context| replica.sync(context).await);
        if synced.is_err() && is_there(&*lab.device("desktop").state, name) {
            return lab;
        }
    }
    panic!("nothing leaves {name} behind");
}

/// Returns the store with a journal of the desktop's that was cut short: it is folded into a snapshot.
fn with_torn_journal() -> Lab {
    let lab = STORE.set_up();
    let torn = Bytes::from_static(b"0123456789abcdef {\"st");
    let journal = place("journal-0");
    let _ = block_on(lab.device("desktop").state.append(&journal, torn, Durability::Now)).expect("torn");
    lab
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Failing {
    Files,
    Remote,
}

/// The desktop died while it published.
static PUBLISHING: LazyLock<Image> =
    LazyLock::new(|| interrupted("publishing", Failing::Remote, with_torn_journal).image());

/// The desktop died while it changed working files.
static APPLYING: LazyLock<Image> =
    LazyLock::new(|| interrupted("applying", Failing::Files, with_torn_journal).image());

/// Damages a file of the desktop's state and lets it sync. What is refused is tried once with the file mended, and once with its cure.
fn survives(image: &Image, key: &str, bytes: &Bytes, damage: &Damage, expected: Outcome) {
    let case = format!("{key} {}", damage.how);
    let damaged = || {
        let lab = image.set_up();
        match &damage.bytes {
            Some(bytes) => lab.put_state("desktop", key, bytes.clone()),
            None => lab.remove_state("desktop", key),
        }
        let (files, remote) = (lab.files("desktop"), objects(&*lab.remote));
        let synced = lab.sync("desktop");
        nothing_lost(&case, &lab, "desktop", &files);
        nothing_overwritten(&case, &lab, &remote);
        (lab, synced)
    };
    let (lab, synced) = damaged();
    match (synced, expected) {
        (Ok(_), Outcome::Tolerated | Outcome::Either) => is_as_good(&case, &lab.converge_fully(&case)),
        (Err(why), Outcome::Refused | Outcome::Either) => {
            let is_newer = why.contains("newer version of Haversack");
            assert!(why.contains(key.split('-').next().expect("a name")), "{case}: {why}");
            assert!(why.contains(CURE) != is_newer, "{case}: {why}");
            lab.put_state("desktop", key, bytes.clone());
            let files = lab.converge(&case);
            assert!(files == *CONVERGED, "{case}, mended: {:?}", shown(&files));
            let (lab, _) = damaged();
            lab.forget("desktop");
            is_as_good(&format!("{case}, cured"), &lab.converge(&case));
        }
        (synced, _) => panic!("{case}: {synced:?}"),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Refused,
    Tolerated,
    Either,
}

/// Fails if files are not what they should be, or what a merge without base makes of them: a file that was deleted elsewhere can come
/// back, and no line is lost.
fn is_as_good(case: &str, files: &Objects) {
    for (key, bytes) in CONVERGED.iter() {
        let found = files.get(key).unwrap_or_else(|| panic!("{case}: {key} is gone"));
        if found == bytes {
            continue;
        }
        let (found, goal) = (String::from_utf8_lossy(found), String::from_utf8_lossy(bytes));
        for line in goal.lines() {
            assert_eq!(found.matches(line).count(), 1, "{case}: {line:?} of {key}: {found}");
        }
    }
    let strange = files.keys().filter(|key| !CONVERGED.contains_key(*key) && *key != "old.md");
    assert_eq!(strange.collect::<Vec<_>>(), Vec::<&String>::new(), "{case}");
}

fn tried(image: &Image, name: &str, expected: Outcome) {
    let state = image.state("desktop");
    let (key, bytes) = state.iter().find(|(key, _)| key.starts_with(name)).expect("it is there");
    let all = broken(bytes, PLACES).into_iter().chain(replaced(bytes, state));
    for damage in all.chain([Damage::new("100 MB of zeros", vec![0; 100_000_000])]) {
        survives(image, key, bytes, &damage, expected);
    }
}

#[test]
fn identity_and_snapshot() {
    tried(&PUBLISHING, "identity", Outcome::Refused);
    tried(&PUBLISHING, "snapshot", Outcome::Refused);
    for (name, outcome) in [("identity", Outcome::Tolerated), ("snapshot", Outcome::Tolerated)] {
        let bytes = &PUBLISHING.state("desktop")[name];
        survives(&PUBLISHING, name, bytes, &Damage::gone(), outcome);
    }
}

/// A last line that is cut short did not happen: a journal that was cut goes back.
#[test]
fn journal() {
    tried(&PUBLISHING, "journal-", Outcome::Either);
    let bytes = &PUBLISHING.state("desktop")["journal-1"];
    survives(&PUBLISHING, "journal-1", bytes, &Damage::gone(), Outcome::Tolerated);
}

#[test]
fn what_is_under_way() {
    tried(&PUBLISHING, "publishing", Outcome::Refused);
    tried(&APPLYING, "applying", Outcome::Refused);
    let bytes = &PUBLISHING.state("desktop")["publishing"];
    survives(&PUBLISHING, "publishing", bytes, &Damage::gone(), Outcome::Tolerated);
    for name in ["snapshot", "applying"] {
        survives(&APPLYING, name, &APPLYING.state("desktop")[name], &Damage::gone(), Outcome::Tolerated);
    }
}

/// Records of another moment or another store: what they say is not so any more.
#[test]
fn records_that_do_not_belong() {
    let other = interrupted("publishing", Failing::Remote, || {
        let lab = Lab::new();
        lab.put("desktop", "a.md", "of another store\n");
        lab
    });
    let other = objects(&*other.device("desktop").state)["publishing"].clone();
    let later = &PUBLISHING.state("desktop")["publishing"];
    for (case, bytes) in [("of another store", &other), ("of a later position", later)] {
        let lab = STORE.set_up();
        lab.put_state("desktop", "publishing", bytes.clone());
        // A device that has nothing yet is as bad: its log begins with the first position.
        lab.put_state("tablet", "publishing", bytes.clone());
        let before = objects(&*lab.remote);
        lab.sync("tablet").expect(case);
        nothing_overwritten(case, &lab, &before);
        let files = lab.converge(case);
        assert!(files == *CONVERGED, "{case}: {:?}", shown(&files));
    }
    // And where the log is gone, nothing is written behind the gap.
    let lab = Lab::new();
    lab.put_state("tablet", "publishing", later.clone());
    lab.put("tablet", "a.md", "a\n");
    lab.sync("tablet").expect("a new store");
    assert_eq!(lab.last_position().number(), 1);
}

/// Derived data is rebuilt, and unreadable data is not believed.
#[test]
fn stat_cache_and_upkeep() {
    for name in ["stat-cache", "upkeep"] {
        let lab = STORE.set_up();
        lab.sync("laptop").expect("synced");
        let state = objects(&*lab.device("laptop").state);
        let bytes = state[name].clone();
        let all = broken(&bytes, PLACES).into_iter().chain(replaced(&bytes, &state));
        let blown_up = Damage::new("100 MB of zeros", vec![0; 100_000_000]);
        for (number, damage) in all.chain([Damage::gone(), blown_up]).enumerate() {
            match damage.bytes {
                Some(bytes) => lab.put_state("laptop", name, bytes),
                None => lab.remove_state("laptop", name),
            }
            lab.put("laptop", "laptop.md", format!("edit {number}\n"));
            let report = lab.sync("laptop").unwrap_or_else(|why| panic!("{name} {}: {why}", damage.how));
            assert_eq!((report.published, report.not_folded), (1, None), "{name} {}", damage.how);
        }
        assert!(lab.converge(name)["laptop.md"].starts_with(b"edit "));
    }
}

/// The content of a base is lost: the sync continues, with no worse result than a merge without a base.
#[test]
fn contents_of_bases() {
    let state = STORE.state("desktop");
    for (key, bytes) in state.iter().filter(|(key, _)| key.starts_with("objects/")) {
        let all = broken(bytes, 2).into_iter().chain(replaced(bytes, state));
        for damage in all.chain([Damage::gone(), Damage::new("100 MB of zeros", vec![0; 100_000_000])]) {
            survives(&STORE, key, bytes, &damage, Outcome::Tolerated);
        }
    }
}

/// Growth of a file travels as an append: who lost what it extends finds it in the file, or in the log.
#[test]
fn what_an_append_extends_is_found_again() {
    for edited in [false, true] {
        let lab = Lab::new();
        lab.put("laptop", "log.md", "one\n");
        lab.sync("laptop").expect("synced");
        lab.sync("desktop").expect("synced");
        for key in objects(&*lab.device("desktop").state).keys().filter(|key| key.starts_with("objects/")) {
            lab.remove_state("desktop", key);
        }
        lab.put("laptop", "log.md", "one\ntwo\n");
        lab.sync("laptop").expect("synced");
        if edited {
            lab.put("desktop", "log.md", "zero\none\n");
        }
        let report = lab.sync("desktop").expect("it goes on");
        assert_eq!(report.missing, [], "edited: {edited}");
        let files = lab.converge("an append");
        let lines = String::from_utf8_lossy(&files["log.md"]).into_owned();
        assert!(lines.contains("one\n") && lines.contains("two\n"), "{lines}");
        assert_eq!(lines.contains("zero\n"), edited, "{lines}");
    }
}

/// A content that is damaged here is whole again when it is needed again.
#[test]
fn a_content_that_is_kept_again_is_mended() {
    let lab = Lab::new();
    lab.put("laptop", "a.md", "one\n");
    lab.sync("laptop").expect("synced");
    let contents: Vec<String> =
        objects(&*lab.device("laptop").state).into_keys().filter(|key| key.starts_with("objects/")).collect();
    assert_eq!(contents.len(), 1);
    lab.put("laptop", "a.md", "two\n");
    lab.sync("laptop").expect("synced");
    lab.put_state("laptop", &contents[0], &b"garbage"[..]);
    lab.put("laptop", "a.md", "one\n");
    lab.sync("laptop").expect("synced");
    assert_eq!(objects(&*lab.device("laptop").state)[&contents[0]], "one\n");
}

/// The cure that every message names: working files stay, the replica is a new one, and unchanged files are as they were, though the
/// checkpoint that it joins by is older than its files.
#[test]
fn moving_the_state_away_cures() {
    let lab = STORE.set_up();
    lab.converge("before");
    for (text, picture) in [("four", "third"), ("five", "fourth")] {
        lab.put("desktop", "laptop.md", format!("{text}\n"));
        lab.put("desktop", "map.png", format!("\u{89}PNG {picture}\0"));
        lab.sync("desktop").expect("synced");
    }
    let files = lab.converge("after the checkpoint");
    let newest = layout::checkpoint(lab.last_position());
    assert!(!is_there(&*lab.remote, newest.as_str()), "the checkpoint is older");
    let id = |device: &str| lab.with(device, async |replica, _| Ok(replica.id())).expect("opened");
    let (before, old) = (objects(&*lab.remote), id("laptop"));
    lab.forget("laptop");
    let report = lab.sync("laptop").expect("joined");
    assert_eq!((report.published, &report.merged), (0, &Vec::new()), "{report:?}");
    assert_ne!(id("laptop"), old);
    assert!(objects(&*lab.remote) == before, "nothing was written");
    assert!(lab.converge("nothing changed") == files);
    // Unsent changes are merged; unsent deletions come back.
    lab.put("laptop", "MEMORY.md", "- the laptop's\n- ports\n- people\n- the desktop's\n");
    lab.put("laptop", "map.png", &b"\x89PNG fifth\0"[..]);
    lab.delete("laptop", "notes/2.md");
    lab.forget("laptop");
    lab.sync("laptop").expect("joined");
    let files = lab.converge("changed");
    let index = String::from_utf8_lossy(&files["MEMORY.md"]).into_owned();
    for line in ["- the laptop's", "- ports", "- people", "- the desktop's"] {
        assert_eq!(index.matches(line).count(), 1, "{index}");
    }
    let extra: Vec<&String> = files.keys().filter(|key| !CONVERGED.contains_key(*key)).collect();
    assert!(matches!(&extra[..], [one] if one.starts_with("map.conflict-")), "{extra:?}");
    assert!(files.contains_key("notes/2.md"));
}

/// The same where the log is so long that it is taken in by parts, and no checkpoint is there.
#[test]
fn long_log_is_read_to_its_end_before_merging() {
    let lab = Lab::new();
    for number in 1..=300 {
        lab.put("laptop", "map.png", format!("\0{number}"));
        lab.put("laptop", "log.md", format!("line {number}\n"));
        lab.sync("laptop").expect("synced");
    }
    for key in objects(&*lab.remote).keys().filter(|key| key.starts_with(".haversack/checkpoints/")) {
        lab.remove_remote(key);
    }
    lab.forget("laptop");
    lab.put("tablet", "map.png", format!("\0{}", 300));
    lab.put("tablet", "log.md", "line 300\n");
    let files = lab.converge("taken in by parts");
    assert_eq!(files.into_keys().collect::<Vec<_>>(), ["log.md", "map.png"]);
    assert_eq!(lab.text("tablet", "log.md"), "line 300\n");
}

/// A file under one of our names without a record may be the only copy of a text.
#[test]
fn file_without_record_is_kept_aside() {
    for (forgotten, kept) in [(false, vec!["outgoing"]), (true, vec!["incoming", "outgoing"])] {
        let lab = STORE.set_up();
        for place in ["incoming", "outgoing"] {
            lab.put("desktop", &format!(".haversack/{place}/0-1"), format!("a text from {place}\n"));
        }
        // This one is known, as long as the state is there.
        lab.put("desktop", ".haversack/outgoing/0-2", "- ports\n- people\n");
        if forgotten {
            lab.forget("desktop");
        }
        lab.sync("desktop").expect("synced");
        let own = objects(&*lab.device("desktop").files);
        let own: Vec<_> = own.iter().filter(|(key, _)| key.starts_with(".haversack/")).collect();
        assert!(own.iter().all(|(key, _)| key.starts_with(".haversack/kept/")), "{own:?}");
        assert_eq!(own.len(), kept.len() + usize::from(forgotten), "{own:?}");
        for place in kept {
            let text = format!("a text from {place}\n");
            assert!(own.iter().any(|(_, bytes)| **bytes == text), "{place}: {own:?}");
        }
    }
}

/// A journal that is left of a lost snapshot is not taken for that of a new one.
#[test]
fn a_journal_of_another_snapshot_is_not_believed() {
    let lab = PUBLISHING.set_up();
    assert!(is_there(&*lab.device("desktop").state, "journal-1"));
    lab.remove_state("desktop", "snapshot");
    lab.sync("desktop").expect("it starts anew");
    let journal = objects(&*lab.device("desktop").state)["journal-0"].clone();
    lab.put_state("desktop", "journal-0", [&journal[..], b"torn"].concat());
    lab.sync("desktop").expect("it is folded");
    assert!(is_there(&*lab.device("desktop").state, "snapshot"));
    assert!(!is_there(&*lab.device("desktop").state, "journal-1"));
    is_as_good("a lost snapshot", &lab.converge("a lost snapshot"));
}

/// A name under which something is put in place cannot be made up.
#[test]
fn a_record_with_a_forged_name_is_refused() {
    let text = String::from_utf8(APPLYING.state("desktop")["applying"].to_vec()).expect("text");
    let json = text.lines().nth(2).expect("a heading");
    let mut heading: serde_json::Value = serde_json::from_str(json).expect("JSON");
    for (field, value) in [("attempt", serde_json::json!("../../x")), ("attempt", serde_json::json!(""))] {
        heading[field] = value;
        let lab = APPLYING.set_up();
        lab.put_state("desktop", "applying", frame("applying", &heading, b""));
        let why = lab.sync("desktop").expect_err("refused");
        assert!(why.contains(CURE), "{why}");
    }
    let mut heading: serde_json::Value = serde_json::from_str(json).expect("JSON");
    heading["in_order"] = serde_json::json!(1_000_000);
    let lab = APPLYING.set_up();
    lab.put_state("desktop", "applying", frame("applying", &heading, b""));
    assert!(lab.converge("more in order than there are") == *CONVERGED);
}

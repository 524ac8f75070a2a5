//! A remote in which something is cut, changed, replaced, blown up or gone: nothing is lost, nothing is written over, and once it is
//! mended the devices agree.

use haversack::log::Folded;
use haversack::store::Bytes;
use haversack::sync::{Context, Fetching, Mirror};

use super::lab::{
    CONVERGED, Damage, STORE, broken, nothing_lost, nothing_overwritten, objects, replaced, shown,
};

/// At how many places of an object damage is tried; the formats themselves are tried at every byte (`log::hostile`).
const PLACES: usize = 12;

/// The size of an oversized object.
const MANY_BYTES: usize = 100_000_000;

/// The words of which every message must have one.
const CLEAR: &[&str] = &["the file that names the store", "position ", "its change ", "the segment 1-4"];

/// Returns the objects of the store whose keys begin with a text.
fn keys(start: &str) -> Vec<(&'static String, &'static Bytes)> {
    let found: Vec<_> = STORE.remote.iter().filter(|(key, _)| key.starts_with(start)).collect();
    assert!(!found.is_empty(), "{start}");
    found
}

/// Damages an object, lets every device sync, mends it, and lets them sync again.
fn survives(key: &str, bytes: &Bytes, damage: &Damage) {
    let case = format!("{key} {}", damage.how);
    let lab = STORE.set_up();
    match &damage.bytes {
        Some(bytes) => lab.put_remote(key, bytes.clone()),
        None => lab.remove_remote(key),
    }
    let before = objects(&*lab.remote);
    for device in ["desktop", "tablet", "laptop"] {
        let files = lab.files(device);
        if let Err(why) = lab.sync(device) {
            assert!(CLEAR.iter().any(|clear| why.contains(clear)), "{case}: the {device}: {why}");
            assert!(why.contains(": "), "{case}: the {device} says no more than \"{why}\"");
        }
        nothing_lost(&case, &lab, device, &files);
    }
    nothing_overwritten(&case, &lab, &before);
    lab.put_remote(key, bytes.clone());
    // A full sync asks again for contents that were missing.
    let files = if key.contains("/objects/") { lab.converge_fully(&case) } else { lab.converge(&case) };
    assert!(files == *CONVERGED, "{case}: {:?}", shown(&files));
}

#[test]
fn the_file_that_names_the_store() {
    for (key, bytes) in keys(".haversack/store.json") {
        let newer = std::str::from_utf8(bytes).expect("text").replace("\"format\": 1", "\"format\": 2");
        let newer = Damage::new("of a newer format", newer);
        let all = broken(bytes, PLACES).into_iter().chain(replaced(bytes, &STORE.remote));
        all.chain([newer, Damage::gone()]).for_each(|damage| survives(key, bytes, &damage));
    }
}

#[test]
fn commits() {
    for number in ["5", "6"] {
        for (key, bytes) in keys(&format!(".haversack/log/000000000000000{number}")) {
            assert!(!Folded::is_at(bytes));
            let all = broken(bytes, PLACES).into_iter().chain(replaced(bytes, &STORE.remote));
            all.for_each(|damage| survives(key, bytes, &damage));
        }
    }
}

#[test]
fn folded_positions() {
    for number in ["2", "4"] {
        for (key, bytes) in keys(&format!(".haversack/log/000000000000000{number}")) {
            assert!(Folded::is_at(bytes));
            let all = broken(bytes, PLACES).into_iter().chain(replaced(bytes, &STORE.remote));
            all.for_each(|damage| survives(key, bytes, &damage));
        }
    }
}

#[test]
fn segments_and_checkpoints() {
    for (key, bytes) in [keys(".haversack/segments/"), keys(".haversack/checkpoints/")].concat() {
        let all = broken(bytes, PLACES).into_iter().chain(replaced(bytes, &STORE.remote));
        all.chain([Damage::gone()]).for_each(|damage| survives(key, bytes, &damage));
    }
}

#[test]
fn contents_and_packs() {
    for (key, bytes) in keys(".haversack/objects/") {
        let all = broken(bytes, 4).into_iter().chain(replaced(bytes, &STORE.remote));
        all.chain([Damage::gone()]).for_each(|damage| survives(key, bytes, &damage));
    }
}

/// Limits are looked at before anything is hashed or parsed.
#[test]
fn objects_that_are_blown_up() {
    let zeros = Bytes::from(vec![0; MANY_BYTES]);
    for start in
        [".haversack/store.json", ".haversack/log/0000000000000002", ".haversack/log/0000000000000006"]
            .into_iter()
            .chain([".haversack/segments/", ".haversack/checkpoints/", ".haversack/objects/"])
    {
        let (key, bytes) = keys(start)[0];
        survives(key, bytes, &Damage::new("100 MB of zeros", zeros.clone()));
        let mut long = bytes.to_vec();
        long.resize(MANY_BYTES, b' ');
        survives(key, bytes, &Damage::new("100 MB long", long));
    }
}

#[test]
fn a_pack_that_is_gone_is_not_needed_while_the_log_is_there() {
    let lab = STORE.set_up();
    for (key, bytes) in keys(".haversack/objects/") {
        // The large content is nowhere else; the pack has the small ones as well.
        if bytes.windows(8).any(|part| part == b"- people") {
            lab.remove_remote(key);
        }
    }
    let report = lab.sync("tablet").expect("it goes on");
    assert_eq!(report.missing, [], "the log has all of it");
    assert_eq!(lab.converge("without the pack"), *CONVERGED);
}

/// The mirror is derived: with any damage to its index, no file and no other program's object suffers, and the index is rebuilt.
#[test]
fn the_manifest() {
    let key = "manifest.json";
    let bytes = &STORE.remote[key];
    let newer =
        std::str::from_utf8(bytes).expect("text").replace("\"schema_version\": 1", "\"schema_version\": 2");
    let endless = Damage::new("100 MB of spaces", vec![b' '; MANY_BYTES]);
    let all = broken(bytes, 4 * PLACES).into_iter().chain(replaced(bytes, &STORE.remote));
    for damage in all.chain([Damage::new("of a newer schema", newer), Damage::gone(), endless]) {
        let case = format!("{key} {}", damage.how);
        let lab = STORE.set_up();
        lab.sync("desktop").expect("synced");
        lab.sync("laptop").expect("synced");
        let files = lab.files("laptop");
        match &damage.bytes {
            Some(bytes) => lab.put_remote(key, bytes.clone()),
            None => lab.remove_remote(key),
        }
        lab.put_remote("by hand.md", "by hand\n");
        if let Err(why) = lab.mirror("laptop") {
            assert!(why.contains("newer version of Haversack"), "{case}: {why}");
            assert!(damage.bytes == objects(&*lab.remote).get(key).cloned(), "{case}: it is left alone");
            lab.put_remote(key, bytes.clone());
            lab.mirror("laptop").unwrap_or_else(|why| panic!("{case}: {why}"));
        }
        if damage.bytes.is_some() && damage.bytes == objects(&*lab.remote).get(key).cloned() {
            // Nothing in it tells that it is ours: it may be the file of another program, and is left alone until it is moved.
            let is_unlike =
                ["garbage", "endless", "what is at "].iter().any(|how| damage.how.starts_with(how));
            assert!(is_unlike, "{case}: it is written anew");
            lab.remove_remote(key);
            lab.mirror("laptop").unwrap_or_else(|why| panic!("{case}: {why}"));
        }
        let remote = objects(&*lab.remote);
        for (key, bytes) in &files {
            assert!(remote.get(key) == Some(bytes), "{case}: {key} in the mirror");
        }
        let report = lab.reconcile("laptop", Mirror::On).unwrap_or_else(|why| panic!("{case}: {why}"));
        let foreign: Vec<&str> = report.foreign.iter().map(|locator| locator.as_str()).collect();
        assert_eq!(foreign, ["by hand.md"], "{case}");
        let mut after = lab.files("laptop");
        after.remove("by hand.md");
        assert!(after == files, "{case}: {:?}", shown(&after));
    }
}

/// A plain object that we did not write is an edit: it is not overwritten, and a full sync imports it.
#[test]
fn plain_objects() {
    let key = "MEMORY.md";
    let bytes = &STORE.remote[key];
    for damage in
        broken(bytes, usize::MAX).into_iter().chain([Damage::new("garbage", &b"\xff\0garbage\n"[..])])
    {
        let case = format!("{key} {}", damage.how);
        let lab = STORE.set_up();
        let damaged = damage.bytes.expect("something");
        lab.put_remote(key, damaged.clone());
        lab.converge(&case);
        lab.mirror("laptop").unwrap_or_else(|why| panic!("{case}: {why}"));
        assert!(objects(&*lab.remote)[key] == damaged, "{case}: it was written over");
        lab.reconcile("laptop", Mirror::On).unwrap_or_else(|why| panic!("{case}: {why}"));
        let files = lab.converge(&case);
        assert!(objects(&*lab.remote)[key] == files[key], "{case}: the mirror has what the files have");
        assert!(
            lab.text("tablet", key).contains("- the desktop's") || files.len() > CONVERGED.len(),
            "{case}"
        );
    }
}

/// A checkpoint that nothing confirms any more only keeps contents from those who have not fetched them.
#[test]
fn who_fetches_later_goes_on_without_the_segment() {
    let (key, bytes) = keys(".haversack/segments/")[0];
    let lab = STORE.set_up();
    let lazily = lab.with("tablet", async |replica, context| {
        replica.sync(Context { fetching: Fetching::WhenAsked, ..context }).await?;
        Ok(replica.unfetched().len())
    });
    assert!(lazily.is_ok_and(|unfetched| unfetched > 2));
    lab.put_remote(key, bytes.slice(..bytes.len() / 2));
    lab.put("tablet", "tablet.md", "made on the tablet\n");
    let report = lab.sync("tablet").expect("it goes on");
    assert_eq!(report.published, 1, "{report:?}");
    assert!(report.missing.len() > 2, "{report:?}");
    lab.put_remote(key, bytes.clone());
    let mut files = lab.converge_fully("the segment is back");
    assert_eq!(files.remove("tablet.md").as_deref(), Some(&b"made on the tablet\n"[..]));
    assert!(files == *CONVERGED, "{:?}", shown(&files));
}

/// Only the log can tell if an object is an old one of ours: if the log cannot be read, the object stays.
#[test]
fn what_the_log_cannot_tell_stays_in_the_mirror() {
    let (key, bytes) = keys(".haversack/segments/")[0];
    let lab = STORE.set_up();
    lab.sync("laptop").expect("synced");
    lab.put_remote(key, bytes.slice(..bytes.len() / 2));
    lab.put_remote("log.md", "by hand\n");
    let mirrored = lab.mirror("laptop").expect("it goes on");
    assert_eq!(mirrored.foreign.len(), 1, "{mirrored:?}");
    let remote = objects(&*lab.remote);
    assert_eq!(
        (&remote["log.md"][..], &remote["laptop.md"][..]),
        (&b"by hand\n"[..], &b"made on the laptop\n"[..])
    );
}

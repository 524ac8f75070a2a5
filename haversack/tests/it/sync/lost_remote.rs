//! A remote that was wiped, restored from an old backup, replaced or moved: the devices meet again, nothing is lost, doubled or resurrected.

use std::sync::Arc;

use futures_lite::future::block_on;
use haversack::history::archive::{self, Bounds};
use haversack::ids::Timestamp;
use haversack::log::{Commit, Notice, layout};
use haversack::store::{Backend, Bytes, Condition, ErrorKind, Fault, Faulty, InMemory};
use haversack::sync::{Asking, Author, Context, Mirror, Rebuilt, Replica, SyncError, move_store, rebuild};

use super::Midnight;
use super::lab::{Lab, Objects, objects, place};

const EVERYTHING: Bounds = Bounds { bytes: u64::MAX, oldest: Timestamp(0) };

/// Keeps the commits that a replica has read or made, as every sync of a home does.
async fn keep(replica: &mut Replica, state: &InMemory) {
    let Some(store) = replica.store() else { return };
    let recent = replica.take_recent().into_iter().filter_map(|recent| recent.read()).collect();
    archive::keep(state, store, recent, EVERYTHING).await.expect("kept");
}

fn sync(lab: &Lab, device: &str) -> Result<(), String> {
    let state = lab.device(device).state.clone();
    lab.with(device, async |replica, context| {
        let context = Context { asking: Asking::FromLast, ..context };
        let synced = replica.sync(context).await;
        keep(replica, &state).await;
        synced.map(drop)
    })
}

/// Does what `haversack remote rebuild` does.
fn rebuild_on(lab: &Lab, device: &str) -> Result<Rebuilt, String> {
    let state = lab.device(device).state.clone();
    lab.with(device, async |replica, context| {
        let rebuilt = rebuild(context, std::slice::from_mut(replica), state.clone()).await?;
        replica.sync(context).await?;
        keep(replica, &state).await;
        Ok(rebuilt)
    })
}

/// Three devices with the same files, all in sync.
fn in_sync() -> Lab {
    let lab = Lab::new();
    lab.put("laptop", "ports.md", "staging: 5433\n");
    lab.put("laptop", "log.md", "one\n");
    lab.put("laptop", "old.md", "to be deleted\n");
    sync(&lab, "laptop").expect("synced");
    for device in ["desktop", "tablet"] {
        sync(&lab, device).expect("synced");
    }
    lab
}

fn wipe(lab: &Lab) {
    for key in objects(&*lab.remote).keys() {
        lab.remove_remote(key);
    }
}

fn put_back_remote(lab: &Lab, backup: &Objects) {
    wipe(lab);
    for (key, bytes) in backup {
        lab.put_remote(key, bytes.clone());
    }
}

#[track_caller]
fn converge(lab: &Lab, devices: &[&str]) -> Objects {
    for _ in 0..2 {
        for device in devices {
            sync(lab, device).unwrap_or_else(|why| panic!("the {device}: {why}"));
        }
    }
    let files = lab.files(devices[0]);
    for device in devices {
        assert_eq!(lab.files(device), files, "the {device}");
    }
    files
}

#[test]
fn idle_sync_notices_wiped_remote() {
    let lab = in_sync();
    wipe(&lab);
    let told = sync(&lab, "laptop").expect_err("the remote is empty");
    assert!(told.contains("the store that was there is gone"), "{told}");
    assert_eq!(objects(&*lab.remote).len(), 0, "nothing was written there");
}

#[test]
fn idle_sync_notices_remote_that_went_back() {
    let lab = in_sync();
    let backup = objects(&*lab.remote);
    lab.put("laptop", "ports.md", "staging: 5434\n");
    sync(&lab, "laptop").expect("synced");
    put_back_remote(&lab, &backup);
    let told = sync(&lab, "laptop").expect_err("it went back");
    assert!(told.contains("history has changed"), "{told}");
}

#[test]
fn wiped_remote_is_rebuilt_and_followed() {
    let lab = in_sync();
    // The desktop has not seen the deletion and the second line; the tablet has a change that no other device has seen.
    lab.delete("laptop", "old.md");
    lab.put("laptop", "log.md", "one\ntwo\n");
    sync(&lab, "laptop").expect("synced");
    lab.put("tablet", "log.md", "one\nfrom the tablet\n");
    lab.put("laptop", "new.md", "unsent\n");
    wipe(&lab);
    let rebuilt = rebuild_on(&lab, "laptop").expect("rebuilt");
    assert!(rebuilt.has_begun && rebuilt.without_base == 0, "{rebuilt:?}");
    let told = sync(&lab, "desktop").expect_err("another store is there");
    assert!(told.contains("\"laptop\" rebuilt the store"), "{told}");
    for device in ["desktop", "tablet"] {
        let rebuilt = rebuild_on(&lab, device).expect("followed");
        assert!(!rebuilt.has_begun && rebuilt.without_base == 0, "{rebuilt:?}");
    }
    let files = converge(&lab, &["laptop", "desktop", "tablet"]);
    assert_eq!(files.keys().collect::<Vec<_>>(), ["log.md", "new.md", "ports.md"], "nothing is resurrected");
    assert_eq!(files["ports.md"], "staging: 5433\n");
    let log = String::from_utf8_lossy(&files["log.md"]).into_owned();
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["from the tablet", "one", "two"], "nothing is lost or doubled");
}

/// The device that rebuilds is behind: what another one deleted after that stays deleted.
#[test]
fn follower_that_was_ahead_deletes_again() {
    let lab = in_sync();
    lab.delete("laptop", "old.md");
    lab.put("laptop", "log.md", "one\ntwo\n");
    sync(&lab, "laptop").expect("synced");
    wipe(&lab);
    rebuild_on(&lab, "desktop").expect("rebuilt");
    assert!(lab.files("desktop").contains_key("old.md"), "the desktop did not know");
    let rebuilt = rebuild_on(&lab, "laptop").expect("followed");
    assert_eq!(rebuilt.without_base, 0);
    rebuild_on(&lab, "tablet").expect("followed");
    let files = converge(&lab, &["laptop", "desktop", "tablet"]);
    assert_eq!(files.keys().collect::<Vec<_>>(), ["log.md", "ports.md"]);
    assert_eq!(files["log.md"], "one\ntwo\n");
}

/// The device that began to rebuild was killed after it had named the new store.
#[test]
fn file_that_is_not_there_yet_is_not_deleted() {
    let lab = in_sync();
    wipe(&lab);
    // Everything but the name of the store is refused, as if the process were killed there.
    let begun = lab.with("laptop", async |replica, context| {
        let rebuilt =
            rebuild(context, std::slice::from_mut(replica), lab.device("laptop").state.clone()).await?;
        assert!(rebuilt.has_begun);
        Ok(())
    });
    begun.expect("rebuilt");
    for key in objects(&*lab.remote).keys().filter(|key| !key.ends_with("store.json")) {
        lab.remove_remote(key);
    }
    lab.forget("laptop");
    let rebuilt = rebuild_on(&lab, "desktop").expect("the desktop completes it");
    assert_eq!((rebuilt.has_begun, rebuilt.files), (false, 3));
    assert_eq!(lab.files("desktop").len(), 3, "nothing is deleted");
    rebuild_on(&lab, "tablet").expect("followed");
    assert_eq!(converge(&lab, &["desktop", "tablet"]).len(), 3);
}

#[test]
fn rebuild_by_two_devices_at_once_converges() {
    let mut killed = false;
    // The laptop is killed after so many requests, and the desktop goes on; then the laptop starts again.
    for requests in 0..16 {
        let lab = in_sync();
        lab.delete("laptop", "old.md");
        sync(&lab, "laptop").expect("synced");
        lab.put("desktop", "ports.md", "staging: 5433\nproduction: 5432\n");
        wipe(&lab);
        let (files, state) = (lab.device("laptop").files.clone(), lab.device("laptop").state.clone());
        let cut = lab.with_backends(
            "laptop",
            files,
            dying(lab.remote.clone(), requests),
            async |replica, context| rebuild(context, std::slice::from_mut(replica), state).await,
        );
        killed |= cut.is_err();
        for device in ["desktop", "laptop", "tablet"] {
            rebuild_on(&lab, device).unwrap_or_else(|why| panic!("{requests}: the {device}: {why}"));
        }
        let files = converge(&lab, &["laptop", "desktop", "tablet"]);
        assert_eq!(files.keys().collect::<Vec<_>>(), ["log.md", "ports.md"], "{requests}");
        assert_eq!(files["ports.md"], "staging: 5433\nproduction: 5432\n", "{requests}");
    }
    assert!(killed);
}

/// Returns a remote that fails from the n-th request on, whose answer is lost if it is a write.
fn dying(remote: Arc<InMemory>, requests: usize) -> Arc<Faulty> {
    let faulty = Faulty::new(remote);
    let works = std::iter::repeat_n(Fault::None, requests);
    let dies = std::iter::repeat_n(Fault::Refused(ErrorKind::Denied), 1_000);
    faulty.plan(works.chain([Fault::AnswerLost]).chain(dies));
    Arc::new(faulty)
}

/// If a large content is lost everywhere, its position is not restored, and the later changes are sent again.
#[test]
fn position_whose_content_is_gone_is_sent_anew() {
    let lab = in_sync();
    let backup = objects(&*lab.remote);
    for number in 0..3 {
        lab.put("laptop", "log.md", format!("one\nline {number}\n"));
        lab.put("laptop", "large.bin", vec![number; 300_000]);
        sync(&lab, "laptop").expect("synced");
        let collected =
            lab.with("laptop", async |replica, context| replica.reconcile(context, Mirror::Off).await);
        collected.expect("collected");
    }
    put_back_remote(&lab, &backup);
    let rebuilt = rebuild_on(&lab, "laptop").expect("put back");
    assert_eq!((rebuilt.new_store, rebuilt.positions, rebuilt.without_base), (None, 0, 0));
    let files = converge(&lab, &["laptop", "desktop", "tablet"]);
    assert_eq!((files.len(), &files["log.md"]), (4, &Bytes::from("one\nline 2\n")));
}

#[test]
fn restored_backup_gets_its_positions_back() {
    let lab = in_sync();
    let backup = objects(&*lab.remote);
    lab.delete("laptop", "old.md");
    sync(&lab, "laptop").expect("synced");
    lab.put("laptop", "log.md", "one\ntwo\n");
    sync(&lab, "laptop").expect("synced");
    let before = objects(&*lab.remote);
    put_back_remote(&lab, &backup);
    let rebuilt = rebuild_on(&lab, "laptop").expect("put back");
    assert_eq!((rebuilt.positions, rebuilt.common, rebuilt.without_base), (2, None, 0));
    let now = objects(&*lab.remote);
    for (key, bytes) in before.iter().filter(|(key, _)| key.starts_with(".haversack/log/")) {
        assert_eq!(now.get(key), Some(bytes), "{key}");
    }
    assert_eq!(converge(&lab, &["laptop", "desktop", "tablet"]).len(), 2);
}

#[test]
fn restored_backup_with_other_commits_is_merged_over_the_common_position() {
    let lab = in_sync();
    let backup = objects(&*lab.remote);
    lab.delete("laptop", "old.md");
    lab.put("laptop", "log.md", "one\ntwo\n");
    sync(&lab, "laptop").expect("synced");
    put_back_remote(&lab, &backup);
    // The desktop was not there: it does not notice, and goes on.
    lab.put("desktop", "log.md", "one\nfrom the desktop\n");
    sync(&lab, "desktop").expect("synced");
    let told = sync(&lab, "laptop").expect_err("it went back");
    assert!(told.contains("history has changed"), "{told}");
    let rebuilt = rebuild_on(&lab, "laptop").expect("merged");
    assert_eq!((rebuilt.positions, rebuilt.without_base), (0, 0));
    assert!(rebuilt.common.is_some());
    let files = converge(&lab, &["laptop", "desktop", "tablet"]);
    assert_eq!(files.keys().collect::<Vec<_>>(), ["log.md", "ports.md"]);
    let log = String::from_utf8_lossy(&files["log.md"]).into_owned();
    assert!(log.contains("two") && log.contains("from the desktop") && log.lines().count() == 3, "{log}");
    // The history of the device is that of the log that is there now.
    let now = objects(&*lab.remote);
    let state = lab.device("laptop").state.clone();
    let store = lab.with("laptop", async |replica, _| Ok(replica.store())).expect("opened").expect("a store");
    let history = haversack::history::History::open(state, None, store, &haversack::sync::Impatient);
    let mut history = block_on(history).expect("opened");
    for (key, bytes) in now.iter().filter(|(key, _)| key.starts_with(".haversack/log/")) {
        let commit = Commit::decode(bytes).expect("a commit");
        if let Some(archived) = block_on(history.commit(commit.position)).expect("read") {
            assert_eq!(*archived, commit, "{key}");
        }
    }
}

/// Makes a home of two replicas, the desktop's and the tablet's, that stand on different branches of the log.
///
/// 1. The tablet's replica publishes a commit, and the sync is killed before the desktop's replica takes it in and the archive gets it.
/// 2. The remote loses that commit, and the laptop commits another one at the same position.
/// 3. The desktop's replica takes the laptop's commit in, and the archive gets that one.
fn home_on_two_branches() -> Lab {
    let lab = in_sync();
    let backup = objects(&*lab.remote);
    lab.put("tablet", "log.md", "one\nfrom the tablet\n");
    lab.put("tablet", "tablet.md", "sent once\n");
    lab.sync("tablet").expect("synced");
    put_back_remote(&lab, &backup);
    lab.put("laptop", "log.md", "one\nfrom the laptop\n");
    lab.put("laptop", "laptop.md", "sent after that\n");
    sync(&lab, "laptop").expect("synced");
    sync(&lab, "desktop").expect("synced");
    lab
}

/// Rebuilds with both replicas of the home; the desktop's state has the archive.
fn rebuild_home(lab: &Lab) -> Result<Rebuilt, String> {
    let archive = lab.device("desktop").state.clone();
    lab.with_all(&["desktop", "tablet"], async |replicas, context| rebuild(context, replicas, archive).await)
}

#[track_caller]
fn check_both_branches(files: &Objects) {
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["laptop.md", "log.md", "old.md", "ports.md", "tablet.md"]);
    let log = String::from_utf8_lossy(&files["log.md"]).into_owned();
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["from the laptop", "from the tablet", "one"]);
}

#[test]
fn replicas_of_one_home_on_different_branches_meet_again() {
    let lab = home_on_two_branches();
    let told = sync(&lab, "tablet").expect_err("it went back");
    assert!(told.contains("history has changed"), "{told}");
    let rebuilt = rebuild_home(&lab).expect("merged");
    assert_eq!((rebuilt.positions, rebuilt.without_base), (0, 1), "the archive has the other branch");
    check_both_branches(&converge(&lab, &["laptop", "desktop", "tablet"]));
}

/// The new store is built from one branch; the replica on the other one must not take its own files for deleted.
#[test]
fn replicas_on_different_branches_rebuild_a_wiped_remote() {
    for first in ["laptop", "home"] {
        let lab = home_on_two_branches();
        wipe(&lab);
        if first == "laptop" {
            rebuild_on(&lab, "laptop").expect("rebuilt");
        }
        rebuild_home(&lab).unwrap_or_else(|why| panic!("{first} first: {why}"));
        for device in ["desktop", "tablet"] {
            sync(&lab, device).unwrap_or_else(|why| panic!("{first} first: the {device}: {why}"));
        }
        rebuild_on(&lab, "laptop").expect("followed");
        check_both_branches(&converge(&lab, &["laptop", "desktop", "tablet"]));
    }
}

#[test]
fn device_without_archive_merges_without_base_and_says_so() {
    let lab = in_sync();
    lab.put("laptop", "log.md", "one\ntwo\n");
    sync(&lab, "laptop").expect("synced");
    wipe(&lab);
    rebuild_on(&lab, "desktop").expect("rebuilt");
    for key in objects(&*lab.device("laptop").state).keys().filter(|key| key.starts_with("history/")) {
        lab.remove_state("laptop", key);
    }
    assert_eq!(rebuild_on(&lab, "laptop").expect("followed").without_base, 1);
    let files = converge(&lab, &["laptop", "desktop"]);
    assert!(String::from_utf8_lossy(&files["log.md"]).contains("two"));
}

#[test]
fn another_store_is_never_written_to() {
    let lab = in_sync();
    wipe(&lab);
    let foreign = {
        let author = Author { device: "stranger".to_owned(), ..Author::default() };
        let ids = super::Counting(std::sync::atomic::AtomicU64::new(77_000));
        let files: Arc<dyn Backend> = Arc::new(InMemory::new());
        let _ =
            block_on(files.write(&place("theirs.md"), "theirs\n".into(), Condition::Any)).expect("written");
        let open = Replica::open(files, Arc::new(InMemory::new()), lab.remote.clone(), &ids);
        let mut replica = block_on(open).expect("opened");
        block_on(replica.sync(Context::new(&Midnight, &ids, &author))).expect("synced");
        objects(&*lab.remote)
    };
    let told = sync(&lab, "laptop").expect_err("another store");
    assert!(told.contains("another store"), "{told}");
    let told = rebuild_on(&lab, "laptop").expect_err("another store");
    assert!(told.contains("another store"), "{told}");
    assert_eq!(objects(&*lab.remote), foreign);
}

#[test]
fn moved_store_goes_on_elsewhere() {
    let lab = in_sync();
    let there: Arc<InMemory> = Arc::default();
    let copied = lab.with("laptop", async |replica, context| {
        move_store(context, replica, there.clone(), "s3://lighthouse").await
    });
    assert!(copied.expect("moved").copied > 0);
    // No device commits at the old place any more, with or without changes.
    lab.put("desktop", "ports.md", "staging: 5434\n");
    for _ in 0..2 {
        let told = sync(&lab, "desktop").expect_err("it was moved");
        assert!(told.contains("\"laptop\" moved the store to s3://lighthouse"), "{told}");
    }
    let told = sync(&lab, "tablet").expect_err("it was moved");
    assert!(told.contains("moved the store"), "{told}");
    // The same call again changes nothing.
    let again = lab.with("laptop", async |replica, context| {
        move_store(context, replica, there.clone(), "s3://lighthouse").await
    });
    assert_eq!(again.expect("moved").copied, 0);
    for device in ["desktop", "laptop", "tablet"] {
        let files = lab.device(device).files.clone();
        let synced = lab.with_backends(device, files, there.clone(), async |replica, context| {
            replica.check_remote(context).await?;
            replica.sync(context).await.map(drop)
        });
        synced.unwrap_or_else(|why| panic!("the {device}: {why}"));
    }
    assert_eq!(lab.text("tablet", "ports.md"), "staging: 5434\n");
}

/// A move that is cut short anywhere is completed by the same call.
#[test]
fn move_that_was_killed_goes_on() {
    let mut killed = 0;
    for steps in 0..40 {
        let lab = in_sync();
        let there: Arc<InMemory> = Arc::default();
        let files = lab.device("laptop").files.clone();
        let cut =
            lab.with_backends("laptop", files, dying(lab.remote.clone(), steps), async |replica, context| {
                move_store(context, replica, dying(there.clone(), steps), "s3://lighthouse").await
            });
        killed += usize::from(cut.is_err());
        let moved = lab.with("laptop", async |replica, context| {
            move_store(context, replica, there.clone(), "s3://lighthouse").await
        });
        moved.unwrap_or_else(|why| panic!("{steps}: {why}"));
        let (old, new) = (objects(&*lab.remote), objects(&*there));
        let is_end = |bytes: &Bytes| {
            matches!(Commit::decode(bytes), Ok(Commit { notice: Some(Notice::Moved { .. }), .. }))
        };
        for (key, bytes) in old.iter().filter(|(key, bytes)| key.starts_with(".haversack/") && !is_end(bytes))
        {
            assert_eq!(new.get(key), Some(bytes), "{steps}: {key}");
        }
        assert_eq!(old.values().filter(|bytes| is_end(bytes)).count(), 1, "{steps}");
    }
    assert!(killed > 5, "{killed}");
}

/// A Haversack that does not know that a log can end reads a commit of a newer version there.
#[test]
fn end_of_a_log_is_not_read_by_older_versions() {
    let lab = in_sync();
    let moved = lab.with("laptop", async |replica, context| {
        move_store(context, replica, Arc::new(InMemory::new()), "s3://lighthouse").await
    });
    moved.expect("moved");
    let last = layout::commit(lab.last_position()).to_string();
    let bytes = &objects(&*lab.remote)[&last];
    assert!(bytes.starts_with(b"haversack-commit 2\n"));
    let trouble = SyncError::Moved { url: String::new(), device: String::new(), time: Timestamp(0) };
    assert!(trouble.to_string().contains("moved the store"));
}

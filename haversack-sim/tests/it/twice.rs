//! A process is killed in the middle of a sync, another one goes on from there, and then the machine stops.

use std::sync::Arc;

use haversack::planted::{self, Planted};
use haversack::store::{Backend, Condition, DeviceLocal, InMemory, Locator, block_on};
use haversack::sync::{Author, Context, Replica, Report, SyncError};
use haversack_sim::{Crash, SimDisk};

use crate::counting::Counting;

const NOTES: &str = "notes.md";

/// The number of different stops of the machine.
const SEEDS: u64 = 3;

/// A laptop whose disks work, a desktop whose disks forget, and what they share.
struct Scene {
    remote: Arc<dyn Backend>,
    files: SimDisk,
    state: SimDisk,
    counting: Counting,
}

impl Scene {
    /// The laptop has changed a file that the desktop has.
    fn new(seed: u64) -> Scene {
        let (files, state) = (SimDisk::new(seed), SimDisk::new(seed + 1));
        let scene = Scene { remote: Arc::new(InMemory::new()), files, state, counting: Counting::default() };
        let (laptop, laptop_state): (Arc<dyn Backend>, Arc<dyn Backend>) =
            (Arc::new(InMemory::new()), Arc::new(InMemory::new()));
        for text in ["one\n", "one\ntwo\n"] {
            let notes = Locator::parse(NOTES).expect("a plain name");
            let _ = block_on(laptop.write(&notes, text.into(), Condition::Any)).expect("written");
            scene.sync(laptop.clone(), laptop_state.clone()).expect("the laptop syncs");
            if text == "one\n" {
                scene.sync_desktop().expect("the desktop syncs");
            }
        }
        scene
    }

    fn sync(&self, files: Arc<dyn Backend>, state: Arc<dyn Backend>) -> Result<Report, SyncError> {
        let author = Author { device: "desktop".to_owned(), ..Author::default() };
        block_on(async {
            let mut replica = Replica::open(files, state, self.remote.clone(), &self.counting).await?;
            replica.sync(Context::new(&self.counting, &self.counting, &author)).await
        })
    }

    fn sync_desktop(&self) -> Result<Report, SyncError> {
        let open = |disk: &SimDisk| DeviceLocal::on(disk.clone()).map_err(SyncError::Local);
        self.sync(Arc::new(open(&self.files)?), Arc::new(open(&self.state)?))
    }

    fn restart(&self, crash: Crash) {
        self.files.restart(crash);
        self.state.restart(crash);
    }

    /// Lets the user take out the second line, and returns whether it is back after the next sync.
    fn comes_back(&self) -> bool {
        self.files.edit(|editor| {
            editor.overwrite(NOTES, b"one\n");
            editor.sync_at(NOTES);
        });
        self.sync_desktop().expect("nothing is in the way");
        self.files.read(NOTES) != Some(b"one\n".to_vec())
    }
}

/// Returns after which calls of the state's disk, and with which seeds, a line comes back that the user takes out at the end.
fn faults() -> Vec<(usize, u64)> {
    let mut faults = Vec::new();
    for calls in 1.. {
        for seed in 0..SEEDS {
            let scene = Scene::new(seed);
            scene.state.mark();
            scene.state.crash_after(calls);
            drop(scene.sync_desktop());
            if !scene.state.has_crashed() {
                return faults;
            }
            scene.restart(Crash::Kill);
            scene.sync_desktop().expect("the next process goes on");
            scene.restart(Crash::PowerLoss { seed });
            if scene.files.read(NOTES) == Some(b"one\ntwo\n".to_vec()) && scene.comes_back() {
                faults.push((calls, seed));
            }
        }
    }
    unreachable!("a sync ends")
}

#[test]
fn what_the_next_process_built_on_is_durable() {
    assert_eq!(faults(), []);
    let found = planted::with(Some(Planted::SeenIsDurable), faults);
    assert!(!found.is_empty(), "believing what can be seen is not noticed");
}

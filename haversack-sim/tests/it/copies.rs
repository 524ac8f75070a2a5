//! A process is killed while it takes in a conflict copy of a sync client, and the next one goes on from there.

use std::collections::BTreeMap;
use std::sync::Arc;

use haversack::store::{
    Backend, BackendExt, Condition, DeviceLocal, InMemory, Locator, SplitBackend, block_on,
};
use haversack::sync::{Author, Context, Mirror, Replica, SyncError};
use haversack::vault::{Bridge, Mine};
use haversack_sim::{Crash, SimDisk};

use crate::counting::Counting;

const NOTES: &str = "notes.md";
const COPY: &str = "notes (a teammate's conflicted copy 2026-11-16).md";

/// The task of a process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    Sync,
    Reconcile,
}

/// A device whose disks crash, with a folder in which a copy lies.
struct Scene {
    files: SimDisk,
    state: SimDisk,
    home: SimDisk,
    folder: Arc<InMemory>,
    counting: Counting,
}

impl Scene {
    fn new() -> Scene {
        let [files, state, home] = [0, 1, 2].map(SimDisk::new);
        let (folder, counting) = (Arc::new(InMemory::new()), Counting::default());
        let scene = Scene { files, state, home, folder, counting };
        scene.files.edit(|editor| {
            editor.overwrite(NOTES, b"- the lamp is lit\n");
            editor.sync_at(NOTES);
        });
        scene.run(Task::Reconcile).expect("nothing is in the way");
        let copy = Locator::parse(COPY).expect("a plain name");
        let text = "- the lamp is lit\n- the oil is low\n";
        let _ = block_on(scene.folder.write(&copy, text.into(), Condition::Absent)).expect("written");
        scene
    }

    fn run(&self, task: Task) -> Result<(), SyncError> {
        let open = |disk: &SimDisk| -> Result<Arc<dyn Backend>, SyncError> {
            Ok(Arc::new(DeviceLocal::on(disk.clone()).map_err(SyncError::Local)?))
        };
        let (files, state, home) = (open(&self.files)?, open(&self.state)?, open(&self.home)?);
        let author = Author { device: "laptop".to_owned(), ..Author::default() };
        let context = Context::new(&self.counting, &self.counting, &author);
        block_on(async {
            let mut bridge = Bridge::open(self.folder.clone(), home.clone(), &self.counting).await?;
            bridge.prepare(context).await?;
            let remote = Arc::new(SplitBackend::new(home, self.folder.clone()));
            let mut replica = Replica::open(files, state, remote, &self.counting).await?;
            replica.sync(context).await?;
            bridge.carry(context).await?;
            if task == Task::Reconcile {
                let origins = bridge.origins(context, Mine::Everything).await?;
                let known = Context { origins: &origins, ..context };
                replica.reconcile(known, Mirror::On).await?;
                bridge.carry(context).await?;
                let origins = bridge.origins(context, Mine::Everything).await?;
                replica.mirror(Context { origins: &origins, ..context }).await?;
            }
            Ok(())
        })
    }

    /// Returns the texts in a backend that are not ours alone.
    fn texts(backend: &dyn Backend) -> BTreeMap<String, String> {
        let all = block_on(backend.list_all(&Locator::root())).expect("listed");
        let all = all.into_iter().filter(|locator| !locator.is_reserved());
        all.map(|locator| {
            let text = block_on(backend.read_text(&locator)).expect("read").expect("it is there");
            (locator.to_string(), text)
        })
        .collect()
    }

    fn restart(&self, crash: Crash) {
        for disk in [&self.files, &self.state, &self.home] {
            disk.restart(crash);
        }
    }
}

/// Killed at any moment, in the end the copy is in its file, and nowhere else.
#[test]
fn a_copy_is_merged_wherever_the_process_is_killed() {
    let disk_of = |scene: &Scene, which: usize| [&scene.files, &scene.state, &scene.home][which].clone();
    for which in 0..3 {
        for calls in 1.. {
            let crash = match calls % 2 {
                0 => Crash::PowerLoss { seed: calls as u64 },
                _ => Crash::Kill,
            };
            let between = if calls % 4 < 2 { Task::Sync } else { Task::Reconcile };
            let scene = Scene::new();
            let disk = disk_of(&scene, which);
            disk.mark();
            disk.crash_after(calls);
            drop(scene.run(Task::Reconcile));
            if !disk.has_crashed() {
                break;
            }
            scene.restart(crash);
            let why = format!("disk {which}, call {calls}, {crash:?}");
            for task in [between, Task::Reconcile] {
                scene.run(task).unwrap_or_else(|trouble| panic!("{why}: {trouble:?}"));
            }
            let merged = "- the lamp is lit\n- the oil is low\n".to_owned();
            let expected = BTreeMap::from([(NOTES.to_owned(), merged)]);
            let files = DeviceLocal::on(scene.files.clone()).expect("opened");
            assert_eq!(Scene::texts(&files), expected, "{why}");
            assert_eq!(Scene::texts(&*scene.folder), expected, "the folder; {why}");
        }
    }
}

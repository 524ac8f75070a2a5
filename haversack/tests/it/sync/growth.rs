//! An append to a long file costs the same however long the file is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures_lite::future::block_on;
use haversack::Memory;
use haversack::store::{
    Appended, Backend, BackendExt, Bytes, Condition, Durability, Info, Listing, Locator, Object, Pages,
    Result, Written, forward_backend,
};
use haversack::sync::{Author, Context, Open, Replica, Report};

use super::{Midnight, World};
use crate::subjects::at;

const LOG: &str = "interactions/2026-11-18.jsonl";

/// Counts the bytes that are read and written.
#[derive(Debug)]
struct CountedBytes {
    inner: Arc<dyn Backend>,
    bytes: Arc<AtomicU64>,
}

impl CountedBytes {
    fn of(inner: Arc<dyn Backend>, bytes: &Arc<AtomicU64>) -> Arc<dyn Backend> {
        Arc::new(CountedBytes { inner, bytes: bytes.clone() })
    }

    fn add(&self, bytes: &[u8]) {
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for CountedBytes {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        let object = self.inner.read(locator).await?;
        self.add(&object.bytes);
        Ok(object)
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        self.add(&bytes);
        self.inner.write(locator, bytes, condition).await
    }

    async fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        objects.iter().for_each(|(_, bytes)| self.add(bytes));
        self.inner.prepare(objects).await
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        self.add(&bytes);
        self.inner.append(locator, bytes, durability).await
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        self.inner.list(locator).await
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        self.inner.scan(prefix, after)
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        self.inner.info(locator).await
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        self.inner.delete(locator, condition).await
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        self.inner.rename(from, to).await
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        self.inner.exchange(one, other).await
    }

    forward_backend!(self => self.inner; barrier, touch_mark, mkdir, lock, capabilities, conflict_strategy);
}

fn line(number: usize) -> String {
    format!("{{\"id\":\"{number}\",\"summary\":\"The lamp of the lighthouse was mended\"}}\n")
}

impl World {
    /// Does something with the memory of a machine, syncs it, and returns the bytes that this read and wrote, with the report.
    fn counted(&self, work: impl AsyncFnOnce(&Memory)) -> (u64, Report) {
        let bytes = Arc::new(AtomicU64::new(0));
        let counted = |name: &str| CountedBytes::of(self.open(name), &bytes);
        let author = Author { device: "laptop".to_owned(), agent: None, session: None };
        let verbs = counted("laptop/verbs");
        let report = block_on(async {
            work(&Memory::new(counted("laptop/memory"), verbs.clone())).await;
            let (files, state) = (counted("laptop/memory"), counted("laptop/state"));
            let mut replica = Replica::open(files, state, counted("remote"), &self.ids).await?;
            let context = Context::new(&Midnight, &self.ids, &author);
            replica.sync(Context { gate: &Open, signed: Some(&*verbs), ..context }).await
        });
        (bytes.load(Ordering::Relaxed), report.expect("synced"))
    }

    /// Appends a line by the verb, as `event` does.
    fn appended(&self, number: usize) -> (u64, Report) {
        self.counted(async |memory| {
            memory.append(&at(LOG), line(number)).await.expect("appended");
        })
    }

    /// Checks that another machine receives the log as it is here.
    fn expect_everywhere(&self) {
        self.sync("desktop");
        assert!(self.text("laptop", LOG) == self.text("desktop", LOG), "the machines differ");
    }
}

#[test]
fn append_to_a_long_log_reads_no_more_than_to_a_short_one() {
    let costs = [20, 40_000].map(|lines| {
        let world = World::new();
        let text: String = (0..lines).map(line).collect();
        world.put("laptop", LOG, text);
        world.counted(async |_| {});
        // The first append reads the file, and begins the record of its growth.
        world.appended(lines);
        let costs: Vec<u64> = (1..=5)
            .map(|more| {
                let (bytes, report) = world.appended(lines + more);
                assert_eq!(report.published, 1);
                bytes
            })
            .collect();
        world.expect_everywhere();
        costs
    });
    let [short, long] = costs;
    assert!(
        long.iter().zip(&short).all(|(long, short)| *long < short + 64 * 1024),
        "{short:?} and {long:?} bytes"
    );
}

#[test]
fn other_changes_of_a_growing_log_are_seen() {
    let world = World::new();
    world.put("laptop", LOG, (0..40_000).map(line).collect::<String>());
    world.counted(async |_| {});
    world.appended(40_000);
    world.appended(40_001);
    // An editor changes a line in the middle, and a verb appends before the next sync.
    let text = world.text("laptop", LOG).expect("there").replacen("mended", "broken", 1);
    world.put("laptop", LOG, text);
    world.appended(40_002);
    world.expect_everywhere();
    assert!(world.text("desktop", LOG).expect("there").contains("broken"));
    // Another program appends, and then a verb.
    let text = world.text("laptop", LOG).expect("there") + "{\"id\":\"other\"}\n";
    world.put("laptop", LOG, text);
    world.appended(40_003);
    world.appended(40_004);
    world.expect_everywhere();
    // The file is shortened, deleted, and written anew.
    world.put("laptop", LOG, line(1));
    world.appended(2);
    world.expect_everywhere();
    world.delete("laptop", LOG);
    world.appended(3);
    world.expect_everywhere();
    assert_eq!(world.text("desktop", LOG), Some(line(3)));
}

#[test]
fn lost_or_damaged_record_costs_only_a_read() {
    let world = World::new();
    world.put("laptop", LOG, (0..40_000).map(line).collect::<String>());
    world.counted(async |_| {});
    for number in 0..6 {
        world.appended(40_000 + number);
        let state = world.open("laptop/verbs");
        let directory = Locator::parse("growth").expect("valid");
        let records = block_on(state.list_all(&directory)).expect("listed");
        assert_eq!(records.len(), 1);
        for record in records {
            let damage = match number % 2 {
                0 => Bytes::from_static(b"{half a li"),
                _ => Bytes::new(),
            };
            let _ = block_on(state.write(&record, damage, Condition::Any)).expect("written");
        }
        world.expect_everywhere();
    }
    // The object that grows with the file is gone.
    world.appended(50_000);
    let state = world.open("laptop/state");
    for object in block_on(state.list_all(&Locator::parse("objects").expect("valid"))).expect("listed") {
        block_on(state.delete(&object, Condition::Any)).expect("deleted");
    }
    world.appended(50_001);
    world.expect_everywhere();
}

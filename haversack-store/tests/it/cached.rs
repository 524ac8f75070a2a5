//! Cached content is never older than the backend's, and spares the backend where it can.

#[cfg(unix)]
mod outside;
mod watched;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use futures_lite::future::poll_once;
use haversack_store::{
    Backend, Blocking, Bytes, Cached, Condition, Durability, ErrorKind, Fault, Faulty, InMemory, Locator,
    block_on,
};
use proptest::prelude::*;

use self::watched::{Moment, Shows, Watched};
use crate::conform::Directory;

/// Enough for everything that these tests read.
const MAX_BYTES: usize = 1 << 20;

fn at(key: &str) -> Locator {
    Locator::parse(key).expect("a plain key")
}

/// A cache over a backend that is watched.
struct Scene {
    watched: Arc<Watched>,
    cached: Arc<Cached>,
}

impl Scene {
    fn new(inner: Arc<dyn Backend>, shows: Shows) -> Scene {
        Scene::with_room_for(MAX_BYTES, inner, shows)
    }

    fn with_room_for(max_bytes: usize, inner: Arc<dyn Backend>, shows: Shows) -> Scene {
        let watched = Arc::new(Watched::new(inner, shows));
        Scene { cached: Arc::new(Cached::new(watched.clone(), max_bytes)), watched }
    }

    fn in_memory(shows: Shows) -> Scene {
        Scene::new(Arc::new(InMemory::new()), shows)
    }

    /// Returns the view through the cache.
    fn ours(&self) -> Blocking {
        Blocking::new(self.cached.clone())
    }

    /// Returns the view past the cache.
    fn others(&self) -> Blocking {
        Blocking::new(self.watched.clone())
    }

    fn read(&self, key: &str) -> String {
        text(&self.ours(), key)
    }

    /// Reads and tells whether the backend behind had to.
    fn read_counted(&self, key: &str) -> (String, usize) {
        let before = self.watched.reads();
        let text = self.read(key);
        (text, self.watched.reads() - before)
    }

    /// Makes sure that what is at these places is remembered.
    fn remember(&self, keys: &[&str]) {
        block_on(self.cached.touch_mark()).expect("marked");
        for key in keys {
            self.read(key);
            assert_eq!(self.read_counted(key).1, 0, "{key} is not remembered");
        }
    }
}

fn text(store: &Blocking, key: &str) -> String {
    match store.read_text(&at(key)) {
        Ok(Some(text)) => text,
        Ok(None) => "nothing".to_owned(),
        Err(error) => panic!("{key}: {error:?}"),
    }
}

fn put(store: &Blocking, key: &str, text: &str) {
    let _ = store.write_text(&at(key), text).expect("written");
}

#[test]
fn versions_need_no_mark() {
    let scene = Scene::in_memory(Shows::Truth);
    put(&scene.ours(), "a", "one");
    for _ in 0..3 {
        assert_eq!(scene.read("a"), "one");
    }
    assert_eq!((scene.watched.reads(), scene.watched.marks()), (1, 0));
    put(&scene.others(), "a", "two");
    assert_eq!(scene.read_counted("a"), ("two".to_owned(), 1));
    assert_eq!(scene.read_counted("a"), ("two".to_owned(), 0));
    assert_eq!(scene.watched.marks(), 0);
}

#[test]
fn what_cannot_be_read_fails_as_it_does_without() {
    let scene = Scene::in_memory(Shows::Truth);
    let (ours, others) = (scene.ours(), scene.others());
    put(&others, "d/x", "one");
    for key in ["", "d", "absent", "d/x/below"] {
        let told = |store: &Blocking| store.read(&at(key)).expect_err("refused").to_string();
        assert_eq!(told(&ours), told(&others), "{key}");
    }
    put(&others, "absent", "here");
    assert_eq!(scene.read("absent"), "here");
}

#[test]
fn the_bound_costs_the_oldest() {
    const OBJECT_BYTES: usize = 1_000;
    // With what each costs besides, there is room for seven.
    const ROOM_BYTES: usize = 9_200;
    let scene = Scene::with_room_for(ROOM_BYTES, Arc::new(InMemory::new()), Shows::Truth);
    for number in 0..10 {
        put(&scene.ours(), &number.to_string(), &"x".repeat(OBJECT_BYTES));
        scene.read(&number.to_string());
    }
    for number in 3..10 {
        assert_eq!(scene.read_counted(&number.to_string()).1, 0, "{number}");
    }
    assert_eq!(scene.read_counted("0").1, 1);
    put(&scene.ours(), "large", &"x".repeat(ROOM_BYTES / 4 + 1));
    for _ in 0..2 {
        assert_eq!(scene.read_counted("large").1, 1);
    }
}

/// Something done through the cache to a tree where `d/x` holds "one".
struct Mutation {
    name: &'static str,
    apply: fn(&Blocking) -> haversack_store::Result<()>,
    /// The expected contents afterwards.
    after: &'static [(&'static str, &'static str)],
}

const MUTATIONS: &[Mutation] = &[
    Mutation {
        name: "write",
        apply: |store| store.write(&at("d/x"), "two", Condition::Any).map(drop),
        after: &[("d/x", "two")],
    },
    Mutation {
        name: "append",
        apply: |store| store.append(&at("d/x"), "two", Durability::Now).map(drop),
        after: &[("d/x", "onetwo")],
    },
    Mutation {
        name: "delete",
        apply: |store| store.delete(&at("d/x"), Condition::Any),
        after: &[("d/x", "nothing")],
    },
    Mutation {
        name: "rename",
        apply: |store| store.rename(&at("d/x"), &at("e/x")),
        after: &[("d/x", "nothing"), ("e/x", "one")],
    },
    Mutation {
        name: "rename of a directory",
        apply: |store| store.rename(&at("d"), &at("e")),
        after: &[("d/x", "nothing"), ("e/x", "one")],
    },
    Mutation {
        name: "exchange",
        apply: |store| store.exchange(&at("d/x"), &at("f/y")),
        after: &[("d/x", "two"), ("f/y", "one")],
    },
];

/// Has something remembered at every end of a mutation and demands that none of it is served after
/// `mutate` did it, although the backend shows no difference.
fn demand_forgetting(shared: &Arc<InMemory>, scene: &Scene, mutation: &Mutation, mutate: impl FnOnce()) {
    let Mutation { name, after, .. } = mutation;
    let others = Blocking::new(shared.clone());
    put(&others, "d/x", "one");
    put(&others, "e/x", "old");
    put(&others, "f/y", "two");
    put(&others, "d-other/x", "other");
    scene.remember(&["d/x", "e/x", "f/y", "d-other/x"]);
    // A rename needs a free name: another program makes it free, unseen.
    others.delete(&at("e/x"), Condition::Any).expect("deleted");
    others.delete(&at("e"), Condition::Any).expect("deleted");
    mutate();
    for (key, text) in *after {
        assert_eq!(scene.read(key), *text, "{key} after a {name}");
    }
    assert_eq!(scene.read_counted("d-other/x"), ("other".to_owned(), 0), "the neighbour after a {name}");
}

#[test]
fn every_mutation_forgets() {
    for mutation in MUTATIONS {
        let shared = Arc::new(InMemory::new());
        let scene = Scene::new(shared.clone(), Shows::AlwaysTheSame);
        let mutate = || (mutation.apply)(&scene.ours()).expect(mutation.name);
        demand_forgetting(&shared, &scene, mutation, mutate);
    }
}

#[test]
fn failed_mutation_clears_the_cache() {
    for mutation in MUTATIONS {
        let shared = Arc::new(InMemory::new());
        let faulty = Arc::new(Faulty::new(shared.clone()));
        let scene = Scene::new(faulty.clone(), Shows::AlwaysTheSame);
        let mutate = || {
            faulty.plan([Fault::AnswerLost]);
            let error = (mutation.apply)(&scene.ours()).expect_err(mutation.name);
            assert_eq!(error.kind(), ErrorKind::Unavailable);
        };
        demand_forgetting(&shared, &scene, mutation, mutate);
    }
}

#[test]
fn failed_write_clears_concurrent_reads() {
    let faulty = Arc::new(Faulty::new(Arc::new(InMemory::new())));
    let scene = Scene::new(faulty.clone(), Shows::AlwaysTheSame);
    put(&scene.ours(), "a", "one");
    scene.remember(&["a"]);
    let ours = scene.ours();
    scene.watched.at(Moment::BeforeWrite, move || assert_eq!(text(&ours, "a"), "one"));
    // The read in between works, the answer to the write is lost.
    faulty.plan([Fault::None, Fault::AnswerLost]);
    let error = scene.ours().write_text(&at("a"), "two").expect_err("the answer is lost");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(scene.read("a"), "two");
}

#[test]
fn abandoned_write_clears_the_cache() {
    let scene = Scene::in_memory(Shows::AlwaysTheSame);
    put(&scene.ours(), "a", "one");
    scene.remember(&["a"]);
    // A reader caches the content while the write is under way and has no effect yet.
    let cached = scene.cached.clone();
    scene.watched.at(Moment::BeforeWrite, move || drop(block_on(cached.read(&at("a")))));
    let place = at("a");
    let write = scene.cached.write(&place, Bytes::from("two"), Condition::Any);
    assert!(block_on(poll_once(write)).is_none(), "the write was to be abandoned");
    assert_eq!(scene.read("a"), "two");
}

#[test]
fn read_overtaken_by_a_write() {
    let scene = Scene::in_memory(Shows::AlwaysTheSame);
    put(&scene.ours(), "a", "one");
    block_on(scene.cached.touch_mark()).expect("marked");
    let ours = scene.ours();
    scene.watched.at(Moment::AfterRead, move || put(&ours, "a", "two"));
    assert_eq!(scene.read("a"), "one");
    assert_eq!(scene.read("a"), "two");
}

#[test]
fn a_read_in_the_middle_of_a_write() {
    for (moment, seen) in [(Moment::BeforeWrite, "one"), (Moment::AfterWrite, "two")] {
        let scene = Scene::in_memory(Shows::AlwaysTheSame);
        put(&scene.ours(), "a", "one");
        scene.remember(&["a"]);
        let ours = scene.ours();
        scene.watched.at(moment, move || assert_eq!(text(&ours, "a"), seen, "{moment:?}"));
        put(&scene.ours(), "a", "two");
        assert_eq!(scene.read("a"), "two", "{moment:?}");
    }
}

#[test]
fn a_write_in_the_same_tick_is_seen() {
    let scene = Scene::in_memory(Shows::Ticks);
    for round in 0..20 {
        let value = (round % 10).to_string();
        put(&scene.others(), "a", &value);
        for _ in 0..round {
            assert_eq!(scene.read("a"), value);
        }
        if round % 3 == 0 {
            scene.watched.tick();
        }
    }
}

#[test]
fn what_never_settles_asks_for_ever_fewer_marks() {
    let scene = Scene::in_memory(Shows::Ticks);
    put(&scene.others(), "a", "one");
    for _ in 0..100 {
        assert_eq!(scene.read("a"), "one");
    }
    // At the 2nd, 3rd, 5th, 9th, 17th, 33rd and 65th read.
    assert_eq!((scene.watched.reads(), scene.watched.marks()), (100, 7));
    // Once the clock has gone on, any mark serves.
    scene.watched.tick();
    block_on(scene.cached.touch_mark()).expect("marked");
    assert_eq!(scene.read_counted("a").1, 1);
    assert_eq!(scene.read_counted("a").1, 0);
}

#[test]
fn mark_vouches_only_for_later_reads() {
    for marks in [false, true] {
        let scene = Scene::in_memory(Shows::Ticks);
        put(&scene.others(), "a", "one");
        assert_eq!(scene.read("a"), "one");
        // While it is read again, another program writes in the very tick of the first write; then time goes on.
        let (others, watched, cached) = (scene.others(), scene.watched.clone(), scene.cached.clone());
        scene.watched.at(Moment::AfterRead, move || {
            put(&others, "a", "two");
            watched.tick();
            if marks {
                block_on(cached.touch_mark()).expect("marked");
            }
        });
        assert_eq!(scene.read("a"), "one");
        assert_eq!(scene.read("a"), "two", "marked meanwhile: {marks}");
    }
}

#[test]
fn object_swapped_during_a_read() {
    let scene = Scene::in_memory(Shows::Ticks);
    let swap = |store: &Blocking| {
        for (from, to) in [("d", "aside"), ("e", "d"), ("aside", "e")] {
            store.rename(&at(from), &at(to)).expect("renamed");
        }
    };
    put(&scene.others(), "d/x", "one");
    put(&scene.others(), "e/x", "two");
    scene.watched.tick();
    block_on(scene.cached.touch_mark()).expect("marked");
    let others = scene.others();
    scene.watched.at(Moment::BeforeRead, move || swap(&others));
    assert_eq!(scene.read("d/x"), "two");
    swap(&scene.others());
    assert_eq!(scene.read("d/x"), "one");
}

/// Something that happens to a store.
#[derive(Clone, Debug)]
enum Event {
    Tick,
    Mark,
    Ours(Change),
    Others(Change),
    Read(usize),
    /// A read in the middle of which other things happen.
    ReadDuring(usize, Moment, Vec<Event>),
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, &'static str),
    Append(usize),
    Delete(usize),
    Rename(usize, usize),
}

/// Objects, and the directories they are in.
const PLACES: &[&str] = &["d/x", "d/y", "e/x", "a", "d", "e"];

impl Change {
    fn apply(&self, store: &Blocking) {
        // A refused operation changes nothing, which is a valid case.
        let _ = match *self {
            Change::Write(place, text) => store.write_text(&at(PLACES[place]), text).map(drop),
            Change::Append(place) => store.append_text(&at(PLACES[place]), "+").map(drop),
            Change::Delete(place) => store.delete(&at(PLACES[place]), Condition::Any),
            Change::Rename(from, to) => store.rename(&at(PLACES[from]), &at(PLACES[to])),
        };
    }
}

fn changes() -> impl Strategy<Value = Change> {
    let place = 0..PLACES.len();
    // All of one size: only time and content differ.
    let texts = prop::sample::select(vec!["1", "2", "3"]);
    prop_oneof![
        4 => (place.clone(), texts).prop_map(|(place, text)| Change::Write(place, text)),
        1 => place.clone().prop_map(Change::Append),
        1 => place.clone().prop_map(Change::Delete),
        2 => (place.clone(), place).prop_map(|(from, to)| Change::Rename(from, to)),
    ]
}

fn events() -> impl Strategy<Value = Event> {
    let simple = prop_oneof![
        2 => Just(Event::Tick),
        1 => Just(Event::Mark),
        2 => changes().prop_map(Event::Ours),
        4 => changes().prop_map(Event::Others),
    ];
    let moments = prop::sample::select(vec![Moment::BeforeRead, Moment::AfterRead, Moment::BeforeMark]);
    let read = 0..4_usize;
    prop_oneof![
        4 => simple.clone(),
        8 => read.clone().prop_map(Event::Read),
        3 => (read, moments, prop::collection::vec(simple, 1..4)).prop_map(|(place, moment, events)| {
            Event::ReadDuring(place, moment, events)
        }),
    ]
}

fn happen(watched: &Arc<Watched>, cached: &Arc<Cached>, event: &Event) {
    let (ours, others) = (Blocking::new(cached.clone()), Blocking::new(watched.clone()));
    match event {
        Event::Tick => watched.tick(),
        Event::Mark => drop(block_on(cached.touch_mark())),
        Event::Ours(change) => change.apply(&ours),
        Event::Others(change) => change.apply(&others),
        Event::Read(place) => {
            let told = |store: &Blocking| store.read(&at(PLACES[*place])).map_err(|error| error.kind());
            assert_eq!(told(&ours), told(&others), "{}", PLACES[*place]);
        }
        Event::ReadDuring(place, moment, events) => {
            let (inside, through, events) = (watched.clone(), cached.clone(), events.clone());
            watched.at(*moment, move || events.iter().for_each(|event| happen(&inside, &through, event)));
            // Old or new: the two overlap.
            drop(ours.read(&at(PLACES[*place])));
            watched.forget_plans();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// On a clock so coarse that most changes share a tick, whatever happens in whatever order.
    #[test]
    fn nothing_stale_in_any_order(events in prop::collection::vec(events(), 0..60)) {
        let scene = Scene::in_memory(Shows::Ticks);
        for event in &events {
            happen(&scene.watched, &scene.cached, event);
        }
        for place in 0..4 {
            happen(&scene.watched, &scene.cached, &Event::Read(place));
        }
    }
}

/// Lets a writer count up through one door after the other while readers demand that they never see less
/// than what was acknowledged before they looked.
fn race(cached: &Arc<Cached>, doors: &[Arc<dyn Backend>], writes: usize) {
    let place = at("counter");
    let acknowledged = AtomicUsize::new(0);
    let done = AtomicBool::new(false);
    let write = |door: &Arc<dyn Backend>, count: usize| {
        // Always the same size: only time and content differ.
        let bytes = Bytes::from(format!("{count:08}"));
        let _ = block_on(door.write(&place, bytes, Condition::Any)).expect("written");
        acknowledged.store(count, Ordering::SeqCst);
    };
    write(&doors[0], 0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let least = acknowledged.load(Ordering::SeqCst);
                    let seen = text(&Blocking::new(cached.clone()), "counter");
                    let count: usize = seen.parse().expect("a count");
                    assert!(count >= least, "{count} after {least} was acknowledged");
                }
            });
        }
        let writer = scope.spawn(|| {
            for (count, door) in (1..=writes).zip(doors.iter().cycle()) {
                write(door, count);
            }
        });
        let written = writer.join();
        done.store(true, Ordering::Relaxed);
        written.expect("the writer does not panic");
    });
    assert_eq!(text(&Blocking::new(cached.clone()), "counter"), format!("{writes:08}"));
}

#[test]
fn racing_threads() {
    let directory = Directory::new();
    let cached = Arc::new(Cached::new(Arc::new(directory.backend()), MAX_BYTES));
    let other = Arc::new(Cached::new(Arc::new(directory.backend()), MAX_BYTES));
    race(&cached, &[cached.clone(), other, Arc::new(directory.backend())], 300);

    let memory: Arc<dyn Backend> = Arc::new(InMemory::new());
    let cached = Arc::new(Cached::new(memory.clone(), MAX_BYTES));
    race(&cached, &[cached.clone(), memory], 20_000);
}

#[test]
fn racing_threads_where_only_forgetting_helps() {
    let scene = Scene::in_memory(Shows::AlwaysTheSame);
    block_on(scene.cached.touch_mark()).expect("marked");
    let door: Arc<dyn Backend> = scene.cached.clone();
    race(&scene.cached, &[door], 20_000);
}

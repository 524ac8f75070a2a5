//! Copying from one storage to another: what goes wrong, and what stays as it was.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Waker};

use async_trait::async_trait;
use futures_lite::future::{block_on, yield_now};
use haversack::manifest::Manifest;
use haversack::migrate::{Context, Plan, Report, Source, Why, apply, survey};
use haversack::store::{
    Backend, BackendExt, Bytes, Condition, ErrorKind, Fault, Faulty, InMemory, Locator, Object, Version,
    Written, forward_backend,
};
use haversack::sync::{Gate, Hold, Impatient, Quiet};

use crate::subjects::at;

/// Holds back what looks like a secret.
struct NoSecrets;

impl Gate for NoSecrets {
    fn holds(&self, _: &Locator, content: &[u8]) -> Option<Hold> {
        content.starts_with(b"secret").then(|| Hold::whole("it looks like a secret"))
    }
}

const CONTEXT: Context<'static> = Context { gate: Some(&NoSecrets), patience: &Impatient, progress: &Quiet };

/// Returns a storage with these files.
fn holding(files: &[(&str, &str)]) -> Arc<InMemory> {
    let backend = Arc::new(InMemory::new());
    for (key, text) in files {
        put(&*backend, key, text);
    }
    backend
}

fn put(backend: &dyn Backend, key: &str, text: &str) {
    let _ = block_on(backend.write(&at(key), Bytes::copy_from_slice(text.as_bytes()), Condition::Any))
        .expect("written");
}

/// Returns everything that a storage holds, with the versions.
fn all(backend: &dyn Backend) -> BTreeMap<String, (Bytes, Version)> {
    let keys = block_on(backend.list_all(&Locator::root())).expect("listed");
    let each = keys.into_iter().map(|key| {
        let object = block_on(backend.read(&key)).expect("read");
        (key.to_string(), (object.bytes, object.version))
    });
    each.collect()
}

fn texts(backend: &dyn Backend) -> BTreeMap<String, Bytes> {
    all(backend).into_iter().map(|(key, (bytes, _))| (key, bytes)).collect()
}

fn source(backend: Arc<dyn Backend>, prefix: &str) -> Source {
    Source { backend, prefix: at(prefix) }
}

fn planned(sources: &[Source], target: &dyn Backend) -> Plan {
    block_on(survey(sources, target, CONTEXT)).expect("surveyed")
}

fn migrate(sources: &[Source], target: &dyn Backend) -> Report {
    let plan = planned(sources, target);
    block_on(apply(sources, target, plan, CONTEXT))
}

fn left(report: &Report) -> Vec<(&str, String)> {
    report.left.iter().map(|left| (left.name.as_str(), left.why.to_string())).collect()
}

#[test]
fn everything_is_copied_once() {
    let sources = [
        source(holding(&[("MEMORY.md", "- ports\n"), ("deep/er/empty.md", "")]), ""),
        source(holding(&[("MEMORY.md", "- people\n")]), "claude_memory/lighthouse"),
    ];
    let target = holding(&[("own.md", "mine\n")]);
    let plan = planned(&sources, &*target);
    assert_eq!((plan.copies.len(), plan.bytes()), (3, 17));
    assert_eq!(texts(&*target).len(), 1, "looking changes nothing");
    let report = migrate(&sources, &*target);
    let keys = [at("MEMORY.md"), at("claude_memory/lighthouse/MEMORY.md"), at("deep/er/empty.md")];
    assert_eq!(report, Report { copied: keys.to_vec(), bytes_copied: 17, ..Report::default() });
    let texts = texts(&*target);
    assert_eq!(texts["claude_memory/lighthouse/MEMORY.md"], "- people\n");
    assert_eq!((texts["deep/er/empty.md"].len(), texts["own.md"].len(), texts.len()), (0, 5, 4));
    let before = all(&*target);
    assert_eq!(migrate(&sources, &*target), Report { skipped: 3, ..Report::default() });
    assert_eq!(all(&*target), before, "the second time nothing is written");
}

#[test]
fn the_source_is_not_touched() {
    let files = [("a.md", "a\n"), ("b/c.md", "c\n"), ("key.md", "secret\n"), ("other.md", "here\n")];
    let from = holding(&files);
    let before = all(&*from);
    let target = holding(&[("other.md", "there\n"), ("a.md", "A\n")]);
    let report = migrate(&[source(from.clone(), "")], &*target);
    let different = "something else has that name in the target".to_owned();
    assert_eq!(
        left(&report),
        [
            ("key.md", "held back, it looks like a secret".to_owned()),
            ("other.md", different.clone()),
            ("a.md", different),
        ]
    );
    assert_eq!((report.copied, report.skipped), (vec![at("b/c.md")], 0));
    assert_eq!(all(&*from), before);
    let there = texts(&*target);
    assert_eq!((&there["other.md"], &there["a.md"], there.len()), (&"there\n".into(), &"A\n".into(), 3));
}

#[test]
fn object_that_appears_during_migration_is_not_replaced() {
    let sources = [source(holding(&[("a.md", "ours\n"), ("b.md", "same\n"), ("c.md", "c\n")]), "")];
    let target = holding(&[]);
    let plan = planned(&sources, &*target);
    put(&*target, "a.md", "theirs\n");
    put(&*target, "b.md", "same\n");
    let report = block_on(apply(&sources, &*target, plan, CONTEXT));
    assert_eq!(left(&report), [("a.md", "something else has that name in the target".to_owned())]);
    assert_eq!((report.copied, report.skipped), (vec![at("c.md")], 1));
    assert_eq!(texts(&*target)["a.md"], "theirs\n");
}

#[test]
fn an_answer_that_is_lost_is_looked_for() {
    let sources = [source(holding(&[("a.md", "a\n"), ("b.md", "b\n")]), "")];
    let target = Arc::new(Faulty::new(holding(&[])));
    let plan = planned(&sources, &*target);
    // The first is written and its answer is lost; nothing of the second arrives.
    target.plan([Fault::AnswerLost, Fault::None, Fault::Refused(ErrorKind::Unavailable)]);
    let report = block_on(apply(&sources, &*target, plan, CONTEXT));
    assert_eq!((&report.copied, report.bytes_copied), (&vec![at("a.md")], 2));
    assert_eq!(left(&report), [("b.md", "a fault was injected".to_owned())]);
    let again = migrate(&sources, &*target);
    assert_eq!(again, Report { copied: vec![at("b.md")], bytes_copied: 2, skipped: 1, left: vec![] });
}

#[test]
fn object_that_cannot_be_read_back_is_no_copy() {
    let sources = [source(holding(&[("a.md", "a\n"), ("b.md", "b\n")]), "")];
    let target = Rough::over(holding(&[]));
    target.garbles.store(true, Ordering::Relaxed);
    let report = migrate(&sources, &target);
    let garbled = "what was read back is not what was sent".to_owned();
    assert_eq!(left(&report), [("a.md", garbled.clone()), ("b.md", garbled)]);
    assert!(report.copied.is_empty() && report.bytes_copied == 0);

    let target = Faulty::new(holding(&[]));
    let plan = planned(&sources, &target);
    target.plan([Fault::None, Fault::Refused(ErrorKind::NotFound)]);
    let report = block_on(apply(&sources, &target, plan, CONTEXT));
    assert_eq!(left(&report), [("a.md", "it was not there when it was read back".to_owned())]);
}

#[test]
fn it_can_end_anywhere_and_goes_on() {
    let files: Vec<(String, String)> =
        (0..40).map(|number| (format!("{number}.md"), format!("note {number}\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    let from = holding(&files);
    let before = all(&*from);
    let sources = [source(from.clone(), "")];
    let mut seen = Vec::new();
    for steps in 0.. {
        let target = Rough::over(holding(&[]));
        let ended = {
            let work = async {
                let plan = survey(&sources, &target, CONTEXT).await.expect("surveyed");
                apply(&sources, &target, plan, CONTEXT).await
            };
            let mut work = pin!(work);
            let mut task = TaskContext::from_waker(Waker::noop());
            (0..steps).any(|_| work.as_mut().poll(&mut task).is_ready())
        };
        let there = texts(&target).len();
        seen.push(there);
        let report = migrate(&sources, &target);
        assert_eq!((report.copied.len(), report.skipped), (40 - there, there), "after {steps} steps");
        assert!(report.is_complete());
        assert_eq!(texts(&target), texts(&*from));
        if ended {
            break;
        }
    }
    assert!(seen.iter().any(|there| (1..40).contains(there)), "it was killed in the middle: {seen:?}");
    assert_eq!(all(&*from), before);
}

#[test]
fn unreachable_storage_is_given_up_early() {
    let files: Vec<String> = (0..500).map(|number| format!("{number:03}.md")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|key| (key.as_str(), "x\n")).collect();
    let sources = [source(holding(&files), "")];
    let target = Faulty::new(holding(&[]));
    let plan = planned(&sources, &target);
    target.plan(vec![Fault::Refused(ErrorKind::Denied); 500]);
    let report = block_on(apply(&sources, &target, plan, CONTEXT));
    assert_eq!((report.left.len(), report.copied.len()), (500, 0), "each is told");
    assert!(target.operations() < 50, "{}", target.operations());
    assert!(left(&report)[499].1.starts_with("it was not tried"), "{:?}", left(&report)[499]);
    target.plan([]);
    assert_eq!(migrate(&sources, &target).copied.len(), 500);
}

#[test]
fn the_gate_sees_what_is_sent() {
    let from = holding(&[("a.md", "harmless\n"), ("b.md", "secret\n")]);
    let sources = [source(from.clone(), "")];
    let target = holding(&[]);
    let plan = planned(&sources, &*target);
    assert_eq!((plan.copies.len(), plan.left.len()), (1, 1));
    put(&*from, "a.md", "secret after all\n");
    let report = block_on(apply(&sources, &*target, plan, CONTEXT));
    let whys: Vec<bool> = report.left.iter().map(|left| matches!(left.why, Why::Held(_))).collect();
    assert_eq!(whys, [true, true]);
    assert!(texts(&*target).is_empty());
    // If nothing leaves the machine, there is no gate.
    let open = Context { gate: None, ..CONTEXT };
    let plan = block_on(survey(&sources, &*target, open)).expect("surveyed");
    assert!(block_on(apply(&sources, &*target, plan, open)).is_complete());
}

#[test]
fn a_storage_that_cannot_be_looked_at_is_not_empty() {
    let from = Arc::new(Faulty::new(holding(&[("a.md", "a\n")])));
    let sources = [source(from.clone(), "")];
    from.plan([Fault::Refused(ErrorKind::Denied)]);
    assert_eq!(
        block_on(survey(&sources, &InMemory::new(), CONTEXT)).expect_err("denied").kind(),
        ErrorKind::Denied
    );
    let target = Faulty::new(holding(&[]));
    target.plan([Fault::Refused(ErrorKind::Unavailable)]);
    assert!(block_on(survey(&sources, &target, CONTEXT)).is_err());
}

#[test]
fn an_index_of_ours_stays_behind_and_one_of_others_does_not() {
    let ours = holding(&[("a.md", "a\n")]);
    let place = Locator::reserved("manifest.json").expect("ours");
    let index = Manifest::default().encode();
    let _ = block_on(ours.write(&place, index, Condition::Absent)).expect("written");
    let target = holding(&[]);
    assert_eq!(migrate(&[source(ours, "")], &*target).copied, [at("a.md")]);

    let others = holding(&[]);
    let _ = block_on(others.write(&place, "{\"icons\": []}".into(), Condition::Absent)).expect("written");
    let report = migrate(&[source(others.clone(), "")], &*target);
    let why = "\"manifest.json\" is refused: the name is kept for Haversack itself".to_owned();
    assert_eq!(left(&report), [("manifest.json", why)]);
    assert_eq!(migrate(&[source(others, "app")], &*target).copied, [at("app/manifest.json")]);
}

/// A storage that lets others go first at every call, and may return something else than it was given.
#[derive(Debug)]
struct Rough {
    inner: Arc<dyn Backend>,
    garbles: AtomicBool,
}

impl Rough {
    fn over(inner: Arc<dyn Backend>) -> Rough {
        Rough { inner, garbles: AtomicBool::new(false) }
    }
}

type Done<T> = haversack::store::Result<T>;

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for Rough {
    async fn read(&self, locator: &Locator) -> Done<Object> {
        yield_now().await;
        let object = self.inner.read(locator).await?;
        let garbled = self.garbles.load(Ordering::Relaxed);
        Ok(if garbled { Object { bytes: "?".into(), ..object } } else { object })
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Done<Written> {
        yield_now().await;
        let written = self.inner.write(locator, bytes, condition).await;
        // It is done, and its caller does not know it yet.
        yield_now().await;
        written
    }

    forward_backend!(self => self.inner; prepare, append, barrier, list, scan, info, touch_mark, delete, rename, exchange);
    forward_backend!(self => self.inner; mkdir, lock, capabilities, conflict_strategy);
}

//! Ageing of whole stores: golden trees written by hand, and the laws of every plan.
//!
//! A tree is a text with one `=== name` line above each file. A decision log is shown as one line for each decision, and an id that is a hash as `^#`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures_lite::future::block_on;
use haversack::Memory;
use haversack::day::Day;
use haversack::history::{History, PastContent};
use haversack::home::{Home, Meeting, Round, Work, sync};
use haversack::ids::Position;
use haversack::kind::Kinds;
use haversack::store::{Backend, BackendExt, Bytes, Condition, InMemory, Locator};
use haversack::sync::{Author, Context, Deletions, Gate, Hold, Impatient, Open, store_at};
use haversack::tidy::{self, Plan, Refusal, log_of, read_log};
use proptest::prelude::*;

use crate::subjects::at;
use crate::sync::{Counting, Midnight};

const START: &str = include_str!("../fixtures/tidy/start.tree");

const DAYS: &[(&str, &str)] = &[
    ("2026-03-02", include_str!("../fixtures/tidy/day-0.tree")),
    ("2026-03-10", include_str!("../fixtures/tidy/day-8.tree")),
    ("2026-04-02", include_str!("../fixtures/tidy/day-31.tree")),
    ("2026-06-01", include_str!("../fixtures/tidy/day-91.tree")),
    ("2026-08-30", include_str!("../fixtures/tidy/day-181.tree")),
    ("2027-03-03", include_str!("../fixtures/tidy/day-366.tree")),
    // The month with the session digest goes into its year.
    ("2027-04-10", include_str!("../fixtures/tidy/day-404.tree")),
];

fn day(text: &str) -> Day {
    text.parse().expect("a day")
}

/// A store on one device.
struct Store {
    files: Arc<dyn Backend>,
    state: Arc<dyn Backend>,
    memory: Memory,
}

impl Store {
    fn of(tree: &str) -> Store {
        let files: Arc<dyn Backend> = Arc::new(InMemory::new());
        let state: Arc<dyn Backend> = Arc::new(InMemory::new());
        let store = Store { memory: Memory::new(files.clone(), state.clone()), files, state };
        for part in tree.split("=== ").filter(|part| !part.is_empty()) {
            let (name, text) = part.split_once('\n').expect("a name");
            store.put(name, text);
        }
        store
    }

    fn put(&self, name: &str, text: &str) {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let _ = block_on(self.files.write(&at(name), bytes, Condition::Any)).expect("written");
    }

    fn text(&self, name: &str) -> Option<String> {
        block_on(self.files.read_text(&at(name))).expect("text")
    }

    fn plan(&self, today: &str) -> Plan {
        self.plan_with(today, &|_, _| None)
    }

    fn plan_with(&self, today: &str, may_not_leave: tidy::MayNotLeave<'_>) -> Plan {
        let files = block_on(tidy::read(&*self.files, Kinds::built_in(), day(today))).expect("read");
        tidy::plan(Kinds::built_in(), &files, day(today), may_not_leave)
    }

    fn tidy(&self, today: &str) -> Plan {
        let plan = self.plan(today);
        let applied = block_on(tidy::apply(&self.memory, &plan));
        assert!(applied.stopped.is_none(), "{applied:?}");
        plan
    }

    fn files(&self) -> BTreeMap<Locator, Bytes> {
        let all = block_on(self.files.list_all(&Locator::root())).expect("listed");
        let read = |locator: &Locator| block_on(self.files.read(locator)).expect("read").bytes;
        all.into_iter().map(|locator| (locator.clone(), read(&locator))).collect()
    }

    fn tree(&self) -> String {
        let mut tree = String::new();
        for (locator, bytes) in self.files() {
            let text = std::str::from_utf8(&bytes).expect("text");
            let text = if log_of(&locator).is_some() { decisions(text) } else { without_hashes(text) };
            let _ = write!(tree, "=== {locator}\n{text}");
        }
        tree
    }
}

fn decisions(log: &str) -> String {
    let line = |decision: tidy::Decision| {
        let mut line = format!("{} {}", decision.action, decision.source);
        if let Some(into) = decision.into {
            let _ = write!(line, " into {into}");
        }
        let _ = write!(line, " ({})", decision.reason);
        for dropped in decision.dropped {
            let _ = write!(line, ", without {}: {}", dropped.id, dropped.why);
        }
        if !decision.lines.is_empty() {
            let texts: Vec<&str> =
                decision.lines.iter().flat_map(|part| part.lines()).filter(|line| !line.is_empty()).collect();
            let _ = write!(line, ": {}", texts.join(" / "));
        }
        line + "\n"
    };
    let mut lines: Vec<String> = read_log(log.as_bytes()).into_iter().map(line).collect();
    lines.sort();
    lines.concat()
}

fn without_hashes(text: &str) -> String {
    let line = |line: &str| match line.trim_end().rsplit_once(" ^") {
        Some((words, id)) if id.len() == 12 => format!("{words} ^#\n"),
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

#[test]
fn store_ages_as_written_by_hand() {
    let store = Store::of(START);
    for (today, expected) in DAYS {
        store.tidy(today);
        assert_eq!(store.tree(), *expected, "on {today}");
    }
}

#[test]
fn twice_is_once() {
    let store = Store::of(START);
    for (today, _) in DAYS {
        store.tidy(today);
        assert_eq!(store.plan(today), Plan::default(), "on {today}");
    }
}

#[test]
fn late_first_tidy_takes_every_step_at_once() {
    let store = Store::of(START);
    store.tidy("2029-01-01");
    let year = store.text("compacted/2026.md").expect("rolled up");
    for line in
        ["Asked for the new port ^7c9e6679-7425", "Always use the staging port", "The lamp was mended."]
    {
        assert!(year.contains(line), "{year}");
    }
    let names: Vec<String> = store.files().keys().map(Locator::to_string).collect();
    assert!(!names.iter().any(|name| name.contains("W10") || name.starts_with("interactions/")), "{names:?}");
    assert_eq!(store.plan("2029-01-01"), Plan::default());
}

#[test]
fn clock_that_went_back_changes_nothing() {
    let store = Store::of(START);
    store.tidy("2026-03-10");
    let before = store.files();
    let plan = store.tidy("2025-03-10");
    assert_eq!((plan.actions.len(), store.files()), (0, before));
}

/// Every id and every item that a plan takes from a source is in the roll-up or in the decision log.
fn assert_represented(plan: &Plan) {
    for action in &plan.actions {
        let is_log = |edit: &&tidy::Edit| edit.after.is_none() && log_of(&edit.locator).is_none();
        for gone in action.edits.iter().filter(is_log) {
            let decisions: Vec<_> =
                action.decisions.iter().filter(|decision| decision.source == gone.locator.as_str()).collect();
            assert!(!decisions.is_empty(), "{} left without a decision", gone.locator);
            for decision in decisions {
                let Some(into) = &decision.into else { continue };
                let target = action.edits.iter().find(|edit| edit.locator.as_str() == into);
                let text = target
                    .and_then(|edit| edit.after.as_deref())
                    .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                for id in &decision.kept {
                    // The line is in this roll-up, or a longer one has it since an earlier tidy.
                    if let Some(text) = &text {
                        assert!(
                            text.contains(&format!("^{id}")),
                            "{id} of {} is not in {into}",
                            gone.locator
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn every_line_is_represented() {
    let store = Store::of(START);
    for (today, _) in DAYS {
        assert_represented(&store.plan(today));
        store.tidy(today);
    }
}

#[test]
fn killed_tidy_ends_in_the_same_files() {
    for (today, _) in DAYS {
        let whole = Store::of(START);
        let plan = whole.tidy(today);
        for killed_after in 0..plan.actions.len() {
            let store = Store::of(START);
            let part = Plan { actions: store.plan(today).actions[..killed_after].to_vec(), kept: Vec::new() };
            assert!(block_on(tidy::apply(&store.memory, &part)).stopped.is_none());
            store.tidy(today);
            assert_eq!(store.tree(), whole.tree(), "killed after {killed_after} actions on {today}");
        }
    }
}

#[test]
fn pinned_file_is_refused_by_apply() {
    let pinned = START.replace("type: unsent_drafts", "type: unsent_drafts\npinned: true");
    let store = Store::of(&pinned);
    let before = store.text("behavioral/unsent_drafts.md");
    let plan = store.tidy("2026-08-30");
    assert_eq!(store.text("behavioral/unsent_drafts.md"), before);
    assert!(plan.kept.iter().any(|kept| kept.why == "it is pinned"), "{:?}", plan.kept);
    // A plan that was made before the user pinned the file.
    let store = Store::of(START);
    let mut plan = store.plan("2026-08-30");
    plan.actions.retain(|action| action.kind == "unsent_drafts");
    for edit in &mut plan.actions[0].edits {
        edit.before = Some(Bytes::copy_from_slice(b"---\npinned: true\n---\n"));
    }
    let applied = block_on(tidy::apply(&store.memory, &plan));
    assert!(matches!(applied.stopped, Some((0, Refusal::Pinned(_)))), "{applied:?}");
}

#[test]
fn held_roll_up_keeps_its_sources() {
    let store = Store::of(START);
    let secret = |_: &Locator, bytes: &[u8]| {
        String::from_utf8_lossy(bytes).contains("5433").then(|| "it looks like a secret".to_owned())
    };
    let plan = store.plan_with("2026-04-02", &secret);
    let kept: Vec<&str> = plan.kept.iter().map(|kept| kept.locator.as_str()).collect();
    assert_eq!(kept, ["interactions/2026-03-02.jsonl"]);
    assert!(block_on(tidy::apply(&store.memory, &plan)).stopped.is_none());
    assert!(store.text("interactions/2026-03-02.jsonl").is_some());
    let week = store.text("compacted/2026-W10.md").expect("the other day was rolled up");
    assert!(week.contains("44d2a1b0-1111") && !week.contains("5433"), "{week}");
}

#[test]
fn change_by_another_writer_stops_the_action() {
    let store = Store::of(START);
    let plan = store.plan("2026-03-10");
    store.put("interactions/2026-03-02.jsonl", "{\"summary\":\"a late event\"}\n");
    let applied = block_on(tidy::apply(&store.memory, &plan));
    assert!(matches!(applied.stopped, Some((_, Refusal::Failed(_)))), "{applied:?}");
    store.tidy("2026-03-10");
    assert!(store.text("compacted/2026-W10.md").expect("rolled up").contains("a late event"));
}

#[test]
fn hand_edited_roll_up_keeps_every_line() {
    let store = Store::of(START);
    store.tidy("2026-03-10");
    let week = store.text("compacted/2026-W10.md").expect("rolled up");
    let edited =
        week.replace("# 2026-W10\n", "# 2026-W10\n\nA good week, all told.\n") + "\nAnd a line at the end.\n";
    store.put("compacted/2026-W10.md", &edited);
    store.tidy("2026-03-12");
    store.tidy("2026-06-01");
    let month = store.text("compacted/2026-03.md").expect("rolled up");
    for line in ["A good week, all told.", "And a line at the end.", "44d2a1b0-1111", "7c9e6679-7425"] {
        assert!(month.contains(line), "{line}: {month}");
    }
}

#[test]
fn weeks_written_with_a_plain_number_are_weeks() {
    let store = Store::of(
        "=== compacted/2026-14.md\n## 2026-03-31\nMarch.\n\n## 2026-04-01\nApril.\n=== compacted/2026-07.md\n---\ntype: weekly_digest\n---\n## 2026-02-09\nWeek seven.\n",
    );
    store.tidy("2026-08-30");
    let text = |name: &str| store.text(name).unwrap_or_default();
    assert!(text("compacted/2026-03.md").contains("March."), "{}", store.tree());
    assert!(text("compacted/2026-04.md").contains("April."));
    assert!(text("compacted/2026-02.md").contains("Week seven."));
    assert_eq!(store.text("compacted/2026-14.md"), None);
}

#[test]
fn logs_that_are_no_text_stay_and_are_reported() {
    let store = Store::of(START);
    let bytes = Bytes::from_static(b"\0\xff\xfe not text");
    for name in ["interactions/2026-03-03.jsonl", "interactions/0000-01-01.jsonl"] {
        let _ = block_on(store.files.write(&at(name), bytes.clone(), Condition::Any)).expect("written");
    }
    let plan = store.tidy("2026-04-02");
    let kept: Vec<(&str, &str)> =
        plan.kept.iter().map(|kept| (kept.locator.as_str(), kept.why.as_str())).collect();
    assert_eq!(kept, [("interactions/2026-03-03.jsonl", "it is no text")]);
    let files = store.files();
    assert_eq!(files.get(&at("interactions/2026-03-03.jsonl")), Some(&bytes));
    assert_eq!(files.get(&at("interactions/0000-01-01.jsonl")), Some(&bytes), "no day is in the year 0");
}

#[test]
fn selection_reads_only_old_files() {
    let names: Vec<Locator> = (0..100_000)
        .map(|number| at(&format!("claude_memory/p{}/feedback_{number}.md", number % 50)))
        .collect();
    let old = [at("interactions/2026-03-02.jsonl"), at("compacted/2026-W10.md"), at("notes/x.md")];
    let all = names.iter().chain(&old);
    let selected = tidy::select(Kinds::built_in(), all, day("2026-03-10"));
    assert_eq!(
        selected.iter().map(Locator::as_str).collect::<Vec<_>>(),
        ["interactions/2026-03-02.jsonl", "notes/x.md", "compacted/2026-W10.md"]
    );
}

/// A device with a home and a remote.
struct Device {
    store: Store,
    ids: Counting,
    remote: Arc<dyn Backend>,
}

impl Device {
    fn new(seed: u64, remote: &Arc<dyn Backend>) -> Device {
        Device { store: Store::of(""), ids: Counting(AtomicU64::new(seed << 32)), remote: remote.clone() }
    }

    fn sync(&self) {
        assert_eq!(self.sync_with(&Open, Work::Sync), Vec::<String>::new());
    }

    /// Syncs; returns what the gate held back.
    fn sync_with(&self, gate: &dyn Gate, work: Work<'_>) -> Vec<String> {
        let home = Home::new("memory", self.store.files.clone(), self.store.state.clone(), Vec::new());
        let author = Author { device: "laptop".to_owned(), agent: None, session: None };
        // A tidy after a long time deletes more files than another device takes in unasked; the user says yes here.
        let context =
            Context { deletions: Deletions::Allowed, gate, ..Context::new(&Midnight, &self.ids, &author) };
        let meeting = Meeting::log(self.remote.clone());
        let report = block_on(sync(&home, &meeting, context, &Round::new(work))).expect("synced");
        report.sync.held.iter().map(|(at, hold)| format!("{at}: {}", hold.why)).collect()
    }
}

impl Device {
    /// Returns each interaction log that left: its last content in the history, and the other files of the commit that deleted it.
    fn deleted_sources(&self) -> BTreeMap<String, (String, Vec<String>)> {
        block_on(async {
            let file = store_at(self.remote.clone(), &Impatient).await.expect("asked").expect("a store");
            let state = self.store.state.clone();
            let history = History::open(state, Some(self.remote.clone()), file.store, &Impatient).await;
            let mut history = history.expect("opened");
            let mut sources = BTreeMap::new();
            let mut position = Position::FIRST;
            while let Some(commit) = history.commit(position).await.expect("looked") {
                for change in &commit.changes {
                    let is_log = change.locator.as_str().starts_with("interactions/");
                    if !is_log || change.what.after().is_some() {
                        continue;
                    }
                    let before = history.held_before(&change.locator, &commit).await.expect("looked");
                    let PastContent::Content(bytes) = before else {
                        panic!("{} is not in the history", change.locator)
                    };
                    let others = commit.changes.iter().map(|other| other.locator.to_string()).collect();
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    sources.insert(change.locator.to_string(), (text, others));
                }
                let Some(next) = position.next() else { break };
                position = next;
            }
            sources
        })
    }
}

fn two_devices() -> (Device, Device) {
    let remote: Arc<dyn Backend> = Arc::new(InMemory::new());
    let (laptop, desktop) = (Device::new(1, &remote), Device::new(2, &remote));
    for (locator, bytes) in Store::of(START).files() {
        let _ = block_on(laptop.store.files.write(&locator, bytes, Condition::Any)).expect("written");
    }
    laptop.sync();
    desktop.sync();
    assert_eq!(desktop.store.files(), laptop.store.files());
    (laptop, desktop)
}

fn settle(devices: &[&Device]) {
    for _ in 0..3 {
        devices.iter().for_each(|device| device.sync());
    }
}

#[test]
fn two_devices_that_tidy_at_once_converge() {
    let (laptop, desktop) = two_devices();
    laptop.store.tidy("2026-04-02");
    desktop.store.tidy("2026-04-02");
    settle(&[&laptop, &desktop]);
    assert_eq!(desktop.store.tree(), laptop.store.tree());
    assert_eq!(laptop.store.plan("2026-04-02"), Plan::default());
    let week = laptop.store.text("compacted/2026-W10.md").expect("rolled up");
    assert_eq!(week.matches("^7c9e6679-7425").count(), 1, "{week}");
}

#[test]
fn late_lines_of_an_offline_device_are_rolled_up_once() {
    let (laptop, desktop) = two_devices();
    let log = "interactions/2026-03-02.jsonl";
    // The desktop was offline: it has one more event, and another view of the week.
    let late = "{\"id\":\"deadbeef-0000-4000-8000-000000000000\",\"ts\":\"2026-03-02T12:00:00Z\",\"sender\":\"the user\",\"summary\":\"Written while offline\"}\n";
    let before = desktop.store.text(log).expect("there");
    desktop.store.put(log, &(before + late));
    laptop.store.tidy("2026-03-10");
    settle(&[&laptop, &desktop]);
    assert!(laptop.store.text(log).is_some(), "an edit of a deleted file wins");
    laptop.store.tidy("2026-03-10");
    settle(&[&laptop, &desktop]);
    let week = laptop.store.text("compacted/2026-W10.md").expect("rolled up");
    assert_eq!(desktop.store.text("compacted/2026-W10.md").as_ref(), Some(&week));
    for id in ["^7c9e6679-7425", "^2b1f9d40-0c11", "^deadbeef-0000"] {
        assert_eq!(week.matches(id).count(), 1, "{id}: {week}");
    }
    assert_eq!(laptop.store.text(log), None);
}

#[test]
fn both_devices_roll_up_different_lines_of_a_day() {
    let (laptop, desktop) = two_devices();
    let log = "interactions/2026-03-02.jsonl";
    let event = |id: &str, summary: &str| {
        format!(
            "{{\"id\":\"{id}-0000-4000-8000-000000000000\",\"sender\":\"the user\",\"summary\":\"{summary}\"}}\n"
        )
    };
    for (device, id) in [(&laptop, "aaaaaaaa"), (&desktop, "bbbbbbbb")] {
        let before = device.store.text(log).expect("there");
        device.store.put(log, &(before + &event(id, &format!("of {id}"))));
        device.store.tidy("2026-03-10");
    }
    settle(&[&laptop, &desktop]);
    laptop.store.tidy("2026-03-10");
    settle(&[&laptop, &desktop]);
    assert_eq!(desktop.store.tree(), laptop.store.tree());
    let week = laptop.store.text("compacted/2026-W10.md").expect("rolled up");
    for id in ["^aaaaaaaa-0000", "^bbbbbbbb-0000", "^7c9e6679-7425"] {
        assert_eq!(week.matches(id).count(), 1, "{id}: {week}");
    }
    assert!(!week.contains("also, from"), "{week}");
}

#[test]
fn roll_up_and_deletion_are_one_commit() {
    let (laptop, desktop) = two_devices();
    laptop.store.tidy("2026-03-10");
    laptop.sync();
    // The desktop takes in one commit: it never sees the deletion without the roll-up.
    desktop.sync();
    assert_eq!(desktop.store.tree(), laptop.store.tree());
}

/// Holds a text back.
struct Secret(&'static str);

impl Gate for Secret {
    fn holds(&self, _: &Locator, content: &[u8]) -> Option<Hold> {
        String::from_utf8_lossy(content).contains(self.0).then(|| Hold::whole("it looks like a secret"))
    }
}

#[test]
fn held_roll_up_keeps_its_sources_in_the_store() {
    let (laptop, desktop) = two_devices();
    laptop.store.tidy("2026-03-10");
    let week = laptop.store.text("compacted/2026-W10.md").expect("rolled up");
    laptop.store.put("compacted/2026-W10.md", &format!("{week}The door opens with sesame.\n"));
    block_on(laptop.store.files.delete(&at("behavioral/feedback_short.md"), Condition::Any))
        .expect("deleted");
    let sources = ["interactions/2026-03-02.jsonl", "interactions/2026-03-04.jsonl"];
    let one = at(sources[0]);
    let mut held = Vec::new();
    for work in [Work::PushOne(&one), Work::Sync, Work::Full, Work::Sync] {
        held = laptop.sync_with(&Secret("sesame"), work);
        desktop.sync();
        assert!(
            sources.iter().all(|source| desktop.store.text(source).is_some()),
            "{}",
            desktop.store.tree()
        );
        assert_eq!(desktop.store.text("compacted/2026-W10.md"), None);
        assert_eq!(laptop.store.text(sources[0]), None);
    }
    assert_eq!(
        held,
        [
            "compacted/2026-W10.md: it looks like a secret. The files that it was made from stay on other machines until then"
        ]
    );
    // A log that a program begins anew does not take the place of the source.
    laptop.store.put(sources[0], "{\"summary\":\"a late event\"}\n");
    held = laptop.sync_with(&Secret("sesame"), Work::Sync);
    desktop.sync();
    assert!(desktop.store.text(sources[0]).is_some_and(|log| !log.contains("late")), "{held:?}");
    assert_eq!(
        held[1..],
        [
            "interactions/2026-03-02.jsonl: lines that this change removes can be in a roll-up that stays on this machine"
        ]
    );
    // A file without a date is no source, and the roll-up of another directory is not held.
    assert_eq!(desktop.store.text("behavioral/feedback_short.md"), None);
    assert!(desktop.store.text("behavioral/compacted/2026-W10.md").is_some());
    // Once the secret is out, the roll-up and the deletions leave.
    laptop.store.put("compacted/2026-W10.md", &week);
    assert_eq!(laptop.sync_with(&Secret("sesame"), Work::Sync), Vec::<String>::new());
    desktop.sync();
    assert_eq!(desktop.store.tree(), laptop.store.tree());
    assert!(desktop.store.text(sources[0]).is_some_and(|log| log.contains("late")));
}

/// Days of 2026 and the words of their events.
fn logs() -> impl Strategy<Value = BTreeMap<i32, Vec<usize>>> {
    prop::collection::btree_map(0_i32..500, prop::collection::vec(0_usize..40, 1..20), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn laws_hold_for_any_logs(logs in logs(), steps in prop::collection::vec(1_i32..200, 1..6)) {
        let store = Store::of("");
        let first = day("2026-01-01");
        let mut ids = BTreeSet::new();
        for (number, words) in &logs {
            let date = first.plus(*number);
            let lines: String = words.iter().enumerate().map(|(at, word)| {
                let id = format!("{number:04x}{at:02x}{word:02x}-0000-4000-8000-000000000000");
                ids.insert(id[..13].to_owned());
                format!("{{\"id\":\"{id}\",\"ts\":\"{date}T10:00:00Z\",\"sender\":\"s\",\"summary\":\"word {word}\"}}\n")
            }).collect();
            store.put(&format!("interactions/{date}.jsonl"), &lines);
        }
        let mut today = first;
        let mut logged = BTreeSet::new();
        for step in steps {
            today = today.plus(step);
            let plan = store.plan(&today.to_string());
            assert_represented(&plan);
            for action in &plan.actions {
                logged.extend(action.decisions.iter().flat_map(|decision| decision.dropped.iter().map(|dropped| dropped.id.clone())));
            }
            store.tidy(&today.to_string());
            prop_assert_eq!(store.plan(&today.to_string()), Plan::default());
            let all: String = store.files().values().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
            for id in &ids {
                prop_assert!(all.contains(id.as_str()) || logged.contains(id), "{} is neither in a file nor in a decision", id);
            }
        }
    }
}

/// A year of use, tidied and synced every day. Each line is in a roll-up with the id of its source, or a decision says why not. Each line of the yearly roll-up
/// leads to its source, and the history holds the source with that line, deleted by the commit that wrote its roll-up.
///
/// With `HAVERSACK_SOAK` the year has 10,000 events and 300 sessions.
#[test]
fn year_of_use_leaves_no_line_without_a_decision() {
    #[expect(clippy::disallowed_methods, reason = "a long version of the test is asked for by a variable")]
    let is_long = std::env::var_os("HAVERSACK_SOAK").is_some();
    let (events, sessions) = if is_long { (10_000, 300) } else { (120, 12) };
    let remote: Arc<dyn Backend> = Arc::new(InMemory::new());
    let device = Device::new(1, &remote);
    let store = &device.store;
    let first = day("2026-01-01");
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    let mut sources = BTreeMap::new();
    for number in 0..events {
        // Three events come on each day at least.
        let date = first.plus((number / 3) * 365 / (events / 3 + 1));
        let id = format!("{number:08x}-0000-4000-8000-000000000000");
        let words =
            if number % 9 == 0 { "ok".to_owned() } else { format!("word {} of {number}", number % 31) };
        let name = format!("interactions/{date}.jsonl");
        let line = format!(
            "{{\"id\":\"{id}\",\"ts\":\"{date}T10:00:00Z\",\"sender\":\"s\",\"summary\":\"{words}\"}}\n"
        );
        lines.entry(name.clone()).or_default().push_str(&line);
        sources.insert(id[..13].to_owned(), name);
    }
    for number in 0..sessions {
        let date = first.plus(i32::try_from(number * 365 / sessions).expect("small"));
        let text =
            format!("---\nname: d\ndescription: d\ntype: session_digest\n---\n\n## Arcs\n- Did {number}\n");
        lines.insert(format!("behavioral/session_digest_{date}.md"), text);
    }
    let mut written: Vec<(Day, &String, &String)> = lines
        .iter()
        .map(|(name, text)| {
            let date = name.rsplit(['/', '_']).next().and_then(|end| end.get(..10)).expect("a day");
            (day(date), name, text)
        })
        .collect();
    written.sort();
    let mut decided: BTreeSet<String> = BTreeSet::new();
    let mut left = written.into_iter().peekable();
    for number in 0..800 {
        let today = first.plus(number);
        while let Some((_, name, text)) = left.next_if(|(date, ..)| *date <= today) {
            store.put(name, text);
        }
        let plan = store.plan(&today.to_string());
        assert_represented(&plan);
        for decision in plan.actions.iter().flat_map(|action| &action.decisions) {
            decided.extend(decision.dropped.iter().map(|dropped| dropped.id.clone()));
        }
        if !plan.actions.is_empty() {
            // The sources are in the history before they leave.
            device.sync();
            assert!(block_on(tidy::apply(&store.memory, &plan)).stopped.is_none());
            device.sync();
        }
    }
    let deleted = device.deleted_sources();
    let year = store.text("compacted/2026.md").expect("a yearly roll-up");
    for (id, source) in &sources {
        match year.contains(&format!("^{id}")) {
            true => {
                assert!(year.contains(&format!("· {source}")), "{id} does not lead to {source}");
                let (text, roll_ups) = deleted.get(source).expect("the history has its deletion");
                assert!(text.contains(id.as_str()), "the history has {source} without {id}");
                assert!(roll_ups.iter().any(|name| name.starts_with("compacted/")), "{source}: {roll_ups:?}");
            }
            false => assert!(decided.contains(id), "{id} is neither in the yearly roll-up nor in a decision"),
        }
    }
    let kept = sources.keys().filter(|id| year.contains(&format!("^{id}"))).count();
    let days = sources.values().collect::<BTreeSet<_>>().len();
    assert!((days..=4 * days).contains(&kept), "{kept} lines of {days} days are in the yearly roll-up");
    assert!(
        store
            .text("behavioral/compacted/2026.md")
            .is_some_and(|year| year.matches("Arcs: Did").count() == sessions)
    );
}

/// A step of one of two devices.
#[derive(Clone, Debug)]
enum Step {
    /// Writes an event into the log of a day, however old it is.
    Event {
        device: usize,
        day: i32,
    },
    /// Tidies so many days after the start, without a sync before it.
    Tidy {
        device: usize,
        day: i32,
    },
    /// Carries out only a part of a tidy, as if it were killed.
    KilledTidy {
        device: usize,
        day: i32,
        actions: usize,
    },
    Sync {
        device: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_usize..2, 0_i32..60).prop_map(|(device, day)| Step::Event { device, day }),
        2 => (0_usize..2, 0_i32..600).prop_map(|(device, day)| Step::Tidy { device, day }),
        1 => (0_usize..2, 0_i32..600, 0_usize..4).prop_map(|(device, day, actions)| Step::KilledTidy { device, day, actions }),
        3 => (0_usize..2).prop_map(|device| Step::Sync { device }),
    ];
    prop::collection::vec(step, 1..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn two_devices_in_any_order_keep_every_event_once(steps in steps()) {
        let remote: Arc<dyn Backend> = Arc::new(InMemory::new());
        let devices = [Device::new(1, &remote), Device::new(2, &remote)];
        let first = day("2026-01-01");
        let mut ids = Vec::new();
        let mut decided = BTreeSet::new();
        let mut note = |plan: &Plan, actions: usize| {
            let decisions = plan.actions.iter().take(actions).flat_map(|action| &action.decisions);
            decided.extend(decisions.flat_map(|decision| decision.dropped.iter().map(|dropped| dropped.id.clone())));
        };
        let last = first.plus(600).to_string();
        for step in &steps {
            match step {
                Step::Event { device, day } => {
                    let id = format!("{:08x}-0000", ids.len());
                    let log = format!("interactions/{}.jsonl", first.plus(*day));
                    let store = &devices[*device].store;
                    let before = store.text(&log).unwrap_or_default();
                    store.put(&log, &format!("{before}{{\"id\":\"{id}-4000-8000-000000000000\",\"sender\":\"s\",\"summary\":\"event {}\"}}\n", ids.len()));
                    ids.push(id);
                }
                Step::Tidy { device, day } => {
                    let plan = devices[*device].store.tidy(&first.plus(*day).to_string());
                    note(&plan, usize::MAX);
                }
                Step::KilledTidy { device, day, actions } => {
                    let store = &devices[*device].store;
                    let mut plan = store.plan(&first.plus(*day).to_string());
                    plan.actions.truncate(*actions);
                    prop_assert!(block_on(tidy::apply(&store.memory, &plan)).stopped.is_none());
                    note(&plan, *actions);
                }
                Step::Sync { device } => devices[*device].sync(),
            }
        }
        settle(&[&devices[0], &devices[1]]);
        note(&devices[0].store.tidy(&last), usize::MAX);
        settle(&[&devices[0], &devices[1]]);
        prop_assert_eq!(devices[1].store.files(), devices[0].store.files());
        let files = devices[0].store.files();
        let logs = files.keys().filter(|name| name.as_str().starts_with("interactions/")).count();
        prop_assert_eq!(logs, 0, "a source that came back was rolled up");
        let roll_ups: String = files
            .iter()
            .filter(|(name, _)| name.name().ends_with(".md"))
            .map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned())
            .collect();
        for id in &ids {
            let count = roll_ups.matches(&format!("^{id}")).count();
            prop_assert!(count <= 1, "{} is there {} times: {}", id, count, roll_ups);
            prop_assert!(count == 1 || decided.contains(id), "{} is neither in a roll-up nor in a decision", id);
        }
    }
}

#[test]
fn pin_is_set_and_removed_and_changes_nothing_else() {
    for (text, pinned) in [
        ("Plain.\n", "---\npinned: true\n---\nPlain.\n"),
        ("\u{feff}Plain.\r\n", "\u{feff}---\r\npinned: true\r\n---\r\nPlain.\r\n"),
        ("---\nname: a # b\n---\n\nx\n", "---\nname: a # b\npinned: true\n---\n\nx\n"),
        ("---\r\nname: a\r\n---\r\nx", "---\r\nname: a\r\npinned: true\r\n---\r\nx"),
    ] {
        assert!(!tidy::is_pinned(text.as_bytes()), "{text:?}");
        assert_eq!(tidy::pinned(text).as_deref(), Some(pinned));
        assert!(tidy::is_pinned(pinned.as_bytes()), "{pinned:?}");
        assert_eq!(tidy::pinned(pinned).as_deref(), Some(pinned));
        assert_eq!(tidy::unpinned(pinned).as_deref(), Some(text));
    }
    // Claude Code moves fields that it does not know below `metadata`.
    let moved = "---\nname: a\nmetadata:\n  pinned: true\n---\nx\n";
    assert!(tidy::is_pinned(moved.as_bytes()));
    let unpinned = tidy::unpinned(moved).expect("it has a place for the field");
    assert!(!tidy::is_pinned(unpinned.as_bytes()) && unpinned.contains("  pinned: true"), "{unpinned}");
    // A frontmatter that we cannot read stays as it is.
    assert_eq!(tidy::pinned("---\nname: *a\n---\nx\n"), None);
}

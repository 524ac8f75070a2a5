//! Ages memory. Most kinds of generated memory have a maximum age; this module decides what happens to files that are older, and then does it.
//!
//! 1. [`select`] names the files that have to be read: files that may be too old, and the roll-ups that receive their lines.
//! 2. [`plan`] turns these files, the day and the table of kinds into [`Action`]s. It is pure: it reads no clock and no disk.
//! 3. [`apply`] carries out one action after the other, each as one batch.
//!
//! Example: on 2026-11-18, `interactions/2026-11-09.jsonl` is older than 7 days. Its action adds a section to `compacted/2026-W46.md`, deletes the log, and
//! adds a line to the decision log `compacted/log/2026-11-18.jsonl`.
//!
//! # Invariants
//! 1. Tidy deletes no line without a trace: every line of a source is in the roll-up, or its id is in the decision log (`tidy::every_line_is_represented`).
//! 2. Tidy writes the roll-up, deletes its sources and adds the line of the decision log in one batch. All these files are in one directory of the home, so
//!    one commit publishes them (`tidy::roll_up_and_deletion_are_one_commit`).
//! 3. The gate can hold a roll-up back from the remote. Then tidy does not delete its sources (`tidy::held_roll_up_keeps_its_sources`). If the gate holds it
//!    back only after the tidy, the sources stay in the store (`sync::roll_ups`, `tidy::held_roll_up_keeps_its_sources_in_the_store`).
//! 4. Planning again after applying finds nothing to do (`tidy::twice_is_once`). If a tidy is killed after any action, the next tidy ends with the same files
//!    (`tidy::killed_tidy_ends_in_the_same_files`).
//! 5. A pinned file is never changed or deleted: [`apply`] refuses it, whatever the plan says (`tidy::pinned_file_is_refused_by_apply`).

mod age;
mod decision;
mod digest;
mod lists;
mod parts;

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{Backend, BackendExt, Bytes, Info, Locator, Result as StoreResult};

pub use self::age::{AgeFields, Outdated};
pub use self::decision::{Decision, DroppedLine, log_of, read_log};
pub(crate) use self::decision::{PROMOTE, REJECT, log_at};
use self::digest::{NewSection, Onward};
use self::lists::Aged;
use crate::day::{Day, Period};
use crate::error::Error;
use crate::ids::ContentHash;
use crate::kind::{Keep, Kind, Kinds, Pattern, Then};
use crate::memory::{Change, MAX_TEXT_BYTES, Memory};
use crate::sync::planted::{Planted, has};

/// The directory of the roll-ups, beside their sources.
const COMPACTED: &str = "compacted";

/// What an action does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Adds the lines of sources to a roll-up, and deletes the sources.
    RollUp,
    /// Deletes files or parts of a file.
    Discard,
    /// Moves items to the section of retired ones.
    Retire,
    /// Keeps the rules of old examples, and deletes the examples.
    Lessons,
    /// Marks threads as dormant, or as active again.
    Rest,
}

impl What {
    /// Returns the word in the decision log.
    pub fn name(self) -> &'static str {
        match self {
            What::RollUp => "roll-up",
            What::Discard => "discard",
            What::Retire => "retire",
            What::Lessons => "lessons",
            What::Rest => "rest",
        }
    }
}

/// A change of one file: the content that it was decided on, and the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The file.
    pub locator: Locator,
    /// Its content; `None` if there is no file.
    pub before: Option<Bytes>,
    /// Its new content; `None` deletes it.
    pub after: Option<Bytes>,
}

/// One step of a tidy: changes that are applied together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What it does.
    pub what: What,
    /// The kind of its sources.
    pub kind: String,
    /// Its changes, without that of the decision log.
    pub edits: Vec<Edit>,
    /// The decision log.
    pub log: Locator,
    /// The lines that it adds to the decision log.
    pub decisions: Vec<Decision>,
}

/// A file that is too old and stays all the same, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The file.
    pub locator: Locator,
    /// The cause.
    pub why: String,
}

/// All that is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The actions, in the order in which they are applied: later ones build on earlier ones.
    pub actions: Vec<Action>,
    /// Files that are too old and stay.
    pub kept: Vec<Kept>,
}

/// The kind of files that are no text.
const BINARY: &str = "binary";

/// Returns why a content may not be sent to the remote; `None` if it may.
pub type MayNotLeave<'a> = &'a dyn Fn(&Locator, &[u8]) -> Option<String>;

/// A file that a rule of retention is for.
struct Candidate<'k> {
    kind: &'k Kind,
    /// The directory whose `compacted/` receives it.
    place: Locator,
    period: Option<Period>,
}

/// Returns the files that a plan has to read.
///
/// Files that are named after a day, week, month or year are read only if they are too old; then the roll-ups beside them are read too. Files without a
/// name that says their kind are read if they are Markdown, because their `type` can say it.
pub fn select<'a>(kinds: &Kinds, names: impl IntoIterator<Item = &'a Locator>, today: Day) -> Vec<Locator> {
    let mut selected = Vec::new();
    let mut roll_ups: Vec<(Locator, Locator)> = Vec::new();
    let mut places = BTreeSet::new();
    for name in names {
        let Some((_, kind, pattern)) = kinds.named(name) else {
            if name.name().ends_with(".md") {
                selected.push(name.clone());
            }
            continue;
        };
        let Some(candidate) = candidate_of_kind(kinds, kind, pattern, name) else { continue };
        match candidate.period {
            Some(period) if is_old(candidate.kind, period, today) => {
                selected.push(name.clone());
                places.insert(candidate.place);
            }
            Some(_) if is_roll_up(candidate.kind) => roll_ups.push((candidate.place, name.clone())),
            Some(_) => {}
            None => selected.push(name.clone()),
        }
    }
    selected.extend(roll_ups.into_iter().filter(|(place, _)| places.contains(place)).map(|(_, name)| name));
    selected
}

/// Returns true if files of a kind leave or change when they grow old.
pub fn ages(kind: &Kind) -> bool {
    kind.keep != Keep::default() || is_roll_up(kind)
}

/// Reads the files that a plan needs.
pub async fn read(files: &dyn Backend, kinds: &Kinds, today: Day) -> StoreResult<BTreeMap<Locator, Bytes>> {
    let infos = files.scan_all(&Locator::root()).await?.infos;
    read_listed(files, &infos, kinds, today).await
}

/// Reads the files that a plan needs, of those that a scan has found.
pub async fn read_listed(
    files: &dyn Backend,
    infos: &[Info],
    kinds: &Kinds,
    today: Day,
) -> StoreResult<BTreeMap<Locator, Bytes>> {
    let sizes: BTreeMap<&Locator, u64> = infos.iter().map(|info| (&info.locator, info.size_bytes)).collect();
    let mut contents = BTreeMap::new();
    for locator in select(kinds, sizes.keys().copied(), today) {
        if sizes.get(&locator).is_some_and(|size| *size <= MAX_TEXT_BYTES) {
            match files.read(&locator).await {
                Ok(object) => drop(contents.insert(locator, object.bytes)),
                // Another program deleted it in this moment.
                Err(error) if error.kind() == haversack_store::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(contents)
}

fn is_roll_up(kind: &Kind) -> bool {
    ["weekly", "monthly", "yearly"].contains(&kind.name.as_str())
}

fn is_old(kind: &Kind, period: Period, today: Day) -> bool {
    kind.keep.section.is_none()
        && kind.keep.then != Then::Stays
        && kind.keep.days.is_some_and(|days| today.days_since(period.last_day()) > days.cast_signed())
}

/// Returns a locator without so many segments at its end.
fn above(locator: &Locator, segments: usize) -> Locator {
    let mut place = locator.clone();
    for _ in 0..segments {
        place = place.parent().unwrap_or_else(Locator::root);
    }
    place
}

fn candidate_by_name<'k>(kinds: &'k Kinds, locator: &Locator) -> Option<Candidate<'k>> {
    let (_, kind, pattern) = kinds.named(locator)?;
    candidate_of_kind(kinds, kind, pattern, locator)
}

fn candidate_of_kind<'k>(
    kinds: &'k Kinds,
    kind: &'k Kind,
    pattern: &Pattern,
    locator: &Locator,
) -> Option<Candidate<'k>> {
    if kind.keep.then == Then::Stays && !is_roll_up(kind) {
        return None;
    }
    let place = above(locator, pattern.as_str().split('/').count());
    let period = Period::of_name(locator.name());
    // Some write a week as `2026-47`. Above 12 it can be no month.
    if kind.name == "monthly" && period.is_none() {
        let weekly = kinds.get("weekly")?;
        return Some(Candidate { kind: weekly, place, period: Some(Period::of_plain_week(locator.name())?) });
    }
    Some(Candidate { kind, place, period })
}

/// Returns the retention of a file that was read: by its name, and by the type that it states.
fn candidate<'k>(kinds: &'k Kinds, locator: &Locator, bytes: &[u8]) -> Option<Candidate<'k>> {
    let kind = kinds.of(locator, bytes);
    match candidate_by_name(kinds, locator) {
        Some(by_name) if by_name.kind == kind => Some(by_name),
        // `2026-47.md` is a monthly roll-up by its name.
        Some(by_name) if by_name.kind.name == "weekly" && kind.name == "monthly" => Some(by_name),
        _ if kind.keep.then == Then::Stays && !is_roll_up(kind) => None,
        by_name => {
            let name = locator.name();
            let period = if kind.name == "weekly" {
                Period::of_plain_week(name).or(Period::of_name(name))
            } else {
                Period::of_name(name)
            };
            let place = by_name.map_or_else(|| above(locator, 1), |by_name| by_name.place);
            Some(Candidate { kind, place, period })
        }
    }
}

/// Decides what is to be done. `files` are those that [`select`] names; `may_not_leave` says why a content may not be sent.
pub fn plan(
    kinds: &Kinds,
    files: &BTreeMap<Locator, Bytes>,
    today: Day,
    may_not_leave: MayNotLeave<'_>,
) -> Plan {
    let mut planner = Planner { kinds, today, may_not_leave, files: files.clone(), plan: Plan::default() };
    planner.report_unreadable();
    planner.roll_up();
    planner.discard_dated();
    planner.age_lists();
    planner.plan
}

struct Planner<'a> {
    kinds: &'a Kinds,
    today: Day,
    may_not_leave: MayNotLeave<'a>,
    /// The files as the actions so far leave them.
    files: BTreeMap<Locator, Bytes>,
    plan: Plan,
}

/// A source that leaves for roll-ups.
struct Source<'k> {
    kind: &'k Kind,
    place: Locator,
    period: Period,
    locator: Locator,
    bytes: Bytes,
}

/// A file that its kind's age discards: its name, its content and its kind.
type AgedFile<'k> = (Locator, Bytes, &'k Kind);

impl<'a> Planner<'a> {
    fn keep(&mut self, locator: &Locator, why: impl Into<String>) {
        self.plan.kept.push(Kept { locator: locator.clone(), why: why.into() });
    }

    /// Reports old logs and roll-ups that are no text. They stay, because no roll-up can hold them.
    fn report_unreadable(&mut self) {
        let is_unreadable = |(locator, bytes): &(&Locator, &Bytes)| {
            candidate_by_name(self.kinds, locator).is_some_and(|Candidate { kind, period, .. }| {
                kind.keep.then != Then::Gone
                    && period.is_some_and(|period| is_old(kind, period, self.today))
                    && self.kinds.of(locator, bytes).name == BINARY
            })
        };
        let found = self.files.iter().filter(is_unreadable);
        let kept =
            found.map(|(locator, _)| Kept { locator: locator.clone(), why: "it is no text".to_owned() });
        self.plan.kept.extend(kept);
    }

    /// Rolls up days into weeks, then weeks into months, then months into years.
    fn roll_up(&mut self) {
        for then in [Then::Weekly, Then::Monthly, Then::Yearly] {
            let mut groups: BTreeMap<(Locator, Period), Vec<Source<'a>>> = BTreeMap::new();
            for (locator, bytes) in &self.files {
                let Some(Candidate { kind, place, period: Some(period) }) =
                    candidate(self.kinds, locator, bytes)
                else {
                    continue;
                };
                if kind.keep.then != then || !is_old(kind, period, self.today) {
                    continue;
                }
                if lists::is_pinned(bytes) {
                    self.plan.kept.push(Kept { locator: locator.clone(), why: "it is pinned".to_owned() });
                    continue;
                }
                // The days of a week can go to two months: each week is a group of its own.
                let group = if then == Then::Weekly { period.first_day().week() } else { period };
                let (locator, bytes) = (locator.clone(), bytes.clone());
                let source = Source { kind, place: place.clone(), period, locator, bytes };
                groups.entry((place, group)).or_default().push(source);
            }
            for sources in groups.into_values() {
                self.roll_up_group(then, sources);
            }
        }
    }

    fn roll_up_group(&mut self, then: Then, sources: Vec<Source<'a>>) {
        let mut edits: BTreeMap<Locator, Edit> = BTreeMap::new();
        let mut decisions = Vec::new();
        let mut group: Option<(String, Locator)> = None;
        for source in sources {
            let Source { kind, place, period, locator, bytes } = &source;
            let Ok(text) = std::str::from_utf8(bytes) else { continue };
            let (mut onward, target_of): (Vec<Onward>, fn(Day) -> Period) = match then {
                Then::Weekly => (self.lines_of(&source, text), Day::week),
                Then::Monthly => (digest::onward(text, *period, kind.keep.items), Day::month),
                _ => (digest::onward(text, *period, kind.keep.items), Day::year),
            };
            if onward.is_empty() {
                // An empty file: the decision alone represents it.
                let section = NewSection { title: String::new(), day: None, body: String::new() };
                onward.push(Onward {
                    day: period.first_day(),
                    section,
                    kept: Vec::new(),
                    dropped: Vec::new(),
                });
            }
            let mut tried = edits.clone();
            let mut lines = Vec::new();
            let mut refusal = None;
            for Onward { day, section, kept, dropped } in onward {
                let into = roll_up_of(place, target_of(day));
                let before = self.files.get(&into).cloned();
                let edit = tried.entry(into.clone()).or_insert_with(|| Edit {
                    locator: into.clone(),
                    after: before.clone(),
                    before,
                });
                if edit.before.as_deref().is_some_and(lists::is_pinned) {
                    refusal = Some(format!("its roll-up {into} is pinned"));
                    break;
                }
                let there = match edit.after.as_deref().map(std::str::from_utf8) {
                    Some(Ok(text)) => text.to_owned(),
                    Some(Err(_)) => {
                        refusal = Some(format!("its roll-up {into} is no text"));
                        break;
                    }
                    None => digest::empty(target_of(day)),
                };
                if !section.body.trim().is_empty() {
                    let text = digest::with_section(&there, &section);
                    if let Some(why) = (self.may_not_leave)(&into, text.as_bytes()) {
                        refusal = Some(format!("its roll-up would stay on this machine: {why}"));
                        break;
                    }
                    edit.after = Some(Bytes::from(text));
                }
                lines.push(Decision {
                    kept,
                    dropped: dropped
                        .into_iter()
                        .map(|dropped| DroppedLine { id: dropped.id, why: dropped.why.to_owned() })
                        .collect(),
                    ..self.decision(What::RollUp, kind, locator, bytes, Some(into))
                });
            }
            if let Some(why) = refusal {
                self.keep(locator, why);
                continue;
            }
            tried.retain(|_, edit| edit.before.is_some() || edit.after.is_some());
            let gone = Edit { locator: locator.clone(), before: Some(bytes.clone()), after: None };
            edits = tried;
            edits.insert(locator.clone(), gone);
            decisions.extend(lines);
            group = Some((kind.name.clone(), place.clone()));
        }
        if let Some((kind, place)) = group {
            let edits = edits.into_values().filter(|edit| edit.before != edit.after).collect();
            self.act(What::RollUp, kind, &place, edits, decisions);
        }
    }

    /// Returns the lines of a day for its week. Lines that the week, month or year has already are left out.
    fn lines_of(&self, source: &Source<'a>, text: &str) -> Vec<Onward> {
        let Source { place, period, locator, .. } = source;
        let day = period.first_day();
        let is_events = locator.name().to_ascii_lowercase().ends_with(".jsonl");
        let lines = if is_events { digest::of_events(locator, text) } else { digest::of_text(locator, text) };
        let known: BTreeSet<String> = [day.week(), day.month(), day.year()]
            .iter()
            .filter(|_| !has(Planted::RollUpsForgetIds))
            .filter_map(|period| self.files.get(&roll_up_of(place, *period)))
            .filter_map(|bytes| std::str::from_utf8(bytes).ok())
            .flat_map(digest::ids)
            .collect();
        let kept = lines.kept.iter().map(|line| line.id.clone()).collect();
        let new: Vec<_> = lines.kept.into_iter().filter(|line| !known.contains(&line.id)).collect();
        let name =
            locator.as_str().strip_prefix(place.as_str()).unwrap_or(locator.as_str()).trim_start_matches('/');
        let section = digest::section_of(day, name, &new);
        vec![Onward { day, section, kept, dropped: lines.dropped }]
    }

    /// Deletes files of days, weeks and so on whose kind keeps nothing of them.
    fn discard_dated(&mut self) {
        let mut groups: BTreeMap<(Locator, String), Vec<AgedFile<'a>>> = BTreeMap::new();
        for (locator, bytes) in self.files.clone() {
            let Some(Candidate { kind, place, period: Some(period) }) =
                candidate(self.kinds, &locator, &bytes)
            else {
                continue;
            };
            if kind.keep.then != Then::Gone || !is_old(kind, period, self.today) {
                continue;
            }
            if lists::is_pinned(&bytes) {
                self.keep(&locator, "it is pinned");
                continue;
            }
            groups.entry((place, kind.name.clone())).or_default().push((locator, bytes, kind));
        }
        for ((place, kind_name), files) in groups {
            let mut decisions = Vec::new();
            let mut edits = Vec::new();
            for (locator, bytes, kind) in files {
                // The log of its own ageing would have no end.
                if kind.name != "tidy_log" {
                    decisions.push(self.decision(What::Discard, kind, &locator, &bytes, None));
                }
                edits.push(Edit { locator, before: Some(bytes), after: None });
            }
            self.act(What::Discard, kind_name, &place, edits, decisions);
        }
    }

    /// Ages the items and sections of files that are lists.
    fn age_lists(&mut self) {
        for (locator, bytes) in self.files.clone() {
            let Some(Candidate { kind, place, period: None }) = candidate(self.kinds, &locator, &bytes)
            else {
                continue;
            };
            let Ok(text) = std::str::from_utf8(&bytes) else { continue };
            if self.aged(kind, text).is_empty() {
                continue;
            }
            if lists::is_pinned(&bytes) {
                self.keep(&locator, "it is pinned");
                continue;
            }
            for (what, Aged { text, parts }) in self.aged(kind, text) {
                let after = Bytes::from(text);
                if let Some(why) = (self.may_not_leave)(&locator, &after) {
                    // What is held back is no copy of the remote's: it stays whole here.
                    self.keep(&locator, format!("it stays on this machine: {why}"));
                    break;
                }
                let before = self.files.get(&locator).cloned();
                let decision = Decision {
                    lines: parts,
                    ..self.decision(what, kind, &locator, before.as_deref().unwrap_or_default(), None)
                };
                let edit = Edit { locator: locator.clone(), before, after: Some(after) };
                self.act(what, kind.name.clone(), &place, vec![edit], vec![decision]);
            }
        }
    }

    /// Returns the steps of a list's ageing, each with the text after it.
    fn aged(&self, kind: &Kind, text: &str) -> Vec<(What, Aged)> {
        let today = self.today;
        let mut steps: Vec<(What, Aged)> = Vec::new();
        let mut step = |what: What, rule: &dyn Fn(&str) -> Option<Aged>| {
            let before = steps.last().map_or(text, |(_, aged)| aged.text.as_str());
            if let Some(aged) = rule(before) {
                steps.push((what, aged));
            }
        };
        let keep = &kind.keep;
        if let (Some(section), Then::Gone) = (&keep.section, keep.then) {
            // Items that move in this tidy are dated today, so they do not leave in it as well.
            if let (Some(from), Some(days)) = (&keep.move_from, keep.move_days) {
                step(What::Retire, &|text| lists::old_items_move(text, from, section, days, today));
            }
            if let Some(days) = keep.days {
                step(What::Discard, &|text| lists::old_items_leave(text, section, days, today));
            }
            if let Some(items) = keep.items {
                step(What::Discard, &|text| lists::items_beyond_leave(text, section, items, today));
            }
        } else if let Some(days) = keep.days {
            match keep.then {
                Then::Gone => step(What::Discard, &|text| lists::old_days_leave(text, days, today)),
                Then::Lessons => {
                    let into = keep.into.as_deref().unwrap_or("Lessons");
                    step(What::Lessons, &|text| lists::old_days_leave_rules(text, into, days, today));
                }
                Then::Dormant => step(What::Rest, &|text| lists::threads_rest(text, days, today)),
                Then::Stays | Then::Weekly | Then::Monthly | Then::Yearly | Then::Archived => {}
            }
        }
        steps
    }

    fn decision(
        &self,
        what: What,
        kind: &Kind,
        source: &Locator,
        bytes: &[u8],
        into: Option<Locator>,
    ) -> Decision {
        let reason = match (kind.keep.days, kind.keep.items, what) {
            (_, _, What::Retire) => {
                format!("not mentioned for {} days", kind.keep.move_days.unwrap_or_default())
            }
            (Some(0), ..) => "consumed".to_owned(),
            (Some(days), ..) if what == What::Rest => {
                format!("not touched for {days} days, or touched again")
            }
            (Some(days), ..) => format!("older than {days} days"),
            (None, Some(items), _) => format!("only the last {items} are kept"),
            (None, None, _) => "not kept".to_owned(),
        };
        Decision {
            day: self.today.to_string(),
            action: what.name().to_owned(),
            kind: kind.name.clone(),
            source: source.to_string(),
            hash: ContentHash::of(bytes).to_string(),
            into: into.map(|into| into.to_string()),
            reason,
            kept: Vec::new(),
            dropped: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Adds an action, and makes its changes in the files that later actions see.
    fn act(&mut self, what: What, kind: String, place: &Locator, edits: Vec<Edit>, decisions: Vec<Decision>) {
        let log = log_at(place, self.today);
        // A line of the decision log that may not leave would stay behind while the deletion leaves.
        let decisions = decisions.into_iter().map(|decision| {
            let is_held = (self.may_not_leave)(&log, decision.line().as_bytes()).is_some();
            if is_held { decision.without_texts() } else { decision }
        });
        let decisions = decisions.collect();
        for edit in &edits {
            match &edit.after {
                Some(after) => drop(self.files.insert(edit.locator.clone(), after.clone())),
                None => drop(self.files.remove(&edit.locator)),
            }
        }
        self.plan.actions.push(Action { what, kind, edits, log, decisions });
    }
}

/// Returns the place of a roll-up.
fn roll_up_of(place: &Locator, period: Period) -> Locator {
    place.child(&format!("{COMPACTED}/{period}.md")).unwrap_or_else(|_| place.clone())
}

/// What a tidy did.
#[derive(Debug, Default)]
pub struct Applied {
    /// The number of actions that were carried out.
    pub done: usize,
    /// Why it stopped before the end, and at which action.
    pub stopped: Option<(usize, Refusal)>,
}

/// Why an action was not carried out. It changed nothing.
#[derive(Debug)]
pub enum Refusal {
    /// The file is pinned.
    Pinned(Locator),
    /// The storage or another writer refused it. Planning again takes the other writer's text into account.
    Failed(Error),
}

/// Carries out a plan, one action after the other. If one is refused, the later ones, which build on it, are left out.
pub async fn apply(memory: &Memory, plan: &Plan) -> Applied {
    for (number, action) in plan.actions.iter().enumerate() {
        if let Err(refusal) = apply_one(memory, action).await {
            return Applied { done: number, stopped: Some((number, refusal)) };
        }
    }
    Applied { done: plan.actions.len(), stopped: None }
}

async fn apply_one(memory: &Memory, action: &Action) -> Result<(), Refusal> {
    let is_pinned = |edit: &&Edit| edit.before.as_deref().is_some_and(lists::is_pinned);
    if let Some(edit) = action.edits.iter().find(is_pinned) {
        return Err(Refusal::Pinned(edit.locator.clone()));
    }
    // The decision log stands first, then the roll-ups: a program that looks in between sees a line twice rather than not at all.
    let mut changes = Vec::new();
    if !action.decisions.is_empty() {
        let lines: String = action.decisions.iter().map(Decision::line).collect();
        changes.push(Change::Append { locator: action.log.clone(), bytes: Bytes::from(lines) });
    }
    let (writes, deletions): (Vec<&Edit>, Vec<&Edit>) =
        action.edits.iter().partition(|edit| edit.after.is_some());
    if has(Planted::TidyDeletesFirst) {
        let deletions: Vec<Change> = deletions.iter().map(|edit| change(edit)).collect();
        memory.batch_unless_changed(&deletions).await.map_err(Refusal::Failed)?;
        changes.extend(writes.into_iter().map(change));
        return memory.batch_unless_changed(&changes).await.map_err(Refusal::Failed);
    }
    changes.extend(writes.into_iter().chain(deletions).map(change));
    if has(Planted::TidyTrustsItsPlan) {
        for change in &mut changes {
            let Change::Put { locator, expected, .. } = change else { continue };
            *expected = memory.files().read(locator).await.ok().map(|object| object.bytes);
        }
    }
    memory.batch_unless_changed(&changes).await.map_err(Refusal::Failed)
}

fn change(edit: &Edit) -> Change {
    Change::Put { locator: edit.locator.clone(), expected: edit.before.clone(), bytes: edit.after.clone() }
}

/// Returns a memory of a project with the status `archived`; `None` if it has no frontmatter. It is never deleted.
pub fn archived(text: &str) -> Option<String> {
    lists::with_field(text, "status", "archived")
}

/// Returns true if tidying leaves a file alone, because its frontmatter has `pinned: true`.
pub fn is_pinned(bytes: &[u8]) -> bool {
    lists::is_pinned(bytes)
}

/// Returns a text with `pinned: true` in its frontmatter. A text without frontmatter gets one; `None` if it has one that we cannot read.
pub fn pinned(text: &str) -> Option<String> {
    lists::pinned(text)
}

/// Returns a text that is not pinned any more; `None` if its frontmatter cannot say so.
pub fn unpinned(text: &str) -> Option<String> {
    lists::unpinned(text)
}

/// Decides which files of a kind are deleted because they are older than so many days. A file's age is that of the day, week, month or year in its name.
///
/// Files without such a name, and pinned files, stay.
pub fn prune(
    kinds: &Kinds,
    files: &BTreeMap<Locator, Bytes>,
    kind: &str,
    older_than_days: u32,
    today: Day,
) -> Plan {
    let mut planner =
        Planner { kinds, today, may_not_leave: &|_, _| None, files: files.clone(), plan: Plan::default() };
    let mut groups: BTreeMap<Locator, Vec<(Locator, Bytes)>> = BTreeMap::new();
    for (locator, bytes) in files.iter().filter(|(locator, bytes)| kinds.of(locator, bytes).name == kind) {
        let Some(period) = Period::of_name(locator.name()) else {
            planner.keep(locator, "its name says no day");
            continue;
        };
        if today.days_since(period.last_day()) <= older_than_days.cast_signed() {
            continue;
        }
        if lists::is_pinned(bytes) {
            planner.keep(locator, "it is pinned");
            continue;
        }
        let place =
            candidate_by_name(kinds, locator).map_or_else(|| above(locator, 1), |candidate| candidate.place);
        groups.entry(place).or_default().push((locator.clone(), bytes.clone()));
    }
    for (place, files) in groups {
        let mut decisions = Vec::new();
        let mut edits = Vec::new();
        for (locator, bytes) in files {
            let kind = kinds.of(&locator, &bytes);
            let reason = format!("pruned: older than {older_than_days} days");
            decisions
                .push(Decision { reason, ..planner.decision(What::Discard, kind, &locator, &bytes, None) });
            edits.push(Edit { locator, before: Some(bytes), after: None });
        }
        planner.act(What::Discard, kind.to_owned(), &place, edits, decisions);
    }
    planner.plan
}

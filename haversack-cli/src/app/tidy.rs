//! Ages the memory: rolls old files up, and drops what its kind does not keep. With a remote, only after a sync that went through.

use std::collections::BTreeSet;
use std::path::PathBuf;

use haversack::Change;
use haversack::day::Day;
use haversack::kind::Then;
use haversack::proposal::INBOX;
use haversack::store::{BackendExt, Bytes, Info, Locator, block_on};
use haversack::sync::{Gate, Progress, Quiet};
use haversack::tidy::{self, Applied, Decision, Kept, Plan, Refusal};
use serde::{Deserialize, Serialize};

use super::memories::Catalogue;
use super::review::{self, Proposed};
use super::schedule::Install;
use super::sync::sync;
use crate::error::CommandError;
use crate::home::gate::NothingPrivate;
use crate::home::store::{open, open_to_look};
use crate::home::{SyncOptions, Work, kinds, local_history};
use crate::records::{self, Weight, private};
use crate::remote::Remote;
use crate::settings::Settings;
use crate::ui::moments::counted;

/// The cause of our changes in the history.
pub(crate) const CAUSE: &str = "tidy";

/// The day of a tidy, and whether it changes anything.
pub(crate) struct TidyOptions {
    /// The day for which it is done; today if none.
    pub(crate) day: Option<Day>,
    pub(crate) mode: Mode,
}

/// Tells if a tidy changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It only says what it would do.
    DryRun,
    Apply,
}

/// The changes that a tidy made, or would make.
pub(crate) struct Tidied {
    pub(crate) plan: Plan,
    pub(crate) applied: Applied,
    pub(crate) proposed: Proposed,
    pub(crate) mode: Mode,
}

/// Tidies a home.
pub(crate) fn tidy(
    settings: &Settings,
    options: &TidyOptions,
    progress: &dyn Progress,
) -> Result<Tidied, CommandError> {
    let today = options.day.unwrap_or_else(|| settings.today());
    let kinds = kinds::load(settings)?;
    let remote = Remote::for_looking(settings)?;
    let gate = NothingPrivate::of(settings)?;
    // Without a remote nothing leaves, so nothing is held back.
    let may_not_leave = |locator: &Locator, bytes: &[u8]| {
        remote.as_ref().and_then(|_| gate.holds(locator, bytes)).map(|hold| hold.why)
    };
    if options.mode == Mode::DryRun {
        let files = block_on(tidy::read(open_to_look(settings)?.files(), &kinds, today))?;
        let plan = tidy::plan(&kinds, &files, today, &may_not_leave);
        TidyRecord::of(settings)?.seen(settings.today()).save(settings)?;
        return Ok(Tidied {
            plan,
            applied: Applied::default(),
            proposed: Proposed::default(),
            mode: options.mode,
        });
    }
    if let Some(remote) = &remote {
        sync_first(settings, remote, progress)?;
    }
    let memory = open(settings)?;
    let infos = block_on(memory.files().scan_all(&Locator::root()))?.infos;
    let files = block_on(tidy::read_listed(memory.files(), &infos, &kinds, today))?;
    let plan = tidy::plan(&kinds, &files, today, &may_not_leave);
    let record = TidyRecord::of(settings)?;
    // Before the logs are rolled up: a digest never feeds a proposal.
    let material = review::material(&kinds, infos);
    let mark = material.mark(settings);
    let proposed = match record.material.as_ref() == Some(&mark) {
        true => Proposed::default(),
        false => review::propose(settings, &memory, material)?,
    };
    let applied = block_on(tidy::apply(&memory, &plan));
    record.ran(today, &proposed, mark).save(settings)?;
    if applied.done > 0 || !proposed.new.is_empty() {
        match remote {
            // The changes are safe here: what was not sent now goes with the next sync.
            Some(remote) => drop(sync(settings, &remote, &SyncOptions::new(Work::Sync, CAUSE), progress)),
            // A history that cannot be recorded now is recorded at the next look.
            None => drop(local_history::record(settings, Work::Sync, CAUSE)),
        }
    }
    Ok(Tidied { plan, applied, proposed, mode: options.mode })
}

/// The days for which [`outlook`] plans, counted from today.
pub(crate) const HORIZONS: [i32; 4] = [0, 7, 30, 90];

/// A file that a tidy will take away, or change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaving {
    pub(crate) locator: Locator,
    /// The first of the [`HORIZONS`] by which it happens, in days.
    pub(crate) within_days: i32,
    /// True if the file itself leaves; false if only a part of it does.
    pub(crate) is_whole: bool,
    /// What happens to it, and why.
    pub(crate) what: String,
}

/// The plans of a tidy for today and for later days, if nothing else changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TidyOutlook {
    /// The files that leave, the soonest first.
    pub(crate) leaving: Vec<Leaving>,
    /// The files that are too old by the last horizon and stay all the same.
    pub(crate) kept: Vec<Kept>,
}

/// Returns which files leave when; changes nothing. Files that the list knows as ageless are not read.
pub(crate) fn outlook(settings: &Settings, catalogue: &Catalogue) -> Result<TidyOutlook, CommandError> {
    let today = settings.today();
    let kinds = kinds::load(settings)?;
    let remote = Remote::for_looking(settings)?;
    let gate = NothingPrivate::of(settings)?;
    let may_not_leave = |locator: &Locator, bytes: &[u8]| {
        remote.as_ref().and_then(|_| gate.holds(locator, bytes)).map(|hold| hold.why)
    };
    let last = today.plus(HORIZONS[HORIZONS.len() - 1]);
    let can_age = |info: &Info| {
        let kind = catalogue.get(&info.locator).and_then(|listed| kinds.get(&listed.kind));
        kind.is_none_or(tidy::ages) || tidy::ages(kinds.by_name(&info.locator).1)
    };
    let memory = open_to_look(settings)?;
    let mut infos = block_on(memory.files().scan_all(&Locator::root()))?.infos;
    infos.retain(can_age);
    // Files that are too old on an earlier day are too old on the last one as well.
    let files = block_on(tidy::read_listed(memory.files(), &infos, &kinds, last))?;
    let mut outlook = TidyOutlook::default();
    let mut seen = BTreeSet::new();
    for within_days in HORIZONS {
        let plan = tidy::plan(&kinds, &files, today.plus(within_days), &may_not_leave);
        for action in &plan.actions {
            let gone = |source: &Locator| {
                action.edits.iter().any(|edit| edit.locator == *source && edit.after.is_none())
            };
            for decision in &action.decisions {
                let Ok(locator) = Locator::parse(&decision.source) else { continue };
                let is_whole = gone(&locator);
                // A roll-up that a plan makes and takes away again is no file yet.
                if files.contains_key(&locator) && seen.insert((locator.clone(), is_whole)) {
                    outlook.leaving.push(Leaving { locator, within_days, is_whole, what: planned(decision) });
                }
            }
        }
        outlook.kept = plan.kept;
    }
    TidyRecord::of(settings)?.seen(settings.today()).save(settings)?;
    Ok(outlook)
}

/// The record of earlier tidies of this home.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TidyRecord {
    /// The day of the last tidy.
    #[serde(default)]
    pub(crate) last: Option<String>,
    /// The number of tidies since the last one that proposed something.
    #[serde(default)]
    pub(crate) without_proposals: u32,
    /// True once the user has seen what a tidy would do, or has run one.
    #[serde(default)]
    pub(crate) is_seen: bool,
    /// The first day on which the user saw what a tidy would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seen_on: Option<String>,
    /// The day on which the entries for the system's scheduler were written; `None` if they were not, or were removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scheduled_on: Option<String>,
    /// A mark of the logs in which proposals were looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) material: Option<String>,
}

impl TidyRecord {
    fn place(settings: &Settings) -> PathBuf {
        settings.state().join("tidy.json")
    }

    pub(crate) fn of(settings: &Settings) -> Result<TidyRecord, CommandError> {
        let read = records::read(
            &TidyRecord::place(settings),
            "Remove it: it only says when this machine tidied last",
        )?;
        Ok(read.unwrap_or_default())
    }

    fn seen(self, today: Day) -> TidyRecord {
        TidyRecord { is_seen: true, seen_on: self.seen_on.or(Some(today.to_string())), ..self }
    }

    fn ran(self, today: Day, proposed: &Proposed, material: String) -> TidyRecord {
        let without_proposals =
            if proposed.new.is_empty() { self.without_proposals.saturating_add(1) } else { 0 };
        // The material is looked at again after a failure of the user's command.
        let material = Some(material).filter(|_| proposed.trouble.is_none());
        TidyRecord { last: Some(today.to_string()), without_proposals, material, ..self.seen(today) }
    }

    fn save(&self, settings: &Settings) -> Result<(), CommandError> {
        match settings.state().is_dir() {
            true => records::write(&TidyRecord::place(settings), self, Weight::Light),
            // A look makes no home.
            false => Ok(()),
        }
    }

    /// Returns the number of days since the last tidy; if there was none, since the day from which one was expected.
    fn days_without(&self, today: Day) -> Option<i32> {
        let expected = self.scheduled_on.as_ref().or(self.seen_on.as_ref());
        let since: Day = self.last.as_ref().or(expected)?.parse().ok()?;
        Some(today.days_since(since))
    }
}

/// Notes that the user has seen what a tidy would do, also in a home without a state.
pub(crate) fn note_seen(settings: &Settings) -> Result<(), CommandError> {
    private::create_directories(&settings.state())?;
    records::write(
        &TidyRecord::place(settings),
        &TidyRecord::of(settings)?.seen(settings.today()),
        Weight::Light,
    )
}

/// Notes that the system's scheduler was told to tidy this home, or not any more.
pub(crate) fn note_schedule(settings: &Settings, install: Install) -> Result<(), CommandError> {
    let scheduled_on = (install == Install::Write).then(|| settings.today().to_string());
    private::create_directories(&settings.state())?;
    let record = TidyRecord { scheduled_on, ..TidyRecord::of(settings)? };
    records::write(&TidyRecord::place(settings), &record, Weight::Light)
}

/// The days without a tidy, where it was switched on or scheduled, after which a status says so.
const LATE_DAYS: i32 = 3;

/// The tidies without a proposal after which a status says so.
const QUIET_RUNS: u32 = 14;

/// Returns what a status says about tidying: nothing if there is nothing to see to.
pub(crate) fn state(settings: &Settings) -> Result<Vec<String>, CommandError> {
    let record = TidyRecord::of(settings)?;
    let mut lines = Vec::new();
    let is_expected = settings.is_tidied_by_itself || record.scheduled_on.is_some();
    if settings.is_tidied_by_itself && !record.is_seen {
        lines.push(
            "is switched on, and waits until you have seen what it would do: haversack tidy --dry-run"
                .to_owned(),
        );
    } else if let Some(days) =
        record.days_without(settings.today()).filter(|days| is_expected && *days >= LATE_DAYS)
    {
        lines.push(format!("has not run for {days} days: haversack tidy"));
    }
    if record.without_proposals >= QUIET_RUNS {
        lines.push(format!("proposed no memory in {} runs", record.without_proposals));
    }
    let inbox = Locator::parse(INBOX).map_err(|error| CommandError::ours(error.to_string()))?;
    let entries = block_on(open_to_look(settings)?.files().list(&inbox))?.entries;
    let waiting = entries.iter().filter(|entry| entry.locator.name().ends_with(".json")).count();
    if waiting > 0 {
        let wait = if waiting == 1 { "waits" } else { "wait" };
        lines.push(format!(
            "{} {wait} for your answer: haversack tidy --review",
            counted(waiting, "proposal")
        ));
    }
    Ok(lines)
}

/// Tidies a home whose user switched that on, once a day and store. The first tidy is the user's: nothing happens before they have seen what it would do.
pub(crate) fn tidy_when_due(settings: &Settings) -> Result<Option<Tidied>, CommandError> {
    let record = TidyRecord::of(settings)?;
    let today = settings.today();
    let is_due = settings.is_tidied_by_itself && record.is_seen && record.last != Some(today.to_string());
    if !is_due {
        return Ok(None);
    }
    if is_tidied(settings, today)? {
        TidyRecord { last: Some(today.to_string()), ..record }.save(settings)?;
        return Ok(None);
    }
    tidy(settings, &TidyOptions { day: None, mode: Mode::Apply }, &Quiet).map(Some)
}

/// Returns true if any machine tidied the store on a day: its decision log says so. An answered proposal is no tidy.
fn is_tidied(settings: &Settings, day: Day) -> Result<bool, CommandError> {
    let memory = open_to_look(settings)?;
    let names = block_on(memory.files().list_all(&Locator::root()))?;
    for log in names.iter().filter(|name| tidy::log_of(name) == Some(day)) {
        let object = block_on(memory.files().read(log))?;
        if tidy::read_log(&object.bytes).iter().any(|decision| !decision.is_of_proposal()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Syncs, or says why nothing was tidied: a device that has not seen the others' lines would roll up without them.
fn sync_first(settings: &Settings, remote: &Remote, progress: &dyn Progress) -> Result<(), CommandError> {
    let refused = |why: String| {
        CommandError::user(
            format!("nothing was tidied, because the sync before it {why}"),
            "haversack sync, then: haversack tidy",
        )
    };
    let summary = sync(settings, remote, &SyncOptions::new(Work::Sync, "sync"), progress)
        .map_err(|error| refused(format!("failed: {}", error.in_one_line())))?;
    if let Some((name, why)) = summary.failed.first() {
        return Err(refused(format!("left {name} out: {why}")));
    }
    if summary.report.out_of_time || summary.arriving() > 0 {
        return Err(refused("did not receive everything yet".to_owned()));
    }
    Ok(())
}

impl Tidied {
    /// Returns one line for each action, and one for each file that stays.
    pub(crate) fn text(&self) -> String {
        let done = match self.mode {
            Mode::DryRun => self.plan.actions.len(),
            Mode::Apply => self.applied.done,
        };
        let lines = self.plan.actions[..done].iter().flat_map(|action| action.decisions.iter()).map(line);
        let mut text: String = lines.map(|line| line + "\n").collect();
        for kept in &self.plan.kept {
            text.push_str(&format!("{} stays: {}\n", kept.locator, kept.why));
        }
        if let Some((number, refusal)) = &self.applied.stopped {
            let (why, left) = (refusal_text(refusal), self.plan.actions.len() - number);
            text.push_str(&format!(
                "Stopped: {why}. {} not done; run haversack tidy again.\n",
                counted(left, "action")
            ));
        }
        text
    }

    /// Returns a line about new proposals, if there are any, and one about a command that was not used.
    pub(crate) fn about_proposals(&self) -> Vec<String> {
        let new = self.proposed.new.len();
        let is = if new == 1 { "waits" } else { "wait" };
        let waiting = (new > 0)
            .then(|| format!("{} {is} for your answer: haversack tidy --review", counted(new, "proposal")));
        waiting.into_iter().chain(self.proposed.trouble.clone()).collect()
    }

    /// Returns the last line: how much was done.
    pub(crate) fn headline(&self) -> String {
        if self.plan.actions.is_empty() {
            return "Nothing to tidy.".to_owned();
        }
        match self.mode {
            Mode::DryRun => format!(
                "{} to do. Nothing was changed. To do it: haversack tidy",
                counted(self.plan.actions.len(), "action")
            ),
            Mode::Apply => format!(
                "Tidied in {}. To see why: haversack tidy --log. To take it back: haversack undo",
                counted(self.applied.done, "action")
            ),
        }
    }
}

/// Gives a memory of a project the status `archived`: the project's phase is over, and its memory stays.
pub(crate) fn archive(settings: &Settings, locator: &Locator) -> Result<(), CommandError> {
    let memory = open(settings)?;
    let kinds = kinds::load(settings)?;
    let object = block_on(memory.files().read(locator))?;
    let kind = kinds.of(locator, &object.bytes);
    if kind.keep.then != Then::Archived {
        let message = format!(
            "{locator} was not archived: its kind is {}, and only a memory of a project can be archived",
            kind.name
        );
        return Err(CommandError::user(
            message,
            "To say that it is out of date, write `status: deprecated` in its frontmatter",
        ));
    }
    let text = std::str::from_utf8(&object.bytes).ok().and_then(tidy::archived).ok_or_else(|| {
        let message = format!("{locator} has no frontmatter, so it has no status");
        CommandError::user(message, "haversack check --fix adds the fields that are missing")
    })?;
    let before = Some(object.bytes.clone());
    let change = Change::Put { locator: locator.clone(), expected: before, bytes: Some(Bytes::from(text)) };
    let _ = block_on(memory.batch(&[change]))?;
    Ok(())
}

/// Says why an action was not carried out.
pub(crate) fn refusal_text(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Pinned(locator) => format!("{locator} is pinned"),
        Refusal::Failed(error) => error.to_string(),
    }
}

/// Returns a decision as a sentence.
pub(crate) fn line(decision: &Decision) -> String {
    let Decision { source, reason, into, action, dropped, lines, .. } = decision;
    let what = match (action.as_str(), into) {
        ("promote", Some(into)) => format!("added a proposal to {into}"),
        ("reject", Some(into)) => format!("rejected a proposal for {into}"),
        (_, Some(into)) => format!("rolled {source} up into {into}"),
        ("retire", None) => format!("retired {} of {source}", counted(lines.len(), "item")),
        ("lessons", None) => {
            format!("kept the rules of {} of {source}, without the examples", counted(lines.len(), "day"))
        }
        ("rest", None) => {
            format!("marked {} of {source}: {}", counted(lines.len(), "thread"), lines.join(", "))
        }
        (_, None) if lines.is_empty() => format!("dropped {source}"),
        (_, None) => format!("dropped {} of {source}", counted(lines.len(), "part")),
    };
    let without = if dropped.is_empty() {
        String::new()
    } else {
        format!(", without {}", counted(dropped.len(), "line"))
    };
    format!("{what}{without} ({reason})")
}

/// Returns what a decision that is not carried out yet will do to its file.
fn planned(decision: &Decision) -> String {
    let Decision { reason, into, action, dropped, lines, .. } = decision;
    let are = |count: usize, what: &str| {
        format!("{} {}", counted(count, what), if count == 1 { "is" } else { "are" })
    };
    let what = match (action.as_str(), into) {
        (_, Some(into)) => format!("becomes part of {into}"),
        ("retire", None) => format!("{} retired", are(lines.len(), "item")),
        ("lessons", None) => {
            format!("the rules of {} stay, without the examples", counted(lines.len(), "day"))
        }
        ("rest", None) => format!("{} marked: {}", are(lines.len(), "thread"), lines.join(", ")),
        (_, None) if lines.is_empty() => "is dropped".to_owned(),
        (_, None) => format!("{} dropped", are(lines.len(), "part")),
    };
    let without = if dropped.is_empty() {
        String::new()
    } else {
        format!(", without {}", counted(dropped.len(), "line"))
    };
    format!("{what}{without}: {reason}")
}

/// Returns the decisions of the last days, the newest first.
pub(crate) fn log(settings: &Settings) -> Result<Vec<Decision>, CommandError> {
    let memory = open_to_look(settings)?;
    let mut logs: Vec<(Day, Locator)> = block_on(memory.files().list_all(&Locator::root()))?
        .into_iter()
        .filter_map(|locator| Some((tidy::log_of(&locator)?, locator)))
        .collect();
    logs.sort_by(|one, other| other.cmp(one));
    let mut decisions = Vec::new();
    for (_, log) in logs {
        let object = block_on(memory.files().read(&log))?;
        decisions.extend(tidy::read_log(&object.bytes).into_iter().rev());
    }
    Ok(decisions)
}

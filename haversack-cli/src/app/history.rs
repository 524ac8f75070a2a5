//! The changes of a store, newest first, and the difference that each made.

use std::collections::BTreeMap;
use std::sync::Arc;

use haversack::display::one_line;
use haversack::ids::Timestamp;
use haversack::log::{Commit, What};
use haversack::store::{Bytes, Locator};
use haversack_system::Backoff;
use similar::TextDiff;

use crate::error::CommandError;
use crate::home::history::{
    AtHand, ChangeNumber, Enough, HistoryReader, Log, MAX_LOOKED_AT, NumberedChange, Waiting, open_home,
};
use crate::home::store::is_project_record;
use crate::projects::names::Names;
use crate::settings::Settings;
use crate::ui::moments::{counted, local};

/// The most files of a change that the log names.
const MAX_NAMED: usize = 3;

/// The newest changes of a file or directory.
pub(crate) struct History {
    /// The file or directory.
    within: Locator,
    /// Files with changes that were not sent yet.
    pub(crate) waiting: Vec<Waiting>,
    /// The commits that changed it.
    pub(crate) commits: Vec<NumberedChange>,
    /// True if no older commit is missing here because the remote cannot be reached.
    pub(crate) is_complete: bool,
}

/// The note below a history whose older changes could not be read.
pub(crate) const INCOMPLETE: &str = "Older changes are in the remote, which we cannot reach now.";

/// Returns the newest changes of a file or directory; refuses a place that never had a file.
pub(crate) fn history(settings: &Settings, within: Locator, count: usize) -> Result<History, CommandError> {
    let patience = Backoff::new();
    let home = open_home(settings)?;
    let mut history = HistoryReader::open(settings, &home, &patience)?;
    let waiting = history.waiting(&home)?;
    let waiting: Vec<Waiting> = waiting.into_iter().filter(|file| file.locator.is_within(&within)).collect();
    let mut commits: Vec<NumberedChange> = Vec::new();
    let at_hand = history.each(|commit| {
        if commits.len() >= count {
            return Enough::Yes;
        }
        if commit.changes.iter().any(|change| change.locator.is_within(&within)) {
            commits.push(commit.clone());
        }
        Enough::No
    })?;
    if waiting.is_empty() && commits.is_empty() {
        history.refuse_unknown(settings, &within)?;
    }
    Ok(History { within, waiting, commits, is_complete: at_hand == AtHand::All })
}

/// A change in short, without contents.
#[derive(Clone, Debug)]
pub(crate) struct ChangeSummary {
    pub(crate) number: ChangeNumber,
    pub(crate) device: String,
    pub(crate) agent: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) time: Timestamp,
    pub(crate) cause: String,
    /// Its first files, each with the kind of its change in one word.
    pub(crate) files: Vec<(Locator, &'static str)>,
    /// The number of all its files.
    pub(crate) count: usize,
}

/// The changes on this machine in short, the newest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct HistoryInShort {
    pub(crate) changes: Vec<Arc<ChangeSummary>>,
    /// This machine's name, as its changes have it.
    pub(crate) device: Option<String>,
}

/// The most files that a summary names.
const MAX_SUMMARY_FILES: usize = 4;

/// Returns the changes on this machine in short; asks the remote nothing. Changes that are known from an earlier look are not read again.
pub(crate) fn in_short(
    settings: &Settings,
    known: Option<&HistoryInShort>,
) -> Result<HistoryInShort, CommandError> {
    let patience = Backoff::new();
    let home = open_home(settings)?;
    let mut history = HistoryReader::at_hand(settings, &home, &patience)?;
    let key = |number: ChangeNumber| (number.log == Log::Local, number.number);
    let known: BTreeMap<(bool, u64), &Arc<ChangeSummary>> =
        known.iter().flat_map(|known| &known.changes).map(|change| (key(change.number), change)).collect();
    let mut changes = Vec::new();
    let mut missing = None;
    for number in history.numbers().take(MAX_LOOKED_AT) {
        if missing == Some(number.log) {
            continue;
        }
        if let Some(change) = known.get(&key(number)) {
            changes.push(Arc::clone(change));
            continue;
        }
        match history.at_number(number)? {
            Some(change) => changes.push(Arc::new(ChangeSummary::of(&change))),
            // The older changes of this log are not at hand either.
            None => missing = Some(number.log),
        }
    }
    Ok(HistoryInShort { changes, device: history.device.clone() })
}

impl ChangeSummary {
    fn of(change: &NumberedChange) -> ChangeSummary {
        let files = change.changes.iter().take(MAX_SUMMARY_FILES);
        ChangeSummary {
            number: change.number,
            device: change.device.clone(),
            agent: change.agent.clone(),
            session: change.session.clone(),
            time: change.time,
            cause: change.cause.clone(),
            files: files.map(|file| (file.locator.clone(), change_name(&file.what))).collect(),
            count: change.changes.len(),
        }
    }
}

impl History {
    /// Returns two lines for each change: machine, time and cause, then its files in short.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if !self.waiting.is_empty() {
            text.push_str("not sent yet\n");
        }
        let waiting = self.waiting.iter().map(|file| (file.change_name(), &file.locator));
        text.push_str(&files_in_short(waiting.collect(), "haversack diff"));
        for commit in &self.commits {
            text.push_str(&format!("{}\n", headline(commit)));
            let changes = commit.changes.iter().filter(|change| change.locator.is_within(&self.within));
            let files = changes.map(|change| (change_name(&change.what), &change.locator));
            text.push_str(&files_in_short(files.collect(), &format!("haversack log {}", commit.number)));
        }
        text
    }
}

/// Returns one line about changed files, each given with the kind of its change. If the line does not name them all, it ends with the
/// command that does. Our records of projects are named only if nothing else changed.
fn files_in_short(files: Vec<(&str, &Locator)>, all: &str) -> String {
    let is_record = |(_, file): &(&str, &Locator)| is_project_record(file);
    let (records, files): (Vec<_>, Vec<_>) = files.into_iter().partition(is_record);
    match &files[..] {
        [] if records.is_empty() => String::new(),
        [] => "      our record of a project\n".to_owned(),
        [(change, file)] => format!("      {change:<8}  {file}\n"),
        several => {
            let mut named: Vec<String> = Vec::new();
            let mut last = "";
            for (change, file) in several.iter().take(MAX_NAMED) {
                named.push(if *change == last { file.to_string() } else { format!("{change} {file}") });
                last = change;
            }
            let named = named.join(", ");
            let more = match several.len().saturating_sub(MAX_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more: {all}"),
            };
            format!("      {:<8}  {named}{more}\n", counted(several.len(), "file"))
        }
    }
}

/// One change, with the number of lines that it took out of each file and put in.
pub(crate) struct ChangeDetails {
    pub(crate) change: NumberedChange,
    /// By file, in the order of the change, the lines out and in; `None` if a content is not at hand.
    lines: Vec<Option<(usize, usize)>>,
}

/// Returns the details of a change.
pub(crate) fn change_details(
    settings: &Settings,
    number: ChangeNumber,
) -> Result<ChangeDetails, CommandError> {
    let patience = Backoff::new();
    let home = open_home(settings)?;
    let mut history = HistoryReader::open(settings, &home, &patience)?;
    let change = history.change(number)?;
    let files = change.changes.iter().map(|file| {
        let (before, after) = history.around(&file.locator, &change).ok()?;
        Some(counts(before.as_ref(), after.as_ref()))
    });
    let lines = files.collect();
    Ok(ChangeDetails { change, lines })
}

impl ChangeDetails {
    /// Returns the change in a line, a line for each of its files, and the commands that show it in full and take it back.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\n", headline(&self.change));
        for (file, lines) in self.change.changes.iter().zip(&self.lines) {
            let lines = lines.map(|(out, new)| format!("  +{new} -{out}")).unwrap_or_default();
            text.push_str(&format!("      {:<8}  {}{lines}\n", change_name(&file.what), file.locator));
        }
        let number = self.change.number;
        text.push_str(&format!(
            "See the lines: haversack diff --at {number}. Take it back: haversack undo {number}\n"
        ));
        text
    }
}

/// The contents of a file before and after a change.
pub(crate) struct Difference {
    pub(crate) locator: Locator,
    pub(crate) before: Option<Bytes>,
    pub(crate) after: Option<Bytes>,
    /// The name of the file as people read it.
    name: String,
}

/// Returns the files that a change touched, with their contents before and after it; without a number, the files that wait to be sent.
pub(crate) fn differences(
    settings: &Settings,
    within: &Locator,
    number: Option<ChangeNumber>,
) -> Result<Vec<Difference>, CommandError> {
    let patience = Backoff::new();
    let home = open_home(settings)?;
    let mut history = HistoryReader::open(settings, &home, &patience)?;
    let names = Names::of(settings)?;
    let mut differences = Vec::new();
    match number {
        Some(number) => {
            let commit = history.change(number)?;
            for change in commit.changes.iter().filter(|change| change.locator.is_within(within)) {
                let (before, after) = history.around(&change.locator, &commit)?;
                let (locator, name) = (change.locator.clone(), names.show(&change.locator));
                differences.push(Difference { locator, name, before, after });
            }
        }
        None => {
            for Waiting { locator, before, now, .. } in history.waiting(&home)? {
                if locator.is_within(within) {
                    let name = names.show(&locator);
                    differences.push(Difference { locator, name, before, after: now });
                }
            }
        }
    }
    if differences.is_empty() {
        history.refuse_unknown(settings, within)?;
    }
    Ok(differences)
}

impl Difference {
    /// Returns the unified diff.
    pub(crate) fn unified(&self) -> String {
        unified(&self.name, self.before.as_ref(), self.after.as_ref())
    }
}

/// Returns the number, time, machine, agent and cause of a commit in one line.
pub(crate) fn headline(commit: &NumberedChange) -> String {
    let agent = commit.agent.as_ref().map(|agent| format!(" {agent}")).unwrap_or_default();
    let session = commit.session.as_ref().map(|session| format!(" session {session}")).unwrap_or_default();
    let Commit { device, cause, .. } = &**commit;
    let device = match commit.number.log {
        Log::Store => device,
        Log::Local => "this machine",
    };
    format!("{:>4}  {}  {device}{agent}{session}: {cause}", commit.number, local(commit.time))
}

/// Returns the kind of a change in one word.
pub(crate) fn change_name(what: &What) -> &'static str {
    match what {
        What::Put { .. } => "written",
        What::Append { .. } => "appended",
        What::Delete { .. } => "deleted",
    }
}

impl Waiting {
    /// Returns the kind of the change in one word.
    pub(crate) fn change_name(&self) -> &'static str {
        match (&self.before, &self.now) {
            (None, _) => "new",
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "deleted",
        }
    }
}

/// Returns the unified diff of two contents.
fn unified(name: &str, before: Option<&Bytes>, after: Option<&Bytes>) -> String {
    let text =
        |bytes: Option<&Bytes>| std::str::from_utf8(bytes.map_or(&[], |bytes| bytes)).map(str::to_owned);
    // The lines of the files are data. Their names are ours to show.
    let shown = one_line(name);
    let name = |side: &str, bytes: Option<&Bytes>| match bytes {
        Some(_) => format!("{side}/{shown}"),
        None => "/dev/null".to_owned(),
    };
    let (Ok(old), Ok(new)) = (text(before), text(after)) else {
        return format!("Binary file {shown} differs\n");
    };
    let diff = TextDiff::from_lines(&old, &new);
    diff.unified_diff().header(&name("a", before), &name("b", after)).to_string()
}

/// Returns how many lines a change takes away and adds.
pub(crate) fn counts(before: Option<&Bytes>, after: Option<&Bytes>) -> (usize, usize) {
    let text = |bytes: Option<&Bytes>| String::from_utf8_lossy(bytes.map_or(&[], |bytes| bytes)).into_owned();
    let (old, new) = (text(before), text(after));
    let diff = TextDiff::from_lines(&old, &new);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    (count(similar::ChangeTag::Delete), count(similar::ChangeTag::Insert))
}

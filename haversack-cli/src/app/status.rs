//! The state of a home: its verdict, and the cure of each problem.

use haversack::Conflicts;
use haversack::clock::Clock;
use haversack::conflict::Conflict;
use haversack::ids::Timestamp;
use haversack::store::Locator;
use haversack::sync::Outlook;
use haversack_recall::Thoroughness;
use haversack_system::SystemClock;

use super::devices::{Device, known_devices};
use super::digest;
use super::recall;
use super::sync::{
    REFUSED, REFUSED_CURE, UNSEEN, WAITING_CURE, kept_elsewhere, not_mirrored, parts_of_logs, take_in,
};
use super::tidy;
use crate::agents::{AGENTS, mend};
use crate::error::{CommandError, Warning};
use crate::home::contact::{Contact, Wait};
use crate::home::gate::{HELD_BACK, HeldFiles, grouped};
use crate::home::store::PROJECT_RECORDS;
use crate::home::{Home, mounts};
use crate::projects::Barrier;
use crate::projects::left_out::left_out;
use crate::remote::{self, Remote};
use crate::settings::{Settings, shown, tilde};
use crate::ui::moments::{ago, counted, span, time_of_day, was_it};
use crate::ui::paths::quoted;

/// The number of names that are shown for one problem.
const MAX_SHOWN: usize = 5;

/// The names of one problem that a status has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A handful, and the number of the others.
    Short,
    All,
}

impl Extent {
    fn limit(self) -> usize {
        match self {
            Extent::Short => MAX_SHOWN,
            Extent::All => usize::MAX,
        }
    }
}

/// A thing that needs the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The problem in a sentence.
    pub(crate) what: String,
    /// The problem in two or three words.
    pub(crate) short: String,
    /// The cure.
    pub(crate) cure: String,
}

/// The state of a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// The moment of the look.
    pub(crate) now: Timestamp,
    pub(crate) remote: Option<String>,
    pub(crate) is_kept_local: bool,
    pub(crate) reached: Option<Timestamp>,
    pub(crate) next_try: Option<Timestamp>,
    pub(crate) failing_since: Option<Timestamp>,
    pub(crate) files: usize,
    pub(crate) waiting: usize,
    pub(crate) unfetched: usize,
    /// The number of links, pipes and other things that are no files of a memory.
    pub(crate) left_alone: usize,
    /// Memory of Claude Code that is not carried, because nothing tells its project: a line each.
    pub(crate) unknown: Vec<String>,
    /// Projects whose clones on other machines would be refused, a line each.
    pub(crate) without_commit: Vec<String>,
    /// Parts of other machines' logs that the folder did not have whole at the last sync.
    pub(crate) arriving: usize,
    /// Plain files of a synced folder that no machine's log named at the last look.
    pub(crate) waits: Vec<Wait>,
    /// The most names of one sort that the text has.
    extent: Extent,
    pub(crate) is_underway: bool,
    /// The reason why recall works without its index; `None` if the index is well or there is none yet.
    pub(crate) index: Option<String>,
    /// How much of the memory the model for search by meaning has read; `None` without a model.
    pub(crate) model: Option<String>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) devices: Vec<Device>,
    /// Lines about tidying.
    pub(crate) tidy: Vec<String>,
}

/// Looks at a home; asks the remote nothing.
pub(crate) fn status(settings: &Settings, extent: Extent) -> Result<Status, CommandError> {
    let finders = Finders {
        conflicts: &|| super::conflicts::conflicts(settings, &Locator::root()),
        devices: &|home| known_devices(settings, home),
    };
    status_with(settings, extent, &finders)
}

/// The parts of a status that a process that looks often finds faster.
pub(crate) struct Finders<'a> {
    pub(crate) conflicts: &'a dyn Fn() -> Result<Conflicts, CommandError>,
    pub(crate) devices: &'a dyn Fn(&Home) -> Result<Vec<Device>, CommandError>,
}

/// Looks at a home with finders of the caller's.
pub(crate) fn status_with(
    settings: &Settings,
    extent: Extent,
    finders: &Finders<'_>,
) -> Result<Status, CommandError> {
    let now = SystemClock.now();
    let remote = Remote::for_looking(settings)?;
    let contact = Contact::of(settings);
    let home = Home::open(settings)?;
    let mut status = Status {
        now,
        remote: remote.map(|remote| remote.url),
        is_kept_local: settings.keep_local,
        reached: contact.reached,
        next_try: contact.next_try(),
        failing_since: contact.failing_since,
        arriving: contact.arriving,
        waits: if settings.keep_local { Vec::new() } else { contact.waits.clone() },
        extent,
        files: 0,
        waiting: 0,
        unfetched: 0,
        left_alone: 0,
        unknown: Vec::new(),
        without_commit: Vec::new(),
        is_underway: false,
        index: recall::index_health(settings, Thoroughness::Outside)
            .filter(|health| !health.is_well)
            .map(|health| health.sentence),
        model: recall::model_progress(settings),
        problems: Vec::new(),
        devices: Vec::new(),
        tidy: tidy::state(settings)?,
    };
    if let Some(Warning { message, cure }) = settings.half_remote() {
        status.problems.push(Problem { what: message, short: "half a remote".to_owned(), cure });
    }
    if let Some(named) = Remote::unagreed(settings)? {
        let Warning { message, cure } = remote::needs_a_yes(&named);
        status.problems.push(Problem { what: message, short: "a remote needs a yes".to_owned(), cure });
    }
    // Problems of a remote do not matter while none is used.
    if let Some(trouble) = contact.trouble.as_ref().filter(|_| !settings.keep_local) {
        let for_long = contact.failing_since.map_or(0, |since| (now.0 - since.0) / 1000);
        let since = if for_long < 60 { String::new() } else { format!(" for {}", span(for_long)) };
        status.problems.push(Problem {
            what: format!("Nothing sent{since}: {trouble}"),
            short: "remote fails".to_owned(),
            cure: contact.cure.clone().unwrap_or("haversack sync".to_owned()),
        });
    }
    let in_the_way = contact.not_mirrored.iter().filter(|_| !settings.keep_local).map(|name| {
        let (what, cure) = not_mirrored(name);
        Problem { what, short: "a file in the way".to_owned(), cure }
    });
    status.problems.extend(bounded(in_the_way, extent));
    let failed = digest::failed(settings);
    let failed = failed.iter().map(|digest| Problem {
        what: digest.sentence(settings),
        short: "a digest failed".to_owned(),
        cure: digest.cure(settings),
    });
    status.problems.extend(bounded(failed, extent));
    for agent in AGENTS {
        if let Some(dead) = mend::find(settings, agent) {
            let what = dead.sentence(settings, agent);
            let cure = mend::cure(agent);
            status.problems.push(Problem { what, short: "dead hooks".to_owned(), cure });
        }
    }
    let vanished = home.vanished.iter().map(|mount| {
        let name = shown(&mount.directory);
        Problem {
            what: format!(
                "{name} is missing or cannot be read. Its memory ({}) is kept, and nothing was deleted",
                mount.prefix
            ),
            short: "a directory is gone".to_owned(),
            cure: format!("put it back, or: haversack mount remove {}", quoted(&name)),
        }
    });
    status.problems.extend(bounded(vanished, extent));
    let unbound = mounts::unbound(settings)?.into_iter().map(|mount| {
        let name = shown(&mount.directory);
        Problem {
            what: format!(
                "{name} became a link, so we stopped syncing it. Its memory ({}) is kept, and nothing was deleted",
                mount.prefix
            ),
            short: "a directory became a link".to_owned(),
            cure: format!(
                "put a directory in its place and open a session in the project, or: haversack mount remove {}",
                quoted(&name)
            ),
        }
    });
    status.problems.extend(bounded(unbound, extent));
    for place in home.places() {
        let look = place.look()?;
        status.files += look.files;
        status.waiting += look.waiting();
        status.unfetched += look.unfetched.len();
        status.left_alone += look.left_alone;
        status.is_underway |= look.underway.publishing || look.underway.applying;
        status.problems.extend(problems(&place.name, &look, extent));
    }
    status.files -= project_records(settings).min(status.files);
    status.problems.extend(conflicts(&(finders.conflicts)()?, extent));
    if status.remote.is_some() && !settings.keep_local {
        add_left_out(settings, &mut status)?;
    }
    if status.remote.is_some() && home.agreements()?.iter().any(|agreement| agreement.store.is_some()) {
        status.devices = (finders.devices)(&home)?;
    }
    Ok(status)
}

/// Adds the checkouts and the memory that are not carried although the user did not decide so.
fn add_left_out(settings: &Settings, status: &mut Status) -> Result<(), CommandError> {
    let left = left_out(settings)?;
    let refused = left.refused.iter().filter_map(|project| {
        let Some(Barrier::Unproven(missing)) = &project.barrier else { return None };
        let checkout = tilde(settings, &project.checkout);
        let name = quoted(&checkout);
        Some(Problem {
            what: format!("{checkout} gets no memory of {}: {}", project.label(settings), missing.reason()),
            short: "a checkout without memory".to_owned(),
            cure: format!(
                "if it is yours: haversack project bind {name}; if it is not: haversack project exclude {name}"
            ),
        })
    });
    status.problems.extend(bounded(refused, status.extent));
    let unknown = left.unknown.iter().map(|(memory, files)| {
        let memory = tilde(settings, memory);
        format!(
            "{} in {memory}: its project's directory is unknown. Send it with a project: haversack project bind DIRECTORY --from {}",
            counted(*files, "file"),
            quoted(&memory)
        )
    });
    status.unknown = unknown.collect();
    let without = left.without_commit.iter().map(|project| {
        format!(
            "{} has no commit that a clone could prove itself with. Commit, and start a session there; or, on the other machine: haversack project bind DIRECTORY",
            project.label(settings)
        )
    });
    status.without_commit = without.collect();
    Ok(())
}

/// Returns the number of our records of projects, which are files of the store and no memory.
fn project_records(settings: &Settings) -> usize {
    std::fs::read_dir(settings.memory().join(PROJECT_RECORDS)).map_or(0, |records| records.flatten().count())
}

/// Returns memories that hold two versions of something.
///
/// Unreadable files were reported above.
fn conflicts(Conflicts { found, .. }: &Conflicts, extent: Extent) -> Option<Problem> {
    let told = |conflict: &Conflict| {
        let devices = conflict.passages.iter().filter_map(|passage| passage.device.as_deref());
        let devices: Vec<&str> = devices.collect();
        let from =
            if devices.is_empty() { String::new() } else { format!(" (one from {})", devices.join(", ")) };
        format!("{} has two versions of one passage{from}", conflict.locator)
    };
    let first = told(found.first()?);
    let what = match (found.len() - 1, extent) {
        (0, _) => first,
        (more, Extent::Short) => format!("{first}; {more} more like it"),
        (_, Extent::All) => found.iter().map(told).collect::<Vec<_>>().join("\n"),
    };
    Some(Problem { what, short: "two versions".to_owned(), cure: "haversack conflicts".to_owned() })
}

/// Returns the first names of a list, for a sentence.
fn first_names(files: &[Locator], extent: Extent) -> String {
    let names: Vec<String> = files.iter().take(extent.limit()).map(ToString::to_string).collect();
    let more = if files.len() > extent.limit() { ", …" } else { "" };
    format!("{}{more}", names.join(", "))
}

/// Returns the first problems of one sort, and one that counts the others.
fn bounded(all: impl Iterator<Item = Problem>, extent: Extent) -> Vec<Problem> {
    let mut problems: Vec<Problem> = all.collect();
    let more = problems.len().saturating_sub(extent.limit());
    if more > 0 {
        problems.truncate(extent.limit());
        problems.push(Problem {
            what: format!("… and {more} more like it"),
            short: problems[0].short.clone(),
            cure: "see all: haversack status --all".to_owned(),
        });
    }
    problems
}

fn problems(name: &str, look: &Outlook, extent: Extent) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut add = |what: String, short: &str, cure: String| {
        problems.push(Problem { what, short: short.to_owned(), cure });
    };
    let gone = look.waiting_deletions.len();
    if look.has_vanished {
        add(
            match gone {
                1 => format!("The only file in {name} disappeared. {}", kept_elsewhere(gone)),
                _ => format!("All {} in {name} disappeared. {}", counted(gone, "file"), kept_elsewhere(gone)),
            },
            "files gone",
            WAITING_CURE.to_owned(),
        );
    }
    if !look.waiting_deletions.is_empty() && !look.has_vanished {
        add(
            format!(
                "{} disappeared from {name} ({}). {}",
                counted(gone, "file"),
                first_names(&look.waiting_deletions, extent),
                kept_elsewhere(gone)
            ),
            "files disappeared",
            WAITING_CURE.to_owned(),
        );
    }
    if !look.held_deletions.is_empty() {
        let (was, it) = was_it(look.held_deletions.len());
        add(
            format!(
                "{} in {name} {was} deleted on another machine, very many at once ({}). We kept {it} here",
                counted(look.held_deletions.len(), "file"),
                first_names(&look.held_deletions, extent)
            ),
            "deletions held",
            "to send them again: haversack restore --deleted; if they are meant to go: haversack sync --allow-deletes"
                .to_owned(),
        );
    }
    for HeldFiles { count, what, cure } in grouped(&look.held, HELD_BACK, extent.limit()) {
        add(what, if count == 1 { "a file held back" } else { "files held back" }, cure);
    }
    let is_told = |locator: &&Locator| look.unseen.iter().all(|(unseen, _)| unseen != *locator);
    let refused = look.refused.iter().filter(is_told).map(|locator| Problem {
        what: format!("{locator} {REFUSED}"),
        short: "a file that cannot be written".to_owned(),
        cure: REFUSED_CURE.to_owned(),
    });
    let unseen = look.unseen.iter().map(|(locator, why)| Problem {
        what: format!("{locator} cannot be looked at: {why}"),
        short: "a place that cannot be read".to_owned(),
        cure: UNSEEN.to_owned(),
    });
    let odd_names = look.odd_names.iter().map(|(shown, why)| Problem {
        what: format!("{shown} in {name} is not synced: {why}"),
        short: "a name that is not synced".to_owned(),
        cure: "rename it, then: haversack sync".to_owned(),
    });
    problems.extend(bounded(refused, extent));
    problems.extend(bounded(unseen, extent));
    problems.extend(bounded(odd_names, extent));
    let mut add = |what: String, short: &str, cure: String| {
        problems.push(Problem { what, short: short.to_owned(), cure });
    };
    if let Some(first) = look.put_aside.first() {
        let which = match (look.put_aside.as_slice(), extent) {
            (several @ [_, _, ..], Extent::All) => {
                several.iter().map(|text| format!("\n{text}")).collect::<String>()
            }
            _ => format!("; the first is {first}"),
        };
        add(
            format!(
                "{} that another program wrote could not be merged and {} put aside in {name}{which}",
                counted(look.put_aside.len(), "text"),
                if look.put_aside.len() == 1 { "is" } else { "are" },
            ),
            "a text put aside",
            "copy the parts that you need from there, then delete it".to_owned(),
        );
    }
    if !look.missing.is_empty() {
        add(
            format!(
                "the remote does not have the content of {} ({})",
                counted(look.missing.len(), "file"),
                first_names(&look.missing, extent)
            ),
            "content missing",
            "haversack sync --full on the machine that wrote them".to_owned(),
        );
    }
    problems
}

impl Status {
    /// Returns the state in one sentence.
    pub(crate) fn verdict(&self) -> String {
        let changes = |count: usize| counted(count, "change");
        let waiting = match self.waiting {
            0 => String::new(),
            1 => "; 1 change waits to be sent".to_owned(),
            count => format!("; {} wait to be sent", changes(count)),
        };
        match (self.problems.len(), &self.remote) {
            (0, None) if self.is_kept_local => {
                "On this machine only, because keep-memory-local is set: nothing is sent".to_owned()
            }
            (0, None) => "On this machine only: there is no remote. Sync it: haversack init URL".to_owned(),
            (0, Some(_)) if self.waiting > 0 => {
                let wait = if self.waiting == 1 { "waits" } else { "wait" };
                format!("All well. {} {wait} to be sent: haversack sync", changes(self.waiting))
            }
            (0, Some(_)) if self.reached.is_none() => "Not synced yet: haversack sync".to_owned(),
            (0, Some(_)) if self.is_underway => {
                "All you wrote is safe on this machine. A sync is running, or was interrupted: haversack sync"
                    .to_owned()
            }
            (0, Some(_)) if self.arriving > 0 => {
                format!(
                    "In sync with the files that have arrived. {} not arrived yet.",
                    parts_of_logs(self.arriving)
                )
            }
            (0, Some(_)) if !self.waits.is_empty() => {
                let (count, verb) = (self.waits.len(), if self.waits.len() == 1 { "is" } else { "are" });
                format!("In sync. {} in the folder {verb} not imported yet.", counted(count, "plain file"))
            }
            (0, Some(_)) if !self.unknown.is_empty() => {
                let memories = match self.unknown.len() {
                    1 => "one memory directory".to_owned(),
                    count => format!("{count} memory directories"),
                };
                format!("In sync, except {memories} of Claude Code, which we do not send.")
            }
            (0, Some(remote)) => match self.reached {
                Some(reached) => format!("In sync. Last contact {} with {remote}", ago(self.now, reached)),
                None => "In sync.".to_owned(),
            },
            (1, _) => format!("1 thing needs you. All you wrote is safe on this machine{waiting}."),
            (count, _) => format!("{count} things need you. All you wrote is safe on this machine{waiting}."),
        }
    }

    /// Returns the verdict, the problems with their cures, and the numbers.
    pub(crate) fn text(&self) -> String {
        let now = self.now;
        let mut text = format!("{}\n", self.verdict());
        if !self.problems.is_empty() {
            text.push('\n');
        }
        for (index, problem) in self.problems.iter().enumerate() {
            let what = problem.what.replace('\n', "\n       ");
            text.push_str(&format!("  {}  {what}\n     → {}\n", index + 1, problem.cure));
        }
        let mut facts = vec![format!("files      {}", self.files)];
        if self.unfetched > 0 {
            facts.push(format!("to fetch   {}", self.unfetched));
        }
        if self.left_alone > 0 {
            facts.push(format!(
                "left alone {} (links or pipes): haversack doctor lists them",
                self.left_alone
            ));
        }
        let limit = self.extent.limit();
        for (name, lines) in [("not sent  ", &self.unknown), ("unproven  ", &self.without_commit)] {
            facts.extend(lines.iter().take(limit).map(|line| format!("{name} {line}")));
            if lines.len() > limit {
                facts.push(format!(
                    "           … and {} more; see all: haversack status --all",
                    lines.len() - limit
                ));
            }
        }
        if self.arriving > 0 {
            let parts = counted(self.arriving, "part");
            facts.push(format!(
                "arriving   {parts} of other machines' logs; if that does not end: haversack doctor"
            ));
        }
        facts.extend(self.waiting_files());
        if self.is_underway {
            facts.push(
                "the last sync was interrupted and not finished: the next sync continues it".to_owned(),
            );
        }
        if let Some(index) = &self.index {
            facts.push(format!("index      {index}"));
        }
        if let Some(model) = &self.model {
            facts.push(format!("model      {model}"));
        }
        if let Some(next) = self.next_try.filter(|next| *next > now && !self.is_kept_local) {
            facts
                .push(format!("next try   in {}, or now: haversack sync", span((next.0 - now.0) / 1000 + 1)));
        }
        if !self.devices.is_empty() {
            let machines = self.devices.iter().map(|device| match (device.is_this_one, device.last_change) {
                (true, _) => format!("{} (this one)", device.name),
                (false, Some(time)) => format!("{}, {}", device.name, ago(now, time)),
                (false, None) => device.name.clone(),
            });
            facts.push(format!("machines   {}", machines.collect::<Vec<_>>().join(" · ")));
        }
        facts.extend(self.tidy.iter().map(|line| format!("tidy       {line}")));
        text.push('\n');
        for fact in facts {
            text.push_str(&format!("  {fact}\n"));
        }
        text
    }

    /// Returns a line for each plain file of a synced folder that is waited for.
    fn waiting_files(&self) -> Vec<String> {
        let limit = self.extent.limit();
        let line = |Wait { path, until }: &Wait| match *until > self.now {
            true => format!(
                "waits      {path} in the folder: we wait until {} for the log of another machine; if you wrote it here: {}",
                time_of_day(*until),
                take_in(path)
            ),
            false => format!("waits      {path} in the folder; take it in now: haversack sync --full"),
        };
        let mut lines: Vec<String> = self.waits.iter().take(limit).map(line).collect();
        if self.waits.len() > limit {
            let more = self.waits.len() - limit;
            lines.push(format!("           … and {more} more; see all: haversack status --all"));
        }
        lines
    }

    /// Returns one line for a status bar.
    pub(crate) fn one_line(&self) -> String {
        let mut parts = Vec::new();
        if self.waiting > 0 {
            parts.push(format!("{} waiting", self.waiting));
        }
        if self.arriving > 0 {
            parts.push(format!("{} arriving", self.arriving));
        }
        if !self.waits.is_empty() {
            parts.push(format!("{} in the folder not imported", self.waits.len()));
        }
        if self.is_underway {
            parts.push("sync unfinished".to_owned());
        }
        if !self.unknown.is_empty() {
            let memories = if self.unknown.len() == 1 { "memory directory" } else { "memory directories" };
            parts.push(format!("{} {memories} not sent", self.unknown.len()));
        }
        for problem in &self.problems {
            if !parts.contains(&problem.short) {
                parts.push(problem.short.clone());
            }
        }
        match (parts.is_empty(), &self.remote) {
            (false, _) => format!("haversack: {}", parts.join(", ")),
            (true, Some(_)) => "haversack: in sync".to_owned(),
            (true, None) => "haversack: on this machine only".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_counted_unless_all_are_asked_for() {
        let files = (1..=9).map(|number| Locator::parse(&format!("{number}.md")).expect("a name"));
        let look = Outlook { refused: files.collect(), ..Outlook::default() };
        let short = problems("memory", &look, Extent::Short);
        assert_eq!(short.len(), 6);
        assert_eq!(short[5].what, "… and 4 more like it");
        assert_eq!(problems("memory", &look, Extent::All).len(), 9);
    }

    #[test]
    fn texts_that_were_put_aside_are_all_named_if_all_are_asked_for() {
        let texts = (1..=7).map(|number| Locator::parse(&format!("aside-{number}")).expect("a name"));
        let look = Outlook { put_aside: texts.collect(), ..Outlook::default() };
        let what = |extent| problems("memory", &look, extent).remove(0).what;
        assert!(what(Extent::Short).ends_with("put aside in memory; the first is aside-1"));
        assert!(
            what(Extent::All).ends_with(
                "put aside in memory\naside-1\naside-2\naside-3\naside-4\naside-5\naside-6\naside-7"
            )
        );
    }

    #[test]
    fn one_file_is_told_in_the_singular() {
        let file = vec![Locator::parse("notes.md").expect("a name")];
        let look = Outlook {
            waiting_deletions: file.clone(),
            held_deletions: file,
            has_vanished: true,
            ..Outlook::default()
        };
        let told: Vec<String> =
            problems("memory", &look, Extent::Short).into_iter().map(|problem| problem.what).collect();
        assert_eq!(
            told,
            [
                "The only file in memory disappeared. We did not delete it on your other machines",
                "1 file in memory was deleted on another machine, very many at once (notes.md). We kept it here",
            ]
        );
    }
}

//! Syncs a home, and says in text how it went.
//!
//! The background process syncs by itself: it writes the plain copies of a large store in its own process. Every other caller uses this.

use haversack::home::Meeting;
use haversack::store::Locator;
use haversack::sync::Progress;

use super::{mirror, summary};
use crate::error::CommandError;
use crate::home::gate::{HeldFiles, STAYS, grouped};
use crate::home::rebuild::{self, HomeRebuilt};
use crate::home::{self, Summary, SyncOptions};
use crate::remote::Remote;
use crate::settings::Settings;
use crate::ui::moments::{counted, time_of_day, was_it};
use crate::ui::paths::quoted;

/// Syncs every replica of a home.
pub(crate) fn sync(
    settings: &Settings,
    remote: &Remote,
    options: &SyncOptions<'_>,
    progress: &dyn Progress,
) -> Result<Summary, CommandError> {
    let summary = home::sync(settings, remote, options, progress)?;
    // A page that cannot be made now is made by the next summary of its day.
    drop(summary::refresh(settings, &summary.received));
    write_late_mirror(settings, &summary);
    Ok(summary)
}

/// Syncs every replica of a home with a meeting place that is open already.
pub(crate) fn sync_with(
    settings: &Settings,
    remote: &Remote,
    meeting: &Meeting,
    options: &SyncOptions<'_>,
    progress: &dyn Progress,
) -> Result<Summary, CommandError> {
    let summary = home::sync_with(settings, remote, meeting, options, progress)?;
    write_late_mirror(settings, &summary);
    Ok(summary)
}

/// Puts a store back whose remote was lost, and syncs.
pub(crate) fn rebuild(
    settings: &Settings,
    remote: &Remote,
    progress: &dyn Progress,
) -> Result<HomeRebuilt, CommandError> {
    let done = rebuild::rebuild(settings, remote, progress)?;
    write_late_mirror(settings, &done.summary);
    Ok(done)
}

/// Starts a process that writes the plain copies that a sync left for later.
fn write_late_mirror(settings: &Settings, summary: &Summary) {
    if summary.is_mirror_late {
        mirror::start(settings);
    }
}

/// Returns the sentence that follows a number of files which disappeared here.
pub(crate) fn kept_elsewhere(count: usize) -> String {
    format!("We did not delete {} on your other machines", was_it(count).1)
}

/// The cure for files that disappeared here.
pub(crate) const WAITING_CURE: &str = "to bring them back: haversack restore --deleted; if you meant to delete them: haversack sync --allow-deletes";

/// The problem of a file that could not be written here.
pub(crate) const REFUSED: &str =
    "could not be written here: something else is in its place, or this disk cannot hold the name";

/// Its cure.
pub(crate) const REFUSED_CURE: &str = "move the file or directory in its place away, or rename the file on another machine, then: haversack sync";

/// The cure for a path that could not be read.
pub(crate) const UNSEEN: &str =
    "let it be read, or put a plain file or directory there; until then it counts as it was";

/// Returns the text about a sync: its result, then each thing that the user has to see to, with the cure below it.
pub(crate) fn text(summary: &Summary) -> String {
    let mut text = format!("{}\n", headline(summary));
    let report = &summary.report;
    let listed_in_log = &listed_in_log(summary);
    let mut note = |what: String, cure: &str| text.push_str(&format!("  {what}\n  → {cure}\n"));
    each(&mut note, &report.both_kept, "haversack conflicts", |locator| {
        (format!("{locator}: both versions of a passage are kept"), "haversack conflicts".to_owned())
    });
    each(&mut note, &report.edits_won, listed_in_log, |locator| {
        (
            format!("{locator} was deleted on one machine and changed on another: it stays"),
            format!("if it is to go: haversack delete {}", quoted(locator.as_str())),
        )
    });
    for HeldFiles { what, cure, .. } in grouped(&report.held, STAYS, MAX_EACH) {
        note(what.replace('\n', "\n    "), &cure);
    }
    if !report.held_deletions.is_empty() {
        let count = report.held_deletions.len();
        let (was, it) = was_it(count);
        note(
            format!(
                "{} {was} deleted on another machine, very many at once: we kept {it} here",
                counted(count, "file")
            ),
            "to send them again: haversack restore --deleted; if they are meant to go: haversack sync --allow-deletes",
        );
    }
    if !report.waiting_deletions.is_empty() {
        let count = report.waiting_deletions.len();
        note(format!("{} disappeared here. {}", counted(count, "file"), kept_elsewhere(count)), WAITING_CURE);
    }
    let is_told = |locator: &&Locator| report.unseen.iter().all(|(unseen, _)| unseen != *locator);
    let refused: Vec<&Locator> = report.refused.iter().filter(is_told).collect();
    each(&mut note, refused, LISTED_IN_STATUS, |locator| {
        (format!("{locator} {REFUSED}"), REFUSED_CURE.to_owned())
    });
    each(&mut note, &report.unseen, LISTED_IN_STATUS, |(locator, why)| {
        (format!("{locator} could not be looked at: {why}"), UNSEEN.to_owned())
    });
    each(&mut note, &report.missing, LISTED_IN_STATUS, |locator| {
        (format!("the remote does not have the content of {locator}"), "haversack sync --full".to_owned())
    });
    each(&mut note, &report.odd, LISTED_IN_JSON, |(name, why)| {
        (format!("{name}: {why}"), "it is left alone".to_owned())
    });
    each(&mut note, &report.not_mirrored, LISTED_IN_STATUS, |locator| not_mirrored(locator.as_str()));
    if !report.unrelated.is_empty() {
        let count = report.unrelated.len();
        let names: Vec<&str> = report.unrelated.iter().take(MAX_UNRELATED).map(Locator::as_str).collect();
        let more = if count > MAX_UNRELATED { ", …" } else { "" };
        note(
            format!(
                "{} in the remote {} no part of this memory: {}{more}",
                counted(count, "file"),
                if count == 1 { "is" } else { "are" },
                names.join(", ")
            ),
            "we changed and imported nothing; to keep one as memory, copy it into the memory",
        );
    }
    each(&mut note, &summary.rescued, listed_in_log, |(place, locator)| {
        (
            format!("{locator}: imported an edit that the folder's client could not upload"),
            format!("it is still where the client put it, and is not needed any more: {place}"),
        )
    });
    each(&mut note, &report.awaited, LISTED_IN_STATUS, |(locator, _)| {
        let wait = match summary.waits.get(locator) {
            Some(until) => format!("we wait for the log until {}", time_of_day(*until)),
            None => "we wait for the log".to_owned(),
        };
        (
            format!("{locator} in the folder differs, and no machine's log says why: {wait}"),
            format!("if it was written on this machine, take it in now: {}", take_in(locator.as_str())),
        )
    });
    if summary.arriving() > 0 {
        note(
            format!("{} not arrived whole", parts_of_logs(summary.arriving())),
            "we import them when the folder's client has delivered the rest",
        );
    }
    each(&mut note, &summary.vanished, LISTED_IN_STATUS, |name| {
        (
            format!("{name} is not there, may not be read, or was emptied: nothing was deleted anywhere"),
            format!("put it back, or: haversack mount remove {}", quoted(name)),
        )
    });
    each(&mut note, &summary.unbound, LISTED_IN_STATUS, |name| {
        (
            format!("{name} became a link: we do not sync it any more, and nothing was deleted anywhere"),
            format!("put a directory in its place, or: haversack mount remove {}", quoted(name)),
        )
    });
    each(&mut note, &summary.failed, LISTED_IN_STATUS, |(name, why)| {
        (
            format!("{name} was left out: {why}"),
            "All that was written there is safe. See to it, then: haversack sync".to_owned(),
        )
    });
    if report.out_of_time {
        note("there was no more time: the rest follows with the next sync".to_owned(), "haversack sync");
    }
    if let Some(why) = &report.not_folded {
        note(format!("the log was not folded: {why}"), "it is tried again with the next sync");
    }
    text
}

/// The most items of one sort that are reported in full.
const MAX_EACH: usize = 5;

/// The commands that list the things of one sort which a sync does not name.
const LISTED_IN_STATUS: &str = "haversack status --all";
const LISTED_IN_JSON: &str = "haversack sync --full --json";

/// Returns the command that lists the files of the changes that a sync published or received last.
fn listed_in_log(summary: &Summary) -> String {
    let newest = summary.published.last().or(summary.position.as_ref());
    match (summary.published.len(), newest) {
        (0 | 1, Some(newest)) => format!("haversack log {}", newest.number()),
        (0 | 1, None) => "haversack log".to_owned(),
        (several, _) => format!("haversack log -n {several}"),
    }
}

/// Tells of the first things of one sort, each with its cure, and counts the others.
fn each<T>(
    note: &mut impl FnMut(String, &str),
    things: impl IntoIterator<Item = T>,
    listed_by: &str,
    tell: impl Fn(T) -> (String, String),
) {
    let mut things = things.into_iter();
    for thing in things.by_ref().take(MAX_EACH) {
        let (what, cure) = tell(thing);
        note(what, &cure);
    }
    match things.count() {
        0 => {}
        more => note(format!("… and {more} more like it"), &format!("see all: {listed_by}")),
    }
}

/// Returns the command that takes a plain file of a synced folder in as an edit of this machine.
pub(crate) fn take_in(name: &str) -> String {
    format!("haversack sync --mine {}", quoted(name))
}

/// The most names of files that are no part of the memory.
const MAX_UNRELATED: usize = 5;

/// Says that a plain copy was not written because another file is in its place, and what to do.
pub(crate) fn not_mirrored(name: &str) -> (String, String) {
    if name == "manifest.json" {
        return (
            "manifest.json in the remote is the file of another program: it was left alone, and no plain copies are written".to_owned(),
            "move that file away, then: haversack sync --full".to_owned(),
        );
    }
    (
        format!("{name} in the remote is not the file that we wrote. We did not touch it"),
        "take it in as an edit: haversack sync --full".to_owned(),
    )
}

/// Begins a sentence about so many parts of other machines' logs.
pub(crate) fn parts_of_logs(number: usize) -> String {
    let have = if number == 1 { "has" } else { "have" };
    format!("{} of other machines' logs {have}", counted(number, "part"))
}

fn headline(summary: &Summary) -> String {
    let count = |number: usize| counted(number, "file");
    let mut parts = Vec::new();
    if !summary.sent.is_empty() {
        parts.push(format!("sent {}", count(summary.sent.len())));
    }
    if summary.received() > 0 {
        parts.push(format!("received {}", count(summary.received())));
    }
    if !summary.report.merged.is_empty() {
        parts.push(format!("merged {}", count(summary.report.merged.len())));
    }
    if !summary.report.foreign.is_empty() {
        parts.push(format!("imported {} changed by hand in the remote", count(summary.report.foreign.len())));
    }
    if summary.mended > 0 {
        parts.push(format!("put {} of logs back that the folder had lost", count(summary.mended)));
    }
    let text = parts.join(", ");
    match text.split_at_checked(1) {
        Some((first, rest)) => format!("{}{rest}.", first.to_uppercase()),
        None => "Nothing new.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use haversack::ids::Position;

    use super::*;

    #[test]
    fn long_lists_are_counted_and_a_command_lists_them() {
        let files = || (1..=9).map(|number| Locator::parse(&format!("my note {number}.md")).expect("a name"));
        let mut summary = Summary::default();
        summary.report.both_kept.extend(files());
        summary.report.edits_won.extend(files());
        summary.report.refused.extend(files());
        summary.report.unseen.extend(files().skip(6).map(|file| (file, "denied".to_owned())));
        summary.vanished.extend((0..6).map(|number| format!("/projects/my {number}")));
        let told = text(&summary);
        assert_eq!(told.matches("both versions of a passage are kept").count(), 5, "{told}");
        assert!(told.contains("  … and 4 more like it\n  → see all: haversack conflicts\n"), "{told}");
        assert!(told.contains("  … and 1 more like it\n  → see all: haversack status --all\n"), "{told}");
        assert_eq!(told.matches("could not be looked at").count(), 3, "{told}");
        assert!(told.contains("→ if it is to go: haversack delete 'my note 1.md'\n"), "{told}");
        assert!(told.contains("haversack mount remove '/projects/my 0'\n"), "{told}");
    }

    #[test]
    fn long_list_of_kept_edits_names_the_change_that_has_them() {
        let files = || (1..=9).map(|number| Locator::parse(&format!("{number}.md")).expect("a name"));
        let position = |number| Position::new(number).expect("a position");
        let told = |published: &[u64]| {
            let mut summary = Summary::default();
            summary.position = Some(position(14));
            summary.report.edits_won.extend(files());
            summary.rescued.extend(files().map(|file| ("lost+found".to_owned(), file)));
            summary.published.extend(published.iter().map(|number| position(*number)));
            text(&summary)
        };
        for (published, command) in
            [(&[12][..], "haversack log 12"), (&[12, 13], "haversack log -n 2"), (&[], "haversack log 14")]
        {
            let told = told(published);
            assert_eq!(told.matches(&format!("→ see all: {command}\n")).count(), 2, "{told}");
        }
    }

    #[test]
    fn one_deleted_file_is_told_in_the_singular() {
        let mut summary = Summary::default();
        let file = Locator::parse("notes.md").expect("a name");
        summary.report.held_deletions.push(file.clone());
        summary.report.waiting_deletions.push(file);
        let told = text(&summary);
        assert!(
            told.contains("1 file was deleted on another machine, very many at once: we kept it here"),
            "{told}"
        );
        assert!(
            told.contains("1 file disappeared here. We did not delete it on your other machines"),
            "{told}"
        );
    }
}

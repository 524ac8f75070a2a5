//! Devices that share one log, with everything going wrong that can: the ground on which sync is tested.
//!
//! It runs the real engine: every sync is a round of [`haversack::home::sync`], the function that the command line calls. A seed is turned into a [`Schedule`] before anything happens; playing it does the same every time. Every
//! action has a seed of its own, and what goes wrong with a sync follows from the seed of the action that started it: whatever is left
//! out, the rest means the same. That is how a schedule that breaks a promise [shrinks](shrink()).
//!
//! Syncs run as futures that are polled one effect at a time, and die by being dropped between two effects.
//!
//! # Modelled
//! - 1 to 5 devices, each synced by 1 or 2 processes, over working files and state of its own; users and programs that add, reword,
//!   remove, move and delete without any lock, also in the middle of a sync and while a device is down.
//! - In one of four schedules over a log, users who rename files by case (`notes.md` to `NOTES.md` and back), at any moment, past us. At the end
//!   all devices have one spelling of each file, with everything in it.
//! - Files of every kind of merge, four of them in a schedule; what users do to one leaves it as its kind wants it.
//! - A remote as Azure, S3, GCS and a directory are: how a lost race is answered, what a version is, listings in small pages.
//! - Requests that are lost, answered and lost, delayed past later ones, repeated later; refusals (409, 412, 429, 5xx), spells in which
//!   a device is not let in (401, 403), listings that miss the newest writes, devices that are offline.
//! - Crashes between any two effects; a last line of the journal that is cut short; two processes at once.
//! - Devices that are copied at any moment, and backups that are put back: files and state together.
//! - A working directory that is not there for a while; a disk that is full; clocks that jump; filesystems on which a change within
//!   one tick of the clock does not show from outside.
//! - A log that is folded every few commits and compacted at any moment; forged checkpoints; a mirror beside it, which others edit.
//! - In one of sixteen schedules files and state are on the real `device-local` backend over the crashing disk of this crate: a process
//!   dies in the middle of a call, the machine stops and forgets what was not synced, programs save between two calls of one effect.
//!
//! - Or no remote: a folder that a sync client replicates, each device with a copy of it. Paths arrive one by one, half at first; where two
//!   wrote one, the client keeps either and makes a copy of the other. In one of four the memory lies there as plain files, and people write
//!   into them. Now and then an hour goes by in which everything arrives.
//!
//! - Or a remote that is wiped, restored from a backup and replaced by another store, with two devices that keep the commits they saw and
//!   rebuild it, one after the other or both at once. No process runs in the moment of the loss, and no request from before it arrives after it.
//!   A device whose archive has a hole merges without a base, and what was deleted may be there again.
//!
//! - In one of four schedules over a log or a folder, homes: directories bound to prefixes (two at one prefix, one below another) that are
//!   unbound, bound again, moved to another place, away for a while and back; agents that sign their writes; a gate that holds back files
//!   with a secret until users allow all secrets. No byte of a held secret may be in the remote, every signed line is under its
//!   agent in the history, and a sync changes no file in a directory outside the part of the store that belongs there.
//!
//! # How the oracle reads what happened
//! It counts *units*: words that are in whatever a user adds, and nowhere else. A unit that a user added must be there at the end, unless
//! a device that had it removed it, or deleted the file with it in it. One that a device removed must not be there at the end. A user who
//! rewords an item removes what it said. The readings:
//! - *Edit wins*: if one device deletes a file and another changes it without having seen that, the file stays, whole: with it
//!   what the deleting device had in it, and what it had removed before and not yet sent. A text that was saved in the very
//!   moment in which sync replaced the file was not seen by the next deletion of the file. If a user created the file again, a section is gone
//!   from it, and if another device changed that section, it stays whole, including lines that were removed from it.
//! - Lines that another device restored by a change, made before it saw a deletion, count as that change.
//! - *Copies*: what was done on a device and not yet told to the log when the device was copied is also the copy's own. What
//!   was added so may be there although the original removed it, or deleted its file; it comes back at another place, so that its
//!   neighbours have moved, and lines of them that another device removed may have come back with it. If a sync was under way at that moment, it
//!   may have told later what the user had undone by then; the copy cannot know that it was undone.
//! - *Backups*: a device that was restored is a copy of the device that it was. What was done since the backup and not told is gone:
//!   what was added or removed so is judged neither lost nor come back, and a file that was deleted so may be there. If a sync was
//!   under way when the backup was made, it may have told later what the user had undone by then; the restored device cannot know.
//! - *The mirror*: all lines of a text that a person put there by hand are new, for every device that imports it.
//! - *Copies of a sync client* that cannot be told from files of that name are files of that name: their content counts.
//! - *Renames*: a rename is a change, and wins over a deletion by a user who has not seen it. Two files that were created apart, under names
//!   that differ by case, are two: one gets another name (`notes.case-1a2b3c4d.md`), and counts as a copy.
//! - *Both kept*: if two devices say something about the same thing (reword an entry, an item or a field) and neither knows of the other,
//!   both sayings are there; one of them may be in a note, and stays there whatever becomes of the thing. Of a value in data that both
//!   changed one is in the file, the other in a copy beside it; a copy counts for what is there, not for what came back.
//! - *Moved*: what one device puts elsewhere while another removes it is new there, and so may be its neighbours: which of two lines
//!   has passed the other cannot be known.
//! - *Cursors* have one mark: the furthest that was set is there, or went with its file. A mark that met a further one has gone into it; a
//!   user who saw that one may set another, further back.
//! - *Binary files*: every content is there whole, in the file or in a copy. A unit that one device removed and another did not may be there.
//!
//! - *Bound directories*: users bind, unbind and move directories once their device has told everything. Every text in a directory that is
//!   bound again, or moved, counts as written anew. A step that a killed sync had begun in a directory is completed there, also if a deeper
//!   directory was bound meanwhile.
//!
//! - *Tidies*: days go by, and devices roll old files up. Of every unit that a commit takes out of the store's files, a user removed it or a decision in the
//!   store names it, at each position. Events are there once at the end, a further tidy changes nothing, and what a user removed from a source can be in a roll-up.
//!
//! - *Short histories*: old commits lose their contents while devices are behind. At the end a device joins that has nothing, and gets every file.
//!
//! The published changes of a device are known from its syncs: one that ended well has published everything that was done before it started.
//!
//! # Not modelled
//! - A working directory of which the log knows one file only, and which vanishes: it is taken for deleted.
//! - A directory that vanishes while a sync is under way: a process with the directory open keeps it.
//! - Homes whose devices are copied, backed up or on a crashing disk, whose memory directory vanishes, whose users rename files, or
//!   whose remote gets lost. Edits below a bound prefix that are not sent when a directory is unbound or a deeper one is bound.
//! - A round with a deadline for one directory ([`Work::Near`](haversack::home::Work::Near)), a round that only takes in, and one that sends one file.
//! - Schedules with tidies have one memory directory for each device, and no copies, backups, mirrors or folders.
//! - Files that are too large for a commit. Renames in a folder, where both names stay, and edits of the mirror in a schedule with renames.

mod age;
mod client;
mod crashing;
mod device;
mod failure;
mod link;
mod logs_only;
mod memory;
mod oracle;
mod schedule;
mod sheet;
mod shrink;
mod storage;
mod store;
mod unit;
mod user;
mod weather;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use haversack::planted::{self, Planted};

pub use self::failure::{Broken, Failure};
pub use self::logs_only::LogsOnlySchedule;
pub use self::schedule::{Meeting, Schedule};
pub use self::shrink::{Shrunk, shrink};
pub use self::world::Ended;
use self::world::World;

/// The parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Decides everything.
    pub seed: u64,
    /// A mistake to switch on in the engine.
    pub planted: Option<Planted>,
    /// The storage where the devices meet.
    pub meeting: Meeting,
}

impl Run {
    /// Returns the run of a seed, with the engine as it is.
    pub fn of(seed: u64) -> Run {
        Run { seed, planted: None, meeting: Meeting::Log }
    }

    /// Returns the run of a seed over a folder that a sync client replicates.
    pub fn in_vault(seed: u64) -> Run {
        Run { meeting: Meeting::Vault, ..Run::of(seed) }
    }

    /// Returns the run of a seed over a remote that gets lost.
    pub fn with_losses(seed: u64) -> Run {
        Run { meeting: Meeting::Lost, ..Run::of(seed) }
    }

    /// Returns the run of a seed whose old commits lose their contents.
    pub fn with_short_history(seed: u64) -> Run {
        Run { meeting: Meeting::Shortened, ..Run::of(seed) }
    }

    /// Returns the run of a seed with devices that tidy.
    pub fn with_tidies(seed: u64) -> Run {
        Run { meeting: Meeting::Aged, ..Run::of(seed) }
    }
}

/// Runs one seed; the error says which promise was broken.
pub fn run(run: Run) -> Result<Ended, Failure> {
    play(&Schedule::at(run.meeting, run.seed), run.planted)
}

/// Plays a schedule; the error says which promise was broken.
pub fn play(schedule: &Schedule, planted: Option<Planted>) -> Result<Ended, Failure> {
    play_in(&mut World::new(schedule, None), planted)
}

/// Plays a schedule and returns what happened, to be read.
pub fn explain(schedule: &Schedule, planted: Option<Planted>) -> (String, Result<Ended, Failure>) {
    let mut world = World::new(schedule, Some(String::new()));
    let result = play_in(&mut world, planted);
    (world.told(), result)
}

fn play_in(world: &mut World<'_>, planted: Option<Planted>) -> Result<Ended, Failure> {
    // A search for a short schedule continues after a panic. The world is only looked at then.
    let played = || catch_unwind(AssertUnwindSafe(|| world.play()));
    planted::with(planted, played).unwrap_or_else(|_| Err(Broken::Panicked.because("its message is above")))
}

//! Writes the plain copies in the remote that a sync left for later.
//!
//! After a sync of many files, a separate process does this in the background. A home has at most one, and every sync goes first.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use haversack::store::{Backend, ErrorKind, Locator, block_on};
use haversack::sync::{Author, Context, Progress, Quiet, Replica, SyncError};
use haversack_system::{Backoff, RandomIds, SystemClock};

use crate::agents::program;
use crate::error::CommandError;
use crate::home::contact::Contact;
use crate::home::{Home, HomeDirectory};
use crate::remote::{self, Remote};
use crate::settings::Settings;

/// The lock of the process that writes plain copies.
const LOCK: &str = "mirror";

/// The least number of objects that are written before a sync may go first: several at a time, that takes seconds with a distant storage.
const LEAST_PORTION: usize = 1024;

/// The most objects that are written before a sync may go first.
const LARGEST_PORTION: usize = 4096;

/// In how many portions a store is written: each of them writes the manifest, which is as long as the store is large.
const PORTIONS: usize = 20;

/// The time that we wait for further syncs, to write the files of all of them together.
pub(crate) const GATHER: Duration = Duration::from_secs(2);

/// The most attempts while a sync is running.
const MAX_TRIES: usize = 1000;

/// The wait of each attempt.
const PAUSE: Duration = Duration::from_millis(200);

/// The pause after each portion: a waiting sync asks three times in it.
const BREATH: Duration = Duration::from_millis(60);

/// Writes them in this process, which is one in the background already.
pub(crate) fn write_now(settings: &Settings) -> Result<(), CommandError> {
    write(settings, Duration::ZERO, &Quiet)
}

pub(crate) fn write(
    settings: &Settings,
    gather: Duration,
    progress: &dyn Progress,
) -> Result<(), CommandError> {
    let remote = Remote::expected(settings)?;
    let home = Home::open(settings)?;
    let _lock = match block_on(home.memory().state.lock(LOCK, Duration::ZERO)) {
        Ok(lock) => lock,
        // The process that holds the lock writes our files too.
        Err(error) if error.kind() == ErrorKind::Busy => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    std::thread::sleep(gather);
    let backend = remote::open(settings, &remote)?;
    let patience = Backoff::new();
    let author = Author { device: remote.device.clone(), ..Author::default() };
    let context = Context {
        patience: &patience,
        progress,
        archive: Some(&*home.memory().state),
        ..Context::new(&SystemClock, &RandomIds, &author)
    };
    // Each has the contents of its own part only.
    let mut not_mirrored = BTreeSet::new();
    for place in home.places() {
        not_mirrored.extend(write_part(&place, &backend, context)?);
    }
    if remote::is_vault(&remote.url) {
        // There such a file may be on its way with its log, and is waited for.
        return Ok(());
    }
    let not_mirrored: Vec<Locator> = not_mirrored.into_iter().collect();
    Contact::of(settings).with_not_mirrored(&not_mirrored).save(settings)
}

/// Writes the plain copies of one part; returns those that were not written because another file is in their place.
fn write_part(
    place: &HomeDirectory<'_>,
    backend: &Arc<dyn Backend>,
    context: Context<'_>,
) -> Result<Vec<Locator>, CommandError> {
    let mut not_mirrored = Vec::new();
    for _ in 0..MAX_TRIES {
        let opened =
            block_on(Replica::open(place.files.clone(), place.state.clone(), backend.clone(), &RandomIds));
        let mut replica = match opened {
            Err(SyncError::Busy) => {
                std::thread::sleep(PAUSE);
                continue;
            }
            opened => opened?.with_scope(place.scope.clone()),
        };
        let portion = (replica.log_files().len() / PORTIONS).clamp(LEAST_PORTION, LARGEST_PORTION);
        let context = Context { mirrored_at_once: portion, ..context };
        let mirrored = block_on(replica.mirror(context))?;
        not_mirrored.extend(mirrored.foreign);
        if mirrored.left == 0 {
            break;
        }
        drop(replica);
        std::thread::sleep(BREATH);
    }
    Ok(not_mirrored)
}

/// Starts writing the plain copies in the background.
///
/// If that does not work, the next sync that sends something does it.
pub(crate) fn start(settings: &Settings) {
    let Ok(program) = program::to_start(settings) else { return };
    let mut command = Command::new(program);
    command.arg("--home").arg(&settings.home).arg("mirror");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    drop(command.spawn());
}

//! Does a storage keep its promises? Asked once, before anything is trusted to it.

use std::time::{Duration, Instant};

use futures_lite::future::zip;

use crate::backend::{Backend, Condition};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::locator::Locator;
use crate::registry::OpenOptions;
use crate::version::Version;

/// The result of an examination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    /// The source of the credential.
    pub credential: String,
    /// The duration of a request, there and back.
    pub round_trip: Duration,
    /// The seconds by which the storage's clock is ahead of ours.
    pub ahead_seconds: Option<i64>,
}

/// Opens a container, writes to it, and returns what is known about it; one that breaks a promise is refused.
///
/// Needs a name that no other caller uses at the same time.
pub async fn examine(options: &OpenOptions, unique: &str) -> Result<Examined> {
    let cloud = super::open::open_cloud(options)?;
    // Far away every answer takes its time: nothing waits that need not. If both fail, that it is not reached says more.
    let (reached, kept) = zip(reach(&cloud, unique), probe(&cloud, unique)).await;
    let round_trip = reached.map_err(|error| error.with_place(&options.address))?;
    kept.map_err(|error| error.with_place(&options.address))?;
    Ok(Examined {
        credential: cloud.wire.signer.source.clone(),
        round_trip,
        ahead_seconds: cloud.wire.ahead_seconds(),
    })
}

/// Reads something that is not there, twice: the first time the connection is made, the second time it is measured.
pub async fn reach(backend: &dyn Backend, unique: &str) -> Result<Duration> {
    let nothing = probe_place(unique, "nothing");
    let mut begun = Instant::now();
    for _ in 0..2 {
        begun = Instant::now();
        match backend.read(&nothing).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(_) => return Err(broken("it returns an object that we never wrote")),
        }
    }
    Ok(begun.elapsed())
}

/// Tries the promises that everything else stands on: what is created stays, and a stale writer is refused.
///
/// A storage that breaks one is [`Unsupported`](ErrorKind::Unsupported). Leaves nothing behind.
pub async fn probe(backend: &dyn Backend, unique: &str) -> Result<()> {
    let [created, replaced] = ["created", "replaced"].map(|name| probe_place(unique, name));
    let (creating, replacing) = zip(try_creating(backend, &created), try_replacing(backend, &replaced)).await;
    // The rest of a failed probe is small, and under a name that is never read.
    drop(zip(backend.delete(&created, Condition::Any), backend.delete(&replaced, Condition::Any)).await);
    creating.and(replacing)
}

async fn try_creating(backend: &dyn Backend, place: &Locator) -> Result<()> {
    let first = backend.write(place, "first".into(), Condition::Absent).await?.version;
    refuses(backend, place, "second", Condition::Absent, "it creates an object that exists already").await?;
    is_still(backend, place, "first", &first).await
}

async fn try_replacing(backend: &dyn Backend, place: &Locator) -> Result<()> {
    let first = backend.write(place, "first".into(), Condition::Absent).await?.version;
    let second = backend.write(place, "second".into(), Condition::Matches(first.clone())).await?.version;
    refuses(backend, place, "third", Condition::Matches(first), "it lets a stale writer write").await?;
    is_still(backend, place, "second", &second).await
}

/// Makes sure that a write that was refused did not happen.
async fn is_still(backend: &dyn Backend, place: &Locator, content: &str, version: &Version) -> Result<()> {
    let found = backend.read(place).await?;
    match found.bytes == content && found.version == *version {
        true => Ok(()),
        false => Err(broken("it says that it refuses a write, and writes it")),
    }
}

async fn refuses(
    backend: &dyn Backend,
    place: &Locator,
    content: &'static str,
    condition: Condition,
    otherwise: &str,
) -> Result<()> {
    match backend.write(place, content.into(), condition).await {
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(broken(otherwise)),
    }
}

fn probe_place(unique: &str, name: &str) -> Locator {
    Locator::reserved(&format!(".haversack/probe/{unique}-{name}")).expect("one of ours")
}

fn broken(how: &str) -> Error {
    let message = format!("{how}: two devices would overwrite each other there");
    Error::at(ErrorKind::Unsupported, Operation::Open, "the storage", message)
}

//! Reads and writes the files of the state, which are framed ([`frame`]).

use haversack_store::{
    Backend, Bytes, Condition, Error as StoreError, ErrorKind, Locator, Operation, Result as StoreResult,
};
use serde::Serialize;

use crate::frame::{self, Framed};

/// The largest file of the state that we read.
const MAX_STATE_BYTES: usize = 256 * 1024 * 1024;

/// The format version of every file but the snapshot and the stat cache.
pub(crate) const VERSION: u32 = 1;

pub(super) fn place(name: &str) -> Locator {
    Locator::parse(name).expect("a plain name")
}

pub(super) fn damaged(what: &str, how: &str) -> StoreError {
    let message =
        format!("{how} is damaged: move the state away, and the next sync starts from the beginning");
    StoreError::at(ErrorKind::Internal, Operation::Read, format!("the state's {what}"), message)
}

pub(super) async fn read_frame<T: serde::de::DeserializeOwned>(
    backend: &dyn Backend,
    name: &str,
) -> StoreResult<Option<(T, Bytes)>> {
    let framed = read_version::<T>(backend, name, VERSION).await?;
    Ok(framed.map(|framed| (framed.heading, framed.contents)))
}

pub(super) async fn read_version<T: serde::de::DeserializeOwned>(
    backend: &dyn Backend,
    name: &str,
    newest_version: u32,
) -> StoreResult<Option<Framed<T>>> {
    let object = match backend.read(&place(name)).await {
        Ok(object) => object,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match frame::decode::<T>(name, newest_version, &object.bytes, MAX_STATE_BYTES) {
        Ok(framed) => Ok(Some(framed)),
        Err(error) if error.is_newer() => {
            let (place, message) =
                (format!("the state's {name}"), "update Haversack, or move the state away");
            Err(StoreError::at(ErrorKind::Internal, Operation::Read, place, message).with_source(error))
        }
        Err(error) => Err(damaged(name, "it").with_source(error)),
    }
}

pub(super) async fn write_frame(
    backend: &dyn Backend,
    name: &str,
    heading: &impl Serialize,
    contents: &[&[u8]],
) -> StoreResult<()> {
    let bytes = encode(name, VERSION, heading, contents)?;
    backend.write(&place(name), bytes, Condition::Any).await.map(drop)
}

pub(super) fn encode(
    name: &str,
    version: u32,
    heading: &impl Serialize,
    contents: &[&[u8]],
) -> StoreResult<Bytes> {
    frame::encode(name, version, heading, contents, MAX_STATE_BYTES)
        .map_err(|error| damaged(name, "the new content").with_source(error))
}

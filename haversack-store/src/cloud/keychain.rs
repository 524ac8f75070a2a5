//! The system's keychain: Keychain Services, the Credential Manager, or the Secret Service.
//!
//! A keychain may ask the user to unlock it. If there is no answer, we give up after [`PATIENCE`].

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use keyring::Entry;

use crate::error::{Error, ErrorKind, Operation, Result};

/// The time limit of the keychain, including a person who unlocks it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a secret.
pub fn secret(service: &str, account: &str) -> Result<String> {
    with(Operation::Read, service, account, |entry| entry.get_password())
}

/// Keeps a secret, in place of the one that was kept under these names.
pub fn save(service: &str, account: &str, secret: &str) -> Result<()> {
    let secret = secret.to_owned();
    with(Operation::Write, service, account, move |entry| entry.set_password(&secret))
}

/// Removes a secret; that there is none is fine.
pub fn remove(service: &str, account: &str) -> Result<()> {
    with(Operation::Delete, service, account, |entry| match entry.delete_credential() {
        Err(keyring::Error::NoEntry) => Ok(()),
        other => other,
    })
}

/// Uses an entry on a thread of its own: it may wait for a person, and must not meet a runtime it did not start.
fn with<T: Send + 'static>(
    operation: Operation,
    service: &str,
    account: &str,
    action: impl FnOnce(Entry) -> keyring::Result<T> + Send + 'static,
) -> Result<T> {
    let place = format!("{service}/{account} in the keychain");
    let (service, account) = (service.to_owned(), account.to_owned());
    let (send, receive) = sync_channel(1);
    let work = move || {
        // The caller may have gone.
        drop(send.send(Entry::new(&service, &account).and_then(action)));
    };
    let started = std::thread::Builder::new().name("haversack-keychain".to_owned()).spawn(work);
    drop(started.map_err(|error| Error::from_io(operation, &place, error))?);
    match receive.recv_timeout(PATIENCE) {
        Ok(outcome) => outcome.map_err(|error| told(operation, place, error)),
        Err(RecvTimeoutError::Timeout) => {
            let message = "the keychain did not answer; unlock it, then try again";
            Err(Error::at(ErrorKind::Unavailable, operation, place, message))
        }
        Err(RecvTimeoutError::Disconnected) => {
            Err(Error::at(ErrorKind::Internal, operation, place, "the keychain failed"))
        }
    }
}

/// Returns the error for what the keychain said; its own error may have the secret in it, so only words are kept.
fn told(operation: Operation, place: String, error: keyring::Error) -> Error {
    use keyring::Error as Keyring;
    let (kind, message) = match error {
        Keyring::NoEntry => (ErrorKind::NotFound, "nothing is there"),
        Keyring::NoDefaultStore => {
            (ErrorKind::Unsupported, "this session has no keychain; keep the secret in a 0600 file")
        }
        Keyring::NoStorageAccess(_) => (ErrorKind::Denied, "the keychain is locked, or refuses access"),
        Keyring::TooLong(..) => (ErrorKind::Invalid, "the keychain does not hold anything that long"),
        Keyring::BadEncoding(_) | Keyring::BadDataFormat(..) => {
            (ErrorKind::Invalid, "the stored value is not text")
        }
        _ => (ErrorKind::Unavailable, "the keychain did not do it"),
    };
    let told = Error::at(kind, operation, place, message);
    match (error, Entry::store_status()) {
        (Keyring::NoDefaultStore, Err(why)) => told.with_source(why.to_string()),
        (Keyring::NoStorageAccess(why) | Keyring::PlatformFailure(why), _) => told.with_source(why),
        _ => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_told() {
        for error in [
            keyring::Error::BadEncoding(b"hunter2".to_vec()),
            keyring::Error::BadDataFormat(b"hunter2".to_vec(), "hunter2".into()),
        ] {
            let told = format!("{:?}", told(Operation::Read, "a/b in the keychain".to_owned(), error));
            assert_eq!(told, "Invalid: could not read a/b in the keychain: the stored value is not text");
        }
    }
}

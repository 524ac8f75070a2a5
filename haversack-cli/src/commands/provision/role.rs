//! Waiting until a role works: the storage learns of it minutes after it was assigned.

use std::error::Error as StdError;
use std::time::Duration;

use haversack::store::{Error as StoreError, ErrorKind};

use crate::error::CommandError;

/// The first pause; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Why it does not work now.
pub(super) struct NotYet {
    why: Box<dyn StdError + Send + Sync>,
    /// True if waiting cannot help.
    is_hopeless: bool,
}

impl From<StoreError> for NotYet {
    fn from(error: StoreError) -> NotYet {
        NotYet { is_hopeless: error.kind() == ErrorKind::Invalid, why: error.into() }
    }
}

impl From<CommandError> for NotYet {
    fn from(error: CommandError) -> NotYet {
        let why = error.source.unwrap_or_else(|| error.message.into());
        NotYet { why, is_hopeless: false }
    }
}

/// Tries until it works, or the limit is reached.
pub(super) fn wait(
    limit: Duration,
    say: &mut dyn FnMut(&str),
    sleep: &mut dyn FnMut(Duration),
    try_once: &mut dyn FnMut() -> Result<(), NotYet>,
) -> Result<(), CommandError> {
    say("Trying the role; a new one works after some minutes …");
    let mut pauses = pauses(limit);
    loop {
        let NotYet { why, is_hopeless } = match try_once() {
            Ok(()) => return Ok(()),
            Err(not_yet) => not_yet,
        };
        match pauses.next() {
            Some(pause) if !is_hopeless => {
                say(&format!("Not yet; trying again in {} s …", pause.as_secs()));
                sleep(pause);
            }
            _ => {
                let message = format!("the role does not work, after {} seconds", limit.as_secs());
                let error = CommandError::user(message, "Wait some minutes");
                return Err(CommandError { source: Some(why), ..error });
            }
        }
    }
}

/// Returns pauses that grow, and that are as long as the limit together.
fn pauses(limit: Duration) -> impl Iterator<Item = Duration> {
    let mut left = limit;
    let mut next = FIRST_PAUSE;
    std::iter::from_fn(move || {
        let pause = next.min(left);
        left -= pause;
        next = (next * 2).min(LONGEST_PAUSE);
        (!pause.is_zero()).then_some(pause)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no(is_hopeless: bool) -> Result<(), NotYet> {
        Err(NotYet { why: "AuthorizationPermissionMismatch".into(), is_hopeless })
    }

    #[test]
    fn pauses_grow_and_end() {
        let seconds =
            |limit| -> Vec<u64> { pauses(Duration::from_secs(limit)).map(|pause| pause.as_secs()).collect() };
        assert!(seconds(0).is_empty());
        assert_eq!(seconds(10), [1, 2, 4, 3]);
        assert_eq!(seconds(600).iter().sum::<u64>(), 600);
        assert_eq!(seconds(600)[..7], [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn it_is_tried_until_it_works() {
        let mut slept = Vec::new();
        let mut tries = 0;
        let outcome = wait(
            Duration::from_secs(600),
            &mut |_| {},
            &mut |pause| slept.push(pause.as_secs()),
            &mut || {
                tries += 1;
                if tries == 4 { Ok(()) } else { no(false) }
            },
        );
        assert!(outcome.is_ok());
        assert_eq!(slept, [1, 2, 4]);
    }

    #[test]
    fn it_is_given_up_and_said_why() {
        let mut waited = Duration::ZERO;
        let limit = Duration::from_secs(600);
        let outcome = wait(limit, &mut |_| {}, &mut |pause| waited += pause, &mut || no(false));
        let error = outcome.expect_err("it never works");
        assert_eq!(waited, limit);
        assert!(error.message.contains("600 seconds"), "{error:?}");
        assert_eq!(error.source.expect("why").to_string(), "AuthorizationPermissionMismatch");
        let mut waited = Duration::ZERO;
        assert!(wait(limit, &mut |_| {}, &mut |pause| waited += pause, &mut || no(true)).is_err());
        assert_eq!(waited, Duration::ZERO);
    }
}

//! Devices that share one log, with everything going wrong that can: the ground on which sync is tested.
//!
//! It runs the real engine. One seed decides what every device, link and user does and when; the same seed does the same again.
//! Devices run as futures that are polled one effect at a time, and die by being dropped between two effects.
//!
//! # What is modelled
//! - 1 to 4 devices with working files, state and a link to one remote; users and programs that add, remove and delete without any
//!   lock, also in the middle of a sync and while a device is down.
//! - Requests that are lost, answered and lost, delayed past later ones, repeated later; refusals; devices that are offline.
//! - Crashes between any two effects; a last line of the journal that is cut short.
//!
//! # How the oracle reads what happened
//! Every line is unique. A line that a user added must be there at the end, unless some device removed it that had it, or
//! deleted the file with it in it. A line that a device removed must not be there at the end. Two readings:
//! - *Edit wins*: if one device deletes a file and another changes it without having seen that, the file stays, whole: with it
//!   the lines that the deleting device had in it, and those it had removed before and not yet sent.
//! - What another device brought back by a change that it made before it saw a deletion counts as that change.

mod link;
mod oracle;
mod world;

pub use self::world::{Ended, Run, explain, run};

//! The storage where the devices of a store meet, as this home knows it.

pub(crate) mod address;
pub(crate) mod credential;
mod open;
mod record;
pub(crate) mod site;

pub(crate) use self::open::{Vault, is_vault, make, meeting, new_meeting, open, plain, vault};
pub(crate) use self::record::{Remote, checked_device_name, device_name, needs_a_yes, refuse_local};

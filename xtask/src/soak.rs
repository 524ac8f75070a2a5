//! The long versions of the tests that race, crash and attack.

use crate::run::{cargo, step};

pub(crate) fn run() -> Result<(), String> {
    let tests =
        ["test", "--release", "--package", "haversack-store", "--test", "it", "hostile", "--", "--nocapture"];
    step("soak", cargo(&tests).env("HAVERSACK_SOAK", "1"))
}

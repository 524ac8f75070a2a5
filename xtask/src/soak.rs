//! The long versions of the tests that race, crash and attack.

use crate::run::{cargo, step};

pub(crate) fn run() -> Result<(), String> {
    let tests =
        ["test", "--release", "--package", "haversack-store", "--test", "it", "hostile", "--", "--nocapture"];
    step("soak of the store", cargo(&tests).env("HAVERSACK_SOAK", "1"))?;
    let tests = [
        "test",
        "--release",
        "--package",
        "haversack-cli",
        "--test",
        "it",
        "thirty_two",
        "--",
        "--nocapture",
    ];
    step("soak of the verbs", cargo(&tests).env("HAVERSACK_SOAK", "1"))
}

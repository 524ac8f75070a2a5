//! The long versions of the tests that race, crash and attack.

use crate::run::{cargo, step};

/// How many texts every law of merging is tried on.
const MERGE_CASES: &str = "1000000";

pub(crate) fn run() -> Result<(), String> {
    let tests = [
        "test",
        "--release",
        "--package",
        "haversack-store",
        "--test",
        "it",
        "--",
        "hostile",
        "clouds::answers",
        "--nocapture",
    ];
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
    step("soak of the verbs", cargo(&tests).env("HAVERSACK_SOAK", "1"))?;
    let tests = ["test", "--release", "--package", "haversack-cli", "--test", "it", "random_machines"];
    step("soak of the machines", cargo(&tests).env("HAVERSACK_SOAK", "1"))?;
    let tests = ["test", "--release", "--package", "haversack-cli", "--test", "it", "--", "vault::"];
    step("soak of the folders", cargo(&tests).env("HAVERSACK_SOAK", "1"))?;
    let tests = [
        "test",
        "--release",
        "--package",
        "haversack-cli",
        "--test",
        "it",
        "--",
        "clouds::bad_line::every_change_is_in_the_log_once::gcs",
        "clouds::crowd",
        "clouds::five",
        "clouds::killed",
        "--nocapture",
    ];
    step("soak of the clouds", cargo(&tests).env("HAVERSACK_SOAK", "1"))?;
    let tests = ["test", "--release", "--package", "haversack", "--test", "it", "merge::laws"];
    step("soak of the merges", cargo(&tests).env("PROPTEST_CASES", MERGE_CASES))
}

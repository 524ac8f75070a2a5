//! The long versions of the tests that race, crash and attack.

use crate::run::{cargo, step};

/// The number of texts for each law of merging.
const MERGE_CASES: &str = "1000000";

/// Tests with a long version.
struct Soak {
    what: &'static str,
    package: &'static str,
    tests: &'static [&'static str],
    /// The variable that makes them long.
    by: (&'static str, &'static str),
}

const LONG: (&str, &str) = ("HAVERSACK_SOAK", "1");

const SOAKS: [Soak; 8] = [
    Soak { what: "the store", package: "haversack-store", tests: &["hostile", "clouds::answers"], by: LONG },
    Soak { what: "a year of use", package: "haversack", tests: &["tidy::year_of_use"], by: LONG },
    Soak { what: "the verbs", package: "haversack-cli", tests: &["thirty_two"], by: LONG },
    Soak { what: "the machines", package: "haversack-cli", tests: &["random_machines"], by: LONG },
    Soak { what: "the folders", package: "haversack-cli", tests: &["vault::", "skewed_folder::"], by: LONG },
    Soak { what: "Syncthing between two homes", package: "haversack-cli", tests: &["syncthing::"], by: LONG },
    Soak {
        what: "the clouds",
        package: "haversack-cli",
        tests: &[
            "clouds::bad_line::every_change_is_in_the_log_once::gcs",
            "clouds::crowd",
            "clouds::five",
            "clouds::killed",
        ],
        by: LONG,
    },
    Soak {
        what: "the merges",
        package: "haversack",
        tests: &["merge::laws"],
        by: ("PROPTEST_CASES", MERGE_CASES),
    },
];

pub(crate) fn run() -> Result<(), String> {
    for Soak { what, package, tests, by: (variable, value) } in SOAKS {
        let mut command = cargo(&["test", "--release", "--package", package, "--test", "it", "--"]);
        command.args(tests).arg("--nocapture").env(variable, value);
        step(&format!("soak of {what}"), &mut command)?;
    }
    Ok(())
}

//! The program of users, built alone, contains no planted mistake.
//!
//! The simulator switches on mistakes that the feature `planted` of `haversack` compiles in. A build of the whole workspace has the feature in every program, because
//! cargo unifies features; a build of `haversack-cli` alone must not have it.
//!
//! 1. [`check_features`] asks cargo which features `haversack` gets in such a build, on any system and with all features of `haversack-cli`. It builds nothing.
//! 2. [`check_program`] builds `haversack-cli` alone and looks for a text that every program with the feature holds. The program that the tests of the whole
//!    workspace left behind must hold the text; otherwise the check would find nothing anywhere. A feature does not depend on the profile, so the
//!    development profile proves the same as a release, and only our own crates are compiled again.

use std::fs;
use std::path::PathBuf;

use crate::run::{cargo, say, step};

/// The text in `haversack/src/planted.rs`.
const MARKER: &str = "haversack: this program can make planted mistakes";

/// Checks that `haversack-cli` alone is built without the feature, and that the simulator is built with it.
pub(crate) fn check_features() -> Result<(), String> {
    if !has_planted(&tree_with_features("haversack-sim")?) {
        return Err("cargo tree shows no feature `planted` for haversack-sim: this check would miss it for haversack-cli, too. Mend xtask/src/planted.rs.".to_owned());
    }
    if has_planted(&tree_with_features("haversack-cli")?) {
        return Err("haversack-cli alone is built with planted mistakes. Find the dependency that switches them on: cargo tree -p haversack-cli -e features -i haversack".to_owned());
    }
    say("── features: no planted mistake in haversack-cli\n");
    Ok(())
}

/// Builds `haversack-cli` alone and checks the program itself. The program of the whole workspace must be in place.
pub(crate) fn check_program() -> Result<(), String> {
    if !holds_marker()? {
        return Err(format!(
            "the program that was built with the whole workspace does not hold \"{MARKER}\", so this check would find no planted mistake. Put the text into haversack/src/planted.rs, where every program with the feature keeps it."
        ));
    }
    step("haversack alone", &mut cargo(&["build", "--quiet", "--package", "haversack-cli"]))?;
    if holds_marker()? {
        return Err("haversack-cli alone is built with planted mistakes: the program holds their marker. Find the dependency that switches them on: cargo tree -p haversack-cli -e features -i haversack".to_owned());
    }
    say("── program: no planted mistake in it\n");
    Ok(())
}

/// Returns the dependencies of a package, each line with its features.
fn tree_with_features(package: &str) -> Result<String, String> {
    let output = cargo(&["tree", "--package", package, "--all-features", "--target=all"])
        .args(["--edges=normal,build", "--prefix=none", "--format={p}|{f}", "--locked"])
        .output()
        .map_err(|error| format!("cargo tree did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns true if `haversack` has the feature in a tree.
fn has_planted(tree: &str) -> bool {
    let features = |line: &str| {
        let (package, features) = line.split_once('|')?;
        package.starts_with("haversack v").then(|| features.trim_end_matches(" (*)").to_owned())
    };
    tree.lines().filter_map(features).any(|features| features.split(',').any(|feature| feature == "planted"))
}

fn holds_marker() -> Result<bool, String> {
    let program = program()?;
    let bytes =
        fs::read(&program).map_err(|error| format!("{} cannot be read: {error}", program.display()))?;
    Ok(bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes()))
}

/// Returns the program `haversack`; this program and that one are built side by side.
fn program() -> Result<PathBuf, String> {
    let built = std::env::current_exe().map_err(|error| format!("this program is not found: {error}"))?;
    Ok(built.with_file_name(format!("haversack{}", std::env::consts::EXE_SUFFIX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::project;

    #[test]
    fn haversack_cli_alone_has_no_planted_mistakes() {
        if let Err(trouble) = check_features() {
            panic!("{trouble}");
        }
    }

    #[test]
    fn feature_is_found_in_a_tree() {
        let tree = |features: &str| {
            format!(
                "haversack-cli v0.1.0 (/p)|keychain\nhaversack v0.1.0 (/p)|cloud{features} (*)\nserde v1.0.1|planted\n"
            )
        };
        assert!(!has_planted(&tree("")));
        assert!(has_planted(&tree(",planted")));
    }

    #[test]
    fn marker_is_the_text_of_the_engine() {
        let source = fs::read_to_string(project().join("haversack/src/planted.rs")).expect("it is there");
        assert!(source.contains(&format!("{MARKER:?}")), "the marker of the engine differs");
    }
}

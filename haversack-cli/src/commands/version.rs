//! `haversack version`: the release, and the parts of this build.

use std::process::ExitCode;

use clap::Args;
use haversack::schema::NEWEST_VERSIONS;
use haversack::store::Registry;
use haversack_recall::NEWEST_INDEX;
use serde_json::{Value, json};

use crate::app::archive;
use crate::error::CommandError;
use crate::ui::Ui;

/// The version of this release.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Show the version
#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    /// Also show the target, the features, the storages and the formats of this build
    #[arg(long, short)]
    verbose: bool,

    /// Print JSON, with everything that --verbose shows
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_version(ui: &mut Ui, args: &VersionArgs) -> Result<ExitCode, CommandError> {
    let version = VERSION;
    let target = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let features = features();
    let registry = Registry::standard();
    let storages: Vec<&str> = registry.names().collect();
    if args.json {
        ui.json(
            &json!({ "version": version, "target": target, "features": features, "storages": storages, "schema": schema() }),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    ui.line(format!("haversack {version}"))?;
    if args.verbose {
        let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
        ui.line(format!("target: {target}"))?;
        ui.line(format!("features: {features}"))?;
        ui.line(format!("storages: {}", storages.join(", ")))?;
        let formats: Vec<_> = formats().map(|(name, version)| format!("{name} {version}")).collect();
        ui.line(format!("formats: {}", formats.join(", ")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the newest version of each format that this release reads.
pub(super) fn schema() -> Value {
    formats().map(|(name, version)| (name.to_owned(), json!(version))).collect()
}

/// Returns every format by name: those of the engine, then those that only the program has.
fn formats() -> impl Iterator<Item = (&'static str, i64)> {
    let of_the_engine = NEWEST_VERSIONS.iter().map(|(name, version)| (*name, i64::from(*version)));
    of_the_engine.chain([("archive", i64::from(archive::FORMAT)), ("index", NEWEST_INDEX)])
}

/// Returns the optional features that this build has.
fn features() -> Vec<&'static str> {
    let every = [("keychain", cfg!(feature = "keychain")), ("semantic", cfg!(feature = "semantic"))];
    every.into_iter().filter_map(|(name, is_built)| is_built.then_some(name)).collect()
}

//! `haversack version`: the release, and the parts of this build.

use std::process::ExitCode;

use clap::Args;
use haversack::schema::NEWEST_VERSIONS;
use haversack::store::Registry;
use serde_json::{Value, json};

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
    let features: &[&str] = if cfg!(feature = "keychain") { &["keychain"] } else { &[] };
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
        let formats = NEWEST_VERSIONS.iter().map(|(name, version)| format!("{name} {version}"));
        ui.line(format!("formats: {}", formats.collect::<Vec<_>>().join(", ")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the newest version of each format that this release reads.
pub(super) fn schema() -> Value {
    NEWEST_VERSIONS.iter().map(|(name, version)| ((*name).to_owned(), json!(version))).collect()
}

//! `haversack version`: the release, and the parts of this build.

use std::process::ExitCode;

use clap::Args;
use haversack::store::Registry;
use serde_json::json;

use crate::error::CommandError;
use crate::ui::Ui;

/// Show the version
#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    /// Also show the target, the features and the storages of this build
    #[arg(long, short)]
    verbose: bool,

    /// Print JSON, with everything that --verbose shows
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_version(ui: &mut Ui, args: &VersionArgs) -> Result<ExitCode, CommandError> {
    let version = env!("CARGO_PKG_VERSION");
    let target = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let features: &[&str] = if cfg!(feature = "keychain") { &["keychain"] } else { &[] };
    let registry = Registry::standard();
    let storages: Vec<&str> = registry.names().collect();
    if args.json {
        ui.json(
            &json!({ "version": version, "target": target, "features": features, "storages": storages }),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    ui.line(format!("haversack {version}"))?;
    if args.verbose {
        let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
        ui.line(format!("target: {target}"))?;
        ui.line(format!("features: {features}"))?;
        ui.line(format!("storages: {}", storages.join(", ")))?;
    }
    Ok(ExitCode::SUCCESS)
}

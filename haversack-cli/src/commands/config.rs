//! `haversack config`: what is set, where it is set, and what can be set.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use crate::error::CommandError;
use crate::settings::declarations::Value;
use crate::settings::files::{self, SettingsFile};
use crate::settings::layers::{Layer, known_key, said_for_file};
use crate::settings::reference::reference;
use crate::settings::{Resolved, flags, shown};
use crate::ui::Ui;

/// Manage settings
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

/// The subcommands for settings.
#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show every setting, its value and where it comes from
    List(ListArgs),
    /// Change a setting in the user file; comments and everything else in it stay
    Set(SetArgs),
    /// Take a setting out of the user file, so that its default holds again
    Unset(UnsetArgs),
    /// Print all settings as Markdown
    Reference(ReferenceArgs),
}

/// Show every setting, its value and where it comes from
#[derive(Debug, Args)]
struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Change a setting in the user file; comments and everything else in it stay
#[derive(Debug, Args)]
struct SetArgs {
    /// The setting, as `haversack config list` shows it
    key: String,

    /// Its new value
    #[arg(allow_hyphen_values = true)]
    value: String,
}

/// Take a setting out of the user file, so that its default holds again
#[derive(Debug, Args)]
struct UnsetArgs {
    /// The setting, as `haversack config list` shows it
    key: String,
}

/// Print all settings as Markdown
#[derive(Debug, Args)]
struct ReferenceArgs {}

pub(crate) fn cmd_config(
    ui: &mut Ui,
    resolved: &Resolved,
    args: &ConfigArgs,
) -> Result<ExitCode, CommandError> {
    match &args.command {
        ConfigCommand::List(args) => list(ui, resolved, args)?,
        ConfigCommand::Set(args) => set(ui, resolved, args)?,
        ConfigCommand::Unset(args) => unset(ui, resolved, args)?,
        ConfigCommand::Reference(ReferenceArgs {}) => ui.line(reference()?.trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(ui: &mut Ui, resolved: &Resolved, args: &ListArgs) -> Result<(), CommandError> {
    if args.json {
        return ui.json(&as_json(resolved));
    }
    let mut rows = vec![["setting", "value", "layer", "from"].map(str::to_owned).to_vec()];
    rows.extend(resolved.each().map(|(key, value, layer)| {
        vec![key.to_owned(), value.to_string(), layer.name().to_owned(), layer.place().unwrap_or_default()]
    }));
    ui.table(&rows)?;
    ui.note(format!("User file: {}", looked_for(&resolved.user_file, "")));
    ui.note(format!("Project file: {}", looked_for(&resolved.project_file, ", nor in a directory above")));
    Ok(())
}

fn set(ui: &mut Ui, resolved: &Resolved, args: &SetArgs) -> Result<(), CommandError> {
    let said = said_for_file(&args.key, &args.value, &Layer::Flag("haversack config set"))?;
    files::write_setting(&resolved.settings.home, said.key, &said.value)?;
    ui.note(format!("Set {} to {} in {}", said.key, said.value, shown(&resolved.user_file.path)));
    tell_of_winner(ui, resolved, said.key);
    Ok(())
}

fn unset(ui: &mut Ui, resolved: &Resolved, args: &UnsetArgs) -> Result<(), CommandError> {
    let file = shown(&resolved.user_file.path);
    let key = known_key(&args.key)?;
    if files::remove_setting(&resolved.settings.home, key)? {
        ui.note(format!("Removed {key} from {file}"));
    } else {
        ui.note(format!("{key} is not set in {file}: nothing was changed"));
    }
    tell_of_winner(ui, resolved, key);
    Ok(())
}

/// Says so if a layer above the user file sets the same setting.
fn tell_of_winner(ui: &mut Ui, resolved: &Resolved, key: &str) {
    let layer = resolved.layer(key);
    if matches!(layer, Layer::Project(_) | Layer::Environment(_) | Layer::Flag(_)) {
        ui.note(format!("{layer} sets {key} too, and wins here"));
    }
}

/// Returns where a file is, or would be; `elsewhere` says where else it was looked for.
fn looked_for(file: &SettingsFile, elsewhere: &str) -> String {
    let path = shown(&file.path);
    if file.text.is_some() { path } else { format!("{path} (not there{elsewhere})") }
}

fn as_json(resolved: &Resolved) -> Json {
    let settings: Vec<Json> = resolved
        .each()
        .map(|(key, value, layer)| {
            let value = match value {
                Value::Directory(path) => json!(shown(&path)),
                Value::Number(number) => json!(number),
                Value::Text(text) => json!(text),
                Value::Switch(is_on) => json!(is_on),
            };
            json!({ "key": key, "value": value, "layer": layer.name(), "from": layer.place() })
        })
        .collect();
    let file = |file: &SettingsFile| json!({ "path": shown(&file.path), "found": file.text.is_some() });
    json!({
        "settings": settings,
        "user_file": file(&resolved.user_file),
        "project_file": file(&resolved.project_file),
    })
}

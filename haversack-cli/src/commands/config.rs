//! `haversack config`: what is set, where it is set, and what can be set.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use crate::error::CommandError;
use crate::settings::declarations::Value;
use crate::settings::files::SettingsFile;
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

/// What to do with settings.
#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show every setting, its value and where it comes from
    List(ListArgs),
    /// Print what can be set, and how, as Markdown
    Reference(ReferenceArgs),
}

/// Show every setting, its value and where it comes from
#[derive(Debug, Args)]
struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Print what can be set, and how, as Markdown
#[derive(Debug, Args)]
struct ReferenceArgs {}

pub(crate) fn cmd_config(
    ui: &mut Ui,
    resolved: &Resolved,
    args: &ConfigArgs,
) -> Result<ExitCode, CommandError> {
    match &args.command {
        ConfigCommand::List(args) => list(ui, resolved, args)?,
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

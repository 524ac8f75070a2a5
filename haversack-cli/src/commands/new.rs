//! `haversack new`: a file of a kind, begun from its template.

use std::process::ExitCode;

use clap::Args;
use haversack::document::scalar;
use haversack::kind::{Kind, Pattern, stating};
use serde_json::json;

use super::create::told;
use crate::app::create;
use crate::error::CommandError;
use crate::home::kinds::{load, named};
use crate::settings::Settings;
use crate::ui::Ui;

/// Begin a memory of a kind, from its template
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The kind
    kind: String,

    /// Its name, or the whole path; for a kind with one file, it can be left out. In a checkout, a name belongs to that project
    name: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_new(ui: &mut Ui, settings: &Settings, args: &NewArgs) -> Result<ExitCode, CommandError> {
    let kinds = load(settings)?;
    let kind = named(&kinds, &args.kind)?;
    let Some(template) = &kind.template else {
        let message = format!("a memory of kind {} is not begun by hand", kind.name);
        return Err(CommandError::user(message, "See which are: haversack kinds"));
    };
    let place = create::place(settings, &path(settings, kind, args.name.as_deref())?)?;
    let locator = &place.locator;
    let stem = locator.name().rsplit_once('.').map_or(locator.name(), |(stem, _)| stem);
    let title = args.name.as_deref().filter(|name| !is_path(name)).unwrap_or(stem);
    let field = format!("name: {}", scalar(title));
    let text = template.trim_start_matches('\n').replace("name: {name}", &field).replace("{name}", title);
    let text = stating(&kinds, locator, text);
    let created = create::create(settings, &place, text.into_bytes())?;
    if args.json {
        ui.json(&json!({ "path": locator.as_str(), "kind": kind.name, "version": created.version }))?;
    } else {
        ui.note(told(locator, &created));
    }
    match created.is_indexed {
        true => super::tell_index_overflow(ui, settings, locator)?,
        false => super::tell_overflow(ui, settings, locator)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn is_path(name: &str) -> bool {
    name.contains('/') || name.contains('.')
}

/// Returns where a memory of a kind goes.
fn path(settings: &Settings, kind: &Kind, name: Option<&str>) -> Result<String, CommandError> {
    let only = kind.names.iter().find(|pattern| pattern.is_name());
    match (name, only) {
        (Some(path), _) if is_path(path) => Ok(path.to_owned()),
        // The one file of such a kind belongs to no project.
        (_, Some(only)) => Ok(format!("/memories/{only}")),
        (Some(name), None) => {
            let name = name.trim().replace(char::is_whitespace, "_").to_lowercase();
            let filled = kind.names.iter().find_map(|pattern: &Pattern| pattern.filled(&name));
            Ok(filled.unwrap_or_else(|| format!("{name}.md")))
        }
        // A digest without a name is today's.
        (None, None) if kind.name == "session_digest" => {
            path(settings, kind, Some(&settings.today().to_string()))
        }
        (None, None) => {
            let message = format!("a memory of kind {} needs a name", kind.name);
            Err(CommandError::user(message, format!("haversack new {} NAME", kind.name)))
        }
    }
}

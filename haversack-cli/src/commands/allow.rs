//! `haversack allow`: lets something be sent that looks like a secret.

use std::process::ExitCode;

use clap::Args;
use haversack::clock::Clock;
use haversack::secrets::{Finding, Fingerprint, find};
use haversack::store::{Bytes, Locator, block_on};
use haversack_system::SystemClock;
use serde_json::json;

use crate::error::CommandError;
use crate::home::allowlist::{self, Allowed};
use crate::home::store::open_to_look;
use crate::projects::names::locate;
use crate::remote::Remote;
use crate::settings::Settings;
use crate::ui::Ui;
use crate::ui::moments::counted;
use crate::ui::paths::quoted;

/// Let a line be sent that looks like a secret
///
/// Haversack stores a fingerprint of the secret on this machine. The secret stays allowed if it moves to another line or file. It does not allow
/// other secrets. Once sent, the line is on your other machines.
#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// The file and the line in it, as `status` shows them
    #[arg(value_name = "PATH:LINE", required_unless_present_any = ["list", "remove"])]
    places: Vec<String>,

    /// List the allowed secrets
    #[arg(long, conflicts_with_all = ["places", "remove"])]
    list: bool,

    /// Allow something no longer
    #[arg(long, value_name = "FINGERPRINT", conflicts_with = "places")]
    remove: Option<Fingerprint>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_allow(
    ui: &mut Ui,
    settings: &Settings,
    args: &AllowArgs,
) -> Result<ExitCode, CommandError> {
    match args.remove {
        Some(fingerprint) => remove(ui, settings, fingerprint)?,
        None if args.list => list(ui, settings, args.json)?,
        None => add(ui, settings, &args.places, args.json)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// All places are looked at before anything is allowed.
fn add(ui: &mut Ui, settings: &Settings, places: &[String], as_json: bool) -> Result<(), CommandError> {
    let mut all = allowlist::of(settings)?;
    let time = SystemClock.now();
    let mut new = Vec::new();
    for place in places {
        let (locator, line) = parse(settings, place)?;
        let found = find(&read(settings, &locator)?);
        let on_the_line: Vec<&Finding> = found.iter().filter(|finding| finding.line == line).collect();
        if on_the_line.is_empty() {
            return Err(nothing_there(&locator, line, &found));
        }
        for finding in on_the_line {
            let (fingerprint, rule, path) =
                (finding.fingerprint, finding.rule.id.to_owned(), locator.to_string());
            new.push((line, Allowed { fingerprint, rule, path, time }));
            if !as_json {
                ui.note(format!("{locator}:{line} may be sent: {} ({})", finding.rule.name, finding.rule.id));
            }
        }
    }
    for (_, allowed) in &new {
        if !all.iter().any(|other| other.fingerprint == allowed.fingerprint) {
            all.push(allowed.clone());
        }
    }
    allowlist::save(settings, all)?;
    if as_json {
        let each = new.iter().map(|(line, allowed)| {
            json!({ "path": allowed.path, "line": line, "rule": allowed.rule, "fingerprint": allowed.fingerprint.to_string() })
        });
        return ui.json(&json!({ "allowed": each.collect::<Vec<_>>() }));
    }
    match Remote::of(settings)? {
        Some(_) => ui.note("The next sync sends it: haversack sync"),
        None => ui.note("There is no remote yet. Name one: haversack remote add URL"),
    }
    Ok(())
}

/// Takes a place apart.
fn parse(settings: &Settings, place: &str) -> Result<(Locator, usize), CommandError> {
    let parts = place.rsplit_once(':').and_then(|(path, line)| Some((path, line.parse().ok()?)));
    match parts {
        Some((path, line)) if line > 0 => Ok((locate(settings, path)?, line)),
        _ => {
            let locator = locate(settings, place.rsplit_once(':').map_or(place, |(path, _)| path))?;
            let found = read(settings, &locator).map(|content| find(&content)).unwrap_or_default();
            Err(CommandError::user(
                format!("\"{place}\" is not a file and a line"),
                match found.is_empty() {
                    true => format!("Name one: haversack allow {}", quoted(&format!("{locator}:LINE"))),
                    false => hint(&locator, &found),
                },
            ))
        }
    }
}

fn read(settings: &Settings, locator: &Locator) -> Result<Bytes, CommandError> {
    let memory = open_to_look(settings)?;
    Ok(block_on(memory.files().read(locator))?.bytes)
}

fn nothing_there(locator: &Locator, line: usize, found: &[Finding]) -> CommandError {
    CommandError::user(
        format!("nothing in line {line} of {locator} looks like a secret"),
        match found.is_empty() {
            true => "No other line of this file does either. See why a file is held back: haversack status"
                .to_owned(),
            false => hint(locator, found),
        },
    )
}

/// The most lines in a hint.
const MAX_NAMED: usize = 5;

/// Names the lines that could have been meant.
fn hint(locator: &Locator, found: &[Finding]) -> String {
    let mut lines: Vec<usize> = found.iter().map(|finding| finding.line).collect();
    lines.dedup();
    let places: Vec<String> =
        lines.iter().take(MAX_NAMED).map(|line| quoted(&format!("{locator}:{line}"))).collect();
    let more = match lines.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" ({} more)", counted(more, "line")),
    };
    format!("These lines look like secrets. If they may be sent: haversack allow {}{more}", places.join(" "))
}

fn list(ui: &mut Ui, settings: &Settings, as_json: bool) -> Result<(), CommandError> {
    let all = allowlist::of(settings)?;
    if as_json {
        let each = all.iter().map(|allowed| {
            let (fingerprint, time) = (allowed.fingerprint.to_string(), allowed.time.to_string());
            json!({ "fingerprint": fingerprint, "rule": allowed.rule, "path": allowed.path, "time": time })
        });
        return ui.json(&json!({ "allowed": each.collect::<Vec<_>>() }));
    }
    if all.is_empty() {
        ui.note("Nothing that looks like a secret is allowed. Allow a line: haversack allow PATH:LINE");
        return Ok(());
    }
    for Allowed { fingerprint, rule, path, .. } in &all {
        ui.line(format!("{fingerprint}  {rule}  {path}"))?;
    }
    Ok(())
}

fn remove(ui: &mut Ui, settings: &Settings, fingerprint: Fingerprint) -> Result<(), CommandError> {
    let mut all = allowlist::of(settings)?;
    let Some(index) = all.iter().position(|allowed| allowed.fingerprint == fingerprint) else {
        return Err(CommandError::user(
            format!("{fingerprint} is not allowed"),
            "List the allowed lines: haversack allow --list",
        ));
    };
    let allowed = all.remove(index);
    allowlist::save(settings, all)?;
    ui.note(format!(
        "No longer allowed: the line in {} ({}). Content that was sent before stays in the remote",
        allowed.path, allowed.rule
    ));
    Ok(())
}

//! `haversack kinds`: which sorts of memory there are, and what is particular to each.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use haversack::kind::Kind;
use serde_json::{Value as Json, json};

use crate::error::CommandError;
use crate::home::kinds::{load, named};
use crate::settings::{Settings, flags};
use crate::ui::Ui;

/// Show the kinds of memory: how each is recognised, merged and loaded
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct KindsArgs {
    #[command(subcommand)]
    command: Option<KindsCommand>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The subcommands for kinds.
#[derive(Debug, Subcommand)]
enum KindsCommand {
    /// Show everything about one kind
    Show(ShowArgs),
}

/// Show everything about one kind
#[derive(Debug, Args)]
struct ShowArgs {
    /// The kind
    kind: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_kinds(
    ui: &mut Ui,
    settings: &Settings,
    args: &KindsArgs,
) -> Result<ExitCode, CommandError> {
    let kinds = load(settings)?;
    match &args.command {
        None if args.json => ui.json(&kinds.iter().map(as_json).collect())?,
        None => {
            let mut rows = vec![["kind", "merges by", "loaded", "about"].map(str::to_owned).to_vec()];
            rows.extend(kinds.iter().map(|kind| {
                let Kind { name, rule, load, about, .. } = kind;
                vec![name.clone(), rule.name().to_owned(), load.name().to_owned(), about.clone()]
            }));
            ui.table(&rows)?;
        }
        Some(KindsCommand::Show(show)) => {
            let kind = named(&kinds, &show.kind)?;
            if args.json || show.json {
                ui.json(&as_json(kind))?;
            } else {
                write(ui, kind)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write(ui: &mut Ui, kind: &Kind) -> Result<(), CommandError> {
    let names: Vec<&str> = kind.names.iter().map(|name| name.as_str()).collect();
    let keep = match (&kind.keep.days, &kind.keep.items) {
        (Some(days), _) => format!("{days} days, then {}", kind.keep.then.name()),
        (None, Some(items)) => format!("the last {items}, then {}", kind.keep.then.name()),
        (None, None) => "for ever".to_owned(),
    };
    let section = kind.keep.section.as_ref().map(|section| format!(" (below {section})")).unwrap_or_default();
    for (label, text) in [
        ("kind", kind.name.clone()),
        ("about", kind.about.clone()),
        ("file names", names.join(", ")),
        ("types", kind.types.join(", ")),
        ("fields", kind.required.join(", ")),
        ("may have", kind.optional.join(", ")),
        ("merges by", kind.rule.name().to_owned()),
        ("tier", kind.tier.to_string()),
        ("loaded", kind.load.name().to_owned()),
        ("written", kind.write.clone()),
        ("read", kind.read.clone()),
        ("kept", format!("{keep}{section}")),
    ] {
        if !text.is_empty() {
            ui.line(format!("{label:<10}  {text}"))?;
        }
    }
    if let Some(template) = &kind.template {
        ui.line(format!("template\n\n{}", template.trim_end()))?;
    }
    Ok(())
}

fn as_json(kind: &Kind) -> Json {
    let names: Vec<&str> = kind.names.iter().map(|name| name.as_str()).collect();
    json!({
        "kind": kind.name,
        "about": kind.about,
        "names": names,
        "types": kind.types,
        "required": kind.required,
        "optional": kind.optional,
        "rule": kind.rule.name(),
        "tier": kind.tier.to_string(),
        "load": kind.load.name(),
        "write": kind.write,
        "read": kind.read,
        "keep_days": kind.keep.days,
        "keep_items": kind.keep.items,
        "section": kind.keep.section,
        "then": kind.keep.then.name(),
        "template": kind.template,
    })
}

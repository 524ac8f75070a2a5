//! `haversack migrate`: what is in directories and storages already, brought to another one.
//!
//! The pairs are `SOURCE[=PREFIX]`, the target comes last. Nothing is done before the person has seen how much it is and said yes. What
//! may be a source or a target, and what is refused, is in [`endpoint`]; the copying itself is [`haversack::migrate`].

mod endpoint;

use std::process::ExitCode;

use clap::Args;
use haversack::clock::Clock;
use haversack::ids::Ids;
use haversack::migrate::{
    Context, Indexed, Plan, Report, Skipped, Source, Step, Why, apply, survey, write_manifest,
};
use haversack::store::{Backend, block_on, cloud};
use haversack::sync::Gate;
use haversack_system::{Backoff, RandomIds, SystemClock};
use serde_json::{Value, json};

use self::endpoint::{Endpoint, Opened};
use crate::error::CommandError;
use crate::home::gate::NothingPrivate;
use crate::remote;
use crate::settings::{Settings, shown};
use crate::ui::moments::counted;
use crate::ui::paths::quoted;
use crate::ui::{Answer, Ui};

/// The most skipped files that are listed one by one.
const MAX_TOLD: usize = 20;

/// The exit code for what is not all there.
const INCOMPLETE: u8 = 2;

/// Copy existing files of directories and storages to another storage
///
/// Shows the files that it would copy, and asks. It only reads the sources, replaces nothing in the target, and reads every copy back to
/// compare it. Run it again to continue.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// The sources: a directory, file:///a/directory, s3://BUCKET/PREFIX, az://CONTAINER/PREFIX, gs://BUCKET/PREFIX,
    /// https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX or anthropic:STORE, a memory store; the part after the last = is the directory in
    /// the target
    #[arg(required = true, value_name = "SOURCE[=PREFIX]")]
    sources: Vec<String>,

    /// The target, in the same form
    #[arg(value_name = "TO")]
    to: String,

    /// Show every file with its size, and copy nothing
    #[arg(long)]
    dry_run: bool,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// Print JSON; asks nothing, and does nothing without --yes
    #[arg(long)]
    json: bool,

    /// The source of the credential for the sources: profile:NAME (S3), az (Azure), google:FILE, instance (the machine's own), none, or
    /// file, the one that the home keeps; this shell's variables if left out
    #[arg(long, value_name = "SOURCE")]
    from_credential: Option<String>,

    /// The source of the credential for the target
    #[arg(long, value_name = "SOURCE")]
    to_credential: Option<String>,
}

pub(crate) fn cmd_migrate(
    ui: &mut Ui,
    settings: &Settings,
    args: &MigrateArgs,
) -> Result<ExitCode, CommandError> {
    let from_credential = args.from_credential.as_deref();
    let mut places = Vec::new();
    for source in &args.sources {
        places.push(Endpoint::with_prefix(settings, source, from_credential)?);
    }
    let target = Endpoint::parse(settings, &args.to, args.to_credential.as_deref())?;
    let is_own_memory = target.is_own_memory(settings)?;
    let is_seen_elsewhere = !is_own_memory && target.is_seen_elsewhere(settings);
    if is_seen_elsewhere || places.iter().any(|(endpoint, _)| endpoint.is_remote()) {
        remote::refuse_local(settings)?;
    }
    endpoint::refuse(settings, places.iter().map(|(endpoint, _)| endpoint), &target)?;

    let missing: Vec<&str> = places
        .iter()
        .filter(|(endpoint, _)| endpoint.is_missing())
        .map(|(endpoint, _)| endpoint.text())
        .collect();
    let bar = ui.progress();
    let patience = Backoff::new();
    let private = NothingPrivate::of(settings)?.for_copies();
    let gate = (!is_own_memory).then_some(&private as &dyn Gate);
    let context = Context { gate, patience: &patience, progress: &bar };
    let surveyed = (|| {
        let mut sources = Vec::new();
        let mut unserved = Vec::new();
        for (number, (endpoint, prefix)) in places.iter().enumerate() {
            let Opened { backend, odd } = endpoint.open_source(settings, &bar)?;
            sources.push(Source { backend, prefix: prefix.clone() });
            unserved.extend(odd.into_iter().map(|(name, why)| Skipped { source: number, name, why }));
        }
        let there = target.look(settings)?;
        let mut plan = block_on(survey(&sources, &*there, context)).map_err(endpoint::failed)?;
        plan.left.splice(0..0, unserved);
        Ok::<_, CommandError>((sources, plan))
    })();
    bar.end();
    let (sources, plan) = surveyed?;

    if args.dry_run || args.json && !args.yes {
        tell_missing(ui, &missing, args);
        show(ui, settings, &plan, &missing, args)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.json {
        tell_missing(ui, &missing, args);
        ui.note(summary(&plan));
        tell_left(ui, settings, &plan.left);
    }
    if !plan.copies.is_empty() && !args.yes {
        let is_upload = target.is_remote() && !places.iter().any(|(endpoint, _)| endpoint.is_remote());
        let what = if is_upload { "Upload existing local memory" } else { "Copy existing memory" };
        if ui.ask(&format!("{what} (~{} KB)?", kilobytes(plan.bytes())))? == Answer::No {
            ui.note("Nothing was copied.");
            return Ok(ExitCode::from(1));
        }
    }
    let told = plan.left.len();
    let report = if plan.copies.is_empty() && plan.compares.is_empty() {
        Report { left: plan.left, ..Report::default() }
    } else {
        let backend = target.open(settings)?;
        if target.is_cloud() && !plan.copies.is_empty() {
            let unique: String = RandomIds.next().iter().map(|byte| format!("{byte:02x}")).collect();
            block_on(cloud::probe(&*backend, &unique)).map_err(endpoint::failed)?;
        }
        let bar = ui.progress();
        let report = block_on(apply(&sources, &*backend, plan, Context { progress: &bar, ..context }));
        bar.end();
        if target.is_remote() && !target.is_memory_store() {
            index(ui, &*backend, context);
        }
        report
    };
    finish(ui, settings, &report, &missing, told, args)
}

/// Writes the manifest of a plain storage. A migration is complete without it, so a failure is only told.
fn index(ui: &mut Ui, target: &dyn Backend, context: Context<'_>) {
    match block_on(write_manifest(target, SystemClock.now(), context)) {
        Ok(Indexed::NotOurs) => {
            ui.note("manifest.json in the target is not Haversack's: we left it alone and wrote no index.");
        }
        Ok(_) => {}
        Err(error) => {
            ui.note(format!("The index of the target was not written: {error}. Run the same command again."));
        }
    }
}

/// Names the source directories that are not there.
fn tell_missing(ui: &mut Ui, missing: &[&str], args: &MigrateArgs) {
    for source in missing.iter().filter(|_| !args.json) {
        ui.note(format!("There is no directory {source}: skipped."));
    }
}

/// Tells what was done, and what was not.
fn finish(
    ui: &mut Ui,
    settings: &Settings,
    report: &Report,
    missing: &[&str],
    told: usize,
    args: &MigrateArgs,
) -> Result<ExitCode, CommandError> {
    if args.json {
        ui.json(&json!({
            "copied": report.copied.iter().map(|locator| locator.as_str()).collect::<Vec<_>>(),
            "bytes_copied": report.bytes_copied,
            "skipped": report.skipped,
            "missing_sources": missing,
            "left": report.left.iter().map(|left| left_to_json(left, args)).collect::<Vec<_>>(),
            "is_complete": report.is_complete(),
        }))?;
    } else {
        ui.line(headline(report, missing.len()))?;
        tell_left(ui, settings, report.left.get(told..).unwrap_or_default());
    }
    if report.is_complete() {
        return Ok(ExitCode::SUCCESS);
    }
    let left = report.left.len();
    ui.note(format!(
        "INCOMPLETE: {} {} not copied. Run the same command again: it continues with the missing files.",
        counted(left, "file"),
        if left == 1 { "was" } else { "were" }
    ));
    Ok(ExitCode::from(INCOMPLETE))
}

fn headline(report: &Report, missing: usize) -> String {
    let copied =
        format!("Copied {} ({} KB)", counted(report.copied.len(), "file"), kilobytes(report.bytes_copied));
    let copied = match report.skipped {
        0 => format!("{copied}."),
        1 => format!("{copied}, skipped 1 that is there already."),
        skipped => format!("{copied}, skipped {skipped} that are there already."),
    };
    match missing {
        0 => copied,
        1 => format!("{copied} 1 source is not there."),
        missing => format!("{copied} {missing} sources are not there."),
    }
}

/// Returns what would be done, in one line.
fn summary(plan: &Plan) -> String {
    let mut parts =
        vec![format!("{} to copy ({} KB)", counted(plan.copies.len(), "file"), kilobytes(plan.bytes()))];
    if !plan.compares.is_empty() {
        parts.push(format!("{} there already by name and size, to be compared", plan.compares.len()));
    }
    if !plan.left.is_empty() {
        parts.push(format!("{} to be left behind", plan.left.len()));
    }
    format!("{}.", parts.join(", "))
}

/// Tells what is left behind and why, the first of them if they are very many.
fn tell_left(ui: &mut Ui, settings: &Settings, left: &[Skipped]) {
    for Skipped { name, why, .. } in left.iter().take(MAX_TOLD) {
        ui.note(format!("  {name}: {why}"));
    }
    if left.len() > MAX_TOLD {
        ui.note(format!("  … and {} more: --json has them all", left.len() - MAX_TOLD));
    }
    if let Some(cure) = cure(settings, left) {
        ui.note(cure);
    }
}

/// Says what to do about files that the gate held back, if there are any.
fn cure(settings: &Settings, left: &[Skipped]) -> Option<String> {
    left.iter().any(|left| matches!(left.why, Why::Held(_))).then(|| {
        format!(
            "  → Files that are held back look like they hold a secret or are settings: take the secret out, then run the same command again. If one may be copied: haversack migrate SOURCE {}, haversack allow PATH:LINE, then the same command",
            quoted(&shown(&settings.memory()))
        )
    })
}

/// Shows a plan, every file of it.
fn show(
    ui: &mut Ui,
    settings: &Settings,
    plan: &Plan,
    missing: &[&str],
    args: &MigrateArgs,
) -> Result<(), CommandError> {
    if args.json {
        let step = |Step { source, from, to, size_bytes }: &Step| json!({ "source": args.sources[*source], "from": from.as_str(), "path": to.as_str(), "size_bytes": size_bytes });
        return ui.json(&json!({
            "copy": plan.copies.iter().map(step).collect::<Vec<_>>(),
            "bytes_to_copy": plan.bytes(),
            "missing_sources": missing,
            "compare": plan.compares.iter().map(step).collect::<Vec<_>>(),
            "left": plan.left.iter().map(|left| left_to_json(left, args)).collect::<Vec<_>>(),
        }));
    }
    let size = |step: &Step| format!("{} KB", kilobytes(step.size_bytes));
    let copies = plan.copies.iter().map(|step| ["copy".to_owned(), size(step), step.to.to_string()]);
    let compares = plan.compares.iter().map(|step| ["compare".to_owned(), size(step), step.to.to_string()]);
    let left = plan
        .left
        .iter()
        .map(|Skipped { name, why, .. }| ["leave".to_owned(), String::new(), format!("{name}: {why}")]);
    let rows: Vec<Vec<String>> = copies.chain(compares).chain(left).map(Vec::from).collect();
    ui.table(&rows)?;
    if let Some(cure) = cure(settings, &plan.left) {
        ui.note(cure);
    }
    ui.note(format!("{} Nothing was copied: this is a dry run.", summary(plan)));
    Ok(())
}

fn left_to_json(Skipped { source, name, why }: &Skipped, args: &MigrateArgs) -> Value {
    let reason = match why {
        Why::Held(_) => "held",
        Why::Different => "different",
        Why::Name(_) => "name",
        Why::TooLarge { .. } => "too-large",
        _ => "failed",
    };
    json!({ "source": args.sources[*source], "path": name, "reason": reason, "why": why.to_string() })
}

/// Returns a size as people read it: rounded, and something if there is something.
fn kilobytes(bytes: u64) -> u64 {
    let rounded = (bytes + 512) / 1024;
    if bytes > 0 { rounded.max(1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_and_never_nothing() {
        let cases = [(0, 0), (1, 1), (1535, 1), (1536, 2), (312 * 1024, 312)];
        for (bytes, shown) in cases {
            assert_eq!(kilobytes(bytes), shown, "{bytes}");
        }
    }

    #[test]
    fn headlines() {
        let report = |copied: usize, bytes_copied, skipped| Report {
            copied: vec![haversack::store::Locator::root(); copied],
            bytes_copied,
            skipped,
            left: Vec::new(),
        };
        for (report, text) in [
            (report(41, 312 * 1024, 3), "Copied 41 files (312 KB), skipped 3 that are there already."),
            (report(1, 10, 0), "Copied 1 file (1 KB)."),
            (report(0, 0, 1), "Copied 0 files (0 KB), skipped 1 that is there already."),
        ] {
            let missing = headline(&report, 2);
            assert_eq!(missing, format!("{text} 2 sources are not there."));
            assert_eq!(headline(&report, 0), text);
        }
    }
}

//! `haversack doctor`: checks everything that memory depends on.

use std::process::ExitCode;

use clap::Args;
use haversack::check::{Finding, Verdict};
use serde_json::json;

use crate::app::doctor::{examine, wrong_settings};
use crate::app::{graph, recall};
use crate::error::CommandError;
use crate::settings::Resolved;
use crate::ui::Ui;

/// Check everything that memory depends on: the files, the remote, the hooks; fails only if something does not work
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Say so if no agent is on this machine; the hooks of every agent are run without this, too
    #[arg(long)]
    hooks: bool,

    /// Repair what can be repaired without losing anything: the files of the graph, and the search index
    #[arg(long)]
    fix: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl DoctorArgs {
    /// Returns true if the command may change the memory.
    pub(super) fn fixes(&self) -> bool {
        self.fix
    }
}

pub(crate) fn cmd_doctor(
    ui: &mut Ui,
    resolved: &Resolved,
    args: &DoctorArgs,
) -> Result<ExitCode, CommandError> {
    if args.fix {
        for repaired in graph::fix(&resolved.settings)? {
            ui.note(format!("Repaired: {repaired}"));
        }
        if recall::rebuild_index(&resolved.settings)? {
            ui.note("Repaired: the search index");
        }
    }
    let mut examined = examine(resolved);
    if args.hooks && !examined.has_agent {
        examined.findings.push(Finding::ok("hooks", "no agent is on this machine"));
    }
    report(ui, &examined.findings, args)
}

/// Reports settings that are wrong; without them nothing else can be examined.
pub(crate) fn report_settings(
    ui: &mut Ui,
    error: &CommandError,
    args: &DoctorArgs,
) -> Result<ExitCode, CommandError> {
    report(ui, &[wrong_settings(error)], args)
}

fn report(ui: &mut Ui, findings: &[Finding], args: &DoctorArgs) -> Result<ExitCode, CommandError> {
    let worst = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Ok);
    if args.json {
        let findings: Vec<_> = findings
            .iter()
            .map(|Finding { subject, verdict, detail, cure }| {
                json!({ "check": subject, "verdict": verdict.to_string(), "detail": detail, "cure": cure })
            })
            .collect();
        let report = json!({ "verdict": worst.to_string(), "checks": findings });
        ui.json(&report)?;
    } else {
        ui.page();
        ui.findings(findings)?;
    }
    Ok(if worst == Verdict::Fail { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

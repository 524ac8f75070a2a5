//! `haversack backends`: where memory can live, and what each place promises.

use std::process::ExitCode;

use clap::Args;
use haversack::store::{Capabilities, Registry};
use serde_json::{Map, Value, json};

use crate::error::CommandError;
use crate::ui::Ui;

/// Show the storages that this program can use, and their guarantees
#[derive(Debug, Args)]
pub(crate) struct BackendsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_backends(ui: &mut Ui, args: &BackendsArgs) -> Result<ExitCode, CommandError> {
    let registry = Registry::standard();
    if args.json {
        ui.json(&as_json(&registry))?;
    } else {
        let table = as_table(&registry);
        match ui.fits(&table) {
            true => ui.table(&table)?,
            false => ui.table(&as_list(&registry))?,
        }
        if registry.known().next().is_some() {
            ui.line("")?;
        }
        for (name, needs) in registry.known() {
            ui.line(format!("{name}: needs {needs}."))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn as_table(registry: &Registry) -> Vec<Vec<String>> {
    let names: Vec<&str> = registry.names().collect();
    let mut heading = vec![String::new()];
    heading.extend(names.iter().map(|name| (*name).to_owned()));
    let mut rows = vec![heading];
    for (capability, _) in Capabilities::default().each() {
        let mut row = vec![capability.to_owned()];
        for name in &names {
            let registered = registry.get(name).expect("the registry lists it");
            let declared = registered.capabilities.each().any(|(other, has)| other == capability && has);
            row.push(if declared { "yes" } else { "-" }.to_owned());
        }
        rows.push(row);
    }
    rows
}

/// Returns a row for each storage, for a terminal that is too narrow for a column for each.
fn as_list(registry: &Registry) -> Vec<Vec<String>> {
    let promises = |name: &str| {
        let capabilities = registry.get(name).expect("the registry lists it").capabilities;
        capabilities.each().filter(|(_, has)| *has).map(|(name, _)| name).collect::<Vec<_>>().join(", ")
    };
    registry.names().map(|name| vec![name.to_owned(), promises(name)]).collect()
}

fn as_json(registry: &Registry) -> Value {
    let registered: Map<String, Value> = registry
        .names()
        .map(|name| {
            let backend = registry.get(name).expect("the registry lists it");
            let capabilities: Map<String, Value> =
                backend.capabilities.each().map(|(name, has)| (name.to_owned(), has.into())).collect();
            (name.to_owned(), json!({ "capabilities": capabilities }))
        })
        .collect();
    let known: Map<String, Value> =
        registry.known().map(|(name, needs)| (name.to_owned(), json!({ "needs": needs }))).collect();
    json!({ "registered": registered, "not_in_this_build": known })
}

//! `haversack ontology`: the types of the graph's nodes and connections.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use haversack::graph::{Code, ConnectionType, Ontology};
use haversack::store::block_on;
use serde_json::json;

use crate::app::graph::{graph, graph_to_look};
use crate::error::CommandError;
use crate::settings::{Settings, flags};
use crate::ui::Ui;
use crate::ui::moments::counted;

/// Show and extend the types of nodes and connections, and check the graph against them
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct OntologyArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the types
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a node type; the first one makes the ontology
    AddNodeType {
        /// Its name
        name: String,
    },
    /// Add a connection type
    AddConnectionType {
        /// Its name
        name: String,
        /// The node types where it can begin
        #[arg(long, required = true, value_delimiter = ',', value_name = "TYPE,…")]
        from: Vec<String>,
        /// The node types where it can end
        #[arg(long, required = true, value_delimiter = ',', value_name = "TYPE,…")]
        to: Vec<String>,
        /// Properties that each such connection must have
        #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
        require: Vec<String>,
    },
    /// List nodes and connections that the types do not allow; fails if there are any
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl OntologyArgs {
    /// Returns true if the command changes the ontology.
    pub(super) fn writes(&self) -> bool {
        matches!(self.action, Action::AddNodeType { .. } | Action::AddConnectionType { .. })
    }
}

pub(crate) fn cmd_ontology(
    ui: &mut Ui,
    settings: &Settings,
    args: &OntologyArgs,
) -> Result<ExitCode, CommandError> {
    match &args.action {
        Action::Show { json } => show(ui, &block_on(graph_to_look(settings)?.ontology())?, *json)?,
        Action::AddNodeType { name } => {
            let graph = graph(settings)?;
            match block_on(graph.add_node_type(name)) {
                Err(error) if error.code == Code::OntologyNotFound => {
                    let first = Ontology { node_types: vec![name.clone()], ..Ontology::default() };
                    block_on(graph.create_ontology(&first))?;
                }
                added => added?,
            }
            ui.note(format!("Added the node type {name}"));
        }
        Action::AddConnectionType { name, from, to, require } => {
            let added = ConnectionType {
                name: name.clone(),
                from_types: from.clone(),
                to_types: to.clone(),
                required_properties: require.clone(),
            };
            block_on(graph(settings)?.add_connection_type(added))?;
            ui.note(format!("Added the connection type {name}"));
        }
        Action::Check { json } => {
            let violations = block_on(graph_to_look(settings)?.violations())?;
            if *json {
                ui.json(&json!({ "violations": violations }))?;
            } else {
                for violation in &violations {
                    ui.line(violation)?;
                }
                match violations.len() {
                    0 => ui.note("Every node and connection is of a type of the ontology."),
                    count => ui.note(format!("{}.", counted(count, "violation"))),
                }
            }
            return Ok(if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) });
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(ui: &mut Ui, ontology: &Ontology, as_json: bool) -> Result<(), CommandError> {
    if !as_json {
        return ui.bytes(ontology.to_yaml().as_bytes());
    }
    let connection_types = ontology.connection_types.iter().map(|known| {
        json!({
            "name": known.name,
            "from_types": known.from_types,
            "to_types": known.to_types,
            "required_properties": known.required_properties,
        })
    });
    ui.json(&json!({
        "node_types": ontology.node_types,
        "connection_types": connection_types.collect::<Vec<_>>(),
    }))
}

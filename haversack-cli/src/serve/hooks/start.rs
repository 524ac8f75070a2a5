//! The start of a session: binds the project, waits for other machines' memory, and gives the agent its context.

use std::path::Path;
use std::time::Instant;

use haversack::context::{self, Assembled, Index, Part};
use haversack::display::{lines, one_line};
use haversack::ids::{ContentHash, Timestamp};
use haversack::store::Locator;
use serde_json::{Value, json};

use super::input::Input;
use super::{Outcome, PULL_WAIT, directory_of, told};
use crate::agents::claude_code::ClaudeCode;
use crate::app::digest;
use crate::app::session::context_record::ContextRecord;
use crate::app::session::news::{self, CarryingNotice, Files, News};
use crate::app::session::{INDEX, Wanted, assembled};
use crate::background::requests::SyncRequest;
use crate::background::{self, Answer};
use crate::error::CommandError;
use crate::home::Home;
use crate::home::contact::Contact;
use crate::home::mounts;
use crate::projects::bind::{self, AskedBy, Bound};
use crate::projects::proof::Proof;
use crate::projects::registry::ProjectRegistry;
use crate::projects::{Barrier, Project, private};
use crate::remote::Remote;
use crate::settings::Settings;
use crate::settings::tilde;
use crate::ui::paths::quoted;

pub(crate) fn run(settings: &Settings, input: &Input) -> Result<Outcome, CommandError> {
    let claude = ClaudeCode::of(settings, input.transcript_path.as_deref());
    let Some((claude, directory)) = claude.zip(directory_of(settings, input)) else {
        return Ok(Outcome::quiet(
            "there is no home directory, and no variable names Claude Code's directory",
        ));
    };
    let deadline = Instant::now() + PULL_WAIT;
    let mut project = Project::of(settings, &claude, &ProjectRegistry::of(settings)?, &directory);
    let mut failed = None;
    if is_unknown(settings, &project)? {
        // Another machine may have carried this project since our last sync. Then the checkout needs a proof.
        let request = SyncRequest { session: input.session_id.clone(), ..SyncRequest::default() };
        failed = background::ask(settings, &request, PULL_WAIT)
            .ok()
            .filter(|answer| matches!(answer, Answer::Failed(_)));
        project = Project::of(settings, &claude, &ProjectRegistry::of(settings)?, &directory);
    }
    let label = project.label(settings);
    let memory = &project.memory.path;
    let index = || std::fs::read(memory.join(INDEX)).ok().map(|bytes| ContentHash::of(&bytes));
    let before = index();
    let mut notes = vec![label.clone()];
    notes.extend(failed.map(told));
    let bound = match is_unknown(settings, &project)? && Contact::of(settings).reached.is_none() {
        true => {
            notes.push("not bound before the first sync".to_owned());
            Bound::Local
        }
        // A directory that cannot be bound is still read.
        false => bind::bind(settings, &claude, &project, AskedBy::Nobody).unwrap_or_else(|error| {
            notes.push(error.message);
            Bound::Local
        }),
    };
    let prefix = project.prefix().filter(|_| match bound {
        Bound::Already | Bound::New | Bound::Moved { .. } => true,
        Bound::Local | Bound::NeedsConsent(_) | Bound::Unclear { .. } => false,
    });
    let mut files = Files::Unknown;
    if let Some(prefix) = &prefix {
        let request = SyncRequest {
            prefix: Some(prefix.clone()),
            session: input.session_id.clone(),
            files: Vec::new(),
        };
        let answer = background::ask(settings, &request, deadline.duration_since(Instant::now()))
            .unwrap_or_else(|error| {
                notes.push(error.message);
                Answer::NotAsked
            });
        if answer == Answer::Done {
            files = Files::Scanned;
        }
        notes.push(told(answer));
    }
    // Opened after the sync, and once for all parts: each scan of the files costs the user time.
    let home = prefix.as_ref().and_then(|_| Home::open(settings).ok());
    let news = match prefix.as_ref().zip(home.as_ref()) {
        Some((prefix, home)) => News::of(settings, home, prefix).unwrap_or_default(),
        None => News::default(),
    };
    let now = settings.now();
    let source = input.source.as_deref().unwrap_or("startup");
    // The client may have read the old index already: always without a user, else if the first prompt came early.
    let is_index_wanted = index() != before;
    let mut wanted =
        Wanted::by_hook(settings, if is_index_wanted { Index::Given } else { Index::ReadByAgent });
    let found = home.as_ref().map(|home| (home, files));
    let message = message(settings, found, &project, &bound, &news, now);
    let mut note_for_agent = None;
    if let Some(Message::Needed(line)) = message.as_ref().filter(|_| settings.surroundings.is_headless) {
        // Such a client prints its answer and nothing else.
        let line = format!(
            "If a person reads your answer, end it with this note; where only a fixed format is wanted, leave it out: {line}"
        );
        // A line that alone exceeds the budget is left out. Clients that show messages show it all the same.
        if let Some(left) = wanted.budget.beside_line(&line) {
            wanted.budget = left;
            note_for_agent = Some(line);
        }
    }
    let mut assembled = match source {
        "resume" | "fork" => context::assemble(&label, changed(&news), wanted.budget),
        _ => assembled(settings, &project, &news, wanted).unwrap_or_else(|error| {
            notes.push(format!("no context: {}", error.message));
            Assembled::default()
        }),
    };
    if let Err(error) = digest::begin(settings, &project, input.session_id.as_deref()) {
        notes.push(error.message);
    }
    if let Some(line) = note_for_agent {
        assembled.add_line("a note for you", &line);
    }
    let message = message.map(Message::line);
    if let Some(prefix) = &prefix {
        drop(news.remember(settings, prefix));
    }
    let tokens = assembled.tokens();
    if !assembled.text.is_empty() || message.is_some() {
        let (portions, left_out) = (assembled.portions.clone(), assembled.left_out.clone());
        let more_left_out = assembled.more_left_out;
        let session = input.session_id.clone();
        let (source, project) = (source.to_owned(), label);
        let message = message.clone();
        ContextRecord {
            time: now,
            session,
            source,
            project,
            portions,
            left_out,
            more_left_out,
            tokens,
            message,
        }
        .note(settings);
    }
    notes.push(format!("{tokens} tokens"));
    let watched = prefix.as_ref().map(|_| memory.as_path());
    Ok(Outcome { output: output(assembled, watched, message), note: notes.join("; ") })
}

/// Returns true if this machine would bind a project as a new one, although its store has a remote that may know it.
fn is_unknown(settings: &Settings, project: &Project) -> Result<bool, CommandError> {
    let is_new = project.proof == Proof::New && project.prefix().is_some();
    let directory = project.memory.path.canonicalize().unwrap_or_else(|_| project.memory.path.clone());
    // A directory that held another project until now must not be synced as that one.
    let is_bound = mounts::of(settings)?.iter().any(|mount| mount.directory == directory);
    Ok(is_new && !is_bound && Remote::for_looking(settings)?.is_some())
}

fn output(assembled: Assembled, watched: Option<&Path>, message: Option<String>) -> Option<Value> {
    if assembled.text.is_empty() && watched.is_none() && message.is_none() {
        return None;
    }
    let mut specific = json!({ "hookEventName": "SessionStart" });
    if !assembled.text.is_empty() {
        specific["additionalContext"] = assembled.text.into();
    }
    if let Some(watched) = watched {
        specific["watchPaths"] = json!([watched]);
    }
    let mut output = json!({ "hookSpecificOutput": specific });
    if let Some(message) = message {
        output["systemMessage"] = message.into();
    }
    Some(output)
}

/// The one line that the user sees.
enum Message {
    /// Something that they have to do.
    Needed(String),
    /// Something that is good to know.
    News(String),
}

impl Message {
    fn line(self) -> String {
        match self {
            Message::Needed(line) | Message::News(line) => lines(&line).into_owned(),
        }
    }
}

/// Returns the one line that the user sees: what needs them, else what arrived.
fn message(
    settings: &Settings,
    home: Option<(&Home, Files)>,
    project: &Project,
    bound: &Bound,
    news: &News,
    now: Timestamp,
) -> Option<Message> {
    let label = project.label(settings);
    let root = quoted(&tilde(settings, &project.root));
    if let Bound::NeedsConsent(barrier) = bound {
        return question(settings, project, barrier);
    }
    let prefix = project.prefix()?;
    match bound {
        Bound::NeedsConsent(_) | Bound::Local => None,
        Bound::Unclear { before } => Some(Message::Needed(format!(
            "haversack: the directory of {label} held {before} until now, so its memory stays here. If it is the same: haversack project name {root} {before}"
        ))),
        Bound::Moved { files } => {
            Some(Message::News(format!("haversack: {label} moved to {root}, its {files} memories are here")))
        }
        Bound::Already | Bound::New => {
            if *bound == Bound::New && is_first(settings, &prefix) {
                drop(news::is_new(settings, &prefix));
            }
            let needed = missed(settings, project, &label)
                .or_else(|| news::problem(settings, home, &prefix).ok().flatten())
                .map(Message::Needed)
                .or_else(|| agents_question(settings, project));
            let arrived = news.line(now).map(Message::News);
            let telling = match (&needed, &arrived) {
                _ if settings.surroundings.is_headless => CarryingNotice::Later,
                (Some(_), _) => CarryingNotice::Later,
                (None, Some(_)) => CarryingNotice::Needless,
                (None, None) => CarryingNotice::Now,
            };
            let is_told = news::is_told(settings, &prefix, telling).unwrap_or(false);
            let carried = is_told.then(|| {
                let known_as = quoted(&project.known_as(settings));
                Message::News(format!(
                    "haversack: the memory of {label} is synced with your other machines from now on. To keep it here: haversack project exclude {known_as}"
                ))
            });
            needed.or(arrived).or(carried)
        }
    }
}

/// Returns the question if a directory that the repository names may be used; it is asked once.
fn question(settings: &Settings, project: &Project, barrier: &Barrier) -> Option<Message> {
    let (label, checkout) = (project.label(settings), tilde(settings, &project.checkout));
    let what = match barrier {
        Barrier::Unproven(missing) => {
            format!("{checkout} gets no memory of {label}: {}", missing.reason())
        }
        Barrier::NamedByProject(memory) => {
            let memory = tilde(settings, memory);
            format!("the settings of {label} keep its memory in {memory}, which we do not sync unasked")
        }
        // The user cannot agree to this one.
        Barrier::PrivateElsewhere => return None,
    };
    let line = format!("haversack: {what}. If it is yours: haversack project bind {checkout}");
    let may = news::may_ask(settings, format!("{checkout}: {what}")).unwrap_or(false);
    may.then_some(Message::Needed(line))
}

/// Returns the question if memory of subagents inside the checkout may be carried; it is asked once.
fn agents_question(settings: &Settings, project: &Project) -> Option<Message> {
    let directories = bind::unagreed(settings, project).ok()?;
    let first = tilde(settings, directories.first()?);
    let (label, checkout) = (project.label(settings), tilde(settings, &project.checkout));
    let line = format!(
        "haversack: {label} has memory of subagents in {first}, which we do not sync unasked. To sync it: haversack project bind {checkout}"
    );
    let may = news::may_ask(settings, format!("agents of {}", project.id.as_deref()?)).unwrap_or(false);
    may.then_some(Message::Needed(line))
}

/// Returns true if a project that was bound just now is carried for the first time from this machine.
fn is_first(settings: &Settings, prefix: &Locator) -> bool {
    let is_sent = matches!(Remote::for_looking(settings), Ok(Some(_)));
    let places = mounts::of(settings).unwrap_or_default().into_iter().filter(|mount| mount.prefix == *prefix);
    is_sent && places.count() == 1
}

/// Returns the line for a session that starts below a worktree with private memory, which the client does not find from there.
fn missed(settings: &Settings, project: &Project, label: &str) -> Option<String> {
    if !private::is_missed_by(project) {
        return None;
    }
    let checkout = quoted(&tilde(settings, &project.checkout));
    let line = format!(
        "haversack: this session uses the shared memory of {label}. The private memory of {checkout} is for sessions that start in {checkout} itself"
    );
    news::once(settings, format!("missed {checkout}"), line).ok().flatten()
}

/// Returns the files that a continued session should read again.
fn changed(news: &News) -> Vec<Part> {
    let names = news.files.iter().map(|locator| format!("- {}\n", one_line(locator.name())));
    let text: String = names.collect();
    if text.is_empty() {
        return Vec::new();
    }
    let from = news.last.as_ref().map(|(device, _)| device.clone()).unwrap_or_default();
    let text =
        format!("These memory files changed on another machine since this session last saw them:\n{text}");
    vec![Part { name: "what changed".to_owned(), text, from }]
}

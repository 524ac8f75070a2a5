//! Runs the calls of tools, and turns the results into text: the same text as on a terminal.
//!
//! Nothing is opened before the first call. A handler serves any number of clients; several handlers, hooks and commands on one home take turns by the
//! store's own locks.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use haversack::clock::Clock;
use haversack::commitments::Commitment;
use haversack::event::Event;
use haversack::memory_tool::{Answer, Command, Content, MemoryTool};
use haversack::remember::NewFact;
use haversack::store::Locator;
use haversack::{Memory, Writer, display};
use haversack_recall::{DEFAULT_LIMIT, KnownFacts, MemorySearch, Projects, Unit};
use haversack_system::SystemClock;

use super::sync_scheduler::SyncScheduler;
use super::tools::{Call, RecallInput};
use crate::app::carry;
use crate::app::commitments::{self, Listed};
use crate::app::conflicts::{self, TracedConflict};
use crate::app::event::{NotedEvent, note_event};
use crate::app::history::{INCOMPLETE, history};
use crate::app::index::{answered, overflow};
use crate::app::recall::{NotRecalled, RecallRequest, is_model_behind, recall, search};
use crate::app::remember::{Remembered, remember};
use crate::app::review::{self, Verdict, Waiting};
use crate::app::status::{Extent, status};
use crate::app::undo::{self, Wanted};
use crate::background;
use crate::error::CommandError;
use crate::home::mounts::{self, Mount};
use crate::home::store::open;
use crate::projects::NO_PROJECT;
use crate::projects::border::{self, Breadth, Face, Guard};
use crate::projects::names::{Names, Viewpoint, locate_from};
use crate::settings::Settings;

/// The number of changes in the history.
const HISTORY: usize = 10;

/// The most memories and changes that can be asked for.
const MAX_LIMIT: usize = 50;

/// The longest answer of a command that tells a person something.
const TOLD_BYTES: usize = 16_000;

/// Handles the calls of tools.
pub(crate) struct ToolHandler {
    settings: Settings,
    facts_scope: FactsScope,
    /// The project's place, once it has one.
    place: OnceLock<Locator>,
    /// The memory, with the bound directories that were there when it was opened.
    memory: Mutex<Option<(Vec<Mount>, Memory)>>,
    /// Finds memories, once a home is there.
    search: OnceLock<MemorySearch>,
    facts: Mutex<KnownFacts>,
    /// Refuses writes from a project whose memory stays on this machine.
    guard: Mutex<Guard>,
    scheduler: SyncScheduler,
}

/// The place of a handler's facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FactsScope {
    /// To the project of the directory that the client started us in, if it has a place.
    CurrentProject,
    /// To no project: clients come from anywhere.
    NoProject,
}

impl ToolHandler {
    /// Returns a desk for a home; opens nothing.
    pub(crate) fn new(settings: &Settings, facts_scope: FactsScope) -> Arc<ToolHandler> {
        Arc::new(ToolHandler {
            settings: settings.clone(),
            facts_scope,
            place: OnceLock::new(),
            memory: Mutex::new(None),
            search: OnceLock::new(),
            facts: Mutex::new(KnownFacts::new()),
            guard: Mutex::new(Guard::new(settings, Face::Agent)),
            scheduler: SyncScheduler::new(settings),
        })
    }

    /// Returns where facts go now: a client starts us beside the hook that gives a new project its place.
    pub(crate) fn place(&self) -> Locator {
        if let Some(place) = self.place.get() {
            return place.clone();
        }
        let found = match self.facts_scope {
            FactsScope::CurrentProject => border::place_here(&self.settings),
            FactsScope::NoProject => None,
        };
        match found {
            Some(place) => self.place.get_or_init(|| place).clone(),
            None => Locator::parse(NO_PROJECT).expect("a plain name"),
        }
    }

    /// Returns the place that a client names.
    fn locate(&self, text: &str) -> Result<Locator, CommandError> {
        let viewpoint = match self.facts_scope {
            FactsScope::CurrentProject => Viewpoint::CurrentDirectory,
            FactsScope::NoProject => Viewpoint::Unknown,
        };
        locate_from(&self.settings, viewpoint, text)
    }

    /// Returns the projects that a recall reaches.
    pub(crate) fn reach(&self, breadth: Breadth) -> Projects {
        match self.facts_scope {
            FactsScope::CurrentProject => border::reach(&self.settings, breadth),
            FactsScope::NoProject => border::reach_from_anywhere(&self.settings, None),
        }
    }

    /// Returns who goes to the other machines.
    pub(crate) fn scheduler(&self) -> &SyncScheduler {
        &self.scheduler
    }

    /// Returns the memory as it is bound now.
    pub(crate) fn memory(&self) -> Result<Memory, CommandError> {
        let mounts: Vec<Mount> = mounts::of(&self.settings)?.into_iter().filter(Mount::is_there).collect();
        let mut opened = lock(&self.memory);
        if let Some((_, memory)) = opened.as_ref().filter(|(then, _)| *then == mounts) {
            return Ok(memory.clone());
        }
        let memory = open(&self.settings)?;
        *opened = Some((mounts, memory.clone()));
        Ok(memory)
    }

    /// Returns why this project's memory takes no writes; `None` if it does.
    pub(crate) fn refusal(&self) -> Option<String> {
        let is_projects = self.facts_scope == FactsScope::CurrentProject;
        is_projects.then(|| lock(&self.guard).refusal()).flatten().map(|refusal| refusal.for_model())
    }

    /// Carries out a call. Blocks.
    pub(crate) fn answer(&self, call: Call, writer: Writer) -> Answer {
        let writes = call.writes();
        let is_event = matches!(call, Call::Event(_));
        if writes && let Some(refusal) = self.refusal() {
            return Answer::error(refusal);
        }
        let answer = match call {
            Call::Command(command) => self.command(command, writer),
            Call::Recall(input) => self.recall(input),
            Call::Remember { kind, name, description, content } => {
                let (name, description) = (&name, &description);
                self.remember(&NewFact { kind: &kind, name, description, content: &content }, writer)
            }
            Call::Event(event) => self.event(&event, writer),
            Call::Commitments { add, deliver } => {
                self.commitments(add.as_deref(), deliver.as_deref(), writer)
            }
            Call::Carry { add, consume } => self.carry(add.as_deref(), consume.as_deref(), writer),
            Call::History { path, limit } => {
                let count = limit.unwrap_or(HISTORY).min(MAX_LIMIT);
                self.history(&path, count)
            }
            Call::Undo { path } => self.undo(path.as_deref(), writer),
            Call::Resolve { path, keep, conflict } => {
                self.resolve(&path, keep.as_deref(), conflict.as_deref(), writer)
            }
            Call::Proposals { id, answer, text } => {
                self.proposals(id.as_deref(), answer.as_deref(), text.as_deref(), writer)
            }
            Call::Status => status(&self.settings, Extent::Short).and_then(|status| self.told(status.text())),
        };
        let answer = answer.unwrap_or_else(|error| Answer::error(in_words(&error)));
        if is_event {
            // Events are sent together.
        } else if writes && !answer.is_error {
            self.scheduler.wrote();
        } else {
            self.scheduler.asked();
        }
        answer
    }

    /// Runs a command of the memory tool. Its paths may be in any form.
    fn command(&self, mut command: Command, writer: Writer) -> Result<Answer, CommandError> {
        for path in paths_of(&mut command) {
            let is_path_of_tool = path == "/memories" || path.starts_with("/memories/");
            match self.locate(path) {
                Ok(place) if !is_path_of_tool => *path = format!("/memories/{place}"),
                Err(error) if !path.starts_with('/') => return Err(error),
                // The tool itself reports the problem of such a path.
                Ok(_) | Err(_) => {}
            }
        }
        let memory = self.memory()?.with_writer(writer);
        let tool =
            MemoryTool::new(memory.clone()).with_view_characters(self.settings.memory_tool.view_characters);
        Ok(answered(&memory, &tool, command))
    }

    /// Lists the proposals, or answers one.
    fn proposals(
        &self,
        id: Option<&str>,
        answer: Option<&str>,
        words: Option<&str>,
        writer: Writer,
    ) -> Result<Answer, CommandError> {
        let memory = self.memory()?.with_writer(writer);
        let Some(id) = id else {
            let waiting = review::waiting(&self.settings, &memory)?;
            let texts: Vec<String> = waiting.iter().map(Waiting::text).collect();
            let none = "No proposal waits.".to_owned();
            return self.told(if texts.is_empty() { none } else { texts.join("\n") });
        };
        let verdict = match (answer, words) {
            (Some("accept"), None) => Verdict::Accept,
            (Some("accept"), Some(words)) => Verdict::Edit(words),
            (Some("reject"), _) => Verdict::Reject,
            _ => return Ok(Answer::error("Error: `answer` is accept or reject")),
        };
        self.told(review::told(&review::answer(&self.settings, &memory, id, verdict)?))
    }

    fn recall(&self, input: RecallInput) -> Result<Answer, CommandError> {
        let request = RecallRequest {
            text: input.query,
            within: self.locate(&input.path)?,
            projects: self.reach(input.breadth),
            kinds: input.kind.into_iter().collect(),
            since: input.since,
            until: input.until,
            unit: if input.passages { Unit::Passage } else { Unit::Memory },
            limit: input.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT),
        };
        let names = Names::of(&self.settings)?;
        let memory = self.memory()?;
        let search = self.search.get_or_init(|| search(&self.settings));
        Ok(match recall(&self.settings, &memory, search, request) {
            Ok(recall) => {
                if is_model_behind(&recall.recalled, &self.settings) {
                    // Vectors only add to an answer: that they cannot be made is no reason to fail.
                    drop(background::start_for_vectors(&self.settings));
                }
                text(recall.text(|file| path_of(&names, file), SystemClock.now()))
            }
            Err(NotRecalled::OtherProject(why)) => {
                Answer::error(format!("Error: {why}. To look there: everywhere = true"))
            }
            Err(NotRecalled::Unknown(error)) => Answer::error(in_words(&error)),
            Err(NotRecalled::CouldNotLook(error)) => Answer::error(format!(
                "Could not search. This does not mean that there are no such memories.\n{}",
                in_words(&error)
            )),
        })
    }

    fn history(&self, path: &str, count: usize) -> Result<Answer, CommandError> {
        let history = history(&self.settings, self.locate(path)?, count)?;
        let note = if history.is_complete { String::new() } else { format!("{INCOMPLETE}\n") };
        self.told(history.text() + &note)
    }

    /// Takes back the last change of a file, or else the last change of the writer's session.
    fn undo(&self, path: Option<&str>, writer: Writer) -> Result<Answer, CommandError> {
        let wanted = match (path, &writer.session) {
            (Some(path), _) => Wanted::File(self.locate(path)?),
            (None, Some(session)) => Wanted::LastOfSession(session.clone()),
            (None, None) => Wanted::Last,
        };
        let settings = Settings { writer, ..self.settings.clone() };
        let plan = undo::plan(&settings, &wanted)?;
        if plan.is_empty() {
            return self.told(format!("{}{}\n", plan.text(), undo::NOTHING));
        }
        plan.carry_out(&settings)?;
        self.told(format!("{}{}\n", plan.text(), undo::DONE))
    }

    /// Shows the conflicts of a file, or settles one of them.
    fn resolve(
        &self,
        path: &str,
        keep: Option<&str>,
        conflict: Option<&str>,
        writer: Writer,
    ) -> Result<Answer, CommandError> {
        let (mut found, unread) = conflicts::traced(&self.settings, &self.locate(path)?)?;
        if let Some(error) = unread.into_iter().next() {
            return Err(error.into());
        }
        if let Some(id) = conflict {
            found.retain(|traced| traced.conflict.id == id);
        }
        let shown: String = found.iter().map(TracedConflict::text).collect();
        let Some(keep) = keep else {
            let none = "No conflicts.\n".to_owned();
            return self.told(if found.is_empty() { none } else { shown });
        };
        let keep = match conflicts::parse_keep(keep) {
            Ok(keep) => keep,
            Err(why) => return Ok(Answer::error(format!("Error: `keep`: {why}"))),
        };
        let (Some(traced), true) = (found.pop(), found.is_empty()) else {
            let why = match shown.is_empty() {
                true => "There is no such conflict, or its passages changed: call resolve without keep",
                false => "There are several conflicts: say which by its letters (conflict)",
            };
            let mut answer = self.told(format!("Error: {why}\n{shown}"))?;
            answer.is_error = true;
            return Ok(answer);
        };
        let settings = Settings { writer, ..self.settings.clone() };
        let settled = conflicts::settle(&settings, traced.conflict, keep)?;
        let kept = settled.resolved.kept.iter();
        let kept =
            kept.map(|kept| format!("\nAnother program saved in that moment; its text is kept as {kept}"));
        self.told(format!("{}{}\n", settled.text(keep), kept.collect::<String>()))
    }

    fn remember(&self, wish: &NewFact<'_>, writer: Writer) -> Result<Answer, CommandError> {
        let (memory, place) = (self.memory()?.with_writer(writer), self.place());
        let remembered = remember(&self.settings, &memory, &mut lock(&self.facts), &place, wish)?;
        let names = Names::of(&self.settings)?;
        Ok(match remembered {
            Remembered::New { file, secret } => {
                let held = secret.map(|finding| {
                    format!(
                        "\nLine {} looks like {}: the file stays on this machine until it is taken out, or the user allows it (haversack allow).",
                        finding.line, finding.rule.name
                    )
                });
                let overflow = overflow(&memory, &file).map(|told| format!("\n{told}")).unwrap_or_default();
                text(format!(
                    "Remembered in {}, and in the index.{}{overflow}",
                    path_of(&names, &file),
                    held.unwrap_or_default()
                ))
            }
            Remembered::Already(file) => text(format!(
                "That is remembered already, in {}. Nothing was written.",
                path_of(&names, &file)
            )),
            Remembered::Taken(file) => Answer::error(format!(
                "Error: {} is there already and says something else. View it: change it with str_replace if the fact changed, or choose another name",
                path_of(&names, &file)
            )),
            Remembered::Unfit(why) => Answer::error(format!("Error: {why}")),
        })
    }

    /// Returns a text of ours as an answer, with short names.
    fn told(&self, text: String) -> Result<Answer, CommandError> {
        Ok(shortened(&Names::of(&self.settings)?.abbreviations().apply(&text)))
    }

    /// Shows the commitments, adds one, or delivers one.
    fn commitments(
        &self,
        promise: Option<&str>,
        delivered: Option<&str>,
        writer: Writer,
    ) -> Result<Answer, CommandError> {
        let (memory, place) = (self.memory()?.with_writer(writer), self.place());
        let mut told = String::new();
        if let Some(promise) = promise {
            match commitments::add(&self.settings, &memory, &place, promise)? {
                Listed::Done { what: id, .. } => told.push_str(&format!("Promised as {id}.\n")),
                Listed::Refused(why) => return Ok(Answer::error(format!("Error: {why}"))),
            }
        }
        if let Some(delivered) = delivered {
            match commitments::deliver(&self.settings, &memory, &place, delivered)? {
                Listed::Done { what, .. } => told.push_str(&format!("Delivered: {}\n", what.text)),
                Listed::Refused(why) => return Ok(Answer::error(format!("Error: {why}"))),
            }
        }
        if told.is_empty() {
            for Commitment { id, text, day, is_delivered } in commitments::list(&memory, &place)? {
                let (id, state) = (id.unwrap_or_default(), if is_delivered { "delivered" } else { "open" });
                let day = day.map(|day| day.to_string()).unwrap_or_default();
                told.push_str(&format!("{id} {state} {day} {text}\n"));
            }
        }
        if told.is_empty() {
            told.push_str("Nothing is promised.\n");
        }
        Ok(shortened(&told))
    }

    /// Shows what is carried forward, adds an item, or consumes one.
    fn carry(
        &self,
        thought: Option<&str>,
        consumed: Option<&str>,
        writer: Writer,
    ) -> Result<Answer, CommandError> {
        let (memory, place) = (self.memory()?.with_writer(writer), self.place());
        let mut told = String::new();
        if let Some(thought) = thought {
            match carry::add(&self.settings, &memory, &place, thought)? {
                Listed::Done { .. } => told.push_str("Carried forward.\n"),
                Listed::Refused(why) => return Ok(Answer::error(format!("Error: {why}"))),
            }
        }
        if let Some(consumed) = consumed {
            match carry::consume(&self.settings, &memory, &place, consumed)? {
                Listed::Done { what, .. } => told.push_str(&format!("Consumed: {what}\n")),
                Listed::Refused(why) => return Ok(Answer::error(format!("Error: {why}"))),
            }
        }
        if told.is_empty() {
            for (number, item) in carry::list(&memory, &place)?.iter().enumerate() {
                told.push_str(&format!("{}. {}\n", number + 1, item.text));
            }
        }
        if told.is_empty() {
            told.push_str("Nothing is pending.\n");
        }
        Ok(shortened(&told))
    }

    fn event(&self, event: &Event, writer: Writer) -> Result<Answer, CommandError> {
        Ok(match note_event(&self.settings, &self.memory()?, event, writer, &self.place())? {
            Ok(NotedEvent { log, size_bytes, met, not_met }) => {
                self.scheduler.logged(size_bytes);
                let met = met.map(|file| {
                    format!("\nThis sender is new: fill in /memories/{file} as you learn who it is.")
                });
                let not_met = not_met
                    .map(|error| format!("\nNo memory of the sender could be begun: {}", in_words(&error)));
                let more = met.or(not_met).unwrap_or_default();
                text(format!("Noted in /memories/{log}{more}"))
            }
            Err(why) => Answer::error(format!("Error: {why}")),
        })
    }
}

fn paths_of(command: &mut Command) -> Vec<&mut String> {
    match command {
        Command::View { path, .. }
        | Command::Create { path, .. }
        | Command::StrReplace { path, .. }
        | Command::Insert { path, .. }
        | Command::Delete { path } => vec![path],
        Command::Rename { old_path, new_path } => vec![old_path, new_path],
    }
}

/// Returns a text of ours as an answer. Names in it are those of files and machines, so it is escaped, and it is shortened to a bound.
fn shortened(text_of_ours: &str) -> Answer {
    let mut shown = display::lines(text_of_ours).into_owned();
    if shown.len() > TOLD_BYTES {
        let end = (0..=TOLD_BYTES).rev().find(|end| shown.is_char_boundary(*end)).unwrap_or(0);
        shown.truncate(end);
        shown.push_str("\n… (shortened; ask for less)\n");
    }
    text(shown)
}

/// Returns an error as a person reads it.
fn in_words(error: &CommandError) -> String {
    display::lines(&error.text()).trim_end().to_owned()
}

/// Returns the name of a file for an agent: the short name of a project's file, or else its path from `/memories`. Every tool takes both.
fn path_of(names: &Names, file: &Locator) -> String {
    match names.show(file) {
        name if name != file.as_str() => name,
        _ => format!("/memories/{file}"),
    }
}

fn text(text: String) -> Answer {
    Answer { content: Content::Text(text), is_error: false }
}

/// Takes a lock; the data of a thread that panicked is still valid, because nothing is left half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Does what a call asks for, and says so in words: the same words that a person at a terminal reads.
//!
//! Nothing is opened before the first call. A desk serves any number of clients; several desks, hooks and commands on one home take turns by the
//! store's own locks.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::UNIX_EPOCH;

use haversack::clock::Clock;
use haversack::event::{self, Event, Stamp};
use haversack::ids::{Ids, Timestamp};
use haversack::memory_tool::{Answer, MemoryTool};
use haversack::remember::{self, Kept, Wish};
use haversack::store::{Locator, block_on};
use haversack::{Memory, Writer, display, secrets};
use haversack_recall::{DEFAULT_LIMIT, Hit, Projects, Query, Recalled, Shelf};

use super::errands::Errands;
use super::tools::Call;
use crate::app::history::{INCOMPLETE, history};
use crate::app::status::status;
use crate::app::undo::{self, Wanted};
use crate::commands::kinds;
use crate::error::CommandError;
use crate::home::mounts::{self, Mount};
use crate::home::store::{locate, open};
use crate::projects::border::{self, Breadth, Face, Guard};
use crate::remote::{Remote, device_name};
use crate::settings::Settings;
use crate::system::{RandomIds, SystemClock};
use crate::ui::Ui;
use crate::ui::moments::{ago, counted, day};

/// Where facts go that belong to no project.
const NO_PROJECT: &str = "behavioral";

/// How many changes the history shows.
const HISTORY: usize = 10;

/// The most memories and changes that can be asked for.
const MAX_LIMIT: usize = 50;

/// The longest answer of a recall, in bytes, unless more memories are asked for.
const RECALL_BYTES: usize = 4000;

/// The longest answer of a command that tells a person something.
const TOLD_BYTES: usize = 16_000;

/// How much of a query is repeated in an answer.
const QUERY_CHARACTERS: usize = 80;

/// Whoever answers calls.
pub(crate) struct Desk {
    settings: Settings,
    whose: Whose,
    /// The project's place, once it has one.
    place: OnceLock<Locator>,
    /// The memory, with the bound directories that were there when it was opened.
    memory: Mutex<Option<(Vec<Mount>, Memory)>>,
    shelf: Mutex<Shelf>,
    /// Refuses writes from a project whose memory stays on this machine.
    guard: Mutex<Guard>,
    errands: Errands,
}

/// Where the facts of a desk go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// To the project of the directory that the client started us in, if it has a place.
    ThisProjects,
    /// To no project: clients come from anywhere.
    Nobodys,
}

impl Desk {
    /// Returns a desk for a home; opens nothing.
    pub(crate) fn new(settings: &Settings, whose: Whose) -> Arc<Desk> {
        Arc::new(Desk {
            settings: settings.clone(),
            whose,
            place: OnceLock::new(),
            memory: Mutex::new(None),
            shelf: Mutex::new(Shelf::new()),
            guard: Mutex::new(Guard::new(settings, Face::Agent)),
            errands: Errands::new(settings),
        })
    }

    /// Returns where facts go now: a client starts us beside the hook that gives a new project its place.
    pub(crate) fn place(&self) -> Locator {
        if let Some(place) = self.place.get() {
            return place.clone();
        }
        let found = match self.whose {
            Whose::ThisProjects => project_here(&self.settings),
            Whose::Nobodys => None,
        };
        match found {
            Some(place) => self.place.get_or_init(|| place).clone(),
            None => Locator::parse(NO_PROJECT).expect("a plain name"),
        }
    }

    /// Returns the projects that a recall reaches.
    pub(crate) fn reach(&self, breadth: Breadth) -> Projects {
        match self.whose {
            Whose::ThisProjects => border::reach(&self.settings, breadth),
            Whose::Nobodys => border::reach_from_anywhere(&self.settings, None),
        }
    }

    /// Returns who goes to the other machines.
    pub(crate) fn errands(&self) -> &Errands {
        &self.errands
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

    /// Does what a call asks for. Blocks.
    pub(crate) fn answer(&self, call: Call, writer: Writer) -> Answer {
        let writes = call.writes();
        if writes
            && self.whose == Whose::ThisProjects
            && let Some(refusal) = lock(&self.guard).refusal()
        {
            return Answer::error(refusal.for_model());
        }
        let answer = match call {
            Call::Command(command) => self.memory().map(|memory| {
                let tool = MemoryTool::new(memory.with_writer(writer));
                block_on(tool.with_view_characters(self.settings.memory_tool.view_characters).answer(command))
            }),
            Call::Recall { query, path, limit, breadth } => self.recall(&query, &path, limit, breadth),
            Call::Remember { kind, name, description, content } => {
                let (name, description) = (&name, &description);
                self.remember(&Wish { kind: &kind, name, description, content: &content }, writer)
            }
            Call::Event(event) => self.event(&event, writer),
            Call::History { path, limit } => {
                let count = limit.unwrap_or(HISTORY).min(MAX_LIMIT);
                self.history(&path, count)
            }
            Call::Undo { path } => self.undo(path.as_deref(), writer),
            Call::Status => status(&self.settings).map(|status| shortened(status.text())),
        };
        let answer = answer.unwrap_or_else(|error| Answer::error(in_words(&error)));
        if writes && !answer.is_error {
            self.errands.wrote();
        } else {
            self.errands.asked();
        }
        answer
    }

    fn recall(
        &self,
        query: &str,
        path: &str,
        limit: Option<usize>,
        breadth: Breadth,
    ) -> Result<Answer, CommandError> {
        let projects = self.reach(breadth);
        let within = locate(path)?;
        if let Some(why) = border::outside(&projects, &within) {
            return Ok(Answer::error(format!("Error: {why}. To look there: everywhere = true")));
        }
        let query = Query {
            text: query.to_owned(),
            within,
            projects,
            limit: limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT),
        };
        let memory = self.memory()?;
        let recalled = block_on(lock(&self.shelf).recall(memory.files(), &query));
        Ok(match recalled {
            Ok(recalled) => text(in_lines(&query, &recalled, SystemClock.now())),
            Err(error) => {
                let error = CommandError::from(error);
                Answer::error(format!(
                    "Could not look, so this says nothing about what is remembered.\n{}",
                    in_words(&error)
                ))
            }
        })
    }

    fn history(&self, path: &str, count: usize) -> Result<Answer, CommandError> {
        let history = history(&self.settings, locate(path)?, count)?;
        let note = if history.is_complete { String::new() } else { format!("{INCOMPLETE}\n") };
        Ok(shortened(history.text() + &note))
    }

    /// Takes back the last change of a file, or else the last change of the writer's session.
    fn undo(&self, path: Option<&str>, writer: Writer) -> Result<Answer, CommandError> {
        let wanted = match (path, &writer.session) {
            (Some(path), _) => Wanted::File(locate(path)?),
            (None, Some(session)) => Wanted::LastOfSession(session.clone()),
            (None, None) => Wanted::Last,
        };
        let settings = Settings { writer, ..self.settings.clone() };
        let plan = undo::plan(&settings, &wanted)?;
        if plan.is_empty() {
            return Ok(shortened(format!("{}{}\n", plan.text(), undo::NOTHING)));
        }
        plan.carry_out(&settings)?;
        Ok(shortened(format!("{}{}\n", plan.text(), undo::DONE)))
    }

    fn remember(&self, wish: &Wish<'_>, writer: Writer) -> Result<Answer, CommandError> {
        let table = kinds::load(&self.settings)?;
        let place = self.place();
        let draft = match remember::draft(&table, &place, wish) {
            Ok(draft) => draft,
            Err(why) => return Ok(Answer::error(format!("Error: {why}"))),
        };
        let memory = self.memory()?.with_writer(writer);
        let shown = |locator: &Locator| format!("/memories/{locator}");
        if let Some(same) = block_on(lock(&self.shelf).same(memory.files(), &place, &draft.text))? {
            return Ok(text(format!(
                "That is remembered already, in {}. Nothing was written.",
                shown(&same)
            )));
        }
        let path = shown(&draft.locator);
        Ok(match block_on(remember::keep(&memory, &draft))? {
            Kept::New => {
                let held = secrets::find(draft.text.as_bytes());
                let held = held.first().map(|finding| {
                    format!(
                        "\nLine {} looks like {}: the file stays on this machine until it is taken out, or the user allows it (haversack allow).",
                        finding.line, finding.rule.name
                    )
                });
                text(format!("Remembered in {path}, and in the index.{}", held.unwrap_or_default()))
            }
            Kept::Same => text(format!("That is remembered already, in {path}. Nothing was written.")),
            Kept::Taken => Answer::error(format!(
                "Error: {path} is there already and says something else. View it: change it with str_replace if the fact changed, or choose another name"
            )),
        })
    }

    fn event(&self, event: &Event, writer: Writer) -> Result<Answer, CommandError> {
        Ok(match note_event(&self.settings, &self.memory()?, event, writer)? {
            Ok(log) => text(format!("Noted in /memories/{log}")),
            Err(why) => Answer::error(format!("Error: {why}")),
        })
    }
}

/// Writes an event into the log of its day, and returns which; the inner error says what is wrong with the event.
pub(crate) fn note_event(
    settings: &Settings,
    memory: &Memory,
    event: &Event,
    writer: Writer,
) -> Result<Result<Locator, String>, CommandError> {
    let device = Remote::recorded(settings)?.map_or_else(device_name, |remote| remote.device);
    let stamp = Stamp { id: RandomIds.next(), time: SystemClock.now(), device, writer: writer.clone() };
    let line = match event::line(event, &stamp) {
        Ok(line) => line,
        Err(why) => return Ok(Err(why)),
    };
    let log = event::log_of(&day(stamp.time));
    block_on(memory.clone().with_writer(writer).append(&log, line))?;
    Ok(Ok(log))
}

/// Returns what was found, for whoever asked.
pub(crate) fn in_lines(query: &Query, recalled: &Recalled, now: Timestamp) -> String {
    let asked: String = query.text.chars().take(QUERY_CHARACTERS).collect();
    let through = counted(recalled.looked_through, "file");
    let mut lines = match recalled.hits.len() {
        0 => format!("Nothing relevant to \"{asked}\" in {through}.\n"),
        hits => format!(
            "{} for \"{asked}\", best first, of {through}:\n",
            counted(hits, "memory").replace("memorys", "memories")
        ),
    };
    let most = if query.limit > DEFAULT_LIMIT { usize::MAX } else { RECALL_BYTES };
    for (number, hit) in recalled.hits.iter().enumerate() {
        let shown = in_line(hit, now);
        if lines.len() + shown.len() > most {
            lines.push_str(&format!(
                "\n{} more: ask for them by narrower words.\n",
                recalled.hits.len() - number
            ));
            break;
        }
        lines.push_str(&shown);
    }
    if let Some(first) = recalled.unread.first() {
        let unread = counted(recalled.unread.len(), "file");
        lines.push_str(&format!(
            "\n{unread} could not be looked through ({first} …), so there may be more.\n"
        ));
    }
    lines
}

fn in_line(hit: &Hit, now: Timestamp) -> String {
    let (first, last) = hit.lines;
    let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
    let since = hit.modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    let age = since.and_then(|since| i64::try_from(since.as_millis()).ok());
    let age = age.map(|millis| format!(", {}", ago(now, Timestamp(millis)))).unwrap_or_default();
    let passage = hit.passage.replace('\n', "\n  ");
    format!("\n/memories/{}:{lines} ({}{age})\n  {passage}\n", hit.locator, hit.kind)
}

/// Returns the place of the project that we were started in, if it is carried.
fn project_here(settings: &Settings) -> Option<Locator> {
    let prefix = border::here(settings)?.prefix()?;
    let mounts = mounts::of(settings).ok()?;
    mounts.iter().any(|mount| mount.prefix == prefix && mount.is_there()).then_some(prefix)
}

/// Returns a text of ours as an answer. Names in it are those of files and machines, so it is escaped, and it is shortened to a bound.
fn shortened(text_of_ours: String) -> Answer {
    let mut shown = display::lines(&text_of_ours).into_owned();
    if shown.len() > TOLD_BYTES {
        let end = (0..=TOLD_BYTES).rev().find(|end| shown.is_char_boundary(*end)).unwrap_or(0);
        shown.truncate(end);
        shown.push_str("\n… (shortened; ask for less)\n");
    }
    text(shown)
}

/// Returns an error as a person reads it.
fn in_words(error: &CommandError) -> String {
    let (mut ui, written) = Ui::captured();
    ui.error(error);
    written.text().trim_end().to_owned()
}

fn text(text: String) -> Answer {
    Answer { content: haversack::memory_tool::Content::Text(text), is_error: false }
}

/// Takes a lock; what a thread that panicked left is as good as any: nothing here is kept half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Notes a message of a channel in the interaction log, and begins a memory of a person who wrote for the first time.

use haversack::event::{self, Event, Stamp};
use haversack::ids::Ids;
use haversack::relationship;
use haversack::remember::{self, Draft, RememberOutcome};
use haversack::store::{BackendExt, Locator, block_on};
use haversack::{Memory, Writer, rewrite};
use haversack_system::RandomIds;

use crate::error::CommandError;
use crate::home::kinds;
use crate::remote::{Remote, device_name};
use crate::settings::Settings;

/// An event in the log of its day.
pub(crate) struct NotedEvent {
    pub(crate) log: Locator,
    pub(crate) size_bytes: u64,
    /// The memory that was begun for its sender.
    pub(crate) met: Option<Locator>,
    /// The reason why none could be begun. The event is noted all the same.
    pub(crate) not_met: Option<CommandError>,
}

/// Appends an event to the log of its day. A person who wrote for the first time gets a memory below `place`. The inner error says why the event is
/// unfit.
pub(crate) fn note_event(
    settings: &Settings,
    memory: &Memory,
    event: &Event,
    writer: Writer,
    place: &Locator,
) -> Result<Result<NotedEvent, String>, CommandError> {
    let device = Remote::recorded(settings)?.map_or_else(device_name, |remote| remote.device);
    let stamp = Stamp { id: RandomIds.next(), time: settings.now(), device, writer: writer.clone() };
    let line = match event::line(event, &stamp) {
        Ok(line) => line,
        Err(why) => return Ok(Err(why)),
    };
    let log = event::log_of(settings.zone.day_of(stamp.time));
    let size_bytes = line.len() as u64;
    let memory = memory.clone().with_writer(writer);
    block_on(memory.append(&log, line))?;
    let met = match event.direction.trim() {
        "inbound" => meet(settings, &memory, place, event),
        _ => Ok(None),
    };
    let (met, not_met) = match met {
        Ok(met) => (met, None),
        Err(error) => (None, Some(error)),
    };
    Ok(Ok(NotedEvent { log, size_bytes, met, not_met }))
}

/// Begins the memory of a sender, unless one was begun before, on whichever device.
fn meet(
    settings: &Settings,
    memory: &Memory,
    place: &Locator,
    event: &Event,
) -> Result<Option<Locator>, CommandError> {
    let Some(key) = relationship::key(&event.sender) else { return Ok(None) };
    let set = relationship::known_senders();
    let known = block_on(memory.files().read_text(&set))?.unwrap_or_default();
    if relationship::is_known(&known, &key) {
        return Ok(None);
    }
    let channel = event.channel.as_deref().unwrap_or("terminal");
    let Ok(draft) = relationship::stub(&kinds::load(settings)?, place, &event.sender, channel) else {
        return Ok(None);
    };
    let there = block_on(memory.files().read_text(&draft.locator))?;
    let is_taken = there.is_some_and(|text| relationship::is_of_another(&text, &event.sender));
    let draft: Draft = if is_taken { relationship::renamed(draft, &event.sender) } else { draft };
    // The file first: if we are killed in between, the next event finds it and completes the set.
    let kept = block_on(remember::keep(memory, &draft))?;
    block_on(rewrite(memory, &set, |text| {
        let text = text.unwrap_or_default();
        let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        (!relationship::is_known(text, &key)).then(|| format!("{text}{line_end}{key}\n"))
    }))?;
    Ok(match kept {
        RememberOutcome::New => Some(draft.locator),
        RememberOutcome::Same | RememberOutcome::Taken => None,
    })
}

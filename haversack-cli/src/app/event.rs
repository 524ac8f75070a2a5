//! Notes a message of a channel in the interaction log.

use haversack::clock::Clock;
use haversack::event::{self, Event, Stamp};
use haversack::ids::Ids;
use haversack::store::{Locator, block_on};
use haversack::{Memory, Writer};
use haversack_system::{RandomIds, SystemClock};

use crate::error::CommandError;
use crate::remote::{Remote, device_name};
use crate::settings::Settings;
use crate::ui::moments::day;

/// An event in the log of its day.
pub(crate) struct NotedEvent {
    pub(crate) log: Locator,
    pub(crate) size_bytes: u64,
}

/// Appends an event to the log of its day. The inner error says why the event is unfit.
pub(crate) fn note_event(
    settings: &Settings,
    memory: &Memory,
    event: &Event,
    writer: Writer,
) -> Result<Result<NotedEvent, String>, CommandError> {
    let device = Remote::recorded(settings)?.map_or_else(device_name, |remote| remote.device);
    let stamp = Stamp { id: RandomIds.next(), time: SystemClock.now(), device, writer: writer.clone() };
    let line = match event::line(event, &stamp) {
        Ok(line) => line,
        Err(why) => return Ok(Err(why)),
    };
    let log = event::log_of(&day(stamp.time));
    let size_bytes = line.len() as u64;
    block_on(memory.clone().with_writer(writer).append(&log, line))?;
    Ok(Ok(NotedEvent { log, size_bytes }))
}

//! Machines: the last change of each, and the state of this one.

use haversack::display::one_line;
use maud::html;

use super::when;
use crate::error::CommandError;
use crate::serve::page::data::PageData;
use crate::serve::page::form::Fields;
use crate::serve::page::shell::{Section, View};
use crate::ui::moments::span;

pub(in crate::serve::page) fn view(data: &PageData, _fields: &Fields) -> Result<View, CommandError> {
    let status = data.status()?;
    let now = status.now;
    let body = html! {
        h1 { "Machines" }
        div.card.scroll tabindex="0" { table {
            thead { tr { th { "Machine" } th { "Last change" } th { "Last contact" } th { "Version" } th.num { "Waiting to be sent" } } }
            tbody {
                @for device in &status.devices {
                    tr {
                        td { strong { (one_line(&device.name)) } @if device.is_this_one { " " span.chip { "this one" } } }
                        td { @match device.last_change { Some(time) => { "last change " (when(now, time)) } None => { "no change yet" } } }
                        @if device.is_this_one {
                            td { @match status.reached { Some(time) => { (when(now, time)) } None => { "–" } } }
                            td { (env!("CARGO_PKG_VERSION")) }
                            td.num { (status.waiting) }
                        } @else { td.dim { "not known here" } td.dim { "not known here" } td.num.dim { "not known here" } }
                    }
                }
                @if status.devices.is_empty() {
                    tr { td { strong { "This machine" } } td { "–" } td { "–" } td { (env!("CARGO_PKG_VERSION")) } td.num { (status.waiting) } }
                }
            }
        } }
        dl.fields {
            dt { "Store" } dd { @match &status.remote { Some(remote) => { (one_line(remote)) } None => { "on this machine only" } } }
            @if status.unfetched > 0 { dt { "To come" } dd { (status.unfetched) } }
            @if let Some(next) = status.next_try.filter(|next| *next > now) { dt { "Next try" } dd { "in " (span((next.0 - now.0) / 1000 + 1)) } }
        }
        p.dim { "A machine tells the others only its changes. When it last asked the store, its version and what waits there: " code { "haversack status" } " on that machine." }
        p.dim { "Take a machine off this list: " code { "haversack devices remove NAME" } }
    };
    Ok(View { section: Section::Machines, title: "Machines".to_owned(), body })
}

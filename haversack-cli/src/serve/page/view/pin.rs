//! Pins a memory, so that tidying leaves it alone, or removes its pin. The pin is a field in the frontmatter.

use maud::html;

use super::edit::{Outcome, parse_seen};
use super::shown_name;
use crate::app::revise::{Pin, Revised, pin};
use crate::error::CommandError;
use crate::serve::page::data::PageData;
use crate::serve::page::form::Fields;
use crate::serve::page::shell::{Mood, Section, View, memory_address, notice};

/// Carries the form out, if the memory is still what the user saw.
pub(in crate::serve::page) fn carry_out(data: &PageData, fields: &Fields) -> Result<Outcome, CommandError> {
    let locator = fields.place()?;
    let wanted = match fields.get("pin") {
        "set" => Pin::Set,
        "removed" => Pin::Removed,
        _ => return Err(CommandError::user("the form has no answer", "Use the buttons of the page")),
    };
    Ok(match pin(data.settings(), &locator, parse_seen(fields.get("seen"))?, wanted)? {
        Revised::Written | Revised::Same => {
            data.wrote();
            Outcome::GoTo(format!("{}&pinned={}", memory_address(&locator), fields.get("pin")))
        }
        Revised::Lost(_) => {
            let title = shown_name(&data.names(), &locator);
            let body = html! {
                h1 { (title) }
                (notice(&html! { "This memory changed after you opened it, so its pin was not changed." }, Mood::Bad))
                p { a.button href=(memory_address(&locator)) { "See it as it is now" } }
            };
            Outcome::Refused(View { section: Section::Memories, title, body })
        }
    })
}

//! One change: who made it, and the difference that it made to each file.

use haversack::display::one_line;
use haversack::store::Locator;
use maud::html;

use super::{author, difference, memory_link};
use crate::app::history::{ChangeDetails, Difference, change_details, differences};
use crate::error::CommandError;
use crate::home::history::ChangeNumber;
use crate::serve::page::data::PageData;
use crate::serve::page::form::Fields;
use crate::serve::page::shell::{Section, View};
use crate::ui::moments::local;

/// The most files of a change whose difference is shown.
const MAX_FILES: usize = 20;

struct ShownChange {
    details: ChangeDetails,
    differences: Vec<Difference>,
}

fn gather(data: &PageData, fields: &Fields) -> Result<ShownChange, CommandError> {
    let refuse = |why: String| CommandError::user(why, "Choose a change from the list");
    let number: ChangeNumber = fields.get("number").parse().map_err(refuse)?;
    let details = change_details(data.settings(), number)?;
    let differences = differences(data.settings(), &Locator::root(), Some(number))?;
    Ok(ShownChange { details, differences })
}

pub(in crate::serve::page) fn view(data: &PageData, fields: &Fields) -> Result<View, CommandError> {
    let ShownChange { details, differences } = gather(data, fields)?;
    let change = &details.change;
    let names = data.names();
    let body = html! {
        h1 { "Change " (change.number) }
        p.row {
            (author(&change.device, change.agent.as_deref(), change.session.as_deref()))
            span.dim { (one_line(&change.cause)) }
            time { (local(change.time)) }
        }
        div.buttons { a.button href=(format!("undo?number={}", change.number)) { "Undo this change" } }
        @for file in differences.iter().take(MAX_FILES) {
            section.card {
                h2.path { (memory_link(&names, &file.locator)) }
                (difference(file.before.as_deref(), file.after.as_deref()))
            }
        }
        @if differences.len() > MAX_FILES {
            p.dim { "And " (differences.len() - MAX_FILES) " more files: " code { "haversack log " (change.number) } }
        }
    };
    Ok(View { section: Section::Time, title: format!("Change {}", change.number), body })
}

//! Changing a memory in the page: edit and delete, each only if the file is still what the user saw.
//!
//! An edit that lost the race is shown beside the text that won. Nothing is written, and nothing of the user's text is dropped.

use haversack::ids::ContentHash;
use haversack::store::{Bytes, Locator};
use maud::{Markup, html};

use super::memory::{MAX_EDITED_BYTES, read};
use super::{author, difference, shown_name};
use crate::app::passages::{Revision, file_history};
use crate::app::revise::{Revised, bring_back, revise};
use crate::error::CommandError;
use crate::serve::page::data::PageData;
use crate::serve::page::form::{Fields, encoded};
use crate::serve::page::shell::{Mood, Section, View, memory_address, notice};

/// The value of the field `seen` if the user saw that there is no file.
const NOTHING: &str = "nothing";

/// The answer to a form.
pub(in crate::serve::page) enum Outcome {
    /// Go on to another view.
    GoTo(String),
    /// The form was not carried out; this view says why.
    Refused(View),
}

/// The form of an edit.
pub(in crate::serve::page) fn view(data: &PageData, fields: &Fields) -> Result<View, CommandError> {
    let locator = fields.place()?;
    let title = shown_name(&data.names(), &locator);
    let Some(content) = read(data, &locator)? else {
        return Err(CommandError::user(format!("{locator} is not there"), "It was deleted or moved"));
    };
    let body = match (content.barrier(), content.text()) {
        (None, Some(text)) => html! {
            h1 { "Edit " (title) }
            (form(data, &locator, &content.hash().to_string(), text, "Save"))
        },
        (why, _) => html! {
            h1 { (title) }
            (notice(&html! { (why.unwrap_or_default()) " Edit it with " code { "haversack edit" } "." }, Mood::Bad))
        },
    };
    Ok(View { section: Section::Memories, title: format!("Edit {title}"), body })
}

fn form(data: &PageData, locator: &Locator, seen: &str, text: &str, save: &str) -> Markup {
    html! {
        form method="post" action="edit" {
            (data.token_field())
            input type="hidden" name="path" value=(locator.as_str());
            input type="hidden" name="seen" value=(seen);
            label.unseen for="text" { "Text of the memory" }
            // A browser drops a newline right after the element begins.
            textarea #text name="text" spellcheck="true" maxlength=(MAX_EDITED_BYTES) { "\n" (text) }
            div.buttons {
                button.main { (save) }
                a.button href=(memory_address(locator)) { "Cancel" }
            }
        }
    }
}

/// Saves a text.
pub(in crate::serve::page) fn save(data: &PageData, fields: &Fields) -> Result<Outcome, CommandError> {
    let locator = fields.place()?;
    let sent = fields.get("text");
    let now = read(data, &locator)?;
    // Browsers send every end of a line as CR LF.
    let has_pairs = now.as_ref().and_then(|now| now.text()).is_some_and(|text| text.contains("\r\n"));
    let text = if has_pairs { sent.to_owned() } else { sent.replace("\r\n", "\n") };
    let new = Bytes::from(text.clone());
    let revised = match fields.get("seen") {
        NOTHING => bring_back(data.settings(), &locator, new)?,
        seen => revise(data.settings(), &locator, parse_seen(seen)?, Some(new))?,
    };
    Ok(match revised {
        Revised::Written => {
            data.wrote();
            Outcome::GoTo(format!("{}&saved=1", memory_address(&locator)))
        }
        Revised::Same => Outcome::GoTo(memory_address(&locator)),
        Revised::Lost(theirs) => Outcome::Refused(lost(data, &locator, &text, theirs.as_deref())),
    })
}

/// Deletes a memory.
pub(in crate::serve::page) fn delete(data: &PageData, fields: &Fields) -> Result<Outcome, CommandError> {
    let locator = fields.place()?;
    Ok(match revise(data.settings(), &locator, parse_seen(fields.get("seen"))?, None)? {
        Revised::Written | Revised::Same => {
            data.wrote();
            Outcome::GoTo(format!("memories?deleted={}", encoded(locator.as_str())))
        }
        Revised::Lost(_) => {
            let title = shown_name(&data.names(), &locator);
            let body = html! {
                h1 { (title) }
                (notice(&html! { "This memory changed after you opened it, so it was not deleted." }, Mood::Bad))
                p { a.button href=(memory_address(&locator)) { "See it as it is now" } }
            };
            Outcome::Refused(View { section: Section::Memories, title, body })
        }
    })
}

pub(super) fn parse_seen(seen: &str) -> Result<ContentHash, CommandError> {
    seen.parse().map_err(|_| {
        CommandError::user("the form does not say which text was edited", "Open the memory again")
    })
}

/// Returns the machine, agent and session that deleted a memory, as far as the history knows them.
fn deleter(data: &PageData, locator: &Locator) -> Markup {
    let history = file_history(data.settings(), locator, None).ok().filter(|history| !history.is_waiting);
    match history.as_ref().and_then(|history| history.revisions.first()) {
        Some(Revision { change, .. }) => {
            author(&change.device, change.agent.as_deref(), change.session.as_deref())
        }
        None => html! { "A program on this machine" },
    }
}

/// Returns the user's text beside the text that is there now.
fn lost(data: &PageData, locator: &Locator, ours: &str, theirs: Option<&[u8]>) -> View {
    let title = shown_name(&data.names(), locator);
    let seen = theirs.map_or(NOTHING.to_owned(), |theirs| ContentHash::of(theirs).to_string());
    let body = html! {
        h1 { "Edit " (title) }
        @match theirs {
            Some(_) => { (notice(&html! { strong { "Your edit was not saved." } " This memory changed after you opened it. Your text is below, complete." }, Mood::Bad)) }
            None => { (notice(&html! { strong { "Your edit was not saved." } " " (deleter(data, locator)) " deleted this memory after you opened it. Your text is below, complete." }, Mood::Bad)) }
        }
        @if let Some(theirs) = theirs {
            h2 { "From the text that is there now (−) to yours (+)" }
            (difference(Some(theirs), Some(ours.as_bytes())))
        }
        h2 { "Your text" }
        p.dim { "Copy the lines that you need from the other text. Saving replaces that text with yours; it stays in the history." }
        (form(data, locator, &seen, ours, if theirs.is_some() { "Save my text over theirs" } else { "Save it as a new file" }))
    };
    View { section: Section::Memories, title: format!("Edit {title}"), body }
}

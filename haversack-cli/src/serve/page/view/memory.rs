//! One memory: its text, its links in both directions, its history, and the author of each passage.

use haversack::display::one_line;
use haversack::document::{Document, Entry};
use haversack::ids::ContentHash;
use haversack::store::{Bytes, ErrorKind, Locator, block_on};
use haversack::tidy::Outdated;
use haversack::{Reason, View as Seen, tidy};
use maud::{Markup, html};

use super::{author, labels, memory_link, shown_name, size, when};
use crate::app::history::headline;
use crate::app::memories::Catalogue;
use crate::app::passages::{FileHistory, file_history};
use crate::app::revise::{Pin, pinned_text};
use crate::error::CommandError;
use crate::home::store::open_to_look;
use crate::serve::page::data::PageData;
use crate::serve::page::form::{Fields, encoded};
use crate::serve::page::shell::{Mood, Section, View, memory_address, notice};
use crate::serve::page::text::{beginning, formatted, visible};

/// The longest text that can be edited in a page.
pub(super) const MAX_EDITED_BYTES: usize = 1024 * 1024;

/// The content of a file.
pub(super) struct Content {
    pub(super) locator: Locator,
    pub(super) bytes: Bytes,
}

impl Content {
    pub(super) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok().filter(|text| !text.contains('\0'))
    }

    pub(super) fn hash(&self) -> ContentHash {
        ContentHash::of(&self.bytes)
    }

    /// Returns why a browser cannot edit the file; `None` if it can.
    ///
    /// A browser changes some line endings when it sends a text back, so a text with such endings would change where nobody edited it.
    pub(super) fn barrier(&self) -> Option<&'static str> {
        let Some(text) = self.text() else { return Some("It is not text.") };
        let without_pairs = text.replace("\r\n", "");
        let is_mixed =
            without_pairs.contains('\r') || (text.contains("\r\n") && without_pairs.contains('\n'));
        match text.len() > MAX_EDITED_BYTES {
            true => Some("It is too long to edit in a page."),
            false if is_mixed => Some("Its lines end in different ways, which a browser would change."),
            false => None,
        }
    }
}

/// Returns the form that pins a memory or removes its pin.
fn pin_form(data: &PageData, locator: &Locator, seen: ContentHash, pin: Pin) -> Markup {
    let (value, text) = match pin {
        Pin::Set => ("set", "Pin"),
        Pin::Removed => ("removed", "Unpin"),
    };
    html! {
        form method="post" action="pin" {
            (data.token_field())
            input type="hidden" name="path" value=(locator.as_str());
            input type="hidden" name="seen" value=(seen);
            input type="hidden" name="pin" value=(value);
            button { (text) }
        }
    }
}

/// Reads a file; `None` if there is none.
pub(super) fn read(data: &PageData, locator: &Locator) -> Result<Option<Content>, CommandError> {
    match block_on(open_to_look(data.settings())?.view(locator)) {
        Ok(Seen::File(object)) => Ok(Some(Content { locator: locator.clone(), bytes: object.bytes })),
        Ok(Seen::Directory(_)) => {
            Err(CommandError::user(format!("{locator} is a directory"), "Choose a memory from the list"))
        }
        Err(error) if *error.reason() == Reason::NotFound || error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(in crate::serve::page) fn view(data: &PageData, fields: &Fields) -> Result<View, CommandError> {
    let locator = fields.place()?;
    let title = shown_name(&data.names(), &locator);
    let content = read(data, &locator)?;
    let text = content.as_ref().and_then(Content::text);
    // A home that was never written to has no history, and a memory is shown all the same.
    let history = file_history(data.settings(), &locator, text);
    let body = html! {
        @if !fields.get("saved").is_empty() {
            (notice(&html! { "Saved. " a href=(undo_address(&locator)) { "Undo" } }, Mood::Good))
        }
        @if !fields.get("accepted").is_empty() {
            (notice(&html! { "Accepted. " a href=(undo_address(&locator)) { "Undo" } }, Mood::Good))
        }
        @match fields.get("pinned") {
            "set" => { (notice(&html! { "Pinned. Tidying leaves it alone." }, Mood::Good)) }
            "removed" => { (notice(&html! { "Unpinned. Tidying treats it like every other memory." }, Mood::Good)) }
            _ => {}
        }
        @if !fields.get("settled").is_empty() {
            (notice(&html! { "Settled. " a href=(undo_address(&locator)) { "Undo" } }, Mood::Good))
        }
        @match &content {
            Some(content) => { (present(data, content, &title, history.as_ref().ok(), fields)?) }
            None => {
                h1 { (title) }
                (notice(&html! { "This memory is not there. It was deleted or moved." }, Mood::Bad))
                p { a.button href=(undo_address(&locator)) { "Bring it back" } }
            }
        }
        section aria-labelledby="history" {
            h2 #history { "History" }
            @match &history {
                Ok(history) => { (revisions(data, history)) }
                Err(why) => { p.dim { (one_line(&why.message)) } }
            }
        }
    };
    Ok(View { section: Section::Memories, title, body })
}

fn undo_address(locator: &Locator) -> String {
    format!("undo?path={}", encoded(locator.as_str()))
}

fn present(
    data: &PageData,
    content: &Content,
    title: &str,
    history: Option<&FileHistory>,
    fields: &Fields,
) -> Result<Markup, CommandError> {
    let locator = &content.locator;
    let path = encoded(locator.as_str());
    let names = data.names();
    let catalogue = data.catalogue()?;
    let listed = catalogue.get(locator);
    let today = data.settings().today();
    let outdated = listed.and_then(|listed| listed.outdated(today));
    let is_signed = fields.get("show") == "authors";
    let links = catalogue.links_of(locator);
    let linked_from: Vec<&Locator> = catalogue.links_to(locator).collect();
    let link = |target: &str| catalogue.target(locator, target).map(memory_address);
    Ok(html! {
        h1 { (listed.map_or(title, |listed| listed.title.as_str())) }
        p.row {
            span.path.dim { (title) }
            @if let Some(listed) = listed { span.chip { (listed.kind) } (labels(listed, today)) }
            span.dim { (size(content.bytes.len() as u64)) }
            @if let Some(modified) = listed.and_then(|listed| listed.modified) { (when(data.now(), modified)) }
            @if history.is_some_and(|history| history.is_waiting) { span.chip { "not sent yet" } }
        }
        @if let Some(outdated) = outdated { (notice(&outdated_text(outdated, &catalogue, locator), Mood::Bad)) }
        div.buttons {
            @match content.barrier() {
                None => { a.button.main href=(format!("edit?path={path}")) { "Edit" } }
                Some(why) => { span.dim { (why) " Edit it with " code { "haversack edit" } "." } }
            }
            a.button href=(undo_address(locator)) { "Undo the last change" }
            @if let Some(pin) = possible_pin(content) { (pin_form(data, locator, content.hash(), pin)) }
            form method="post" action="delete" {
                (data.token_field())
                input type="hidden" name="path" value=(locator.as_str());
                input type="hidden" name="seen" value=(content.hash());
                button.bad { "Delete" }
            }
        }
        nav.tabs aria-label="Ways to show the text" {
            a href=(format!("memory?path={path}")) aria-current=[(!is_signed && fields.get("show") != "source").then_some("page")] { "Text" }
            a href=(format!("memory?path={path}&show=source")) aria-current=[(fields.get("show") == "source").then_some("page")] { "As it is in the file" }
            a href=(format!("memory?path={path}&show=authors")) aria-current=[is_signed.then_some("page")] { "Who wrote what" }
        }
        div.card.memory {
            @match (content.text(), history) {
                (None, _) => { p.dim { "This file is not text: " (size(content.bytes.len() as u64)) "." } }
                (Some(_), Some(history)) if is_signed && !history.passages.is_empty() => { (signed(data, history)) }
                (Some(text), _) if fields.get("show") == "source" || is_signed => { (cut(text)) pre tabindex="0" { (visible(beginning(text))) } }
                (Some(text), _) => { (cut(text)) (rendered(beginning(text), &link)) }
            }
        }
        @if !links.is_empty() || !linked_from.is_empty() {
            p { a href=(format!("graph?around={path}")) { "See its links as a picture" } }
            div.cols {
                @if !links.is_empty() {
                    section.card { h2 { "Links to" } ul.plain { @for target in &links { li { (memory_link(&names, target)) } } } }
                }
                @if !linked_from.is_empty() {
                    section.card { h2 { "Linked from" } ul.plain { @for from in &linked_from { li { (memory_link(&names, from)) } } } }
                }
            }
        }
    })
}

/// Returns the pin that a memory can get or lose; `None` if its form has no place for one.
fn possible_pin(content: &Content) -> Option<Pin> {
    let text = content.text()?;
    let pin = if tidy::is_pinned(text.as_bytes()) { Pin::Removed } else { Pin::Set };
    pinned_text(&content.locator, text, pin).map(|_| pin)
}

/// Says why a memory is out of date, with a link to the memory that replaces it.
fn outdated_text(outdated: Outdated<'_>, catalogue: &Catalogue, locator: &Locator) -> Markup {
    html! {
        @match outdated {
            Outdated::SupersededBy(by) => {
                strong { "Superseded" } " by "
                @match catalogue.target(locator, by) {
                    Some(target) => { a href=(memory_address(target)) { (one_line(by)) } "." }
                    None => { (one_line(by)) ", which is not there." }
                }
            }
            Outdated::Status(status) => { strong { "Out of date" } ": its status is " (one_line(status)) "." }
            Outdated::StaleAfter(day) => { strong { "Out of date" } ": it was to be looked at after " (day) "." }
        }
    }
}

/// Returns a note about a text that is not shown whole.
fn cut(text: &str) -> Markup {
    let shown = beginning(text).len();
    html! {
        @if shown < text.len() {
            p.dim { "The first " (size(shown as u64)) " of " (size(text.len() as u64)) " are shown. All of it: " code { "haversack view" } }
        }
    }
}

/// Returns a memory's fields and its formatted text.
pub(in crate::serve::page) fn rendered(text: &str, link: &dyn Fn(&str) -> Option<String>) -> Markup {
    let Document { frontmatter, body, .. } = Document::read(text);
    let fields = frontmatter.map(|frontmatter| named_values(&frontmatter.entries)).unwrap_or_default();
    html! {
        @if !fields.is_empty() {
            dl.fields.small {
                @for (name, value) in &fields { dt { (visible(name)) } dd { (visible(value)) } }
            }
        }
        (formatted(body, link))
    }
}

/// Returns the names and values of a frontmatter, the fields below a field after it. A comment has no name.
fn named_values<'a>(entries: &[Entry<'a>]) -> Vec<(&'a str, &'a str)> {
    let mut values = Vec::new();
    for entry in entries {
        match entry {
            Entry::Field(field) => match field.children() {
                Some(children) => {
                    values.push((field.name, ""));
                    values.extend(named_values(&children));
                }
                None => {
                    values.push((field.name, field.raw.split_once(':').map_or("", |(_, value)| value.trim())))
                }
            },
            Entry::Other(line) if line.trim().is_empty() => {}
            Entry::Other(line) => values.push(("", line.trim())),
        }
    }
    values
}

/// Returns the text with the author of each passage beside it.
fn signed(data: &PageData, history: &FileHistory) -> Markup {
    html! {
        div.signed {
            @for passage in &history.passages {
                div.small {
                    @match &passage.author {
                        Some(by) => {
                            (author(&by.device, by.agent.as_deref(), by.session.as_deref())) br;
                            a href=(format!("change?number={}", by.number)) { (when(data.now(), by.time)) }
                        }
                        None => { span.dim { @if history.is_waiting { "not in the history yet" } @else { "before the history" } } }
                    }
                }
                pre { (visible(&passage.text)) }
            }
        }
    }
}

fn revisions(data: &PageData, history: &FileHistory) -> Markup {
    html! {
        @if history.is_waiting { p.dim { "The newest change was not sent yet." } }
        ol.plain.rows.card {
            @for revision in &history.revisions {
                @let change = &revision.change;
                li.row {
                    span.grow {
                        a href=(format!("change?number={}", change.number)) title=(headline(change).trim()) { "Change " (change.number) } " "
                        (author(&change.device, change.agent.as_deref(), change.session.as_deref())) " "
                        span.dim { (one_line(&change.cause)) }
                    }
                    @if let Some((gone, added)) = revision.lines { span.num.small { "+" (added) " −" (gone) } }
                    (when(data.now(), change.time))
                }
            }
            @if history.revisions.is_empty() { li.dim { "No change of it is in the history on this machine." } }
        }
        @if history.is_cut { p.dim { "Older changes are not listed here: " code { "haversack log" } } }
    }
}

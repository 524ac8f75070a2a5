//! One file with everything to read: no script, no request to anywhere, to look at or to send.
//!
//! The user may send the file to other people, so memories that seem to contain a secret are left out and listed.

use std::collections::BTreeMap;

use haversack::display::one_line;
use haversack::ids::ContentHash;
use haversack::store::{Locator, block_on};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::data::PageData;
use super::shell::STYLE;
use super::text::beginning_within;
use super::view::memory::rendered;
use super::view::now::verdict;
use crate::app::memories::Listed;
use crate::error::CommandError;
use crate::home::gate::NothingPrivate;
use crate::home::store::open_to_look;
use crate::settings::Resolved;
use crate::ui::moments::{counted, local};

/// The beginning of every such file, by which we know one that may be replaced.
pub(crate) const MARK: &str = "<!-- haversack page -->";

/// The most bytes of texts in a file.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The most bytes of one text in a file.
const MAX_TEXT_BYTES: usize = 200 * 1024;

/// A file to look at or to send.
pub(crate) struct Export {
    pub(crate) html: String,
    pub(crate) memories: usize,
    /// Memories that are left out because they look like they hold a secret.
    pub(crate) secret: Vec<Locator>,
    /// The number of memories that are left out because the file would be too large, or they could not be read.
    pub(crate) left_out: usize,
}

/// Makes the file.
pub(crate) fn export(resolved: &Resolved) -> Result<Export, CommandError> {
    let data = PageData::new(resolved, String::new(), None);
    let status = data.status()?;
    let names = data.names();
    let gate = NothingPrivate::of(data.settings())?;
    let memory = open_to_look(data.settings())?;
    let catalogue = data.catalogue()?;
    let (mut secret, mut left_out, mut bytes) = (Vec::new(), 0, 0);
    let mut groups: BTreeMap<&str, Vec<(&Listed, String)>> = BTreeMap::new();
    for listed in catalogue.iter() {
        let Ok(object) = block_on(memory.files().read(&listed.locator)) else {
            left_out += 1;
            continue;
        };
        if !gate.secrets(&object.bytes).is_empty() {
            secret.push(listed.locator.clone());
            continue;
        }
        bytes += object.bytes.len();
        if bytes > MAX_BYTES {
            left_out += 1;
            continue;
        }
        let text = String::from_utf8_lossy(&object.bytes).into_owned();
        groups.entry(listed.group()).or_default().push((listed, text));
    }
    let memories = groups.values().map(Vec::len).sum();
    let link = |from: &Locator, target: &str| {
        let target = catalogue.target(from, target)?;
        (!secret.contains(target)).then(|| format!("#{}", anchor(target)))
    };
    let body = html! {
        header { span.brand { "Haversack" } span.dim { "as it was on " (local(data.now())) } }
        main {
            (verdict(&status, &names))
            p { (counted(memories, "file")) " of memory"
                @if !secret.is_empty() { ". Left out, because they look like they hold a secret: " @for (at, locator) in secret.iter().enumerate() { @if at > 0 { ", " } (one_line(&names.show(locator))) } }
                @if left_out > 0 { ". Left out for their size, or because they could not be read: " (counted(left_out, "file")) }
                "."
            }
            nav aria-label="Contents" {
                @for listed in groups.values() {
                    details open[groups.len() == 1] {
                        summary { (title(&names, listed)) " " span.dim { (listed.len()) } }
                        ul { @for (listed, _) in listed { li { a href=(format!("#{}", anchor(&listed.locator))) { (one_line(&listed.title)) } } } }
                    }
                }
            }
            @for listed in groups.values() {
                h2 { (title(&names, listed)) }
                @for (listed, text) in listed {
                    article.card.memory id=(anchor(&listed.locator)) {
                        h3 { (one_line(&listed.title)) }
                        p.row.small { span.path.dim { (one_line(&names.show(&listed.locator))) } span.chip { (listed.kind) } @if let Some(modified) = listed.modified { time { (local(modified)) } } }
                        (rendered(beginning_within(text, MAX_TEXT_BYTES), &|target| link(&listed.locator, target)))
                        @if beginning_within(text, MAX_TEXT_BYTES).len() < text.len() { p.dim { "The text goes on; only its beginning is in this file." } }
                    }
                }
            }
        }
    };
    let html = whole(&body).into_string();
    Ok(Export { html, memories, left_out, secret })
}

fn title(names: &crate::projects::names::Names, listed: &[(&Listed, String)]) -> String {
    match listed.first() {
        Some((first, _)) if haversack_recall::project_of(&first.locator).is_some() => {
            one_line(names.show(&first.locator).split('/').next().unwrap_or_default()).into_owned()
        }
        Some((first, _)) if !first.group().is_empty() => one_line(first.group()).into_owned(),
        _ => "Other".to_owned(),
    }
}

/// Returns the name of a memory's place in the file.
fn anchor(locator: &Locator) -> String {
    format!("m{}", &ContentHash::of(locator.as_str().as_bytes()).to_string()[..16])
}

fn whole(body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        (PreEscaped(MARK))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
                meta name="referrer" content="no-referrer";
                title { "Haversack" }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    }
}

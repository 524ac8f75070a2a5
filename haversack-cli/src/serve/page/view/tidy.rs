//! Tidy: which files leave when, by the planner's own dry run, and which stay because they are pinned.

use haversack::display::one_line;
use maud::{Markup, html};

use super::{memory_link, shown_name};
use crate::app::memories::Listed;
use crate::app::tidy::{HORIZONS, Leaving, TidyOutlook};
use crate::error::CommandError;
use crate::serve::page::data::PageData;
use crate::serve::page::form::Fields;
use crate::serve::page::shell::{Section, View, memory_address};
use crate::ui::moments::counted;

/// The most files of one span of time that are listed.
const MAX_LISTED: usize = 60;

pub(in crate::serve::page) fn view(data: &PageData, _fields: &Fields) -> Result<View, CommandError> {
    let outlook = data.outlook()?;
    let catalogue = data.catalogue()?;
    let names = data.names();
    let abbreviations = names.abbreviations();
    let TidyOutlook { leaving, kept } = outlook.as_ref();
    let pinned: Vec<&Listed> = catalogue.iter().filter(|listed| listed.is_pinned()).collect();
    let told = |text: &str| one_line(&abbreviations.apply(text)).into_owned();
    let row = |leaving: &Leaving| -> Markup {
        html! {
            li {
                div.row {
                    span.grow { (memory_link(&names, &leaving.locator)) }
                    @if !leaving.is_whole { span.chip { "in part" } }
                }
                p.small.dim { (told(&leaving.what)) }
            }
        }
    };
    let last = HORIZONS[HORIZONS.len() - 1];
    let body = html! {
        h1 { "Tidy" }
        p {
            "Tidying rolls old logs and digests up into weeks, months and years, and drops what its kind does not keep. "
            @match leaving.len() {
                0 => { "Within " (last) " days nothing leaves." }
                count => { "Within " (last) " days " (counted(count, "file")) @if count == 1 { " leaves" } @else { " leave" } ", if nothing else changes." }
            }
        }
        p.dim { "To do it now: " code { "haversack tidy" } ". Every tidy can be taken back. A memory that you pin stays as it is." }
        @for within in HORIZONS {
            @let of = leaving.iter().filter(|leaving| leaving.within_days == within).collect::<Vec<_>>();
            @if !of.is_empty() {
                section aria-labelledby=(format!("within-{within}")) {
                    h2 id=(format!("within-{within}")) {
                        @if within == 0 { "At the next tidy" } @else { "Within " (within) " days" }
                        span.dim { " (" (of.len()) ")" }
                    }
                    ol.plain.rows.card {
                        @for leaving in of.iter().take(MAX_LISTED) { (row(leaving)) }
                        @if of.len() > MAX_LISTED { li.dim { "And " (of.len() - MAX_LISTED) " more: " code { "haversack tidy --dry-run" } } }
                    }
                }
            }
        }
        section aria-labelledby="pinned" {
            h2 #pinned { "Pinned" span.dim { " (" (pinned.len()) ")" } }
            ol.plain.rows.card {
                @for listed in pinned.iter().take(MAX_LISTED) {
                    li.row {
                        span.grow {
                            a href=(memory_address(&listed.locator)) { (one_line(&listed.title)) } br;
                            span.path.dim.small { (shown_name(&names, &listed.locator)) }
                        }
                        span.chip { "pinned" }
                        a.button href=(memory_address(&listed.locator)) aria-label=(format!("Open {} to unpin it", one_line(&listed.title))) { "Unpin…" }
                    }
                }
                @if pinned.len() > MAX_LISTED { li.dim { "And " (pinned.len() - MAX_LISTED) " more." } }
                @if pinned.is_empty() { li.dim { "No memory is pinned. Open a memory and press Pin." } }
            }
        }
        @if !kept.is_empty() {
            section aria-labelledby="kept" {
                h2 #kept { "Old, and stay all the same" span.dim { " (" (kept.len()) ")" } }
                ol.plain.rows.card {
                    @for one in kept.iter().take(MAX_LISTED) {
                        li.row { span.grow { (memory_link(&names, &one.locator)) } span.dim { (told(&one.why)) } }
                    }
                    @if kept.len() > MAX_LISTED { li.dim { "And " (kept.len() - MAX_LISTED) " more." } }
                }
            }
        }
    };
    Ok(View { section: Section::Tidy, title: "Tidy".to_owned(), body })
}

//! Inbox: memories that are proposed, each with the difference that it would make. The user accepts one, accepts it in other words, or rejects it.
//!
//! A form names the state of the target that the user saw. If the target changed, nothing is written, and the proposal is shown again for the new text.

use haversack::display::one_line;
use haversack::proposal::Answered;
use maud::{Markup, html};

use super::edit::Outcome;
use super::{difference, shown_name};
use crate::app::review::{Verdict, Waiting, answer as answer_proposal, waiting, waiting_one};
use crate::error::CommandError;
use crate::home::store::{open, open_to_look};
use crate::home::{Work, local_history};
use crate::projects::names::Names;
use crate::serve::page::data::PageData;
use crate::serve::page::form::Fields;
use crate::serve::page::shell::{Mood, Section, View, memory_address, notice};
use crate::serve::page::text::visible;
use crate::ui::moments::counted;

/// The most proposals that are shown at once.
const MAX_SHOWN: usize = 30;

/// The most sources of a proposal that are named.
const MAX_SOURCES: usize = 4;

/// The cause of our changes in the history.
const CAUSE: &str = "review";

/// What happened to the answer of a form.
struct Told<'t> {
    /// The notice above the proposals.
    notice: Markup,
    /// The id of the proposal, and the user's words for it, which are not lost.
    words: Option<(&'t str, &'t str)>,
}

pub(in crate::serve::page) fn view(data: &PageData, fields: &Fields) -> Result<View, CommandError> {
    let done = (fields.get("done") == "rejected").then(|| Told {
        notice: notice(&html! { "Rejected. It will not be proposed again." }, Mood::Good),
        words: None,
    });
    shown(data, done.as_ref())
}

fn shown(data: &PageData, told: Option<&Told<'_>>) -> Result<View, CommandError> {
    let all = waiting(data.settings(), &open_to_look(data.settings())?)?;
    let names = data.names();
    let body = html! {
        @if let Some(told) = told { (told.notice) }
        h1 {
            @match all.len() {
                0 => { "No proposal waits" }
                1 => { "1 memory is proposed" }
                count => { (count) " memories are proposed" }
            }
        }
        p.dim {
            @if all.is_empty() { "Tidying reads the logs of your conversations and proposes what should be remembered. Nothing becomes a memory before you say yes: " code { "haversack tidy" } }
            @else { "Nothing becomes a memory before you say yes." }
        }
        @for one in all.iter().take(MAX_SHOWN) { (proposed(data, &names, one, told)) }
        @if all.len() > MAX_SHOWN { p.dim { "And " (all.len() - MAX_SHOWN) " more, shown when these are answered." } }
    };
    Ok(View { section: Section::Inbox, title: "Inbox".to_owned(), body })
}

fn proposed(data: &PageData, names: &Names, one: &Waiting, told: Option<&Told<'_>>) -> Markup {
    let (proposal, patch) = (&one.proposal, &one.patch);
    let id = &proposal.id;
    let words = told.and_then(|told| told.words).filter(|(of, _)| *of == id).map(|(_, words)| words);
    let more = proposal.sources.len().saturating_sub(MAX_SOURCES);
    html! {
        article.card aria-labelledby=(format!("proposal-{id}")) {
            h2 id=(format!("proposal-{id}")) { (one_line(&proposal.name)) }
            p.row.small {
                span.chip { (one_line(&proposal.kind)) }
                @match patch.before {
                    Some(_) => { span { "changes " a href=(memory_address(&patch.target)) { (shown_name(names, &patch.target)) } } }
                    None => { span { "makes " span.path { (shown_name(names, &patch.target)) } } }
                }
            }
            p.small.dim {
                "Proposed because " (one_line(&proposal.why)) ". Said by " (one_line(&proposal.who)) ", in "
                @for (at, source) in proposal.sources.iter().take(MAX_SOURCES).enumerate() { @if at > 0 { ", " } span.path { (one_line(source)) } }
                @if more > 0 { " and " (counted(more, "more line")) }
                ". Found by " (one_line(&proposal.by)) "."
            }
            @if one.is_base_changed() { p { strong { "The memory changed since this was proposed." } " The difference is the one to the text as it is now." } }
            @if patch.before.as_ref() == Some(&patch.after) {
                p { "The memory says this already. Accepting it adds nothing." }
            } @else {
                (difference(patch.before.as_ref().map(String::as_bytes), Some(patch.after.as_bytes())))
            }
            form method="post" action="answer" {
                (data.token_field())
                input type="hidden" name="id" value=(id);
                input type="hidden" name="seen" value=(one.seen());
                details open[words.is_some()] {
                    summary { "Edit the words" }
                    label.unseen for=(format!("words-{id}")) { "Words of the memory" }
                    textarea.short id=(format!("words-{id}")) name="words" rows="3" { "\n" (words.unwrap_or(&proposal.add)) }
                    button name="verdict" value="edit" { "Accept in these words" }
                }
                div.buttons {
                    button.main name="verdict" value="accept" { "Accept" }
                    button.bad name="verdict" value="reject" { "Reject" }
                }
            }
        }
    }
}

/// Carries out the user's answer to a proposal, if its target is still what the user saw.
pub(in crate::serve::page) fn answer(data: &PageData, fields: &Fields) -> Result<Outcome, CommandError> {
    let id = fields.get("id");
    // Browsers send every end of a line as CR LF.
    let words = fields.get("words").replace("\r\n", "\n");
    let verdict = match fields.get("verdict") {
        "accept" => Verdict::Accept,
        "edit" if words.trim().is_empty() => {
            return Err(CommandError::user("the memory would have no words", "Write some, or reject it"));
        }
        "edit" => Verdict::Edit(&words),
        "reject" => Verdict::Reject,
        _ => return Err(CommandError::user("the form has no answer", "Use the buttons of the page")),
    };
    let memory = open(data.settings())?;
    let kept_words = (verdict != Verdict::Accept).then_some((id, words.as_str()));
    let now = waiting_one(data.settings(), &memory, id)?;
    let is_seen = now.as_ref().is_none_or(|now| now.seen() == fields.get("seen"));
    if verdict != Verdict::Reject && !is_seen {
        return changed(data, kept_words);
    }
    let answered = answer_proposal(data.settings(), &memory, id, verdict)?;
    // The files are written. A history that cannot be recorded now is recorded at the next look.
    drop(local_history::record(data.settings(), Work::Sync, CAUSE));
    data.wrote();
    match answered {
        Answered::Accepted(target) => Ok(Outcome::GoTo(format!("{}&accepted=1", memory_address(&target)))),
        Answered::Rejected => Ok(Outcome::GoTo("inbox?done=rejected".to_owned())),
        Answered::ProposedAgain(_) => changed(data, kept_words),
        Answered::NotFound => {
            let lost = html! {
                "This proposal does not wait any more: it was answered in another window or on another machine. Nothing was changed."
                @if let Some((_, words)) = kept_words { " Your words: " (visible(words)) }
            };
            let told = Told { notice: notice(&lost, Mood::Bad), words: None };
            Ok(Outcome::Refused(shown(data, Some(&told))?))
        }
    }
}

/// Returns the proposals as they are now, because a target changed.
fn changed(data: &PageData, words: Option<(&str, &str)>) -> Result<Outcome, CommandError> {
    let told = html! { strong { "Nothing was added." } " The memory changed since you saw the proposal. It is proposed again below, for the text as it is now." };
    let told = Told { notice: notice(&told, Mood::Bad), words };
    Ok(Outcome::Refused(shown(data, Some(&told))?))
}

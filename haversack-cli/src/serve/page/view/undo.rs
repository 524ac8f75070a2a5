//! Undo: shows what taking a change back does to each file, then does it.

use haversack::display::one_line;
use haversack::store::Locator;
use maud::html;

use super::edit::Outcome;
use super::shown_name;
use crate::app::undo::{NOTHING, Plan, Wanted, plan};
use crate::error::CommandError;
use crate::home::{Work, local_history};
use crate::serve::page::data::PageData;
use crate::serve::page::form::Fields;
use crate::serve::page::shell::{Mood, Section, View, notice};

/// Returns what is to be taken back: a change, the last change of a file, or the last change of this machine.
fn wanted(fields: &Fields) -> Result<Wanted, CommandError> {
    let (number, path) = (fields.get("number"), fields.get("path"));
    let refuse = |why: String| CommandError::user(why, "Choose a change from the list");
    match (number, path) {
        ("", "") => Ok(Wanted::Last),
        ("", path) => Locator::parse(path).map(Wanted::File).map_err(|error| refuse(error.to_string())),
        (number, _) => number.parse().map(Wanted::Change).map_err(refuse),
    }
}

fn gather(data: &PageData, fields: &Fields) -> Result<Plan, CommandError> {
    plan(data.settings(), &wanted(fields)?)
}

pub(in crate::serve::page) fn view(data: &PageData, fields: &Fields) -> Result<View, CommandError> {
    let plan = gather(data, fields)?;
    Ok(shown(data, fields, &plan))
}

fn shown(data: &PageData, fields: &Fields, plan: &Plan) -> View {
    let names = data.names();
    let body = html! {
        h1 { "Undo" }
        @if plan.is_empty() {
            (notice(&html! { (NOTHING.split(". ").next().unwrap_or(NOTHING)) "." }, Mood::Bad))
        }
        @if !plan.outcomes.is_empty() {
            div.card {
                p { strong { (one_line(plan.text().lines().next().unwrap_or_default())) } }
                ul.plain.rows {
                    @for outcome in &plan.outcomes {
                        li.row { span.grow.path { (shown_name(&names, &outcome.locator)) } span { (outcome.fate()) } }
                    }
                }
                p.dim { "Later edits of these files stay." }
            }
        }
        @if !plan.is_empty() {
            form.buttons method="post" action="undo" {
                (data.token_field())
                input type="hidden" name="number" value=(fields.get("number"));
                input type="hidden" name="path" value=(fields.get("path"));
                input type="hidden" name="plan" value=(plan.text());
                button.main { "Take it back" }
                a.button href="now" { "Cancel" }
            }
        }
    };
    View { section: Section::Time, title: "Undo".to_owned(), body }
}

/// Carries an undo out, if it would still do what the user saw.
pub(in crate::serve::page) fn carry_out(data: &PageData, fields: &Fields) -> Result<Outcome, CommandError> {
    let plan = gather(data, fields)?;
    // Browsers send every end of a line as CR LF.
    if plan.text() != fields.get("plan").replace("\r\n", "\n") {
        let mut view = shown(data, fields, &plan);
        let told = notice(
            &html! { "Something changed since you opened this page, so nothing was taken back. This is what undo does now." },
            Mood::Bad,
        );
        view.body = html! { (told) (view.body) };
        return Ok(Outcome::Refused(view));
    }
    plan.carry_out(data.settings())?;
    // The files are changed. A history that cannot be recorded now is recorded at the next look.
    drop(local_history::record(data.settings(), Work::Sync, "undo"));
    data.wrote();
    Ok(Outcome::GoTo("now?done=undone".to_owned()))
}

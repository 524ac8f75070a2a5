//! Health: the checks of `haversack doctor`. They run when the user asks, because they start hooks and ask the remote.

use haversack::check::Verdict;
use haversack::display::one_line;
use maud::html;

use super::edit::Outcome;
use super::now::verdict;
use super::when;
use crate::error::CommandError;
use crate::serve::page::data::PageData;
use crate::serve::page::form::Fields;
use crate::serve::page::shell::{Section, View};

pub(in crate::serve::page) fn view(data: &PageData, _fields: &Fields) -> Result<View, CommandError> {
    let status = data.status()?;
    let examined = data.examined();
    let body = html! {
        h1.unseen { "Health" }
        (verdict(&status, &data.names()))
        form.buttons method="post" action="health" {
            (data.token_field())
            button.main { @if examined.is_some() { "Check everything again" } @else { "Check everything" } }
        }
        @if let Some((time, examination)) = &examined {
            h2 { "Checked " (when(data.now(), *time)) }
            div.card.scroll tabindex="0" { table {
                thead { tr { th { "Part" } th { "Result" } th { "What was found" } } }
                tbody {
                    @for finding in &examination.findings {
                        tr {
                            td { (finding.subject) }
                            td { @match finding.verdict { Verdict::Ok => { "well" } Verdict::Warn => { strong { "look at it" } } Verdict::Fail => { strong { "broken" } } } }
                            td {
                                (one_line(&finding.detail))
                                @if let Some(cure) = &finding.cure { br; span.dim { "→ " } code { (one_line(cure)) } }
                            }
                        }
                    }
                }
            } }
        } @else { p.dim { "Checks the files, the projects, the store and the hooks of agents. It starts the hooks once, and asks the store." } }
    };
    Ok(View { section: Section::Health, title: "Health".to_owned(), body })
}

/// Runs all checks.
pub(in crate::serve::page) fn check(data: &PageData, _fields: &Fields) -> Result<Outcome, CommandError> {
    data.examine();
    Ok(Outcome::GoTo("health".to_owned()))
}

//! Next session: the context that the next session in a project would be given, with its cost by part. Unless the user chooses, it is the project of the
//! directory of `haversack open`.

use std::collections::BTreeMap;

use haversack::context::{Assembled, Index, Portion};
use haversack::display::one_line;
use maud::{Markup, html};

use crate::app::session;
use crate::app::session::Wanted;
use crate::error::CommandError;
use crate::serve::page::data::PageData;
use crate::serve::page::form::Fields;
use crate::serve::page::shell::{Section, View};
use crate::serve::page::text::visible;
use crate::ui::moments::counted;

struct Preview {
    project: String,
    /// The ids and names of the projects to choose from, and if each is the one that is shown.
    choices: Vec<(String, String, bool)>,
    assembled: Assembled,
}

fn gather(data: &PageData, chosen: &str) -> Result<Preview, CommandError> {
    let settings = data.settings();
    let here = session::project_here(settings)?;
    let seen = session::projects(settings)?;
    let choices = seen.iter().filter_map(|project| Some((project.id.clone()?, project.label(settings))));
    let choices: BTreeMap<String, String> = choices.collect();
    let project = seen.into_iter().find(|project| project.id.as_deref() == Some(chosen)).unwrap_or(here);
    let is_shown = |id: &String| project.id.as_ref() == Some(id);
    let choices = choices.into_iter().map(|(id, name)| (id.clone(), name, is_shown(&id))).collect();
    let assembled = session::next(settings, &project, Wanted::by_hook(settings, Index::ReadByAgent))?;
    Ok(Preview { project: project.label(settings), choices, assembled })
}

pub(in crate::serve::page) fn view(data: &PageData, fields: &Fields) -> Result<View, CommandError> {
    let Preview { project, choices, assembled } = gather(data, fields.get("project"))?;
    let body = html! {
        h1 { "Next session in " (one_line(&project)) }
        @if !choices.is_empty() {
            form.line action="next" {
                label { "Project"
                    select name="project" {
                        option value="" { "the one of this directory" }
                        @for (id, name, is_shown) in &choices { option value=(id) selected[*is_shown] { (one_line(name)) } }
                    }
                }
                button { "Show" }
            }
        }
        @if assembled.text.is_empty() {
            div.card { p { "Nothing but what Claude Code reads by itself: " code { "MEMORY.md" } "." } }
        } @else {
            div.card {
                p { "About " strong { (counted(assembled.tokens(), "token")) } ". Claude Code reads " code { "MEMORY.md" } " by itself, besides." }
                (portions(&assembled.portions))
                @let left_out = assembled.left_out.len() + assembled.more_left_out;
                @if left_out > 0 { p.dim { (counted(left_out, "file")) " did not fit into the budget." } }
            }
            h2 { "Word for word" }
            pre tabindex="0" { (visible(&assembled.text)) }
        }
    };
    Ok(View { section: Section::Next, title: "Next session".to_owned(), body })
}

/// Returns a table of the parts of a context with their cost.
pub(super) fn portions(portions: &[Portion]) -> Markup {
    html! {
        div.scroll tabindex="0" { table {
            thead { tr { th { "File" } th { "Changed" } th.num { "Tokens" } } }
            tbody {
                @for portion in portions {
                    tr {
                        td.path { (one_line(&portion.file)) @if portion.left_out > 0 { " " span.dim { "(" (counted(portion.left_out, "line")) " left out)" } } }
                        td.dim { (one_line(&portion.from)) }
                        td.num { (portion.tokens) }
                    }
                }
            }
        } }
    }
}

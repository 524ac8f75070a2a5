//! Next session: the context that the next session in the directory of `haversack open` would be given, with its cost by part.

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
    assembled: Assembled,
}

fn gather(data: &PageData) -> Result<Preview, CommandError> {
    let project = session::project_here(data.settings())?;
    let assembled =
        session::next(data.settings(), &project, Wanted::by_hook(data.settings(), Index::ReadByAgent))?;
    Ok(Preview { project: project.label(data.settings()), assembled })
}

pub(in crate::serve::page) fn view(data: &PageData, _fields: &Fields) -> Result<View, CommandError> {
    let Preview { project, assembled } = gather(data)?;
    let body = html! {
        h1 { "Next session in " (one_line(&project)) }
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

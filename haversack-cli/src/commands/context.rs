//! `haversack context`: the memory of a project, assembled under a budget.

use std::process::ExitCode;

use clap::Args;
use haversack::context::{Budget, Index, Reach};
use serde_json::json;

use crate::app::session::{self, Wanted};
use crate::error::CommandError;
use crate::settings::Settings;
use crate::ui::Ui;
use crate::ui::moments::counted;

/// Assemble the memory of this directory's project under a budget of tokens, the most important first
///
/// First comes what every session starts with: the index, the latest digest, what is carried forward and the agent's own observations. Then come the
/// other memories by kind, recency and use. A part that does not fit is left out whole; at most one is cut.
#[derive(Debug, Args)]
pub(crate) struct ContextArgs {
    /// The most tokens, as 2000 or 400k; context.tokens if left out
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    budget: Option<usize>,

    /// Print JSON: the text, the cost of each part, and the files that were left out
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_context(
    ui: &mut Ui,
    settings: &Settings,
    args: &ContextArgs,
) -> Result<ExitCode, CommandError> {
    let budget = args.budget.unwrap_or(settings.context_tokens);
    let project = session::project_here(settings)?;
    let wanted = Wanted { budget: Budget::of_tokens(budget), reach: Reach::Everything, index: Index::Given };
    let assembled = session::next(settings, &project, wanted)?;
    if args.json {
        ui.json(&json!({
            "project": project.id,
            "budget": budget,
            "tokens": assembled.tokens(),
            "portions": assembled.portions,
            "left_out": assembled.left_out,
            "more_left_out": assembled.more_left_out,
            "text": assembled.text,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if assembled.text.is_empty() && assembled.left_out.is_empty() {
        ui.note("There is no memory of this project.");
        return Ok(ExitCode::SUCCESS);
    }
    ui.bytes(assembled.text.as_bytes())?;
    let left_out = assembled.left_out.len() + assembled.more_left_out;
    let left_out = match left_out {
        0 => "nothing left out".to_owned(),
        count => format!("{} left out (--json lists them)", counted(count, "file")),
    };
    ui.note(format!("About {} of {budget}; {left_out}.", counted(assembled.tokens(), "token")));
    Ok(ExitCode::SUCCESS)
}

/// Parses a number of tokens; `k` stands for a thousand.
fn parse_tokens(text: &str) -> Result<usize, String> {
    let (number, factor) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1000),
        None => (text, 1),
    };
    let tokens = number.parse::<usize>().ok().and_then(|number| number.checked_mul(factor));
    tokens.filter(|tokens| *tokens > 0).ok_or_else(|| "write it as 2000 or 400k".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_read_as_people_write_them() {
        assert_eq!(parse_tokens("400k"), Ok(400_000));
        assert_eq!(parse_tokens("2000"), Ok(2000));
        for odd in ["", "k", "0", "-1", "2,000", "99999999999999999999k"] {
            assert!(parse_tokens(odd).is_err(), "{odd}");
        }
    }
}

//! Proposals of memories: finds them in the interaction logs, shows what each would change, and takes the user's answer.

mod command;

use std::collections::BTreeSet;

use haversack::proposal::{self, Answered, Patch, Proposal, Said};
use haversack::store::{BackendExt, Info, Locator, block_on};
use haversack::{MAX_TEXT_BYTES, Memory, display};
use similar::TextDiff;

use crate::error::CommandError;
use crate::home::kinds;
use crate::settings::Settings;

/// The largest memory that is compared with proposals, in bytes.
const MAX_KNOWN_BYTES: u64 = 1024 * 1024;

/// What a search for proposals did.
#[derive(Debug, Default)]
pub(crate) struct Proposed {
    /// The new proposals.
    pub(crate) new: Vec<Proposal>,
    /// Why the user's command was not used.
    pub(crate) trouble: Option<String>,
}

/// A proposal that waits, with what it would change.
pub(crate) struct Waiting {
    pub(crate) proposal: Proposal,
    pub(crate) patch: Patch,
}

/// Looks for proposals in the interaction logs, and writes the new ones to the inbox.
pub(crate) fn propose(settings: &Settings, memory: &Memory) -> Result<Proposed, CommandError> {
    let files = block_on(memory.files().scan_all(&Locator::root()))?.infos;
    let kinds = kinds::load(settings)?;
    let logs = kinds.get("interaction").map(|kind| kind.names.clone()).unwrap_or_default();
    let (logs, others): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|info| logs.iter().any(|pattern| pattern.matches(&info.locator)));
    let mut said: Vec<Said> = Vec::new();
    for info in logs.iter().filter(|info| info.size_bytes <= MAX_TEXT_BYTES) {
        let bytes = block_on(memory.files().read(&info.locator))?.bytes;
        said.extend(proposal::said_in(&info.locator, &bytes));
    }
    if said.is_empty() {
        return Ok(Proposed::default());
    }
    let mut known = BTreeSet::new();
    let is_compared =
        |info: &&Info| info.locator.name().ends_with(".md") && info.size_bytes <= MAX_KNOWN_BYTES;
    for info in others.iter().filter(is_compared) {
        let bytes = block_on(memory.files().read(&info.locator))?.bytes;
        if let Ok(text) = std::str::from_utf8(&bytes) {
            known.extend(proposal::known_lines(text));
        }
    }
    let is_known = |text: &str| proposal::is_known(&known, text);
    let (found, trouble) = match settings.tidy_command.trim() {
        "" => (proposal::extract(&said, &is_known), None),
        command => match command::run(command, &said) {
            Ok(output) => {
                let (found, unfit) = proposal::checked(&output, &said, &is_known);
                let trouble = format!("{unfit} of the lines that tidy.command printed are no proposals");
                (found, (unfit > 0).then_some(trouble))
            }
            Err(why) => {
                let trouble = format!("tidy.command {why}; the built-in extractor was used instead");
                (proposal::extract(&said, &is_known), Some(trouble))
            }
        },
    };
    Ok(Proposed { new: block_on(proposal::propose(memory, found))?, trouble })
}

/// Returns the proposals that wait for an answer.
pub(crate) fn waiting(settings: &Settings, memory: &Memory) -> Result<Vec<Waiting>, CommandError> {
    let kinds = kinds::load(settings)?;
    let mut all = Vec::new();
    for proposal in block_on(proposal::waiting(memory))? {
        // A target that cannot be read as text has no patch: the file is for the user to see to.
        if let Ok(patch) = block_on(proposal::patch(memory, &kinds, &proposal)) {
            all.push(Waiting { proposal, patch });
        }
    }
    Ok(all)
}

/// An answer to a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict<'a> {
    Accept,
    /// Accept it in these words.
    Edit(&'a str),
    Reject,
}

/// Carries out an answer.
pub(crate) fn answer(
    settings: &Settings,
    memory: &Memory,
    id: &str,
    verdict: Verdict<'_>,
) -> Result<Answered, CommandError> {
    let kinds = kinds::load(settings)?;
    Ok(match verdict {
        Verdict::Accept => block_on(proposal::accept(memory, &kinds, id, None)),
        Verdict::Edit(words) => block_on(proposal::accept(memory, &kinds, id, Some(words))),
        Verdict::Reject => block_on(proposal::reject(memory, id)),
    }?)
}

/// Returns what an answer came to, in a sentence.
pub(crate) fn told(answered: &Answered) -> String {
    match answered {
        Answered::Accepted(target) => format!("Added to {target}"),
        Answered::ProposedAgain(proposal) => {
            format!(
                "{} changed since this was proposed. Nothing was added. Look at it again: haversack tidy --review",
                proposal.target
            )
        }
        Answered::Rejected => "Rejected. It will not be proposed again.".to_owned(),
        Answered::NotFound => "No proposal with this id waits: haversack tidy --review".to_owned(),
    }
}

impl Waiting {
    /// Returns the proposal with its reason, its sources and its diff.
    pub(crate) fn text(&self) -> String {
        let Proposal { id, target, who, why, by, sources, .. } = &self.proposal;
        let sources = sources.join(", ");
        let head = format!("{id}  {target}\n  {why}. Said by {who}, in {sources}. Found by {by}.\n");
        display::lines(&(head + &self.diff())).into_owned()
    }

    /// Returns the change as a unified diff.
    pub(crate) fn diff(&self) -> String {
        let Patch { target, before, after } = &self.patch;
        let before = before.as_deref().unwrap_or_default();
        TextDiff::from_lines(before, after)
            .unified_diff()
            .context_radius(3)
            .header(target.as_str(), target.as_str())
            .to_string()
    }
}

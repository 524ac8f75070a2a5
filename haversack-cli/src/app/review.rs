//! Proposals of memories: finds them in the interaction logs, shows what each would change, and takes the user's answer.

mod command;

use haversack::ids::ContentHash;
use haversack::kind::Kinds;
use haversack::proposal::{self, Answered, Known, Patch, Proposal, Said};
use haversack::store::{Info, block_on};
use haversack::{MAX_TEXT_BYTES, Memory, Reason, display};
use similar::TextDiff;

use crate::error::CommandError;
use crate::home::kinds;
use crate::projects::names::Names;
use crate::settings::Settings;

/// The largest memory that is compared with proposals, in bytes.
const MAX_KNOWN_BYTES: u64 = 1024 * 1024;

/// The result of a search for proposals.
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

/// The files in which proposals are looked for, and those that know some of it already.
pub(crate) struct Material {
    logs: Vec<Info>,
    others: Vec<Info>,
}

/// Returns the material among the files of a memory.
pub(crate) fn material(kinds: &Kinds, files: Vec<Info>) -> Material {
    let logs = kinds.get("interaction").map(|kind| kind.names.clone()).unwrap_or_default();
    let (logs, others) =
        files.into_iter().partition(|info| logs.iter().any(|pattern| pattern.matches(&info.locator)));
    Material { logs, others }
}

impl Material {
    /// Returns a mark that changes when a log or the way of looking changes: with the same mark, nothing new would be proposed.
    pub(crate) fn mark(&self, settings: &Settings) -> String {
        let mut text = settings.tidy_command.clone().into_bytes();
        for info in &self.logs {
            text.extend_from_slice(format!("\n{} {} ", info.locator, info.size_bytes).as_bytes());
            text.extend_from_slice(&info.fingerprint.to_bytes());
        }
        ContentHash::of(&text).to_string()
    }
}

/// Looks for proposals in the interaction logs, and writes the new ones to the inbox.
pub(crate) fn propose(
    settings: &Settings,
    memory: &Memory,
    material: Material,
) -> Result<Proposed, CommandError> {
    let Material { logs, others } = material;
    let mut said: Vec<Said> = Vec::new();
    for info in logs.iter().filter(|info| info.size_bytes <= MAX_TEXT_BYTES) {
        let bytes = block_on(memory.files().read(&info.locator))?.bytes;
        said.extend(proposal::said_in(&info.locator, &bytes));
    }
    if said.is_empty() {
        return Ok(Proposed::default());
    }
    let (kinds, today) = (kinds::load(settings)?, settings.today());
    let mut known = Known::default();
    for (name, place) in Names::of(settings)?.named() {
        known.add_project(name, &place);
    }
    let is_compared =
        |info: &&Info| info.locator.name().ends_with(".md") && info.size_bytes <= MAX_KNOWN_BYTES;
    for info in others.iter().filter(is_compared) {
        let bytes = block_on(memory.files().read(&info.locator))?.bytes;
        if let Ok(text) = std::str::from_utf8(&bytes) {
            known.add_memory(&kinds, today, &info.locator, text);
        }
    }
    let (found, trouble) = match settings.tidy_command.trim() {
        "" => (proposal::extract(&said, &known), None),
        command => match command::run(command, &said) {
            Ok(output) => {
                let (found, unfit) = proposal::checked(&output, &said, &known);
                let trouble = format!("{unfit} of the lines that tidy.command printed are no proposals");
                (found, (unfit > 0).then_some(trouble))
            }
            Err(why) => {
                let trouble = format!("tidy.command {why}; the built-in extractor was used instead");
                (proposal::extract(&said, &known), Some(trouble))
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

/// Returns one proposal that waits; `None` if it was answered, or its target cannot be read as text.
pub(crate) fn waiting_one(
    settings: &Settings,
    memory: &Memory,
    id: &str,
) -> Result<Option<Waiting>, CommandError> {
    Ok(waiting(settings, memory)?.into_iter().find(|one| one.proposal.id == id))
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
    let today = settings.today();
    let answer = || match verdict {
        Verdict::Accept => block_on(proposal::accept(memory, &kinds, today, id, None)),
        Verdict::Edit(words) => block_on(proposal::accept(memory, &kinds, today, id, Some(words))),
        Verdict::Reject => block_on(proposal::reject(memory, today, id)),
    };
    Ok(match answer() {
        // Another writer changed the target or the inbox in this moment. The second attempt sees that, and proposes it again.
        Err(error) if *error.reason() == Reason::Changed => answer()?,
        answered => answered?,
    })
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
    /// Returns the state of the target that the diff begins with: a hash, or `nothing` if there is no file.
    pub(crate) fn seen(&self) -> String {
        let before = self.patch.before.as_ref();
        before.map_or("nothing".to_owned(), |text| ContentHash::of(text.as_bytes()).to_string())
    }

    /// Returns true if the target changed since the proposal was made.
    pub(crate) fn is_base_changed(&self) -> bool {
        self.proposal.base.as_deref().unwrap_or("nothing") != self.seen()
    }

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

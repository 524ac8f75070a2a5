//! Memories that a tidy proposes: files in `inbox/` that a person, or an agent on their word, accepts or rejects. Nothing is promoted unasked.
//!
//! 1. [`extract`] reads interaction logs and proposes sentences that say they should be remembered. It needs no model, and says so in each proposal.
//!    A command of the user's can propose instead; [`checked`] holds its output to the same rules. A sentence that names a memory or a project of [`Known`]
//!    is proposed for that place.
//! 2. [`propose`] writes the new ones to `inbox/<id>.json`. The id is a hash of the words, so two devices propose the same thing once.
//! 3. [`accept`] adds a proposal to its target, or [`reject`] drops it. `inbox/settled.jsonl` keeps the answer, so that it is not proposed again, and the
//!    decision log ([`crate::tidy::read_log`]) keeps the reason and the lines that it was made from for 30 days.
//!
//! Only interaction logs are read. Digests, summaries, the inbox and the index are generated: a proposal made of them would feed on itself.
//!
//! A proposal names the hash of the target that it was made for. If the target changed, [`accept`] changes nothing and writes the proposal again for the
//! new text, so that the user sees what it would change now.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{BackendExt, Bytes, ErrorKind, Locator};
use serde::{Deserialize, Serialize};

use crate::day::Day;
use crate::document;
use crate::error::{Error, Reason, Result, Verb};
use crate::ids::ContentHash;
use crate::kind::Kinds;
use crate::memory::{Change, Depth, Memory};
use crate::remember::{self, NewFact};
use crate::secrets;
use crate::tidy::{AgeFields, Decision, PROMOTE, REJECT, log_at};

/// The directory of the proposals.
pub const INBOX: &str = "inbox";

/// The log of answers.
const SETTLED: &str = "inbox/settled.jsonl";

/// The directory of memories that belong to no project.
const PLACE: &str = "behavioral";

/// The most proposals of one tidy.
pub const MAX_PROPOSALS: usize = 10;

/// The longest text of a proposal, in characters.
const MAX_CHARACTERS: usize = 600;

/// The fewest days on which a sentence has to be said to count as a pattern.
const RECURRING_DAYS: usize = 3;

/// The fewest words of a sentence.
const MIN_WORDS: usize = 4;

/// The kinds that can be proposed.
const KINDS: &[&str] = &["feedback", "project", "reference", "relationship", "user"];

/// The fewest letters of a name of one word by which a sentence can name a memory or a project.
const MIN_NAME_LETTERS: usize = 4;

/// The beginnings of sentences in which users say who they are.
const OF_THE_USER: &[&str] =
    &["my name is", "call me", "i work as", "i work on", "i am responsible for", "my role is"];

/// The words after a name that tell of a person.
const OF_PEOPLE: &[&str] = &[
    "prefers",
    "likes",
    "dislikes",
    "hates",
    "wants",
    "leads",
    "owns",
    "maintains",
    "manages",
    "works on",
    "works at",
    "works for",
    "reports to",
    "is responsible for",
    "is in charge of",
];

/// The words that say what somebody is.
const ROLES: &[&str] = &[
    "engineer",
    "developer",
    "designer",
    "manager",
    "lead",
    "boss",
    "colleague",
    "friend",
    "partner",
    "customer",
    "client",
    "owner",
    "maintainer",
    "reviewer",
    "admin",
    "assistant",
    "director",
    "head",
    "keeper",
    "doctor",
    "lawyer",
    "teacher",
    "wife",
    "husband",
    "brother",
    "sister",
    "mother",
    "father",
    "son",
    "daughter",
];

/// The words that begin a sentence like a name and are none.
const NO_NAMES: &[&str] = &[
    "i",
    "he",
    "she",
    "they",
    "it",
    "we",
    "you",
    "this",
    "that",
    "there",
    "who",
    "what",
    "which",
    "everybody",
    "nobody",
    "somebody",
    "everyone",
    "someone",
    "the",
    "a",
    "an",
    "my",
    "our",
    "your",
];

/// A memory that is proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// A hash of its words.
    pub id: String,
    /// The kind of the memory.
    pub kind: String,
    /// The name of the memory.
    pub name: String,
    /// The file that it would change or make.
    pub target: String,
    /// The hash of that file; `None` if it would be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The text that it would add.
    pub add: String,
    /// The lines that it was made from, as `interactions/2026-11-18.jsonl#7c9e6679-7425`.
    pub sources: Vec<String>,
    /// Who said it.
    pub who: String,
    /// Why it is proposed.
    pub why: String,
    /// What proposed it.
    pub by: String,
}

/// A line of an interaction log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    /// The log and the id of the line.
    pub source: String,
    /// The day of the log.
    pub day: String,
    /// Who said it.
    pub who: String,
    /// True if somebody wrote it to the agent.
    pub is_inbound: bool,
    /// The words.
    pub text: String,
}

#[derive(Deserialize)]
struct RawEvent {
    #[serde(default)]
    id: String,
    #[serde(default)]
    direction: String,
    #[serde(default)]
    sender: String,
    summary: String,
}

#[derive(Serialize, Deserialize)]
struct Settled {
    id: String,
    verdict: String,
}

/// Reads the events of interaction logs. Lines that are no events are passed over.
pub fn said_in(log: &Locator, bytes: &[u8]) -> Vec<Said> {
    let day: String = log.name().chars().take(10).collect();
    let lines =
        bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<RawEvent>(line).ok());
    lines
        .map(|event| Said {
            source: format!("{log}#{}", event.id.get(..13).unwrap_or(&event.id)),
            day: day.clone(),
            who: event.sender,
            is_inbound: event.direction != "outbound",
            text: event.summary.split_whitespace().collect::<Vec<_>>().join(" "),
        })
        .collect()
}

/// The memories and projects that proposals are compared with.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The lines and bodies of memories, as plain words.
    lines: BTreeSet<String>,
    /// By plain name, the place that a sentence can name; `None` if several have the name.
    named: BTreeMap<String, Option<NamedPlace>>,
}

#[derive(Clone, Debug)]
enum NamedPlace {
    Memory { locator: Locator, kind: String },
    Project(Locator),
}

impl Known {
    /// Adds a memory: its lines are not proposed again, and a sentence with its name is proposed for it.
    pub fn add_memory(&mut self, kinds: &Kinds, today: Day, locator: &Locator, text: &str) {
        self.lines.extend(known_lines(text));
        let document = document::Document::read(text);
        let age = AgeFields::in_document(&document);
        let kind = &kinds.of(locator, text.as_bytes()).name;
        let takes_more = KINDS.contains(&kind.as_str()) && !age.is_pinned() && age.outdated(today).is_none();
        // "the user" is a role that many sentences have, and "Ada Lovelace" a person.
        let is_name = |name: &String| kind != "relationship" || name.contains(char::is_uppercase);
        if let Some(name) = document.text("name").filter(|_| takes_more).filter(is_name) {
            self.name(&name, NamedPlace::Memory { locator: locator.clone(), kind: kind.clone() });
        }
    }

    /// Adds a project: a sentence with its name is proposed for its directory.
    pub fn add_project(&mut self, name: &str, place: &Locator) {
        self.name(name, NamedPlace::Project(place.clone()));
    }

    fn name(&mut self, name: &str, place: NamedPlace) {
        let name = plain(name);
        if name.contains(' ') || name.chars().count() >= MIN_NAME_LETTERS {
            self.named.entry(name).and_modify(|place| *place = None).or_insert(Some(place));
        }
    }

    /// Returns true if a memory has a text already, as a line or a whole body.
    fn has(&self, text: &str) -> bool {
        self.lines.contains(&plain(text))
    }

    /// Returns the place with the longest name that a text has.
    fn named_in(&self, text: &str) -> Option<&NamedPlace> {
        let text = format!(" {} ", plain(text));
        let names = self.named.iter().filter(|(name, _)| text.contains(&format!(" {name} ")));
        names.max_by_key(|(name, _)| name.len())?.1.as_ref()
    }
}

/// Returns the kind of a sentence that says who somebody is or prefers.
fn kind_of_person(text: &str) -> Option<(&'static str, &'static str)> {
    let words = plain(text);
    if OF_THE_USER.iter().any(|start| words.starts_with(&format!("{start} "))) {
        return Some(("user", "it says who the user is"));
    }
    let is_name = |word: &&str| {
        let letters = word.trim_end_matches(',');
        letters.starts_with(char::is_uppercase)
            && letters.chars().all(|c| c.is_alphabetic() || c == '-')
            && !NO_NAMES.contains(&letters.to_lowercase().as_str())
    };
    let name = text.split(' ').take(3).take_while(is_name).count();
    let rest = format!("{} ", plain(&text.split(' ').skip(name).collect::<Vec<_>>().join(" ")));
    let does = OF_PEOPLE.iter().any(|words| rest.starts_with(&format!("{words} ")));
    let is_somebody = rest
        .strip_prefix("is ")
        .is_some_and(|what| what.split(' ').take(4).any(|word| ROLES.contains(&word)));
    (name > 0 && (does || is_somebody)).then_some(("relationship", "it tells of a person"))
}

/// A reason to propose a sentence, with its kind.
fn reason(sentence: &str) -> Option<(&'static str, &'static str)> {
    let text = format!(" {} ", plain(sentence));
    let has = |words: &[&str]| words.iter().any(|word| text.contains(&format!(" {word} ")));
    if has(&["remember", "always", "never", "from now on", "do not ever", "in future"]) {
        return Some(("feedback", "it says that it should be remembered"));
    }
    if has(&["decided", "we agreed", "agreed to", "we chose", "decision is"]) {
        return Some(("project", "it tells of a decision"));
    }
    if let Some(person) = kind_of_person(sentence) {
        return Some(person);
    }
    if has(&["i prefer", "we prefer", "prefers"]) {
        return Some(("feedback", "it tells of a preference"));
    }
    None
}

/// Returns the words of a text in small letters, without punctuation.
fn plain(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// Returns the id of a text.
fn id_of(text: &str) -> String {
    ContentHash::of(plain(text).as_bytes()).to_string().chars().take(12).collect()
}

/// Finds the sentences that are worth remembering: by their own words, or because they are said on several days.
pub fn extract(said: &[Said], known: &Known) -> Vec<Proposal> {
    let mut by_words: BTreeMap<String, Vec<&Said>> = BTreeMap::new();
    for one in said.iter().filter(|one| one.is_inbound) {
        by_words.entry(plain(&one.text)).or_default().push(one);
    }
    let mut found: Vec<(usize, Proposal)> = Vec::new();
    for (words, said) in by_words {
        let days: BTreeSet<&str> = said.iter().map(|one| one.day.as_str()).collect();
        let text = &said[0].text;
        let reason = reason(text);
        let has_number = words.contains(|c: char| c.is_ascii_digit());
        let needed = if has_number { RECURRING_DAYS - 1 } else { RECURRING_DAYS };
        let (kind, why) = match reason {
            Some((kind, why)) => (kind, why.to_owned()),
            None if days.len() >= needed => {
                let kind = if has_number { "reference" } else { "feedback" };
                (kind, format!("it was said on {} days", days.len()))
            }
            None => continue,
        };
        if words.split(' ').count() < MIN_WORDS || known.has(text) {
            continue;
        }
        let sources = said.iter().map(|one| one.source.clone()).collect();
        let proposal = proposal(
            known,
            kind,
            text,
            sources,
            &said[0].who,
            &why,
            "the built-in extractor, which knows words and no meaning",
        );
        found.extend(proposal.map(|proposal| (days.len() + 2 * usize::from(reason.is_some()), proposal)));
    }
    found.sort_by(|one, other| (other.0, &one.1.id).cmp(&(one.0, &other.1.id)));
    found.into_iter().map(|(_, proposal)| proposal).take(MAX_PROPOSALS).collect()
}

fn proposal(
    known: &Known,
    kind: &str,
    text: &str,
    sources: Vec<String>,
    who: &str,
    why: &str,
    by: &str,
) -> Option<Proposal> {
    // The reason stands in the decision log, which leaves this machine too.
    let has_secret = [text, why].iter().any(|words| !secrets::find(words.as_bytes()).is_empty());
    let is_fit = text.chars().count() <= MAX_CHARACTERS && !has_secret;
    if !is_fit || !KINDS.contains(&kind) {
        return None;
    }
    let name: Vec<&str> = text.split_whitespace().take(8).collect();
    let name = name.join(" ").trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let draft = |place: &Locator| {
        let fact = NewFact { kind, name: &name, description: text, content: text };
        remember::draft(Kinds::built_in(), place, &fact).ok().map(|draft| draft.locator)
    };
    let (kind, target) = match known.named_in(text) {
        Some(NamedPlace::Memory { locator, kind }) => (kind.as_str(), locator.clone()),
        Some(NamedPlace::Project(place)) => (kind, draft(place)?),
        None => (kind, draft(&Locator::parse(PLACE).ok()?)?),
    };
    Some(Proposal {
        id: id_of(text),
        kind: kind.to_owned(),
        name,
        target: target.to_string(),
        base: None,
        add: text.to_owned(),
        sources,
        who: who.to_owned(),
        why: why.to_owned(),
        by: by.to_owned(),
    })
}

/// A line that a command of the user's printed.
#[derive(Deserialize)]
struct FromCommand {
    kind: String,
    text: String,
    #[serde(default)]
    why: String,
    sources: Vec<String>,
}

/// Reads the proposals that a command printed, one JSON object to a line. A proposal that names no line of the material, or is none, is left out; the number
/// of those is returned as well.
pub fn checked(output: &[u8], said: &[Said], known: &Known) -> (Vec<Proposal>, usize) {
    let mut proposals: Vec<Proposal> = Vec::new();
    let mut unfit = 0;
    for line in output.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let read = serde_json::from_slice::<FromCommand>(line).ok().and_then(|line| {
            let sources: Vec<&Said> = said.iter().filter(|one| line.sources.contains(&one.source)).collect();
            let who = &sources.first()?.who;
            let names = sources.iter().map(|one| one.source.clone()).collect();
            let text = line.text.split_whitespace().collect::<Vec<_>>().join(" ");
            let why = if line.why.is_empty() { "the command proposes it" } else { &line.why };
            proposal(
                known,
                &line.kind,
                &text,
                names,
                who,
                &why.chars().take(200).collect::<String>(),
                "the command of tidy.command",
            )
        });
        match read {
            Some(proposal) if known.has(&proposal.add) => {}
            Some(proposal) if proposals.len() < MAX_PROPOSALS => proposals.push(proposal),
            _ => unfit += 1,
        }
    }
    (proposals, unfit)
}

/// Returns the texts of a memory in a form in which another text is found: its lines and bodies.
fn known_lines(text: &str) -> Vec<String> {
    let body = document::body_of(text);
    body.lines().map(plain).chain([plain(body)]).filter(|line| !line.is_empty()).collect()
}

fn place_of(id: &str) -> Option<Locator> {
    let is_id = !id.is_empty() && id.bytes().all(|c| c.is_ascii_hexdigit());
    if is_id { Locator::parse(&format!("{INBOX}/{id}.json")).ok() } else { None }
}

fn settled() -> Locator {
    Locator::parse(SETTLED).expect("a plain name")
}

async fn read(memory: &Memory, locator: &Locator) -> Result<Option<Bytes>> {
    match memory.files().read(locator).await {
        Ok(object) => Ok(Some(object.bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::storage(Verb::View, locator, error)),
    }
}

async fn settled_ids(memory: &Memory) -> Result<BTreeSet<String>> {
    let log = read(memory, &settled()).await?.unwrap_or_default();
    Ok(log
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Settled>(line).ok())
        .map(|line| line.id)
        .collect())
}

/// Writes proposals to the inbox that are not there and have no answer yet. Returns those that are new.
pub async fn propose(memory: &Memory, proposals: Vec<Proposal>) -> Result<Vec<Proposal>> {
    let answered = settled_ids(memory).await?;
    let mut new = Vec::new();
    for mut proposal in proposals {
        let Some(place) = place_of(&proposal.id) else { continue };
        if answered.contains(&proposal.id) || read(memory, &place).await?.is_some() {
            continue;
        }
        proposal.base = base_of(memory, &proposal).await?;
        match memory.create(&place, text_of(&proposal)).await {
            Ok(_) => new.push(proposal),
            // Another process proposed it in this moment.
            Err(error) if *error.reason() == Reason::Exists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(new)
}

fn text_of(proposal: &Proposal) -> Bytes {
    Bytes::from(serde_json::to_string_pretty(proposal).expect("texts print") + "\n")
}

fn target_of(proposal: &Proposal) -> Result<Locator> {
    let inbox = Locator::parse(INBOX).expect("a plain name");
    let target =
        Locator::parse(&proposal.target).ok().filter(|target| !target.is_root() && !target.is_within(&inbox));
    target.ok_or_else(|| Error::new(Verb::View, &inbox, Reason::NotFound))
}

async fn base_of(memory: &Memory, proposal: &Proposal) -> Result<Option<String>> {
    let there = read(memory, &target_of(proposal)?).await?;
    Ok(there.map(|bytes| ContentHash::of(&bytes).to_string()))
}

/// Returns the proposals that wait, by id. Files of the inbox that are none are passed over.
pub async fn waiting(memory: &Memory) -> Result<Vec<Proposal>> {
    let inbox = Locator::parse(INBOX).expect("a plain name");
    let names =
        memory.files().list_all(&inbox).await.map_err(|error| Error::storage(Verb::View, &inbox, error))?;
    let mut proposals = Vec::new();
    for name in names.iter().filter(|name| name.name().ends_with(".json")) {
        let Some(bytes) = read(memory, name).await? else { continue };
        if let Ok(proposal) = serde_json::from_slice::<Proposal>(&bytes)
            && place_of(&proposal.id).as_ref() == Some(name)
        {
            proposals.push(proposal);
        }
    }
    Ok(proposals)
}

/// The text of a target before and after a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The target.
    pub target: Locator,
    /// Its text; `None` if it would be made.
    pub before: Option<String>,
    /// Its text with the proposal.
    pub after: String,
}

/// Returns what a proposal would change now.
pub async fn patch(memory: &Memory, kinds: &Kinds, proposal: &Proposal) -> Result<Patch> {
    let target = target_of(proposal)?;
    let there = read(memory, &target).await?;
    let before = match there.as_deref().map(std::str::from_utf8) {
        None => None,
        Some(Ok(text)) => Some(text.to_owned()),
        Some(Err(error)) => {
            return Err(Error::new(
                Verb::Append,
                &target,
                Reason::NotText { valid_bytes: error.valid_up_to() },
            ));
        }
    };
    let add = proposal.add.trim();
    let after = match &before {
        Some(text) if known_lines(text).contains(&plain(add)) => text.clone(),
        Some(text) => format!("{}\n\n{add}\n", text.trim_end()),
        None => {
            let place = target.parent().unwrap_or_else(Locator::root);
            let fact = NewFact { kind: &proposal.kind, name: &proposal.name, description: add, content: add };
            match remember::draft(kinds, &place, &fact) {
                Ok(draft) => draft.text,
                Err(_) => format!("{add}\n"),
            }
        }
    };
    Ok(Patch { target, before, after })
}

/// What became of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// The target has the text.
    Accepted(Locator),
    /// The target changed since the proposal was made. Nothing was written but the proposal itself, for the new text.
    ProposedAgain(Box<Proposal>),
    /// The proposal is dropped, and will not return.
    Rejected,
    /// No proposal with this id waits.
    NotFound,
}

/// Adds a proposal to its target, with other words if the user edited it.
pub async fn accept(
    memory: &Memory,
    kinds: &Kinds,
    today: Day,
    id: &str,
    words: Option<&str>,
) -> Result<Answered> {
    let Some(mut proposal) = waiting(memory).await?.into_iter().find(|proposal| proposal.id == id) else {
        return Ok(Answered::NotFound);
    };
    let place = place_of(id).expect("it was found by its id");
    let add = words.map_or_else(|| proposal.add.clone(), |words| words.trim().to_owned());
    // One read decides and is written over: another writer between two reads would change what the user agreed to.
    let patch = patch(memory, kinds, &Proposal { add, ..proposal.clone() }).await?;
    let before = patch.before.map(|text| Bytes::from(text.into_bytes()));
    let base = before.as_deref().map(|bytes| ContentHash::of(bytes).to_string());
    if base != proposal.base {
        proposal.base = base;
        let there = read(memory, &place).await?;
        let _ = memory
            .batch(&[Change::Put { locator: place, expected: there, bytes: Some(text_of(&proposal)) }])
            .await?;
        return Ok(Answered::ProposedAgain(Box::new(proposal)));
    }
    let bytes = Some(Bytes::from(patch.after.clone()));
    let mut changes = vec![Change::Put { locator: patch.target.clone(), expected: before.clone(), bytes }];
    if before.is_none() && remember::is_indexed(&patch.target) {
        let entry = remember::written(&patch.target, &patch.after).entry;
        changes.extend(remember::index_change(memory, &patch.target, &entry).await?);
    }
    changes.extend(answer(&place, &proposal, Verdict::Accepted, today));
    let _ = memory.batch(&changes).await?;
    Ok(Answered::Accepted(patch.target))
}

/// Drops a proposal for good.
pub async fn reject(memory: &Memory, today: Day, id: &str) -> Result<Answered> {
    let Some(proposal) = waiting(memory).await?.into_iter().find(|proposal| proposal.id == id) else {
        return Ok(Answered::NotFound);
    };
    let place = place_of(id).expect("it was found by its id");
    let _ = memory.batch(&answer(&place, &proposal, Verdict::Rejected, today)).await?;
    Ok(Answered::Rejected)
}

/// The user's answer to a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Accepted,
    Rejected,
}

/// Returns the changes that note an answer: a line that says so for good, a line of the decision log, and the deletion of the proposal.
fn answer(place: &Locator, proposal: &Proposal, verdict: Verdict, today: Day) -> [Change; 3] {
    let (verdict, action) = match verdict {
        Verdict::Accepted => ("accepted", PROMOTE),
        Verdict::Rejected => ("rejected", REJECT),
    };
    let line = Settled { id: proposal.id.clone(), verdict: verdict.to_owned() };
    let text = serde_json::to_string(&line).expect("texts print") + "\n";
    let decision = Decision {
        day: today.to_string(),
        action: action.to_owned(),
        kind: proposal.kind.clone(),
        source: place.to_string(),
        hash: ContentHash::of(&text_of(proposal)).to_string(),
        into: Some(proposal.target.clone()),
        reason: proposal.why.clone(),
        kept: Vec::new(),
        dropped: Vec::new(),
        lines: proposal.sources.clone(),
    };
    [
        Change::Append { locator: settled(), bytes: Bytes::from(text) },
        Change::Append { locator: log_at(&Locator::root(), today), bytes: Bytes::from(decision.line()) },
        Change::Delete { locator: place.clone(), depth: Depth::Single },
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_lite::future::block_on;
    use haversack_store::InMemory;

    use super::*;

    fn said(day: &str, id: &str, text: &str) -> Said {
        let source = format!("interactions/{day}.jsonl#{id}");
        Said {
            source,
            day: day.to_owned(),
            who: "the user".to_owned(),
            is_inbound: true,
            text: text.to_owned(),
        }
    }

    fn found(said: &[Said]) -> Vec<Proposal> {
        extract(said, &Known::default())
    }

    fn at(path: &str) -> Locator {
        Locator::parse(path).expect("valid")
    }

    fn today() -> Day {
        "2026-11-18".parse().expect("a day")
    }

    fn decisions(memory: &Memory) -> Vec<Decision> {
        let log = log_at(&Locator::root(), today());
        let log = block_on(memory.files().read_text(&log)).expect("read").unwrap_or_default();
        crate::tidy::read_log(log.as_bytes())
    }

    fn memory() -> Memory {
        Memory::new(Arc::new(InMemory::new()), Arc::new(InMemory::new()))
    }

    #[test]
    fn sentences_that_ask_to_be_remembered_are_proposed() {
        let proposals = found(&[
            said("2026-11-16", "a", "Always use the staging port 5433."),
            said("2026-11-16", "b", "How is the weather today over there?"),
            said("2026-11-16", "c", "Never mind"),
            said("2026-11-16", "d", "We decided to paint the door green."),
        ]);
        let kinds: Vec<&str> = proposals.iter().map(|proposal| proposal.kind.as_str()).collect();
        assert_eq!(kinds.len(), 2, "{proposals:?}");
        assert!(kinds.contains(&"feedback") && kinds.contains(&"project"));
        assert!(proposals.iter().all(|proposal| proposal.by.contains("built-in")));
    }

    #[test]
    fn sentences_about_people_are_proposed() {
        for (text, kind) in [
            ("Ada Lovelace prefers short answers.", Some("relationship")),
            ("Grace is our new lead engineer.", Some("relationship")),
            ("Jean-Luc is responsible for the pier.", Some("relationship")),
            ("My name is Ada Lovelace.", Some("user")),
            ("I prefer short answers today.", Some("feedback")),
            ("This is the keeper of the lamp.", None),
            ("He is the keeper of the lamp.", None),
            ("Staging is the machine below.", None),
            ("the lamp is bright today", None),
        ] {
            let proposals = found(&[said("2026-11-16", "a", text)]);
            assert_eq!(proposals.first().map(|proposal| proposal.kind.as_str()), kind, "{text}");
        }
    }

    #[test]
    fn sentence_that_names_a_memory_or_a_project_is_proposed_for_it() {
        let mut known = Known::default();
        let memory =
            |name: &str, fields: &str| format!("---\nname: {name}\ntype: relationship\n{fields}---\nx\n");
        for (path, text) in [
            ("behavioral/relationship_ada.md", memory("Ada Lovelace", "")),
            ("behavioral/relationship_bo.md", memory("Bo Ek", "pinned: true\n")),
            (
                "behavioral/session_digest_2026-11-01.md",
                "---\nname: The pier\ntype: session_digest\n---\nx\n".to_owned(),
            ),
            ("notes/one.md", memory("Grace", "")),
            ("notes/role.md", memory("the keeper", "")),
            ("notes/two.md", memory("GRACE", "")),
        ] {
            known.add_memory(Kinds::built_in(), today(), &at(path), &text);
        }
        known.add_project("lighthouse", &at("claude_memory/lighthouse-1"));
        for (text, target) in [
            ("Ada Lovelace prefers short answers.", "behavioral/relationship_ada.md"),
            ("Bo Ek prefers long answers.", "behavioral/relationship_bo-ek-prefers-long-answers.md"),
            ("Always paint the pier green.", "behavioral/feedback_always-paint-the-pier-green.md"),
            ("Grace is our lead engineer.", "behavioral/relationship_grace-is-our-lead-engineer.md"),
            ("Always ask the keeper first.", "behavioral/feedback_always-ask-the-keeper-first.md"),
            (
                "Never deploy the lighthouse today.",
                "claude_memory/lighthouse-1/feedback_never-deploy-the-lighthouse-today.md",
            ),
        ] {
            let proposals = extract(&[said("2026-11-16", "a", text)], &known);
            assert_eq!(proposals.first().map(|proposal| proposal.target.as_str()), Some(target), "{text}");
        }
    }

    #[test]
    fn sentences_that_return_are_proposed_once() {
        let days = ["2026-11-16", "2026-11-17", "2026-11-18"];
        let lines: Vec<Said> = days.iter().map(|day| said(day, day, "The lamp needs new oil")).collect();
        assert_eq!(found(&lines[..2]), []);
        let proposals = found(&lines);
        assert_eq!(proposals.len(), 1);
        assert_eq!(proposals[0].sources.len(), 3);
        let mut known = Known::default();
        known.add_memory(
            Kinds::built_in(),
            today(),
            &at("notes/lamp.md"),
            "# Lamp\n\nThe lamp needs new oil.\n",
        );
        assert_eq!(extract(&lines, &known), [], "what is known is not proposed");
        let key = concat!("Always use the key AKIA", "Z7QK3XN5PLVT2RWD for this");
        assert_eq!(found(&[said("2026-11-16", "a", key)]), []);
    }

    #[test]
    fn accepted_proposal_is_a_memory_and_does_not_return() {
        let memory = memory();
        let proposals = found(&[said("2026-11-16", "a", "Always use the staging port 5433.")]);
        let new = block_on(propose(&memory, proposals.clone())).expect("proposed");
        assert_eq!(new.len(), 1);
        assert_eq!(block_on(propose(&memory, proposals.clone())).expect("proposed"), []);
        let done = block_on(accept(&memory, Kinds::built_in(), today(), &new[0].id, None)).expect("accepted");
        let Answered::Accepted(target) = done else { panic!("{done:?}") };
        let text = block_on(memory.files().read_text(&target)).expect("read").expect("there");
        assert!(
            text.contains("type: feedback") && text.contains("Always use the staging port 5433."),
            "{text}"
        );
        let index = Locator::parse("behavioral/MEMORY.md").expect("valid");
        assert!(
            block_on(memory.files().read_text(&index))
                .expect("read")
                .is_some_and(|index| index.contains(target.name()))
        );
        assert_eq!(block_on(waiting(&memory)).expect("listed"), []);
        assert_eq!(block_on(propose(&memory, proposals)).expect("proposed"), []);
        let [decision] = &decisions(&memory)[..] else { panic!("{:?}", decisions(&memory)) };
        assert_eq!((decision.action.as_str(), decision.into.as_deref()), ("promote", Some(target.as_str())));
        assert_eq!(decision.lines, ["interactions/2026-11-16.jsonl#a"]);
        assert_eq!(decision.reason, "it says that it should be remembered");
        assert_eq!(decision.hash, ContentHash::of(&text_of(&new[0])).to_string());
    }

    #[test]
    fn rejected_proposal_does_not_return() {
        let memory = memory();
        let proposals = found(&[said("2026-11-16", "a", "Always use the staging port 5433.")]);
        let id = proposals[0].id.clone();
        let _ = block_on(propose(&memory, proposals.clone())).expect("proposed");
        assert_eq!(block_on(reject(&memory, today(), &id)).expect("rejected"), Answered::Rejected);
        assert_eq!(block_on(reject(&memory, today(), &id)).expect("none"), Answered::NotFound);
        assert_eq!(block_on(reject(&memory, today(), "../x")).expect("none"), Answered::NotFound);
        assert_eq!(block_on(propose(&memory, proposals)).expect("proposed"), []);
        let answers: Vec<String> =
            decisions(&memory).into_iter().map(|decision| decision.action + " " + &decision.source).collect();
        assert_eq!(answers, [format!("reject inbox/{id}.json")]);
    }

    #[test]
    fn changed_target_is_proposed_again() {
        let memory = memory();
        let proposals = found(&[said("2026-11-16", "a", "Always use the staging port 5433.")]);
        let new = block_on(propose(&memory, proposals)).expect("proposed");
        let target = Locator::parse(&new[0].target).expect("valid");
        let _ = block_on(memory.create(&target, "Mine.\n")).expect("written");
        let accepted = || {
            block_on(accept(&memory, Kinds::built_in(), today(), &new[0].id, Some("Use port 5433.")))
                .expect("answered")
        };
        assert!(matches!(accepted(), Answered::ProposedAgain(_)));
        assert_eq!(decisions(&memory), [], "nothing was decided");
        assert_eq!(block_on(memory.files().read_text(&target)).expect("read").as_deref(), Some("Mine.\n"));
        assert!(matches!(accepted(), Answered::Accepted(_)));
        assert_eq!(
            block_on(memory.files().read_text(&target)).expect("read").as_deref(),
            Some("Mine.\n\nUse port 5433.\n")
        );
    }

    #[test]
    fn command_that_lies_is_held_to_the_rules() {
        let material = [said("2026-11-16", "a", "hello"), said("2026-11-16", "b", "Use tea")];
        let output = concat!(
            "{\"kind\":\"feedback\",\"text\":\"Drink tea at four\",\"sources\":[\"interactions/2026-11-16.jsonl#b\"]}\n",
            "{\"kind\":\"feedback\",\"text\":\"Made up\",\"sources\":[\"interactions/2026-11-16.jsonl#z\"]}\n",
            "{\"kind\":\"index\",\"text\":\"x\",\"sources\":[\"interactions/2026-11-16.jsonl#a\"]}\n",
            "not JSON\n",
        );
        let (proposals, unfit) = checked(output.as_bytes(), &material, &Known::default());
        assert_eq!((proposals.len(), unfit), (1, 3));
        assert_eq!(proposals[0].who, "the user");
    }
}

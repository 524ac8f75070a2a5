//! Chooses and reads the files that a session starts with.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haversack_store::{Backend, BackendExt, EntryKind, ErrorKind, Locator, Result};

use super::{Assembled, Assembler, Budget, Part};
use crate::day::{Day, Period};
use crate::document::Document;
use crate::kind::{Kind, Kinds, Load, Then};
use crate::tidy::AgeFields;
use crate::tokens;

/// The longest file that is read for a session.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The most files of a kind with dated names that are tried: one may be something else, despite its name.
const MAX_TRIES: usize = 8;

/// The most files in a row that are read and do not fit. We leave the other files out unread.
const MAX_REFUSED: usize = 100;

/// The memory that a session gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only the kinds that every session starts with.
    Start,
    /// After those, all other memory.
    Everything,
}

/// Tells if the index is part of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// It is.
    Given,
    /// The agent reads it by itself.
    ReadByAgent,
}

/// The memory that a context is gathered from, and what is asked of it.
pub struct GatheredFrom<'a> {
    /// The files.
    pub files: &'a dyn Backend,
    /// The directory with the memory.
    pub place: Locator,
    /// The kinds, whose `load` rules decide.
    pub kinds: &'a Kinds,
    /// The name of the project.
    pub project: &'a str,
    /// The day in the user's time zone.
    pub today: Day,
    /// The memory for the session.
    pub reach: Reach,
    /// Tells if the index is included.
    pub index: Index,
    /// The number of uses of each file, by its name below the place.
    pub uses: &'a BTreeMap<String, u64>,
    /// Tells who changed a file last, and when.
    pub from: &'a (dyn Fn(&str) -> String + Sync),
}

/// A file by its name.
#[derive(Clone)]
struct Candidate<'k> {
    locator: Locator,
    /// Its name below the place.
    name: String,
    /// The position of its kind in the table.
    rank: usize,
    kind: &'k Kind,
    size_bytes: Option<u64>,
    /// Days between its last change and the epoch.
    modified_day: u64,
    uses: u64,
}

/// Gathers the context of a session.
pub async fn gather(from: &GatheredFrom<'_>, budget: Budget) -> Result<Assembled> {
    let candidates = candidates(from).await?;
    choose(from, candidates, budget).await
}

/// Chooses among the candidates, in whatever order they are listed, and reads the chosen files.
async fn choose<'k>(
    from: &GatheredFrom<'k>,
    mut candidates: Vec<Candidate<'k>>,
    budget: Budget,
) -> Result<Assembled> {
    let mut assembler = Assembler::new(from.project, budget);
    candidates.sort_by(|one, other| (one.rank, &one.name).cmp(&(other.rank, &other.name)));
    let (start, mut others): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|candidate| candidate.kind.load == Load::Start);
    let mut start = start.into_iter().peekable();
    let mut outdated = Vec::new();
    while let Some(first) = start.next() {
        let mut of_kind = vec![first];
        while let Some(next) = start.next_if(|next| next.rank == of_kind[0].rank) {
            of_kind.push(next);
        }
        others.extend(offer_kind(from, &mut assembler, &mut outdated, of_kind).await?);
    }
    if from.reach == Reach::Everything {
        others.sort_by(|one, other| key(one).cmp(&key(other)));
        let mut refused = 0;
        for candidate in others {
            if refused >= MAX_REFUSED {
                let tokens = tokens::usual(candidate.size_bytes.unwrap_or_default());
                assembler.leave_out(candidate.name, tokens);
                continue;
            }
            if is_skipped(&mut assembler, &candidate) {
                refused += 1;
                continue;
            }
            if let Some(MemoryFile { part, kind, is_outdated }) = read(from, &candidate).await?
                && kind.load != Load::Never
            {
                if is_outdated {
                    outdated.push(part);
                    continue;
                }
                let before = assembler.room();
                assembler.offer(part);
                refused = if assembler.room() == before { refused + 1 } else { 0 };
            }
        }
    }
    for part in outdated {
        assembler.offer(part);
    }
    Ok(assembler.finish())
}

/// Returns the order of the files that a session does not have to start with: by kind, recency and use.
fn key<'c>(
    candidate: &'c Candidate<'_>,
) -> (usize, Reverse<Option<Day>>, Reverse<u64>, Reverse<u64>, &'c str) {
    let day = day_of(candidate);
    (candidate.rank, Reverse(day), Reverse(candidate.modified_day), Reverse(candidate.uses), &candidate.name)
}

/// Offers the files of a kind that sessions start with; returns those that are not for the start after all. Outdated ones are for the end.
async fn offer_kind<'k>(
    from: &GatheredFrom<'k>,
    assembler: &mut Assembler,
    outdated: &mut Vec<Part>,
    of_kind: Vec<Candidate<'k>>,
) -> Result<Vec<Candidate<'k>>> {
    let kind = of_kind[0].kind;
    let is_by_day = |candidate: &Candidate<'_>| day_of(candidate).is_some();
    let mut others = Vec::new();
    let (mut dated, plain): (Vec<_>, Vec<_>) = of_kind.into_iter().partition(is_by_day);
    for candidate in plain {
        // A file of a kind by day that names no day is something else.
        if kind.keep.then == Then::Weekly {
            others.push(candidate);
        } else if let Some(MemoryFile { part, is_outdated, .. }) = read(from, &candidate).await? {
            match is_outdated {
                true => outdated.push(part),
                false => assembler.offer(part),
            }
        }
    }
    // The clock of another device may be ahead: a day in the future hides no other.
    dated.sort_by_key(|candidate| Reverse(day_of(candidate)));
    let mut is_given = false;
    let mut tries = 0;
    for candidate in dated {
        let is_reached = day_of(&candidate).is_some_and(|day| day <= from.today.plus(1));
        if is_given || !is_reached || tries >= MAX_TRIES {
            others.push(candidate);
            continue;
        }
        tries += 1;
        match read(from, &candidate).await? {
            Some(MemoryFile { part, kind: real, .. }) if real.name == kind.name => {
                is_given = true;
                assembler.offer(part);
            }
            Some(_) | None => others.push(candidate),
        }
    }
    Ok(others)
}

/// Leaves out a file that cannot fit, without reading it. The first that does not fit is read: as much of it as fits may be given.
fn is_skipped(assembler: &mut Assembler, candidate: &Candidate<'_>) -> bool {
    let Some(size) = candidate.size_bytes else { return false };
    let least = tokens::least(size);
    let is_hopeless = assembler.has_left_out() && least > assembler.room().tokens;
    let is_skipped = is_hopeless || size > MAX_FILE_BYTES;
    if is_skipped {
        assembler.leave_out(candidate.name.clone(), least);
    }
    is_skipped
}

fn day_of(candidate: &Candidate<'_>) -> Option<Day> {
    match Period::of_name(candidate.locator.name()) {
        Some(Period::Day(day)) => Some(day),
        Some(Period::Week { .. } | Period::Month { .. } | Period::Year(_)) | None => None,
    }
}

/// Returns the files that may be given, by their names.
async fn candidates<'k>(from: &GatheredFrom<'k>) -> Result<Vec<Candidate<'k>>> {
    let found: Vec<(Locator, Option<u64>, Option<SystemTime>)> = match from.reach {
        // A large directory costs a session no more than its names.
        Reach::Start => {
            let listing = match from.files.list(&from.place).await {
                Ok(listing) => listing,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(error),
            };
            let files = listing.entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
            files.map(|entry| (entry.locator, None, None)).collect()
        }
        Reach::Everything => {
            let page = match from.files.scan_all(&from.place).await {
                Ok(page) => page,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(error),
            };
            let files = page.infos.into_iter().filter(|info| info.kind == EntryKind::File);
            files.map(|info| (info.locator, Some(info.size_bytes), info.modified)).collect()
        }
    };
    let prefix = match from.place.is_root() {
        true => String::new(),
        false => format!("{}/", from.place),
    };
    let mut candidates = Vec::with_capacity(found.len());
    for (locator, size_bytes, modified) in found {
        let (rank, kind) = from.kinds.by_name(&locator);
        let name = locator.as_str().strip_prefix(&prefix).unwrap_or(locator.as_str()).to_owned();
        let is_hidden = name.split('/').any(|segment| segment.starts_with('.'));
        let is_index = kind.is_index();
        if is_hidden || kind.load == Load::Never || (is_index && from.index == Index::ReadByAgent) {
            continue;
        }
        if from.reach == Reach::Start && kind.load != Load::Start {
            continue;
        }
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or(Duration::ZERO);
        let uses = from.uses.get(&name).copied().unwrap_or_default();
        let modified_day = since.as_secs() / 86_400;
        candidates.push(Candidate { locator, name, rank, kind, size_bytes, modified_day, uses });
    }
    Ok(candidates)
}

/// A file that was read.
struct MemoryFile<'k> {
    part: Part,
    kind: &'k Kind,
    /// True if its fields say that it is out of date.
    is_outdated: bool,
}

/// Reads a file and tells its kind; `None` if it is gone, too long, no text, archived or not for reading.
async fn read<'k>(from: &GatheredFrom<'k>, candidate: &Candidate<'k>) -> Result<Option<MemoryFile<'k>>> {
    if candidate.size_bytes.is_none() {
        match from.files.info(&candidate.locator).await {
            Ok(info) if info.size_bytes > MAX_FILE_BYTES => return Ok(None),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    let object = match from.files.read(&candidate.locator).await {
        Ok(object) => object,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let kind = from.kinds.of(&candidate.locator, &object.bytes);
    let Ok(text) = std::str::from_utf8(&object.bytes) else { return Ok(None) };
    let document = Document::read(text);
    let age = AgeFields::in_document(&document);
    if age.is_archived() {
        return Ok(None);
    }
    let part = Part {
        name: candidate.name.clone(),
        text: document.body.to_owned(),
        from: (from.from)(&candidate.name),
    };
    Ok(Some(MemoryFile { part, kind, is_outdated: age.outdated(from.today).is_some() }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_lite::future::block_on;
    use haversack_store::InMemory;
    use proptest::prelude::*;

    use super::*;

    fn files(files: &[(&str, &str)]) -> Arc<InMemory> {
        let backend = Arc::new(InMemory::new());
        for (name, text) in files {
            let locator = Locator::parse(&format!("claude_memory/lighthouse/{name}")).expect("valid");
            let _ = block_on(backend.write_text(&locator, text)).expect("written");
        }
        backend
    }

    fn gathered(backend: &dyn Backend, reach: Reach, index: Index, tokens: usize) -> Assembled {
        let uses = BTreeMap::from([("user_role.md".to_owned(), 7)]);
        let from = GatheredFrom {
            files: backend,
            place: Locator::parse("claude_memory/lighthouse").expect("valid"),
            kinds: Kinds::built_in(),
            project: "lighthouse",
            today: "2026-11-18".parse().expect("a day"),
            reach,
            index,
            uses: &uses,
            from: &|_| String::new(),
        };
        block_on(gather(&from, Budget::of_tokens(tokens))).expect("gathered")
    }

    fn names(assembled: &Assembled) -> Vec<&str> {
        assembled.portions.iter().skip(1).map(|portion| portion.file.as_str()).collect()
    }

    const DIGEST: &str = "---\nname: x\ntype: session_digest\n---\n\n## Arcs\n- lit the lamp\n";

    #[test]
    fn session_starts_by_the_load_rules_in_the_order_of_the_table() {
        let backend = files(&[
            ("MEMORY.md", "- [Lamp](lamp.md) — white\n"),
            ("carry_forward.md", "## Pending\n- ask about the tide\n"),
            ("self_observations.md", "- too long\n"),
            ("session_digest_2026-11-17.md", DIGEST),
            ("session_digest_2026-11-12.md", DIGEST),
            ("session_digest_2026-02-30.md", DIGEST),
            ("session_digest_2031-01-01.md", DIGEST),
            ("user_role.md", "an engineer\n"),
            ("user_taste.md", "short answers\n"),
            ("lamp.md", "white\n"),
            (".hidden.md", "no\n"),
            ("events.jsonl", "{}\n"),
        ]);
        let start = ["session_digest_2026-11-17.md", "carry_forward.md", "self_observations.md"];
        assert_eq!(names(&gathered(&*backend, Reach::Start, Index::ReadByAgent, 2000)), start);
        let with_index = gathered(&*backend, Reach::Start, Index::Given, 2000);
        assert_eq!(names(&with_index)[0], "MEMORY.md");
        let all = gathered(&*backend, Reach::Everything, Index::Given, 9000);
        let expected = [
            "MEMORY.md",
            "session_digest_2026-11-17.md",
            "carry_forward.md",
            "self_observations.md",
            "user_role.md",
            "user_taste.md",
            "session_digest_2031-01-01.md",
            "session_digest_2026-11-12.md",
            "session_digest_2026-02-30.md",
            "lamp.md",
        ];
        let mut sorted = names(&all);
        sorted[4..].sort_unstable();
        let mut wanted = expected.to_vec();
        wanted[4..].sort_unstable();
        assert_eq!(sorted, wanted);
        let at = |name: &str| names(&all).iter().position(|other| *other == name).expect("given");
        assert!(at("user_role.md") < at("user_taste.md"), "the one that is used comes first");
        assert!(at("user_taste.md") < at("lamp.md"));
    }

    #[test]
    fn todays_digest_comes_before_all_and_a_false_one_is_passed_over() {
        let backend = files(&[
            ("session_digest_2026-11-18.md", "---\nname: x\ntype: user\n---\nnot a digest\n"),
            ("session_digest_2026-11-16.md", DIGEST),
        ]);
        let given = gathered(&*backend, Reach::Start, Index::ReadByAgent, 2000);
        assert_eq!(names(&given), ["session_digest_2026-11-16.md"]);
        let backend =
            files(&[("session_digest_2026-11-18.md", DIGEST), ("session_digest_2026-11-17.md", DIGEST)]);
        let given = gathered(&*backend, Reach::Start, Index::ReadByAgent, 2000);
        assert_eq!(names(&given), ["session_digest_2026-11-18.md"]);
    }

    #[test]
    fn archived_memory_is_left_out_and_outdated_memory_comes_last() {
        let memory = |fields: &str| format!("---\nname: x\ntype: user\n{fields}---\nA lamp.\n");
        let texts = [
            ("user_archived.md", memory("status: archived\n")),
            ("user_deprecated.md", memory("status: deprecated\n")),
            ("user_old.md", memory("stale_after: 2026-11-01\n")),
            ("user_replaced.md", memory("superseded_by: user_role.md\n")),
            ("user_role.md", memory("stale_after: 2027-11-01\n")),
            ("zeal.md", "A zealous keeper.\n".to_owned()),
        ];
        let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let given = gathered(&*files(&texts), Reach::Everything, Index::Given, 9000);
        assert_eq!(names(&given)[..2], ["user_role.md", "zeal.md"]);
        let mut last = names(&given)[2..].to_vec();
        last.sort_unstable();
        assert_eq!(last, ["user_deprecated.md", "user_old.md", "user_replaced.md"]);
    }

    #[test]
    fn no_memory_is_no_text_and_a_store_that_fails_is_an_error() {
        assert_eq!(gathered(&InMemory::new(), Reach::Start, Index::Given, 2000), Assembled::default());
        assert_eq!(gathered(&InMemory::new(), Reach::Everything, Index::Given, 2000), Assembled::default());
    }

    #[test]
    fn gathering_twice_gives_the_same() {
        let many: Vec<(String, String)> =
            (0..200).map(|number| (format!("user_{number}.md"), "- lamp\n".repeat(number))).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(name, text)| (&**name, &**text)).collect();
        let backend = files(&many);
        for tokens in [100, 500, 5000] {
            let one = gathered(&*backend, Reach::Everything, Index::Given, tokens);
            assert!(one.tokens() <= tokens);
            assert_eq!(one, gathered(&*backend, Reach::Everything, Index::Given, tokens));
            let counted = one.portions.len().saturating_sub(1) + one.left_out.len() + one.more_left_out;
            assert_eq!(counted, 199, "one is empty");
        }
    }

    /// Names of every kind, and names that only look like those of a kind.
    const NAMES: &str = "(MEMORY|carry_forward|self_observations|running_commitments|(user|feedback|project|reference|relationship|voice_calibration)_[a-c]|session_digest_2026-(02-30|11-1[0-9])|session_digest_2026-W4[0-9]|[a-e]|é灯|sub/[a-c]|sub/session_digest_2026-11-1[0-9])\\.md";

    const TEXTS: &str =
        "(---\ntype: (user|session_digest|feedback|nonsense)\n---\n)?([a-z灯 <>-]{0,50}\n){0,30}";

    proptest! {
        #[test]
        fn gathering_is_within_the_budget_and_the_same_in_any_order(
            listed in prop::collection::btree_map(NAMES, (TEXTS, 0_u64..4, 0_u64..3), 0..14)
                .prop_flat_map(|files| {
                    let files: Vec<_> = files.into_iter().collect();
                    (Just(files.clone()), Just(files).prop_shuffle())
                }),
            tokens in 0_usize..1500,
            is_everything in any::<bool>(),
            is_index_given in any::<bool>(),
        ) {
            let (sorted, shuffled) = listed;
            let texts: Vec<(&str, &str)> =
                sorted.iter().map(|(name, (text, _, _))| (name.as_str(), text.as_str())).collect();
            let backend = files(&texts);
            let uses: BTreeMap<String, u64> =
                sorted.iter().map(|(name, (_, uses, _))| (name.clone(), *uses)).collect();
            let from = GatheredFrom {
                files: &*backend,
                place: Locator::parse("claude_memory/lighthouse").expect("valid"),
                kinds: Kinds::built_in(),
                project: "lighthouse",
                today: "2026-11-18".parse().expect("a day"),
                reach: if is_everything { Reach::Everything } else { Reach::Start },
                index: if is_index_given { Index::Given } else { Index::ReadByAgent },
                uses: &uses,
                from: &|_| String::new(),
            };
            let found = block_on(candidates(&from)).expect("listed");
            let in_order = |files: &[(String, (String, u64, u64))]| -> Vec<Candidate<'_>> {
                let candidate = |(name, (_, _, day)): &(String, (String, u64, u64))| {
                    let found = found.iter().find(|candidate| candidate.name == *name)?;
                    Some(Candidate { modified_day: *day, ..found.clone() })
                };
                files.iter().filter_map(candidate).collect()
            };
            let budget = Budget::of_tokens(tokens);
            let given = block_on(choose(&from, in_order(&sorted), budget)).expect("read");
            prop_assert!(given.text.is_empty() || given.tokens() <= tokens);
            prop_assert!(tokens::estimate(&given.text) <= given.tokens());
            prop_assert!(given.portions.iter().filter(|portion| portion.left_out > 0).count() <= 1);
            let again = block_on(choose(&from, in_order(&shuffled), budget)).expect("read");
            prop_assert_eq!(given, again);
        }
    }
}

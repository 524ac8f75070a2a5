//! Keeping one fact: a memory of a kind, begun from its template, in the index, and never twice.
//!
//! [`draft`] decides where it goes and what is written, [`keep`] writes the memory and its line of the index, both or neither. A fact that is
//! there already in other white space or other capitals has the same [`fingerprint`].

use haversack_store::{Bytes, ErrorKind, Locator};

use crate::document::{self, RuledText, scalar};
use crate::error::{Error, Reason, Result};
use crate::ids::ContentHash;
use crate::kind::{Kind, Kinds, Pattern, stating};
use crate::memory::{Change, Memory, View};
use crate::secrets;

/// The name of a directory's index.
const INDEX: &str = "MEMORY.md";

/// The beginning of a new index.
const INDEX_TITLE: &str = "# Memory\n\n";

/// The longest line of the index, in characters: clients show no more.
const MAX_LINE_CHARACTERS: usize = 200;

/// The most times that the index is read again because another program wrote it.
const MAX_TRIES: usize = 8;

/// A fact that is to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewFact<'a> {
    /// The name of its kind.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// By what it is found again, in one line.
    pub description: &'a str,
    /// The fact itself.
    pub content: &'a str,
}

/// The files to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The locator of the memory.
    pub locator: Locator,
    /// The memory.
    pub text: String,
    /// Its line in the index of the same directory.
    pub entry: String,
}

/// The result of writing a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RememberOutcome {
    /// It was written.
    New,
    /// It was there already, word for word.
    Same,
    /// There is something else of that name, which was left alone.
    Taken,
}

/// Returns what is to be written for a fact below `place`; the error says what is wrong with it.
pub fn draft(kinds: &Kinds, place: &Locator, wish: &NewFact<'_>) -> std::result::Result<Draft, String> {
    let known = || {
        let known: Vec<&str> =
            kinds.iter().filter(|kind| form(kind).is_some()).map(|kind| &*kind.name).collect();
        known.join(", ")
    };
    let form = match kinds.get(wish.kind).map(|kind| (kind, form(kind))) {
        Some((_, Some(form))) => form,
        Some((kind, None)) => {
            let only = kind.names.first().map(|name| format!(" ({name})")).unwrap_or_default();
            return Err(format!(
                "A memory of kind {} has one file{only}: view it and edit it. Kinds to remember: {}",
                kind.name,
                known()
            ));
        }
        None => return Err(format!("There is no kind \"{}\". Kinds to remember: {}", wish.kind, known())),
    };
    let name = one_line(wish.name);
    let slug = slug(&name, wish.kind);
    if slug.is_empty() {
        return Err("The name needs letters or digits: it becomes the name of the file".to_owned());
    }
    if wish.content.trim().is_empty() {
        return Err("There is nothing to remember: the content is empty".to_owned());
    }
    let description = match one_line(wish.description) {
        empty if empty.is_empty() => match one_line(wish.content.trim().lines().next().unwrap_or_default()) {
            secret if !secrets::find(secret.as_bytes()).is_empty() => name.clone(),
            first => first,
        },
        description => description,
    };
    if let Some(found) = secrets::find(format!("{name}\n{description}").as_bytes()).first() {
        // It would be in the index, and the index would not leave this machine any more.
        return Err(format!("The name or description looks like {}: say it without", found.rule.name));
    }
    let file = form.pattern.filled(&slug).unwrap_or_else(|| format!("{slug}.md"));
    let locator = place.child(&file).map_err(|error| error.to_string())?;
    let fields = form.fields.lines().map(|line| match line.split_once(':') {
        Some(("name", _)) => format!("name: {}\n", scalar(&name)),
        Some(("description", _)) => format!("description: {}\n", scalar(&description)),
        _ => format!("{line}\n"),
    });
    let text = format!("---\n{}---\n\n{}\n", fields.collect::<String>(), wish.content.trim());
    let text = stating(kinds, &locator, text);
    let entry = entry(&locator, &name, &description);
    Ok(Draft { locator, text, entry })
}

/// Returns the draft of a memory whose text is written already. Its line of the index has the fields `name` and `description`, or else
/// the file's name and the first line of the text. A line that looks like a secret stays out of the index.
pub fn written(locator: &Locator, text: &str) -> Draft {
    let document = document::Document::read(text);
    let is_fit = |line: &String| !line.is_empty() && secrets::find(line.as_bytes()).is_empty();
    let field = |name: &str| document.text(name).map(|value| one_line(&value)).filter(is_fit);
    let stem = locator.name().rsplit_once('.').map_or(locator.name(), |(stem, _)| stem);
    let name = field("name").unwrap_or_else(|| stem.to_owned());
    let first = || {
        let lines = document.body.lines().map(|line| one_line(line.trim_start_matches('#')));
        lines.into_iter().find(|line| !line.is_empty()).filter(is_fit)
    };
    let description = field("description").or_else(first).unwrap_or_else(|| name.clone());
    Draft { locator: locator.clone(), text: text.to_owned(), entry: entry(locator, &name, &description) }
}

/// Returns true if a file has a line in the index of its directory: a Markdown file that is not the index itself.
pub fn is_indexed(locator: &Locator) -> bool {
    locator.name().ends_with(".md") && locator.name() != INDEX
}

fn entry(locator: &Locator, name: &str, description: &str) -> String {
    let title = name.replace(['[', ']'], "");
    let entry = format!("- [{title}]({}) — {description}", locator.name());
    entry.chars().take(MAX_LINE_CHARACTERS).collect()
}

/// The frontmatter of a kind's template, and the pattern of its file names.
struct Form<'a> {
    pattern: &'a Pattern,
    fields: &'a str,
}

/// Returns the form of a kind's facts; `None` if the kind keeps all facts in one file.
fn form(kind: &Kind) -> Option<Form<'_>> {
    let template = kind.template.as_deref()?.trim_start_matches('\n');
    let fields = RuledText::split(template)?.between;
    let pattern = kind.names.iter().find(|pattern| pattern.filled("x").is_some())?;
    Some(Form { pattern, fields })
}

/// Writes a memory and its line of the index, both or neither.
pub async fn keep(memory: &Memory, draft: &Draft) -> Result<RememberOutcome> {
    let Draft { locator, text, entry } = draft;
    let mut tries = 0;
    loop {
        let mut changes =
            vec![Change::Create { locator: locator.clone(), bytes: Bytes::copy_from_slice(text.as_bytes()) }];
        changes.extend(index_change(memory, locator, entry).await?);
        let error = match memory.batch(&changes).await {
            Ok(_) => return Ok(RememberOutcome::New),
            Err(error) => error,
        };
        tries += 1;
        if *error.reason() == Reason::Exists && error.change() == Some(0) {
            let now = read(memory, locator).await?;
            let is_same = now.is_some_and(|now| {
                std::str::from_utf8(&now).is_ok_and(|now| fingerprint(now) == fingerprint(text))
            });
            return Ok(if is_same { RememberOutcome::Same } else { RememberOutcome::Taken });
        }
        // Another program wrote the index in between.
        if error.change() != Some(1) || tries >= MAX_TRIES {
            return Err(error);
        }
    }
}

/// Returns the change that adds a memory's line to the index beside it; `None` if the index links to the memory already, or is no text.
pub(crate) async fn index_change(memory: &Memory, locator: &Locator, entry: &str) -> Result<Option<Change>> {
    let index =
        locator.parent().and_then(|parent| parent.child(INDEX).ok()).expect("a name fits beside a name");
    let there = read(memory, &index).await?;
    let link = format!("]({})", locator.name());
    let indexed = there.as_ref().map_or(Some(INDEX_TITLE), |bytes| std::str::from_utf8(bytes).ok());
    Ok(indexed.filter(|before| !before.contains(&link)).map(|before| {
        let newline = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        let bytes = Some(Bytes::from(format!("{before}{newline}{entry}\n")));
        Change::Put { locator: index.clone(), expected: there.clone(), bytes }
    }))
}

async fn read(memory: &Memory, locator: &Locator) -> Result<Option<Bytes>> {
    match memory.view(locator).await {
        Ok(View::File(object)) => Ok(Some(object.bytes)),
        Ok(View::Directory(_)) => Err(Error::new(crate::Verb::View, locator, Reason::IsDirectory)),
        Err(error) if *error.reason() == Reason::NotFound || error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns a hash of the words below the frontmatter, without case and white space. Two texts with the same words have the same hash.
pub fn fingerprint(text: &str) -> ContentHash {
    let body = document::body_of(text);
    let mut plain = String::with_capacity(body.len());
    for word in body.split_whitespace() {
        plain.extend(word.chars().flat_map(char::to_lowercase));
        plain.push(' ');
    }
    ContentHash::of(plain.as_bytes())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a name as part of a file's, without the kind that comes before it.
fn slug(name: &str, kind: &str) -> String {
    let mut slug = String::new();
    for c in name.to_lowercase().chars() {
        match c.is_alphanumeric() {
            true => slug.push(c),
            false if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            false => {}
        }
        if slug.len() >= 80 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    let below = slug.strip_prefix(kind).and_then(|rest| rest.strip_prefix('-'));
    below.filter(|rest| !rest.is_empty()).unwrap_or(slug).to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_lite::future::block_on;
    use haversack_store::{Backend, BackendExt, Condition, InMemory};

    use super::*;

    const WISH: NewFact<'static> = NewFact {
        kind: "feedback",
        name: "Feedback: short answers",
        description: "The user wants\n answers in five lines",
        content: "Answer in five lines: at most.\n\n**Why:** phones.\n",
    };

    fn place() -> Locator {
        Locator::parse("behavioral").expect("valid")
    }

    fn drafted(wish: &NewFact<'_>) -> std::result::Result<Draft, String> {
        draft(Kinds::built_in(), &place(), wish)
    }

    #[test]
    fn a_fact_becomes_a_file_of_its_kind() {
        let draft = drafted(&WISH).expect("fits");
        assert_eq!(draft.locator.as_str(), "behavioral/feedback_short-answers.md");
        assert_eq!(
            draft.text,
            "---\nname: 'Feedback: short answers'\ndescription: The user wants answers in five lines\ntype: feedback\n---\n\n\
             Answer in five lines: at most.\n\n**Why:** phones.\n"
        );
        assert_eq!(
            draft.entry,
            "- [Feedback: short answers](feedback_short-answers.md) — The user wants answers in five lines"
        );
        assert_eq!(Kinds::built_in().of(&draft.locator, draft.text.as_bytes()).name, "feedback");
        for kind in ["user", "project", "reference", "relationship", "session_digest"] {
            let draft = drafted(&NewFact { kind, ..WISH }).expect(kind);
            assert_eq!(Kinds::built_in().of(&draft.locator, draft.text.as_bytes()).name, kind);
        }
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let refused = |wish: NewFact<'_>| drafted(&wish).expect_err("unfit");
        assert!(
            refused(NewFact { kind: "opinion", ..WISH }).starts_with("There is no kind \"opinion\". Kinds")
        );
        assert!(refused(NewFact { kind: "carry_forward", ..WISH }).starts_with(
            "A memory of kind carry_forward has one file (carry_forward.md): view it and edit it."
        ),);
        assert!(refused(NewFact { name: " -- ", ..WISH }).starts_with("The name needs letters"));
        assert!(refused(NewFact { content: " \n", ..WISH }).starts_with("There is nothing to remember"));
        let key = concat!("AKIA", "Z7QK3XN5PLVT2RWD");
        assert!(
            refused(NewFact { description: key, ..WISH })
                .starts_with("The name or description looks like an AWS")
        );
        let held = drafted(&NewFact { description: "", content: key, ..WISH })
            .expect("only its own file is held back");
        assert!(!held.entry.contains(key) && held.text.contains(key), "{}", held.entry);
        let odd = drafted(&NewFact { name: "../../etc: passwd", ..WISH }).expect("it is only a name");
        assert_eq!(odd.locator.as_str(), "behavioral/feedback_etc-passwd.md");
    }

    #[test]
    fn it_is_kept_once_with_its_line_of_the_index() {
        let files = Arc::new(InMemory::new());
        let memory = Memory::new(files.clone(), Arc::new(InMemory::new()));
        let draft = drafted(&WISH).expect("fits");
        let index = Locator::parse("behavioral/MEMORY.md").expect("valid");
        assert_eq!(block_on(keep(&memory, &draft)).expect("kept"), RememberOutcome::New);
        let first = format!("# Memory\n\n{}\n", draft.entry);
        assert_eq!(block_on(files.read_text(&index)).expect("read"), Some(first.clone()));
        let again =
            drafted(&NewFact { content: "ANSWER in five   lines: at most.\n**Why:** phones.", ..WISH });
        assert_eq!(block_on(keep(&memory, &again.expect("fits"))).expect("kept"), RememberOutcome::Same);
        let other = drafted(&NewFact { content: "Answer in ten lines.", ..WISH }).expect("fits");
        assert_eq!(block_on(keep(&memory, &other)).expect("kept"), RememberOutcome::Taken);
        assert_eq!(block_on(files.read_text(&draft.locator)).expect("read"), Some(draft.text));
        assert_eq!(block_on(files.read_text(&index)).expect("read"), Some(first.clone()));
        // Entries that the user removed or added by hand stay that way.
        let theirs = "# Mine\n- [Lamp](feedback_lamp.md) by hand";
        let _ = block_on(files.write(&index, Bytes::from_static(theirs.as_bytes()), Condition::Any))
            .expect("written");
        let lamp = drafted(&NewFact { name: "lamp", ..WISH }).expect("fits");
        assert_eq!(block_on(keep(&memory, &lamp)).expect("kept"), RememberOutcome::New);
        assert_eq!(block_on(files.read_text(&index)).expect("read").as_deref(), Some(theirs));
    }

    #[test]
    fn written_memory_has_a_line_of_the_index_without_secrets() {
        let locator = Locator::parse("lighthouse/ports.md").expect("valid");
        let key = concat!("AKIA", "Z7QK3XN5PLVT2RWD");
        for (text, expected) in [
            ("staging 5433\n", "- [ports](ports.md) — staging 5433"),
            ("\n# Ports\n\nstaging 5433\n", "- [ports](ports.md) — Ports"),
            (
                "---\nname: The ports\ndescription: All of them\n---\nx\n",
                "- [The ports](ports.md) — All of them",
            ),
            (key, "- [ports](ports.md) — ports"),
            ("", "- [ports](ports.md) — ports"),
        ] {
            assert_eq!(written(&locator, text).entry, expected);
        }
        let is_indexed = |path: &str| is_indexed(&Locator::parse(path).expect("valid"));
        assert!(is_indexed("a/b.md") && !is_indexed("a/MEMORY.md") && !is_indexed("a/b.jsonl"));
    }

    #[test]
    fn the_same_words_have_the_same_fingerprint() {
        let plain = fingerprint("Answer in five lines.\nAlways.");
        assert_eq!(fingerprint("---\nname: x\n---\n\n  answer in FIVE lines.\r\n\r\nAlways.\n"), plain);
        assert_ne!(fingerprint("Answer in six lines.\nAlways."), plain);
    }
}

//! The kinds of memory: how each is recognised, merged, loaded, retained, and begun.
//!
//! All of it is one table, [`Kinds`]. The one that is compiled in can be changed and extended by a text of the same form, so what
//! a person can write is what we write.
//!
//! A file is of the kind that its name says if that kind knows no types (the index, logs, data); else of the kind that its `type`
//! says, at the top of its frontmatter or below `metadata`; else of the kind that its name says. Otherwise it is `text`, or
//! `binary` if it is none.
//!
//! A text can state how it merges in its field `merge`. That counts on every device, whatever table it has, and so a kind of the user's merges
//! everywhere by its rule: its files say so.

mod check;
mod pattern;
mod table;

use std::sync::LazyLock;

use haversack_store::{Locator, Tier};

pub use self::check::{Flaw, flaws, repaired, stating};
use self::pattern::Ends;
pub use self::pattern::Pattern;
pub use self::table::InvalidKinds;
use crate::day::{Day, Period};
use crate::document::Document;
use crate::merge::Rule;

/// The kind of a text that no other kind recognises.
const TEXT: &str = "text";

/// The field in which a text states how it merges.
pub const MERGE: &str = "merge";

/// The kind of what is no text.
const BINARY: &str = "binary";

/// A sort of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// Its description, in one line.
    pub about: String,
    /// The names by which files are recognised.
    pub names: Vec<Pattern>,
    /// The types by which files are recognised.
    pub types: Vec<String>,
    /// Fields that must be there.
    pub required: Vec<String>,
    /// Fields that may be there.
    pub optional: Vec<String>,
    /// How two versions merge.
    pub rule: Rule,
    /// The owner of its truth.
    pub tier: Tier,
    /// When a session has it.
    pub load: Load,
    /// When an agent writes it.
    pub write: String,
    /// When an agent reads it.
    pub read: String,
    /// Its retention.
    pub keep: Keep,
    /// The text of a new file; `{name}` stands for its name.
    pub template: Option<String>,
}

impl Kind {
    /// Returns true if files of this kind list the other memories of their directory.
    pub fn is_index(&self) -> bool {
        self.rule == Rule::Index
    }

    /// Returns true if a file that is named after a day, week, month or year is past the time that its kind is kept.
    pub(crate) fn is_past(&self, locator: &Locator, today: Day) -> bool {
        let Some(days) = self.keep.days.filter(|_| self.keep.section.is_none()) else { return false };
        let period = Period::of_name(locator.name());
        period.is_some_and(|period| today.days_since(period.last_day()) > days.cast_signed())
    }
}

/// When a session has a memory before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Every session begins with it.
    Start,
    /// When it matters.
    Relevant,
    /// It is not for reading.
    Never,
}

/// The time that a memory is kept, and the action after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// For how many days; for ever if it does not say.
    pub days: Option<u32>,
    /// The most items. Of a roll-up: the lines of a section that go on to the next one.
    pub items: Option<u32>,
    /// The heading below which this holds; everywhere if it does not say.
    pub section: Option<String>,
    /// The action after that.
    pub then: Then,
    /// The heading whose items move to `section` first.
    pub move_from: Option<String>,
    /// The number of days without a mention after which they move.
    pub move_days: Option<u32>,
    /// The heading that receives the lessons.
    pub into: Option<String>,
}

/// The action on a memory that is not kept as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Then {
    /// It is kept.
    #[default]
    Stays,
    /// It goes into its week.
    Weekly,
    /// It goes into its month.
    Monthly,
    /// It goes into its year.
    Yearly,
    /// Keep its lessons, without the examples.
    Lessons,
    /// It stays and is marked as dormant.
    Dormant,
    /// It stays and is marked as archived.
    Archived,
    /// It goes.
    Gone,
}

/// The table of all kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds {
    kinds: Vec<Kind>,
}

static BUILT_IN: LazyLock<Kinds> = LazyLock::new(|| {
    Kinds { kinds: Vec::new() }.with(include_str!("kind/kinds.toml")).expect("the table is checked by a test")
});

impl Kinds {
    /// Returns the table that is compiled in.
    pub fn built_in() -> &'static Kinds {
        &BUILT_IN
    }

    /// Returns this table, changed and extended by a text of the same form.
    pub fn with(&self, text: &str) -> Result<Kinds, InvalidKinds> {
        table::extended(&self.kinds, text).map(|kinds| Kinds { kinds })
    }

    /// Returns all kinds, in the order in which they are asked.
    pub fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.iter()
    }

    /// Returns the kind with a name.
    pub fn get(&self, name: &str) -> Option<&Kind> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// Returns the kind of a file.
    pub fn of(&self, locator: &Locator, bytes: &[u8]) -> &Kind {
        self.recognised(locator, bytes).0
    }

    /// Returns the kind that a file's name says, with its position in the table; `text` if the name says nothing.
    pub fn by_name(&self, locator: &Locator) -> (usize, &Kind) {
        let text = |kind: &Kind| kind.name == TEXT;
        let named = self.named(locator).map(|(position, ..)| position);
        let position = named.or_else(|| self.kinds.iter().position(text));
        let position = position.expect("`text` is compiled in, and kinds are never taken away");
        (position, &self.kinds[position])
    }

    /// Returns the kind that a file's name says, with its position in the table and the pattern that says so.
    pub(crate) fn named(&self, locator: &Locator) -> Option<(usize, &Kind, &Pattern)> {
        let ends = Ends::of_name(locator);
        self.kinds.iter().enumerate().find_map(|(position, kind)| {
            let pattern = kind.names.iter().find(|pattern| pattern.matches_with(locator, ends))?;
            Some((position, kind, pattern))
        })
    }

    /// Returns the kind of a file, and how that file merges.
    fn recognised(&self, locator: &Locator, bytes: &[u8]) -> (&Kind, Rule) {
        let Some(text) = as_text(bytes) else {
            let kind = self.known(BINARY);
            return (kind, kind.rule);
        };
        let document = Document::read(text);
        let by_name = self.named(locator).map(|(_, kind, _)| kind);
        let kind = match by_name {
            Some(kind) if kind.types.is_empty() => kind,
            _ => {
                let stated = document.text("type");
                let by_type =
                    stated.and_then(|stated| self.kinds.iter().find(|kind| kind.types.contains(&stated)));
                by_type.or(by_name).unwrap_or_else(|| self.known(TEXT))
            }
        };
        // A file that is data by its name has no frontmatter, even if its first line looks like one.
        let stated = document.text(MERGE).filter(|_| kind.rule.is_of_texts());
        (kind, stated.and_then(|name| Rule::stated(&name)).unwrap_or(kind.rule))
    }

    /// Returns how a file merges, by its name and everything it holds or held: the base, if there is one, and both sides.
    ///
    /// Content that is not UTF-8 or holds a NUL is not text. One such side is enough: text cannot be merged into it. Texts of
    /// which one states another rule than the other, or is of a kind that merges otherwise, merge as prose.
    pub fn rule<'a>(&self, locator: &Locator, contents: impl IntoIterator<Item = &'a [u8]>) -> Rule {
        let mut common: Option<Rule> = None;
        for rule in contents.into_iter().map(|bytes| self.recognised(locator, bytes).1) {
            common = match (common, rule) {
                (_, Rule::Whole) => return Rule::Whole,
                (None, rule) => Some(rule),
                (Some(common), rule) if common == rule => Some(common),
                (Some(_), _) => Some(Rule::Prose),
            };
        }
        common.unwrap_or(Rule::Prose)
    }

    fn known(&self, name: &str) -> &Kind {
        self.get(name).expect("it is compiled in, and kinds are never taken away")
    }
}

/// Returns bytes as text, if they are.
fn as_text(bytes: &[u8]) -> Option<&str> {
    if memchr::memchr(0, bytes).is_some() { None } else { std::str::from_utf8(bytes).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str, bytes: &[u8]) -> String {
        let locator = Locator::parse(name).expect("a locator");
        Kinds::built_in().of(&locator, bytes).name.clone()
    }

    #[test]
    fn files_are_recognised_by_name_and_type() {
        for (name, text, expected) in [
            ("claude_memory/lighthouse/MEMORY.md", "", "index"),
            ("MEMORY.md", "---\ntype: user\n---\n", "index"),
            ("user_role.md", "", "user"),
            ("user_role.md", "---\ntype: feedback\n---\n", "feedback"),
            ("lamp.md", "---\nname: lamp\nmetadata:\n  node_type: memory\n  type: project\n---\n", "project"),
            ("lamp.md", "---\nmetadata:\n  type: voice_calibration\n---\n", "voice_calibration"),
            ("lamp.md", "---\ntype: unheard-of\n---\n", "text"),
            ("lamp.md", "", "text"),
            ("running_commitments.md", "", "commitments"),
            ("session_digest_2026-10-02.md", "", "session_digest"),
            ("interactions/2026-10-02.jsonl", "", "interaction"),
            ("events.JSONL", "", "json_lines"),
            ("summaries/2026-10-02.md", "", "summary"),
            ("summaries/2026-10-02.json", "", "summary_counts"),
            ("summaries/2026-10-02.html", "", "summary_page"),
            ("compacted/2026-W40.md", "", "weekly"),
            ("compacted/2026-10.md", "", "monthly"),
            ("compacted/2026.md", "", "yearly"),
            ("state/watched_chats", "", "set"),
            ("state/email_cursor.txt", "", "cursor"),
            ("_system/registry.json", "", "registry"),
            ("graph/_system/ontology.yaml", "", "ontology"),
            ("package.json", "", "json"),
        ] {
            assert_eq!(kind(name, text.as_bytes()), expected, "{name} {text:?}");
        }
        assert_eq!(kind("user_role.md", b"\xff"), "binary");
        assert_eq!(kind("user_role.md", b"a\0"), "binary");
    }

    #[test]
    fn the_table_is_complete() {
        let kinds = Kinds::built_in();
        assert_eq!(kinds.iter().count(), 32);
        for kind in kinds.iter() {
            assert!(!kind.about.is_empty(), "{}", kind.name);
            let template = kind.template.as_deref().unwrap_or_default();
            let document = Document::read(template);
            for field in kind.required.iter().filter(|_| !template.is_empty()) {
                assert!(document.value(field).is_some(), "the template of {} has no {field}", kind.name);
            }
            if let Some(stated) = document.text("type") {
                assert_eq!(stated, kind.name);
            }
        }
        for (name, rule) in Rule::ALL {
            assert!(kinds.iter().any(|kind| kind.rule == *rule), "{name}");
        }
    }

    #[test]
    fn a_text_states_how_it_merges() {
        let rule = |name: &str, contents: &[&str]| {
            let locator = Locator::parse(name).expect("a locator");
            Rule::of(&locator, contents.iter().map(|text| text.as_bytes()))
        };
        let soup = "---\nmerge: threads\n---\n\n# Soup\n";
        assert_eq!(rule("recipes/soup.md", &[soup, soup]), Rule::Threads);
        assert_eq!(rule("recipes/soup.md", &["---\nmetadata:\n  merge: threads\n---\n"]), Rule::Threads);
        assert_eq!(rule("user_role.md", &[soup]), Rule::Threads, "also against its kind");
        assert_eq!(rule("recipes/soup.md", &[soup, "# Soup\n"]), Rule::Prose, "only if all do");
        for odd in ["---\nmerge: thread\n---\n", "---\nmerge: [threads]\n---\n", "merge: threads\n"] {
            assert_eq!(rule("recipes/soup.md", &[odd]), Rule::Prose, "{odd}");
        }
        // Data are what their name says, and texts are no data.
        assert_eq!(rule("events.jsonl", &[soup]), Rule::JsonLines);
        for (name, rule_of) in Rule::ALL {
            let expected = if rule_of.is_of_texts() { *rule_of } else { Rule::Prose };
            assert_eq!(rule("recipes/soup.md", &[&format!("---\nmerge: {name}\n---\n")]), expected);
        }
        assert_eq!(Rule::of(&Locator::parse("soup.md").expect("a locator"), [&b"\0"[..]]), Rule::Whole);
    }

    #[test]
    fn kinds_can_be_changed_and_added() {
        let text = "[kind.recipe]\nabout = \"how to cook\"\nnames = [\"recipes/*.md\"]\nrule = \"threads\"\n\n[kind.user]\nload = \"start\"\n";
        let kinds = Kinds::built_in().with(text).expect("valid");
        let locator = Locator::parse("recipes/soup.md").expect("a locator");
        assert_eq!(kinds.of(&locator, b"").name, "recipe");
        assert_eq!(kinds.rule(&locator, [&b"a"[..], b"b"]), Rule::Threads);
        let user = kinds.get("user").expect("there");
        assert_eq!((user.load, user.rule), (Load::Start, Rule::Prose));
        assert_eq!(Kinds::built_in().of(&locator, b"").name, "text");
        let odd = |text: &str| Kinds::built_in().with(text).expect_err("odd").to_string();
        assert_eq!(odd("[kind.user]\nrul = \"prose\"\n"), "kind user has no `rul`; did you mean `rule`?");
        assert_eq!(
            odd("[kind.user]\nrule = \"logs\"\n"),
            "kind user has an unknown rule \"logs\"; did you mean \"log\"?"
        );
        assert_eq!(
            odd("[kind.new]\nabout = \"x\"\n"),
            "kind new says neither by which names nor by which types it is recognised"
        );
        assert_eq!(odd("[kinds.new]\n"), "there is no `kinds`; did you mean `kind`?");
        assert_eq!(
            odd("[kind.user]\nkeep_days = -1\n"),
            "kind user has a `keep_days` that is no number of at least 0"
        );
        assert!(odd("[kind").starts_with("it is not valid TOML: "), "{}", odd("[kind"));
    }
}

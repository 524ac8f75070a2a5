//! The table of kinds as TOML.

use std::fmt;

use haversack_store::Tier;
use toml::de::{DeTable, DeValue};

use super::{Keep, Kind, Load, Pattern, Then};
use crate::merge::Rule;

/// The keys of a kind.
const KEYS: &[&str] = &[
    "about",
    "names",
    "types",
    "required",
    "optional",
    "rule",
    "tier",
    "load",
    "write",
    "read",
    "keep_days",
    "keep_items",
    "section",
    "then",
    "move_from",
    "move_days",
    "into",
    "template",
];

const TIERS: &[(&str, Tier)] = &[
    ("source", Tier::Source),
    ("shared-abstracts", Tier::SharedAbstracts),
    ("local-index", Tier::LocalIndex),
];

const LOADS: &[(&str, Load)] =
    &[("start", Load::Start), ("relevant", Load::Relevant), ("never", Load::Never)];

const THENS: &[(&str, Then)] = &[
    ("stays", Then::Stays),
    ("weekly", Then::Weekly),
    ("monthly", Then::Monthly),
    ("yearly", Then::Yearly),
    ("lessons", Then::Lessons),
    ("dormant", Then::Dormant),
    ("archived", Then::Archived),
    ("gone", Then::Gone),
];

/// A text that is no table of kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidKinds(String);

impl fmt::Display for InvalidKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidKinds {}

impl Load {
    /// Returns the word for it in tables.
    pub fn name(self) -> &'static str {
        word(LOADS, self)
    }
}

impl Then {
    /// Returns the word for it in tables.
    pub fn name(self) -> &'static str {
        word(THENS, self)
    }
}

fn word<T: PartialEq>(words: &[(&'static str, T)], wanted: T) -> &'static str {
    words.iter().find(|(_, value)| *value == wanted).expect("everything has a word").0
}

/// Returns kinds changed and extended by a text; what is new comes first, since it is the more particular.
pub(super) fn extended(kinds: &[Kind], text: &str) -> Result<Vec<Kind>, InvalidKinds> {
    let table = DeTable::parse(text)
        .map_err(|error| InvalidKinds(format!("it is not valid TOML: {}", error.message())))?;
    let mut changed = kinds.to_vec();
    let mut new = Vec::new();
    for (key, value) in in_order(table.get_ref()) {
        if key != "kind" {
            return Err(InvalidKinds(format!("there is no `{key}`{}", meant(key, &["kind"], '`'))));
        }
        let DeValue::Table(rows) = value else { return Err(InvalidKinds("`kind` is no table".to_owned())) };
        for (name, row) in in_order(rows) {
            let DeValue::Table(row) = row else {
                return Err(InvalidKinds(format!("kind {name} is no table")));
            };
            if let Some(kind) = changed.iter_mut().find(|kind| kind.name == name) {
                fill(kind, row)?;
                continue;
            }
            let mut kind = empty(name);
            fill(&mut kind, row)?;
            let is_fallback = kinds.is_empty() && (name == super::TEXT || name == super::BINARY);
            if kind.names.is_empty() && kind.types.is_empty() && !is_fallback {
                let why = "says neither by which names nor by which types it is recognised";
                return Err(InvalidKinds(format!("kind {name} {why}")));
            }
            new.push(kind);
        }
    }
    new.extend(changed);
    Ok(new)
}

/// Returns what a table says in the order in which it is written.
fn in_order<'t, 'a>(table: &'t DeTable<'a>) -> impl Iterator<Item = (&'t str, &'t DeValue<'a>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter().map(|(key, value)| (&**key.get_ref(), value.get_ref()))
}

fn empty(name: &str) -> Kind {
    Kind {
        name: name.to_owned(),
        about: String::new(),
        names: Vec::new(),
        types: Vec::new(),
        required: Vec::new(),
        optional: Vec::new(),
        rule: Rule::Prose,
        tier: Tier::Source,
        load: Load::Relevant,
        write: String::new(),
        read: String::new(),
        keep: Keep::default(),
        template: None,
    }
}

fn fill(kind: &mut Kind, row: &DeTable<'_>) -> Result<(), InvalidKinds> {
    for (key, value) in in_order(row) {
        let name = kind.name.clone();
        let said = KindValue { kind: &name, key, value };
        match key {
            "about" => kind.about = said.text()?,
            "names" => kind.names = said.texts()?.into_iter().map(Pattern::new).collect(),
            "types" => kind.types = said.texts()?,
            "required" => kind.required = said.texts()?,
            "optional" => kind.optional = said.texts()?,
            "rule" => kind.rule = said.one_of(Rule::ALL)?,
            "tier" => kind.tier = said.one_of(TIERS)?,
            "load" => kind.load = said.one_of(LOADS)?,
            "write" => kind.write = said.text()?,
            "read" => kind.read = said.text()?,
            "keep_days" => kind.keep.days = Some(said.number()?),
            "keep_items" => kind.keep.items = Some(said.number()?),
            "section" => kind.keep.section = Some(said.text()?),
            "then" => kind.keep.then = said.one_of(THENS)?,
            "move_from" => kind.keep.move_from = Some(said.text()?),
            "move_days" => kind.keep.move_days = Some(said.number()?),
            "into" => kind.keep.into = Some(said.text()?),
            "template" => kind.template = Some(said.text()?),
            _ => return Err(InvalidKinds(format!("kind {name} has no `{key}`{}", meant(key, KEYS, '`')))),
        }
    }
    Ok(())
}

/// The value of one key of a kind.
struct KindValue<'s, 'a> {
    kind: &'s str,
    key: &'s str,
    value: &'s DeValue<'a>,
}

impl KindValue<'_, '_> {
    fn odd(&self, wanted: &str) -> InvalidKinds {
        InvalidKinds(format!("kind {} has a `{}` that is no {wanted}", self.kind, self.key))
    }

    fn text(&self) -> Result<String, InvalidKinds> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.odd("text"))
    }

    fn texts(&self) -> Result<Vec<String>, InvalidKinds> {
        let values = self.value.as_array().ok_or_else(|| self.odd("list of texts"))?;
        let texts = values.iter().map(|value| value.get_ref().as_str().map(str::to_owned));
        texts.collect::<Option<Vec<String>>>().ok_or_else(|| self.odd("list of texts"))
    }

    fn number(&self) -> Result<u32, InvalidKinds> {
        let number = self
            .value
            .as_integer()
            .and_then(|number| u32::from_str_radix(number.as_str(), number.radix()).ok());
        number.ok_or_else(|| self.odd("number of at least 0"))
    }

    fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, InvalidKinds> {
        let text = self.text()?;
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let found = words.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let (kind, key) = (self.kind, self.key);
            InvalidKinds(format!("kind {kind} has an unknown {key} \"{text}\"{}", meant(&text, &names, '"')))
        })
    }
}

/// Returns what was probably meant.
fn meant(word: &str, known: &[&str], quote: char) -> String {
    let nearest = known
        .iter()
        .max_by(|one, other| strsim::jaro_winkler(word, one).total_cmp(&strsim::jaro_winkler(word, other)));
    nearest.map(|nearest| format!("; did you mean {quote}{nearest}{quote}?")).unwrap_or_default()
}

//! Promises and their state: `running_commitments.md`. Pure.
//!
//! ```text
//! ## Open
//! - 2026-11-18: mend the lamp ^c-4kx7q
//!
//! ## Delivered
//! - 2026-11-19: paint the door ✓ ^c-9m2ab
//! ```
//!
//! An id is created when a commitment is added, and stays: two devices that change the same commitment identify it by its id. A commitment written by hand
//! without an id is identified by its words. The date is the day on which it was made, or else delivered.

use crate::checklist::{Checklist, Found, Item, as_words, find};
use crate::day::Day;
use crate::document::Document;
use crate::merge::{ItemParts, item_id};
use crate::secrets;

/// The file in the directory of the memory.
pub const FILE: &str = "running_commitments.md";

const OPEN: &str = "Open";
const DELIVERED: &str = "Delivered";

/// The characters of an id, without those that look alike.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The longest text of a commitment, in characters.
pub const MAX_CHARACTERS: usize = 500;

/// A commitment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commitment {
    /// Its id; `None` if it was written by hand without one.
    pub id: Option<String>,
    /// The promise.
    pub text: String,
    /// When it was made or delivered, if the file says so.
    pub day: Option<Day>,
    /// True if it was delivered.
    pub is_delivered: bool,
}

/// Why a list stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The text has no words, or too many.
    Unfit(String),
    /// No open item is meant.
    NotFound,
    /// Several items have these words.
    Several,
    /// The item is delivered or consumed already.
    Already,
}

/// Returns a new id for a commitment. Two of them are the same once in a billion.
pub fn mint(random: [u8; 16]) -> String {
    let letter = |byte: u8| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]);
    // An id has a digit, so that no word looks like one.
    let digit = char::from(b'0' + random[0] % 10);
    let rest: String = random[1..6].iter().map(|byte| letter(*byte)).collect();
    format!("c-{digit}{rest}")
}

/// Returns every commitment, the open ones first.
pub fn list(text: &str) -> Vec<Commitment> {
    let checklist = Checklist::of(Document::read(text).body);
    let of = |name: &str, is_delivered: bool| {
        checklist.items(name).into_iter().map(move |item| read(&item, is_delivered)).collect::<Vec<_>>()
    };
    [of(OPEN, false), of(DELIVERED, true)].concat()
}

/// Returns the file with a new commitment; `template` is what a new file begins with.
pub fn add(text: Option<&str>, template: &str, promise: &str, day: Day, id: &str) -> Result<String, Refusal> {
    let words = fit(promise)?;
    edited(text.unwrap_or(template), |checklist| {
        checklist.add_last(OPEN, &format!("- {day}: {words} ^{id}"));
        Ok(())
    })
}

/// Returns the file in which a commitment is delivered, and the commitment. It is named by its id or its words.
pub fn deliver(text: &str, wanted: &str, day: Day) -> Result<(String, Commitment), Refusal> {
    let mut delivered = None;
    let text = edited(text, |checklist| {
        let items = checklist.items(OPEN);
        let item = match find(&items, wanted, id_of) {
            Found::One(item) => item.clone(),
            Found::Several => return Err(Refusal::Several),
            Found::Nothing => {
                let before = checklist.items(DELIVERED);
                let is_before = matches!(find(&before, wanted, id_of), Found::One(_));
                return Err(if is_before { Refusal::Already } else { Refusal::NotFound });
            }
        };
        checklist.remove(&item);
        let ItemParts { bullet, checkbox, date: _, text, mark: _, id, below } = ItemParts::of(&item.text);
        let checkbox = if checkbox.is_empty() { "" } else { "[x] " };
        let text = text.trim_end();
        let done = format!("{bullet}{checkbox}{day}: {text} ✓{id}{below}");
        checklist.add_first(DELIVERED, &done);
        delivered = Some(Commitment { is_delivered: true, day: Some(day), ..read(&item, true) });
        Ok(())
    })?;
    delivered.map(|delivered| (text, delivered)).ok_or(Refusal::NotFound)
}

/// Returns the words of a new item; an error if there are none, too many, or they look like a secret.
pub(crate) fn fit(text: &str) -> Result<String, Refusal> {
    let words = as_words(text);
    if words.is_empty() {
        return Err(Refusal::Unfit("The text is empty".to_owned()));
    }
    if words.chars().count() > MAX_CHARACTERS {
        let why = format!("The text has more than {MAX_CHARACTERS} characters: say it shorter");
        return Err(Refusal::Unfit(why));
    }
    if let Some(found) = secrets::find(words.as_bytes()).first() {
        // The whole file would stay on this machine.
        return Err(Refusal::Unfit(format!("The text looks like {}: say it without", found.rule.name)));
    }
    Ok(words)
}

/// Edits the list below the frontmatter of a file.
pub(crate) fn edited(
    text: &str,
    edit: impl FnOnce(&mut Checklist) -> Result<(), Refusal>,
) -> Result<String, Refusal> {
    let body = Document::read(text).body;
    let above = &text[..text.len() - body.len()];
    let mut checklist = Checklist::of(body);
    edit(&mut checklist)?;
    Ok(format!("{above}{}", checklist.into_text()))
}

fn id_of(item: &Item) -> Option<String> {
    item_id(&item.text).map(|id| id.into_owned())
}

fn read(item: &Item, is_delivered: bool) -> Commitment {
    let parts = ItemParts::of(&item.text);
    let day = parts.date.get(..10).and_then(|day| day.parse().ok());
    Commitment { id: id_of(item), text: parts.text.trim().to_owned(), day, is_delivered }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::{Rule, Side, merge};

    const FILE_TEXT: &str = "---\nname: x\ntype: commitments\n---\n\n## Open\n- 2026-11-17: mend the lamp ^c-4kx7qa\n- [ ] paint the door (twice)\n  both sides\n\n## Delivered (keep 5)\n- 2026-11-16: oil the gears ✓ ^c-1aaaaa\n";

    fn day(text: &str) -> Day {
        text.parse().expect("a day")
    }

    #[test]
    fn commitments_are_listed_with_and_without_ids() {
        let listed: Vec<(Option<String>, String, Option<String>, bool)> = list(FILE_TEXT)
            .into_iter()
            .map(|one| (one.id, one.text, one.day.map(|day| day.to_string()), one.is_delivered))
            .collect();
        let of = |id: Option<&str>, text: &str, day: Option<&str>, is_delivered| {
            (id.map(str::to_owned), text.to_owned(), day.map(str::to_owned), is_delivered)
        };
        let expected = [
            of(Some("c-4kx7qa"), "mend the lamp", Some("2026-11-17"), false),
            of(None, "paint the door (twice)", None, false),
            of(Some("c-1aaaaa"), "oil the gears", Some("2026-11-16"), true),
        ];
        assert_eq!(listed, expected);
    }

    #[test]
    fn commitment_is_added_to_open_and_moves_to_delivered() {
        let today = day("2026-11-18");
        let added = add(Some(FILE_TEXT), "", "file the\n upstream bug", today, "c-7zzzzz").expect("fits");
        assert!(
            added.contains("  both sides\n- 2026-11-18: file the upstream bug ^c-7zzzzz\n\n## Del"),
            "{added}"
        );
        for wanted in ["c-4kx7qa", "^C-4KX7QA", "Mend the lamp", "the lamp"] {
            let (text, one) = deliver(FILE_TEXT, wanted, today).expect(wanted);
            assert!(
                text.ends_with(
                    "## Open\n- [ ] paint the door (twice)\n  both sides\n\n## Delivered (keep 5)\n- 2026-11-18: mend the lamp ✓ ^c-4kx7qa\n- 2026-11-16: oil the gears ✓ ^c-1aaaaa\n"
                ),
                "{text}"
            );
            assert!(one.is_delivered && one.text == "mend the lamp");
        }
        let (text, _) = deliver(FILE_TEXT, "paint", today).expect("found");
        assert!(
            text.contains("- [x] 2026-11-18: paint the door (twice) ✓\n  both sides\n- 2026-11-16"),
            "{text}"
        );
        assert_eq!(deliver(FILE_TEXT, "the", today), Err(Refusal::Several));
        assert_eq!(deliver(FILE_TEXT, "c-1aaaaa", today), Err(Refusal::Already));
        assert_eq!(deliver(FILE_TEXT, "fly", today), Err(Refusal::NotFound));
        assert_eq!(deliver(FILE_TEXT, " ", today), Err(Refusal::NotFound));
        assert!(matches!(add(None, "", "\n", today, "c-1"), Err(Refusal::Unfit(_))));
        let key = concat!("AKIA", "Z7QK3XN5PLVT2RWD");
        assert!(matches!(add(None, "", key, today, "c-1"), Err(Refusal::Unfit(_))));
    }

    #[test]
    fn minted_ids_are_ids_of_the_merge() {
        for seed in 0..=255_u8 {
            let id = mint([seed; 16]);
            let item = format!("- 2026-11-18: paint ^{id}");
            assert_eq!(item_id(&item).as_deref(), Some(id.as_str()));
        }
    }

    /// Delivered on one device and reworded on the other, it ends as delivered in its new words.
    #[test]
    fn delivered_here_and_reworded_there_is_delivered_in_its_new_words() {
        for (line, reworded) in [
            ("- 2026-11-17: mend the lamp ^c-4kx7qa", "- 2026-11-17: mend the great lamp ^c-4kx7qa"),
            ("- 2026-11-17: mend the lamp", "- 2026-11-17: mend the great lamp"),
            ("- mend the lamp before the ship comes", "- mend the great lamp before the ship comes"),
        ] {
            let base = format!("## Open\n{line}\n- oil the gears\n\n## Delivered\n- 2026-11-01: old ✓\n");
            let (delivered, _) = deliver(&base, "mend the lamp", day("2026-11-18")).expect("found");
            let there = base.replace(line, reworded);
            let side = |text: &'static str, device| Side { bytes: text.as_bytes(), device };
            let [delivered, there]: [&'static str; 2] =
                [delivered, there].map(|text| &*Box::leak(text.into_boxed_str()));
            for (ours, theirs) in [(delivered, there), (there, delivered)] {
                let merged = merge(
                    Rule::Commitments,
                    Some(base.as_bytes()),
                    side(ours, "laptop"),
                    side(theirs, "desktop"),
                );
                let text = String::from_utf8(merged.bytes.to_vec()).expect("text");
                let all = list(&text);
                let lamp: Vec<&Commitment> = all.iter().filter(|one| one.text.contains("lamp")).collect();
                assert_eq!(lamp.len(), 1, "{text}");
                assert!(lamp[0].is_delivered && lamp[0].text.contains("great lamp"), "{text}");
                assert!(!merged.both_kept, "{text}");
            }
        }
    }
}

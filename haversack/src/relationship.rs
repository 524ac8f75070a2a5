//! A memory for each person that the interaction log names for the first time. Pure.
//!
//! A sender gets one file, `relationship_<sender>.md`, once: the senders that had one are in a set beside the log, which all devices share. So a file
//! that the user renamed or deleted does not come back. The file says nothing that differs between devices, so that two that meet the same person at
//! the same time write the same.

use haversack_store::Locator;

use crate::document::{Document, scalar};
use crate::ids::ContentHash;
use crate::kind::Kinds;
use crate::remember::{Draft, NewFact, draft};
use crate::secrets;

/// The kind of the file.
const KIND: &str = "relationship";

/// The longest name of a sender that gets a file, in characters.
const MAX_CHARACTERS: usize = 120;

/// Returns the set of the senders that had a file.
pub fn known_senders() -> Locator {
    Locator::parse("state/known_senders.set").expect("a plain name")
}

/// Returns a sender as it is in the set; `None` if no file can be made for it.
pub fn key(sender: &str) -> Option<String> {
    let name = sender.split_whitespace().collect::<Vec<_>>().join(" ");
    let key = name.to_lowercase();
    let is_fit = !key.is_empty()
        && key.chars().count() <= MAX_CHARACTERS
        && !key.chars().any(crate::display::is_harmful)
        && secrets::find(name.as_bytes()).is_empty();
    is_fit.then_some(key)
}

/// Returns true if a sender is in the set.
pub fn is_known(set: &str, key: &str) -> bool {
    set.lines().any(|line| line == key)
}

/// Returns the first draft of a person's file below `place`; the error says why there is none.
pub fn stub(kinds: &Kinds, place: &Locator, sender: &str, channel: &str) -> Result<Draft, String> {
    let template = kinds.get(KIND).and_then(|kind| kind.template.as_deref()).unwrap_or_default();
    let body = Document::read(template.trim_start_matches('\n')).body;
    let name = sender.split_whitespace().collect::<Vec<_>>().join(" ");
    let description = "Wrote to us; nothing else is known yet";
    let fact = NewFact { kind: KIND, name: &name, description, content: body };
    let mut draft = draft(kinds, place, &fact)?;
    let chats = format!("chats: [{}]\nsender: {}\n", scalar(channel.trim()), scalar(&name));
    draft.text = match draft.text.contains("chats: []\n") {
        true => draft.text.replacen("chats: []\n", &chats, 1),
        false => draft.text.replacen("---\n\n", &format!("{chats}---\n\n"), 1),
    };
    Ok(draft)
}

/// Returns the draft under another name, for a person whose name is taken by another's file.
pub fn renamed(draft: Draft, sender: &str) -> Draft {
    let hash = ContentHash::of(sender.to_lowercase().as_bytes()).to_string();
    let stem = draft.locator.name().trim_end_matches(".md").to_owned();
    let name = format!("{stem}-{}.md", &hash[..6]);
    let entry = draft.entry.replace(draft.locator.name(), &name);
    let parent = draft.locator.parent().unwrap_or_else(Locator::root);
    match parent.child(&name) {
        Ok(locator) => Draft { locator, entry, ..draft },
        Err(_) => draft,
    }
}

/// Returns true if a file is of another person than `sender`.
pub fn is_of_another(text: &str, sender: &str) -> bool {
    let stated = Document::read(text).text("sender").and_then(|stated| key(&stated));
    stated.is_some() && stated != key(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stub_has_the_fields_and_sections_of_its_kind() {
        let place = Locator::parse("behavioral").expect("valid");
        let draft = stub(Kinds::built_in(), &place, "A. Teammate", "email").expect("fits");
        assert_eq!(draft.locator.as_str(), "behavioral/relationship_a-teammate.md");
        let expected = "---\nname: 'A. Teammate'\ndescription: 'Wrote to us; nothing else is known yet'\ntype: relationship\nrole: unknown\nchats: [email]\nsender: 'A. Teammate'\n---\n\nKnown-for:\n\nCommunication register:\n\nPast interactions:\n\nPatterns to keep:\n";
        assert_eq!(draft.text, expected);
        let other = renamed(draft.clone(), "a-teammate");
        assert!(
            other.locator.name().starts_with("relationship_a-teammate-")
                && other.entry.contains(other.locator.name())
        );
        assert!(is_of_another(&draft.text, "a-teammate") && !is_of_another(&draft.text, "a.  teammate"));
        assert!(!is_of_another("by hand\n", "anybody"));
    }

    #[test]
    fn senders_that_cannot_be_a_name_get_no_file() {
        let key_of = |sender: &str| key(sender);
        assert_eq!(key_of(" A.\nTeammate "), Some("a. teammate".to_owned()));
        let secret = concat!("AKIA", "Z7QK3XN5PLVT2RWD");
        for odd in ["", " ", "\u{1b}[2J", &"x".repeat(200), secret] {
            assert_eq!(key_of(odd), None, "{odd:?}");
        }
        assert!(is_known("ann\nbo\n", "bo") && !is_known("ann\nbob\n", "bo"));
        assert!(stub(Kinds::built_in(), &Locator::root(), "…", "chat").is_err(), "no letters");
    }
}

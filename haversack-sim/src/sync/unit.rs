//! The units that the oracle counts: words that are never written twice.
//!
//! Each addition of a user carries a *unit*, a word made of the action and the device: `w034d2`. A thing that keeps its name
//! than its words, an entry or an item, has a *key* of the same form: `k034d2`. Both can be found in any text, whatever it is.

use std::collections::BTreeSet;

/// The device number of the program that changes the mirror by hand.
pub(crate) const MEDDLER: usize = 9;

/// Returns the unit that a user of a device writes; a later one is greater.
pub(crate) fn unit(number: usize, device: usize) -> String {
    format!("w{number:03}d{device}")
}

/// Returns the key of what is made with a unit.
pub(crate) fn key(unit: &str) -> String {
    unit.replacen('w', "k", 1)
}

/// Returns the units in a text, in its order.
pub(crate) fn units(text: &str) -> impl Iterator<Item = &str> {
    words(text).filter(|word| is_made(word, 'w'))
}

/// Returns the units in a text.
pub(crate) fn units_of(text: &str) -> BTreeSet<String> {
    units(text).map(str::to_owned).collect()
}

/// Returns the first key in a text.
pub(crate) fn key_in(text: &str) -> Option<&str> {
    keys(text).next()
}

/// Returns the keys in a text, in its order.
pub(crate) fn keys(text: &str) -> impl Iterator<Item = &str> {
    words(text).filter(|word| is_made(word, 'k'))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
}

fn is_made(word: &str, begins: char) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = word.strip_prefix(begins).and_then(|rest| rest.split_once('d'));
    numbers.is_some_and(|(number, device)| digits(number) && digits(device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_found_in_anything() {
        let (one, two) = (unit(4, 2), unit(120, 0));
        let text =
            format!("- [{}]({}.md) — {one}\n{{\"title\":\"{two}\"}} word wd w1 w1d", key(&one), key(&one));
        assert_eq!(units(&text).collect::<Vec<_>>(), [&one, &two]);
        assert_eq!(key_in(&text), Some("k004d2"));
        assert!(one < two);
    }
}

//! The fields of an address or of a form, as browsers encode them. Pure.

use haversack::store::Locator;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::error::CommandError;

/// Characters of a path that stay readable in an address.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.');

/// The most fields that are read.
const MAX_FIELDS: usize = 64;

/// Names and values. Of a name that occurs twice, the first value counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads fields; text that is no UTF-8 is refused, because it would come back as something else.
    pub(super) fn parse(text: &str) -> Option<Fields> {
        let decode = |part: &str| {
            let spaced = part.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8().ok().map(|text| text.into_owned())
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(MAX_FIELDS);
        let fields = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        });
        fields.collect::<Option<Vec<_>>>().map(Fields)
    }

    /// Returns a value; empty if there is none.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Returns the memory that the field `path` names.
    pub(super) fn place(&self) -> Result<Locator, CommandError> {
        Locator::parse(self.get("path")).ok().filter(|locator| !locator.is_root()).ok_or_else(|| {
            CommandError::user("there is no memory at this address", "Find it in the list of memories")
        })
    }
}

/// Returns a text as a value in an address.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_they_were_sent() {
        let text = "läuchtturm & <b>+=%\r\n";
        let fields = Fields::parse(&format!("path=a%2Fb.md&q={}&q=2&flag", encoded(text))).expect("fields");
        assert_eq!(fields.get("path"), "a/b.md");
        assert_eq!(fields.get("q"), text);
        assert_eq!(fields.get("flag"), "");
        assert_eq!(Fields::parse("a=1+2").expect("fields").get("a"), "1 2");
        assert_eq!(Fields::parse("a=%ff"), None);
    }
}

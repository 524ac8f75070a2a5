//! Nodes and connections as the registry has them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::file_storage::Content;

/// A property: a text, a number or a yes or no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Property {
    /// Yes or no.
    Bool(bool),
    /// A number; 1 and 1.0 are the same.
    Number(Number),
    /// A text.
    Text(String),
}

impl Property {
    /// Tells whether two properties are the same value.
    pub fn is_same(&self, other: &Property) -> bool {
        match (self, other) {
            (Property::Number(one), Property::Number(other)) => {
                one == other || (one.as_f64().is_some() && one.as_f64() == other.as_f64())
            }
            (one, other) => one == other,
        }
    }
}

impl From<&str> for Property {
    fn from(text: &str) -> Property {
        Property::Text(text.to_owned())
    }
}

impl From<bool> for Property {
    fn from(value: bool) -> Property {
        Property::Bool(value)
    }
}

impl From<i64> for Property {
    fn from(number: i64) -> Property {
        Property::Number(number.into())
    }
}

/// Properties by name.
pub type Properties = BTreeMap<String, Property>;

/// Tells whether `all` has every property of `wanted`.
pub(crate) fn has_properties(all: &Properties, wanted: &Properties) -> bool {
    wanted.iter().all(|(name, value)| all.get(name).is_some_and(|there| there.is_same(value)))
}

/// A node without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its id.
    pub id: String,
    /// The name of its type.
    #[serde(rename = "type")]
    pub node_type: String,
    /// When it was created.
    pub created: String,
    /// When it was changed last.
    pub modified: String,
    /// Its properties.
    #[serde(default)]
    pub properties: Properties,
    /// The location of its content.
    pub content: ContentFile,
}

/// A connection without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Its id.
    pub id: String,
    /// The name of its type.
    #[serde(rename = "type")]
    pub connection_type: String,
    /// The node where it begins.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// When it was created.
    pub created: String,
    /// When it was changed last.
    pub modified: String,
    /// Its properties.
    #[serde(default)]
    pub properties: Properties,
    /// The location of its content, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentFile>,
}

/// The location and format of a content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentFile {
    /// Its path in the storage.
    pub path: String,
    /// The format, as its author calls it: `markdown`, `pdf` …
    pub format: String,
    /// `utf-8`, or `base64` for bytes that are no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
}

/// Returns what a content is called as an encoding.
pub(crate) fn encoding_of(content: &Content) -> &'static str {
    match content {
        Content::Text(_) => "utf-8",
        Content::Bytes(_) => "base64",
    }
}

/// Returns the extension of a file of this format: its own where it is known, else that of any text or of any bytes.
pub(crate) fn extension(format: &str, content: &Content) -> &'static str {
    match format.to_ascii_lowercase().as_str() {
        "markdown" | "md" | "text/markdown" => "md",
        "json" | "application/json" => "json",
        "yaml" | "yml" => "yaml",
        "html" | "text/html" => "html",
        "csv" | "text/csv" => "csv",
        "pdf" | "application/pdf" => "pdf",
        "png" | "image/png" => "png",
        "jpg" | "jpeg" | "image/jpeg" => "jpg",
        "gif" | "image/gif" => "gif",
        "webp" | "image/webp" => "webp",
        "svg" | "image/svg+xml" => "svg",
        _ => match content {
            Content::Text(_) => "txt",
            Content::Bytes(_) => "bin",
        },
    }
}

/// The property with the name of a node.
pub(crate) const NAME: &str = "name";

/// Returns the name of a node: its property, else its id.
pub(crate) fn name_of(node: &Node) -> String {
    match node.properties.get(NAME) {
        Some(Property::Text(name)) => name.clone(),
        _ => node.id.clone(),
    }
}

/// Returns the id that follows from a name.
pub(crate) fn id_of(name: &str) -> String {
    format!("mem_{}", &blake3::hash(name.as_bytes()).to_hex()[..24])
}

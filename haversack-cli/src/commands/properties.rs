//! Properties of nodes and connections as a user types and reads them.

use haversack::graph::{Properties, Property};
use serde_json::Number;

use crate::error::CommandError;

/// Reads properties written as NAME=VALUE: true and false are yes and no, a number is a number, anything else is text.
pub(super) fn read(given: &[String]) -> Result<Properties, CommandError> {
    given.iter().map(|one| pair(one)).collect()
}

fn pair(given: &str) -> Result<(String, Property), CommandError> {
    let Some((name, value)) = given.split_once('=').filter(|(name, _)| !name.trim().is_empty()) else {
        let message = format!("{given:?} is no property");
        return Err(CommandError::user(message, "Write it as NAME=VALUE: --property rank=2"));
    };
    let property = match value {
        "true" => Property::Bool(true),
        "false" => Property::Bool(false),
        number => match number.parse::<Number>() {
            Ok(number) => Property::Number(number),
            Err(_) => Property::Text(value.to_owned()),
        },
    };
    Ok((name.trim().to_owned(), property))
}

/// Returns properties as they are typed.
pub(super) fn shown(properties: &Properties) -> String {
    let value = |property: &Property| match property {
        Property::Bool(value) => value.to_string(),
        Property::Number(number) => number.to_string(),
        Property::Text(text) => text.clone(),
    };
    let all: Vec<String> =
        properties.iter().map(|(name, property)| format!("{name}={}", value(property))).collect();
    all.join(" ")
}

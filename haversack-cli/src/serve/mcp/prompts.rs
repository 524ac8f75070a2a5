//! The skills of our plugin as prompts, for clients that have no skills.

use haversack::document::Document;
use haversack::store::Locator;
use rmcp::model::{ErrorData, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

use crate::agents::skills::SKILLS;

/// The only argument that a skill has.
const ARGUMENT: &str = "arguments";

/// Returns all prompts.
pub(super) fn all() -> Vec<Prompt> {
    let prompts = SKILLS.iter().map(|(name, text)| {
        let document = Document::read(text);
        let hint = document.text("argument-hint");
        let arguments =
            hint.map(|hint| vec![PromptArgument::new(ARGUMENT).with_description(hint).with_required(true)]);
        Prompt::new(*name, document.text("description"), arguments)
    });
    prompts.collect()
}

/// Returns a prompt, for a memory directory.
pub(super) fn get(
    name: &str,
    arguments: Option<&JsonObject>,
    place: &Locator,
) -> Result<GetPromptResult, ErrorData> {
    let skill = SKILLS.iter().find(|(known, _)| *known == name);
    let (_, text) =
        skill.ok_or_else(|| ErrorData::invalid_params(format!("there is no prompt {name:?}"), None))?;
    let said = arguments
        .and_then(|arguments| arguments.get(ARGUMENT))
        .and_then(|said| said.as_str())
        .unwrap_or_default();
    let document = Document::read(text);
    if document.text("argument-hint").is_some() && said.trim().is_empty() {
        return Err(ErrorData::invalid_params(format!("the prompt {name:?} needs {ARGUMENT:?}"), None));
    }
    let body = document.body.trim_start();
    let text = format!(
        "The memory directory is /memories/{place} of the haversack server, and its tools read and write it.\n\n{}",
        body.replace("$ARGUMENTS", said)
    );
    let result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    Ok(match document.text("description") {
        Some(description) => result.with_description(description),
        None => result,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_skill_is_a_prompt() {
        let place = Locator::parse("behavioral").expect("valid");
        for prompt in all() {
            assert!(prompt.description.as_ref().is_some_and(|about| about.len() > 40), "{}", prompt.name);
            let arguments = serde_json::json!({ "arguments": "the lamp is $5" });
            let got = get(&prompt.name, arguments.as_object(), &place).expect("there");
            let text = serde_json::to_string(&got.messages).expect("prints");
            assert!(text.contains("/memories/behavioral") && !text.contains("$ARGUMENTS"), "{text}");
            assert_eq!(text.contains("the lamp is $5"), prompt.name == "remember");
        }
        assert!(get("remember", None, &place).is_err() && get("forget", None, &place).is_err());
    }
}

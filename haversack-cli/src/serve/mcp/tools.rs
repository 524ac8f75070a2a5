//! The tools for clients: each with its description for a model, and the parsed call.
//!
//! Everything here is in the context of every session of every agent: it is kept short, and a test bounds it. Nothing that guards the memory is a
//! parameter: a model cannot say that many deletions are meant, that a secret may be sent, or who it is.

use haversack::event::Event;
use haversack::memory_tool::Command;
use serde_json::{Map, Value, json};

use crate::projects::border::Breadth;
use crate::serve::memory_tool::input::{CommandInput, command};

/// How a call changes things, for clients that ask their user first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It changes nothing.
    Looks,
    /// It adds something.
    Adds,
    /// It changes or removes something.
    Changes,
}

/// A tool.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) nature: Effect,
    /// Name, type, if it is required, and description.
    parameters: &'static [(&'static str, Type, Need, &'static str)],
}

#[derive(Clone, Copy)]
enum Type {
    Text,
    Number,
    Range,
    Switch,
}

#[derive(Clone, Copy, PartialEq)]
enum Need {
    Must,
    May,
}

use self::Need::{May, Must};
use self::Type::{Number, Range, Switch, Text};

/// All tools, in the order in which clients list them.
pub(crate) const TOOLS: &[Tool] = &[
    Tool {
        name: "recall",
        about: "Search the text of all memories. Use it before you answer from memory, ask the user something they may have said, or write something down. Returns file, lines and passage, best first; view the file for the rest.",
        nature: Effect::Looks,
        parameters: &[
            ("query", Text, Must, "Words that the memory would contain"),
            ("path", Text, May, "Only below this directory, as /memories/notes"),
            ("limit", Number, May, "How many at most (8)"),
            ("everywhere", Switch, May, "Look in the user's other projects too (false)"),
            ("kind", Text, May, "Only memories of this kind, as feedback"),
            ("since", Text, May, "Only about this time or later, as 2026-11-01 or last week"),
            ("until", Text, May, "Only about this time or earlier"),
            ("passages", Switch, May, "Each passage is a hit, not each memory (false)"),
        ],
    },
    Tool {
        name: "remember",
        about: "Keep one lasting fact, preference or decision for later sessions on every machine. Writes a typed memory and its line in the index; a fact that is already there is not written twice. To change a fact, edit its file instead.",
        nature: Effect::Adds,
        parameters: &[
            (
                "kind",
                Text,
                Must,
                "user (who they are), feedback (how they want things done), project (a decision, date or constraint), reference (where something is), or relationship",
            ),
            ("name", Text, Must, "A short title; it becomes the file's name"),
            ("description", Text, May, "One line by which it is found again"),
            (
                "content",
                Text,
                Must,
                "The fact, then **Why:** and **How to apply:** if known. Dates written out, no passwords or keys",
            ),
        ],
    },
    Tool {
        name: "event",
        about: "Note one message in or out of a channel in the day's interaction log. For agents that serve a person over chat or email; not for what should be remembered.",
        nature: Effect::Adds,
        parameters: &[
            ("summary", Text, Must, "The content of the message, in a sentence"),
            ("sender", Text, Must, "Who said it"),
            ("direction", Text, Must, "inbound or outbound"),
            ("channel", Text, May, "Where: terminal, email, chat …"),
            ("recipient", Text, May, "To whom"),
            ("action", Text, May, "The action that followed"),
        ],
    },
    Tool {
        name: "commitments",
        about: "What you promised the user, and whether you delivered it. Without parameters: the list. Look before you promise, and before you say that something is done.",
        nature: Effect::Adds,
        parameters: &[
            ("add", Text, May, "A new promise"),
            ("deliver", Text, May, "The id or words of one that you kept"),
        ],
    },
    Tool {
        name: "carry",
        about: "What to bring up in a later session. Without parameters: the list.",
        nature: Effect::Adds,
        parameters: &[
            ("add", Text, May, "Something to bring up"),
            ("consume", Text, May, "The number or words of one that was brought up"),
        ],
    },
    Tool {
        name: "view",
        about: "Show a directory two levels deep, or a file with line numbers. Start with /memories.",
        nature: Effect::Looks,
        parameters: &[
            ("path", Text, Must, "As /memories/notes.md"),
            ("view_range", Range, May, "First and last line; -1 is the end"),
        ],
    },
    Tool {
        name: "create",
        about: "Make a new file. One that exists is never overwritten: edit it.",
        nature: Effect::Adds,
        parameters: &[("path", Text, Must, "Where"), ("file_text", Text, Must, "Its whole text")],
    },
    Tool {
        name: "str_replace",
        about: "Replace a text that occurs exactly once in a file.",
        nature: Effect::Changes,
        parameters: &[
            ("path", Text, Must, "The file"),
            ("old_str", Text, Must, "The text, verbatim"),
            ("new_str", Text, May, "The new text. Without it, the old text is removed"),
        ],
    },
    Tool {
        name: "insert",
        about: "Insert lines into a file.",
        nature: Effect::Changes,
        parameters: &[
            ("path", Text, Must, "The file"),
            ("insert_line", Number, Must, "After which line; 0 is the top"),
            ("insert_text", Text, Must, "The lines"),
        ],
    },
    Tool {
        name: "delete",
        about: "Delete a file, or a directory with everything in it. It can be undone.",
        nature: Effect::Changes,
        parameters: &[("path", Text, Must, "What")],
    },
    Tool {
        name: "rename",
        about: "Move a file or directory to a name that is free.",
        nature: Effect::Changes,
        parameters: &[("old_path", Text, Must, "From"), ("new_path", Text, Must, "To")],
    },
    Tool {
        name: "history",
        about: "Show who changed what, on which machine, when and why, newest first.",
        nature: Effect::Looks,
        parameters: &[
            ("path", Text, May, "Only this file or directory"),
            ("limit", Number, May, "How many changes (10)"),
        ],
    },
    Tool {
        name: "undo",
        about: "Take back the last change of this session, or the last change of one file; later edits stay. Only when the user asks for it.",
        nature: Effect::Changes,
        parameters: &[("path", Text, May, "Only this file")],
    },
    Tool {
        name: "resolve",
        about: "Settle a place where two machines wrote different things; the merge left both, with the note [also, from MACHINE:] above the second. Without keep it shows the conflicts of the file, and who wrote each passage when. Ask the user which stays unless they said so.",
        nature: Effect::Changes,
        parameters: &[
            ("path", Text, Must, "The file"),
            ("keep", Text, May, "1, 2 or both"),
            ("conflict", Text, May, "Its letters, if the file has several"),
        ],
    },
    Tool {
        name: "proposals",
        about: "List memories that tidying proposes, or answer one. Answer only as the user said.",
        nature: Effect::Changes,
        parameters: &[
            ("id", Text, May, "The proposal"),
            ("answer", Text, May, "accept or reject"),
            ("text", Text, May, "Accept in these words"),
        ],
    },
    Tool {
        name: "status",
        about: "Check that all memory is safe and synced to the other machines. If not, say what the user should do.",
        nature: Effect::Looks,
        parameters: &[],
    },
];

/// A parsed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Recall(RecallInput),
    Remember { kind: String, name: String, description: String, content: String },
    Event(Event),
    Commitments { add: Option<String>, deliver: Option<String> },
    Carry { add: Option<String>, consume: Option<String> },
    Command(Command),
    History { path: String, limit: Option<usize> },
    Undo { path: Option<String> },
    Resolve { path: String, keep: Option<String>, conflict: Option<String> },
    Proposals { id: Option<String>, answer: Option<String>, text: Option<String> },
    Status,
}

/// The parameters of a call of `recall`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecallInput {
    pub(crate) query: String,
    pub(crate) path: String,
    pub(crate) limit: Option<usize>,
    pub(crate) breadth: Breadth,
    pub(crate) kind: Option<String>,
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    pub(crate) passages: bool,
}

impl Call {
    /// Parses a call; `None` if there is no such tool, an error text if a parameter is wrong.
    pub(crate) fn parse(tool: &str, parameters: Map<String, Value>) -> Option<Result<Call, String>> {
        TOOLS.iter().find(|known| known.name == tool)?;
        Some(Call::of(&mut CommandInput { command: tool, parameters }))
    }

    fn of(input: &mut CommandInput<'_>) -> Result<Call, String> {
        let limit = |input: &mut CommandInput<'_>| -> Result<Option<usize>, String> {
            Ok(input
                .optional_number("limit")?
                .map(|limit| usize::try_from(limit.max(1)).unwrap_or(usize::MAX)))
        };
        match input.command {
            "recall" => Ok(Call::Recall(RecallInput {
                query: input.text("query")?,
                path: input.optional_text("path")?.unwrap_or_default(),
                limit: limit(input)?,
                breadth: match input.optional_switch("everywhere")? {
                    Some(true) => Breadth::Everywhere,
                    Some(false) | None => Breadth::ThisProject,
                },
                kind: input.optional_text("kind")?.filter(|kind| !kind.is_empty()),
                since: input.optional_text("since")?.filter(|since| !since.is_empty()),
                until: input.optional_text("until")?.filter(|until| !until.is_empty()),
                passages: input.optional_switch("passages")?.unwrap_or(false),
            })),
            "remember" => Ok(Call::Remember {
                kind: input.text("kind")?,
                name: input.text("name")?,
                description: input.optional_text("description")?.unwrap_or_default(),
                content: input.text("content")?,
            }),
            "event" => Ok(Call::Event(Event {
                summary: input.text("summary")?,
                sender: input.text("sender")?,
                direction: input.text("direction")?,
                channel: input.optional_text("channel")?,
                recipient: input.optional_text("recipient")?,
                action: input.optional_text("action")?,
            })),
            "commitments" => Ok(Call::Commitments {
                add: input.optional_text("add")?.filter(|text| !text.is_empty()),
                deliver: input.optional_text("deliver")?.filter(|text| !text.is_empty()),
            }),
            "carry" => Ok(Call::Carry {
                add: input.optional_text("add")?.filter(|text| !text.is_empty()),
                consume: input.optional_text("consume")?.filter(|text| !text.is_empty()),
            }),
            "history" => Ok(Call::History {
                path: input.optional_text("path")?.unwrap_or_default(),
                limit: limit(input)?,
            }),
            "undo" => Ok(Call::Undo { path: input.optional_text("path")?.filter(|path| !path.is_empty()) }),
            "resolve" => Ok(Call::Resolve {
                path: input.text("path")?,
                keep: input.optional_text("keep")?,
                conflict: input.optional_text("conflict")?,
            }),
            "proposals" => Ok(Call::Proposals {
                id: input.optional_text("id")?,
                answer: input.optional_text("answer")?,
                text: input.optional_text("text")?,
            }),
            "status" => Ok(Call::Status),
            _ => command(input).map(Call::Command),
        }
    }

    /// Returns true if it may change the memory.
    pub(crate) fn writes(&self) -> bool {
        match self {
            Call::Recall(_)
            | Call::History { .. }
            | Call::Status
            | Call::Commitments { add: None, deliver: None }
            | Call::Carry { add: None, consume: None }
            | Call::Resolve { keep: None, .. }
            | Call::Proposals { id: None, .. }
            | Call::Command(Command::View { .. }) => false,
            Call::Remember { .. }
            | Call::Commitments { .. }
            | Call::Carry { .. }
            | Call::Event(_)
            | Call::Undo { .. }
            | Call::Resolve { .. }
            | Call::Proposals { .. }
            | Call::Command(_) => true,
        }
    }
}

impl Tool {
    /// Returns the JSON Schema of its parameters.
    pub(crate) fn schema(&self) -> Map<String, Value> {
        let properties = self.parameters.iter().map(|(name, kind, _, about)| {
            let mut schema = match kind {
                Text => json!({ "type": "string" }),
                Number => json!({ "type": "integer" }),
                Switch => json!({ "type": "boolean" }),
                Range => json!({ "type": "array", "items": { "type": "integer" } }),
            };
            schema["description"] = json!(about);
            ((*name).to_owned(), schema)
        });
        let properties: Map<String, Value> = properties.collect();
        let required: Vec<&str> =
            self.parameters.iter().filter(|(_, _, need, _)| *need == Must).map(|(name, ..)| *name).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(tool: &str, parameters: Value) -> Option<Result<Call, String>> {
        let Value::Object(parameters) = parameters else { panic!("an object") };
        Call::parse(tool, parameters)
    }

    #[test]
    fn every_tool_can_be_called_with_what_it_says() {
        for tool in TOOLS {
            let value = |kind: &Type| match kind {
                Text => json!("x"),
                Number => json!(1),
                Switch => json!(true),
                Range => json!([1, 2]),
            };
            let all = tool.parameters.iter().map(|(name, kind, ..)| ((*name).to_owned(), value(kind)));
            let call = Call::parse(tool.name, all.collect()).expect(tool.name).expect(tool.name);
            assert_eq!(call.writes(), tool.nature != Effect::Looks, "{}", tool.name);
            for (missing, _, need, _) in tool.parameters {
                let rest = tool.parameters.iter().filter(|(name, ..)| name != missing);
                let rest = rest.map(|(name, kind, ..)| ((*name).to_owned(), value(kind))).collect();
                let call = Call::parse(tool.name, rest).expect(tool.name);
                assert_eq!(call.is_err(), *need == Must, "{} without {missing}", tool.name);
            }
        }
        assert_eq!(parse("format_disk", json!({})), None);
    }

    #[test]
    fn a_wrong_parameter_is_told() {
        let refused =
            |tool: &str, parameters: Value| parse(tool, parameters).expect("a tool").expect_err("wrong");
        assert_eq!(refused("recall", json!({})), "Error: The parameter `query` of `recall` is missing");
        assert_eq!(
            refused("recall", json!({ "query": "x", "limit": "8" })),
            "Error: The parameter `limit` of `recall` must be a whole number, not a string"
        );
        assert_eq!(
            refused("view", json!({ "path": 5 })),
            "Error: The parameter `path` of `view` must be a string, not a number"
        );
        let most = parse("recall", json!({ "query": "x", "limit": -3 })).expect("a tool").expect("right");
        let breadth = Breadth::ThisProject;
        let wish = RecallInput {
            query: "x".to_owned(),
            path: String::new(),
            limit: Some(1),
            breadth,
            kind: None,
            since: None,
            until: None,
            passages: false,
        };
        assert_eq!(most, Call::Recall(wish));
    }
}

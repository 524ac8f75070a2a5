//! Reads the data sets. They are never part of the project: the caller says where they are.

use std::collections::BTreeMap;
use std::path::Path;

use haversack::store::{Backend, Bytes, Condition, InMemory, Locator, block_on};
use jiff::civil::Date;
use serde_json::Value;

/// A memory with questions about it.
pub(crate) struct Memory {
    pub(crate) name: String,
    pub(crate) files: InMemory,
    /// The texts of the files, for the baselines.
    pub(crate) texts: BTreeMap<String, String>,
    /// The unit that stands at each line of a file: a turn of a dialogue.
    pub(crate) units: BTreeMap<(String, usize), String>,
    pub(crate) questions: Vec<Question>,
}

/// A question, with the turns or files that answer it.
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) today: Date,
    pub(crate) relevant: Vec<String>,
}

impl Memory {
    pub(crate) fn new(name: &str) -> Memory {
        Memory {
            name: name.to_owned(),
            files: InMemory::new(),
            texts: BTreeMap::new(),
            units: BTreeMap::new(),
            questions: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, name: &str, text: String) {
        let locator = Locator::parse(name).expect("a plain name");
        let written = block_on(self.files.write(&locator, Bytes::from(text.clone()), Condition::Any));
        drop(written.expect("memory does not fail"));
        self.texts.insert(name.to_owned(), text);
    }
}

/// Reads LoCoMo: a file for each session, a paragraph for each turn.
pub(crate) fn locomo(path: &Path) -> Vec<Memory> {
    let text = std::fs::read_to_string(path).expect("the data can be read");
    let samples: Value = serde_json::from_str(&text).expect("the data is JSON");
    let mut memories = Vec::new();
    for sample in samples.as_array().into_iter().flatten() {
        let mut memory = Memory::new(sample["sample_id"].as_str().unwrap_or_default());
        let conversation = &sample["conversation"];
        let mut ids = Vec::new();
        for number in 1..200 {
            let Some(turns) = conversation[format!("session_{number}")].as_array() else { continue };
            let name = format!("sessions/session_{number:02}.md");
            let date = conversation[format!("session_{number}_date_time")].as_str().unwrap_or_default();
            let mut lines = vec![format!("# {date}"), String::new()];
            for turn in turns {
                let text = turn["text"]
                    .as_str()
                    .unwrap_or_default()
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ");
                let shared = turn["blip_caption"]
                    .as_str()
                    .map(|caption| format!(" [shares {caption}]"))
                    .unwrap_or_default();
                let id = turn["dia_id"].as_str().unwrap_or_default().to_owned();
                lines.push(format!(
                    "{} said, \"{text}\"{shared}",
                    turn["speaker"].as_str().unwrap_or_default()
                ));
                memory.units.insert((name.clone(), lines.len()), id.clone());
                ids.push(id);
                lines.push(String::new());
            }
            memory.add(&name, lines.join("\n"));
        }
        for question in sample["qa"].as_array().into_iter().flatten() {
            let mut relevant: Vec<String> = Vec::new();
            for evidence in question["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                for id in evidence_ids(evidence) {
                    if ids.contains(&id) && !relevant.contains(&id) {
                        relevant.push(id);
                    }
                }
            }
            if !relevant.is_empty() {
                let text = question["question"].as_str().unwrap_or_default().to_owned();
                memory.questions.push(Question { text, today: jiff::civil::date(2024, 1, 1), relevant });
            }
        }
        memories.push(memory);
    }
    memories
}

/// Returns the turns that a text of evidence names, such as `D8:6; D9:17` or `D30:05`.
fn evidence_ids(text: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for part in text.split('D').skip(1) {
        let mut numbers = part
            .trim_start_matches(':')
            .split(|c: char| !c.is_ascii_digit())
            .filter(|number| !number.is_empty());
        if let (Some(Ok(session)), Some(Ok(turn))) =
            (numbers.next().map(str::parse::<u32>), numbers.next().map(str::parse::<u32>))
        {
            ids.push(format!("D{session}:{turn}"));
        }
    }
    ids
}

/// Reads LongMemEval_S: a memory for each question, a file for each session.
pub(crate) fn longmemeval(path: &Path) -> Vec<Memory> {
    let packed = std::fs::read(path).expect("the data can be read");
    let text = String::from_utf8(unpacked(&packed)).expect("the data is text");
    let mut memories = Vec::new();
    for line in text.lines() {
        let question: Value = serde_json::from_str(line).expect("the data is JSON");
        let mut memory = Memory::new(question["question_type"].as_str().unwrap_or_default());
        let mut relevant = Vec::new();
        for (session, number) in question["sessions"].as_array().into_iter().flatten().zip(0..) {
            // The id of a session would give the answer away.
            let name = format!("sessions/{number:03}.md");
            if question["relevant"].as_array().into_iter().flatten().any(|id| *id == session["id"]) {
                relevant.push(name.clone());
            }
            let mut text = format!("# {}\n", session["date"].as_str().unwrap_or_default());
            for turn in session["turns"].as_array().into_iter().flatten() {
                let (role, content) =
                    (turn["role"].as_str().unwrap_or_default(), turn["content"].as_str().unwrap_or_default());
                text.push_str(&format!("\n{role}: {content}\n"));
            }
            memory.add(&name, text);
        }
        let date = question["question_date"].as_str().unwrap_or_default();
        let today = date
            .get(..10)
            .and_then(|date| date.replace('/', "-").parse().ok())
            .expect("a question has a date");
        let text = question["question"].as_str().unwrap_or_default().to_owned();
        memory.questions.push(Question { text, today, relevant });
        memories.push(memory);
    }
    memories
}

/// Unpacks a gzip file.
fn unpacked(packed: &[u8]) -> Vec<u8> {
    let flags = packed[3];
    let mut start = 10;
    if flags & 4 != 0 {
        start += 2 + usize::from(u16::from_le_bytes([packed[start], packed[start + 1]]));
    }
    for _ in 0..(flags >> 3 & 1) + (flags >> 4 & 1) {
        start += 1 + packed[start..].iter().position(|byte| *byte == 0).expect("a name ends");
    }
    miniz_oxide::inflate::decompress_to_vec(&packed[start..]).expect("the data is a gzip file")
}

//! Questions written by hand over a memory as users have it. A question without a file has no answer in the memory.

use crate::data::{Memory, Question};

/// The memory and the questions: `== NAME` begins a file, `? QUESTION => FILE, FILE` is a question.
const TEXT: &str = include_str!("questions.txt");

/// Returns the memory with its questions.
pub(crate) fn memory() -> Memory {
    let mut memory = Memory::new("questions");
    let (files, questions) = TEXT.split_once("\n? ").expect("questions come after the files");
    for file in files.split("== ").skip(1) {
        let (name, text) = file.split_once('\n').expect("a name has a line of its own");
        memory.add(name.trim(), text.to_owned());
    }
    for question in questions.split("\n? ") {
        let (text, relevant) = question.split_once("=>").expect("a question names its files");
        let relevant: Vec<String> =
            relevant.split(',').map(str::trim).filter(|file| !file.is_empty()).map(str::to_owned).collect();
        for file in &relevant {
            assert!(memory.texts.contains_key(file), "{file} is no file of the memory");
        }
        let today = jiff::civil::date(2026, 11, 18);
        memory.questions.push(Question { text: text.trim().to_owned(), today, relevant });
    }
    memory
}

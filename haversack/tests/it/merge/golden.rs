//! Merges of real files: one file for each case in `tests/fixtures/merge`.

use std::collections::BTreeMap;

use haversack::merge::{Merged, Rule, Side, merge};
use haversack::store::Locator;
use unicode_normalization::UnicodeNormalization;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/merge");

/// A case: the name of the file, what is in it on each device, and what becomes of it.
struct Case {
    at: String,
    locator: Locator,
    parts: BTreeMap<String, Vec<u8>>,
    /// The expected outcome: `both kept`, `a copy`.
    said: String,
}

impl Case {
    fn read(at: String, text: &str) -> Case {
        let mut sections = text.split("=== ").skip(1);
        let (name, _) =
            sections.next().and_then(|head| head.split_once(": ")).expect("a name and what it is about");
        let mut parts = BTreeMap::new();
        let mut said = String::new();
        for section in sections {
            let (head, text) = section.split_once('\n').expect("a line");
            let (part, options) = head
                .split_once(" (")
                .map_or((head, ""), |(part, options)| (part, options.trim_end_matches(')')));
            let mut text = text.to_owned();
            for option in options.split(", ").filter(|option| !option.is_empty()) {
                match option {
                    "no newline" => drop(text.pop()),
                    "crlf" => text = text.replace('\n', "\r\n"),
                    "nfd" => text = text.nfd().collect(),
                    option => said.push_str(option),
                }
            }
            parts.insert(part.to_owned(), text.into_bytes());
        }
        Case { at, locator: Locator::parse(name).expect("a locator"), parts, said }
    }

    fn merged(&self, laptop: &[u8], desktop: &[u8]) -> Merged {
        let base = self.parts.get("base").map(Vec::as_slice);
        let rule = Rule::of(&self.locator, base.into_iter().chain([laptop, desktop]));
        let [laptop, desktop] =
            [Side { bytes: laptop, device: "laptop" }, Side { bytes: desktop, device: "desktop" }];
        let merged = merge(rule, base, laptop, desktop);
        assert_eq!(merged, merge(rule, base, desktop, laptop), "{}: the sides have no rank", self.at);
        merged
    }
}

#[expect(clippy::disallowed_methods, reason = "the cases are files")]
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for directory in std::fs::read_dir(FIXTURES).expect("there are fixtures") {
        let directory = directory.expect("readable").path();
        for file in std::fs::read_dir(directory).into_iter().flatten() {
            let path = file.expect("readable").path();
            let text = std::fs::read_to_string(&path).expect("text");
            cases.push(Case::read(path.display().to_string().replace(FIXTURES, ""), &text));
        }
    }
    cases.sort_by(|one, other| one.at.cmp(&other.at));
    cases
}

#[test]
fn every_case_comes_out_as_written() {
    let cases = cases();
    assert!(cases.len() >= 80, "the cases are found");
    let mut wrong = String::new();
    for case in &cases {
        let [laptop, desktop] = ["laptop", "desktop"].map(|part| case.parts[part].as_slice());
        let merged = case.merged(laptop, desktop);
        let said = match (&merged.copy, merged.both_kept) {
            (Some(_), _) => "a copy",
            (None, true) => "both kept",
            (None, false) => "",
        };
        let expected = &case.parts["merged"];
        if merged.bytes[..] != expected[..] || said != case.said {
            let [expected, came] = [&expected[..], &merged.bytes[..]].map(String::from_utf8_lossy);
            wrong.push_str(&format!(
                "--- {} ({said}; written: {})\n{came}--- written:\n{expected}\n",
                case.at, case.said
            ));
        }
        for side in [laptop, desktop] {
            let again = case.merged(&merged.bytes, side);
            let again_text = String::from_utf8_lossy(&again.bytes);
            if again.bytes != merged.bytes {
                wrong.push_str(&format!("--- {}: merged again\n{again_text}\n", case.at));
            }
        }
        for marker in ["<<<<<<<", ">>>>>>>", "======="] {
            let has =
                merged.bytes.split(|byte| *byte == b'\n').any(|line| line.starts_with(marker.as_bytes()));
            assert!(!has, "{}", case.at);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

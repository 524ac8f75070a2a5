//! Turns text into the terms that the index knows, the same way for memories and for queries. Pure.
//!
//! 1. Characters are folded: Unicode composition, case, and the diacritics of alphabets (`Äpfel` and `apfel` are one word). Vowel signs of other scripts stay.
//! 2. A word is a run of letters and digits. An apostrophe joins (`don't` is `dont`), a possessive `'s` is dropped.
//! 3. An identifier is indexed whole and in parts: `maxRetries` as `maxretries`, `max` and `retries`; `ports.md` as `portsmd`, `ports` and `md`.
//! 4. English endings are dropped (Porter 2). Words with letters beyond ASCII keep their endings, because their language is unknown.
//! 5. Scripts without spaces between words are indexed by pairs of characters, and by single ones for queries of one character.

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;

/// The longest term in bytes. Longer words are cut, so that a line of base64 cannot fill the index.
const MAX_TERM_BYTES: usize = 48;

/// The side that text is on: in a memory or in a query. Queries need fewer terms than memories, because memories have all forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Text of a memory.
    Memory,
    /// A query.
    Query,
}

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The folded word, with its ending.
    pub(crate) word: String,
    /// The term under which the index has it.
    pub(crate) term: String,
}

/// Returns the tokens of a text, in its order.
pub(crate) fn tokens(text: &str, side: Side) -> Vec<Token> {
    let mut tokens = Vec::new();
    each(text, side, |word| tokens.push(Token { word: word.to_owned(), term: term(word) }));
    tokens
}

/// English words whose forms share no stem, with the form that stands for all. Only forms that are no other word as well.
const IRREGULAR: &[(&str, &str)] = &[
    ("began", "begin"),
    ("begun", "begin"),
    ("bought", "buy"),
    ("broke", "break"),
    ("broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("came", "come"),
    ("caught", "catch"),
    ("children", "child"),
    ("chose", "choose"),
    ("chosen", "choose"),
    ("drank", "drink"),
    ("drove", "drive"),
    ("driven", "drive"),
    ("ate", "eat"),
    ("eaten", "eat"),
    ("fell", "fall"),
    ("fallen", "fall"),
    ("flew", "fly"),
    ("forgot", "forget"),
    ("forgotten", "forget"),
    ("fought", "fight"),
    ("gave", "give"),
    ("grew", "grow"),
    ("grown", "grow"),
    ("held", "hold"),
    ("hid", "hide"),
    ("hidden", "hide"),
    ("kept", "keep"),
    ("knew", "know"),
    ("known", "know"),
    ("lent", "lend"),
    ("lost", "lose"),
    ("made", "make"),
    ("meant", "mean"),
    ("men", "man"),
    ("met", "meet"),
    ("mice", "mouse"),
    ("paid", "pay"),
    ("ran", "run"),
    ("said", "say"),
    ("sang", "sing"),
    ("sent", "send"),
    ("slept", "sleep"),
    ("sold", "sell"),
    ("spent", "spend"),
    ("spoke", "speak"),
    ("spoken", "speak"),
    ("swam", "swim"),
    ("taught", "teach"),
    ("thought", "think"),
    ("threw", "throw"),
    ("thrown", "throw"),
    ("told", "tell"),
    ("took", "take"),
    ("taken", "take"),
    ("understood", "understand"),
    ("went", "go"),
    ("women", "woman"),
    ("won", "win"),
    ("wore", "wear"),
    ("worn", "wear"),
    ("wrote", "write"),
    ("written", "write"),
];

/// Returns the term of one folded word.
pub(crate) fn term(word: &str) -> String {
    let word = IRREGULAR.iter().find(|(form, _)| *form == word).map_or(word, |(_, whole)| whole);
    let is_english = word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let mut term = match is_english {
        true => Stemmer::create(Algorithm::English).stem(word).into_owned(),
        false => word.to_owned(),
    };
    let mut end = MAX_TERM_BYTES.min(term.len());
    while !term.is_char_boundary(end) {
        end -= 1;
    }
    term.truncate(end);
    term
}

/// Calls `found` with every folded word of a text.
pub(crate) fn each(text: &str, side: Side, mut found: impl FnMut(&str)) {
    let folded;
    // Folding changes case, which marks the parts of `maxRetries`. So identifiers are cut before their letters are lowered.
    let text = match text.is_ascii() {
        true => text,
        false => {
            folded = without_diacritics(text);
            &folded
        }
    };
    let mut rest = text;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        rest = &rest[start..];
        let end = end_of_identifier(rest);
        identifier(&rest[..end], side, &mut found);
        rest = &rest[end..];
    }
}

/// Drops combining marks of alphabets and spells out the letters that have none to drop.
fn without_diacritics(text: &str) -> String {
    let plain = text.nfkd().filter(|c| !('\u{300}'..='\u{36f}').contains(c)).nfc();
    let mut spelled = String::with_capacity(text.len());
    for c in plain {
        match c {
            'ß' | 'ẞ' => spelled.push_str("ss"),
            'æ' | 'Æ' => spelled.push_str("ae"),
            'œ' | 'Œ' => spelled.push_str("oe"),
            'ø' | 'Ø' => spelled.push('o'),
            'ł' | 'Ł' => spelled.push('l'),
            'đ' | 'Đ' => spelled.push('d'),
            'ı' => spelled.push('i'),
            '’' | 'ʼ' => spelled.push('\''),
            c => spelled.push(c),
        }
    }
    spelled
}

/// Returns the end of the word or identifier at the start of a text: words joined by one `_`, `-`, `.` or apostrophe.
fn end_of_identifier(text: &str) -> usize {
    let mut end = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        if c.is_alphanumeric() {
            end = at + c.len_utf8();
        } else {
            let joins = matches!(c, '_' | '-' | '.' | '\'') && at == end;
            if !joins || !letters.peek().is_some_and(|(_, next)| next.is_alphanumeric()) {
                break;
            }
        }
    }
    end
}

fn identifier(text: &str, side: Side, found: &mut impl FnMut(&str)) {
    let mut parts: Vec<String> = Vec::new();
    for joined in text.split(['_', '-', '.']) {
        let joined = joined.strip_suffix("'s").or(joined.strip_suffix("'S")).unwrap_or(joined);
        let plain: String = joined.chars().filter(|c| *c != '\'').collect();
        parts.extend(scripts(&plain).into_iter().flat_map(|(run, is_spaced)| match is_spaced {
            true => parts_of(run),
            false => vec![run.to_owned()],
        }));
    }
    let mut whole = String::new();
    let is_spaced_only = parts.iter().all(|part| part.chars().all(has_spaces));
    for part in &parts {
        let part = part.to_lowercase();
        if part.chars().all(has_spaces) {
            found(&part);
        } else {
            pairs(&part, side, found);
        }
        whole.push_str(&part);
    }
    // A query that names the parts finds the identifier by them, and the whole finds it if the memory writes it as one word.
    if parts.len() > 1 && is_spaced_only && whole.len() <= MAX_TERM_BYTES && side == Side::Memory {
        found(&whole);
    }
}

/// Cuts a word where its letters turn from small to large, as in `maxRetries` and `HTTPServer`.
fn parts_of(word: &str) -> Vec<String> {
    if !word.bytes().any(|byte| byte.is_ascii_lowercase())
        || !word.bytes().any(|byte| byte.is_ascii_uppercase())
    {
        return vec![word.to_owned()];
    }
    let letters: Vec<char> = word.chars().collect();
    let mut parts = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let after_small = at > 0 && letters[at - 1].is_lowercase();
        let last_of_capitals = at > 0
            && letters[at - 1].is_uppercase()
            && letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase()
            && (after_small || last_of_capitals)
            && let Some(last) = parts.last()
            && !last.is_empty()
        {
            parts.push(String::new());
        }
        if let Some(last) = parts.last_mut() {
            last.push(*letter);
        }
    }
    parts
}

/// Cuts a word where it changes between scripts with and without spaces. True means that the script has spaces.
fn scripts(word: &str) -> Vec<(&str, bool)> {
    let mut runs = Vec::new();
    let mut start = 0;
    let mut last = None;
    for (at, c) in word.char_indices() {
        let spaced = has_spaces(c);
        if last.is_some_and(|last| last != spaced) {
            runs.push((&word[start..at], !spaced));
            start = at;
        }
        last = Some(spaced);
    }
    if let Some(last) = last {
        runs.push((&word[start..], last));
    }
    runs
}

/// Returns true if the script of a character puts spaces between words.
fn has_spaces(c: char) -> bool {
    !matches!(u32::from(c),
        0x0e00..=0x0eff // Thai, Lao
        | 0x1000..=0x109f // Burmese
        | 0x1100..=0x11ff | 0xac00..=0xd7af // Hangul has spaces, and particles that stick to words
        | 0x1780..=0x17ff // Khmer
        | 0x2e80..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x323af) // Han, Kana
}

fn pairs(run: &str, side: Side, found: &mut impl FnMut(&str)) {
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
    let count = starts.len() - 1;
    if side == Side::Memory || count == 1 {
        starts.windows(2).for_each(|one| found(&run[one[0]..one[1]]));
    }
    starts.windows(3).for_each(|two| found(&run[two[0]..two[2]]));
}

/// Words that say nothing about the subject of a query, folded.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "after",
    "again",
    "all",
    "also",
    "am",
    "an",
    "and",
    "any",
    "anyone",
    "anything",
    "are",
    "arent",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "between",
    "both",
    "but",
    "by",
    "can",
    "cant",
    "could",
    "did",
    "didnt",
    "do",
    "does",
    "doesnt",
    "doing",
    "done",
    "dont",
    "down",
    "during",
    "each",
    "else",
    "ever",
    "for",
    "from",
    "further",
    "get",
    "gets",
    "give",
    "given",
    "go",
    "got",
    "had",
    "has",
    "have",
    "having",
    "he",
    "her",
    "here",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "i",
    "id",
    "if",
    "ill",
    "im",
    "in",
    "into",
    "is",
    "isnt",
    "it",
    "its",
    "itself",
    "ive",
    "just",
    "let",
    "lets",
    "many",
    "may",
    "me",
    "might",
    "more",
    "most",
    "much",
    "must",
    "my",
    "myself",
    "no",
    "nor",
    "not",
    "of",
    "off",
    "on",
    "once",
    "one",
    "only",
    "or",
    "other",
    "our",
    "ours",
    "out",
    "over",
    "own",
    "please",
    "same",
    "shall",
    "she",
    "should",
    "so",
    "some",
    "someone",
    "something",
    "such",
    "tell",
    "than",
    "that",
    "thats",
    "the",
    "their",
    "theirs",
    "them",
    "then",
    "there",
    "these",
    "they",
    "theyre",
    "this",
    "those",
    "through",
    "to",
    "too",
    "under",
    "until",
    "up",
    "us",
    "use",
    "used",
    "user",
    "users",
    "using",
    "very",
    "was",
    "wasnt",
    "we",
    "were",
    "what",
    "whats",
    "when",
    "where",
    "which",
    "while",
    "who",
    "whom",
    "whose",
    "why",
    "will",
    "with",
    "would",
    "you",
    "your",
    "youre",
    "yours",
    "yourself",
    // The same for the languages that questions are most often asked in besides English.
    "aber",
    "als",
    "auf",
    "aus",
    "bei",
    "das",
    "dass",
    "dem",
    "den",
    "der",
    "des",
    "die",
    "ein",
    "eine",
    "einem",
    "einen",
    "einer",
    "es",
    "fur",
    "hat",
    "ich",
    "ist",
    "mit",
    "nach",
    "nicht",
    "oder",
    "sich",
    "sie",
    "sind",
    "und",
    "uns",
    "unser",
    "von",
    "wann",
    "warum",
    "welche",
    "welcher",
    "welches",
    "wenn",
    "wer",
    "wie",
    "wir",
    "wird",
    "wo",
    "zu",
    "zum",
    "zur",
    "au",
    "aux",
    "avec",
    "ce",
    "ces",
    "cette",
    "dans",
    "de",
    "du",
    "elle",
    "en",
    "est",
    "et",
    "il",
    "je",
    "la",
    "le",
    "les",
    "leur",
    "nous",
    "notre",
    "ou",
    "par",
    "pas",
    "pour",
    "qu",
    "quand",
    "que",
    "quel",
    "quelle",
    "qui",
    "sont",
    "sur",
    "un",
    "une",
    "vous",
    "como",
    "con",
    "cual",
    "cuando",
    "del",
    "donde",
    "el",
    "ella",
    "ellos",
    "es",
    "esta",
    "este",
    "las",
    "los",
    "nos",
    "nuestro",
    "nuestra",
    "para",
    "pero",
    "por",
    "quien",
    "se",
    "son",
    "su",
    "sus",
    "una",
    "y",
];

/// Returns true if a folded word says nothing about the subject of a query.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, side: Side) -> Vec<String> {
        let mut words = Vec::new();
        each(text, side, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn words_are_folded() {
        assert_eq!(
            words("The user's Äpfel, don’t: CAFÉ", Side::Memory),
            ["the", "user", "apfel", "dont", "cafe"]
        );
        // Composed and decomposed spellings are one word.
        assert_eq!(words("caf\u{e9}", Side::Memory), words("cafe\u{301}", Side::Query));
        assert_eq!(words("Straße Łódź", Side::Memory), ["strasse", "lodz"]);
    }

    #[test]
    fn identifiers_are_indexed_whole_and_in_parts() {
        assert_eq!(words("maxRetries", Side::Memory), ["max", "retries", "maxretries"]);
        assert_eq!(words("HTTPServer_port", Side::Memory), ["http", "server", "port", "httpserverport"]);
        assert_eq!(words("ports.md", Side::Memory), ["ports", "md", "portsmd"]);
        assert_eq!(words("ports.md", Side::Query), ["ports", "md"]);
        assert_eq!(words("end. Start", Side::Memory), ["end", "start"]);
        assert_eq!(words("a/b:8443", Side::Memory), ["a", "b", "8443"]);
    }

    #[test]
    fn scripts_without_spaces_are_indexed_by_pairs() {
        assert_eq!(words("灯台守", Side::Memory), ["灯", "台", "守", "灯台", "台守"]);
        assert_eq!(words("灯台守", Side::Query), ["灯台", "台守"]);
        assert_eq!(words("灯", Side::Query), ["灯"]);
        assert_eq!(words("port灯台", Side::Query), ["port", "灯台"]);
    }

    #[test]
    fn english_endings_are_dropped() {
        for (word, stem) in [
            ("deploys", "deploy"),
            ("deployment", "deploy"),
            ("preferences", "prefer"),
            ("running", "run"),
            ("chosen", "choos"),
            ("choosing", "choos"),
            ("p95", "p95"),
            ("apfel", "apfel"),
        ] {
            assert_eq!(term(word), stem);
        }
        assert_eq!(term(&"x".repeat(500)).len(), MAX_TERM_BYTES);
        assert!(term(&"灯".repeat(500)).len() <= MAX_TERM_BYTES);
    }

    #[test]
    fn stop_words_are_folded_words() {
        for word in STOP_WORDS {
            assert_eq!(words(word, Side::Query), [*word]);
        }
    }
}

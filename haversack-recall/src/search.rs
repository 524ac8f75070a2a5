//! Ranks texts for a query, and finds the passages. Pure: the caller has read the texts.
//!
//! The words of a query are looked for where words begin, without their endings, large or small; words that are everywhere say nothing. Texts are
//! ordered as BM25 does it: a rare word counts more than a common one, the tenth occurrence less than the first, and a long text has to say more.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use haversack::document;

/// The most words of a query that are looked at.
const MAX_WORDS: usize = 32;

/// The most characters of a passage that are shown.
const MAX_PASSAGE_CHARACTERS: usize = 280;

/// The weight of a word in a file's name or description.
const TITLE_WEIGHT: f64 = 3.0;

/// A hit must be worth at least this part of the best one.
const WORTH: f64 = 0.2;

/// Saturation and length normalisation of BM25.
const K1: f64 = 1.2;
const B: f64 = 0.5;

/// Words that say nothing about what is looked for.
const EMPTY_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because",
    "been", "before", "but", "by", "can", "could", "did", "do", "does", "for", "from", "had", "has", "have",
    "he", "her", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "me", "my", "no", "not",
    "of", "on", "or", "our", "out", "she", "should", "so", "some", "than", "that", "the", "their", "them",
    "then", "there", "they", "this", "to", "up", "us", "was", "we", "were", "what", "when", "where", "which",
    "who", "why", "will", "with", "would", "you", "your",
];

/// The words of a query, ready to be looked for.
pub(crate) struct Words {
    stems: Vec<String>,
    finder: Option<AhoCorasick>,
    /// The number of the word for each pattern of the finder.
    word_of: Vec<usize>,
}

/// The number of occurrences of each word in a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Counts {
    words: Vec<f64>,
    length: f64,
}

/// A passage of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) lines: (usize, usize),
    pub(crate) text: String,
}

impl Words {
    /// Returns the words of a query.
    pub(crate) fn of(query: &str) -> Words {
        let words = query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let words: Vec<String> = words.map(str::to_lowercase).collect();
        let telling = |word: &&String| !EMPTY_WORDS.contains(&word.as_str());
        // A query of nothing but empty words means them.
        let telling: Vec<&String> = match words.iter().any(|word| telling(&word)) {
            true => words.iter().filter(telling).collect(),
            false => words.iter().collect(),
        };
        let mut stems: Vec<String> = Vec::new();
        for word in telling {
            let stem = stem(word).to_owned();
            if !stems.contains(&stem) && stems.len() < MAX_WORDS {
                stems.push(stem);
            }
        }
        let mut patterns = Vec::new();
        let mut word_of = Vec::new();
        for (number, stem) in stems.iter().enumerate() {
            let mut forms = vec![stem.clone()];
            if !stem.is_ascii() {
                // The finder tells large from small beyond ASCII.
                let mut letters = stem.chars();
                let first = letters.next().into_iter().flat_map(char::to_uppercase);
                forms.push(first.chain(letters).collect());
                forms.push(stem.to_uppercase());
            }
            forms.dedup();
            word_of.extend(forms.iter().map(|_| number));
            patterns.extend(forms);
        }
        let finder = AhoCorasickBuilder::new()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns)
            .ok()
            .filter(|_| !patterns.is_empty());
        Words { stems, finder, word_of }
    }

    /// Calls `found` with every place of a text where one of the words begins, and which word it is.
    fn each(&self, text: &str, mut found: impl FnMut(usize, usize)) {
        let Some(finder) = &self.finder else { return };
        for place in finder.find_iter(text) {
            let word = self.word_of[place.pattern().as_usize()];
            // Scripts without spaces have no beginnings of words.
            let has_spaces = self.stems[word].chars().next().is_some_and(|first| first < '\u{0e00}');
            let is_start =
                text[..place.start()].chars().next_back().is_none_or(|before| !before.is_alphanumeric());
            if is_start || !has_spaces {
                found(place.start(), word);
            }
        }
    }

    /// Counts the words in a text and its name; `None` if none is there.
    pub(crate) fn count(&self, name: &str, text: &str) -> Option<Counts> {
        let mut words = vec![0.0; self.stems.len()];
        let title_end = title_end(text);
        self.each(text, |at, word| words[word] += if at < title_end { TITLE_WEIGHT } else { 1.0 });
        self.each(name, |_, word| words[word] += TITLE_WEIGHT);
        let length = u32::try_from(text.len()).map_or(f64::MAX, f64::from);
        words.iter().any(|count| *count > 0.0).then_some(Counts { words, length })
    }

    /// Returns the passage of a text that has the most of the words.
    pub(crate) fn passage(&self, text: &str) -> Passage {
        let mut lines: Vec<(usize, Vec<usize>)> = Vec::new();
        let (mut line, mut line_start) = (1, 0);
        let start_of_body = body_start(text);
        self.each(text, |at, word| {
            line += text[line_start..at].matches('\n').count();
            line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
            if at < start_of_body {
                return;
            }
            match lines.last_mut() {
                Some((last, words)) if *last == line => {
                    if !words.contains(&word) {
                        words.push(word);
                    }
                }
                _ => lines.push((line, vec![word])),
            }
        });
        // Only the frontmatter, or only the name: then the body's first words.
        let first_of_body = 1 + text[..start_of_body].matches('\n').count();
        let best = lines.iter().max_by_key(|(line, words)| (words.len(), usize::MAX - line));
        let from = best.map_or(first_of_body, |(line, _)| *line);
        let mut shown = String::new();
        let mut last = from;
        for (number, line) in (from..).zip(text.lines().skip(from - 1)) {
            if !shown.is_empty() && shown.chars().count() + line.chars().count() > MAX_PASSAGE_CHARACTERS {
                break;
            }
            last = number;
            if !line.trim().is_empty() {
                shown.push_str(if shown.is_empty() { "" } else { "\n" });
                shown.push_str(line.trim_end());
            }
        }
        let text = match shown.char_indices().nth(MAX_PASSAGE_CHARACTERS) {
            Some((end, _)) => format!("{}…", &shown[..end]),
            None => shown,
        };
        Passage { lines: (from, last), text }
    }
}

/// Returns the texts that are worth it with what they are worth, the best first; texts that are equally good are in their own order.
pub(crate) fn rank<K: Ord>(words: &Words, counted: Vec<(K, Counts)>, texts: usize) -> Vec<(K, f64)> {
    let total = as_float(texts.max(counted.len()));
    let length: f64 =
        counted.iter().map(|(_, counts)| counts.length).sum::<f64>() / as_float(counted.len().max(1));
    let rarity: Vec<f64> = (0..words.stems.len())
        .map(|word| {
            let having = as_float(counted.iter().filter(|(_, counts)| counts.words[word] > 0.0).count());
            (1.0 + (total - having + 0.5) / (having + 0.5)).ln()
        })
        .collect();
    let mut ranked: Vec<(K, f64)> = counted
        .into_iter()
        .map(|(key, counts)| {
            let norm = K1 * (1.0 - B + B * counts.length / length.max(1.0));
            let each = counts.words.iter().zip(&rarity);
            let score = each.map(|(count, rarity)| rarity * count * (K1 + 1.0) / (count + norm)).sum();
            (key, score)
        })
        .collect();
    ranked.sort_by(|(key, one), (other_key, other)| other.total_cmp(one).then_with(|| key.cmp(other_key)));
    let best = ranked.first().map_or(0.0, |(_, best)| *best);
    ranked.retain(|(_, score)| *score >= best * WORTH);
    ranked
}

fn as_float(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::MAX, f64::from)
}

/// Returns a word without the endings that English gives it, as long as enough is left of it.
fn stem(word: &str) -> &str {
    for ending in ["ions", "ion", "ings", "ing", "ies", "ied", "ers", "er", "es", "ed", "ly", "s", "e", "y"] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.chars().count() >= 4
        {
            return stem;
        }
    }
    word.strip_suffix('s').filter(|stem| stem.len() >= 3 && !stem.ends_with('s')).unwrap_or(word)
}

/// Returns the end of the frontmatter, or of the first heading if there is no frontmatter.
fn title_end(text: &str) -> usize {
    match body_start(text) {
        0 if text.starts_with('#') => text.find('\n').unwrap_or(text.len()),
        start => start,
    }
}

/// Returns the offset of the text below the frontmatter.
fn body_start(text: &str) -> usize {
    text.len() - document::body_of(text).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(query: &str, texts: &[(&'static str, &str)]) -> Vec<&'static str> {
        let words = Words::of(query);
        let counted = texts.iter().filter_map(|(name, text)| Some((*name, words.count(name, text)?)));
        rank(&words, counted.collect(), texts.len()).into_iter().map(|(name, _)| name).collect()
    }

    const TEXTS: &[(&str, &str)] = &[
        (
            "user_role.md",
            "---\nname: role\ndescription: what the user does\n---\n\nKeeps the lighthouse running.\n",
        ),
        ("project_deploy.md", "Deploys happen on Monday.\nThe deploy key is rotated then.\n"),
        ("reference_keys.md", "# Keys\n\nAll keys are in the vault of the operations team.\n"),
        (
            "long.md",
            "The user said something.\n\nAnd so on, about nothing in particular, for many words and lines.\n",
        ),
        ("umlaut.md", "Der Leuchtturmwärter heißt Äpfel gut.\n"),
        ("kanji.md", "今日は灯台の話をした。\n"),
    ];

    #[test]
    fn rare_words_count_more_and_endings_do_not() {
        assert_eq!(best("when do we deploy?", TEXTS), ["project_deploy.md"]);
        assert_eq!(best("key rotation", TEXTS)[0], "project_deploy.md");
        assert_eq!(best("KEYS", TEXTS)[0], "reference_keys.md");
        assert_eq!(best("user role", TEXTS)[0], "user_role.md");
        assert_eq!(best("äpfel", TEXTS), ["umlaut.md"]);
        assert_eq!(best("灯台", TEXTS), ["kanji.md"]);
        assert!(
            best("submarine", TEXTS).is_empty() && best("", TEXTS).is_empty() && best("?!", TEXTS).is_empty()
        );
        assert!(best("ploy", TEXTS).is_empty(), "words are found where they begin");
        assert!(best("what is this about", TEXTS).contains(&"long.md"), "nothing but empty words means them");
    }

    #[test]
    fn the_passage_is_where_most_words_are() {
        let words = Words::of("deploy key rotated");
        let passage = words.passage(TEXTS[1].1);
        assert_eq!((passage.lines, passage.text.as_str()), ((2, 2), "The deploy key is rotated then."));
        let passage = Words::of("role").passage(TEXTS[0].1);
        assert_eq!((passage.lines, passage.text.as_str()), ((5, 6), "Keeps the lighthouse running."));
        let long = format!("{}\n", "lamp ".repeat(200));
        assert_eq!(Words::of("lamp").passage(&long).text.chars().count(), MAX_PASSAGE_CHARACTERS + 1);
        let empty = Words::of("role").passage("");
        assert_eq!((empty.lines, empty.text.as_str()), ((1, 1), ""));
    }

    #[test]
    fn any_text_is_searched_without_harm() {
        for text in ["", "---\n", "---\n---\n", "---\na", "\n\n\n", "ß\u{0}é", "---\nlamp\n---\nlamp"] {
            let words = Words::of("lamp ß é \u{130}");
            let passage = words.passage(text);
            assert!(passage.lines.0 >= 1 && passage.lines.1 >= passage.lines.0, "{text:?}");
            let _ = words.count("lamp.md", text);
        }
        let many = (0..100).map(|number| format!("w{number} ")).collect::<String>();
        assert_eq!(Words::of(&many).stems.len(), MAX_WORDS);
    }
}

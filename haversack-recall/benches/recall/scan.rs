//! The scan that came before the index, kept as a baseline: it counts the words of a query in every file.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use haversack::document;

/// The most words of a query that are looked at.
const MAX_WORDS: usize = 32;

/// The weight of a word in a file's name or description.
const TITLE_WEIGHT: f64 = 3.0;

/// A hit must be worth at least this part of the best one.
const WORTH: f64 = 0.2;

/// Saturation and length normalisation of BM25.
const K1: f64 = 1.2;
const B: f64 = 0.5;

/// Words that say nothing about what is looked for.
pub(crate) const EMPTY_WORDS: &[&str] = &[
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

//! Estimates how many tokens a text costs a model, without a tokenizer.
//!
//! The estimate is a sum over the text: a word costs a little more than one token and more if it is long, a digit a third, a sign two thirds, a
//! character of Chinese or Japanese a little more than one. The weights were fitted to the tokenizer that Anthropic published, on 419 files of prose,
//! code and data. The estimate is meant to be too high rather than too low: `estimate_is_above_the_tokenizer_and_close` holds it to between 0 and 30 %
//! above.
//!
//! Nothing carries over a line end, so the estimate of several whole lines is the sum of their estimates, rounded up once.

/// Thousandths of a token.
type Weight = u64;

const WORD: Weight = 1182;
const FIFTH_LETTER: Weight = 70;
const EIGHTH_LETTER_AND_LATER: Weight = 63;
const CAPITAL_INSIDE: Weight = 16;
const DIGIT: Weight = 306;
const SIGN: Weight = 670;
const SIGN_AGAIN: Weight = 523;
const LINE_END: Weight = 1807;
const HANGUL: Weight = 1621;
const IDEOGRAPH_OR_KANA: Weight = 1128;
const OTHER: Weight = 1653;

/// The fewest thousandths of a token that a byte costs on average; text of spaces alone is cheaper and does not occur.
const LEAST_FOR_A_BYTE: Weight = 100;

/// What a byte costs on average.
const USUAL_FOR_A_BYTE: Weight = 280;

/// Returns about how many tokens a text costs.
pub fn estimate(text: &str) -> usize {
    whole(weight(text))
}

/// Returns the fewest tokens that a text of so many bytes can cost, to skip texts that cannot fit without reading them.
pub fn least(size_bytes: u64) -> usize {
    whole(size_bytes.saturating_mul(LEAST_FOR_A_BYTE))
}

/// Returns about what a text of so many bytes costs that nobody has read.
pub fn usual(size_bytes: u64) -> usize {
    whole(size_bytes.saturating_mul(USUAL_FOR_A_BYTE))
}

/// Returns thousandths of a token as tokens, rounded up.
pub(crate) fn whole(weight: Weight) -> usize {
    usize::try_from(weight.div_ceil(1000)).unwrap_or(usize::MAX)
}

/// Returns what a text costs in thousandths of a token.
pub(crate) fn weight(text: &str) -> Weight {
    let mut total = 0;
    let mut letters = 0_u32;
    let mut before = '\n';
    for c in text.chars() {
        total += match c {
            '\n' => LINE_END,
            ' ' | '\t' | '\r' => 0,
            c if c.is_ascii_alphabetic() => {
                letters += 1;
                match letters {
                    1 => WORD,
                    _ if c.is_ascii_uppercase() => CAPITAL_INSIDE,
                    5 => FIFTH_LETTER,
                    8.. => EIGHTH_LETTER_AND_LATER,
                    _ => 0,
                }
            }
            c if c.is_ascii_digit() => DIGIT,
            c if c.is_ascii() => {
                if c == before {
                    SIGN_AGAIN
                } else {
                    SIGN
                }
            }
            '\u{1100}'..='\u{11ff}' | '\u{ac00}'..='\u{d7af}' => HANGUL,
            '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' => IDEOGRAPH_OR_KANA,
            // Emoji and rare ideographs are several tokens each.
            '\u{10000}'.. => 2 * OTHER,
            _ => OTHER,
        };
        if !c.is_ascii_alphabetic() {
            letters = 0;
        }
        before = c;
    }
    total
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each text with the count of the tokenizer; `tests/fixtures/tokens/README.md` says how they were counted.
    const COUNTED: [(&str, &str, usize); 8] = [
        ("english", include_str!("../tests/fixtures/tokens/english.txt"), 219),
        ("chinese", include_str!("../tests/fixtures/tokens/zh.txt"), 190),
        ("japanese", include_str!("../tests/fixtures/tokens/ja.txt"), 217),
        ("korean", include_str!("../tests/fixtures/tokens/ko.txt"), 235),
        ("notes", include_str!("../tests/fixtures/tokens/notes.md"), 161),
        ("rust", include_str!("../tests/fixtures/tokens/rust.txt"), 1505),
        ("python", include_str!("../tests/fixtures/tokens/python.txt"), 205),
        ("log", include_str!("../tests/fixtures/tokens/log.jsonl"), 195),
    ];

    #[test]
    fn estimate_is_above_the_tokenizer_and_close() {
        for (name, text, counted) in COUNTED {
            let estimated = estimate(text);
            assert!(estimated >= counted, "{name}: {estimated} is below {counted}");
            assert!(estimated * 100 <= counted * 130, "{name}: {estimated} is too far above {counted}");
        }
    }

    proptest! {
        #[test]
        fn whole_lines_add_up(lines in prop::collection::vec("[a-zA-Z0-9 .,:*_läЖ灯등🗼-]{0,30}", 0..12)) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let sum: u64 = lines.iter().map(|line| weight(&format!("{line}\n"))).sum();
            prop_assert_eq!(weight(&text), sum);
        }

        #[test]
        fn a_longer_text_costs_no_less(text in "\\PC{0,80}", more in "\\PC{0,20}") {
            let longer = format!("{text}{more}");
            prop_assert!(estimate(&longer) >= estimate(&text));
        }
    }
}

//! Folding: the comparison of spellings, and the similarity for suggestions.

use unicode_normalization::UnicodeNormalization;

/// Folds a key for comparison: case, spaces, `_`, `-` and the quotes and punctuation that models leave around a
/// word do not matter.
pub(crate) fn fold(text: &str) -> String {
    let trimmed = trim(text);
    let mut folded = String::with_capacity(trimmed.len());
    if trimmed.is_ascii() {
        let kept = |byte: &u8| !(byte.is_ascii_whitespace() || matches!(byte, b'_' | b'-' | 0x0b));
        let lower = trimmed
            .bytes()
            .filter(kept)
            .map(|byte| byte.to_ascii_lowercase());
        folded.extend(lower.map(char::from));
        return folded;
    }
    for character in trimmed.chars() {
        if !(character.is_whitespace() || matches!(character, '_' | '-')) {
            folded.extend(character.to_lowercase());
        }
    }
    folded
}

/// Folds an enum member for comparison: as for keys, but a sign or a point at an end belongs to the value
/// (`-1`, `.5`, `A-`).
pub(crate) fn fold_value(text: &str) -> String {
    let trimmed = trim(text);
    let mut folded = String::with_capacity(trimmed.len());
    let mut previous = None;
    // The same character may be written as one or with a combining mark.
    let mut characters = trimmed.nfc().peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek();
        let inside = previous.is_some() && next.is_some();
        let sign =
            previous.is_none_or(char::is_whitespace) && next.is_some_and(char::is_ascii_digit);
        let digits = previous.is_some_and(|c: char| c.is_ascii_digit())
            && next.is_some_and(char::is_ascii_digit);
        let separator = character.is_whitespace() || matches!(character, '_' | '-');
        if !separator || !inside || sign || digits {
            folded.extend(character.to_lowercase());
        }
        previous = Some(character);
    }
    folded
}

/// Reduces a value to its letters and digits: what is left if no punctuation counts.
pub(crate) fn letters(text: &str) -> String {
    text.nfc()
        .filter(|character| character.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Folds only the case of a value.
pub(crate) fn fold_case(text: &str) -> String {
    text.trim().nfc().flat_map(char::to_lowercase).collect()
}

/// Removes quotes around a word and punctuation behind it.
fn trim(text: &str) -> &str {
    let around = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '“' | '”');
    text.trim_start_matches(around)
        .trim_end_matches(|c: char| around(c) || matches!(c, ':' | '.' | ','))
}

/// Returns up to three candidates similar to a text, best first: those within an edit distance of a third of the
/// longer one, and those that the text contains.
pub(crate) fn nearest<'c>(
    text: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Vec<&'c str> {
    let wanted: Vec<char> = fold(text).chars().take(MAX_CHARS).collect();
    let mut scored: Vec<(usize, &str)> = Vec::new();
    for candidate in candidates.into_iter().take(MAX_CANDIDATES) {
        let folded: Vec<char> = fold(candidate).chars().take(MAX_CHARS).collect();
        let near = distance(&wanted, &folded);
        let longest = wanted.len().max(folded.len());
        if near * 3 <= longest || contains(&wanted, &folded) {
            scored.push((near, candidate));
        }
    }
    scored.sort_by_key(|(near, _)| *near);
    scored
        .into_iter()
        .take(3)
        .map(|(_, candidate)| candidate)
        .collect()
}

/// Limits of the comparison: a suggestion is for a person, and comparing long texts would only cost time.
const MAX_CHARS: usize = 48;
const MAX_CANDIDATES: usize = 256;

fn contains(text: &[char], word: &[char]) -> bool {
    word.len() >= 3 && text.windows(word.len()).any(|window| window == word)
}

/// Computes the edit distance; a transposition of neighbours counts as two edits.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (y, above) in b.iter().zip(row.iter_mut().skip(1)) {
            let substituted = diagonal + usize::from(x != y);
            diagonal = *above;
            left = substituted.min(left + 1).min(diagonal + 1);
            *above = left;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_ignores_what_models_vary() {
        for (a, b) in [
            ("star_rating", "starRating"),
            ("event-type", "event_type"),
            ("amount:", "amount"),
            (" receiver", "receiver"),
            ("Wi Fi", "Wi-Fi"),
            ("Playgrounds.", "Playgrounds"),
            ("'day'", "day"),
        ] {
            assert_eq!(fold(a), fold(b), "{a} {b}");
        }
        assert_ne!(fold("a.b"), fold("ab"));
        for (a, b) in [
            ("-1", "1"),
            (".5", "5"),
            ("A-", "A"),
            ("C++", "C"),
            ("1-5", "15"),
        ] {
            assert_ne!(fold_value(a), fold_value(b), "{a} {b}");
        }
        assert_eq!(fold_value("credit_card."), fold_value("Credit Card"));
    }

    #[test]
    fn suggestions_are_near() {
        assert_eq!(nearest("celcius", ["celsius", "fahrenheit"]), ["celsius"]);
        assert_eq!(
            nearest("Celsius (°C)", ["celsius", "fahrenheit"]),
            ["celsius"]
        );
        assert!(nearest("kelvin", ["celsius", "fahrenheit"]).is_empty());
    }
}

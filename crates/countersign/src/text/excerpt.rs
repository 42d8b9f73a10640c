//! Excerpts: the part of a text that shows why it was found.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::words;

/// The range of `text` with most words of a question in at most `chars_max` characters. It begins and ends at a word,
/// so that nothing is cut in two; if no word is found, it is the beginning of the text.
///
/// # Example
///
/// ```
/// use countersign::text::{excerpt, question_words};
///
/// let text = "We ship on Monday. Batteries travel by road only.";
/// let place = excerpt(text, &question_words("battery road"), 40);
/// assert_eq!(&text[place], "Monday. Batteries travel by road only.");
/// ```
pub fn excerpt(text: &str, question: &[String], chars_max: usize) -> Range<usize> {
    let words = words(text);
    // How many characters stand before each byte where a character begins.
    let before: HashMap<usize, usize> = text
        .char_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .enumerate()
        .map(|(count, at)| (at, count))
        .collect();
    let place = |byte: usize| before.get(&byte).copied().unwrap_or_default();
    let matches: Vec<(usize, usize, &str)> = words
        .iter()
        .filter(|word| question.contains(&word.text))
        .map(|word| (word.start, word.end, word.text.as_str()))
        .collect();
    let bounds = (text.len() - text.trim_start().len(), text.trim_end().len());
    let mut best = (0, bounds.0, bounds.0);
    for (at, &(start, _, _)) in matches.iter().enumerate() {
        let mut seen = HashSet::new();
        let mut last = start;
        for &(_, end, word) in matches.get(at..).unwrap_or_default() {
            if place(end) - place(start) > chars_max {
                break;
            }
            seen.insert(word);
            last = last.max(end);
        }
        if seen.len() > best.0 {
            best = (seen.len(), start, last);
        }
    }
    let (_, start, end) = best;
    // Half of the room that is left stands before it, the rest behind.
    let room = chars_max.saturating_sub(place(end) - place(start));
    let starts = words.iter().map(|word| word.start).chain([bounds.0]);
    let from = starts
        .filter(|from| *from <= start && place(start) - place(*from) <= room / 2)
        .min()
        .unwrap_or(start);
    let ends = words.iter().map(|word| word.end).chain([bounds.1]);
    let to = ends
        .filter(|to| *to >= end && place(*to) - place(from) <= chars_max)
        .max()
        .unwrap_or(end);
    from..to
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::*;
    use crate::text::question_words;

    #[track_caller]
    fn check(text: &str, question: &str, chars_max: usize, expected: &str) {
        let place = excerpt(text, &question_words(question), chars_max);
        assert_eq!(&text[place], expected, "{question}");
    }

    #[test]
    fn it_shows_why_a_text_was_found() {
        check("", "x", 10, "");
        check("short", "x", 10, "short");
        check("one two three four five six.", "five", 13, "five six.");
        check("one two three four five six.", "five", 14, "four five six.");
        check(
            "# 退货\n\n三十天之内可以退货。",
            "退货",
            8,
            "# 退货\n\n三十",
        );
        check("含锂电池的包裹只能走陆运，不能空运", "空运", 6, "不能空运");
    }

    proptest! {
        /// An excerpt is a part of the text, and no longer than its maximum.
        #[test]
        fn it_is_always_a_part(text in any::<String>(), question in "[a-c锂电 ]{0,12}", chars_max in 1_usize..40) {
            let place = excerpt(&text, &question_words(&question), chars_max);
            let part = text.get(place.clone());
            prop_assert!(part.is_some(), "{place:?}");
            prop_assert!(part.unwrap().chars().count() <= chars_max.max(1));
        }
    }
}

//! A text as words, each with its place in the text.

use super::fold::{Kind, fold, kind};
use super::stem::stem;

/// A word as it is indexed, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The folded word without its ending; letters and digits only.
    pub text: String,
    /// Its first byte in the text.
    pub start: usize,
    /// The byte after its last one.
    pub end: usize,
    form: Form,
}

/// Form of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// With spaces around it.
    Spaced,
    /// One character of a run, and whether it is all of the run.
    One { is_alone: bool },
    /// Two neighbours of a run.
    Pair,
}

/// Maximum length of a word. A longer one is cut: an index has limits.
const WORD_CHARS_MAX: usize = 32;

/// Maximum number of words of a question; further words are ignored.
pub const QUESTION_WORDS_MAX: usize = 64;

/// Words that are in every English text, so that they carry no information. They are indexed, and searched for only if
/// a question has no others.
const COMMON: &[&str] = &[
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "but", "by", "can", "could",
    "did", "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "is", "it",
    "its", "may", "me", "my", "no", "not", "of", "on", "or", "our", "shall", "should", "so",
    "than", "that", "the", "their", "them", "then", "there", "they", "this", "to", "us", "was",
    "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you",
    "your",
];

/// The words by which a text is found, in its order.
///
/// # Example
///
/// ```
/// use countersign::text::words;
///
/// let text = "Batteries: 锂电池";
/// let found: Vec<&str> = words(text).iter().map(|word| &text[word.start..word.end]).collect();
/// assert_eq!(found, ["Batteries", "锂", "锂电", "电", "电池", "池"]);
/// assert_eq!(words(text)[0].text, "battery");
/// ```
pub fn words(text: &str) -> Vec<Word> {
    let mut reader = Reader::default();
    for (start, original) in text.char_indices() {
        let end = start + original.len_utf8();
        fold(original, |folded| reader.read(folded, start, end));
    }
    reader.end_word();
    reader.end_run();
    reader.words
}

/// The words of several texts as a store indexes them: with one space between them.
pub fn indexed_words(texts: &[&str]) -> String {
    let mut joined = String::new();
    for word in texts.iter().flat_map(|text| words(text)) {
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(&word.text);
    }
    joined
}

/// The words that a question searches for, each once: pairs of characters if a run has two or more, and no words that
/// are in every text. At most 64.
///
/// # Example
///
/// ```
/// use countersign::text::question_words;
///
/// assert_eq!(question_words("How are batteries shipped?"), ["battery", "ship"]);
/// assert_eq!(question_words("锂电池 税"), ["锂电", "电池", "税"]);
/// assert!(question_words("\0 \" * NEAR(").len() == 1);
/// ```
pub fn question_words(question: &str) -> Vec<String> {
    let asked: Vec<Word> = words(question)
        .into_iter()
        .filter(|word| match word.form {
            Form::Spaced | Form::Pair => true,
            Form::One { is_alone } => is_alone,
        })
        .collect();
    let is_telling = |word: &Word| word.form != Form::Spaced || !is_common(question, word);
    let has_telling = asked.iter().any(is_telling);
    let mut distinct = Vec::new();
    for word in asked {
        if distinct.len() == QUESTION_WORDS_MAX {
            break;
        }
        if (!has_telling || is_telling(&word)) && !distinct.contains(&word.text) {
            distinct.push(word.text);
        }
    }
    distinct
}

/// True if a word is common, by its spelling in the question: the folded form may be that of another word.
fn is_common(question: &str, word: &Word) -> bool {
    let written = question.get(word.start..word.end).unwrap_or_default();
    COMMON
        .iter()
        .any(|common| written.eq_ignore_ascii_case(common))
}

/// Collects letters into words and characters into runs; at most one of both is open.
#[derive(Default)]
struct Reader {
    words: Vec<Word>,
    word: String,
    /// Start and end of the open word.
    place: (usize, usize),
    /// True if an apostrophe was read; it belongs to the word if a letter follows.
    is_apostrophe: bool,
    run: Vec<(char, usize, usize)>,
}

impl Reader {
    fn read(&mut self, folded: char, start: usize, end: usize) {
        match kind(folded) {
            Kind::Accent => {}
            Kind::Apostrophe if !self.word.is_empty() => self.is_apostrophe = true,
            Kind::Letter => {
                self.end_run();
                self.letter(folded, start, end);
            }
            Kind::Dense => {
                self.end_word();
                self.run.push((folded, start, end));
            }
            Kind::Apostrophe | Kind::Gap => {
                self.end_word();
                self.end_run();
            }
        }
    }

    fn letter(&mut self, folded: char, start: usize, end: usize) {
        if self.word.is_empty() {
            self.place.0 = start;
        }
        if self.is_apostrophe {
            self.word.push('\'');
            self.is_apostrophe = false;
        }
        self.word.push(folded);
        self.place.1 = end;
    }

    fn end_word(&mut self) {
        self.is_apostrophe = false;
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        // `buyer's` is `buyer`, `don't` is `dont`.
        let word = word.strip_suffix("'s").unwrap_or(&word);
        let word: String = word
            .chars()
            .filter(|letter| *letter != '\'')
            .take(WORD_CHARS_MAX)
            .collect();
        self.words.push(Word {
            text: stem(&word).into_owned(),
            start: self.place.0,
            end: self.place.1,
            form: Form::Spaced,
        });
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        let is_alone = run.len() == 1;
        for (at, &(character, start, end)) in run.iter().enumerate() {
            self.words.push(Word {
                text: character.to_string(),
                start,
                end,
                form: Form::One { is_alone },
            });
            if let Some(&(next, _, end)) = run.get(at + 1) {
                self.words.push(Word {
                    text: [character, next].iter().collect(),
                    start,
                    end,
                    form: Form::Pair,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(indexed_words(&[text]), expected.join(" "), "{text}");
    }

    #[test]
    fn a_text_becomes_words() {
        check("", &[]);
        check(
            "The buyer's duties, DDP/DAP",
            &["the", "buyer", "duty", "ddp", "dap"],
        );
        check("UN3481 20,000 mAh", &["un3481", "20", "000", "mah"]);
        check("Ｔ恤 尺码", &["t", "恤", "尺", "尺码", "码"]);
        check(
            "don’t café ｶﾞ",
            &["dont", "cafe", "カ", "カ\u{3099}", "\u{3099}"],
        );
        check(
            "关税、增值税",
            &["关", "关税", "税", "增", "增值", "值", "值税", "税"],
        );
        check(&"x".repeat(100), &[&"x".repeat(32)]);
    }

    #[test]
    fn a_question_asks_for_what_tells() {
        #[track_caller]
        fn check(question: &str, expected: &[&str]) {
            assert_eq!(question_words(question), expected, "{question}");
        }
        check("what is the VAT in the EU", &["vat", "eu"]);
        check("to be or not to be", &["to", "be", "or", "not"]);
        check("税", &["税"]);
        check("关税怎么算？", &["关税", "税怎", "怎么", "么算"]);
        check("battery batteries", &["battery"]);
        check(" \u{0} \"\" * ^ ( ) : - ", &[]);
        let many = (0..1_000)
            .map(|n| format!("w{n}"))
            .collect::<Vec<_>>()
            .join(" ");
        assert_eq!(question_words(&many).len(), QUESTION_WORDS_MAX);
    }

    proptest! {
        /// Indexed words have letters and digits only, and are at the places that they name.
        #[test]
        fn words_are_plain_and_in_place(text in any::<String>()) {
            for word in words(&text) {
                prop_assert!(text.get(word.start..word.end).is_some());
                prop_assert!(!word.text.is_empty() && word.text.len() <= 256);
                let is_plain = word.text.chars().all(|letter| !letter.is_ascii() || letter.is_ascii_alphanumeric());
                prop_assert!(is_plain, "{:?}", word.text);
                prop_assert!(!word.text.contains(char::is_whitespace));
            }
        }

        /// Every question is made of words that its own text is found by.
        #[test]
        fn a_text_has_the_words_that_it_asks_for(text in any::<String>()) {
            let joined = indexed_words(&[&text]);
            let indexed: Vec<&str> = joined.split(' ').collect();
            for word in question_words(&text) {
                prop_assert!(indexed.contains(&word.as_str()));
            }
            prop_assert_eq!(joined.contains("  "), false);
        }
    }
}

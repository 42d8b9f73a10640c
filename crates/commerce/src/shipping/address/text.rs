//! Makes texts from keyboards of every country comparable.

/// The text without invisible differences: blanks at the ends, repeated blanks, direction marks, wide letters. `None`
/// if it has a character that no label can print.
pub(super) fn tidy(text: &str) -> Option<String> {
    let mut tidy = String::with_capacity(text.len());
    for letter in text.chars().filter(|letter| !is_invisible(*letter)) {
        let letter = half_width(letter);
        if letter.is_whitespace() {
            if !tidy.ends_with(' ') {
                tidy.push(' ');
            }
        } else if letter.is_control() {
            return None;
        } else {
            tidy.push(letter);
        }
    }
    Some(tidy.trim().to_owned())
}

/// A name for comparison: lower-case letters and digits of any script, nothing else.
pub(super) fn fold(text: &str) -> String {
    let letters = text.chars().map(half_width);
    let letters = letters.filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// The words in lower case, with one blank between them and one at each end.
pub(super) fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    let mut words = " ".to_owned();
    for word in lower.split(|letter: char| !letter.is_alphanumeric()) {
        if !word.is_empty() {
            words.push_str(word);
            words.push(' ');
        }
    }
    words
}

/// True if a text has Chinese, Japanese or Korean letters.
pub(super) fn is_east_asian(text: &str) -> bool {
    let is_east_asian = |letter: char| {
        matches!(letter,
            '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}')
    };
    text.chars().any(is_east_asian)
}

/// The ASCII form of letters, digits and blanks of Chinese and Japanese keyboards. Wide punctuation stays, because it
/// is correct there.
pub(super) fn half_width(letter: char) -> char {
    match letter {
        '\u{3000}' => ' ',
        '\u{ff10}'..='\u{ff19}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' => {
            char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter)
        }
        other => other,
    }
}

/// True for marks of direction and joining, which are invisible and make equal texts differ.
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_goes() {
        assert_eq!(
            tidy(" １２  Rue\u{3000}X\u{200b} ").as_deref(),
            Some("12 Rue X")
        );
        assert_eq!(tidy("a\u{7}b"), None);
        assert_eq!(
            tidy("南京东路（一号）").as_deref(),
            Some("南京东路（一号）")
        );
        assert_eq!(fold("New-York "), "newyork");
        assert_eq!(words("P.O. Box 7"), " p o box 7 ");
    }
}

//! Addresses: how they are written in each country, and what is wrong with one.

/// A postal code for comparing: capital ASCII letters and digits, nothing else.
pub(crate) fn postal_key(code: &str) -> String {
    let letters = code.chars().map(half_width);
    let letters = letters.filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_uppercase()).collect()
}

/// Letters and digits as they are typed with a Chinese or Japanese keyboard, in ASCII.
fn half_width(letter: char) -> char {
    match letter {
        '\u{3000}' => ' ',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter),
        other => other,
    }
}

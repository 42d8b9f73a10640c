//! Folding: one spelling of every character.

use unicode_normalization::char::decompose_compatible;

/// Kinds of characters for splitting a text into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Written without spaces between words: Han, kana, Hangul.
    Dense,
    /// A letter or digit of a word with spaces around it.
    Letter,
    /// Stands inside a word: `buyer's`.
    Apostrophe,
    /// An accent that stands alone; it is left out.
    Accent,
    /// Between words.
    Gap,
}

/// Hands out the characters that this one is folded to, in order.
pub(super) fn fold(original: char, mut each: impl FnMut(char)) {
    // Taken apart, a Hangul syllable would be three characters that mean nothing alone.
    if matches!(original, '\u{ac00}'..='\u{d7a3}') {
        return each(original);
    }
    decompose_compatible(original, |part| {
        for small in part.to_lowercase() {
            each(small);
        }
    });
}

pub(super) fn kind(folded: char) -> Kind {
    match folded {
        '\'' | '\u{2019}' => Kind::Apostrophe,
        '\u{300}'..='\u{36f}' => Kind::Accent,
        // Iteration mark and zero; kana without their middle dot; Han in all planes; Hangul.
        '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{30fa}'
        | '\u{30fc}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Kind::Dense,
        letter if letter.is_alphanumeric() => Kind::Letter,
        _ => Kind::Gap,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_has_one_spelling() {
        for (original, expected) in [
            ("ＤＤＰ１２", "ddp12"),
            ("ﬁne", "fine"),
            ("Café", "cafe\u{301}"),
            ("锂電", "锂電"),
            ("㎏", "kg"),
            ("한", "한"),
        ] {
            let mut folded = String::new();
            original
                .chars()
                .for_each(|original| fold(original, |part| folded.push(part)));
            assert_eq!(folded, expected, "{original}");
        }
    }
}

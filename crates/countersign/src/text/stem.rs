//! English words without their plural, `-ing` and `-ed`. The result is a key, not a word: it only has to be the same
//! for all forms of one word, and different for other words.

use std::borrow::Cow;

/// The key of a word in small letters. A word with other characters than English letters stays as it is.
pub(super) fn stem(word: &str) -> Cow<'_, str> {
    if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    let single = singular(word);
    let plain = without_ending(&single);
    let plain = plain.as_deref().unwrap_or(&single);
    // `price` and `pricing` meet at `pric`; short words keep their `e`: a `care` is no `car`.
    let key = match plain.strip_suffix('e') {
        Some(rest) if rest.len() >= 4 => rest,
        Some(_) | None => plain,
    };
    Cow::Owned(key.to_owned())
}

fn singular(word: &str) -> Cow<'_, str> {
    if let Some(rest) = word.strip_suffix("ies").filter(|rest| rest.len() >= 2) {
        return Cow::Owned(format!("{rest}y"));
    }
    for ending in ["sses", "xes", "ches", "shes"] {
        if word.ends_with(ending) {
            return Cow::Borrowed(word.strip_suffix("es").unwrap_or(word));
        }
    }
    let is_plural = !["ss", "us", "is"].iter().any(|own| word.ends_with(own));
    let rest = word.strip_suffix('s').filter(|_| is_plural);
    Cow::Borrowed(rest.unwrap_or(word))
}

/// The word without `-ing` or `-ed`; `None` if it has neither, or if the rest would be too short or have no vowel.
fn without_ending(word: &str) -> Option<String> {
    if let Some(rest) = word.strip_suffix("ied").filter(|rest| rest.len() >= 2) {
        return Some(format!("{rest}y"));
    }
    if word.ends_with("eed") {
        return None;
    }
    let rest = word
        .strip_suffix("ing")
        .or_else(|| word.strip_suffix("ed"))?;
    if rest.len() < 3 || !rest.bytes().any(is_vowel) {
        return None;
    }
    let bytes = rest.as_bytes();
    match *bytes {
        // `shipp` was doubled; `sell` and `press` are so.
        [.., a, b] if a == b && !is_vowel(b) && !matches!(b, b'l' | b's' | b'z') => {
            rest.get(..rest.len() - 1).map(str::to_owned)
        }
        // `siz` was `size`; `tax` is so.
        [a, b, c] if !is_vowel(a) && is_vowel(b) && !is_vowel(c) && !b"wxy".contains(&c) => {
            Some(format!("{rest}e"))
        }
        _ => Some(rest.to_owned()),
    }
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_a_word_meet() {
        for forms in [
            &["battery", "batteries"][..],
            &["box", "boxes"],
            &["address", "addresses", "addressed", "addressing"],
            &["size", "sizes", "sized", "sizing"],
            &["price", "prices", "priced", "pricing"],
            &["ship", "ships", "shipped", "shipping"],
            &["return", "returns", "returned", "returning"],
            &["tax", "taxes", "taxed", "taxing"],
            &["duty", "duties"],
            &["carry", "carried", "carries", "carrying"],
            &["sell", "sells", "selling"],
            &["exceed", "exceeds", "exceeded", "exceeding"],
            &["knife", "knife"],
            &["trace", "traces", "tracing", "traced"],
        ] {
            let keys: Vec<_> = forms.iter().map(|form| stem(form)).collect();
            assert!(
                keys.iter().all(|key| *key == keys[0]),
                "{forms:?}: {keys:?}"
            );
        }
    }

    #[test]
    fn other_words_stay_apart() {
        for (one, other) in [
            ("care", "car"),
            ("bring", "br"),
            ("string", "str"),
            ("customs", "custody"),
            ("un3481", "un348"),
            ("glass", "gla"),
        ] {
            assert_ne!(stem(one), stem(other));
        }
        assert_eq!(stem("größen"), "größen");
    }
}

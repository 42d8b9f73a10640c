//! The words by which variants differ, for people: options are codes in English, and are shown in Chinese too.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{Variant, is_chinese};

static CHINESE: LazyLock<HashMap<String, String>> =
    LazyLock::new(|| toml::from_str(include_str!("../../shop/words.toml")).unwrap_or_default());

/// A word in the language of a locale; the word itself if there is no translation.
pub fn word<'a>(word: &'a str, locale: Option<&str>) -> &'a str {
    if is_chinese(locale) {
        CHINESE.get(word).map_or(word, String::as_str)
    } else {
        word
    }
}

/// True if a text means this word: in any case, or in Chinese.
pub fn means(text: &str, word: &str) -> bool {
    let text = text.trim();
    text.eq_ignore_ascii_case(word) || CHINESE.get(word).is_some_and(|chinese| chinese == text)
}

impl Variant {
    /// The options that distinguish it, in one line: `navy, L`.
    pub fn label(&self, locale: Option<&str>) -> String {
        let values = self.options.values().map(|value| word(value, locale));
        let separator = if is_chinese(locale) { "，" } else { ", " };
        values.collect::<Vec<&str>>().join(separator)
    }
}

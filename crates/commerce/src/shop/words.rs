//! The words that variants differ by, for people: options are codes in English, and shown in Chinese too.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{Variant, is_chinese};

static CHINESE: LazyLock<HashMap<String, String>> =
    LazyLock::new(|| toml::from_str(include_str!("../../shop/words.toml")).unwrap_or_default());

/// A word in the language of a locale; itself where nobody has written it down.
pub fn word<'a>(word: &'a str, locale: Option<&str>) -> &'a str {
    if is_chinese(locale) {
        CHINESE.get(word).map_or(word, String::as_str)
    } else {
        word
    }
}

/// Whether a text means this word: spelled in any case, or in Chinese.
pub fn means(text: &str, word: &str) -> bool {
    let text = text.trim();
    text.eq_ignore_ascii_case(word) || CHINESE.get(word).is_some_and(|chinese| chinese == text)
}

impl Variant {
    /// What makes it differ, in one line: `navy, L`.
    pub fn label(&self, locale: Option<&str>) -> String {
        let values = self.options.values().map(|value| word(value, locale));
        let separator = if is_chinese(locale) { "，" } else { ", " };
        values.collect::<Vec<&str>>().join(separator)
    }
}

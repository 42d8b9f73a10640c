//! The languages that messages for people come in, and the tables that hold them.
//!
//! Codes, field names and evidence never change with the language. A message is written once a language, in a table of its own file:
//! [`messages!`](crate::messages) declares the keys with their English texts, [`translation!`](crate::translation) gives the same keys in
//! another language. A key that a translation lacks does not compile; [`faults`] finds mistakes that a compiler cannot find.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A language that every message exists in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// Also where no locale is known, and for every locale that is not Chinese.
    #[default]
    English,
    /// Simplified Chinese.
    Chinese,
}

impl Language {
    /// Every language.
    pub const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// The language of a BCP 47 locale: Chinese for `zh` and every tag that begins with it, else English.
    ///
    /// # Example
    ///
    /// ```
    /// use countersign_contract::Language;
    ///
    /// assert_eq!(Language::of(Some("zh-Hans-CN")), Language::Chinese);
    /// assert_eq!(Language::of(Some("de-DE")), Language::English);
    /// assert_eq!(Language::of(None), Language::English);
    /// ```
    pub fn of(locale: Option<&str>) -> Self {
        let language = locale.and_then(|locale| locale.split(['-', '_']).next());
        match language {
            Some(language) if language.eq_ignore_ascii_case("zh") => Self::Chinese,
            Some(_) | None => Self::English,
        }
    }
}

/// A message with its parameters: a key of a table.
pub trait Message {
    /// The sentence in this language.
    fn text(&self, language: Language) -> String;
}

/// A sentence for people, in every language until the reader's is known. On the wire it is a string.
///
/// A plain string becomes one that reads the same in every language; a [`Message`] brings all of them.
/// It reads as English until [`in_language`](Wording::in_language) decides.
///
/// # Example
///
/// ```
/// use countersign_contract::{Language, Wording};
///
/// let wording = Wording::new("the cart is empty", "购物车是空的");
/// assert_eq!(&*wording, "the cart is empty");
/// assert_eq!(&*wording.in_language(Language::Chinese), "购物车是空的");
/// assert_eq!(&*Wording::from("E_QUOTA").in_language(Language::Chinese), "E_QUOTA");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wording {
    text: String,
    /// `None` if the text is the same in every language.
    chinese: Option<Box<str>>,
}

impl Wording {
    /// A sentence in both languages.
    pub fn new(english: impl Into<String>, chinese: impl Into<String>) -> Self {
        Self {
            text: english.into(),
            chinese: Some(chinese.into().into_boxed_str()),
        }
    }

    /// The sentence in one language only, for its reader.
    pub fn in_language(self, language: Language) -> Self {
        let text = match (language, self.chinese) {
            (Language::Chinese, Some(chinese)) => chinese.into_string(),
            (Language::Chinese, None) | (Language::English, _) => self.text,
        };
        Self::from(text)
    }

    /// The sentence as it reads now.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Deref for Wording {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Wording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for Wording {
    fn from(text: String) -> Self {
        Self {
            text,
            chinese: None,
        }
    }
}

impl From<&str> for Wording {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<&String> for Wording {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<Wording> for String {
    fn from(wording: Wording) -> Self {
        wording.text
    }
}

impl<M: Message> From<M> for Wording {
    fn from(message: M) -> Self {
        Self::new(
            message.text(Language::English),
            message.text(Language::Chinese),
        )
    }
}

impl PartialEq<str> for Wording {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl PartialEq<&str> for Wording {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl Serialize for Wording {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Wording {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for Wording {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

/// Declares the messages of a crate: each key with its parameters, and its English text.
///
/// Every parameter is a `String`; a text names it in braces, as `format!` does. The same keys with the
/// same parameters stand in a [`translation!`](crate::translation) beside it. In tests `samples()` lists
/// every key for [`faults`](crate::language::faults).
///
/// # Example
///
/// ```
/// mod en {
///     countersign_contract::messages! {
///         /// Messages of the library desk.
///         pub enum Say {
///             NoBook { title } => "there is no book {title:?}",
///             Closed => "the desk is closed",
///         }
///     }
/// }
/// mod zh {
///     countersign_contract::translation! {
///         super::en::Say {
///             NoBook { title } => "没有《{title}》这本书",
///             Closed => "服务台已下班",
///         }
///     }
/// }
/// countersign_contract::message! { en::Say }
///
/// # fn main() {
/// use countersign_contract::{Language, Wording};
///
/// let wording = Wording::from(en::Say::NoBook { title: "Dune".to_owned() });
/// assert_eq!(&*wording, "there is no book \"Dune\"");
/// assert_eq!(&*wording.in_language(Language::Chinese), "没有《Dune》这本书");
/// # }
/// ```
#[macro_export]
macro_rules! messages {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($key:ident $({ $($field:ident),+ $(,)? })? => $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        $vis enum $name {
            $(
                #[doc = $text]
                $key $({ $(#[doc = stringify!($field)] $field: String,)+ })?,
            )+
        }

        $crate::translation! {
            $name { $($key $({ $($field),+ })? => $text,)+ }
        }

        /// Every key, the names of its parameters, and a message whose parameters are those names.
        #[cfg(test)]
        pub(super) fn samples() -> Vec<(&'static str, Vec<&'static str>, $name)> {
            vec![$((
                stringify!($key),
                vec![$($(concat!("{", stringify!($field), "}")),+)?],
                $name::$key $({ $($field: concat!("{", stringify!($field), "}").to_owned()),+ })?,
            )),+]
        }
    };
}

/// The messages of a crate in one language: the table beside [`messages!`](crate::messages).
#[macro_export]
macro_rules! translation {
    (
        $name:path {
            $($key:ident $({ $($field:ident),+ $(,)? })? => $text:literal,)+
        }
    ) => {
        /// The text of a message in the language of this file.
        pub(super) fn text(message: &$name) -> String {
            use $name as Key;
            match message {
                $(Key::$key $({ $($field),+ })? => format!($text),)+
            }
        }
    };
}

/// Joins the tables `en` and `zh` beside it into a [`Message`](crate::Message).
#[macro_export]
macro_rules! message {
    ($name:path) => {
        impl $crate::Message for $name {
            fn text(&self, language: $crate::Language) -> String {
                match language {
                    $crate::Language::English => en::text(self),
                    $crate::Language::Chinese => zh::text(self),
                }
            }
        }
    };
}

/// Lists the faults of a table, for the test that walks it: a text that is empty, ends with a full stop, lacks a parameter, is in the other
/// language, or has half-width punctuation beside Chinese.
pub fn faults<M: Message>(samples: &[(&str, Vec<&str>, M)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (key, parameters, message) in samples {
        for language in Language::ALL {
            let text = message.text(language);
            let mut fault =
                |what: &str| faults.push(format!("{key} in {language:?} {what}: {text}"));
            for parameter in parameters {
                if !text.contains(parameter) {
                    fault(&format!("lacks {parameter}"));
                }
            }
            let own = parameters
                .iter()
                .fold(text.clone(), |text, parameter| text.replace(parameter, ""));
            if own.trim().is_empty() {
                fault("says nothing");
            }
            if text.ends_with(['.', '。']) {
                fault("ends with a full stop");
            }
            // Commands in backticks are the same in every language.
            let prose: String = own.split('`').step_by(2).collect();
            let is_wrong = match language {
                Language::English => prose.chars().any(is_han),
                Language::Chinese => has_english(&prose, !prose.chars().any(is_han)),
            };
            if is_wrong {
                fault("is in another language");
            }
            if has_narrow_mark(&own) {
                fault("has half-width punctuation");
            }
        }
    }
    faults
}

fn is_han(character: char) -> bool {
    matches!(character, '\u{4e00}'..='\u{9fff}')
}

/// True if two words of English follow each other, or one stands `alone`; a name such as `retry_after_ms` or `ISO 8601` may stand.
fn has_english(text: &str, alone: bool) -> bool {
    let is_word = |word: &str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let words: Vec<&str> = text.split(' ').collect();
    words
        .windows(if alone { 1 } else { 2 })
        .any(|run| run.iter().all(|word| is_word(word)))
}

/// True if a mark of English punctuation touches a Chinese character.
fn has_narrow_mark(text: &str) -> bool {
    let characters: Vec<char> = text.chars().collect();
    characters.windows(2).any(|pair| {
        let is_mark =
            |character: &char| matches!(character, ',' | ';' | ':' | '?' | '!' | '(' | ')');
        pair.iter().any(is_mark) && pair.iter().copied().any(is_han)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(locale: &str, expected: Language) {
        assert_eq!(Language::of(Some(locale)), expected, "{locale}");
    }

    /// Every Chinese tag is Chinese; a language whose name merely begins alike is not.
    #[test]
    fn a_locale_has_a_language() {
        for chinese in [
            "zh",
            "ZH",
            "zh-CN",
            "zh_CN",
            "zh-Hans-CN",
            "zh-TW",
            "zh-Hant",
        ] {
            check(chinese, Language::Chinese);
        }
        for other in ["en", "de-DE", "zha", "en-ZH", "", "-zh", "zho"] {
            check(other, Language::English);
        }
    }

    /// On the wire a wording is the string that its reader gets.
    #[test]
    fn a_wording_is_a_string_on_the_wire() {
        let wording = Wording::new("gone", "已删除");
        assert_eq!(serde_json::to_string(&wording).unwrap(), "\"gone\"");
        let chinese = wording.in_language(Language::Chinese);
        assert_eq!(serde_json::to_string(&chinese).unwrap(), "\"已删除\"");
        assert_eq!(
            serde_json::from_str::<Wording>("\"已删除\"").unwrap(),
            chinese
        );
        // What was decided stays.
        assert_eq!(chinese.clone().in_language(Language::English), chinese);
    }

    struct Pair(&'static str, &'static str);

    impl Message for Pair {
        fn text(&self, language: Language) -> String {
            match language {
                Language::English => self.0.to_owned(),
                Language::Chinese => self.1.to_owned(),
            }
        }
    }

    /// The walk over a table complains of each thing it is there for, and of nothing else.
    #[test]
    fn faults_are_found() {
        let check = |english, chinese, expected: &[&str]| {
            let found = faults(&[("Key", vec!["{id}"], Pair(english, chinese))]);
            assert_eq!(found, expected, "{english} / {chinese}");
        };
        check("no cart {id}", "没有购物车 {id}", &[]);
        check(
            "send {id} as JSON",
            "请以 JSON 发送 {id}，见 ISO 8601 与 retry_after_ms",
            &[],
        );
        check(
            "no cart",
            "没有购物车",
            &[
                "Key in English lacks {id}: no cart",
                "Key in Chinese lacks {id}: 没有购物车",
            ],
        );
        check(
            "no cart {id}",
            "no cart {id}",
            &["Key in Chinese is in another language: no cart {id}"],
        );
        check(
            "no cart {id}",
            "购物车 was not found {id}",
            &["Key in Chinese is in another language: 购物车 was not found {id}"],
        );
        check(
            "没有 {id}",
            "没有 {id}",
            &["Key in English is in another language: 没有 {id}"],
        );
        check("{id}", "{id}空", &["Key in English says nothing: {id}"]);
        check(
            "no cart {id}.",
            "没有 {id}。",
            &[
                "Key in English ends with a full stop: no cart {id}.",
                "Key in Chinese ends with a full stop: 没有 {id}。",
            ],
        );
        check(
            "no {id}",
            "没有,{id}",
            &["Key in Chinese has half-width punctuation: 没有,{id}"],
        );
    }
}

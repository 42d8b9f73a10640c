//! Values in a policy file. Each is checked when it is parsed, so that a mistake is reported at its place.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use countersign::pattern;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// A name in which `*` stands for any characters, including none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(extend("x-form" = "a name, with * for any characters"))]
pub struct Glob(String);

impl Glob {
    /// Parses a pattern: 1 to 128 letters, digits and `_ . - * / : @`.
    pub fn new(text: &str) -> Option<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "_.-*/:@".contains(c);
        let is_fine = (1..=128).contains(&text.len()) && text.chars().all(fits);
        is_fine.then(|| Self(text.to_owned()))
    }

    /// True if a name matches.
    pub fn matches(&self, name: &str) -> bool {
        pattern::fits(&self.0, name)
    }

    /// Returns the pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Glob {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Glob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).ok_or_else(|| {
            let form = "1 to 128 letters, digits and _ . - / : @, with * for any characters";
            D::Error::custom(format!("{text:?} is not a pattern: {form}"))
        })
    }
}

/// A scope in the syntax of OAuth 2.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(extend("x-form" = "a scope, such as \"notes:write\""))]
pub struct ScopeName(String);

impl ScopeName {
    /// Parses a scope: visible ASCII without quotes and backslashes (RFC 6749), at most 128 characters.
    pub fn new(text: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        let is_fine = (1..=128).contains(&text.len()) && text.bytes().all(fits);
        is_fine.then(|| Self(text.to_owned()))
    }
}

impl Deref for ScopeName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for ScopeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).ok_or_else(|| {
            let form = "1 to 128 visible ASCII characters, no quotes, no backslash";
            D::Error::custom(format!("{text:?} is not a scope: {form}"))
        })
    }
}

/// A duration such as `30s`, `10m`, `24h` or `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(extend("x-form" = "a duration such as \"30s\", \"10m\", \"24h\" or \"7d\""))]
pub struct Period(#[schemars(with = "String")] Duration);

impl Period {
    /// Parses a whole number and its unit; from one second to 366 days.
    pub fn new(text: &str) -> Option<Self> {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let seconds: u64 = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = number.parse().ok().filter(|_| is_plain)?;
        let seconds = number.checked_mul(seconds)?;
        let is_fine = (1..=366 * 86_400).contains(&seconds);
        is_fine.then(|| Self(Duration::from_secs(seconds)))
    }

    /// Returns the duration.
    pub fn duration(self) -> Duration {
        self.0
    }
}

impl fmt::Display for Period {
    /// Writes it in the largest unit that it is a whole number of.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
        let whole = units
            .into_iter()
            .find(|(unit, _)| seconds.is_multiple_of(*unit));
        let (unit, name) = whole.unwrap_or((1, "s"));
        write!(f, "{}{name}", seconds / unit)
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).ok_or_else(|| {
            let form = "a whole number with s, m, h or d, such as 10m, up to 366d";
            D::Error::custom(format!("{text:?} is not a duration: {form}"))
        })
    }
}

/// A duration that may also be zero: `0s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(extend("x-form" = "\"0s\", or a duration such as \"2m\" up to \"24h\""))]
pub struct Pause(#[schemars(with = "String")] Duration);

impl Pause {
    /// Parses a [`Period`] or `0s`.
    pub fn new(text: &str) -> Option<Self> {
        if text == "0s" {
            return Some(Self(Duration::ZERO));
        }
        Period::new(text).map(|period| Self(period.duration()))
    }

    /// Returns the duration.
    pub fn duration(self) -> Duration {
        self.0
    }
}

impl<'de> Deserialize<'de> for Pause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let pause = Self::new(&text).filter(|pause| pause.0 <= PAUSE_MAX);
        pause.ok_or_else(|| {
            let form = "0s, or a whole number with s, m or h, such as 2m, up to 24h";
            D::Error::custom(format!("{text:?} is not a valid time: {form}"))
        })
    }
}

/// Maximum pause.
const PAUSE_MAX: Duration = Duration::from_hours(24);

/// True for a name of 1 to 64 letters, digits and `_ . -`.
pub(super) fn is_short_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    (1..=64).contains(&text.len()) && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        let matches = |glob: &str, name: &str| Glob::new(glob).unwrap().matches(name);
        for (glob, name) in [
            ("*", "notes.add"),
            ("notes.*", "notes.add"),
            ("notes.*", "notes."),
            ("*.add", "notes.add"),
            ("n*s.*d", "notes.add"),
            ("n**d", "notes.add"),
            ("notes.add", "notes.add"),
        ] {
            assert!(matches(glob, name), "{glob} {name}");
        }
        for (glob, name) in [
            ("notes.*", "notes"),
            ("notes.add", "notes.add2"),
            ("*.add", "notes.address"),
            ("ab*ba", "aba"),
            ("a*b*c", "a-c-b"),
        ] {
            assert!(!matches(glob, name), "{glob} {name}");
        }
        for glob in ["", "a b", "ä", "a?"] {
            assert_eq!(Glob::new(glob), None, "{glob}");
        }
    }

    #[test]
    fn a_period_has_a_number_and_a_unit() {
        let seconds = |text: &str| Period::new(text).map(|period| period.duration().as_secs());
        assert_eq!(seconds("30s"), Some(30));
        assert_eq!(seconds("10m"), Some(600));
        assert_eq!(seconds("366d"), Some(366 * 86_400));
        for (text, written) in [("90s", "90s"), ("60s", "1m"), ("24h", "1d"), ("36h", "36h")] {
            assert_eq!(Period::new(text).unwrap().to_string(), written);
        }
        for text in [
            "",
            "s",
            "0s",
            "+1s",
            "1.5h",
            "1 m",
            "10",
            "367d",
            "9999999999999999999d",
            "1ä",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}

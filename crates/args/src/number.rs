//! Numbers as text: converts the forms that models write to JSON's, never through a float.

use std::cmp::Ordering;
use std::fmt;

/// A number as exact decimal digits.
///
/// `digits` has neither leading nor trailing zeros; the value is `0.digits × 10^scale`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    digits: String,
    scale: i64,
}

impl Decimal {
    /// Reads a number in JSON's form.
    pub(crate) fn parse(json: &str) -> Option<Self> {
        let (negative, unsigned) = match json.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, json),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            // An exponent that does not fit an i32 is beyond every acceptable number.
            Some((mantissa, exponent)) => (mantissa, i64::from(exponent.parse::<i32>().ok()?)),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty()
            || !whole
                .bytes()
                .chain(fraction.bytes())
                .all(|b| b.is_ascii_digit())
        {
            return None;
        }
        let all = [whole, fraction].concat();
        let significant = all.trim_start_matches('0');
        let leading = all.len() - significant.len();
        let digits = significant.trim_end_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self {
                negative: false,
                digits,
                scale: 0,
            });
        }
        let scale = length(whole) - i64::try_from(leading).unwrap_or(i64::MAX) + exponent;
        Some(Self {
            negative,
            digits,
            scale,
        })
    }

    /// Returns the digits of an integral number; `None` if there is a fraction, or more digits than
    /// `digits_max`.
    pub(crate) fn to_integer(&self, digits_max: usize) -> Option<String> {
        let length = usize::try_from(self.scale)
            .ok()
            .filter(|n| *n <= digits_max)?;
        if self.digits.is_empty() {
            return Some("0".to_owned());
        }
        if length < self.digits.len() {
            return None;
        }
        let sign = if self.negative { "-" } else { "" };
        let zeros = "0".repeat(length - self.digits.len());
        Some([sign, &self.digits, &zeros].concat())
    }

    /// Truncates the number towards zero, for parameters that allow it.
    pub(crate) fn truncated(&self, digits_max: usize) -> Option<String> {
        if self.scale <= 0 {
            return Some("0".to_owned());
        }
        let keep = usize::try_from(self.scale).ok()?.min(self.digits.len());
        let digits = self.digits.get(..keep)?.to_owned();
        Self {
            negative: self.negative,
            digits,
            scale: self.scale,
        }
        .to_integer(digits_max)
    }

    /// True if a 64-bit float holds the number without becoming infinite.
    pub(crate) fn is_finite(json: &str) -> bool {
        json.parse::<f64>().is_ok_and(f64::is_finite)
    }

    /// True if the number is a whole multiple of `step`. Both are scaled to 128-bit integers; if they do not
    /// fit, they are compared as floats.
    pub(crate) fn is_multiple_of(&self, step: &Self) -> bool {
        if self.digits.is_empty() {
            return true;
        }
        let lowest = self.lowest_place().min(step.lowest_place());
        match (self.scaled(lowest), step.scaled(lowest)) {
            (Some(value), Some(step)) if step != 0 => value % step == 0,
            _ => {
                let ratio = self.to_f64() / step.to_f64();
                (ratio - ratio.round()).abs() < 1e-9
            }
        }
    }

    /// Returns the power of ten of the last digit.
    fn lowest_place(&self) -> i64 {
        self.scale - length(&self.digits)
    }

    fn scaled(&self, place: i64) -> Option<i128> {
        let shift = u32::try_from(self.lowest_place() - place).ok()?;
        let digits: i128 = self.digits.parse().ok()?;
        digits.checked_mul(10_i128.checked_pow(shift)?)
    }

    fn to_f64(&self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (negative, _) => {
                let magnitude = match (self.digits.is_empty(), other.digits.is_empty()) {
                    (true, true) => Ordering::Equal,
                    (true, false) => Ordering::Less,
                    (false, true) => Ordering::Greater,
                    (false, false) => self
                        .scale
                        .cmp(&other.scale)
                        .then_with(|| self.digits.cmp(&other.digits)),
                };
                if negative {
                    magnitude.reverse()
                } else {
                    magnitude
                }
            }
        }
    }
}

/// Maximum zeros behind the point before a number is shown with an exponent.
const ZEROS_MAX: i64 = 8;

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(integer) = self.to_integer(21) {
            return f.write_str(&integer);
        }
        let sign = if self.negative { "-" } else { "" };
        match usize::try_from(self.scale) {
            Ok(point) if point < self.digits.len() && point > 0 => {
                let (whole, fraction) = self.digits.split_at(point);
                write!(f, "{sign}{whole}.{fraction}")
            }
            // Plain notation, as long as the zeros need not be counted.
            _ if (-ZEROS_MAX..=0).contains(&self.scale) => {
                let zeros = "0".repeat(usize::try_from(-self.scale).unwrap_or_default());
                write!(f, "{sign}0.{zeros}{}", self.digits)
            }
            _ => {
                let (first, rest) = self.digits.split_at(1);
                let point = if rest.is_empty() { "" } else { "." };
                write!(f, "{sign}{first}{point}{rest}e{}", self.scale - 1)
            }
        }
    }
}

/// Returns a length as a number for sums of exponents.
fn length(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

/// True if JSON number text is spelt as a whole number.
pub(crate) fn is_whole(json: &str) -> bool {
    !json.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}

/// True for an integer or a decimal that is spelt as in JSON and without an exponent, as nearly all numbers are.
pub(crate) fn is_plain(token: &str) -> bool {
    let unsigned = token.strip_prefix('-').unwrap_or(token).as_bytes();
    let point = memchr::memchr(b'.', unsigned);
    let (whole, fraction) = unsigned.split_at(point.unwrap_or(unsigned.len()));
    let is_whole = match whole {
        [b'0'] => !token.starts_with('-') && point.is_none(),
        [first, rest @ ..] => matches!(first, b'1'..=b'9') && rest.iter().all(u8::is_ascii_digit),
        [] => false,
    };
    is_whole
        && match fraction {
            [] => true,
            [_, digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        }
}

/// A number that a model wrote, in JSON's form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) json: String,
    /// True if thousands separators or a decimal comma were read.
    pub(crate) grouped: bool,
}

/// Reads a bare token: JSON's form and `+5`, `007`, `.5`, `5.`, `1_000`, `0x1F`.
pub(crate) fn from_token(token: &str) -> Option<String> {
    if !token.is_ascii() {
        return from_token(&half_width(token)?);
    }
    let (sign, unsigned) = match token.as_bytes().first()? {
        b'-' => ("-", token.get(1..)?),
        b'+' => ("", token.get(1..)?),
        _ => ("", token),
    };
    if let Some(hex) = unsigned
        .strip_prefix("0x")
        .or_else(|| unsigned.strip_prefix("0X"))
    {
        let whole = hex.bytes().all(|b| b.is_ascii_hexdigit());
        let value = whole
            .then(|| u128::from_str_radix(hex, 16).ok())
            .flatten()?;
        return Some(format!("{sign}{value}"));
    }
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (unsigned.get(..at)?, Some(unsigned.get(at + 1..)?)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    if whole.is_empty() && fraction.is_none_or(str::is_empty) {
        return None;
    }
    let whole = digits(whole)?;
    let significant = whole.trim_start_matches('0');
    let mut json = String::with_capacity(token.len() + 1);
    json.push_str(sign);
    json.push_str(if significant.is_empty() {
        "0"
    } else {
        significant
    });
    if let Some(fraction) = fraction.filter(|fraction| !fraction.is_empty()) {
        json.push('.');
        json.push_str(&digits(fraction)?);
    }
    if let Some(exponent) = exponent {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        json.push('e');
        json.push_str(exponent);
    }
    Some(json)
}

/// Returns a number in full-width digits, or with a typographic minus, in ASCII; `None` for anything else.
fn half_width(token: &str) -> Option<String> {
    let ascii = |c: char| match c {
        '０'..='９' => char::from_digit(u32::from(c) - u32::from('０'), 10),
        '．' => Some('.'),
        '－' | '−' => Some('-'),
        '＋' => Some('+'),
        '0'..='9' | '.' | '-' | '+' | 'e' | 'E' => Some(c),
        _ => None,
    };
    token.chars().map(ascii).collect()
}

/// Reads a string that should be a number. Percent signs, currencies, units, fractions and ranges are refused:
/// dropping them would change the meaning.
pub(crate) fn from_text(text: &str, decimal_comma: bool) -> Option<Reading> {
    let text = text.trim();
    // Authors who group with points mean a thousand and more by "1.250"; in JSON it is a bit more than one.
    let unsigned = text.trim_start_matches(['-', '+']);
    if decimal_comma && unsigned.contains('.') && ungroup(unsigned, '.').is_some() {
        return None;
    }
    let plain = is_plain(text).then(|| text.to_owned());
    if let Some(json) = plain.or_else(|| from_token(text)) {
        return Some(Reading {
            json,
            grouped: false,
        });
    }
    let (sign, unsigned) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (if text.starts_with('-') { "-" } else { "" }, rest),
        None => ("", text),
    };
    let (group, point) = if decimal_comma {
        ('.', ',')
    } else {
        (',', '.')
    };
    let (whole, fraction) = match unsigned.split_once(point) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let whole = ungroup(whole, group)?;
    let json = match fraction {
        // In a locale with decimal commas "1,234" is a decimal to people and a grouped number to most models:
        // no safe reading.
        Some(fraction) if decimal_comma && fraction.len() == 3 && unsigned.len() <= 7 => {
            return None;
        }
        Some(fraction) if !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{sign}{whole}.{fraction}")
        }
        Some(_) => return None,
        None => format!("{sign}{whole}"),
    };
    Some(Reading {
        json: from_token(&json)?,
        grouped: true,
    })
}

/// True if a string is digits with one comma before the last three: a grouped number, or a decimal.
pub(crate) fn has_one_group(text: &str) -> bool {
    let unsigned = text.trim().trim_start_matches(['-', '+']);
    let Some((whole, group)) = unsigned.split_once(',') else {
        return false;
    };
    whole.len() <= 3 && group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit())
}

/// Removes thousands separators if every group has exactly three digits.
fn ungroup(whole: &str, separator: char) -> Option<String> {
    if !whole.contains(separator) {
        return digits(whole).filter(|digits| !digits.is_empty());
    }
    let mut groups = whole.split(separator);
    let first = groups.next()?;
    let well_formed = (1..=3).contains(&first.len())
        && first.bytes().all(|b| b.is_ascii_digit())
        && !first.starts_with('0')
        && groups
            .clone()
            .all(|group| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit()));
    well_formed.then(|| std::iter::once(first).chain(groups).collect())
}

/// Removes single underscores between digits.
fn digits(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let well_formed = bytes.iter().all(|b| b.is_ascii_digit() || *b == b'_')
        && !text.starts_with('_')
        && !text.ends_with('_')
        && !text.contains("__");
    well_formed.then(|| text.chars().filter(|c| *c != '_').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(
            from_text(text, false).map(|r| r.json).as_deref(),
            expected,
            "{text:?}"
        );
    }

    /// A plain number is one that is read as it is spelt.
    #[test]
    fn plain_numbers_keep_their_spelling() {
        for token in ["0", "7", "-7", "120", "1.5", "-1.50", "90.0"] {
            assert!(is_plain(token), "{token}");
            assert_eq!(from_token(token).as_deref(), Some(token));
        }
        for token in [
            "", "-", "00", "007", "-0", ".5", "5.", "1.", "1.x", "1e5", "+5", "1_000", "１", "5 ",
        ] {
            assert!(!is_plain(token), "{token}");
        }
    }

    /// B4: a bound is shown in plain notation.
    #[test]
    fn numbers_are_written_as_people_write_them() {
        for (json, shown) in [
            ("0.01", "0.01"),
            ("1e-2", "0.01"),
            ("-0.5", "-0.5"),
            ("0.000001", "0.000001"),
            ("12.50", "12.5"),
            ("1e3", "1000"),
            ("0", "0"),
            ("-0.0", "0"),
            ("1.5e-12", "1.5e-12"),
            ("2e40", "2e40"),
        ] {
            let number = Decimal::parse(json).unwrap();
            assert_eq!(number.to_string(), shown);
            assert_eq!(Decimal::parse(shown), Some(number));
        }
    }

    /// B6: a string becomes a number only if it spells exactly one.
    #[test]
    fn texts_that_are_numbers() {
        for (text, json) in [
            ("42", "42"),
            ("-7", "-7"),
            ("+0.05", "0.05"),
            ("65 ", "65"),
            ("1e3", "1e3"),
            ("1_000", "1000"),
            ("0x1F", "31"),
            (".5", "0.5"),
            ("5.", "5"),
            ("007", "7"),
            ("１２", "12"),
            ("−５．５", "-5.5"),
            ("1,234", "1234"),
            ("12,345,678.90", "12345678.90"),
            ("9007199254740993", "9007199254740993"),
        ] {
            check(text, Some(json));
        }
    }

    #[test]
    fn texts_that_are_not() {
        for text in [
            "",
            " ",
            "-",
            "+",
            ".",
            "e5",
            "1e",
            "12abc",
            "1-2",
            "--5",
            "3,14",
            "12,34",
            "1,2,3,4",
            "$5",
            "42%",
            "1/2",
            "5 km",
            "NaN",
            "Infinity",
            "1__0",
            "_1",
            "0,123",
            "1,2345",
            "１a",
            "0x",
            "1.2.3",
            "0x1G",
            "1,234.5.6",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn decimal_commas_are_read_where_people_write_them() {
        let read = |text| from_text(text, true).map(|r| r.json);
        assert_eq!(read("3,14").as_deref(), Some("3.14"));
        assert_eq!(read("1.234,56").as_deref(), Some("1234.56"));
        assert_eq!(read("1,234"), None);
        assert_eq!(read("1.250"), None);
        assert_eq!(read("0.125").as_deref(), Some("0.125"));
        assert_eq!(read("2.5").as_deref(), Some("2.5"));
    }

    #[test]
    fn integers_are_exact() {
        let integer = |json| Decimal::parse(json).and_then(|d| d.to_integer(400));
        assert_eq!(integer("3.0").as_deref(), Some("3"));
        assert_eq!(integer("1e3").as_deref(), Some("1000"));
        assert_eq!(integer("-1.50e1").as_deref(), Some("-15"));
        assert_eq!(integer("-0.0").as_deref(), Some("0"));
        assert_eq!(integer("3.7"), None);
        assert_eq!(integer("1e999"), None);
        assert_eq!(
            integer("9007199254740993.0").as_deref(),
            Some("9007199254740993")
        );
        assert_eq!(
            Decimal::parse("3.7")
                .and_then(|d| d.truncated(400))
                .as_deref(),
            Some("3")
        );
        assert_eq!(
            Decimal::parse("-0.7")
                .and_then(|d| d.truncated(400))
                .as_deref(),
            Some("0")
        );
    }

    proptest::proptest! {
        #[test]
        fn order_agrees_with_integers(a: i64, b: i64) {
            let decimal = |n: i64| Decimal::parse(&n.to_string()).unwrap();
            proptest::prop_assert_eq!(decimal(a).cmp(&decimal(b)), a.cmp(&b));
            proptest::prop_assert_eq!(decimal(a).to_string(), a.to_string());
        }
    }
}

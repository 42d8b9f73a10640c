//! Reasons of operators' acts: a short line in the operator's words.

use super::Error;

/// Maximum length of a reason. A longer one is cut.
const REASON_CHARS_MAX: usize = 300;

/// A reason as it is sealed beside the record: one line, short, not empty.
pub(super) fn checked(reason: &str) -> Result<String, Error> {
    let words = reason.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err(Error::NoReason);
    }
    Ok(words.join(" ").chars().take(REASON_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is opened without a reason (A22).
    #[test]
    fn a_reason_is_one_short_line() {
        let check = |given: &str| checked(given).ok();
        assert_eq!(
            check(" dispute\n of u_1\t"),
            Some("dispute of u_1".to_owned())
        );
        assert_eq!(check(" \n\u{7}"), None);
        assert_eq!(check(&"ab ".repeat(200)).map(|text| text.len()), Some(300));
    }
}

//! Why somebody did something: a short text for people, which stays in the log for ever.

use super::Error;
use crate::redact::Detector;

/// A longer reason is cut.
const REASON_CHARS_MAX: usize = 300;

/// A reason that may go into the log: one line, short, without the id of the user it is about or anything
/// else that looks personal.
pub(super) fn checked(reason: &str, user_id: &str) -> Result<String, Error> {
    let mut words = String::new();
    for word in reason.split(|c: char| c.is_whitespace() || c.is_control()) {
        if !word.is_empty() {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word);
        }
    }
    if words.is_empty() {
        return Err(Error::NoReason);
    }
    // The record stays when the user is erased, so it must not tell who that was.
    let scrubbed = match user_id {
        "" => words,
        user_id => words.replace(user_id, "[user]"),
    };
    let scrubbed = Detector::new().scrub(&scrubbed);
    Ok(scrubbed.chars().take(REASON_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A21: the log keeps no user's name because an operator wrote it down.
    #[test]
    fn a_reason_is_short_and_names_no_user() {
        let check = |given: &str| checked(given, "u_1").ok();
        assert_eq!(
            check(" dispute\n of u_1\t"),
            Some("dispute of [user]".to_owned())
        );
        assert_eq!(
            check("li@example.com wrote"),
            Some("[email] wrote".to_owned())
        );
        assert_eq!(check(" \n\u{7}"), None);
        assert_eq!(check(&"ab ".repeat(200)).map(|text| text.len()), Some(300));
    }
}

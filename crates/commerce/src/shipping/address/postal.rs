//! Postal codes: masks that give their form, and ranges that give their place.

use super::text::half_width;

/// A postal code for comparison: capital ASCII letters and digits, nothing else.
pub(crate) fn key(code: &str) -> String {
    let letters = code.chars().map(half_width);
    let letters = letters.filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_uppercase()).collect()
}

/// Writes a code by a mask; `None` if it does not fit. `9` is a digit, `A` a letter, `*` either, and anything else
/// stands for itself and may be missing.
pub(super) fn write(mask: &str, key: &str) -> Option<String> {
    let mut letters = key.chars().peekable();
    let mut written = String::with_capacity(mask.len());
    for slot in mask.chars() {
        let fits = |letter: &char| match slot {
            '9' => letter.is_ascii_digit(),
            'A' => letter.is_ascii_uppercase(),
            '*' => letter.is_ascii_alphanumeric(),
            itself => *letter == itself,
        };
        match (letters.next_if(fits), slot) {
            (Some(letter), _) => written.push(letter),
            (None, '9' | 'A' | '*') => return None,
            (None, itself) => written.push(itself),
        }
    }
    letters.next().is_none().then_some(written)
}

/// True if a code begins within a range such as `900-961`, or with a single prefix such as `T`.
pub(super) fn begins_within(range: &str, key: &str) -> bool {
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    key.get(..from.len())
        .is_some_and(|begin| from <= begin && begin <= to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_write_codes() {
        #[track_caller]
        fn check(mask: &str, code: &str, expected: Option<&str>) {
            assert_eq!(
                write(mask, &key(code)).as_deref(),
                expected,
                "{mask} {code}"
            );
        }
        check("AA9A 9AA", "sw1a1aa", Some("SW1A 1AA"));
        check("A9A 9A9", "m5v-3l9", Some("M5V 3L9"));
        check("999-9999", "１０００００１", Some("100-0001"));
        check("LV-9999", "1050", Some("LV-1050"));
        check("LV-9999", "lv 1050", Some("LV-1050"));
        check("99999", "1234", None);
        check("99999", "123456", None);
        check("9999 AA", "1012JS", Some("1012 JS"));
    }

    #[test]
    fn ranges_hold_beginnings() {
        assert!(begins_within("900-961", "94105"));
        assert!(!begins_within("900-961", "10001"));
        assert!(begins_within("T", "T2X1V4"));
        assert!(!begins_within("2600-2618", "26"));
    }
}

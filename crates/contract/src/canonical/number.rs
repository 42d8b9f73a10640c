//! Numbers as ECMAScript writes them (RFC 8785 §3.2.2.3).

use super::INTEGER_MAX;

/// The text of a double as ECMAScript's `String(x)` writes it; `None` where it is not finite.
///
/// This is the bare formatting rule, for any finite double; the writers above it also refuse whole
/// numbers beyond [`INTEGER_MAX`].
pub fn number_to_string(number: f64) -> Option<String> {
    number
        .is_finite()
        .then(|| ryu_js::Buffer::new().format_finite(number).to_owned())
}

/// Reason for which a number was not written; the caller adds the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    TooLarge,
    NotFinite,
}

pub(super) fn write_i64(number: i64, out: &mut Vec<u8>) -> Result<(), Refused> {
    if number.unsigned_abs() > INTEGER_MAX {
        return Err(Refused::TooLarge);
    }
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    Ok(())
}

pub(super) fn write_f64(number: f64, out: &mut Vec<u8>) -> Result<(), Refused> {
    // From 10^21 on ECMAScript writes an exponent; below it a large double would be written as the
    // digits of an integer, which the next reader would rightly refuse.
    const EXPONENT_FROM: f64 = 1e21;
    const WHOLE_FROM: f64 = 9_007_199_254_740_992.0;

    let magnitude = number.abs();
    if !number.is_finite() {
        return Err(Refused::NotFinite);
    }
    if (WHOLE_FROM..EXPONENT_FROM).contains(&magnitude) {
        return Err(Refused::TooLarge);
    }
    out.extend_from_slice(ryu_js::Buffer::new().format_finite(number).as_bytes());
    Ok(())
}

/// Writes a number whose text is known to follow the JSON grammar.
pub(super) fn write_text(number: &str, out: &mut Vec<u8>) -> Result<(), Refused> {
    // Fifteen digits never reach the limit, so most integers are copied without being parsed.
    const DIGITS_SAFE: usize = 15;

    if number.bytes().any(|b| matches!(b, b'.' | b'e' | b'E')) {
        // `parse` rounds correctly and gives infinity where the number is too large.
        let number = number.parse().map_err(|_| Refused::NotFinite)?;
        return write_f64(number, out);
    }
    let digits = number.strip_prefix('-').unwrap_or(number);
    if digits == "0" {
        out.push(b'0');
    } else if digits.len() <= DIGITS_SAFE || digits.parse().is_ok_and(|n: u64| n <= INTEGER_MAX) {
        out.extend_from_slice(number.as_bytes());
    } else {
        return Err(Refused::TooLarge);
    }
    Ok(())
}

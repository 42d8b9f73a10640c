//! JSON's string escapes, for the strict pass, the tolerant reader and the stream alike.

/// Decodes the escape at the start of `rest` (which begins with a backslash): the character and how
/// many bytes it took. None where JSON has no such escape, or half of a surrogate pair is missing.
pub(crate) fn decode(rest: &[u8]) -> Option<(char, usize)> {
    let simple = |character| Some((character, 2));
    match rest.get(1)? {
        b'"' => simple('"'),
        b'\\' => simple('\\'),
        b'/' => simple('/'),
        b'b' => simple('\u{8}'),
        b'f' => simple('\u{c}'),
        b'n' => simple('\n'),
        b'r' => simple('\r'),
        b't' => simple('\t'),
        b'u' => {
            let high = hex4(rest.get(2..6)?)?;
            match high {
                0xd800..=0xdbff => {
                    if rest.get(6..8)? != b"\\u" {
                        return None;
                    }
                    let low = hex4(rest.get(8..12)?)?;
                    if !(0xdc00..=0xdfff).contains(&low) {
                        return None;
                    }
                    let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                    Some((char::from_u32(code)?, 12))
                }
                _ => Some((char::from_u32(high)?, 6)),
            }
        }
        _ => None,
    }
}

fn hex4(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, digit| {
        Some(value * 16 + char::from(*digit).to_digit(16)?)
    })
}

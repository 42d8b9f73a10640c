//! String escapes: those of JSON, used by the strict pass, the tolerant reader and the stream, and those of
//! Python.

/// Decodes the escape at the start of `rest` (which begins with a backslash). Returns the character and the
/// number of bytes. `None` if JSON has no such escape, or half of a surrogate pair is missing.
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
            let high = hex(rest.get(2..6)?)?;
            match high {
                0xd800..=0xdbff => {
                    if rest.get(6..8)? != b"\\u" {
                        return None;
                    }
                    let low = hex(rest.get(8..12)?)?;
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

/// Decodes `\x` with two digits or `\U` with eight, which Python has and JSON does not.
pub(crate) fn decode_foreign(rest: &[u8]) -> Option<(char, usize)> {
    let width = match rest.get(1)? {
        b'x' => 4,
        b'U' => 10,
        _ => return None,
    };
    let code = hex(rest.get(2..width)?)?;
    Some((char::from_u32(code)?, width))
}

/// True if a `\u` escape is half of a surrogate pair without the other half.
fn is_surrogate(rest: &[u8]) -> bool {
    rest.get(1) == Some(&b'u')
        && rest
            .get(2..6)
            .and_then(hex)
            .is_some_and(|code| (0xd800..=0xdfff).contains(&code))
}

/// True if a `\u` escape lost some of its digits, has them in braces as in other languages, or is half of a surrogate
/// pair: it stands for a character that is not known. A text that ends inside its digits is only cut off.
pub(crate) fn is_broken(rest: &[u8]) -> bool {
    let digits = rest.get(2..).unwrap_or_default();
    let begins = digits
        .first()
        .is_some_and(|byte| byte.is_ascii_hexdigit() || *byte == b'{');
    let whole = digits.iter().take(4).all(u8::is_ascii_hexdigit);
    is_surrogate(rest) || (rest.get(1) == Some(&b'u') && begins && !whole)
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, digit| {
        Some(value * 16 + char::from(*digit).to_digit(16)?)
    })
}

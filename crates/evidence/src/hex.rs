//! Lower-case hexadecimal, the only spelling in these formats.

/// Encodes bytes.
pub fn encode(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(nibble + if nibble < 10 { b'0' } else { b'a' - 10 });
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 0xf));
    }
    text
}

/// Decodes a text; `None` if it is not `N` bytes in lower-case digits.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    if pairs.len() != N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = (nibble(*high)? << 4) | nibble(*low)?;
    }
    Some(bytes)
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_spelling() {
        assert_eq!(encode(&[0x00, 0x9a, 0xff]), "009aff");
        assert_eq!(decode("009aff"), Some([0x00, 0x9a, 0xff]));
        for other in ["009AFF", "009af", "009aff0", "+09aff", "009aff00", ""] {
            assert_eq!(decode::<3>(other), None, "{other:?}");
        }
    }
}

//! CBOR (RFC 8949) in its deterministic encoding, as far as COSE messages of this crate need it.
//!
//! A value has one spelling: a reader refuses indefinite lengths, long forms of short numbers, unsorted or repeated
//! names in a map, and bytes behind the value.

/// Maximum nesting of a value that is read. A statement with its receipts needs six.
const DEPTH_MAX: usize = 16;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// A number from 0 on.
    Unsigned(u64),
    /// A number below 0: `-1 - n`.
    Negative(u64),
    Bytes(Vec<u8>),
    Text(String),
    Array(Vec<Value>),
    /// Members in the order of their encoded names.
    Map(Vec<(Value, Value)>),
    Tag(u64, Box<Value>),
    Null,
}

impl Value {
    /// Returns a number.
    pub(crate) const fn integer(number: i64) -> Self {
        if number < 0 {
            Self::Negative((!number).cast_unsigned())
        } else {
            Self::Unsigned(number.cast_unsigned())
        }
    }

    /// Returns a text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Returns a map with numbers as names, sorted.
    pub(crate) fn map<const N: usize>(members: [(i64, Self); N]) -> Self {
        Self::sorted(members.map(|(name, value)| (Self::integer(name), value)))
    }

    /// Returns a map, sorted.
    pub(crate) fn sorted<const N: usize>(mut members: [(Self, Self); N]) -> Self {
        members.sort_by_cached_key(|(name, _)| name.encode());
        Self::Map(members.into())
    }

    /// Returns the member of a map with this number as its name.
    pub(crate) fn member(&self, name: i64) -> Option<&Self> {
        let Self::Map(members) = self else {
            return None;
        };
        let name = Self::integer(name);
        let found = members.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value)
    }

    /// Returns the bytes of a byte string.
    pub(crate) fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Unsigned(_)
            | Self::Negative(_)
            | Self::Text(_)
            | Self::Array(_)
            | Self::Map(_)
            | Self::Tag(..)
            | Self::Null => None,
        }
    }

    /// Returns a text.
    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self {
            return Some(text);
        }
        None
    }

    /// Returns the elements of an array.
    pub(crate) fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(elements) = self {
            return Some(elements);
        }
        None
    }

    /// Returns a number from 0 on.
    pub(crate) const fn as_unsigned(&self) -> Option<u64> {
        if let Self::Unsigned(number) = self {
            return Some(*number);
        }
        None
    }

    /// Encodes the value.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Unsigned(number) => head(out, 0, *number),
            Self::Negative(number) => head(out, 1, *number),
            Self::Bytes(bytes) => {
                head(out, 2, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
            Self::Text(text) => {
                head(out, 3, text.len() as u64);
                out.extend_from_slice(text.as_bytes());
            }
            Self::Array(elements) => {
                head(out, 4, elements.len() as u64);
                for element in elements {
                    element.write(out);
                }
            }
            Self::Map(members) => {
                head(out, 5, members.len() as u64);
                for (name, value) in members {
                    name.write(out);
                    value.write(out);
                }
            }
            Self::Tag(tag, value) => {
                head(out, 6, *tag);
                value.write(out);
            }
            Self::Null => out.push(0xf6),
        }
    }

    /// Decodes a value; `None` if the bytes are not the one encoding of one value.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader { rest: bytes };
        let value = reader.value(DEPTH_MAX)?;
        reader.rest.is_empty().then_some(value)
    }
}

/// Writes the head of a value: its kind and its number, in the shortest form.
fn head(out: &mut Vec<u8>, kind: u8, number: u64) {
    let kind = kind << 5;
    let bytes = number.to_be_bytes();
    let (form, length) = match number {
        0..=23 => {
            out.push(kind | number as u8);
            return;
        }
        24..=0xff => (24, 1),
        0x100..=0xffff => (25, 2),
        0x1_0000..=0xffff_ffff => (26, 4),
        0x1_0000_0000..=u64::MAX => (27, 8),
    };
    out.push(kind | form);
    out.extend(bytes.iter().skip(8 - length));
}

struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    fn take(&mut self, length: u64) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    /// The kind of the next value and its number.
    fn head(&mut self) -> Option<(u8, u64)> {
        let first = *self.take(1)?.first()?;
        let (kind, form) = (first >> 5, first & 0x1f);
        let length = match form {
            0..=23 => return Some((kind, u64::from(form))),
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            _ => return None,
        };
        let wide = |number, byte: &u8| (number << 8) | u64::from(*byte);
        let number = self.take(length)?.iter().fold(0_u64, wide);
        let is_short = match length {
            1 => number < 24,
            2 => number <= 0xff,
            4 => number <= 0xffff,
            _ => number <= 0xffff_ffff,
        };
        (!is_short).then_some((kind, number))
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        let before = self.rest;
        let (kind, number) = self.head()?;
        Some(match kind {
            0 => Value::Unsigned(number),
            1 => Value::Negative(number),
            2 => Value::Bytes(self.take(number)?.to_vec()),
            3 => Value::Text(str::from_utf8(self.take(number)?).ok()?.to_owned()),
            4 => {
                // Each element has a byte, so a claimed length cannot reserve more than there is.
                let mut elements = Vec::new();
                for _ in 0..number {
                    elements.push(self.value(depth)?);
                }
                Value::Array(elements)
            }
            5 => Value::Map(self.members(number, depth)?),
            6 => Value::Tag(number, Box::new(self.value(depth)?)),
            _ if before.first() == Some(&0xf6) => Value::Null,
            _ => return None,
        })
    }

    fn members(&mut self, count: u64, depth: usize) -> Option<Vec<(Value, Value)>> {
        let mut members = Vec::new();
        let mut last: Option<&[u8]> = None;
        for _ in 0..count {
            let before = self.rest;
            let name = self.value(depth)?;
            let spelled = before.get(..before.len() - self.rest.len())?;
            if last.is_some_and(|last| last >= spelled) {
                return None;
            }
            last = Some(spelled);
            members.push((name, self.value(depth)?));
        }
        Some(members)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hex;

    /// The examples of RFC 8949, appendix A, of the kinds that are known here.
    #[test]
    fn values_are_spelled_as_the_standard_does() {
        let integer = Value::integer;
        let text = |text: &str| Value::text(text);
        let list = |items: &[i64]| Value::Array(items.iter().copied().map(integer).collect());
        for (value, expected) in [
            (integer(0), "00"),
            (integer(23), "17"),
            (integer(24), "1818"),
            (integer(1000), "1903e8"),
            (integer(1_000_000), "1a000f4240"),
            (integer(1_000_000_000_000), "1b000000e8d4a51000"),
            (Value::Unsigned(u64::MAX), "1bffffffffffffffff"),
            (Value::Negative(u64::MAX), "3bffffffffffffffff"),
            (integer(-1), "20"),
            (integer(-100), "3863"),
            (integer(-1000), "3903e7"),
            (Value::Null, "f6"),
            (Value::Bytes(vec![1, 2, 3, 4]), "4401020304"),
            (text(""), "60"),
            (text("IETF"), "6449455446"),
            (text("\u{6c34}"), "63e6b0b4"),
            (list(&[1, 2, 3]), "83010203"),
            (Value::map([]), "a0"),
            (Value::map([(3, integer(4)), (1, integer(2))]), "a201020304"),
            (Value::Tag(1, integer(1_363_896_240).into()), "c11a514b67b0"),
        ] {
            let bytes = value.encode();
            assert_eq!(hex::encode(&bytes), expected);
            assert_eq!(Value::decode(&bytes), Some(value));
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        for bytes in [
            &[][..],
            &[0x18, 0x17],                   // 23 in two bytes
            &[0x19, 0x00, 0xff],             // 255 in three
            &[0x1b, 0, 0, 0, 0, 0, 0, 0, 1], // 1 in nine
            &[0x1c],                         // a reserved form
            &[0x5f, 0x41, 1, 0xff],          // a byte string of unknown length
            &[0x9f, 0x01, 0xff],             // an array of unknown length
            &[0xa2, 3, 4, 1, 2],             // names out of order
            &[0xa2, 1, 2, 1, 2],             // a name twice
            &[0x00, 0x00],                   // two values
            &[0x42, 0x01],                   // a string that is cut
            &[0x9a, 0xff, 0xff, 0xff, 0xff], // an array that is not there
            &[0x61, 0xff],                   // not UTF-8
            &[0xf4],                         // a truth value
            &[0xf8, 0xf6],
            &[0x81; 64], // nested too deep
        ] {
            assert_eq!(Value::decode(bytes), None, "{}", hex::encode(bytes));
        }
    }

    proptest! {
        /// Bytes that are read have no other spelling.
        #[test]
        fn what_is_read_is_written_alike(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(value) = Value::decode(&bytes) {
                prop_assert_eq!(value.encode(), bytes);
            }
        }
    }
}

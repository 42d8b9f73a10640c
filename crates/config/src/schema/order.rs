//! The order of the keys, as they are declared. A JSON object has none of its own: whether it keeps one depends on what
//! other crates of a build switch on.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::sections::Config;

/// Returns the position of a key among all; the last one for a key that is not declared here.
pub(super) fn place(key: &str) -> usize {
    static PLACES: LazyLock<BTreeMap<String, usize>> = LazyLock::new(|| {
        let text = serde_json::to_string(&Config::default()).unwrap_or_default();
        let mut keys = Vec::new();
        let mut reader = serde_json::Deserializer::from_str(&text);
        // The text is our own, so it is read to its end.
        let _ = Keys {
            prefix: "",
            keys: &mut keys,
        }
        .deserialize(&mut reader);
        keys.into_iter()
            .enumerate()
            .map(|(at, key)| (key, at))
            .collect()
    });
    PLACES.get(key).copied().unwrap_or(usize::MAX)
}

/// Gathers the keys of a JSON text in the order of the text.
struct Keys<'k> {
    prefix: &'k str,
    keys: &'k mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let key = match self.prefix {
                "" => name,
                prefix => format!("{prefix}.{name}"),
            };
            self.keys.push(key.clone());
            map.next_value_seed(Keys {
                prefix: &key,
                keys: self.keys,
            })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

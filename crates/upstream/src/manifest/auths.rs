//! The credentials of an upstream: none, one, or several that are sent together.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::{Auth, SecretRef};

/// The credentials of an upstream. A file has one as a table, and several as a list of tables: a service that wants a key and an
/// application key gets both with every request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Auths(Vec<Auth>);

impl Auths {
    /// True if no credential is sent.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The credentials, in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Auth> {
        self.0.iter()
    }

    /// True if one of them belongs to the user or the caller, so that there is none without a call.
    pub(crate) fn is_of_caller(&self) -> bool {
        self.iter().any(Auth::is_of_caller)
    }

    /// Every credential with the keys that lead to it, below that of the list.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (Option<usize>, &Auth)> {
        let is_one = self.0.len() == 1;
        let placed = self.0.iter().enumerate();
        placed.map(move |(at, auth)| ((!is_one).then_some(at), auth))
    }

    /// The secrets that they refer to, each with the keys that lead to it.
    pub(super) fn secrets(&self) -> impl Iterator<Item = (Vec<String>, &SecretRef)> {
        self.placed().filter_map(|(at, auth)| {
            let (keys, secret) = auth.secret()?;
            let at = at.map(|at| at.to_string()).into_iter();
            let keys = at.chain(keys.iter().map(|&key| key.to_owned()));
            Some((keys.collect(), secret))
        })
    }
}

impl From<Auth> for Auths {
    fn from(auth: Auth) -> Self {
        Self(vec![auth])
    }
}

impl FromIterator<Auth> for Auths {
    fn from_iter<I: IntoIterator<Item = Auth>>(auths: I) -> Self {
        Self(auths.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a Auths {
    type Item = &'a Auth;
    type IntoIter = std::slice::Iter<'a, Auth>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Auths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            all => all.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Auths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Auths;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a credential, or a list of credentials")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Auths, A::Error> {
                let one = Auth::deserialize(MapAccessDeserializer::new(map))?;
                Ok(one.into())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Auths, A::Error> {
                let mut auths = Vec::new();
                while let Some(auth) = seq.next_element()? {
                    auths.push(auth);
                }
                Ok(Auths(auths))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Auths {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Auths".into()
    }

    /// The forms of one credential, and a list of them, side by side: editors offer them as one choice.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = json_schema!({
            "type": "array",
            "items": generator.subschema_for::<Auth>(),
        });
        let mut schema = Auth::json_schema(generator);
        let forms = schema.get_mut("oneOf").and_then(|it| it.as_array_mut());
        if let Some(forms) = forms {
            forms.push(list.to_value());
        }
        schema.remove("description");
        schema
    }
}

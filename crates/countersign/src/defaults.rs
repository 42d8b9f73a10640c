//! Declared defaults, filled into the text of bound arguments so that no number goes through a float.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use countersign_args::Arguments;
use countersign_contract::{Input, ToolSpec};
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// The defaults of one object of a declaration, and of the objects inside it; prepared once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Defaults {
    /// From name to the JSON text that is filled in.
    members: BTreeMap<String, String>,
    /// Objects inside, by name.
    inside: BTreeMap<String, Defaults>,
    /// Defaults of each item of a list.
    items: Option<Box<Defaults>>,
    /// Defaults of each value of a map.
    values: Option<Box<Defaults>>,
}

impl Defaults {
    /// Reads a tool's declaration.
    pub(crate) fn of(spec: &ToolSpec) -> Self {
        match spec.input {
            Input::Undeclared => Self::default(),
            Input::Parameters(_) | Input::Schema(_) => Self::of_schema(&spec.json_schema()),
        }
    }

    fn of_schema(schema: &Value) -> Self {
        Collector {
            root: schema,
            open: Vec::new(),
            left: PARTS_MAX,
        }
        .collect(schema)
    }

    /// The arguments with the defaults of absent members; `None` if nothing is absent.
    ///
    /// An object that is itself absent stays absent: its members have nowhere to go.
    pub(crate) fn fill(&self, arguments: &Arguments) -> Option<Arguments> {
        if self.is_empty() {
            return None;
        }
        let filled = self.fill_text(arguments.as_json())?;
        // What is filled in is JSON between the braces of JSON.
        Arguments::from_json(&filled).ok()
    }

    fn is_empty(&self) -> bool {
        self.members.is_empty()
            && self.inside.is_empty()
            && self.items.is_none()
            && self.values.is_none()
    }

    fn fill_text(&self, json: &str) -> Option<String> {
        // A place may take a list or an object; what was sent decides.
        if json.trim_start().starts_with('[') {
            let items = self.items.as_deref()?;
            let sent: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            return rewrite('[', ']', sent.iter().map(|item| (None, item.get(), items)));
        }
        let sent: Members<'_> = serde_json::from_str(json).ok()?;
        let mut filled = rewrite(
            '{',
            '}',
            sent.0.iter().map(|(name, value)| {
                let inside = self.inside.get(&**name).or(self.values.as_deref());
                (Some(&**name), value.get(), inside.unwrap_or(&NONE))
            }),
        );
        for (name, value) in &self.members {
            if sent.0.iter().any(|(sent, _)| **sent == **name) {
                continue;
            }
            let filled = filled.get_or_insert_with(|| json.trim_end().to_owned());
            filled.pop();
            if !filled.trim_end().ends_with('{') {
                filled.push(',');
            }
            filled.push_str(&Value::from(&**name).to_string());
            filled.push(':');
            filled.push_str(value);
            filled.push('}');
        }
        filled
    }
}

static NONE: Defaults = Defaults {
    members: BTreeMap::new(),
    inside: BTreeMap::new(),
    items: None,
    values: None,
};

/// Writes a list or an object again if one of its parts has defaults to fill in.
fn rewrite<'a>(
    open: char,
    close: char,
    parts: impl Iterator<Item = (Option<&'a str>, &'a str, &'a Defaults)> + Clone,
) -> Option<String> {
    let filled: Vec<_> = parts
        .clone()
        .map(|(_, value, defaults)| {
            (!defaults.is_empty())
                .then(|| defaults.fill_text(value))
                .flatten()
        })
        .collect();
    if filled.iter().all(Option::is_none) {
        return None;
    }
    let mut text = String::from(open);
    for ((name, value, _), filled) in parts.zip(filled) {
        if text.len() > 1 {
            text.push(',');
        }
        if let Some(name) = name {
            text.push_str(&Value::from(name).to_string());
            text.push(':');
        }
        text.push_str(filled.as_deref().unwrap_or(value));
    }
    text.push(close);
    Some(text)
}

/// Most parts of a declaration that are looked at. Definitions that name each other twice double with each step; defaults behind this many
/// parts are not filled in.
const PARTS_MAX: usize = 20_000;

/// Gathers the defaults of a declaration.
struct Collector<'a> {
    root: &'a Value,
    /// References that lead to the current part.
    open: Vec<&'a str>,
    /// Parts that may still be looked at.
    left: usize,
}

impl<'a> Collector<'a> {
    fn collect(&mut self, schema: &'a Value) -> Defaults {
        let Some(left) = self.left.checked_sub(1) else {
            return Defaults::default();
        };
        self.left = left;
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            // A declaration that contains itself is followed once; deeper defaults are not declared
            // at a place that a reader of the schema could name.
            let root = self.root;
            let target = reference.strip_prefix('#').and_then(|at| root.pointer(at));
            return match target {
                Some(target) if !self.open.contains(&reference) => {
                    self.open.push(reference);
                    let defaults = self.collect(target);
                    self.open.pop();
                    defaults
                }
                Some(_) | None => Defaults::default(),
            };
        }
        let mut defaults = Defaults::default();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let inside = self.collect(property);
            if let Some(default) = property.get("default") {
                let default = default.to_string();
                let filled = inside.fill_text(&default).unwrap_or(default);
                defaults.members.insert(name.clone(), filled);
            }
            if !inside.is_empty() {
                defaults.inside.insert(name.clone(), inside);
            }
        }
        let mut each = |keyword| {
            let inside = self.collect(schema.get(keyword)?);
            (!inside.is_empty()).then(|| Box::new(inside))
        };
        defaults.items = each("items");
        defaults.values = each("additionalProperties");
        defaults
    }
}

/// The members of an object in the order in which they were sent, each with its own text.
pub(crate) struct Members<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry::<Cow<'de, str>, &'de RawValue>()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, arguments: &str, expected: Option<&str>) {
        let filled = Defaults::of_schema(schema).fill_text(arguments);
        assert_eq!(filled.as_deref(), expected);
    }

    #[test]
    fn absent_members_are_filled_in_and_numbers_keep_their_digits() {
        let schema = json!({"properties": {
            "limit": {"type": "integer", "default": 3},
            "sort": {"type": "string", "default": "new"},
            "n": {"type": "number"},
        }});
        check(&schema, "{}", Some(r#"{"limit":3,"sort":"new"}"#));
        check(
            &schema,
            r#"{"n":0.10000000000000000001,"sort":null}"#,
            Some(r#"{"n":0.10000000000000000001,"sort":null,"limit":3}"#),
        );
        check(&schema, r#"{"limit":1,"sort":"old"}"#, None);
    }

    #[test]
    fn objects_inside_are_filled_in_where_they_were_sent() {
        let line = json!({"type": "object", "properties": {"quantity": {"default": 1}}});
        let schema = json!({
            "properties": {
                "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
                "by_name": {"additionalProperties": {"$ref": "#/$defs/line"}},
                "tree": {"$ref": "#/$defs/tree"},
            },
            "$defs": {
                "line": line,
                "tree": {"properties": {"left": {"$ref": "#/$defs/tree"}, "n": {"default": 0}}},
            },
        });
        check(&schema, r#"{"lines":[]}"#, None);
        check(
            &schema,
            r#"{"lines":[{"sku":"A"},{"quantity":2}],"by_name":{"x":{}}}"#,
            Some(
                r#"{"lines":[{"sku":"A","quantity":1},{"quantity":2}],"by_name":{"x":{"quantity":1}}}"#,
            ),
        );
        check(&schema, r#"{"tree":{}}"#, Some(r#"{"tree":{"n":0}}"#));
    }

    /// Definitions that name each other twice end, whatever tool server has declared them.
    #[test]
    fn definitions_that_double_end() {
        let mut definitions = serde_json::Map::new();
        for at in 0..64 {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            let own = json!({"properties": {"a": next, "b": next}});
            definitions.insert(format!("d{at}"), own);
        }
        definitions.insert(
            "d64".to_owned(),
            json!({"properties": {"n": {"default": 0}}}),
        );
        let schema = json!({
            "properties": {"near": {"default": 1}, "x": {"$ref": "#/$defs/d0"}}, "$defs": definitions,
        });
        check(&schema, "{}", Some(r#"{"near":1}"#));
    }
}

//! The keywords of one schema of a document.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::super::document::Version;
use super::super::source::Node;
use super::super::text;
use super::choices::{Left, choices, is_exact};
use super::mark::Mark;
use super::{Converter, PARTS_MAX, Stop};

/// Returns the maximum length of a description at a depth: the outermost, which a model reads first, may be the longest.
pub(super) const fn description_chars(depth: usize) -> usize {
    match depth {
        0 => 180,
        1 => 110,
        _ => 70,
    }
}

/// Formats that the binder checks, or that say how a text is written.
const FORMATS: [&str; 12] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
    "uri",
    "byte",
    "binary",
];

const COUNTS: [&str; 6] = [
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];

impl<'d> Converter<'d> {
    /// A schema without its reference and its `allOf`.
    pub(super) fn plain(
        &mut self,
        node: &'d Node<'d>,
        depth: usize,
        is_part: bool,
    ) -> Result<Map<String, Value>, Stop> {
        let mut made = Map::new();
        let mut types = types(node);
        if types.is_empty() && node.get("properties").is_some_and(Node::is_object) {
            types.push("object");
        }
        if types.is_empty() && node.get("items").is_some() {
            types.push("array");
        }
        let is_nullable = node.is_true("nullable") || node.is_true("x-nullable");
        if is_nullable && !types.is_empty() && !types.contains(&"null") {
            types.push("null");
        }
        match choices(node, &mut types, is_nullable, &mut made) {
            Left::Nothing => {}
            Left::Type => Mark::Type.put(&mut made),
            Left::Choices => Mark::Choices.put(&mut made),
        }
        match types.as_slice() {
            [] => {}
            [one] => drop(made.insert("type".to_owned(), (*one).into())),
            _ => drop(made.insert("type".to_owned(), json!(types))),
        }
        describe(node, depth, &mut made);
        numbers(node, &mut made);
        for keyword in COUNTS {
            if let Some(Node::Number(count)) = node.get(keyword)
                && let Some(count) = count.as_u64().filter(|count| i64::try_from(*count).is_ok())
                && (count > 0 || keyword.starts_with("max"))
            {
                made.insert(keyword.to_owned(), count.into());
            }
        }
        if let Some(pattern) = node.text("pattern") {
            made.insert("pattern".to_owned(), strict(pattern).into());
        }
        if let Some(format) = node.text("format")
            && FORMATS.contains(&format)
        {
            made.insert("format".to_owned(), format.into());
        }
        if node.is_true("uniqueItems") {
            made.insert("uniqueItems".to_owned(), true.into());
        }
        self.lists(node, depth, &mut made)?;
        self.objects(node, depth, &mut made)?;
        self.unions(node, depth, is_part, is_nullable, &mut made)?;
        self.conditions(node, depth, &mut made)?;
        Ok(made)
    }

    fn lists(
        &mut self,
        node: &'d Node<'d>,
        depth: usize,
        made: &mut Map<String, Value>,
    ) -> Result<(), Stop> {
        let items = node.get("items");
        let prefix = match items {
            Some(Node::List(items)) => items.as_slice(),
            Some(_) | None => node.list("prefixItems"),
        };
        if !prefix.is_empty() {
            let mut all = Vec::new();
            for item in prefix {
                all.push(self.below(item, depth + 1)?);
            }
            made.insert("prefixItems".to_owned(), all.into());
        }
        if let Some(items) = items.filter(|it| it.is_object()) {
            let items = self.below(items, depth + 1)?;
            if items != json!({}) {
                made.insert("items".to_owned(), items);
            }
        }
        if self.document.version == Version::V31
            && let Some(contains) = node.get("contains")
        {
            let contains = self.below(contains, depth + 1)?;
            made.insert("contains".to_owned(), contains);
        }
        Ok(())
    }

    fn objects(
        &mut self,
        node: &'d Node<'d>,
        depth: usize,
        made: &mut Map<String, Value>,
    ) -> Result<(), Stop> {
        let required = node.list("required").iter().filter_map(Node::as_text);
        let required: Vec<&str> = required.collect();
        if required.len() > PARTS_MAX {
            return Err(Stop::TooLarge);
        }
        let needed: BTreeSet<&str> = required.iter().copied().collect();
        let mut read_only = BTreeSet::new();
        let mut properties = Map::new();
        let mut is_cut = false;
        for member in node.get("properties").map_or(&[][..], Node::members) {
            let name = &*member.name;
            if self.is_read_only(&member.node) {
                read_only.insert(name);
                continue;
            }
            if depth >= self.optional_depth && !needed.contains(name) {
                is_cut = true;
                continue;
            }
            let schema = self.below(&member.node, depth + 1)?;
            properties.insert(name.to_owned(), schema);
        }
        let mut kept = required;
        kept.retain(|name| !read_only.contains(name));
        if !properties.is_empty() {
            // What is required and not declared can be anything; undeclared, nobody could give it.
            for name in &kept {
                properties.entry(*name).or_insert_with(|| json!({}));
            }
            made.insert("properties".to_owned(), properties.into());
        }
        if !kept.is_empty() {
            made.insert("required".to_owned(), json!(kept));
        }
        match node.get("additionalProperties") {
            Some(Node::Bool(false)) if !is_cut => {
                made.insert("additionalProperties".to_owned(), false.into());
            }
            Some(Node::Bool(true)) => {
                made.insert("additionalProperties".to_owned(), true.into());
            }
            Some(schema) if schema.is_object() => {
                let schema = self.below(schema, depth + 1)?;
                let schema = if schema == json!({}) {
                    true.into()
                } else {
                    schema
                };
                made.insert("additionalProperties".to_owned(), schema);
            }
            Some(_) | None => {}
        }
        if is_cut {
            self.is_cut = true;
            made.entry("additionalProperties").or_insert(true.into());
        }
        if let Some(patterns) = node.get("patternProperties") {
            let mut all = Map::new();
            for member in patterns.members() {
                let schema = self.below(&member.node, depth + 1)?;
                all.insert(member.name.to_string(), schema);
            }
            made.insert("patternProperties".to_owned(), all.into());
        }
        Ok(())
    }

    fn unions(
        &mut self,
        node: &'d Node<'d>,
        depth: usize,
        is_part: bool,
        is_nullable: bool,
        made: &mut Map<String, Value>,
    ) -> Result<(), Stop> {
        for keyword in ["anyOf", "oneOf"] {
            let branches = node.list(keyword);
            if branches.is_empty() {
                continue;
            }
            let mut branches = self.branches(branches, depth, is_part)?;
            if is_nullable && !branches.is_empty() && !made.contains_key("type") {
                branches.push(json!({ "type": "null" }));
            }
            // A branch that takes everything makes a union of no meaning.
            if branches.is_empty() || branches.contains(&json!({})) {
                continue;
            }
            let more = match <[Value; 1]>::try_from(branches) {
                Ok([Value::Object(only)]) if !only.contains_key("$ref") => only,
                Ok(only) => Map::from_iter([("anyOf".to_owned(), only.to_vec().into())]),
                Err(branches) => Map::from_iter([("anyOf".to_owned(), branches.into())]),
            };
            super::merge::into(made, more);
        }
        Ok(())
    }

    /// Converts the keywords of JSON Schema that OpenAPI has had since 3.1 besides the common ones, and `not`, which is older.
    fn conditions(
        &mut self,
        node: &'d Node<'d>,
        depth: usize,
        made: &mut Map<String, Value>,
    ) -> Result<(), Stop> {
        let keywords: &[&str] = match self.document.version {
            Version::V2 => &[],
            Version::V30 => &["not"],
            Version::V31 => &["not", "if", "then", "else", "propertyNames"],
        };
        for keyword in keywords {
            if let Some(schema) = node.get(keyword) {
                let schema = self.schema(schema, depth)?;
                made.insert((*keyword).to_owned(), schema);
            }
        }
        Ok(())
    }
}

/// Removes names from `required` that no property has, if the schema is closed to others: they could never be given.
pub(crate) fn tidy_required(schema: &mut Map<String, Value>) {
    let is_open = match schema.get("additionalProperties") {
        None | Some(Value::Bool(false)) => false,
        Some(_) => true,
    };
    let properties = schema.get("properties").and_then(Value::as_object).cloned();
    let (Some(Value::Array(required)), Some(properties)) = (schema.get_mut("required"), properties)
    else {
        return;
    };
    required.retain(|name| {
        is_open
            || name
                .as_str()
                .is_some_and(|name| properties.contains_key(name))
    });
    if required.is_empty() {
        schema.remove("required");
    }
}

/// Returns the types that a schema allows, in the names of JSON Schema. An unknown name allows anything.
fn types(node: &Node<'_>) -> Vec<&'static str> {
    let listed: Vec<&Node<'_>> = match node.get("type") {
        None => return Vec::new(),
        Some(Node::List(types)) => types.iter().collect(),
        Some(one) => vec![one],
    };
    let mut types = Vec::new();
    for listed in listed {
        let known = match listed {
            Node::Null => Some("null"),
            Node::Text(name) => known_type(name),
            Node::Bool(_) | Node::Number(_) | Node::List(_) | Node::Object(_) => None,
        };
        let Some(known) = known else {
            return Vec::new();
        };
        if !types.contains(&known) {
            types.push(known);
        }
    }
    types
}

fn known_type(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "null" => "null",
        "boolean" | "bool" => "boolean",
        "integer" | "int" | "int32" | "int64" | "long" => "integer",
        "number" | "float" | "double" | "decimal" => "number",
        "string" | "file" | "text" | "date" | "datetime" | "date-time" | "uuid" | "uri" | "url" => {
            "string"
        }
        "array" | "list" => "array",
        "object" | "map" | "hash" | "dict" => "object",
        _ => return None,
    })
}

fn numbers(node: &Node<'_>, made: &mut Map<String, Value>) {
    let number = |keyword: &str| match node.get(keyword) {
        Some(Node::Number(number)) if is_exact(number) => Some(Value::Number(number.clone())),
        Some(_) | None => None,
    };
    for (bound, exclusive) in [
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ] {
        // OpenAPI 3.0 says by a boolean that the bound itself is not allowed.
        let keyword = if node.is_true(exclusive) {
            exclusive
        } else {
            bound
        };
        if let Some(number) = number(bound) {
            made.insert(keyword.to_owned(), number);
        }
        if let Some(number) = number(exclusive) {
            made.insert(exclusive.to_owned(), number);
        }
    }
    if let Some(step) = number("multipleOf").filter(|it| it.as_f64().is_some_and(|it| it > 0.0)) {
        made.insert("multipleOf".to_owned(), step);
    }
}

/// The description, with the default and an example in words.
fn describe(node: &Node<'_>, depth: usize, made: &mut Map<String, Value>) {
    let said = node
        .text("description")
        .or_else(|| node.text("title").filter(|_| depth == 0));
    let mut said = text::brief(said.unwrap_or_default(), description_chars(depth));
    let scalar = |keyword: &str| {
        let written = match node.get(keyword)? {
            Node::Text(text) => text::plain(text),
            Node::Number(number) => number.to_string(),
            Node::Bool(value) => value.to_string(),
            Node::Null | Node::List(_) | Node::Object(_) => return None,
        };
        (1..=40).contains(&written.len()).then_some(written)
    };
    let mut add = |word: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !said.contains(value.as_str())) {
            if !said.is_empty() && !said.ends_with(['.', '!', '?', '…', ')']) {
                said.push('.');
            }
            let space = if said.is_empty() { "" } else { " " };
            // Writing to a text cannot fail.
            let _ = write!(said, "{space}{word} {value}.");
        }
    };
    add("Default:", scalar("default"));
    if !made.contains_key("enum") && !made.contains_key("anyOf") && depth <= 1 {
        add("Example:", scalar("example"));
    }
    if !said.is_empty() {
        made.insert("description".to_owned(), said.into());
    }
}

/// A pattern as strict readers of ECMAScript take it. In a class, a hyphen behind a class such as `\w` cannot begin a range: older readers
/// take it for itself, and newer ones refuse the pattern. It is written with a backslash, which all of them take for itself.
fn strict(pattern: &str) -> String {
    let mut written = String::with_capacity(pattern.len());
    let (mut is_in_class, mut is_behind_class) = (false, false);
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        let mut is_class = false;
        match letter {
            '\\' => {
                written.push(letter);
                if let Some(escaped) = letters.next() {
                    is_class = is_in_class && "wWdDsS".contains(escaped);
                    written.push(escaped);
                }
            }
            '-' if is_behind_class && letters.peek() != Some(&']') => written.push_str("\\-"),
            _ => {
                is_in_class = (is_in_class || letter == '[') && letter != ']';
                written.push(letter);
            }
        }
        is_behind_class = is_class;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hyphen_behind_a_class_stands_for_itself() {
        let check = |pattern: &str, expected: &str| assert_eq!(strict(pattern), expected);
        check(r"^[\w-.+]+@[\w-.+]+$", r"^[\w\-.+]+@[\w\-.+]+$");
        check(r"(`[\w- ]+`)|([\w\-]+)", r"(`[\w\- ]+`)|([\w\-]+)");
        for kept in [
            r"[a-z]\w-\d",
            r"[\w-]",
            r"[\w\-x]",
            r"[\\-a]",
            r"[^\s,-]+",
            "",
        ] {
            check(kept, kept);
        }
    }
}

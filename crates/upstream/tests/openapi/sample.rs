//! Arguments that a schema accepts, drawn from a seed.

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Number, Value, json};

/// Draws values; the same seed gives the same ones.
pub(crate) struct Sampler<'s> {
    root: &'s Value,
    state: u64,
    runner: TestRunner,
}

/// Below this depth nothing optional is drawn.
const DEPTH_MAX: usize = 4;

/// Below this depth nothing is drawn: the schema requires a value inside itself, without end.
const DEPTH_END: usize = 60;

impl<'s> Sampler<'s> {
    pub(crate) fn new(root: &'s Value, seed: u64) -> Self {
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        // Texts of a pattern differ by the seed, too.
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&state.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let runner = TestRunner::new_with_rng(Config::default(), rng);
        Self {
            root,
            state,
            runner,
        }
    }

    /// A value of the whole schema.
    pub(crate) fn draw(&mut self) -> Value {
        self.value(self.root, 0)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % end.max(1)
    }

    fn value(&mut self, schema: &'s Value, depth: usize) -> Value {
        let Some(members) = schema.as_object().filter(|_| depth < DEPTH_END) else {
            return json!("any");
        };
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            let target = self.root.pointer(&reference[1..]).unwrap_or(&Value::Null);
            return self.value(target, depth + 1);
        }
        if let Some(choices) = members.get("enum").and_then(Value::as_array) {
            let at = self.below(choices.len() as u64) as usize;
            return choices[at].clone();
        }
        if let Some(only) = members.get("const") {
            return only.clone();
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = members.get(keyword).and_then(Value::as_array) {
                let at = if depth > DEPTH_MAX {
                    0
                } else {
                    self.below(branches.len() as u64) as usize
                };
                let mut made = self.value(&branches[at], depth);
                if let (Value::Object(made), Value::Object(own)) =
                    (&mut made, self.object(members, depth))
                {
                    for (name, value) in own {
                        made.entry(name).or_insert(value);
                    }
                }
                return made;
            }
        }
        match self.kind(members) {
            Some("boolean") => json!(self.below(2) == 0),
            Some("integer") => self.number(members, true),
            Some("number") => self.number(members, false),
            Some("array") => self.list(members, depth),
            Some("object") => self.object(members, depth),
            Some("null") => Value::Null,
            Some("string") => self.text(members),
            Some(_) | None => json!("any"),
        }
    }

    fn kind(&mut self, members: &'s Map<String, Value>) -> Option<&'s str> {
        match members.get("type")? {
            Value::Array(types) => {
                let types: Vec<&str> = types
                    .iter()
                    .filter_map(Value::as_str)
                    .filter(|it| *it != "null")
                    .collect();
                let at = self.below(types.len() as u64) as usize;
                types.get(at).copied().or(Some("null"))
            }
            one => one.as_str(),
        }
    }

    fn number(&mut self, members: &Map<String, Value>, is_whole: bool) -> Value {
        let bound = |name: &str| members.get(name).and_then(Value::as_f64);
        let least = bound("minimum").or(bound("exclusiveMinimum").map(|it| it + 1.0));
        let most = bound("maximum")
            .or(bound("exclusiveMaximum").map(|it| it - if is_whole { 1.0 } else { 0.5 }));
        let step = bound("multipleOf");
        let (least, most) = match (least, most) {
            (Some(least), Some(most)) => (least, most.max(least)),
            (Some(least), None) => (least, least + 50.0),
            (None, Some(most)) => (most - 50.0, most),
            (None, None) => (1.0, 50.0),
        };
        let span = (most - least).clamp(0.0, 1_000.0);
        let mut drawn = least + (self.below(span as u64 + 1) as f64).min(span);
        if let Some(step) = step.filter(|it| *it > 0.0) {
            drawn = (drawn / step).ceil() * step;
        }
        if is_whole || drawn.fract() == 0.0 {
            return json!(drawn.ceil() as i64);
        }
        Number::from_f64(drawn).map_or(json!(1), Value::Number)
    }

    fn text(&mut self, members: &Map<String, Value>) -> Value {
        let count = |name: &str| members.get(name).and_then(Value::as_u64);
        if let Some(pattern) = members.get("pattern").and_then(Value::as_str)
            && let Ok(strategy) = proptest::string::string_regex(
                &bare(pattern)
                    .replace("\\/", "/")
                    .replace("\\d", "[0-9]")
                    .replace("\\w", "[A-Za-z0-9_]")
                    .replace("\\s", "[ ]"),
            )
        {
            let bound = (
                count("minLength").unwrap_or(0),
                count("maxLength").unwrap_or(200),
            );
            for _ in 0..400 {
                let drawn = strategy
                    .new_tree(&mut self.runner)
                    .map(|it| it.current())
                    .unwrap_or_default();
                let length = drawn.chars().count() as u64;
                if (bound.0..=bound.1).contains(&length)
                    && drawn.chars().all(|it| matches!(it, ' '..='~'))
                {
                    return json!(drawn);
                }
            }
        }
        if members.get("contentEncoding") == Some(&json!("base64")) {
            return json!("YWJjZA==");
        }
        let drawn = match members.get("format").and_then(Value::as_str) {
            Some("date-time") => "2026-11-17T10:00:00Z",
            Some("date") => "2026-11-17",
            Some("time") => "10:00:00Z",
            Some("duration") => "PT5M",
            Some("email") => "ann@example.com",
            Some("hostname") => "host.example.com",
            Some("ipv4") => "192.0.2.1",
            Some("ipv6") => "2001:db8::1",
            Some("uuid") => "123e4567-e89b-42d3-a456-426614174000",
            Some("uri") => "https://example.com/a?b=c",
            Some("byte" | "binary") => "YWJjZA==",
            // Letters that have to be escaped somewhere.
            Some(_) | None => [
                "alpha",
                "b2",
                "Grün",
                "a/b",
                "x=y&z",
                "100%",
                "q\"uote",
                "plus+sign",
            ][self.below(8) as usize],
        };
        let mut drawn = drawn.to_owned();
        if let Some(most) = count("maxLength") {
            drawn = drawn.chars().take(most as usize).collect();
        }
        while (drawn.chars().count() as u64) < count("minLength").unwrap_or(1).min(400) {
            drawn.push('x');
        }
        json!(drawn)
    }

    fn list(&mut self, members: &'s Map<String, Value>, depth: usize) -> Value {
        let count = |name: &str| members.get(name).and_then(Value::as_u64);
        let least = count("minItems")
            .unwrap_or(0)
            .max(u64::from(depth <= DEPTH_MAX));
        let most = count("maxItems").unwrap_or(least + 2).max(least);
        let wanted = (least + self.below(most - least + 1).min(2)).min(most);
        let mut items: Vec<Value> = Vec::new();
        for schema in members
            .get("prefixItems")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            items.push(self.value(schema, depth + 1));
        }
        let schema = members.get("items").unwrap_or(&Value::Null);
        for _ in 0..wanted * 8 {
            if items.len() as u64 >= wanted {
                break;
            }
            let item = self.value(schema, depth + 1);
            if members.get("uniqueItems") != Some(&json!(true)) || !items.contains(&item) {
                items.push(item);
            }
        }
        items.into()
    }

    fn object(&mut self, members: &'s Map<String, Value>, depth: usize) -> Value {
        let required = members.get("required").and_then(Value::as_array);
        let required: Vec<&str> = required
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut made = Map::new();
        for (name, schema) in members
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let chance = if depth == 0 { 6 } else { 3 };
            let is_drawn = depth <= DEPTH_MAX && self.below(10) < chance;
            if required.contains(&name.as_str()) || is_drawn {
                made.insert(name.clone(), self.value(schema, depth + 1));
            }
        }
        let least = members
            .get("minProperties")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        let others = members
            .get("additionalProperties")
            .filter(|it| it.is_object());
        for number in 0..least.max(u64::from(others.is_some() && depth <= DEPTH_MAX)) {
            if let Some(schema) = others
                && (made.len() as u64) < least.max(1)
            {
                made.insert(format!("key{number}"), self.value(schema, depth + 1));
            }
        }
        for name in required {
            made.entry(name).or_insert(json!("any"));
        }
        made.into()
    }
}

/// A pattern for the whole text.
fn bare(pattern: &str) -> String {
    let pattern = pattern.strip_prefix('^').unwrap_or(pattern);
    let is_anchored = pattern.ends_with('$') && !pattern.ends_with("\\$");
    pattern
        .get(..pattern.len() - usize::from(is_anchored))
        .unwrap_or_default()
        .to_owned()
}

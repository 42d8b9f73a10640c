//! Values, read back from paths, queries, headers, forms and parts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::{Checked, Original, StyleOf, Unfit, essence};
use crate::excuse::{Broken, Whose};

/// Names and escaped values.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairs(pub(super) Vec<(String, String)>);

/// A separator that no escaped value has.
const CUT: &str = "\u{1}";

pub(super) fn unescaped(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

impl Pairs {
    pub(super) fn parse(text: &str, between: char) -> Self {
        let pairs = text.split(between).filter(|it| !it.is_empty());
        let pair = |it: &str| {
            let (name, value) = it.split_once('=').unwrap_or((it, ""));
            (unescaped(name), value.to_owned())
        };
        Self(pairs.map(pair).collect())
    }

    /// Splits the items of a list that is one value.
    pub(super) fn with(self, style: StyleOf, name: &str) -> Self {
        if style.explode || style.name == "deepObject" {
            return self;
        }
        let between = match style.name {
            "spaceDelimited" => "%20",
            "pipeDelimited" => "%7C",
            _ => ",",
        };
        let split = |(key, value): (String, String)| {
            let value = if key == name {
                value.replace(between, CUT)
            } else {
                value
            };
            (key, value)
        };
        Self(self.0.into_iter().map(split).collect())
    }

    pub(super) fn path(name: &str, value: &str, style: StyleOf) -> Self {
        let one = |text: String| Self(vec![(name.to_owned(), text)]);
        let (value, between) = match style.name {
            "label" => (
                value.strip_prefix('.').unwrap_or(value),
                if style.explode { "." } else { "," },
            ),
            "matrix" if style.explode => {
                let value = value.strip_prefix(';').unwrap_or(value);
                return Self::parse(value, ';');
            }
            "matrix" => (
                value.strip_prefix(&format!(";{name}=")).unwrap_or(value),
                ",",
            ),
            _ => (value, ","),
        };
        if style.explode && value.contains('=') {
            return Self::parse(&value.replace(between, "&"), '&');
        }
        one(value.replace(between, CUT))
    }

    pub(super) fn header(value: Option<&str>, style: StyleOf) -> Self {
        let Some(value) = value else {
            return Self::default();
        };
        // Headers are not escaped; commas stand between items.
        let escaped = value.replace('%', "%25");
        if style.explode && value.contains('=') {
            return Self::parse(&escaped.replace(',', "&"), '&');
        }
        Self(vec![(String::new(), escaped.replace(',', CUT))])
    }
}

/// The value that pairs stand for: the first reading that the schema accepts. If there is none, the error has what each reading breaks.
#[expect(clippy::too_many_lines, reason = "one arm a style")]
pub(super) fn decoded(
    original: &Original,
    schema: Option<&Value>,
    name: &str,
    pairs: &Pairs,
) -> Checked<Value> {
    let whole = |text: &str| unescaped(&text.replace(CUT, ","));
    let first = pairs.0.first().map_or("", |(_, value)| value);
    let Some(schema) = schema else {
        return Ok(json!(whole(first)));
    };
    let kinds = original.kinds(schema);
    let mut candidates: Vec<Value> = Vec::new();
    let below = format!("{name}[");
    let is_deep = pairs.0.iter().any(|(key, _)| key.starts_with(&below));
    if is_deep {
        candidates.extend(deep(original, schema, pairs));
    }
    if kinds.contains(&"array") && !is_deep {
        let texts = pairs
            .0
            .iter()
            .flat_map(|(_, value)| value.split(CUT))
            .map(unescaped);
        let items = member(original, schema, "items", None);
        candidates.push(
            texts
                .map(|text| typed(original, items.as_ref(), &text))
                .collect(),
        );
    }
    if kinds.contains(&"object") && !is_deep {
        let mut made = Map::new();
        let flat = pairs.0.len() == 1 && pairs.0[0].1.contains(CUT);
        let named: Vec<(String, String)> = if flat {
            let all: Vec<String> = pairs.0[0].1.split(CUT).map(unescaped).collect();
            all.chunks(2)
                .map(|it| (it[0].clone(), it.get(1).cloned().unwrap_or_default()))
                .collect()
        } else {
            pairs
                .0
                .iter()
                .map(|(name, value)| (name.clone(), whole(value)))
                .collect()
        };
        for (name, text) in named {
            let own = member(original, schema, "properties", Some(&name));
            made.insert(name, typed(original, own.as_ref(), &text));
        }
        candidates.push(Value::Object(made));
        let only = whole(&pairs.0[0].1);
        candidates.extend(
            serde_json::from_str::<Value>(&only)
                .ok()
                .filter(Value::is_object),
        );
    }
    let text = whole(first);
    candidates.push(json!(text));
    candidates.extend(serde_json::from_str::<Value>(&text).ok());
    let (mut all, mut reasons) = (Vec::new(), Vec::new());
    for candidate in candidates {
        match original.accepts(schema, &candidate) {
            Ok(()) => return Ok(candidate),
            Err(Unfit::Broken { why, broken, .. }) => {
                all.push(broken);
                reasons.push(why);
            }
            Err(untold @ Unfit::Untold(_)) => return Err(untold),
            Err(Unfit::Wrong(why)) => reasons.push(why),
        }
    }
    Err(Unfit::Broken {
        why: format!(
            "it is not as declared: {:?}: {}",
            pairs.0,
            reasons.join(" or ")
        ),
        whose: Whose::Body,
        broken: vec![Broken::Any(all)],
    })
}

/// A text as the schema has it: the text itself, or the number, boolean, list or object that it spells.
fn typed(original: &Original, schema: Option<&Value>, text: &str) -> Value {
    let as_text = json!(text);
    let Some(schema) = schema else {
        return as_text;
    };
    let spelt = serde_json::from_str::<Value>(text).ok();
    let is_nested = spelt
        .as_ref()
        .is_some_and(|it| it.is_object() || it.is_array());
    if !is_nested && original.accepts(schema, &as_text).is_ok() {
        return as_text;
    }
    spelt.unwrap_or(as_text)
}

/// The schema of the items, or of a member, looked for in all parts.
fn member(original: &Original, schema: &Value, keyword: &str, name: Option<&str>) -> Option<Value> {
    let schema = original.follow(schema);
    let own = schema.get(keyword).and_then(|it| match name {
        Some(name) => it.get(name),
        None => Some(it),
    });
    if let Some(own) = own {
        return Some(own.clone());
    }
    for keyword_of_parts in ["allOf", "anyOf", "oneOf"] {
        for part in schema
            .get(keyword_of_parts)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if let Some(found) = member(original, part, keyword, name) {
                return Some(found);
            }
        }
    }
    let others = schema
        .get("additionalProperties")
        .filter(|it| it.is_object() && name.is_some());
    others.cloned()
}

/// True if a schema has a member of this name, or takes any.
pub(super) fn declares(original: &Original, schema: &Value, name: &str) -> bool {
    let target = original.follow(schema);
    let is_free = target.get("properties").is_none()
        || target
            .get("additionalProperties")
            .is_some_and(|it| *it != json!(false));
    is_free || member(original, schema, "properties", Some(name)).is_some()
}

/// `a[b][0]=c`, to any depth.
fn deep(original: &Original, schema: &Value, pairs: &Pairs) -> Option<Value> {
    let mut root = Value::Null;
    for (name, value) in &pairs.0 {
        let (_, steps) = name.split_once('[')?;
        let steps: Vec<&str> = steps.trim_end_matches(']').split("][").collect();
        put(&mut root, &steps, unescaped(value));
    }
    Some(shaped(original, Some(schema), root))
}

fn put(place: &mut Value, steps: &[&str], text: String) {
    let Some((first, rest)) = steps.split_first() else {
        *place = json!(text);
        return;
    };
    if !place.is_object() {
        *place = json!({});
    }
    put(&mut place[*first], rest, text);
}

/// Objects with the names 0, 1, … are lists where the schema has lists; texts are what they spell.
fn shaped(original: &Original, schema: Option<&Value>, value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let is_list = schema.is_some_and(|it| original.kinds(it).contains(&"array"))
                && members.keys().all(|it| it.parse::<usize>().is_ok());
            if is_list {
                let items = schema.and_then(|it| member(original, it, "items", None));
                let mut listed: Vec<(usize, Value)> = members
                    .into_iter()
                    .map(|(key, it)| (key.parse().unwrap(), it))
                    .collect();
                listed.sort_by_key(|it| it.0);
                return listed
                    .into_iter()
                    .map(|(_, it)| shaped(original, items.as_ref(), it))
                    .collect();
            }
            let shape = |(name, it): (String, Value)| {
                let own =
                    schema.and_then(|schema| member(original, schema, "properties", Some(&name)));
                let shaped = shaped(original, own.as_ref(), it);
                (name, shaped)
            };
            Value::Object(members.into_iter().map(shape).collect())
        }
        Value::String(text) => typed(original, schema, &text),
        other => other,
    }
}

/// The members of a form, by their `encoding`.
pub(super) fn form(
    original: &Original,
    schema: &Value,
    encoding: Option<&Value>,
    text: &str,
) -> Checked<Value> {
    let mut made = Map::new();
    let pairs = Pairs::parse(text, '&');
    let mut names: Vec<String> = pairs
        .0
        .iter()
        .map(|(name, _)| name.split('[').next().unwrap_or_default().to_owned())
        .collect();
    // A name may itself have brackets.
    names.extend(pairs.0.iter().map(|(name, _)| name.clone()));
    let required = original.follow(schema).get("required").cloned();
    let is_required = |name: &String| {
        let listed = required.as_ref().and_then(Value::as_array);
        listed.is_some_and(|it| it.contains(&json!(name)))
    };
    names.retain(|name| {
        member(original, schema, "properties", Some(name)).is_some() || is_required(name)
    });
    names.sort();
    names.dedup();
    let mut left = pairs.0;
    for name in names {
        let own = member(original, schema, "properties", Some(&name));
        let own = own.unwrap_or(json!(true));
        let said = encoding.and_then(|it| it.get(&name));
        let style = said.and_then(|it| it.get("style")).and_then(Value::as_str);
        let explode = said
            .and_then(|it| it.get("explode"))
            .and_then(Value::as_bool);
        let is_deep = style == Some("deepObject");
        let (mine, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(|(key, _)| {
            *key == name || (is_deep && key.starts_with(&format!("{name}[")))
        });
        left = rest;
        if mine.is_empty() {
            continue;
        }
        let style_name = match style {
            Some("spaceDelimited") => "spaceDelimited",
            Some("pipeDelimited") => "pipeDelimited",
            Some("deepObject") => "deepObject",
            _ => "form",
        };
        let styled = StyleOf {
            name: style_name,
            explode: explode.unwrap_or(style_name == "form"),
        };
        let kinds = original.kinds(&own);
        let value = if style.is_none()
            && explode.is_none()
            && !kinds.contains(&"array")
            && kinds.contains(&"object")
        {
            // Without a style an object is JSON.
            serde_json::from_str(&unescaped(&mine[0].1))
                .map_err(|_| format!("{name} is no JSON"))?
        } else {
            let mine = Pairs(mine).with(styled, &name);
            decoded(original, Some(&own), &name, &mine).map_err(|why| why.in_member(&name))?
        };
        made.insert(name, value);
    }
    match left.first() {
        None => Ok(Value::Object(made)),
        Some((name, _)) => Err(format!("the form has {name:?}, which is not declared").into()),
    }
}

/// The schema of a member; one that is required and nothing else may be anything.
fn declared(original: &Original, schema: &Value, name: &str) -> Option<Value> {
    let required = member(original, schema, "required", None);
    let required = required.as_ref().and_then(Value::as_array);
    let is_required = required.is_some_and(|it| it.contains(&json!(name)));
    member(original, schema, "properties", Some(name)).or(is_required.then(|| json!({})))
}

/// The parts of a multipart body.
pub(super) fn parts(
    original: &Original,
    schema: &Value,
    content_type: &str,
    body: &[u8],
) -> Checked<Value> {
    let boundary = content_type
        .split("boundary=")
        .nth(1)
        .ok_or("no boundary")?
        .trim_matches('"');
    let marker = format!("--{boundary}").into_bytes();
    let mut places: Vec<usize> = Vec::new();
    for at in 0..body.len().saturating_sub(marker.len() - 1) {
        if body[at..].starts_with(&marker) {
            places.push(at);
        }
    }
    let mut found: Vec<(String, Value)> = Vec::new();
    for window in places.windows(2) {
        let part = &body[window[0] + marker.len()..window[1]];
        let part = part
            .strip_prefix(b"\r\n")
            .ok_or("a part without a line break")?;
        let part = part.strip_suffix(b"\r\n").ok_or("a part without an end")?;
        let end = part
            .windows(4)
            .position(|it| it == b"\r\n\r\n")
            .ok_or("a part without a head")?;
        let head = String::from_utf8_lossy(&part[..end]).into_owned();
        let content = &part[end + 4..];
        let name = head
            .split("name=\"")
            .nth(1)
            .and_then(|it| it.split('"').next())
            .ok_or("a part without a name")?;
        let name = name.replace("%22", "\"");
        let own = declared(original, schema, &name)
            .ok_or_else(|| format!("the part {name:?} is not declared"))?;
        let items = member(original, &own, "items", None);
        let lists = original.kinds(&own).contains(&"array");
        let of = items.as_ref().filter(|_| lists).unwrap_or(&own);
        let is_file = head.contains("filename=\"");
        let is_declared_file = {
            let it = original.follow(of);
            it["format"] == "binary" || it["type"] == "file"
        };
        if is_declared_file != is_file {
            return Err(format!("the part {name:?} is a file: {is_file}").into());
        }
        let text = String::from_utf8_lossy(content).into_owned();
        let value = if is_file {
            bytes(content)
        } else if head
            .to_ascii_lowercase()
            .contains("content-type: application/json")
        {
            serde_json::from_str(&text).map_err(|_| format!("the part {name:?} is no JSON"))?
        } else {
            typed(original, Some(of), &text)
        };
        found.push((name, value));
    }
    let mut made = Map::new();
    for (name, value) in found {
        let own = member(original, schema, "properties", Some(&name)).unwrap_or_default();
        if original.kinds(&own).contains(&"array") && !value.is_array() {
            let list = made.entry(name).or_insert_with(|| json!([]));
            list.as_array_mut()
                .ok_or("two parts of one name")?
                .push(value);
        } else if made.insert(name.clone(), value).is_some() {
            return Err(format!("two parts are {name:?}").into());
        }
    }
    Ok(Value::Object(made))
}

/// Bytes as the arguments have them.
pub(super) fn bytes(body: &[u8]) -> Value {
    json!(STANDARD.encode(body))
}

/// True for a media type of one JSON value; `ndjson` is a text with one in each line.
pub(super) fn is_json(kind: &str) -> bool {
    kind.ends_with("json") && !kind.ends_with("ndjson")
}

/// True if the body is no JSON, form or parts: its schema says nothing about it.
pub(super) fn is_raw(sent: &str) -> bool {
    let kind = essence(sent);
    !(is_json(&kind)
        || kind == "application/x-www-form-urlencoded"
        || kind == "multipart/form-data")
}

/// True if a declared media type, which may have stars, is the one that was sent.
pub(super) fn media_fits(declared: &str, sent: &str) -> bool {
    let (declared, sent) = (essence(declared), essence(sent));
    let is_multipart = declared.starts_with("multipart/") && sent.starts_with("multipart/");
    let json = sent == "application/json";
    declared == sent
        || is_multipart
        || declared.is_empty()
        || declared == "*"
        || (json && (declared.ends_with("json") || declared == "application/*+json"))
        || (sent == "application/x-www-form-urlencoded" && declared == "application/form-data")
        || declared
            .strip_suffix('*')
            .is_some_and(|it| it == "*/" || sent.starts_with(it))
}

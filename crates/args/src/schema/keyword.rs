//! Keywords of one schema object that need no other schema.

use countersign_contract::ValueKind;
use countersign_contract::parameter::{OnOptionalError, Sensitivity};
use countersign_contract::schema::ext;
use regex::Regex;
use serde_json::{Map, Value};

use super::compile::{Result, SchemaError};
use super::{Allowed, Member, NumberRules, Pattern, Rules, TextRules, Types};
use crate::fold::{fold_case, fold_value, letters};
use crate::format::Format;
use crate::number::Decimal;
use crate::tree::Kind;

pub(super) fn refuse<T>(path: &str, message: impl Into<String>) -> Result<T> {
    Err(SchemaError {
        path: path.to_owned(),
        message: message.into(),
    })
}

/// Refuses keywords that restrict what is valid and are not implemented: ignoring them would accept values that
/// the author refuses.
pub(super) fn refuse_unsupported(object: &Map<String, Value>, path: &str) -> Result<()> {
    for keyword in ["$dynamicRef", "$recursiveRef", "unevaluatedItems"] {
        if object.contains_key(keyword) {
            return refuse(
                path,
                format!("{keyword} is not supported; write the schema without it"),
            );
        }
    }
    // The taken branch of a union decides which members it has evaluated; that is not tracked.
    let branches = ["anyOf", "oneOf", "if", "not", "dependentSchemas"];
    match object.get("unevaluatedProperties") {
        None | Some(Value::Bool(true)) => Ok(()),
        Some(Value::Bool(false)) if !branches.iter().any(|key| object.contains_key(*key)) => Ok(()),
        Some(_) => refuse(
            path,
            "unevaluatedProperties is supported as true, or as false without branches beside it",
        ),
    }
}

pub(super) fn types(object: &Map<String, Value>, path: &str) -> Result<Types> {
    let one = |name: &Value| match name.as_str() {
        Some("null") => Ok(Types::NULL),
        Some("boolean") => Ok(Types::BOOLEAN),
        Some("integer") => Ok(Types::INTEGER),
        Some("number") => Ok(Types::NUMBER),
        Some("string") => Ok(Types::TEXT),
        Some("array") => Ok(Types::ARRAY),
        Some("object") => Ok(Types::OBJECT),
        _ => refuse(
            &format!("{path}/type"),
            format!("{name} is not one of null, boolean, integer, number, string, array, object"),
        ),
    };
    let mut types = match object.get("type") {
        None => return Ok(Types::ANY),
        Some(Value::Array(list)) => list
            .iter()
            .try_fold(Types::NEVER, |types, name| Ok(types.with(one(name)?)))?,
        Some(name) => one(name)?,
    };
    // The notation of OpenAPI 3.0, which many generators still use.
    if object.get("nullable") == Some(&Value::Bool(true)) {
        types = types.with(Types::NULL);
    }
    Ok(types)
}

pub(super) fn allowed(object: &Map<String, Value>, path: &str) -> Result<Option<Allowed>> {
    let values: Vec<&Value> = match (object.get("const"), object.get("enum")) {
        (Some(value), _) => vec![value],
        (None, Some(Value::Array(values))) => values.iter().collect(),
        (None, Some(_)) => return refuse(&format!("{path}/enum"), "it must be a list"),
        (None, None) => return Ok(None),
    };
    let members: Vec<Member> = values.iter().map(|value| member(value)).collect();
    let mut aliases = Vec::new();
    if let Some(table) = map(object, ext::ENUM_ALIASES, path)? {
        for name in table.keys() {
            let Some(at) = members.iter().position(|member| member.text == *name) else {
                return refuse(
                    path,
                    format!("{name:?} has aliases but is not a value of the enum"),
                );
            };
            aliases.extend(
                names(table, name, path)?
                    .iter()
                    .map(|alias| (fold_value(alias), at)),
            );
        }
    }
    let folds = object.get(ext::CASE).and_then(Value::as_str) != Some("exact");
    Ok(Some(Allowed {
        members,
        aliases,
        folds,
    }))
}

fn member(value: &Value) -> Member {
    let (kind, text) = match value {
        Value::Null => (Kind::Null, "null".to_owned()),
        Value::Bool(true) => (Kind::True, "true".to_owned()),
        Value::Bool(false) => (Kind::False, "false".to_owned()),
        Value::Number(number) => (Kind::Number, number.to_string()),
        Value::String(text) => (Kind::Text, text.clone()),
        Value::Array(_) => (Kind::Array, String::new()),
        Value::Object(_) => (Kind::Object, String::new()),
    };
    let container = matches!(kind, Kind::Array | Kind::Object);
    Member {
        kind,
        number: (kind == Kind::Number)
            .then(|| Decimal::parse(&text))
            .flatten(),
        folded: fold_value(&text),
        cased: fold_case(&text),
        letters: letters(&text),
        json: container.then(|| crate::render::of_value(value)),
        text,
    }
}

impl Allowed {
    pub(super) fn types(&self) -> Types {
        self.members.iter().fold(Types::NEVER, |types, member| {
            types.with(match member.kind {
                Kind::Null => Types::NULL,
                Kind::False | Kind::True => Types::BOOLEAN,
                Kind::Number => Types::NUMBER,
                Kind::Text => Types::TEXT,
                Kind::Array => Types::ARRAY,
                Kind::Object => Types::OBJECT,
            })
        })
    }
}

pub(super) fn number_rules(object: &Map<String, Value>, path: &str) -> Result<Option<NumberRules>> {
    let bound = |key: &str| match object.get(key) {
        None => Ok(None),
        Some(Value::Number(number)) => Ok(Decimal::parse(&number.to_string())),
        Some(_) => refuse(&format!("{path}/{key}"), "it must be a number"),
    };
    // OpenAPI 3.0 has draft 4, where `exclusiveMinimum: true` makes the `minimum` beside it exclusive.
    let bounds = |plain: &str, exclusive: &str| -> Result<_> {
        Ok(match object.get(exclusive) {
            Some(Value::Bool(true)) if object.contains_key(plain) => (None, bound(plain)?),
            Some(Value::Bool(false)) => (bound(plain)?, None),
            _ => (bound(plain)?, bound(exclusive)?),
        })
    };
    let (minimum, exclusive_minimum) = bounds("minimum", "exclusiveMinimum")?;
    let (maximum, exclusive_maximum) = bounds("maximum", "exclusiveMaximum")?;
    let mut rules = NumberRules {
        integers: None,
        minimum,
        maximum,
        exclusive_minimum,
        exclusive_maximum,
        multiple_of: bound("multipleOf")?,
    };
    let any = [
        &rules.minimum,
        &rules.maximum,
        &rules.exclusive_minimum,
        &rules.exclusive_maximum,
        &rules.multiple_of,
    ];
    let any = any.iter().any(|bound| bound.is_some());
    rules.integers = rules.range_of_integers();
    Ok(any.then_some(rules))
}

pub(super) fn text_rules(object: &Map<String, Value>, path: &str) -> Result<Option<TextRules>> {
    let pattern = match object.get("pattern") {
        None => None,
        Some(Value::String(source)) => Some(pattern(source, &format!("{path}/pattern"))?),
        Some(_) => return refuse(&format!("{path}/pattern"), "it must be a text"),
    };
    let rules = TextRules {
        min_length: count(object, "minLength", path)?,
        max_length: count(object, "maxLength", path)?,
        pattern,
        format: object
            .get("format")
            .and_then(Value::as_str)
            .and_then(Format::named),
    };
    let any = rules.min_length.is_some()
        || rules.max_length.is_some()
        || rules.pattern.is_some()
        || rules.format.is_some();
    Ok(any.then_some(rules))
}

/// Compiles a pattern in ECMAScript's syntax. Look-around and back-references are refused: the rest runs in
/// linear time, whatever the argument.
pub(super) fn pattern(source: &str, path: &str) -> Result<Pattern> {
    let mut translated = String::with_capacity(source.len());
    let mut characters = source.chars();
    while let Some(character) = characters.next() {
        translated.push(character);
        if character == '\\' {
            // ECMAScript's character classes are ASCII.
            match characters.next() {
                Some('d') => replace_escape(&mut translated, "[0-9]"),
                Some('D') => replace_escape(&mut translated, "[^0-9]"),
                Some('w') => replace_escape(&mut translated, "[A-Za-z0-9_]"),
                Some('W') => replace_escape(&mut translated, "[^A-Za-z0-9_]"),
                Some('/') => replace_escape(&mut translated, "/"),
                Some(escaped) => translated.push(escaped),
                None => {}
            }
        }
    }
    match Regex::new(&translated) {
        Ok(regex) => Ok(Pattern {
            source: source.to_owned(),
            regex,
        }),
        Err(error) => {
            let reason = error.to_string();
            let reason = reason
                .lines()
                .last()
                .unwrap_or_default()
                .trim_start_matches("error: ");
            refuse(
                path,
                format!("the pattern {source:?} cannot be used: {reason}"),
            )
        }
    }
}

fn replace_escape(translated: &mut String, class: &str) {
    translated.pop();
    translated.push_str(class);
}

/// Reads a property's rule for errors in it. A required property cannot be reported as absent, so the rule is
/// refused there.
pub(super) fn on_optional_error(
    property: &Map<String, Value>,
    is_required: bool,
    path: &str,
) -> Result<Option<OnOptionalError>> {
    let Some(rule) = property.get(ext::ON_OPTIONAL_ERROR) else {
        return Ok(None);
    };
    let path = format!("{path}/{}", ext::ON_OPTIONAL_ERROR);
    match rule.as_str() {
        Some("refuse") => Ok(Some(OnOptionalError::Refuse)),
        Some("tell") if is_required => refuse(
            &path,
            "an error in a required parameter refuses the call; make it optional, or leave this out",
        ),
        Some("tell") => Ok(Some(OnOptionalError::Tell)),
        Some(_) | None => refuse(&path, "it is refuse or tell"),
    }
}

pub(super) fn extensions(rules: &mut Rules, object: &Map<String, Value>, path: &str) -> Result<()> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    rules.kind = ValueKind::ALL
        .into_iter()
        .find(|kind| text(ext::KIND) == Some(kind.as_str()));
    rules.truncate = object.get(ext::TRUNCATE) == Some(&Value::Bool(true));
    rules.strict = match text(ext::LENIENCY) {
        None => None,
        Some("strict") => Some(true),
        Some("lenient") => Some(false),
        Some(_) => {
            return refuse(
                &format!("{path}/{}", ext::LENIENCY),
                "it is strict or lenient",
            );
        }
    };
    rules.sensitivity = match text(ext::SENSITIVITY) {
        None | Some("public") => Sensitivity::Public,
        Some("personal") => Sensitivity::Personal,
        Some("secret") => Sensitivity::Secret,
        Some(_) => {
            return refuse(
                &format!("{path}/{}", ext::SENSITIVITY),
                "it is public, personal or secret",
            );
        }
    };
    Ok(())
}

pub(super) fn count(object: &Map<String, Value>, key: &str, path: &str) -> Result<Option<usize>> {
    match object.get(key) {
        None => Ok(None),
        Some(value) => match value.as_u64().or_else(|| integral(value)) {
            Some(count) => Ok(Some(usize::try_from(count).unwrap_or(usize::MAX))),
            None => refuse(
                &format!("{path}/{key}"),
                "it must be a whole number from 0 on",
            ),
        },
    }
}

/// Reads an integral number; `2.0` is one in JSON Schema.
fn integral(value: &Value) -> Option<u64> {
    Decimal::parse(&value.to_string())?
        .to_integer(20)?
        .parse()
        .ok()
}

pub(super) fn names(object: &Map<String, Value>, key: &str, path: &str) -> Result<Vec<String>> {
    let wrong = || refuse(&format!("{path}/{key}"), "it must be a list of texts");
    match object.get(key) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => {
            match list.iter().map(|v| v.as_str().map(str::to_owned)).collect() {
                Some(names) => Ok(names),
                None => wrong(),
            }
        }
        Some(_) => wrong(),
    }
}

pub(super) fn map<'d>(
    object: &'d Map<String, Value>,
    key: &str,
    path: &str,
) -> Result<Option<&'d Map<String, Value>>> {
    match object.get(key) {
        None => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(_) => refuse(&format!("{path}/{key}"), "it must be an object"),
    }
}

/// Escapes a key for a JSON pointer.
pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

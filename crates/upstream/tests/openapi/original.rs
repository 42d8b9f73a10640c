//! A document as it was published, read without the importer: the requests that it demands.

mod body;
mod decode;
mod reach;
mod rewrite;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use jsonschema::ValidationError;
use serde_json::{Value, json};

use crate::excuse::{Broken, Whose};
use crate::service::Seen;
use decode::{Pairs, decoded, unescaped};

/// A document.
pub(crate) struct Original {
    pub(super) document: Value,
    /// The document with its schemas as JSON Schema 2020-12.
    schemas: Value,
    is_swagger: bool,
    /// Prepared schemas.
    validators: RefCell<HashMap<String, Rc<jsonschema::Validator>>>,
}

/// The values that were found in a request, as texts.
pub(crate) type Leaves = Vec<String>;

type Checked<T> = Result<T, Unfit>;

/// The reason why a request is not the one that the document describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// The request is wrong, as far as this reader can tell.
    Wrong(String),
    /// A value breaks rules of its schema.
    Broken {
        why: String,
        whose: Whose,
        broken: Vec<Broken>,
    },
    /// This reader cannot tell.
    Untold(String),
}

impl Unfit {
    pub(crate) fn why(&self) -> &str {
        match self {
            Self::Wrong(why) | Self::Broken { why, .. } | Self::Untold(why) => why,
        }
    }

    /// The same reason, at this member of the body.
    fn in_member(self, name: &str) -> Self {
        let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        match self {
            Self::Wrong(why) => Self::Wrong(format!("{name}: {why}")),
            Self::Broken { why, broken, .. } => Self::Broken {
                why: format!("{name}: {why}"),
                whose: Whose::Body,
                broken: broken.into_iter().map(|it| it.below(&pointer)).collect(),
            },
            Self::Untold(why) => Self::Untold(format!("{name}: {why}")),
        }
    }

    /// The same reason, in this parameter.
    fn in_parameter(self, parameter: &Value) -> Self {
        let name = parameter["name"].as_str().unwrap_or_default().to_owned();
        match self {
            Self::Wrong(why) => Self::Wrong(format!("{name:?}: {why}")),
            Self::Broken { why, broken, .. } => Self::Broken {
                why: format!("{name:?}: {why}"),
                whose: Whose::Parameter {
                    place: place(parameter),
                    name,
                },
                broken,
            },
            Self::Untold(why) => Self::Untold(format!("{name:?}: {why}")),
        }
    }
}

impl From<String> for Unfit {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

impl From<&str> for Unfit {
    fn from(why: &str) -> Self {
        Self::Wrong(why.to_owned())
    }
}

impl Original {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}');
        let document: Value = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| error.to_string())?
        } else {
            // In YAML 1.2, which OpenAPI is written in, `y` and `no` are texts.
            let options = serde_saphyr::options! { strict_booleans: true };
            let read = serde_saphyr::from_str_with_options(text, options);
            read.map_err(|error| error.to_string())?
        };
        Ok(Self {
            schemas: rewrite::schemas(&document),
            is_swagger: document.get("swagger").is_some(),
            validators: RefCell::default(),
            document,
        })
    }

    pub(super) fn follow<'v>(&'v self, value: &'v Value) -> &'v Value {
        let mut value = value;
        for _ in 0..40 {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else {
                break;
            };
            let pointer = unescaped(reference.trim_start_matches('#'));
            value = self.document.pointer(&pointer).unwrap_or(&Value::Null);
        }
        value
    }

    /// Checks a request against an operation (`GET /path`), and gives all values in it.
    pub(crate) fn check(&self, operation: &str, base: &str, seen: &Seen) -> Checked<Leaves> {
        let (method, path) = operation.split_once(' ').ok_or("no operation")?;
        if seen.method != method {
            return Err(format!("the method is {}", seen.method).into());
        }
        let item = self
            .document
            .get("paths")
            .and_then(|it| it.get(path))
            .ok_or("no such path")?;
        let item = self.follow(item);
        let declared = item
            .get(method.to_ascii_lowercase())
            .ok_or("no such method")?;
        let parameters = self.parameters(item, declared);
        let (sent_path, query) = seen.target.split_once('?').unwrap_or((&seen.target, ""));
        let sent_path = sent_path
            .strip_prefix(base)
            .ok_or_else(|| format!("{sent_path} is not below {base}"))?;
        let mut leaves = Leaves::new();
        self.path(path, sent_path, &parameters, &mut leaves)?;
        self.query(path, query, &parameters, &mut leaves)?;
        self.headers(seen, &parameters, &mut leaves)?;
        self.cookies(seen, &parameters, &mut leaves)?;
        if self.is_swagger {
            self.swagger_body(declared, &parameters, seen, &mut leaves)?;
        } else {
            self.body(declared, seen, &mut leaves)?;
        }
        Ok(leaves)
    }

    fn parameters<'v>(&'v self, item: &'v Value, operation: &'v Value) -> Vec<&'v Value> {
        let mut all: Vec<&Value> = Vec::new();
        let lists = [item, operation].map(|it| it.get("parameters").and_then(Value::as_array));
        for parameter in lists.into_iter().flatten().flatten() {
            let parameter = self.follow(parameter);
            let same =
                |it: &&Value| it["name"] == parameter["name"] && place(it) == place(parameter);
            all.retain(|it| !same(it));
            all.push(parameter);
        }
        all
    }

    /// The schema of a parameter, ready for the validator.
    fn schema_of<'v>(&self, parameter: &'v Value) -> (Option<&'v Value>, bool) {
        if let Some(content) = parameter.get("content").and_then(Value::as_object)
            && let Some((media, own)) = content.iter().next()
        {
            return (own.get("schema"), media.contains("json"));
        }
        if self.is_swagger {
            return (Some(parameter.get("schema").unwrap_or(parameter)), false);
        }
        (parameter.get("schema"), false)
    }

    fn path(
        &self,
        template: &str,
        sent: &str,
        parameters: &[&Value],
        leaves: &mut Leaves,
    ) -> Checked<()> {
        let template = template.split(['#', '?']).next().unwrap_or_default();
        let template = if template.starts_with('/') {
            template.to_owned()
        } else {
            format!("/{template}")
        };
        let mut rest = sent;
        let mut pieces = template.as_str();
        let mut known = Vec::new();
        while let Some((before, behind)) = pieces.split_once('{') {
            rest = rest
                .strip_prefix(before)
                .ok_or_else(|| format!("{sent} is not {template}"))?;
            let (name, after) = behind.split_once('}').ok_or("a broken path")?;
            let literal = after.split('{').next().unwrap_or_default();
            if literal.is_empty() && !after.is_empty() {
                let why = "two values of the path cannot be told apart";
                return Err(Unfit::Untold(why.to_owned()));
            }
            let end = if literal.is_empty() {
                rest.len()
            } else {
                rest.find(literal).ok_or("the path ends early")?
            };
            let (value, further) = rest.split_at(end);
            if value.is_empty() {
                return Err(format!("{{{name}}} is empty").into());
            }
            let declared = parameters
                .iter()
                .find(|it| place(it) == "path" && it["name"] == name);
            let is_repeated = known.contains(&name);
            known.push(name);
            match declared {
                _ if is_repeated => {}
                Some(parameter) => self.one(
                    parameter,
                    &Pairs::path(name, value, style_of(parameter)),
                    leaves,
                )?,
                None => leaves.push(unescaped(value)),
            }
            (rest, pieces) = (further, after);
        }
        if rest != pieces {
            return Err(format!("{sent} is not {template}").into());
        }
        Ok(())
    }

    fn query(
        &self,
        path: &str,
        query: &str,
        parameters: &[&Value],
        leaves: &mut Leaves,
    ) -> Checked<()> {
        let mut pairs = Pairs::parse(query, '&');
        // What stands in the path itself is fixed.
        let fixed = path
            .split('#')
            .next()
            .and_then(|it| it.split_once('?'))
            .map_or("", |(_, it)| it);
        let mine: Vec<&&Value> = parameters
            .iter()
            .filter(|it| place(it) == "query")
            .collect();
        for (name, value) in Pairs::parse(fixed, '&').0 {
            let is_declared = mine.iter().any(|it| it["name"] == name);
            if !is_declared && !value.contains('{') && !value.contains("%7B") {
                let at = pairs
                    .0
                    .iter()
                    .position(|it| it.0 == name)
                    .ok_or("a fixed pair is missing")?;
                pairs.0.remove(at);
            }
        }
        // Those that take any name come last.
        let takes_any = |it: &&&Value| self.takes_any_name(it);
        let (any, named): (Vec<&&Value>, Vec<&&Value>) = mine.into_iter().partition(takes_any);
        for parameter in named.into_iter().chain(any) {
            let own = self.taken(parameter, &mut pairs);
            self.one(parameter, &own, leaves)?;
        }
        pairs.0.retain(|(name, _)| !self.is_key(name));
        match pairs.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("the query has {name:?}, which is not declared").into()),
        }
    }

    /// True if a credential of this name is declared.
    fn is_key(&self, name: &str) -> bool {
        let components = self
            .document
            .get("components")
            .and_then(|it| it.get("securitySchemes"));
        let schemes = components
            .or_else(|| self.document.get("securityDefinitions"))
            .and_then(Value::as_object);
        schemes
            .into_iter()
            .flatten()
            .any(|(_, it)| it["name"] == name && it["type"] == "apiKey")
    }

    fn takes_any_name(&self, parameter: &Value) -> bool {
        let (schema, _) = self.schema_of(parameter);
        let schema = schema.filter(|_| parameter.get("content").is_none());
        let style = style_of(parameter);
        schema.is_some_and(|it| self.kinds(it).contains(&"object"))
            && style.name == "form"
            && style.explode
    }

    /// The pairs of a parameter.
    fn taken(&self, parameter: &Value, pairs: &mut Pairs) -> Pairs {
        let name = parameter["name"].as_str().unwrap_or_default();
        let style = style_of(parameter);
        let is_deep = style.name == "deepObject";
        let any = self.takes_any_name(parameter) && parameter.get("content").is_none();
        let (schema, _) = self.schema_of(parameter);
        let is_own = |key: &str| {
            let is_below = is_deep && key.starts_with(&format!("{name}["));
            is_below
                || key == name
                || (any && schema.is_some_and(|it| decode::declares(self, it, key)))
        };
        let (own, rest) = std::mem::take(&mut pairs.0)
            .into_iter()
            .partition(|(key, _)| is_own(key));
        pairs.0 = rest;
        Pairs(own).with(style, name)
    }

    fn headers(&self, seen: &Seen, parameters: &[&Value], leaves: &mut Leaves) -> Checked<()> {
        for parameter in parameters.iter().filter(|it| place(it) == "header") {
            let name = parameter["name"]
                .as_str()
                .unwrap_or_default()
                .to_ascii_lowercase();
            // The request has these without being told.
            let own = [
                "accept",
                "content-type",
                "authorization",
                "host",
                "idempotency-key",
                "x-request-id",
                "traceparent",
                "tracestate",
                "content-length",
                "transfer-encoding",
                "connection",
                "cookie",
            ];
            if own.contains(&name.as_str()) {
                continue;
            }
            let value = seen.headers.get(&name);
            // The request has these of its own.
            let is_own = |it: &&String| match name.as_str() {
                "user-agent" => it.starts_with("countersign/"),
                "accept-encoding" => *it == "gzip",
                _ => false,
            };
            let value = value.filter(|it| !is_own(it));
            self.one(
                parameter,
                &Pairs::header(value.map(String::as_str), style_of(parameter)),
                leaves,
            )?;
        }
        Ok(())
    }

    fn cookies(&self, seen: &Seen, parameters: &[&Value], leaves: &mut Leaves) -> Checked<()> {
        let is_header = |it: &&Value| {
            it["name"]
                .as_str()
                .is_some_and(|it| it.eq_ignore_ascii_case("cookie"))
        };
        let sent = parameters
            .iter()
            .find(|it| place(it) == "header" && is_header(it));
        if sent.is_some() && !seen.header("cookie").is_empty() {
            leaves.push(seen.header("cookie").to_owned());
            return Ok(());
        }
        if self.is_key("cookie") || self.is_key("Cookie") {
            return Ok(());
        }
        let mut pairs = Pairs::parse(&seen.header("cookie").replace("; ", "&"), '&');
        for parameter in parameters.iter().filter(|it| place(it) == "cookie") {
            let own = self.taken(parameter, &mut pairs);
            self.one(parameter, &own, leaves)?;
        }
        pairs.0.retain(|(name, _)| !self.is_key(name));
        if pairs.0.is_empty() {
            Ok(())
        } else {
            Err("a cookie is not declared".into())
        }
    }

    /// Checks one parameter.
    fn one(&self, parameter: &Value, pairs: &Pairs, leaves: &mut Leaves) -> Checked<()> {
        let name = parameter["name"].as_str().unwrap_or_default();
        if pairs.0.is_empty() {
            let is_needed = parameter.get("required") == Some(&json!(true));
            return if is_needed {
                Err(format!("{name:?} is missing").into())
            } else {
                Ok(())
            };
        }
        let (schema, is_json) = self.schema_of(parameter);
        let value = if is_json {
            serde_json::from_str(&unescaped(&pairs.0[0].1))
                .map_err(|_| format!("{name:?} is no JSON"))?
        } else {
            decoded(self, schema, name, pairs).map_err(|it| it.in_parameter(parameter))?
        };
        collect(&value, leaves);
        Ok(())
    }

    /// Checks a value against a schema of the document.
    pub(super) fn accepts(&self, schema: &Value, value: &Value) -> Checked<()> {
        let key = schema.to_string();
        let known = self.validators.borrow().get(&key).cloned();
        let validator = if let Some(validator) = known {
            validator
        } else {
            let validator = Rc::new(self.validator(schema)?);
            self.validators.borrow_mut().insert(key, validator.clone());
            validator
        };
        if validator.is_valid(value) {
            return Ok(());
        }
        let errors: Vec<ValidationError<'_>> = validator.iter_errors(value).collect();
        let told = errors
            .iter()
            .map(|error| format!("{error} at {}", error.instance_path()));
        Err(Unfit::Broken {
            why: told.collect::<Vec<_>>().join("; "),
            whose: Whose::Body,
            broken: Broken::of(&errors),
        })
    }

    fn validator(&self, schema: &Value) -> Checked<jsonschema::Validator> {
        let mut root = rewrite::of(schema, &self.document);
        reach::complete(&mut root, &self.schemas);
        jsonschema::validator_for(&root).or_else(|_| {
            // The engine of the validator may not know a pattern.
            let root = rewrite::without_patterns(&root);
            jsonschema::validator_for(&root)
                .map_err(|error| Unfit::Untold(format!("no validator: {error}")))
        })
    }

    /// The kinds of values that a schema takes.
    pub(super) fn kinds(&self, schema: &Value) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        self.gather(schema, &mut kinds, 0);
        kinds
    }

    fn gather(&self, schema: &Value, kinds: &mut Vec<&'static str>, depth: usize) {
        let schema = self.follow(schema);
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
            Some(one) => one.as_str().into_iter().collect(),
            None if schema.get("properties").is_some() => vec!["object"],
            None if schema.get("items").is_some() => vec!["array"],
            None => Vec::new(),
        };
        for name in types {
            kinds.push(match name {
                "array" => "array",
                "object" => "object",
                _ => "scalar",
            });
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for part in schema
                .get(keyword)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                if depth < 8 {
                    self.gather(part, kinds, depth + 1);
                }
            }
        }
    }
}

/// The style of a parameter, with the defaults of the specification.
#[derive(Debug, Clone, Copy)]
pub(super) struct StyleOf {
    pub(super) name: &'static str,
    pub(super) explode: bool,
}

fn style_of(parameter: &Value) -> StyleOf {
    let said = parameter.get("style").and_then(Value::as_str);
    let is_pairs = matches!(place(parameter).as_str(), "query" | "cookie" | "formdata");
    let collection = parameter.get("collectionFormat").and_then(Value::as_str);
    let is_swagger_list =
        parameter.get("type") == Some(&json!("array")) && parameter.get("schema").is_none();
    if collection.is_some() || is_swagger_list {
        return match collection.unwrap_or("csv") {
            "multi" => StyleOf {
                name: "form",
                explode: true,
            },
            "ssv" => StyleOf {
                name: "spaceDelimited",
                explode: false,
            },
            "pipes" => StyleOf {
                name: "pipeDelimited",
                explode: false,
            },
            _ => StyleOf {
                name: if is_pairs { "form" } else { "simple" },
                explode: false,
            },
        };
    }
    let name = match (said, is_pairs) {
        (Some("deepObject"), true) => "deepObject",
        (Some("spaceDelimited"), true) => "spaceDelimited",
        (Some("pipeDelimited"), true) => "pipeDelimited",
        (Some("label"), false) => "label",
        (Some("matrix"), false) => "matrix",
        (_, true) => "form",
        (_, false) => "simple",
    };
    let explode = parameter.get("explode").and_then(Value::as_bool);
    StyleOf {
        name,
        explode: explode.unwrap_or(name == "form"),
    }
}

pub(super) fn place(parameter: &Value) -> String {
    parameter
        .get("in")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_ascii_lowercase()
}

pub(super) fn essence(media: &str) -> String {
    media
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

/// Every value that is neither a list nor an object, as a text. Null says nothing.
pub(crate) fn collect(value: &Value, leaves: &mut Leaves) {
    match value {
        Value::Null => {}
        Value::Bool(value) => leaves.push(value.to_string()),
        Value::Number(number) => leaves.push(number.to_string()),
        Value::String(text) => leaves.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, leaves)),
        Value::Object(members) => members.values().for_each(|member| collect(member, leaves)),
    }
}

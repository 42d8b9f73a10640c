//! The arguments of a tool: parameters and members of the body under one roof, each with its schema and its place.

use serde_json::{Map, Value, json};

use super::Reason;
use super::body::{Body, Schema};
use super::document::Document;
use super::names::ArgumentNames;
use super::parameters::Parameter;
use super::schema::mark::{self, Mark};
use super::schema::{self, Converter, Stop};
use super::source::Node;
use super::text;
use crate::manifest::{ArgumentEntry, BodyFormat, Place};

/// An argument before it has its name.
#[derive(Debug, Clone)]
struct Argument {
    wire: String,
    place: Place,
    is_required: bool,
    schema: Value,
    entry: ArgumentEntry,
}

/// The arguments of a tool.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// JSON Schema of all.
    pub(crate) input: Map<String, Value>,
    /// Places.
    pub(crate) entries: Vec<(String, ArgumentEntry)>,
    /// Pairs of a name in the path and its argument.
    pub(crate) in_path: Vec<(String, String)>,
    /// Format of the body, if there is one.
    pub(crate) body: Option<BodyFormat>,
    /// True if optional members were left out.
    pub(crate) is_cut: bool,
    /// Notes about rules that are not checked.
    pub(crate) notes: Vec<String>,
}

/// Makes the arguments of an operation.
pub(crate) fn of<'d>(
    document: &'d Document<'d>,
    parameters: &[Parameter<'d>],
    undeclared: &[&str],
    body: Option<&Body<'d>>,
) -> Result<Arguments, Reason> {
    let convert = |converter: &mut Converter<'d>| {
        let mut all = Vec::new();
        for parameter in parameters {
            all.push(of_parameter(converter, parameter)?);
        }
        for name in undeclared {
            all.push(Argument {
                wire: (*name).to_owned(),
                place: Place::Path,
                is_required: true,
                schema: json!({ "type": "string", "minLength": 1 }),
                entry: ArgumentEntry::default(),
            });
        }
        if let Some(body) = body {
            all.extend(of_body(converter, body)?);
        }
        Ok(all)
    };
    let (all, converter) = schema::within_bounds(document, convert)?;
    let mut made = named(all, body);
    made.is_cut = converter.is_cut;
    if converter.is_body_opened {
        Mark::Closed.put(&mut made.input);
    }
    schema::inlined(&mut made.input, &converter.definitions());
    made.notes = mark::taken(&mut made.input);
    Ok(made)
}

fn of_parameter<'d>(
    converter: &mut Converter<'d>,
    parameter: &Parameter<'d>,
) -> Result<Argument, Stop> {
    let mut schema = match parameter.schema {
        Some(schema) => converter.root(schema)?,
        None => json!({}),
    };
    // In Swagger 2 the parameter is its own schema and is described already.
    let is_own = parameter
        .schema
        .is_some_and(|it| std::ptr::eq(it, parameter.node));
    if !is_own && let Some(description) = parameter.node.text("description") {
        describe(&mut schema, description);
    }
    if parameter.node.is_true("deprecated") {
        let told = schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let told = format!("Deprecated. {told}").trim_end().to_owned();
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), told.into());
        }
    }
    let place = parameter.entry.place.unwrap_or(Place::Query);
    // Of an empty list or object nothing is sent.
    let is_container = !is_of_type(&schema, "string");
    let is_needed = parameter.is_required && is_container && parameter.entry.as_json != Some(true);
    if place == Place::Path || is_needed {
        fill(&mut schema);
    }
    Ok(Argument {
        wire: parameter.name.to_owned(),
        place,
        is_required: parameter.is_required,
        schema,
        entry: parameter.entry.clone(),
    })
}

fn is_of_type(schema: &Value, name: &str) -> bool {
    schema.get("type").is_some_and(|own| own == name)
}

/// Says of a value that it is not empty: the path would be another one, or the parameter would be missing.
fn fill(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    let keyword = match schema.get("type").and_then(Value::as_str) {
        Some("array") => "minItems",
        Some("object") => "minProperties",
        // These say more of a text.
        Some("string") if !schema.contains_key("enum") && !schema.contains_key("format") => {
            "minLength"
        }
        Some(_) | None => return,
    };
    schema.entry(keyword).or_insert_with(|| 1.into());
}

/// Puts a description in front of the schema's own words about default and example.
fn describe(schema: &mut Value, description: &str) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    let mut told = text::brief(description, 180);
    if told.is_empty() {
        return;
    }
    let own = schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let more = ["Default: ", "Example: "]
        .iter()
        .filter_map(|word| own.find(word))
        .min();
    if let Some(more) = more.and_then(|at| own.get(at..))
        && !told.contains(more.trim_end_matches('.'))
    {
        let stop = if told.ends_with(['.', '!', '?', '…', ')']) {
            ""
        } else {
            "."
        };
        told = format!("{told}{stop} {more}");
    }
    schema.insert("description".to_owned(), told.into());
}

fn of_body<'d>(converter: &mut Converter<'d>, body: &Body<'d>) -> Result<Vec<Argument>, Stop> {
    let node = match &body.schema {
        Schema::Members(own) => return of_swagger_form(converter, body, own),
        Schema::Whole(node) => *node,
    };
    match body.format {
        BodyFormat::Text => {
            let schema = json!({ "type": "string", "description": "Text of the body." });
            Ok(vec![whole(body, schema)])
        }
        BodyFormat::Bytes => {
            let mut schema = json!({ "description": "Content of the body." });
            encoded(&mut schema);
            Ok(vec![whole(body, schema)])
        }
        BodyFormat::Json => {
            let schema = match node {
                Some(node) => converter.root(node)?,
                None => json!({}),
            };
            let Some((properties, required)) = spread(&schema, body.is_required) else {
                return Ok(vec![whole(body, schema)]);
            };
            converter.is_body_opened |= Mark::Closed.is_in(&schema);
            let document = converter.document;
            Ok(members(document, body, node, properties, &required))
        }
        BodyFormat::Form | BodyFormat::Multipart => {
            let empty = || {
                let media = body.content_type.clone();
                let media = media.unwrap_or_else(|| "body".to_owned());
                Stop::Refused(Reason::FormWithoutMembers { media })
            };
            let node = node.ok_or_else(empty)?;
            // A form with required members is not left out: the members are arguments, and cannot be absent together.
            let (properties, required) = form(converter, node)?;
            if properties.is_empty() {
                return Err(empty());
            }
            let document = converter.document;
            Ok(members(document, body, Some(node), properties, &required))
        }
    }
}

/// The members of a form of Swagger 2, which are parameters.
fn of_swagger_form<'d>(
    converter: &mut Converter<'d>,
    body: &Body<'d>,
    own: &[Parameter<'d>],
) -> Result<Vec<Argument>, Stop> {
    let mut all = Vec::new();
    for member in own {
        let mut argument = of_parameter(converter, member)?;
        argument.place = Place::Body;
        let schema = member.schema.unwrap_or(member.node);
        let entry = body.member(converter.document, member.name, schema);
        argument.entry.file = entry.file;
        if argument.entry.file.is_some() {
            encoded(&mut argument.schema);
        }
        all.push(argument);
    }
    Ok(all)
}

/// The members of a form. Those of every branch of a union are members; required is what every branch requires.
fn form<'d>(
    converter: &mut Converter<'d>,
    node: &'d Node<'d>,
) -> Result<(Map<String, Value>, Vec<String>), Stop> {
    let target = converter.document.follow(node)?;
    let branches = ["oneOf", "anyOf"]
        .into_iter()
        .flat_map(|it| target.list(it));
    let mut all: Option<(Map<String, Value>, Vec<String>)> = None;
    for branch in branches {
        let schema = converter.root(branch)?;
        converter.is_body_opened |= Mark::Closed.is_in(&schema);
        let (properties, required) = declared(&schema);
        match &mut all {
            None => all = Some((properties, required)),
            Some((known, needed)) => {
                needed.retain(|name| required.contains(name));
                for (name, schema) in properties {
                    known.entry(name).or_insert(schema);
                }
            }
        }
    }
    let (mut properties, mut required) = all.unwrap_or_default();
    let schema = converter.root(node)?;
    converter.is_body_opened |= Mark::Closed.is_in(&schema);
    let (own, needed) = declared(&schema);
    properties.extend(own);
    required.extend(needed);
    Ok((properties, required))
}

fn declared(schema: &Value) -> (Map<String, Value>, Vec<String>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    (
        properties.cloned().unwrap_or_default(),
        required.map(str::to_owned).collect(),
    )
}

/// The members of a JSON body that can be arguments of their own: those of a closed object that is required, or of which nothing is.
fn spread(schema: &Value, is_required: bool) -> Option<(Map<String, Value>, Vec<String>)> {
    const PLAIN: [&str; 6] = [
        "type",
        "properties",
        "required",
        "description",
        "additionalProperties",
        "title",
    ];
    let members = schema.as_object()?;
    let is_plain = members
        .keys()
        .all(|key| PLAIN.contains(&key.as_str()) || mark::is_mark(key));
    let is_object = schema.get("type") == Some(&json!("object"));
    let is_closed = matches!(
        schema.get("additionalProperties"),
        None | Some(Value::Bool(false))
    );
    let (properties, required) = declared(schema);
    let is_whole = required.iter().all(|name| properties.contains_key(name));
    let fits = is_plain && is_object && is_closed && is_whole && !properties.is_empty();
    (fits && (is_required || required.is_empty())).then_some((properties, required))
}

fn members<'d>(
    document: &'d Document<'d>,
    body: &Body<'d>,
    node: Option<&'d Node<'d>>,
    properties: Map<String, Value>,
    required: &[String],
) -> Vec<Argument> {
    let mut all = Vec::new();
    for (wire, schema) in properties {
        let own = node.and_then(|node| property(document, node, &wire));
        let entry = own
            .map(|own| body.member(document, &wire, own))
            .unwrap_or_default();
        let mut schema = schema;
        if entry.file.is_some() {
            encoded(&mut schema);
        }
        all.push(Argument {
            place: Place::Body,
            is_required: required.contains(&wire),
            schema,
            entry,
            wire,
        });
    }
    all
}

/// Says of a text, or of the items of a list, that it is the base64 of a file.
fn encoded(schema: &mut Value) {
    let is_list = schema.get("items").is_some();
    let place = if is_list {
        schema.get_mut("items")
    } else {
        Some(schema)
    };
    if let Some(text) = place.and_then(Value::as_object_mut) {
        text.remove("format");
        text.insert("type".to_owned(), "string".into());
        text.insert("contentEncoding".to_owned(), "base64".into());
    }
}

/// The schema of a property as the document has it.
fn property<'d>(
    document: &'d Document<'d>,
    node: &'d Node<'d>,
    name: &str,
) -> Option<&'d Node<'d>> {
    document.find_part(node, |part| part.get("properties")?.get(name))
}

fn whole(body: &Body<'_>, mut schema: Value) -> Argument {
    if let Some(description) = body.description {
        describe(&mut schema, description);
    }
    Argument {
        wire: "body".to_owned(),
        place: Place::WholeBody,
        is_required: body.is_required,
        schema,
        entry: ArgumentEntry::default(),
    }
}

/// Gives the arguments their names.
fn named(all: Vec<Argument>, body: Option<&Body<'_>>) -> Arguments {
    let mut names = ArgumentNames::default();
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut made = Arguments::default();
    let mut is_sent_whole = false;
    for argument in all {
        let place = match argument.place {
            Place::Path => "path",
            Place::Query => "query",
            Place::Header => "header",
            Place::Cookie => "cookie",
            Place::Body | Place::WholeBody => "body",
        };
        let name = names.name(&argument.wire, place);
        let mut entry = argument.entry;
        entry.place = Some(argument.place);
        if name != argument.wire && argument.place != Place::WholeBody {
            entry.name = Some(argument.wire.clone());
        }
        if argument.place == Place::Path {
            made.in_path.push((argument.wire, name.clone()));
        }
        is_sent_whole |= argument.place == Place::WholeBody;
        if let Some(only) = only_choice(&argument.schema).filter(|_| argument.is_required) {
            entry.preset = Some(only);
        } else {
            if argument.is_required {
                required.push(name.clone());
            }
            properties.insert(name.clone(), argument.schema);
        }
        made.entries.push((name, entry));
    }
    // A JSON body that may be left out is sent if one of its members is given.
    made.body = body.and_then(|body| {
        let is_json = body.format == BodyFormat::Json;
        let may_be_absent = is_json && (!body.is_required || is_sent_whole);
        (!may_be_absent).then_some(body.format)
    });
    made.input.insert("type".to_owned(), "object".into());
    if !properties.is_empty() {
        made.input
            .insert("properties".to_owned(), properties.into());
    }
    if !required.is_empty() {
        made.input.insert("required".to_owned(), required.into());
    }
    // Without it a tool without arguments would take any.
    made.input
        .insert("additionalProperties".to_owned(), false.into());
    made
}

/// The only value that an argument may have.
fn only_choice(schema: &Value) -> Option<Value> {
    let [only] = schema.get("enum")?.as_array()?.as_slice() else {
        return None;
    };
    (only.is_string() || only.is_number() || only.is_boolean()).then(|| only.clone())
}

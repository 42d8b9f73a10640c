//! The parameters of an operation: those of its path and its own, with the place and the style of each.

use std::collections::BTreeSet;

use super::Reason;
use super::document::{Document, Version};
use super::schema::PARTS_MAX;
use super::source::Node;
use crate::manifest::{ArgumentEntry, Place, Style};

/// A parameter as the document has it.
#[derive(Debug, Clone)]
pub(crate) struct Parameter<'d> {
    pub(crate) name: &'d str,
    pub(crate) place: In,
    pub(crate) is_required: bool,
    /// The parameter itself: its description, and in Swagger 2 its schema.
    pub(crate) node: &'d Node<'d>,
    /// Schema of the parameter; `None` if anything is allowed.
    pub(crate) schema: Option<&'d Node<'d>>,
    /// Place, name on the wire and style.
    pub(crate) entry: ArgumentEntry,
}

/// The place of a parameter, as the document names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum In {
    Path,
    Query,
    Header,
    Cookie,
    /// Swagger 2: the whole body.
    Body,
    /// Swagger 2: a member of a form.
    Form,
}

/// Headers that are no arguments: OpenAPI leaves the first three to the request, and the gateway writes the others.
const NO_PARAMETERS: [&str; 7] = [
    "accept",
    "content-type",
    "authorization",
    "idempotency-key",
    "traceparent",
    "tracestate",
    "x-request-id",
];

/// The parameters that apply to an operation. One of the operation replaces one of the path with the same name and place.
pub(crate) fn of<'d>(
    document: &'d Document<'d>,
    path_item: &'d Node<'d>,
    operation: &'d Node<'d>,
) -> Result<Vec<Parameter<'d>>, Reason> {
    let mut parameters: Vec<Parameter<'d>> = Vec::new();
    let all = path_item
        .list("parameters")
        .iter()
        .chain(operation.list("parameters"));
    for node in all {
        let node = document.follow(node)?;
        let Some(parameter) = read(document, node)? else {
            continue;
        };
        let same = |it: &Parameter<'d>| it.name == parameter.name && it.place == parameter.place;
        let is_full = parameters.len() == PARTS_MAX;
        match parameters.iter_mut().find(|it| same(it)) {
            Some(earlier) => *earlier = parameter,
            None if is_full => return Err(Reason::TooLarge { most: PARTS_MAX }),
            None => parameters.push(parameter),
        }
    }
    // Places have an order of their own, so that names are given out alike on every import.
    parameters.sort_by_key(|it| it.place);
    Ok(parameters)
}

fn read<'d>(
    document: &'d Document<'d>,
    node: &'d Node<'d>,
) -> Result<Option<Parameter<'d>>, Reason> {
    let Some(name) = node.text("name").filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let is_required = node.is_true("required");
    let said = node.text("in").unwrap_or_default().to_ascii_lowercase();
    let place = match said.as_str() {
        "path" => In::Path,
        "query" => In::Query,
        "header" => In::Header,
        "cookie" => In::Cookie,
        "body" if document.version == Version::V2 => In::Body,
        "formdata" if document.version == Version::V2 => In::Form,
        _ if !is_required => return Ok(None),
        _ => {
            let (name, place) = (name.to_owned(), said);
            return Err(Reason::Place { name, place });
        }
    };
    if place == In::Header && !is_argument(name) {
        return Ok(None);
    }
    if place == In::Header && !crate::manifest::is_header(name) {
        let name = name.to_owned();
        return if is_required {
            Err(Reason::Header { name })
        } else {
            Ok(None)
        };
    }
    let mut parameter = Parameter {
        name,
        place,
        is_required: is_required || place == In::Path,
        node,
        schema: None,
        entry: ArgumentEntry::default(),
    };
    parameter.entry.place = match place {
        In::Path => Some(Place::Path),
        In::Query => Some(Place::Query),
        In::Header => Some(Place::Header),
        In::Cookie => Some(Place::Cookie),
        In::Body | In::Form => None,
    };
    if document.version == Version::V2 {
        parameter.schema = Some(node.get("schema").unwrap_or(node));
        collection(&mut parameter)?;
    } else {
        parameter.schema = node.get("schema");
        if let Some(content) = node.get("content").and_then(|it| it.members().first()) {
            parameter.schema = content.node.get("schema");
            parameter.entry.as_json = is_json(&content.name).then_some(true);
        } else {
            style(&mut parameter);
        }
    }
    Ok(Some(parameter))
}

/// Checks that no two parameters write the same name into the query: the members of an object do, unless it is written as one value.
pub(crate) fn told_apart<'d>(
    document: &Document<'d>,
    parameters: &[Parameter<'d>],
) -> Result<(), Reason> {
    let mut names = BTreeSet::new();
    for parameter in parameters.iter().filter(|it| it.place == In::Query) {
        for name in written(document, parameter)? {
            if !names.insert(name) {
                let name = name.to_owned();
                return Err(Reason::SameName { name });
            }
        }
    }
    Ok(())
}

/// The names that a parameter writes into the query.
fn written<'d>(document: &Document<'d>, parameter: &Parameter<'d>) -> Result<Vec<&'d str>, Reason> {
    let ArgumentEntry {
        style,
        explode,
        as_json,
        ..
    } = &parameter.entry;
    let is_exploded = style.is_none_or(|style| style == Style::Form)
        && explode.unwrap_or(true)
        && *as_json != Some(true);
    let schema = parameter.schema.filter(|_| is_exploded);
    let schema = schema.map(|schema| document.follow(schema)).transpose()?;
    let members = schema.and_then(|schema| schema.get("properties"));
    Ok(match members.map(Node::members) {
        Some(members) => members.iter().map(|own| &*own.name).collect(),
        None => vec![parameter.name],
    })
}

/// True for `application/json` and its variants.
pub(crate) fn is_json(media: &str) -> bool {
    let kind = essence(media);
    kind == "application/json"
        || kind == "text/json"
        || kind == "applicationjson"
        || kind.ends_with("+json")
}

/// A media type without its parameters, in small letters.
pub(crate) fn essence(media: &str) -> String {
    let kind = media.split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// True if a header is an argument. Headers of the connection belong to the request itself, even if the document declares them.
fn is_argument(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_reserved = crate::manifest::is_header(name) && !crate::manifest::is_free_header(name);
    !NO_PARAMETERS.contains(&lower.as_str()) && !is_reserved
}

/// The style of OpenAPI 3.
fn style(parameter: &mut Parameter<'_>) {
    let node = parameter.node;
    let style = match (node.text("style"), parameter.place) {
        (Some("label"), In::Path) => Some(Style::Label),
        (Some("matrix"), In::Path) => Some(Style::Matrix),
        (Some("spaceDelimited"), In::Query) => Some(Style::SpaceDelimited),
        (Some("pipeDelimited"), In::Query) => Some(Style::PipeDelimited),
        (Some("deepObject"), In::Query) => Some(Style::DeepObject),
        // Any other is the usual one of the place, or is not defined for it.
        _ => None,
    };
    let usual = match parameter.place {
        In::Path | In::Header | In::Body | In::Form => Style::Simple,
        In::Query | In::Cookie => Style::Form,
    };
    let explodes = style.unwrap_or(usual).explodes();
    parameter.entry.style = style;
    if style != Some(Style::DeepObject) {
        parameter.entry.explode = node.bool("explode").filter(|it| *it != explodes);
    }
    if parameter.place == In::Query && node.is_true("allowReserved") {
        parameter.entry.allow_reserved = Some(true);
    }
}

/// The `collectionFormat` of Swagger 2.
pub(crate) fn collection(parameter: &mut Parameter<'_>) -> Result<(), Reason> {
    let is_pairs = matches!(parameter.place, In::Query | In::Form);
    let is_list = parameter.node.text("type") == Some("array");
    if !is_list {
        return Ok(());
    }
    let entry = &mut parameter.entry;
    match parameter.node.text("collectionFormat").unwrap_or("csv") {
        "multi" => {}
        "ssv" if is_pairs => entry.style = Some(Style::SpaceDelimited),
        "pipes" if is_pairs => entry.style = Some(Style::PipeDelimited),
        "tsv" => {
            return Err(Reason::Tabs {
                name: parameter.name.to_owned(),
            });
        }
        _ if is_pairs => entry.explode = Some(false),
        _ => {}
    }
    Ok(())
}

//! The answer of an operation: what to ask for, and how its pages could be fetched.

use super::document::{Document, Version};
use super::parameters::{In, Parameter, is_json};
use super::source::Node;

/// The `Accept` header, if the usual one would ask for the wrong thing: an answer that is never JSON, or JSON of a type of its own.
pub(crate) fn accept<'d>(document: &Document<'d>, operation: &'d Node<'d>) -> Option<String> {
    let media: Vec<String> = match document.version {
        Version::V2 => {
            let produces = operation
                .get("produces")
                .or_else(|| document.root().get("produces"));
            let produces = produces.map_or(&[][..], Node::items).iter();
            produces
                .filter_map(Node::as_text)
                .map(str::to_owned)
                .collect()
        }
        Version::V30 | Version::V31 => {
            let responses = operation.get("responses").map_or(&[][..], Node::members);
            let good = responses.iter().filter(|it| it.name.starts_with('2'));
            let good: Vec<&Node<'_>> = good
                .filter_map(|it| document.follow(&it.node).ok())
                .collect();
            let content = good.iter().filter_map(|it| it.get("content"));
            content
                .flat_map(Node::members)
                .map(|it| it.name.to_string())
                .collect()
        }
    };
    let is_usual =
        |media: &String| media.trim().starts_with("application/json") || media.starts_with("*/*");
    let is_header = |media: &String| {
        !media.trim().is_empty() && media.bytes().all(|b| (b' '..=b'~').contains(&b))
    };
    if media.is_empty() || media.iter().any(is_usual) {
        return None;
    }
    let best = media.iter().find(|it| is_json(it)).or(media.first());
    best.filter(|it| is_header(it))
        .map(|it| it.trim().to_owned())
}

/// A line that an operator can put into an entry of their own, if the parameters look like pages.
pub(crate) fn pages(parameters: &[Parameter<'_>]) -> Option<String> {
    let query = |names: &[&str]| {
        let is_it = |it: &&Parameter<'_>| {
            it.place == In::Query && names.contains(&it.name.to_ascii_lowercase().as_str())
        };
        parameters.iter().find(is_it).map(|it| it.name)
    };
    let cursors = [
        "cursor",
        "page_token",
        "pagetoken",
        "next_token",
        "nexttoken",
        "after",
        "continuation_token",
        "marker",
    ];
    // The cursor is the id of the last item, and no member of the answer.
    if let Some(name) = query(&["starting_after"]) {
        return Some(format!(
            "pagination = {{ by = {{ cursor = {{ parameter = {name:?}, last_item = \"/id\", more = \"/has_more\" }} }}, items = \"/data\" }}"
        ));
    }
    if let Some(name) = query(&cursors) {
        return Some(format!(
            "pagination = {{ by = {{ cursor = {{ parameter = {name:?}, next = \"/next\" }} }}, items = \"/items\" }}"
        ));
    }
    if let Some(name) = query(&["page", "page_number", "pagenumber"]) {
        return Some(format!(
            "pagination = {{ by = {{ page = {{ parameter = {name:?} }} }} }}"
        ));
    }
    let name = query(&["offset", "skip", "$skip", "start"])?;
    Some(format!(
        "pagination = {{ by = {{ offset = {{ parameter = {name:?} }} }} }}"
    ))
}

//! Mistakes in the request of a tool and in the places of its arguments.

use std::collections::BTreeSet;

use countersign_contract::Effect;

use super::{Checker, service};
use crate::manifest::{
    ArgumentEntry, BodyFormat, PageBy, PagePlace, Place, RequestEntry, Style, Template, ToolEntry,
    Way,
};

pub(super) fn check(tool: &ToolEntry, place: &mut Checker<'_>) {
    let declared = crate::declare::argument_names(tool);
    let names = match &tool.request {
        Some(request) => template(request, &mut place.key("request")),
        None => BTreeSet::new(),
    };
    for name in &names {
        let is_known = declared.contains(name) || tool.arguments.contains_key(name);
        if !is_known {
            let message = format!("{{{name}}} is not an argument of the tool; declare it");
            place.key("request").key("path").complain(message);
        }
    }
    for (key, argument) in &tool.arguments {
        let mut place = place.key("arguments");
        let mut place = place.key(key);
        if argument.preset.is_some() && argument.from_call.is_some() {
            place
                .key("from_call")
                .complain("the argument has a preset value already");
        }
        let way = Way::of(key);
        let Some(name) = way.argument() else {
            inside(argument, &mut place);
            continue;
        };
        if key != name && tool.arguments.contains_key(name) {
            place.complain("the argument has an entry under its name already; join them");
        }
        let is_filled = argument.preset.is_some() || argument.from_call.is_some();
        if !declared.contains(name) && !is_filled && argument.hidden != Some(true) {
            place.complain("the tool has no such argument; declare it, or correct the name");
        }
        if let Some(request) = &tool.request {
            argument_place(name, argument, request, &names, &mut place);
        }
    }
    if let Some(request) = &tool.request {
        whole_body(tool, request, &names, place);
    }
    if let Some(reconcile) = &tool.reconcile
        && let Some(request) = &reconcile.request
    {
        let mut below = place.key("reconcile");
        let mut below = below.key("request");
        let mut asked: Vec<String> = template(request, &mut below).into_iter().collect();
        for (key, texts) in [("query", &request.query), ("headers", &request.headers)] {
            for (name, text) in texts {
                match Template::parse(text) {
                    Ok(template) => asked.extend(template.names().map(str::to_owned)),
                    Err(error) => below.key(key).key(name).complain(error.to_string()),
                }
            }
        }
        for name in asked {
            let is_known = name == "idempotency_key"
                || declared.contains(&name)
                || tool.arguments.contains_key(&name);
            if !is_known {
                let message = format!(
                    "{{{name}}} is neither an argument of the tool nor {{idempotency_key}}"
                );
                below.complain(message);
            }
        }
    }
    answer_headers(tool, place);
    pagination(tool, place);
}

/// Complains about names of headers that none can have.
fn answer_headers(tool: &ToolEntry, place: &mut Checker<'_>) {
    if let Some(response) = &tool.response {
        let mut below = place.key("response");
        let mut below = below.key("headers");
        for (member, header) in &response.headers {
            if !service::is_header(header) {
                let message = format!("{header:?} is not the name of a header");
                below.key(member).complain(message);
            }
        }
    }
}

/// Complains about settings of a member inside an argument that are for whole arguments. A pointer that leads nowhere is found with the
/// schema.
fn inside(argument: &ArgumentEntry, place: &mut Checker<'_>) {
    let said = [
        ("in", argument.place.is_some()),
        ("name", argument.name.is_some()),
        ("style", argument.style.is_some()),
        ("explode", argument.explode.is_some()),
        ("allow_reserved", argument.allow_reserved.is_some()),
        ("as_json", argument.as_json.is_some()),
        ("file", argument.file.is_some()),
    ];
    for (key, _) in said.into_iter().filter(|(_, is_said)| *is_said) {
        let message = "it is for a whole argument, not for a member inside one; leave it out";
        place.key(key).complain(message);
    }
}

/// The names in a path.
fn template(request: &RequestEntry, place: &mut Checker<'_>) -> BTreeSet<String> {
    for name in request.headers.keys() {
        service::header(name, &mut place.key("headers").key(name));
    }
    let mut place = place.key("path");
    let path = &request.path;
    if !path.starts_with('/') {
        place.complain(format!("{path:?} does not start with /"));
    }
    if path.contains(['?', '#']) {
        place.complain("leave ? and # out; fixed parameters stand in request.query");
    }
    if path.contains(|c: char| c.is_control() || c == '\\') {
        place.complain("the path has a control character or a backslash; escape it as %XX");
    }
    if path.split('/').any(is_step) {
        place.complain("a step . or .. leads to another path; write the path that is meant");
    }
    match Template::parse(path) {
        Ok(template) => template.names().map(str::to_owned).collect(),
        Err(error) => {
            place.complain(error.to_string());
            BTreeSet::new()
        }
    }
}

/// True for the steps `.` and `..`, also if they are escaped.
fn is_step(step: &str) -> bool {
    let plain = step.to_ascii_lowercase().replace("%2e", ".");
    matches!(plain.as_str(), "." | "..")
}

fn argument_place(
    name: &str,
    argument: &ArgumentEntry,
    request: &RequestEntry,
    names: &BTreeSet<String>,
    place: &mut Checker<'_>,
) {
    let own = argument
        .place
        .unwrap_or_else(|| default_place(name, request, names));
    let wire = argument.name.as_deref().unwrap_or(name);
    let is_sent = argument.hidden != Some(true);
    match own {
        Place::Path if is_sent && !names.contains(name) => {
            place
                .key("in")
                .complain(format!("the path has no {{{name}}}"));
        }
        Place::Header if is_sent => service::header(wire, &mut place.key("name")),
        Place::Path
        | Place::Header
        | Place::Query
        | Place::Cookie
        | Place::Body
        | Place::WholeBody => {}
    }
    if let Some(style) = argument.style
        && !fits(style, own)
    {
        place
            .key("style")
            .complain("OpenAPI does not define this style for this place");
    }
    if argument.file.is_some() && request.body != Some(BodyFormat::Multipart) {
        place
            .key("file")
            .complain("a file needs request.body = \"multipart\"");
    }
}

/// The place of an argument that does not say it.
pub(crate) fn default_place(name: &str, request: &RequestEntry, names: &BTreeSet<String>) -> Place {
    if names.contains(name) {
        Place::Path
    } else if request.method.has_body() {
        Place::Body
    } else {
        Place::Query
    }
}

fn fits(style: Style, place: Place) -> bool {
    match place {
        Place::Path => matches!(style, Style::Simple | Style::Label | Style::Matrix),
        Place::Header => style == Style::Simple,
        Place::Cookie => style == Style::Form,
        Place::Query | Place::Body => matches!(
            style,
            Style::Form | Style::SpaceDelimited | Style::PipeDelimited | Style::DeepObject
        ),
        Place::WholeBody => false,
    }
}

fn whole_body(
    tool: &ToolEntry,
    request: &RequestEntry,
    names: &BTreeSet<String>,
    place: &mut Checker<'_>,
) {
    let whole = |argument: &ArgumentEntry| argument.place == Some(Place::WholeBody);
    let wholes = tool.arguments.values().filter(|it| whole(it)).count();
    for (key, own) in &tool.arguments {
        let way = Way::of(key);
        let Some(name) = way.argument() else { continue };
        let is_sent = own.preset.is_some() || own.from_call.is_some();
        let its_place = own
            .place
            .unwrap_or_else(|| default_place(name, request, names));
        if wholes > 0 && is_sent && its_place == Place::Body {
            place
                .key("arguments")
                .key(key)
                .complain("another argument is the whole body, so this one would not be sent");
        }
    }
    let mut below = place.key("request");
    let mut below = below.key("body");
    match request.body {
        Some(BodyFormat::Text | BodyFormat::Bytes) if wholes != 1 => {
            below.complain("exactly one argument needs in = \"whole_body\"");
        }
        Some(BodyFormat::Form | BodyFormat::Multipart) if wholes != 0 => {
            below.complain("a form is made of members; use in = \"body\"");
        }
        Some(_) | None if wholes > 1 => below.complain("two arguments are the whole body"),
        Some(_) | None => {}
    }
}

fn pagination(tool: &ToolEntry, place: &mut Checker<'_>) {
    let Some(pages) = &tool.pagination else {
        return;
    };
    let mut below = place.key("pagination");
    if tool.effect() != Effect::Read || tool.request.is_none() {
        below.complain("only a read with a request has pages");
    }
    if tool
        .response
        .as_ref()
        .is_some_and(|own| !own.headers.is_empty())
    {
        below.complain("pages have no headers in common; leave response.headers out");
    }
    below.key("items").pointer(&pages.items);
    below
        .key("pages_max")
        .within(pages.pages_max.into(), 1, 1_000);
    below
        .key("items_max")
        .within(pages.items_max.into(), 1, 1_000_000);
    let mut below = below.key("by");
    let (mut below, parameter, own) = match &pages.by {
        PageBy::Cursor {
            parameter,
            place,
            next,
            last_item,
            more,
        } => {
            let mut below = below.key("cursor");
            let said = [("next", next), ("last_item", last_item), ("more", more)];
            for (key, pointer) in said {
                if let Some(pointer) = pointer {
                    below.key(key).pointer(pointer);
                }
            }
            if next.is_some() == last_item.is_some() {
                below.complain("say where the cursor is: either next or last_item");
            }
            (below, parameter, *place)
        }
        PageBy::Page {
            parameter, place, ..
        } => (below.key("page"), parameter, *place),
        PageBy::Offset { parameter, place } => (below.key("offset"), parameter, *place),
        PageBy::NextUrl { next } => {
            below.key("next_url").key("next").pointer(next);
            return;
        }
        PageBy::Link {} => return,
    };
    let Some(request) = &tool.request else { return };
    match own {
        PagePlace::Body if !request.method.has_body() || !is_json(request) => {
            let message = "the request has no JSON body; leave this out";
            below.key("in").complain(message);
        }
        // The body would ask for the first page again and again.
        PagePlace::Query if is_in_body(tool, request, parameter) => {
            let message = "the argument is sent in the body; add in = \"body\"";
            below.key("parameter").complain(message);
        }
        PagePlace::Body | PagePlace::Query => {}
    }
}

fn is_json(request: &RequestEntry) -> bool {
    matches!(request.body, None | Some(BodyFormat::Json))
}

/// True if an argument of the tool is sent under this name in the body.
fn is_in_body(tool: &ToolEntry, request: &RequestEntry, parameter: &str) -> bool {
    let names = Template::parse(&request.path).map(|path| {
        let names = path.names().map(str::to_owned);
        names.collect::<BTreeSet<_>>()
    });
    let names = names.unwrap_or_default();
    let mut arguments = crate::declare::argument_names(tool);
    arguments.extend(tool.arguments.keys().cloned());
    arguments.iter().any(|name| {
        let own = tool.arguments.get(name);
        let wire = own.and_then(|own| own.name.as_deref()).unwrap_or(name);
        let place = own.and_then(|own| own.place);
        let place = place.unwrap_or_else(|| default_place(name, request, &names));
        wire == parameter && place == Place::Body
    })
}

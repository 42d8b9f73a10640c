//! The request of a tool, prepared once: where each argument goes. Filling it in is the only thing that a call does.

use std::collections::{BTreeMap, BTreeSet};

use countersign::{Arguments, CallContext, ToolError};
use countersign_contract::ErrorCode;
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use super::body::{self, Body, Member};
use super::node::{Members, Node};
use super::owned::{Owned, Part, cookie_names};
use super::style::{Writing, escape};
use crate::declare::SELECT;
use crate::manifest::{
    ArgumentEntry, BodyFormat, Method, Piece, Place, RequestEntry, Style, Template, TemplateError,
    ToolEntry, Upstream, Way, default_place,
};
use crate::preset::Presets;
use crate::words::Say;

/// A request template with the places of its arguments.
#[derive(Debug)]
pub(crate) struct Plan {
    method: Method,
    path: Template,
    query: Vec<(String, Template)>,
    headers: Vec<(String, Template)>,
    format: Option<BodyFormat>,
    content_type: Option<String>,
    accept: Option<String>,
    names: BTreeSet<String>,
    /// Names that only the operator writes.
    owned: Owned,
    /// Settings of whole arguments, by name.
    arguments: BTreeMap<String, ArgumentEntry>,
    presets: Presets,
    /// The request as an entry has it, for the default places.
    request: RequestEntry,
    /// True if `select` is the gateway's own argument.
    chooses: bool,
    /// True if the arguments are the body as they are.
    is_verbatim: bool,
    /// True if arguments that the path does not name are not sent.
    is_only_named: bool,
}

/// A request that is ready to be sent, any number of times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) method: Method,
    /// Below the base address, escaped.
    pub(crate) path: String,
    /// Escaped pairs.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Body>,
}

/// Arguments that are written when all are known.
#[derive(Default)]
struct Placed<'v> {
    in_path: BTreeMap<&'v str, String>,
    members: Vec<Member<'v>>,
    whole: Option<(&'v str, &'v RawValue)>,
    /// Escaped pairs.
    cookies: Vec<(String, String)>,
}

impl Plan {
    /// The request of a tool.
    pub(crate) fn of(entry: &ToolEntry) -> Result<Self, TemplateError> {
        let written_for_us = RequestEntry {
            method: Method::Post,
            path: format!("/tools/{}", entry.name),
            body: Some(BodyFormat::Json),
            content_type: None,
            accept: None,
            headers: BTreeMap::new(),
            query: BTreeMap::new(),
        };
        let request = entry.request.as_ref().unwrap_or(&written_for_us);
        let mut plan = Self::with(request, entry)?;
        let is_bare = plan
            .arguments
            .values()
            .all(|own| *own == ArgumentEntry::default());
        let is_bare = is_bare && plan.presets.is_empty();
        plan.is_verbatim = entry.request.is_none() && is_bare && !plan.chooses;
        Ok(plan)
    }

    /// Another request with the arguments of the same tool.
    pub(crate) fn with(request: &RequestEntry, entry: &ToolEntry) -> Result<Self, TemplateError> {
        let path = Template::parse(&request.path)?;
        let pairs = |map: &BTreeMap<String, String>| {
            let pair = |(name, text): (&String, &String)| (name.clone(), Template::fixed(text));
            map.iter().map(pair).collect()
        };
        let names = path.names().map(str::to_owned).collect();
        let arguments = entry.arguments.iter().filter_map(|(key, own)| {
            let way = Way::of(key);
            Some((way.argument()?.to_owned(), own.clone()))
        });
        Ok(Self {
            method: request.method,
            owned: Owned::of(request, entry, &names),
            names,
            path,
            query: pairs(&request.query),
            headers: pairs(&request.headers),
            format: request.body,
            content_type: request.content_type.clone(),
            accept: request.accept.clone(),
            arguments: arguments.collect(),
            presets: Presets::of(&entry.arguments),
            request: request.clone(),
            chooses: entry.response.as_ref().is_some_and(|it| it.select_by_model),
            is_verbatim: false,
            is_only_named: false,
        })
    }

    /// Returns the request for an upstream, whose own headers and credential no argument replaces.
    pub(crate) fn at(mut self, upstream: &Upstream) -> Self {
        self.owned.add_upstream(upstream);
        self
    }

    /// Returns the request with no arguments but those that its path, query and headers name.
    pub(crate) fn only_named(mut self) -> Result<Self, TemplateError> {
        let pairs = |map: &BTreeMap<String, String>| {
            let pair =
                |(name, text): (&String, &String)| Ok((name.clone(), Template::parse(text)?));
            map.iter().map(pair).collect::<Result<Vec<_>, _>>()
        };
        self.query = pairs(&self.request.query)?;
        self.headers = pairs(&self.request.headers)?;
        self.is_only_named = true;
        Ok(self)
    }

    /// Fills the arguments in. Nothing is sent if that fails.
    pub(crate) fn fill(
        &self,
        ctx: &CallContext,
        arguments: &Arguments,
    ) -> Result<Prepared, ToolError> {
        let mut prepared = Prepared {
            method: self.method,
            path: String::new(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
        };
        let values = if self.is_verbatim {
            Vec::new()
        } else {
            self.values(ctx, arguments)?
        };
        for (name, template) in &self.query {
            let text = filled(template, &values)?;
            prepared.query.push((escape(name), escape(&text)));
        }
        for (name, template) in &self.headers {
            let text = header_text(name, filled(template, &values)?)?;
            prepared.headers.push((name.clone(), text));
        }
        let is_accept = |(name, _): &(String, Template)| name.eq_ignore_ascii_case("accept");
        if self.accept.is_some() || !self.headers.iter().any(is_accept) {
            let accept = self.accept.as_deref();
            let accept = accept.unwrap_or("application/json, */*;q=0.5");
            prepared
                .headers
                .push(("Accept".to_owned(), accept.to_owned()));
        }
        if self.is_verbatim {
            prepared.path = self.path_of(&BTreeMap::new())?;
            prepared.body = Some(Body::json(arguments.as_json().to_owned()));
            return Ok(prepared);
        }
        let Placed {
            in_path,
            members,
            whole,
            cookies,
        } = self.place(&mut prepared, &values)?;
        prepared.path = self.path_of(&in_path)?;
        if !cookies.is_empty() {
            let pairs: Vec<_> = cookies.iter().map(|(k, v)| format!("{k}={v}")).collect();
            prepared
                .headers
                .push(("Cookie".to_owned(), pairs.join("; ")));
        }
        let is_made_of_members = match self.format {
            Some(BodyFormat::Json | BodyFormat::Form | BodyFormat::Multipart) => true,
            // Without its one argument there is no text and there are no bytes.
            Some(BodyFormat::Text | BodyFormat::Bytes) | None => false,
        };
        let is_needed = is_made_of_members || whole.is_some() || !members.is_empty();
        if is_needed {
            let format = self.format.unwrap_or(BodyFormat::Json);
            let mut body = if let Some((name, value)) = whole {
                body::whole(format, name, value)?
            } else {
                let boundary = ctx.new_id("part-");
                body::of_members(format, &members, &self.owned, &boundary)?
            };
            if let Some(own) = &self.content_type
                && format != BodyFormat::Multipart
            {
                body.content_type.clone_from(own);
            }
            prepared.body = Some(body);
        }
        Ok(prepared)
    }

    /// Writes queries and headers, and sorts the rest. A value of the caller's has no name that is the operator's.
    fn place<'v>(
        &'v self,
        prepared: &mut Prepared,
        values: &'v [(String, Box<RawValue>)],
    ) -> Result<Placed<'v>, ToolError> {
        let mut placed = Placed::default();
        let nothing = Owned::default();
        for (name, value) in values {
            if self.is_only_named && !self.names.contains(name) {
                continue;
            }
            let own = self.arguments.get(name);
            let place = own.and_then(|own| own.place);
            let place = place.unwrap_or_else(|| default_place(name, &self.request, &self.names));
            let wire = own.and_then(|own| own.name.as_deref()).unwrap_or(name);
            let node = body::node_of(own, value);
            let is_operators = own.is_some_and(ArgumentEntry::is_hidden);
            let owned = if is_operators { &nothing } else { &self.owned };
            match place {
                Place::Path => {
                    if climbs(&node.text()) {
                        return Err(not_in_path(name));
                    }
                    let writing = writing(own, Style::Simple);
                    if let (Node::Object(members), true) = (&node, writing.explode) {
                        let names = members.iter().map(|(name, _)| name.as_str());
                        owned.check(Part::Path, name, wire, names)?;
                    }
                    let text = writing.path(wire, &node);
                    placed.in_path.insert(name.as_str(), text);
                }
                Place::Query => {
                    let pairs = writing(own, Style::Form).pairs(wire, &node);
                    owned.check_pairs(Part::Query, name, wire, &pairs)?;
                    prepared.query.extend(pairs);
                }
                Place::Header if node == Node::Null => {}
                Place::Header => {
                    let text = writing(own, Style::Simple).header(&node);
                    owned.check(Part::Header, name, wire, [wire])?;
                    if wire.eq_ignore_ascii_case("cookie") {
                        for cookie in cookie_names(&text) {
                            owned.check(Part::Cookie, name, cookie, [cookie])?;
                        }
                    }
                    let text = header_text(name, text)?;
                    prepared.headers.push((wire.to_owned(), text));
                }
                Place::Cookie => {
                    // OpenAPI lets reserved characters stay in queries only; in cookies they separate.
                    let writing = Writing {
                        allow_reserved: false,
                        ..writing(own, Style::Form)
                    };
                    let pairs = writing.pairs(wire, &node);
                    owned.check_pairs(Part::Cookie, name, wire, &pairs)?;
                    placed.cookies.extend(pairs);
                }
                Place::Body => {
                    owned.check(Part::Body, name, wire, [wire])?;
                    placed.members.push(Member {
                        argument: name,
                        wire,
                        own,
                        value,
                    });
                }
                Place::WholeBody => placed.whole = Some((name.as_str(), value.as_ref())),
            }
        }
        Ok(placed)
    }

    /// The arguments that are sent, each as its JSON text: those of the call, presets, and members of the call.
    pub(crate) fn values(
        &self,
        ctx: &CallContext,
        arguments: &Arguments,
    ) -> Result<Vec<(String, Box<RawValue>)>, ToolError> {
        let Members(mut values) = arguments.parse().unwrap_or_default();
        if self.chooses {
            values.retain(|(name, _)| name != SELECT);
        }
        self.presets.fill(ctx, &mut values)?;
        Ok(values)
    }

    /// Builds the path with its values. A value cannot change the path: it is escaped, and it may be neither empty nor a step such as `..`.
    fn path_of(&self, values: &BTreeMap<&str, String>) -> Result<String, ToolError> {
        let mut path = String::new();
        for piece in self.path.pieces() {
            match piece {
                Piece::Text(text) => path.push_str(text),
                Piece::Name(name) => match values.get(name.as_str()) {
                    Some(value) if !value.is_empty() => path.push_str(value),
                    Some(_) | None => return Err(not_in_path(name)),
                },
            }
        }
        let is_step = |segment: &str| matches!(segment, "." | "..");
        if path.split('/').any(is_step) {
            let name = self
                .path
                .names()
                .find(|name| values.get(name).is_some_and(|it| is_step(it)));
            return Err(not_in_path(name.unwrap_or_default()));
        }
        Ok(path)
    }
}

/// Fills in a template. A missing value is an error, because the look-up would find something else.
fn filled(template: &Template, values: &[(String, Box<RawValue>)]) -> Result<String, ToolError> {
    let mut text = String::new();
    for piece in template.pieces() {
        match piece {
            Piece::Text(own) => text.push_str(own),
            Piece::Name(name) => {
                let value = values.iter().find(|(own, _)| own == name);
                let value = value.map(|(_, value)| Node::read(value.get()).text());
                let value = value.filter(|value| !value.is_empty());
                text.push_str(&value.ok_or_else(|| not_in_path(name))?);
            }
        }
    }
    Ok(text)
}

/// True if a text has a step up or a step in place, also for a service that takes escapes out before it looks for them.
fn climbs(text: &str) -> bool {
    let is_step = |text: &str| {
        let mut steps = text.split(['/', '\\', ';', ',']);
        steps.any(|step| matches!(step, "." | ".."))
    };
    let decoded = percent_decode_str(text).decode_utf8_lossy();
    let twice = percent_decode_str(&decoded).decode_utf8_lossy();
    is_step(text) || is_step(&decoded) || is_step(&twice)
}

fn not_in_path(name: &str) -> ToolError {
    let argument = name.to_owned();
    ToolError::invalid(pointer(name), Say::NotInPath { argument }).without_effect()
}

/// The JSON pointer of an argument.
pub(super) fn pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// A text that a header can have: no control characters, and no spaces around it, which are no part of a header's value.
fn header_text(name: &str, text: String) -> Result<String, ToolError> {
    if text.chars().any(char::is_control) || text.starts_with(' ') || text.ends_with(' ') {
        let argument = name.to_owned();
        let message = Say::NotInHeader { argument };
        return Err(ToolError::new(ErrorCode::InvalidArgument, message)
            .field(pointer(name))
            .without_effect());
    }
    Ok(text)
}

/// Returns the writing of an argument: its own settings, else the usual ones.
pub(super) fn writing(own: Option<&ArgumentEntry>, usual: Style) -> Writing {
    let style = own.and_then(|own| own.style).unwrap_or(usual);
    Writing {
        style,
        explode: own.and_then(|own| own.explode).unwrap_or(style.explodes()),
        allow_reserved: own.is_some_and(|own| own.allow_reserved == Some(true)),
    }
}

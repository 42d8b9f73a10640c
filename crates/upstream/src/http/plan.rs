//! The request of a tool, prepared once: where each argument goes. Filling it in is the only thing that a call does.

use std::collections::{BTreeMap, BTreeSet};

use countersign::{Arguments, CallContext, ToolError};
use countersign_contract::ErrorCode;
use serde_json::value::RawValue;

use super::body::{self, Body};
use super::node::{Members, Node};
use super::style::{Writing, escape};
use crate::declare::SELECT;
use crate::manifest::{
    ArgumentEntry, BodyFormat, CallMember, Method, Piece, Place, RequestEntry, Style, Template,
    TemplateError, ToolEntry, default_place,
};
use crate::words::Say;

/// A request template with the places of its arguments.
#[derive(Debug)]
pub(crate) struct Plan {
    method: Method,
    path: Template,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    format: Option<BodyFormat>,
    content_type: Option<String>,
    accept: Option<String>,
    names: BTreeSet<String>,
    arguments: BTreeMap<String, ArgumentEntry>,
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
        plan.is_verbatim = entry.request.is_none() && is_bare && !plan.chooses;
        Ok(plan)
    }

    /// Another request with the arguments of the same tool.
    pub(crate) fn with(request: &RequestEntry, entry: &ToolEntry) -> Result<Self, TemplateError> {
        let path = Template::parse(&request.path)?;
        let pairs = |map: &BTreeMap<String, String>| {
            map.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
        };
        Ok(Self {
            method: request.method,
            names: path.names().map(str::to_owned).collect(),
            path,
            query: pairs(&request.query),
            headers: pairs(&request.headers),
            format: request.body,
            content_type: request.content_type.clone(),
            accept: request.accept.clone(),
            arguments: entry.arguments.clone(),
            request: request.clone(),
            chooses: entry.response.as_ref().is_some_and(|it| it.select_by_model),
            is_verbatim: false,
            is_only_named: false,
        })
    }

    /// The same request with no arguments but those that its path names.
    pub(crate) fn only_named(mut self) -> Self {
        self.is_only_named = true;
        self
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
            query: self
                .query
                .iter()
                .map(|(k, v)| (escape(k), escape(v)))
                .collect(),
            headers: self.headers.clone(),
            body: None,
        };
        let accept = self.accept.as_deref();
        let accept = accept.unwrap_or("application/json, */*;q=0.5");
        prepared
            .headers
            .push(("Accept".to_owned(), accept.to_owned()));
        if self.is_verbatim {
            prepared.path = self.path_of(&BTreeMap::new())?;
            prepared.body = Some(Body::json(arguments.as_json().to_owned()));
            return Ok(prepared);
        }
        let values = self.values(ctx, arguments)?;
        let mut in_path = BTreeMap::new();
        let mut members = Vec::new();
        let mut whole = None;
        let mut cookies = Vec::new();
        for (name, value) in &values {
            if self.is_only_named && !self.names.contains(name) {
                continue;
            }
            let own = self.arguments.get(name);
            let place = own.and_then(|own| own.place);
            let place = place.unwrap_or_else(|| default_place(name, &self.request, &self.names));
            let wire = own.and_then(|own| own.name.as_deref()).unwrap_or(name);
            let node = body::node_of(own, value);
            match place {
                Place::Path => {
                    let writing = writing(own, Style::Simple);
                    in_path.insert(name.as_str(), writing.path(wire, &node));
                }
                Place::Query => {
                    let writing = writing(own, Style::Form);
                    prepared.query.extend(writing.pairs(wire, &node));
                }
                Place::Header if node == Node::Null => {}
                Place::Header => {
                    let text = writing(own, Style::Simple).header(&node);
                    prepared
                        .headers
                        .push((wire.to_owned(), header_text(name, text)?));
                }
                Place::Cookie => cookies.extend(writing(own, Style::Form).pairs(wire, &node)),
                Place::Body => members.push((wire, own, value)),
                Place::WholeBody => whole = Some((name, value)),
            }
        }
        prepared.path = self.path_of(&in_path)?;
        if !cookies.is_empty() {
            let pairs: Vec<_> = cookies.iter().map(|(k, v)| format!("{k}={v}")).collect();
            prepared
                .headers
                .push(("Cookie".to_owned(), pairs.join("; ")));
        }
        let is_needed = self.format.is_some() || whole.is_some() || !members.is_empty();
        if is_needed {
            let format = self.format.unwrap_or(BodyFormat::Json);
            let mut body = match whole {
                Some((name, value)) => body::whole(format, name, value)?,
                None => body::of_members(format, &members, &ctx.new_id("part-"))?,
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

    /// The arguments that are sent, each as its JSON text: those of the call, presets, and members of the call.
    fn values(
        &self,
        ctx: &CallContext,
        arguments: &Arguments,
    ) -> Result<Vec<(String, Box<RawValue>)>, ToolError> {
        let Members(mut values) = arguments.parse().unwrap_or_default();
        if self.chooses {
            values.retain(|(name, _)| name != SELECT);
        }
        for (name, own) in &self.arguments {
            if !own.is_hidden() {
                continue;
            }
            // The binder knows no such argument; a schema that takes any member would let it pass.
            if values.iter().any(|(sent, _)| sent == name) {
                let message = Say::HiddenArgument {
                    argument: name.clone(),
                };
                return Err(ToolError::invalid(pointer(name), message).without_effect());
            }
            let preset = own.preset.as_ref().map(ToString::to_string);
            let of_call = own.from_call.and_then(|member| of_call(ctx, member));
            let of_call = of_call.map(|text| serde_json::Value::from(text).to_string());
            let json = preset
                .or(of_call)
                .and_then(|text| RawValue::from_string(text).ok());
            if let Some(json) = json {
                values.push((name.clone(), json));
            }
        }
        Ok(values)
    }

    /// The path with its values. A value cannot make it another path: it is escaped, and it is no step up and not empty.
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

fn not_in_path(name: &str) -> ToolError {
    let argument = name.to_owned();
    ToolError::invalid(pointer(name), Say::NotInPath { argument }).without_effect()
}

/// The JSON pointer of an argument.
pub(super) fn pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// A text that a header can have.
fn header_text(name: &str, text: String) -> Result<String, ToolError> {
    if text.chars().any(char::is_control) {
        let argument = name.to_owned();
        let message = Say::NotInHeader { argument };
        return Err(ToolError::new(ErrorCode::InvalidArgument, message)
            .field(pointer(name))
            .without_effect());
    }
    Ok(text)
}

/// How an argument is written.
pub(super) fn writing(own: Option<&ArgumentEntry>, usual: Style) -> Writing {
    let style = own.and_then(|own| own.style).unwrap_or(usual);
    Writing {
        style,
        explode: own.and_then(|own| own.explode).unwrap_or(style.explodes()),
        allow_reserved: own.is_some_and(|own| own.allow_reserved == Some(true)),
    }
}

fn of_call(ctx: &CallContext, member: CallMember) -> Option<String> {
    let request = ctx.request();
    match member {
        CallMember::UserId => Some(request.user_id.clone()),
        CallMember::ActorId => Some(request.actor.id.clone()),
        CallMember::RequestId => Some(request.request_id.to_string()),
        CallMember::SessionId => request.session_id.clone(),
        CallMember::Locale => request.locale.clone(),
        CallMember::Currency => request.currency.clone(),
        CallMember::Timezone => request.timezone.clone(),
        CallMember::IdempotencyKey => ctx.downstream_key().map(str::to_owned),
    }
}

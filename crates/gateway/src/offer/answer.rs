//! The answers of the facade's own tools. They are made from the list of tools that the caller may call, and leave no record, as a list leaves
//! none; what `fetch_rest` opens does.

use std::sync::Arc;

use countersign::Principal;
use countersign::alias::in_text;
use countersign::catalog::Entry;
use countersign::contract::{
    Actor, ErrorBody, ErrorCode, Language, Message as _, ReplyEnvelope, RequestEnvelope, Warning,
};
use countersign::dialect::{Dialect, ToolListOptions, first_sentence};
use countersign::executor::{Reader, refusal_of};
use countersign_args::{Arguments, Reading};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Own;
use super::own::{SEARCH_LIMIT, SEARCH_LIMIT_MAX};
use super::search::areas;
use crate::gateway::Gateway;
use crate::nearest::nearest;
use crate::words::Say;

/// Maximum length of a description in a list of found tools, in characters.
const LINE_CHARS_MAX: usize = 200;

/// A call of one of the facade's own tools.
pub(crate) struct OwnCall<'a> {
    pub(crate) own: Own,
    /// The arguments as they were sent.
    pub(crate) arguments: &'a str,
    pub(crate) envelope: &'a RequestEnvelope,
    pub(crate) principal: &'a Principal,
}

#[derive(Deserialize)]
struct Searched {
    query: String,
    limit: Option<u64>,
}

#[derive(Deserialize)]
struct Described {
    name: String,
}

#[derive(Deserialize)]
struct Fetched {
    handle: String,
}

impl Gateway {
    /// Answers a call of one of the facade's own tools.
    pub(crate) async fn own(&self, call: &OwnCall<'_>) -> ReplyEnvelope {
        let chosen = call.envelope.request_id.clone();
        let request_id = chosen.unwrap_or_else(|| self.ids().request_id());
        let language = Language::of(call.envelope.locale.as_deref());
        match self.answered_own(call, language).await {
            Ok((data, warnings)) => ReplyEnvelope {
                warnings,
                ..ReplyEnvelope::success(request_id, data)
            },
            Err(error) => ReplyEnvelope::failure(request_id, error.in_language(language)),
        }
    }

    async fn answered_own(
        &self,
        call: &OwnCall<'_>,
        language: Language,
    ) -> Result<(Value, Vec<Warning>), ErrorBody> {
        let envelope = call.envelope;
        let reading = Reading::new(envelope.locale.as_deref(), envelope.timezone.as_deref());
        let bound = call.own.binder().bind_with(call.arguments, &reading);
        let Some(arguments) = bound.arguments.filter(|_| bound.status.is_executable()) else {
            return Err(refusal_of(bound.issues));
        };
        let warnings = bound.issues.into_iter().map(Warning::Issue).collect();
        let data = match call.own {
            Own::SearchTools => {
                let allowed = self.executor().list(call.principal).await?;
                self.found(&allowed, &parsed(&arguments).ok_or_else(unread)?, language)
            }
            Own::DescribeTool => {
                let allowed = self.executor().list(call.principal).await?;
                let Described { name } = parsed(&arguments).ok_or_else(unread)?;
                let name = name.trim();
                let described = self.described(&allowed, name);
                described.ok_or_else(|| no_tool(&allowed, name))?
            }
            Own::FetchRest => {
                let Fetched { handle } = parsed(&arguments).ok_or_else(unread)?;
                let reader = Reader {
                    principal: call.principal,
                    actor: actor(envelope, call.principal),
                    user_id: user_id(envelope, call.principal),
                };
                self.fetch_rest(&handle, &reader).await?
            }
            // Taken apart before it gets here.
            Own::CallTool => return Err(unread()),
        };
        Ok((data, warnings))
    }

    fn found(&self, allowed: &[Arc<Entry>], searched: &Searched, language: Language) -> Value {
        let limit = searched.limit.unwrap_or(SEARCH_LIMIT);
        let limit = usize::try_from(limit.clamp(1, SEARCH_LIMIT_MAX)).unwrap_or_default();
        let index = &self.catalog_view().index;
        let found = index.search(allowed, &searched.query, limit);
        let tools: Vec<Value> = found.tools.iter().map(|it| self.line(it)).collect();
        let mut data = json!({ "tools": tools, "found": found.count, "of": allowed.len() });
        if let Some(data) = data.as_object_mut().filter(|_| tools.is_empty()) {
            let areas = areas(allowed).into_iter();
            let areas = areas.map(|(area, tools)| json!({ "area": area, "tools": tools }));
            data.insert("areas".to_owned(), areas.collect());
            let hint = Say::SearchOtherwise.text(language);
            data.insert("hint".to_owned(), hint.into());
        }
        data
    }

    /// A tool in one line.
    fn line(&self, entry: &Entry) -> Value {
        let spec = entry.spec();
        let sentence = self.named(first_sentence(&spec.description));
        let mut description: String = sentence.chars().take(LINE_CHARS_MAX).collect();
        if description.len() < sentence.len() {
            description.push('…');
        }
        json!({
            "name": entry.alias(),
            "description": description,
            "effect": spec.behaviour.effect,
        })
    }

    /// The definition of a tool. One that the caller may not call is like one that there is not.
    fn described(&self, allowed: &[Arc<Entry>], name: &str) -> Option<Value> {
        let is_meant = |entry: &&Arc<Entry>| entry.name().as_str() == name || entry.alias() == name;
        let entry = allowed.iter().find(is_meant)?;
        let catalog = self.executor().catalog();
        let is_tool = |name: &str| catalog.get(name).is_some();
        let options = ToolListOptions::default();
        let list = Dialect::Mcp.tools_among(&[entry.spec()], &is_tool, &options);
        match list.ok()?.json {
            Value::Array(definitions) => definitions.into_iter().next(),
            _ => None,
        }
    }

    /// Tells a model that has called a tool by `call_tool` that there is not, which one it has probably meant.
    pub(crate) async fn point_to_search(
        &self,
        (name, principal): (&str, &Principal),
        language: Language,
        reply: &mut ReplyEnvelope,
    ) {
        if self.executor().catalog().get(name).is_none()
            && let Ok(allowed) = self.executor().list(principal).await
        {
            reply.error = Some(no_tool(&allowed, name).in_language(language));
        }
    }

    /// A text with the names of tools that a model knows.
    fn named(&self, text: &str) -> String {
        let catalog = self.executor().catalog();
        in_text(text, |name| catalog.get(name).is_some())
    }
}

/// Error for a tool that this caller does not have, with the nearest name that the caller has, if one is near.
fn no_tool(allowed: &[Arc<Entry>], name: &str) -> ErrorBody {
    let shown: String = name.chars().take(80).collect();
    let error = ErrorBody::new(ErrorCode::NotFound, Say::NoSuchTool { name: shown });
    let known = allowed.iter().map(|entry| entry.alias());
    match nearest(name, known) {
        Some(near) => error
            .hint(Say::DidYouMean {
                name: near.to_owned(),
            })
            .detail("did_you_mean", near),
        None => error.hint(Say::SearchFirst),
    }
}

fn parsed<T: DeserializeOwned>(arguments: &Arguments) -> Option<T> {
    arguments.parse().ok()
}

/// The refusal of what the binder let through and no type takes.
fn unread() -> ErrorBody {
    refusal_of(Vec::new())
}

/// User for whom a request is made. The permission is checked elsewhere.
fn user_id<'a>(envelope: &'a RequestEnvelope, principal: &'a Principal) -> &'a str {
    match &envelope.user_id {
        Some(id) if principal.may_act_for_others && principal.realm.has(id) => id,
        Some(_) | None => &principal.user_id,
    }
}

fn actor<'a>(envelope: &'a RequestEnvelope, principal: &'a Principal) -> &'a Actor {
    match &envelope.actor {
        Some(actor) if principal.may_act_for_others && principal.realm.has(&actor.id) => actor,
        Some(_) | None => &principal.actor,
    }
}

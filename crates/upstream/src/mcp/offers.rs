//! Resources, prompts and completions of MCP servers: listed from what each server said last, and passed on when they are asked for.
//!
//! A caller gets those of a server of which they may call a tool. Where a server has a prefix, its prompts have it too, and the address
//! of a resource is `upstream://NAME/` with the address at the server behind it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use countersign::BoxFuture;
use countersign::dialogue::{Dialogue, Left};
use countersign::offer::{Asked, Known, Listed, Offers, Probe, Refused, Request};
use countersign_contract::ErrorBody;
use rmcp::model::{
    ClientRequest, JsonObject, ListPromptsRequest, ListResourceTemplatesRequest,
    ListResourcesRequest, MetaObject, PaginatedRequestParams, RequestMetaObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};
use tokio::time::timeout;

use super::connection::{Connection, LISTED_BYTES_MAX, json_bytes, leave_refusal};
use super::reach::NoConnection;
use super::server::Server;
use super::trouble::Trouble;
use super::{fault, tool_name};
use crate::scrub;
use crate::upstreams::Upstreams;

/// Resources and prompts of a server, as it listed them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Offered {
    resources: Vec<Value>,
    templates: Vec<Value>,
    prompts: Vec<Value>,
}

impl Offered {
    fn of(&self, kind: Listed) -> &[Value] {
        match kind {
            Listed::Resources => &self.resources,
            Listed::Templates => &self.templates,
            Listed::Prompts => &self.prompts,
        }
    }
}

/// Most pages of a list, and most items.
const PAGES_MAX: usize = 100;
const ITEMS_MAX: usize = 5_000;

/// A page: its items, and where the next one begins.
type Page = (Vec<Value>, Option<String>);

fn page<T: Serialize>(items: &[T], next: Option<String>) -> Page {
    (items.iter().map(|item| json!(item)).collect(), next)
}

impl Connection {
    /// Everything that the server offers beside tools.
    pub(super) async fn offered(&self) -> Result<Offered, Trouble> {
        let mut offered = Offered::default();
        let Some(info) = self.peer.peer_info() else {
            return Ok(offered);
        };
        if info.capabilities.resources.is_some() {
            let request = |params| {
                ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params))
            };
            offered.resources = self.pages(request).await?;
            let request = |params| {
                let request = ListResourceTemplatesRequest::with_param(params);
                ClientRequest::ListResourceTemplatesRequest(request)
            };
            offered.templates = self.pages(request).await?;
        }
        if info.capabilities.prompts.is_some() {
            let request =
                |params| ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params));
            offered.prompts = self.pages(request).await?;
        }
        Ok(offered)
    }

    async fn pages(
        &self,
        request: impl Fn(PaginatedRequestParams) -> ClientRequest,
    ) -> Result<Vec<Value>, Trouble> {
        let mut all = Vec::new();
        let mut cursor = None;
        let mut bytes = 0;
        for _ in 0..PAGES_MAX {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let (items, next) = match self.peer.send_request(request(params)).await {
                Ok(ServerResult::ListResourcesResult(own)) => page(&own.resources, own.next_cursor),
                Ok(ServerResult::ListResourceTemplatesResult(own)) => {
                    page(&own.resource_templates, own.next_cursor)
                }
                Ok(ServerResult::ListPromptsResult(own)) => page(&own.prompts, own.next_cursor),
                Ok(_) => return Err(Trouble::NotAnAnswer("no list".to_owned())),
                // Some servers have resources and no templates.
                Err(ServiceError::McpError(_)) => (Vec::new(), None),
                Err(error) => return Err(error.into()),
            };
            bytes += json_bytes(&items);
            if bytes > LISTED_BYTES_MAX {
                break;
            }
            all.extend(items.into_iter().map(|item| self.clean(item)));
            cursor = next;
            if cursor.is_none() || all.len() > ITEMS_MAX {
                break;
            }
        }
        all.truncate(ITEMS_MAX);
        Ok(all)
    }

    /// Passes a request on.
    async fn pass(
        &self,
        method: &str,
        params: Value,
        dialogue: Option<&Arc<Dialogue>>,
    ) -> Result<Value, Refused> {
        let _use = self.in_use();
        let _seat = self.talks.enter(dialogue.cloned());
        let meta = self.told(JsonObject::new(), dialogue.map(|own| &**own));
        let request = json!({ "method": method, "params": params });
        let request = serde_json::from_value::<ClientRequest>(request);
        let malformed = |error: serde_json::Error| Refused::Protocol {
            code: -32_602,
            message: error.to_string(),
            data: None,
        };
        let request = request.map_err(malformed)?;
        let meta = RequestMetaObject(MetaObject(meta));
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let answer = match self.peer.send_request_with_option(request, options).await {
            Ok(handle) => handle.await_response().await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(ServerResult::InputRequiredResult(asked)) => {
                if let Some(dialogue) = dialogue {
                    dialogue.leave(Left::Questions(self.questions(asked)));
                }
                Err(Refused::Away("it asks the user something".to_owned()))
            }
            Ok(result) => Ok(self.clean(json!(result))),
            Err(error) => {
                if let Some(dialogue) = dialogue {
                    leave_refusal(&error, dialogue, &self.secrets());
                }
                Err(self.refused(error))
            }
        }
    }

    /// The reason why there is no answer, without the secrets that the server knows from us.
    pub(super) fn refused(&self, error: ServiceError) -> Refused {
        match error {
            ServiceError::McpError(error) => {
                let code = error.code.0;
                let message = scrub::text(&error.message, &self.secrets());
                self.doubt(&Trouble::Protocol {
                    code,
                    message: message.clone(),
                });
                Refused::Protocol {
                    code,
                    message,
                    data: error.data.map(|own| self.clean(own)),
                }
            }
            other => {
                let trouble = Trouble::from(other).without(&self.secrets());
                self.doubt(&trouble);
                Refused::Away(fault::words(&trouble))
            }
        }
    }
}

impl Server {
    /// True if a caller of these tools may have what the server offers beside them. A server without tools is open to every caller
    /// once that was approved.
    fn is_open_to(&self, tools: &BTreeSet<String>) -> bool {
        let prefix = self.entry.prefix();
        self.pin().is_some_and(|pin| {
            // A name that belongs to somebody else's tool opens nothing.
            let mut own = pin.tools.keys().filter(|tool| self.is_usable(tool));
            pin.tools.is_empty() || own.any(|tool| tools.contains(&tool_name(&prefix, tool)))
        })
    }

    /// The address of a resource for callers.
    pub(super) fn outside(&self, uri: &str) -> String {
        if self.entry.prefix {
            format!("{SCHEME}{}/{uri}", self.name())
        } else {
            uri.to_owned()
        }
    }

    /// Gives the resources that a block of content links to, or embeds, the addresses that callers read them by. An address of the web stays:
    /// clients fetch it by themselves.
    pub(super) fn relink(&self, block: &mut Value) {
        let place = match block.get("type").and_then(Value::as_str) {
            Some("resource_link") => Some(block),
            Some("resource") => block.get_mut("resource"),
            Some(_) | None => None,
        };
        let uri = place.and_then(|it| it.get_mut("uri"));
        if let Some(uri) = uri
            && let Some(own) = uri.as_str()
            && !own.starts_with("https://")
            && !own.starts_with("http://")
        {
            *uri = self.outside(own).into();
        }
    }

    /// An item of a list as callers see it.
    fn renamed(&self, kind: Listed, item: &Value) -> Value {
        let mut item = item.clone();
        let text = |item: &Value, key: &str| item.get(key)?.as_str().map(str::to_owned);
        let uri = match kind {
            Listed::Resources => Some("uri"),
            Listed::Templates => Some("uriTemplate"),
            Listed::Prompts => None,
        };
        let name = text(&item, "name").map(|own| format!("{}{own}", self.entry.prefix()));
        let uri = uri.and_then(|key| Some((key, self.outside(&text(&item, key)?))));
        if let Value::Object(members) = &mut item {
            members.extend(name.map(|own| ("name".to_owned(), own.into())));
            members.extend(uri.map(|(key, own)| (key.to_owned(), own.into())));
        }
        item
    }

    async fn pass(&self, request: &Request<'_>, params: Value) -> Result<Value, Refused> {
        let limit = Duration::from_millis(self.entry.timeouts.attempt_ms);
        let passed = async {
            let opened = self
                .connection_with(request.context, request.dialogue.as_deref())
                .await;
            let (connection, _) = opened.map_err(|error| match error {
                // Usually the user has no credential for the server; another try does not help.
                NoConnection::Told(error) => Refused::Protocol {
                    code: -32_603,
                    message: told(error.body()),
                    data: None,
                },
                NoConnection::Trouble(trouble) => Refused::Away(fault::words(&trouble)),
            })?;
            let dialogue = request.dialogue.as_ref();
            let user = request.context.user_id();
            let uri = params.get("uri").and_then(Value::as_str);
            match (request.asked, uri) {
                (Asked::Subscribe, Some(uri)) if connection.is_of_newest_era() => {
                    connection.watch(uri, user).await
                }
                (Asked::Subscribe, Some(uri)) => {
                    let answer = connection.pass(method(request.asked), params.clone(), dialogue);
                    let answer = answer.await?;
                    connection.watches.hold(uri, user);
                    Ok(answer)
                }
                // One caller's end of a subscription is not the end of the others'.
                (Asked::Unsubscribe, Some(uri)) if !connection.watches.release(uri, user) => {
                    Ok(json!({}))
                }
                (Asked::Unsubscribe, _) if connection.is_of_newest_era() => Ok(json!({})),
                (asked, _) => connection.pass(method(asked), params, dialogue).await,
            }
        };
        let late = |_| Refused::Away("it did not answer in time".to_owned());
        let mut answer = timeout(limit, passed).await.map_err(late)??;
        let contents = answer.get_mut("contents").and_then(Value::as_array_mut);
        for item in contents.into_iter().flatten() {
            if let Some(uri) = item.get_mut("uri")
                && let Some(own) = uri.as_str()
            {
                *uri = self.outside(own).into();
            }
        }
        let messages = answer.get_mut("messages").and_then(Value::as_array_mut);
        for message in messages.into_iter().flatten() {
            if let Some(block) = message.get_mut("content") {
                self.relink(block);
            }
        }
        Ok(answer)
    }
}

/// The message of an error, with its hint.
fn told(body: &ErrorBody) -> String {
    match &body.details.hint {
        Some(hint) => format!("{}; {hint}", body.message),
        None => body.message.to_string(),
    }
}

/// The scheme of addresses of servers with a prefix.
const SCHEME: &str = "upstream://";

const fn method(asked: Asked) -> &'static str {
    match asked {
        Asked::Read => "resources/read",
        Asked::Prompt => "prompts/get",
        Asked::Complete => "completion/complete",
        Asked::Subscribe => "resources/subscribe",
        Asked::Unsubscribe => "resources/unsubscribe",
    }
}

impl Upstreams {
    /// The name or the address that a request is about, and true if it is an address.
    fn named(asked: Asked, params: &Value) -> Option<(String, bool)> {
        let (place, key, is_address) = match asked {
            Asked::Read | Asked::Subscribe | Asked::Unsubscribe => (params, "uri", true),
            Asked::Prompt => (params, "name", false),
            Asked::Complete => {
                let of = params.get("ref")?;
                let is_address = of.get("uri").is_some();
                (of, if is_address { "uri" } else { "name" }, is_address)
            }
        };
        let name = place.get(key)?.as_str()?.to_owned();
        Some((name, is_address))
    }

    /// The server that a name or an address belongs to, and what it is called there.
    fn server_of<'n>(&self, name: &'n str, is_address: bool) -> Option<(&Arc<Server>, &'n str)> {
        let named = if is_address {
            name.strip_prefix(SCHEME)
                .and_then(|rest| rest.split_once('/'))
        } else {
            name.split_once('.')
        };
        let own = named.and_then(|(server, rest)| Some((self.server(server)?, rest)));
        let own = own.filter(|(server, _)| server.entry.prefix);
        own.or_else(|| {
            let plain = self.servers().find(|server| !server.entry.prefix);
            plain.map(|server| (server, name))
        })
    }

    /// The server that a request belongs to, and its parameters there.
    fn route(&self, request: &Request<'_>) -> Option<(Arc<Server>, Value)> {
        let mut params = request.params.clone();
        let (name, is_address) = Self::named(request.asked, &params)?;
        let (server, own) = self.server_of(&name, is_address)?;
        let own = own.to_owned();
        let place = match request.asked {
            Asked::Complete => params.get_mut("ref")?,
            Asked::Read | Asked::Subscribe | Asked::Unsubscribe | Asked::Prompt => &mut params,
        };
        let key = if is_address { "uri" } else { "name" };
        place.as_object_mut()?.insert(key.to_owned(), own.into());
        if let Some(answers) = request.dialogue.as_ref().and_then(|own| own.answers()) {
            let members = params.as_object_mut()?;
            members.insert("inputResponses".to_owned(), json!(answers.responses));
            let state = answers.state.clone();
            members.extend(state.map(|own| ("requestState".to_owned(), own.into())));
        }
        Some((server.clone(), params))
    }
}

impl Offers for Upstreams {
    fn is_empty(&self) -> bool {
        self.servers().next().is_none()
    }

    fn has(&self, kind: Listed) -> bool {
        self.servers()
            .any(|server| !server.offered().of(kind).is_empty())
    }

    fn owner(&self, asked: Asked, params: &Value) -> Option<String> {
        let (name, is_address) = Self::named(asked, params)?;
        let (server, _) = self.server_of(&name, is_address)?;
        Some(server.name().to_owned())
    }

    fn list(&self, kind: Listed, tools: &BTreeSet<String>) -> Vec<Value> {
        let open = self.servers().filter(|server| server.is_open_to(tools));
        let items = open.flat_map(|server| {
            let offered = server.offered();
            let items = offered.of(kind).iter();
            items
                .map(|item| server.renamed(kind, item))
                .collect::<Vec<_>>()
        });
        items.collect()
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Value, Refused>> {
        Box::pin(async move {
            let routed = self.route(&request);
            let routed = routed.filter(|(server, _)| server.is_open_to(request.tools));
            let (server, params) = routed.ok_or(Refused::Unknown)?;
            server.pass(&request, params).await
        })
    }

    fn probe<'a>(&'a self, upstream: &'a str) -> BoxFuture<'a, Option<Probe>> {
        Box::pin(self.probed(upstream))
    }

    fn known(&self, upstream: &str) -> Option<Known> {
        self.known_of(upstream)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn updates(&self) -> broadcast::Receiver<String> {
        self.updates.subscribe()
    }
}

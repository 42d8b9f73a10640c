//! Resources, prompts and completions of the MCP servers behind the gateway, passed on.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign::archive::Read;
use countersign::contract::Language;
use countersign::dialogue::{Answers, Dialogue, Left};
use countersign::offer::{Asked, Listed, Offers, Refused, Request};
use rmcp::ErrorData;
use rmcp::model::{InputRequiredResult, InputResponses, SubscriptionFilter};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::confirm::Asking;
use super::context::Context;
use super::handler::{self, Handler};
use super::talk;
use crate::caller::Caller;

/// An answer, or what has to be answered first.
pub(super) enum Passed<T> {
    Complete(T),
    Asks(InputRequiredResult),
}

/// A client's answers to questions.
#[derive(Default)]
pub(super) struct Brought {
    pub(super) responses: Option<InputResponses>,
    pub(super) state: Option<String>,
}

impl Handler {
    pub(super) fn offers(&self) -> Option<Arc<dyn Offers>> {
        self.shared.gateway.offers()
    }

    /// True if there are MCP servers behind the gateway.
    pub(super) fn has_servers(&self) -> bool {
        self.offers().is_some_and(|offers| !offers.is_empty())
    }

    /// True if an upstream offers things of this kind.
    pub(super) fn offers_any(&self, kind: Listed) -> bool {
        self.offers().is_some_and(|offers| offers.has(kind))
    }

    /// Everything of a kind that this caller may have.
    pub(super) async fn offered<T: DeserializeOwned>(
        &self,
        kind: Listed,
        context: &Context,
    ) -> Result<Vec<T>, ErrorData> {
        let Some(offers) = self.offers() else {
            return Ok(Vec::new());
        };
        let tools = self
            .tools_of(&handler::caller(&context.extensions)?)
            .await?;
        let listed = offers.list(kind, &tools).into_iter();
        // What is no item of the protocol is not shown.
        Ok(listed
            .filter_map(|item| serde_json::from_value(item).ok())
            .collect())
    }

    /// The names of the tools that a caller may call.
    async fn tools_of(&self, caller: &Caller) -> Result<BTreeSet<String>, ErrorData> {
        let entries = self.shared.gateway.executor().list(&caller.principal).await;
        let entries =
            entries.map_err(|body| ErrorData::internal_error(String::from(body.message), None))?;
        Ok(entries
            .iter()
            .map(|entry| entry.name().to_string())
            .collect())
    }

    /// Passes a request on; `None` if no upstream offers what it is about.
    pub(super) async fn pass<T: DeserializeOwned>(
        &self,
        asked: Asked,
        params: Value,
        brought: Brought,
        context: &Context,
    ) -> Result<Option<Passed<T>>, ErrorData> {
        let Some(offers) = self.offers() else {
            return Ok(None);
        };
        let caller = handler::caller(&context.extensions)?;
        let tools = self.tools_of(&caller).await?;
        let about = params.to_string();
        let asking = Asking {
            gateway: &self.shared.gateway,
            principal: &caller.principal,
            user_id: &caller.principal.user_id,
            tool: ABOUT,
            raw_arguments: &about,
            language: Language::default(),
        };
        let answers = match &brought.state {
            Some(state) => Some(Answers {
                state: asking.reopened(state).await?,
                responses: brought.responses.unwrap_or_default(),
            }),
            None => brought.responses.map(|responses| Answers {
                responses,
                state: None,
            }),
        };
        let talk = self.begin_talk(context, answers);
        let dialogue = talk.as_ref().map(|(dialogue, _)| dialogue.clone());
        let owner = offers.owner(asked, &params).unwrap_or_default();
        let executor = self.shared.gateway.executor();
        let outside = executor.context_outside_calls(&caller.principal).await;
        let outside =
            outside.map_err(|body| ErrorData::internal_error(String::from(body.message), None))?;
        let request = Request {
            context: &outside,
            tools: &tools,
            dialogue: dialogue.clone(),
            asked,
            params,
        };
        let said = talk.map(|(_, said)| said);
        let answer = self.until_ended(offers.ask(request), said, context).await;
        match dialogue.as_deref().and_then(Dialogue::take) {
            Some(Left::Questions(questions)) => {
                return asking.ask_back(questions).await.map(Passed::Asks).map(Some);
            }
            Some(Left::Refusal {
                code,
                message,
                data,
            }) => return Err(talk::refusal(code, message, data)),
            None => {}
        }
        match answer {
            Ok(answer) => match self.noted(asked, (&caller, &owner, &about), answer).await? {
                Ok(answer) => Ok(Some(Passed::Complete(answer))),
                Err(error) => {
                    let message = format!("the answer of the server cannot be read: {error}");
                    Err(ErrorData::internal_error(message, None))
                }
            },
            Err(refused) => not_passed(refused),
        }
    }

    /// The resources of a filter whose changes a client of the newest era can hear of.
    pub(super) fn watchable(&self, requested: &SubscriptionFilter) -> Vec<String> {
        let uris = requested.resource_subscriptions.iter().flatten();
        let is_offered = |uri: &&String| {
            let owner =
                |offers: Arc<dyn Offers>| offers.owner(Asked::Subscribe, &json!({ "uri": **uri }));
            self.shared.fixtures.is_some() || self.offers().and_then(owner).is_some()
        };
        uris.filter(is_offered).take(WATCHED_MAX).cloned().collect()
    }

    /// Subscribes to changes of resources at their servers. Returns those that the servers tell changes of.
    pub(super) async fn watch(&self, uris: Vec<String>, context: &Context) -> Vec<String> {
        let mut watched = Vec::new();
        for uri in uris {
            let asked = self.pass_watch(Asked::Subscribe, &uri, context).await;
            if matches!(asked, Ok(Some(_))) {
                watched.push(uri);
            }
        }
        watched
    }

    /// Ends those subscriptions.
    pub(super) async fn unwatch(&self, uris: Vec<String>, context: &Context) {
        for uri in uris {
            // A server that is gone tells nothing any more.
            let _gone = self.pass_watch(Asked::Unsubscribe, &uri, context).await;
        }
    }

    async fn pass_watch(
        &self,
        asked: Asked,
        uri: &str,
        context: &Context,
    ) -> Result<Option<Passed<Value>>, ErrorData> {
        let params = json!({ "uri": uri });
        self.pass(asked, params, Brought::default(), context).await
    }

    /// Reads an answer, and records that the caller was given it. What cannot be recorded is not given.
    async fn noted<T: DeserializeOwned>(
        &self,
        asked: Asked,
        (caller, upstream, address): (&Caller, &str, &str),
        answer: Value,
    ) -> Result<Result<T, serde_json::Error>, ErrorData> {
        let event = match asked {
            Asked::Read => Some("resource_read"),
            Asked::Prompt => Some("prompt_read"),
            // These give nothing that the lists do not have.
            Asked::Complete | Asked::Subscribe | Asked::Unsubscribe => None,
        };
        if let Some(event) = event {
            let text = answer.to_string();
            let read = Read {
                event,
                upstream,
                address,
                answer: &text,
            };
            let archive = self.shared.gateway.archive();
            let kept = archive.note_read(&caller.principal, &read).await;
            kept.map_err(|error| {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "a read was not answered, because it cannot be recorded"
                );
                ErrorData::internal_error("it cannot be recorded; try again later", None)
            })?;
        }
        Ok(serde_json::from_value(answer))
    }
}

/// The answer where a server has not answered; `None` if no upstream offers what was asked for.
fn not_passed<T>(refused: Refused) -> Result<Option<T>, ErrorData> {
    match refused {
        Refused::Unknown => Ok(None),
        Refused::Protocol {
            code,
            message,
            data,
        } => Err(talk::refusal(code, message, data)),
        Refused::Away(why) => {
            let message =
                format!("the server that offers it does not answer: {why}; try again later");
            Err(ErrorData::internal_error(message, None))
        }
    }
}

/// Most resources that one request listens to.
const WATCHED_MAX: usize = 100;

/// No tool can have this name.
const ABOUT: &str = "$mcp.offer";

//! What a server says while a call runs, brought to the caller of that call: questions to the user or to a model, and messages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign::dialogue::{Answers, Dialogue, Questions};
use rmcp::model::{ClientCapabilities, InputRequiredResult};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The calls of one connection that are on their way, with those of their callers who can be spoken to.
///
/// A request of a server of the older eras does not say which call it is about. The callers of a connection are one user's, so the
/// newest of them is asked; where users share a connection, no user is asked unless there is one call only.
#[derive(Debug, Default)]
pub(super) struct Talks {
    is_shared: bool,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    next: u64,
    under_way: BTreeMap<u64, Option<Arc<Dialogue>>>,
}

/// A call that is on its way.
pub(super) struct Seat<'t> {
    talks: &'t Talks,
    number: u64,
}

impl Talks {
    pub(super) fn new(is_shared: bool) -> Self {
        Self {
            is_shared,
            calls: Mutex::default(),
        }
    }

    pub(super) fn enter(&self, dialogue: Option<Arc<Dialogue>>) -> Seat<'_> {
        let mut calls = self.calls();
        let number = calls.next;
        calls.next += 1;
        calls.under_way.insert(number, dialogue);
        Seat {
            talks: self,
            number,
        }
    }

    /// The caller that the server speaks to.
    pub(super) fn caller(&self) -> Option<Arc<Dialogue>> {
        let calls = self.calls();
        if self.is_shared && calls.under_way.len() > 1 {
            return None;
        }
        calls.under_way.values().rev().flatten().next().cloned()
    }

    /// Asks the caller; `None` if no caller can be asked, or there is no answer.
    pub(super) async fn ask<T: DeserializeOwned>(&self, request: Value) -> Option<T> {
        let answer = self.caller()?.ask(request).await?;
        serde_json::from_value(answer).ok()
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.talks.calls().under_way.remove(&self.number);
    }
}

/// The abilities of a caller's client that a server gets to know: those that it can make use of through us.
pub(super) fn abilities(dialogue: Option<&Dialogue>) -> Value {
    let passed = ["elicitation", "sampling", "roots"].into_iter();
    let own = passed.filter_map(|name| {
        let own = dialogue?.abilities().get(name)?;
        (!own.is_null()).then(|| (name.to_owned(), own.clone()))
    });
    Value::Object(own.collect::<Map<_, _>>())
}

/// True if the caller's client can take its user to an address.
pub(super) fn opens_urls(dialogue: &Dialogue) -> bool {
    let own = dialogue.abilities().pointer("/elicitation/url");
    own.is_some_and(|own| !own.is_null())
}

/// The addresses that a user has to visit before a call, from the error of a server of an older era, as questions.
pub(super) fn addresses(data: Option<&Value>) -> Questions {
    let all = data.and_then(|data| data.get("elicitations")?.as_array());
    let question = |(at, params): (usize, &Value)| {
        let id = params.get("elicitationId").and_then(Value::as_str);
        let name = id.map_or_else(|| format!("address-{at}"), str::to_owned);
        (
            name,
            json!({ "method": "elicitation/create", "params": params }),
        )
    };
    Questions {
        requests: all
            .into_iter()
            .flatten()
            .enumerate()
            .map(question)
            .collect(),
        state: None,
    }
}

/// Abilities as they are declared to a server.
pub(super) fn declared(abilities: &Value) -> ClientCapabilities {
    serde_json::from_value(abilities.clone()).unwrap_or_default()
}

/// Questions of a server that are answered with the next request.
pub(super) fn questions(asked: InputRequiredResult) -> Questions {
    let requests = asked.input_requests.unwrap_or_default().into_iter();
    Questions {
        requests: requests.map(|(name, own)| (name, json!(own))).collect(),
        state: asked.request_state,
    }
}

/// Asks a caller everything at once; `None` if one of the questions has no answer.
pub(super) async fn ask_all(dialogue: &Dialogue, questions: Questions) -> Option<Answers> {
    let mut responses = BTreeMap::new();
    for (name, request) in questions.requests {
        responses.insert(name, dialogue.ask(request).await?);
    }
    Some(Answers {
        responses,
        state: questions.state,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Arc<Dialogue> {
        Arc::new(Dialogue::new(json!({ "name": name })))
    }

    /// No user is asked about the call of another.
    #[test]
    fn a_shared_connection_asks_nobody_in_doubt() {
        let name = |talks: &Talks| talks.caller().map(|own| own.abilities()["name"].clone());
        let own = Talks::new(false);
        assert_eq!(name(&own), None);
        let _first = own.enter(Some(caller("first")));
        let second = own.enter(Some(caller("second")));
        let _silent = own.enter(None);
        assert_eq!(name(&own), Some(json!("second")));
        drop(second);
        assert_eq!(name(&own), Some(json!("first")));

        let shared = Talks::new(true);
        let first = shared.enter(Some(caller("first")));
        assert_eq!(name(&shared), Some(json!("first")));
        let _second = shared.enter(None);
        assert_eq!(name(&shared), None);
        drop(first);
        assert_eq!(name(&shared), None);
    }

    #[test]
    fn a_server_is_told_of_what_it_can_use() {
        let dialogue =
            Dialogue::new(json!({"elicitation": {"form": {}}, "extensions": {"x/y": {}}}));
        let told = abilities(Some(&dialogue));
        assert_eq!(told, json!({"elicitation": {"form": {}}}));
        assert!(declared(&told).elicitation.is_some());
        assert_eq!(abilities(None), json!({}));
    }
}

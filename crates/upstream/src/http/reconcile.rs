//! Reconciliation of a call whose answer was lost: a look-up that changes nothing.

use countersign::{Arguments, CallContext, Reconciled, Reply, ToolError};
use countersign_contract::tool::Recovery;
use serde_json::Value;

use super::answer::Reader;
use super::identity::Purpose;
use super::plan::Plan;
use super::send::{Answer, AnswerBody, Sending};
use super::tool::HttpTool;
use crate::manifest::{
    ArgumentEntry, BodyFormat, CallMember, Method, ReconcileEntry, RequestEntry, TemplateError,
    ToolEntry, Upstream,
};

/// The look-up of a tool.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// The twin of a tool that was written for Countersign.
    Twin(Plan),
    /// A request that looks up what the call made.
    Declared {
        plan: Plan,
        found: String,
        absent: Vec<u16>,
    },
}

/// The placeholder of the key that every attempt of a call has.
pub(crate) const KEY: &str = "idempotency_key";

impl Lookup {
    pub(crate) fn of(
        entry: &ToolEntry,
        upstream: &Upstream,
    ) -> Result<Option<Self>, TemplateError> {
        match entry.recovery {
            Some(Recovery::Reconcile { .. }) => {}
            Some(Recovery::Operator | Recovery::Retry | Recovery::DownstreamKey { .. }) | None => {
                return Ok(None);
            }
        }
        let declared = entry.reconcile.as_ref();
        let Some(ReconcileEntry {
            request: Some(request),
            found,
            absent,
            tool: _,
            arguments: _,
        }) = declared
        else {
            if entry.request.is_some() {
                return Ok(None);
            }
            let request = RequestEntry {
                method: Method::Post,
                path: format!("/tools/{}/reconcile", entry.name),
                body: Some(BodyFormat::Json),
                content_type: None,
                accept: None,
                headers: std::collections::BTreeMap::new(),
                query: std::collections::BTreeMap::new(),
            };
            return Ok(Some(Self::Twin(Plan::with(&request, entry)?.at(upstream))));
        };
        // The look-up takes from the arguments what its path, query and headers name, and nothing else.
        let mut entry = entry.clone();
        for argument in entry.arguments.values_mut() {
            argument.place = None;
        }
        let key = ArgumentEntry {
            from_call: Some(CallMember::IdempotencyKey),
            ..ArgumentEntry::default()
        };
        entry.arguments.insert(KEY.to_owned(), key);
        let plan = Plan::with(request, &entry)?.only_named()?.at(upstream);
        Ok(Some(Self::Declared {
            plan,
            found: found.clone(),
            absent: absent.clone(),
        }))
    }

    /// Asks. What cannot be read says nothing about the call.
    pub(crate) async fn ask(
        &self,
        tool: &HttpTool,
        ctx: &CallContext,
        arguments: &Arguments,
    ) -> Result<Reconciled<Reply>, ToolError> {
        let plan = match self {
            Self::Twin(plan) | Self::Declared { plan, .. } => plan,
        };
        let request = plan.fill(ctx, arguments)?;
        let sending = Sending {
            ctx,
            tool: &tool.name,
            purpose: Purpose::Reconcile,
            request: &request,
            is_repeatable: true,
            is_write: true,
            faults: &tool.faults,
        };
        let answer = tool.service.send(sending).await?;
        match self {
            Self::Twin(_) => Ok(by_twin(tool, &answer)),
            Self::Declared { found, absent, .. } => Ok(by_look(tool, &answer, found, absent)),
        }
    }
}

fn body_of(answer: &Answer) -> Option<Value> {
    match &answer.body {
        AnswerBody::Whole(bytes) => serde_json::from_slice(bytes).ok(),
        AnswerBody::TooLarge => None,
    }
}

fn by_twin(tool: &HttpTool, answer: &Answer) -> Reconciled<Reply> {
    if answer.status != 200 {
        return Reconciled::Unknown;
    }
    let Some(mut body) = body_of(answer) else {
        return Reconciled::Unknown;
    };
    match body.get("outcome").and_then(Value::as_str) {
        Some("did_not_happen") => Reconciled::DidNotHappen,
        Some("happened") => {
            let data = body.get_mut("data").map(Value::take).unwrap_or_default();
            happened(&tool.reader, data)
        }
        Some(_) | None => Reconciled::Unknown,
    }
}

fn by_look(tool: &HttpTool, answer: &Answer, found: &str, absent: &[u16]) -> Reconciled<Reply> {
    if absent.contains(&answer.status) {
        return Reconciled::DidNotHappen;
    }
    if !(200..300).contains(&answer.status) {
        return Reconciled::Unknown;
    }
    match body_of(answer) {
        Some(body) => found_in(body, found, &tool.reader),
        None => Reconciled::Unknown,
    }
}

/// Reads the answer to a declared look-up: the call happened if there is something at `found`.
pub(crate) fn found_in(mut body: Value, found: &str, reader: &Reader) -> Reconciled<Reply> {
    match body.pointer_mut(found).map(Value::take) {
        None => Reconciled::Unknown,
        Some(Value::Null) => Reconciled::DidNotHappen,
        Some(Value::Array(items)) => match items.into_iter().next() {
            Some(first) => happened(reader, first),
            None => Reconciled::DidNotHappen,
        },
        Some(value) => happened(reader, value),
    }
}

/// Returns the answer that the call would have given. If the projection does not fit the look-up, the whole look-up is returned.
fn happened(reader: &Reader, data: Value) -> Reconciled<Reply> {
    let told = reader.project(data.clone()).unwrap_or(data);
    Reconciled::Happened(Reply::from(told))
}

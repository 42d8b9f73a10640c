//! Reconciliation of a call whose answer was lost: a look-up that changes nothing.

use std::sync::Arc;

use countersign::{Arguments, CallContext, Reconciled, Reply, ToolError};
use countersign_contract::tool::Recovery;
use serde_json::Value;

use super::answer::{Read, Reader, Whose, json_of};
use super::charset;
use super::identity::Purpose;
use super::plan::Plan;
use super::send::{Answer, Sending};
use super::tool::{HttpTool, chosen_by_model};
use crate::manifest::{
    ArgumentEntry, BodyFormat, CallMember, Method, ReconcileEntry, RequestEntry, TemplateError,
    ToolEntry, Upstream,
};
use crate::select::Filter;

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
        let chosen = chosen_by_model(tool.chooses, arguments)?;
        let finder = Finder {
            reader: &tool.reader,
            whose: tool.whose(),
            chosen: chosen.as_ref(),
            bytes: answer.body.len(),
        };
        match self {
            Self::Twin(_) => by_twin(&answer, finder).await,
            Self::Declared { found, absent, .. } => by_look(&answer, found, absent, finder).await,
        }
    }
}

/// Reads what a look-up has found, as the tool's own answers are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finder<'t> {
    pub(crate) reader: &'t Reader,
    pub(crate) whose: Whose<'t>,
    /// The filter that the model has chosen.
    pub(crate) chosen: Option<&'t Arc<Filter>>,
    /// Number of bytes of the answer.
    pub(crate) bytes: u64,
}

type Found = Result<Reconciled<Reply>, ToolError>;

impl Finder<'_> {
    /// Reads the answer to a declared look-up: the call happened if there is something at `found`.
    pub(crate) async fn found_in(self, body: Read, found: &str) -> Found {
        let Read { mut value, digits } = body;
        let value = match value.pointer_mut(found).map(Value::take) {
            None => return Ok(Reconciled::Unknown),
            Some(Value::Null) => return Ok(Reconciled::DidNotHappen),
            Some(Value::Array(items)) => match items.into_iter().next() {
                Some(first) => first,
                None => return Ok(Reconciled::DidNotHappen),
            },
            Some(value) => value,
        };
        self.happened(Read { value, digits }).await
    }

    async fn happened(self, read: Read) -> Found {
        let found = self.reader.found(self.whose, read, self.bytes, self.chosen);
        let reply = found.await?;
        Ok(Reconciled::Happened(reply))
    }
}

/// The JSON of an answer; `None` if it is none.
fn body_of(answer: &Answer) -> Option<Read> {
    let decoded = charset::decoded(answer.body.bytes(), &answer.headers);
    json_of(&decoded.text).ok().filter(|_| !decoded.is_damaged)
}

async fn by_twin(answer: &Answer, finder: Finder<'_>) -> Found {
    let body = body_of(answer).filter(|_| answer.status == 200);
    let Some(Read { mut value, digits }) = body else {
        return Ok(Reconciled::Unknown);
    };
    match value.get("outcome").and_then(Value::as_str) {
        Some("did_not_happen") => Ok(Reconciled::DidNotHappen),
        Some("happened") => {
            let value = value.get_mut("data").map(Value::take).unwrap_or_default();
            finder.happened(Read { value, digits }).await
        }
        Some(_) | None => Ok(Reconciled::Unknown),
    }
}

async fn by_look(answer: &Answer, found: &str, absent: &[u16], finder: Finder<'_>) -> Found {
    if absent.contains(&answer.status) {
        return Ok(Reconciled::DidNotHappen);
    }
    match body_of(answer).filter(|_| (200..300).contains(&answer.status)) {
        Some(body) => finder.found_in(body, found).await,
        None => Ok(Reconciled::Unknown),
    }
}

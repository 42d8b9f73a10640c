//! A `tools/call` from its message to its result.

use std::borrow::Cow;
use std::sync::Arc;

use countersign::cancel::Cancellation;
use countersign::contract::{Language, ReplyEnvelope};
use countersign::observe::{Origin, Surface};
use countersign::progress::{self, Progress};
use countersign::{Principal, ToolCall};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ProgressNotificationParam,
    ProgressToken,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer};
use serde_json::json;
use tokio::sync::mpsc;

use super::carriage::{self, Said, Wants};
use super::confirm::{Asking, Settled};
use super::handler::{self, Handler};
use crate::gateway::Gateway;

/// One call as it was sent: it can be made again once its user has answered.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) principal: Arc<Principal>,
    name: Cow<'static, str>,
    raw_arguments: Arc<str>,
    said: Said,
}

impl Sent {
    fn read(
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Self, ErrorData> {
        let headers = handler::head(&context.extensions).map(|parts| &parts.headers);
        let raw = handler::raw_arguments(&context.extensions);
        Ok(Self {
            principal: handler::caller(&context.extensions)?.principal,
            name: request.name.clone(),
            raw_arguments: raw.map_or_else(|| written_anew(request), |raw| raw.0),
            said: carriage::read(&context.meta, headers)?,
        })
    }

    /// A call of this caller.
    #[cfg(test)]
    pub(super) fn by(principal: Principal) -> Self {
        let said = carriage::read(&serde_json::Map::new(), None);
        Self {
            principal: Arc::new(principal),
            name: "disk.wipe".into(),
            raw_arguments: "{}".into(),
            said: said.expect("nothing is malformed in nothing"),
        }
    }

    /// The same call, by the same actor with another credential.
    pub(super) fn by_caller(&self, principal: Arc<Principal>) -> Self {
        Self {
            principal,
            ..self.clone()
        }
    }

    fn to_call(&self) -> ToolCall {
        let origin = Origin {
            surface: Surface::Mcp,
            call_id: None,
        };
        let raw_arguments = self.raw_arguments.clone();
        let mut call = ToolCall::new(&*self.name, raw_arguments, self.principal.clone())
            .envelope(self.said.envelope.clone())
            .origin(origin);
        if let Some(trace) = self.said.trace {
            call = call.trace(trace);
        }
        if let Some(state) = self.said.trace_state.clone() {
            call = call.trace_state(state);
        }
        call
    }

    fn asking<'a>(&'a self, gateway: &'a Gateway) -> Asking<'a> {
        Asking {
            gateway,
            principal: &self.principal,
            user_id: carriage::user_id(&self.said.envelope, &self.principal),
            tool: &self.name,
            raw_arguments: &self.raw_arguments,
            language: Language::of(self.said.envelope.locale.as_deref()),
        }
    }
}

impl Handler {
    /// Runs a call. What went wrong with it is a result that the model reads; only what makes the
    /// message itself wrong, such as a tool that does not exist, is an error of the protocol.
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let sent = Sent::read(&request, &context)?;
        let asking = sent.asking(&self.shared.gateway);
        let mut settled = asking.settle(&request).await?;
        let mut reply = self.run(&sent, &context).await;
        // Who was asked and brings no answer is told what is missing, and not asked again at once.
        let was_asked = settled != Settled::NotAsked;
        if !was_asked && let Some(question) = asking.ask_later(&reply, &context).await {
            return Ok(question.into());
        }
        let now = self.shared.gateway.executor().now();
        if let Some(task) = self.shared.tasks.wait(&sent, &reply, &context, now) {
            return Ok(task.into());
        }
        if let Some(answered) = asking.ask_now(&reply, &context).await {
            settled = answered;
            reply = self.run(&sent, &context).await;
        }
        settled.explain(&mut reply, asking.language);
        Ok(self.result(&sent, reply, &context)?.into())
    }

    /// A reply as the result of its call.
    pub(super) fn result(
        &self,
        sent: &Sent,
        reply: ReplyEnvelope,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let catalog = self.shared.gateway.executor().catalog();
        let Some(entry) = catalog.get(&sent.name) else {
            return Err(unknown_tool(&reply));
        };
        let whole = carriage::client_wants_whole(context);
        let declared = entry.spec().output.is_some();
        let prepared = declared.then(|| self.shared.declarations.of(catalog, &entry));
        let is_structured = prepared.is_none_or(|prepared| {
            prepared.is_some_and(|prepared| {
                !reply.ok || prepared.for_client(whole).accepts(&reply.data)
            })
        });
        if !is_structured {
            let tool = entry.name();
            let record = reply.evidence.as_ref().map(|it| it.snapshot_id.to_string());
            tracing::warn!(%tool, record, "an answer is not what the tool has declared");
        }
        let wants = Wants {
            structured: is_structured,
            whole,
        };
        carriage::result(self.shared.gateway.for_model(reply), &wants)
    }

    /// Runs a call while its client is told how far it is and may stop it.
    ///
    /// A client that goes away stops a read; a write that has begun finishes and is recorded.
    pub(super) async fn run(
        &self,
        sent: &Sent,
        context: &RequestContext<RoleServer>,
    ) -> ReplyEnvelope {
        run(&self.shared.gateway, sent.to_call(), context).await
    }
}

/// The arguments of a message that nobody took them out of.
fn written_anew(request: &CallToolRequestParams) -> Arc<str> {
    let arguments = request.arguments.as_ref();
    arguments.map_or_else(
        || "{}".into(),
        |arguments| json!(arguments).to_string().into(),
    )
}

/// The one refusal that the protocol has an error of its own for.
fn unknown_tool(reply: &ReplyEnvelope) -> ErrorData {
    let body = reply.error.as_ref();
    let message = body.map_or_else(
        || "there is no such tool".to_owned(),
        |body| match &body.details.hint {
            Some(hint) => format!("{body}; {hint}"),
            None => body.to_string(),
        },
    );
    let data = json!({ "request_id": reply.request_id, "error": body });
    ErrorData::invalid_params(message, Some(data))
}

async fn run(
    gateway: &Gateway,
    call: ToolCall,
    context: &RequestContext<RoleServer>,
) -> ReplyEnvelope {
    let cancellation = Cancellation::new();
    let mut call = call.cancellation(cancellation.clone());
    let token = context.meta.get_progress_token();
    let mut reports = None;
    if token.is_some() {
        let (sink, receiver) = progress::channel();
        call = call.extension(sink);
        reports = Some(receiver);
    }
    let mut running = std::pin::pin!(gateway.call(call));
    let mut is_stopped = false;
    let reply = loop {
        tokio::select! {
            biased;
            report = next(&mut reports) => tell(&context.peer, token.as_ref(), report).await,
            reply = &mut running => break reply,
            () = context.ct.cancelled(), if !is_stopped => {
                cancellation.cancel();
                is_stopped = true;
            }
        }
    };
    // What was reported before the end is told before the end, and nothing after it.
    while let Some(Ok(report)) = reports.as_mut().map(mpsc::Receiver::try_recv) {
        tell(&context.peer, token.as_ref(), report).await;
    }
    reply
}

/// The next report; never, where nobody asked for any or no more will come.
async fn next(reports: &mut Option<mpsc::Receiver<Progress>>) -> Progress {
    if let Some(receiver) = reports
        && let Some(report) = receiver.recv().await
    {
        return report;
    }
    std::future::pending().await
}

async fn tell(peer: &Peer<RoleServer>, token: Option<&ProgressToken>, report: Progress) {
    let Some(token) = token else {
        return;
    };
    let mut param = ProgressNotificationParam::new(token.clone(), report.done);
    param.total = report.total;
    param.message = report.message;
    // A client that has gone away is noticed by the transport.
    let _gone = peer.notify_progress(param).await;
}

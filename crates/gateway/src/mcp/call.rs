//! A `tools/call` from its message to its result.

use countersign::ToolCall;
use countersign::cancel::Cancellation;
use countersign::contract::{Language, ReplyEnvelope};
use countersign::observe::{Origin, Surface};
use countersign::progress::{self, Progress};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer};
use serde_json::json;
use tokio::sync::mpsc;

use super::carriage::{self, Wants};
use super::confirm::Asking;
use super::handler::{self, Handler};
use crate::gateway::Gateway;

impl Handler {
    /// Runs a call. What went wrong with it is a result that the model reads; only what makes the
    /// message itself wrong, such as a tool that does not exist, is an error of the protocol.
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = handler::caller(&context.extensions)?;
        let headers = handler::head(&context.extensions).map(|parts| &parts.headers);
        let said = carriage::read(&context.meta, headers)?;
        let raw = handler::raw_arguments(&context.extensions);
        let raw = raw.map_or_else(|| written_anew(&request), |raw| raw.0);
        let user_id = carriage::user_id(&said.envelope, &caller.principal).to_owned();
        let asking = Asking {
            gateway: &self.shared.gateway,
            principal: &caller.principal,
            user_id: &user_id,
            tool: &request.name,
            raw_arguments: &raw,
            language: Language::of(said.envelope.locale.as_deref()),
        };
        let make = || {
            let origin = Origin {
                surface: Surface::Mcp,
                call_id: None,
            };
            let mut call = ToolCall::new(&*request.name, raw.clone(), caller.principal.clone())
                .envelope(said.envelope.clone())
                .origin(origin);
            if let Some(trace) = said.trace {
                call = call.trace(trace);
            }
            if let Some(state) = said.trace_state.clone() {
                call = call.trace_state(state);
            }
            call
        };
        asking.settle(&request).await?;
        let mut reply = run(&self.shared.gateway, make(), &context).await;
        // Who was asked and brings no answer is told what is missing, and not asked again at once.
        let was_asked = request.request_state.is_some();
        if !was_asked && let Some(question) = asking.ask_later(&reply, &context).await {
            return Ok(question.into());
        }
        if asking.ask_now(&reply, &context).await.is_some() {
            reply = run(&self.shared.gateway, make(), &context).await;
        }
        let catalog = self.shared.gateway.executor().catalog();
        let Some(entry) = catalog.get(&request.name) else {
            return Err(unknown_tool(&reply));
        };
        let declared = entry.spec().output.is_some();
        let prepared = declared.then(|| self.shared.declarations.of(catalog, &entry));
        let is_structured = prepared.is_none_or(|prepared| {
            prepared.is_some_and(|prepared| !reply.ok || prepared.accepts(&reply.data))
        });
        if !is_structured {
            let tool = entry.name();
            let record = reply.evidence.as_ref().map(|it| it.snapshot_id.to_string());
            tracing::warn!(%tool, record, "an answer is not what the tool has declared");
        }
        let declared = context.client_capabilities();
        let of_connection = context
            .peer
            .peer_info()
            .map(|info| info.capabilities.clone());
        let wants = Wants {
            structured: is_structured,
            whole: carriage::wants_whole(declared.or(of_connection).as_ref()),
        };
        let reply = self.shared.gateway.for_model(reply);
        Ok(carriage::result(reply, &wants)?.into())
    }
}

/// The arguments of a message that nobody took them out of.
fn written_anew(request: &CallToolRequestParams) -> std::sync::Arc<str> {
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

/// Runs a call while its client is told how far it is and may stop it.
///
/// A client that goes away stops a read; a write that has begun finishes and is recorded.
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

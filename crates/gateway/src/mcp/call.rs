//! A `tools/call` from its message to its result.

use std::borrow::Cow;
use std::sync::Arc;

use countersign::cancel::Cancellation;
use countersign::contract::{Language, ReplyEnvelope, Warning};
use countersign::dialogue::{Answers, Dialogue, Left};
use countersign::observe::{Origin, Surface};
use countersign::offer::BLOCKS;
use countersign::progress::{self, Progress};
use countersign::{BoxFuture, Principal, ToolCall};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
    ProgressNotificationParam, ProgressToken,
};
use rmcp::service::Peer;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::carriage::{self, Said, Wants};
use super::clients;
use super::confirm::{Asking, Given, Settled, WAITING_KEY};
use super::context::Context;
use super::handler::{self, Handler};
use super::parked::{Question, Running};
use super::talk::{self, Talk};
use super::tools::Prepared;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::offer::{Behind, Meant, Offer, OwnCall, meant};
#[cfg(test)]
use crate::offer::{CatalogView, OfferRules};

/// One call as it was sent: it can be made again once its user has answered.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) principal: Arc<Principal>,
    name: Cow<'static, str>,
    raw_arguments: Arc<str>,
    said: Said,
    /// The program that speaks for the model, if it is a known one.
    client: Option<&'static str>,
    offer: Offer,
    /// The changes by which `call_tool` was read; `None` if the tool was called by its own name.
    behind: Option<Vec<Warning>>,
}

/// Parameters of a `tools/call`.
enum Asked {
    /// A tool of the catalog.
    Tool(Sent),
    /// Something that the facade answers itself.
    Own(ReplyEnvelope),
}

impl Sent {
    /// A call of this caller.
    #[cfg(test)]
    pub(super) fn by(principal: Principal) -> Self {
        let said = carriage::read(&serde_json::Map::new(), None);
        Self {
            principal: Arc::new(principal),
            name: "disk.wipe".into(),
            raw_arguments: "{}".into(),
            said: said.expect("nothing is malformed in nothing"),
            client: None,
            offer: CatalogView::new(OfferRules::default()).of(&Principal::user("u_1"), None, None),
            behind: None,
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
        if let Some(client) = self.client {
            call = call.client(client);
        }
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
        context: &Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let sent = match self.asked(&request, context).await? {
            Asked::Tool(sent) => sent,
            Asked::Own(reply) => {
                let wants = Wants {
                    structured: true,
                    whole: carriage::client_wants_whole(context),
                };
                let reply = self.shared.gateway.for_model(reply);
                return Ok(carriage::result(reply, &wants)?.into());
            }
        };
        let asking = sent.asking(&self.shared.gateway);
        let Given {
            mut settled,
            answers,
            waiting,
        } = asking.settle(&request).await?;
        let mut dialogue = None;
        let running = if let Some(id) = waiting {
            let running = self.shared.parked.resume(&id, answer_of(answers));
            running.ok_or_else(|| asking.state_refused())?
        } else {
            let talk = self.begin_talk(context, answers);
            dialogue = talk.as_ref().map(|(dialogue, _)| dialogue.clone());
            self.start(&sent, context, talk)
        };
        let mut reply = match self.follow(running, context).await? {
            Ran::Ended(reply) => *reply,
            Ran::Asks(id, request) => return Ok(asking.ask_waiting(id, request).await?.into()),
        };
        match dialogue.as_deref().and_then(Dialogue::take) {
            Some(Left::Questions(questions)) => {
                return Ok(asking.ask_back(questions).await?.into());
            }
            Some(Left::Refusal {
                code,
                message,
                data,
            }) => return Err(talk::refusal(code, message, data)),
            None => {}
        }
        if sent.behind.is_some() {
            let gateway = &self.shared.gateway;
            let named = (&*sent.name, &*sent.principal);
            let pointed = gateway.point_to_search(named, asking.language, &mut reply);
            Box::pin(pointed).await;
        }
        // Who was asked and brings no answer is told what is missing, and not asked again at once.
        let was_asked = settled != Settled::NotAsked;
        if !was_asked && let Some(question) = asking.ask_later(&reply, context).await {
            return Ok(question.into());
        }
        let now = self.shared.gateway.executor().now();
        if let Some(task) = self.shared.tasks.wait(&sent, &reply, context, now) {
            return Ok(task.into());
        }
        if let Some(answered) = asking.ask_now(&reply, context).await {
            settled = answered;
            let talk = self.begin_talk(context, None);
            let running = self.start(&sent, context, talk);
            reply = match self.follow(running, context).await? {
                Ran::Ended(reply) => *reply,
                Ran::Asks(id, request) => return Ok(asking.ask_waiting(id, request).await?.into()),
            };
        }
        settled.explain(&mut reply, asking.language);
        Ok(self.result(&sent, reply, context)?.into())
    }

    /// Reads what a message asks for. A call of `call_tool` is the call behind it from here on.
    async fn asked(
        &self,
        request: &CallToolRequestParams,
        context: &Context,
    ) -> Result<Asked, ErrorData> {
        let gateway = &self.shared.gateway;
        let headers = handler::head(&context.extensions).map(|parts| &parts.headers);
        let raw = handler::raw_arguments(&context.extensions);
        let raw_arguments = raw.map_or_else(|| written_anew(request), |raw| raw.0);
        let said = carriage::read(&context.meta, headers)?;
        let (Caller { principal, .. }, offer) = self.narrowed(context)?;
        let client = context
            .client
            .as_ref()
            .map(|client| clients::known(&client.name));
        let sent = |name, raw_arguments, behind| {
            Asked::Tool(Sent {
                principal: principal.clone(),
                name,
                raw_arguments,
                said: said.clone(),
                client,
                offer: offer.clone(),
                behind,
            })
        };
        let envelope = &said.envelope;
        Ok(
            match meant(&offer, &request.name, &raw_arguments, envelope) {
                Meant::Direct => sent(request.name.clone(), raw_arguments, None),
                Meant::Behind(behind) => {
                    let Behind {
                        name,
                        arguments,
                        warnings,
                    } = behind;
                    sent(name.into(), arguments, Some(warnings))
                }
                Meant::Own(own, arguments) => {
                    let call = OwnCall {
                        own,
                        arguments: &arguments,
                        envelope,
                        principal: &principal,
                    };
                    Asked::Own(Box::pin(gateway.own(&call)).await)
                }
                Meant::Nothing(error) => {
                    let id = envelope.request_id.clone();
                    let id = id.unwrap_or_else(|| gateway.ids().request_id());
                    let language = Language::of(envelope.locale.as_deref());
                    Asked::Own(ReplyEnvelope::failure(id, error.in_language(language)))
                }
            },
        )
    }

    /// A reply as the result of its call.
    pub(super) fn result(
        &self,
        sent: &Sent,
        reply: ReplyEnvelope,
        context: &Context,
    ) -> Result<CallToolResult, ErrorData> {
        let gateway = &self.shared.gateway;
        let catalog = gateway.executor().catalog();
        let whole = carriage::client_wants_whole(context);
        let Some(entry) = catalog.get(&sent.name) else {
            if sent.behind.is_none() {
                return Err(unknown_tool(&reply));
            }
            // The message called `call_tool`, which there is: what it names is the model's to mend.
            let wants = Wants {
                structured: true,
                whole,
            };
            return carriage::result(gateway.for_model(reply), &wants);
        };
        let mut reply = reply;
        reply.warnings.extend(sent.behind.iter().flatten().cloned());
        // The answer of `call_tool` has no declared form.
        let is_promised = sent.behind.is_none() && entry.spec().output.is_some();
        let promised = is_promised.then(|| self.shared.declarations.of(catalog, &entry));
        let keeps = |reply: &ReplyEnvelope| {
            let accepts = |prepared: &Arc<Prepared>| {
                !reply.ok || prepared.for_client(whole).accepts(&reply.data)
            };
            let promised = promised.as_ref();
            promised.is_none_or(|prepared| prepared.as_ref().is_some_and(accepts))
        };
        let language = Language::of(sent.said.envelope.locale.as_deref());
        // Its parts are cut from the whole answer, with the blocks beside it.
        let mut short = gateway.shortened(&sent.offer, &sent.name, &reply, language);
        let mut beside = take_beside(&mut reply);
        if let Some(short) = &mut short {
            beside = take_beside(short);
        }
        let is_structured = keeps(&reply);
        if !is_structured {
            let tool = entry.name();
            let record = reply.evidence.as_ref().map(|it| it.snapshot_id.to_string());
            tracing::warn!(%tool, record, "the tool's answer does not match its output schema");
        }
        let wants = Wants {
            structured: is_structured,
            whole,
        };
        let written = |reply: ReplyEnvelope, beside: Vec<ContentBlock>, is_cut: bool| {
            let reply = gateway.for_model(reply);
            let blocks = blocks_of(&reply, is_cut).filter(|_| !is_promised);
            let mut result = carriage::result(reply, &wants)?;
            let text = 0..result.content.len().min(1);
            if let Some(blocks) = blocks {
                // What a client can show itself is not shown as JSON.
                result.structured_content = None;
                result.content.splice(text, blocks);
            } else {
                result.content.splice(text.end..text.end, beside);
            }
            Ok::<_, ErrorData>(result)
        };
        let Some(short) = short else {
            return written(reply, beside, false);
        };
        // Clients check the data against the declared form: where the cut breaks it, only the text is cut.
        let is_kept = !is_structured || keeps(&short);
        let mut result = written(short, beside, true)?;
        if !is_kept {
            let uncut = carriage::result(gateway.for_model(reply), &wants)?;
            result.structured_content = uncut.structured_content;
        }
        Ok(result)
    }

    /// Runs a call, reports its progress to the client, and lets the client stop it.
    ///
    /// A client that goes away stops a read; a write that has begun finishes and is recorded.
    pub(super) async fn run(
        &self,
        sent: &Sent,
        context: &Context,
    ) -> Result<ReplyEnvelope, ErrorData> {
        let mut running = self.start(sent, context, None);
        context.runs(&running.cancellation);
        run(
            &mut running.call,
            &running.cancellation,
            &mut running.reports,
            context,
        )
        .await
        .ok_or_else(lost)
    }

    /// Starts a call, in which the tool may speak to the client.
    fn start(&self, sent: &Sent, context: &Context, talk: Option<Talk>) -> Running {
        let cancellation = Cancellation::new();
        let mut call = sent.to_call().cancellation(cancellation.clone());
        let mut said = None;
        if let Some((dialogue, receiver)) = talk {
            call = call.extension(dialogue);
            said = Some(receiver);
        }
        let mut reports = None;
        if context.meta.get_progress_token().is_some() {
            let (sink, receiver) = progress::channel();
            call = call.extension(sink);
            reports = Some(receiver);
        }
        let gateway = self.shared.gateway.clone();
        Running {
            call: Box::pin(async move { Some(gateway.call(call).await) }),
            cancellation,
            reports,
            said,
        }
    }

    /// Follows a call to its end, or to a question that its client answers with the next request.
    async fn follow(&self, mut running: Running, context: &Context) -> Result<Ran, ErrorData> {
        context.runs(&running.cancellation);
        loop {
            let Running {
                call,
                cancellation,
                reports,
                said,
            } = &mut running;
            let asked = {
                let ending = std::pin::pin!(run(call, cancellation, reports, context));
                match self.while_talking(ending, said, context).await {
                    Ok(reply) => return Ok(Ran::Ended(Box::new(reply.ok_or_else(lost)?))),
                    Err(asked) => asked,
                }
            };
            let Question { request, answer } = asked;
            let mut id = [0; 16];
            self.shared.gateway.ids().fill(&mut id);
            let id = format!("{:032x}", u128::from_be_bytes(id));
            match self.shared.parked.park(id.clone(), running, answer) {
                Ok(()) => return Ok(Ran::Asks(id, request)),
                Err(own) => running = own,
            }
        }
    }
}

/// Result of following a call.
enum Ran {
    Ended(Box<ReplyEnvelope>),
    /// The call waits under this id for the answer to this question.
    Asks(String, Value),
}

/// The answer to the question of a call that waits.
fn answer_of(answers: Option<Answers>) -> Option<Value> {
    let mut answers = answers?;
    answers.responses.remove(WAITING_KEY)
}

/// The server stops while the call runs.
fn lost() -> ErrorData {
    ErrorData::internal_error("the server is stopping; ask for the call by its key", None)
}

/// Takes the blocks beside a structured answer out of its data.
fn take_beside(reply: &mut ReplyEnvelope) -> Vec<ContentBlock> {
    let members = reply.data.as_object_mut();
    let blocks = members.and_then(|members| members.remove(BLOCKS));
    let blocks = blocks.iter().filter_map(Value::as_array).flatten();
    // One that was cut is none of the protocol any more.
    let blocks = blocks.filter_map(|block| serde_json::from_value(block.clone()).ok());
    blocks.collect()
}

/// The blocks of an answer that is nothing but content of the protocol: the member `content`, and no other. Of a cut answer none may be left.
fn blocks_of(reply: &ReplyEnvelope, is_cut: bool) -> Option<Vec<ContentBlock>> {
    let members = reply.data.as_object().filter(|_| reply.ok)?;
    let content = members.get("content")?.as_array()?;
    if members.len() > 1 || (content.is_empty() && !is_cut) {
        return None;
    }
    let blocks = content
        .iter()
        .map(|block| serde_json::from_value(block.clone()).ok());
    blocks.collect()
}

/// The arguments of a message that still has them.
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

/// Waits for the end of a call, passes its progress on, and lets the client of this request stop it.
async fn run(
    running: &mut BoxFuture<'static, Option<ReplyEnvelope>>,
    cancellation: &Cancellation,
    reports: &mut Option<mpsc::Receiver<Progress>>,
    context: &Context,
) -> Option<ReplyEnvelope> {
    let token = context.meta.get_progress_token();
    let mut is_stopped = false;
    let reply = loop {
        tokio::select! {
            biased;
            report = next(reports) => tell(context.peer(), token.as_ref(), report).await,
            reply = &mut *running => break reply,
            () = context.gone(), if !is_stopped => {
                cancellation.cancel();
                is_stopped = true;
            }
        }
    };
    // What was reported before the end is told before the end, and nothing after it.
    while let Some(Ok(report)) = reports.as_mut().map(mpsc::Receiver::try_recv) {
        tell(context.peer(), token.as_ref(), report).await;
    }
    reply
}

/// The next report; never returns if the client asked for none or no more will come.
async fn next(reports: &mut Option<mpsc::Receiver<Progress>>) -> Progress {
    if let Some(receiver) = reports
        && let Some(report) = receiver.recv().await
    {
        return report;
    }
    std::future::pending().await
}

async fn tell(peer: Option<&Peer<RoleServer>>, token: Option<&ProgressToken>, report: Progress) {
    let (Some(peer), Some(token)) = (peer, token) else {
        return;
    };
    let mut param = ProgressNotificationParam::new(token.clone(), report.done);
    param.total = report.total;
    param.message = report.message;
    // A client that has gone away is noticed by the transport.
    let _gone = Box::pin(peer.notify_progress(param)).await;
}

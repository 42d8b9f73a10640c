//! What a user has to confirm, asked over the protocol (A13).
//!
//! A call that answers `NEEDS_USER_CONFIRMATION` names an approval. Where the client can show a form and
//! the principal is the user, the question goes to the client: as an `input_required` result in the newer
//! era, as a request of ours in the older ones where there is a connection. An agent is never asked with a
//! form, because the agent might fill it in; it is sent to a page of the user's, where the
//! client can open one, or told the approval's id.
//!
//! Nothing here decides: the answer goes to the approval, which is bound to its principal, tool and
//! arguments, counts once, and refuses agents. The state that the client carries in between only says
//! which approval was asked about, so that a forged or an old one is of no use.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign::Principal;
use countersign::approve::Response;
use countersign::contract::approval::{Approval, ApprovalDecision};
use countersign::contract::tool::{Narrower, Narrowing};
use countersign::contract::{ActorType, Digest, ErrorCode, Language, Message, ReplyEnvelope};
use countersign::dialogue::{Answers, Questions};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientResult, InputRequest, InputRequiredResult,
    RequestStateCodec, SealOptions, ServerRequest,
};
use rmcp::service::PeerRequestOptions;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};

use super::context::Context;
use crate::gateway::Gateway;
use crate::words::Say;

/// Key of the question and its answer in a message.
const KEY: &str = "confirmation";

/// The same for a question of a server whose call waits.
pub(super) const WAITING_KEY: &str = "question";

/// Time in which a question can be answered; the approval itself may end sooner.
pub(super) const VALID_FOR: Duration = Duration::from_mins(15);

/// The question about one call.
pub(super) struct Asking<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) principal: &'a Principal,
    /// User for whom the call is made.
    pub(super) user_id: &'a str,
    pub(super) tool: &'a str,
    pub(super) raw_arguments: &'a str,
    /// Language of the call's locale.
    pub(super) language: Language,
}

/// The meaning of a state that a client carries.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Opened {
    /// An approval was asked about, and this was shown of it.
    Approval(String, Option<Digest>),
    /// A server behind the gateway has asked while the call runs, and the call waits here under this id.
    Waiting { waiting: String },
    /// A server behind the gateway has asked, with a state of its own.
    Server { state: Option<String> },
}

/// Answers in a request to a question that was asked before.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) settled: Settled,
    /// Answers to questions of the server behind the tool.
    pub(super) answers: Option<Answers>,
    /// The call that waits for the answers.
    pub(super) waiting: Option<String>,
}

/// Way in which a client can be asked.
enum Way {
    /// A form, now or with the next request.
    Form,
    /// A page of the user's.
    Page(String),
}

impl Asking<'_> {
    /// Gives the answer that a repeated request brings to its approval. What became of it is what the
    /// call itself then says.
    ///
    /// Answers to questions of the server behind the tool are handed on.
    pub(super) async fn settle(&self, request: &CallToolRequestParams) -> Result<Given, ErrorData> {
        let responses = request.input_responses.clone();
        let unasked = |answers, waiting| Given {
            settled: Settled::NotAsked,
            answers,
            waiting,
        };
        let Some(state) = &request.request_state else {
            let answers = responses.map(|responses| Answers {
                responses,
                state: None,
            });
            return Ok(unasked(answers, None));
        };
        // On the heap here and below: every call has room for what waits, and few calls ask.
        let opened = Box::pin(self.opened(state)).await?;
        let answers = |state| {
            let responses = responses.clone().unwrap_or_default();
            Some(Answers { responses, state })
        };
        Ok(match opened {
            Opened::Approval(approval_id, shown) => {
                let answer = responses.as_ref().and_then(|all| all.get(KEY));
                Given {
                    settled: Box::pin(self.given(&approval_id, shown, answer)).await,
                    answers: None,
                    waiting: None,
                }
            }
            Opened::Waiting { waiting } => unasked(answers(None), Some(waiting)),
            Opened::Server { state } => unasked(answers(state), None),
        })
    }

    /// The state of a server's questions, out of ours.
    pub(super) async fn reopened(&self, state: &str) -> Result<Option<String>, ErrorData> {
        match self.opened(state).await? {
            Opened::Server { state } => Ok(state),
            Opened::Approval(..) | Opened::Waiting { .. } => Err(self.state_refused()),
        }
    }

    /// Questions of the server behind a tool, for the client to answer with its next request. The state of the server travels in ours, so
    /// that it comes back from this principal, for this tool and these arguments, and not too late.
    pub(super) async fn ask_back(
        &self,
        questions: Questions,
    ) -> Result<InputRequiredResult, ErrorData> {
        let state = questions.state;
        self.asks(questions.requests, &Opened::Server { state })
            .await
    }

    /// A question of a server whose call waits under this id.
    pub(super) async fn ask_waiting(
        &self,
        id: String,
        request: Value,
    ) -> Result<InputRequiredResult, ErrorData> {
        let requests = [(WAITING_KEY.to_owned(), request)].into();
        self.asks(requests, &Opened::Waiting { waiting: id }).await
    }

    async fn asks(
        &self,
        requests: BTreeMap<String, Value>,
        meaning: &Opened,
    ) -> Result<InputRequiredResult, ErrorData> {
        let requests = requests.into_iter();
        let requests = requests.map(|(name, own)| Ok((name, serde_json::from_value(own)?)));
        let requests: Result<_, serde_json::Error> = requests.collect();
        let unreadable = |error| {
            let message = format!("the server asks in a form that is not of the protocol: {error}");
            ErrorData::internal_error(message, None)
        };
        let requests: BTreeMap<String, InputRequest> = requests.map_err(unreadable)?;
        let sealed = Box::pin(self.sealed(meaning)).await;
        let sealed =
            sealed.ok_or_else(|| ErrorData::internal_error("the state is not sealed", None))?;
        Ok(InputRequiredResult::new(Some(requests), Some(sealed)))
    }

    /// Gives an answer to its approval, where it is one.
    async fn given(
        &self,
        approval_id: &str,
        shown: Option<Digest>,
        answer: Option<&Value>,
    ) -> Settled {
        match answer.map_or(Answer::None, answer_of) {
            Answer::Decided(decision) => {
                let response = Response {
                    language: self.language,
                    narrowed: lowered(decision, answer),
                    ..Response::new(decision).to(shown)
                };
                self.answer(approval_id, &response).await;
                Settled::Asked
            }
            Answer::None => Settled::Asked,
            Answer::Malformed => Settled::Malformed,
        }
    }

    /// The answer of a person. One that does not count, an agent's above all, changes nothing: the call
    /// is asked about again.
    async fn answer(&self, approval_id: &str, response: &Response) {
        let approvals = self.gateway.executor().approvals();
        let answered = approvals.decide(approval_id, self.principal, response);
        if let Err(error) = answered.await {
            let code = error.into_body().code;
            tracing::info!(%code, "an answer to an approval was refused");
        }
    }

    /// Asks with the next request (newer era); `None` if the client cannot be asked.
    pub(super) async fn ask_later(
        &self,
        reply: &ReplyEnvelope,
        context: &Context,
    ) -> Option<InputRequiredResult> {
        let approval_id = wanted(reply).filter(|_| context.is_newer())?;
        let way = self.way(context.capabilities.as_ref()?, approval_id)?;
        let (question, shown) = Box::pin(self.question(&way, approval_id)).await?;
        let question: InputRequest = serde_json::from_value(question).ok()?;
        let state = Opened::Approval(approval_id.to_owned(), shown);
        let state = Box::pin(self.sealed(&state)).await?;
        let questions = [(KEY.to_owned(), question)].into_iter().collect();
        Some(InputRequiredResult::new(Some(questions), Some(state)))
    }

    /// Asks at once over a connection of the older eras. `None` if there is no answer, so that the call is
    /// not worth another try.
    pub(super) async fn ask_now(
        &self,
        reply: &ReplyEnvelope,
        context: &Context,
    ) -> Option<Settled> {
        let approval_id = wanted(reply)?;
        // Only a connection has told us before what its client can.
        let declared = context.of_connection()?;
        let way = self.way(&declared, approval_id)?;
        match way {
            Way::Form => {}
            Way::Page(_) => return None,
        }
        let (question, shown) = Box::pin(self.question(&way, approval_id)).await?;
        let question: ServerRequest = serde_json::from_value(question).ok()?;
        let options = PeerRequestOptions::with_timeout(VALID_FOR);
        let sent = context.peer()?.send_request_with_option(question, options);
        let answered = async { sent.await.ok()?.await_response().await.ok() };
        let answered = Box::pin(answered).await?;
        let ClientResult::ElicitResult(answered) = answered else {
            return None;
        };
        let answered = json!(answered);
        Some(Box::pin(self.given(approval_id, shown, Some(&answered))).await)
    }

    /// Returns the way in which this client can be asked about a call of this principal.
    fn way(&self, declared: &ClientCapabilities, approval_id: &str) -> Option<Way> {
        let elicitation = declared.elicitation.as_ref()?;
        // One that names no mode has forms.
        let has_forms = elicitation.form.is_some() || elicitation.url.is_none();
        let is_the_user = match self.principal.actor.kind {
            ActorType::User => self.principal.actor.id == self.user_id,
            ActorType::Agent | ActorType::System => false,
        };
        if has_forms && is_the_user {
            return Some(Way::Form);
        }
        let page = self.gateway.settings().approvals_url.as_ref();
        let page = page.filter(|_| elicitation.url.is_some())?;
        Some(Way::Page(page.replace("{id}", approval_id)))
    }

    /// The question, and the digest of what it shows.
    async fn question(&self, way: &Way, approval_id: &str) -> Option<(Value, Option<Digest>)> {
        let approvals = self.gateway.executor().approvals();
        // What may be shown to whom is the approval's to say.
        let approval = approvals.show_in(approval_id, self.principal, self.language);
        let approval = approval.await.ok()?;
        let mut message = message(&approval, self.language);
        if let Way::Form = way {
            message.extend(elsewhere(&approval, self.language));
        }
        let message = message.join("\n");
        let params = match way {
            Way::Form => json!({
                "mode": "form",
                "message": message,
                "requestedSchema": {
                    "type": "object",
                    "properties": self.fields(&approval),
                    "required": ["confirm"],
                },
            }),
            Way::Page(url) => json!({
                "mode": "url",
                "message": message,
                "url": url,
                "elicitationId": approval_id,
            }),
        };
        let question = json!({ "method": "elicitation/create", "params": params });
        Some((question, approval.shown_digest))
    }

    /// The fields of the form: yes or no, and each number that may be lowered. What a form has no field for is in the message.
    fn fields(&self, approval: &Approval) -> Value {
        let confirm = json!({
            "type": "boolean",
            "title": Say::Confirm.text(self.language),
            "description": Say::ConfirmOnce.text(self.language),
        });
        let mut fields = serde_json::Map::from_iter([("confirm".to_owned(), confirm)]);
        for narrowing in &approval.narrowable {
            if let Some(most) = in_form(approval, narrowing) {
                let field = json!({
                    "type": "number",
                    "title": Say::AtMost { amount: narrowing.pointer.clone() }.text(self.language),
                    "description": Say::Lower.text(self.language),
                    "maximum": most,
                    "default": most,
                });
                fields.insert(narrowing.pointer.clone(), field);
            }
        }
        Value::Object(fields)
    }

    /// The meaning of a state, if it was ours, for this principal, tool and arguments, and not too long ago. All others are refused alike.
    async fn opened(&self, state: &str) -> Result<Opened, ErrorData> {
        let codec = self.codec().await.ok_or_else(|| self.state_refused())?;
        let opened = codec.open_with(state, &self.binding()).ok();
        let asked = opened.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        asked.ok_or_else(|| self.state_refused())
    }

    pub(super) fn state_refused(&self) -> ErrorData {
        ErrorData::invalid_params(Say::StateRefused.text(self.language), None)
    }

    async fn sealed(&self, meaning: &Opened) -> Option<String> {
        let binding = self.binding();
        let options = SealOptions::new().associated_data(&binding).ttl(VALID_FOR);
        let meaning = json!(meaning).to_string();
        Some(self.codec().await?.seal_with(meaning.as_bytes(), &options))
    }

    /// Returns the bytes that a `requestState` is bound to.
    fn binding(&self) -> Vec<u8> {
        let arguments = Digest::of_bytes(self.raw_arguments.as_bytes());
        let actor = &self.principal.actor;
        json!([
            actor,
            self.principal.user_id,
            self.user_id,
            self.tool,
            arguments
        ])
        .to_string()
        .into_bytes()
    }

    /// The key comes from the user's own, which all replicas share through the store.
    async fn codec(&self) -> Option<RequestStateCodec> {
        let vault = self.gateway.executor().vault();
        let keys = vault.key(&self.principal.user_id).await.ok()?;
        // No tool can have this name.
        let key = keys.downstream_key("$mcp", "request_state");
        RequestStateCodec::try_new(key).ok()
    }
}

/// Everything that a person is shown, as one text: the call and its cost, the tool's own words, what the call would answer, and the arguments.
fn message(approval: &Approval, language: Language) -> Vec<String> {
    let title = approval.title.as_deref().unwrap_or(&approval.description);
    let mut lines = vec![format!("{}: {title}", approval.tool)];
    if let Some(most) = &approval.ceiling {
        let amount = most.to_string();
        lines.push(Say::AtMost { amount }.text(language));
    }
    if approval.four_eyes {
        lines.push(Say::TwoApprovers.text(language));
    }
    if let Some(question) = &approval.question {
        lines.push(question.title.clone());
        let own = question.lines.iter();
        lines.extend(own.map(|line| format!("{}: {}", line.label, line.value)));
        let undone = question.irreversible.iter().cloned();
        lines.extend(undone.map(|what| Say::CannotBeUndone { what }.text(language)));
    }
    if let Some(answer) = &approval.would_answer {
        let answer = answer.to_string();
        lines.push(Say::WouldAnswer { answer }.text(language));
    }
    lines.push(approval.arguments.to_string());
    lines
}

/// The number that a field of a form may lower; `None` where a form has no field for what may be made smaller.
fn in_form<'a>(approval: &'a Approval, narrowing: &Narrowing) -> Option<&'a Number> {
    match (narrowing.to, approval.arguments.pointer(&narrowing.pointer)) {
        (Narrower::Lower, Some(Value::Number(most))) => Some(most),
        (Narrower::Lower | Narrower::Fewer | Narrower::Subset, _) => None,
    }
}

/// Returns instructions to narrow what a form has no field for: items of a list, members of an object, amounts that
/// are strings.
fn elsewhere(approval: &Approval, language: Language) -> Option<String> {
    let without = approval.narrowable.iter();
    let without = without.filter(|it| in_form(approval, it).is_none());
    let pointers: Vec<&str> = without.map(|it| it.pointer.as_str()).collect();
    let told = Say::NarrowElsewhere {
        pointers: pointers.join(", "),
        id: approval.id.clone(),
    };
    (!pointers.is_empty()).then(|| told.text(language))
}

/// The approval that a reply asks for.
pub(super) fn wanted(reply: &ReplyEnvelope) -> Option<&str> {
    let error = reply.error.as_ref()?;
    let is_asked = error.code == ErrorCode::NeedsUserConfirmation;
    let approval_id = error.details.extra.get("approval_id")?.as_str()?;
    is_asked.then_some(approval_id)
}

/// The answer that a client brought to a question.
enum Answer {
    Decided(ApprovalDecision),
    /// The form was closed, or a page was opened, which answers itself.
    None,
    /// A form that says neither yes nor no.
    Malformed,
}

fn answer_of(answer: &Value) -> Answer {
    let confirmed = answer.pointer("/content/confirm").and_then(Value::as_bool);
    match (answer.get("action").and_then(Value::as_str), confirmed) {
        (Some("accept"), Some(true)) => Answer::Decided(ApprovalDecision::Approve),
        (Some("accept"), Some(false)) | (Some("decline"), _) => {
            Answer::Decided(ApprovalDecision::Deny)
        }
        (Some("accept"), None) => Answer::Malformed,
        (Some(_) | None, _) => Answer::None,
    }
}

/// The numbers that a form has lowered, by JSON pointer.
fn lowered(decision: ApprovalDecision, answer: Option<&Value>) -> BTreeMap<String, Value> {
    let content = answer.and_then(|answer| answer.get("content")?.as_object());
    let fields = content.into_iter().flatten();
    match decision {
        ApprovalDecision::Deny => BTreeMap::new(),
        ApprovalDecision::Approve => fields
            .filter(|(name, value)| name.starts_with('/') && value.is_number())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    }
}

/// The end of the question that a request was asked before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// The client was not asked.
    NotAsked,
    /// It was answered, or left open.
    Asked,
    /// A form came back that says neither yes nor no.
    Malformed,
}

impl Settled {
    /// Says in a reply that still needs the user what was wrong with the form.
    pub(super) fn explain(self, reply: &mut ReplyEnvelope, language: Language) {
        if self == Self::Malformed
            && wanted(reply).is_some()
            && let Some(error) = &mut reply.error
        {
            let form = Say::MalformedForm.text(language);
            error.message = format!("{}; {form}", error.message).into();
        }
    }
}

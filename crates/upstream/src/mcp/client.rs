//! Our side of a connection: reports of progress go to the call that they are about, questions and messages to its caller, and a
//! changed list is noticed. A question without a caller who can answer is declined.

#![expect(
    deprecated,
    reason = "servers of the older eras ask for models and roots, and send messages"
)]

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    CustomNotification, ElicitRequestParams, ElicitResult, ElicitationAction, Implementation,
    ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rmcp::{ClientHandler, ErrorData};
use serde_json::json;
use tokio::sync::{Mutex, Notify, broadcast, mpsc};

use countersign::progress::Progress;

use super::talk::Talks;
use crate::manifest::Secret;
use crate::scrub;

/// Calls that wait for reports, by the token that the server has of each.
pub(super) type Sinks = Mutex<HashMap<ProgressToken, mpsc::Sender<Progress>>>;

/// The handler of one connection.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) sinks: Arc<Sinks>,
    pub(super) talks: Arc<Talks>,
    pub(super) secrets: Secrets,
    /// The abilities that a server of the older eras gets to know.
    pub(super) abilities: ClientCapabilities,
    /// Told when the server's list of tools has changed.
    pub(super) changed: Arc<Notify>,
    /// Told when a resource has changed.
    pub(super) updates: Option<Updates>,
    /// True if the gateway lists tools over the connection.
    pub(super) is_of_gateway: bool,
}

/// The secrets that a server knows from us. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Secrets(Arc<std::sync::Mutex<Vec<Secret>>>);

impl Secrets {
    pub(super) fn set(&self, secrets: &[Secret]) {
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *own = secrets.to_vec();
    }

    pub(super) fn get(&self) -> Vec<Secret> {
        let own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        own.clone()
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

/// Channel for the URIs of changed resources, and the prefix that callers see.
#[derive(Debug, Clone)]
pub(super) struct Updates {
    pub(super) to: broadcast::Sender<String>,
    pub(super) prefix: String,
}

/// Notification that the user has done what an address asked for.
const VISITED: &str = "notifications/elicitation/complete";

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("countersign", env!("CARGO_PKG_VERSION"));
        // For a handshake of the older eras; in the newest one each request has its own.
        ClientConfig::new(self.abilities.clone(), own)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let sinks = self.sinks.lock().await;
        if let Some(sink) = sinks.get(&params.progress_token) {
            let report = Progress {
                done: params.progress,
                total: params.total,
                message: params
                    .message
                    .map(|own| scrub::text(&own, &self.secrets.get())),
            };
            // A report is a hint: one that finds no room is left out.
            let _ = sink.try_send(report);
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        if let Some(caller) = self.talks.caller() {
            let message = json!({ "method": "notifications/message", "params": params });
            caller.tell(scrub::value(message, &self.secrets.get()));
        }
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        if let Some(Updates { to, prefix }) = &self.updates {
            // It fails where nobody has subscribed.
            let _nobody = to.send(format!("{prefix}{}", params.uri));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleClient>,
    ) {
        if notification.method == VISITED
            && let Some(caller) = self.talks.caller()
        {
            let message = json!({ "method": VISITED, "params": notification.params });
            caller.tell(scrub::value(message, &self.secrets.get()));
        }
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let question = json!({ "method": "elicitation/create", "params": params });
        let question = scrub::value(question, &self.secrets.get());
        let answer = self.talks.ask(question).await;
        Ok(answer.unwrap_or_else(|| ElicitResult::new(ElicitationAction::Decline)))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let question = json!({ "method": "sampling/createMessage", "params": params });
        let question = scrub::value(question, &self.secrets.get());
        let answer = self.talks.ask(question).await;
        answer.ok_or_else(|| ErrorData::invalid_request("there is no model to ask", None))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let answer = self.talks.ask(json!({ "method": "roots/list" })).await;
        Ok(answer.unwrap_or_default())
    }
}

//! One MCP server while the gateway runs: its connection, its list of tools, and the approved ones.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign::ToolError;
use countersign::contract::{ErrorBody, ErrorCode, FaultSource};
use countersign_contract::Digest;
use serde_json::Value;
use tokio::sync::{Notify, Semaphore, broadcast, watch};
use tokio::time::{Instant, timeout};

use super::connection::Changes;
use super::definition::Definition;
use super::fault;
use super::offers::Offered;
use super::pins::{Difference, Pin, compare};
use super::pool::Pool;
use super::reach::{NoConnection, Way};
use super::trouble::Trouble;
use crate::http::ServiceError;
use crate::http::breaker::Breaker;
use crate::manifest::{Trust, Upstream};
use crate::words::Say;

/// An MCP server whose tools are called. Its tools share its connections.
pub struct Server {
    pub(super) entry: Upstream,
    pub(super) way: Way,
    pub(super) slots: Semaphore,
    /// True if the configuration has this server no more.
    pub(super) is_retired: AtomicBool,
    pub(super) breaker: Breaker,
    pub(super) pool: Pool,
    /// Told when the list of tools has to be looked at again.
    pub(super) changed: Arc<Notify>,
    seen: Mutex<Seen>,
    started: Instant,
}

#[derive(Default)]
struct Seen {
    approved: Option<Pin>,
    /// True if the approval stands in the file.
    is_kept: bool,
    /// True if an approval was withdrawn, so that a list is not approved by being seen.
    is_withdrawn: bool,
    /// The approved tools that cannot be used.
    left_out: Vec<LeftOut>,
    /// The last list.
    listed: Option<Vec<Definition>>,
    /// Resources and prompts.
    offered: Arc<Offered>,
    /// Counts the changes of what servers list.
    changes: Option<watch::Sender<u64>>,
    /// The addresses of resources that have changed.
    updates: Option<broadcast::Sender<String>>,
    /// The time of the last list.
    at: Option<Instant>,
    /// The time at which a list was asked for last, whether or not it came.
    asked: Option<Instant>,
    trouble: Option<String>,
}

/// State of a tool's definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The definition is the approved one, as far as is known.
    Approved,
    /// The server lists another one.
    Changed,
    /// The server lists no such tool.
    Unlisted,
}

/// State of a server, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Digest of the pin; `None` if nothing was approved.
    pub pin: Option<Digest>,
    /// Number of approved tools.
    pub approved: usize,
    /// Number of tools in the last list; `None` if there was none yet.
    pub listed: Option<usize>,
    /// Reason for which the last list failed; `None` if it did not.
    pub trouble: Option<String>,
    /// The tools that are not as they were approved.
    pub differences: Vec<Difference>,
    /// The approved tools that cannot be used.
    pub left_out: Vec<LeftOut>,
}

/// An approved tool that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Name at the server.
    pub tool: String,
    /// The reason, for an operator.
    pub why: String,
}

/// A server did not list its tools.
#[derive(Debug, thiserror::Error)]
#[error("the upstream {upstream} does not list its tools: {why}")]
pub struct NotListed {
    /// The upstream.
    pub upstream: String,
    /// The cause, for an operator.
    pub why: String,
}

impl Server {
    /// Reads the secrets and prepares the clients. Nothing is sent, and no child is started. Relative paths count from `folder`.
    pub fn prepare(
        entry: &Upstream,
        folder: &Path,
        approved: Option<Pin>,
    ) -> Result<Arc<Self>, ServiceError> {
        let way = match &entry.url {
            Some(url) => Way::http(entry, url, folder)?,
            None => Way::child(entry, folder)?,
        };
        let idle = Duration::from_secs(entry.connections.idle_seconds);
        Ok(Arc::new(Self {
            way,
            slots: Semaphore::new(entry.pool.concurrent_max as usize),
            is_retired: AtomicBool::new(false),
            breaker: Breaker::new(entry.breaker),
            pool: Pool::new(entry.connections.count_max, idle),
            changed: Arc::default(),
            seen: Mutex::new(Seen {
                is_kept: approved.is_some(),
                approved,
                ..Seen::default()
            }),
            started: Instant::now(),
            entry: entry.clone(),
        }))
    }

    /// Returns the name of the server.
    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// Time since the server was prepared.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Lists the tools, with the credential for that, and remembers the list.
    pub async fn discover(&self) -> Result<Vec<Definition>, NotListed> {
        let limit = Duration::from_millis(self.entry.timeouts.attempt_ms);
        let listed = async {
            let (connection, sent) = self.for_discovery().await?;
            let listed = timeout(limit, connection.list()).await;
            let listed = listed.unwrap_or(Err(Trouble::Late));
            let listed = listed.map_err(|trouble| trouble.without(&sent.secrets))?;
            // What a server offers beside tools keeps nobody from calling them.
            if let Ok(Ok(offered)) = timeout(limit, connection.offered()).await {
                self.take_offered(offered);
            }
            Ok(listed)
        };
        let listed: Result<_, NoConnection> = listed.await;
        let mut seen = self.seen();
        seen.asked = Some(Instant::now());
        match listed {
            Ok(listed) => {
                seen.at = Some(Instant::now());
                seen.trouble = None;
                seen.listed = Some(listed.clone());
                Ok(listed)
            }
            Err(error) => {
                let before = seen.trouble.take();
                let why = match error {
                    NoConnection::Told(error) => error.body().message.to_string(),
                    // That it is left alone for a moment does not say why.
                    NoConnection::Trouble(trouble @ Trouble::Open(_)) => {
                        before.unwrap_or_else(|| fault::words(&trouble))
                    }
                    NoConnection::Trouble(trouble) => fault::words(&trouble),
                };
                seen.trouble = Some(why.clone());
                let upstream = self.entry.name.clone();
                Err(NotListed { upstream, why })
            }
        }
    }

    fn take_offered(&self, offered: Offered) {
        let is_other = *self.seen().offered != offered;
        if is_other {
            self.seen().offered = Arc::new(offered);
            self.tell_change();
        }
    }

    /// Tells those who watch that a list may have changed.
    pub(super) fn tell_change(&self) {
        if let Some(changes) = &self.seen().changes {
            changes.send_modify(|count| *count += 1);
        }
    }

    /// Tells changes here from now on.
    pub(crate) fn tell(&self, changes: watch::Sender<u64>, updates: broadcast::Sender<String>) {
        let mut seen = self.seen();
        seen.changes = Some(changes);
        seen.updates = Some(updates);
    }

    pub(super) fn updates(&self) -> Option<broadcast::Sender<String>> {
        self.seen().updates.clone()
    }

    /// Resources and prompts of the server, as listed last.
    pub(super) fn offered(&self) -> Arc<Offered> {
        self.seen().offered.clone()
    }

    /// The time since the last list, or since the start if there was none.
    pub(super) fn silent_for(&self) -> Duration {
        self.seen().at.unwrap_or(self.started).elapsed()
    }

    /// The time since a list was asked for; `None` if none was.
    pub(crate) fn asked_ago(&self) -> Option<Duration> {
        self.seen().asked.map(|at| at.elapsed())
    }

    /// Changes of the list, where the server has to be asked to tell them.
    pub(super) async fn changes(&self) -> Option<Changes> {
        let (connection, _) = self.for_discovery().await.ok()?;
        connection.subscribe().await
    }

    /// The error of a call to a tool whose definition is not the approved one any more. Nothing was sent.
    pub(super) fn quarantined(&self, tool: &str) -> ToolError {
        let upstream = self.name().to_owned();
        let hint = Say::Approve {
            upstream: upstream.clone(),
        };
        let tool = tool.to_owned();
        refused(Say::Quarantined { tool, upstream }, hint)
    }

    /// The error of a call to a tool that the server does not list any more. Nothing was sent.
    pub(super) fn unlisted(&self, tool: &str) -> ToolError {
        let (tool, upstream) = (tool.to_owned(), self.name().to_owned());
        refused(Say::Unlisted { tool, upstream }, Say::OperatorMends)
    }

    /// Compares a tool's definition with the last list of the server.
    pub(super) fn standing(&self, definition: &Definition) -> Standing {
        let seen = self.seen();
        let Some(listed) = &seen.listed else {
            return Standing::Approved;
        };
        // A server may list several of one name; which of them it calls, only the server knows.
        let mut named = listed.iter().filter(|own| own.name == definition.name);
        match named.next() {
            None => Standing::Unlisted,
            Some(own) if own == definition && named.all(|own| own == definition) => {
                Standing::Approved
            }
            Some(_) => Standing::Changed,
        }
    }

    /// The pin that is in force.
    pub fn pin(&self) -> Option<Pin> {
        self.seen().approved.clone()
    }

    /// Puts a pin in force; the task that follows the server then puts its tools into the catalog.
    pub fn approve(&self, pin: Pin) {
        self.put_in_force(pin, true);
        self.changed.notify_one();
    }

    /// Puts a pin in force; `is_kept` if it stands in the file.
    pub(super) fn put_in_force(&self, pin: Pin, is_kept: bool) {
        let mut seen = self.seen();
        seen.approved = Some(pin);
        seen.is_kept = is_kept;
        seen.is_withdrawn = false;
    }

    /// Puts the pin of the file in force; false if it is already.
    pub(super) fn take_over(&self, pin: Pin) -> bool {
        let is_other = self.pin().as_ref() != Some(&pin);
        self.put_in_force(pin, true);
        is_other
    }

    /// Takes back an approval that stood in the file and does no more; false if there was none.
    pub(super) fn withdraw(&self) -> bool {
        let mut seen = self.seen();
        if !seen.is_kept {
            return false;
        }
        seen.is_kept = false;
        seen.is_withdrawn = true;
        seen.approved = None;
        tracing::warn!(
            upstream = self.name(),
            "the approval of this upstream's tools was withdrawn; its tools are not called"
        );
        true
    }

    /// True if something was approved, even if that was withdrawn.
    pub(super) fn was_approved(&self) -> bool {
        let seen = self.seen();
        seen.approved.is_some() || seen.is_withdrawn
    }

    /// Remembers the approved tools that cannot be used. The log names each of them once.
    pub(super) fn leave_out(&self, left_out: Vec<LeftOut>) {
        let mut seen = self.seen();
        for LeftOut { tool, why } in left_out.iter().filter(|it| !seen.left_out.contains(it)) {
            let upstream = self.name();
            tracing::warn!(
                upstream,
                tool,
                why,
                "a tool of this upstream cannot be used and is left out"
            );
        }
        seen.left_out = left_out;
    }

    /// True if a tool of the server is in the catalog, as far as its names and schemas decide that.
    pub(super) fn is_usable(&self, tool: &str) -> bool {
        !self.seen().left_out.iter().any(|own| own.tool == tool)
    }

    /// The last list.
    pub fn listed(&self) -> Option<Vec<Definition>> {
        self.seen().listed.clone()
    }

    /// True if the server has listed its tools since it was prepared.
    pub(super) fn has_listed(&self) -> bool {
        self.seen().listed.is_some()
    }

    /// True if the first list of the server is approved by being seen.
    pub(crate) fn trusts_first_use(&self) -> bool {
        self.entry.trust == Trust::FirstUse
    }

    /// Returns the state of the server.
    pub fn state(&self) -> State {
        let seen = self.seen();
        let nothing = BTreeMap::new();
        let approved = seen.approved.as_ref().map_or(&nothing, |pin| &pin.tools);
        State {
            pin: seen.approved.as_ref().map(|pin| pin.digest),
            approved: approved.len(),
            listed: seen.listed.as_ref().map(Vec::len),
            trouble: seen.trouble.clone(),
            differences: match &seen.listed {
                Some(listed) => compare(approved, listed),
                None => Vec::new(),
            },
            left_out: seen.left_out.clone(),
        }
    }

    /// The processes of its children.
    pub fn children(&self) -> Vec<u32> {
        self.pool.children()
    }

    /// Closes every connection; children are no more when it returns.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Closes every connection once the running calls have ended, and opens no other.
    pub(crate) async fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
        // Each running call has a slot.
        let _all = self
            .slots
            .acquire_many(self.entry.pool.concurrent_max)
            .await;
        self.slots.close();
        self.pool.retire().await;
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Server").field(&self.entry.name).finish()
    }
}

/// An approved definition, with the name that callers know the tool by.
#[derive(Debug)]
pub(super) struct Approved {
    pub(super) name: String,
    pub(super) definition: Definition,
    pub(super) digest: Digest,
    /// True if a call shows some of its arguments in headers, too, or has a name that has to be encoded for one.
    pub(super) travels_in_headers: bool,
}

impl Approved {
    pub(super) fn new(name: impl Into<String>, definition: &Definition) -> Self {
        Self {
            name: name.into(),
            digest: definition.digest(),
            travels_in_headers: travels_in_headers(definition),
            definition: definition.clone(),
        }
    }
}

fn travels_in_headers(definition: &Definition) -> bool {
    let is_plain = definition.name.bytes().all(|byte| byte.is_ascii_graphic());
    !is_plain
        || definition.name.starts_with("=?")
        || definition.input_schema.values().any(names_a_header)
}

/// True if a schema, or one inside it, has an argument that travels in a header.
fn names_a_header(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members
            .iter()
            .any(|(name, inner)| name == "x-mcp-header" || names_a_header(inner)),
        Value::Array(items) => items.iter().any(names_a_header),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A refusal before anything was sent, which only an operator can mend.
fn refused(say: Say, hint: Say) -> ToolError {
    let mut body = ErrorBody::new(ErrorCode::UpstreamError, say).source(FaultSource::Gateway);
    body.details.retryable = false;
    ToolError::from(body.hint(hint)).without_effect()
}

//! One connection to an MCP server: a session over HTTP, or a child.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use countersign::CallContext;
use countersign::dialogue::{Answers, Dialogue, Left, Questions};
use countersign::progress::Progress;
use countersign_contract::Digest;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ErrorCode,
    InputRequiredResult, JsonObject, ListToolsRequest, MetaObject, PaginatedRequestParams,
    ProgressToken, ProtocolVersion, RequestMetaObject, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, PeerRequestOptions,
    RequestHandle, RunningService, ServiceError, Subscription,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout};

use super::alone::Alone;
use super::child::{Child, Lines, Program};
use super::client::{Client, Secrets, Sinks, Updates};
use super::definition::Definition;
use super::fault;
use super::server::Approved;
use super::talk::{self, Talks};
use super::trouble::Trouble;
use super::watches::Watches;
use super::wire::Wire;
use crate::manifest::Secret;
use crate::scrub;

/// A connection. Dropped, it is closed, and its child is killed.
pub(super) struct Connection {
    running: Mutex<Option<RunningService<RoleClient, Client>>>,
    pub(super) peer: rmcp::Peer<RoleClient>,
    sinks: Arc<Sinks>,
    pub(super) talks: Arc<Talks>,
    secrets: Secrets,
    /// The longest line of a child, and true if there was a longer one.
    line: (usize, Arc<AtomicBool>),
    wire: Option<Wire>,
    /// The way of calls that stand alone, to a server of the newest era over HTTP.
    alone: Option<Alone>,
    child: Mutex<Option<Child>>,
    /// Requests that are on their way.
    calls: AtomicUsize,
    /// True if the server has answered as one that does not speak the era of the connection.
    is_in_doubt: AtomicBool,
    used: Mutex<Instant>,
    /// Digests of the definitions that a child has listed over this connection, by name.
    listed: Mutex<BTreeMap<String, Digest>>,
    /// Told when a resource has changed.
    pub(super) updates: Option<Updates>,
    pub(super) watches: Watches,
    /// True if the gateway lists tools over it.
    is_of_gateway: bool,
}

/// The caller's side of a connection.
pub(super) struct Behind {
    /// The abilities of the caller's client, for a server that hears of them once.
    pub(super) abilities: Value,
    /// True if users share the connection.
    pub(super) is_shared: bool,
    /// True if the gateway lists tools over it.
    pub(super) is_of_gateway: bool,
    /// True if the caller's client speaks an older era, whose questions the newest one has no way for.
    pub(super) is_older: bool,
    /// Told when a list of the server has changed.
    pub(super) changed: Arc<Notify>,
    /// Told when a resource has changed.
    pub(super) updates: Option<Updates>,
}

impl Behind {
    fn client(&self) -> Client {
        Client {
            sinks: Arc::default(),
            talks: Arc::new(Talks::new(self.is_shared)),
            secrets: Secrets::default(),
            abilities: talk::declared(&self.abilities),
            changed: self.changed.clone(),
            updates: self.updates.clone(),
            is_of_gateway: self.is_of_gateway,
        }
    }
}

/// Most rounds of questions in one call.
const ROUNDS_MAX: usize = 10;

/// Most reports of progress that wait for a call.
const REPORTS_MAX: usize = 64;

/// Most pages of a list, and most tools.
const PAGES_MAX: usize = 500;
const TOOLS_MAX: usize = 10_000;

/// Most bytes of everything that a server lists of one kind, as JSON. Each page is bounded by `response_bytes_max` alone.
pub(super) const LISTED_BYTES_MAX: usize = 32 << 20;

/// True if the answer was to the question for the newest era, which was given up. It may be what the fallback failed with.
fn answers_another_question(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            answers_another_question(fallback)
        }
        _ => false,
    }
}

impl Connection {
    /// Connects over HTTP, in the newest era that the server knows; for a client of an older era in that one, if the server knows it.
    pub(super) async fn over_http(
        url: &str,
        wire: Wire,
        concurrent_max: usize,
        behind: &Behind,
    ) -> Result<Self, Trouble> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url);
        config = config.max_concurrent_requests(concurrent_max);
        config.allow_stateless = true;
        let transport = || StreamableHttpClientTransport::with_client(wire.clone(), config.clone());
        let client = behind.client();
        let own = client.clone();
        let older = ClientLifecycleMode::Initialize;
        let mut running = None;
        if behind.is_older {
            let connected = client
                .clone()
                .serve_with_lifecycle(transport(), older.clone());
            running = connected.await.ok();
        }
        if let Some(running) = running {
            return Ok(Self::of(running, own, Some(wire), None, Self::no_lines()).at(url));
        }
        let connected = client.clone().serve_with_lifecycle(transport(), newest());
        let running = match connected.await {
            // The server understands the question for the newest era, and has none but older ones.
            Err(ClientInitializeError::NoCompatibleProtocolVersion { .. }) => {
                client.serve_with_lifecycle(transport(), older).await?
            }
            other => other?,
        };
        Ok(Self::of(running, own, Some(wire), None, Self::no_lines()).at(url))
    }

    /// Starts a child and connects to it, in the newest era that it knows. `own` is a variable of the user's own.
    pub(super) async fn to_child(
        program: &Program,
        own: Option<(String, Secret)>,
        bytes_max: usize,
        behind: &Behind,
    ) -> Result<Self, Trouble> {
        let own = own.as_ref();
        if let Some(opened) = Self::start(program, own, bytes_max, behind, newest()).await? {
            return Ok(opened);
        }
        let older = ClientLifecycleMode::Initialize;
        let opened = Self::start(program, own, bytes_max, behind, older).await?;
        let other = "the server answered another question than it was asked";
        opened.ok_or_else(|| Trouble::NoConnection(other.to_owned()))
    }

    /// Starts a child and connects to it. `None` if it read the question for the newest era only after that was given up, which is when it
    /// took long to start: its answer to that question stands in the way of any other.
    async fn start(
        program: &Program,
        own: Option<&(String, Secret)>,
        bytes_max: usize,
        behind: &Behind,
        era: ClientLifecycleMode,
    ) -> Result<Option<Self>, Trouble> {
        let started = program.start(own);
        let (child, output, input) =
            started.map_err(|error| Trouble::NoConnection(error.to_string()))?;
        let line = (bytes_max, Arc::new(AtomicBool::new(false)));
        let lines = Lines::new(output, bytes_max, line.1.clone());
        let transport = AsyncRwTransport::new_client(lines, input).with_max_line_length(usize::MAX);
        let client = behind.client();
        let own = client.clone();
        let last_words = child.last_words();
        let running = match client.serve_with_lifecycle(transport, era).await {
            Ok(running) => running,
            Err(error) if answers_another_question(&error) => return Ok(None),
            Err(error) => {
                return Err(match Trouble::from(error) {
                    Trouble::NoConnection(why) => {
                        let words = last_words.read();
                        let joint = if words.is_empty() { "" } else { "; it wrote: " };
                        Trouble::NoConnection(format!("{why}{joint}{words}"))
                    }
                    other => other,
                });
            }
        };
        Ok(Some(Self::of(running, own, None, Some(child), line)))
    }

    fn no_lines() -> (usize, Arc<AtomicBool>) {
        (usize::MAX, Arc::default())
    }

    fn of(
        running: RunningService<RoleClient, Client>,
        client: Client,
        wire: Option<Wire>,
        child: Option<Child>,
        line: (usize, Arc<AtomicBool>),
    ) -> Self {
        Self {
            peer: running.peer().clone(),
            running: Mutex::new(Some(running)),
            sinks: client.sinks,
            talks: client.talks,
            secrets: client.secrets,
            updates: client.updates,
            watches: Watches::default(),
            line,
            wire,
            alone: None,
            child: Mutex::new(child),
            calls: AtomicUsize::new(0),
            is_in_doubt: AtomicBool::new(false),
            used: Mutex::new(Instant::now()),
            listed: Mutex::default(),
            is_of_gateway: client.is_of_gateway,
        }
    }

    /// The same connection, with the way of calls that stand alone, if the server knows them.
    fn at(self, url: &str) -> Self {
        let wire = self.wire.clone().filter(|_| self.is_of_newest_era());
        Self {
            alone: wire.map(|wire| Alone::new(wire, url)),
            ..self
        }
    }

    pub(super) fn is_of_newest_era(&self) -> bool {
        let info = self.peer.peer_info();
        info.is_some_and(|own| !own.protocol_version.has_initialize())
    }

    /// Notes an answer of a server that may speak an older era by now. A child cannot become another program.
    pub(super) fn doubt(&self, trouble: &Trouble) {
        if self.wire.is_some() && self.is_of_newest_era() && trouble.doubts_the_era() {
            self.is_in_doubt.store(true, Ordering::Release);
        }
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt.load(Ordering::Acquire)
    }

    pub(super) fn end_doubt(&self) {
        self.is_in_doubt.store(false, Ordering::Release);
    }

    /// The HTTP client, for a connection that has one.
    pub(super) fn wire(&self) -> Option<&Wire> {
        self.wire.as_ref()
    }

    /// Has the server list its tools over this connection.
    pub(super) async fn look(&self) -> Result<(), Trouble> {
        let listed = self.list().await?;
        let digests = listed.iter().map(|own| (own.name.clone(), own.digest()));
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = digests.collect();
        Ok(())
    }

    /// True if the server has listed another definition of this tool over this connection, and still does.
    pub(super) async fn has_other(&self, tool: &str, digest: &Digest) -> Result<bool, Trouble> {
        if !self.has_listed_other(tool, digest) {
            return Ok(false);
        }
        // What it lists may have been approved since.
        self.look().await?;
        Ok(self.has_listed_other(tool, digest))
    }

    fn has_listed_other(&self, tool: &str, digest: &Digest) -> bool {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.get(tool).is_some_and(|own| own != digest)
    }

    /// The secrets that the server knows from us: nothing that it says repeats them.
    pub(super) fn set_secrets(&self, secrets: &[Secret]) {
        self.secrets.set(secrets);
    }

    pub(super) fn secrets(&self) -> Vec<Secret> {
        self.secrets.get()
    }

    /// A value of the server without those secrets.
    pub(super) fn clean(&self, value: Value) -> Value {
        scrub::value(value, &self.secrets())
    }

    /// Questions of the server, without those secrets.
    pub(super) fn questions(&self, asked: InputRequiredResult) -> Questions {
        let Questions { requests, state } = talk::questions(asked);
        let requests = requests.into_iter();
        Questions {
            requests: requests
                .map(|(name, own)| (name, self.clean(own)))
                .collect(),
            state,
        }
    }

    /// The process of the child.
    pub(super) fn child_id(&self) -> Option<u32> {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        child.as_ref().and_then(Child::id)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// The time for which it has not been used; `None` while it is.
    pub(super) fn idle(&self) -> Option<Duration> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        (self.calls.load(Ordering::Acquire) == 0).then(|| used.elapsed())
    }

    /// True if the server tells something over the connection while no request is on its way: that a list or a resource has changed.
    pub(super) fn is_needed(&self) -> bool {
        self.is_of_gateway && self.announces() || self.watches.is_any()
    }

    /// True if the server announces changes of its lists.
    fn announces(&self) -> bool {
        let info = self.peer.peer_info();
        info.is_some_and(|info| {
            let own = &info.capabilities;
            let tools = own.tools.as_ref().and_then(|it| it.list_changed);
            let prompts = own.prompts.as_ref().and_then(|it| it.list_changed);
            let resources = own.resources.as_ref().and_then(|it| it.list_changed);
            [tools, prompts, resources].contains(&Some(true))
        })
    }

    /// Closes the connection, and waits until its child has ended.
    pub(super) async fn close(&self) {
        let running = self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let child = self
            .child
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(mut running) = running {
            let _ = running.close_with_timeout(CLOSE).await;
        }
        if let Some(child) = child {
            child.end().await;
        }
    }

    /// Every tool of the server.
    pub(super) async fn list(&self) -> Result<Vec<Definition>, Trouble> {
        let _use = self.in_use();
        let listed = self.tools().await;
        listed.inspect_err(|trouble| self.doubt(trouble))
    }

    async fn tools(&self) -> Result<Vec<Definition>, Trouble> {
        let mut tools = Vec::new();
        let mut cursor = None;
        let (mut pages, mut bytes) = (0, 0);
        loop {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ListToolsRequest::with_param(params);
            let request = ClientRequest::ListToolsRequest(request);
            let ServerResult::ListToolsResult(page) = self.peer.send_request(request).await? else {
                return Err(Trouble::NotAnAnswer("no list of tools".to_owned()));
            };
            tools.extend(page.tools.iter().map(Definition::of));
            pages += 1;
            bytes += json_bytes(&page.tools);
            let too_many = |most: usize, what: &str| {
                let why = format!("more than {most} {what}");
                Err(Trouble::NotAnAnswer(why))
            };
            if tools.len() > TOOLS_MAX {
                return too_many(TOOLS_MAX, "tools");
            }
            if bytes > LISTED_BYTES_MAX {
                return too_many(LISTED_BYTES_MAX, "bytes of tools");
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
            // The tools of further pages would be missing without a word.
            if pages == PAGES_MAX {
                return too_many(PAGES_MAX, "pages of tools");
            }
        }
        let secrets = self.secrets();
        let clean = |own: Definition| own.without(&secrets);
        Ok(tools.into_iter().map(clean).collect())
    }

    /// Subscribes to changes of the list at a server of the newest era. Older servers notify without a subscription.
    pub(super) async fn subscribe(&self) -> Option<Changes> {
        let info = self.peer.peer_info()?;
        let own = &info.capabilities;
        let tools = own.tools.as_ref().and_then(|it| it.list_changed) == Some(true);
        let prompts = own.prompts.as_ref().and_then(|it| it.list_changed) == Some(true);
        let resources = own.resources.as_ref().and_then(|it| it.list_changed) == Some(true);
        if !self.announces() || info.protocol_version.has_initialize() {
            return None;
        }
        let mut filter = SubscriptionFilter::builder();
        if tools {
            filter = filter.tools_list_changed();
        }
        if prompts {
            filter = filter.prompts_list_changed();
        }
        if resources {
            filter = filter.resources_list_changed();
        }
        let filter = filter.build();
        self.peer.listen(filter).await.ok().map(Changes)
    }

    /// Calls a tool. Dropped, the call is cancelled at the server. What the server asks on the way is asked of the caller, as far as that
    /// can be.
    pub(super) async fn call(
        &self,
        ctx: &CallContext,
        approved: &Approved,
        arguments: JsonObject,
        meta: JsonObject,
        limit: Duration,
    ) -> Result<CallToolResult, Trouble> {
        let _use = self.in_use();
        let tool = &approved.definition.name;
        let dialogue = ctx.extension::<Arc<Dialogue>>().cloned();
        let _seat = self.talks.enter(dialogue.clone());
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let meta = self.told(meta, dialogue.as_deref());
        let alone = self
            .alone
            .as_ref()
            .filter(|_| !approved.travels_in_headers && Alone::suffices(ctx, dialogue.as_deref()));
        let rounds = self.rounds(ctx, params, meta, (alone, dialogue.as_deref()));
        let answer = timeout(limit, rounds).await.unwrap_or(Err(Trouble::Late));
        if let Err(trouble) = &answer {
            self.doubt(trouble);
        }
        match answer {
            Err(Trouble::Lost(_)) if self.line.1.load(Ordering::Acquire) => {
                Err(Trouble::TooLarge(self.line.0))
            }
            other => other,
        }
    }

    /// Adds the caller's abilities to the metadata of a request, for a server of the newest era.
    pub(super) fn told(&self, mut meta: JsonObject, dialogue: Option<&Dialogue>) -> JsonObject {
        if self.is_of_newest_era() {
            meta.insert(ABILITIES.to_owned(), talk::abilities(dialogue));
            if let Some(level) = dialogue.and_then(Dialogue::log_level) {
                meta.insert(LOG_LEVEL.to_owned(), level.into());
            }
        }
        meta
    }

    /// Rounds of questions and answers, until there is a result.
    async fn rounds(
        &self,
        ctx: &CallContext,
        mut params: CallToolRequestParams,
        meta: JsonObject,
        (alone, dialogue): (Option<&Alone>, Option<&Dialogue>),
    ) -> Result<CallToolResult, Trouble> {
        let mut answers = dialogue.and_then(|own| own.answers().cloned());
        for _ in 0..ROUNDS_MAX {
            let given = answers.take().filter(|_| self.is_of_newest_era());
            if let Some(Answers { responses, state }) = given {
                params.input_responses = Some(responses);
                params.request_state = state;
            }
            let answer = match alone {
                Some(alone) => alone.call(params.clone(), meta.clone()).await?,
                None => self.once(ctx, params.clone(), meta.clone()).await?,
            };
            if let (Err(error), Some(dialogue)) = (&answer, dialogue) {
                leave_refusal(error, dialogue, &self.secrets());
            }
            let asked = match answer? {
                ServerResult::CallToolResult(result) => return Ok(result),
                ServerResult::InputRequiredResult(asked) => self.questions(asked),
                _ => return Err(Trouble::NotAnAnswer("no result of a tool".to_owned())),
            };
            let dialogue = dialogue.ok_or(Trouble::Asks)?;
            if !dialogue.is_live() {
                dialogue.leave(Left::Questions(asked));
                return Err(Trouble::Asks);
            }
            let given = talk::ask_all(dialogue, asked).await;
            answers = Some(given.ok_or(Trouble::Asks)?);
        }
        Err(Trouble::Asks)
    }

    /// One request over the connection, and its answer.
    async fn once(
        &self,
        ctx: &CallContext,
        params: CallToolRequestParams,
        meta: JsonObject,
    ) -> Result<Result<ServerResult, ServiceError>, Trouble> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let meta = RequestMetaObject(MetaObject(meta));
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let (reports, mut reported) = mpsc::channel(REPORTS_MAX);
        let handle = {
            // Whoever reports waits for the lock, so the first report finds its call.
            let mut sinks = self.sinks.lock().await;
            let sent = self.peer.send_request_with_option(request, options).await;
            let closed = |_| Trouble::NoConnection("the connection is closed".to_owned());
            let handle = sent.map_err(closed)?;
            sinks.insert(handle.progress_token.clone(), reports);
            handle
        };
        let mut call = OnItsWay {
            connection: self,
            token: handle.progress_token.clone(),
            handle: Some(handle),
        };
        call.answer(ctx, &mut reported).await
    }

    pub(super) fn in_use(&self) -> InUse<'_> {
        self.calls.fetch_add(1, Ordering::AcqRel);
        InUse(self)
    }
}

/// The length of a value as JSON.
pub(super) fn json_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail; what cannot be written has no length.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// Longest time to close a session.
const CLOSE: Duration = Duration::from_secs(2);

/// The members of `_meta` that tell a server of the newest era about the caller.
const ABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Leaves an error that only the client can mend: it lacks an ability that the server needs, or its user has to visit an address first.
pub(super) fn leave_refusal(error: &ServiceError, dialogue: &Dialogue, secrets: &[Secret]) {
    let ServiceError::McpError(error) = error else {
        return;
    };
    let data = error.data.clone().map(|own| scrub::value(own, secrets));
    let refusal = |data| Left::Refusal {
        code: error.code.0,
        message: scrub::text(&error.message, secrets),
        data,
    };
    if error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY && !dialogue.is_live() {
        dialogue.leave(refusal(data));
    } else if error.code.0 == fault::ASKS_BY_URL && talk::opens_urls(dialogue) {
        let asked = talk::addresses(data.as_ref());
        // The newest era has no such error: the address is a question of its own.
        dialogue.leave(if dialogue.is_live() || asked.requests.is_empty() {
            refusal(data)
        } else {
            Left::Questions(asked)
        });
    }
}

/// The newest era if the server knows it, else the one before.
fn newest() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

/// Changes of a server's list.
pub(super) struct Changes(Subscription);

impl Changes {
    /// Returns when the list has changed; false if there will be no further notifications.
    pub(super) async fn next(&mut self) -> bool {
        matches!(self.0.next().await, Ok(Some(_)))
    }
}

/// Counts a use of a connection.
pub(super) struct InUse<'c>(&'c Connection);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        *self.0.used.lock().unwrap_or_else(PoisonError::into_inner) = now;
        self.0.calls.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A call that the server has got. Dropped before its answer, it is cancelled.
struct OnItsWay<'c> {
    connection: &'c Connection,
    token: ProgressToken,
    handle: Option<RequestHandle<RoleClient>>,
}

impl OnItsWay<'_> {
    async fn answer(
        &mut self,
        ctx: &CallContext,
        reported: &mut mpsc::Receiver<Progress>,
    ) -> Result<Result<ServerResult, ServiceError>, Trouble> {
        let Some(handle) = &mut self.handle else {
            return Err(Trouble::Lost("the call has an answer already".to_owned()));
        };
        let answer = loop {
            tokio::select! {
                biased;
                Some(report) = reported.recv() => {
                    ctx.progress(report.done, report.total, report.message.unwrap_or_default());
                }
                answer = &mut handle.rx => break answer,
            }
        };
        // There is nothing left to cancel.
        self.handle = None;
        let lost = |_| Trouble::Lost("the connection was closed".to_owned());
        answer.map_err(lost)
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        let handle = self.handle.take();
        let (sinks, token) = (self.connection.sinks.clone(), self.token.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            sinks.lock().await.remove(&token);
            if let Some(handle) = handle {
                let _ = handle
                    .cancel(Some("the caller has given up".to_owned()))
                    .await;
            }
        });
    }
}

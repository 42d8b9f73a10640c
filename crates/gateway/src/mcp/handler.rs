//! Which request goes where.

#![expect(
    deprecated,
    reason = "the older eras have methods that the newer one has not"
)]

use std::sync::Arc;

use ::http::request::Parts;
use countersign::catalog::Entry;
use countersign::offer::{Asked, Listed};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, Extensions,
    GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
    GetTaskResult, Implementation, JsonObject, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    PromptsCapability, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ResourcesCapability, ServerCapabilities, ServerConfig, SetLevelRequestMethod,
    SetLevelRequestParams, SubscribeRequestMethod, SubscribeRequestParams, SubscriptionFilter,
    Tool, UnsubscribeRequestMethod, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use super::conformance::{self, Pack};
use super::context::Context;
use super::offers::{Brought, Passed};
use super::parked::Parked;
use super::raw::RawArguments;
use super::sessions::Sessions;
use super::tasks::Tasks;
use super::tools::{self, Declarations, Prepared};
use super::{ENVELOPE_EXTENSION, carriage, changes, evidence};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::offer::Offer;

/// Instructions of the server for clients.
const INSTRUCTIONS: &str = "Every tool answers with its data, or with an error whose first line is \
    CODE: message and what to do. Repeat a failed write with the same dev.countersign/idempotency_key \
    in _meta. A result links to its evidence, which resources/read shows.";

/// Answers the requests of all clients. Clones share everything.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) gateway: Gateway,
    pub(super) declarations: Declarations,
    pub(super) tasks: Tasks,
    pub(super) sessions: Sessions,
    pub(super) parked: Parked,
    /// The fixtures of the conformance suite, where they are switched on.
    pub(super) fixtures: Option<Arc<Pack>>,
}

impl Handler {
    pub(super) fn new(gateway: &Gateway) -> Self {
        let fixtures = gateway.settings().conformance.then(|| {
            let mut key = [0; 32];
            gateway.ids().fill(&mut key);
            Pack::new(key)
        });
        Self {
            shared: Arc::new(Shared {
                gateway: gateway.clone(),
                declarations: Declarations::default(),
                tasks: Tasks::default(),
                sessions: Sessions::default(),
                parked: Parked::default(),
                fixtures,
            }),
        }
    }

    /// True if this is a tool of the conformance suite.
    pub(super) fn is_fixture(&self, name: &str) -> bool {
        let fixtures = self.shared.fixtures.as_ref();
        fixtures.is_some_and(|fixtures| fixtures.has(name))
    }

    /// True if the protocol has to see the arguments of this tool.
    pub(super) fn needs_arguments(&self, name: &str) -> bool {
        let is_fixture = |fixtures: &Arc<Pack>| fixtures.with_header(name).is_some();
        self.shared.fixtures.as_ref().is_some_and(is_fixture)
            || self
                .prepared(name)
                .is_some_and(|prepared| prepared.has_header_arguments)
    }

    fn prepared(&self, name: &str) -> Option<Arc<Prepared>> {
        let catalog = self.shared.gateway.executor().catalog();
        self.shared.declarations.of(catalog, &*catalog.get(name)?)
    }

    /// The caller of a request, limited to the tools of their offer, and the offer.
    pub(super) fn narrowed(&self, context: &Context) -> Result<(Caller, Offer), ErrorData> {
        let caller = caller(&context.extensions)?;
        let client = context.client.as_ref().map(|client| &*client.name);
        let offer = self.shared.gateway.offer(&caller.principal, client);
        Ok((offer.narrow(caller), offer))
    }

    async fn listed(
        &self,
        (caller, offer): (&Caller, &Offer),
        whole: bool,
    ) -> Result<Vec<Tool>, ErrorData> {
        let gateway = &self.shared.gateway;
        let catalog = gateway.executor().catalog();
        let entries = gateway.executor().list(&caller.principal).await;
        let entries: Vec<Arc<Entry>> =
            entries.map_err(|body| ErrorData::internal_error(String::from(body.message), None))?;
        let listed = gateway.catalog_view().listed(catalog, offer, entries);
        let declared = listed
            .entries
            .iter()
            .filter_map(|entry| self.shared.declarations.of(catalog, entry));
        let mut tools: Vec<Tool> = declared
            .map(|prepared| prepared.for_client(whole).tool.clone())
            .collect();
        tools.extend(listed.own.into_iter().filter_map(tools::own));
        if let Some(fixtures) = &self.shared.fixtures {
            tools.extend_from_slice(fixtures.tools());
        }
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(tools)
    }
}

/// The head of the HTTP request that a message came with; `None` if it came without one.
pub(super) fn head(extensions: &Extensions) -> Option<&Parts> {
    extensions.get::<Parts>()
}

/// Something that was put beside a message on its way in.
fn beside<T: Clone + Send + Sync + 'static>(extensions: &Extensions) -> Option<&T> {
    let of_head = head(extensions).and_then(|parts| parts.extensions.get::<T>());
    of_head.or_else(|| extensions.get::<T>())
}

/// Returns the caller of a request.
pub(super) fn caller(extensions: &Extensions) -> Result<Caller, ErrorData> {
    let caller = beside::<Caller>(extensions).cloned();
    caller.ok_or_else(|| {
        tracing::error!(
            "a request has no caller: the endpoint is mounted outside the identity layer"
        );
        ErrorData::internal_error("the caller is not known", None)
    })
}

/// Returns the arguments as the caller wrote them.
pub(super) fn raw_arguments(extensions: &Extensions) -> Option<RawArguments> {
    beside::<RawArguments>(extensions).cloned()
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_tasks()
            .build();
        let version = json!({ "version": 1 });
        if let Value::Object(version) = version {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(ENVELOPE_EXTENSION.to_owned(), version);
        }
        if self.offers_any(Listed::Prompts) {
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(true);
            capabilities.prompts = Some(prompts);
        }
        if self.has_servers() {
            capabilities.logging = Some(JsonObject::default());
        }
        if self.offers_any(Listed::Resources) {
            let mut resources = ResourcesCapability::default();
            resources.subscribe = Some(true);
            capabilities.resources = Some(resources);
        }
        if self.offers_any(Listed::Prompts) || self.offers_any(Listed::Templates) {
            capabilities.completions = Some(JsonObject::default());
        }
        if self.shared.fixtures.is_some() {
            Pack::extend(&mut capabilities);
        }
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new(
                "countersign",
                env!("CARGO_PKG_VERSION"),
            ))
            .with_instructions(INSTRUCTIONS)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        // Only asked for the arguments that travel in headers.
        let fixtures = self.shared.fixtures.as_ref();
        if let Some(fixture) = fixtures.and_then(|fixtures| fixtures.with_header(name)) {
            return Some(fixture.clone());
        }
        let prepared = self.prepared(name)?;
        let tool = &prepared.for_client(true).tool;
        prepared.has_header_arguments.then(|| tool.clone())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let context = Context::from(context);
        let task = self.task(&request.task_id, &context).await?;
        Ok(GetTaskResult::new(task))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let context = Context::from(context);
        // A task of ours asks the client nothing, so there is nothing to take.
        self.known_task(&request.task_id, &context).map(drop)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let context = Context::from(context);
        self.end_task(&request.task_id, &context)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let context = Context::from(context);
        let whole = carriage::client_wants_whole(&context);
        let (caller, offer) = self.narrowed(&context)?;
        let tools = self.listed((&caller, &offer), whole).await?;
        let cursor = request.and_then(|request| request.cursor);
        tools::page(tools, cursor.as_deref())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(fixtures) = &self.shared.fixtures
            && fixtures.has(&request.name)
        {
            let raw = raw_arguments(&context.extensions);
            let raw = raw.as_ref().map_or("{}", |raw| &raw.0);
            return fixtures.call(request, raw, &context).await;
        }
        self.call(request, &Context::from(context)).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let context = Context::from(context);
        if self.shared.fixtures.is_some() {
            return conformance::list_resources();
        }
        let resources = self.offered(Listed::Resources, &context).await?;
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let context = Context::from(context);
        let mut templates = vec![evidence::template()];
        templates.extend(self.offered(Listed::Templates, &context).await?);
        if self.shared.fixtures.is_some() {
            templates.extend(conformance::templates()?);
        }
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let context = Context::from(context);
        if self.shared.fixtures.is_some()
            && let Some(read) = conformance::read_resource(&request.uri)
        {
            return read.map(Into::into);
        }
        if !evidence::is_ours(&request.uri) {
            let brought = Brought {
                responses: request.input_responses.clone(),
                state: request.request_state.clone(),
            };
            let params = json!({ "uri": request.uri });
            let passed = self.pass(Asked::Read, params, brought, &context).await?;
            match passed {
                Some(Passed::Complete(read)) => return Ok(ReadResourceResponse::Complete(read)),
                Some(Passed::Asks(asks)) => return Ok(asks.into()),
                None => {}
            }
        }
        let caller = caller(&context.extensions)?;
        let headers = head(&context.extensions).map(|parts| &parts.headers);
        let said = carriage::read(&context.meta, headers)?;
        let user_id = carriage::user_id(&said.envelope, &caller.principal);
        let read = evidence::read(&self.shared.gateway, user_id, &request.uri).await?;
        Ok(read.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let context = Context::from(context);
        if self.shared.fixtures.is_some() {
            return conformance::list_prompts();
        }
        if !self.offers_any(Listed::Prompts) {
            return Err(ErrorData::method_not_found::<ListPromptsRequestMethod>());
        }
        let prompts = self.offered(Listed::Prompts, &context).await?;
        Ok(ListPromptsResult::with_all_items(prompts))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let context = Context::from(context);
        if self.shared.fixtures.is_some() {
            return conformance::get_prompt(&request);
        }
        let brought = Brought {
            responses: request.input_responses,
            state: request.request_state,
        };
        let params = json!({ "name": request.name, "arguments": request.arguments });
        match self.pass(Asked::Prompt, params, brought, &context).await? {
            Some(Passed::Complete(prompt)) => Ok(GetPromptResponse::Complete(prompt)),
            Some(Passed::Asks(asks)) => Ok(asks.into()),
            None if self.offers_any(Listed::Prompts) => {
                let message = format!("there is no prompt {:?}", request.name);
                Err(ErrorData::invalid_params(message, None))
            }
            None => Err(ErrorData::method_not_found::<GetPromptRequestMethod>()),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let context = Context::from(context);
        if self.shared.fixtures.is_some() {
            return conformance::complete();
        }
        let params = json!(request);
        let brought = Brought::default();
        match self
            .pass(Asked::Complete, params, brought, &context)
            .await?
        {
            Some(Passed::Complete(completed)) => Ok(completed),
            Some(Passed::Asks(_)) | None => {
                Err(ErrorData::method_not_found::<CompleteRequestMethod>())
            }
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let context = Context::from(context);
        if self.shared.fixtures.is_some() {
            return Ok(());
        }
        if !self.has_servers() {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        // Without a connection there is nothing that a level could be kept for.
        if context.is_connected() {
            self.shared.sessions.set_level(&context, request.level);
        }
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let context = Context::from(context);
        if self.shared.fixtures.is_some() {
            return Ok(());
        }
        // Who has no connection cannot be told anything.
        if !context.is_connected() {
            return Err(ErrorData::method_not_found::<SubscribeRequestMethod>());
        }
        let params = json!({ "uri": request.uri });
        let brought = Brought::default();
        let passed = self.pass::<Value>(Asked::Subscribe, params, brought, &context);
        if passed.await?.is_none() {
            return Err(ErrorData::method_not_found::<SubscribeRequestMethod>());
        }
        if let Some(offers) = self.shared.gateway.offers() {
            let sessions = &self.shared.sessions;
            sessions.tell_updates(&context, request.uri, offers.updates());
        }
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let context = Context::from(context);
        if self.shared.fixtures.is_some() {
            return Ok(());
        }
        self.shared.sessions.end_updates(&context, &request.uri);
        let params = json!({ "uri": request.uri });
        let brought = Brought::default();
        let passed = self.pass::<Value>(Asked::Unsubscribe, params, brought, &context);
        let unknown = ErrorData::method_not_found::<UnsubscribeRequestMethod>;
        passed.await?.map(drop).ok_or_else(unknown)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::builder().tools_list_changed();
        if self.shared.fixtures.is_some() || self.offers_any(Listed::Prompts) {
            accepted = accepted.prompts_list_changed();
        }
        let watched = self.watchable(requested);
        if !watched.is_empty() {
            accepted = accepted.resource_subscriptions(watched);
        }
        Some(accepted.build())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        // Before the servers are asked, so that no change is missed.
        let updates = self.offers().map(|offers| offers.updates());
        let context = Context::from(subscription.request_context().clone());
        let uris = subscription.accepted().resource_subscriptions.clone();
        let watched = self.watch(uris.unwrap_or_default(), &context).await;
        changes::tell_listener(&self.shared, &subscription, updates, &watched).await;
        self.unwatch(watched, &context).await;
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        changes::tell_connection(&self.shared, context.peer);
    }

    /// A method that is known with parameters that are not is a malformed request.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let is_known = matches!(
            request.method.as_str(),
            "tools/call" | "tools/list" | "resources/read" | "resources/list"
        );
        if is_known {
            let message = format!("the parameters of {} are malformed", request.method);
            return Err(ErrorData::invalid_params(message, None));
        }
        let code = rmcp::model::ErrorCode::METHOD_NOT_FOUND;
        Err(ErrorData::new(code, request.method, None))
    }
}

//! Which request goes where.

#![expect(
    deprecated,
    reason = "the older eras have methods that the newer one has not"
)]

use std::sync::Arc;

use ::http::request::Parts;
use countersign::catalog::Entry;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, ConstString, CustomRequest, CustomResult, Extensions,
    GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
    GetTaskResult, Implementation, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestMethod,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestMethod,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;

use super::conformance::{self, Pack};
use super::raw::RawArguments;
use super::tasks::Tasks;
use super::tools::{self, Declarations, Prepared};
use super::{ENVELOPE_EXTENSION, carriage, changes, evidence};
use crate::caller::Caller;
use crate::gateway::Gateway;

/// What a client is told about us.
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
                fixtures,
            }),
        }
    }

    /// Whether the protocol has to see the arguments of this tool.
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

    /// The fixtures; without them nobody knows this method.
    fn fixtures<M: ConstString>(&self) -> Result<&Arc<Pack>, ErrorData> {
        let fixtures = self.shared.fixtures.as_ref();
        fixtures.ok_or_else(ErrorData::method_not_found::<M>)
    }

    async fn allowed(&self, caller: &Caller, whole: bool) -> Result<Vec<Tool>, ErrorData> {
        let catalog = self.shared.gateway.executor().catalog();
        let entries = self.shared.gateway.executor().list(&caller.principal).await;
        let entries: Vec<Arc<Entry>> =
            entries.map_err(|body| ErrorData::internal_error(String::from(body.message), None))?;
        let declared = entries
            .iter()
            .filter_map(|entry| self.shared.declarations.of(catalog, entry));
        let mut tools: Vec<Tool> = declared
            .map(|prepared| prepared.for_client(whole).tool.clone())
            .collect();
        if let Some(fixtures) = &self.shared.fixtures {
            tools.extend_from_slice(fixtures.tools());
        }
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(tools)
    }
}

/// The head of the HTTP request that a message came with; none where it came without one.
pub(super) fn head(extensions: &Extensions) -> Option<&Parts> {
    extensions.get::<Parts>()
}

/// Something that was put beside a message on its way in.
fn beside<T: Clone + Send + Sync + 'static>(extensions: &Extensions) -> Option<&T> {
    let of_head = head(extensions).and_then(|parts| parts.extensions.get::<T>());
    of_head.or_else(|| extensions.get::<T>())
}

/// Who sent a request.
pub(super) fn caller(extensions: &Extensions) -> Result<Caller, ErrorData> {
    let caller = beside::<Caller>(extensions).cloned();
    caller.ok_or_else(|| {
        tracing::error!("a request has no caller: the endpoint stands before the identity layer");
        ErrorData::internal_error("the caller is not known", None)
    })
}

/// What the caller wrote as arguments.
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
        if let serde_json::Value::Object(version) = version {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(ENVELOPE_EXTENSION.to_owned(), version);
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
        let task = self.task(&request.task_id, &context).await?;
        Ok(GetTaskResult::new(task))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // A task of ours asks the client nothing, so there is nothing to take.
        self.known_task(&request.task_id, &context).map(drop)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.end_task(&request.task_id, &context)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let whole = carriage::client_wants_whole(&context);
        let tools = self.allowed(&caller(&context.extensions)?, whole).await?;
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
        self.call(request, context).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        if self.shared.fixtures.is_some() {
            return conformance::list_resources();
        }
        Ok(ListResourcesResult::with_all_items(Vec::new()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut templates = vec![evidence::template()];
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
        if self.shared.fixtures.is_some()
            && let Some(read) = conformance::read_resource(&request.uri)
        {
            return read.map(Into::into);
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
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.fixtures::<ListPromptsRequestMethod>()?;
        conformance::list_prompts()
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.fixtures::<GetPromptRequestMethod>()?;
        conformance::get_prompt(&request)
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.fixtures::<CompleteRequestMethod>()?;
        conformance::complete()
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.fixtures::<SetLevelRequestMethod>().map(drop)
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.fixtures::<SubscribeRequestMethod>().map(drop)
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.fixtures::<UnsubscribeRequestMethod>().map(drop)
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let accepted = SubscriptionFilter::builder().tools_list_changed();
        let accepted = match &self.shared.fixtures {
            Some(_) => accepted.prompts_list_changed(),
            None => accepted,
        };
        Some(accepted.build())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        changes::tell_listener(&self.shared, &subscription).await;
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

//! What the official conformance suite expects to find in a server: tools, resources, prompts and
//! completions with fixed answers. Compiled in and off by default: `Settings::conformance`.
//!
//! None of it is a tool of the catalog, so nothing here is bound, recorded or limited: the suite tests the
//! protocol, and these answers exercise every part of it.

mod asks;
mod content;
mod declared;
mod prompts;
mod resources;

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, RequestStateCodec, ServerCapabilities, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;

pub(super) use prompts::{complete, get as get_prompt, list as list_prompts};
pub(super) use resources::{list as list_resources, read as read_resource, templates};

/// The fixtures and what changes in them.
pub(super) struct Pack {
    tools: Vec<Tool>,
    codec: RequestStateCodec,
    tools_changed: watch::Sender<u64>,
    prompts_changed: watch::Sender<u64>,
}

impl Pack {
    /// The fixtures; `key` protects the state of questions.
    pub(super) fn new(key: [u8; 32]) -> Arc<Self> {
        Arc::new(Self {
            tools: declared::tools(),
            codec: RequestStateCodec::new_unchecked(key),
            tools_changed: watch::Sender::new(0),
            prompts_changed: watch::Sender::new(0),
        })
    }

    pub(super) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// The fixture of this name, if it has an argument that is also sent as a header.
    pub(super) fn with_header(&self, name: &str) -> Option<&Tool> {
        let is_it = |tool: &&Tool| tool.name == name && name == declared::IN_HEADER;
        self.tools.iter().find(is_it)
    }

    pub(super) fn watch_tools(&self) -> watch::Receiver<u64> {
        self.tools_changed.subscribe()
    }

    pub(super) fn watch_prompts(&self) -> watch::Receiver<u64> {
        self.prompts_changed.subscribe()
    }

    /// Declares the capabilities of the fixtures besides tools.
    pub(super) fn extend(capabilities: &mut ServerCapabilities) {
        let beyond = json!({
            "completions": {},
            "logging": {},
            "prompts": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": false },
        });
        let Ok(beyond) = serde_json::from_value::<ServerCapabilities>(beyond) else {
            return;
        };
        capabilities.completions = beyond.completions;
        capabilities.logging = beyond.logging;
        capabilities.prompts = beyond.prompts;
        capabilities.resources = beyond.resources;
    }

    /// Runs a fixture tool.
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        raw_arguments: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.to_string();
        if let Some(result) = content::fixed(&name) {
            return made(result).map(CallToolResponse::Complete);
        }
        let arguments = serde_json::from_str(raw_arguments).unwrap_or_else(|_| json!({}));
        match name.as_str() {
            "test_trigger_tool_change" => self.tools_changed.send_modify(|revision| *revision += 1),
            "test_trigger_prompt_change" => {
                self.prompts_changed.send_modify(|revision| *revision += 1);
            }
            "test_tool_with_progress" => content::progress(context).await?,
            "test_tool_with_logging" => content::log(context, true).await?,
            "test_logging_tool" => {
                content::log(context, context.meta.log_level().is_some()).await?;
            }
            "test_reconnection" => tokio::time::sleep(content::STEP).await,
            "json_schema_2020_12_tool" | declared::IN_HEADER => {}
            _ => return asks::call(&name, request, &arguments, &self.codec, context).await,
        }
        made(content::text(&format!("{name} has run"))).map(CallToolResponse::Complete)
    }
}

/// A value of the protocol from its JSON. Fixtures are constants, so that it fails is a defect.
fn made<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(format!("a broken fixture: {error}"), None))
}

//! A minimal MCP server, as the baseline for measuring ours. One tool, JSON answers, no sessions, nothing
//! bound, recorded or limited. It listens on the given address, or on a free port, writes the address of its
//! endpoint on one line, and serves until it is killed.
//!
//! ```text
//! cargo run --release -p countersign-benches --bin bare_mcp
//! ```

use std::io::Write as _;
use std::sync::Arc;

use axum::serve::ListenerExt as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;

#[derive(Clone)]
struct Peer;

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let query = json!({ "query": { "type": "string" } });
        let schema = json!({ "type": "object", "properties": query, "required": ["query"] });
        let schema = schema.as_object().cloned().unwrap_or_default();
        let tool = Tool::new("memory_search", "Finds notes.", schema);
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let query = arguments.get("query").and_then(|query| query.as_str());
        let Some(query) = query else {
            let text = ContentBlock::text("the query is missing");
            return Ok(CallToolResult::error(vec![text]).into());
        };
        let found = json!([{ "score": 1.0, "text": format!("buy {query}") }]);
        Ok(CallToolResult::success(vec![ContentBlock::text(found.to_string())]).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = StreamableHttpServerConfig::default()
        .with_json_response(true)
        .with_legacy_session_mode(false);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Peer), sessions, config);
    let router = axum::Router::new().route_service("/mcp", service);
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:0");
    let listener = tokio::net::TcpListener::bind(address).await?;
    writeln!(std::io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    let listener = listener.tap_io(|stream| {
        let _unsupported = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}

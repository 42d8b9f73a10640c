//! Requests of MCP clients, as texts of HTTP.

use std::sync::Arc;

use crate::load::{MakeInSession, Talk, post};

/// Revision of the protocol in which a request stands alone.
const NEWEST: &str = "2026-07-28";

/// Revision of the protocol in which a session is begun first.
const OLDER: &str = "2025-06-18";

const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");

/// Calls of a tool that searches, each of which stands alone.
pub fn alone(tool: &'static str) -> Talk {
    let make = move |number: u64, _: &str| {
        let meta = format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{NEWEST}","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
        );
        let headers = [
            ACCEPT,
            ("mcp-protocol-version", NEWEST),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        post("/mcp", &headers, &call(number, tool, &format!(",{meta}")))
    };
    Talk {
        begin: Vec::new(),
        make: Arc::new(make),
    }
}

/// Lists of tools, each of which stands alone.
pub fn list() -> Talk {
    let headers = [
        ACCEPT,
        ("mcp-protocol-version", NEWEST),
        ("mcp-method", "tools/list"),
    ];
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{NEWEST}","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    let request = post("/mcp", &headers, &body);
    Talk {
        begin: Vec::new(),
        make: Arc::new(move |_, _| request.clone()),
    }
}

/// The same calls in a session at this path, which is begun before.
pub fn in_session(path: &'static str, tool: &'static str) -> Talk {
    let begin: MakeInSession = Arc::new(move |_, _| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{OLDER}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}}}}}"#
        );
        post(path, &[ACCEPT], &body)
    });
    let ready: MakeInSession = Arc::new(move |_, session| {
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        post(path, &headers(session), body)
    });
    let make: MakeInSession =
        Arc::new(move |number, session| post(path, &headers(session), &call(number + 1, tool, "")));
    Talk {
        begin: vec![begin, ready],
        make,
    }
}

fn headers(session: &str) -> Vec<(&str, &str)> {
    let mut headers = vec![ACCEPT, ("mcp-protocol-version", OLDER)];
    if !session.is_empty() {
        headers.push(("mcp-session-id", session));
    }
    headers
}

fn call(number: u64, tool: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"query":"agent state"}}{more}}}}}"#
    )
}

//! Servers at an address: both eras, credentials, and answers that are none.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use countersign::cancel::Cancellation;
use countersign::contract::RequestEnvelope;
use countersign::{Principal, ToolCall, progress};
use countersign_testkit::patience::{until, within};
use futures_util::stream::{self, StreamExt as _};
use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use crate::service::{Act, Seen, Service, json as answer};
use crate::world::{World, folder, told};

/// A server of `rmcp` that answers with what it was sent.
#[derive(Clone)]
struct Mirror {
    versions: &'static [ProtocolVersion],
}

impl ServerHandler for Mirror {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.versions)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = |value: Value| value.as_object().cloned().unwrap_or_else(Map::new);
        let seen = header(&context, "authorization");
        let schema = schema(json!({"type": "object", "additionalProperties": true}));
        // In other letters: what a server says does not repeat a credential.
        let text = format!("Listed for {}.", seen.to_uppercase());
        Ok(ListToolsResult::with_all_items(vec![Tool::new(
            "mirror", text, schema,
        )]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let seen = json!({
            "arguments": request.arguments,
            "authorization": header(&context, "authorization"),
            "team": header(&context, "x-team"),
            "traced": header(&context, "traceparent") == context.meta.get_traceparent().unwrap_or_default(),
            "has_session": !header(&context, "mcp-session-id").is_empty(),
            "version": context.protocol_version().map(|version| version.to_string()),
        });
        Ok(CallToolResponse::Complete(CallToolResult::structured(seen)))
    }
}

fn header(context: &RequestContext<RoleServer>, name: &str) -> String {
    let parts = context.extensions.get::<Parts>();
    let value = parts.and_then(|parts| parts.headers.get(name)?.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// A mirror on a socket; its address.
async fn mirror(versions: &'static [ProtocolVersion], json: bool) -> String {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(true)
        .with_json_response(json);
    let make = move || Ok(Mirror { versions });
    let service: StreamableHttpService<Mirror, LocalSessionManager> =
        StreamableHttpService::new(make, LocalSessionManager::default().into(), config);
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/mcp")
}

fn manifest(url: &str, rest: &str) -> String {
    format!(
        "[[upstream]]\nname = 'web'\nkind = 'mcp'\nurl = '{url}'\nallow_private = ['loopback']\ntrust = 'first_use'\n\
         retries = {{ backoff_ms = 1, backoff_max_ms = 2 }}\n{rest}"
    )
}

const LEGACY: &[ProtocolVersion] = &[ProtocolVersion::V_2025_11_25];
const MODERN: &[ProtocolVersion] = &[ProtocolVersion::V_2026_07_28];

/// A server of either era is called in its own, with the headers of the upstream.
#[tokio::test]
async fn both_eras_are_spoken() {
    for (versions, version, has_session, json) in [
        (LEGACY, "2025-11-25", true, false),
        (MODERN, "2026-07-28", false, false),
        (MODERN, "2026-07-28", false, true),
    ] {
        let url = mirror(versions, json).await;
        let rest = "auth.bearer.token = 'file:token'\nheaders = { X-Team = 'shop' }\n";
        let folder = folder();
        std::fs::write(folder.path().join("token"), "t1").unwrap();
        let world = World::new(folder, &manifest(&url, rest)).await;
        assert_eq!(
            world.names(),
            ["web.mirror"],
            "{version}: {:?}",
            world.upstreams.server("web").unwrap().state()
        );
        let data = world
            .data("web.mirror", r#"{"n": 12345678901234567}"#)
            .await;
        let expected = json!({
            "arguments": {"n": 12_345_678_901_234_567_i64},
            "authorization": "Bearer t1",
            "team": "shop",
            "traced": true,
            "has_session": has_session,
            "version": version,
        });
        assert_eq!(data, expected);
        world.upstreams.close().await;
    }
}

/// The list is fetched with the gateway's own credential, and calls are made with the user's: neither is used for the other.
#[tokio::test]
async fn discovery_and_users_have_credentials_of_their_own() {
    let url = mirror(MODERN, true).await;
    let folder = folder();
    std::fs::write(folder.path().join("token"), "for-the-list").unwrap();
    let rest = "auth.user_token = {}\ndiscovery.auth.bearer.token = 'file:token'\n";
    let world = World::new(folder, &manifest(&url, rest)).await;
    let listed = world.catalog.get("web.mirror").unwrap();
    assert_eq!(listed.spec().description, "Listed for BEARER FOR-THE-LIST.");

    let reply = world.call("web.mirror", "{}").await;
    let expected = "UNAUTHORIZED: the user has not stored a token for the upstream web [final  ]";
    assert_eq!(told(&reply), expected);
    for (user, token) in [("ann", "of-ann"), ("bob", "of-bob")] {
        let arguments = json!({"upstream": "web", "token": token}).to_string();
        let envelope = RequestEnvelope {
            idempotency_key: Some("store".to_owned()),
            ..RequestEnvelope::default()
        };
        let call = ToolCall::new("upstream.store_token", arguments, Principal::user(user));
        let reply = world.executor.execute(call.envelope(envelope)).await;
        assert!(reply.ok, "{reply:?}");
    }
    for (user, token) in [("ann", "of-ann"), ("bob", "of-bob"), ("ann", "of-ann")] {
        let reply = world.call_of(user, "web.mirror", "{}", Some(token)).await;
        assert_eq!(
            reply.data["authorization"],
            format!("Bearer {token}"),
            "{reply:?}"
        );
    }
    world.upstreams.close().await;
}

/// A server of the newest era by hand: it lists one tool, and handles a call as `act` says.
async fn by_hand(act: impl Fn(&Value) -> Act + Send + Sync + 'static) -> Service {
    Service::start(move |seen: &Seen, _| {
        let message: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
        let result = match message["method"].as_str() {
            Some("server/discover") => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "ttlMs": 0, "cacheScope": "private",
            }),
            Some("tools/list") => json!({
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                "tools": [{"name": "do", "inputSchema": {"type": "object"}}],
            }),
            Some("tools/call") => return act(&message["id"]),
            _ => return answer(202, ""),
        };
        let message = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        answer(200, &message.to_string())
    })
    .await
}

/// A server by hand that reports once on a call and then keeps its stream open. The streams that are open, and the notifications that a call
/// was given up.
#[derive(Clone, Default)]
struct Endless {
    is_older: bool,
    open: Arc<AtomicUsize>,
    given_up: Arc<AtomicUsize>,
}

/// Counts an open stream for as long as it is there.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Endless {
    async fn start(&self) -> String {
        let own = self.clone();
        let answer = move |body: Bytes| {
            let own = own.clone();
            async move { own.answer(&body) }
        };
        let router = axum::Router::new().route("/mcp", axum::routing::post(answer));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}/mcp")
    }

    fn answer(&self, body: &[u8]) -> http::Response<axum::body::Body> {
        let message: Value = serde_json::from_slice(body).unwrap();
        let status = |code: u16| http::Response::builder().status(code);
        let result = match (message["method"].as_str().unwrap(), self.is_older) {
            ("server/discover", false) => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "ttlMs": 0, "cacheScope": "private",
            }),
            ("server/discover", true) => {
                return status(400).body(axum::body::Body::empty()).unwrap();
            }
            ("initialize", _) => json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "by hand", "version": "1"},
            }),
            ("tools/list", _) => json!({
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                "tools": [{"name": "do", "inputSchema": {"type": "object"}}],
            }),
            ("tools/call", _) => return self.report(&message),
            (method, _) => {
                if method == "notifications/cancelled" {
                    self.given_up.fetch_add(1, Ordering::SeqCst);
                }
                return status(202).body(axum::body::Body::empty()).unwrap();
            }
        };
        let message = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        let body = axum::body::Body::from(message.to_string());
        status(200)
            .header("content-type", "application/json")
            .body(body)
            .unwrap()
    }

    /// A stream with one report, which does not end by itself.
    fn report(&self, message: &Value) -> http::Response<axum::body::Body> {
        let token = &message["params"]["_meta"]["progressToken"];
        let report = json!({
            "jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": token, "progress": 1, "total": 2, "message": "begun"},
        });
        self.open.fetch_add(1, Ordering::SeqCst);
        let open = Open(self.open.clone());
        let first = stream::iter([Ok::<_, std::io::Error>(format!("data: {report}\n\n"))]);
        let rest = stream::pending().map(move |never: String| {
            let _kept = &open;
            Ok(never)
        });
        http::Response::builder()
            .header("content-type", "text/event-stream")
            .body(axum::body::Body::from_stream(first.chain(rest)))
            .unwrap()
    }
}

/// A12: a caller who gives up closes the stream of the call at a server over HTTP; a server of an older era is also told so.
#[tokio::test]
async fn a_cancelled_call_closes_its_stream() {
    for is_older in [false, true] {
        let server = Endless {
            is_older,
            ..Endless::default()
        };
        let world = World::new(folder(), &manifest(&server.start().await, "")).await;
        assert_eq!(world.names(), ["web.do"], "older: {is_older}");
        let (sink, mut reports) = progress::channel();
        let cancellation = Cancellation::new();
        let call = ToolCall::new("web.do", "{}", Principal::user("ann"));
        let call = call.extension(sink).cancellation(cancellation.clone());
        let running = world.executor.execute(call);
        let cancelled = async {
            let report = within(reports.recv()).await.unwrap();
            assert_eq!(report.message.as_deref(), Some("begun"));
            assert_eq!(server.open.load(Ordering::SeqCst), 1);
            cancellation.cancel();
        };
        let (reply, ()) = within(async { tokio::join!(running, cancelled) }).await;
        assert!(told(&reply).starts_with("TIMEOUT"), "{}", told(&reply));
        until(async || server.open.load(Ordering::SeqCst) == 0).await;
        if is_older {
            until(async || server.given_up.load(Ordering::SeqCst) == 1).await;
        }
        world.upstreams.close().await;
    }
}

/// Reaction of a server to a call.
type Make = Box<dyn Fn(&Value) -> Act + Send + Sync>;

/// A12: for every answer of a server, the caller gets one of the closed codes, and a call whose effect is unknown is in doubt.
#[tokio::test]
async fn every_failure_has_a_code() {
    let error = |id: &Value, code: i32| {
        let error = json!({"code": code, "message": "no luck"});
        answer(
            200,
            &json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string(),
        )
    };
    let cases: [(Make, &str, bool); 11] = [
        (
            Box::new(|_| answer(401, "")),
            "UPSTREAM_ERROR: the upstream web refused the gateway's credential with status 401 [final  ]",
            false,
        ),
        (
            Box::new(|_| Act::Answer(429, vec![("retry-after", "7".to_owned())], Vec::new())),
            "RATE_LIMITED: the upstream web answered with status 429 [retryable  429]",
            false,
        ),
        (
            Box::new(|_| answer(404, "")),
            "UPSTREAM_ERROR: the upstream web answered with status 404 [final  404]",
            true,
        ),
        (
            Box::new(|_| answer(500, "<html>")),
            "UPSTREAM_ERROR: the upstream web answered with status 500 [final  500]",
            true,
        ),
        (
            Box::new(|_| Act::Cut(Vec::new())),
            "UPSTREAM_ERROR: the connection to the upstream web was lost before its answer was complete [final  ]",
            true,
        ),
        (
            Box::new(|_| {
                Act::Cut(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"json"
                        .to_vec(),
                )
            }),
            "UPSTREAM_ERROR: the connection to the upstream web was lost before its answer was complete [final  ]",
            true,
        ),
        (
            Box::new(|_| answer(200, "{\"is\": \"no message\"}")),
            "UPSTREAM_ERROR: the answer of the upstream web cannot be read",
            true,
        ),
        (
            Box::new(|_| answer(200, &format!("\"{}\"", "x".repeat(200_000)))),
            "UPSTREAM_ERROR: the answer of the upstream web is too large",
            true,
        ),
        (
            Box::new(move |id| error(id, -32602)),
            "INVALID_ARGUMENT: the upstream web answered with the protocol error -32602 [final  -32602]",
            false,
        ),
        (
            Box::new(move |id| error(id, -32603)),
            "UPSTREAM_ERROR: the upstream web answered with the protocol error -32603 [final  -32603]",
            true,
        ),
        (
            Box::new(move |id| error(id, -32021)),
            "UPSTREAM_ERROR: the upstream web wants to ask the user a question",
            false,
        ),
    ];
    for (at, (act, expected, is_in_doubt)) in cases.into_iter().enumerate() {
        let service = by_hand(act).await;
        let rest = "response_bytes_max = 100000\nbreaker.failures = 0\n";
        let world = World::new(folder(), &manifest(&service.url, rest)).await;
        assert_eq!(
            world.names(),
            ["web.do"],
            "{:?}",
            world.upstreams.server("web").unwrap().state()
        );
        let reply = world.call_of("ann", "web.do", "{}", Some("k")).await;
        assert!(told(&reply).starts_with(expected), "{at}: {}", told(&reply));
        let again = world.call_of("ann", "web.do", "{}", Some("k")).await;
        assert_eq!(
            told(&again).contains("in_doubt"),
            is_in_doubt,
            "{at}: {}",
            told(&again)
        );
        world.upstreams.close().await;
    }
}

/// A server that is not there is reached again when it is; meanwhile a call says that it may be repeated.
#[tokio::test]
async fn a_server_that_is_gone_answers_a_retryable_code() {
    let url = mirror(MODERN, true).await;
    let folder = folder();
    let world = World::new(folder, &manifest(&url, "")).await;
    world.upstreams.close().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let world = World::unasked(world.folder, &manifest(&nobody, ""));
    assert_eq!(world.names(), ["web.mirror"]);
    let reply = world.call_of("ann", "web.mirror", "{}", Some("k")).await;
    let expected = "UPSTREAM_ERROR: the upstream web could not be reached";
    assert!(told(&reply).starts_with(expected), "{}", told(&reply));
    assert!(told(&reply).contains("[retryable"), "{}", told(&reply));
}

/// A server of the older era by hand, with sessions, that answers every call with 404; it counts the calls.
#[tokio::test]
async fn a_call_that_is_answered_with_404_is_sent_at_most_twice() {
    for (has_session, most) in [(true, 2), (false, 1)] {
        let service = Service::start(move |seen: &Seen, _| {
            let message: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
            let result = match message["method"].as_str() {
                Some("initialize") => json!({
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "by hand", "version": "1"},
                }),
                Some("tools/list") => {
                    json!({"tools": [{"name": "do", "inputSchema": {"type": "object"}}]})
                }
                Some("tools/call") => return answer(404, ""),
                Some("server/discover") => return answer(400, ""),
                _ => return answer(202, ""),
            };
            let message = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            let mut headers = vec![("content-type", "application/json".to_owned())];
            headers.extend(has_session.then(|| ("mcp-session-id", "s".to_owned())));
            Act::Answer(200, headers, message.to_string().into_bytes())
        })
        .await;
        let world = World::new(folder(), &manifest(&service.url, "")).await;
        let state = world.upstreams.server("web").unwrap().state();
        assert_eq!(world.names(), ["web.do"], "{state:?}");
        let reply = world.call_of("ann", "web.do", "{}", Some("k")).await;
        assert!(told(&reply).contains("404"), "{}", told(&reply));
        let again = world.call_of("ann", "web.do", "{}", Some("k")).await;
        assert!(told(&again).contains("in_doubt"), "{}", told(&again));
        let calls = service.seen().into_iter();
        let calls = calls
            .filter(|seen| seen.text().contains("tools/call"))
            .count();
        assert!((1..=most).contains(&calls), "{calls} of at most {most}");
        world.upstreams.close().await;
    }
}

/// A12: of three servers one takes connections and never answers. The list has the tools of all three within its grace and of two after it; a
/// call to the silent one ends with its deadline and may be repeated, and calls to the others are answered meanwhile.
#[tokio::test]
async fn a_server_that_never_answers_holds_nobody_up() {
    let silent = Service::start(|_: &Seen, _| Act::Wait(Arc::default())).await;
    let living = mirror(MODERN, true).await;
    let entry = |name: &str, url: &str, rest: &str| {
        manifest(url, rest).replace("'web'", &format!("'{name}'"))
    };
    let others = [entry("a", &living, ""), entry("c", &living, "")].concat();
    let first = format!("{others}{}", entry("b", &living, ""));
    let world = World::new(folder(), &first).await;
    let all = ["a.mirror", "b.mirror", "c.mirror"];
    assert_eq!(world.names(), all);
    world.upstreams.close().await;

    // Its deadlines, and no retry: what is waited for here ends by them.
    let once = "connections.start_ms = 300\ntimeouts.attempt_ms = 300\nbreaker.failures = 0\n";
    for (grace, listed) in [(3_600, &all[..]), (0, &["a.mirror", "c.mirror"])] {
        let rest = format!("{once}discovery.grace_seconds = {grace}\n");
        let last = entry("b", &silent.url, &rest).replace("backoff_ms = 1,", "attempts_max = 1,");
        let own = folder();
        let pins = "countersign.lock.json";
        std::fs::copy(world.folder.path().join(pins), own.path().join(pins)).unwrap();
        let next = World::unasked(own, &format!("{others}{last}"));
        assert_eq!(next.names(), all, "nobody was waited for");
        let call = next.call_of("ann", "b.mirror", "{}", Some("k"));
        let asked = async {
            silent.arrival().await;
            // While the call to the silent one is on its way, the others answer, and so does the list.
            assert!(next.call("a.mirror", "{}").await.ok);
            let entries = next.executor.list(&Principal::user("ann")).await.unwrap();
            assert_eq!(entries.len(), 3);
        };
        let (reply, ()) = within(async { tokio::join!(call, asked) }).await;
        let reason = told(&reply);
        assert!(
            reason.starts_with("UPSTREAM_ERROR: the upstream b could not be reached"),
            "{reason}"
        );
        assert!(reason.contains("[retryable"), "{reason}");
        within(next.ask()).await;
        assert_eq!(next.names(), listed, "a grace of {grace} s");
        assert!(next.call("c.mirror", "{}").await.ok);
        next.upstreams.close().await;
    }
}

/// Answer of a server of an older era to a request of the newest one.
type Rejects = fn(&Value) -> Act;

/// A server that is put back to an older era is called in that one: the call that finds out is sent once more, and its effect happens once. So is
/// the list. A server of the newest era that refuses a call gets it once.
#[tokio::test]
async fn a_server_that_is_put_back_to_an_older_era_is_called_in_it() {
    fn error(status: u16, code: i32, id: &Value) -> Act {
        let error = json!({"code": code, "message": "no"});
        let message = json!({"jsonrpc": "2.0", "id": id, "error": error});
        answer(status, &message.to_string())
    }
    let rejects: [Rejects; 5] = [
        |_| answer(400, "unsupported protocol version"),
        |id| error(400, -32_022, id),
        |id| error(200, -32_600, id),
        |id| error(400, -32_000, id),
        |_| answer(422, "expected initialize"),
    ];
    for (at, rejects) in rejects.into_iter().enumerate() {
        let is_older = Arc::new(AtomicBool::new(false));
        let effects = Arc::new(AtomicUsize::new(0));
        let (older, effect) = (is_older.clone(), effects.clone());
        let service = Service::start(move |seen: &Seen, _| {
            let message: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
            let is_older = older.load(Ordering::SeqCst);
            let tools = json!([{"name": "do", "inputSchema": {"type": "object"}}]);
            let result = match message["method"].as_str() {
                _ if is_older && seen.header("mcp-protocol-version") == "2026-07-28" => {
                    return rejects(&message["id"]);
                }
                Some("initialize") if is_older => json!({
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "by hand", "version": "1"},
                }),
                Some("server/discover") => json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                    "ttlMs": 0, "cacheScope": "private",
                }),
                Some("tools/list") if is_older => json!({"tools": tools}),
                Some("tools/list") => {
                    json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools})
                }
                Some("tools/call") => {
                    effect.fetch_add(1, Ordering::SeqCst);
                    json!({"content": [{"type": "text", "text": "done"}]})
                }
                _ => return answer(202, ""),
            };
            let message = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            answer(200, &message.to_string())
        })
        .await;
        let world = World::new(folder(), &manifest(&service.url, "")).await;
        assert_eq!(world.data("web.do", "{}").await, "done");
        is_older.store(true, Ordering::SeqCst);
        let reply = world.call_of("ann", "web.do", "{}", Some("k")).await;
        assert_eq!(told(&reply), "ok \"done\" ", "{at}");
        assert_eq!(effects.load(Ordering::SeqCst), 2, "{at}");
        let trouble = || world.upstreams.server("web").unwrap().state().trouble;
        until(async || {
            world.ask().await;
            trouble().is_none()
        })
        .await;
        world.upstreams.close().await;
    }

    let service = by_hand(|id| error(200, -32_600, id)).await;
    let world = World::new(folder(), &manifest(&service.url, "")).await;
    let reply = world.call_of("ann", "web.do", "{}", Some("k")).await;
    assert!(told(&reply).contains("-32600"), "{}", told(&reply));
    let calls = service.seen().into_iter();
    let calls = calls.filter(|seen| seen.text().contains("tools/call"));
    assert_eq!(calls.count(), 1);
    world.upstreams.close().await;
}

/// A token of the user that the server refuses is the user's to replace, and not the operator's.
#[tokio::test]
async fn a_refused_token_of_a_user_is_the_users_to_replace() {
    let service = by_hand(|_| answer(401, "")).await;
    let world = World::new(folder(), &manifest(&service.url, "auth.user_token = {}\n")).await;
    let arguments = json!({"upstream": "web", "token": "expired"}).to_string();
    let stored = world.call("upstream.store_token", &arguments).await;
    assert!(stored.ok, "{stored:?}");
    let reply = world.call("web.do", "{}").await;
    assert_eq!(
        told(&reply),
        "UNAUTHORIZED: the upstream web refused the user's token with status 401 [final  ]"
    );
    let hint = reply.error.unwrap().details.hint.unwrap().to_string();
    assert!(hint.contains("upstream.store_token"), "{hint}");
    world.upstreams.close().await;
}

//! Services behind a running server: a caller's token that is exchanged for them, and files that are uploaded to them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use countersign::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::installation::Installation;

/// A request as a service has seen it.
#[derive(Debug, Clone)]
struct Request {
    path: String,
    authorization: String,
    body: Vec<u8>,
}

impl Request {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Reads one request; `None` if the connection ends before.
    fn read(stream: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let path = line.split(' ').nth(1)?.to_owned();
        let (mut length, mut authorization) = (0, String::new());
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().ok()?,
                "authorization" => value.clone_into(&mut authorization),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        Some(Self {
            path,
            authorization,
            body,
        })
    }
}

/// A service on a socket of its own, until the test ends.
struct Service {
    url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Service {
    /// Answers each request with a status and a JSON document.
    fn start(answer: impl Fn(&Request) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (kept, answer) = (seen.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, answer) = (kept.clone(), answer.clone());
                let mut stream = BufReader::new(stream.unwrap());
                std::thread::spawn(move || {
                    while let Some(request) = Request::read(&mut stream) {
                        let (status, body) = answer(&request);
                        kept.lock().unwrap().push(request);
                        let body = body.to_string();
                        let head = format!(
                            "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                            body.len()
                        );
                        let stream = stream.get_mut();
                        let sent = stream.write_all(format!("{head}{body}").as_bytes());
                        if sent.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { url, seen }
    }

    fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

/// An issuer of tokens that the policy names.
struct Issuer {
    key: Ed25519KeyPair,
}

impl Issuer {
    fn new() -> Self {
        Self {
            key: Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap(),
        }
    }

    fn keys(&self) -> String {
        let public = URL_SAFE_NO_PAD.encode(self.key.public_key().as_ref());
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "kid": "k", "x": public}]})
            .to_string()
    }

    /// A token of a user for the server, valid for five minutes.
    fn token(&self, user: &str) -> String {
        let now = SystemClock::new().now().as_second();
        let header = json!({"alg": "EdDSA", "kid": "k", "typ": "JWT"});
        let claims = json!({
            "iss": "https://login.example.com/", "aud": "https://tools.example.com", "sub": user, "exp": now + 300,
        });
        let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let text = format!("{}.{}", part(&header), part(&claims));
        let signature = self.key.sign(text.as_bytes());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

/// An MCP server of the newest era with one tool.
fn mcp_server() -> Service {
    Service::start(|request| {
        let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let mut result = match message["method"].as_str() {
            Some("server/discover") => {
                json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
            }
            Some("tools/list") => {
                json!({"tools": [{"name": "do", "description": "Does it.", "inputSchema": {"type": "object"}}]})
            }
            Some("tools/call") => json!({"content": [{"type": "text", "text": "done"}]}),
            _ => return (202, Value::Null),
        };
        result["resultType"] = json!("complete");
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
        (
            200,
            json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
        )
    })
}

/// A21, B17: a caller's token, of an issuer that the policy names, is exchanged at the issuer of each upstream. A service over HTTP and an MCP
/// server see the exchanged token, each user's own, and never the caller's; a call over either protocol gets it there.
#[test]
#[expect(clippy::too_many_lines, reason = "one story with five parties")]
fn a_callers_token_is_exchanged_for_each_upstream() {
    let issuer = Issuer::new();
    let tokens = ["ann", "bob"].map(|user| (user, issuer.token(user)));
    let known = tokens.clone();
    let exchange = Service::start(move |request| {
        let text = request.text();
        let user = known
            .iter()
            .find(|(_, token)| text.contains(token.as_str()));
        let Some((user, _)) = user else {
            return (400, json!({"error": "invalid_request"}));
        };
        let audience = if text.contains("audience=svc") {
            "svc"
        } else {
            "mcp"
        };
        let token = format!("exchanged-{audience}-{user}");
        (
            200,
            json!({"access_token": token, "token_type": "Bearer", "expires_in": 300}),
        )
    });
    let service = Service::start(|_| (200, json!({"ok": true})));
    let server = mcp_server();
    let installation = Installation::new();
    let path = |name: &str| installation.path(name);
    std::fs::write(path("keys.json"), issuer.keys()).unwrap();
    std::fs::write(path("secret"), "pass").unwrap();
    let policy = format!(
        "[defaults]\nunlisted = 'allow'\n[[issuers]]\nissuer = 'https://login.example.com/'\n\
         audience = 'https://tools.example.com'\njwks_file = '{}'\n",
        path("keys.json").display()
    );
    std::fs::write(path("policy.toml"), policy).unwrap();
    let auth = |audience: &str| {
        format!(
            "auth.token_exchange = {{ token_url = '{}/token', client_id = 'gw', client_secret = 'file:secret', audience = '{audience}' }}\n\
             allow_private = ['loopback']\n",
            exchange.url
        )
    };
    let config = format!(
        "policy = 'policy.toml'\n\
         [[upstream]]\nname = 'svc'\nbase_url = '{}'\n{}\
         [[upstream]]\nname = 'web'\nkind = 'mcp'\ntrust = 'first_use'\nurl = '{}/mcp'\n{}\
         [[tool]]\nname = 'svc.do'\nupstream = 'svc'\ndescription = 'Does it.'\neffect = 'read'\nparameters = []\n\
         [[tool]]\nname = 'web.do'\neffect = 'read'\n",
        service.url,
        auth("svc"),
        server.url,
        auth("mcp")
    );
    std::fs::write(path("countersign.toml"), &config).unwrap();
    let gateway = installation.serve();
    // The watchdog ends a wait that does not end.
    let has_listed = || {
        let lock = path("countersign.lock.json");
        lock.exists()
    };
    while !has_listed() {
        std::thread::yield_now();
    }
    let (status, _) = gateway.post("/v1/tools/svc.do", "", "{}");
    assert_eq!(status, 401, "the policy names an issuer");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (user, token) in &tokens {
        let bearer = format!("Authorization: Bearer {token}\r\n");
        for tool in ["svc.do", "web.do"] {
            // The tools of the server are in the catalog a moment after its list is approved.
            let over_http = || gateway.post(&format!("/v1/tools/{tool}"), &bearer, "{}");
            let mut answer = over_http();
            while answer.0 == 404 {
                answer = over_http();
            }
            assert_eq!(answer.1["ok"], true, "{user} {tool}: {answer:?}");
            let name = tool.replace('.', "_");
            let params = json!({"name": name, "arguments": {}, "_meta": meta});
            let message =
                json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            let headers = format!(
                "{bearer}MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {name}\r\n"
            );
            let (_, answer) = gateway.post("/mcp", &headers, &message.to_string());
            assert_eq!(
                answer["result"]["isError"], false,
                "{user} {tool}: {answer}"
            );
        }
    }
    let calls = |all: Vec<Request>| {
        let all = all.into_iter();
        let calls =
            all.filter(|it| it.path.starts_with("/tools/") || it.text().contains("tools/call"));
        calls.map(|it| it.authorization).collect::<Vec<_>>()
    };
    for (all, audience) in [(service.seen(), "svc"), (server.seen(), "mcp")] {
        for request in &all {
            let is_callers = tokens
                .iter()
                .any(|(_, token)| request.authorization.contains(token.as_str()));
            assert!(!is_callers, "{request:?}");
        }
        let expected = ["ann", "ann", "bob", "bob"];
        let expected = expected.map(|user| format!("Bearer exchanged-{audience}-{user}"));
        assert_eq!(calls(all), expected, "{audience}");
    }
    let exchanged = exchange.seen();
    assert_eq!(
        exchanged.len(),
        4,
        "once a caller and upstream: {exchanged:?}"
    );
    for request in exchanged {
        let text = request.text();
        assert!(text.contains("grant-type%3Atoken-exchange"), "{text}");
    }
}

/// A20, B15: a file of 1 MB goes through a tool as base64 where the limits of `[binder]` and of the server allow it, and not a byte of it is
/// changed; without them the call is refused by name of the limit, and nothing is sent.
#[test]
fn a_file_of_a_megabyte_is_uploaded() {
    let content: Vec<u8> = (0..=250_u8).cycle().take(1_000_000).collect();
    let arguments = json!({"file": STANDARD.encode(&content), "note": "scan"});
    let body = json!({ "arguments": arguments }).to_string();
    for (limits, is_taken) in [("[binder]\nraw_bytes_max = 2_000_000\n", true), ("", false)] {
        let service = Service::start(|_| (200, json!({"stored": true})));
        let config = format!(
            "{limits}[server]\nbody_bytes_max = 2_100_000\n\
             [[upstream]]\nname = 'svc'\nbase_url = '{}'\nallow_private = ['loopback']\n\
             [[tool]]\nname = 'svc.upload'\nupstream = 'svc'\ndescription = 'Keeps a file.'\n\
             request = {{ method = 'POST', path = '/upload', body = 'multipart' }}\n\
             input = {{ type = 'object', properties = {{ file = {{ type = 'string' }}, note = {{ type = 'string' }} }} }}\n\
             arguments.file.file = {{ file_name = 'scan.bin', content_type = 'application/octet-stream' }}\n",
            service.url
        );
        let installation = Installation::new();
        std::fs::write(installation.path("countersign.toml"), &config).unwrap();
        let (_, reply) = installation.serve().post("/v1/tools/svc.upload", "", &body);
        if is_taken {
            assert_eq!(reply["data"]["stored"], true, "{reply}");
            let seen = service.seen();
            let parts = memmem(&seen[0].body, &content);
            assert!(parts.is_some(), "the file has arrived as it was");
            let id = reply["evidence"]["snapshot_id"].as_str().unwrap();
            assert!(!id.is_empty());
        } else {
            assert_eq!(reply["error"]["code"], "INVALID_ARGUMENT", "{reply}");
            assert!(reply.to_string().contains("raw_bytes_max"), "{reply}");
            assert_eq!(service.seen().len(), 0);
        }
    }
}

/// The place of a piece in a text.
fn memmem(text: &[u8], piece: &[u8]) -> Option<usize> {
    text.windows(piece.len()).position(|window| window == piece)
}

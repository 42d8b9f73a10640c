//! Tokens of real issuers, ours and those of others, each a process of its own: renewed, exchanged, kept for users and erased with them. No
//! token is in a reply, a log line or a file.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::format_push_string,
    reason = "tests stop where they cannot go on"
)]

mod others;
mod process;
#[path = "../http/service.rs"]
#[expect(
    dead_code,
    reason = "the service of the other tests, which does more than these need"
)]
mod service;

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};

use countersign::archive::{Archive, SCOPE_ERASE};
use countersign::clock::{Clock, SystemClock};
use countersign::contract::ReplyEnvelope;
use countersign::ids::RandomIds;
use countersign::ledger::{Log as _, Store};
use countersign::principal::BearerToken;
use countersign::{Catalog, Executor, Principal, ToolCall};
use countersign_evidence::note::SigningKey;
use countersign_evidence::seal::MasterKey;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_testkit::patience::until;
use countersign_upstream::{Manifest, Upstreams};
use jsonwebtoken::Algorithm;
use tracing_subscriber::fmt::MakeWriter;

use process::Issuer;
use service::{Service, json as answer};

const TOOLS: &str = r#"
    [[tool]]
    name = "svc.get"
    upstream = "svc"
    description = "Reads."
    request = { method = "GET", path = "/get" }
    [[tool]]
    name = "svc.order"
    upstream = "svc"
    description = "Orders."
    request = { method = "POST", path = "/order" }
"#;

/// A service that takes tokens of the issuer only, and answers with whom they are for.
async fn resource(issuer: &Arc<Issuer>, algorithm: Algorithm) -> Service {
    let issuer = issuer.clone();
    Service::start(move |seen, _| {
        let token = seen.header("authorization").strip_prefix("Bearer ");
        let claims = token.and_then(|token| issuer.verified(token, algorithm));
        match claims {
            Some(claims) => answer(
                200,
                &serde_json::json!({"sub": claims["sub"], "act": claims["act"]}).to_string(),
            ),
            // Some services quote what they refuse.
            None => answer(
                401,
                &serde_json::json!({"message": format!("refused: {}", seen.header("authorization"))}).to_string(),
            ),
        }
    })
    .await
}

/// An executor over one upstream, on a file.
struct World {
    executor: Executor,
    store: Arc<SqliteStore>,
    folder: tempfile::TempDir,
}

impl World {
    fn new(service: &Service, auth: impl Fn(&str) -> String) -> Self {
        start_log();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("client"), "p@ss word").unwrap();
        let text = format!(
            "[[upstream]]\nname = 'svc'\nbase_url = '{}'\nallow_private = ['loopback']\n{}\n{TOOLS}",
            service.url,
            auth("client_id = 'gw', client_secret = 'file:client'")
        );
        let manifest: Manifest = toml::from_str(&text).unwrap();
        assert_eq!(manifest.check(), []);
        let catalog = Catalog::builder().build().unwrap();
        let upstreams = Upstreams::prepare(&manifest, folder.path()).unwrap();
        for tool in upstreams.tools().unwrap() {
            catalog.add(tool).unwrap();
        }
        let store = SqliteStore::open(folder.path().join("a.db"), SqliteOptions::default());
        let store = Arc::new(store.unwrap());
        let executor = Executor::builder(catalog)
            .store(store.clone())
            .kms(Arc::new(MasterKey::from_bytes(&[7; 32])))
            .build();
        Self {
            executor,
            store,
            folder,
        }
    }

    async fn call(&self, by: Principal, tool: &str, arguments: &str) -> ReplyEnvelope {
        self.executor
            .execute(ToolCall::new(tool, arguments, by))
            .await
    }

    /// Every sink: the files of the store, and the log.
    async fn sinks(&self) -> Vec<u8> {
        self.store.flush().await.unwrap();
        let mut all = Vec::new();
        for file in std::fs::read_dir(self.folder.path()).unwrap() {
            let path = file.unwrap().path();
            if path.file_name().is_some_and(|name| name != "client") {
                all.extend(std::fs::read(path).unwrap());
            }
        }
        all.extend(LOG.lock().unwrap().iter());
        all
    }
}

static LOG: LazyLock<Mutex<Vec<u8>>> = LazyLock::new(Mutex::default);

struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for LogWriter {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        Self
    }
}

/// Everything is logged, of every crate: what no line has, no setting can show.
fn start_log() {
    let everything = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(LogWriter)
        .finish();
    // Another test of this process may have been first.
    let _ = tracing::subscriber::set_global_default(everything);
}

#[track_caller]
fn is_absent(secret: &str, sink: &[u8]) {
    let is_there = String::from_utf8_lossy(sink).contains(secret);
    assert!(!is_there, "a secret of {} bytes is there", secret.len());
}

/// Every credential that a service has got.
fn credentials(service: &Service) -> BTreeSet<String> {
    let seen = service.seen();
    let token = |seen: &service::Seen| seen.header("authorization").replace("Bearer ", "");
    seen.iter().map(token).collect()
}

/// B17: a client token of the issuer is renewed before it expires, so that no call meets an expired one.
#[tokio::test]
async fn a_client_token_is_renewed_before_it_expires() {
    let issuer = Arc::new(Issuer::start());
    let service = resource(&issuer, Algorithm::RS256).await;
    let world = World::new(&service, |client| {
        let url = issuer.url(1);
        format!("auth.client_credentials = {{ token_url = '{url}', {client}, audience = 'svc' }}")
    });
    until(async || {
        let reply = world.call(Principal::user("ann"), "svc.get", "{}").await;
        assert_eq!(reply.data["sub"], "gw", "{reply:?}");
        issuer.issued("client_credentials") >= 3
    })
    .await;
    assert!(service.seen().len() > 3, "a token serves many calls");
    let sinks = world.sinks().await;
    for token in credentials(&service) {
        is_absent(&token, &sinks);
    }
    is_absent("p@ss word", &sinks);
}

/// B17: the issuer refuses another secret, and this is reported as such; nothing reaches the service.
#[tokio::test]
async fn an_issuer_that_refuses_the_client_is_told() {
    let issuer = Arc::new(Issuer::start());
    let service = resource(&issuer, Algorithm::RS256).await;
    let world = World::new(&service, |client| {
        let (url, client) = (issuer.url(60), client.replace("'gw'", "'other'"));
        format!(
            "auth.client_credentials = {{ token_url = '{url}', {client}, client_auth = 'post' }}"
        )
    });
    let reply = world.call(Principal::user("ann"), "svc.order", "{}").await;
    let error = reply.error.unwrap();
    assert_eq!(error.code.as_str(), "UPSTREAM_ERROR");
    assert!(
        error
            .message
            .to_string()
            .contains("refused a token with status 401"),
        "{error:?}"
    );
    assert!(service.seen().is_empty());
}

/// B17, A21: the caller's own token is exchanged by RFC 8693; the service learns user and actor from a token that the issuer has
/// signed. Two users have two tokens, an expired one is refused by the issuer, and none is kept or logged.
#[tokio::test]
async fn a_callers_token_is_exchanged_and_never_kept() {
    let issuer = Arc::new(Issuer::start());
    let service = resource(&issuer, Algorithm::EdDSA).await;
    let world = World::new(&service, |client| {
        let url = issuer.url(60);
        format!("auth.token_exchange = {{ token_url = '{url}', {client}, audience = 'svc' }}")
    });
    let by = |user: &str, token: &str| Principal::user(user).with_token(BearerToken::new(token));
    let (ann, bob) = (issuer.login("ann", 60), issuer.login("bob", 60));
    for (user, token) in [("ann", &ann), ("bob", &bob), ("ann", &ann)] {
        let reply = world.call(by(user, token), "svc.order", "{}").await;
        assert_eq!(reply.data["sub"], user, "{reply:?}");
        assert_eq!(reply.data["act"]["sub"], "gw");
    }
    let exchange = "urn:ietf:params:oauth:grant-type:token-exchange";
    assert_eq!(issuer.issued(exchange), 2, "one a caller");
    let old = issuer.login("ann", 0);
    let reply = world.call(by("ann", &old), "svc.get", "{}").await;
    assert!(!reply.ok, "{reply:?}");
    let forged = format!("{ann}x");
    assert!(!world.call(by("ann", &forged), "svc.get", "{}").await.ok);
    let sinks = world.sinks().await;
    assert!(!LOG.lock().unwrap().is_empty(), "something is logged");
    for secret in [&ann, &bob, &old] {
        is_absent(secret, &sinks);
    }
    for token in credentials(&service) {
        is_absent(&token, &sinks);
    }
}

/// A21: a service that refuses a token and quotes it does not bring it into the reply.
#[tokio::test]
async fn a_refused_token_is_not_quoted() {
    let issuer = Arc::new(Issuer::start());
    // The service expects another algorithm, so it refuses every token.
    let service = resource(&issuer, Algorithm::EdDSA).await;
    let world = World::new(&service, |client| {
        let url = issuer.url(60);
        format!("auth.client_credentials = {{ token_url = '{url}', {client}, audience = 'svc' }}")
    });
    let reply = world.call(Principal::user("ann"), "svc.get", "{}").await;
    let details = &reply.error.as_ref().unwrap().details.extra;
    assert_eq!(details["upstream_message"], "refused: Bearer [credential]");
    for token in credentials(&service) {
        is_absent(&token, serde_json::to_string(&reply).unwrap().as_bytes());
    }
    assert_eq!(
        issuer.issued("client_credentials"),
        2,
        "tried once more with a new one"
    );
}

/// B17, A21, A22: a user's own token is sealed under the user's key: no sink has it, no other user's call carries it, and an erasure takes
/// it away.
#[tokio::test]
async fn a_users_token_is_sealed_and_erased_with_the_user() {
    let service = Service::start(|_, _| answer(200, "{}")).await;
    let world = World::new(&service, |_| "auth.user_token = {}".to_owned());
    let (ann, bob) = (Principal::user("ann"), Principal::user("bob"));
    for (who, token) in [(&ann, "anns-own-token-7f3a"), (&bob, "bobs-own-token-91c2")] {
        let arguments = format!(r#"{{"upstream": "svc", "token": "{token}"}}"#);
        let reply = world
            .call(who.clone(), "upstream.store_token", &arguments)
            .await;
        assert!(reply.ok, "{reply:?}");
        is_absent(token, serde_json::to_string(&reply).unwrap().as_bytes());
        let reply = world.call(who.clone(), "svc.order", "{}").await;
        assert!(reply.ok, "{reply:?}");
        assert_eq!(
            service.last().header("authorization"),
            format!("Bearer {token}")
        );
    }
    let sinks = world.sinks().await;
    is_absent("anns-own-token-7f3a", &sinks);
    is_absent("bobs-own-token-91c2", &sinks);

    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let ids = Arc::new(RandomIds::new(clock.clone()));
    let key = SigningKey::from_seed("log.example/upstream", &[5; 32]).unwrap();
    let archive = Archive::new(
        world.store.clone() as Arc<dyn Store>,
        world.executor.vault().clone(),
        clock,
        ids,
        key.verifying_key(),
    );
    let operator = Principal::user("operator").scope(SCOPE_ERASE);
    let erased = archive.erase("ann", &operator, "the user has asked").await;
    assert!(erased.unwrap().erased.documents > 0, "the token goes");
    let requests = service.seen().len();
    let reply = world.call(ann, "svc.order", "{}").await;
    let error = reply.error.unwrap();
    assert!(
        error.message.to_string().contains("has not stored a token"),
        "{error:?}"
    );
    assert_eq!(service.seen().len(), requests, "nothing was sent");
    assert!(world.call(bob, "svc.order", "{}").await.ok, "bob keeps his");
    is_absent("anns-own-token-7f3a", &world.sinks().await);
}

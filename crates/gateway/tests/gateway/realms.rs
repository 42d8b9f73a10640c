//! Several issuers: each has users of its own, and none has rights that the policy does not give it (A3).

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use countersign::contract::ActorType::{Agent, System, User};
use countersign::contract::RequestEnvelope;
use countersign::realm::Realm;
use countersign::{Catalog, Executor, Principal, ToolCall};
use countersign_gateway::identity::{ApiKeys, Identity, NewKey, Reason};
use countersign_gateway::policy::{LivePolicy, Policy, Reloaded};
use insta::assert_snapshot;
use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use crate::identity::{actor, caller, eraser, key_of, operator, policy};
use crate::parts::Parts;
use crate::signer::{NOW, Signer};

/// Two issuers with keys of their own.
struct Issuers {
    home: Signer,
    corp: Signer,
    folder: tempfile::TempDir,
}

impl Issuers {
    fn new() -> Self {
        let issuers = Self {
            home: Signer::new("home", Algorithm::EdDSA),
            corp: Signer::new("corp", Algorithm::EdDSA),
            folder: tempfile::tempdir().unwrap(),
        };
        for (name, signer) in [("home", &issuers.home), ("corp", &issuers.corp)] {
            let set = json!({"keys": [signer.public()]}).to_string();
            std::fs::write(issuers.folder.path().join(name), set).unwrap();
        }
        issuers
    }

    /// Returns a policy with both, each with members of its own.
    fn policy(&self, home: &str, corp: &str) -> String {
        let entry = |name: &str, more: &str| {
            let file = self.folder.path().join(name);
            format!(
                "[[issuers]]\nissuer = \"https://{name}.example/\"\naudience = \"https://tools.example.com\"\n\
                 tokens_without_client_are_users = true\njwks_file = '{}'\n{more}\n",
                file.display()
            )
        };
        entry("home", home) + &entry("corp", corp)
    }

    fn identity(&self, parts: &Parts, home: &str, corp: &str) -> Identity {
        Identity::new(parts.clock(), policy(&self.policy(home, corp)))
    }

    fn by_home(&self, mut claims: Value) -> String {
        claims["iss"] = json!("https://home.example/");
        self.home.token(&claims)
    }

    fn by_corp(&self, mut claims: Value) -> String {
        claims["iss"] = json!("https://corp.example/");
        self.corp.token(&claims)
    }
}

const HOME: &str = "realm = \"home\"\ngrants = [\"calls:read\"]";
const CORP: &str = "realm = \"corp\"";

async fn proved(identity: &Identity, token: &str) -> Arc<Principal> {
    caller(identity, token).await.unwrap().principal
}

/// A3: the same subject of two issuers is two users, two agents, and two delegating actors.
#[tokio::test]
async fn a_user_is_issuer_and_subject() {
    let (parts, issuers) = (Parts::new(), Issuers::new());
    let identity = issuers.identity(&parts, HOME, CORP);
    let check = async |claims: Value, home: &str, corp: &str| {
        for (token, expected) in [
            (issuers.by_home(claims.clone()), home),
            (issuers.by_corp(claims), corp),
        ] {
            let who = proved(&identity, &token).await;
            let chain: Vec<&str> = who.chain.iter().map(|actor| actor.id.as_str()).collect();
            let shown = format!("{} for {} by {chain:?}", who.actor.id, who.user_id);
            assert_eq!(shown, expected);
        }
    };
    check(
        json!({"sub": "ann"}),
        "ann for ann by []",
        "corp::ann for corp::ann by []",
    )
    .await;
    check(
        json!({"sub": "ann", "client_id": "shopper"}),
        "shopper for ann by []",
        "corp::shopper for corp::ann by []",
    )
    .await;
    check(
        json!({"sub": "nightly", "client_id": "nightly"}),
        "nightly for agent/nightly by []",
        "corp::nightly for agent/corp::nightly by []",
    )
    .await;
    check(
        json!({"sub": "ann", "act": {"sub": "a", "act": {"sub": "b"}}}),
        r#"a for ann by ["b"]"#,
        r#"corp::a for corp::ann by ["corp::b"]"#,
    )
    .await;
}

/// A3: no subject turns a token of one issuer into that of another issuer's user.
#[tokio::test]
async fn no_subject_reaches_into_another_realm() {
    let (parts, issuers) = (Parts::new(), Issuers::new());
    let identity = issuers.identity(&parts, HOME, CORP);
    for subject in [
        "corp::ann",
        "home::ann",
        "agent/nightly",
        "a\u{202e}nn",
        " ann",
        "",
        "ann\u{200d}",
    ] {
        for token in [
            issuers.by_home(json!({"sub": subject})),
            issuers.by_corp(json!({"sub": subject})),
        ] {
            let who = caller(&identity, &token)
                .await
                .map(|caller| caller.principal.user_id.clone());
            let is_harmless = match &who {
                Err(reason) => *reason == Reason::NotAccepted,
                // A prefix that is not the name of a realm is an ordinary part of the id.
                Ok(user_id) => user_id.starts_with("corp::") && subject == "agent/nightly",
            };
            assert!(is_harmless, "{subject:?}: {who:?}");
        }
    }
    // Two spellings of one name are one user.
    let composed = proved(&identity, &issuers.by_home(json!({"sub": "\u{e9}lan"}))).await;
    let decomposed = proved(&identity, &issuers.by_home(json!({"sub": "e\u{301}lan"}))).await;
    assert_eq!(composed, decomposed);
}

/// A3: built-in scopes of Countersign come only from issuers that the policy lists for them, and never to an
/// agent.
#[tokio::test]
async fn built_in_scopes_are_listed_for_an_issuer() {
    let (parts, issuers) = (Parts::new(), Issuers::new());
    let home = "realm = \"home\"\ngrants = [\"calls:read\", \"keys:manage\", \"approvals:answer\"]";
    let identity = issuers.identity(&parts, home, CORP);
    let all = "keys:manage approvals:answer evidence:open evidence:erase evidence:hold calls:read claims:resolve own:scope";
    let check = async |token: String, expected: &[&str]| {
        assert_eq!(proved(&identity, &token).await.scopes, expected);
    };
    let person = json!({"sub": "ann", "scope": all});
    check(
        issuers.by_home(person.clone()),
        &["keys:manage", "approvals:answer", "calls:read", "own:scope"],
    )
    .await;
    check(issuers.by_corp(person), &["own:scope"]).await;
    let agent = json!({"sub": "ann", "scope": all, "client_id": "shopper"});
    check(issuers.by_home(agent), &["calls:read", "own:scope"]).await;
}

/// A3: with several issuers, a policy must name the realm of each. The same realm twice is a link.
#[test]
fn several_issuers_need_realms() {
    let issuers = Issuers::new();
    let error = |home: &str, corp: &str| Policy::parse(&issuers.policy(home, corp)).unwrap_err();
    let missing = error("", CORP);
    assert_snapshot!(missing.message, @r#"the issuer "https://home.example/" has no realm, and there are several issuers"#);
    assert_snapshot!(missing.hint, @r#"write realm = "home" for the issuer whose users are those of the API keys, and a name such as realm = "corp" for each other one"#);
    assert!(
        error(HOME, "realm = \"Corp\"")
            .message
            .contains("1 to 32 small letters")
    );
    assert!(
        error(HOME, "realm = \"corp\"\nclock_skew = \"6m\"")
            .message
            .contains("at most 5m")
    );
    assert!(Policy::parse(&issuers.policy(HOME, "realm = \"home\"")).is_ok());
}

/// A token that would be valid for years is refused, and so is one from the future.
#[tokio::test]
async fn a_token_has_a_bounded_life() {
    let (parts, issuers) = (Parts::new(), Issuers::new());
    let identity = issuers.identity(&parts, "realm = \"home\"\ntoken_life_max = \"1h\"", CORP);
    let check = async |token: String, expected: bool| {
        assert_eq!(caller(&identity, &token).await.is_ok(), expected);
    };
    check(
        issuers.by_home(json!({"sub": "ann", "exp": NOW + 3_600})),
        true,
    )
    .await;
    check(
        issuers.by_home(json!({"sub": "ann", "exp": NOW + 3_661})),
        false,
    )
    .await;
    check(
        issuers.by_home(json!({"sub": "ann", "exp": 99_999_999_999_i64})),
        false,
    )
    .await;
    check(
        issuers.by_corp(json!({"sub": "ann", "exp": NOW + 86_400})),
        true,
    )
    .await;
    check(
        issuers.by_corp(json!({"sub": "ann", "exp": NOW + 86_461})),
        false,
    )
    .await;
    check(
        issuers.by_home(json!({"sub": "ann", "iat": NOW + 61})),
        false,
    )
    .await;
}

/// Keys that can no longer be fetched expire after the time in the policy.
#[tokio::test]
async fn keys_that_cannot_be_fetched_end() {
    let (parts, issuers) = (Parts::new(), Issuers::new());
    let identity = issuers.identity(&parts, "realm = \"home\"\njwks_age_max = \"1h\"", CORP);
    let token = issuers.by_home(json!({"sub": "ann", "exp": NOW + 80_000}));
    assert!(caller(&identity, &token).await.is_ok());
    std::fs::remove_file(issuers.folder.path().join("home")).unwrap();
    parts.clock.advance(std::time::Duration::from_secs(3_500));
    assert!(caller(&identity, &token).await.is_ok());
    parts.clock.advance(std::time::Duration::from_secs(101));
    assert_eq!(
        caller(&identity, &token).await.unwrap_err(),
        Reason::Unavailable
    );
}

/// An issuer that publishes the address of its keys needs no further configuration; a document that names
/// another issuer is rejected.
#[tokio::test]
async fn keys_are_discovered() {
    let parts = Parts::new();
    let signer = Signer::new("k1", Algorithm::EdDSA);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let told = |path: &str| {
        json!({"issuer": format!("{base}{path}"), "jwks_uri": format!("{base}/keys")}).to_string()
    };
    let (good, foreign) = (told("/good"), told("/good"));
    let set = json!({"keys": [signer.public()]}).to_string();
    let router = Router::new()
        .route("/good/.well-known/openid-configuration", get(async || good))
        .route(
            "/evil/.well-known/openid-configuration",
            get(async || foreign),
        )
        .route("/keys", get(async || set));
    tokio::spawn(async move { axum::serve(listener, router).await });
    for (path, expected) in [("/good", Ok(())), ("/evil", Err(Reason::Unavailable))] {
        let issuer = format!("{base}{path}");
        let rules =
            format!("[[issuers]]\nissuer = {issuer:?}\naudience = \"https://tools.example.com\"\n");
        let identity = Identity::new(parts.clock(), policy(&rules));
        let token = signer.token(&json!({"iss": issuer, "sub": "ann"}));
        assert_eq!(
            caller(&identity, &token).await.map(|_| ()),
            expected,
            "{path}"
        );
    }
}

/// A3: a key has no more rights than its creator, and no agent manages keys or answers for people.
#[tokio::test]
async fn a_key_is_within_its_maker() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let made = async |new: NewKey, by: &Principal| {
        let made = keys.create(new, by).await;
        made.map(|made| made.key.principal().scopes)
            .map_err(|error| error.to_string())
    };
    let agent = NewKey {
        user_id: Some("ann".to_owned()),
        scopes: vec!["keys:manage".to_owned()],
        ..key_of(Agent, "shopper")
    };
    assert_snapshot!(made(agent, &operator()).await.unwrap_err(), @"/scopes must be without keys:manage, which no agent holds");
    let admin = NewKey {
        scopes: vec!["keys:manage".to_owned(), "notes:write".to_owned()],
        ..key_of(User, "ann")
    };
    let issued = keys.create(admin, &operator()).await.unwrap();
    let ann = issued.key.principal();
    assert_eq!(
        made(key_of(User, "ann"), &ann).await.unwrap(),
        ["notes:write"]
    );
    assert_snapshot!(made(key_of(User, "bob"), &ann).await.unwrap_err(), @"/user_id must be the user of the credential: a key can do no more than its maker");
    let more = NewKey {
        scopes: vec!["evidence:open".to_owned()],
        ..key_of(User, "ann")
    };
    assert_snapshot!(made(more, &ann).await.unwrap_err(), @"/scopes must be some of those of the credential: a key can do no more than its maker");
    let others = NewKey {
        acts_for_others: true,
        ..key_of(System, "web-shop")
    };
    assert_snapshot!(made(others.clone(), &ann).await.unwrap_err(), @"/acts_for_others must be false: a key can do no more than its maker");
    // Nor by rotating a key with more rights.
    let system = keys.create(others, &operator()).await.unwrap();
    let rotated = keys
        .rotate(&system.key.id, std::time::Duration::ZERO, &ann)
        .await;
    assert!(rotated.is_err());
}

/// Erasing the only holder of a key does not open the server, in this process or in another one.
#[tokio::test]
async fn credentials_stay_required() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let open = |keys: &ApiKeys| {
        Identity::new(parts.clock(), policy("revision = \"none\"")).api_keys(keys.clone())
    };
    let is_open = async |identity: &Identity| identity.without_credential().await.is_some();
    assert!(is_open(&open(&keys)).await);
    keys.create(key_of(User, "ann"), &operator()).await.unwrap();
    let archive = parts.archive(&keys);
    let erased = archive.erase("ann", &eraser(), "asked").await.unwrap();
    assert_eq!(erased.belongings, 1);
    assert!(keys.list(&operator()).await.unwrap().is_empty());
    assert!(!is_open(&open(&keys)).await);
    assert!(!is_open(&open(&parts.api_keys())).await);
    // A server that has had issuers stays closed, too.
    let parts = Parts::new();
    let keys = parts.api_keys();
    keys.require_credentials(&operator().actor).await.unwrap();
    keys.require_credentials(&operator().actor).await.unwrap();
    assert!(keys.list(&operator()).await.unwrap().is_empty());
    let other =
        Identity::new(parts.clock(), policy("revision = \"none\"")).api_keys(parts.api_keys());
    assert!(!is_open(&other).await);
}

/// A3: a rule for an agent also applies to the named one, and no caller of one realm names a user of another.
#[tokio::test]
async fn rules_hold_for_the_named_actor() {
    let rules = "[defaults]\nunlisted = \"allow\"\n[[agents]]\nid = \"blocked-*\"\ndeny = [\"*\"]";
    let policy = policy(rules);
    let executor = Executor::builder(
        Catalog::builder()
            .tool(countersign::sample::ListNotes)
            .build()
            .unwrap(),
    )
    .authorizer(policy)
    .build();
    let check = async |realm: Realm, named: &str, user: &str, expected: Option<&str>| {
        let shop = Principal::new(actor(System, "web-shop"), "")
            .acting_for_others()
            .of_realm(realm);
        let envelope = RequestEnvelope {
            actor: Some(actor(Agent, named)),
            user_id: Some(user.to_owned()),
            ..RequestEnvelope::default()
        };
        let call = ToolCall::new("notes.list", "{}", shop).envelope(envelope);
        let reply = executor.execute(call).await;
        let code = reply.error.map(|error| error.code.as_str());
        assert_eq!(code, expected, "{named} for {user}");
    };
    check(Realm::Any, "shopper", "ann", None).await;
    check(Realm::Any, "blocked-1", "ann", Some("FORBIDDEN")).await;
    check(Realm::Any, "shopper", "corp::ann", None).await;
    check(Realm::Home, "shopper", "corp::ann", Some("FORBIDDEN")).await;
    let corp = Realm::named("corp").unwrap();
    check(corp.clone(), "corp::shopper", "corp::ann", None).await;
    check(corp.clone(), "corp::shopper", "ann", Some("FORBIDDEN")).await;
    check(corp, "shopper", "corp::ann", Some("FORBIDDEN")).await;
    check(
        Realm::Any,
        "shopper",
        "an\u{202e}n",
        Some("INVALID_ARGUMENT"),
    )
    .await;
    check(
        Realm::Any,
        "shopper\u{200b}",
        "ann",
        Some("INVALID_ARGUMENT"),
    )
    .await;
}

/// A3: a caller that manages keys of one realm creates, sees, rotates and revokes none of another.
#[tokio::test]
async fn keys_are_managed_within_a_realm() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let corp = Principal::user("corp::boss")
        .scope("keys:manage")
        .scope("notes:write")
        .acting_for_others()
        .of_realm(Realm::named("corp").unwrap())
        .proved_by(countersign::Credential::Token {
            issuer: "https://corp.example/".to_owned(),
            jti: None,
        });
    let made = async |new: NewKey| keys.create(new, &corp).await.map(|made| made.key.id);
    let others = NewKey {
        acts_for_others: true,
        ..key_of(System, "web-shop")
    };
    let nobodys = key_of(Agent, "nightly");
    let foreign = NewKey {
        user_id: Some("corp::ann".to_owned()),
        ..key_of(Agent, "shopper")
    };
    for beyond in [others, nobodys, key_of(User, "ann"), foreign] {
        assert!(made(beyond.clone()).await.is_err(), "{beyond:?}");
    }
    let own = NewKey {
        user_id: Some("corp::ann".to_owned()),
        ..key_of(Agent, "corp::shopper")
    };
    let own = made(own).await.unwrap();
    let home = keys
        .create(key_of(User, "ann"), &operator())
        .await
        .unwrap()
        .key
        .id;
    let nightly = keys
        .create(key_of(Agent, "nightly"), &operator())
        .await
        .unwrap()
        .key
        .id;
    let listed = keys.list(&corp).await.unwrap();
    let listed: Vec<&str> = listed.iter().map(|key| key.id.as_str()).collect();
    assert_eq!(listed, [&own]);
    for id in [&home, &nightly] {
        let grace = std::time::Duration::ZERO;
        assert!(keys.rotate(id, grace, &corp).await.is_err());
        assert!(keys.revoke(id, &corp).await.is_err());
    }
    assert!(keys.revoke(&own, &corp).await.is_ok());
}

/// A3: a key does not outlive the key that it was created with.
#[tokio::test]
async fn a_key_ends_with_its_maker() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let end = "2026-11-16T13:00:00Z".parse().unwrap();
    let admin = NewKey {
        scopes: vec!["keys:manage".to_owned()],
        expires_at: Some(end),
        ..key_of(User, "ann")
    };
    let ann = keys
        .create(admin.clone(), &operator())
        .await
        .unwrap()
        .key
        .principal();
    let endless = NewKey {
        expires_at: None,
        ..admin.clone()
    };
    assert!(keys.create(endless, &ann).await.is_err());
    assert!(keys.create(admin, &ann).await.is_ok());
}

/// Issuers that a policy names for the first time while the server runs count permanently as well.
#[tokio::test]
async fn credentials_stay_required_after_a_reload() {
    let (parts, issuers) = (Parts::new(), Issuers::new());
    let path = issuers.folder.path().join("policy.toml");
    let none = "revision = \"none\"\n[defaults]\nunlisted = \"allow\"";
    std::fs::write(&path, none).unwrap();
    let live = Arc::new(LivePolicy::open(&path).unwrap());
    let identity = Identity::new(parts.clock(), live.clone()).api_keys(parts.api_keys());
    assert!(identity.without_credential().await.is_some());
    std::fs::write(&path, issuers.policy(HOME, CORP)).unwrap();
    let reloaded = live.reload(&parts.recorder()).await;
    assert!(matches!(reloaded, Reloaded::Accepted(_)), "{reloaded:?}");
    assert!(identity.without_credential().await.is_none());
    // The next process has a policy without issuers.
    let later = Identity::new(parts.clock(), policy(none)).api_keys(parts.api_keys());
    assert!(later.without_credential().await.is_none());
}

//! Tokens: real ones, signed by keys that are generated here, with the public keys behind a real server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use countersign::contract::ActorType::Agent;
use countersign::realm::Realm;
use countersign::{Credential, Principal};
use countersign_gateway::caller::Proof;
use countersign_gateway::identity::{Identity, Reason};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::identity::{actor, caller, policy};
use crate::parts::Parts;
use crate::signer::{NOW, Signer};

/// A principal that is proved by a token of the issuer without an id.
fn by_token(principal: Principal) -> Principal {
    let proved = principal.proved_by(Credential::Token {
        issuer: "https://login.example.com/".to_owned(),
        jti: None,
    });
    proved.of_realm(Realm::Home)
}

/// Creates a policy with one issuer, whose key set is in a file.
pub(crate) fn with_file(
    parts: &Parts,
    keys: &[&Signer],
    more: &str,
) -> (Identity, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    let keys: Vec<Value> = keys.iter().map(|key| key.public()).collect();
    std::fs::write(&path, json!({"keys": keys}).to_string()).unwrap();
    let rules = issuer(&format!("jwks_file = '{}'\n{more}", path.display()));
    (Identity::new(parts.clock(), policy(&rules)), folder)
}

fn issuer(more: &str) -> String {
    format!(
        "[[issuers]]\nissuer = \"https://login.example.com/\"\n\
         audience = \"https://tools.example.com\"\n{more}"
    )
}

/// A token of each supported algorithm proves its user.
#[tokio::test]
async fn a_token_proves_its_user() {
    let parts = Parts::new();
    let algorithms = [
        ("ed", Algorithm::EdDSA),
        ("ec", Algorithm::ES256),
        ("rs", Algorithm::RS256),
        ("ps", Algorithm::PS256),
    ];
    let signers = algorithms.map(|(id, algorithm)| Signer::new(id, algorithm));
    let more = "tokens_without_client_are_users = true";
    let (identity, _folder) = with_file(&parts, &signers.each_ref(), more);
    for signer in &signers {
        let caller = caller(&identity, &signer.token(&json!({}))).await.unwrap();
        let expected = Principal::user("u_1")
            .scope("tools:call")
            .scope("notes:write");
        let expected = by_token(expected);
        assert_eq!(
            (&*caller.principal, caller.proof),
            (&expected, Proof::Token),
            "{}",
            signer.id
        );
        let nameless = Header::new(signer.algorithm);
        let token = signer.token_under(&nameless, &json!({}));
        assert!(
            self::caller(&identity, &token).await.is_ok(),
            "the one key that fits is found"
        );
    }
}

/// A3: only a valid token proves anything.
#[tokio::test]
async fn a_wrong_token_proves_nobody() {
    let parts = Parts::new();
    let signer = Signer::new("k1", Algorithm::EdDSA);
    let stranger = Signer::new("k1", Algorithm::EdDSA);
    let (identity, _folder) = with_file(&parts, &[&signer], "");
    let good = signer.token(&json!({}));
    let (head, signature) = good.rsplit_once('.').unwrap();
    let (header, _) = head.split_once('.').unwrap();
    let other = signer.token(&json!({"sub": "u_2"}));
    let (_, other) = other.split_once('.').unwrap();
    let (other, _) = other.split_once('.').unwrap();

    // The public key as a shared secret, and no signature at all.
    let secret = EncodingKey::from_secret(signer.public()["x"].as_str().unwrap().as_bytes());
    let mut shared = Header::new(Algorithm::HS256);
    shared.kid = Some("k1".to_owned());
    let claims = json!({"iss": "https://login.example.com/", "aud": "https://tools.example.com",
        "sub": "u_1", "exp": NOW + 300});
    let none = base64_json(&json!({"alg": "none", "typ": "JWT"}));
    let logout = Header {
        typ: Some("logout+jwt".to_owned()),
        ..signer.header()
    };
    let critical = Header {
        crit: Some(vec!["b64".to_owned()]),
        ..signer.header()
    };
    let wrong = [
        ("another key", stranger.token(&json!({}))),
        ("another's claims", format!("{header}.{other}.{signature}")),
        ("no signature", format!("{head}.")),
        (
            "algorithm none",
            format!("{none}.{}.", base64_json(&claims)),
        ),
        (
            "a shared secret",
            encode(&shared, &claims, &secret).unwrap(),
        ),
        (
            "another server's",
            signer.token(&json!({"aud": "https://other.example.com"})),
        ),
        ("for nobody", signer.token(&json!({"aud": null}))),
        (
            "another issuer's",
            signer.token(&json!({"iss": "https://evil.example.com/"})),
        ),
        ("over", signer.token(&json!({"exp": NOW - 61}))),
        ("without an end", signer.token(&json!({"exp": null}))),
        ("not begun", signer.token(&json!({"nbf": NOW + 61}))),
        ("without a subject", signer.token(&json!({"sub": null}))),
        (
            "a program's name",
            signer.token(&json!({"sub": "agent/a_1"})),
        ),
        ("a nameless actor", signer.token(&json!({"act": {}}))),
        ("no access token", signer.token_under(&logout, &json!({}))),
        (
            "what must be understood",
            signer.token_under(&critical, &json!({})),
        ),
        ("no token", "eyJhbGciOiJFZERTQSJ9.e30.".to_owned()),
    ];
    for (what, token) in wrong {
        let refused = caller(&identity, &token).await.unwrap_err();
        assert_eq!(refused, Reason::NotAccepted, "{what}");
    }
}

/// Clocks may differ by a minute, and a token may be for several servers.
#[tokio::test]
async fn a_token_is_read_with_a_minute_of_grace() {
    let parts = Parts::new();
    let signer = Signer::new("k1", Algorithm::EdDSA);
    let (identity, _folder) = with_file(&parts, &[&signer], "");
    for fine in [
        json!({"exp": NOW - 59}),
        json!({"nbf": NOW + 59}),
        json!({"aud": ["https://other.example.com", "https://tools.example.com"]}),
        json!({"exp": 1_794_830_400.5}),
    ] {
        let caller = caller(&identity, &signer.token(&fine)).await;
        assert!(caller.is_ok(), "{fine}");
    }
}

/// The principal of a token depends on the party that got it: a person, an agent for a person, an agent for no
/// user.
#[tokio::test]
async fn the_actor_of_a_token_is_who_got_it() {
    let parts = Parts::new();
    let signer = Signer::new("k1", Algorithm::EdDSA);
    let more = "user_clients = [\"console\"]\nacts_for_others_scope = \"users:any\"\n\
                scopes_claim = \"scp\"";
    let (identity, _folder) = with_file(&parts, &[&signer], more);
    let check = async |claims: Value| {
        let caller = caller(&identity, &signer.token(&claims)).await.unwrap();
        (*caller.principal).clone()
    };
    let shopper = || by_token(Principal::new(actor(Agent, "shopper"), "u_1"));
    assert_eq!(
        check(json!({"client_id": "console"})).await,
        by_token(Principal::user("u_1"))
    );
    assert_eq!(check(json!({"client_id": "shopper"})).await, shopper());
    assert_eq!(check(json!({"azp": "shopper"})).await, shopper());
    let act = json!({"client_id": "console", "act": {"sub": "shopper", "act": {"sub": "planner"}}});
    let delegated = shopper().delegated_by(vec![actor(Agent, "planner")]);
    assert_eq!(check(act).await, delegated);
    let nobody = by_token(Principal::without_user(actor(Agent, "job")));
    assert_eq!(
        check(json!({"sub": "job", "client_id": "job"})).await,
        nobody
    );
    assert_eq!(
        check(json!({"sub": "job@clients", "azp": "job"})).await,
        nobody
    );
    let backend = check(json!({"client_id": "shopper", "scp": ["users:any", "a b"]})).await;
    assert_eq!(backend, shopper().scope("users:any").acting_for_others());

    let deep = (0..9).fold(
        json!({"sub": "a"}),
        |act, _| json!({"sub": "a", "act": act}),
    );
    let token = signer.token(&json!({"act": deep}));
    assert_eq!(
        caller(&identity, &token).await.unwrap_err(),
        Reason::NotAccepted
    );
}

/// An agent is never taken for its user, whatever its issuer calls the application: only the user can confirm.
#[tokio::test]
async fn a_token_is_a_persons_own_only_where_every_client_is_known() {
    let parts = Parts::new();
    let signer = Signer::new("k1", Algorithm::EdDSA);
    let check = async |more: &str, claims: Value| {
        let more = format!("user_clients = [\"web\"]\n{more}");
        let (identity, _folder) = with_file(&parts, &[&signer], &more);
        let caller = caller(&identity, &signer.token(&claims)).await;
        caller.map(|caller| (*caller.principal).clone())
    };
    let agent = |id: &str| Ok(Principal::new(actor(Agent, id), "u_1"));
    let own = || Ok(Principal::user("u_1"));
    let usual = [
        (json!({}), agent("unnamed-client")),
        (json!({"app": "web"}), agent("unnamed-client")),
        (json!({"cid": "evil"}), agent("evil")),
        (json!({"appid": "evil"}), agent("evil")),
        (json!({"client_id": "web", "azp": "evil"}), agent("evil")),
        (json!({"client_id": "evil", "azp": "web"}), agent("evil")),
        (json!({"client_id": 5}), Err(Reason::NotAccepted)),
        (json!({"client_id": ["web"]}), Err(Reason::NotAccepted)),
        (
            json!({"client_id": "web", "cid": null}),
            Err(Reason::NotAccepted),
        ),
        (json!({"client_id": ""}), Err(Reason::NotAccepted)),
        (json!({"client_id": "web", "azp": "web"}), own()),
        (json!({"cid": "web"}), own()),
        (
            json!({"client_id": "web", "azp": "u_1"}),
            Ok(Principal::without_user(actor(Agent, "u_1"))),
        ),
    ];
    let scoped = |expected: Result<Principal, Reason>| {
        expected.map(|it| by_token(it).scope("tools:call").scope("notes:write"))
    };
    for (claims, expected) in usual {
        assert_eq!(
            check("", claims.clone()).await,
            scoped(expected),
            "{claims}"
        );
    }
    let settings = [
        ("client_claim = \"app\"", json!({"app": "web"}), own()),
        (
            "client_claim = \"app\"",
            json!({"app": "evil"}),
            agent("evil"),
        ),
        (
            "client_claim = \"app\"",
            json!({"client_id": "web"}),
            agent("unnamed-client"),
        ),
        ("tokens_without_client_are_users = true", json!({}), own()),
        (
            "tokens_without_client_are_users = true",
            json!({"cid": "evil"}),
            agent("evil"),
        ),
    ];
    for (more, claims, expected) in settings {
        assert_eq!(
            check(more, claims.clone()).await,
            scoped(expected),
            "{more} {claims}"
        );
    }
}

/// The chain of delegation is in the record, so that an auditor sees more than an agent's name.
#[tokio::test]
async fn the_chain_of_delegation_is_recorded() {
    let parts = Parts::new();
    let signer = Signer::new("k1", Algorithm::EdDSA);
    let more = "[defaults]\nunlisted = \"allow\"";
    let (identity, _folder) = with_file(&parts, &[&signer], more);
    let server = parts.serve(identity).await;
    let token = signer.token(&json!({"act": {"sub": "shopper", "act": {"sub": "planner"}}}));
    let body = json!({"arguments": {"text": "tea"}});
    let called = server.send("POST", "/v1/tools/notes.add", Some(&token), Some(body));
    let (status, _, reply) = called.await;
    assert_eq!(status, 200, "{reply}");
    let id = serde_json::from_value(reply["evidence"]["snapshot_id"].clone()).unwrap();
    let stored = parts.store.record(&id).await.unwrap().unwrap();
    let leaf: Value = serde_json::from_slice(&stored.leaf).unwrap();
    assert_eq!(leaf["actor"], json!({"type": "agent", "id": "shopper"}));
    assert_eq!(
        leaf["delegation"],
        json!([{"type": "agent", "id": "planner"}])
    );
    assert_eq!(stored.row.user_id, "u_1");
}

/// A pipe in place of the keys is not waited for.
#[tokio::test]
async fn a_pipe_is_no_set_of_keys() {
    let parts = Parts::new();
    let signer = Signer::new("k1", Algorithm::EdDSA);
    let (identity, folder) = with_file(&parts, &[&signer], "");
    let path = folder.path().join("keys.json");
    std::fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let refused = caller(&identity, &signer.token(&json!({}))).await;
    assert_eq!(refused.unwrap_err(), Reason::Unavailable);
}

/// New keys of the issuer are found, and its outage does not become ours.
#[tokio::test]
async fn keys_are_fetched_when_they_change_and_kept_when_they_cannot_be() {
    let parts = Parts::new();
    let (first, second) = (
        Signer::new("k1", Algorithm::EdDSA),
        Signer::new("k2", Algorithm::EdDSA),
    );
    let set = Arc::new(arc_swap::ArcSwap::from_pointee(String::new()));
    let fetches = Arc::new(AtomicUsize::new(0));
    let (served, counted) = (set.clone(), fetches.clone());
    let answer = move || {
        let (served, counted) = (served.clone(), counted.clone());
        async move {
            counted.fetch_add(1, Ordering::Relaxed);
            served.load().as_str().to_owned()
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
    let router = Router::new().route("/jwks.json", get(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let serve = |signers: &[&Signer]| {
        let keys: Vec<Value> = signers.iter().map(|key| key.public()).collect();
        set.store(Arc::new(json!({"keys": keys}).to_string()));
    };
    let rules = issuer(&format!("jwks_url = {url:?}"));
    let identity = Identity::new(parts.clock(), policy(&rules));
    let is_good = async |signer: &Signer| {
        let caller = caller(&identity, &signer.token(&json!({"exp": NOW + 9_999}))).await;
        caller.map(|_| ())
    };

    // Nothing is known before the first answer, and the issuer is not queried all the time.
    assert_eq!(is_good(&first).await, Err(Reason::Unavailable));
    serve(&[&first]);
    assert_eq!(is_good(&first).await, Err(Reason::Unavailable));
    assert_eq!(fetches.load(Ordering::Relaxed), 1);
    parts.clock.advance(Duration::from_secs(2));
    assert_eq!(is_good(&first).await, Ok(()));

    // An unknown key is looked up once in thirty seconds.
    serve(&[&first, &second]);
    assert_eq!(is_good(&second).await, Err(Reason::NotAccepted));
    assert_eq!(fetches.load(Ordering::Relaxed), 2);
    parts.clock.advance(Duration::from_secs(30));
    assert_eq!(is_good(&second).await, Ok(()));
    assert_eq!(fetches.load(Ordering::Relaxed), 3);

    // The issuer answers with nonsense: the known keys stay.
    set.store(Arc::new("out of order".to_owned()));
    parts.clock.advance(Duration::from_secs(1_000));
    let unknown = Signer::new("k3", Algorithm::EdDSA);
    assert_eq!(is_good(&unknown).await, Err(Reason::NotAccepted));
    assert_eq!(is_good(&first).await, Ok(()));
    assert_eq!(fetches.load(Ordering::Relaxed), 4);
}

fn base64_json(value: &Value) -> String {
    use base64::Engine as _;

    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string())
}

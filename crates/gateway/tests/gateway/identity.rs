//! Credentials: the identity they prove, and the answer to a missing or wrong one.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign::archive::SCOPE_ERASE;
use countersign::clock::ManualClock;
use countersign::contract::{Actor, ActorType};
use countersign::{BoxFuture, Credential, Principal};
use countersign_gateway::Caller;
use countersign_gateway::caller::Proof;
use countersign_gateway::identity::{
    ApiKeys, Identity, KeyState, KeysError, MayNotListen, NewKey, Reason, SCOPE_KEYS, may_listen,
};
use countersign_gateway::operator::Secret;
use countersign_gateway::policy::{LivePolicy, Policy};
use countersign_testkit::faulty::{FaultyStore, Op, When};
use countersign_testkit::ledger::build::{told, trust};
use countersign_testkit::postgres::shared_postgres;
use http::{HeaderMap, HeaderValue};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::operator::{credential, proved_by};
use crate::parts::Parts;

pub(crate) fn actor(kind: ActorType, id: &str) -> Actor {
    Actor {
        kind,
        id: id.to_owned(),
    }
}

pub(crate) fn operator() -> Principal {
    let actor = actor(ActorType::System, "operator/ann");
    Principal::new(actor, "").scope(SCOPE_KEYS)
}

pub(crate) fn eraser() -> Principal {
    operator().scope(SCOPE_ERASE)
}

pub(crate) fn key_of(kind: ActorType, id: &str) -> NewKey {
    NewKey {
        label: "Ann's laptop".to_owned(),
        actor: actor(kind, id),
        user_id: None,
        acts_for_others: false,
        scopes: vec!["notes:write".to_owned()],
        effects: None,
        expires_at: None,
    }
}

pub(crate) fn policy(text: &str) -> Arc<LivePolicy> {
    Arc::new(LivePolicy::fixed(Policy::parse(text).unwrap()))
}

pub(crate) fn with_token(token: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let value = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
    headers.insert("authorization", value);
    headers
}

pub(crate) async fn caller(identity: &Identity, token: &str) -> Result<Caller, Reason> {
    let caller = identity.caller(&with_token(token)).await;
    caller.map_err(|refused| refused.reason)
}

/// A3: a key proves the identity it was created for, and any altered key proves nothing.
#[tokio::test]
async fn a_key_proves_its_holder() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let identity =
        Identity::new(parts.clock(), policy("revision = \"none\"")).api_keys(keys.clone());
    let new = NewKey {
        user_id: Some("u_1".to_owned()),
        ..key_of(ActorType::Agent, "a_7")
    };
    let issued = keys.create(new, &operator()).await.unwrap();
    let caller_of_key = caller(&identity, &issued.token).await.unwrap();
    let by = |key: &str| Credential::ApiKey { id: key.to_owned() };
    let expected = Principal::new(actor(ActorType::Agent, "a_7"), "u_1").scope("notes:write");
    let expected = expected.proved_by(by(&issued.key.id));
    assert_eq!(*caller_of_key.principal, expected);
    assert_eq!(caller_of_key.proof, Proof::ApiKey);

    let other = keys
        .create(key_of(ActorType::User, "u_2"), &operator())
        .await
        .unwrap();
    let (mine, theirs) = (issued.token.as_str(), other.token.as_str());
    let of_user = caller(&identity, theirs).await.unwrap();
    let expected = Principal::user("u_2").scope("notes:write");
    assert_eq!(*of_user.principal, expected.proved_by(by(&other.key.id)));
    let swapped = format!("{}{}", &mine[..21], &theirs[21..]);
    let wrong = [
        swapped.as_str(),
        &mine[..mine.len() - 1],
        "csk_0000000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "csk_",
        "csk__",
        "anything",
    ];
    for token in wrong {
        assert_eq!(
            caller(&identity, token).await.unwrap_err(),
            Reason::NotAccepted,
            "{token}"
        );
    }
    // No secret is in the store or in debug output.
    let secret = &mine[21..];
    assert!(!format!("{issued:?} {keys:?} {identity:?}").contains(secret));
    let records = parts.config_records().await;
    assert!(!json!(records).to_string().contains(secret));
}

/// Every change of a key is recorded without naming a person.
#[tokio::test]
async fn what_is_done_with_keys_is_recorded() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let issued = keys
        .create(key_of(ActorType::User, "ann@example.com"), &operator())
        .await
        .unwrap();
    parts.clock.advance(Duration::from_secs(1));
    let rotated = keys
        .rotate(&issued.key.id, Duration::from_mins(1), &operator())
        .await
        .unwrap();
    parts.clock.advance(Duration::from_secs(1));
    keys.revoke(&rotated.key.id, &operator()).await.unwrap();

    let records = parts.config_records().await;
    assert!(!json!(records).to_string().contains("ann@"));
    assert!(records.iter().all(|record| record["subject"].is_string()));
    let mut told = String::new();
    for mut record in records {
        // Documents are named by digests; their versions are told.
        let written = record["act"]["writes"].take();
        let mut versions: Vec<_> = written.as_object().unwrap().values().cloned().collect();
        versions.sort_by_key(Value::as_u64);
        record["act"]["writes"] = versions.into();
        writeln!(told, "{} {}", record["actor"], record["act"]).unwrap();
    }
    let told = told
        .replace(&issued.key.id, "KEY_1")
        .replace(&rotated.key.id, "KEY_2");
    assert_snapshot!(told, @r#"
    {"id":"operator/ann","type":"system"} {"acts_for_others":false,"event":"api_key_created","expires_at":null,"key":"KEY_1","owner":{"type":"user"},"scopes":["notes:write"],"writes":[1,1]}
    {"id":"operator/ann","type":"system"} {"acts_for_others":false,"event":"api_key_rotated","expires_at":null,"from":"KEY_1","grace_seconds":60,"key":"KEY_2","owner":{"type":"user"},"scopes":["notes:write"],"writes":[1,2]}
    {"id":"operator/ann","type":"system"} {"acts_for_others":false,"event":"api_key_revoked","expires_at":null,"key":"KEY_2","owner":{"type":"user"},"scopes":["notes:write"],"writes":[2]}
    "#);
}

/// A key that another process creates works here at once; one that it revokes ends here within five seconds.
#[tokio::test]
async fn processes_on_one_store_have_the_same_keys() {
    let parts = Parts::new();
    let (here, there) = (parts.api_keys(), parts.api_keys());
    assert!(!here.are_used().await.unwrap());
    let issued = there
        .create(key_of(ActorType::Agent, "a_1"), &operator())
        .await
        .unwrap();
    let is_good = async |keys: &ApiKeys| keys.verify(&issued.token).await.unwrap().is_some();
    parts.clock.advance(Duration::from_secs(1));
    assert!(is_good(&here).await, "what is not known is looked for");

    there.revoke(&issued.key.id, &operator()).await.unwrap();
    assert!(!is_good(&there).await, "it has ended where it was revoked");
    assert!(is_good(&here).await, "the copy is young");
    parts.clock.advance(Duration::from_secs(5));
    assert!(!is_good(&here).await, "the copy is too old to be used");
    assert!(here.are_used().await.unwrap() && !here.has_active().await.unwrap());
}

/// A17: a server whose clock was set back accepts no key that had ended by the time that its store has believed.
#[tokio::test]
async fn a_clock_that_is_set_back_revives_no_key() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let new = NewKey {
        expires_at: Some("2026-11-16T13:00:00Z".parse().unwrap()),
        ..key_of(ActorType::Agent, "a_1")
    };
    let issued = keys.create(new, &operator()).await.unwrap();
    assert!(keys.verify(&issued.token).await.unwrap().is_some());
    parts.clock.advance(Duration::from_hours(2));
    parts.store.observe_time(told()).await.unwrap();
    assert!(keys.verify(&issued.token).await.unwrap().is_none());
    // Another start, an hour and a half before.
    let start = "2026-11-16T12:30:00Z".parse().unwrap();
    let back = Arc::new(ManualClock::starting_at(start));
    let back = Parts::on(parts.store.clone(), back, parts.ids.clone());
    let keys = back.api_keys();
    assert!(keys.verify(&issued.token).await.unwrap().is_none());
    assert!(!keys.has_active().await.unwrap());
    let again = keys
        .rotate(&issued.key.id, Duration::ZERO, &operator())
        .await;
    assert!(matches!(again, Err(KeysError::Ended { .. })), "{again:?}");
}

#[tokio::test]
async fn keys_end_and_are_rotated() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let expires_at = Some("2026-11-16T13:00:00Z".parse().unwrap());
    let new = NewKey {
        expires_at,
        ..key_of(ActorType::Agent, "a_1")
    };
    let first = keys.create(new, &operator()).await.unwrap();
    parts.clock.advance(Duration::from_mins(30));
    let second = keys
        .rotate(&first.key.id, Duration::from_mins(1), &operator())
        .await
        .unwrap();
    assert_eq!(
        second.key.rotated_from.as_deref(),
        Some(first.key.id.as_str())
    );
    let expected = Some("2026-11-16T13:30:00Z".parse().unwrap());
    assert_eq!(
        second.key.expires_at, expected,
        "for as long as the first one"
    );
    let is_good = async |token: &str| keys.verify(token).await.unwrap().is_some();
    assert!(is_good(&first.token).await && is_good(&second.token).await);
    parts.clock.advance(Duration::from_mins(1));
    assert!(!is_good(&first.token).await && is_good(&second.token).await);
    let again = keys
        .rotate(&first.key.id, Duration::ZERO, &operator())
        .await;
    assert!(matches!(again, Err(KeysError::Ended { .. })));
    let third = keys
        .rotate(&second.key.id, Duration::ZERO, &operator())
        .await
        .unwrap();
    assert!(!is_good(&second.token).await && is_good(&third.token).await);

    let listed = keys.list(&operator()).await.unwrap();
    let states: Vec<KeyState> = listed.iter().map(|key| keys.state_of(key)).collect();
    assert_eq!(
        states,
        [KeyState::Expired, KeyState::Revoked, KeyState::Active]
    );

    // Ended keys are deleted after a month, with the next new one, unless the clock has jumped.
    parts.store.observe_time(told()).await.unwrap();
    parts.clock.advance(Duration::from_hours(31 * 24));
    let create = async |name: &str| {
        let (new, by) = (key_of(ActorType::Agent, name), operator());
        keys.create(new, &by).await.unwrap();
        keys.list(&operator()).await.unwrap().len()
    };
    assert_eq!(create("a_2").await, 4);
    trust(&*parts.store).await.unwrap();
    assert_eq!(create("a_3").await, 2);
}

/// Erasing a user leaves no key that could bring the user back, and no record that names them.
#[tokio::test]
async fn the_keys_of_an_erased_user_are_forgotten() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let of_agent = NewKey {
        user_id: Some("u_1".to_owned()),
        ..key_of(ActorType::Agent, "a_1")
    };
    let mine = keys.create(of_agent, &operator()).await.unwrap();
    for user in ["u_1", "u_2"] {
        let new = key_of(ActorType::User, user);
        keys.create(new, &operator()).await.unwrap();
    }
    parts.clock.advance(Duration::from_secs(1));
    let archive = parts.archive(&keys);
    let erased = archive.erase("u_1", &eraser(), "asked").await.unwrap();
    assert_eq!(erased.belongings, 2);
    assert!(keys.verify(&mine.token).await.unwrap().is_none());
    assert_eq!(keys.list(&operator()).await.unwrap().len(), 1);
    let record = parts.store.record(&erased.record.unwrap()).await;
    let leaf: Value = serde_json::from_slice(&record.unwrap().unwrap().leaf).unwrap();
    assert_eq!(leaf["act"]["api_keys"].as_array().unwrap().len(), 2);
    assert!(!leaf.to_string().contains("u_1"));
    let again = archive.erase("u_1", &eraser(), "asked").await.unwrap();
    assert_eq!((again.record, again.belongings), (None, 0));
}

/// U4: a store that fails anywhere in an erasure leaves either the user with the keys or neither, and no
/// request is accepted without a credential.
#[tokio::test]
async fn an_erasure_and_its_keys_are_one_commit() {
    for step in 0..100 {
        let plain = Parts::new();
        let operation = Arc::new(AtomicUsize::new(usize::MAX / 2));
        let when_to_fail = {
            let operation = operation.clone();
            move |_: Op, _: When| {
                let is_now = operation.fetch_add(1, Ordering::Relaxed) == step;
                Box::pin(async move { is_now }) as BoxFuture<'static, bool>
            }
        };
        let faulty = Arc::new(FaultyStore::new(plain.store.clone(), when_to_fail));
        let parts = Parts::on(faulty, plain.clock.clone(), plain.ids.clone());
        let keys = parts.api_keys();
        let new = key_of(ActorType::User, "u_1");
        let issued = keys.create(new, &operator()).await.unwrap();
        let archive = parts.archive(&keys);
        operation.store(0, Ordering::Relaxed);
        let erased = archive.erase("u_1", &eraser(), "asked").await;
        operation.store(usize::MAX / 2, Ordering::Relaxed);

        // Another process, which shares only the store with this one.
        let other = plain.api_keys();
        let has_user_key = plain.store.user_key("u_1").await.unwrap().is_some();
        let gets_in = other.verify(&issued.token).await.unwrap().is_some();
        assert_eq!(gets_in, has_user_key, "step {step}: {erased:?}");
        assert!(other.are_used().await.unwrap(), "step {step}");
        if erased.is_ok() {
            assert!(!gets_in, "step {step}");
            assert!(step > 5, "the erasure has steps that fail");
            return;
        }
    }
    panic!("an erasure has fewer steps");
}

/// Processes that share only a PostgreSQL database have the same keys.
#[tokio::test]
async fn keys_are_shared_over_postgresql() {
    let url = shared_postgres().fresh_database();
    let here = Parts::on_postgres(&url).await;
    let there = Parts::on_postgres(&url).await;
    let (mine, theirs) = (here.api_keys(), there.api_keys());
    let new = key_of(ActorType::Agent, "a_1");
    let issued = mine.create(new, &operator()).await.unwrap();
    assert!(theirs.verify(&issued.token).await.unwrap().is_some());
    // Both change the same key at once: one after the other, and the last one finds it ended.
    let by = operator();
    let grace = Duration::from_mins(1);
    let (one, other) = tokio::join!(
        mine.rotate(&issued.key.id, grace, &by),
        theirs.revoke(&issued.key.id, &by),
    );
    assert!(other.is_ok());
    assert!(one.is_ok() || matches!(one, Err(KeysError::Ended { .. })));
    here.clock.advance(Duration::from_secs(5));
    assert!(mine.verify(&issued.token).await.unwrap().is_none());
    let records = here.config_records().await;
    assert_eq!(records.len(), 2 + usize::from(one.is_ok()));
}

#[tokio::test]
async fn what_cannot_be_a_key_is_refused() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let check = async |new: NewKey| {
        let error = keys.create(new, &operator()).await.unwrap_err();
        error.to_string()
    };
    let agent = || key_of(ActorType::Agent, "a_1");
    let told = [
        check(key_of(ActorType::Agent, "")).await,
        check(NewKey {
            label: "a\nb".to_owned(),
            ..agent()
        })
        .await,
        check(NewKey {
            scopes: vec!["a b".to_owned()],
            ..agent()
        })
        .await,
        check(NewKey {
            user_id: Some("agent/a_2".to_owned()),
            ..agent()
        })
        .await,
        check(NewKey {
            user_id: Some("u_2".to_owned()),
            ..key_of(ActorType::User, "u_1")
        })
        .await,
        check(NewKey {
            acts_for_others: true,
            ..key_of(ActorType::User, "u_1")
        })
        .await,
        check(NewKey {
            expires_at: Some(jiff::Timestamp::UNIX_EPOCH),
            ..agent()
        })
        .await,
    ];
    assert_snapshot!(told.join("\n"), @"
    /actor/id must be 1 to 255 characters that can be seen, and no space at its ends
    /label must be at most 128 characters, none of them a control character
    /scopes must be at most 64 scopes of 1 to 128 visible characters each
    /user_id must be 1 to 255 characters that can be seen, and no name of a program
    /user_id must be left out for a person's own key, or the person's id
    /acts_for_others must be false for a person: only a program acts for others
    /expires_at must be in the future
    ");
    let stranger = Principal::user("u_1").scope("keys:read");
    let error = keys.create(agent(), &stranger).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the credential does not grant \"keys:manage\""
    );
    assert!(keys.list(&operator()).await.unwrap().is_empty());
}

/// Decision 8: loopback needs no credential until there is one; another interface always does.
#[tokio::test]
async fn without_a_credential_only_this_machine_is_let_in() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let identity =
        Identity::new(parts.clock(), policy("revision = \"none\"")).api_keys(keys.clone());
    let anonymous = async |identity: &Identity| {
        let caller = identity.caller(&HeaderMap::new()).await;
        caller
            .map(|caller| caller.proof)
            .map_err(|refused| refused.reason)
    };
    assert_eq!(anonymous(&identity).await, Ok(Proof::Loopback));
    assert_eq!(
        caller(&identity, "x").await.unwrap_err(),
        Reason::NotAccepted
    );
    let everywhere = "0.0.0.0:8787".parse().unwrap();
    let here = "127.0.0.1:8787".parse().unwrap();
    may_listen(here, None, &identity).await.unwrap();
    may_listen("[::1]:8787".parse().unwrap(), None, &identity)
        .await
        .unwrap();
    let refused = may_listen(everywhere, None, &identity).await.unwrap_err();
    assert_snapshot!(refused, @"0.0.0.0:8787 can be reached by other machines, but no credential is configured");
    let known_as = Some("https://tools.example.com");
    let refused = may_listen(here, known_as, &identity).await.unwrap_err();
    assert!(matches!(refused, MayNotListen::NoCredential { .. }));

    let issued = keys
        .create(key_of(ActorType::Agent, "a_1"), &operator())
        .await
        .unwrap();
    assert_eq!(anonymous(&identity).await, Err(Reason::Missing));
    may_listen(everywhere, None, &identity).await.unwrap();

    // Revoking the last key does not open the server.
    keys.revoke(&issued.key.id, &operator()).await.unwrap();
    assert_eq!(anonymous(&identity).await, Err(Reason::Missing));
    let open = Identity::new(parts.clock(), policy("revision = \"none\"")).api_keys(keys);
    assert!(matches!(
        may_listen(everywhere, None, &open).await,
        Err(MayNotListen::NoCredential { .. })
    ));
    let open = open.allow_anonymous_loopback();
    assert_eq!(anonymous(&open).await, Ok(Proof::Loopback));
    assert!(matches!(
        may_listen(everywhere, None, &open).await,
        Err(MayNotListen::Anonymous { .. })
    ));

    let tokens = "[[issuers]]\nissuer = \"i\"\naudience = \"a\"\njwks_file = \"keys.json\"";
    let by_tokens = Identity::new(parts.clock(), policy(tokens));
    assert_eq!(anonymous(&by_tokens).await, Err(Reason::Missing));
    may_listen(everywhere, None, &by_tokens).await.unwrap();
}

/// A policy that loses its issuers accepts no caller that needed a token before.
#[tokio::test]
async fn issuers_that_vanish_open_nothing() {
    let parts = Parts::new();
    let recorder = parts.recorder();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    let issuer = "[[issuers]]\nissuer = \"i\"\naudience = \"a\"\njwks_file = \"keys.json\"";
    // Named from the beginning, and by a later file.
    for before in [issuer, "revision = \"none\""] {
        std::fs::write(&path, before).unwrap();
        let live = Arc::new(LivePolicy::open(&path).unwrap());
        let identity = Identity::new(parts.clock(), live.clone());
        std::fs::write(&path, format!("revision = \"some\"\n{issuer}")).unwrap();
        live.reload(&recorder).await;
        assert!(identity.without_credential().await.is_none());
        std::fs::write(&path, "revision = \"lost\"").unwrap();
        live.reload(&recorder).await;
        assert!(live.current().file().issuers.is_empty());
        assert!(identity.without_credential().await.is_none(), "{before}");
    }
}

/// Refusals are counted, and reveal nothing about the credential.
#[tokio::test]
async fn a_refusal_is_an_envelope_with_a_challenge() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    keys.create(key_of(ActorType::Agent, "a_1"), &operator())
        .await
        .unwrap();
    let rules = policy(
        "[[tools]]\nmatch = \"notes.*\"\nscopes = [\"notes:write\", \"admin\"]\n\
         [[issuers]]\nissuer = \"https://login.example.com/\"\naudience = \"a\"\njwks_file = \"k.json\"",
    );
    let identity = Identity::new(parts.clock(), rules).api_keys(keys);
    let server = parts.serve(identity).await;
    let host = server.address.to_string();
    let check = async |path: &str, credential: Option<&str>| {
        let (status, challenge, mut body) = server.send("GET", path, credential, None).await;
        if let Some(id) = body.get_mut("request_id") {
            *id = Value::Null;
        }
        let challenge = challenge.unwrap_or_else(|| "(no challenge)".to_owned());
        format!("{status} {challenge}\n{body}").replace(&host, "HOST")
    };
    assert_snapshot!(check("/v1/keys", None).await, @r#"
    401 Bearer scope="notes:write", resource_metadata="http://HOST/.well-known/oauth-protected-resource"
    {"data":null,"error":{"code":"UNAUTHORIZED","details":{"hint":"send an API key or a token as `Authorization: Bearer …`","retryable":false},"message":"a credential is needed"},"ok":false,"request_id":null,"warnings":[]}
    "#);
    assert_snapshot!(check("/v1/keys", Some("csk_wrong")).await, @r#"
    401 Bearer error="invalid_token", scope="notes:write", resource_metadata="http://HOST/.well-known/oauth-protected-resource"
    {"data":null,"error":{"code":"UNAUTHORIZED","details":{"hint":"it may be mistyped, revoked, expired or meant for another server; get a new one","retryable":false},"message":"the credential is not accepted"},"ok":false,"request_id":null,"warnings":[]}
    "#);
    assert_snapshot!(check("/.well-known/oauth-protected-resource", None).await, @r#"
    200 (no challenge)
    {"authorization_servers":["https://login.example.com/"],"bearer_methods_supported":["header"],"resource":"http://HOST","resource_name":"Countersign","scopes_supported":["notes:write","admin"]}
    "#);
    assert_snapshot!(check("/.well-known/oauth-protected-resource/mcp", None).await, @r#"
    200 (no challenge)
    {"authorization_servers":["https://login.example.com/"],"bearer_methods_supported":["header"],"resource":"http://HOST/mcp","resource_name":"Countersign","scopes_supported":["notes:write","admin"]}
    "#);
    let refused = server.gateway.identity().refused();
    assert_eq!(
        refused[..3],
        [
            (Reason::Missing, 1),
            (Reason::Malformed, 0),
            (Reason::NotAccepted, 1)
        ]
    );
}

/// Headers without a readable credential are told apart from wrong credentials.
#[tokio::test]
async fn only_one_bearer_is_a_credential() {
    let identity = Identity::loopback();
    let mut two = with_token("a");
    two.append("authorization", HeaderValue::from_static("Bearer b"));
    let reason = identity.caller(&two).await.unwrap_err().reason;
    assert_eq!(reason, Reason::Malformed);
    let long = format!("Bearer {}", "a".repeat(8 * 1024 + 1));
    for value in [
        "Basic dXNlcjpwYXNz",
        "Bearer",
        "Bearer ",
        "Bearer a b",
        &long,
    ] {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::try_from(value).unwrap());
        let reason = identity.caller(&headers).await.unwrap_err().reason;
        assert_eq!(reason, Reason::Malformed, "{value}");
    }
    let mut lower = HeaderMap::new();
    lower.insert("authorization", HeaderValue::from_static("bearer x"));
    let reason = identity.caller(&lower).await.unwrap_err().reason;
    assert_eq!(reason, Reason::NotAccepted);
}

/// Keys over HTTP: created, listed, rotated and revoked by callers with the scope.
#[tokio::test]
async fn keys_are_managed_over_http() {
    let parts = Parts::new();
    let identity =
        Identity::new(parts.clock(), policy("revision = \"none\"")).api_keys(parts.api_keys());
    let known = Secret::draw(&*parts.ids);
    let operator = proved_by(&parts, &known);
    let server = parts.serve(identity.with_operator(operator)).await;
    let operator = async || credential(&parts, &server, &known).await;
    let new = json!({"actor": {"type": "agent", "id": "a_1"}, "user_id": "u_1", "scopes": ["x"]});
    let (status, _, made) = server
        .send(
            "POST",
            "/v1/keys",
            Some(&operator().await),
            Some(new.clone()),
        )
        .await;
    assert_eq!(status, 201);
    let (id, secret) = (
        made["key"]["id"].as_str().unwrap(),
        made["secret"].as_str().unwrap(),
    );

    let (status, _, refused) = server
        .send("POST", "/v1/keys", Some(secret), Some(new))
        .await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (403, &json!("FORBIDDEN"))
    );
    let path = format!("/v1/keys/{id}/rotate");
    let (status, _, rotated) = server
        .send("POST", &path, Some(&operator().await), None)
        .await;
    assert_eq!((status, &rotated["key"]["rotated_from"]), (201, &json!(id)));
    let second = format!("/v1/keys/{}", rotated["key"]["id"].as_str().unwrap());
    let (status, _, _) = server
        .send("DELETE", &second, Some(&operator().await), None)
        .await;
    assert_eq!(status, 200);
    let (_, _, listed) = server
        .send("GET", "/v1/keys", Some(&operator().await), None)
        .await;
    let listed_keys = listed["keys"].as_array().unwrap();
    assert!(listed_keys.len() == 2 && listed_keys.iter().all(|key| key["state"] == "revoked"));
    assert!(!listed.to_string().contains("secret"));

    let (status, _, _) = server.send("GET", "/v1/keys", Some(secret), None).await;
    assert_eq!(status, 401);
    let (status, _, _) = server
        .send("DELETE", "/v1/keys/0000", Some(&operator().await), None)
        .await;
    assert_eq!(status, 404);
    for wrong in [
        json!({"actor": {"type": "robot", "id": "a"}}),
        json!({"actor": ["agent", "a"]}),
        json!({"actor": {"type": {"agent": null}, "id": "a"}}),
        json!(["label", {"type": "agent", "id": "a"}, null, false, [], null]),
    ] {
        let shown = wrong.to_string();
        let (status, _, _) = server
            .send("POST", "/v1/keys", Some(&operator().await), Some(wrong))
            .await;
        assert_eq!(status, 400, "{shown}");
    }
}

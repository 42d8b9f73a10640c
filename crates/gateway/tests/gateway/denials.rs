//! Denied opens and denied key management are recorded, with a bounded number of records.

use countersign::contract::ActorType::{Agent, System, User};
use countersign::contract::RecordKind;
use countersign::denials::INTERVAL;
use countersign::ledger::LogQuery;
use countersign::realm::Realm;
use countersign_gateway::identity::{Identity, NewKey};
use countersign_testkit::postgres::shared_postgres;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::identity::{key_of, operator, policy};
use crate::parts::Parts;

/// Returns denied operations that are not calls, oldest first: the actor's kind and the operation.
async fn denied(parts: &Parts) -> Vec<String> {
    let query = LogQuery {
        kind: Some(RecordKind::Denial),
        limit: 1_000,
        ..LogQuery::default()
    };
    let mut told = Vec::new();
    for row in parts.store.records(&query).await.unwrap().iter().rev() {
        let stored = parts.store.record(&row.id).await.unwrap().unwrap();
        let leaf = String::from_utf8(stored.leaf).unwrap();
        let record: Value = serde_json::from_str(&leaf).unwrap();
        if row.request_id.is_none() {
            // The record belongs to no user and names no person: neither the owner nor the one who tried.
            assert_eq!(row.user_id, "");
            assert!(!leaf.contains("ann") && !leaf.contains("bob"), "{leaf}");
            let mut act = record["act"].clone();
            act.as_object_mut().unwrap().remove("credential").unwrap();
            told.push(format!(
                "{} {act}",
                record["actor"]["type"].as_str().unwrap()
            ));
        }
    }
    // They were denied at one moment of the clock.
    told.sort();
    told
}

const DENIED: &str = r#"agent {"count":1,"denied":"missing_scope","event":"key_create"}
agent {"count":1,"denied":"missing_scope","event":"key_list"}
agent {"count":1,"denied":"missing_scope","event":"key_revoke"}
agent {"count":1,"denied":"missing_scope","event":"key_rotate"}
agent {"count":1,"denied":"missing_scope","event":"replay","target":"RECORD"}
user {"count":1,"denied":"missing_scope","event":"open","target":"RECORD"}
user {"count":1,"denied":"no_record","event":"open"}
user {"count":1,"denied":"not_theirs","event":"open","target":"RECORD"}"#;

#[expect(clippy::too_many_lines, reason = "one story of denials")]
async fn denials_are_records_on(parts: Parts) {
    let keys = parts.api_keys();
    let rules = policy("[defaults]\nunlisted = \"allow\"");
    let identity = Identity::new(parts.clock(), rules).api_keys(keys.clone());
    let server = parts.serve(identity).await;
    let made = async |new: NewKey, scopes: &[&str]| {
        let scopes = scopes.iter().map(ToString::to_string).collect();
        let new = NewKey { scopes, ..new };
        keys.create(new, &operator()).await.unwrap()
    };
    let ann = made(key_of(User, "ann"), &[]).await.token;
    let bob = made(key_of(User, "bob"), &["evidence:open"]).await.token;
    let shopper = NewKey {
        user_id: Some("ann".to_owned()),
        ..key_of(Agent, "shopper")
    };
    let shopper = made(shopper, &[]).await;
    let note = json!({"arguments": {"text": "tea"}});
    let (_, _, reply) = server
        .send("POST", "/v1/tools/notes.add", Some(&ann), Some(note))
        .await;
    let record = reply["evidence"]["snapshot_id"].as_str().unwrap();
    let open = format!("/v1/evidence/{record}/open");
    let of_key = format!("/v1/keys/{}", shopper.key.id);
    let new_key = json!({"actor": {"type": "agent", "id": "other"}, "user_id": "ann"});
    let why = Some(json!({"reason": "curious"}));
    let tries: [(&str, &str, &str, Option<Value>, u16); 8] = [
        (&ann, "POST", &open, why.clone(), 403),
        (&bob, "POST", &open, why.clone(), 404),
        (
            &bob,
            "POST",
            "/v1/evidence/ev_made-up/open",
            why.clone(),
            404,
        ),
        (&shopper.token, "POST", "/v1/keys", Some(new_key), 403),
        (
            &shopper.token,
            "POST",
            &format!("{of_key}/rotate"),
            None,
            403,
        ),
        (&shopper.token, "DELETE", &of_key, None, 403),
        (&shopper.token, "GET", "/v1/keys", None, 403),
        (
            &shopper.token,
            "POST",
            &format!("/v1/evidence/{record}/replay"),
            None,
            403,
        ),
    ];
    for round in 0..5 {
        for (key, method, path, body, status) in &tries {
            let (found, _, answer) = server.send(method, path, Some(key), body.clone()).await;
            assert_eq!(found, *status, "{round} {method} {path} {answer}");
            assert!(!answer.to_string().contains("tea"), "{answer}");
        }
    }
    let told = denied(&parts).await.join("\n").replace(record, "RECORD");
    assert_eq!(told, DENIED);
    // Denials that were counted since are recorded when the interval is over.
    parts.clock.advance(INTERVAL);
    server.gateway.archive().denials().write_counts().await;
    keys_denials(&server.gateway).write_counts().await;
    let told = denied(&parts).await;
    assert_eq!(told.len(), 2 * tries.len(), "{told:#?}");
    let later = told.iter().filter(|line| line.contains("\"count\":4"));
    assert_eq!(later.count(), tries.len(), "{told:#?}");
}

fn keys_denials(gateway: &countersign_gateway::Gateway) -> &countersign::denials::Denials {
    gateway.identity().keys().unwrap().denials()
}

/// U3: a denied open, export of content, replay or change of a key is recorded in every store.
#[tokio::test]
async fn denials_are_records() {
    denials_are_records_on(Parts::new()).await;
    let folder = tempfile::tempdir().unwrap();
    denials_are_records_on(Parts::on_sqlite(folder.path())).await;
    let url = shared_postgres().fresh_database();
    denials_are_records_on(Parts::on_postgres(&url).await).await;
}

/// Keys that the caller may not create: with more rights than its own, or for another user.
#[tokio::test]
async fn who_asks_for_more_than_they_have_is_recorded() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let admin = NewKey {
        scopes: vec!["keys:manage".to_owned()],
        ..key_of(User, "ann")
    };
    let by = keys
        .create(admin, &operator())
        .await
        .unwrap()
        .key
        .principal();
    keys.create(key_of(User, "bob"), &by).await.unwrap_err();
    // A caller that may know of all keys was denied nothing; unknown keys and other callers' keys are treated
    // alike.
    keys.revoke("0123456789abcdef", &by).await.unwrap_err();
    let backend = NewKey {
        acts_for_others: true,
        ..key_of(System, "web-shop")
    };
    let hidden = keys.create(backend, &operator()).await.unwrap().key.id;
    let by = by.of_realm(Realm::Home);
    for id in ["0123456789abcdef", &hidden] {
        keys.revoke(id, &by).await.unwrap_err();
    }
    let told = denied(&parts).await.join("\n").replace(&hidden, "HIDDEN");
    assert_snapshot!(told, @r#"
    user {"count":1,"denied":"beyond_maker","event":"key_create"}
    user {"count":1,"denied":"no_key","event":"key_revoke"}
    user {"count":1,"denied":"not_theirs","event":"key_revoke","target":"HIDDEN"}
    "#);
}

/// N2: `/v1/evidence/{id}` also takes the request id of a call, for its user, and reports a call that has
/// several records.
#[tokio::test]
async fn evidence_is_found_by_the_request_id() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let rules = policy("[defaults]\nunlisted = \"allow\"");
    let identity = Identity::new(parts.clock(), rules).api_keys(keys.clone());
    let server = parts.serve(identity).await;
    let key = async |id: &str, scopes: &[&str]| {
        let scopes = scopes.iter().map(ToString::to_string).collect();
        let new = NewKey {
            scopes,
            ..key_of(User, id)
        };
        keys.create(new, &operator()).await.unwrap().token
    };
    let ann = key("ann", &[]).await;
    let bob = key("bob", &[]).await;
    let auditor = key("auditor", &["calls:read"]).await;
    let note = json!({"arguments": {"text": "tea"}, "request_id": "order 7".replace(' ', "-")});
    let call = || {
        server.send(
            "POST",
            "/v1/tools/notes.add",
            Some(&ann),
            Some(note.clone()),
        )
    };
    let (_, _, reply) = call().await;
    let id = reply["evidence"]["snapshot_id"].as_str().unwrap();
    let show = |key: &str, name: &str| {
        let (key, path) = (key.to_owned(), format!("/v1/evidence/{name}"));
        let server = &server;
        async move { server.send("GET", &path, Some(&key), None).await }
    };
    for (key, status) in [(&ann, 200), (&bob, 404), (&auditor, 200)] {
        let (found, _, answer) = show(key, "order-7").await;
        assert_eq!(found, status, "{answer}");
        if status == 200 {
            assert_eq!(answer["record"]["id"], id);
        }
    }
    call().await;
    let (status, _, answer) = show(&ann, "order-7").await;
    let hint = answer["error"]["details"]["hint"].as_str().unwrap();
    assert!(status == 400 && hint.contains(id), "{answer}");
}

//! Calls, evidence and the log over HTTP, and access to them.

use countersign::Principal;
use countersign::contract::evidence::CountedRefusals;
use countersign::contract::{Actor, ActorType, EvidenceRecord, RecordKind, SnapshotId};
use countersign::ledger::LogQuery;
use countersign_evidence::proof::TlogProof;
use countersign_gateway::identity::Identity;
use countersign_testkit::postgres::shared_postgres;
use serde_json::{Value, json};

use crate::http_client::{get, post, send};
use crate::identity::policy;
use crate::parts::Parts;
use crate::world::{World, log_key};

/// Adds a note of a user; returns the id of its evidence.
async fn note(world: &World, user: &str, text: &str) -> String {
    let body = json!({"arguments": {"text": text}, "user_id": user, "idempotency_key": text});
    let reply = post(world, "/v1/tools/notes.add", &body.to_string()).await;
    let id = reply.json()["evidence"]["snapshot_id"].clone();
    id.as_str().unwrap().to_owned()
}

/// A9: a record is shown, proved and exported; it does not contain the content.
#[tokio::test]
async fn a_record_is_shown_with_its_proof() {
    let world = World::start().await;
    let id = note(&world, "u_1", "tea").await;
    let waiting = get(&world, &format!("/v1/evidence/{id}/proof")).await;
    assert_eq!(
        (waiting.status, waiting.code().as_str()),
        (404, "NOT_FOUND")
    );
    assert_eq!(waiting.header("retry-after"), Some("1"));
    world.sign().await;

    let shown = get(&world, &format!("/v1/evidence/{id}")).await.json();
    assert_eq!(shown["record"]["id"], id.as_str());
    assert_eq!(shown["proof"]["state"], "signed");
    let proof = get(&world, &format!("/v1/evidence/{id}/proof")).await;
    let proof: TlogProof = proof.body.parse().unwrap();
    let key = log_key().verifying_key();
    let (leaf, checkpoint) = proof.verify_carried(&key).unwrap();
    let record = EvidenceRecord::from_leaf(str::from_utf8(leaf).unwrap()).unwrap();
    assert_eq!((record.id.as_str(), checkpoint.size), (id.as_str(), 1));
    // A server without the key of the log signs no receipts, and says which way there is.
    for form in ["receipt", "statement"] {
        let refused = get(&world, &format!("/v1/evidence/{id}/{form}")).await;
        assert_eq!(refused.code(), "NOT_FOUND");
        let hint = refused.json()["error"]["details"]["hint"].to_string();
        assert!(hint.contains("/proof"), "{hint}");
    }
    let bundle = get(&world, &format!("/v1/evidence/{id}/bundle")).await;
    let bundle = countersign_evidence::bundle::Bundle::parse(&bundle.body).unwrap();
    let report = bundle.verify(Some(&log_key().verifying_key()), None);
    assert!(report.is_valid(), "{report:?}");
}

/// The trail is a stream of lines that goes on at any index; its options are checked, and it needs the right to see all records.
#[tokio::test]
async fn the_trail_is_streamed_to_those_who_may_see_all() {
    let world = World::start().await;
    for text in ["tea", "milk", "bread"] {
        note(&world, "u_1", text).await;
    }
    let lines = async |query: &str| -> Vec<Value> {
        let answer = get(&world, &format!("/v1/log/trail{query}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
        // A stream comes in chunks, each behind a line with its length.
        let lines = answer.body.lines().filter(|line| line.starts_with('{'));
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    assert_eq!(lines("").await, [] as [Value; 0]);
    world.sign().await;
    let all = lines("").await;
    assert_eq!(all.len(), 3);
    assert_eq!(lines("?after=0&limit=1").await, all[1..2]);
    assert_eq!(lines("?after=0").await, all[1..]);
    assert_eq!(lines("?after=2").await, [] as [Value; 0]);
    assert_eq!(lines("?after=18446744073709551615").await, [] as [Value; 0]);
    assert!(all.iter().all(|line| line.get("user_id").is_none()));
    assert_eq!(lines("?users=true").await[2]["user_id"], "u_1");
    let events = lines("?format=ocsf").await;
    assert_eq!(events[2]["metadata"]["sequence"], 2);
    for wrong in [
        "after=-1",
        "after=x",
        "limit=0",
        "limit=100001",
        "users=1",
        "format=cef",
    ] {
        let refused = get(&world, &format!("/v1/log/trail?{wrong}")).await;
        assert_eq!(refused.code(), "INVALID_ARGUMENT", "{wrong}");
    }
    let user = world.beside(Principal::user("u_1")).await;
    assert_eq!(get(&user, "/v1/log/trail").await.code(), "FORBIDDEN");
}

/// C2SP: the checkpoint and the tiles under it can be mirrored.
#[tokio::test]
async fn the_log_can_be_mirrored() {
    let world = World::start().await;
    assert_eq!(get(&world, "/v1/log/checkpoint").await.status, 404);
    note(&world, "u_1", "tea").await;
    world.sign().await;
    let note = get(&world, "/v1/log/checkpoint").await;
    let size: u64 = note.body.lines().nth(1).unwrap().parse().unwrap();
    let hashes = get(&world, &format!("/v1/log/tile/0/000.p/{size}")).await;
    assert_eq!(hashes.status, 200);
    assert_eq!(
        hashes.header("cache-control"),
        Some("public, max-age=31536000, immutable")
    );
    let entries = get(&world, &format!("/v1/log/tile/entries/000.p/{size}")).await;
    assert!(entries.body.contains("notes.add"), "{entries:?}");
    for missing in [
        "0/000".to_owned(),
        format!("0/000.p/{}", size + 1),
        "0/001.p/1".to_owned(),
        "63/000.p/1".to_owned(),
        "0/0.p/1".to_owned(),
        "0/x000/000.p/1".to_owned(),
        "0/000.p/0".to_owned(),
        "../checkpoint".to_owned(),
        "entries/%2e%2e".to_owned(),
        "9999999999999999999999/000".to_owned(),
    ] {
        let answer = get(&world, &format!("/v1/log/tile/{missing}")).await;
        assert_eq!(answer.code(), "NOT_FOUND", "{missing}");
    }
}

/// A22: another user's record is answered exactly like a missing one.
#[tokio::test]
async fn records_of_others_look_like_none() {
    let world = World::start().await;
    let mine = note(&world, "u_1", "tea").await;
    let theirs = note(&world, "u_2", "milk").await;
    world.sign().await;
    let user = world.beside(Principal::user("u_1")).await;
    let calls = get(&user, "/v1/calls").await.json();
    let users: Vec<&Value> = calls["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["user_id"])
        .collect();
    assert_eq!(users, ["u_1"]);
    let others = get(&user, "/v1/calls?user=u_2").await;
    assert_eq!((others.status, others.code().as_str()), (403, "FORBIDDEN"));

    let never = SnapshotId::new("ev_00000000-0000-7000-8000-000000000000").unwrap();
    for (method, path, body) in [
        ("GET", "", ""),
        ("GET", "/proof", ""),
        ("GET", "/receipt", ""),
        ("GET", "/statement", ""),
        ("GET", "/bundle", ""),
        ("POST", "/open", r#"{"reason": "curious"}"#),
        ("POST", "/replay", ""),
    ] {
        let ask = async |id: &str| {
            let path = format!("/v1/evidence/{id}{path}");
            let answer = send(&user, method, &path, &[("x-request-id", "r_1")], body).await;
            (answer.status, answer.body.replace(id, "ID"))
        };
        let (hidden, missing) = (ask(&theirs).await, ask(never.as_str()).await);
        assert_eq!(hidden, missing, "{path}");
        assert_eq!(hidden.0, 404, "{path}");
        // This server has no key to sign with, so there it has nothing to give.
        let is_signed_here = matches!(path, "/receipt" | "/statement");
        assert_eq!(ask(&mine).await.0 == 404, is_signed_here, "{path}");
    }
    // Both notes were sent under the same id; only the user's own record is shown.
    let records = get(&user, "/v1/calls/r_1").await.json();
    assert_eq!(records["records"].as_array().unwrap().len(), 1);
    assert_eq!(records["records"][0]["record"]["id"], mine.as_str());
    let entries = get(&user, "/v1/log/tile/entries/000.p/1").await;
    assert_eq!(
        (entries.status, entries.code().as_str()),
        (403, "FORBIDDEN")
    );
    assert_eq!(get(&user, "/v1/log/tile/0/000.p/1").await.status, 200);

    let auditor = world
        .beside(Principal::user("auditor").scope("calls:read"))
        .await;
    let calls = get(&auditor, "/v1/calls").await.json();
    assert_eq!(calls["calls"].as_array().unwrap().len(), 2);
    assert_eq!(
        get(&auditor, &format!("/v1/evidence/{theirs}"))
            .await
            .status,
        200
    );
}

/// A22: plaintext needs a scope and a reason, and leaves a record.
#[tokio::test]
async fn opening_needs_a_scope_and_a_reason() {
    let world = World::start().await;
    let id = note(&world, "u_1", "tea").await;
    let path = format!("/v1/evidence/{id}/open");
    let user = world.beside(Principal::user("u_1")).await;
    let refused = post(&user, &path, r#"{"reason": "mine"}"#).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (403, "FORBIDDEN")
    );

    // A scope to open gives access only to one's own records, and an agent sees only those of its user,
    // whatever its scopes.
    let agent = Actor {
        kind: ActorType::Agent,
        id: "a_7".to_owned(),
    };
    let agent = Principal::new(agent, "u_2").scope("calls:read");
    for blind in [Principal::user("auditor"), agent] {
        let blind = world.beside(blind.scope("evidence:open")).await;
        let hidden = post(&blind, &path, r#"{"reason": "mine"}"#).await;
        assert_eq!((hidden.status, hidden.code().as_str()), (404, "NOT_FOUND"));
    }
    let auditor = Principal::user("auditor")
        .scope("evidence:open")
        .scope("calls:read");
    let auditor = world.beside(auditor).await;
    for body in [
        "",
        "{}",
        r#"{"reason": 7}"#,
        r#"["dispute 7"]"#,
        r#"{"reason": " "}"#,
        r#"{"reason": "x", "why": 1}"#,
    ] {
        let answer = post(&auditor, &path, body).await;
        assert_eq!(answer.code(), "INVALID_ARGUMENT", "{body}");
    }
    let opened = post(&auditor, &path, r#"{"reason": "dispute 7"}"#)
        .await
        .json();
    let payload = &opened["payload"];
    assert_eq!(payload["arguments"], json!({"text": "tea"}));
    assert_eq!(
        (&payload["data"]["text"], &payload["request_id"]),
        (&json!("tea"), &json!("r_1"))
    );
    // The reason is free text of the operator, so it is sealed like all free text.
    let access = opened["access"].as_str().unwrap();
    let shown = get(&world, &format!("/v1/evidence/{access}")).await;
    assert!(shown.status == 200 && !shown.body.contains("dispute"));
    let path = format!("/v1/evidence/{access}/open");
    let reason = post(&auditor, &path, r#"{"reason": "audit 8"}"#)
        .await
        .json();
    assert_eq!(reason["payload"]["reason"], "dispute 7");
}

/// A16: a recorded call is verified and computed again.
#[tokio::test]
async fn a_record_is_replayed() {
    let world = World::start().await;
    let body = r#"{"arguments": {"country": "DE", "net_cents": 10000}}"#;
    let reply = post(&world, "/v1/tools/sample.vat", body).await;
    let id = reply.json()["evidence"]["snapshot_id"].clone();
    let path = format!(
        "/v1/evidence/{}/replay",
        id.as_str().unwrap_or_else(|| panic!("{reply:?}"))
    );
    let auditor = world
        .beside(
            Principal::user("auditor")
                .scope("evidence:open")
                .scope("calls:read"),
        )
        .await;
    let run = async |body: &str| post(&auditor, &path, body).await.json();
    assert_eq!(run(r#"{"mode": "verify"}"#).await["result"], "intact");
    assert_eq!(run("").await["result"], "identical");
    assert_eq!(run(r#"{"mode": "in_force"}"#).await["result"], "identical");
    for body in [
        r#"{"mode": "x"}"#,
        r#"["verify"]"#,
        r#"{"mode": {"verify": null}}"#,
    ] {
        let answer = post(&auditor, &path, body).await;
        assert_eq!(answer.code(), "INVALID_ARGUMENT", "{body}");
    }
}

#[tokio::test]
async fn calls_come_in_pages() {
    let world = World::start().await;
    for number in 0..7 {
        note(&world, "u_1", &format!("note {number}")).await;
    }
    let mut seen = Vec::new();
    let mut path = "/v1/calls?limit=3&tool=notes.add&code=OK".to_owned();
    loop {
        assert!(seen.len() <= 7, "a cursor leads back: {seen:?}");
        let page = get(&world, &path).await.json();
        let calls = page["calls"].as_array().unwrap();
        seen.extend(
            calls
                .iter()
                .map(|call| call["evidence"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/v1/calls?limit=3&tool=notes.add&code=OK&cursor={next}");
    }
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((all, seen.len()), (7, 7));
    for wrong in [
        "limit=0",
        "limit=201",
        "limit=-1",
        "cursor=x",
        "cursor=1.ev_",
        "cursor=99999999999999999999.ev_1",
        "code=NOPE",
        "since=yesterday",
        "usr=u_1",
        "limit=1&limit=2",
    ] {
        let answer = get(&world, &format!("/v1/calls?{wrong}")).await;
        assert_eq!(answer.code(), "INVALID_ARGUMENT", "{wrong}");
    }
}

/// U9: in every store, any number of refused calls of one kind makes two records an interval, and a reply names
/// no missing evidence.
#[tokio::test]
async fn refused_calls_are_counted_in_every_store() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = shared_postgres();
    let stores = [
        Parts::new(),
        Parts::on_sqlite(folder.path()),
        Parts::on_postgres(&postgres.fresh_database()).await,
    ];
    for parts in stores {
        let identity = Identity::new(parts.clock(), policy("[defaults]\nunlisted = \"deny\""));
        let server = parts.serve(identity.allow_anonymous_loopback()).await;
        let mut named = Vec::new();
        for _ in 0..40 {
            let body = json!({"user_id": "u_1"});
            let (status, _, reply) = server
                .send("POST", "/v1/tools/notes.list", None, Some(body))
                .await;
            assert_eq!(
                (status, &reply["error"]["code"]),
                (403, &json!("FORBIDDEN"))
            );
            named.extend(reply["evidence"]["snapshot_id"].as_str().map(str::to_owned));
        }
        assert_eq!(named.len(), 1);
        server.gateway.executor().write_counted_refusals().await;
        parts.store.flush().await.unwrap();
        let query = LogQuery {
            kind: Some(RecordKind::Denial),
            limit: 100,
            ..LogQuery::default()
        };
        let rows = parts.store.records(&query).await.unwrap();
        assert_eq!(rows.len(), 2);
        let counted = rows.iter().find(|row| row.request_id.is_none()).unwrap();
        assert_eq!(counted.user_id, "u_1");
        // Row and leaf agree: the log is valid.
        let shown = server.gateway.archive().show(&counted.id).await;
        assert!(shown.is_ok(), "{shown:?}");
        let kept = parts.store.record(&counted.id).await.unwrap().unwrap();
        let leaf = String::from_utf8(kept.leaf).unwrap();
        let record = EvidenceRecord::from_leaf(&leaf).unwrap();
        let summary = CountedRefusals::from_act(&record.act).unwrap();
        assert_eq!(
            (summary.count, summary.first.unwrap().as_str()),
            (39, &*named[0])
        );
    }
}

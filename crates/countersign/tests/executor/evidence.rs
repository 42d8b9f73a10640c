//! The log's evidence of each call (A9, A15, A21, A22).

use countersign::clock::ManualClock;
use countersign::contract::evidence::Payload;
use countersign::contract::parameter::Sensitivity;
use countersign::contract::tool::EvidenceRule;
use countersign::contract::{
    Digest, ErrorCode, Input, Parameter, RecordKind, SnapshotId, ValueKind,
};
use countersign::ids::SequentialIds;
use countersign::ledger::{Log, LogQuery, MemoryStore, StoredRecord};
use countersign::rules::Rules;
use countersign::vault::Vault;
use countersign::{Principal, ToolError};
use countersign_evidence::seal::{self, MasterKey};
use countersign_evidence::tree::leaf_hash;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::world::{Probe, World, call_as};

/// Opens the payload of a record with the master key.
pub(crate) async fn open(world: &World, stored: &StoredRecord) -> (Payload, Value) {
    let clock = Arc::new(ManualClock::starting_at(stored.row.at));
    let master = Arc::new(MasterKey::from_bytes(&[7; 32]));
    let ids = Arc::new(SequentialIds::new());
    let vault = Vault::new(world.store.clone(), master, clock, ids);
    let (user_id, id) = (&stored.row.user_id, &stored.row.id);
    let keys = vault.existing_key(user_id).await.unwrap().unwrap();
    let aad = [b"payload", user_id.as_bytes(), id.as_str().as_bytes()].join(&0);
    let plain = keys.open(&aad, stored.payload.as_ref().unwrap()).unwrap();
    (
        serde_json::from_slice(&plain).unwrap(),
        serde_json::from_slice(&plain).unwrap(),
    )
}

fn salt(text: &str) -> [u8; 32] {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    std::array::from_fn(|at| byte(2 * at))
}

/// A9, A15: an answer, a repeat, a dry run, a failure, a refusal and an unknown tool leave one record each,
/// and each reply that is new names its own.
#[tokio::test]
async fn every_call_leaves_one_record() {
    let probes = [
        Probe::write("a.make").simulating(),
        Probe::read("b.read"),
        Probe::read("c.fail")
            .body(|_, _| Box::pin(async { Err(ToolError::not_found("there is none")) })),
        Probe::read("d.strict").input(Input::Parameters(vec![])),
    ];
    let world = World::logging(probes);
    let key = json!({"idempotency_key": "k1"});
    let dry = json!({"dry_run": true});
    let none = json!({});
    let mut names = Vec::new();
    for (tool, arguments, envelope, kind, code) in [
        ("a.make", json!({}), &key, "call", Value::Null),
        ("a.make", json!({}), &key, "call", Value::Null),
        ("a.make", json!({}), &dry, "call", Value::Null),
        ("b.read", json!({}), &none, "call", Value::Null),
        ("c.fail", json!({}), &none, "call", json!("NOT_FOUND")),
        (
            "d.strict",
            json!({"x": 1}),
            &none,
            "denial",
            json!("INVALID_ARGUMENT"),
        ),
        ("a.make", json!({"n": 1}), &key, "denial", json!("CONFLICT")),
        ("z.unknown", json!({}), &none, "denial", json!("NOT_FOUND")),
    ] {
        let before = world.log().await.len();
        let reply = world.send(tool, &arguments, envelope).await;
        let log = world.log().await;
        assert_eq!(log.len(), before + 1, "{tool}");
        let (leaf, stored) = log.last().unwrap();
        assert_eq!(
            (&leaf["kind"], &leaf["reply"]["code"], &leaf["request_id"]),
            (&json!(kind), &code, &reply["request_id"]),
            "{tool}"
        );
        let payload = Digest::of_bytes(stored.payload.as_ref().unwrap());
        assert_eq!(leaf["payload"], payload.to_string());
        names.push((reply["evidence"]["snapshot_id"].clone(), leaf["id"].clone()));
    }
    let (first, repeat) = (names[0].clone(), names.remove(1));
    assert_eq!(repeat.0, first.1, "a repeat has the evidence of the first");
    for (named, kept) in names {
        assert_eq!(named, kept);
    }
}

/// Arguments, envelope, code of the answer, and whether the reply names the pin.
fn fixed_cases() -> [(Value, Value, &'static str, bool); 8] {
    let then = |what: &str| json!({ "then": what });
    let key = |key: &str| json!({ "idempotency_key": key });
    [
        (then("work"), key("a"), "", true),
        (then("work"), key("a"), "", true),
        (then("refuse"), key("b"), "NOT_FOUND", true),
        (then("lose"), key("c"), "UPSTREAM_ERROR", true),
        (then("lose"), key("c"), "CONFLICT", true),
        (then("work"), json!({"dry_run": true}), "", true),
        (json!({}), json!({}), "INVALID_ARGUMENT", true),
        (
            then("work"),
            json!({"locale": "?"}),
            "INVALID_ARGUMENT",
            false,
        ),
    ]
}

/// A9, A22: a tool's fixed sources are named by every record of it, whatever becomes of the call, and before the effect by
/// the intent. The reply names them too, unless the caller was refused before the policy let the call through.
#[tokio::test]
async fn every_record_names_the_fixed_sources() {
    const PIN: &str = "sha256:00";
    let probe = Probe::external("a.make")
        .pinned(PIN)
        .input(Input::parameters([Parameter::new(
            "then",
            ValueKind::String,
            "",
        )]))
        .body(|_, arguments| {
            Box::pin(async move {
                match arguments["then"].as_str() {
                    Some("work") => Ok(json!("done").into()),
                    Some("refuse") => Err(ToolError::not_found("there is none")),
                    _ => Err(ToolError::new(ErrorCode::UpstreamError, "lost")),
                }
            })
        });
    let world = World::logging([probe]);
    let told = |reply: &Value| {
        let sources = reply["evidence"]["sources"].as_array();
        let own = sources
            .into_iter()
            .flatten()
            .filter(|source| source["type"] == "pin");
        own.map(|source| source["hash"].clone()).collect::<Vec<_>>()
    };
    for (arguments, envelope, code, is_told) in fixed_cases() {
        let before = world.log().await.len();
        let reply = world.send("a.make", &arguments, &envelope).await;
        let is_ok = reply["error"]["code"].as_str().unwrap_or_default() == code;
        assert!(is_ok, "{code}: {reply:#}");
        let expected = if is_told {
            vec![json!(PIN)]
        } else {
            Vec::new()
        };
        assert_eq!(told(&reply), expected, "{arguments} {envelope}");
        let log = world.log().await;
        assert_eq!(log.len(), before + 1, "{arguments} {envelope}");
        let (payload, _) = open(&world, &log.last().unwrap().1).await;
        let kept: Vec<_> = payload
            .sources
            .iter()
            .map(|own| own.hash.as_str())
            .collect();
        assert_eq!(kept, [PIN], "{arguments} {envelope}");
    }
    let query = LogQuery {
        kind: Some(RecordKind::Intent),
        limit: 10,
        ..LogQuery::default()
    };
    let intents = Log::records(&*world.store, &query).await.unwrap();
    assert_eq!(intents.len(), 3);
    for row in intents {
        let stored = world.store.record(&row.id).await.unwrap().unwrap();
        let leaf: Value = serde_json::from_slice(&stored.leaf).unwrap();
        assert_eq!(leaf["act"]["sources"][0]["hash"], PIN, "{leaf:#}");
    }
}

/// A payment with personal data in every possible place; its reply, and the version of the rules that it rests on.
async fn paid() -> (World, Value, String) {
    let probe = Probe::write("pay.send")
        .with(|behaviour| {
            behaviour.ttl_seconds = Some(60);
            behaviour.evidence = EvidenceRule::Required;
        })
        .input(Input::parameters([
            Parameter::new("iban", ValueKind::String, "").sensitivity(Sensitivity::Personal),
            Parameter::new("cents", ValueKind::Integer, ""),
        ]))
        .body(|ctx, _| {
            Box::pin(async {
                let rate = ctx.rules("vat")?.data["DE"].clone();
                Ok(json!({"to": "DE44-canary", "rate": rate}).into())
            })
        });
    let old = json!({"DE": 1900});
    let new = json!({"DE": 2000});
    let rules = Rules::builder().version("vat", old).unwrap();
    let rules = rules.version("vat", new.clone()).unwrap().build();
    let world = World::made([probe], MemoryStore::keeping_log, |builder, _| {
        builder.rules(rules).build_digest(Digest([9; 32]))
    });
    let envelope = json!({
        "idempotency_key": "key-canary", "session_id": "session-canary", "locale": "de-DE",
        "client": {"app": "client-canary"},
    });
    let arguments = json!({"iban": "DE44-canary", "cents": 750});
    let call = call_as(
        Principal::user("user-canary"),
        "pay.send",
        &arguments,
        &envelope,
    );
    let reply = world.execute(call).await;
    let version = Digest::of_canonical(&new).unwrap().to_string();
    (world, reply, version)
}

/// A15: the whole record of a call, with everything that a reader needs and nothing that is personal.
#[tokio::test]
async fn a_record_says_what_ran_on_what() {
    let (world, reply, version) = paid().await;
    let log = world.log().await;
    let (leaf, stored) = &log[0];
    assert!(!leaf.to_string().contains("canary"), "{leaf:#}");
    assert!(!String::from_utf8_lossy(stored.payload.as_ref().unwrap()).contains("canary"));
    assert_eq!(leaf["rules"], json!({ "vat": version }));
    assert_eq!(
        leaf["arguments"]["public"],
        Value::Null,
        "nothing is declared harmless"
    );
    assert_eq!(leaf["policy_revision"], "allow-all");
    // The session has a name that only the user's key makes.
    let session = leaf["act"]["session"].as_str().unwrap();
    assert!(
        session.starts_with("ss_") && session.len() == 35,
        "{session}"
    );
    assert_eq!(
        (&leaf["reply"]["ttl_seconds"], &leaf["reply"]["valid_until"]),
        (&json!(60), &json!("2026-11-15T12:01:00Z"))
    );
    assert_eq!(
        (
            &leaf["tool"]["name"],
            &leaf["tool"]["version"],
            &leaf["tool"]["build"]
        ),
        (
            &json!("pay.send"),
            &json!("7"),
            &json!(Digest([9; 32]).to_string())
        )
    );
    assert!(leaf["tool"]["definition"].is_string());
    assert_eq!(
        (
            &leaf["idempotency"]["attempt"],
            &leaf["idempotency"]["state"]
        ),
        (&json!(1), &json!("succeeded"))
    );
    assert_eq!(reply["evidence"]["sources"][1]["hash"], version);
}

/// A22: the sent and answered content is sealed beside the record, with the salts that open its commitments.
#[tokio::test]
async fn a_payload_opens_what_the_record_commits_to() {
    let (world, reply, _) = paid().await;
    let log = world.log().await;
    let (leaf, stored) = &log[0];
    let (payload, plain) = open(&world, stored).await;
    assert_eq!(payload.user_id, "user-canary");
    assert_eq!(plain["session_id"], "session-canary");
    assert_eq!(plain["ran_at"], "2026-11-15T12:00:00Z");
    let data = payload.data.unwrap();
    assert_eq!(data.value().unwrap(), reply["data"]);
    let own = salt(&payload.salt);
    for (domain, exact, committed) in [
        (seal::DOMAIN_DATA, data, &leaf["reply"]["commitment"]),
        (
            seal::DOMAIN_ARGUMENTS,
            payload.arguments.unwrap(),
            &leaf["arguments"]["commitment"],
        ),
    ] {
        let salt = seal::salt_of(&own, domain);
        let opened = seal::commit(domain, &salt, exact.text().as_bytes());
        assert_eq!(*committed, opened.to_string(), "{domain}");
    }
}

/// A21: whatever goes wrong, a refusal keeps nothing readable either.
#[tokio::test]
async fn no_refusal_tells_a_value() {
    let tools = [
        Probe::write("a.make").key(countersign::contract::tool::KeyRule::Required),
        Probe::read("b.strict").input(Input::Parameters(vec![])),
        Probe::read("c.panics").body(|ctx, _| panic!("{}", ctx.raw_arguments())),
        Probe::read("d.fails").body(|ctx, _| {
            let error = ToolError::invalid("/name", ctx.raw_arguments().to_owned());
            Box::pin(async { Err(error.detail("seen", "canary")) })
        }),
    ];
    let world = World::logging(tools);
    let canary = Principal::user("user-canary");
    for (tool, envelope) in [
        ("a.make", json!({})),
        ("b.strict", json!({})),
        ("c.panics", json!({})),
        ("d.fails", json!({})),
        ("e.canary", json!({})),
        ("b.strict", json!({"user_id": "other-canary"})),
        ("b.strict", json!({"locale": "canary-canary-canary"})),
        ("b.strict", json!({"idempotency_key": "canary\n"})),
    ] {
        // Redaction is by declaration, so what a tool declares as harmless may be read; this is not sent.
        let arguments = if tool == "b.strict" {
            json!({"x": "canary"})
        } else {
            json!({})
        };
        world
            .execute(call_as(canary.clone(), tool, &arguments, &envelope))
            .await;
    }
    let nobody = call_as(
        Principal::user("canary\0"),
        "c.panics",
        &json!({}),
        &json!({}),
    );
    world.execute(nobody).await;
    let log = world.log().await;
    assert_eq!(log.len(), 9);
    for (leaf, stored) in log {
        assert!(!leaf.to_string().contains("canary"), "{leaf:#}");
        assert!(!stored.row.user_id.contains('\0'));
    }
}

/// A call may rest on an earlier one of the same user; another user's is as little there as none.
#[tokio::test]
async fn links_name_earlier_calls_of_the_same_user() {
    let quote = Probe::read("a.quote")
        .with(|behaviour| behaviour.ttl_seconds = Some(60))
        .body(|_, _| Box::pin(async { Ok(json!({"cents": 750}).into()) }));
    let order = Probe::write("b.order").body(|ctx, arguments| {
        Box::pin(async move {
            let id = SnapshotId::new(arguments["quote"].as_str().unwrap()).unwrap();
            let linked = ctx.link(&id).await?;
            ctx.link(&id).await?;
            ctx.rest_on(&linked)
                .map_err(|error| ToolError::invalid("/quote", error.to_string()))?;
            let until = linked.valid_until.map(|until| until.to_string());
            Ok(json!([linked.data, until, linked.leaf]).into())
        })
    });
    let world = World::logging([quote, order]);
    let quoted = world.send("a.quote", &json!({}), &json!({})).await;
    let arguments = json!({"quote": quoted["evidence"]["snapshot_id"]});
    let reply = world.send("b.order", &arguments, &json!({})).await;
    let log = world.log().await;
    let leaf = Digest(leaf_hash(&log[0].1.leaf)).to_string();
    assert_eq!(
        reply["data"],
        json!([{"cents": 750}, "2026-11-15T12:01:00Z", leaf]),
        "{reply:#}"
    );
    assert_eq!(
        log[1].0["links"],
        json!([{"id": log[0].0["id"], "leaf": leaf, "role": "rests_on",
            "fresh": {"at": "2026-11-15T12:00:00Z", "until": "2026-11-15T12:01:00Z"}}])
    );

    let stranger = call_as(Principal::user("u_2"), "b.order", &arguments, &json!({}));
    let missing = json!({"quote": "ev_999"});
    let missing = call_as(Principal::user("u_1"), "b.order", &missing, &json!({}));
    for call in [stranger, missing] {
        let reply = world.execute(call).await;
        crate::world::check_error(&reply, "NOT_FOUND", &json!({}));
    }
}

/// The record of a refusal could not be kept: the refusal stands, and names no evidence that is not there.
#[tokio::test]
async fn a_refusal_without_a_record_names_none() {
    use countersign_testkit::faulty::Op;
    let probe = Probe::read("a.strict").input(Input::Parameters(vec![]));
    let world = World::failing([probe], |op, _| op == Op::Append);
    let reply = world.send("a.strict", &json!({"x": 1}), &json!({})).await;
    crate::world::check_error(&reply, "INVALID_ARGUMENT", &json!({}));
    assert_eq!(reply["evidence"], Value::Null);
}

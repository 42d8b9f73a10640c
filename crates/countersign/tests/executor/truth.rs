//! The truth of a call's record: links, the raw text, ids, credentials, dry runs.

use std::sync::Arc;
use std::time::Duration;

use countersign::clock::ManualClock;
use countersign::contract::evidence::{Exact, Payload};
use countersign::contract::parameter::Sensitivity;
use countersign::contract::tool::KeyRule;
use countersign::contract::{Input, Parameter, RequestId, SnapshotId, ValueKind};
use countersign::ids::SequentialIds;
use countersign::ledger::StoredRecord;
use countersign::vault::Vault;
use countersign::{Credential, Principal, ToolCall, ToolError};
use countersign_evidence::seal::MasterKey;
use serde_json::{Value, json};

use crate::world::{Probe, World, call_as, check_error};

/// The payload of a record, opened with the master key.
async fn opened(world: &World, stored: &StoredRecord) -> Payload {
    let clock = Arc::new(ManualClock::starting_at(stored.row.at));
    let master = Arc::new(MasterKey::from_bytes(&[7; 32]));
    let vault = Vault::new(
        world.store.clone(),
        master,
        clock,
        Arc::new(SequentialIds::new()),
    );
    let (user_id, id) = (&stored.row.user_id, &stored.row.id);
    let keys = vault.existing_key(user_id).await.unwrap().unwrap();
    let aad = [b"payload", user_id.as_bytes(), id.as_str().as_bytes()].join(&0);
    let plain = keys.open(&aad, stored.payload.as_ref().unwrap()).unwrap();
    serde_json::from_slice(&plain).unwrap()
}

fn snapshot(reply: &Value) -> SnapshotId {
    let id = reply["evidence"]["snapshot_id"].as_str().unwrap();
    SnapshotId::new(id).unwrap()
}

fn quote() -> Probe {
    Probe::read("a.quote").with(|behaviour| behaviour.ttl_seconds = Some(60))
}

/// A tool that looks at a quote, and rests on it or fails if its arguments say so.
fn order() -> Probe {
    Probe::write("b.order").body(|ctx, arguments| {
        Box::pin(async move {
            let id = SnapshotId::new(arguments["quote"].as_str().unwrap()).unwrap();
            let linked = ctx.link(&id).await?;
            if arguments["rest"] == true {
                let rested = ctx.rest_on(&linked);
                rested.map_err(|stale| ToolError::invalid("/quote", stale.to_string()))?;
            }
            if arguments["fail"] == true {
                return Err(ToolError::invalid("/fail", "as asked"));
            }
            Ok(json!({"made": true}).into())
        })
    })
}

/// A8, A16: the type of a link is true. A call that rests on an answer says that it was fresh, by the gateway's clock,
/// and until when; one that only looks, fails or comes late rests on nothing.
#[tokio::test]
async fn a_link_says_what_it_is() {
    let world = World::logging([quote(), order()]);
    let quoted = world.send("a.quote", &json!({}), &json!({})).await;
    let quote = quoted["evidence"]["snapshot_id"].clone();
    let fresh = json!({"at": "2026-11-15T12:00:00Z", "until": "2026-11-15T12:01:00Z"});
    let check = async |arguments: Value, code: Option<&str>, role: &str, claim: Option<&Value>| {
        let arguments = json!({"quote": quote, "rest": arguments[0], "fail": arguments[1]});
        let reply = world.send("b.order", &arguments, &json!({})).await;
        assert_eq!(reply["error"]["code"].as_str(), code, "{reply:#}");
        let (leaf, _) = world.log().await.pop().unwrap();
        assert_eq!(leaf["links"][0]["role"], role, "{leaf:#}");
        assert_eq!(leaf["links"][0].get("fresh"), claim, "{leaf:#}");
    };
    check(json!([true, false]), None, "rests_on", Some(&fresh)).await;
    check(json!([false, false]), None, "looked_at", None).await;
    check(
        json!([true, true]),
        Some("INVALID_ARGUMENT"),
        "looked_at",
        None,
    )
    .await;
    world.clock.advance(Duration::from_mins(1));
    check(
        json!([true, false]),
        Some("INVALID_ARGUMENT"),
        "looked_at",
        None,
    )
    .await;
    check(json!([false, false]), None, "looked_at", None).await;
}

/// A15: a call that rests on others names their rule sets, in every version, and so do those that rest on it. A call
/// that fails rests on nothing, and names none.
#[tokio::test]
async fn rule_sets_are_inherited() {
    use countersign::rules::Rules;
    let rules = Rules::builder()
        .version("vat", json!({"DE": 1900}))
        .unwrap()
        .build();
    let quote = Probe::read("a.quote").body(|ctx, _| {
        Box::pin(async move { Ok(json!({"rate": ctx.rules("vat")?.data["DE"]}).into()) })
    });
    let version = rules.current("vat").unwrap().version.to_string();
    let world = World::logging_with([quote, order()], |builder| builder.rules(rules));
    let mut under = world.send("a.quote", &json!({}), &json!({})).await;
    for _ in 0..2 {
        let arguments = json!({"quote": under["evidence"]["snapshot_id"], "rest": true});
        under = world.send("b.order", &arguments, &json!({})).await;
        let (leaf, _) = world.log().await.pop().unwrap();
        assert_eq!(
            leaf["inherited_rules"],
            json!({"vat": [version]}),
            "{leaf:#}"
        );
        assert_eq!(leaf.get("rules"), None, "it has asked for none itself");
    }
    let quote = &under["evidence"]["snapshot_id"];
    let arguments = json!({"quote": quote, "rest": true, "fail": true});
    let failed = world.send("b.order", &arguments, &json!({})).await;
    check_error(&failed, "INVALID_ARGUMENT", &json!({"field": "/fail"}));
    let (leaf, _) = world.log().await.pop().unwrap();
    assert_eq!(leaf.get("inherited_rules"), None, "{leaf:#}");
}

/// B7, A15: the sent text is stored byte for byte, also of a refused call; once, if it is the same as the bound
/// arguments.
#[tokio::test]
async fn the_raw_text_is_sealed() {
    let limit = Parameter::new("limit", ValueKind::Integer, "").optional();
    let tool = Probe::read("a.search").input(Input::parameters([limit]));
    let world = World::logging([tool]);
    let check =
        async |raw: &str, code: Option<&str>, arguments: Option<&str>, kept: Option<&str>| {
            let call = ToolCall::new("a.search", raw, Principal::user("u_1"));
            let reply = world.execute(call).await;
            assert_eq!(reply["error"]["code"].as_str(), code, "{reply:#}");
            let (leaf, stored) = world.log().await.pop().unwrap();
            let payload = opened(&world, &stored).await;
            let bound = payload.arguments.as_ref().map(Exact::text);
            assert_eq!((bound, payload.raw.as_deref()), (arguments, kept), "{raw}");
            assert_eq!(
                leaf["arguments"]["raw"].is_string(),
                kept.is_some(),
                "{leaf:#}"
            );
        };
    check(r#"{"limit":2}"#, None, Some(r#"{"limit":2}"#), None).await;
    let sloppy = "Sure! {limit:'2',}";
    check(sloppy, None, Some(r#"{"limit":2}"#), Some(sloppy)).await;
    let wrong = r#"{"limit": "many"}"#;
    check(wrong, Some("INVALID_ARGUMENT"), None, Some(wrong)).await;
}

/// A17: two different numbers are two different calls, however large or long they are.
#[tokio::test]
async fn no_number_goes_through_a_double() {
    let tool = Probe::write("a.write").input(Input::Schema(json!({"type": "object",
        "properties": {"n": {"type": "number"}}})));
    let world = World::logging([tool]);
    for (at, [first, second]) in [
        ["1000000000000000000001", "1000000000000000000002"],
        ["9007199254740993", "9007199254740992"],
        ["0.1000000000000000055511151231257827", "0.1"],
        ["1.00000000000000000001e21", "1.00000000000000000002e21"],
    ]
    .into_iter()
    .enumerate()
    {
        let key = json!({"idempotency_key": format!("k{at}")});
        let call = |number: &str| {
            let raw = format!(r#"{{"n":{number}}}"#);
            let envelope = serde_json::from_value(key.clone()).unwrap();
            ToolCall::new("a.write", raw, Principal::user("u_1")).envelope(envelope)
        };
        let made = world.execute(call(first)).await;
        assert_eq!(made["ok"], true, "{made:#}");
        let (_, stored) = world.log().await.pop().unwrap();
        let payload = opened(&world, &stored).await;
        let expected = format!(r#"{{"n":{first}}}"#);
        assert_eq!(payload.arguments.unwrap().text(), expected);
        let reused = world.execute(call(second)).await;
        check_error(&reused, "CONFLICT", &json!({"reason": "key_reused"}));
        let again = world.execute(call(first)).await;
        assert_eq!(again["replayed"], true, "{again:#}");
    }
}

/// A2: a request id names one call of its user. A second use is a warning that names the first; another user's is not.
#[tokio::test]
async fn a_request_id_names_one_call_of_its_user() {
    let world = World::logging([Probe::read("a.read"), Probe::write("b.write")]);
    let send = async |user: &str, tool: &str, envelope: Value| {
        let call = call_as(Principal::user(user), tool, &json!({}), &envelope);
        world.execute(call).await
    };
    let named = json!({"request_id": "r-1"});
    let first = send("u_1", "a.read", named.clone()).await;
    assert_eq!(first["warnings"], json!([]), "{first:#}");
    let second = send("u_1", "a.read", named.clone()).await;
    let warning = &second["warnings"][0];
    assert_eq!(warning["code"], "REQUEST_ID_REUSED", "{second:#}");
    let message = warning["message"].as_str().unwrap();
    assert!(message.contains(snapshot(&first).as_str()), "{message}");
    let other = send("u_2", "a.read", named).await;
    assert_eq!(other["warnings"], json!([]), "{other:#}");
    // The retry of a keyed call is the same call.
    let keyed = json!({"request_id": "r-2", "idempotency_key": "k"});
    send("u_1", "b.write", keyed.clone()).await;
    let again = send("u_1", "b.write", keyed).await;
    assert_eq!(
        (&again["replayed"], &again["warnings"]),
        (&json!(true), &json!([]))
    );
}

/// A3: a record names the credential, never the secret; the issuer's id of a token is a digest in the log.
#[tokio::test]
async fn a_record_names_the_credential() {
    let world = World::logging([Probe::read("a.read")]);
    let check = async |credential: Credential, expected: Value, jti: Option<&str>| {
        let principal = Principal::user("u_1").proved_by(credential);
        world
            .execute(call_as(principal, "a.read", &json!({}), &json!({})))
            .await;
        let (mut leaf, stored) = world.log().await.pop().unwrap();
        if let Some(id) = leaf["credential"].get_mut("id").filter(|_| jti.is_some()) {
            assert_eq!(id.as_str().map(str::len), Some(32), "{id}");
            *id = json!("digest");
        }
        assert_eq!(leaf["credential"], expected);
        assert_eq!(opened(&world, &stored).await.jti.as_deref(), jti);
    };
    let key = Credential::ApiKey { id: "key_1".into() };
    check(key, json!({"type": "api_key", "id": "key_1"}), None).await;
    let issuer = "https://issuer.example";
    let token = |jti: Option<&str>| Credential::Token {
        issuer: issuer.into(),
        jti: jti.map(Into::into),
    };
    let expected = json!({"type": "token", "issuer": issuer, "id": "digest"});
    check(token(Some("erika-1")), expected, Some("erika-1")).await;
    check(
        token(None),
        json!({"type": "token", "issuer": issuer}),
        None,
    )
    .await;
}

/// A4: a dry run is answered as the call itself would be.
#[tokio::test]
async fn a_dry_run_takes_the_decisions_of_the_call() {
    let gone = Probe::write("a.take")
        .key(KeyRule::Required)
        .simulating()
        .body(|ctx, _| {
            Box::pin(async move {
                if ctx.state().get::<u32>(&TAKEN, "one").await?.is_some() {
                    return Err(ToolError::not_found("it was taken"));
                }
                ctx.state().put(&TAKEN, "one", &1).await?;
                Ok(json!({"taken": true}).into())
            })
        });
    let world = World::logging([gone, Probe::write("b.pay").confirmed()]);
    let keyed = |key: &str| json!({"dry_run": true, "idempotency_key": key});
    world
        .send("a.take", &json!({}), &json!({"idempotency_key": "k"}))
        .await;
    // The answered key: its answer, and no run that finds another state of the world.
    let replayed = world.send("a.take", &json!({}), &keyed("k")).await;
    assert_eq!(replayed["data"], json!({"taken": true}), "{replayed:#}");
    assert_eq!(replayed["warnings"][0]["code"], "WOULD_REPLAY");
    // The same key for something else.
    let reused = world.send("a.take", &json!({"n": 1}), &keyed("k")).await;
    check_error(&reused, "CONFLICT", &json!({"reason": "key_reused"}));
    // A new key runs the simulation.
    let fresh = world.send("a.take", &json!({}), &keyed("k2")).await;
    check_error(&fresh, "NOT_FOUND", &json!({}));
    // What a person has to confirm is said.
    let asked = world
        .send("b.pay", &json!({}), &json!({"dry_run": true}))
        .await;
    let codes = asked["warnings"].as_array().unwrap().iter();
    let codes: Vec<_> = codes.map(|warning| &warning["code"]).collect();
    assert_eq!(
        codes,
        ["NEEDS_USER_CONFIRMATION", "VALIDATED_ONLY"],
        "{asked:#}"
    );
}

const TAKEN: countersign::state::Collection = countersign::state::Collection::of_user("taken");

/// A21: the name of an unknown tool is the caller's text, so only the payload has it.
#[tokio::test]
async fn an_unknown_tool_is_named_in_the_payload_only() {
    let world = World::logging([Probe::read("a.read")]);
    world
        .send("erika.mustermann", &json!({"x": "hunter2"}), &json!({}))
        .await;
    let (leaf, stored) = world.log().await.pop().unwrap();
    assert_eq!(leaf["tool"]["name"], "unknown");
    let payload = opened(&world, &stored).await;
    assert_eq!(payload.tool.as_deref(), Some("erika.mustermann"));
    // What could be parsed of it is what was sent, so it is kept once.
    assert_eq!(payload.arguments.unwrap().text(), r#"{"x":"hunter2"}"#);
    assert!(RequestId::new(leaf["request_id"].as_str().unwrap()).is_ok());
}

/// A21: a secret is in no payload, neither among the arguments nor in the text that was sent, whether the call ran or was refused.
#[tokio::test]
async fn a_secret_is_not_sealed() {
    let token = Parameter::new("token", ValueKind::String, "").sensitivity(Sensitivity::Secret);
    let count = Parameter::new("count", ValueKind::Integer, "");
    let tool = Probe::write("a.keep").input(Input::parameters([token, count]));
    let world = World::logging([tool]);
    for (raw, kept) in [
        (
            r#"{"token":"hunter2","count":1}"#,
            Some(r#"{"count":1,"token":"[secret]"}"#),
        ),
        (
            "{token: 'hunter2', count: '1',}",
            Some(r#"{"count":1,"token":"[secret]"}"#),
        ),
        (r#"{"token":"hunter2","count":"many"}"#, None),
        (r#"{"token":"hunter2""#, None),
    ] {
        let call = ToolCall::new("a.keep", raw, Principal::user("u_1"));
        let reply = world.execute(call).await;
        assert_eq!(reply["ok"], kept.is_some(), "{reply:#}");
        let (_, stored) = world.log().await.pop().unwrap();
        let payload = opened(&world, &stored).await;
        let arguments = payload.arguments.as_ref().map(Exact::text);
        assert_eq!(arguments, kept, "{raw}");
        assert_eq!(payload.raw, None, "{raw}");
        let whole = serde_json::to_string(&payload).unwrap();
        assert!(!whole.contains("hunter2"), "{whole}");
    }
}

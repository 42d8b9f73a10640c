//! Attempts of a careless caller and a broken tool; the executor answers all of them with an envelope.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use countersign::cancel::Cancellation;
use countersign::contract::parameter::Sensitivity;
use countersign::contract::{Input, Parameter, ValueKind};
use countersign::ledger::MemoryStore;
use countersign::{
    BoxFuture, CallContext, Catalog, Executor, Principal, Reply, Tool, ToolArgs, ToolCall,
    ToolError,
};
use countersign_testkit::faulty::{FaultyStore, Op, When};
use serde_json::{Value, json};

use crate::world::{Probe, World, call, check_error, check_ok};

/// A malformed member of the envelope is refused with its name (A1).
#[tokio::test]
async fn a_malformed_envelope_is_refused_by_its_field() {
    let probe = Probe::write("sample.write");
    let runs = probe.runs();
    let world = World::new(probe);
    let long = "x".repeat(256);
    for (field, envelope) in [
        ("/idempotency_key", json!({"idempotency_key": ""})),
        ("/idempotency_key", json!({"idempotency_key": long})),
        ("/idempotency_key", json!({"idempotency_key": "k\u{0}"})),
        ("/user_id", json!({"user_id": ""})),
        ("/user_id", json!({"user_id": "u_1\n"})),
        (
            "/actor/id",
            json!({"actor": {"type": "user", "id": "u\u{7f}"}}),
        ),
        ("/session_id", json!({"session_id": "s\u{85}"})),
        ("/client/app", json!({"client": {"app": "we\u{1b}b"}})),
        (
            "/client/version",
            json!({"client": {"app": "web", "version": long}}),
        ),
        ("/timezone", json!({"timezone": "Mars/Olympus"})),
        ("/timezone", json!({"timezone": "../../etc/passwd"})),
        ("/locale", json!({"locale": "not a locale"})),
        ("/locale", json!({"locale": "-"})),
        ("/currency", json!({"currency": "euro"})),
        ("/currency", json!({"currency": "€"})),
    ] {
        let reply = world.send("sample.write", &json!({}), &envelope).await;
        check_error(&reply, "INVALID_ARGUMENT", &json!({ "field": field }));
        assert!(reply["error"]["details"]["hint"].is_string(), "{reply:#}");
    }
    runs.check(0);
    for envelope in [
        json!({"idempotency_key": "é".repeat(255)}),
        json!({"locale": "zh-Hant-TW", "timezone": "Asia/Taipei", "currency": "TWD"}),
        json!({"locale": "pt_BR", "timezone": "UTC", "currency": "BRL"}),
        json!({"locale": "xx", "session_id": "日本 語"}),
    ] {
        let reply = world.send("sample.write", &json!({}), &envelope).await;
        assert_eq!(reply["ok"], true, "{reply:#}");
    }
}

/// A3: a credential without a valid user id is refused; state is kept by user.
#[tokio::test]
async fn a_principal_without_a_name_is_unauthorized() {
    let world = World::new(Probe::read("sample.read"));
    for name in ["", "u\n", &"x".repeat(256)] {
        let call = ToolCall::new("sample.read", "{}", Principal::user(name));
        check_error(&world.execute(call).await, "UNAUTHORIZED", &json!({}));
    }
}

/// A future that is never ready and panics when it is given up.
struct PanicsWhenDropped;

impl Future for PanicsWhenDropped {
    type Output = Result<Reply, ToolError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Pending
    }
}

impl Drop for PanicsWhenDropped {
    #[expect(clippy::panic, reason = "it is what the test is about")]
    fn drop(&mut self) {
        panic!("card 4111 1111");
    }
}

/// A panic while a late or cancelled tool is cleaned up does not take the caller with it, and the
/// call leaves its record.
#[tokio::test(start_paused = true)]
async fn a_panic_while_cleaning_up_is_contained() {
    let probe = Probe::external("bad.tool").body(|_, _| Box::pin(PanicsWhenDropped));
    let world = World::new(probe);
    let keyed = json!({"idempotency_key": "k1"});
    let reply = world.send("bad.tool", &json!({}), &keyed).await;
    check_error(&reply, "TIMEOUT", &json!({"source": "tool"}));
    assert_eq!(world.record()["code"], "TIMEOUT");

    let cancellation = Cancellation::new();
    let call = call("bad.tool", &json!({}), &json!({})).cancellation(cancellation.clone());
    let (reply, ()) = tokio::join!(world.execute(call), async { cancellation.cancel() });
    check_error(&reply, "TIMEOUT", &json!({"source": "gateway"}));
    // The claim was settled, not abandoned.
    let reply = world.send("bad.tool", &json!({}), &keyed).await;
    check_error(&reply, "CONFLICT", &json!({"reason": "in_doubt"}));
}

/// B14: a tool that is taken out while it runs finishes, and its answer is kept under its key.
#[tokio::test(start_paused = true)]
async fn a_tool_that_is_removed_while_it_runs_finishes() {
    let slow = Probe::write("slow.tool").body(|_, _| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(json!("done").into())
        })
    });
    let world = World::new(slow);
    let keyed = json!({"idempotency_key": "k1"});
    let none = json!({});
    let (reply, ()) = tokio::join!(world.send("slow.tool", &none, &keyed), async {
        tokio::task::yield_now().await;
        world.executor.catalog().remove("slow.tool").unwrap();
    });
    check_ok(&reply, "req_1", &json!("done"));
    let reply = world.send("slow.tool", &json!({}), &keyed).await;
    check_error(&reply, "NOT_FOUND", &json!({}));
    let again = Arc::new(Probe::write("slow.tool"));
    world.executor.catalog().add(again).unwrap();
    let reply = world.send("slow.tool", &json!({}), &keyed).await;
    assert_eq!(
        (&reply["data"], &reply["replayed"]),
        (&json!("done"), &json!(true))
    );
}

/// A store that takes its time to commit.
fn slow() -> Arc<FaultyStore> {
    let plan = |op, when| -> BoxFuture<'static, bool> {
        Box::pin(async move {
            if (op, when) == (Op::Commit, When::Before) {
                tokio::time::sleep(Duration::from_mins(1)).await;
            }
            false
        })
    };
    Arc::new(FaultyStore::new(Arc::new(MemoryStore::new()), plan))
}

/// A tool that has answered has answered: neither the switch nor the deadline undoes it while the
/// answer is made durable.
#[tokio::test(start_paused = true)]
async fn cancellation_while_settling_changes_nothing() {
    let probe = Probe::external("sample.send").with(|behaviour| behaviour.deadline_ms = 1_000);
    let world = World::of([probe], |builder| builder.store(slow()));
    let cancellation = Cancellation::new();
    let keyed = json!({"idempotency_key": "k1"});
    let first = call("sample.send", &json!({}), &keyed).cancellation(cancellation.clone());
    let (reply, ()) = tokio::join!(world.execute(first), async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        cancellation.cancel();
    });
    check_ok(&reply, "req_1", &json!({"run": 1}));
    let reply = world.send("sample.send", &json!({}), &keyed).await;
    assert_eq!(
        (&reply["data"], &reply["replayed"]),
        (&json!({"run": 1}), &json!(true))
    );
}

/// Without any time the tool is not started, so its key stays free; without an end it simply runs.
#[tokio::test]
async fn the_shortest_and_the_longest_deadline() {
    let with_deadline = |deadline_ms| {
        Probe::external("sample.send").with(|behaviour| behaviour.deadline_ms = deadline_ms)
    };
    let keyed = json!({"idempotency_key": "k1"});
    let none = with_deadline(0);
    let runs = none.runs();
    let world = World::new(none);
    for _ in 0..2 {
        let reply = world.send("sample.send", &json!({}), &keyed).await;
        check_error(&reply, "TIMEOUT", &json!({"source": "tool"}));
    }
    runs.check(0);

    let longest = with_deadline((1 << 53) - 1);
    let runs = longest.runs();
    let world = World::new(longest);
    let hurried = call("sample.send", &json!({}), &keyed).timeout(Duration::ZERO);
    let reply = world.execute(hurried).await;
    check_error(&reply, "TIMEOUT", &json!({"retryable": true}));
    runs.check(0);
    let patient = call("sample.send", &json!({}), &keyed).timeout(Duration::MAX);
    check_ok(&world.execute(patient).await, "req_2", &json!({"run": 1}));
}

/// An answer has a maximum size: one that could not be read back is the tool's failure.
#[tokio::test]
async fn an_answer_beyond_the_bounds_is_the_tools_failure() {
    let deep = || (0..1_000).fold(json!(1), |inner, _| json!([inner]));
    let large = || json!("x".repeat(17 * 1024 * 1024));
    let large_number = || json!([u64::MAX, "x".repeat(17 * 1024 * 1024)]);
    let makes: [fn() -> Value; 3] = [deep, large, large_number];
    for make in makes {
        let probe =
            Probe::read("big.answer").body(move |_, _| Box::pin(async move { Ok(make().into()) }));
        let world = World::new(probe);
        let reply = world.send("big.answer", &json!({}), &json!({})).await;
        check_error(
            &reply,
            "UPSTREAM_ERROR",
            &json!({"source": "tool", "retryable": false}),
        );
        assert!(reply["error"]["details"]["hint"].is_string(), "{reply:#}");
    }
}

/// A9: an answer without a canonical form is refused with a hint, and only if evidence is required.
#[tokio::test]
async fn large_integers_are_refused_where_evidence_is_required() {
    for number in [u64::MAX, (1 << 53) + 1] {
        let probe = || {
            Probe::read("big.answer")
                .body(move |_, _| Box::pin(async move { Ok(json!({ "n": number }).into()) }))
        };
        let plain = World::new(probe());
        let reply = plain.send("big.answer", &json!({}), &json!({})).await;
        check_ok(&reply, "req_1", &json!({ "n": number }));
        let reply = World::new(probe().proved())
            .send("big.answer", &json!({}), &json!({}))
            .await;
        let hint = "the tool has to write large integers as strings";
        let details = json!({"source": "tool", "retryable": false, "hint": hint});
        check_error(&reply, "UPSTREAM_ERROR", &details);
    }
}

/// A21: whatever is wrong with a text, no value of a sensitive parameter is in the reply or in the record; a repaired
/// one neither.
#[tokio::test]
async fn no_issue_quotes_a_sensitive_value() {
    let text = |name: &str| Parameter::new(name, ValueKind::String, "");
    let street = text("street").sensitivity(Sensitivity::Personal);
    let note = text("note").sensitivity(Sensitivity::Secret);
    let address = Parameter::new("address", ValueKind::Object, "")
        .fields(vec![street, text("country")])
        .optional();
    let items = Parameter::new("items", ValueKind::Object, "")
        .fields(vec![text("sku"), note])
        .list()
        .optional();
    let card = text("card").sensitivity(Sensitivity::Secret).optional();
    let input = Input::parameters([text("query"), card, address, items]);
    let world = World::new(
        Probe::read("sample.read")
            .input(input)
            .body(|_, _| Box::pin(async { Ok(Value::Null.into()) })),
    );
    for raw in [
        r#"{"card": "canary"}"#,
        r"{query: 'x', card: 'canary',}",
        r#"{"query": "x", "card": ["canary", "canary"]}"#,
        r#"{"query": "x", "card": {"number": "canary"}}"#,
        r#"{"query": "x", "crad": "canary"}"#,
        r#"{"query": "x", "Card": "canary"}"#,
        r#"{"query": "x", "card": "canary", "card": "canary 2"}"#,
        r#"{"query": "x", "card": "canary", "card": "canary"}"#,
        r#"{"query": "x", "address": "{\"street\": \"canary\", \"country\": \"US\"}"}"#,
        r#"{"query": "x", "address": {"street": "canary"}}"#,
        r#"{"query": "x", "address": {"strete": "canary", "country": "US"}}"#,
        r#"{"query": "x", "address": {"street": "canary", "country": 5}}"#,
        r#"{"query": "x", "address": ["canary"]}"#,
        r#"{"query": "x", "address": "canary"}"#,
        r#"{"query": "x", "items": {"sku": "a", "note": "canary"}}"#,
        r#"{"query": "x", "items": "[{\"sku\": \"a\", \"note\": \"canary\"}]"}"#,
        r#"{"query": "x", "items": [{"note": "canary"}]}"#,
        r#"{"query": "x", "items": ["canary"]}"#,
        r#"{"query": "x", "card": "canary"#,
        r#"{"query": "x", "card": "can"canary"ary"}"#,
        r#"{"query": "x", "card": "a"} {"query": "x", "card": "canary"}"#,
        r#"{"arguments": {"query": "x", "card": "canary"}}"#,
        r#""{\"query\": \"x\", \"card\": \"canary\"}""#,
        r"search(query='x', card='canary')",
        "```json\n{\"query\": \"x\", \"card\": \"canary\"}\n``` canary",
        r#"["canary"]"#,
        r#"[{"query": "x", "card": "canary"}]"#,
        r#""canary""#,
        "canary",
    ] {
        let reply = world
            .execute(ToolCall::new("sample.read", raw, Principal::user("u_1")))
            .await;
        assert!(!reply.to_string().contains("canary"), "{raw}: {reply:#}");
        let record = world.record();
        assert!(!record.to_string().contains("canary"), "{raw}: {record:#}");
    }
}

/// A type that refuses what its declaration accepts, and quotes it.
#[derive(serde::Deserialize, ToolArgs)]
struct PinArgs {
    /// The card's number.
    #[arg(sensitive = "secret")]
    pin: Pin4,
}

#[derive(serde::Deserialize)]
#[serde(try_from = "String")]
struct Pin4;

impl TryFrom<String> for Pin4 {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.len() == 4 {
            Ok(Self)
        } else {
            Err(format!("{text:?} has not four digits"))
        }
    }
}

impl countersign::ArgValue for Pin4 {
    const KIND: ValueKind = ValueKind::String;
}

struct CheckPin;

impl Tool for CheckPin {
    const NAME: &'static str = "pin.check";
    const DESCRIPTION: &'static str = "Checks a PIN.";
    type Args = PinArgs;
    type Output = ();

    async fn call(&self, _: &CallContext, args: PinArgs) -> Result<(), ToolError> {
        let Pin4 = args.pin;
        Ok(())
    }
}

/// A21: the message of a type about a value that it refuses is not shown if a parameter is sensitive.
#[tokio::test]
async fn a_type_that_quotes_a_secret_is_not_quoted() {
    let catalog = Catalog::builder().tool(CheckPin).build().unwrap();
    let executor = Executor::new(catalog);
    let call = |raw: &str| ToolCall::new("pin.check", raw, Principal::user("u_1"));
    let reply = executor.execute(call(r#"{"pin": "canary"}"#)).await;
    let reply = serde_json::to_value(reply).unwrap();
    check_error(&reply, "INVALID_ARGUMENT", &json!({}));
    assert!(!reply.to_string().contains("canary"), "{reply:#}");
    assert!(executor.execute(call(r#"{"pin": "1234"}"#)).await.ok);
}

//! Calls that a recording answers: strictly, in order, with placeholders, and with nothing run.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::contract::envelope::{CheckpointRef, Warning};
use countersign::contract::evidence::Exact;
use countersign::contract::parameter::Sensitivity;
use countersign::contract::recording::{Call, Declared, Header, LogRef, Outcome, Recording};
use countersign::contract::{
    Behaviour, Digest, Effect, ErrorBody, ErrorCode, Input, Parameter, ReplyEnvelope,
    RequestEnvelope, SnapshotId, ToolName, ToolSpec, ValueKind,
};
use countersign::ledger::{LogQuery, MemoryStore, Store};
use countersign::recording::{Digests, Player};
use countersign::{
    Arguments, BoxFuture, CallContext, Catalog, DynTool, Executor, Principal, Reply, ToolCall,
    ToolError,
};
use countersign_evidence::seal::commit;
use serde_json::{Value, json};

/// A tool that counts how often it was run.
struct Counting(ToolSpec, Arc<AtomicUsize>);

impl DynTool for Counting {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a CallContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(Reply::from(json!("run"))) })
    }
}

fn spec() -> ToolSpec {
    let to =
        Parameter::new("to", ValueKind::String, "who gets it").sensitivity(Sensitivity::Personal);
    let from = Parameter::new("from", ValueKind::String, "who sends it")
        .sensitivity(Sensitivity::Personal);
    let text = Parameter::new("text", ValueKind::String, "what it says").optional();
    let copies = Parameter::new("copies", ValueKind::Object, "copies by address").optional();
    let name = ToolName::new("mail.send").unwrap();
    let behaviour = Behaviour {
        effect: Effect::External,
        ..Behaviour::default()
    };
    ToolSpec::new(name, "Sends mail.")
        .input(Input::parameters([to, from.optional(), text, copies]))
        .behaviour(behaviour)
}

/// A recorded call: arguments, true for a dry run, and the answer.
type Line = (Value, bool, Result<Value, ErrorCode>);

struct Run {
    executor: Executor,
    player: Arc<Player>,
    ran: Arc<AtomicUsize>,
    store: Arc<dyn Store>,
}

fn run(masked: bool, lines: &[Line]) -> Run {
    run_with(masked, lines, None)
}

/// Values by placeholder, and the arguments of calls by their order.
type Masked<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)]);

/// Digests as `docs/recordings.md` defines them, for a recording of this digest.
fn digests(recording: Digest, (values, calls): Masked<'_>) -> Digests {
    let salt = [9; 32];
    let values = values.iter().map(|(name, value)| {
        let (kind, _) = name.split_once(':').unwrap();
        let text = format!("{kind}\n{value}");
        let digest = commit("masked_value", &salt, text.as_bytes());
        ((*name).to_owned(), json!(digest))
    });
    let calls = calls.iter().map(|(order, arguments)| {
        let digest = commit("masked_call", &salt, arguments.as_bytes());
        ((*order).to_owned(), json!(digest))
    });
    let text = json!({"digests": {
        "v": 1,
        "recording": recording,
        "salt": "CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=",
        "values": values.collect::<serde_json::Map<_, _>>(),
        "calls": calls.collect::<serde_json::Map<_, _>>(),
    }});
    Digests::parse(&text.to_string(), recording).unwrap()
}

fn run_with(masked: bool, lines: &[Line], exactly: Option<Masked<'_>>) -> Run {
    let spec = spec();
    let definition = Digest::of_canonical(&serde_json::to_value(&spec).unwrap()).unwrap();
    let exact = |value: &Value| {
        let text = countersign::contract::canonical::to_string(value).unwrap();
        Exact::new(text).unwrap()
    };
    let calls = (1..)
        .zip(lines)
        .map(|(order, (arguments, dry_run, outcome))| Call {
            order,
            tool: "mail.send".to_owned(),
            version: spec.version.clone(),
            definition,
            at: "2026-11-17T10:00:00Z".to_owned(),
            arguments: exact(arguments),
            dry_run: *dry_run,
            outcome: match outcome {
                Ok(data) => Outcome::Data(exact(data)),
                Err(code) => Outcome::Error(Box::new(ErrorBody::new(*code, "to [personal:1]"))),
            },
            ttl_seconds: Some(7),
            remarks: Vec::new(),
            evidence: SnapshotId::new(format!("ev_{order}")).unwrap(),
        });
    let recording = Recording {
        header: Header {
            v: 1,
            program: "a test".to_owned(),
            made_at: "2026-11-17T10:00:01Z".to_owned(),
            installation: String::new(),
            log: LogRef {
                origin: "example.com/log".to_owned(),
                checkpoint: CheckpointRef {
                    size: 1,
                    root: definition,
                },
            },
            masked,
        },
        tools: vec![Declared {
            definition,
            spec: spec.clone(),
        }],
        calls: calls.collect(),
    };
    let text = recording.to_text();
    let read = Recording::parse(&text).unwrap();
    let digest = Digest::of_bytes(text.as_bytes());
    let player = Arc::new(match exactly {
        None => Player::new(read, digest),
        Some(exactly) => Player::exact(read, digest, digests(digest, exactly)),
    });
    let ran = Arc::new(AtomicUsize::new(0));
    let tool = Arc::new(Counting(spec, ran.clone()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new().keeping_log());
    let executor = Executor::builder(Catalog::builder().dyn_tool(tool).build().unwrap())
        .store(store.clone())
        .player(player.clone())
        .build();
    Run {
        executor,
        player,
        ran,
        store,
    }
}

impl Run {
    async fn call(&self, arguments: &str, dry_run: bool) -> ReplyEnvelope {
        let call = ToolCall::new("mail.send", arguments, Principal::user("u_1"));
        let envelope = RequestEnvelope {
            dry_run,
            ..RequestEnvelope::default()
        };
        self.executor.execute(call.envelope(envelope)).await
    }

    /// Sends calls one after the other and compares what comes back: data, or the code; then the counts of answered,
    /// unused and unmatched calls. Nothing is ever run.
    async fn check(self, calls: &[(&str, Value)], counts: (u64, u64, u64)) {
        for (arguments, expected) in calls {
            let reply = self.call(arguments, false).await;
            let got = match &reply.error {
                None => reply.data.clone(),
                Some(error) => json!(error.code),
            };
            assert_eq!(got, *expected, "{arguments}: {reply:?}");
        }
        let found = self.player.counts();
        assert_eq!((found.answered, found.unused, found.unmatched), counts);
        assert_eq!(found.unused, self.player.unused().len() as u64);
        assert_eq!(self.ran.load(Ordering::Relaxed), 0);
    }
}

/// The n-th same call gets the n-th answer; where all answers are alike, it may be made any number of times.
#[tokio::test]
async fn a_call_is_answered_in_the_order_of_the_recording() {
    let hi = json!({"to": "a", "text": "hi"});
    let lines = [
        (hi.clone(), false, Err(ErrorCode::NeedsUserConfirmation)),
        (hi.clone(), false, Ok(json!("sent"))),
        (json!({"to": "b"}), false, Ok(json!(1))),
        (json!({"to": "b"}), false, Ok(json!(1))),
    ];
    let (hi, b) = (r#"{"text": "hi", "to": "a"}"#, "{to: 'b'}");
    run(false, &lines)
        .check(
            &[
                (hi, json!("NEEDS_USER_CONFIRMATION")),
                (b, json!(1)),
                (hi, json!("sent")),
                (hi, json!("UPSTREAM_ERROR")),
                (b, json!(1)),
                (b, json!(1)),
            ],
            (5, 0, 1),
        )
        .await;
    run(false, &lines).check(&[(b, json!(1))], (1, 3, 0)).await;
    // What cannot be bound is refused by the binder, and is nothing that could be recorded.
    run(false, &lines)
        .check(&[("{}", json!("INVALID_ARGUMENT"))], (0, 4, 0))
        .await;
}

/// A placeholder is one value for the whole run, another one than every other of its kind, and comes back as that value.
#[tokio::test]
async fn placeholders_stand_for_the_values_of_the_caller() {
    let lines = [
        (
            json!({"to": "[personal:1]", "from": "[personal:2]"}),
            false,
            Ok(json!({"to": "[personal:1]", "note": "for [personal:1] by [personal:3]"})),
        ),
        (
            json!({"to": "[personal:2]", "text": "ring [phone:1]"}),
            false,
            Ok(json!("[phone:1]")),
        ),
    ];
    let first = r#"{"to": "Ann", "from": "Bob"}"#;
    let answer = json!({"to": "Ann", "note": "for Ann by [personal:3]"});
    let phone = "+49 30 901820";
    let second = format!(r#"{{"to": "Bob", "text": "ring {phone}"}}"#);
    run(true, &lines)
        .check(
            &[(first, answer.clone()), (&second, json!(phone))],
            (2, 0, 0),
        )
        .await;
    let wrong = |text: &'static str| (text, json!("UPSTREAM_ERROR"));
    run(true, &lines)
        .check(
            &[
                // One value for two.
                wrong(r#"{"to": "Ann", "from": "Ann"}"#),
                (first, answer.clone()),
                // Another value for one that is known.
                wrong(r#"{"to": "Ann", "text": "ring +49 30 901820"}"#),
                // A text around it that differs, and no telephone at all.
                wrong(r#"{"to": "Bob", "text": "call +49 30 901820"}"#),
                wrong(r#"{"to": "Bob", "text": "ring me"}"#),
                // What an answer said is said again.
                (first, answer),
            ],
            (2, 1, 4),
        )
        .await;
    // A caller who only knows the placeholder may say it.
    run(true, &lines)
        .check(
            &[(
                r#"{"to": "[personal:2]", "text": "ring [phone:1]"}"#,
                json!("[phone:1]"),
            )],
            (1, 1, 0),
        )
        .await;
    // In a recording with plain values they are texts like others.
    run(false, &lines).check(&[wrong(first)], (0, 2, 1)).await;
}

/// With the digests of the masked values a placeholder is matched by the recorded value only, and a masked name by the recorded name. Answers
/// have the caller's values as before.
#[tokio::test]
async fn digests_make_masked_arguments_exact() {
    let lines = [
        (
            json!({"to": "[personal:1]", "text": "ring [phone:1]"}),
            false,
            Ok(json!("for [personal:1]")),
        ),
        (json!({"to": "[personal:2]"}), false, Ok(json!(2))),
    ];
    let values = [
        ("personal:1", "Ann"),
        ("personal:2", "Bob"),
        ("phone:1", "+49 30 901820"),
    ];
    let wrong = |text: &'static str| (text, json!("UPSTREAM_ERROR"));
    let exact = run_with(true, &lines, Some((&values, &[])));
    assert!(!exact.player.matches_by_kind());
    let reply = exact.call(r#"{"to": "Bob"}"#, false).await;
    assert_eq!((reply.data, reply.warnings), (json!(2), Vec::new()));
    let reply = exact.call(r#"{"to": "Cleo"}"#, false).await;
    let told = &reply.error.unwrap().details.extra["recording"];
    let differences = json!([{"path": "/to", "recorded": "[personal:2]", "sent": "Cleo"}]);
    assert_eq!(
        (&told["nearest"], &told["differences"]),
        (&json!(2), &differences)
    );
    run_with(true, &lines, Some((&values, &[])))
        .check(
            &[
                wrong(r#"{"to": "Bob", "text": "ring +49 30 901820"}"#),
                wrong(r#"{"to": "Ann", "text": "ring +49 30 901821"}"#),
                (
                    r#"{"to": "Ann", "text": "ring +49 30 901820"}"#,
                    json!("for Ann"),
                ),
            ],
            (1, 1, 2),
        )
        .await;
    // Without a digest nothing stands for a placeholder.
    run_with(true, &lines, Some((&[], &[])))
        .check(&[wrong(r#"{"to": "Bob"}"#)], (0, 2, 1))
        .await;

    // Without digests the answer says that only the kind was compared.
    let open = run(true, &lines);
    assert!(open.player.matches_by_kind());
    let reply = open.call(r#"{"to": "Cleo"}"#, false).await;
    let remarks: Vec<_> = reply.warnings.iter().map(Warning::code).collect();
    assert_eq!((reply.data, remarks), (json!(2), vec!["MATCHED_BY_KIND"]));
    let reply = open.call(r#"{"to": "[personal:2]"}"#, false).await;
    assert_eq!((reply.data, reply.warnings), (json!(2), Vec::new()));
}

/// A masked name of a member has no number. With digests the recorded name matches, and two calls that differ in such a name only are two.
#[tokio::test]
async fn digests_make_masked_names_exact() {
    let masked = json!({"to": "[personal:1]", "copies": {"[email]": 3}});
    let lines = [
        (masked.clone(), false, Ok(json!("a"))),
        (masked, false, Ok(json!("b"))),
    ];
    let a = r#"{"copies":{"a@example.com":3},"to":"Ann"}"#;
    let b = r#"{"copies":{"b@example.com":3},"to":"Ann"}"#;
    let c = r#"{"copies":{"c@example.com":3},"to":"Ann"}"#;
    let exactly = (&[("personal:1", "Ann")][..], &[("1", a), ("2", b)][..]);
    run_with(true, &lines, Some(exactly))
        .check(
            &[
                (b, json!("b")),
                (c, json!("UPSTREAM_ERROR")),
                (a, json!("a")),
                (a, json!("a")),
            ],
            (3, 0, 1),
        )
        .await;
    let reply = run(true, &lines).call(c, false).await;
    let message =
        "the recording has /copies, /to masked: any value of the same kind gets this answer";
    let told = serde_json::to_value(&reply.warnings).unwrap();
    assert_eq!(
        told,
        json!([{"code": "MATCHED_BY_KIND", "message": message}])
    );
}

/// A dry run is answered by a dry run only; what differs is listed argument by argument.
#[tokio::test]
async fn a_call_that_is_not_recorded_names_what_differs() {
    let lines = [
        (json!({"to": "a", "text": "x"}), true, Ok(json!("would"))),
        (json!({"to": "b", "text": "y"}), false, Ok(json!("did"))),
    ];
    let world = run(false, &lines);
    assert_eq!(
        world.call(r#"{"to":"a","text":"x"}"#, true).await.data,
        "would"
    );
    let reply = world.call(r#"{"to":"b","from":"c"}"#, false).await;
    let error = reply.error.unwrap();
    assert_eq!(error.code, ErrorCode::UpstreamError);
    assert!(!error.details.retryable);
    assert_eq!(error.details.upstream_code.as_deref(), Some("NOT_RECORDED"));
    assert_eq!(
        error.details.extra["recording"],
        json!({
            "tool": "mail.send",
            "nearest": 2,
            "evidence": "ev_2",
            "differences": [
                {"path": "/text", "recorded": "y"},
                {"path": "/from", "sent": "c"},
            ],
        })
    );
    let reply = world.call(r#"{"to":"a","text":"x"}"#, false).await;
    let told = &reply.error.unwrap().details.extra["recording"];
    let differences = json!([{"path": "dry_run", "recorded": true, "sent": false}]);
    assert_eq!(told["differences"], differences);
}

/// Every record of such a run says so, and so do the sources of an answer; no key is taken.
#[tokio::test]
async fn evidence_says_that_a_recording_answered() {
    let world = run(false, &[(json!({"to": "a"}), false, Ok(json!("sent")))]);
    let call = ToolCall::new("mail.send", r#"{"to": "a"}"#, Principal::user("u_1"));
    let envelope = RequestEnvelope {
        idempotency_key: Some("k_1".to_owned()),
        ..RequestEnvelope::default()
    };
    let reply = world.executor.execute(call.envelope(envelope)).await;
    assert_eq!((reply.data, reply.ttl_seconds), (json!("sent"), Some(7)));
    let evidence = reply.evidence.unwrap();
    assert_eq!(evidence.sources[0].kind, "recording");
    world.call(r#"{"to": "b"}"#, false).await;
    world.call("{}", false).await;
    let query = LogQuery {
        limit: 10,
        ..LogQuery::default()
    };
    let rows = world.store.records(&query).await.unwrap();
    assert_eq!(rows.len(), 3);
    let digest = world.player.digest().to_string();
    for row in rows {
        let stored = world.store.record(&row.id).await.unwrap().unwrap();
        let leaf: Value = serde_json::from_slice(&stored.leaf).unwrap();
        let mut act = json!({"event": "from_recording", "recording": digest});
        if row.id == evidence.snapshot_id {
            act["order"] = json!(1);
        }
        assert_eq!(leaf["act"], act, "{leaf}");
        assert!(leaf.get("idempotency").is_none(), "{leaf}");
        let text = std::str::from_utf8(&stored.leaf).unwrap();
        assert!(countersign::contract::EvidenceRecord::from_leaf(text).is_ok());
    }
}

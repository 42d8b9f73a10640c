//! A dry run changes nothing (A4).

use countersign::contract::Digest;
use countersign::contract::tool::KeyRule;
use serde_json::{Value, json};

use crate::world::{Probe, World, check_error};

fn dry() -> Value {
    json!({"dry_run": true})
}

/// A4: a read runs; a write that cannot simulate is checked and not run; one that can is run with the
/// flag.
#[tokio::test]
async fn what_changes_something_is_not_run_unless_it_can_simulate() {
    let probes = [
        Probe::read("a.read"),
        Probe::write("b.write"),
        Probe::external("c.external"),
        Probe::write("d.simulating").simulating().body(|ctx, _| {
            let simulated = ctx.is_dry_run();
            Box::pin(async move { Ok(json!({ "simulated": simulated }).into()) })
        }),
    ];
    let runs: Vec<_> = probes.iter().map(Probe::runs).collect();
    let world = World::of(probes, |builder| builder);
    let validated = json!([{
        "code": "VALIDATED_ONLY",
        "message": "the call would be accepted; the tool was not run",
    }]);
    for (tool, data, warnings) in [
        ("a.read", json!({"run": 1}), json!([])),
        ("b.write", Value::Null, validated.clone()),
        ("c.external", Value::Null, validated),
        ("d.simulating", json!({"simulated": true}), json!([])),
    ] {
        let mut reply = world.send(tool, &json!({}), &dry()).await;
        reply.as_object_mut().unwrap().remove("request_id");
        if tool == "d.simulating" {
            let evidence = reply.as_object_mut().unwrap().remove("evidence").unwrap();
            let digest = Digest::of_canonical(&data).unwrap().to_string();
            assert_eq!(evidence["sources"][0]["hash"], digest, "of what would be");
        }
        let expected = json!({"ok": true, "data": data, "warnings": warnings, "dry_run": true});
        assert_eq!(reply, expected, "{tool}");
        assert_eq!(world.record()["dry_run"], true);
    }
    for (runs, expected) in runs.iter().zip([1, 0, 0, 1]) {
        runs.check(expected);
    }
}

/// A4: a dry run takes no key, needs none, and asks no person.
#[tokio::test]
async fn a_dry_run_takes_no_key_and_asks_nobody() {
    let probe = Probe::write("pay.send")
        .key(KeyRule::Required)
        .confirmed()
        .simulating();
    let world = World::new(probe);
    assert_eq!(world.send("pay.send", &json!({}), &dry()).await["ok"], true);
    let keyed = json!({"dry_run": true, "idempotency_key": "k1"});
    for run in 2..=3 {
        let reply = world.send("pay.send", &json!({}), &keyed).await;
        assert_eq!(reply["data"], json!({ "run": run }), "nothing is replayed");
    }
    assert_eq!(world.asked().await, vec![]);

    let wet = json!({"idempotency_key": "k1"});
    check_error(
        &world.send("pay.send", &json!({"other": 1}), &wet).await,
        "NEEDS_USER_CONFIRMATION",
        &json!({}),
    );
}

/// A4: a dry run of an answered call says that it would be answered from memory.
#[tokio::test]
async fn a_dry_run_says_that_it_would_be_a_replay() {
    let world = World::new(Probe::write("cart.create"));
    world
        .send("cart.create", &json!({}), &json!({"idempotency_key": "k1"}))
        .await;
    let keyed = json!({"dry_run": true, "idempotency_key": "k1"});
    let reply = world.send("cart.create", &json!({}), &keyed).await;
    let codes: Vec<_> = reply["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| &w["code"])
        .collect();
    assert_eq!(codes, ["WOULD_REPLAY"]);
    assert_eq!(
        (&reply["data"], &reply["dry_run"], &reply["replayed"]),
        (&json!({"run": 1}), &json!(true), &json!(true))
    );
}

/// A13: a dry run of a read that needs a confirmation does not run it: it would show the data to be protected.
#[tokio::test]
async fn a_dry_run_of_a_confirmed_read_needs_the_confirmation() {
    let probe = Probe::read("secrets.open").confirmed();
    let runs = probe.runs();
    let world = World::new(probe);
    let reply = world.send("secrets.open", &json!({}), &dry()).await;
    check_error(&reply, "NEEDS_USER_CONFIRMATION", &json!({}));
    assert_eq!(reply["dry_run"], true);
    runs.check(0);
}

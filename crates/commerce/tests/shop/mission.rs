//! Missions: a user's goal, kept over several visits, with no lost changes.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::flow::Order;
use crate::world::{World, check_error, ok};

async fn mission(world: &World) -> Value {
    let arguments = json!({
        "goal": "a warm jacket for a trip to Norway",
        "budget": {"amount": 30_000, "currency": "eur"},
        "constraints": "no fur",
        "destination_country": "de",
        "deadline": "2027-01-31T12:00:00Z",
    });
    let reply = world.call("mission.create", arguments).await;
    ok(&reply).clone()
}

async fn mission_of(world: &World, goal: &str) -> Value {
    let reply = world.call("mission.create", json!({"goal": goal})).await;
    ok(&reply).clone()
}

async fn update(world: &World, mission: &Value, change: Value) -> Value {
    let mut arguments = json!({
        "mission_id": mission["mission_id"],
        "expected_version": mission["version"],
    });
    for (name, value) in change.as_object().unwrap() {
        arguments[name] = value.clone();
    }
    world.call("mission.update", arguments).await
}

#[tokio::test]
async fn a_mission_is_written_down_and_found_again() {
    let world = World::new();
    let made = mission(&world).await;
    insta::assert_json_snapshot!(made, @r#"
    {
      "budget": {
        "amount": 30000,
        "currency": "EUR"
      },
      "constraints": [
        "no fur"
      ],
      "created_at": "2026-11-16T12:00:00Z",
      "deadline": "2027-01-31T12:00:00Z",
      "destination_country": "DE",
      "goal": "a warm jacket for a trip to Norway",
      "mission_id": "mis_003g000000000008",
      "status": "open",
      "updated_at": "2026-11-16T12:00:00Z",
      "version": 1
    }
    "#);
    let listed = world.call("mission.get", json!({})).await;
    let expected = json!({"missions": [made], "is_cut": false});
    assert_eq!(*ok(&listed), expected);
    let one = json!({"mission_id": made["mission_id"]});
    assert_eq!(*ok(&world.call("mission.get", one.clone()).await), expected);
    let other = world.call_as("u_2", "mission.get", one, json!({})).await;
    check_error(&other, "NOT_FOUND", &json!({"field": "/mission_id"}));
    let none = world
        .call_as("u_2", "mission.get", json!({}), json!({}))
        .await;
    assert_eq!(ok(&none)["missions"], json!([]));
}

#[tokio::test]
async fn a_mission_goes_on() {
    let world = World::new();
    let made = mission(&world).await;
    let cart = world.call("cart.create", json!({})).await;
    let cart_id = &ok(&cart)["cart_id"];
    world.advance_seconds(60);
    let change = json!({"cart_id": cart_id, "note": "two jackets fit", "clear": "deadline"});
    let changed = update(&world, &made, change).await;
    insta::assert_json_snapshot!(ok(&changed), @r#"
    {
      "budget": {
        "amount": 30000,
        "currency": "EUR"
      },
      "cart_id": "cart_00ag00000000000p",
      "constraints": [
        "no fur"
      ],
      "created_at": "2026-11-16T12:00:00Z",
      "destination_country": "DE",
      "goal": "a warm jacket for a trip to Norway",
      "mission_id": "mis_003g000000000008",
      "notes": [
        {
          "at": "2026-11-16T12:01:00Z",
          "text": "two jackets fit"
        }
      ],
      "status": "open",
      "updated_at": "2026-11-16T12:01:00Z",
      "version": 2
    }
    "#);
    let done = update(&world, ok(&changed), json!({"status": "done"})).await;
    assert_eq!(ok(&done)["status"], "done");
    let open = world.call("mission.get", json!({})).await;
    assert_eq!(ok(&open)["missions"], json!([]), "it is not open any more");
    let listed = world.call("mission.get", json!({"status": "Done"})).await;
    assert_eq!(ok(&listed)["missions"][0]["version"], 3);
}

/// A mission leads to the draft order that came out of it, and only to one of its user.
#[tokio::test]
async fn a_mission_names_its_draft_order() {
    let world = World::new();
    let made = mission(&world).await;
    let draft = Order::new().draft(&world).await;
    let id = &ok(&draft)["draft_order_id"];
    let change = json!({"draft_order_id": id, "status": "done"});
    let done = update(&world, &made, change).await;
    assert_eq!(ok(&done)["draft_order_id"], *id);
    let other = Order::new().by("u_2").draft(&world).await;
    let id = &ok(&other)["draft_order_id"];
    let made = mission_of(&world, "tea").await;
    let foreign = update(&world, &made, json!({"draft_order_id": id})).await;
    check_error(&foreign, "NOT_FOUND", &json!({"field": "/draft_order_id"}));
}

/// A change based on an outdated version is refused, and nothing is lost.
#[tokio::test]
async fn a_change_of_an_older_version_is_refused() {
    let world = World::new();
    let made = mission(&world).await;
    ok(&update(&world, &made, json!({"note": "first"})).await);
    let late = update(&world, &made, json!({"note": "second"})).await;
    let expected = json!({"reason": "version", "field": "/expected_version", "version": 2});
    check_error(&late, "CONFLICT", &expected);
}

/// Of many parallel changes of one version one is made.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_changes_at_once_one_is_made() {
    let world = Arc::new(World::new());
    let made = mission(&world).await;
    let mut tasks = Vec::new();
    for at in 0..10 {
        let (world, made) = (world.clone(), made.clone());
        let change = json!({"note": format!("note {at}")});
        tasks.push(tokio::spawn(
            async move { update(&world, &made, change).await },
        ));
    }
    let mut made_count = 0;
    for task in tasks {
        let reply = task.await.unwrap();
        if reply["ok"] == true {
            made_count += 1;
        } else {
            check_error(&reply, "CONFLICT", &json!({"reason": "version"}));
        }
    }
    assert_eq!(made_count, 1);
    let one = json!({"mission_id": made["mission_id"]});
    let now = world.call("mission.get", one).await;
    let notes = ok(&now)["missions"][0]["notes"].as_array().unwrap().len();
    assert_eq!(notes, 1);
}

#[tokio::test]
async fn what_is_over_stays_over() {
    async fn check(path: &[&str], refused: &str, field: &str) {
        let world = World::new();
        let mut current = mission(&world).await;
        for status in path {
            let reply = update(&world, &current, json!({"status": status})).await;
            current = ok(&reply).clone();
        }
        let reply = update(&world, &current, json!({"status": refused})).await;
        check_error(&reply, "INVALID_ARGUMENT", &json!({"field": field}));
    }
    check(&["paused", "open", "done"], "open", "/mission_id").await;
    check(&["cancelled"], "paused", "/mission_id").await;
    check(&["canceled"], "done", "/mission_id").await;
    // Setting the same value again is no change.
    check(&["paused"], "paused", "").await;
    check(&[], "finished", "/status").await;
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_its_field() {
    async fn check(change: Value, code: &str, field: &str) {
        let world = World::new();
        let made = mission(&world).await;
        let reply = update(&world, &made, change).await;
        check_error(&reply, code, &json!({"field": field}));
    }
    check(json!({}), "INVALID_ARGUMENT", "").await;
    check(json!({"cart_id": "cart_none"}), "NOT_FOUND", "/cart_id").await;
    let order = json!({"draft_order_id": "order_none"});
    check(order, "NOT_FOUND", "/draft_order_id").await;
    check(
        json!({"deadline": "2026-11-16T11:59:59Z"}),
        "INVALID_ARGUMENT",
        "/deadline",
    )
    .await;
    check(
        json!({"budget": {"amount": -5, "currency": "EUR"}}),
        "INVALID_ARGUMENT",
        "/budget/amount",
    )
    .await;
    check(
        json!({"destination_country": "Germany"}),
        "INVALID_ARGUMENT",
        "/destination_country",
    )
    .await;
    let long: Vec<String> = (0..21).map(|at| format!("no. {at}")).collect();
    check(
        json!({ "constraints": long }),
        "INVALID_ARGUMENT",
        "/constraints",
    )
    .await;
}

#[tokio::test]
async fn no_more_notes_than_are_kept() {
    let world = World::new();
    let mut current = mission(&world).await;
    for at in 0..50 {
        let reply = update(&world, &current, json!({"note": format!("note {at}")})).await;
        current = ok(&reply).clone();
    }
    let reply = update(&world, &current, json!({"note": "one more"})).await;
    check_error(&reply, "INVALID_ARGUMENT", &json!({"field": "/note"}));
}

/// The newest are listed, not the first that were made; and their number is limited.
#[tokio::test]
async fn the_newest_are_listed_and_there_is_an_end() {
    let world = World::new();
    let mut newest = json!(null);
    for at in 0..200 {
        world.advance_seconds(1);
        newest = mission_of(&world, &format!("goal {at}")).await;
    }
    let listed = world.call("mission.get", json!({})).await;
    assert_eq!(ok(&listed)["is_cut"], true);
    let missions = listed["data"]["missions"].as_array().unwrap();
    let goals: Vec<&str> = missions
        .iter()
        .map(|mission| mission["goal"].as_str().unwrap())
        .collect();
    let expected: Vec<String> = (150..200).rev().map(|at| format!("goal {at}")).collect();
    assert_eq!(goals, expected);
    let more = world.call("mission.create", json!({"goal": "more"})).await;
    check_error(&more, "INVALID_ARGUMENT", &json!({"field": "/goal"}));
    // A paused mission still counts; a finished one makes room.
    let paused = update(&world, &newest, json!({"status": "paused"})).await;
    let more = world.call("mission.create", json!({"goal": "again"})).await;
    check_error(&more, "INVALID_ARGUMENT", &json!({"field": "/goal"}));
    ok(&update(&world, ok(&paused), json!({"status": "done"})).await);
    mission_of(&world, "room").await;
}

/// A4, A18: a dry run shows the result and changes nothing; the same call again is the same mission.
#[tokio::test]
async fn dry_runs_and_repeats() {
    let world = World::new();
    let goal = json!({"goal": "tea"});
    let envelope = json!({"dry_run": true});
    let reply = world
        .call_as("u_1", "mission.create", goal.clone(), envelope)
        .await;
    assert_eq!(ok(&reply)["goal"], "tea");
    let listed = world.call("mission.get", json!({})).await;
    assert_eq!(ok(&listed)["missions"], json!([]), "nothing was kept");
    let first = world.call("mission.create", goal.clone()).await;
    let second = world.call("mission.create", goal).await;
    assert_eq!(ok(&first), ok(&second));
    let listed = world.call("mission.get", json!({})).await;
    assert_eq!(ok(&listed)["missions"].as_array().unwrap().len(), 1);
}

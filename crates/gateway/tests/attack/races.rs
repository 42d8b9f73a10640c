//! Concurrent requests, on one server and on two (A17, A19).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use countersign::contract::ActorType;
use countersign_gateway::Settings;
use countersign_testkit::patience::within;
use serde_json::{Value, json};

use crate::approvals::{ask, say};
use crate::case::{Request, Tally, message};
use crate::parts::Server;
use crate::world::{Backing, World, operator};

/// A17, A19: racing requests get one effect or a clear refusal.
pub(crate) async fn attack(backing: Backing) -> Tally {
    let world = Arc::new(World::start(backing).await);
    let mut tally = Tally::new("races");
    same_key(&world, &mut tally).await;
    two_servers(&world, &mut tally).await;
    keys(&world, &mut tally).await;
    revoked_meanwhile(&world, &mut tally).await;
    erased(&world, &mut tally).await;
    tally
}

fn add(by: &str, key: &str, text: &str) -> Request {
    let body = json!({"arguments": {"text": text}, "idempotency_key": key});
    Request::call("notes.add", &body).by(by)
}

async fn all(world: &World, requests: &[Request]) -> Vec<(u16, Value)> {
    let sent = requests.iter().map(|request| async {
        let answer = world.honest(request).await;
        (answer.status, message(&answer))
    });
    within(futures_util::future::join_all(sent)).await
}

async fn notes_of(world: &World, key: &str) -> usize {
    let list = Request::call("notes.list", &json!({"arguments": {}})).by(key);
    let reply = message(&world.honest(&list).await);
    reply["data"].as_array().map_or(0, Vec::len)
}

async fn same_key(world: &World, tally: &mut Tally) {
    let (carl, _) = world
        .key(ActorType::User, "carl", None, &["notes:write"])
        .await;
    let (dora, _) = world
        .key(ActorType::User, "dora", None, &["notes:write"])
        .await;
    let same: Vec<Request> = (0..16).map(|_| add(&carl, "k_same", "once")).collect();
    let replies = all(world, &same).await;
    tally.check("sixteen with one key", notes_of(world, &carl).await, 1);
    let is_fine = |(status, reply): &(u16, Value)| {
        *status == 200 || reply["error"]["details"]["reason"] == "in_flight"
    };
    tally.check(
        "each has the answer or is told to wait",
        replies.iter().all(is_fine),
        true,
    );

    let differing: Vec<Request> = (0..8)
        .map(|n| add(&carl, "k_other", &format!("n {n}")))
        .collect();
    let replies = all(world, &differing).await;
    let made = replies.iter().filter(|(status, _)| *status == 200).count();
    tally.check(
        "eight calls under one key",
        (made, notes_of(world, &carl).await),
        (1, 2),
    );
    let is_told = |(status, reply): &(u16, Value)| {
        let reason = reply["error"]["details"]["reason"]
            .as_str()
            .unwrap_or_default();
        *status == 200 || *status == 409 && ["key_reused", "in_flight"].contains(&reason)
    };
    tally.check("the others are told why", replies.iter().all(is_told), true);

    let of_two = [
        add(&carl, "k_two", "of carl"),
        add(&dora, "k_two", "of dora"),
    ];
    let replies = all(world, &of_two).await;
    let texts: Vec<&Value> = replies
        .iter()
        .map(|(_, reply)| &reply["data"]["text"])
        .collect();
    tally.check(
        "one key of two users",
        texts,
        vec![&json!("of carl"), &json!("of dora")],
    );
    world.rebase().await;
    tally.stands(world, "one key").await;
}

async fn post(server: &Server, by: &str, path: &str, body: Value) -> (u16, Value) {
    let (status, _, reply) = server.send("POST", path, Some(by), Some(body)).await;
    (status, reply)
}

async fn two_servers(world: &World, tally: &mut Tally) {
    let other = world.beside(Settings::default()).await;
    let (emma, id) = world
        .key(ActorType::User, "emma", None, &["notes:write"])
        .await;
    let body = json!({"arguments": {"text": "once"}, "idempotency_key": "k_both"});
    let path = "/v1/tools/notes.add";
    let sent = (0..8).map(|n| {
        let server = if n % 2 == 0 { &world.server } else { &other };
        post(server, &emma, path, body.clone())
    });
    let replies = within(futures_util::future::join_all(sent)).await;
    let made = replies.iter().filter(|(status, _)| *status == 200).count();
    tally.check(
        "one key on two servers",
        (made > 0, notes_of(world, &emma).await),
        (true, 1),
    );

    let approval = ask(world, "two servers").await;
    say(world, &approval, "approve").await;
    let before = world.deeds.wiped.load(Ordering::SeqCst);
    let calls = (0..8).map(|n| {
        let server = if n % 2 == 0 { &world.server } else { &other };
        let body =
            json!({"arguments": {"disk": "two servers"}, "idempotency_key": format!("k_{n}")});
        post(server, &world.cast.shopper, "/v1/tools/disk.wipe", body)
    });
    let replies = within(futures_util::future::join_all(calls)).await;
    let made = replies.iter().filter(|(status, _)| *status == 200).count();
    let wiped = world.deeds.wiped.load(Ordering::SeqCst) - before;
    tally.check("one answer on two servers", (made, wiped), (1, 1));

    // A key that one server revokes is accepted by the other for five seconds at most.
    let list = json!({"arguments": {}});
    let path = "/v1/tools/notes.list";
    tally.check(
        "a key on the other server",
        post(&other, &emma, path, list.clone()).await.0,
        200,
    );
    world.keys.revoke(&id, &operator()).await.unwrap();
    tally.check(
        "a key that was taken back",
        post(&world.server, &emma, path, list.clone()).await.0,
        401,
    );
    world.parts.clock.advance(Duration::from_secs(5));
    tally.check(
        "the same on the other server",
        post(&other, &emma, path, list.clone()).await.0,
        401,
    );
    world.rebase().await;
    tally.stands(world, "two servers").await;
}

/// Eight rotations of one key leave one valid key.
async fn keys(world: &World, tally: &mut Tally) {
    let (_, id) = world
        .key(ActorType::User, "root", None, &["notes:write"])
        .await;
    let root = &world.cast.root;
    let rotations: Vec<Request> = (0..8)
        .map(|_| Request::post(format!("/v1/keys/{id}/rotate"), "").by(root))
        .collect();
    let replies = all(world, &rotations).await;
    let made = replies.iter().filter(|(status, _)| *status == 201).count();
    tally.check("eight rotations of one key", made, 1);
    let is_refused = |(status, _): &(u16, Value)| [201, 400, 409].contains(status);
    tally.check(
        "the others are refused",
        replies.iter().all(is_refused),
        true,
    );
    world.rebase().await;
    tally.stands(world, "rotations").await;
}

/// A call that has begun ends; the next one with a revoked key does not begin.
async fn revoked_meanwhile(world: &Arc<World>, tally: &mut Tally) {
    let (fred, id) = world
        .key(ActorType::User, "fred", None, &["notes:write"])
        .await;
    let running = hold(world, &fred).await;
    world.keys.revoke(&id, &operator()).await.unwrap();
    let next = world.honest(&add(&fred, "k_fred", "late")).await;
    tally.check("a call with a key that was taken back", next.status, 401);
    world.deeds.release.0.add_permits(1);
    let (status, _) = within(running).await.unwrap();
    tally.check("a call that was begun before", status, 200);
    world.rebase().await;
    tally.stands(world, "a key that was taken back").await;
}

/// An erased user is gone at once; one who comes back is a new user, also in the records of keys.
async fn erased(world: &World, tally: &mut Tally) {
    let (gina, _) = world
        .key(ActorType::User, "gina", None, &["notes:write"])
        .await;
    let adds: Vec<Request> = (0..8)
        .map(|n| add(&gina, &format!("k_{n}"), "a note of gina"))
        .collect();
    all(world, &adds).await;
    tally.check("notes before", notes_of(world, &gina).await, 8);
    let archive = world.server.gateway.archive();
    let by = operator();
    let erasures = (0..4).map(|_| archive.erase("gina", &by, "she asked"));
    let done = futures_util::future::join_all(erasures).await;
    let is_done = done.iter().all(Result::is_ok);
    tally.check("four erasures at once", is_done, true);
    let late = all(world, &adds).await;
    let statuses: Vec<u16> = late.iter().map(|(status, _)| *status).collect();
    tally.check("eight calls of an erased user", statuses, vec![401; 8]);
    let list = json!({"user_id": "gina", "arguments": {}});
    let list = Request::call("notes.list", &list).by(&world.cast.shop);
    let notes = message(&world.honest(&list).await)["data"].clone();
    tally.check("notes of an erased user", notes, json!([]));
    let (_, id) = world.key(ActorType::User, "gina", None, &[]).await;
    world.keys.revoke(&id, &operator()).await.unwrap();
    world.rebase().await;
    tally.stands(world, "an erased user").await;
}

/// Starts a call, which runs until it is released.
async fn hold(world: &Arc<World>, by: &str) -> tokio::task::JoinHandle<(u16, Value)> {
    let request = Request::call("test.hold", &json!({"arguments": {}})).by(by);
    let calling = world.clone();
    let running = tokio::spawn(async move {
        let answer = calling.honest(&request).await;
        (answer.status, message(&answer))
    });
    within(world.deeds.holding.notified()).await;
    running
}

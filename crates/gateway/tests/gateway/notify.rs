//! Notifications: each finding reaches its receivers at least once, signed, and without anything personal.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::Catalog;
use countersign::budget::{Budget, BudgetScope, Currency, ToolAmount};
use countersign::clock::ManualClock;
use countersign::contract::tool::Recovery;
use countersign::ledger::{Lapse, MemoryStore, NoticeKind, Reserve, Store};
use countersign::pattern::ToolPattern;
use countersign::sample::{AddNote, ClearNotes};
use countersign_gateway::caller::LOCAL_USER;
use countersign_gateway::notify::{
    Email, EmailOptions, Encryption, Notifier, Target, Webhook, WebhookSecret,
};
use countersign_gateway::{Gateway, Settings};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_testkit::ledger::build::{claimed, lost, reserve, scope_of};
use countersign_testkit::patience::within;
use countersign_testkit::postgres::shared_postgres;
use serde_json::{Value, json};

use crate::http_client::{get, post};
use crate::receivers::{Arrived, Mood, Receiver};
use crate::world::World;

const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BASE: &str = "https://tools.example.com/";

/// An argument. Bodies are compared whole, because a number this small may stand in an id by chance.
const KEEP: u32 = 937;

fn catalog() -> Catalog {
    let builder = Catalog::builder().tool(AddNote).tool(ClearNotes);
    builder.build().unwrap()
}

/// A gateway whose outbox goes by a clock of the test.
async fn timed() -> (World, Arc<ManualClock>) {
    let start = "2026-11-15T12:00:00Z".parse().unwrap();
    let clock = Arc::new(ManualClock::starting_at(start));
    let store = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
    let world = World::on(store, catalog(), Settings::default()).await;
    (world, clock)
}

/// Makes a call that waits for an approval, and returns its id.
async fn ask(world: &World, keep: u32) -> String {
    let body = json!({"arguments": {"keep": keep}}).to_string();
    let answer = post(world, "/v1/tools/notes.clear", &body).await;
    assert_eq!(answer.status, 428, "{}", answer.json());
    let id = answer.json()["error"]["details"]["approval_id"].clone();
    id.as_str().unwrap().to_owned()
}

fn webhook(name: &str, receiver: &Receiver) -> Target {
    let secret = WebhookSecret::parse(&format!("whsec_{SECRET}")).unwrap();
    let url = format!("http://{}/hook", receiver.address).parse().unwrap();
    Target {
        name: name.to_owned(),
        kinds: NoticeKind::ALL.to_vec(),
        channel: Arc::new(Webhook::new(url, secret).unwrap()),
    }
}

fn mail(name: &str, receiver: &Receiver) -> Target {
    let options = EmailOptions {
        host: receiver.address.ip().to_string(),
        port: receiver.address.port(),
        encryption: Encryption::Plain,
        from: "Countersign <countersign@example.com>".to_owned(),
        to: vec!["ops@example.com".to_owned(), "night@example.com".to_owned()],
        credentials: None,
    };
    Target {
        name: name.to_owned(),
        kinds: NoticeKind::ALL.to_vec(),
        channel: Arc::new(Email::new(&options).unwrap()),
    }
}

/// Computes the signature as a receiver does, from what arrived.
fn assert_signed(arrived: &Arrived) {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(SECRET).unwrap());
    let (id, at) = (
        arrived.header("webhook-id"),
        arrived.header("webhook-timestamp"),
    );
    let signed = format!("{id}.{at}.{}", arrived.body);
    let tag = hmac::sign(&key, signed.as_bytes());
    let expected = format!("v1,{}", STANDARD.encode(tag));
    assert_eq!(arrived.header("webhook-signature"), expected);
}

fn assert_impersonal(text: &str) {
    for secret in [LOCAL_USER, "keep", SECRET] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
}

/// Returns the only notice, as an operator is shown it.
async fn shown(world: &World) -> Value {
    let listed = get(world, "/v1/notifications").await.json();
    assert_eq!(
        listed["notifications"].as_array().unwrap().len(),
        1,
        "{listed}"
    );
    listed["notifications"][0].clone()
}

/// A webhook that fails, hangs up and is silent gets the same message until it takes it; each attempt is signed.
#[tokio::test]
async fn a_webhook_is_sent_until_it_is_taken() {
    let (world, clock) = timed().await;
    let moods = [Mood::Fail, Mood::Close, Mood::Silent, Mood::Accept];
    let receiver = Receiver::of_webhooks(&moods).await;
    world.gateway.set_notify(vec![webhook("ops", &receiver)]);
    let approval = ask(&world, KEEP).await;
    let mut notifier = Notifier::new(world.gateway.clone(), BASE);
    let errors = [
        "HTTP 500",
        "the connection was closed before an answer",
        "no answer in time",
    ];
    for (attempt, error) in errors.into_iter().enumerate() {
        within(notifier.pass()).await.unwrap();
        // Not due yet: nothing more is sent.
        within(notifier.pass()).await.unwrap();
        assert_eq!(receiver.arrived().len(), attempt + 1);
        let delivery = shown(&world).await["deliveries"][0].clone();
        assert_eq!(
            (&delivery["state"], &delivery["last_error"]),
            (&json!("waiting"), &json!(error))
        );
        clock.advance(Duration::from_secs(5 << attempt));
    }
    within(notifier.pass()).await.unwrap();
    clock.advance(Duration::from_hours(1));
    within(notifier.pass()).await.unwrap();

    let arrived = receiver.arrived();
    let taken: Vec<Mood> = arrived.iter().map(|one| one.mood).collect();
    assert_eq!(taken, moods);
    let id = arrived[0].header("webhook-id").to_owned();
    for one in &arrived {
        assert_signed(one);
        assert_impersonal(&one.body);
        assert_eq!(
            (one.header("webhook-id"), &one.body),
            (&*id, &arrived[0].body)
        );
    }
    let notice = shown(&world).await;
    assert_eq!(notice["id"], id);
    let delivery = &notice["deliveries"][0];
    assert_eq!(
        (&delivery["state"], &delivery["attempts"]),
        (&json!("delivered"), &json!(4))
    );
    let body: Value = serde_json::from_str(&arrived[0].body).unwrap();
    assert_eq!(
        body,
        json!({
            "type": "question",
            "timestamp": notice["at"],
            "data": {
                "id": id,
                "kind": "question",
                "subject": approval,
                "tool": "notes.clear",
                "since": notice["since"],
                "link": format!("https://tools.example.com/approvals/{approval}"),
            },
        })
    );
}

/// A signature over another body differs from ours: the check above can fail.
#[tokio::test]
async fn a_changed_body_has_another_signature() {
    let (world, _) = timed().await;
    let receiver = Receiver::of_webhooks(&[]).await;
    world.gateway.set_notify(vec![webhook("ops", &receiver)]);
    ask(&world, KEEP).await;
    let mut notifier = Notifier::new(world.gateway.clone(), BASE);
    within(notifier.pass()).await.unwrap();
    let mut arrived = receiver.arrived().pop().unwrap();
    assert_signed(&arrived);
    arrived.body.push(' ');
    assert!(std::panic::catch_unwind(|| assert_signed(&arrived)).is_err());
}

/// A mail server that closes and refuses gets the same message, with the same id, until it takes it.
#[tokio::test]
async fn a_mail_is_sent_until_it_is_taken() {
    let (world, clock) = timed().await;
    let moods = [Mood::Close, Mood::Fail, Mood::Accept];
    let receiver = Receiver::of_mail(&moods).await;
    world.gateway.set_notify(vec![mail("ops", &receiver)]);
    let approval = ask(&world, KEEP).await;
    let mut notifier = Notifier::new(world.gateway.clone(), BASE);
    for attempt in 0..3 {
        within(notifier.pass()).await.unwrap();
        clock.advance(Duration::from_secs(5 << attempt));
    }
    let arrived = receiver.arrived();
    let taken: Vec<Mood> = arrived.iter().map(|one| one.mood).collect();
    assert_eq!(taken, moods);
    let notice = shown(&world).await;
    let id = format!(
        "Message-ID: <{}@example.com>",
        notice["id"].as_str().unwrap()
    );
    let part = |name: &str| notice[name].as_str().unwrap();
    let (since, at, msg) = (part("since"), part("at"), part("id"));
    let text = format!(
        "kind: question\nsubject: {approval}\ntool: notes.clear\nsince: {since}\nfound: {at}\n\n\
         https://tools.example.com/approvals/{approval}\n\n\
         Sign in there to see more. This message gives no right to anything.\nid: {msg}\n"
    );
    for one in &arrived {
        assert_impersonal(&one.body);
        let envelope = one.head.join("\n");
        for line in [
            "MAIL FROM:<countersign@example.com>",
            "RCPT TO:<ops@example.com>",
            "RCPT TO:<night@example.com>",
        ] {
            assert!(envelope.contains(line), "{envelope}");
        }
        let (head, body) = one.body.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&id), "{head}");
        // The end of the data may bring an empty line of its own.
        assert_eq!(body.replace("\r\n", "\n").trim_end(), text.trim_end());
    }
    assert_eq!(notice["deliveries"][0]["state"], "delivered");
    assert_eq!(notice["deliveries"][0]["last_error"], "SMTP 451");
}

/// Each target gets what it wants; one that fails holds no other back, and is given up and reported in the end.
#[tokio::test]
async fn a_target_that_never_takes_is_given_up_and_needs_a_person() {
    let (world, clock) = timed().await;
    let broken = Receiver::of_webhooks(&[Mood::Fail; 200]).await;
    let working = Receiver::of_webhooks(&[]).await;
    let other = Receiver::of_webhooks(&[]).await;
    let elsewhere = Target {
        kinds: vec![NoticeKind::BudgetUsedUp],
        ..webhook("elsewhere", &other)
    };
    let targets = vec![
        webhook("broken", &broken),
        webhook("working", &working),
        elsewhere,
    ];
    world.gateway.set_notify(targets);
    ask(&world, KEEP).await;
    let mut notifier = Notifier::new(world.gateway.clone(), BASE);
    for _ in 0..80 {
        within(notifier.pass()).await.unwrap();
        clock.advance(Duration::from_hours(1));
    }
    assert_eq!(working.arrived().len(), 1);
    assert_eq!(other.arrived().len(), 0);
    let attempts = broken.arrived().len();
    assert!((60..=80).contains(&attempts), "{attempts}");
    let notice = shown(&world).await;
    let states: Vec<&Value> = notice["deliveries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|delivery| &delivery["state"])
        .collect();
    assert_eq!(states, [&json!("failed"), &json!("delivered")]);
    let attention = get(&world, "/v1/attention").await.json();
    let items = attention["items"].as_array().unwrap();
    let failed = items
        .iter()
        .find(|item| item["kind"] == "notification_failed");
    let failed = failed.unwrap_or_else(|| panic!("{attention}"));
    assert_eq!(failed["id"], "notification_failed:broken");
    assert_eq!(failed["page"], "/notifications");

    // Asked for again, it is sent again.
    let store = world.gateway.executor().store();
    let retried = store.retry_deliveries("broken", Duration::from_hours(1));
    assert_eq!(retried.await.unwrap(), 1);
    within(notifier.pass()).await.unwrap();
    assert_eq!(broken.arrived().len(), attempts + 1);
}

/// Two gateways on one database: while both work, each message is sent once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_send_each_message_once() {
    let postgres = shared_postgres();
    let url = postgres.fresh_database();
    let open = async || {
        let store = PostgresStore::open(PostgresOptions::new(&url))
            .await
            .unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        World::on(store, catalog(), Settings::default()).await
    };
    let worlds = [open().await, open().await];
    let receiver = Receiver::of_webhooks(&[]).await;
    let mut asked = Vec::new();
    for n in 0..12 {
        asked.push(ask(&worlds[n % 2], u32::try_from(n).unwrap()).await);
    }
    let passes = worlds.iter().map(|world| {
        world.gateway.set_notify(vec![webhook("ops", &receiver)]);
        passes(world.gateway.clone())
    });
    let passes: Vec<_> = passes.map(tokio::spawn).collect();
    for done in passes {
        within(done).await.unwrap();
    }
    let arrived = receiver.arrived();
    let mut ids: Vec<&str> = arrived.iter().map(|one| one.header("webhook-id")).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((arrived.len(), ids.len()), (asked.len(), asked.len()));
    for approval in &asked {
        assert!(
            arrived.iter().any(|one| one.body.contains(approval)),
            "{approval}"
        );
    }
}

async fn passes(gateway: Gateway) {
    let mut notifier = Notifier::new(gateway, BASE);
    for _ in 0..10 {
        notifier.pass().await.unwrap();
    }
}

/// Every kind that the durable state or this process knows is found once, named without a user, and gone when it is
/// settled; none is found while there is nothing.
#[tokio::test]
async fn every_kind_is_found_once() {
    let (world, _) = timed().await;
    let receiver = Receiver::of_webhooks(&[]).await;
    world.gateway.set_notify(vec![webhook("ops", &receiver)]);
    let mut first = Notifier::new(world.gateway.clone(), BASE);
    within(first.pass()).await.unwrap();
    assert_eq!(receiver.arrived().len(), 0);

    let store = world.gateway.executor().store();
    let scope = scope_of("u_private", "orders.create", "k_1");
    claimed(&**store, &lost(&scope, Recovery::Operator))
        .await
        .unwrap();
    let spent = Reserve {
        lease: Duration::ZERO,
        ..reserve("ev_spent", "u_private", Lapse::Spend)
    };
    store.reserve(&spent).await.unwrap();
    store.sweep(10).await.unwrap();
    let euro = Currency::new("EUR").unwrap();
    let budget = Budget {
        name: "purchases".to_owned(),
        scope: BudgetScope::User,
        limit: euro.amount("12.50").unwrap(),
        currency: euro,
        window: None,
        tools: vec![ToolAmount::spends(
            ToolPattern::new("orders.*").unwrap(),
            "/amount",
        )],
    };
    let policy = world.gateway.identity().policy();
    policy.controls().budgets().replace(vec![budget]).unwrap();
    world.gateway.keep_verified(7, false, true);
    let approval = ask(&world, KEEP).await;
    for _ in 0..2 {
        // Another process, which has seen nothing before.
        let mut notifier = Notifier::new(world.gateway.clone(), BASE);
        within(notifier.pass()).await.unwrap();
    }
    let arrived = receiver.arrived();
    let mut found: Vec<(String, String)> = arrived
        .iter()
        .map(|one| {
            let body: Value = serde_json::from_str(&one.body).unwrap();
            let text = |name: &str| body["data"][name].as_str().unwrap().to_owned();
            (text("kind"), text("subject"))
        })
        .collect();
    found.sort_unstable();
    let verified = &found[3].1;
    assert!(verified.starts_with("7 records, "), "{verified}");
    let key = format!("{}, attempt 1", scope.key);
    let expected = [
        ("budget_used_up", "purchases"),
        ("call_in_doubt", key.as_str()),
        ("question", approval.as_str()),
        ("verification_failed", verified.as_str()),
    ];
    let expected = expected.map(|(kind, subject)| (kind.to_owned(), subject.to_owned()));
    assert_eq!(found, expected);
    for one in &arrived {
        assert_impersonal(&one.body);
        assert!(!one.body.contains("u_private"), "{}", one.body);
    }
}

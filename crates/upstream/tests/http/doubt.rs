//! Effects in doubt (T8): an upstream that commits and drops the connection, dies, answers late, twice, too much, or unreadably.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use countersign::contract::RecordKind;
use countersign::executor::Doubts;
use countersign::ledger::{ClaimQuery, ClaimState, Claims as _, Log, LogQuery};
use tokio::sync::Notify;

use crate::service::{Act, Seen, Service, json as answer};
use crate::world::{World, told};

fn tool(recovery: &str) -> String {
    format!(
        r#"
        [[tool]]
        name = "svc.order"
        upstream = "svc"
        description = "Places an order."
        parameters = [{{ name = "n", kind = "integer" }}]
        {recovery}
        "#
    )
}

/// A service that keeps orders by key. The first attempt of each is answered by `first`.
struct Shop {
    service: Service,
    orders: Arc<Mutex<Vec<String>>>,
}

impl Shop {
    async fn start(commits: bool, first: impl Fn() -> Act + Send + Sync + 'static) -> Self {
        let orders = Arc::new(Mutex::new(Vec::new()));
        let kept = orders.clone();
        let attempts = AtomicUsize::new(0);
        let service = Service::start(move |seen: &Seen, _| {
            let key = seen.header("idempotency-key").to_owned();
            let mut kept = kept.lock().unwrap();
            let known = kept.iter().position(|own| *own == key);
            if seen.target.ends_with("/reconcile") {
                return match known {
                    Some(at) => answer(
                        200,
                        &format!(r#"{{"outcome": "happened", "data": {{"order": {at}}}}}"#),
                    ),
                    None => answer(200, r#"{"outcome": "did_not_happen"}"#),
                };
            }
            if seen.method == "GET" {
                let key = seen.target.rsplit(['/', '=']).next().unwrap_or_default();
                return match kept.iter().position(|own| own == key) {
                    Some(at) => answer(200, &format!(r#"{{"order": {at}}}"#)),
                    None => answer(404, "{}"),
                };
            }
            let is_first = attempts.fetch_add(1, Ordering::SeqCst) == 0;
            if known.is_none() && (commits || !is_first) {
                kept.push(key.clone());
            }
            if is_first {
                return first();
            }
            let at = kept.iter().position(|own| *own == key).unwrap_or_default();
            answer(200, &format!(r#"{{"order": {at}}}"#))
        })
        .await;
        Self { service, orders }
    }

    fn orders(&self) -> usize {
        self.orders.lock().unwrap().len()
    }
}

const UPSTREAM: &str =
    "timeouts.attempt_ms = 300\nretries = { backoff_ms = 1, backoff_max_ms = 2 }";
const ORDER: &str = r#"{"n": 1}"#;

/// A5, A17, T8: the effect happened and the answer was lost. The twin is asked, and its answer is the answer.
#[tokio::test]
async fn a_lost_answer_is_looked_up() {
    let cut = || Act::Cut(Vec::new());
    let half = || Act::Cut(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"ord".to_vec());
    let late = || Act::Wait(Arc::new(Notify::new()));
    let acts: [fn() -> Act; 3] = [cut, half, late];
    for act in acts {
        let shop = Shop::start(true, act).await;
        let world = World::new(
            &shop.service,
            UPSTREAM,
            &tool("recovery.reconcile.grace_seconds = 0"),
        );
        let first = world.keyed("svc.order", ORDER, "k").await;
        assert!(!first.ok, "{first:?}");
        let second = world.keyed("svc.order", ORDER, "k").await;
        assert_eq!(told(&second), "ok {\"order\":0} ", "{first:?}");
        let third = world.keyed("svc.order", ORDER, "k").await;
        assert_eq!(third.data, second.data);
        assert_eq!(shop.orders(), 1);
        let posts = shop.service.seen();
        let keys: Vec<_> = posts
            .iter()
            .map(|it| it.header("idempotency-key"))
            .collect();
        assert!(
            keys.iter().all(|key| !key.is_empty() && *key == keys[0]),
            "{keys:?}"
        );
        let identity: Vec<_> = posts.iter().map(Seen::line).collect();
        assert_eq!(identity.len(), 2, "{identity:?}");
    }
}

/// A17, T8: the effect did not happen. It is made again, once.
#[tokio::test]
async fn what_did_not_happen_is_made_again() {
    let shop = Shop::start(false, || Act::Cut(Vec::new())).await;
    let world = World::new(
        &shop.service,
        UPSTREAM,
        &tool("recovery.reconcile.grace_seconds = 0"),
    );
    assert!(!world.keyed("svc.order", ORDER, "k").await.ok);
    let second = world.keyed("svc.order", ORDER, "k").await;
    assert_eq!(told(&second), "ok {\"order\":0} ");
    assert_eq!(shop.orders(), 1);
}

/// T8: a third-party service without a twin is asked by a declared look-up.
#[tokio::test]
async fn a_declared_request_looks_it_up() {
    for (look_up, target) in [
        (
            r#"path = "/orders/by-key/{idempotency_key}""#,
            "/base/orders/by-key/",
        ),
        (
            r#"path = "/orders", query = { fixed = "1", key = "{idempotency_key}" }, headers = { X-N = "{n}" }"#,
            "/base/orders?fixed=1&key=",
        ),
    ] {
        let shop = Shop::start(true, || Act::Cut(Vec::new())).await;
        let recovery = format!(
            "request = {{ method = \"POST\", path = \"/orders\" }}\n\
             recovery.reconcile.grace_seconds = 0\n\
             reconcile.request = {{ method = \"GET\", {look_up} }}"
        );
        let world = World::new(&shop.service, UPSTREAM, &tool(&recovery));
        assert!(!world.keyed("svc.order", ORDER, "k").await.ok);
        let second = world.keyed("svc.order", ORDER, "k").await;
        assert_eq!(told(&second), "ok {\"order\":0} ");
        assert_eq!(shop.orders(), 1);
        let asked = shop.service.last();
        assert!(asked.target.starts_with(target), "{}", asked.target);
        assert!(!asked.target.contains('{'), "{}", asked.target);
        if target.contains('?') {
            assert_eq!(asked.header("x-n"), "1");
        }
    }
}

/// A8, T8: what a look-up finds is checked and filtered like the answer of the call itself, and it happened in any case.
#[tokio::test]
async fn what_a_look_up_finds_is_checked() {
    let declared = "request = { method = \"POST\", path = \"/orders\" }\n\
        reconcile.request = { method = \"GET\", path = \"/orders/by-key/{idempotency_key}\" }";
    for look_up in ["", declared] {
        for (kind, on_mismatch, expected) in [
            ("integer", "refuse", "ok {\"order\":0} "),
            ("string", "warn", "ok {\"order\":0} ANSWER_NOT_AS_DECLARED"),
            (
                "string",
                "refuse",
                "ok {\"order\":0} ANSWER_NOT_AS_DECLARED",
            ),
        ] {
            let shop = Shop::start(true, || Act::Cut(Vec::new())).await;
            let entry = format!(
                "recovery.reconcile.grace_seconds = 0\nresponse.on_mismatch = '{on_mismatch}'\n\
                 output = {{ type = 'object', properties = {{ order = {{ type = '{kind}' }} }} }}\n{look_up}"
            );
            let world = World::new(&shop.service, UPSTREAM, &tool(&entry));
            assert!(!world.keyed("svc.order", ORDER, "k").await.ok);
            let second = world.keyed("svc.order", ORDER, "k").await;
            assert_eq!(told(&second), expected, "{look_up} {kind} {on_mismatch}");
            assert_eq!(shop.orders(), 1);
        }
        let shop = Shop::start(true, || Act::Cut(Vec::new())).await;
        let entry = format!(
            "recovery.reconcile.grace_seconds = 0\nresponse.select_by_model = true\n{look_up}"
        );
        let world = World::new(&shop.service, UPSTREAM, &tool(&entry));
        let order = r#"{"n": 1, "select": ".order"}"#;
        assert!(!world.keyed("svc.order", order, "k").await.ok);
        let second = world.keyed("svc.order", order, "k").await;
        assert_eq!(told(&second), "ok 0 ", "{look_up}");
    }
}

/// T8: without a way to find out, nothing runs blindly: the repeat is a `CONFLICT` until an operator decides.
#[tokio::test]
async fn what_cannot_be_told_stays_in_doubt() {
    let shop = Shop::start(true, || Act::Cut(Vec::new())).await;
    let world = World::new(&shop.service, UPSTREAM, &tool(""));
    let mut lines = Vec::new();
    for _ in 0..2 {
        lines.push(told(&world.keyed("svc.order", ORDER, "k").await));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    UPSTREAM_ERROR: the connection to the upstream svc was lost before its answer was complete [final  ]
    CONFLICT: it is not known whether the first call with this idempotency_key had its effect [final in_doubt ]
    "#);
    assert_eq!(shop.orders(), 1);
}

/// T8: a service that honours the key gets the same request again, with the same key, and answers as it did.
#[tokio::test]
async fn a_service_that_knows_the_key_gets_it_again() {
    let shop = Shop::start(true, || Act::Cut(Vec::new())).await;
    let world = World::new(
        &shop.service,
        UPSTREAM,
        &tool("recovery.downstream_key.window_seconds = 3600"),
    );
    let reply = world.keyed("svc.order", ORDER, "k").await;
    assert_eq!(
        told(&reply),
        "ok {\"order\":0} ",
        "the attempt itself is repeated"
    );
    assert_eq!(shop.orders(), 1);
    assert_eq!(shop.service.seen().len(), 2);
}

/// T8: an answer that is sent twice does not become the answer of the next call.
#[tokio::test]
async fn an_answer_that_comes_twice_is_not_the_next_ones() {
    let service = Service::start(|seen, before| {
        let body = format!(r#"{{"for":{}}}"#, seen.text());
        let one = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if before == 0 {
            Act::Raw(one.repeat(2).into_bytes())
        } else {
            Act::Raw(one.into_bytes())
        }
    })
    .await;
    let world = World::new(&service, UPSTREAM, &tool("recovery = 'retry'"));
    for n in 1..=5 {
        let arguments = format!(r#"{{"n": {n}}}"#);
        let reply = world.keyed("svc.order", &arguments, &format!("k{n}")).await;
        assert_eq!(reply.data["for"]["n"], n, "{reply:?}");
    }
}

/// T8: an upstream that is dead has done nothing: the key is free, and the same call works when it is back.
#[tokio::test]
async fn a_dead_upstream_has_done_nothing() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let text = format!(
        "[[upstream]]\nname = 'svc'\nbase_url = 'http://{free}/base'\nallow_private = ['loopback']\nbreaker.failures = 0\n{UPSTREAM}\n{}",
        tool("")
    );
    let world = World::of(&toml::from_str(&text).unwrap());
    let first = world.keyed("svc.order", ORDER, "k").await;
    insta::assert_snapshot!(told(&first), @r#"UPSTREAM_ERROR: the upstream svc could not be reached; nothing was sent [retryable  ]"#);
    let second = world.keyed("svc.order", ORDER, "k").await;
    assert_eq!(told(&second), told(&first), "not in doubt");
}

/// T8, A8: a call that changed something counts as done, even if its answer is unreadable.
#[tokio::test]
async fn an_effect_with_an_unreadable_answer_happened() {
    let service = Service::start(|seen, _| {
        let kind = vec![("content-type", "application/json".to_owned())];
        match seen.text().replace(' ', "").as_str() {
            r#"{"n":1}"# => answer(200, &format!("\"{}\"", "x".repeat(5 * 1024 * 1024))),
            r#"{"n":2}"# => Act::Answer(200, kind, b"\"a\xff\"".to_vec()),
            r#"{"n":3}"# => Act::Answer(200, kind, b"<html>".to_vec()),
            _ => answer(201, r#"{"id": "x"}"#),
        }
    })
    .await;
    let output = "output = { type = 'object', properties = { id = { type = 'integer' } } }\nresponse.on_mismatch = 'refuse'";
    let world = World::new(&service, UPSTREAM, &tool(output));
    let mut lines = Vec::new();
    for n in 1..=4 {
        let reply = world
            .keyed("svc.order", &format!(r#"{{"n": {n}}}"#), &format!("k{n}"))
            .await;
        lines.push(told(&reply));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    ok null ANSWER_UNREADABLE,ANSWER_NOT_AS_DECLARED
    ok null ANSWER_UNREADABLE,ANSWER_NOT_AS_DECLARED
    ok null ANSWER_UNREADABLE,ANSWER_NOT_AS_DECLARED
    ok {"id":"x"} ANSWER_NOT_AS_DECLARED
    "#);
}

/// T8: while the effect may be under way, a claim and a record of the intent are kept, under the caller's key or one of ours. A call
/// without a key that fails stays in doubt for an operator, and the caller is warned not to send it again blindly.
#[tokio::test]
async fn an_intent_is_kept_before_the_effect() {
    for key in [Some("k"), None] {
        let service = Service::start(|_, _| Act::Wait(Arc::new(Notify::new()))).await;
        let world = Arc::new(World::new(&service, UPSTREAM, &tool("")));
        let calling = world.clone();
        let call = tokio::spawn(async move {
            match key {
                Some(key) => calling.keyed("svc.order", ORDER, key).await,
                None => calling.call("svc.order", ORDER).await,
            }
        });
        service.arrival().await;
        let of_state = |state| ClaimQuery {
            state: Some(state),
            limit: 10,
            ..ClaimQuery::default()
        };
        let intents = LogQuery {
            kind: Some(RecordKind::Intent),
            limit: 10,
            ..LogQuery::default()
        };
        // The process could die here.
        assert_eq!(
            world
                .store
                .claims(&of_state(ClaimState::Running))
                .await
                .unwrap()
                .len(),
            1
        );
        assert_eq!(
            Log::records(&*world.store, &intents).await.unwrap().len(),
            1
        );
        assert!(!service.last().header("idempotency-key").is_empty());
        let reply = call.await.unwrap();
        let error = reply.error.unwrap();
        assert!(!error.details.retryable || key.is_some(), "{error:?}");
        assert_eq!(
            world
                .store
                .claims(&of_state(ClaimState::InDoubt))
                .await
                .unwrap()
                .len(),
            1
        );
    }
}

/// A5, A17: a key that is derived from declared fields makes an order once per order id, even if the other arguments differ.
#[tokio::test]
async fn declared_fields_make_the_key() {
    let service = Service::start(|_, before| answer(200, &format!("{before}"))).await;
    let fields = tool("key_fields = ['/n']").replace(
        "parameters = [{ name = \"n\", kind = \"integer\" }]",
        "parameters = [{ name = \"n\", kind = \"integer\" }, { name = \"note\", required = false }]",
    );
    let world = World::new(&service, UPSTREAM, &fields);
    let mut lines = Vec::new();
    for arguments in [
        r#"{"n": 1, "note": "a"}"#,
        r#"{"n": "1", "note": "a"}"#,
        r#"{"n": 1, "note": "b"}"#,
        r#"{"n": 123456789012345678, "note": "a"}"#,
        r#"{"n": 123456789012345679, "note": "a"}"#,
    ] {
        lines.push(told(&world.call("svc.order", arguments).await));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    ok 0 
    ok 0 
    CONFLICT: the idempotency_key was used for other arguments, which differ at /note [final key_reused ]
    ok 1 
    ok 2
    "#);
    assert_eq!(service.seen().len(), 3);
}

/// T8: an attempt whose answer was lost may have had its effect, even if the next one is refused, meets a closed port, or meets the
/// breaker. The key stays taken, and the same call is made again with the same key.
#[tokio::test]
async fn a_later_attempt_does_not_speak_for_an_earlier_one() {
    let refusals: [fn() -> Act; 4] = [
        || answer(429, "{}"),
        || answer(400, "{}"),
        || answer(409, "{}"),
        || answer(404, "{}"),
    ];
    for refuse in refusals {
        let service = Service::start(move |_, before| match before {
            0 => Act::Cut(Vec::new()),
            1 | 2 => refuse(),
            _ => answer(200, "{}"),
        })
        .await;
        let world = World::new(
            &service,
            "retries = { attempts_max = 2, backoff_ms = 1, backoff_max_ms = 2 }",
            &tool("recovery.downstream_key.window_seconds = 3600"),
        );
        let first = world.keyed("svc.order", ORDER, "k").await;
        assert_eq!(
            told(&first),
            "UPSTREAM_ERROR: the connection to the upstream svc was lost before its answer was complete [retryable  ]"
        );
        let other = world.keyed("svc.order", r#"{"n": 2}"#, "k").await;
        assert!(told(&other).contains("key_reused"), "{other:?}");
        // Alone, the same answer means that nothing was done.
        assert_eq!(service.seen().len(), 2);
    }
    let service = Service::start(|_, before| match before {
        0 => Act::Cut(Vec::new()),
        _ => answer(200, "{}"),
    })
    .await;
    let world = World::new(
        &service,
        "breaker = { failures = 1, open_ms = 60000 }\nretries = { backoff_ms = 1, backoff_max_ms = 2 }",
        &tool("recovery.downstream_key.window_seconds = 3600"),
    );
    let first = world.keyed("svc.order", ORDER, "k").await;
    assert!(
        told(&first).contains("was lost before its answer"),
        "{first:?}"
    );
}

/// T8: a status that leaves open what became of the request is a doubt, also where a later attempt is refused: the key stays taken. What
/// the operator declares to be without effect leaves none.
#[tokio::test]
async fn a_status_that_leaves_it_open_is_not_forgotten() {
    let mut lines = Vec::new();
    for (status, rule) in [
        (502, ""),
        (503, ""),
        (504, ""),
        (429, ""),
        (
            503,
            "errors = [{ status = '503', code = 'UPSTREAM_ERROR', without_effect = true }]",
        ),
    ] {
        let service = Service::start(move |_, before| match before {
            0 => answer(status, "{}"),
            _ => answer(409, "{}"),
        })
        .await;
        let recovery = format!("recovery.downstream_key.window_seconds = 3600\n{rule}");
        let world = World::new(
            &service,
            "retries = { attempts_max = 2, backoff_ms = 1, backoff_max_ms = 2 }",
            &tool(&recovery),
        );
        let first = world.keyed("svc.order", ORDER, "k").await;
        let other = world.keyed("svc.order", r#"{"n": 2}"#, "k").await;
        let is_taken = told(&other).contains("key_reused");
        lines.push(format!("{} taken: {is_taken}", told(&first)));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    UPSTREAM_ERROR: the upstream svc answered with status 502 [retryable  ] taken: true
    UPSTREAM_ERROR: the upstream svc answered with status 503 [retryable  ] taken: true
    TIMEOUT: the upstream svc answered with status 504 [retryable  ] taken: true
    CONFLICT: the upstream svc answered with status 409 [final  409] taken: false
    CONFLICT: the upstream svc answered with status 409 [final  409] taken: false
    "#);
}

/// A17, T8: a write without a key whose connection is cut is settled by a look-up that no caller asks for, also after the
/// process that sent it has died: its arguments are with its intent.
#[tokio::test]
async fn a_doubt_that_nobody_repeats_is_looked_up() {
    let declared = "request = { method = \"POST\", path = \"/orders\" }\n\
        reconcile.request = { method = \"GET\", path = \"/orders\", query = { key = \"{idempotency_key}\" }, headers = { X-N = \"{n}\" } }";
    for (commits, state) in [(true, ClaimState::Succeeded), (false, ClaimState::Released)] {
        for look_up in ["", declared] {
            let shop = Shop::start(commits, || Act::Cut(Vec::new())).await;
            let entry = format!("recovery.reconcile.grace_seconds = 0\n{look_up}");
            let world = World::new(&shop.service, UPSTREAM, &tool(&entry));
            assert!(!world.call("svc.order", ORDER).await.ok);
            let settled = world
                .executor
                .ask_about_doubts(&mut Doubts::default())
                .await;
            assert_eq!(settled.unwrap(), 1, "{look_up}");
            let asked = shop.service.last();
            if look_up.is_empty() {
                assert_eq!(
                    asked.line(),
                    "POST /base/tools/svc.order/reconcile {\"n\":1}"
                );
            } else {
                assert_eq!(asked.header("x-n"), "1");
            }
            let query = ClaimQuery {
                limit: 2,
                ..ClaimQuery::default()
            };
            let claims = world.store.claims(&query).await.unwrap();
            let states: Vec<_> = claims.iter().map(|claim| claim.state).collect();
            assert_eq!(states, [state]);
            assert_eq!(shop.orders(), usize::from(commits));
            let resolutions = LogQuery {
                kind: Some(RecordKind::Resolution),
                limit: 10,
                ..LogQuery::default()
            };
            let records = Log::records(&*world.store, &resolutions).await.unwrap();
            assert_eq!(records.len(), 1);
        }
    }
}

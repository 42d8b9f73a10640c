//! Rate limits when the connection or the server breaks: a call is never admitted without being counted, and a
//! lost counter starts again from zero.

use std::time::Duration;

use countersign::ledger::{Claims as _, Pace, PaceAnswer, PaceKey, PaceRule, Paces as _};
use countersign_testkit::postgres::{TempPostgres, shared_postgres};
use tokio_postgres::Client;

use crate::proxy::{Proxy, Side};
use crate::{MESSAGES, connect, open};

fn window(name: &str, calls_max: u32) -> Pace {
    Pace {
        key: PaceKey::of(&[name.as_bytes()]),
        rule: PaceRule::Window {
            calls_max,
            within: Duration::from_hours(24),
        },
    }
}

/// Returns the counts of all keys, in ascending order.
async fn counts(client: &Client) -> Vec<i64> {
    let rows = client.query("SELECT calls FROM pace ORDER BY calls", &[]);
    rows.await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Wherever the connection is cut, the call is admitted and counted: on both keys alike, once or twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_counted_wherever_the_connection_is_cut() {
    let url = shared_postgres().fresh_database();
    let proxy = Proxy::start(&url).await;
    let store = open(&proxy.url(&url)).await;
    let client = connect(&url).await;
    let paces = [window("a", 10_000), window("b", 10_000)];
    let (mut before, mut cuts) = (0, 0);
    for side in [Side::Store, Side::Server] {
        for messages in 0..MESSAGES / 4 {
            proxy.cut_after(messages, side);
            let answer = store.keep_pace(&paces).await.unwrap();
            assert_eq!(answer, PaceAnswer::Admitted, "{messages} of {side:?}");
            cuts += u32::from(proxy.has_cut());
            let [a, b] = counts(&client).await[..] else {
                unreachable!("two keys");
            };
            assert_eq!(a, b, "{messages} of {side:?}");
            let counted = a - before;
            assert!(
                (1..=2).contains(&counted),
                "{counted}: {messages} of {side:?}"
            );
            before = a;
        }
    }
    assert!(cuts >= 6, "{cuts} cuts");
}

/// Without a server no call is admitted.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_reached_admits_nobody() {
    let url = shared_postgres().fresh_database();
    let proxy = Proxy::start(&url).await;
    let store = open(&proxy.url(&url)).await;
    proxy.shut();
    assert!(store.keep_pace(&[window("a", 1)]).await.is_err());
    proxy.open();
    let answer = store.keep_pace(&[window("a", 1)]).await.unwrap();
    assert_eq!(answer, PaceAnswer::Admitted);
}

/// The table is unlogged: a crash empties it, and counting goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_forgets_the_counts() {
    let server = TempPostgres::start();
    let store = open(&server.fresh_database()).await;
    let paces = [window("a", 1)];
    for _ in 0..2 {
        let answer = store.keep_pace(&paces).await.unwrap();
        assert_eq!(answer, PaceAnswer::Admitted);
        let answer = store.keep_pace(&paces).await.unwrap();
        assert!(matches!(answer, PaceAnswer::Limited { .. }), "{answer:?}");
        server.restart_immediate();
    }
}

/// Only expired rows are swept.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_is_swept() {
    let url = shared_postgres().fresh_database();
    let store = open(&url).await;
    let client = connect(&url).await;
    for (name, calls) in [("old", 2), ("kept", 1), ("new", 3)] {
        for _ in 0..calls {
            let answer = store.keep_pace(&[window(name, 10)]).await.unwrap();
            assert_eq!(answer, PaceAnswer::Admitted);
        }
    }
    // One expired long ago; the other only just, and the process that inserted it may still look for it.
    for (name, ago) in [("old", "2 minutes"), ("kept", "5 seconds")] {
        let key = PaceKey::of(&[name.as_bytes()]).0;
        let over = format!(
            "UPDATE pace SET until = extract(epoch FROM now() - interval '{ago}') * 1000000 \
             WHERE key = $1"
        );
        let changed = client.execute(&over, &[&key.as_slice()]).await.unwrap();
        assert_eq!(changed, 1, "{name}");
    }
    assert!(store.sweep(1).await.unwrap().is_empty());
    assert_eq!(counts(&client).await, [1, 3]);
}

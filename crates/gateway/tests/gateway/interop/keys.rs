//! Idempotency keys: missing, too short or too long, repeated, for another call, and concurrent.

use countersign_testkit::patience::within;
use insta::assert_snapshot;

use super::*;

/// A5: every `POST` needs a valid key.
#[tokio::test]
async fn a_call_without_a_proper_key_is_not_made() {
    let place = Place::default();
    let world = world(&place).await;
    let check = async |path: &str, key: Option<&str>| {
        let key = key.map(|key| ("idempotency-key", key));
        let headers: Vec<_> = key.into_iter().collect();
        let body = r#"{"arguments": {"sku": "a"}}"#;
        let answer = send(&world, "POST", path, &headers, body).await;
        format!("{} {}", answer.status, answer.json())
    };
    let (acp, ucp) = ("/acp/tools/orders.place", "/ucp/tools/orders.place");
    assert_snapshot!(check(acp, None).await, @r#"400 {"code":"idempotency_key_required","message":"every POST needs the header Idempotency-Key","type":"invalid_request"}"#);
    assert_snapshot!(check(ucp, None).await, @r#"400 {"code":"idempotency_key_required","content":"every POST needs the header Idempotency-Key"}"#);
    assert_snapshot!(check(ucp, Some("k_1")).await, @r#"400 {"code":"idempotency_key_too_short","content":"the Idempotency-Key has fewer than 22 characters, which cannot be 128 bits; send a UUID"}"#);
    let long = "k".repeat(256);
    assert_snapshot!(check(acp, Some(&long)).await, @r#"400 {"code":"idempotency_key_too_long","message":"the Idempotency-Key has more than 255 characters","type":"invalid_request"}"#);
    assert_snapshot!(check(ucp, Some(&long)).await, @r#"400 {"code":"idempotency_key_too_long","content":"the Idempotency-Key has more than 255 characters"}"#);
    // Reads as well: the rule is about every POST.
    assert_snapshot!(check("/acp/tools/test.fail", None).await, @r#"400 {"code":"idempotency_key_required","message":"every POST needs the header Idempotency-Key","type":"invalid_request"}"#);
    assert_eq!(place.runs(), 0);
    // In ACP a key is any 1 to 255 characters; it may also be in the body.
    assert!(check(acp, Some("k")).await.starts_with("200 "));
    assert!(check(ucp, Some(UUID)).await.starts_with("200 "));
    let in_body =
        format!("{{\"arguments\": {{\"sku\": \"b\"}}, \"idempotency_key\": \"{UUID}_\"}}");
    let answer = send(&world, "POST", ucp, &[], &in_body).await;
    assert_eq!((answer.status, place.runs()), (200, 3));
}

/// A18: a repeated call gets the first answer, marked as such, with the first status.
#[tokio::test]
async fn the_same_again_is_the_first_answer() {
    for path in ["/acp/tools/orders.place", "/ucp/tools/orders.place"] {
        let place = Place::default();
        let world = world(&place).await;
        let first = call(&world, path, UUID, r#"{"sku": "a", "quantity": 2}"#).await;
        assert_eq!(
            (first.status, first.header("idempotent-replayed")),
            (200, None)
        );
        assert_eq!(first.header("request-id"), Some("r_1"));
        assert_eq!(first.header("idempotency-key"), Some(UUID));
        // Another order of members, 2.0 for 2, and a string that the binder reads as the number: the same call.
        for same in [
            r#"{"quantity": 2, "sku": "a"}"#,
            r#"{"sku": "a", "quantity": 2.0}"#,
            r#"{"sku": "a", "quantity": 2e0}"#,
            r#"{"sku": "a", "quantity": "2"}"#,
        ] {
            let again = call(&world, path, UUID, same).await;
            assert_eq!(again.status, 200, "{same}: {again:?}");
            assert_eq!(again.header("idempotent-replayed"), Some("true"), "{same}");
            assert_eq!(again.json()["data"], first.json()["data"], "{same}");
        }
        assert_eq!(place.runs(), 1, "{path}");
    }
}

/// The key belongs to another call: 422 in ACP, 409 in UCP, and the place is named.
#[tokio::test]
async fn a_key_is_for_one_call() {
    let place = Place::default();
    let world = world(&place).await;
    let check = async |path: &str, arguments: &str| {
        let answer = call(&world, path, UUID, arguments).await;
        format!("{} {}", answer.status, answer.json())
    };
    let (acp, ucp) = ("/acp/tools/orders.place", "/ucp/tools/orders.place");
    let first = r#"{"sku": "a", "quantity": 2}"#;
    assert!(check(acp, first).await.starts_with("200 "));
    let other = r#"{"sku": "a", "quantity": 3}"#;
    assert_snapshot!(check(acp, other).await, @r#"422 {"code":"idempotency_conflict","message":"the idempotency_key was used for other arguments, which differ at /quantity; use a new idempotency_key for a new call, or the first arguments for a retry","param":"$.arguments.quantity","type":"invalid_request"}"#);
    assert_snapshot!(check(ucp, other).await, @r#"409 {"code":"idempotency_conflict","content":"the idempotency_key was used for other arguments, which differ at /quantity; use a new idempotency_key for a new call, or the first arguments for a retry"}"#);
    // The same user, tool and key are the same call under either path.
    assert!(check(ucp, first).await.starts_with("200 "));
    // Another tool is another path, and so has other keys.
    assert!(
        check("/acp/tools/orders.note", other)
            .await
            .starts_with("200 ")
    );
    assert_eq!(place.runs(), 2);
}

/// ACP compares bodies, in which null differs from absent. The gateway compares what the tool is given: null
/// for an optional member is absent, so that this is the same call, and is not made twice.
#[tokio::test]
async fn null_for_something_optional_is_the_same_call() {
    let place = Place::default();
    let world = world(&place).await;
    let path = "/acp/tools/orders.place";
    let absent = call(&world, path, UUID, r#"{"sku": "a"}"#).await;
    assert_eq!(absent.status, 200);
    let null = call(&world, path, UUID, r#"{"sku": "a", "note": null}"#).await;
    assert_eq!(null.status, 200, "{null:?}");
    assert_eq!(null.header("idempotent-replayed"), Some("true"));
    assert_eq!(place.runs(), 1);
}

/// Two real concurrent calls: the reply to the second one says when to come back.
#[tokio::test]
async fn a_call_that_runs_is_not_run_again() {
    for (path, body) in [
        (
            "/acp/tools/orders.place",
            "{\"code\":\"idempotency_in_flight\",\"message\":\"the first call with this idempotency_key has not finished; wait for retry_after_ms, then send the same call again with the same key\",\"type\":\"invalid_request\"}",
        ),
        (
            "/ucp/tools/orders.place",
            "{\"code\":\"idempotency_in_flight\",\"content\":\"the first call with this idempotency_key has not finished; wait for retry_after_ms, then send the same call again with the same key\"}",
        ),
    ] {
        let place = Place::default();
        let world = world(&place).await;
        let arguments = r#"{"sku": "a", "waits": true}"#;
        let first = call(&world, path, UUID, arguments);
        let second = async {
            within(place.begun.notified()).await;
            let second = call(&world, path, UUID, arguments).await;
            place.go_on.notify_one();
            second
        };
        let (first, second) = within(async { tokio::join!(first, second) }).await;
        assert_eq!((first.status, second.status), (200, 409), "{second:?}");
        assert_eq!(second.body, body);
        let seconds: u64 = second.header("retry-after").unwrap().parse().unwrap();
        assert!(seconds >= 1, "{second:?}");
        let third = call(&world, path, UUID, arguments).await;
        assert_eq!(third.header("idempotent-replayed"), Some("true"));
        assert_eq!(third.json()["data"], first.json()["data"]);
        assert_eq!(place.runs(), 1);
    }
}

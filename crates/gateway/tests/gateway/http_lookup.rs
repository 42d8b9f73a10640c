//! Looking up a finished call: by the id that the caller chose, and at once.

use countersign::Principal;
use countersign::sample::{AddNote, ClearNotes};
use countersign::{Catalog, contract::EvidenceRecord};
use countersign_gateway::Settings;
use countersign_gateway::identity::Identity;
use countersign_testkit::postgres::shared_postgres;
use serde_json::{Value, json};

use crate::http_client::{Answer, get, post, send};
use crate::parts::Parts;
use crate::world::World;

/// Adds a note under this id; returns the id of its evidence.
async fn note(world: &World, header: Option<&str>, body: Value) -> String {
    let headers: Vec<_> = header.into_iter().map(|id| ("x-request-id", id)).collect();
    let path = "/v1/tools/notes.add";
    let reply = send(world, "POST", path, &headers, &body.to_string()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let id = reply.json()["evidence"]["snapshot_id"].clone();
    id.as_str().unwrap().to_owned()
}

/// Returns the records of a call: their ids, and the call's id in each.
fn records(answer: &Answer) -> Vec<(String, String)> {
    let json = answer.json();
    let records = json["records"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer:?}"));
    let record = |shown: &Value| -> EvidenceRecord {
        serde_json::from_value(shown["record"].clone()).unwrap()
    };
    let named = |record: EvidenceRecord| {
        (
            record.id.to_string(),
            record.request_id.unwrap().to_string(),
        )
    };
    records.iter().map(record).map(named).collect()
}

/// A2, A15: only the user finds a call by the id that they chose, in the header or in the body; the record has
/// a digest in its place.
#[tokio::test]
async fn a_chosen_id_finds_the_call_for_its_user_alone() {
    let world = World::start().await;
    let mine = world.beside(Principal::user("u_1")).await;
    let others = world.beside(Principal::user("u_2")).await;
    let auditor = Principal::user("auditor").scope("calls:read");
    let auditor = world.beside(auditor).await;
    let (in_header, in_body) = ("order-of-Quuxington", "mail.of.Quuxington");
    let first = note(
        &mine,
        Some(in_header),
        json!({"arguments": {"text": "tea"}}),
    )
    .await;
    let body = json!({"request_id": in_body, "arguments": {"text": "milk"}});
    let second = note(&mine, Some("ignored"), body).await;
    for (chosen, id) in [(in_header, &first), (in_body, &second)] {
        let path = format!("/v1/calls/{chosen}");
        let found = get(&mine, &path).await;
        assert!(!found.body.contains("Quuxington"), "{found:?}");
        let found = records(&found);
        let [(record, digest)] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(record, id);
        assert!(digest.starts_with("rq_") && digest.len() == 35, "{digest}");
        // The list has the digest, which finds the call as well.
        let by_digest = get(&mine, &format!("/v1/calls/{digest}")).await;
        assert_eq!(records(&by_digest), found);
        for path in [path.clone(), format!("{path}?user=u_1")] {
            assert_eq!(records(&get(&auditor, &path).await), found, "{path}");
        }
        let elsewhere = get(&auditor, &format!("{path}?user=u_2")).await;
        assert_eq!(elsewhere.status, 404);
        // For another user it is like a missing call.
        for asked in [chosen, digest] {
            let hidden = get(&others, &format!("/v1/calls/{asked}")).await;
            let never = get(&others, "/v1/calls/never").await;
            assert_eq!(
                (hidden.status, hidden.body.replace(asked, "never")),
                (404, never.body)
            );
        }
        let named = get(&others, &format!("{path}?user=u_1")).await;
        assert_eq!((named.status, named.code().as_str()), (403, "FORBIDDEN"));
    }
    let missing = get(&mine, "/v1/calls/ignored").await;
    assert_eq!(missing.status, 404);
    let listed = get(&mine, "/v1/calls").await;
    assert!(!listed.body.contains("Quuxington"), "{listed:?}");
}

/// A2: a reused id is answered with a warning that names the first call, and finds both.
#[tokio::test]
async fn a_chosen_id_that_is_used_again_is_warned_of() {
    let world = World::start().await;
    let first = note(&world, Some("r_1"), json!({"arguments": {"text": "tea"}})).await;
    let body = r#"{"arguments": {"text": "milk"}}"#;
    let again = post(&world, "/v1/tools/notes.add", body).await.json();
    assert_eq!(again["warnings"][0]["code"], "REQUEST_ID_REUSED");
    let message = again["warnings"][0]["message"].as_str().unwrap();
    assert!(message.contains(&first), "{message}");
    let both = records(&get(&world, "/v1/calls/r_1").await);
    assert_eq!(both.len(), 2);
    // An id that the gateway generated is never reused, and is recorded as it is.
    let body = r#"{"arguments": {"text": "bread"}}"#;
    let fresh = send(&world, "POST", "/v1/tools/notes.add", &[], body).await;
    let fresh = fresh.json();
    assert_eq!(fresh["warnings"], json!([]));
    let made = fresh["request_id"].as_str().unwrap();
    let found = records(&get(&world, &format!("/v1/calls/{made}")).await);
    assert_eq!(found[0].1, made);
}

/// A9: the evidence that a reply names can be fetched at once, even if its commit was not waited for.
#[tokio::test]
async fn the_evidence_of_a_plain_read_is_there_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = shared_postgres();
    let stores = [
        Parts::on_sqlite(folder.path()),
        Parts::on_postgres(&postgres.fresh_database()).await,
    ];
    for parts in stores {
        let server = parts.serve(Identity::loopback()).await;
        for number in 0..30 {
            let body = json!({"request_id": format!("r_{number}"), "user_id": "u_1"});
            let called = server.send("POST", "/v1/tools/notes.list", None, Some(body));
            let (status, _, reply) = called.await;
            assert_eq!(status, 200, "{reply}");
            let id = reply["evidence"]["snapshot_id"].as_str().unwrap();
            let by_evidence = format!("/v1/evidence/{id}");
            let (status, _, shown) = server.send("GET", &by_evidence, None, None).await;
            assert_eq!(
                (status, &shown["record"]["id"]),
                (200, &json!(id)),
                "{number}"
            );
            let by_call = format!("/v1/calls/r_{number}");
            let (status, _, shown) = server.send("GET", &by_call, None, None).await;
            let found = &shown["records"][0]["record"]["id"];
            assert_eq!((status, found), (200, &json!(id)), "{number}");
        }
    }
}

/// A4, A18: a dry run is answered like the call itself: with the stored answer, or the refusal of the key.
#[tokio::test]
async fn a_dry_run_answers_as_the_call_would() {
    let world = World::start().await;
    let path = "/v1/tools/notes.add";
    let run = async |text: &str, dry_run: bool| {
        let body =
            json!({"arguments": {"text": text}, "idempotency_key": "k_1", "dry_run": dry_run});
        send(&world, "POST", path, &[], &body.to_string()).await
    };
    let first = run("tea", false).await.json();
    let again = run("tea", true).await;
    assert_eq!(
        (again.status, again.header("idempotent-replayed")),
        (200, Some("true"))
    );
    let again = again.json();
    assert_eq!(
        (&again["data"], &again["evidence"], &again["dry_run"]),
        (&first["data"], &first["evidence"], &json!(true))
    );
    assert_eq!(again["warnings"][0]["code"], "WOULD_REPLAY");
    let reused = run("milk", true).await;
    insta::assert_snapshot!(reused.told(), @"409 CONFLICT /text: the idempotency_key was used for other arguments, which differ at /text; use a new idempotency_key for a new call, or the first arguments for a retry");
    assert_eq!(reused.json()["error"]["details"]["reason"], "key_reused");
    let notes = post(&world, "/v1/tools/notes.list", "{}").await.json();
    assert_eq!(notes["data"].as_array().unwrap().len(), 1);
}

/// A4, A13: a dry run says that the call itself would need the user, and asks no one.
#[tokio::test]
async fn a_dry_run_says_that_the_user_would_be_asked() {
    let catalog = Catalog::builder().tool(AddNote).tool(ClearNotes);
    let catalog = catalog.build().unwrap();
    let world = World::made(Settings::default(), catalog, |builder| builder).await;
    let tried = post(&world, "/v1/tools/notes.clear", r#"{"dry_run": true}"#).await;
    assert_eq!(tried.status, 200, "{tried:?}");
    let expected = json!({
        "code": "NEEDS_USER_CONFIRMATION",
        "message": "the call itself answers NEEDS_USER_CONFIRMATION until the user has confirmed it",
    });
    let warnings = tried.json()["warnings"].clone();
    assert!(
        warnings.as_array().unwrap().contains(&expected),
        "{warnings}"
    );
    let open = get(&world, "/v1/approvals?state=pending").await.json();
    assert_eq!(open["approvals"], json!([]), "{open}");
}

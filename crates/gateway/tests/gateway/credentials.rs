//! The credential of a call: the record names it, and never shows it (A3, A15).

use std::time::Duration;

use countersign::archive::verify::Verification;
use countersign::contract::ActorType;
use countersign::ledger::{Commit, CommitAnswer, DocumentKey, DocumentRead, DocumentWrite};
use countersign::sequencer::{LastStop, Sequencer};
use countersign::vault::SHARED;
use countersign_evidence::note::SigningKey;
use countersign_gateway::identity::Identity;
use countersign_testkit::ledger::build::entry;
use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use crate::identity::{key_of, operator, policy};
use crate::parts::{Parts, Server};
use crate::signer::Signer;
use crate::tokens::with_file;

const OPEN: &str = "[defaults]\nunlisted = \"allow\"";

/// Calls with a credential, and fetches the record with it.
async fn record(server: &Server, credential: &str) -> Value {
    let body = json!({"arguments": {}});
    let path = "/v1/tools/notes.list";
    let (status, _, reply) = server
        .send("POST", path, Some(credential), Some(body))
        .await;
    assert_eq!(status, 200, "{reply}");
    let id = reply["evidence"]["snapshot_id"].as_str().unwrap();
    let path = format!("/v1/evidence/{id}");
    let (status, _, mut shown) = server.send("GET", &path, Some(credential), None).await;
    assert_eq!(status, 200, "{shown}");
    shown["record"].take()
}

#[tokio::test]
async fn the_record_names_the_api_key() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let identity = Identity::new(parts.clock(), policy(OPEN)).api_keys(keys.clone());
    let server = parts.serve(identity).await;
    let new = key_of(ActorType::User, "u_1");
    let issued = keys.create(new, &operator()).await.unwrap();
    let record = record(&server, &issued.token).await;
    let expected = json!({"type": "api_key", "id": issued.key.id});
    assert_eq!(record["credential"], expected);
    // The secret may have an underscore of its own.
    let secret = issued.token.splitn(3, '_').nth(2).unwrap();
    assert!(!record.to_string().contains(secret));
}

/// The id of a token is the issuer's text: the record has a digest under the user's key, which is the same for every
/// call with the token and another one for another user.
#[tokio::test]
async fn the_record_names_the_token() {
    let parts = Parts::new();
    let signer = Signer::new("k1", Algorithm::EdDSA);
    let (identity, _folder) = with_file(&parts, &[&signer], OPEN);
    let server = parts.serve(identity).await;
    let credential = async |claims: Value| {
        let mut record = record(&server, &signer.token(&claims)).await;
        assert!(!record.to_string().contains("Quuxington"), "{record}");
        record["credential"].take()
    };
    let jti = "session-of-Quuxington";
    let named = credential(json!({"jti": jti})).await;
    assert_eq!(
        (&named["type"], &named["issuer"]),
        (&json!("token"), &json!("https://login.example.com/"))
    );
    let digest = named["id"].as_str().unwrap();
    let is_digest = |text: &str| text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    assert!(is_digest(digest), "{digest}");
    assert_eq!(credential(json!({"jti": jti})).await, named);
    assert_ne!(credential(json!({"jti": "another"})).await, named);
    assert_ne!(credential(json!({"jti": jti, "sub": "u_2"})).await, named);
    let without = json!({"type": "token", "issuer": "https://login.example.com/"});
    assert_eq!(credential(json!({})).await, without);
}

/// The issuer's own id of the token is in the payload, for callers that may open it.
#[tokio::test]
async fn the_payload_has_the_id_of_the_token() {
    let parts = Parts::new();
    let signer = Signer::new("k1", Algorithm::EdDSA);
    let open = format!("grants = [\"evidence:open\"]\n{OPEN}");
    let (identity, _folder) = with_file(&parts, &[&signer], &open);
    let server = parts.serve(identity).await;
    let token = signer.token(&json!({"jti": "t_7", "scope": "evidence:open"}));
    let id = record(&server, &token).await["id"].clone();
    let path = format!("/v1/evidence/{}/open", id.as_str().unwrap());
    let reason = json!({"reason": "audit 8"});
    let (status, _, opened) = server.send("POST", &path, Some(&token), Some(reason)).await;
    assert_eq!((status, &opened["payload"]["jti"]), (200, &json!("t_7")));
}

/// A16: an API key that was revoked, and whose old row was put back, works again; the log says that it was
/// revoked, and a verification names the record.
#[tokio::test]
async fn a_revoked_key_that_was_put_back_is_named() {
    let parts = Parts::new();
    let keys = parts.api_keys();
    let new = key_of(ActorType::User, "u_1");
    let issued = keys.create(new, &operator()).await.unwrap();
    let row = DocumentKey {
        user_id: SHARED.to_owned(),
        collection: "api_keys".to_owned(),
        id: issued.key.id.clone(),
    };
    let old = parts.store.document(&row).await.unwrap();
    keys.revoke(&issued.key.id, &operator()).await.unwrap();
    let archive = parts.archive(&keys);
    let signing = SigningKey::from_seed("example.com/log", &[7; 32]).unwrap();
    let sequencer = Sequencer::builder(parts.store.clone(), signing).clock(parts.clock());
    let mut sequencer = sequencer.start(LastStop::default()).await.unwrap();
    sequencer.tick().await.unwrap();
    let codes = async || {
        // The keys are compared as they are now.
        parts.clock.advance(Duration::from_secs(2));
        let whole = Verification::default();
        let report = archive.verify_all(&whole, |_, _| {}).await.unwrap();
        let findings = report.findings.into_iter();
        findings
            .map(|finding| finding.fault.code())
            .collect::<Vec<_>>()
    };
    assert_eq!(codes().await, [""; 0]);
    let now = parts.store.document(&row).await.unwrap();
    let put_back = DocumentWrite {
        pseudonym: String::new(),
        key: row.clone(),
        version: now.version,
        body: old.body.map(|body| body.to_vec()),
        entries: Vec::new(),
        tracked: true,
    };
    let read = DocumentRead {
        key: row,
        version: now.version,
    };
    let written = Commit {
        key: None,
        reads: vec![read],
        shapes: Vec::new(),
        writes: vec![put_back],
        spend: None,
        record: entry("ev_attack", "").into(),
    };
    let answer = parts.store.commit(written).await.unwrap();
    assert_eq!(answer, CommitAnswer::Committed);
    assert_eq!(codes().await, ["undone", "document_changed"]);
}

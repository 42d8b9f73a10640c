//! Small builders: a part that a case does not mention has a plain value.

#![expect(
    clippy::missing_panics_doc,
    reason = "a builder that is given nonsense fails its test"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use countersign::ledger::{
    Binding, Claim, ClaimAnswer, ClaimRequest, Commit, CommitAnswer, Disposal, Disposed,
    DocumentKey, DocumentRead, DocumentWrite, Draw, Entry, Error, Held, HeldState, IndexEntry,
    KeyChange, KeyDigest, Lapse, Outcome, PotKey, ReservationId, Reserve, Scope, ShapeRead, Store,
    Told,
};
use countersign_contract::evidence::EvidenceRecord;
use countersign_contract::tool::Recovery;
use countersign_contract::{RecordKind, RequestId, SnapshotId, ToolName, canonical};
use countersign_evidence::note::SigningKey;
use jiff::{SignedDuration, Timestamp};

/// Long enough not to be over while a case runs.
pub const HOUR: Duration = Duration::from_hours(1);

/// The least that every store tells apart.
pub const TICK: Duration = Duration::from_millis(1);

/// Returns the duration less one tick.
pub const fn almost(all: Duration) -> Duration {
    all.saturating_sub(TICK)
}

/// The `n`th keys that a store may be opened with. The cases of the contract expect the first.
pub fn bound_to(n: u8) -> Binding {
    let key = SigningKey::from_seed("example.com/log", &[n; 32]).expect("a name of a log");
    Binding::new(format!("in_{n}"), format!("m_{n}"), key.verifying_key())
}

/// The scope of a key of `u_1` for one tool.
pub fn scope(key: &str) -> Scope {
    scope_of("u_1", "orders.create", key)
}

/// A scope.
pub fn scope_of(user_id: &str, tool: &str, key: &str) -> Scope {
    let mut digest = [0; 32];
    for (byte, of_key) in digest.iter_mut().zip(key.bytes()) {
        *byte = of_key;
    }
    Scope {
        user_id: user_id.to_owned(),
        tool: ToolName::new(tool).expect("a name of a tool"),
        key: KeyDigest(digest),
    }
}

/// The fingerprint of the `n`th arguments.
pub const fn fingerprint(n: u8) -> [u8; 32] {
    [n; 32]
}

/// Returns the parts that distinguish the `n`th arguments.
pub fn parts(n: u8) -> Vec<u8> {
    vec![b'p', n]
}

/// A name of a call.
pub fn request_id(text: &str) -> RequestId {
    RequestId::new(text).expect("an id of a call")
}

/// A name of a record.
pub fn record_id(text: &str) -> SnapshotId {
    SnapshotId::new(text).expect("an id of a record")
}

/// A claim of a scope for the first arguments, by an owner who has an hour and whom only an operator
/// replaces.
pub fn request(scope: &Scope) -> ClaimRequest {
    ClaimRequest {
        scope: scope.clone(),
        fingerprint: fingerprint(1),
        parts: parts(1),
        recovery: Recovery::Operator,
        lease: HOUR,
        attempts_max: 10,
        request_id: request_id("req_1"),
        sealed_under: None,
        spend: None,
    }
}

/// A claim by an owner whose lease is over at once.
pub fn lost(scope: &Scope, recovery: Recovery) -> ClaimRequest {
    ClaimRequest {
        recovery,
        lease: Duration::ZERO,
        ..request(scope)
    }
}

/// Returns the request with the `n`th arguments.
pub fn with_arguments(n: u8, request: ClaimRequest) -> ClaimRequest {
    ClaimRequest {
        fingerprint: fingerprint(n),
        parts: parts(n),
        ..request
    }
}

/// Claims a scope that must be free.
pub async fn claimed(store: &dyn Store, request: &ClaimRequest) -> Result<Claim, Error> {
    Ok(ours(store.claim(request).await?))
}

/// The claim of an answer that must be one.
#[track_caller]
pub fn ours(answer: ClaimAnswer) -> Claim {
    match answer {
        ClaimAnswer::Ours(claim) => claim,
        ClaimAnswer::Held(_)
        | ClaimAnswer::Exhausted { .. }
        | ClaimAnswer::Over(_)
        | ClaimAnswer::Erased => {
            unreachable!("the scope should be ours: {answer:?}")
        }
    }
}

/// Returns the state of a scope that a claim must not get.
#[track_caller]
pub fn held(answer: ClaimAnswer) -> Held {
    match answer {
        ClaimAnswer::Held(held) => held,
        ClaimAnswer::Ours(_)
        | ClaimAnswer::Exhausted { .. }
        | ClaimAnswer::Over(_)
        | ClaimAnswer::Erased => {
            unreachable!("the scope should be held: {answer:?}")
        }
    }
}

/// Returns the state of a scope that a commit must not get.
#[track_caller]
pub fn stands(answer: CommitAnswer) -> Held {
    match answer {
        CommitAnswer::Held(held) => held,
        CommitAnswer::Committed
        | CommitAnswer::Moved { .. }
        | CommitAnswer::Fenced
        | CommitAnswer::Erased
        | CommitAnswer::Lapsed => {
            unreachable!("the scope should be held: {answer:?}")
        }
    }
}

/// Looks up the state of a scope that must have been taken.
pub async fn seen(store: &dyn Store, scope: &Scope) -> Result<Held, Error> {
    let held = store.lookup(scope).await?;
    Ok(held.expect("the scope was taken"))
}

/// Success with an answer that is kept for an hour.
pub fn succeeded(reply: &str) -> Outcome {
    Outcome::Succeeded {
        reply: reply.as_bytes().to_vec(),
        keep: HOUR,
    }
}

/// A final failure with an answer that is kept for an hour.
pub fn failed(reply: &str) -> Outcome {
    Outcome::Failed {
        reply: reply.as_bytes().to_vec(),
        keep: HOUR,
    }
}

/// Success with an answer that has expired already.
pub fn succeeded_long_ago() -> Outcome {
    Outcome::Succeeded {
        reply: b"gone".to_vec(),
        keep: Duration::ZERO,
    }
}

/// Returns the state of a scope that has succeeded.
pub fn has_succeeded(reply: &str) -> HeldState {
    HeldState::Succeeded(reply.as_bytes().into())
}

/// Returns the state of a scope that has failed for good.
pub fn has_failed(reply: &str) -> HeldState {
    HeldState::Failed(reply.as_bytes().into())
}

/// Asks for 12.50 EUR for a call of a user, out of a daily pot of an agent and one of the user.
pub fn reserve(id: &str, user_id: &str, lapse: Lapse) -> Reserve {
    let draw = |pot_user_id: &str, holder: &str, window_seconds| Draw {
        pot: PotKey {
            user_id: pot_user_id.to_owned(),
            name: "purchases".to_owned(),
            holder: holder.to_owned(),
            currency: "EUR".to_owned(),
            window_seconds,
        },
        amount: 1_250,
        limit: 10_000,
    };
    Reserve {
        id: ReservationId {
            user_id: user_id.to_owned(),
            id: record_id(id),
        },
        lease: HOUR,
        lapse,
        draws: vec![draw("", "agent:a_1", 86_400), draw(user_id, "", 0)],
    }
}

/// A commit that only keeps a record of `u_1`.
pub fn commit(record: &str) -> Commit {
    Commit {
        key: None,
        reads: Vec::new(),
        shapes: Vec::new(),
        writes: Vec::new(),
        spend: None,
        record: entry(record, "u_1").into(),
    }
}

/// A commit that ends a claim.
pub fn settle(claim: &Claim, outcome: Outcome, record: &str) -> Commit {
    Commit {
        key: Some(KeyChange::Settle {
            claim: claim.clone(),
            outcome,
        }),
        ..commit(record)
    }
}

/// A commit that takes a scope for the first arguments after an attempt, and ends it at once.
pub fn take(scope: &Scope, after: u32, outcome: Outcome, record: &str) -> Commit {
    take_with(1, scope, after, outcome, record)
}

/// A take of a scope for the `n`th arguments.
pub fn take_with(n: u8, scope: &Scope, after: u32, outcome: Outcome, record: &str) -> Commit {
    Commit {
        key: Some(KeyChange::Take {
            scope: scope.clone(),
            fingerprint: fingerprint(n),
            parts: parts(n),
            after,
            outcome,
            request_id: request_id("req_1"),
        }),
        ..commit(record)
    }
}

/// The commit with a document of a tracked collection written, which was at this version.
pub fn writing(commit: Commit, key: &DocumentKey, version: u64, body: Option<&str>) -> Commit {
    with_write(commit, write(key, version, body))
}

/// The commit with a write, and the read that belongs to it.
pub fn with_write(commit: Commit, write: DocumentWrite) -> Commit {
    let mut commit = reading(commit, &write.key, write.version);
    commit.writes.push(write);
    commit
}

/// A write, or a delete, in a tracked collection.
pub fn write(key: &DocumentKey, version: u64, body: Option<&str>) -> DocumentWrite {
    DocumentWrite {
        pseudonym: String::new(),
        key: key.clone(),
        version,
        body: body.map(|body| body.as_bytes().to_vec()),
        entries: Vec::new(),
        tracked: true,
    }
}

/// The commit relying on the shape of a collection of `u_1`.
pub fn scanning(mut commit: Commit, collection: &str, shape: u64) -> Commit {
    commit.shapes.push(ShapeRead {
        user_id: "u_1".to_owned(),
        collection: collection.to_owned(),
        shape,
    });
    commit
}

/// An entry of an index.
pub fn index_entry(index: &str, value: u8) -> IndexEntry {
    IndexEntry {
        index: index.to_owned(),
        value: [value; 32],
    }
}

/// The commit relying on a version of a document.
pub fn reading(mut commit: Commit, key: &DocumentKey, version: u64) -> Commit {
    commit.reads.push(DocumentRead {
        key: key.clone(),
        version,
    });
    commit
}

/// A document of `u_1`.
pub fn document(collection: &str, id: &str) -> DocumentKey {
    DocumentKey {
        user_id: "u_1".to_owned(),
        collection: collection.to_owned(),
        id: id.to_owned(),
    }
}

/// The record of a call that worked, with a payload that is kept for ever.
pub fn entry(id: &str, user_id: &str) -> Entry {
    entry_at(0, id, user_id)
}

/// An entry this number of seconds later. Its time is long ago for any store's clock.
pub fn entry_at(seconds: i64, id: &str, user_id: &str) -> Entry {
    let at = Timestamp::from_second(1_600_000_000).expect("it is in range");
    let at = at
        .checked_add(SignedDuration::from_secs(seconds))
        .expect("it is in range");
    let id = record_id(id);
    let record = EvidenceRecord::new(RecordKind::Call, id.clone(), at.to_string());
    let record = serde_json::to_value(&record).expect("names and texts");
    Entry {
        sealed_under: None,
        leaf: canonical::to_vec(&record).expect("it has no numbers that are too large"),
        payload: Some([b"sealed ", id.as_str().as_bytes()].concat()),
        id,
        user_id: user_id.to_owned(),
        kind: RecordKind::Call,
        at,
        request_id: Some(request_id("req_1")),
        tool: Some("orders.create".to_owned()),
        code: None,
        keep_payload: None,
    }
}

/// Makes the record of what time removes, and of what is said about the clock. It has another id each time.
pub fn told<T: 'static>() -> Told<T> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    Arc::new(|_: &T| {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        Entry {
            kind: RecordKind::Config,
            payload: None,
            ..entry(&format!("ev_told{n}"), "")
        }
    })
}

/// Believes the store's clock, as an operator does after a jump.
pub async fn trust(store: &dyn Store) -> Result<(), Error> {
    store.trust_time(told()).await.map(|_| ())
}

/// Removes what is past its time. The clock has to be believed.
pub async fn disposed(store: &dyn Store, limit: usize) -> Result<Disposed, Error> {
    match store.dispose(limit, told()).await? {
        Disposal::Done(disposed) => Ok(disposed),
        Disposal::Stopped(passage) => unreachable!("nothing is removed: {passage}"),
    }
}

/// The same, after the clock was believed, whatever it says.
pub async fn disposed_now(store: &dyn Store, limit: usize) -> Result<Disposed, Error> {
    trust(store).await?;
    disposed(store, limit).await
}

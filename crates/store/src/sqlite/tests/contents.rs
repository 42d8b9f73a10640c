//! Searching, dumping, and the traces of an erased user.

use countersign::ledger::{
    Claims as _, Documents as _, Durability, Hold, Keyring as _, Lapse, Log, LogQuery, MemoryStore,
    Pots as _, ReserveAnswer, WrappedKey,
};
use countersign_contract::{ErrorCode, RecordKind, RequestId};
use countersign_testkit::ledger::build::{
    commit, document, entry, entry_at, index_entry, ours, record_id, request, request_id, reserve,
    scope, succeeded, take, with_write, write,
};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, proptest};

use super::*;

/// Records are searched in buckets from the newest on; the answers equal those of the model, whatever is in the
/// tree.
#[test]
fn records_are_found_as_the_model_finds_them() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runtime = runtime.expect("a runtime");
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(16)
    };
    // One store for all cases: they add to it, and to the model.
    let folder = folder();
    let (store, model) = (open(folder.path()), MemoryStore::new().keeping_log());
    let counter = AtomicU64::new(100);
    proptest!(config, |(
        records in vec((0..40_i64, 0..3_u8, 0..20_u8, 0..20_u8, 0..30_usize), 0..80),
        queries in vec((0..5_u8, 0..60_u8, 0..60_i64, 0..60_i64, 0..60_i64, 0..12_usize, 0..30_usize), 1..20),
    )| {
        runtime.block_on(async {
            for (seconds, user, call, integrate, facets) in records {
                let n = counter.fetch_add(1, Ordering::Relaxed);
                let mut record = entry_at(seconds, &format!("ev_{n}"), &format!("u_{user}"));
                record.request_id = Some(call_id(call));
                (record.code, record.tool) = (code(facets), tool(facets));
                record.kind = kind_of(facets).unwrap_or(RecordKind::Call);
                for store in [&store as &dyn Log, &model] {
                    let kept = store.append(record.clone().into(), Durability::Batched).await;
                    kept.expect("it is kept");
                }
                if integrate == 0 {
                    store.flush().await.expect("it is written");
                    integrated(&store).await;
                }
            }
            store.flush().await.expect("it is written");
            for (user, call, since, until, before, limit, facets) in queries {
                let at = |seconds| (seconds < 45).then(|| entry_at(seconds, "ev_0", "").at);
                let query = LogQuery {
                    user_id: (user < 3).then(|| format!("u_{user}")),
                    request_id: (call < 20).then(|| call_id(call)),
                    request_ids: asked_ids(call),
                    since: at(since + 20),
                    until: at(until),
                    before: at(before).map(|at| (at, record_id("ev_400"))),
                    limit,
                    code: code(facets),
                    tool: tool(facets),
                    kind: kind_of(facets),
                    ok_only: facets % 7 == 5 && code(facets).is_none(),
                };
                let found = store.records(&query).await.expect("it can be read");
                let expected = Log::records(&model, &query).await;
                assert_eq!(found, expected.expect("it can be read"), "{query:?}");
            }
        });
    });
}

/// Ids of our making and ids that callers chose, which are found in other ways.
fn call_id(number: u8) -> RequestId {
    let prefix = if number.is_multiple_of(2) {
        "req_"
    } else {
        "mine-"
    };
    request_id(&format!("{prefix}{number}"))
}

fn asked_ids(call: u8) -> Vec<RequestId> {
    match call {
        40..50 => (call - 40..call - 36).map(call_id).collect(),
        _ => Vec::new(),
    }
}

/// Codes, tools and kinds of records and of queries: some are rare, and some are not there.
fn code(number: usize) -> Option<ErrorCode> {
    let codes = [ErrorCode::NotFound, ErrorCode::Timeout];
    codes.get(number % 5).copied()
}

fn tool(number: usize) -> Option<String> {
    (!number.is_multiple_of(3)).then(|| format!("notes.t{}", number % 3 + number / 25))
}

fn kind_of(number: usize) -> Option<RecordKind> {
    let kinds = [RecordKind::Call, RecordKind::Denial, RecordKind::Config];
    kinds.get(number % 4).copied()
}

/// A dump has everything, in the order of its kinds, as of the moment it began.
#[tokio::test]
async fn a_dump_is_of_one_moment() {
    let folder = folder();
    let store = open(folder.path());
    let hold = fill(&store).await;
    let mut dump = store.dump().expect("it can be read");
    store.commit(commit("ev_302")).await.expect("it is written");
    let mut rows = Vec::new();
    loop {
        let batch = dump.next_batch(100).await.expect("it can be read");
        assert!(batch.len() <= 100 && rows.len() < 1_000);
        if batch.is_empty() {
            break;
        }
        rows.extend(batch);
    }
    let kinds: Vec<_> = rows.iter().map(kind).collect();
    let runs = kinds.chunk_by(|a, b| a == b).map(|run| (run[0], run.len()));
    assert_eq!(
        runs.collect::<Vec<_>>(),
        [
            ("user key", 1),
            ("claim", 2),
            ("document", 300),
            ("shape", 1),
            ("record", 302),
            ("tile", 3),
            ("head", 1),
            ("checkpoint", 1),
            ("hold", 1),
            ("pot", 2),
            ("reservation", 2),
        ]
    );
    let ids: Vec<_> = rows.iter().filter_map(document_id).collect();
    assert!(ids.is_sorted());
    let expected = Row::Document {
        key: document("orders", "007"),
        version: 1,
        body: Some(b"body".to_vec()),
        entries: vec![index_entry("by_status", 1)],
    };
    assert!(rows.contains(&expected) && rows.contains(&Row::Hold(hold)));
    let waiting = rows
        .iter()
        .filter(|row| matches!(row, Row::Record(record) if record.index.is_none()));
    assert_eq!(waiting.count(), 2);
}

fn document_id(row: &Row) -> Option<&str> {
    match row {
        Row::Document { key, .. } => Some(&key.id),
        _ => None,
    }
}

fn kind(row: &Row) -> &'static str {
    match row {
        Row::UserKey { .. } => "user key",
        Row::Claim(_) => "claim",
        Row::Document { .. } => "document",
        Row::Shape { .. } => "shape",
        Row::Record(_) => "record",
        Row::Tile { .. } => "tile",
        Row::Head(_) => "head",
        Row::Checkpoint { .. } => "checkpoint",
        Row::Hold(_) => "hold",
        Row::Pot(_) => "pot",
        Row::Reservation(_) => "reservation",
    }
}

/// Fills the store with one of everything, and with many documents and records.
async fn fill(store: &SqliteStore) -> Hold {
    let key = WrappedKey {
        id: None,
        master: "m".to_owned(),
        bytes: vec![1],
    };
    store.add_user_key("u_1", key).await.expect("it is written");
    ours(
        store
            .claim(&request(&scope("b")))
            .await
            .expect("it answers"),
    );
    for n in 0..300 {
        let mut order = write(&document("orders", &format!("{n:03}")), 0, Some("body"));
        order.entries = vec![index_entry("by_status", 1)];
        let taken = with_write(commit(&format!("ev_{n}")), order);
        store.commit(taken).await.expect("it is written");
    }
    integrated(store).await;
    let taken = take(&scope("a"), 0, succeeded("yes"), "ev_300");
    store.commit(taken).await.expect("it is written");
    let tree = store.head().await.expect("it can be read");
    store
        .add_checkpoint(&tree, "note")
        .await
        .expect("it is written");
    let hold = Hold {
        user_id: "u_1".to_owned(),
        record: None,
        reason: "court".to_owned(),
    };
    store
        .hold(hold.clone(), entry("ev_301", "u_1"))
        .await
        .expect("it is written");
    let reserved = store.reserve(&reserve("ev_r", "u_1", Lapse::Release)).await;
    assert_eq!(reserved.expect("it is written"), ReserveAnswer::Reserved);
    hold
}

/// A21: nothing that names an erased user, and nothing of the user's key, is left in the files.
#[tokio::test]
async fn an_erased_user_is_not_in_the_files() {
    let folder = folder();
    let store = open(folder.path());
    let user = "erika.mustermann";
    let key = WrappedKey {
        id: None,
        master: "m".to_owned(),
        bytes: b"the-wrapped-key-of-erika".to_vec(),
    };
    store.add_user_key(user, key).await.expect("it is written");
    for n in 0..20 {
        let mut scope = scope(&n.to_string());
        scope.user_id = user.to_owned();
        let mut order = write(&document("orders", &n.to_string()), 0, Some("body"));
        order.key.user_id = user.to_owned();
        order.entries = vec![index_entry("by_status", 1)];
        let mut taken = with_write(take(&scope, 0, succeeded("yes"), "ev_0"), order);
        taken.record = entry(&format!("ev_{n}"), user).into();
        store.commit(taken).await.expect("it is written");
        if n == 10 {
            // Some are in the tree and its index, the others not yet.
            integrated(&store).await;
        }
    }
    let reserved = store.reserve(&reserve("ev_r", user, Lapse::Spend)).await;
    assert_eq!(reserved.expect("it is written"), ReserveAnswer::Reserved);
    assert!(mentions(folder.path(), user) && mentions(folder.path(), "the-wrapped-key"));
    let erased = store
        .erase(user, &[], entry("ev_erased", ""))
        .await
        .expect("no hold");
    assert_eq!(
        (
            erased.keys,
            erased.payloads,
            erased.documents,
            erased.claims
        ),
        (1, 20, 20, 20)
    );
    // An active reader keeps the write-ahead log; then a later commit empties it.
    for n in 0..100 {
        if !mentions(folder.path(), user) {
            break;
        }
        let again = entry(&format!("ev_again_{n}"), "");
        store.erase(user, &[], again).await.expect("no hold");
    }
    for secret in [user, "the-wrapped-key"] {
        assert!(!mentions(folder.path(), secret), "{secret}");
    }
    let query = LogQuery {
        user_id: Some(user.to_owned()),
        limit: 100,
        ..LogQuery::default()
    };
    assert_eq!(store.records(&query).await.expect("it can be read"), []);
    let order = store.document(&document("orders", "1")).await;
    assert_eq!(order.expect("it can be read").version, 0);
    store.check().await.expect("it is whole");
}

fn mentions(folder: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(folder).expect("it is a folder");
    files.into_iter().any(|file| {
        let bytes = std::fs::read(file.expect("it is there").path()).expect("it can be read");
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}

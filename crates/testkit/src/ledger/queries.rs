//! Look-up of records by each of their names.

use countersign::ledger::{Durability, Entry, LogQuery, LogRow, Store};
use countersign_contract::{ErrorCode, RecordKind};

use super::build::{entry_at, record_id, request_id};
use super::log::{integrate_all, row};
use super::{Checked, Fresh};

/// In the tree or not yet, each filter by itself and together.
pub(super) async fn records_are_found_by_every_column(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let entries = some_entries();
    for (n, entry) in entries.iter().enumerate() {
        store
            .append(entry.clone().into(), Durability::Committed)
            .await?;
        if n == 3 {
            integrate_all(store, 10).await?;
        }
    }
    let at = |n: usize| entries.get(n).map(|entry| entry.at);
    let of = |text: &str| Some(text.to_owned());
    let conflict = Some(ErrorCode::Conflict);
    // The entries by their number, newest first.
    let cases: [(LogQuery, &[usize]); 16] = [
        (asking(|_| {}), &[5, 4, 3, 2, 1, 0]),
        (asking(|query| query.limit = 2), &[5, 4]),
        (asking(|query| query.user_id = of("u_1")), &[4, 2, 1, 0]),
        (asking(|query| query.user_id = of("u_3")), &[]),
        (asking(|query| query.tool = of("orders.cancel")), &[2]),
        (asking(|query| query.code = conflict), &[3, 1]),
        (asking(|query| query.ok_only = true), &[5, 4, 2, 0]),
        (asking(|query| query.kind = Some(RecordKind::Config)), &[5]),
        (
            asking(|query| query.request_id = Some(request_id("req_9"))),
            &[4],
        ),
        (
            asking(|query| {
                query.request_ids = ["req_9", "req_1", "req_8"].map(request_id).to_vec();
            }),
            &[4, 3, 2, 1, 0],
        ),
        (
            asking(|query| query.request_ids = ["req_8", "req_9"].map(request_id).to_vec()),
            &[4],
        ),
        (asking(|query| query.since = at(2)), &[5, 4, 3, 2]),
        (asking(|query| query.until = at(2)), &[1, 0]),
        (
            asking(|query| (query.since, query.until) = (at(1), at(4))),
            &[3, 2, 1],
        ),
        (
            asking(|query| (query.user_id, query.code) = (of("u_1"), conflict)),
            &[1],
        ),
        (
            asking(|query| (query.user_id, query.ok_only) = (of("u_2"), true)),
            &[],
        ),
    ];
    for (query, expected) in cases {
        let expected = expected.iter().filter_map(|n| entries.get(*n));
        let expected: Vec<_> = expected.map(row).collect();
        assert_eq!(store.records(&query).await?, expected, "{query:?}");
    }
    // Their rows and leaves at once, in any order, in the tree or not yet.
    let mut wanted: Vec<_> = entries.iter().rev().map(|entry| entry.id.clone()).collect();
    wanted.insert(1, record_id("ev_none"));
    let mut leaves: Vec<_> = entries
        .iter()
        .rev()
        .map(|it| Some((row(it), it.leaf.clone())))
        .collect();
    leaves.insert(1, None);
    assert_eq!(store.leaves_of(&wanted).await?, leaves);
    assert!(store.leaves_of(&[]).await?.is_empty());
    Ok(())
}

/// Page by page, also where several records have the same time: then by name.
pub(super) async fn records_are_read_page_by_page(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    // Neither the order of the names nor that of the times is the one in which they came.
    let entries = [
        (2, "m"),
        (1, "z"),
        (2, "a"),
        (3, "k"),
        (1, "B"),
        (2, "z1"),
        (1, "b"),
    ];
    for (seconds, name) in entries {
        let entry = entry_at(seconds, &format!("ev_{name}"), "u_1");
        store.append(entry.into(), Durability::Committed).await?;
    }
    let newest_first = ["ev_k", "ev_z1", "ev_m", "ev_a", "ev_z", "ev_b", "ev_B"];
    for page in [1, 2, 3, 7, 10] {
        let rows = pages(store, page).await?;
        let names: Vec<_> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(names, newest_first, "in pages of {page}");
    }
    Ok(())
}

fn asking(change: impl FnOnce(&mut LogQuery)) -> LogQuery {
    let mut query = LogQuery {
        limit: 100,
        ..LogQuery::default()
    };
    change(&mut query);
    query
}

async fn pages(store: &dyn Store, page: usize) -> Result<Vec<LogRow>, super::Error> {
    let mut rows: Vec<LogRow> = Vec::new();
    loop {
        let last = rows.last();
        let query = LogQuery {
            user_id: Some("u_1".to_owned()),
            before: last.map(|row| (row.at, row.id.clone())),
            limit: page,
            ..LogQuery::default()
        };
        let next = store.records(&query).await?;
        assert!(next.len() <= page);
        let is_new = next.iter().all(|row| !rows.contains(row));
        assert!(is_new, "a page leads back: {next:?}");
        if next.is_empty() {
            return Ok(rows);
        }
        rows.extend(next);
    }
}

fn some_entries() -> [Entry; 6] {
    let entry = |n: i64, user_id| entry_at(n, &format!("ev_{n}"), user_id);
    [
        entry(0, "u_1"),
        Entry {
            code: Some(ErrorCode::Conflict),
            ..entry(1, "u_1")
        },
        Entry {
            tool: Some("orders.cancel".to_owned()),
            ..entry(2, "u_1")
        },
        Entry {
            code: Some(ErrorCode::Conflict),
            kind: RecordKind::Denial,
            ..entry(3, "u_2")
        },
        Entry {
            request_id: Some(request_id("req_9")),
            ..entry(4, "u_1")
        },
        Entry {
            kind: RecordKind::Config,
            request_id: None,
            tool: None,
            ..entry(5, "")
        },
    ]
}

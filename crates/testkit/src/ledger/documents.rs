//! Documents, their versions, and the shapes of their collections.

use countersign::ledger::{
    CommitAnswer, DocumentKey, DocumentRow, DocumentWrite, Error, IndexEntry, OpenPlace, Store,
    StoredDocument,
};
use jiff::Timestamp;

use super::build::{
    commit, document, index_entry, reading, record_id, scanning, scope, succeeded, take,
    with_write, write, writing,
};
use super::{Checked, Fresh};

pub(super) async fn a_document_that_never_was_has_version_zero(fresh: &Fresh) -> Checked {
    let absent = StoredDocument {
        version: 0,
        body: None,
    };
    assert_eq!(fresh.store.document(&document("cart", "c")).await?, absent);
    let scan = fresh.store.scan("u_1", "cart", "", None, 10).await?;
    assert_eq!((scan.documents, scan.shape), (vec![], 0));
    Ok(())
}

pub(super) async fn versions_rise_with_every_write(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let cart = document("cart", "c");
    for version in 0..4 {
        let unit = writing(commit(&format!("ev_{version}")), &cart, version, Some("x"));
        assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
        let stored = fresh.handle(1).document(&cart).await?;
        assert_eq!(stored.version, version + 1);
    }
    Ok(())
}

/// Bodies are sealed, so any byte may come; and an empty body is not the same as none.
pub(super) async fn bodies_come_back_byte_for_byte(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let every_byte: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    for (n, body) in [vec![], vec![0], every_byte].into_iter().enumerate() {
        let key = document("cart", &format!("c{n}"));
        let unit = DocumentWrite {
            body: Some(body.clone()),
            ..write(&key, 0, None)
        };
        let unit = with_write(commit(&format!("ev_{n}")), unit);
        assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
        let stored = store.document(&key).await?;
        assert_eq!(stored.body.as_deref(), Some(&*body));
    }
    let scan = store.scan("u_1", "cart", "", None, 10).await?;
    assert_eq!(scan.documents.len(), 3);
    Ok(())
}

/// A document that is made again has never had the same version, so an old read of it cannot pass.
pub(super) async fn a_deleted_document_keeps_its_version(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let cart = document("cart", "c");
    let steps = [(0, Some("one"), 1), (1, None, 2), (2, Some("two"), 3)];
    for (version, body, then) in steps {
        let unit = writing(commit(&format!("ev_{version}")), &cart, version, body);
        assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
        let stored = store.document(&cart).await?;
        assert_eq!(stored.version, then);
        assert_eq!(stored.body.as_deref(), body.map(str::as_bytes));
    }
    for stale in [0, 1, 2] {
        let unit = reading(commit(&format!("ev_stale{stale}")), &cart, stale);
        assert_eq!(store.commit(unit).await?, moved("cart", "c"));
    }
    Ok(())
}

pub(super) async fn a_read_that_is_out_of_date_stops_a_commit(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let (cart, other) = (document("cart", "c"), document("cart", "other"));
    put(store, "ev_1", &cart, 0, Some("one")).await?;
    put(store, "ev_2", &cart, 1, Some("two")).await?;
    // Of what is written, of what is only read, of what was thought absent or never was.
    let stale = [
        (writing(commit("ev_3"), &cart, 1, Some("x")), "c"),
        (writing(commit("ev_4"), &cart, 0, Some("x")), "c"),
        (writing(commit("ev_5"), &cart, 1, None), "c"),
        (reading(commit("ev_6"), &cart, 1), "c"),
        (reading(commit("ev_7"), &cart, 3), "c"),
        (reading(commit("ev_8"), &other, 1), "other"),
    ];
    for (unit, id) in stale {
        assert_eq!(store.commit(unit).await?, moved("cart", id));
    }
    let both = writing(commit("ev_9"), &other, 0, Some("x"));
    let both = reading(both, &cart, 1);
    assert_eq!(store.commit(both).await?, moved("cart", "c"));
    assert_eq!(store.document(&cart).await?.version, 2);
    assert_eq!(store.document(&other).await?.version, 0);
    Ok(())
}

/// Reads that are still current do not stop a commit, absent documents and shapes included.
pub(super) async fn reads_that_still_hold_stop_nothing(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let (cart, absent) = (document("cart", "c"), document("cart", "absent"));
    put(store, "ev_1", &cart, 0, Some("one")).await?;
    let shape = store.scan("u_1", "cart", "", None, 10).await?.shape;
    let unit = writing(commit("ev_2"), &document("order", "o"), 0, Some("two"));
    let unit = reading(reading(unit, &cart, 1), &absent, 0);
    let unit = scanning(scanning(unit, "cart", shape), "never", 0);
    assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
    assert_eq!(store.document(&cart).await?.version, 1);
    assert_eq!(store.document(&absent).await?.version, 0);
    Ok(())
}

/// A commit is atomic: if it is stopped, nothing of its key, record, documents, entries and shapes is written.
pub(super) async fn nothing_of_a_stopped_commit_is_done(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let (cart, order) = (document("cart", "c"), document("order", "o"));
    put(store, "ev_1", &cart, 0, Some("one")).await?;
    let before = store.scan("u_1", "order", "", None, 10).await?;
    let unit = || {
        let unit = take(&scope("k"), 0, succeeded("done"), "ev_2");
        let order = DocumentWrite {
            entries: vec![index_entry("by_state", 1)],
            ..write(&order, 0, Some("new"))
        };
        with_write(unit, order)
    };
    let by_read = writing(unit(), &cart, 0, Some("two"));
    assert_eq!(store.commit(by_read).await?, moved("cart", "c"));
    let by_shape = scanning(unit(), "cart", 0);
    assert_eq!(store.commit(by_shape).await?, moved("cart", ""));

    assert_eq!(store.lookup(&scope("k")).await?, None);
    assert_eq!(store.record(&record_id("ev_2")).await?, None);
    assert_eq!(store.document(&order).await?.version, 0);
    assert_eq!(store.document(&cart).await?.version, 1);
    assert_eq!(store.scan("u_1", "order", "", None, 10).await?, before);
    let entry = index_entry("by_state", 1);
    let found = store.find("u_1", "order", &entry, 10).await?;
    assert_eq!(found.documents, []);
    // And nothing is left that would stop the next one.
    assert_eq!(store.commit(unit()).await?, CommitAnswer::Committed);
    Ok(())
}

pub(super) async fn users_and_collections_are_apart(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    // Put together without care, some of these would be one text.
    let owners = [
        ("u_1", "cart"),
        ("u_1", "cart2"),
        ("u_1c", "art"),
        ("", "cart"),
    ];
    for (n, (user_id, collection)) in owners.into_iter().enumerate() {
        let key = DocumentKey {
            user_id: user_id.to_owned(),
            collection: collection.to_owned(),
            id: "same".to_owned(),
        };
        put(store, &format!("ev_{n}"), &key, 0, Some(&n.to_string())).await?;
    }
    for (n, (user_id, collection)) in owners.into_iter().enumerate() {
        let scan = store.scan(user_id, collection, "", None, 10).await?;
        let bodies: Vec<_> = scan.documents.iter().map(|found| &*found.body).collect();
        assert_eq!(bodies, [n.to_string().as_bytes()], "{user_id} {collection}");
        assert_eq!(scan.shape, 1);
    }
    Ok(())
}

/// Scans are in byte order, independent of any language, and a prefix is not a pattern.
pub(super) async fn a_scan_goes_by_bytes(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    // In byte order.
    let ids = [
        "A", "B", "Z", "a", "a b", "a%", "a%b", "a-1", "a.1", "a1", "a10", "a2", "aB", "aZ", "a\\",
        "a_", "a_1", "aa", "ab", "b", "z", "ß", "é", "日本", "😀",
    ];
    for (n, id) in ids.iter().rev().enumerate() {
        put(store, &format!("ev_{n}"), &document("c", id), 0, Some("x")).await?;
    }
    let prefixes = [
        "", "A", "a", "a%", "a_", "a\\", "a1", "ab", "abc", "é", "日", "😀", "Z",
    ];
    let afters = [
        None,
        Some(""),
        Some("A"),
        Some("a"),
        Some("a1"),
        Some("a3"),
        Some("zz"),
    ];
    for prefix in prefixes {
        for after in afters {
            for limit in [1, 3, 100] {
                let scan = store.scan("u_1", "c", prefix, after, limit).await?;
                let found: Vec<_> = scan.documents.iter().map(|found| &*found.id).collect();
                let wanted = ids
                    .iter()
                    .filter(|id| id.starts_with(prefix) && after.is_none_or(|after| **id > after));
                let wanted: Vec<_> = wanted.take(limit).copied().collect();
                assert_eq!(found, wanted, "{prefix:?} {after:?} {limit}");
            }
        }
    }
    Ok(())
}

/// A deleted document is not found, and does not take the place of one that is.
pub(super) async fn a_scan_passes_over_what_is_deleted(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    for (n, id) in ["a", "b", "c"].into_iter().enumerate() {
        put(store, &format!("ev_{n}"), &document("c", id), 0, Some(id)).await?;
    }
    put(store, "ev_9", &document("c", "a"), 1, None).await?;
    let scan = store.scan("u_1", "c", "", None, 2).await?;
    let found: Vec<_> = scan.documents.iter().map(|found| &*found.id).collect();
    assert_eq!(found, ["b", "c"]);
    assert!(scan.documents.iter().all(|found| found.version == 1));
    Ok(())
}

/// A scanner relies on the absence of documents: an insert or a delete since the scan stops its commit.
pub(super) async fn an_insert_and_a_delete_move_a_scanner(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let key = document("cart", "c");
    let mut shapes = vec![shape(store).await?];
    let steps = [Some("insert"), Some("update"), None, Some("again")];
    for (version, body) in (0..).zip(steps) {
        put(store, &format!("ev_{version}"), &key, version, body).await?;
        shapes.push(shape(store).await?);
    }
    let [before, inserted, updated, deleted, again] = shapes.try_into().expect("five");
    assert_eq!(before, 0);
    assert!(inserted > before);
    // An update is seen by the version that was read.
    assert_eq!(updated, inserted);
    assert!(deleted > updated);
    assert!(again > deleted);
    for (n, stale) in [before, inserted, deleted].into_iter().enumerate() {
        let unit = scanning(commit(&format!("ev_stale{n}")), "cart", stale);
        assert_eq!(store.commit(unit).await?, moved("cart", ""));
    }
    let unit = scanning(commit("ev_fresh"), "cart", again);
    assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
    Ok(())
}

pub(super) async fn documents_are_found_by_their_entries(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let (by_state, by_day) = (
        |value| index_entry("by_state", value),
        |value| index_entry("by_day", value),
    );
    let documents: [(&str, Vec<IndexEntry>); 4] = [
        ("d", vec![by_state(1), by_day(1)]),
        ("a", vec![by_state(1)]),
        ("b", vec![by_day(1), by_state(2), by_state(3)]),
        ("c", vec![]),
    ];
    for (n, (id, entries)) in documents.into_iter().enumerate() {
        indexed(store, &format!("ev_{n}"), id, 0, entries).await?;
    }
    let cases: [(IndexEntry, usize, &[&str]); 7] = [
        (by_state(1), 10, &["a", "d"]),
        (by_state(1), 1, &["a"]),
        (by_state(2), 10, &["b"]),
        (by_state(3), 10, &["b"]),
        (by_day(1), 10, &["b", "d"]),
        (by_day(2), 10, &[]),
        (index_entry("other", 1), 10, &[]),
    ];
    for (entry, limit, expected) in cases {
        let scan = store.find("u_1", "cart", &entry, limit).await?;
        let found: Vec<_> = scan.documents.iter().map(|found| &*found.id).collect();
        assert_eq!(found, expected, "{entry:?}");
        assert_eq!(scan.shape, shape(store).await?);
        let elsewhere = [("u_2", "cart"), ("u_1", "order"), ("", "cart")];
        for (user_id, collection) in elsewhere {
            let scan = store.find(user_id, collection, &entry, limit).await?;
            assert_eq!((scan.documents, scan.shape), (vec![], 0));
        }
    }
    Ok(())
}

/// A search by an entry relies on the documents that have it: a change of entries stops the commit.
pub(super) async fn a_change_of_entries_moves_a_searcher(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let (open, closed) = (index_entry("by_state", 1), index_entry("by_state", 2));
    indexed(store, "ev_1", "c", 0, vec![open.clone()]).await?;
    let searched = shape(store).await?;
    indexed(store, "ev_2", "c", 1, vec![open.clone()]).await?;
    assert_eq!(shape(store).await?, searched, "the entries are the same");
    indexed(store, "ev_3", "c", 2, vec![closed.clone()]).await?;
    assert!(shape(store).await? > searched);
    let unit = scanning(commit("ev_4"), "cart", searched);
    assert_eq!(store.commit(unit).await?, moved("cart", ""));

    // The entries before are gone, and with the document all of them.
    let of = |entry: IndexEntry| async move {
        let scan = store.find("u_1", "cart", &entry, 10).await?;
        Ok::<_, Error>(scan.documents.len())
    };
    assert_eq!(of(open.clone()).await?, 0);
    assert_eq!(of(closed.clone()).await?, 1);
    put(store, "ev_5", &document("cart", "c"), 3, None).await?;
    assert_eq!(of(closed.clone()).await?, 0);
    put(store, "ev_6", &document("cart", "c"), 4, Some("again")).await?;
    assert_eq!(of(closed).await?, 0);
    Ok(())
}

/// U11: open documents are counted across users, by one query, and only as long as they are open.
pub(super) async fn what_is_open_is_counted_for_all_users(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let moment = |second| Timestamp::from_second(second).expect("a time");
    let count = |collection: &'static str, second, limit| {
        store.count_open(collection, moment(second), limit)
    };
    assert_eq!(count("cart", 0, 10).await?, 0);
    for n in 1..=3 {
        let key = DocumentKey {
            user_id: format!("u_{n}"),
            ..document("cart", "c")
        };
        let entries = vec![
            index_entry("by_state", 1),
            IndexEntry::open_until(moment(i64::from(n) * 100)),
        ];
        let open = DocumentWrite {
            entries,
            ..write(&key, 0, Some("x"))
        };
        let unit = with_write(commit(&format!("ev_{n}")), open);
        assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
    }
    let counted = [
        count("cart", 0, 10).await?,
        count("cart", 100, 10).await?,
        count("cart", 299, 10).await?,
        count("cart", 300, 10).await?,
        count("cart", 0, 2).await?,
        count("other", 0, 10).await?,
    ];
    assert_eq!(counted, [3, 2, 1, 0, 2, 0]);

    // They are listed page by page, those that end first first.
    let list = async |after: &OpenPlace, limit| {
        let open = store.open_documents("cart", after, limit).await?;
        Ok::<_, Error>(open)
    };
    let start = OpenPlace::after(moment(0));
    let all = list(&start, 10).await?;
    let users: Vec<_> = all.iter().map(|open| &*open.place.user_id).collect();
    assert_eq!(users, ["u_1", "u_2", "u_3"]);
    assert!(
        all.iter()
            .all(|open| open.version == 1 && *open.body == *b"x")
    );
    let first = list(&start, 2).await?;
    let end = first.last().map(|open| open.place.clone());
    let rest = list(&end.expect("two of them"), 2).await?;
    assert_eq!([first, rest].concat(), all);
    assert_eq!(list(&OpenPlace::after(moment(200)), 10).await?.len(), 1);
    assert_eq!(store.open_documents("other", &start, 10).await?, []);

    // What is answered or taken away is open no more.
    let key = |user: &str| DocumentKey {
        user_id: user.to_owned(),
        ..document("cart", "c")
    };
    put(store, "ev_4", &key("u_1"), 1, Some("answered")).await?;
    put(store, "ev_5", &key("u_2"), 1, None).await?;
    assert_eq!(count("cart", 0, 10).await?, 1);
    assert_eq!(list(&start, 10).await?.len(), 1);
    Ok(())
}

/// For comparing them with the log: of all users and collections, page by page, the deleted ones too.
pub(super) async fn all_documents_are_listed(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let mut expected = Vec::new();
    let owners = [
        ("", "cart"),
        ("u_1", "cart"),
        ("u_1", "order"),
        ("u_2", "cart"),
    ];
    for (n, (user_id, collection)) in owners.into_iter().enumerate() {
        let key = DocumentKey {
            user_id: user_id.to_owned(),
            ..document(collection, "c")
        };
        let unit = with_write(commit(&format!("ev_{n}")), write(&key, 0, Some("x")));
        assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
        let body = Some(b"x"[..].into());
        expected.push(DocumentRow {
            key,
            version: 1,
            body,
        });
    }
    if let Some(last) = expected.last_mut() {
        let unit = with_write(commit("ev_deleted"), write(&last.key, 1, None));
        assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
        (last.version, last.body) = (2, None);
    }
    let mut found = Vec::new();
    loop {
        let after = found.last().map(|row: &DocumentRow| row.key.clone());
        let page = store.all_documents(after.as_ref(), 3).await?;
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    assert_eq!(found, expected);
    Ok(())
}

/// A collection that is never scanned has no shape, so that its writers do not conflict on it.
pub(super) async fn an_untracked_collection_has_no_shape(fresh: &Fresh) -> Checked {
    let store = &*fresh.store;
    let key = document("cart", "c");
    for (version, body) in [(0, Some("one")), (1, None), (2, Some("two"))] {
        let untracked = DocumentWrite {
            tracked: false,
            ..write(&key, version, body)
        };
        let unit = with_write(commit(&format!("ev_{version}")), untracked);
        assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
        assert_eq!(shape(store).await?, 0);
    }
    Ok(())
}

fn moved(collection: &str, id: &str) -> CommitAnswer {
    CommitAnswer::Moved {
        collection: collection.to_owned(),
        id: id.to_owned(),
    }
}

async fn put(
    store: &dyn Store,
    record: &str,
    key: &DocumentKey,
    version: u64,
    body: Option<&str>,
) -> Checked {
    let unit = writing(commit(record), key, version, body);
    assert_eq!(store.commit(unit).await?, CommitAnswer::Committed);
    Ok(())
}

async fn indexed(
    store: &dyn Store,
    record: &str,
    id: &str,
    version: u64,
    entries: Vec<IndexEntry>,
) -> Checked {
    let indexed = DocumentWrite {
        entries,
        ..write(&document("cart", id), version, Some("x"))
    };
    let answer = store.commit(with_write(commit(record), indexed)).await?;
    assert_eq!(answer, CommitAnswer::Committed);
    Ok(())
}

async fn shape(store: &dyn Store) -> Result<u64, Error> {
    Ok(store.scan("u_1", "cart", "", None, 10).await?.shape)
}

//! Small numbers of what `cargo xtask torture` does in large ones.

use std::time::Duration;

use anyhow::Result;
use countersign_testkit::patience::Watchdog;
use countersign_testkit::postgres::{TempPostgres, shared_postgres};
use countersign_torture::clocks::clocks;
use countersign_torture::driver::{Arena, Kills, Race, kills, race};
use countersign_torture::server;
use countersign_torture::tools::Kind;

/// The longest wait for a worker.
fn watchdog() -> Watchdog {
    Watchdog::after(Duration::from_mins(9))
}

fn arena(store: String, folder: &tempfile::TempDir) -> Arena {
    Arena {
        program: env!("CARGO_BIN_EXE_countersign-torture").into(),
        store,
        ledger: folder.path().join("effects"),
    }
}

#[track_caller]
fn check_kills(arena: &Arena, kind: Kind, count: u32, expire_leases: &dyn Fn() -> Result<()>) {
    let (keys, verdict) = kills(&Kills {
        arena,
        kind,
        kills: count,
        seed: 20_261_116,
        expire_leases,
        progress: &|| {},
    })
    .expect("workers start and end");
    assert!(verdict.wrong.is_empty(), "{}", verdict.wrong.join("\n"));
    assert_eq!(verdict.succeeded + verdict.in_doubt, keys as usize);
}

/// A18: after `kill -9` at any point nothing that was acknowledged is lost and nothing has happened twice; where the
/// result is unknown, the key is answered as in doubt. One SQLite file.
#[test]
fn killed_processes_on_sqlite() {
    let _watchdog = watchdog();
    for kind in Kind::ALL {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("torture.db");
        let arena = arena(file.to_string_lossy().into_owned(), &folder);
        check_kills(&arena, kind, 12, &|| Ok(()));
    }
}

/// The same on PostgreSQL.
#[test]
fn killed_processes_on_postgres() {
    let _watchdog = watchdog();
    let server = shared_postgres();
    for kind in Kind::ALL {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let url = server.fresh_database();
        let arena = arena(url.clone(), &folder);
        check_kills(&arena, kind, 8, &|| server::expire_leases(&url));
    }
}

/// A17, A18: clocks that lie at every start and in between lose no payload, free no key and are noticed.
#[tokio::test]
async fn clocks_that_lie() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let report = clocks(folder.path(), 25, 20_261_117).await;
    let report = report.expect("the store opens and answers");
    assert!(report.violations.is_empty(), "{report:#?}");
    assert!(report.jumps > 10 && report.calls == 25 * 12, "{report:#?}");
}

/// A17–A19: four processes race for the same keys; each key has one effect and one answer. The same keys
/// of another user are other keys.
#[test]
fn processes_that_race() {
    let _watchdog = watchdog();
    let server = shared_postgres();
    let folder = tempfile::tempdir().expect("a folder for the test");
    let arena = arena(server.fresh_database(), &folder);
    for (kind, user) in [
        (Kind::Write, "u_1"),
        (Kind::Write, "u_2"),
        (Kind::Operator, "u_1"),
        (Kind::ConfirmedWrite, "u_3"),
        (Kind::ConfirmedDownstream, "u_1"),
    ] {
        let (tally, verdict) = race(&mut Race {
            arena: &arena,
            kind,
            processes: 4,
            keys: 60,
            user,
            together: false,
            expire_leases: &|| Ok(()),
            meanwhile: &mut || Ok(true),
        })
        .expect("workers start and end");
        assert!(verdict.wrong.is_empty(), "{}", verdict.wrong.join("\n"));
        assert_eq!((verdict.succeeded, tally.answers), (60, 240));
    }
}

/// 20 parallel adds by four processes make 20: no update is lost.
#[test]
fn parallel_adds_add_up() {
    let _watchdog = watchdog();
    let server = shared_postgres();
    let folder = tempfile::tempdir().expect("a folder for the test");
    let arena = arena(server.fresh_database(), &folder);
    let (tally, verdict) = race(&mut Race {
        arena: &arena,
        kind: Kind::Write,
        processes: 4,
        keys: 20,
        user: "u_1",
        together: true,
        expire_leases: &|| Ok(()),
        meanwhile: &mut || Ok(true),
    })
    .expect("workers start and end");
    assert!(verdict.wrong.is_empty(), "{}", verdict.wrong.join("\n"));
    let mut counts: Vec<_> = tally
        .succeeded
        .values()
        .filter_map(|data| data.get("count")?.as_u64())
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, (1..=20).collect::<Vec<_>>());
}

/// A PostgreSQL that cuts connections and restarts: every caller gets the true result, or an error that says that a
/// retry is safe.
#[test]
fn a_server_that_restarts() {
    let _watchdog = watchdog();
    let server = TempPostgres::start();
    let folder = tempfile::tempdir().expect("a folder for the test");
    let url = server.fresh_database();
    server::prepare(&url).expect("the schema is made");
    let arena = arena(url.clone(), &folder);
    let mut round = 0;
    let (_, verdict) = race(&mut Race {
        arena: &arena,
        kind: Kind::Write,
        processes: 2,
        keys: 300,
        user: "u_1",
        together: false,
        expire_leases: &|| server::expire_leases(&url),
        meanwhile: &mut || {
            server::disturb(&server, &url, round)?;
            round += 1;
            Ok(round == 6)
        },
    })
    .expect("workers start and end");
    assert!(verdict.wrong.is_empty(), "{}", verdict.wrong.join("\n"));
    assert_eq!(verdict.succeeded, 300);
}

//! A server whose disk fails, and a store whose rows are changed with SQL: small numbers of what `cargo xtask torture` does in large ones.

use std::path::Path;
use std::time::Duration;

use countersign_testkit::patience::Watchdog;
use countersign_torture::faults::{Counts, Fault, Faults, Library, faults};
use countersign_torture::rows::rows;

const PROGRAM: &str = env!("CARGO_BIN_EXE_countersign");

fn play(is_played: fn(Fault) -> bool, rounds: u32) -> Counts {
    let _watchdog = Watchdog::after(Duration::from_mins(9));
    let folder = tempfile::tempdir().expect("a folder for the test");
    let library = Library::compile(folder.path()).expect("there is a C compiler");
    let mut sum = Counts::default();
    for fault in Fault::ALL {
        if !is_played(fault) {
            continue;
        }
        let counts = faults(&Faults {
            program: Path::new(PROGRAM),
            library: &library,
            fault,
            rounds,
            seed: 20_261_118,
        });
        sum.add(counts.expect("a server starts and stops"));
    }
    sum
}

/// A17–A19: while reads, writes and syncs fail, are cut short or find no room, nothing acknowledged is lost, nothing happens twice, and the log
/// verifies. The server says that it is not ready while nothing can be written, and goes on when the disk works again.
#[test]
fn a_disk_that_fails() {
    let sum = play(|fault| !fault.is_silent(), 2);
    assert!(sum.violations.is_empty(), "{sum:#?}");
    assert!(sum.hits > 100 && sum.acknowledged > 200, "{sum:#?}");
}

/// A16: a disk that returns wrong bits does harm, and the server or `verify --all` says so.
#[test]
fn a_disk_that_lies() {
    let sum = play(|fault| fault == Fault::ReadRot, 2);
    assert!(sum.violations.is_empty(), "{sum:#?}");
    assert!(sum.hits > 10, "{sum:#?}");
}

/// A16: every row that was put back, and one of each few that were deleted or changed, is named by `verify --all`.
#[test]
fn rows_that_are_changed_with_sql() {
    let _watchdog = Watchdog::after(Duration::from_mins(9));
    let folder = tempfile::tempdir().expect("a folder for the test");
    let rows = rows(Path::new(PROGRAM), folder.path(), 7, &|| {});
    let rows = rows.expect("a server starts and stops");
    assert!(rows.violations.is_empty(), "{rows:#?}");
    assert!(rows.named > 20, "{rows:#?}");
}

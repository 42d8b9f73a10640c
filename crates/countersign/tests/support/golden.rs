//! Golden files, one directory a dialect. `UPDATE_GOLDEN=1` rewrites the expected files.

use std::path::PathBuf;

use countersign::dialect::Dialect;
use serde_json::Value;

fn path(dialect: Dialect, file: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    root.join(dialect.as_str()).join(file)
}

/// A file of a dialect.
pub(crate) fn read(dialect: Dialect, file: &str) -> String {
    let path = path(dialect, file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compares with a golden file by value, so that the order of members does not matter.
#[track_caller]
pub(crate) fn check(dialect: Dialect, file: &str, actual: &Value) {
    let written = format!("{actual:#}\n");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path(dialect, file), written).unwrap();
        return;
    }
    let expected: Value = serde_json::from_str(&read(dialect, file)).unwrap();
    if expected != *actual {
        let expected = format!("{expected:#}\n");
        let (at, (was, is)) = expected
            .lines()
            .zip(written.lines())
            .enumerate()
            .find(|(_, (was, is))| was != is)
            .unwrap_or((0, ("the same up to the end of one", "")));
        panic!(
            "{dialect}/{file} line {}:\n- {was}\n+ {is}\n\nwhole:\n{written}",
            at + 1
        );
    }
}

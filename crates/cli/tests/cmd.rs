//! The pages in `tests/cmd/` are the tests of the commands: each command is run, and its output compared. Each page has a data folder of
//! its own, which is empty when the page begins.

use std::path::Path;

#[test]
fn pages_show_what_the_commands_do() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd");
    let mut count = 0;
    for page in std::fs::read_dir(pages).unwrap() {
        let page = page.unwrap().path();
        if page.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let cases = trycmd::TestCases::new();
        cases.env(
            "COUNTERSIGN_DATA",
            folder.path().join("data").to_string_lossy(),
        );
        cases.env("COUNTERSIGN_OPERATOR", "tester");
        cases.case(page).run();
        count += 1;
    }
    assert!(count >= 8, "{count} pages");
}

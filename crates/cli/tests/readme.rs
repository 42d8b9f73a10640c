//! The README's commands do what the README shows.

use std::path::Path;

/// The README with its commands as the tests run them, and with what differs from run to run left
/// open.
fn runnable(readme: &str) -> String {
    let line = |line: &str| {
        let varying = ["request: ", "at: ", "took: "]
            .into_iter()
            .find(|name| line.starts_with(name));
        match varying {
            Some(name) => format!("{name}[..]\n"),
            None => line.replacen("$ cargo run -p countersign-cli -- ", "$ countersign ", 1) + "\n",
        }
    };
    readme.lines().map(line).collect()
}

#[test]
fn the_readme_shows_what_its_commands_do() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let page = runnable(&std::fs::read_to_string(own).unwrap());
    assert!(
        page.contains("$ countersign call memory.search"),
        "the quick start is there"
    );
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme.md");
    std::fs::write(&copy, page).unwrap();
    trycmd::TestCases::new().case(copy).run();
}

//! The commands of the READMEs work as shown, in every language.

use std::path::Path;

/// A page with its commands as the tests run them, and with what differs from run to run left open.
fn runnable(readme: &str) -> String {
    let line = |line: &str| {
        let varying = [
            "note: new keys created in ",
            "evidence: ",
            "request: ",
            "at: ",
            "took: ",
            "log: ",
        ]
        .into_iter()
        .find(|name| line.starts_with(name));
        match varying {
            Some(name) => format!("{name}[..]\n"),
            // A refused call ends with code 1, which a reader of the page need not see.
            None if line.starts_with("INVALID_ARGUMENT: ") => format!("? 1\n{line}\n"),
            None => line.replacen("$ cargo run -p countersign-cli -- ", "$ countersign ", 1) + "\n",
        }
    };
    readme.lines().map(line).collect()
}

#[test]
fn the_readmes_show_what_their_commands_do() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["README.md", "README.zh-CN.md"] {
        let page = runnable(&std::fs::read_to_string(folder.join(name)).unwrap());
        let commands = page.matches("$ countersign ").count();
        assert_eq!(commands, 5, "the quick start is in {name}");
        let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&copy, page).unwrap();
        let data = tempfile::tempdir().unwrap();
        let cases = trycmd::TestCases::new();
        cases.env(
            "COUNTERSIGN_DATA",
            data.path().join("data").to_string_lossy(),
        );
        cases.case(copy).run();
    }
}

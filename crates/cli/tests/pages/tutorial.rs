//! `docs/tutorial.md` is run from its first line to its last.

use crate::page;
use crate::shell::Shell;

/// N1, P2: a new user's ten minutes. A Python function is called over HTTP and MCP, repeated, refused, approved, denied and verified.
#[test]
fn the_tutorial_shows_what_happens() {
    let page = page::read("docs/tutorial.md");
    let mut shell = Shell::start();
    let mut count = 0;
    for (kind, text) in page::blocks(&page) {
        match kind {
            "python" => shell.write("app.py", &text),
            "console" => {
                for (command, expected) in page::commands(&text) {
                    let output = shell.run(command);
                    assert!(
                        page::is_shown(&expected, &output),
                        "$ {command}\n{}\n--- is shown as\n{}",
                        output.join("\n"),
                        expected.join("\n")
                    );
                    count += 1;
                }
            }
            other => panic!("nothing is done with a block of {other:?}"),
        }
    }
    assert!(count >= 20, "{count} commands");
}

//! The first commands of every page are run, and those whose output a page shows: a reader who copies them gets no error and no other output.

use std::collections::BTreeSet;

use countersign_testkit::postgres::shared_postgres;

use crate::page;
use crate::shell::{FAILED, Shell};

/// Pages whose first commands are not run here, and why.
const NOT_RUN: [(&str, &str); 4] = [
    ("benchmarks.md", "measures for hours"),
    ("commerce.md", "`commerce_page.rs` runs the whole page"),
    ("guarantees.md", "runs all tests, this one among them"),
    ("tutorial.md", "`tutorial.rs` runs the whole page"),
];

/// Pages without a command.
const WITHOUT_COMMANDS: [(&str, &str); 3] = [
    ("adding-a-tool.md", "its Rust is compiled with the crate"),
    (
        "from-old-handlers.md",
        "its Rust is compiled with the crate",
    ),
    (
        "http-tool.md",
        "`http_tool.rs` runs its settings and its Python",
    ),
];

/// Pages with further commands and their output that are not run here, and why.
const OUTPUT_NOT_RUN: [(&str, &str); 1] = [(
    "evidence-format.md",
    "needs the files of an auditor; `crates/verifier/tests` has them",
)];

/// Commands that a page takes for granted: calls that were made, before a server is started.
const BEFORE: [(&str, &[&str]); 1] = [(
    "erasure.md",
    &[
        "countersign call notes.list --user ann",
        "countersign call notes.list --user bob",
    ],
)];

/// Commands that the reader is asked to change, as the test changes them: `init` asks for answers, and has a default for each. Ports are free
/// ones, and the database is one of the tests.
const CHANGED: [(&str, &str); 6] = [
    ("cargo run -p countersign-cli -- ", "countersign "),
    ("countersign init ", "countersign init --yes "),
    ("127.0.0.1', 9000", "127.0.0.1', $PORT"),
    ("127.0.0.1:9000", "127.0.0.1:$PORT"),
    ("--listen 127.0.0.1:8790", "--listen 127.0.0.1:$PORT"),
    (
        "'postgres://countersign:PASSWORD@db.example.com/countersign'",
        "$TEST_DB",
    ),
];

/// P1: the first commands of a page work, and show what the page shows.
#[test]
fn the_first_commands_of_every_page_work() {
    let mut pages: Vec<String> = page::root()
        .join("docs")
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|own| own == "md"))
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    pages.push("agents/README.md".to_owned());
    let errors = page::root().join("docs/errors").read_dir().unwrap();
    pages.extend(errors.map(|entry| {
        let name = entry.unwrap().file_name();
        format!("errors/{}", name.to_string_lossy())
    }));
    pages.sort();
    // Several pages open with the same command, the demo.
    let mut done = BTreeSet::new();
    let (mut run, mut shown) = (0, 0);
    for name in &pages {
        let text = page::read(&format!("docs/{name}"));
        let mut blocks = page::blocks(&text).into_iter();
        let is_without_output = OUTPUT_NOT_RUN.iter().any(|(page, _)| page == name);
        let first = blocks.find(|(kind, _)| matches!(*kind, "sh" | "console"));
        let is_left_out = NOT_RUN.iter().any(|(page, _)| page == name);
        let is_without = WITHOUT_COMMANDS.iter().any(|(page, _)| page == name);
        match first {
            None => assert!(is_without, "{name} has no command"),
            Some(_) if is_without => panic!("{name} has a command now"),
            Some(_) if is_left_out => {}
            Some((kind, block)) => {
                let mut shell = prepared(name);
                if done.insert(block.clone()) {
                    run_block(&mut shell, name, kind, &block);
                    run += 1;
                }
                let further = blocks.filter(|(kind, _)| *kind == "console");
                for (kind, block) in further.filter(|_| !is_without_output) {
                    run_block(&mut shell, name, kind, &block);
                    shown += 1;
                }
            }
        }
    }
    let listed = NOT_RUN
        .iter()
        .chain(&WITHOUT_COMMANDS)
        .chain(&OUTPUT_NOT_RUN);
    for (name, _) in listed {
        assert!(pages.iter().any(|page| page == name), "{name} is gone");
    }
    assert!(run >= 25, "{run} pages were run");
    assert!(shown >= 2, "{shown} outputs were compared");
}

/// P1: the example with two approvers shows what happens, from an empty folder.
#[test]
fn the_example_with_two_approvers_works() {
    let text = page::read("docs/approvals.md");
    let block = page::blocks(&text)
        .into_iter()
        .find(|(kind, block)| *kind == "sh" && block.contains("four_eyes"));
    let (kind, block) = block.unwrap();
    let mut shell = prepared("approvals.md");
    run_block(&mut shell, "approvals.md", kind, &block);
}

/// P1: the example of a lost store shows what happens, from an empty folder.
#[test]
fn the_example_of_a_restore_works() {
    let text = page::read("docs/operating.md");
    let block = page::blocks(&text)
        .into_iter()
        .find(|(kind, block)| *kind == "sh" && block.contains("--accept-loss"));
    let (kind, block) = block.unwrap();
    let mut shell = prepared("operating.md");
    run_block(&mut shell, "operating.md", kind, &block);
}

/// P1: the cases of the page about conditions agree with its policy.
#[test]
fn the_policy_of_the_page_about_conditions_is_tried() {
    let text = page::read("docs/conditions.md");
    let mut shell = prepared("conditions.md");
    for (kind, block) in page::blocks(&text) {
        match kind {
            "sh" if block.starts_with("cat > draft.toml") => {
                run_block(&mut shell, "conditions.md", kind, &block);
            }
            "sh" if block.contains("policy = \"draft.toml\"") => {
                run_block(&mut shell, "conditions.md", kind, &block);
            }
            "toml" if block.starts_with("[[cases]]") => shell.write("cases.toml", &block),
            _ => {}
        }
    }
    let span = text
        .split('`')
        .find(|span| span.starts_with("countersign policy test "));
    assert_works(&mut shell, "conditions.md", span.unwrap());
}

/// P1: a user makes and revokes a grant over HTTP as the page says, and none of the requests is refused.
#[test]
fn the_requests_of_the_page_about_grants_work() {
    let text = page::read("docs/grants.md");
    let mut shell = prepared("grants.md");
    let blocks = page::blocks(&text).into_iter();
    let mut blocks = blocks.filter(|(kind, _)| *kind == "sh");
    // The first one starts the server.
    let (kind, first) = blocks.next().unwrap();
    run_block(&mut shell, "grants.md", kind, &first);
    let commands: Vec<String> = blocks.flat_map(|(_, block)| steps(&block)).collect();
    assert!(commands.len() >= 4, "{commands:?}");
    for command in commands {
        // Refused requests fail, and the time that the page shows may have passed.
        let command = command.replace("curl -s ", "curl -sf ");
        let command = command.replace("2026-12-31T23:59:59Z", "'$(date -u -d tomorrow +%FT%TZ)'");
        assert_works(&mut shell, "grants.md", &command);
    }
}

/// A shell in which everything has been done that the page takes for granted.
fn prepared(name: &str) -> Shell {
    let mut shell = Shell::start();
    shell.run("set -o pipefail; ln -s \"$CHECKOUT/docs\" docs");
    if name == "cluster.md" {
        let database = shared_postgres().fresh_database();
        shell.run(&format!("export TEST_DB='{database}'"));
    }
    if name.starts_with("errors/") {
        assert_works(&mut shell, name, "countersign call notes.list");
    }
    let before = BEFORE.iter().find(|(page, _)| *page == name);
    for command in before.into_iter().flat_map(|(_, commands)| *commands) {
        assert_works(&mut shell, name, command);
    }
    shell
}

fn run_block(shell: &mut Shell, name: &str, kind: &str, block: &str) {
    if block.contains("curl ") && !block.contains("countersign serve") {
        shell.start_program(SERVE);
    }
    if kind == "console" {
        for (command, expected) in page::commands(block) {
            if command.starts_with("countersign serve") && command.ends_with('&') {
                shell.run(&command.replace("countersign serve", SERVE));
                continue;
            }
            let output = assert_works(shell, name, command);
            assert!(
                page::is_shown(&expected, &output),
                "{name}\n$ {command}\n{}\n--- is shown as\n{}",
                output.join("\n"),
                expected.join("\n")
            );
        }
        return;
    }
    for (command, expected) in shown_steps(block) {
        let command = CHANGED.iter().fold(command, |command, (from, to)| {
            if command.contains(to) {
                command
            } else {
                command.replace(from, to)
            }
        });
        let words = command.split(" #").next().unwrap_or_default().trim_end();
        if words.starts_with("countersign serve") && !words.contains("--check") {
            let words = words.trim_end_matches('&').trim_end();
            let words = words.replace(" --listen 0.0.0.0:8787", "");
            shell.start_program(&words.replace("countersign serve", SERVE));
            continue;
        }
        let output = assert_works(shell, name, &command);
        let mut expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        if !expected.is_empty() {
            // A block for copying shows the lines that matter.
            expected = expected
                .iter()
                .flat_map(|line| ["…", *line])
                .chain(["…"])
                .collect();
        }
        assert!(
            expected.is_empty() || page::is_shown(&expected, &output),
            "{name}\n$ {command}\n{}\n--- is shown as\n{}",
            output.join("\n"),
            expected.join("\n")
        );
    }
}

/// The server, where the test may have taken the port of the page.
const SERVE: &str = "countersign serve --listen 127.0.0.1:8787";

#[track_caller]
fn assert_works(shell: &mut Shell, name: &str, command: &str) -> Vec<String> {
    let output = shell.run(&format!("{command}\n[ $? -eq 0 ] || echo '{FAILED}'"));
    let has_failed = output.iter().any(|line| line.contains(FAILED));
    assert!(!has_failed, "{name}\n$ {command}\n{}", output.join("\n"));
    output
}

/// The commands of a block, of one line or several.
fn steps(block: &str) -> Vec<String> {
    let steps = shown_steps(block).into_iter();
    steps.map(|(step, _)| step).collect()
}

/// Mark of a comment that shows a line of the output of the command before it.
const SHOWN: &str = "# → ";

/// The commands of a block, each with the lines of its output that comments show.
fn shown_steps(block: &str) -> Vec<(String, Vec<String>)> {
    let mut steps: Vec<(String, Vec<String>)> = Vec::new();
    let mut lines = block.lines();
    while let Some(line) = lines.next() {
        if let (Some(shown), Some((_, expected))) = (line.strip_prefix(SHOWN), steps.last_mut()) {
            expected.push(shown.to_owned());
            continue;
        }
        let mut step = line.to_owned();
        if let Some((_, end)) = line.split_once("<<") {
            let end = end.trim_matches(['\'', '"', ' ']);
            for line in lines.by_ref() {
                step = step + "\n" + line;
                if line == end {
                    break;
                }
            }
        }
        while step.ends_with('\\') || has_open_quote(&step) {
            let Some(next) = lines.next() else {
                panic!("{step} has no end");
            };
            step = step + "\n" + next;
        }
        if !step.trim().is_empty() && !step.starts_with('#') {
            steps.push((step, Vec::new()));
        }
    }
    steps
}

/// True if a command ends inside quotes, so that its next line belongs to it. A text that is written by `cat` is whole.
fn has_open_quote(step: &str) -> bool {
    if step.contains("<<") {
        return false;
    }
    let mut open = None;
    let mut before = ' ';
    for c in step.chars() {
        match (open, c) {
            (None, '#') if before.is_whitespace() => return false,
            (None, '\'' | '"') if before != '\\' => open = Some(c),
            (Some(quote), c) if c == quote && (quote == '\'' || before != '\\') => open = None,
            _ => {}
        }
        before = c;
    }
    open.is_some()
}

#[test]
fn shown_lines_are_found() {
    let block = "a\n# → b\n# → c\n# d\ne\n";
    let found = shown_steps(block);
    let shown = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        found,
        [
            ("a".to_owned(), shown(&["b", "c"])),
            ("e".to_owned(), shown(&[]))
        ]
    );
}

#[test]
fn steps_are_found() {
    let block = "a \\\n  b\ncat > c <<'END'\nd 'e\nEND\n# f\n\ng --h \"i's\" 'j\nk'   # l's\n";
    assert_eq!(
        steps(block),
        [
            "a \\\n  b",
            "cat > c <<'END'\nd 'e\nEND",
            "g --h \"i's\" 'j\nk'   # l's"
        ]
    );
}

/// A command that fails fails its page.
#[test]
fn a_failing_command_is_found() {
    let mut shell = Shell::start();
    let failing = shell.run(&format!(
        "countersign verify --al\n[ $? -eq 0 ] || echo '{FAILED}'"
    ));
    assert!(failing.iter().any(|line| line.contains(FAILED)));
    assert_works(&mut shell, "none", "true");
}

//! Checks on the workspace itself: error codes and their pages, the layers, and the source files.
//!
//! Each check is a function from data to complaints, so that it can be shown to complain.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use countersign_contract::{ConflictReason, ErrorCode, FaultSource, ReplyEnvelope};
use serde_json::{Value, json};

/// Returns the codes that the enum has: name, HTTP status, retry class, summary.
fn codes_of_the_enum() -> Value {
    let row = |code: ErrorCode| {
        json!({
            "code": code.as_str(),
            "http_status": code.http_status(),
            "retry": code.retry().as_str(),
            "summary": code.summary(),
        })
    };
    ErrorCode::ALL.into_iter().map(row).collect()
}

/// Names that are in one of two lists only.
fn differing(a: &BTreeSet<String>, b: &BTreeSet<String>, in_a: &str, in_b: &str) -> Vec<String> {
    let only_a = a
        .difference(b)
        .map(|name| format!("{name} is in {in_a}, not in {in_b}"));
    let only_b = b
        .difference(a)
        .map(|name| format!("{name} is in {in_b}, not in {in_a}"));
    only_a.chain(only_b).collect()
}

/// Lists the faults of the page of a code.
fn page_complaints(code: ErrorCode, page: &str) -> Vec<String> {
    let mut wanted = vec![
        format!("# {code}\n"),
        format!("\nHTTP {} · retry: ", code.http_status()),
        format!("(`{}`)\n", code.retry().as_str()),
    ];
    let sections = [
        "When it is answered",
        "Example",
        "What the caller does",
        "Is a retry safe?",
    ];
    wanted.extend(sections.map(|section| format!("\n## {section}\n\n")));
    wanted.push("\n## For tool authors\n\n".to_owned());
    if code == ErrorCode::Conflict {
        wanted.extend(ConflictReason::ALL.map(|reason| format!("\n| `{}` |", reason.as_str())));
    }
    if code == ErrorCode::UpstreamError {
        wanted.extend(FaultSource::ALL.map(|source| format!("\n| `{}` |", source.as_str())));
    }
    let mut complaints: Vec<String> = wanted
        .into_iter()
        .filter(|text| !page.contains(text.as_str()))
        .map(|text| format!("the page of {code} lacks {text:?}"))
        .collect();
    let example = page
        .split("```json\n")
        .nth(1)
        .and_then(|rest| rest.split("\n```").next());
    complaints.extend(example_complaint(code, example.unwrap_or_default()));
    complaints
}

/// The example must be a reply exactly as we write it.
fn example_complaint(code: ErrorCode, example: &str) -> Option<String> {
    let complain = |what: String| Some(format!("the example of {code} {what}"));
    let reply: ReplyEnvelope = match serde_json::from_str(example) {
        Ok(reply) => reply,
        Err(error) => return complain(format!("is no reply envelope: {error}")),
    };
    let Some(error) = &reply.error else {
        return complain("has no error".to_owned());
    };
    if error.code != code {
        return complain(format!("shows {}", error.code));
    }
    if reply.ok || error.details.hint.is_none() {
        return complain("is ok, or has no hint".to_owned());
    }
    let written = serde_json::to_value(&reply).ok();
    let shown = serde_json::from_str::<Value>(example).ok();
    (written != shown).then(|| format!("the example of {code} has members that no reply has"))
}

/// A10, A11: the enum, the contract file and the pages name the same codes, with the same particulars.
#[test]
fn error_codes_agree_everywhere() {
    let contract: Value =
        serde_json::from_str(&read("contracts/error-codes.json")).expect("it is JSON");
    assert_eq!(contract, codes_of_the_enum(), "contracts/error-codes.json");

    let known: BTreeSet<String> = ErrorCode::ALL.iter().map(ToString::to_string).collect();
    let pages = files_under(&root().join("docs/errors"), "md")
        .iter()
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|name| name != "README")
        .collect();
    let mut complaints = differing(&known, &pages, "the enum", "docs/errors/");
    let table = read("docs/errors/README.md");
    for code in ErrorCode::ALL {
        complaints.extend(page_complaints(
            code,
            &read(&format!("docs/errors/{code}.md")),
        ));
        let (status, retry, summary) = (code.http_status(), code.retry().as_str(), code.summary());
        let row = format!("| [`{code}`]({code}.md) | {status} | `{retry}` | {summary} |\n");
        if !table.contains(&row) {
            complaints.push(format!("docs/errors/README.md lacks the row {row}"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_code_without_page_and_a_page_without_code_are_found() {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    assert_eq!(
        differing(&names(&["A", "B"]), &names(&["B", "C"]), "the enum", "docs"),
        [
            "A is in the enum, not in docs",
            "C is in docs, not in the enum"
        ]
    );
}

#[test]
fn a_page_with_gaps_is_found() {
    let page = read("docs/errors/CONFLICT.md");
    assert_eq!(page_complaints(ErrorCode::Conflict, &page), [""; 0]);
    for (from, to, complaint) in [
        (
            "| `in_doubt` |",
            "| `unsure` |",
            "lacks \"\\n| `in_doubt` |\"",
        ),
        ("HTTP 409", "HTTP 400", "lacks \"\\nHTTP 409"),
        (
            "## For tool authors",
            "## Other",
            "lacks \"\\n## For tool authors",
        ),
        ("\"CONFLICT\"", "\"NOT_FOUND\"", "shows NOT_FOUND"),
        ("\"CONFLICT\"", "\"CLASH\"", "is no reply envelope"),
        ("\"ok\": false", "\"ok\": true", "is ok"),
        (
            "\"ok\": false",
            "\"ok\": false, \"status\": 409",
            "members that no reply has",
        ),
    ] {
        let found = page_complaints(ErrorCode::Conflict, &page.replacen(from, to, 1)).join("\n");
        assert!(found.contains(complaint), "{from} -> {to}: {found:?}");
    }
}

/// Layer of a crate, and the crates of the workspace that it may use.
struct Room {
    layer: Layer,
    uses: &'static [&'static str],
    uses_in_tests: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    /// No I/O, no clock, no randomness.
    Pure,
    /// The chain itself: no network, no database.
    Mechanism,
    /// Everything that touches the world, and tools for development.
    Edge,
}

/// Crates that tools around the product may use.
const ALL: &[&str] = &[
    "countersign",
    "countersign-args",
    "countersign-commerce",
    "countersign-config",
    "countersign-console",
    "countersign-contract",
    "countersign-evidence",
    "countersign-gateway",
    "countersign-macros",
    "countersign-store",
    "countersign-testkit",
    "countersign-upstream",
];

#[expect(clippy::too_many_lines, reason = "one table, read from top to bottom")]
/// The table of the architecture. A crate that is not in it is a complaint, so that adding one is a
/// decision. A folder of benchmarks may use anything.
fn room(package: &str) -> Option<Room> {
    let (layer, uses, uses_in_tests): (_, &[_], &[_]) = match package {
        "countersign-contract" => (Layer::Pure, &[], &[]),
        "countersign-args" | "countersign-evidence" => {
            (Layer::Pure, &["countersign-contract"], &[])
        }
        "countersign-macros" => (
            Layer::Pure,
            &[],
            &["countersign", "countersign-args", "countersign-contract"],
        ),
        "countersign" => (
            Layer::Mechanism,
            &[
                "countersign-args",
                "countersign-contract",
                "countersign-evidence",
                "countersign-macros",
            ],
            &["countersign-testkit"],
        ),
        "countersign-store" => (
            Layer::Edge,
            &[
                "countersign",
                "countersign-contract",
                "countersign-evidence",
            ],
            &["countersign-testkit"],
        ),
        // The reference tools: nothing but what every tool author has.
        "countersign-commerce" => (Layer::Edge, &["countersign"], ALL),
        // What arrives on a wire; which store is behind it is not its business.
        "countersign-gateway" => (
            Layer::Edge,
            &["countersign", "countersign-args", "countersign-evidence"],
            &["countersign-store", "countersign-testkit"],
        ),
        // Pages for people: they ask the gateway, and nobody else.
        "countersign-console" => (
            Layer::Edge,
            // Of the evidence it knows the bundle that it hands out, and the page that checks one.
            &["countersign", "countersign-evidence", "countersign-gateway"],
            &["countersign-testkit"],
        ),
        // Tools of others: they call services, and know neither a wire nor a store.
        "countersign-upstream" => (
            Layer::Edge,
            &["countersign", "countersign-args", "countersign-contract"],
            &[
                "countersign-evidence",
                "countersign-store",
                "countersign-testkit",
            ],
        ),
        // The settings as data, those of upstreams and their tools among them: it reads no file and no environment.
        "countersign-config" => (
            Layer::Edge,
            &["countersign-contract", "countersign-upstream"],
            &[],
        ),
        // Small on purpose: whoever checks our evidence has to be able to read what checks it.
        "countersign-verifier" => (
            Layer::Edge,
            &["countersign-contract", "countersign-evidence"],
            &[],
        ),
        "countersign-cli" => (
            Layer::Edge,
            &[
                "countersign",
                "countersign-args",
                "countersign-commerce",
                "countersign-config",
                "countersign-console",
                "countersign-contract",
                "countersign-evidence",
                "countersign-gateway",
                "countersign-store",
                "countersign-upstream",
            ],
            // The command is what is tortured: its program is there in its own tests only.
            &["countersign-testkit", "countersign-torture"],
        ),
        "xtask" => (Layer::Edge, &["countersign-testkit"], &[]),
        "countersign-benches" | "countersign-testkit" | "countersign-torture" => {
            (Layer::Edge, ALL, ALL)
        }
        _ => return None,
    };
    Some(Room {
        layer,
        uses,
        uses_in_tests,
    })
}

/// Outside crates that a layer below this one may not use.
const FENCED: &[(&str, Layer)] = &[
    ("askama", Layer::Edge),
    ("axum", Layer::Edge),
    ("reqwest", Layer::Edge),
    ("rmcp", Layer::Edge),
    ("rusqlite", Layer::Edge),
    ("tokio-postgres", Layer::Edge),
    ("getrandom", Layer::Mechanism),
    ("rand", Layer::Mechanism),
    ("tokio", Layer::Mechanism),
];

/// Lists the forbidden dependencies of a workspace, from the output of `cargo metadata --no-deps`.
fn layer_complaints(metadata: &Value) -> Vec<String> {
    let mut complaints = Vec::new();
    let packages: BTreeMap<&str, &Value> = list(metadata, "packages")
        .map(|package| (text(package, "name"), package))
        .collect();
    for (name, package) in &packages {
        let Some(room) = room(name) else {
            complaints.push(format!("{name} is not in the table of layers"));
            continue;
        };
        for dependency in list(package, "dependencies") {
            let used = text(dependency, "name");
            let for_tests = text(dependency, "kind") == "dev";
            let allowed =
                room.uses.contains(&used) || for_tests && room.uses_in_tests.contains(&used);
            if packages.contains_key(used) && !allowed {
                complaints.push(format!("{name} may not use {used}"));
            }
            // xtask is built of it and has to be there soon.
            let optional = dependency.get("optional") == Some(&Value::Bool(true));
            if *name == "countersign-testkit" && !for_tests && !optional {
                complaints.push(format!("{name} may use {used} as an option only"));
            }
            let fence = FENCED.iter().find(|(fenced, _)| *fenced == used);
            if !for_tests && fence.is_some_and(|(_, from)| room.layer < *from) {
                complaints.push(format!("{used} may not be used in the layer of {name}"));
            }
        }
    }
    complaints
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn arrows_only_point_up_the_layers() {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(root())
        .output()
        .expect("cargo is there, it runs this test");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    assert!(list(&metadata, "packages").count() >= 7, "{metadata}");
    let complaints = layer_complaints(&metadata);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_wrong_arrow_is_found() {
    let uses = |name: &str, used: &str, kind: Option<&str>| {
        let dependency = json!({"name": used, "kind": kind});
        json!({"name": name, "dependencies": [dependency]})
    };
    let packages = json!({"packages": [
        uses("countersign-contract", "countersign-args", None),
        uses("countersign-args", "tokio", None),
        uses("countersign", "axum", Some("build")),
        uses("countersign-cli", "countersign-testkit", Some("dev")),
        uses("countersign-testkit", "countersign", None),
        uses("countersign-macros", "tokio", Some("dev")),
        uses("xtask", "countersign", None),
        uses("util", "serde", None),
    ]});
    assert_eq!(
        layer_complaints(&packages),
        [
            "axum may not be used in the layer of countersign",
            "tokio may not be used in the layer of countersign-args",
            "countersign-contract may not use countersign-args",
            "countersign-testkit may use countersign as an option only",
            "util is not in the table of layers",
            "xtask may not use countersign",
        ]
    );
    let late = json!({"packages": [uses("countersign-cli", "countersign-testkit", None),
                                   uses("countersign-testkit", "rusqlite", None)]});
    assert_eq!(
        layer_complaints(&late),
        [
            "countersign-cli may not use countersign-testkit",
            "countersign-testkit may use rusqlite as an option only",
        ]
    );
}

/// Lists the faults of one source file. The cases of a macro's refusals (`tests/ui/`) are input, not sources, and the expected compiler
/// output counts their lines: they need no opening.
fn source_complaints(path: &Path, source: &str) -> Vec<String> {
    // Put together here, or this file would be the first to match.
    let forbidden = [["#[", "ignore"].concat(), ["to", "do!("].concat()];
    let mut complaints = Vec::new();
    let is_case = path
        .parent()
        .is_some_and(|folder| folder.ends_with("tests/ui"));
    if !is_case && !source.starts_with("//! ") {
        complaints.push("does not open with `//!` and a sentence".to_owned());
    }
    // A test may let time pass where its time is paused, and nowhere else.
    let is_test = path.iter().any(|part| part == "tests");
    let sleeps = (is_test && !source.contains("start_paused")).then(|| ["sle", "ep("].concat());
    for needle in forbidden.into_iter().chain(sleeps) {
        if let Some(line) = source.lines().position(|line| line.contains(&needle)) {
            complaints.push(format!("contains `{needle}` on line {}", line + 1));
        }
    }
    complaints
}

#[test]
fn source_files_say_what_they_are_for_and_hide_nothing() {
    let files = sources();
    assert!(
        files
            .iter()
            .any(|file| file.ends_with("crates/testkit/tests/tidy.rs"))
    );
    let mut complaints = Vec::new();
    for file in files {
        let source = std::fs::read_to_string(&file).expect("sources are UTF-8");
        let found = source_complaints(&file, &source).into_iter();
        complaints.extend(found.map(|complaint| format!("{}: {complaint}", file.display())));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_hidden_test_and_a_hole_are_found() {
    let source = [
        "fn a() { to",
        "do!() }\n",
        "#[test]\n#[",
        "ignore]\nfn b() {}\n",
    ]
    .concat();
    let found = source_complaints(Path::new("crates/a/src/ui.rs"), &source);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("does not open with"));
    assert!(
        found[1].ends_with("on line 3") && found[2].ends_with("on line 1"),
        "{found:?}"
    );
    let case = Path::new("crates/a/tests/ui/case.rs");
    assert_eq!(source_complaints(case, &source), found[1..]);
    assert_eq!(source_complaints(case, "fn main() {}"), [""; 0]);
    let waits = ["//! A test.\nfn c() { sle", "ep(SECOND) }\n"].concat();
    let test = Path::new("crates/a/tests/c.rs");
    assert_eq!(source_complaints(test, &waits).len(), 1);
    let paused = format!("{waits}#[tokio::test(start_paused = true)]");
    assert_eq!(source_complaints(test, &paused), [""; 0]);
    assert_eq!(
        source_complaints(Path::new("crates/a/src/c.rs"), &waits),
        [""; 0]
    );
    let good = Path::new("crates/a/src/lib.rs");
    assert_eq!(source_complaints(good, "//! What it is for.\n"), [""; 0]);
}

/// Words that hide who or what is meant. A role (caller, operator, approver, user, tool author) or `None if` says it.
const RIDDLES: [&str; 10] = [
    "somebody",
    "nobody",
    "whoever",
    "anybody",
    "everybody",
    "none where",
    "is told",
    "are told",
    "be told",
    "a text",
];

/// Uses of those words that are right.
const PLAIN: [(&str, &str); 2] = [
    ("told apart", "distinguished"),
    ("everybody.rs", "the name of a file"),
];

/// First words of a doc comment that make its reader wait for the name of the thing.
const QUESTIONS: [&str; 6] = ["What", "Whether", "Who", "Whose", "Where", "How"];

/// Largest share of doc comments that may open with one of them, in percent.
const QUESTIONS_MAX: usize = 2;

/// Kinds of text, by the words that are wrong in it.
#[derive(Clone, Copy)]
enum Prose {
    /// A page, or the words of the console: a string is not called a text.
    Page,
    /// Comments and messages of programs: `a text` may be that of a model.
    Program,
}

/// Returns the first word of the list in a line, outside of code between backticks.
fn riddle(line: &str, prose: Prose) -> Option<&'static str> {
    let outside = line.split('`').step_by(2);
    let mut text = outside.collect::<Vec<_>>().join("`").to_lowercase();
    for (right, _) in PLAIN {
        text = text.replace(right, "");
    }
    let is_word = |start: usize, end: usize| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let before = text.get(..start).and_then(|text| text.chars().next_back());
        let after = text.get(end..).and_then(|text| text.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    };
    let is_there = |word: &&str| {
        let mut found = text.match_indices(word);
        found.any(|(start, _)| is_word(start, start + word.len()))
    };
    let is_wrong = |word: &&str| matches!(prose, Prose::Page) || *word != "a text";
    RIDDLES.into_iter().filter(is_wrong).find(is_there)
}

/// The line of a source that is a doc comment, without its mark.
fn doc_comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))
}

/// The doc comments of items of a source: the first line of each.
fn openings(source: &str) -> impl Iterator<Item = &str> {
    let lines = source.lines().map(str::trim_start);
    let before = std::iter::once("").chain(lines.clone());
    let first =
        |(before, line): (&str, &'_ str)| !before.starts_with("///") && line.starts_with("///");
    before
        .zip(lines)
        .filter(move |pair| first(*pair))
        .map(|(_, line)| line.trim_start_matches('/').trim_start())
}

/// True if a doc comment opens with a question instead of a name or a verb.
fn is_question(opening: &str) -> bool {
    let first = opening.split(|c: char| !c.is_alphanumeric()).next();
    first.is_some_and(|word| QUESTIONS.contains(&word))
}

/// The parts of a line that are between double quotes.
fn quoted(line: &str) -> String {
    line.split('"')
        .skip(1)
        .step_by(2)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Pages, words of the console, help and comments name the role that is meant.
#[test]
fn texts_name_who_is_meant() {
    let mut complaints = Vec::new();
    let mut check = |path: &Path, number: usize, line: &str, prose: Prose| {
        if let Some(word) = riddle(line, prose) {
            let path = path.strip_prefix(root()).unwrap_or(path).display();
            complaints.push(format!("{path}:{}: `{word}` in: {line}", number + 1));
        }
    };
    let mut pages = files_under(&root().join("docs"), "md");
    pages.push(root().join("README.md"));
    pages.push(root().join("crates/console/src/words/en.rs"));
    assert!(pages.len() > 60, "{} pages", pages.len());
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("pages are UTF-8");
        for (number, line) in text.lines().enumerate() {
            check(&page, number, line, Prose::Page);
        }
    }
    // Help and messages: what the commands print, and every string in their sources.
    for page in files_under(&root().join("crates/cli/tests/cmd"), "md") {
        let text = std::fs::read_to_string(&page).expect("pages are UTF-8");
        for (number, line) in text.lines().enumerate() {
            check(&page, number, line, Prose::Program);
        }
    }
    for file in sources() {
        let source = std::fs::read_to_string(&file).expect("sources are UTF-8");
        let is_cli = file.starts_with(root().join("crates/cli/src"));
        // This list is of such words.
        let is_list = file.ends_with("testkit/tests/tidy.rs");
        for (number, line) in source.lines().enumerate().filter(|_| !is_list) {
            match doc_comment(line) {
                Some(comment) => check(&file, number, comment, Prose::Program),
                None if is_cli => check(&file, number, &quoted(line), Prose::Program),
                None => {}
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// A doc comment names the thing first. A few that fit no other form are allowed.
#[test]
fn doc_comments_name_the_thing_first() {
    let (mut all, mut questions) = (0, Vec::new());
    for file in sources() {
        let source = std::fs::read_to_string(&file).expect("sources are UTF-8");
        for opening in openings(&source) {
            all += 1;
            if is_question(opening) {
                questions.push(format!("{}: {opening}", file.display()));
            }
        }
    }
    assert!(all > 10_000, "{all} doc comments");
    let (share, found) = (questions.len() * 100, questions.join("\n"));
    assert!(
        share < all * QUESTIONS_MAX,
        "{} of {all} doc comments open with a question:\n{found}",
        questions.len()
    );
}

#[test]
fn a_riddle_is_found() {
    for (line, word) in [
        ("/// Somebody asks.", Some("somebody")),
        ("None where it is empty", Some("none where")),
        ("the caller is told so", Some("is told")),
        ("| a | nobody |", Some("nobody")),
        ("they are told apart by it", None),
        ("see [`names_nobody`](a.rs) and `nobody`", None),
        ("busybodynobodyx", None),
        ("a text is split", Some("a text")),
        ("a texture", None),
    ] {
        assert_eq!(riddle(line, Prose::Page), word, "{line}");
    }
    assert_eq!(riddle("a text of a model", Prose::Program), None);
    assert_eq!(quoted(r#"say("nobody", x, "b")"#), "nobody b");
    let source = "/// What it is.\n/// Where.\nstruct A {\n    /// Whatever else.\n    b: B,\n    /// How many.\n}\n";
    let found: Vec<&str> = openings(source).collect();
    assert_eq!(found, ["What it is.", "Whatever else.", "How many."]);
    assert_eq!(
        found.into_iter().map(is_question).collect::<Vec<_>>(),
        [true, false, true]
    );
}

/// Words with which a doc comment leads from an error to its cause.
const CAUSES: [&str; 7] = [
    "usually", "because", "if", "when", "after", "such as", "a bug",
];

/// A documented variant of an error.
#[derive(Debug, PartialEq, Eq)]
struct Variant {
    name: String,
    comment: String,
}

impl Variant {
    fn says_its_cause(&self) -> bool {
        let text = format!(" {} ", self.comment.to_lowercase());
        let text = text.replace(|c: char| !c.is_alphanumeric(), " ");
        CAUSES
            .iter()
            .any(|word| text.contains(&format!(" {word} ")))
    }
}

/// The documented variants of the errors (enums that derive `thiserror::Error`) of a source that is formatted.
fn error_variants(source: &str) -> Vec<Variant> {
    let mut variants = Vec::new();
    let (mut is_error, mut inside) = (false, false);
    let mut comment = String::new();
    for line in source.lines() {
        let is_derive = line.starts_with("#[derive(") && line.contains("Error");
        match line {
            _ if is_derive => is_error = true,
            "}" => (is_error, inside) = (false, false),
            _ if line.contains("enum ") && !line.starts_with(' ') => inside = is_error,
            _ if line.contains("struct ") && !line.starts_with(' ') => is_error = false,
            _ => {}
        }
        let Some(member) = line.strip_prefix("    ").filter(|_| inside) else {
            continue;
        };
        if let Some(text) = member.strip_prefix("/// ") {
            comment = comment + text + " ";
        } else if member.starts_with(|c: char| c.is_ascii_uppercase()) {
            let name = member.split(|c: char| !c.is_alphanumeric()).next();
            let comment = std::mem::take(&mut comment).trim_end().to_owned();
            if !comment.is_empty() {
                let name = name.unwrap_or_default().to_owned();
                variants.push(Variant { name, comment });
            }
        }
    }
    variants
}

/// The doc comment of an error says what usually causes it.
#[test]
fn errors_say_what_causes_them() {
    let (mut all, mut complaints) = (0, Vec::new());
    for file in sources() {
        if file.components().any(|part| part.as_os_str() == "tests") {
            continue;
        }
        let source = std::fs::read_to_string(&file).expect("sources are UTF-8");
        for variant in error_variants(&source) {
            all += 1;
            if !variant.says_its_cause() {
                let Variant { name, comment } = variant;
                complaints.push(format!("{}: {name}: {comment}", file.display()));
            }
        }
    }
    assert!(all > 300, "{all} variants");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn an_error_without_a_cause_is_found() {
    let source = "#[derive(Debug, thiserror::Error)]\npub enum Error {\n    /// It is away.\n    /// Usually its file\n    /// was deleted.\n    \
                  #[error(\"away\")]\n    Away {\n        /// The name.\n        name: Name,\n    },\n    /// It is wrong.\n    Wrong,\n    Bare,\n}\n\
                  #[derive(Debug)]\nenum Other {\n    /// One.\n    One,\n}\n";
    let found = error_variants(source);
    let named: Vec<(&str, bool)> = found
        .iter()
        .map(|variant| (variant.name.as_str(), variant.says_its_cause()))
        .collect();
    assert_eq!(named, [("Away", true), ("Wrong", false)]);
}

/// Every Rust source of the workspace.
fn sources() -> Vec<PathBuf> {
    let mut files = files_under(&root().join("crates"), "rs");
    files.extend(files_under(&root().join("xtask"), "rs"));
    files
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_default()
}

/// Every file under a folder whose name ends in `.extension`, in order.
fn files_under(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|own| own == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

//! Checks on the workspace itself: error codes and their pages, the layers, and the source files. `texts.rs` checks words.
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

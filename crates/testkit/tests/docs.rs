//! Checks that the pages are true of the code: codes, limits and keywords are all there, links lead somewhere, and tests that are named
//! exist.

use std::path::{Path, PathBuf};

use countersign_args::Limits;
use countersign_contract::IssueCode;
use countersign_contract::schema::ext;

/// The pages that people read first.
fn pages() -> Vec<PathBuf> {
    let folders = [
        "",
        "docs",
        "docs/errors",
        "docs/rfc",
        "examples",
        "sdk/python",
        "sdk/typescript",
    ];
    let files = folders
        .iter()
        .flat_map(|folder| root().join(folder).read_dir().into_iter().flatten());
    let paths = files.flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect()
}

/// Returns the texts and targets of the links in a page, outside of code.
fn links(page: &str) -> Vec<(&str, &str)> {
    let mut links = Vec::new();
    let mut code = false;
    for line in page.lines() {
        code ^= line.trim_start().starts_with("```");
        for (at, _) in line.match_indices("](").filter(|_| !code) {
            let (before, after) = line.split_at(at);
            let text = before.rsplit_once('[').map(|(_, text)| text);
            let target = after.split(['(', ')']).nth(1);
            links.extend(text.zip(target));
        }
    }
    links
}

/// Returns the fault of a link of a page in this folder; `None` if it is valid.
fn link_complaint(folder: &Path, text: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with('#') {
        return None;
    }
    let path = folder.join(target.split('#').next().unwrap_or_default());
    if !path.exists() {
        return Some(format!("{target} is not there"));
    }
    let name = text
        .strip_prefix('`')
        .and_then(|text| text.strip_suffix('`'))?;
    let is_test = path.extension().is_some_and(|own| own == "rs") && target.contains("/tests/");
    if !is_test {
        return None;
    }
    let source = std::fs::read_to_string(path).unwrap_or_default();
    (!source.contains(&format!("fn {name}("))).then(|| format!("{target} has no test {name}"))
}

#[test]
fn links_lead_somewhere_and_named_tests_exist() {
    let pages = pages();
    assert!(pages.iter().any(|page| page.ends_with("README.md")));
    let mut complaints = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("pages are UTF-8");
        let folder = page.parent().expect("a file is in a folder");
        let found = links(&text)
            .into_iter()
            .filter_map(|(text, to)| link_complaint(folder, text, to));
        complaints.extend(found.map(|complaint| format!("{}: {complaint}", page.display())));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_dead_link_and_a_missing_test_are_found() {
    let page = "see [a](no.md) and [`b`](crates/testkit/tests/docs.rs)\n```\n[c](no.md)\n```\n";
    let found = links(page);
    assert_eq!(
        found,
        [("a", "no.md"), ("`b`", "crates/testkit/tests/docs.rs")]
    );
    let complaints: Vec<_> = found
        .into_iter()
        .map(|(text, to)| link_complaint(&root(), text, to).unwrap_or_default())
        .collect();
    assert_eq!(
        complaints,
        [
            "no.md is not there",
            "crates/testkit/tests/docs.rs has no test b"
        ]
    );
}

/// Rows that a page should have and has not.
fn missing(page: &str, rows: impl IntoIterator<Item = String>) -> Vec<String> {
    rows.into_iter()
        .filter(|row| !page.contains(row.as_str()))
        .collect()
}

fn page_of_the_binder() -> String {
    std::fs::read_to_string(root().join("docs/binder.md")).expect("the page is there")
}

#[test]
fn every_issue_code_has_its_row() {
    let rows = IssueCode::ALL.map(|code| {
        let severity = format!("{:?}", code.severity()).to_lowercase();
        format!("\n| `{code}` | `{severity}` | ")
    });
    assert_eq!(missing(&page_of_the_binder(), rows), [""; 0]);
    assert_eq!(missing("| `A` |", ["| `B` |".to_owned()]), ["| `B` |"]);
}

#[test]
fn every_limit_has_its_row() {
    // The fields as the type itself names them, so that a new one is missed here.
    let fields = format!("{:?}", Limits::default());
    let fields = fields
        .trim_start_matches("Limits { ")
        .trim_end_matches(" }");
    let rows = fields.split(", ").map(|field| {
        let (name, value) = field.split_once(": ").expect("a field has a value");
        format!("\n| `{name}` | {value} | ")
    });
    assert_eq!(missing(&page_of_the_binder(), rows), [""; 0]);
}

#[test]
fn every_extension_keyword_has_its_row() {
    let page =
        std::fs::read_to_string(root().join("docs/schema-extensions.md")).expect("it is there");
    let keywords = [
        ext::KIND,
        ext::ALIASES,
        ext::ENUM_ALIASES,
        ext::CASE,
        ext::LENIENCY,
        ext::TRUNCATE,
        ext::ON_OPTIONAL_ERROR,
        ext::SENSITIVITY,
    ];
    let rows = keywords.map(|keyword| format!("\n| `{keyword}` | "));
    assert_eq!(missing(&page, rows), [""; 0]);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

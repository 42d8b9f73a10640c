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
    let is_test = path.extension().is_some_and(|own| own == "rs")
        && (target.contains("/tests/") || target.ends_with("/tests.rs"));
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

/// Beginnings of a page that say what its reader can do or find afterwards.
const OPENINGS: [&str; 2] = ["After this page ", "Read this page to "];

/// True if the first paragraph under the title says what the page is for.
fn opens_with_its_use(page: &str) -> bool {
    let paragraphs = page.split("\n\n").skip(1);
    let first = paragraphs
        .into_iter()
        .find(|text| !text.starts_with("<!--"));
    first.is_some_and(|text| OPENINGS.iter().any(|opening| text.starts_with(opening)))
}

/// Last line on which the first block of a page may begin, so that a reader finds it without scrolling.
const FIRST_BLOCK_LINES_MAX: usize = 16;

/// True if a page has something to copy near its beginning.
fn begins_with_a_block(page: &str) -> bool {
    let before = page.lines().position(|line| line.starts_with("```"));
    before.is_some_and(|lines| lines < FIRST_BLOCK_LINES_MAX)
}

/// P1: a guide says first what its reader can do after it, then what to copy. The index says what each guide is for.
#[test]
fn guides_open_with_their_use() {
    let mut guides = 0;
    let mut complaints = Vec::new();
    for folder in ["docs", "docs/agents", "docs/errors"] {
        let folder = root().join(folder);
        for entry in folder.read_dir().expect("there are guides").flatten() {
            let path = entry.path();
            let is_guide = path.extension().is_some_and(|extension| extension == "md");
            if !is_guide || path.ends_with("docs/README.md") {
                continue;
            }
            guides += 1;
            let page = std::fs::read_to_string(&path).expect("pages are UTF-8");
            if !opens_with_its_use(&page) {
                complaints.push(format!("{} does not say its use", path.display()));
            }
            if !begins_with_a_block(&page) {
                complaints.push(format!("{} has nothing to copy at first", path.display()));
            }
        }
    }
    assert!(guides > 65, "{guides} guides");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(begins_with_a_block("# A\n\nb\n\n```sh\nc\n```\n"));
    let late = "b\n".repeat(FIRST_BLOCK_LINES_MAX);
    assert!(!begins_with_a_block(&format!("{late}```sh\nc\n```\n")));
    assert!(!begins_with_a_block("# A\n"));
    assert!(opens_with_its_use(
        "# A\n\n<!-- b -->\n\nAfter this page you can c.\n"
    ));
    assert!(!opens_with_its_use(
        "# A\n\nThis page is about c.\n\nAfter this page d.\n"
    ));
}

/// The first page of the repository, in each language.
const READMES: [&str; 2] = ["README.md", "README.zh-CN.md"];

/// The parts of a page that do not depend on its language.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shape {
    /// Level of each heading, and the number of blocks, rows and links below it.
    sections: Vec<Section>,
}

/// The parts of a page below one heading.
#[derive(Debug, Default, PartialEq, Eq)]
struct Section {
    level: usize,
    /// The fenced blocks, with what is in them.
    blocks: Vec<String>,
    /// Number of columns of each row of a table.
    rows: Vec<usize>,
    /// Targets of the links and pictures, in the order of the page.
    targets: Vec<String>,
}

impl Shape {
    fn of(page: &str) -> Self {
        let mut shape = Self::default();
        let mut section = Section::default();
        let mut block: Option<String> = None;
        for line in page.lines() {
            if line.starts_with("```") {
                match block.take() {
                    Some(text) => section.blocks.push(text),
                    None => block = Some(format!("{line}\n")),
                }
            } else if let Some(text) = &mut block {
                text.push_str(line);
                text.push('\n');
            } else if line.starts_with('#') {
                shape.sections.push(std::mem::take(&mut section));
                section.level = line.bytes().take_while(|byte| *byte == b'#').count();
            } else {
                if line.starts_with('|') {
                    section.rows.push(line.matches('|').count());
                }
                let targets = links(line).into_iter().map(|(_, to)| to.to_owned());
                section.targets.extend(targets);
            }
        }
        shape.sections.push(section);
        shape
    }
}

/// Returns the first part of two pages that differs; `None` if one is a translation of the other.
fn difference(one: &str, other: &str) -> Option<String> {
    let (one, other) = (Shape::of(one), Shape::of(other));
    let pairs = one.sections.iter().zip(&other.sections).enumerate();
    for (number, (one, other)) in pairs {
        let what = match () {
            () if one.level != other.level => "the level of the heading",
            () if one.blocks.len() != other.blocks.len() => "the number of code blocks",
            () if one.blocks != other.blocks => "a code block",
            () if one.rows != other.rows => "the rows or columns of a table",
            () if one.targets != other.targets => "a link",
            () => continue,
        };
        return Some(format!("{what} in section {number}: {one:?} and {other:?}"));
    }
    let counts = (one.sections.len(), other.sections.len());
    (counts.0 != counts.1).then(|| format!("the number of headings: {counts:?}"))
}

/// P1: a reader of either language gets the same commands, tables and links, and both pages stay short.
#[test]
fn the_readmes_say_the_same() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).expect("it is there");
    let [english, chinese] = READMES.map(read);
    assert_eq!(difference(&english, &chinese), None);
    for (name, page) in READMES.into_iter().zip([&english, &chinese]) {
        assert!(page.lines().count() < 250, "{name} is too long");
        // Before the first heading below the title: for whom it is, and its status.
        let opening = page.split("\n## ").next().unwrap_or_default();
        let bold = opening.lines().filter(|line| line.starts_with("**"));
        assert_eq!(bold.count(), 2, "{name} opens with two lines in bold");
    }
}

/// A page that names the offline verifier says how to install it, or leads to the section that does.
#[test]
fn the_verifier_can_be_installed() {
    let mut named = 0;
    for path in pages() {
        if path.ends_with("CHANGELOG.md") || path.ends_with("ARCHITECTURE.md") {
            continue;
        }
        let page = std::fs::read_to_string(&path).expect("it is there");
        let says = ["crates/verifier", "evidence-format.md#checking-a-bundle"];
        if page.contains("countersign-verify") {
            named += 1;
            let path = path.display();
            assert!(says.iter().any(|it| page.contains(it)), "{path}");
        }
    }
    assert!(named >= 5, "{named} pages");
}

#[test]
fn a_translation_with_a_gap_is_found() {
    let page = "# A\n[b](b.md)\n```sh\nrun\n```\n## C\n| a | b |\n|---|---|\n";
    assert_eq!(difference(page, page), None);
    assert_eq!(difference(page, &page.replace("# A", "# 甲")), None);
    for (from, to, complaint) in [
        ("## C\n", "", "the rows or columns of a table in section 1"),
        ("## C", "### C", "the level of the heading in section 2"),
        ("run", "ran", "a code block in section 1"),
        (
            "```sh\nrun\n```\n",
            "",
            "the number of code blocks in section 1",
        ),
        (
            "|---|---|\n",
            "",
            "the rows or columns of a table in section 2",
        ),
        ("(b.md)", "(c.md)", "a link in section 1"),
        (
            "|---|---|\n",
            "|---|---|\n## D\n",
            "the number of headings: (3, 4)",
        ),
    ] {
        let found = difference(page, &page.replacen(from, to, 1)).unwrap_or_default();
        assert!(found.starts_with(complaint), "{from:?}: {found}");
    }
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

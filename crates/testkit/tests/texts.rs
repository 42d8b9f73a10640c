//! Checks on the words of the project: pages, messages, help and comments name the thing and the role that is meant.
//!
//! Each check is a function from text to complaints, so that it can be shown to complain.

use std::path::{Path, PathBuf};

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

/// Openings of a doc comment that make its reader wait for the name of the thing.
const QUESTIONS: [&str; 36] = [
    "And",
    "As it",
    "At which",
    "Because",
    "But",
    "By which",
    "For how",
    "For which",
    "For whom",
    "From which",
    "Here",
    "How",
    "If",
    "In which",
    "Of the",
    "On which",
    "On whose",
    "Since when",
    "So long",
    "So many",
    "Than",
    "That",
    "There",
    "Those",
    "To which",
    "Under which",
    "Until when",
    "What",
    "When",
    "Where",
    "Whether",
    "Which",
    "Who",
    "Whose",
    "Why",
    "With which",
];

/// Largest share of doc comments in tests that may open with one of them, in percent. A test may tell its case: "If a, then b".
const QUESTIONS_MAX: usize = 3;

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
    let is_end = |rest: &str| !rest.starts_with(char::is_alphanumeric);
    QUESTIONS
        .iter()
        .any(|words| opening.strip_prefix(words).is_some_and(is_end))
}

/// The part of a source before its tests; empty for a file of tests.
fn product<'s>(path: &Path, source: &'s str) -> &'s str {
    let tests = ["tests", "benches", "tests.rs"];
    let is_test = path.iter().any(|part| tests.iter().any(|it| part == *it));
    let before = source.split("#[cfg(test)]\nmod tests {").next();
    before.filter(|_| !is_test).unwrap_or_default()
}

/// The parts of a line that are between double quotes.
fn quoted(line: &str) -> String {
    line.split('"')
        .skip(1)
        .step_by(2)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Files for people that are read as a whole: a folder or a file, the extension, and the smallest number of files.
const PAGES: [(&str, &str, usize); 11] = [
    ("docs", "md", 60),
    ("README.md", "md", 1),
    ("ARCHITECTURE.md", "md", 1),
    ("CONTRIBUTING.md", "md", 1),
    ("sdk", "md", 2),
    ("examples", "md", 1),
    ("crates/console/templates", "html", 20),
    ("crates/console/templates", "txt", 1),
    ("crates/evidence/page", "html", 1),
    // The tables of messages, and of words of the console.
    ("crates", "words/en.rs", 6),
    ("crates/console/src/case", "words.rs", 1),
];

/// Programs for people, and the output of commands.
const PROGRAMS: [(&str, &str, usize); 6] = [
    ("sdk", "py", 2),
    ("sdk", "ts", 2),
    ("examples", "py", 2),
    ("docs/examples", "py", 1),
    ("crates/cli/tests/cmd", "md", 20),
    ("crates/verifier/tests/cmd", "md", 1),
];

/// The files of one entry of a list. An extension with a dot is the end of a path.
fn listed((place, ending, least): (&str, &str, usize)) -> Vec<PathBuf> {
    let place = root().join(place);
    let extension = ending.rsplit('.').next().unwrap_or_default();
    let mut files = if place.is_file() {
        vec![place.clone()]
    } else {
        files_under(&place, extension)
    };
    files.retain(|path| path.to_string_lossy().ends_with(ending));
    files.retain(|path| !path.iter().any(|part| part == "node_modules"));
    assert!(files.len() >= least, "{} files {ending}", files.len());
    files
}

/// Pages, messages, words of the console, help and comments name the role that is meant.
#[test]
fn texts_name_who_is_meant() {
    let mut complaints = Vec::new();
    let mut check = |path: &Path, number: usize, line: &str, prose: Prose| {
        if let Some(word) = riddle(line, prose) {
            let path = path.strip_prefix(root()).unwrap_or(path).display();
            complaints.push(format!("{path}:{}: `{word}` in: {line}", number + 1));
        }
    };
    let pages = PAGES.map(|entry| (entry, Prose::Page));
    let programs = PROGRAMS.map(|entry| (entry, Prose::Program));
    for (entry, prose) in pages.into_iter().chain(programs) {
        for page in listed(entry) {
            let text = std::fs::read_to_string(&page).expect("pages are UTF-8");
            for (number, line) in text.lines().enumerate() {
                check(&page, number, line, prose);
            }
        }
    }
    // Help, messages and log lines: every comment, and every string of the product.
    for file in sources() {
        let source = std::fs::read_to_string(&file).expect("sources are UTF-8");
        // This list is of such words.
        if file.ends_with("testkit/tests/texts.rs") {
            continue;
        }
        // Programs for the developers of this project have messages for them.
        let is_tool = ["testkit", "torture", "benches", "examples"]
            .iter()
            .any(|name| file.iter().any(|part| part == *name));
        let product = product(&file, &source);
        let of_product = product.lines().count() * usize::from(!is_tool);
        for (number, line) in source.lines().enumerate() {
            match doc_comment(line) {
                Some(comment) => check(&file, number, comment, Prose::Program),
                None if number < of_product => {
                    check(&file, number, &quoted(line), Prose::Program);
                }
                None => {}
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// A doc comment names the thing first. A few of tests that fit no other form are allowed.
#[test]
fn doc_comments_name_the_thing_first() {
    let (mut all, mut of_tests) = (0, 0);
    let (mut wrong, mut questions) = (Vec::new(), Vec::new());
    for file in sources() {
        let source = std::fs::read_to_string(&file).expect("sources are UTF-8");
        let product = product(&file, &source);
        let complain = |opening: &str| format!("{}: {opening}", file.display());
        all += openings(product).count();
        wrong.extend(openings(product).filter(|it| is_question(it)).map(complain));
        let tests = source.get(product.len()..).unwrap_or_default();
        of_tests += openings(tests).count();
        questions.extend(openings(tests).filter(|it| is_question(it)).map(complain));
    }
    assert!(all > 9_000 && of_tests > 2_000, "{all} and {of_tests}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let (share, found) = (questions.len() * 100, questions.join("\n"));
    assert!(
        share < of_tests * QUESTIONS_MAX,
        "{} of {of_tests} doc comments of tests open with a question:\n{found}",
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
    let source = "/// What it is.\n/// Where.\nstruct A {\n    /// Whatever else.\n    b: B,\n    /// So many of it.\n}\n";
    let found: Vec<&str> = openings(source).collect();
    assert_eq!(found, ["What it is.", "Whatever else.", "So many of it."]);
    assert_eq!(
        found.into_iter().map(is_question).collect::<Vec<_>>(),
        [true, false, true]
    );
    let source = "a\n#[cfg(test)]\nmod tests {\n";
    assert_eq!(product(Path::new("crates/a/src/b.rs"), source), "a\n");
    assert_eq!(product(Path::new("crates/a/tests/b.rs"), source), "");
}

/// Words with which a doc comment leads from an error to its cause. "If", "when" and "after" also stand in sentences about the consequence.
const CAUSES: [&str; 3] = ["usually", "because", "a bug"];

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
                  #[error(\"away\")]\n    Away {\n        /// The name.\n        name: Name,\n    },\n    /// It is wrong if it is there.\n    Wrong,\n    Bare,\n}\n\
                  #[derive(Debug)]\nenum Other {\n    /// One.\n    One,\n}\n";
    let found = error_variants(source);
    let named: Vec<(&str, bool)> = found
        .iter()
        .map(|variant| (variant.name.as_str(), variant.says_its_cause()))
        .collect();
    assert_eq!(named, [("Away", true), ("Wrong", false)]);
}

/// True if a source gives a hint that is not in the tables of messages, so that it exists in one language only.
fn has_loose_hint(source: &str) -> bool {
    let dense: String = source.split_whitespace().collect();
    [".hint(\"", ".hint(format!("]
        .iter()
        .any(|start| dense.contains(start))
}

/// C12: hints of the gateway come from the tables, so they exist in English and Chinese.
#[test]
fn hints_of_the_gateway_are_in_the_tables() {
    let files = files_under(&root().join("crates/gateway/src"), "rs");
    assert!(files.len() > 100, "{} files", files.len());
    let loose = files.iter().filter(|file| {
        let source = std::fs::read_to_string(file).expect("sources are UTF-8");
        has_loose_hint(product(file, &source))
    });
    let loose: Vec<String> = loose.map(|file| file.display().to_string()).collect();
    assert!(loose.is_empty(), "{}", loose.join("\n"));
    assert!(has_loose_hint("refusal.hint(\n    \"try again\",\n)"));
    assert!(!has_loose_hint("refusal.hint(Say::TryAgain)"));
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

//! Every page of the documentation is read with the readers of this program: its commands with the command line's parser, its
//! settings with that of the configuration or of the policy.

use std::path::{Path, PathBuf};

use clap::Parser as _;
use clap::error::ErrorKind;
use countersign_config::Document;
use countersign_gateway::policy::Policy;

use crate::Cli;

/// TOML blocks that are no settings: the page, the first line, and the reader that they are for.
const OTHER_FILES: [(&str, &str, &str); 3] = [
    ("docs/adding-a-tool.md", "[dependencies]", "cargo"),
    (
        "docs/compliance-rules.md",
        "[[rules]]",
        "the shop's rules about goods",
    ),
    (
        "docs/conditions.md",
        "[[cases]]",
        "`policy test`, which `tests/pages` runs",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages with commands: those of `docs/`, and the first pages of the repository, the SDKs and the examples.
fn pages() -> Vec<(String, String)> {
    let folders = [
        "",
        "docs",
        "docs/agents",
        "docs/errors",
        "docs/rfc",
        "examples",
        "sdk/python",
        "sdk/typescript",
    ];
    let mut pages = Vec::new();
    for folder in folders {
        for entry in root().join(folder).read_dir().unwrap() {
            let path = entry.unwrap().path();
            // What was changed keeps the words of its time.
            let is_page = path.extension().is_some_and(|own| own == "md");
            if is_page && !path.ends_with("CHANGELOG.md") {
                let name = path.file_name().unwrap().to_string_lossy();
                let name = format!("{folder}/{name}");
                let text = std::fs::read_to_string(&path).unwrap();
                pages.push((name.trim_start_matches('/').to_owned(), text));
            }
        }
    }
    pages.sort();
    pages
}

/// The fenced blocks of a page: their kind and their text.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in page.lines() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(kind), None) => open = Some((kind, String::new())),
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some((kind, text))) => open = Some((kind, text + line + "\n")),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// The part of a block that is for a shell.
fn script(kind: &str, text: &str) -> Option<String> {
    let prompted = |prompt: &'static str| {
        joined(
            text.lines()
                .filter_map(move |line| line.strip_prefix(prompt)),
        )
    };
    match kind {
        "sh" | "bash" | "text" | "" => Some(text.to_owned()),
        "console" => Some(prompted("$ ")),
        "ini" => Some(prompted("ExecStart=/usr/local/bin/")),
        _ => None,
    }
}

/// The lines as a text.
fn joined<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// A part of a shell script.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    /// The end of a command: `|`, `&&`, `;`, a line's end and the like.
    End,
    /// A redirection; its target follows.
    Redirect,
}

/// The tokens of a script. What is substituted (`$(…)`) is a word of its own and is read as a script, too.
fn tokens(script: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut inner = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = script.chars().peekable();
    let mut quote: Option<char> = None;
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => {
                // A line that goes on is one line.
                if let Some(next) = rest.next().filter(|next| *next != '\n') {
                    word.get_or_insert_default().push(next);
                }
            }
            (Some('"') | None, '$') if rest.peek() == Some(&'(') => {
                let substituted = parenthesised(&mut rest);
                inner.push(Token::End);
                inner.extend(tokens(&substituted));
                inner.push(Token::End);
                word.get_or_insert_default().push_str("SUBSTITUTED");
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => while rest.next_if(|c| *c != '\n').is_some() {},
            (None, '<' | '>') => {
                // `2>` redirects a stream that is named by its number.
                word.take_if(|word| word.chars().all(|c| c.is_ascii_digit()));
                found.extend(word.take().map(Token::Word));
                while rest.next_if(|c| matches!(c, '<' | '>' | '&')).is_some() {}
                found.push(Token::Redirect);
            }
            (None, '\n' | ';' | '|' | '&' | '(' | ')' | '{' | '}')
                if !is_braces(c, word.as_ref(), rest.peek()) =>
            {
                found.extend(word.take().map(Token::Word));
                found.push(Token::End);
            }
            (None, c) if c.is_whitespace() => found.extend(word.take().map(Token::Word)),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    found.extend(word.map(Token::Word));
    found.extend(inner);
    found
}

/// True for the braces of `${name}` and `{a,b}`, which are parts of a word.
fn is_braces(c: char, word: Option<&String>, next: Option<&char>) -> bool {
    match c {
        '{' => word.is_some() || next.is_some_and(|next| !next.is_whitespace()),
        '}' => word.is_some(),
        _ => false,
    }
}

/// The text between the next pair of parentheses.
fn parenthesised(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut depth = 0;
    let mut text = String::new();
    for c in rest.by_ref() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        text.push(c);
        if depth == 0 {
            break;
        }
    }
    let inside = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    inside.unwrap_or(&text).to_owned()
}

/// The commands of a script that are this program's: the words of each, with its name.
fn own_commands(script: &str) -> Vec<Vec<String>> {
    let tokens = tokens(&without_documents(script));
    let mut commands = Vec::new();
    let mut rest = tokens.as_slice();
    let mut is_start = true;
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        let word = match token {
            Token::Word(word) => word.as_str(),
            Token::End | Token::Redirect => {
                is_start = true;
                continue;
            }
        };
        let from_cargo = ["run", "-p", "countersign-cli", "--"];
        let is_cargo = word == "cargo"
            && after.len() >= from_cargo.len()
            && after
                .iter()
                .zip(from_cargo)
                .all(|(token, word)| *token == Token::Word(word.to_owned()));
        if is_start && (word == "countersign" || is_cargo) {
            let skipped = if is_cargo { from_cargo.len() } else { 0 };
            let words = words(after.get(skipped..).unwrap_or_default());
            commands.push(
                std::iter::once("countersign".to_owned())
                    .chain(words)
                    .collect(),
            );
        }
        // What another program starts, the clock of a table of cron, and variables before a command.
        is_start = matches!(
            word,
            "--" | "*" | "do" | "then" | "else" | "if" | "!" | "exec"
        ) || word.contains('=') && is_start;
    }
    commands
}

/// The words up to the end of a command, without the targets of redirections. What a page leaves out of an id (`ev_…`) is a digit, and
/// left out arguments are none.
fn words(tokens: &[Token]) -> Vec<String> {
    let mut words = Vec::new();
    let mut is_target = false;
    for token in tokens {
        match token {
            Token::End => break,
            Token::Redirect => is_target = true,
            Token::Word(word) => {
                if !std::mem::take(&mut is_target) && word != "…" {
                    words.push(word.replace('…', "0"));
                }
            }
        }
    }
    words
}

/// The texts that a script writes with `cat > FILE <<'END'`: their file and their text.
fn documents(script: &str) -> Vec<(String, String)> {
    let mut documents = Vec::new();
    let mut lines = script.lines();
    while let Some(line) = lines.next() {
        if let Some((command, end)) = line.split_once("<<") {
            let end = end.trim_matches(['\'', '"', ' ']);
            let file = command.split_whitespace().last().unwrap_or_default();
            let text = joined(lines.by_ref().take_while(|line| *line != end));
            documents.push((file.to_owned(), text));
        }
    }
    documents
}

/// The script without those texts.
fn without_documents(script: &str) -> String {
    let mut kept = String::new();
    let mut lines = script.lines();
    while let Some(line) = lines.next() {
        kept.push_str(line.split("<<").next().unwrap_or_default());
        kept.push('\n');
        if let Some((_, end)) = line.split_once("<<") {
            let end = end.trim_matches(['\'', '"', ' ']);
            lines
                .by_ref()
                .take_while(|line| *line != end)
                .for_each(drop);
        }
    }
    kept
}

/// Code between backticks in the prose of a page.
fn spans(page: &str) -> Vec<&str> {
    let mut is_block = false;
    let mut spans = Vec::new();
    for line in page.lines() {
        is_block ^= line.trim_start().starts_with("```");
        if !is_block {
            spans.extend(line.split('`').skip(1).step_by(2));
        }
    }
    spans
}

/// The fault of a command; `None` if the parser takes it.
fn command_complaint(words: &[String]) -> Option<String> {
    match Cli::try_parse_from(words) {
        Ok(_) => None,
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => None,
            _ => Some(format!("{}\n{error}", words.join(" "))),
        },
    }
}

/// The fault of a command in prose, where arguments may be left out and written as names (`ID`).
fn mention_complaint(words: &[String]) -> Option<String> {
    let error = Cli::try_parse_from(words).err()?;
    match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => {
            Some(format!("{}\n{error}", words.join(" ")))
        }
        _ => None,
    }
}

/// The fault of a block of settings; `None` if the configuration's reader or the policy's takes it.
fn settings_complaint(text: &str, before: &str) -> Option<String> {
    let mut nothing = |_: &Path| -> std::io::Result<String> { Ok(String::new()) };
    let config = Document::parse_with("countersign.toml", text, &mut nothing);
    let Err(config) = config else { return None };
    // A block may go on with the upstreams of an earlier one.
    let longer = format!("{text}\n{before}");
    if Document::parse_with("countersign.toml", &longer, &mut nothing).is_ok() {
        return None;
    }
    let Err(policy) = Policy::parse(text) else {
        return None;
    };
    Some(format!(
        "{text}as configuration: {config}\nas policy: {policy}"
    ))
}

/// The entries `[[upstream]]` of a block.
fn upstreams(text: &str) -> String {
    let mut is_upstream = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.starts_with('[') {
            is_upstream =
                line.starts_with("[[upstream]]") || is_upstream && line.starts_with("[upstream.");
        }
        if is_upstream {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// P1: a command that a reader copies from a page is one that this program has.
#[test]
fn every_command_of_the_pages_is_parsed() {
    let mut complaints = Vec::new();
    let (mut commands, mut mentions) = (0, 0);
    for (name, page) in pages() {
        let mut found = Vec::new();
        for (kind, text) in blocks(&page) {
            let Some(script) = script(kind, &text) else {
                continue;
            };
            for words in own_commands(&script) {
                commands += 1;
                found.extend(command_complaint(&words));
            }
        }
        for span in spans(&page) {
            // A bar in a table is written with a backslash.
            for words in own_commands(&span.replace("\\|", "|")) {
                mentions += 1;
                found.extend(mention_complaint(&words));
            }
        }
        complaints.extend(found.into_iter().map(|found| format!("{name}: {found}")));
    }
    assert!(commands > 120, "{commands} commands");
    assert!(mentions > 100, "{mentions} mentions");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// P1: settings that a reader copies from a page are read.
#[test]
fn every_setting_of_the_pages_is_read() {
    let mut complaints = Vec::new();
    let (mut settings, mut others) = (0, 0);
    for (name, page) in pages() {
        let mut before = String::new();
        for (kind, text) in blocks(&page) {
            let texts = match kind {
                "toml" => vec![text],
                _ => documents(&script(kind, &text).unwrap_or_default())
                    .into_iter()
                    .filter(|(file, _)| {
                        Path::new(file).extension().is_some_and(|own| own == "toml")
                    })
                    .map(|(_, text)| text)
                    .collect(),
            };
            for text in texts {
                let first = text.lines().next().unwrap_or_default();
                if OTHER_FILES
                    .iter()
                    .any(|(page, line, _)| *page == name && *line == first)
                {
                    others += 1;
                    if !Document::is_toml(&text) {
                        complaints.push(format!("{name}: {text}is not TOML"));
                    }
                    continue;
                }
                settings += 1;
                let found = settings_complaint(&text, &before);
                complaints.extend(found.map(|found| format!("{name}: {found}")));
                before.push_str(&upstreams(&text));
            }
        }
    }
    assert!(settings >= 15, "{settings} blocks of settings");
    assert_eq!(
        others,
        OTHER_FILES.len(),
        "each of the other files is there"
    );
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_wrong_command_is_found() {
    let commands = |script: &str| {
        let own = own_commands(script).into_iter();
        own.map(|words| words.join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(
        commands(
            "A=1 countersign tools 'a b' > x 2>&1 | jq .   # countersign x\ncargo run -p countersign-cli -- demo\n"
        ),
        ["countersign tools a b", "countersign demo"]
    );
    assert_eq!(
        commands(
            "id=$(countersign keys list | head) && countersign verify \\\n  --all || echo countersign\n"
        ),
        ["countersign verify --all", "countersign keys list"]
    );
    assert_eq!(
        commands(
            "cat > a.toml <<'END'\ncountersign = 1\nEND\ncountersign approvals approve \"$(cat id)\"\n"
        ),
        ["countersign approvals approve SUBSTITUTED"]
    );
    assert_eq!(
        commands("claude mcp add x -- countersign mcp --user u\n15 3 * * *  countersign verify\n"),
        ["countersign mcp --user u", "countersign verify"]
    );
    assert_eq!(
        commands("countersign evidence export ev_… …\n"),
        ["countersign evidence export ev_0"]
    );
    let complaint = |line: &str| command_complaint(&own_commands(line).concat());
    assert_eq!(complaint("countersign verify --all"), None);
    assert!(complaint("countersign verify --al").is_some());
    assert!(complaint("countersign approvals approve").is_some());
    let mention = |line: &str| mention_complaint(&own_commands(line).concat());
    assert_eq!(mention("countersign approvals approve"), None);
    assert!(mention("countersign aprovals").is_some());
    assert!(mention("countersign approvals approve --reson x").is_some());
}

#[test]
fn a_wrong_setting_is_found() {
    let complaint = |text: &str| settings_complaint(text, "");
    assert_eq!(complaint("[server]\nlisten = \"127.0.0.1:1\"\n"), None);
    assert_eq!(complaint("[limits.user]\ncalls = 2\nper = \"1m\"\n"), None);
    assert!(complaint("[server]\nlisten_on = \"127.0.0.1:1\"\n").is_some());
    assert!(complaint("[limits.user]\ncals = 2\nper = \"1m\"\n").is_some());
    let tool = "[[tool]]\nname = \"crm.find\"\nupstream = \"crm\"\ndescription = \"Finds.\"\n";
    assert!(complaint(tool).is_some());
    let page = "[server]\n[[upstream]]\nname = \"crm\"\nbase_url = \"https://crm.example.com\"\n[[tool]]\nname = \"x\"\n";
    assert_eq!(settings_complaint(tool, &upstreams(page)), None);
    let script = "cat > policy.toml <<'END'\n[limits.user]\nEND\nx\n";
    assert_eq!(
        documents(script),
        [("policy.toml".to_owned(), "[limits.user]\n".to_owned())]
    );
}

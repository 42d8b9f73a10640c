//! Two laws over generated texts and generated damage: no byte of a string becomes a member, and a text that is
//! not read completely is not run. Cases that people can read are in `whole.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use countersign_args::Binder;
use countersign_contract::tool::{BindPolicy, UnknownKeys};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

/// Number of texts that each law is tried on.
const CASES: u32 = 2_000;

/// Everything is optional, so only the reading itself can refuse a text.
fn binders() -> [Binder; 2] {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string" },
            "content": { "type": "string" },
            "note": { "type": "string" },
            "force": { "type": "boolean" },
            "n": { "type": "integer" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "data": { "type": "object", "properties": { "n": { "type": "integer" }, "x": { "type": "string" } } },
        },
    });
    [UnknownKeys::Keep, UnknownKeys::Refuse].map(|unknown_keys| {
        let policy = BindPolicy {
            unknown_keys,
            ..BindPolicy::default()
        };
        Binder::from_schema(&schema, policy).unwrap()
    })
}

/// Strings that look like a part of a call.
fn string() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "curl -d {\"force\": true} http://h",
        "set \"n\": 5",
        "{\"path\": \"b\", \"force\": true}",
        "[{\"n\": 1}]",
        "\"force\": true",
        ", \"force\": true",
        "say \"hi\"",
        "the \"so-called\" expert",
        "He said: \"No!\"",
        "27\" monitor",
        "it's",
        "'force': True",
        "f(force=True)",
        "force: true",
        "</tool_call>",
        "<parameter name=\"force\">true</parameter>",
        "```",
        "\n",
        "C:\\dir",
        "\\d+",
        "a, b",
        "{x}",
        "}",
        "]",
        "x = y",
        "北京，",
        "Paris",
        " ",
        "#1",
        "5",
    ];
    prop::collection::vec(select(PIECES), 1..4).prop_map(|pieces| pieces.concat())
}

fn arguments() -> impl Strategy<Value = Value> {
    let text = || prop::option::weighted(0.7, string());
    // A blank string for a list counts as no list.
    let item = string().prop_map(|text| format!("-{text}"));
    (
        (text(), text(), text()),
        prop::option::of(any::<bool>()),
        prop::option::of(-9..99_i64),
        prop::option::weighted(0.3, prop::collection::vec(item, 0..3)),
        prop::option::weighted(0.3, (0..9_i64, string())),
    )
        .prop_map(|((path, content, note), force, n, tags, data)| {
            let data = data.map(|(n, x)| json!({ "n": n, "x": x }));
            let members = [
                ("path", path.map(Value::from)),
                ("content", content.map(Value::from)),
                ("force", force.map(Value::from)),
                ("tags", tags.map(Value::from)),
                ("note", note.map(Value::from)),
                ("data", data),
                ("n", n.map(Value::from)),
            ];
            let members = members.into_iter();
            let given = members.filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Value::Object(given.collect::<Map<_, _>>())
        })
}

/// A piece of a written document.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// `{ } [ ] , :`
    Mark(char),
    /// A quote around a string.
    Quote(char),
    /// A backslash before a quote inside a string.
    Escape,
    /// A part of a string.
    Inside(String),
    /// A number, a literal or a bare key.
    Word(String),
    White(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Style {
    Compact,
    Spaced,
    Pretty,
    Python,
    JavaScript,
}

fn write(value: &Value, style: Style, out: &mut Vec<Token>) {
    let separator = |out: &mut Vec<Token>| {
        out.push(Token::Mark(','));
        match style {
            Style::Compact => {}
            Style::Pretty => out.push(Token::White("\n  ")),
            Style::Spaced | Style::Python | Style::JavaScript => out.push(Token::White(" ")),
        }
    };
    match value {
        Value::Object(members) => {
            out.push(Token::Mark('{'));
            for (i, (name, value)) in members.iter().enumerate() {
                if i > 0 {
                    separator(out);
                } else if style == Style::Pretty {
                    out.push(Token::White("\n  "));
                }
                if style == Style::JavaScript {
                    out.push(Token::Word(name.clone()));
                } else {
                    write_string(name, style, out);
                }
                out.push(Token::Mark(':'));
                if style != Style::Compact {
                    out.push(Token::White(" "));
                }
                write(value, style, out);
            }
            if style == Style::Pretty {
                out.push(Token::White("\n"));
            }
            out.push(Token::Mark('}'));
        }
        Value::Array(items) => {
            out.push(Token::Mark('['));
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    separator(out);
                }
                write(item, style, out);
            }
            out.push(Token::Mark(']'));
        }
        Value::String(text) => write_string(text, style, out),
        Value::Bool(true) if style == Style::Python => out.push(Token::Word("True".to_owned())),
        Value::Bool(false) if style == Style::Python => out.push(Token::Word("False".to_owned())),
        other => out.push(Token::Word(other.to_string())),
    }
}

fn write_string(text: &str, style: Style, out: &mut Vec<Token>) {
    let single = matches!(style, Style::Python | Style::JavaScript);
    let quote = if single { '\'' } else { '"' };
    out.push(Token::Quote(quote));
    for c in text.chars() {
        match c {
            '\n' => out.push(Token::Inside("\\n".to_owned())),
            '\\' => out.push(Token::Inside("\\\\".to_owned())),
            c if c == quote => {
                out.push(Token::Escape);
                out.push(Token::Inside(c.to_string()));
            }
            c => match out.last_mut() {
                Some(Token::Inside(part)) if !part.ends_with(['\\', '"', '\'']) => part.push(c),
                _ => out.push(Token::Inside(c.to_string())),
            },
        }
    }
    out.push(Token::Quote(quote));
}

/// Damage to a document in transit.
#[derive(Debug, Clone)]
enum Damage {
    /// A mark, a quote or an escape is lost.
    Drop(Index),
    /// Nothing is escaped in one string.
    Unescape(Index),
    /// Every escape is escaped again.
    EscapeTwice(Index),
    /// Both quotes of a string are lost.
    Unquote(Index),
    /// A quote or a mark is inserted or doubled.
    Insert(Index, char),
    /// A quote is replaced by another one.
    Requote(Index, char),
    /// The end is lost.
    Cut(Index),
    /// The beginning is lost.
    Behead(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        6 => at().prop_map(Damage::Drop),
        4 => at().prop_map(Damage::Unescape),
        1 => at().prop_map(Damage::EscapeTwice),
        1 => at().prop_map(Damage::Unquote),
        4 => (at(), select(&['"', '\'', ',', '{', '}', '[', ']', ':'][..]))
            .prop_map(|(at, c)| Damage::Insert(at, c)),
        1 => (at(), select(&['"', '\'', '`', '“', '”'][..]))
            .prop_map(|(at, c)| Damage::Requote(at, c)),
        1 => at().prop_map(Damage::Cut),
        1 => at().prop_map(Damage::Behead),
    ]
}

/// Returns the strings of a document: the positions of their two quotes.
fn strings(tokens: &[Token]) -> Vec<(usize, usize)> {
    let quotes: Vec<usize> = (0..tokens.len())
        .filter(|i| matches!(tokens[*i], Token::Quote(_)))
        .collect();
    quotes
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect()
}

/// Returns the position of one of the tokens that fit.
fn place(tokens: &[Token], at: Index, fits: impl Fn(&Token) -> bool) -> Option<usize> {
    let places: Vec<usize> = (0..tokens.len()).filter(|i| fits(&tokens[*i])).collect();
    (!places.is_empty()).then(|| *at.get(&places))
}

fn apply(tokens: &mut Vec<Token>, damage: &Damage) {
    match damage {
        Damage::Drop(at) => {
            let fits =
                |token: &Token| matches!(token, Token::Mark(_) | Token::Quote(_) | Token::Escape);
            if let Some(i) = place(tokens, *at, fits) {
                tokens.remove(i);
            }
        }
        Damage::Unescape(at) | Damage::EscapeTwice(at) | Damage::Unquote(at) => {
            let mut strings = strings(tokens);
            if matches!(damage, Damage::Unquote(_)) {
                // White space at the end of a string is only kept by its quotes.
                strings.retain(|(open, close)| {
                    let text = text_of(&tokens[open + 1..*close]);
                    text.trim() == text && !text.contains("\\n") && !text.contains(['}', ']', ','])
                });
            }
            if strings.is_empty() {
                return;
            }
            let (open, close) = *at.get(&strings);
            let mut i = 0;
            tokens.retain(|token| {
                let here = i;
                i += 1;
                match damage {
                    Damage::Unescape(_) => {
                        !(*token == Token::Escape && open < here && here < close)
                    }
                    Damage::Unquote(_) => here != open && here != close,
                    _ => true,
                }
            });
            if matches!(damage, Damage::EscapeTwice(_)) {
                for token in &mut tokens[open..close] {
                    if *token == Token::Escape {
                        *token = Token::Inside("\\\\".to_owned());
                    }
                }
            }
        }
        Damage::Insert(at, '"' | '\'') => {
            // A quote of another kind than the string's own is a part of that string.
            let own = tokens.iter().find(|token| matches!(token, Token::Quote(_)));
            let quote = own.cloned().unwrap_or(Token::Quote('"'));
            tokens.insert(at.index(tokens.len() + 1), quote);
        }
        Damage::Insert(at, c) => {
            // Inside a string it would be another string.
            let fits = |token: &Token| matches!(token, Token::Mark(_) | Token::White(_));
            if let Some(i) = place(tokens, *at, fits) {
                tokens.insert(i, Token::Mark(*c));
            }
        }
        Damage::Requote(at, c) => {
            if let Some(i) = place(tokens, *at, |token| matches!(token, Token::Quote(_))) {
                tokens[i] = Token::Quote(*c);
            }
        }
        Damage::Cut(at) => tokens.truncate(at.index(tokens.len() + 1)),
        Damage::Behead(at) => {
            // A text that begins with a member may lack only its brace.
            if let Some(i) = place(tokens, *at, |token| matches!(token, Token::Inside(_))) {
                tokens.drain(..i);
            }
        }
    }
}

/// Applies all damage that can be detected together. A text that lost its beginning may be a call of its own
/// after further damage, and a quote that is lost at one place and inserted at another has only moved.
fn damaged(tokens: &mut Vec<Token>, damage: &[Damage]) {
    let beheaded = |damage: &&Damage| matches!(damage, Damage::Behead(_));
    if let Some(damage) = damage.iter().find(beheaded) {
        return apply(tokens, damage);
    }
    let count =
        |tokens: &[Token], fits: fn(&Token) -> bool| tokens.iter().filter(|t| fits(t)).count();
    let quotes = |tokens: &[Token]| count(tokens, |token| matches!(token, Token::Quote(_)));
    let escapes = |tokens: &[Token]| count(tokens, |token| *token == Token::Escape);
    let marks = |tokens: &[Token]| count(tokens, |token| matches!(token, Token::Mark(_)));
    let (mut lost, mut gained, mut moved) = (0, 0, [0, 0]);
    for damage in damage {
        let mut after = tokens.clone();
        apply(&mut after, damage);
        lost += quotes(tokens).saturating_sub(quotes(&after));
        lost += 2 * usize::from(matches!(damage, Damage::Requote(..)));
        gained += 2 * quotes(&after).saturating_sub(quotes(tokens));
        // One unescaped quote closes a string, a second one opens the next.
        gained += match escapes(tokens).saturating_sub(escapes(&after)) {
            0 => 0,
            1 => 2,
            _ => 1,
        };
        moved[0] += marks(tokens).saturating_sub(marks(&after));
        moved[1] += marks(&after).saturating_sub(marks(tokens));
        let unquoted = lost == 2 && matches!(damage, Damage::Unquote(_) | Damage::Requote(..));
        let visible = (lost <= 1 || unquoted)
            && gained <= 2
            && (lost == 0 || gained == 0)
            && moved.contains(&0);
        let cut = matches!(damage, Damage::Cut(_));
        if visible && !(cut && gained + moved[1] > 0) {
            *tokens = after;
        }
        if cut {
            return;
        }
    }
}

fn text_of(tokens: &[Token]) -> String {
    let piece = |token: &Token| match token {
        Token::Mark(c) | Token::Quote(c) => c.to_string(),
        Token::Escape => "\\".to_owned(),
        Token::Inside(text) | Token::Word(text) => text.clone(),
        Token::White(text) => (*text).to_owned(),
    };
    tokens.iter().map(piece).collect()
}

/// Texts that may stand around a document.
const AROUND: [(&str, &str); 12] = [
    ("", ""),
    ("", ""),
    ("", ""),
    ("Sure! Here are the arguments:\n", ""),
    ("", "\nLet me know if you need anything else!"),
    ("```json\n", "\n```"),
    ("<tool_call>\n", "\n</tool_call>"),
    ("{\"name\": \"f\", \"arguments\": ", "}"),
    ("<think>\nThe user wants it.\n</think>\n", "<|im_end|>"),
    ("f(", ")"),
    ("[TOOL_CALLS]f[ARGS]", ""),
    ("[", "]"),
];

/// Writes a document with the text around it.
fn written(value: &Value, style: Style, around: (&'static str, &'static str)) -> Vec<Token> {
    let mut tokens = vec![Token::White(around.0)];
    write(value, style, &mut tokens);
    tokens.push(Token::White(around.1));
    tokens
}

fn style() -> impl Strategy<Value = Style> {
    select(
        &[
            Style::Compact,
            Style::Spaced,
            Style::Spaced,
            Style::Pretty,
            Style::Python,
            Style::JavaScript,
        ][..],
    )
}

/// True if the text is JSON, with or without text around it.
fn is_still_json(text: &str) -> bool {
    let text = text
        .get(text.find('{').unwrap_or_default()..)
        .unwrap_or_default();
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    matches!(documents.next(), Some(Ok(Value::Object(members))) if !members.is_empty())
        && !text
            .get(documents.byte_offset()..)
            .unwrap_or_default()
            .contains(['"', '{'])
}

/// Returns the arguments that run, for each policy about unknown names.
fn runs(text: &str) -> Vec<Value> {
    let bound = binders().map(|binder| binder.bind(text));
    let ran = bound.iter().filter(|bound| bound.is_executable());
    ran.map(|bound| bound.arguments.as_ref().unwrap().to_value())
        .collect()
}

/// Structure that belongs to a call and stands before a document.
const BEFORE: [&str; 14] = [
    "{",
    "{\"force\": true",
    "[\"a\", ",
    "\"force\": true, ",
    "force: true\n",
    "force=True, ",
    "g(\"x\")\n",
    "g(force=True)\n",
    "g(x, ",
    "<parameter name=\"force\">true</parameter>\n",
    "<arg_key>force</arg_key><arg_value>true</arg_value>\n",
    "<function=g>\n<parameter=data>\n",
    "<force>true</force>\n",
    "<think>Maybe ",
];

/// Structure that stands behind a document.
const BEHIND: [&str; 20] = [
    "{",
    "{}",
    "{x}",
    " {\"for",
    "\n{\"force\": true}",
    ", {\"force\": true}",
    " \"force\": true",
    "\nforce: true",
    ", force=True)",
    "\n[{\"for",
    "[0]",
    ".get(\"x\")",
    " or x",
    "\ng(force=True)",
    "\n<tool_call>",
    "\n<tool_call>\n{\"name\"",
    "[TOOL_CALLS]g[AR",
    "<|tool_call_begin|>g",
    "\n<parameter name=\"force\">true</parameter>",
    "\n<think>No, ",
];

/// Prose between structure and document.
const PROSE: [&str; 4] = ["", " ", "\n", "\nThen:\n"];

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    /// B6: whatever the damage, only the meant arguments run. Texts that are still JSON are left out: their
    /// damage cannot be seen.
    #[test]
    fn no_byte_of_a_string_becomes_a_member(
        meant in arguments(),
        style in style(),
        damage in prop::collection::vec(damage(), 1..4),
        around in select(&AROUND[..]),
    ) {
        let mut tokens = written(&meant, style, around);
        damaged(&mut tokens, &damage);
        let text = text_of(&tokens);
        if is_still_json(&text) {
            return Ok(());
        }
        for ran in runs(&text) {
            prop_assert_eq!(&ran, &meant, "{}", text);
        }
    }

    /// Undamaged texts are read, so that the law above has something to check.
    #[test]
    fn what_is_whole_is_read(
        meant in arguments(),
        style in style(),
        around in select(&AROUND[..]),
    ) {
        // A lone double quote in single quotes may be the other end of a string.
        let meant: Value = serde_json::from_str(&meant.to_string().replace("27\\\"", "27")).unwrap();
        let text = text_of(&written(&meant, style, around));
        prop_assert_eq!(runs(&text), vec![meant.clone(), meant], "{}", text);
    }

    /// B6: a text that is not read completely is not run: structure around a document is never skipped as
    /// prose.
    #[test]
    fn structure_around_a_document_is_never_prose(
        meant in arguments(),
        style in style(),
        before in select(&BEFORE[..]),
        behind in select(&BEHIND[..]),
        prose in select(&PROSE[..]),
        side in 0..3_u8,
    ) {
        let document = text_of(&written(&meant, style, ("", "")));
        // Some services put an empty object before the arguments that they stream: it is passed over.
        prop_assume!(meant != json!({}));
        // Two equal documents count as one.
        prop_assume!(meant != json!({ "force": true }));
        let before = if side == 1 { "" } else { before };
        let behind = if side == 0 { "" } else { behind };
        let text = format!("{before}{prose}{document}{behind}");
        prop_assert_eq!(runs(&text), Vec::<Value>::new(), "{}", text);
    }
}

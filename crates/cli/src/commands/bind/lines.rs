//! `bind --jsonl`: a stream of texts, each with its schema, to a stream of bindings. Every line in gives one line out, even if it cannot be
//! read; memory does not grow with the stream.

use std::borrow::Cow;
use std::io::{BufRead, Result, Write};

use countersign::contract::parameter::{Leniency, OnOptionalError};
use countersign::contract::tool::{BindPolicy, UnknownKeys};
use countersign::contract::{BindStatus, Issue, IssueCode, Severity};
use countersign_args::{Binder, Bound, Reading};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json;

/// Policy for a bare schema: members that it does not forbid are kept.
pub(super) const POLICY: BindPolicy = BindPolicy {
    leniency: Leniency::Lenient,
    max_severity: Severity::Lossy,
    unknown_keys: UnknownKeys::Keep,
    on_optional_error: OnOptionalError::Refuse,
};

/// The longest line that is read; a longer one is refused without being kept.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A line of the input. Members that are not known here are the caller's own.
#[derive(Deserialize)]
struct Line<'l> {
    #[serde(borrow)]
    schema: &'l RawValue,
    #[serde(borrow)]
    raw: Cow<'l, str>,
}

/// Binds every line.
pub(super) fn bind_lines(
    input: &mut impl BufRead,
    output: &mut impl Write,
    reading: &Reading,
) -> Result<()> {
    let mut line = Vec::new();
    let mut number = 0_u64;
    let mut schemas = Schemas::default();
    while let Some(length) = read_line(input, &mut line)? {
        number += 1;
        let bound = match length {
            Length::Whole => bind_line(&line, number, &mut schemas, reading),
            Length::TooLong => {
                let message = format!("line {number} has more than {LINE_BYTES_MAX} bytes");
                refused(IssueCode::LimitExceeded, message)
            }
        };
        writeln!(output, "{}", line_of(&bound))?;
        // Whoever waits for an answer before the next line gets it.
        output.flush()?;
    }
    Ok(())
}

/// A binding as one line of JSON. The value is written as it was bound, number by number.
pub(super) fn line_of(bound: &Bound) -> String {
    let arguments = bound.arguments.as_ref();
    let value = arguments.map_or("null", |arguments| arguments.as_json());
    line(bound.status, value, &bound.issues)
}

/// One line of JSON with a value that is JSON already.
pub(super) fn line(status: BindStatus, value: &str, issues: &[Issue]) -> String {
    // An issue is texts, numbers and JSON values: there is nothing in it that cannot be written.
    let issues = serde_json::to_string(issues).unwrap_or_else(|_| "[]".to_owned());
    let status = self::status(status);
    let whole = format!(r#"{{"status":"{status}","value":{value},"issues":{issues}}}"#);
    let mut line = String::with_capacity(whole.len());
    json::compact(&whole, &mut line);
    line
}

/// The name of a status in the output.
pub(super) const fn status(status: BindStatus) -> &'static str {
    match status {
        BindStatus::Exact => "exact",
        BindStatus::Repaired => "repaired",
        BindStatus::Incomplete => "incomplete",
        BindStatus::Refused => "refused",
    }
}

fn bind_line(bytes: &[u8], number: u64, schemas: &mut Schemas, reading: &Reading) -> Bound {
    let line: Line<'_> = match serde_json::from_slice(bytes) {
        Ok(line) => line,
        Err(error) => {
            let message =
                format!("line {number} is not {{\"schema\": …, \"raw\": \"…\"}}: {error}");
            return refused(IssueCode::NotFound, message);
        }
    };
    match schemas.binder(line.schema.get()) {
        Ok(binder) => binder.bind_with(&line.raw, reading),
        Err(error) => {
            let message = format!("line {number} has a schema that cannot be used: {error}");
            refused(IssueCode::Constraint, message)
        }
    }
}

fn refused(code: IssueCode, message: String) -> Bound {
    Bound::refused(vec![Issue::new(code, "", message)])
}

/// The last schema, prepared: files are mostly sorted by schema, and preparing costs more than
/// binding.
#[derive(Default)]
struct Schemas {
    text: String,
    last: Option<std::result::Result<Binder, String>>,
}

impl Schemas {
    fn binder(&mut self, text: &str) -> std::result::Result<&Binder, &str> {
        if self.last.is_some() && self.text != text {
            self.last = None;
        }
        let last = self.last.get_or_insert_with(|| {
            text.clone_into(&mut self.text);
            prepare(text)
        });
        last.as_ref().map_err(String::as_str)
    }
}

fn prepare(text: &str) -> std::result::Result<Binder, String> {
    let schema: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if schema.is_null() {
        return Ok(Binder::undeclared());
    }
    Binder::from_schema(&schema, POLICY).map_err(|error| error.to_string())
}

enum Length {
    Whole,
    TooLong,
}

/// The next line without its end; nothing at the end of the input.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<Option<Length>> {
    line.clear();
    let mut length = Length::Whole;
    let mut begun = false;
    loop {
        let read = input.fill_buf()?;
        if read.is_empty() {
            return Ok(begun.then_some(length));
        }
        begun = true;
        let end = memchr::memchr(b'\n', read);
        let part = read.get(..end.unwrap_or(read.len())).unwrap_or_default();
        if line.len() + part.len() > LINE_BYTES_MAX {
            length = Length::TooLong;
            line.clear();
        } else if matches!(length, Length::Whole) {
            line.extend_from_slice(part);
        }
        let used = end.map_or(read.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(length));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn bound(input: &[u8], buffer: usize) -> Vec<Value> {
        let mut output = Vec::new();
        let mut input = BufReader::with_capacity(buffer, input);
        bind_lines(&mut input, &mut output, &Reading::default()).unwrap();
        let text = String::from_utf8(output).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
        assert!(
            !text.contains(['\u{85}', '\u{2028}', '\u{2029}', '\r']),
            "{text:?}"
        );
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn numbers_keep_their_spelling_and_line_ends_are_escaped() {
        let raw = "{ \"a\" : 1.50e+3,\n\"b\": \"x\u{2028}y\" }";
        let input = json!({"schema": {"type": "object"}, "raw": raw}).to_string();
        let mut output = Vec::new();
        bind_lines(&mut input.as_bytes(), &mut output, &Reading::default()).unwrap();
        let expected = concat!(
            r#"{"status":"exact","value":{"a":1.50e+3,"b":"x\u2028y"},"issues":[]}"#,
            "\n"
        );
        assert_eq!(String::from_utf8(output).unwrap(), expected);
    }

    /// A program that sends one line and waits gets its answer while the input stays open.
    #[test]
    fn each_line_is_answered_before_the_next() {
        let (input, mut questions) = std::io::pipe().unwrap();
        let (answers, output) = std::io::pipe().unwrap();
        std::thread::spawn(move || {
            let mut output = std::io::BufWriter::new(output);
            bind_lines(&mut BufReader::new(input), &mut output, &Reading::default())
        });
        let (said, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(answers).lines() {
                said.send(line.unwrap()).unwrap();
            }
        });
        for number in 0..3 {
            let raw = format!("{{\"n\": {number}}}");
            let line = json!({"schema": {"type": "object"}, "raw": raw}).to_string();
            writeln!(questions, "{line}").unwrap();
            let patience = std::time::Duration::from_secs(30);
            let answer: Value =
                serde_json::from_str(&heard.recv_timeout(patience).unwrap()).unwrap();
            assert_eq!(answer["value"], json!({ "n": number }));
        }
    }

    #[test]
    fn what_cannot_be_read_is_a_line_that_says_so() {
        let input = concat!(
            "\n",
            "{\"schema\": {\"type\": 5}, \"raw\": \"{}\"}\n",
            "{\"raw\": \"{}\"}\n",
            "{\"schema\": null, \"raw\": \"\\ud800\"}\r\n",
            "{\"schema\": null, \"raw\": \"{}\", \"id\": 7}\r\n",
            "\u{fffd}",
        );
        let lines = bound(input.as_bytes(), 7);
        let statuses: Vec<_> = lines.iter().map(|line| &line["status"]).collect();
        let refused = "refused";
        assert_eq!(
            statuses,
            [refused, refused, refused, refused, "repaired", refused]
        );
        for (index, wanted) in [
            (0, "line 1 is not"),
            (1, "line 2 has a schema that cannot be used"),
            (2, "missing field `schema`"),
            (5, "line 6 is not"),
        ] {
            let message = lines[index]["issues"][0]["message"].as_str().unwrap();
            assert!(message.contains(wanted), "{message}");
            assert_eq!(lines[index]["issues"][0]["severity"], "error");
        }
    }

    #[test]
    fn a_line_without_end_is_refused_and_the_next_one_is_read() {
        let mut input = vec![b' '; LINE_BYTES_MAX + 1];
        input.extend_from_slice(b"\n{\"schema\": true, \"raw\": \"{}\"}");
        let lines = bound(&input, 8 * 1024);
        assert_eq!(lines[0]["issues"][0]["code"], "LIMIT_EXCEEDED");
        assert_eq!(lines[1]["status"], "exact");
        assert_eq!(lines.len(), 2);
    }

    proptest! {
        /// Whatever is in the lines: as many come out as went in, in the same order.
        #[test]
        fn no_line_is_lost_and_the_order_stays(
            kinds in proptest::collection::vec((0..4_u8, any::<u16>(), ".{0,12}"), 0..40),
            buffer in 1..64_usize,
        ) {
            let mut input = Vec::new();
            for (kind, number, text) in &kinds {
                let line = match kind {
                    0 => json!({"schema": null, "raw": format!("{{\"n\": {number}}}")}).to_string(),
                    1 => json!({"schema": {"type": "object"}, "raw": format!("{{n: {number}}}")}).to_string(),
                    2 => text.replace(['\n', '\r'], ""),
                    _ => format!("{{\"schema\": {{\"$ref\": \"#/no\"}}, \"raw\": \"{number}\"}}"),
                };
                input.extend_from_slice(line.as_bytes());
                input.push(b'\n');
            }
            let lines = bound(&input, buffer);
            prop_assert_eq!(lines.len(), kinds.len());
            for ((kind, number, _), line) in kinds.iter().zip(lines) {
                match kind {
                    0 | 1 => prop_assert_eq!(&line["value"]["n"], &json!(number)),
                    _ => prop_assert_eq!(&line["status"], "refused"),
                }
            }
        }
    }
}

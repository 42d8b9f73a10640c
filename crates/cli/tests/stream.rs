//! The command as a process: `bind --jsonl` answers every line, in order, and what goes wrong with
//! stdin or stdout is said, but for a reader that goes away.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use countersign_testkit::patience::Watchdog;
use serde_json::{Value, json};

fn start() -> Child {
    Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["bind", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("cargo has built the command before its tests")
}

/// Lines of every kind; the number of a line is in its result.
fn line(number: usize) -> String {
    let schema = json!({
        "type": "object",
        "properties": { "n": { "type": "integer" } },
        "required": ["n"],
    });
    match number % 5 {
        0 => json!({"schema": schema, "raw": format!("{{\"n\": {number}}}")}).to_string(),
        1 => json!({"schema": schema, "raw": format!("```json\n{{n: '{number}',}}\n```")})
            .to_string(),
        2 => json!({"schema": {"type": number}, "raw": "{}"}).to_string(),
        3 => format!("no JSON at all, line {number}"),
        _ => json!({"schema": null, "raw": format!("{{\"n\": {number}, \"s\": \"\u{2028}\"}}")})
            .to_string(),
    }
}

#[test]
fn every_line_is_answered_in_order() {
    const LINES: usize = 5_000;
    let _watchdog = Watchdog::start();
    let mut child = start();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        for number in 0..LINES {
            writeln!(input, "{}", line(number)).unwrap();
        }
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), LINES);
    // Readers that know more line ends than one must see the same lines.
    assert_eq!(
        text.split(['\n', '\u{85}', '\u{2028}', '\u{2029}']).count(),
        LINES + 1
    );
    for (number, line) in text.lines().enumerate() {
        let bound: Value = serde_json::from_str(line).unwrap();
        match number % 5 {
            0 => assert_eq!(
                (&bound["status"], &bound["value"]["n"]),
                (&json!("exact"), &json!(number))
            ),
            1 | 4 => {
                assert_eq!(
                    (&bound["status"], &bound["value"]["n"]),
                    (&json!("repaired"), &json!(number))
                );
            }
            _ => {
                let message = bound["issues"][0]["message"].as_str().unwrap();
                assert_eq!(bound["status"], "refused");
                assert!(
                    message.starts_with(&format!("line {} ", number + 1)),
                    "{message}"
                );
            }
        }
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let _watchdog = Watchdog::start();
    let mut child = start();
    let mut input = child.stdin.take().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    // More than any buffer between the two processes holds, so that writing has to fail.
    let written =
        std::thread::spawn(move || (0..200_000).all(|n| writeln!(input, "{}", line(n)).is_ok()));
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    drop(reader);
    let output = child.wait_with_output().unwrap();
    assert!(
        !written.join().unwrap(),
        "the command ends before its input does"
    );
    assert!(first.starts_with("{\"status\":\"exact\""), "{first}");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}

#[test]
fn a_text_that_is_not_utf8_is_told_in_plain_words() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["bind", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"\xff{}").unwrap();
    let _watchdog = Watchdog::start();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: cannot read stdin: it is not UTF-8\nhint: save it as UTF-8 and try again\n"
    );
}

/// A failed write to stdout is still reported on stderr.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .arg("tools")
        .stdout(full.unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("error: No space left"), "{told:?}");
}

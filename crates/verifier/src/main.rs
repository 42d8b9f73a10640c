//! `countersign-verify`: checks an evidence bundle offline, without a store and without a network.
//!
//! A person who is to believe the outcome has to be able to read the checks, so this file only reads
//! files and prints; every check is in `countersign-evidence`, and `docs/evidence-format.md` says
//! which there are.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use countersign_contract::evidence::RecordKind;
use countersign_evidence::bundle::{
    BUNDLE_BYTES_MAX, Bundle, BundleError, Consistency, RecordReport, Report, Trust, Verdict,
};
use countersign_evidence::note::{NOTE_BYTES_MAX, VerifyingKey};
use serde_json::json;

/// Checks an evidence bundle offline: whose log it is, that the records are in it, that what is opened
/// is what was sent and answered.
#[derive(Debug, Parser)]
#[command(
    name = "countersign-verify",
    version,
    after_help = "Exit codes: 0 valid, 4 consistent but the signer was not checked (no --key), 3 not valid, \
                  2 wrong use.\n\n\
                  Examples:\n  \
                  countersign-verify order.json --key log.pub\n  \
                  countersign-verify order.json --key log.example.com+c5fbb264+AWa+fjMsekU... \
                  --held kept-last-year.txt --json"
)]
struct Cli {
    /// The bundle, or `-` for standard input
    bundle: PathBuf,

    /// The log's public key, from somewhere else than the bundle: the text of log.pub, or its path
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// A signed checkpoint of the log that you kept: shows that the log was not rewritten since
    #[arg(long, alias = "checkpoint", value_name = "FILE")]
    held: Option<PathBuf>,

    /// Write the report as one line of JSON
    #[arg(long)]
    json: bool,
}

/// A longer file holds no key.
const KEY_BYTES_MAX: usize = 64 << 10;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(verdict) => ExitCode::from(verdict.exit_code()),
        Err(message) => {
            // Where even this cannot be written, the exit code still says it.
            let _ = writeln!(io::stderr(), "error: {}", plain(&message));
            ExitCode::from(2)
        }
    }
}

/// The verdict on the bundle; an error is about the command line.
fn run(cli: &Cli) -> Result<Verdict, String> {
    let key = cli.key.as_deref().map(public_key).transpose()?;
    let file = read(&cli.bundle, BUNDLE_BYTES_MAX)?;
    let held = match &cli.held {
        Some(path) => Some(text_of(path, read(path, NOTE_BYTES_MAX)?)?),
        None => None,
    };
    let outcome = Bundle::parse(file).map(|bundle| bundle.verify(key.as_ref(), held.as_deref()));
    let verdict = match &outcome {
        Ok(report) => report.verdict,
        Err(_) => Verdict::Invalid,
    };
    let text = match &outcome {
        outcome if cli.json => one_line(outcome),
        Ok(report) => describe(report),
        Err(error) => {
            let error = plain(&error.to_string());
            format!("finding: {error}\n\n{}\n", verdict.line())
        }
    };
    match io::stdout().write_all(text.as_bytes()) {
        // A reader that goes away isn't a failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write: {error}"))
        }
        Ok(()) | Err(_) => Ok(verdict),
    }
}

/// The key that `--key` names: its text, or a file that holds it.
fn public_key(text: &str) -> Result<VerifyingKey, String> {
    if let Ok(key) = text.parse() {
        return Ok(key);
    }
    let file = File::open(text).and_then(|file| {
        let mut text = String::new();
        file.take(KEY_BYTES_MAX as u64).read_to_string(&mut text)?;
        Ok(text)
    });
    let key = file.ok().and_then(|text| text.trim().parse().ok());
    key.ok_or_else(|| {
        format!("{text:?} isn't a public key: use the text in log.pub, or the path of such a file")
    })
}

/// A file up to one byte more than is of any use.
fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("cannot read {}: {error}", path.display());
    let mut bytes = Vec::new();
    let limit = bytes_max as u64 + 1;
    if path.as_os_str() == "-" {
        io::stdin().take(limit).read_to_end(&mut bytes)
    } else {
        let file = File::open(path).map_err(failed)?;
        file.take(limit).read_to_end(&mut bytes)
    }
    .map_err(failed)?;
    Ok(bytes)
}

fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8", path.display()))
}

/// The report for programs.
fn one_line(outcome: &Result<Report, BundleError>) -> String {
    let report = match outcome {
        Ok(report) => json!(report),
        Err(error) => {
            let finding = json!({"code": error.code(), "message": error.to_string()});
            json!({"verdict": Verdict::Invalid, "valid": false, "findings": [finding]})
        }
    };
    // Some readers take these for the end of a line.
    let mut line = report.to_string();
    for (separator, escape) in [
        ('\u{85}', "\\u0085"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ] {
        line = line.replace(separator, escape);
    }
    line + "\n"
}

/// The report for people.
fn describe(report: &Report) -> String {
    let mut text = String::new();
    if report.findings.is_empty() {
        // It was found to say what the records say, and is plain by construction.
        text.push_str(&report.summary);
        text.push('\n');
    }
    text.push_str(&table(&report.records));
    let trust = match report.trust {
        Trust::Given => "the one that was given",
        Trust::Bundle => "out of the bundle",
    };
    let consistency = match report.consistency {
        Consistency::NotAsked => "not given",
        Consistency::Same => "the same",
        Consistency::Grown => "the log has only grown since",
        Consistency::NotShown => "not shown to be of the same log",
    };
    let key = plain(&report.public_key);
    text.extend([
        format!("\nkey: {key} ({trust})\n"),
        format!("held checkpoint: {consistency}\n"),
    ]);
    let findings = report.findings.iter();
    text.extend(findings.map(|finding| format!("finding: {}\n", plain(&finding.to_string()))));
    let not_checked = report.not_checked.iter();
    text.extend(not_checked.map(|what| format!("not checked: {what}\n")));
    text.extend(["\n", report.verdict.line(), "\n"]);
    text
}

/// Two spaces between columns; the last is as long as it is.
fn table(records: &[RecordReport]) -> String {
    const HEAD: [&str; 9] = [
        "INDEX", "AT", "KIND", "TOOL", "OUTCOME", "IN LOG", "CONTENT", "ID", "LINKS",
    ];
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(records.iter().map(row));
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| Some(row.get(column)?.len()))
            .max()
    };
    let widths: Vec<usize> = (0..HEAD.len()).filter_map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn row(record: &RecordReport) -> [String; 9] {
    let cell = |text: Option<&str>| text.map_or_else(|| "-".to_owned(), plain);
    let outcome = match (record.code, record.replied) {
        (Some(code), _) => code.as_str(),
        (None, true) => "ok",
        (None, false) => "-",
    };
    let missing = record
        .not_included
        .iter()
        .map(|id| format!("{id} (not here)"));
    let links: Vec<String> = record.links.iter().cloned().chain(missing).collect();
    [
        record.index.to_string(),
        cell(record.at.as_deref()),
        cell(record.kind.map(RecordKind::as_str)),
        cell(record.tool.as_deref()),
        outcome.to_owned(),
        if record.included { "proved" } else { "no" }.to_owned(),
        record.content.as_str().to_owned(),
        cell(record.id.as_deref()),
        cell((!links.is_empty()).then(|| links.join(", ")).as_deref()),
    ]
}

/// Texts come from models and from the maker of the bundle: nothing of them may steer a terminal.
fn plain(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let shown = (' '..='~').contains(&c);
            let escaped = (!shown).then(|| c.escape_default());
            shown
                .then_some(c)
                .into_iter()
                .chain(escaped.into_iter().flatten())
        })
        .collect()
}

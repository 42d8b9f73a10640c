//! `countersign import openapi`: an OpenAPI or Swagger document as `[[upstream]]` and `[[tool]]` entries.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use countersign_upstream::Manifest;
use countersign_upstream::openapi::diff::{self, Difference};
use countersign_upstream::openapi::{self, Import, Options, Report, write};
use serde_json::{Value, json};

use super::fetch::fetch;
use crate::commands::counted;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Terminal;

/// Most refusals, notes and changes that are listed for people.
const LISTED_MAX: usize = 40;

/// Import an OpenAPI 3.0, 3.1 or Swagger 2 document, in JSON or YAML
///
/// Each operation becomes a [[tool]] entry. An operation that cannot be imported is refused with its line and the
/// reason; the others are imported. The effect of each tool is guessed from the HTTP method, and marked as a guess.
///
/// With --out, the import is compared with the earlier import in that file: the command reports tools that were added,
/// removed or changed. Tools keep their names, and [[upstream]] entries are not changed. Write overrides into
/// countersign.toml, not into that file.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign import openapi petstore.yaml --name pets --out pets.toml
  countersign import openapi https://api.example.com/openapi.json --only 'GET *' --out example.toml
  countersign import openapi petstore.yaml --json

--json prints {\"operations\": 3, \"tools\": 2, \"refused\": [{\"operation\", \"line\", \"reason\"}], …}
and writes entries only to --out.")]
pub(crate) struct Openapi {
    /// Document: a file or an http(s) URL
    #[arg(value_name = "FILE|URL")]
    source: String,

    /// Name of the upstream and prefix of the tool names [default: from the title]
    #[arg(long, value_name = "NAME", value_parser = upstream_name)]
    name: Option<String>,

    /// Only operations that match: an operation id, `GET /path`, a path or a tag; * matches anything
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,

    /// Skip operations that match
    #[arg(long, value_name = "PATTERN")]
    skip: Vec<String>,

    /// File to write [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Show the difference to the file; write nothing, and exit with 1 if there is one
    #[arg(long, requires = "out")]
    check: bool,

    /// Write the file even if its entries were edited by hand
    #[arg(long, requires = "out")]
    overwrite: bool,
}

impl Openapi {
    pub(crate) fn run(&self, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let bar = terminal.spinner("reading the document");
        let document = fetch(&self.source, &mut |done, all| {
            bar.set_length(all);
            bar.set_position(done);
        });
        bar.finish_and_clear();
        let document = document?;
        let old = self.out.as_deref().map(earlier).transpose()?.flatten();
        let kept = old.as_ref().map_or(&[][..], |old| &old.upstream);
        let options = Options {
            upstream: self
                .name
                .clone()
                .or_else(|| Some(kept.first()?.name.clone())),
            document: document.name.clone(),
            base: document.address,
            only: self.only.clone(),
            skip: self.skip.clone(),
            names: old.as_ref().map(diff::names).unwrap_or_default(),
            kept: kept.to_vec(),
        };
        let bar = terminal.spinner("importing operations");
        let import = openapi::import_told(&document.text, &options, &mut |done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        });
        bar.finish_and_clear();
        let import = import.map_err(|error| {
            anyhow::Error::new(error).context(format!("cannot import {}", document.name))
        })?;
        let difference = old.as_ref().map(|old| diff::between(old, &import.manifest));
        let kept: Vec<_> = kept.to_vec();
        if let Some(path) = self.out.as_deref().filter(|_| !self.check) {
            let edited = difference.as_ref().map_or(&[][..], |it| &it.edited);
            if let (Some(first), false) = (edited.first(), self.overwrite) {
                let edited = counted(edited.len(), "entry", "entries");
                let message = format!(
                    "{edited} of {} were edited by hand, the first is {}",
                    path.display(),
                    first.tool
                );
                let hint = "move the edits to entries of the same name in countersign.toml, or use --overwrite";
                return Err(Failure::new(message).hint(hint).refused());
            }
            replace(path, &write::toml(&import, &kept_upstreams(kept, &import)))?;
        }
        // Without a file everything is a difference.
        let is_same = difference.as_ref().is_some_and(Difference::is_empty);
        let exit = if self.check && !is_same {
            Exit::Refused
        } else {
            Exit::Ok
        };
        if terminal.is_for_programs() {
            writeln!(
                terminal.data(),
                "{}",
                summary(&import.report, difference.as_ref())
            )?;
            return Ok(exit);
        }
        if self.out.is_none() {
            let text = write::toml(&import, &[]);
            terminal.data().write_all(text.as_bytes())?;
        }
        self.tell(terminal, &import.report, difference.as_ref())?;
        Ok(exit)
    }

    fn tell(
        &self,
        terminal: &mut Terminal,
        report: &Report,
        difference: Option<&Difference>,
    ) -> Result<(), Failure> {
        let operations = counted(report.operations, "operation", "operations");
        let tools = counted(report.tools.len(), "tool", "tools");
        let refused = report.refused.len();
        let mut told = format!("{operations}: {tools}, {refused} refused");
        if report.skipped > 0 {
            told = format!("{told}, {} skipped", report.skipped);
        }
        terminal.say(told)?;
        let refused = report.refused.iter().map(|it| {
            format!(
                "refused {}:{}: {}: {}",
                self.source, it.line, it.operation, it.reason
            )
        });
        listed(terminal, refused)?;
        listed(
            terminal,
            report.notes.iter().map(|note| format!("note: {note}")),
        )?;
        if let Some(difference) = difference {
            listed(terminal, lines_of(difference))?;
        }
        if let Some(path) = &self.out
            && !self.check
        {
            let path = path.display();
            terminal.say(format!(
                "written to {path}; add this line above the first [table] of countersign.toml: include = [\"{path}\"]"
            ))?;
        }
        Ok(())
    }
}

/// The upstreams of the file, and those that only the document has.
fn kept_upstreams(
    kept: Vec<countersign_upstream::Upstream>,
    import: &Import,
) -> Vec<countersign_upstream::Upstream> {
    let mut all = kept;
    for upstream in &import.manifest.upstream {
        if !all.iter().any(|it| it.name == upstream.name) {
            all.push(upstream.clone());
        }
    }
    all
}

/// Reads the entries of an earlier import; `None` if there is no file yet.
pub(super) fn earlier(path: &Path) -> Result<Option<Manifest>, Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::unreadable(path.display(), error)),
    };
    match write::read(&text) {
        Ok(manifest) => Ok(Some(manifest)),
        Err(error) => {
            let message = format!(
                "{} was not written by an import: {}",
                path.display(),
                error.message()
            );
            Err(Failure::new(message).hint("choose another file for --out"))
        }
    }
}

/// Writes a whole file or nothing.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    let unwritable = |error: tempfile::PersistError| {
        anyhow::Error::new(error.error).context(format!("cannot write {}", path.display()))
    };
    file.persist(path).map_err(unwritable)?;
    Ok(())
}

fn summary(report: &Report, difference: Option<&Difference>) -> Value {
    let refused: Vec<Value> = report
        .refused
        .iter()
        .map(|it| json!({ "operation": it.operation, "line": it.line, "reason": it.reason.to_string() }))
        .collect();
    let mut summary = json!({
        "operations": report.operations,
        "tools": report.tools.len(),
        "skipped": report.skipped,
        "refused": refused,
        "notes": report.notes,
    });
    if let (Some(difference), Some(members)) = (difference, summary.as_object_mut()) {
        members.insert("difference".to_owned(), json!(difference));
    }
    summary
}

/// The difference for people: a line a tool, and a line a member of it.
fn lines_of(difference: &Difference) -> Vec<String> {
    let mut lines = Vec::new();
    if difference.is_empty() {
        lines.push("no changes since the last import".to_owned());
    }
    lines.extend(
        difference
            .added
            .iter()
            .map(|it| format!("added {} ({})", it.tool, it.operation)),
    );
    lines.extend(
        difference
            .removed
            .iter()
            .map(|it| format!("removed {} ({})", it.tool, it.operation)),
    );
    for changed in &difference.changed {
        lines.push(format!("changed {} ({})", changed.tool, changed.operation));
        for member in &changed.members {
            let before = member.before.as_deref().unwrap_or("nothing");
            let after = member.after.as_deref().unwrap_or("nothing");
            lines.push(format!("  {}: {before} → {after}", member.at));
        }
    }
    lines
}

fn listed(terminal: &mut Terminal, lines: impl IntoIterator<Item = String>) -> Result<(), Failure> {
    let lines: Vec<String> = lines.into_iter().collect();
    for line in lines.iter().take(LISTED_MAX) {
        terminal.say(crate::table::visible(line))?;
    }
    if lines.len() > LISTED_MAX {
        terminal.say(format!(
            "… and {} more; --json lists all",
            lines.len() - LISTED_MAX
        ))?;
    }
    Ok(())
}

/// A name that an upstream can have.
pub(super) fn upstream_name(text: &str) -> Result<String, String> {
    let is_letter =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
    if (1..=64).contains(&text.len()) && text.bytes().all(is_letter) {
        return Ok(text.to_owned());
    }
    Err("use 1 to 64 lower-case letters, digits, - and _".to_owned())
}

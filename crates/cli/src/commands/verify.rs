//! `countersign verify`: whether evidence holds, in a bundle or in the whole store.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign::archive::Archive;
use countersign::archive::verify::{
    Depth, EarlierLog, HeldEarlier, HeldStanding, Progress, Verification, VerifyReport,
};
use countersign_evidence::bundle::{self, Bundle, BundleError, Consistency, Report, Verdict};
use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::note::VerifyingKey;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{counted, shown_kind};
use crate::answer::write_json;
use crate::copies;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::journal;
use crate::keys;
use crate::operations::Operation;
use crate::place::{Need, Place, PlaceFlags, PlaceOptions, archive_failed, store_failed};
use crate::progress::Bar;
use crate::table::{Table, visible};
use crate::terminal::Terminal;

mod proved;

/// Verify evidence: a bundle, or the whole log of the store
///
/// A bundle, a tlog-proof or a SCITT statement is verified without the store. The whole log is also compared with the checkpoint that is kept outside of
/// the store. The report on stdout names every fault and everything that was not checked, and ends with the verdict.
///
/// Exit codes: 0 valid, 3 not valid, 4 consistent but the signer was not checked (a bundle without --key).
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign verify bundle.json --key log.pub
  countersign verify record.scitt --key log.pub
  countersign verify --all
  countersign verify --all --held /mnt/elsewhere/checkpoint --json

A checkpoint of an earlier log, from before a restore that began a new one, is compared with what is left of that log.

--resume continues an interrupted run of --all. Records that the earlier run checked are not checked again,
so later changes to them are not found.")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct Verify {
    /// File of the bundle, the tlog-proof or the SCITT statement; - reads stdin
    #[arg(
        value_name = "BUNDLE",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    bundle: Option<PathBuf>,

    /// Verify the whole log of the store
    #[arg(long)]
    all: bool,

    /// Checkpoint that you kept; the log must have grown from it [default with --all: the folder's]
    #[arg(long, value_name = "FILE")]
    held: Option<PathBuf>,

    /// Public key of the log: the text of log.pub, or its path [default with --all: the folder's]
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Also check every page of the database file
    #[arg(long, requires = "all")]
    thorough: bool,

    /// Continue an interrupted run
    #[arg(long, requires = "all", conflicts_with = "thorough")]
    resume: bool,

    /// Check only the tree and the signatures, not rows, payloads and links
    #[arg(long, requires = "all", conflicts_with = "thorough")]
    quick: bool,
}

/// First bytes of a ZIP file.
const ZIP: &[u8] = b"PK\x03\x04";

/// File with the progress of an interrupted verification of the whole log.
const PROGRESS: &str = "verify.progress";

/// Interval at which that progress is saved.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// The report on the whole log, with its verdict in front as a bundle's has it.
#[derive(Serialize)]
struct Whole<'a> {
    verdict: Verdict,
    valid: bool,
    #[serde(flatten)]
    report: &'a VerifyReport,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    quick: bool,
    progress: Progress,
}

impl Verify {
    /// A bundle needs no store, so the configuration is not looked at for it.
    pub(crate) fn run(&self, flags: &PlaceFlags, terminal: &mut Terminal) -> Result<Exit, Failure> {
        match &self.bundle {
            Some(path) => self.bundle(path, terminal),
            None => self.all(&flags.read_at_hand(Need::Data, terminal)?, terminal),
        }
    }

    fn bundle(&self, path: &Path, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let file =
            read_bounded(path).map_err(|error| Failure::unreadable(path.display(), error))?;
        if file.starts_with(ZIP) {
            return Err(Failure::new(format!("{} is a ZIP file", path.display()))
                .hint("unpack the ZIP of a case and name its bundle.json"));
        }
        let key = self.key.as_deref().map(keys::public).transpose()?;
        let held = self.held()?;
        if let Some(format) = proved::Format::of(&file) {
            if held.is_some() {
                return Err(Failure::new("--held needs a bundle")
                    .hint("export with --held, or leave it out"));
            }
            return proved::verify(format, &file, key.as_ref(), terminal);
        }
        let report = match Bundle::parse(&file) {
            Ok(bundle) => bundle.verify(key.as_ref(), held.as_deref()),
            Err(error) => return not_a_bundle(terminal, &error),
        };
        if terminal.is_for_programs() {
            write_json(terminal, &report)?;
        } else {
            show_bundle(terminal, &report)?;
        }
        Ok(report.verdict.into())
    }

    fn all(&self, options: &PlaceOptions, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let asked = Asked {
            key: match &self.key {
                Some(key) => Some(keys::public(key)?.to_string()),
                None => None,
            },
            held: self.held()?,
            thorough: self.thorough,
            resume: self.resume,
            quick: self.quick,
        };
        // A store whose tree is so broken that it cannot even be opened is a finding, not wrong use.
        let done = options.perform(&asked, terminal);
        done.map_err(Failure::not_verified_if_damaged)
    }

    fn held(&self) -> Result<Option<String>, Failure> {
        let read = self.held.as_ref().map(|path| {
            let read = std::fs::read_to_string(path);
            read.map_err(|error| Failure::unreadable(path.display(), error))
        });
        read.transpose()
    }
}

/// The verification of the whole log that is asked for.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Key that the log has to be signed with; `None` for the folder's own key.
    key: Option<String>,
    /// The text of a checkpoint that was kept elsewhere.
    held: Option<String>,
    thorough: bool,
    resume: bool,
    quick: bool,
}

impl Operation for Asked {
    const NAME: &'static str = "verify";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let key = self.key.as_deref().map(keys::public).transpose()?;
        let key = key.unwrap_or_else(|| place.log_key.clone());
        if self.thorough {
            let check = place.wait(place.backend.check())?;
            check.map_err(|error| store_failed(error).not_verified())?;
        }
        let is_held_beside = self.held.is_none();
        let held = match &self.held {
            Some(held) => Some(held.clone()),
            None => journal::held(&place.folder, &key)?,
        };
        // A checkpoint of an earlier log is compared with the record that names that log, wherever it stands.
        let is_of_this_log = |note: &String| Checkpoint::open(note, &key).is_ok();
        let from = if held.as_ref().is_none_or(is_of_this_log) {
            self.saved(&place.folder)?
        } else {
            None
        };
        if let Some(from) = &from {
            terminal.say(format_args!(
                "note: continuing at record {}; earlier records are not checked again",
                from.size
            ))?;
        }
        let verification = Verification {
            from,
            held,
            is_held_beside,
            copies: copies_of(place, &key, terminal)?,
            depth: if self.quick {
                Depth::Tree
            } else {
                Depth::Records
            },
        };
        let bar = terminal.bar(0, "records");
        let report = self.walk(place, &place.archive_by(key), &verification, &bar)?;
        bar.finish_and_clear();
        place.folder.remove(PROGRESS)?;
        // The server can say so as long as it runs; of a run that goes on from another one it does not know the whole.
        if let (Some(served), None) = (&place.served, &verification.from) {
            let (size, is_valid) = (report.size, report.is_valid());
            served.gateway.keep_verified(size, is_valid, !self.quick);
        }
        if terminal.is_for_programs() {
            let (verdict, valid) = (report.verdict(), report.is_valid());
            let whole = Whole {
                verdict,
                valid,
                report: &report,
            };
            write_json(terminal, &whole)?;
        } else {
            self.show_all(terminal, &report)?;
        }
        Ok(report.verdict().into())
    }
}

impl Asked {
    fn walk(
        &self,
        place: &Place,
        archive: &Archive,
        verification: &Verification,
        bar: &Bar,
    ) -> Result<VerifyReport, Failure> {
        let mut saved_at = Instant::now();
        let on_progress = |progress: &Progress, size: u64| {
            bar.set_length(size);
            bar.set_position(progress.size);
            if saved_at.elapsed() < PROGRESS_EVERY {
                return;
            }
            saved_at = Instant::now();
            let saved = Saved {
                quick: self.quick,
                progress: progress.clone(),
            };
            // Where it cannot be kept, a run that is broken off begins anew; that is no fault of the log.
            if let Ok(text) = serde_json::to_string(&saved) {
                let _ = place.folder.write(PROGRESS, &text, 0o600);
            }
        };
        let report = archive.verify_all(verification, on_progress);
        place.wait(report)?.map_err(archive_failed)
    }

    /// Returns the progress of an interrupted run of the same kind; `None` unless `--resume` asks for it, because a program that can change
    /// the store may have changed it since, or have written that file. A run that had found faults begins anew, because it has to name
    /// them.
    fn saved(&self, folder: &Folder) -> Result<Option<Progress>, Failure> {
        if !self.resume {
            return Ok(None);
        }
        let text = folder.read(PROGRESS)?.unwrap_or_default();
        let saved: Option<Saved> = serde_json::from_str(&text).ok();
        let usable = |saved: &Saved| saved.quick == self.quick && saved.progress.faults == 0;
        Ok(saved.filter(usable).map(|saved| saved.progress))
    }

    fn show_all(&self, terminal: &mut Terminal, report: &VerifyReport) -> Result<(), Failure> {
        let paint = terminal.paint();
        let out = terminal.data();
        writeln!(out, "log: {}", visible(&report.origin))?;
        writeln!(out, "records: {}, {} checked", report.size, report.checked)?;
        let size = |size: Option<u64>| match size {
            Some(size) => {
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                counted(size, "record", "records")
            }
            None => "no valid one".to_owned(),
        };
        writeln!(out, "signed checkpoint: {}", size(report.signed))?;
        match &report.held_earlier {
            Some(held) => {
                let log = report
                    .earlier_logs
                    .iter()
                    .find(|log| log.log_key == held.log_key);
                let shown = size(Some(held.size));
                writeln!(out, "kept checkpoint: {shown} {}", of_earlier(held, log))?;
            }
            None => writeln!(out, "kept checkpoint: {}", size(report.held))?,
        }
        if self.quick {
            writeln!(out, "payloads: not checked")?;
        } else {
            let (intact, gone) = (report.payloads, report.payloads_gone);
            writeln!(out, "payloads: {intact} intact, {gone} deleted")?;
        }
        for log in &report.earlier_logs {
            let (key, signed, newest) = (visible(&log.log_key), log.signed, log.newest);
            writeln!(
                out,
                "continues: {key}, {signed} of its {newest} signed records are here"
            )?;
        }
        for finding in &report.findings {
            let finding = visible(&finding.to_string());
            writeln!(out, "{} {finding}", paint.bad("wrong:"))?;
        }
        if report.further_findings > 0 {
            let more = report.further_findings;
            writeln!(out, "{} {more} more", paint.bad("wrong:"))?;
        }
        for what in &report.not_checked {
            writeln!(out, "{} {what}", paint.quiet("not checked:"))?;
        }
        write_verdict(terminal, report.verdict())
    }
}

/// Describes a kept checkpoint of a log that this one continues.
fn of_earlier(held: &HeldEarlier, log: Option<&EarlierLog>) -> String {
    let name = held.log_key.split('+').next().unwrap_or_default();
    let name = visible(name);
    let lost = log.map_or(0, |log| held.size.saturating_sub(log.signed));
    match held.standing {
        HeldStanding::Here => {
            format!(
                "of {name}, which this log continues; this log begins with exactly these records"
            )
        }
        HeldStanding::Newest => format!(
            "of {name}, which this log continues; it is the checkpoint that this log names, and {lost} of its records are lost"
        ),
        HeldStanding::Lost => format!(
            "of {name}, which this log continues; {lost} of its records are lost, so that it could not be compared"
        ),
    }
}

/// Returns the copies of the checkpoint that can be read, and warns of the others.
fn copies_of(
    place: &Place,
    key: &VerifyingKey,
    terminal: &mut Terminal,
) -> Result<Vec<(Arc<str>, Checkpoint)>, Failure> {
    let mut copies = Vec::new();
    for copy in copies::read(place, key) {
        match copy.read {
            Ok((checkpoint, _)) => copies.push((copy.name, checkpoint)),
            Err(reason) => terminal.say(format_args!(
                "warning: the copy {} was not compared: {}",
                visible(&copy.name),
                visible(&reason)
            ))?,
        }
    }
    Ok(copies)
}

/// Writes the verdict as the last line of the data.
fn write_verdict(terminal: &mut Terminal, verdict: Verdict) -> Result<(), Failure> {
    let paint = terminal.paint();
    let line = match verdict {
        Verdict::Valid => paint.good(verdict.line()),
        Verdict::Consistent => paint.warn(verdict.line()),
        Verdict::Invalid => paint.bad(verdict.line()),
    };
    Ok(writeln!(terminal.data(), "{line}")?)
}

/// A file that is larger than any bundle is not read into memory.
fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let limit = bundle::BUNDLE_BYTES_MAX as u64 + 1;
    if path.as_os_str() == "-" {
        std::io::stdin().take(limit).read_to_end(&mut bytes)?;
    } else {
        let file = std::fs::File::open(path)?;
        file.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Valid => Self::Ok,
            Verdict::Consistent => Self::SignerNotChecked,
            Verdict::Invalid => Self::NotVerified,
        }
    }
}

/// A file that cannot be read as a bundle: that is its only fault, and nothing else was checked.
fn not_a_bundle(terminal: &mut Terminal, error: &BundleError) -> Result<Exit, Failure> {
    let verdict = Verdict::Invalid;
    if terminal.is_for_programs() {
        let finding = json!({"code": error.code(), "message": error.to_string()});
        let report = json!({"verdict": verdict, "valid": false, "findings": [finding]});
        write_json(terminal, &report)?;
    } else {
        let error = visible(&error.to_string());
        let wrong = terminal.paint().bad("wrong:");
        writeln!(terminal.data(), "{wrong} {error}")?;
        write_verdict(terminal, verdict)?;
    }
    Ok(verdict.into())
}

fn show_bundle(terminal: &mut Terminal, report: &Report) -> Result<(), Failure> {
    let mut table = Table::new([
        "RECORD",
        "KIND",
        "TOOL",
        "CODE",
        "IN THE LOG",
        "CONTENT",
        "EVIDENCE",
    ]);
    for record in &report.records {
        let code = match record.code {
            Some(code) => code.as_str(),
            None if record.replied => "OK",
            None => "-",
        };
        let content = serde_json::to_value(record.content)?;
        table.row([
            &record.index.to_string(),
            record
                .kind
                .map_or("?", |kind| shown_kind(kind, record.code)),
            record.tool.as_deref().unwrap_or("-"),
            code,
            if record.included {
                "proved"
            } else {
                "NOT PROVED"
            },
            content.as_str().unwrap_or_default(),
            record.id.as_deref().unwrap_or("?"),
        ]);
    }
    let paint = terminal.paint();
    let table = table.on(terminal);
    let out = terminal.data();
    writeln!(out, "{table}")?;
    for finding in &report.findings {
        let finding = visible(&finding.to_string());
        writeln!(out, "{} {finding}", paint.bad("wrong:"))?;
    }
    let growth = match report.consistency {
        Consistency::NotAsked => None,
        Consistency::Same => Some("the kept checkpoint is the checkpoint of the bundle"),
        Consistency::Grown => Some("the log has only grown since the kept checkpoint"),
        Consistency::NotShown => Some("not shown that the log has grown from the kept checkpoint"),
    };
    if let Some(growth) = growth {
        writeln!(out, "growth: {growth}")?;
    }
    writeln!(out, "log key: {}", visible(&report.public_key))?;
    for what in &report.not_checked {
        writeln!(out, "{} {what}", paint.quiet("not checked:"))?;
    }
    write_verdict(terminal, report.verdict)
}

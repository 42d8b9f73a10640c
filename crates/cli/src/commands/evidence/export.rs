//! `countersign evidence export`: records with their proofs in one file, in our format or in those of others.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use countersign::archive::{self, CoseForm};
use countersign::contract::SnapshotId;
use serde::{Deserialize, Serialize};

use super::cose;

use crate::answer::write_json;
use crate::commands::lookup::{Name, Whose};
use crate::commands::reason;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions, archive_failed};
use crate::terminal::Terminal;

/// Export records with their proofs to one file that anyone can verify
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign evidence export ev_01a1e209-3e99-736c-842c-57d140cc68f6 > bundle.json
  countersign evidence export ev_01a1e209-3e99-736c-842c-57d140cc68f6 -o bundle.json \\
    --content opened --reason 'dispute 4711'
  countersign evidence export ev_01a1e209-3e99-736c-842c-57d140cc68f6 --format scitt -o record.scitt

The bundle also has the records that the exported ones rest on.
`countersign verify bundle.json` and `countersign-verify bundle.json` verify it without the store.

The other formats have one record and its proof each, for the tools of others.")]
pub(super) struct Export {
    /// Record ids, request ids, order ids, or leaf hashes
    #[arg(value_name = "ID", required = true)]
    names: Vec<Name>,

    #[command(flatten)]
    whose: Whose,

    /// Format of the file
    #[arg(long, value_enum, default_value_t = Format::Bundle)]
    format: Format,

    /// Payloads in the bundle
    #[arg(long, value_enum, default_value_t = ContentRule::None)]
    content: ContentRule,

    /// Reason for opening; stored encrypted in the record of the access
    #[arg(long, value_name = "TEXT", value_parser = reason, required_if_eq("content", "opened"))]
    reason: Option<String>,

    /// Checkpoint of the receiver; the bundle proves that the log has grown from it
    #[arg(long, value_name = "FILE")]
    held: Option<PathBuf>,

    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Maximum number of records that a hint names.
const NAMED_MAX: usize = 5;

/// Format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(super) enum Format {
    /// Records with everything they rest on, in JSON
    Bundle,
    /// One record with its proof as text: C2SP tlog-proof
    TlogProof,
    /// The proof of one record: a COSE receipt (RFC 9942)
    CoseReceipt,
    /// One record with its proof: a SCITT statement (RFC 9943)
    Scitt,
}

/// Content of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
enum ContentRule {
    /// No payloads: records and proofs only
    None,
    /// Encrypted payloads
    Sealed,
    /// Decrypted payloads; the access is recorded
    Opened,
}

impl Export {
    pub(super) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        self.check()?;
        let held = self.held.as_ref().map(|path| {
            let read = std::fs::read_to_string(path);
            read.map_err(|error| Failure::unreadable(path.display(), error))
        });
        let asked = Asked {
            names: self.names.clone(),
            whose: self.whose.clone(),
            format: self.format,
            content: self.content,
            reason: self.reason.clone(),
            held: held.transpose()?,
        };
        let is_binary = asked.is_binary() && !terminal.is_for_programs();
        if self.output.is_none() && !is_binary {
            return options.perform(&asked, terminal);
        }
        // The file is written by whoever named it, and only where the export is whole.
        let (mut kept_terminal, kept) = terminal.kept();
        let exit = options.perform(&asked, &mut kept_terminal)?;
        kept_terminal.flush()?;
        let mut content = kept.take();
        if is_binary {
            content = cose::decode(&content)?;
        }
        let Some(path) = &self.output else {
            terminal.data().write_all(&content)?;
            return Ok(exit);
        };
        write_private(path, &content).map_err(|error| {
            let what = format!("cannot write {}", path.display());
            anyhow::Error::new(error).context(what)
        })?;
        Ok(exit)
    }

    /// Refuses options that only a bundle has, and binary data on a screen.
    fn check(&self) -> Result<(), Failure> {
        if self.format == Format::Bundle {
            return Ok(());
        }
        let is_plain = self.content == ContentRule::None && self.held.is_none();
        if !is_plain {
            return Err(Failure::new("--content and --held need --format bundle")
                .hint("leave them out, or export a bundle"));
        }
        if self.format.cose().is_some() && self.output.is_none() && io::stdout().is_terminal() {
            return Err(Failure::new("the export is binary, and stdout is a screen")
                .hint("name a file with -o"));
        }
        Ok(())
    }
}

impl Format {
    /// Returns the COSE message that the format is; `None` for formats of text.
    pub(super) const fn cose(self) -> Option<CoseForm> {
        match self {
            Self::Bundle | Self::TlogProof => None,
            Self::CoseReceipt => Some(CoseForm::Receipt),
            Self::Scitt => Some(CoseForm::Statement),
        }
    }
}

/// Writes a file that only its owner can read: a bundle may hold opened content.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(content)
}

/// The export that is asked for: its records, its content and the reason.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    names: Vec<Name>,
    whose: Whose,
    format: Format,
    content: ContentRule,
    reason: Option<String>,
    /// The text of a checkpoint that the receiver has.
    held: Option<String>,
}

impl Asked {
    /// True if the file is not text.
    const fn is_binary(&self) -> bool {
        self.format.cose().is_some()
    }

    /// Writes one record in a format of others.
    fn perform_one(
        &self,
        ids: &[SnapshotId],
        place: &Place,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let [id] = ids else {
            let named: Vec<_> = ids.iter().map(SnapshotId::as_str).take(NAMED_MAX).collect();
            return Err(Failure::new(format!(
                "this format has one record a file, and {} are named",
                ids.len()
            ))
            .hint(format!("name one of them: {}", named.join(", "))));
        };
        match self.format.cose() {
            Some(form) => cose::write(id, form, place, terminal),
            None => cose::write_proof(id, place, terminal),
        }
    }
}

impl Operation for Asked {
    const NAME: &'static str = "evidence.export";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut journal = Journal::start(place)?;
        // What a crash left unsigned is signed now, so that it can be proved.
        journal.sign(place)?;
        let mut ids = Vec::new();
        for name in &self.names {
            ids.extend(name.all(place, self.whose.user.as_deref())?);
        }
        if self.format != Format::Bundle {
            return self.perform_one(&ids, place, terminal);
        }
        let content = match self.content {
            ContentRule::None => archive::Export::Records,
            ContentRule::Sealed => archive::Export::Sealed,
            ContentRule::Opened => archive::Export::Opened {
                by: &place.by,
                reason: self.reason.as_deref().unwrap_or_default(),
            },
        };
        let archive = place.archive();
        let bar = terminal.spinner("collecting records and proofs");
        let told = |done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        };
        let export = archive.export_told(&ids, content, self.held.as_deref(), told);
        let bundle = place.runtime.block_on(export);
        bar.finish_and_clear();
        journal.sign(place)?;
        let bundle = bundle.map_err(archive_failed)?;
        if terminal.is_for_programs() {
            write_json(terminal, &bundle)?;
        } else {
            write!(terminal.data(), "{}", bundle.to_json())?;
        }
        terminal.say(bundle.summary.trim_end())?;
        Ok(Exit::Ok)
    }
}

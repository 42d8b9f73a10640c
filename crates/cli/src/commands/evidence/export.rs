//! `countersign evidence export`: records with their proofs in one file.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use countersign::archive;
use serde::{Deserialize, Serialize};

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

The bundle also has the records that the exported ones rest on.
`countersign verify bundle.json` and `countersign-verify bundle.json` verify it without the store.")]
pub(super) struct Export {
    /// Record ids, request ids, order ids, or leaf hashes
    #[arg(value_name = "ID", required = true)]
    names: Vec<Name>,

    #[command(flatten)]
    whose: Whose,

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

/// What goes into a bundle.
#[derive(Debug, Clone, Copy, ValueEnum, Serialize, Deserialize)]
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
        let held = self.held.as_ref().map(|path| {
            let read = std::fs::read_to_string(path);
            read.map_err(|error| Failure::unreadable(path.display(), error))
        });
        let asked = Asked {
            names: self.names.clone(),
            whose: self.whose.clone(),
            content: self.content,
            reason: self.reason.clone(),
            held: held.transpose()?,
        };
        let Some(path) = &self.output else {
            return options.perform(&asked, terminal);
        };
        // The file is written by whoever named it, and only where the bundle is whole.
        let (mut kept_terminal, kept) = terminal.kept();
        let exit = options.perform(&asked, &mut kept_terminal)?;
        kept_terminal.flush()?;
        write_private(path, &kept.take()).map_err(|error| {
            let what = format!("cannot write {}", path.display());
            anyhow::Error::new(error).context(what)
        })?;
        Ok(exit)
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
    content: ContentRule,
    reason: Option<String>,
    /// The text of a checkpoint that the receiver has.
    held: Option<String>,
}

impl Operation for Asked {
    const NAME: &'static str = "evidence.export";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut journal = Journal::start(place)?;
        // What a crash left unsigned is signed now, so that it can be proved.
        journal.sign(place)?;
        let content = match self.content {
            ContentRule::None => archive::Export::Records,
            ContentRule::Sealed => archive::Export::Sealed,
            ContentRule::Opened => archive::Export::Opened {
                by: &place.by,
                reason: self.reason.as_deref().unwrap_or_default(),
            },
        };
        let mut ids = Vec::new();
        for name in &self.names {
            ids.extend(name.all(place, self.whose.user.as_deref())?);
        }
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

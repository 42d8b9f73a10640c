//! `countersign evidence trail`: the signed records in the order of the log, for systems that collect events.

use std::io::Write as _;

use clap::ValueEnum;
use countersign::archive::{TRAIL_PAGE_MAX, Trail as Part, TrailForm};
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::operations::Operation;
use crate::place::{Place, archive_failed};
use crate::terminal::Terminal;

/// Write the signed records in the order of the log, one line of JSON each
///
/// Each line has the index of its record. Give the index of the last line that you have with --after to get what came
/// since. Nothing is decrypted, and users are named by digests that an erasure makes meaningless.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[command(after_long_help = "\
Examples:
  countersign evidence trail > trail.jsonl
  countersign evidence trail --after 4711 --format ocsf >> events.jsonl

The index is `index` in a line of jsonl, and `metadata.sequence` in an event of ocsf.")]
pub(crate) struct Trail {
    /// Form of the lines
    #[arg(long, value_enum, default_value_t = Form::Jsonl)]
    format: Form,

    /// Index of the last record that you have
    #[arg(long, value_name = "INDEX")]
    after: Option<u64>,

    /// Maximum number of lines [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Name users by their ids; an erasure does not reach the copies
    #[arg(long)]
    users: bool,
}

/// Form of a line.
#[derive(Debug, Clone, Copy, ValueEnum, Serialize, Deserialize)]
enum Form {
    /// The record with its index and leaf hash
    Jsonl,
    /// An API Activity event of OCSF 1.2.0
    Ocsf,
}

impl Operation for Trail {
    const NAME: &'static str = "evidence.trail";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let archive = place.archive();
        let form = match self.format {
            Form::Jsonl => TrailForm::Jsonl,
            Form::Ocsf => TrailForm::Ocsf,
        };
        let origin = archive.log_key().name();
        let mut part = Part {
            after: self.after,
            limit: self.limit.unwrap_or(usize::MAX),
            with_users: self.users,
        };
        let mut count: usize = 0;
        loop {
            let entries = place.wait(archive.trail(&part))?.map_err(archive_failed)?;
            let Some(last) = entries.last() else { break };
            part.after = Some(last.index);
            part.limit -= entries.len();
            count += entries.len();
            let out = terminal.data();
            for entry in &entries {
                out.write_all(entry.line(form, origin).as_bytes())?;
            }
            if entries.len() < TRAIL_PAGE_MAX {
                break;
            }
        }
        match part.after.filter(|_| count > 0) {
            Some(last) => terminal.say(format_args!("go on with --after {last}"))?,
            None => terminal.say("no signed records after this one")?,
        }
        Ok(Exit::Ok)
    }
}

//! A recording in the place of the tools: the file, the catalog that it is played with, and what is said at the end.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use countersign::Catalog;
use countersign::contract::recording::{Declared, Recording};
use countersign::contract::{Digest, ToolSpec};
use countersign::recording::{self, Digests, Player};
use countersign_config::Loaded;
use serde_json::{Value, json};

use crate::answer::write_json;
use crate::catalog::assemble;
use crate::commands::counted;
use crate::config;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Terminal;

/// The flags of commands that can answer from a recording.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordingOptions {
    /// Answer from this recording: no tool runs, nothing is stored, and no upstream is asked
    #[arg(long, value_name = "FILE")]
    from_recording: Option<PathBuf>,

    /// Use the recording even if the declaration of a tool has changed since
    #[arg(long, requires = "from_recording", hide_short_help = true)]
    allow_changed: bool,

    /// Match a masked argument by its kind only, with a warning; FILE.digests is not used
    #[arg(long, requires = "from_recording", hide_short_help = true)]
    any_masked: bool,
}

impl RecordingOptions {
    /// The recording, where one is named.
    pub(crate) fn read(
        &self,
        loaded: &Loaded,
        terminal: &mut Terminal,
    ) -> Result<Option<Played>, Failure> {
        let path = self.from_recording.as_ref();
        path.map(|path| Played::read(path, loaded, self, terminal))
            .transpose()
    }
}

/// Maximum number of unused calls that are named.
const NAMED_MAX: usize = 20;

/// A recording that is ready to answer.
pub(crate) struct Played {
    /// The tools of the configuration, and those that only the recording has.
    pub(crate) catalog: Catalog,
    pub(crate) player: Arc<Player>,
    /// Number of recorded tools.
    pub(crate) tools: usize,
}

impl Played {
    /// Reads a file. A tool that the configuration declares otherwise is refused, unless that is allowed: its
    /// declaration is then that of the configuration, and it is said.
    fn read(
        path: &Path,
        loaded: &Loaded,
        options: &RecordingOptions,
        terminal: &mut Terminal,
    ) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::unreadable(path.display(), error))?;
        let recording = Recording::parse(&text).map_err(|misread| {
            Failure::new(format!("{}: {misread}", path.display()))
                .hint("create a recording with `countersign record`; docs/recordings.md describes the format")
        })?;
        let mut tools = assemble::declared(loaded).map_err(config::wrong)?;
        let mut changed = Vec::new();
        for declared in &recording.tools {
            let name = &declared.spec.name;
            match tools.iter().find(|tool| tool.spec().name == *name) {
                None => tools.push(recording::declared(declared.spec.clone())),
                Some(tool) => changed.extend(difference(declared, tool.spec())),
            }
        }
        if !changed.is_empty() && !options.allow_changed {
            let what = counted(changed.len(), "tool is", "tools are");
            let message = format!(
                "{}: {what} declared otherwise than when it was recorded",
                path.display()
            );
            return Err(Failure::new(message).lines(changed).hint(
                "record again; or --allow-changed answers from it all the same, with the declarations of now",
            ));
        }
        for line in changed {
            terminal.say(format_args!("warning: {line}"))?;
        }
        let count = recording.tools.len();
        let digest = Digest::of_bytes(text.as_bytes());
        let digests = if options.any_masked {
            None
        } else {
            digests_of(path, digest)?
        };
        let player = match digests {
            Some(digests) => Player::exact(recording, digest, digests),
            None => Player::new(recording, digest),
        };
        if player.matches_by_kind() && !options.any_masked {
            terminal.say(format_args!(
                "warning: masked arguments match any value of their kind: {} is not there",
                beside(path).display()
            ))?;
        }
        Ok(Self {
            catalog: assemble::catalog(loaded, tools).map_err(config::wrong)?,
            player: Arc::new(player),
            tools: count,
        })
    }

    /// Says how far the recording was used. A call that was not in it is a failure of the run.
    pub(crate) fn say_end(&self, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let counts = self.player.counts();
        for (order, tool) in self.player.unused().into_iter().take(NAMED_MAX) {
            terminal.say(format_args!("unused: call {order} of {tool}"))?;
        }
        terminal.say(format_args!(
            "recording: {} calls, {} answered, {} unused, {} unmatched",
            counts.calls, counts.answered, counts.unused, counts.unmatched
        ))?;
        Ok(if counts.unmatched > 0 {
            Exit::Refused
        } else {
            Exit::Ok
        })
    }

    /// The same for programs, on stdout.
    pub(crate) fn write_end(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        if terminal.is_for_programs() {
            write_json(terminal, &json!({"recording": self.player.counts()}))?;
        }
        Ok(())
    }
}

/// The file with the digests of a recording's masked arguments: beside it, as `calls.jsonl.digests`.
pub(crate) fn beside(recording: &Path) -> PathBuf {
    let mut name = OsString::from(recording);
    name.push(".digests");
    name.into()
}

/// Reads the digests beside a recording; `None` if there are none.
fn digests_of(recording: &Path, digest: Digest) -> Result<Option<Digests>, Failure> {
    let path = beside(recording);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::unreadable(path.display(), error)),
    };
    let digests = Digests::parse(&text, digest).map_err(|error| {
        Failure::new(format!("{}: {error}", path.display())).hint(
            "record again, or use --any-masked: masked arguments then match any value of their kind",
        )
    })?;
    Ok(Some(digests))
}

/// Describes the difference of a declaration from the recorded one; none if they are the same.
fn difference(declared: &Declared, now: &ToolSpec) -> Option<String> {
    let (then, now) = (
        serde_json::to_value(&declared.spec).unwrap_or_default(),
        serde_json::to_value(now).unwrap_or_default(),
    );
    let digest = Digest::of_canonical(&now).ok()?;
    if digest == declared.definition {
        return None;
    }
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let (then, now) = (members(&then), members(&now));
    let added = now.keys().filter(|name| !then.contains_key(*name));
    let names = then.keys().chain(added);
    let differing = names.filter(|name| then.get(*name) != now.get(*name));
    let differing: Vec<&str> = differing.map(String::as_str).collect();
    Some(format!(
        "{}: {} changed: recorded {}, now {digest}",
        declared.spec.name,
        differing.join(", "),
        declared.definition,
    ))
}

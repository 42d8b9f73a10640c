//! A recording: calls and what they were answered, in one file of JSON lines, for tests and evaluations.
//!
//! The first line names the format and the log that the calls were read from. Then each tool has a line with its whole
//! declaration, each call has a line in the order in which the calls were made, and the last line says how many there
//! are, so that a file that was cut off is not taken for a whole one.
//!
//! In a masked recording a sensitive value is a *placeholder* such as `[email:2]`: the kind of the value, and a number in
//! the order of appearance. Equal values have equal placeholders. Nothing can be computed back from a number.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::envelope::CheckpointRef;
use crate::error::ErrorBody;
use crate::evidence::Exact;
use crate::id::SnapshotId;
use crate::tool::ToolSpec;

mod parse;
mod placeholder;

pub use parse::{Fault, LINE_BYTES_MAX, Misread};
pub use placeholder::{Piece, pieces};

/// The version of the format that is written and read.
pub const VERSION: u32 = 1;

/// The whole of a recording.
///
/// # Example
///
/// ```
/// use countersign_contract::recording::Recording;
///
/// let wrong = Recording::parse("{\"recording\": {\"v\": 2}}\n").unwrap_err();
/// assert_eq!(wrong.line, 1);
/// assert!(wrong.to_string().contains("version 2"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// Header: the source of the calls.
    pub header: Header,
    /// The tools that were called, as they were declared.
    pub tools: Vec<Declared>,
    /// The calls, oldest first.
    pub calls: Vec<Call>,
}

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first line.
    Recording(Header),
    /// A tool that was called.
    Tool(Box<Declared>),
    /// A call.
    Call(Box<Call>),
    /// The last line.
    End(End),
}

/// The first line: the format, and the source of the calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The version of this format: 1.
    pub v: u32,
    /// The program that wrote it, with its version.
    pub program: String,
    /// Time at which it was written, RFC 3339.
    pub made_at: String,
    /// Random name of the installation; empty if the store has none.
    pub installation: String,
    /// The log that the calls were read from.
    pub log: LogRef,
    /// True if sensitive values are placeholders.
    pub masked: bool,
}

/// The log of a recording, at the checkpoint that it was read at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LogRef {
    /// The name of the log.
    pub origin: String,
    /// The newest signed checkpoint when the calls were read.
    pub checkpoint: CheckpointRef,
}

/// A tool that was called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Declared {
    /// Digest of the canonical JSON of the declaration, as records name it.
    pub definition: Digest,
    /// The declaration.
    pub spec: ToolSpec,
}

/// A call and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Position: 1, 2, 3 and so on.
    pub order: u64,
    /// The canonical name of the tool.
    pub tool: String,
    /// The tool's own version.
    pub version: String,
    /// Digest of the tool's declaration.
    pub definition: Digest,
    /// Time at which the call arrived, RFC 3339.
    pub at: String,
    /// The bound arguments with their defaults, as canonical JSON where they have such a form.
    pub arguments: Exact,
    /// True if nothing was to be changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Answer of the call.
    pub outcome: Outcome,
    /// Time for which the answer was valid, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u32>,
    /// Remarks of the tool beside its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// The record of the call in the log.
    pub evidence: SnapshotId,
}

/// Answer of a call: data, or one of the closed errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The call succeeded.
    Data(Exact),
    /// The call failed.
    Error(Box<ErrorBody>),
}

/// A remark of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Remark {
    /// Its short name.
    pub code: String,
    /// One sentence.
    pub message: String,
}

/// The last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Number of calls.
    pub calls: u64,
}

impl Recording {
    /// The text of the file.
    pub fn to_text(&self) -> String {
        let header = std::iter::once(Line::Recording(self.header.clone()));
        let tools = self.tools.iter();
        let tools = tools.map(|tool| Line::Tool(Box::new(tool.clone())));
        let calls = self.calls.iter();
        let calls = calls.map(|call| Line::Call(Box::new(call.clone())));
        let end = std::iter::once(Line::End(End {
            calls: self.calls.len() as u64,
        }));
        let mut text = String::new();
        for line in header.chain(tools).chain(calls).chain(end) {
            // Names, texts and JSON values can always be written.
            text.push_str(&serde_json::to_string(&line).unwrap_or_default());
            text.push('\n');
        }
        text
    }
}

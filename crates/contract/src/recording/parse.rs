//! Reading a recording: strictly, line by line; whatever is wrong has a line and a column.

use std::collections::BTreeMap;

use super::{Call, Declared, End, Header, Line, Recording, VERSION};
use crate::digest::Digest;

/// The longest line that is read: the largest answer, with room for escapes.
pub const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Reason why a text is no recording, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct Misread {
    /// From 1 on.
    pub line: usize,
    /// In bytes, from 1 on.
    pub column: usize,
    /// Fault at that place.
    pub fault: Fault,
}

/// Fault of a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is no JSON, or has other members. Usually the line was edited by hand.
    #[error("{reason}")]
    Shape {
        /// Message of the JSON reader.
        reason: String,
    },
    /// A later program wrote it, perhaps. Usually the recording is from a newer version.
    #[error("version {found} of the format is not known; {VERSION} is read")]
    Version {
        /// Version in the line.
        found: u64,
    },
    /// The file does not begin with its header. Usually another file was given.
    #[error("a recording begins with a line {{\"recording\": …}}")]
    NoHeader,
    /// The recording has a second header. Usually two recordings were joined.
    #[error("only the first line is a header")]
    SecondHeader,
    /// A tool has two lines. Usually two recordings were joined.
    #[error("the tool {tool} has a line already")]
    SecondTool {
        /// Name of the tool.
        tool: String,
    },
    /// A declaration is not the one that its digest names. Usually the declaration was edited by hand.
    #[error("the declaration of {tool} has the digest {found}, not {named}")]
    OtherDeclaration {
        /// The tool.
        tool: String,
        /// The digest of what stands there.
        found: Digest,
        /// The digest that is named.
        named: Digest,
    },
    /// A declaration has no canonical form. Usually the declaration was edited by hand.
    #[error("the declaration of {tool} has no canonical form")]
    NotCanonical {
        /// The tool.
        tool: String,
    },
    /// A call comes before its tool. Usually lines were removed or sorted.
    #[error("the tool {tool} has no line before this call")]
    NoTool {
        /// Name of the tool.
        tool: String,
    },
    /// A call is of another declaration than its tool's line has. Usually lines of two recordings were mixed.
    #[error("the call is of the declaration {call}, and the line of {tool} has {declared}")]
    OtherDefinition {
        /// The tool.
        tool: String,
        /// Digest that the call names.
        call: Digest,
        /// Digest that the line of the tool names.
        declared: Digest,
    },
    /// A call is missing, or stands at another place. Usually lines were removed or sorted.
    #[error("this call has the order {found}, and {expected} is next")]
    Order {
        /// Order in the line.
        found: u64,
        /// Order that would be right.
        expected: u64,
    },
    /// The last line counts otherwise. Usually calls were removed or added by hand.
    #[error("the last line says {said} calls, and there are {found}")]
    Count {
        /// Number in the line.
        said: u64,
        /// Number of calls in the file.
        found: u64,
    },
    /// Something stands behind the last line. Usually two recordings were joined.
    #[error("no line may follow the line {{\"end\": …}}")]
    BehindEnd,
    /// The file was cut off. Usually the disk was full, or the recording was interrupted.
    #[error("the line {{\"end\": …}} is missing: the file was cut off")]
    NoEnd,
    /// A line is longer than any answer. Usually another file was given.
    #[error("the line has {bytes} bytes; at most {LINE_BYTES_MAX} are read")]
    TooLong {
        /// Length of the line.
        bytes: usize,
    },
}

impl Recording {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its place. Nothing is skipped and nothing is guessed.
    pub fn parse(text: &str) -> Result<Self, Misread> {
        let mut reader = Reader::default();
        let mut count = 0;
        for (index, line) in text.lines().enumerate() {
            count = index + 1;
            reader.line(line).map_err(|(column, fault)| Misread {
                line: count,
                column,
                fault,
            })?;
        }
        reader.finish().map_err(|fault| Misread {
            line: count + 1,
            column: 1,
            fault,
        })
    }
}

/// Lines that were read so far.
#[derive(Default)]
struct Reader {
    header: Option<Header>,
    definitions: BTreeMap<String, Digest>,
    tools: Vec<Declared>,
    calls: Vec<Call>,
    is_over: bool,
}

/// Column in a line, and the fault there.
type Wrong = (usize, Fault);

impl Reader {
    fn line(&mut self, text: &str) -> Result<(), Wrong> {
        if self.is_over {
            return Err((1, Fault::BehindEnd));
        }
        if text.len() > LINE_BYTES_MAX {
            return Err((1, Fault::TooLong { bytes: text.len() }));
        }
        if self.header.is_none() {
            check_version(text)?;
        }
        let line: Line = serde_json::from_str(text).map_err(|error| shape(&error))?;
        match (line, self.header.is_some()) {
            (Line::Recording(header), false) => self.header = Some(header),
            (Line::Tool(_) | Line::Call(_) | Line::End(_), false) => {
                return Err((1, Fault::NoHeader));
            }
            (Line::Recording(_), true) => return Err((1, Fault::SecondHeader)),
            (Line::Tool(tool), true) => self.tool(*tool).map_err(|fault| (1, fault))?,
            (Line::Call(call), true) => self.call(*call).map_err(|fault| (1, fault))?,
            (Line::End(end), true) => self.end(end).map_err(|fault| (1, fault))?,
        }
        Ok(())
    }

    fn tool(&mut self, tool: Declared) -> Result<(), Fault> {
        let name = tool.spec.name.to_string();
        let declaration = serde_json::to_value(&tool.spec).unwrap_or_default();
        let Ok(found) = Digest::of_canonical(&declaration) else {
            return Err(Fault::NotCanonical { tool: name });
        };
        let named = tool.definition;
        if found != named {
            return Err(Fault::OtherDeclaration {
                tool: name,
                found,
                named,
            });
        }
        if self.definitions.insert(name.clone(), named).is_some() {
            return Err(Fault::SecondTool { tool: name });
        }
        self.tools.push(tool);
        Ok(())
    }

    fn call(&mut self, call: Call) -> Result<(), Fault> {
        let expected = self.calls.len() as u64 + 1;
        if call.order != expected {
            return Err(Fault::Order {
                found: call.order,
                expected,
            });
        }
        match self.definitions.get(&call.tool) {
            None => return Err(Fault::NoTool { tool: call.tool }),
            Some(declared) if *declared != call.definition => {
                return Err(Fault::OtherDefinition {
                    declared: *declared,
                    call: call.definition,
                    tool: call.tool,
                });
            }
            Some(_) => {}
        }
        self.calls.push(call);
        Ok(())
    }

    fn end(&mut self, end: End) -> Result<(), Fault> {
        let found = self.calls.len() as u64;
        if end.calls != found {
            return Err(Fault::Count {
                said: end.calls,
                found,
            });
        }
        self.is_over = true;
        Ok(())
    }

    fn finish(self) -> Result<Recording, Fault> {
        let header = self.header.ok_or(Fault::NoHeader)?;
        if !self.is_over {
            return Err(Fault::NoEnd);
        }
        Ok(Recording {
            header,
            tools: self.tools,
            calls: self.calls,
        })
    }
}

/// The version comes first: what a later version says cannot be judged by these types.
fn check_version(text: &str) -> Result<(), Wrong> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| shape(&error))?;
    let version = value.get("recording").and_then(|header| header.get("v"));
    match version.and_then(serde_json::Value::as_u64) {
        Some(found) if found != u64::from(VERSION) => Err((1, Fault::Version { found })),
        Some(_) | None => Ok(()),
    }
}

fn shape(error: &serde_json::Error) -> Wrong {
    let column = error.column().max(1);
    let text = error.to_string();
    // The place is told beside it, and this line is the only one that the reader saw.
    let reason = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(reason, _)| reason);
    (
        column,
        Fault::Shape {
            reason: reason.to_owned(),
        },
    )
}

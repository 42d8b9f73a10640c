//! Events that an agent logs about its own work, beside the calls that are recorded anyway.
//!
//! The record of the call *is* the event. It is evidence like any other (sealed, signed, found by the `snapshot_id` of
//! the reply), so nothing is written beside it, and least of all into a log: the events of an agent may quote the user.
//! Before anything is stored or answered the attributes pass the detectors of personal data and credentials (A21).
//!
//! The tool is a write, although it has no other effect: a retry with the same key is the same event, a dry run leaves
//! none behind, and the rate of each user is counted in its state, so that an agent in a loop cannot fill the evidence.

use countersign::catalog::CatalogBuilder;
use countersign::contract::Behaviour;
use countersign::redact::Detector;
use countersign::state::Collection;
use countersign::{CallContext, DryRun, Tool, ToolArgs, ToolError};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::behaviour;
use crate::words::Say;

/// The maximum number of events of a user's agents within [`WINDOW_SECONDS`].
pub const EVENTS_MAX: u32 = 120;

/// The length of the window of the rate limit.
pub const WINDOW_SECONDS: i64 = 60;

/// The maximum number of attributes of an event.
pub const ATTRIBUTES_MAX: usize = 20;

/// The maximum length of an attribute's name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The maximum length of a text, in characters.
const TEXT_MAX: usize = 256;

const PACE: Collection = Collection::of_user("event_pace");

/// `obs.log_event`.
struct LogEvent;

/// Arguments of `obs.log_event`.
#[derive(Deserialize, ToolArgs)]
struct LogEventArgs {
    /// Name of the event: dotted words in lower case.
    #[arg(
        max_length = 64,
        pattern = "^[a-z][a-z0-9_]*([.][a-z][a-z0-9_]*){0,4}$",
        example = "search.no_match"
    )]
    name: String,
    /// Level of the event.
    level: Option<Level>,
    /// Details: at most 20 strings, numbers and flags by name.
    #[arg(example = {"query_words": 3, "results": 0})]
    attributes: Option<Map<String, Value>>,
}

/// Level of an event.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize, ToolArgs,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Detail for debugging.
    Debug,
    /// Normal event.
    #[default]
    Info,
    /// Warning: an operator should look at it.
    #[serde(alias = "warn")]
    Warning,
    /// Error.
    Error,
}

/// An event as it was recorded. Its id is `evidence.snapshot_id` of the reply.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct LoggedEvent {
    /// Name of the event.
    pub name: String,
    /// Level.
    pub level: Level,
    /// Time of the event.
    pub at: Timestamp,
    /// Details, with personal data and credentials replaced.
    pub attributes: Map<String, Value>,
    /// Names of the attributes in which a value was replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redacted: Vec<String>,
}

/// The number of events in the current window, and its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Pace {
    since: Timestamp,
    count: u32,
}

impl Tool for LogEvent {
    const NAME: &'static str = "obs.log_event";
    const DESCRIPTION: &'static str = "Records an event of the agent's own work as evidence. Personal data and credentials \
         are replaced.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = LogEventArgs;
    type Output = LoggedEvent;

    fn behaviour() -> Behaviour {
        behaviour::add()
    }

    async fn call(&self, ctx: &CallContext, args: LogEventArgs) -> Result<LoggedEvent, ToolError> {
        let attributes = args.attributes.unwrap_or_default();
        check_attributes(&attributes)?;
        count(ctx).await?;
        let (attributes, redacted) = scrubbed(attributes);
        if !redacted.is_empty() {
            ctx.remark("PERSONAL_DATA_REPLACED", Say::PersonalDataReplaced);
        }
        Ok(LoggedEvent {
            name: args.name,
            level: args.level.unwrap_or_default(),
            at: ctx.now(),
            attributes,
            redacted,
        })
    }
}

/// Checks the attributes: their number and sizes are bounded, and nested values are refused.
fn check_attributes(attributes: &Map<String, Value>) -> Result<(), ToolError> {
    if attributes.len() > ATTRIBUTES_MAX {
        let message = Say::TooManyAttributes {
            count: attributes.len().to_string(),
            most: ATTRIBUTES_MAX.to_string(),
        };
        return Err(ToolError::invalid("/attributes", message));
    }
    for (name, value) in attributes {
        // The name may itself be something personal, so the answer does not repeat it.
        if !is_name(name) {
            return Err(ToolError::invalid("/attributes", Say::AttributeName));
        }
        let attribute = || name.clone();
        let problem = match value {
            Value::Array(_) | Value::Object(_) => Some(Say::AttributeKind { name: attribute() }),
            Value::String(text) if text.chars().count() > TEXT_MAX => Some(Say::AttributeLength {
                name: attribute(),
                most: TEXT_MAX.to_string(),
            }),
            Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => None,
        };
        if let Some(message) = problem {
            return Err(
                ToolError::invalid(format!("/attributes/{name}"), message).hint(Say::EventSaysWhat)
            );
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |byte: u8| is_letter(byte) || byte == b'_' || byte == b'.';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_part)
}

/// Removes everything that the detectors find; returns the attributes, and the names of those that were changed.
fn scrubbed(attributes: Map<String, Value>) -> (Map<String, Value>, Vec<String>) {
    let mut redacted = Vec::new();
    let scrubbed = attributes.into_iter().map(|(name, value)| {
        let mut clean = value.clone();
        Detector::new().scrub_value(&mut clean);
        if clean != value {
            redacted.push(name.clone());
        }
        (name, clean)
    });
    let scrubbed = scrubbed.collect();
    (scrubbed, redacted)
}

/// Counts the event, or refuses it with the time until the next window.
async fn count(ctx: &CallContext) -> Result<(), ToolError> {
    let now = ctx.now();
    let window = SignedDuration::from_secs(WINDOW_SECONDS);
    let kept: Option<Pace> = ctx.state().get(&PACE, "all").await?;
    let fresh = Pace {
        since: now,
        count: 0,
    };
    let mut pace = kept
        .filter(|pace| now.duration_since(pace.since) < window)
        .unwrap_or(fresh);
    if pace.count >= EVENTS_MAX {
        let left = window - now.duration_since(pace.since);
        let wait_ms = u64::try_from(left.as_millis()).unwrap_or(0);
        let message = Say::EventsFull {
            most: EVENTS_MAX.to_string(),
            seconds: WINDOW_SECONDS.to_string(),
        };
        return Err(ToolError::rate_limited(wait_ms, message).hint(Say::SumUpEvents));
    }
    pace.count += 1;
    ctx.state().put(&PACE, "all", &pace).await
}

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder.tool(LogEvent)
}

//! A call as a span, in the terms of `OpenTelemetry`: names, ids, codes and times. Arguments, results and error
//! messages are attributes in no setting.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::SystemTime;

use countersign::contract::ErrorCode;
use countersign::contract::record::PhaseTimes;
use countersign::observe::{Answered, Surface};
use countersign::redact::Detector;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

/// Semantic convention of spans. The `GenAI` conventions are still changing, so their version is pinned and
/// named in the `schema_url`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Convention {
    /// Version 1.37: `execute_tool` spans.
    #[default]
    V1_37,
    /// Version 1.41, which also describes calls over MCP: `tools/call` spans of kind server.
    V1_41,
    /// No `GenAI` attributes.
    Off,
}

impl Convention {
    /// Returns the name of the setting.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1_37 => "1.37",
            Self::V1_41 => "1.41",
            Self::Off => "off",
        }
    }

    /// Returns the address of the convention's schema.
    pub const fn schema_url(self) -> Option<&'static str> {
        match self {
            Self::V1_37 => Some("https://opentelemetry.io/schemas/1.37.0"),
            Self::V1_41 => Some("https://opentelemetry.io/schemas/1.41.0"),
            Self::Off => None,
        }
    }

    /// True if the call is described as one over MCP.
    fn is_mcp(self, surface: Surface) -> bool {
        let has_words = match self {
            Self::V1_41 => true,
            Self::V1_37 | Self::Off => false,
        };
        has_words
            && match surface {
                Surface::Mcp => true,
                Surface::InProcess | Surface::Http | Surface::Provider => false,
            }
    }

    pub(super) fn scope(self) -> InstrumentationScope {
        let scope =
            InstrumentationScope::builder("countersign").with_version(env!("CARGO_PKG_VERSION"));
        match self.schema_url() {
            Some(url) => scope.with_schema_url(url).build(),
            None => scope.build(),
        }
    }
}

impl FromStr for Convention {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "1.37" => Ok(Self::V1_37),
            "1.41" => Ok(Self::V1_41),
            "off" => Ok(Self::Off),
            _ => Err("expected 1.37, 1.41 or off".to_owned()),
        }
    }
}

/// Maximum length of a call id in a span, in bytes.
const CALL_ID_BYTES_MAX: usize = 128;

/// Builds the span of a call, with the ids that the call was given when it arrived.
pub(super) fn span_of(
    answered: &Answered,
    convention: Convention,
    scope: &InstrumentationScope,
) -> SpanData {
    let trace = answered.trace;
    let state = answered.trace_state.as_ref();
    let state = state.and_then(|state| TraceState::from_str(state.as_str()).ok());
    let flags = TraceFlags::default().with_sampled(trace.sampled);
    let span_context = SpanContext::new(
        trace.trace_id.into(),
        trace.span_id.into(),
        flags,
        false,
        state.unwrap_or_default(),
    );
    let is_mcp = convention.is_mcp(answered.origin.surface);
    SpanData {
        span_context,
        parent_span_id: trace.parent_span_id.map_or(SpanId::INVALID, SpanId::from),
        parent_span_is_remote: trace.parent_span_id.is_some(),
        span_kind: if is_mcp {
            SpanKind::Server
        } else {
            SpanKind::Internal
        },
        name: name_of(answered, convention, is_mcp),
        start_time: SystemTime::from(answered.at),
        end_time: SystemTime::from(answered.ended()),
        attributes: attributes(answered, convention, is_mcp),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: match answered.code {
            Some(_) => Status::error(""),
            None => Status::Unset,
        },
        instrumentation_scope: scope.clone(),
    }
}

fn name_of(answered: &Answered, convention: Convention, is_mcp: bool) -> Cow<'static, str> {
    let operation = match convention {
        Convention::Off => "tool_call",
        Convention::V1_37 | Convention::V1_41 if is_mcp => "tools/call",
        Convention::V1_37 | Convention::V1_41 => "execute_tool",
    };
    format!("{operation} {}", tool_of(answered)).into()
}

/// Returns the tool's name; an unknown one is the caller's text, and is not repeated.
fn tool_of(answered: &Answered) -> &str {
    answered
        .tool
        .as_ref()
        .map_or("unknown", |entry| entry.name().as_str())
}

fn attributes(answered: &Answered, convention: Convention, is_mcp: bool) -> Vec<KeyValue> {
    let mut all = Vec::with_capacity(20);
    match convention {
        Convention::V1_37 | Convention::V1_41 => {
            all.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
            let tool = tool_of(answered).to_owned();
            all.push(KeyValue::new("gen_ai.tool.name", tool));
            all.push(KeyValue::new("gen_ai.tool.type", "function"));
            if let Some(id) = call_id(answered) {
                all.push(KeyValue::new("gen_ai.tool.call.id", id));
            }
            if is_mcp {
                all.push(KeyValue::new("mcp.method.name", "tools/call"));
            }
        }
        Convention::Off => {
            let tool = tool_of(answered).to_owned();
            all.push(KeyValue::new("countersign.tool.name", tool));
        }
    }
    if let Some(code) = answered.code {
        all.push(KeyValue::new("error.type", code.as_str()));
    }
    own_attributes(answered, &mut all);
    all
}

fn own_attributes(answered: &Answered, all: &mut Vec<KeyValue>) {
    let PhaseTimes {
        queued_us,
        awaiting_approval_us,
        executing_us,
        settling_us,
    } = answered.phases;
    let us = |us: u64| i64::try_from(us).unwrap_or(i64::MAX);
    let code = answered.code.map_or("OK", ErrorCode::as_str);
    let surface = answered.origin.surface.as_str();
    all.extend([
        KeyValue::new("countersign.code", code),
        KeyValue::new("countersign.surface", surface),
        KeyValue::new("countersign.replayed", answered.replayed),
        KeyValue::new("countersign.dry_run", answered.dry_run),
        KeyValue::new("countersign.phase.queued_us", us(queued_us)),
        KeyValue::new(
            "countersign.phase.awaiting_approval_us",
            us(awaiting_approval_us),
        ),
        KeyValue::new("countersign.phase.executing_us", us(executing_us)),
        KeyValue::new("countersign.phase.settling_us", us(settling_us)),
    ]);
    if let Some(request_id) = &answered.request_id {
        let request_id = request_id.to_string();
        all.push(KeyValue::new("countersign.request_id", request_id));
    }
    if let Some(entry) = &answered.tool {
        let version = entry.spec().version.clone();
        all.push(KeyValue::new("countersign.tool.version", version));
    }
    if let Some(revision) = &answered.policy_revision {
        all.push(KeyValue::new(
            "countersign.policy_revision",
            revision.clone(),
        ));
    }
    if let Some(id) = &answered.snapshot_id {
        all.push(KeyValue::new("countersign.snapshot_id", id.to_string()));
    }
    if let Some(status) = answered.binding.status {
        all.push(KeyValue::new("countersign.bind.status", status.as_str()));
        let issues = answered.binding.issues.keys();
        let issues: Vec<StringValue> = issues.map(|code| code.as_str().into()).collect();
        if !issues.is_empty() {
            let issues = Value::Array(Array::String(issues));
            all.push(KeyValue::new("countersign.bind.issues", issues));
        }
    }
}

/// Returns the model's id of the call, unless it is too long to be one.
fn call_id(answered: &Answered) -> Option<String> {
    let id = answered.origin.call_id.as_deref()?;
    let is_name = id.len() <= CALL_ID_BYTES_MAX
        && id.bytes().all(|byte| byte.is_ascii_graphic())
        && Detector::new().is_clean(id);
    is_name.then(|| id.to_owned())
}

//! W3C trace context: carried in, handed to the tool, carried on to every downstream call (A6).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The `trace` member of a request envelope, as the standard spells it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// 32 hexadecimal digits; the standard leaves it out, W3C needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// 16 hexadecimal digits: the span of this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_id: Option<String>,
    /// 16 hexadecimal digits: the span that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<String>,
}

/// A `traceparent` header, parsed.
///
/// # Example
///
/// ```
/// use countersign_contract::TraceContext;
///
/// let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let incoming: TraceContext = header.parse()?;
/// let outgoing = incoming.child(0xb7ad_6b71_6920_3331);
/// assert_eq!(outgoing.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01");
/// # Ok::<(), countersign_contract::trace::InvalidTrace>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// Id of the whole trace; never zero.
    pub trace_id: u128,
    /// Id of this hop's span; never zero.
    pub span_id: u64,
    /// Parent span, if it is known.
    pub parent_span_id: Option<u64>,
    /// True if the caller records this trace.
    pub sampled: bool,
}

/// Error for a text that is not a W3C `traceparent`, usually because a proxy or client wrote it by hand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a W3C traceparent: {0}")]
pub struct InvalidTrace(&'static str);

/// A `tracestate` header: data of tracing vendors. It is passed on and never read.
///
/// # Example
///
/// ```
/// use countersign_contract::TraceState;
///
/// assert!("vendor=t61rcWkgMzE,other@sys=00f067aa".parse::<TraceState>().is_ok());
/// assert!("no pairs in here".parse::<TraceState>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TraceState(Arc<str>);

/// The longest `tracestate` that W3C asks to be carried on whole.
const STATE_BYTES_MAX: usize = 512;

/// Maximum number of vendors in a `tracestate`.
const STATE_MEMBERS_MAX: usize = 32;

impl TraceState {
    /// The header.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Vendors put ids of theirs in it, so it is not shown.
impl fmt::Debug for TraceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceState({} bytes)", self.0.len())
    }
}

impl FromStr for TraceState {
    type Err = InvalidTrace;

    fn from_str(text: &str) -> Result<Self, InvalidTrace> {
        // What may stand around a header's parts; a line break is no part of a header.
        let text = text.trim_matches([' ', '\t']);
        if text.is_empty() || text.len() > STATE_BYTES_MAX {
            return Err(InvalidTrace("the state has no or more than 512 bytes"));
        }
        let is_member = |member: &str| {
            let member = member.trim_matches([' ', '\t']);
            let key =
                |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
            member.is_empty()
                || member.split_once('=').is_some_and(|(name, value)| {
                    !name.is_empty()
                        && name.bytes().all(key)
                        && !value.is_empty()
                        && value
                            .bytes()
                            .all(|b| (b' '..=b'~').contains(&b) && b != b'=')
                })
        };
        let mut members = text.split(',');
        if members.clone().count() > STATE_MEMBERS_MAX || !members.all(is_member) {
            return Err(InvalidTrace("the state is not a list of keys and values"));
        }
        Ok(Self(text.into()))
    }
}

impl TraceContext {
    /// The next hop: same trace, `span_id` as the new span, this span as its parent.
    pub const fn child(self, span_id: u64) -> Self {
        Self {
            span_id,
            parent_span_id: Some(self.span_id),
            ..self
        }
    }

    /// Returns it as the `trace` member of an envelope.
    pub fn to_trace(self) -> Trace {
        Trace {
            trace_id: Some(format!("{:032x}", self.trace_id)),
            span_id: Some(format!("{:016x}", self.span_id)),
            parent_span_id: self.parent_span_id.map(|id| format!("{id:016x}")),
        }
    }
}

/// Usable parts of a `trace` member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerTrace {
    /// The trace of the chain: as it was sent, or derived from the caller's span.
    pub trace_id: Option<u128>,
    /// Span of the caller, which is the parent of our span.
    pub span_id: Option<u64>,
    /// Members that cannot be used.
    pub unusable: Vec<&'static str>,
}

impl Trace {
    /// Reads the ids. The standard's own form has no trace id: it is derived from `parent_span_id`, or from `span_id` if there is no
    /// parent, so that all calls below one span share one trace.
    ///
    /// # Example
    ///
    /// ```
    /// use countersign_contract::trace::Trace;
    ///
    /// let root = Trace { span_id: Some("00f067aa0ba902b7".into()), ..Trace::default() };
    /// let below = Trace {
    ///     span_id: Some("b7ad6b7169203331".into()),
    ///     parent_span_id: Some("00f067aa0ba902b7".into()),
    ///     ..Trace::default()
    /// };
    /// assert_eq!(root.read().trace_id, below.read().trace_id);
    /// assert!(root.read().trace_id.is_some());
    /// ```
    pub fn read(&self) -> CallerTrace {
        let mut unusable = Vec::new();
        let mut id = |name: &'static str, text: Option<&str>, digits: usize| {
            let id = hex(text?, digits);
            if id.is_none() {
                unusable.push(name);
            }
            id
        };
        let trace_id = id("trace_id", self.trace_id.as_deref(), 32);
        let span_id = id("span_id", self.span_id.as_deref(), 16);
        let parent = id("parent_span_id", self.parent_span_id.as_deref(), 16);
        CallerTrace {
            trace_id: trace_id.or_else(|| parent.or(span_id).map(derived)),
            span_id: span_id.or(parent).map(|id| id as u64),
            unusable,
        }
    }
}

/// The trace id of a chain that is known by one of its spans only.
fn derived(span_id: u128) -> u128 {
    let text = format!("countersign.dev/trace@v1\n{span_id:016x}");
    let digest = Digest::of_bytes(text.as_bytes());
    let (first, _) = digest.as_bytes().split_at(16);
    let id = first
        .iter()
        .fold(0, |id, byte| (id << 8) | u128::from(*byte));
    // A trace id is never zero.
    id.max(1)
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace_id,
            self.span_id,
            u8::from(self.sampled)
        )
    }
}

impl FromStr for TraceContext {
    type Err = InvalidTrace;

    fn from_str(text: &str) -> Result<Self, InvalidTrace> {
        let mut parts = text.trim().split('-');
        let mut next = || {
            parts
                .next()
                .ok_or(InvalidTrace("it has fewer than four parts"))
        };
        let (version, trace_id, span_id, flags) = (next()?, next()?, next()?, next()?);
        let version = hex_or_zero(version, 2).ok_or(InvalidTrace("the version is not 2 digits"))?;
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return Err(InvalidTrace("the version does not allow this form"));
        }
        let trace_id = hex(trace_id, 32).ok_or(InvalidTrace("the trace id is not 32 digits"))?;
        let span_id = hex(span_id, 16).ok_or(InvalidTrace("the span id is not 16 digits"))?;
        let flags = hex_or_zero(flags, 2).ok_or(InvalidTrace("the flags are not 2 digits"))?;
        Ok(Self {
            trace_id,
            span_id: span_id as u64,
            parent_span_id: None,
            sampled: flags & 1 == 1,
        })
    }
}

/// `digits` lower-case hexadecimal digits that are not all zero, as W3C demands of ids.
fn hex(text: &str, digits: usize) -> Option<u128> {
    hex_or_zero(text, digits).filter(|id| *id != 0)
}

fn hex_or_zero(text: &str, digits: usize) -> Option<u128> {
    let lower_hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    (text.len() == digits && lower_hex)
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A6: a context survives the way through the envelope.
    #[test]
    fn envelope_and_header_agree() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context: TraceContext = header.parse().unwrap();
        let read = context.to_trace().read();
        assert_eq!(
            (read.trace_id, read.span_id),
            (Some(context.trace_id), Some(context.span_id))
        );
        assert_eq!(context.to_string(), header);
    }

    /// A6: the standard's own form has no trace id, so equal spans give equal traces; what cannot be used is named.
    #[test]
    fn a_trace_is_read_as_far_as_it_goes() {
        let check = |ids: [Option<&str>; 3], expected: (bool, bool, &[&str])| {
            let [trace_id, span_id, parent_span_id] = ids.map(|id| id.map(str::to_owned));
            let trace = Trace {
                trace_id,
                span_id,
                parent_span_id,
            };
            let read = trace.read();
            let found = (read.trace_id.is_some(), read.span_id.is_some());
            assert_eq!(found, (expected.0, expected.1), "{ids:?}");
            assert_eq!(read.unusable, expected.2, "{ids:?}");
            assert_eq!(trace.read(), read, "{ids:?}");
        };
        let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        check([None, None, None], (false, false, &[]));
        check([Some(trace), None, None], (true, false, &[]));
        check([None, Some(span), None], (true, true, &[]));
        check([None, None, Some(span)], (true, true, &[]));
        check([Some("abc"), Some(span), None], (true, true, &["trace_id"]));
        check([None, Some("span-1"), None], (false, false, &["span_id"]));
        let zero = "0000000000000000";
        check(
            [Some(trace), Some(zero), Some("X")],
            (true, false, &["span_id", "parent_span_id"]),
        );
    }

    #[test]
    fn a_state_is_bounded_and_has_its_form() {
        let many = vec!["a=1"; 33].join(",");
        let long = format!("a={}", "x".repeat(511));
        for state in [
            "", "a", "a=", "=1", "A=1", "a=1\n", "a=\u{e4}", "a=b=c", &many, &long,
        ] {
            assert!(state.parse::<TraceState>().is_err(), "{state:?}");
        }
        let state: TraceState = " a=1, b@c=x y,".parse().unwrap();
        assert_eq!(state.as_str(), "a=1, b@c=x y,");
    }

    #[test]
    fn malformed_headers_are_refused() {
        for header in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-extra",
            "00-+bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ] {
            assert!(header.parse::<TraceContext>().is_err(), "{header:?}");
        }
    }
}

//! The player: which recorded call answers a call, and what was asked for in vain.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use countersign_args::Arguments;
use countersign_contract::recording::{Call, Outcome, Piece, Recording, Remark, pieces};
use countersign_contract::{Digest, ErrorBody, ErrorCode, FaultSource, SnapshotId};
use serde_json::{Value, json};

use super::bindings::Bindings;
use super::compare::{Comparison, Sent};
use super::digests::Digests;
use super::mask::Masker;
use crate::catalog::Entry;
use crate::executor::canonical_text;
use crate::replay::Difference;
use crate::words::Say;

/// Answers calls from a recording. It is used up as calls are answered.
pub struct Player {
    digest: Digest,
    is_masked: bool,
    /// Digests of the masked values; without them these are matched by their kind.
    digests: Option<Digests>,
    calls: Vec<Call>,
    /// Calls that are alike in everything but their answers, in the order of their first one.
    groups: Vec<Group>,
    /// The groups of each tool.
    by_tool: HashMap<String, Vec<usize>>,
    /// Groups without placeholders, by tool, dry run and text of the arguments.
    exact: HashMap<(String, bool, String), usize>,
    state: Mutex<State>,
}

struct Group {
    arguments: Value,
    dry_run: bool,
    /// Digest of the arguments, if the name of a member was masked and the digests are there.
    whole: Option<Digest>,
    /// Places in `calls`.
    calls: Vec<usize>,
    /// True if all of them were answered alike.
    is_alike: bool,
}

#[derive(Default)]
struct State {
    bindings: Bindings,
    /// Number of answers that each group has given.
    served: HashMap<usize, usize>,
    answered: u64,
    unmatched: u64,
}

/// Answer of a recording to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The place of the recorded call.
    pub order: u64,
    /// Data or error.
    pub outcome: Result<Value, Box<ErrorBody>>,
    /// Validity of the answer, in seconds.
    pub ttl_seconds: Option<u32>,
    /// Remarks of the tool.
    pub remarks: Vec<Remark>,
    /// Masked arguments of which only the kind was compared, as JSON pointers.
    pub by_kind: Vec<String>,
}

/// Use of a recording so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Recorded calls.
    pub calls: u64,
    /// Calls that were answered from them.
    pub answered: u64,
    /// Recorded calls that were not used.
    pub unused: u64,
    /// Calls that are not in the recording.
    pub unmatched: u64,
}

/// A call that is not in the recording.
#[derive(Debug, Clone, PartialEq)]
pub struct NotRecorded {
    /// The tool that was called.
    pub tool: String,
    /// The recorded call with the fewest differences; `None` if the recording has no call of the tool.
    pub nearest: Option<Nearest>,
}

/// The recorded call that is nearest to one that is not recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearest {
    /// Its place.
    pub order: u64,
    /// Its record.
    pub evidence: SnapshotId,
    /// Number of times that it was recorded.
    pub times: usize,
    /// Each argument that differs; empty where the call itself is recorded and was asked for too often.
    pub differences: Vec<Difference>,
}

impl Player {
    /// Plays this recording, whose file has this digest. Masked values match any value of their kind, with a warning.
    pub fn new(recording: Recording, digest: Digest) -> Self {
        Self::with(recording, digest, None)
    }

    /// The same with the digests of the masked values: only the recorded values match.
    pub fn exact(recording: Recording, digest: Digest, digests: Digests) -> Self {
        Self::with(recording, digest, Some(digests))
    }

    fn with(recording: Recording, digest: Digest, digests: Option<Digests>) -> Self {
        let Recording { header, calls, .. } = recording;
        let mut player = Self {
            digest,
            is_masked: header.masked,
            digests,
            calls,
            groups: Vec::new(),
            by_tool: HashMap::new(),
            exact: HashMap::new(),
            state: Mutex::default(),
        };
        let mut known: HashMap<(String, bool, String), usize> = HashMap::new();
        for place in 0..player.calls.len() {
            player.file(place, &mut known);
        }
        player
    }

    /// Puts a call into its group.
    fn file(&mut self, place: usize, known: &mut HashMap<(String, bool, String), usize>) {
        let Some(call) = self.calls.get(place) else {
            return;
        };
        let digests = self.digests.as_ref();
        let whole = digests.and_then(|own| own.of_recorded(call.order));
        let mut text = call.arguments.text().to_owned();
        // Two calls that look alike with their names masked are two.
        text.extend(whole.map(|own| own.to_string()));
        let key = (call.tool.clone(), call.dry_run, text);
        if let Some(group) = known.get(&key).and_then(|at| self.groups.get_mut(*at)) {
            let first = group.calls.first().and_then(|first| self.calls.get(*first));
            group.is_alike &= first.is_some_and(|first| is_answered_alike(first, call));
            group.calls.push(place);
            return;
        }
        let at = self.groups.len();
        let arguments = call.arguments.value().unwrap_or_default();
        if !(self.is_masked && has_placeholder(&arguments)) {
            self.exact.insert(key.clone(), at);
        }
        self.groups.push(Group {
            arguments,
            dry_run: call.dry_run,
            whole,
            calls: vec![place],
            is_alike: true,
        });
        self.by_tool.entry(call.tool.clone()).or_default().push(at);
        known.insert(key, at);
    }

    /// True if a call can be matched by the kinds of masked values only.
    pub fn matches_by_kind(&self) -> bool {
        let mut groups = self.groups.iter();
        let is_open = self.is_masked && self.digests.is_none();
        is_open && groups.any(|group| has_placeholder(&group.arguments))
    }

    /// The digest of the file.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the use of the recording so far.
    pub fn counts(&self) -> Counts {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let used = self.groups.iter().enumerate().map(|(at, group)| {
            let served = state.served.get(&at).copied().unwrap_or_default();
            served.min(group.calls.len()) as u64
        });
        let calls = self.calls.len() as u64;
        Counts {
            calls,
            answered: state.answered,
            unused: calls.saturating_sub(used.sum()),
            unmatched: state.unmatched,
        }
    }

    /// Lists the recorded calls that were not used: position and tool.
    pub fn unused(&self) -> Vec<(u64, &str)> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unused: Vec<(u64, &str)> = Vec::new();
        for (at, group) in self.groups.iter().enumerate() {
            let served = state.served.get(&at).copied().unwrap_or_default();
            let left = group.calls.iter().skip(served);
            let left = left.filter_map(|place| self.calls.get(*place));
            unused.extend(left.map(|call| (call.order, call.tool.as_str())));
        }
        unused.sort_unstable();
        unused
    }

    /// The answer to a call of this tool with these bound arguments.
    ///
    /// # Errors
    ///
    /// [`NotRecorded`] if the call is not recorded, or was recorded fewer times, with different answers.
    pub fn answer(
        &self,
        entry: &Entry,
        arguments: &Arguments,
        dry_run: bool,
    ) -> Result<Answer, NotRecorded> {
        let tool = entry.name().as_str();
        let text = canonical_text(arguments);
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        let key = (tool.to_owned(), dry_run, text);
        let mut found = self.exact.get(&key).copied();
        let mut by_kind = Vec::new();
        if found.is_none_or(|group| !self.is_left(group, state)) {
            let sent = self.sent(entry, &key.2);
            if let Some((group, paths)) = self.matching(tool, dry_run, &sent, state) {
                found = Some(group);
                by_kind = paths;
            }
            if found.is_none() {
                state.unmatched += 1;
                let nearest = self.nearest(tool, dry_run, &sent, state);
                return Err(NotRecorded {
                    tool: tool.to_owned(),
                    nearest,
                });
            }
        }
        let answer = found.and_then(|group| self.serve(group, state));
        let Some(call) = answer else {
            state.unmatched += 1;
            return Err(NotRecorded {
                tool: tool.to_owned(),
                nearest: found.and_then(|group| self.named(group, Vec::new())),
            });
        };
        state.answered += 1;
        Ok(Answer {
            by_kind,
            ..self.filled(call, &state.bindings)
        })
    }

    fn is_left(&self, group: usize, state: &State) -> bool {
        let served = state.served.get(&group).copied().unwrap_or_default();
        let group = self.groups.get(group);
        group.is_some_and(|group| group.is_alike || served < group.calls.len())
    }

    fn sent(&self, entry: &Entry, text: &str) -> Sent {
        let plain: Value = serde_json::from_str(text).unwrap_or_default();
        let mut masked = plain.clone();
        let mut values = Masker::for_call();
        if self.is_masked {
            entry.redaction.mark(&mut masked, &mut values);
        }
        let digests = self.digests.as_ref();
        Sent {
            whole: digests.map(|own| own.of_sent(text)),
            plain,
            masked,
            values,
        }
    }

    /// The first group with placeholders that the call matches, those first that have an answer left; and the arguments that were matched
    /// by their kind only.
    fn matching(
        &self,
        tool: &str,
        dry_run: bool,
        sent: &Sent,
        state: &mut State,
    ) -> Option<(usize, Vec<String>)> {
        let mut used_up = None;
        for at in self.by_tool.get(tool)? {
            let Some(group) = self.groups.get(*at) else {
                continue;
            };
            if group.dry_run != dry_run || !self.is_masked || !has_placeholder(&group.arguments) {
                continue;
            }
            let digests = self.digests.as_ref();
            let comparison = Comparison::of(&group.arguments, sent, &state.bindings, digests);
            if !comparison.is_match() || !group.is_whole(sent) {
                continue;
            }
            if self.is_left(*at, state) {
                let Comparison { new, by_kind, .. } = comparison;
                state.bindings.add(new);
                return Some((*at, by_kind));
            }
            used_up = used_up.or(Some((*at, Vec::new())));
        }
        used_up
    }

    /// The next call of a group; `None` if all of them have answered, and not alike.
    fn serve(&self, group: usize, state: &mut State) -> Option<&Call> {
        let calls = self.groups.get(group)?;
        let served = state.served.entry(group).or_default();
        let place = match calls.calls.get(*served) {
            Some(place) => place,
            None if calls.is_alike => calls.calls.last()?,
            None => return None,
        };
        *served += 1;
        self.calls.get(*place)
    }

    fn filled(&self, call: &Call, bindings: &Bindings) -> Answer {
        let outcome = match &call.outcome {
            Outcome::Data(data) => {
                let mut data = data.value().unwrap_or_default();
                if self.is_masked {
                    bindings.fill(&mut data);
                }
                Ok(data)
            }
            Outcome::Error(body) if self.is_masked => Err(filled_error(body, bindings)),
            Outcome::Error(body) => Err(body.clone()),
        };
        Answer {
            order: call.order,
            outcome,
            ttl_seconds: call.ttl_seconds,
            remarks: call.remarks.clone(),
            by_kind: Vec::new(),
        }
    }

    fn nearest(&self, tool: &str, dry_run: bool, sent: &Sent, state: &State) -> Option<Nearest> {
        let compared = self.by_tool.get(tool)?.iter().filter_map(|at| {
            let group = self.groups.get(*at)?;
            let digests = self.digests.as_ref();
            let comparison = Comparison::of(&group.arguments, sent, &state.bindings, digests);
            let mut differences = comparison.differences;
            if differences.is_empty() && !group.is_whole(sent) {
                differences.push(Difference {
                    path: String::new(),
                    recorded: Some(group.arguments.clone()),
                    computed: Some(sent.plain.clone()),
                });
            }
            if group.dry_run != dry_run {
                differences.push(Difference {
                    path: "dry_run".to_owned(),
                    recorded: Some(group.dry_run.into()),
                    computed: Some(dry_run.into()),
                });
            }
            Some((*at, differences))
        });
        let (at, differences) = compared.min_by_key(|(_, differences)| differences.len())?;
        self.named(at, differences)
    }

    fn named(&self, group: usize, differences: Vec<Difference>) -> Option<Nearest> {
        let group = self.groups.get(group)?;
        let first = self.calls.get(*group.calls.first()?)?;
        Some(Nearest {
            order: first.order,
            evidence: first.evidence.clone(),
            times: group.calls.len(),
            differences,
        })
    }
}

impl Group {
    /// True if masked names of members, which have no numbers, are those of the call, as far as that is known.
    fn is_whole(&self, sent: &Sent) -> bool {
        self.whole.is_none() || self.whole == sent.whole
    }
}

impl fmt::Debug for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Player({}, {} calls)", self.digest, self.calls.len())
    }
}

impl NotRecorded {
    /// The error that the caller gets: no code of its own, and every argument that differs.
    pub fn into_body(self) -> ErrorBody {
        let tool = self.tool.clone();
        let Some(nearest) = self.nearest else {
            let body = ErrorBody::new(ErrorCode::UpstreamError, Say::ToolNotRecorded { tool });
            return closed(body.hint(Say::RecordAgain), json!({"tool": self.tool}));
        };
        let order = nearest.order.to_string();
        let details = json!({
            "tool": self.tool,
            "nearest": nearest.order,
            "evidence": nearest.evidence,
            "differences": nearest.differences.iter().map(told).collect::<Vec<_>>(),
        });
        if nearest.differences.is_empty() {
            let times = nearest.times.to_string();
            let message = Say::RecordedFewerTimes { tool, times };
            let body = ErrorBody::new(ErrorCode::UpstreamError, message);
            return closed(body.hint(Say::RecordAgain), details);
        }
        let body = ErrorBody::new(ErrorCode::UpstreamError, Say::CallNotRecorded { tool });
        closed(body.hint(Say::NearestRecorded { order }), details)
    }
}

/// Another try does not help.
fn closed(mut body: ErrorBody, details: Value) -> ErrorBody {
    body.details.upstream_code = Some("NOT_RECORDED".to_owned());
    body = body
        .source(FaultSource::Gateway)
        .detail("recording", details);
    body.details.retryable = false;
    body
}

fn told(difference: &Difference) -> Value {
    let mut told = json!({"path": difference.path});
    if let Some(members) = told.as_object_mut() {
        let values = [
            ("recorded", &difference.recorded),
            ("sent", &difference.computed),
        ];
        for (name, value) in values {
            if let Some(value) = value {
                members.insert(name.to_owned(), value.clone());
            }
        }
    }
    told
}

/// The error with the callers' values in its texts.
fn filled_error(body: &ErrorBody, bindings: &Bindings) -> Box<ErrorBody> {
    let filled = serde_json::to_value(body).ok().and_then(|mut value| {
        bindings.fill(&mut value);
        serde_json::from_value(value).ok()
    });
    // A value that is no text may have taken the place of one.
    Box::new(filled.unwrap_or_else(|| body.clone()))
}

fn is_answered_alike(one: &Call, other: &Call) -> bool {
    one.outcome == other.outcome
        && one.ttl_seconds == other.ttl_seconds
        && one.remarks == other.remarks
}

/// Returns true if a text anywhere in the value has a placeholder, or a name of a member a label.
fn has_placeholder(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => pieces(text, '[', ']')
            .iter()
            .any(|piece| matches!(piece, Piece::Placeholder { .. })),
        Value::Array(items) => items.iter().any(has_placeholder),
        Value::Object(members) => {
            let is_replaced = |(name, member): (&String, &Value)| {
                name.starts_with('[') || has_placeholder(member)
            };
            members.iter().any(is_replaced)
        }
    }
}

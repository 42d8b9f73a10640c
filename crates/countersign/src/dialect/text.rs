//! The text of a reply for a model: short, the code first, and always the next step.

use countersign_contract::{ErrorBody, ErrorCode, Issue, IssueCode, ReplyEnvelope, Warning};
use serde_json::{Value, json};

use crate::again::REPEATED_CALL;

/// The code of the remark that an answer was cut, with the handle of the rest.
pub const ANSWER_CUT: &str = "ANSWER_CUT";

/// Maximum number of issues or warnings that a model is shown; the rest is a number.
const SHOWN_MAX: usize = 16;

/// The reply as one text: the data and the notes about it, or the error.
pub(crate) fn whole(reply: &ReplyEnvelope) -> String {
    match &reply.error {
        Some(body) => error(body, &reply.warnings),
        None => match notes(reply) {
            None => data(reply),
            Some(notes) => format!("{}\n\n{notes}", data(reply)),
        },
    }
}

/// The data with the name of its evidence, which other tools ask for. Data with a member `evidence` of its own keeps
/// it.
pub(super) fn with_evidence(reply: &ReplyEnvelope) -> Value {
    let mut data = reply.data.clone();
    if let (Value::Object(members), Some(evidence)) = (&mut data, &reply.evidence) {
        members
            .entry("evidence")
            .or_insert_with(|| json!({ "snapshot_id": evidence.snapshot_id }));
    }
    // Some hosts show a model nothing but the data, and this is what it must not overlook.
    if let (Value::Object(members), Some(repeated)) = (&mut data, repeated(reply)) {
        members.entry("repeated_call").or_insert(repeated.into());
    }
    if let (Value::Object(members), Some(cut)) = (&mut data, remark(reply, ANSWER_CUT)) {
        members.entry("answer_cut").or_insert(cut.into());
    }
    data
}

/// The note that a write was not made again; `None` if it was made.
fn repeated(reply: &ReplyEnvelope) -> Option<&str> {
    remark(reply, REPEATED_CALL)
}

fn remark<'a>(reply: &'a ReplyEnvelope, wanted: &str) -> Option<&'a str> {
    reply.warnings.iter().find_map(|warning| match warning {
        Warning::Remark { code, message } if code == wanted => Some(message.as_str()),
        Warning::Remark { .. } | Warning::Issue(_) => None,
    })
}

/// The data: a text as it is, everything else as compact JSON; an object with the name of its evidence.
pub(super) fn data(reply: &ReplyEnvelope) -> String {
    match with_evidence(reply) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Notes for the model about a call that succeeded; `None` if there are none.
pub(super) fn notes(reply: &ReplyEnvelope) -> Option<String> {
    let mut lines = Vec::new();
    if reply.dry_run {
        lines.push("Dry run: nothing was changed.".to_owned());
    }
    // A write without a key says more about it in its warning.
    if reply.replayed && repeated(reply).is_none() {
        lines.push("This is the stored answer of the first call with this key.".to_owned());
    }
    if let Some(seconds) = reply.ttl_seconds {
        lines.push(format!("Holds for {seconds} seconds."));
    }
    // Of an object it is a member.
    if let Some(evidence) = reply.evidence.as_ref().filter(|_| !reply.data.is_object()) {
        lines.push(format!("evidence.snapshot_id: {}", evidence.snapshot_id));
    }
    if !reply.warnings.is_empty() {
        lines.push("Warnings:".to_owned());
        lines.extend(bounded(reply.warnings.iter().map(warning)));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Maximum number of characters of an error that a model is shown.
const ERROR_CHARS_MAX: usize = 500;

/// `CODE: message. hint`, then the issues, each with its path and what to send instead, as far as there is room.
pub(super) fn error(error: &ErrorBody, warnings: &[Warning]) -> String {
    let lines = error_lines(error, warnings);
    let mut shown = String::new();
    let mut left = ERROR_CHARS_MAX;
    for (number, line) in lines.iter().enumerate() {
        let length = line.chars().count() + 1;
        let hidden = lines.len() - number;
        // Room for saying how many are not shown.
        let reserve = if hidden > 1 { MORE_CHARS } else { 0 };
        if number > 0 && length + reserve > left {
            return format!("{shown}\n- and {hidden} more");
        }
        if number > 0 {
            shown.push('\n');
        }
        if length + reserve > left {
            let keep = left.saturating_sub(reserve + 1);
            shown.extend(line.chars().take(keep));
            shown.push('…');
            left = reserve;
        } else {
            shown.push_str(line);
            left -= length;
        }
    }
    shown
}

/// Characters that are left free for the line that counts what is not shown.
const MORE_CHARS: usize = 16;

fn error_lines(error: &ErrorBody, warnings: &[Warning]) -> Vec<String> {
    let mut first = format!("{}: {}", error.code, stopped(&error.message));
    if let Some(hint) = &error.details.hint {
        first = format!("{first} {}", capitalised(&stopped(hint)));
    }
    if let Some(ms) = error.details.retry_after_ms {
        first = format!("{first} Retry after {ms} ms.");
    }
    if let Some(confirm) = confirmation(error) {
        first = format!("{first} {confirm}");
    }
    let mut lines = vec![first];
    if error.details.issues.is_empty()
        && let Some(field) = &error.details.field
    {
        lines.push(format!("- {field}"));
    }
    lines.extend(bounded(error.details.issues.iter().map(issue)));
    if !warnings.is_empty() {
        lines.push("Warnings:".to_owned());
        lines.extend(bounded(warnings.iter().map(warning)));
    }
    lines
}

/// The text that the model passes on to the user, if the user has to confirm: the answer is given elsewhere, and never
/// by the model.
fn confirmation(error: &ErrorBody) -> Option<String> {
    if error.code != ErrorCode::NeedsUserConfirmation {
        return None;
    }
    let of = |name: &str| error.details.extra.get(name).and_then(Value::as_str);
    let id = of("approval_id")?;
    Some(match of("approval_url") {
        Some(url) => {
            format!("Tell the user to confirm {id} at {url}, then send this very call again.")
        }
        None => format!(
            "Tell the user to confirm {id} with POST /v1/approvals/{id}, then send this very call again."
        ),
    })
}

fn warning(warning: &Warning) -> String {
    match warning {
        Warning::Issue(found) => issue(found),
        Warning::Remark { code, message } => format!("- {code}: {message}"),
    }
}

fn issue(issue: &Issue) -> String {
    let path = if issue.path.is_empty() {
        "arguments"
    } else {
        &issue.path
    };
    let mut line = format!("- {path}: {} ({}", issue.message, issue.code);
    // The sentence of a refusal says already what was expected, or which names are allowed.
    if let Some(expected) = &issue.expected
        && issue.code != IssueCode::UnknownKey
        && !issue.message.contains(expected.as_str())
    {
        line = format!("{line}; expected {expected}");
    }
    if let Some(suggestion) = &issue.suggestion {
        line = format!("{line}; {suggestion}");
    }
    line + ")"
}

/// A message as a sentence, with the full stop of its language.
fn stopped(message: &str) -> String {
    let message = message.trim_end_matches(['.', '。']);
    let stop = if message.ends_with(|last: char| !last.is_ascii()) {
        '。'
    } else {
        '.'
    };
    format!("{message}{stop}")
}

/// A hint as a sentence: hints are written in lower case for terminals.
fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters
        .next()
        .map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}

fn bounded(lines: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let hidden = lines.len().saturating_sub(SHOWN_MAX);
    let mut shown: Vec<String> = lines.take(SHOWN_MAX).collect();
    if hidden > 0 {
        shown.push(format!("- and {hidden} more"));
    }
    shown
}

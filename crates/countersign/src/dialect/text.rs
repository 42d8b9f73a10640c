//! What a model reads of a reply: short, the code first, and always what to do next.

use countersign_contract::{ErrorBody, Issue, IssueCode, ReplyEnvelope, Warning};
use serde_json::Value;

/// How many issues or warnings a model is shown; the rest is a number.
const SHOWN_MAX: usize = 16;

/// The reply as one text: the data and what there is to know about it, or the error.
pub(crate) fn whole(reply: &ReplyEnvelope) -> String {
    match &reply.error {
        Some(body) => error(body, &reply.warnings),
        None => match notes(reply) {
            None => data(reply),
            Some(notes) => format!("{}\n\n{notes}", data(reply)),
        },
    }
}

/// The data: a text as it is, everything else as compact JSON.
pub(super) fn data(reply: &ReplyEnvelope) -> String {
    match &reply.data {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What the model should know although the call worked; none where there is nothing.
pub(super) fn notes(reply: &ReplyEnvelope) -> Option<String> {
    let mut lines = Vec::new();
    if reply.dry_run {
        lines.push("Dry run: nothing was changed.".to_owned());
    }
    if reply.replayed {
        lines.push("This is the stored answer of the first call with this key.".to_owned());
    }
    if let Some(seconds) = reply.ttl_seconds {
        lines.push(format!("Holds for {seconds} seconds."));
    }
    if !reply.warnings.is_empty() {
        lines.push("Warnings:".to_owned());
        lines.extend(bounded(reply.warnings.iter().map(warning)));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// `CODE: message. hint`, then the issues, each with its path and what to send instead.
pub(super) fn error(error: &ErrorBody, warnings: &[Warning]) -> String {
    let mut first = format!("{}: {}", error.code, stopped(&error.message));
    if let Some(hint) = &error.details.hint {
        first = format!("{first} {}", capitalised(&stopped(hint)));
    }
    if let Some(ms) = error.details.retry_after_ms {
        first = format!("{first} Retry after {ms} ms.");
    }
    // Whoever relays the answer has to be able to say what the user should look for.
    if let Some(id) = error
        .details
        .extra
        .get("approval_id")
        .and_then(Value::as_str)
    {
        first = format!("{first} The user answers it as {id}.");
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
    lines.join("\n")
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

/// Hints are written in lower case for people's terminals; behind a full stop they are a sentence.
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

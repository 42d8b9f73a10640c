//! Step 4: the raw text becomes arguments that the declaration accepts; lenient in, strict out. With
//! the arguments known, an earlier answer under the same key is given here.

use std::sync::Arc;
use std::time::Duration;

use countersign_args::{self as args, Arguments, Reading, Unreadable};
use countersign_contract::parameter::Leniency;
use countersign_contract::record::BindSummary;
use countersign_contract::tool::KeyRule;
use countersign_contract::{
    BindStatus, Digest, Effect, ErrorBody, ErrorCode, Input, Issue, IssueCode, Language, Message,
    Severity, Wording, canonical,
};
use countersign_evidence::seal::UserKey;
use serde_json::{Value, json};

use super::Executor;
use super::admit::{Admitted, scope_of};
use super::authorize::Allowed;
use super::print::{self, Fingerprint};
use super::stop::Stop;
use super::trail::Trail;
use super::unkeyed::{self, MadeKey};
use crate::authorize::{Stage, UnkeyedWrites};
use crate::catalog::Entry;
use crate::ledger::{Held, Scope};
use crate::observe::PARSE_TARGET;
use crate::words::Say;

/// A call whose arguments the tool's declaration accepts.
pub(super) struct Bound {
    pub(super) allowed: Box<Allowed>,
    pub(super) keys: Arc<UserKey>,
    /// The arguments, with defaults.
    pub(super) arguments: Arguments,
    pub(super) issues: Vec<Issue>,
    /// Arguments that could not be read: the tool gets a note in their place.
    pub(super) unreadable: Vec<Unreadable>,
    /// The key that the call will claim; `None` if it has none.
    pub(super) key: Option<KeyedCall>,
}

/// The key of a call, and its state when it was looked up.
pub(super) struct KeyedCall {
    pub(super) scope: Scope,
    pub(super) fingerprint: Fingerprint,
    pub(super) held: Option<Held>,
    /// Release counter of the key in this process, read before the look-up.
    pub(super) left: u64,
    /// Time for which a repeat counts as the same call, if the executor made the key.
    pub(super) window: Option<Duration>,
    /// True if no other call can have it.
    pub(super) is_own: bool,
}

impl Executor {
    pub(super) async fn bind(&self, admitted: Admitted, trail: &mut Trail) -> Result<Bound, Stop> {
        let Admitted {
            mut allowed,
            keys,
            scope,
            held,
            left,
        } = admitted;
        if let Some(unreadable) = allowed.call.unreadable {
            let error = unreadable.refusal(Language::of(allowed.request.locale.as_deref()));
            trail.record.binding = BindSummary::new(unreadable.status(), &error.details.issues);
            return Err(error.into());
        }
        let Read {
            arguments,
            issues,
            unreadable,
            again,
        } = bind_text(&allowed, trail)?;
        let (canonical, value) = describe(&allowed.entry, &arguments, trail);
        let digest = Digest::of_bytes(canonical.as_bytes());
        trail.record.arguments_digest = Some(digest.to_string());
        judge_bound(&mut allowed, &arguments, trail)?;
        let made = match scope {
            Some(scope) => Some(MadeKey {
                scope,
                held,
                left,
                window: None,
                is_own: false,
            }),
            None => {
                self.key_by_rule(&allowed, &keys, &arguments, digest, again.as_deref())
                    .await?
            }
        };
        let mut key = made.map(|made| KeyedCall {
            fingerprint: Fingerprint::of(&keys, &canonical, &value),
            scope: made.scope,
            held: made.held,
            left: made.left,
            window: made.window,
            is_own: made.is_own,
        });
        if let Some(key) = &mut key {
            let repeats = key.window.filter(|_| !key.is_own);
            trail.again_next = repeats.map(|_| crate::again::next(again.as_deref()));
            self.answer_by_key(key, &keys, &allowed, trail).await?;
        }
        self.count_repeat(&allowed, &keys, &digest, key.as_ref(), trail.arrived)
            .await?;
        let arguments = if let Some(filled) = allowed.entry.defaults.fill(&arguments) {
            trail.facts.given = Some(canonical_text(&filled));
            filled
        } else {
            trail.facts.given = Some(canonical);
            arguments
        };
        self.count_bound(&allowed, &keys, &arguments, trail).await?;
        Ok(Bound {
            allowed,
            keys,
            arguments,
            issues,
            unreadable,
            key,
        })
    }

    /// Stops a call whose key has an answer, or waits for the running call that is about to give it.
    async fn answer_by_key(
        &self,
        key: &mut KeyedCall,
        keys: &UserKey,
        allowed: &Allowed,
        trail: &mut Trail,
    ) -> Result<(), Stop> {
        let behaviour = &allowed.entry.spec().behaviour;
        let stop = key.standing(keys, behaviour.recovery);
        if allowed.request.dry_run {
            // What the call itself would be answered, without waiting for anybody.
            return stop
                .or_else(|| key.taken_now(behaviour))
                .map_or(Ok(()), Err);
        }
        trail.keyed(&key.scope, 0, "refused");
        if let Some(stop) = stop {
            return Err(stop);
        }
        let patience = allowed.call.timeout.unwrap_or(Duration::MAX);
        let left = self.left_of(patience, trail);
        self.join(key, keys, behaviour, left, &trail.seat).await
    }

    /// Makes a key for a call without one, if its tool or the policy wants one.
    async fn key_by_rule(
        &self,
        allowed: &Allowed,
        keys: &UserKey,
        arguments: &Arguments,
        digest: Digest,
        again: Option<&str>,
    ) -> Result<Option<MadeKey>, Stop> {
        let spec = allowed.entry.spec();
        if !spec.behaviour.effect.changes_something() {
            return Ok(None);
        }
        let needs_key = || {
            let tool = spec.name.to_string();
            ErrorBody::new(ErrorCode::InvalidArgument, Say::NeedsKey { tool })
                .field("/idempotency_key")
                .hint(Say::NewKeyPerIntention)
        };
        // A dry run claims nothing, so it needs no key.
        let dry_run = allowed.request.dry_run;
        match (spec.behaviour.idempotency.key, allowed.unkeyed()) {
            (KeyRule::Derive, _) => {
                let fields = &spec.behaviour.idempotency.fields;
                let text = derived(arguments, fields, digest);
                let scope = scope_of(allowed, keys, &text);
                let (held, left) = self.look_up(&scope).await?;
                Ok(Some(MadeKey {
                    scope,
                    held,
                    left,
                    window: None,
                    is_own: false,
                }))
            }
            (KeyRule::Required, _) | (KeyRule::Optional, UnkeyedWrites::Refuse) if dry_run => {
                Ok(None)
            }
            (KeyRule::Required, _) | (KeyRule::Optional, UnkeyedWrites::Refuse) => {
                Err(needs_key().into())
            }
            (KeyRule::Optional, UnkeyedWrites::Allow) => {
                let is_elsewhere = spec.behaviour.effect == Effect::External && !dry_run;
                Ok(is_elsewhere.then(|| self.own_key(allowed, keys)))
            }
            (KeyRule::Optional, UnkeyedWrites::Derive) => {
                let made = Box::pin(self.key_of_window(allowed, keys, digest, again));
                Ok(Some(made.await?))
            }
        }
    }
}

/// Decides the rules of the policy that look at the arguments, as the tool would be given them. A repeat is decided like
/// any other call, before it gets an earlier answer: so is everything else in the policy.
fn judge_bound(
    allowed: &mut Allowed,
    arguments: &Arguments,
    trail: &mut Trail,
) -> Result<(), Stop> {
    if allowed.conditions.is_none() {
        return Ok(());
    }
    let filled = allowed.entry.defaults.fill(arguments);
    let given = filled.as_ref().unwrap_or(arguments);
    allowed.judge(Stage::Arguments, Some(given), trail)
}

/// The text that a derived key is made from: every argument, or the declared fields. A call that has none of the fields
/// counts with every argument, so that two such calls are not taken for one.
fn derived(arguments: &Arguments, fields: &[String], digest: Digest) -> String {
    let at = |field: &String| print::member_text(arguments.as_json(), field);
    let values: Vec<_> = fields.iter().map(at).collect();
    if values.iter().all(Option::is_none) {
        return format!("derived:{digest}");
    }
    let digest = Digest::of_bytes(json!([fields, values]).to_string().as_bytes());
    format!("derived-fields:{digest}")
}

/// The refusal of arguments: the first error in front, all issues behind it (B9).
pub fn refusal_of(issues: Vec<Issue>) -> ErrorBody {
    let first = issues
        .iter()
        .find(|issue| issue.severity == Severity::Error);
    // An issue is written in the caller's language already.
    let message = first.map_or_else(
        || Say::UnreadableArguments.into(),
        |issue| Wording::from(&issue.message),
    );
    let mut error = ErrorBody::new(ErrorCode::InvalidArgument, message).hint(Say::CorrectIssues);
    // The whole text has no place of its own to name.
    let place = first.filter(|issue| !issue.path.is_empty());
    error.details.field = place.map(|issue| issue.path.clone());
    error.details.issues = issues;
    error
}

/// Result of reading the arguments text.
struct Read {
    arguments: Arguments,
    issues: Vec<Issue>,
    unreadable: Vec<Unreadable>,
    /// Set if a model means the call again, with the number of the repetition.
    again: Option<String>,
}

fn bind_text(allowed: &Allowed, trail: &mut Trail) -> Result<Read, Stop> {
    let entry = &allowed.entry;
    let request = &allowed.request;
    let reading = Reading::new(request.locale.as_deref(), request.timezone.as_deref());
    let raw = &allowed.call.raw;
    let (mut bound, again) = bound_without_again(entry, raw, &reading);
    if entry.spec().input == Input::Undeclared {
        warn_undeclared(entry, &mut bound.issues, reading.language());
    }
    trail.record.binding = BindSummary::new(bound.status, &bound.issues);
    log_parse(entry.name().as_str(), raw, bound.status, &bound.issues);
    match bound.arguments {
        Some(arguments) if bound.status.is_executable() => Ok(Read {
            arguments,
            issues: bound.issues,
            unreadable: bound.unreadable,
            again,
        }),
        Some(_) | None => {
            let mut error = refusal_of(bound.issues);
            if let Some(hint) = meaning(&entry.spec().input, error.details.field.as_deref()) {
                error = error.hint(hint);
            }
            Err(error.into())
        }
    }
}

/// Binds a text, without the argument `again` if it has one.
fn bound_without_again(
    entry: &Entry,
    raw: &str,
    reading: &Reading,
) -> (args::Bound, Option<String>) {
    let bound = entry.binder.bind_with(raw, reading);
    if unkeyed::is_unknown(&bound.issues)
        && let Some((rest, again)) = unkeyed::without_again(entry, raw, reading)
    {
        return (entry.binder.bind_with(&rest, reading), again);
    }
    (bound, None)
}

/// The arguments of a text that was sent once, as its tool would be given them.
pub(crate) fn bind_again(
    entry: &Entry,
    raw: &str,
    reading: &Reading,
) -> Result<Arguments, Vec<Issue>> {
    let (bound, _) = bound_without_again(entry, raw, reading);
    match bound.arguments {
        Some(arguments) if bound.status.is_executable() => {
            Ok(entry.defaults.fill(&arguments).unwrap_or(arguments))
        }
        Some(_) | None => Err(bound.issues),
    }
}

/// The description of a strict parameter, for the hint. Nothing is guessed about a strict parameter, so a caller who
/// sent something else gets its meaning: only the description says that an amount is in cents, not the type.
fn meaning(input: &Input, field: Option<&str>) -> Option<String> {
    let Input::Parameters(parameters) = input else {
        return None;
    };
    let field = field?;
    let mut within = parameters;
    let mut found = None;
    // The steps through lists and maps have no parameter of their own.
    for step in field.split('/').skip(1) {
        if let Some(parameter) = within.iter().find(|parameter| parameter.name == step) {
            within = &parameter.fields;
            found = Some(parameter);
        }
    }
    let strict = found.filter(|parameter| parameter.leniency == Some(Leniency::Strict))?;
    Some(format!("{field}: {}", strict.description))
}

/// The arguments as canonical JSON and as a value; their redacted form goes into the record.
fn describe(entry: &Entry, arguments: &Arguments, trail: &mut Trail) -> (String, Value) {
    let value = arguments.to_value();
    let canonical = canonical_text(arguments);
    let mut redacted = value.clone();
    entry.redaction.apply(&mut redacted);
    trail.facts.is_redacted = redacted != value;
    trail.facts.public = entry.redaction.harmless(&value);
    trail.record.arguments_redacted = redacted;
    (canonical, value)
}

/// The canonical form, made from the text. Arguments without a lossless one, such as those with an integer beyond
/// 2^53 or a decimal of more digits than a double has, are taken as they were bound: no two different calls look
/// alike.
pub(crate) fn canonical_text(arguments: &Arguments) -> String {
    let text = arguments.as_json();
    if has_long_decimal(text) {
        return text.to_owned();
    }
    canonical::from_json_text(text).unwrap_or_else(|_| text.to_owned())
}

/// True if a number with a point or an exponent has more digits than every double keeps.
pub(crate) fn has_long_decimal(json: &str) -> bool {
    const DIGITS_SAFE: usize = 15;
    let mut is_in_string = false;
    let mut is_escaped = false;
    let (mut digits, mut is_decimal) = (0, false);
    for byte in json.bytes() {
        if is_in_string {
            is_in_string = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'0'..=b'9' => digits += 1,
            // Those of `true` and `false` stand behind no digit.
            b'.' | b'e' | b'E' if digits > 0 => is_decimal = true,
            b'+' | b'-' => {}
            _ => {
                is_in_string = byte == b'"';
                (digits, is_decimal) = (0, false);
            }
        }
        if is_decimal && digits > DIGITS_SAFE {
            return true;
        }
    }
    false
}

/// Logs the result of binding, for an engineer who looks for the cause of a refusal (B16).
pub(super) fn log_parse(tool: &str, raw: &str, status: BindStatus, issues: &[Issue]) {
    if !tracing::enabled!(target: PARSE_TARGET, tracing::Level::DEBUG) {
        return;
    }
    let places = issues.iter().map(|issue| match issue.span {
        Some([start, end]) => format!("{}@{start}..{end}", issue.code),
        None => issue.code.to_string(),
    });
    let places: Vec<String> = places.collect();
    let (bytes, status) = (raw.len(), status.as_str());
    tracing::debug!(target: PARSE_TARGET, tool, bytes, status, issues = places.join(" "), "arguments read");
}

/// Adds the warning about an undeclared tool: a reply warns each time, the log once (B8).
fn warn_undeclared(entry: &Entry, issues: &mut Vec<Issue>, language: Language) {
    entry.warned.call_once(|| {
        tracing::warn!(tool = %entry.name(), "the tool has no declaration");
    });
    note_missing_definition(issues, language);
}

/// Adds the warning that nothing is declared, once.
pub(super) fn note_missing_definition(issues: &mut Vec<Issue>, language: Language) {
    let code = IssueCode::ToolDefinitionMissing;
    if !issues.iter().any(|issue| issue.code == code) {
        let message = Say::NoDeclaration.text(language);
        issues.push(Issue::new(code, "", message));
    }
}

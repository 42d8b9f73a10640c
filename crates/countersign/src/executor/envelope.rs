//! Checks of the envelope, before anything is done with it: every member has a maximum length, no control characters,
//! and the form that its standard gives it.

use countersign_contract::envelope::App;
use countersign_contract::{ErrorBody, ErrorCode, RequestEnvelope};
use jiff::tz::TimeZone;

use super::stop::Stop;
use crate::words::Say;

/// The longest member of an envelope, in characters.
const MEMBER_CHARS_MAX: usize = 255;

/// Refuses a malformed member, with its path.
pub(super) fn check(envelope: &RequestEnvelope) -> Result<(), Stop> {
    let actor = envelope.actor.as_ref();
    let client = envelope.client.as_ref();
    let texts = [
        ("/actor/id", actor.map(|actor| actor.id.as_str())),
        ("/user_id", envelope.user_id.as_deref()),
        ("/session_id", envelope.session_id.as_deref()),
        ("/client/app", client.map(|client| client.app.as_str())),
        (
            "/client/version",
            client.and_then(|client| client.version.as_deref()),
        ),
        ("/idempotency_key", envelope.idempotency_key.as_deref()),
    ];
    for (pointer, text) in texts {
        if !text.is_none_or(is_name) {
            let member = pointer.trim_start_matches('/').replace('/', ".");
            let most = MEMBER_CHARS_MAX.to_string();
            return Err(refusal(pointer, Say::NotAName { member, most }));
        }
    }
    if !envelope.locale.as_deref().is_none_or(is_locale) {
        return Err(refusal("/locale", Say::NotALocale));
    }
    if !envelope.currency.as_deref().is_none_or(is_currency) {
        return Err(refusal("/currency", Say::NotACurrency));
    }
    // An unknown zone would be read as none, and times without a zone would mean another moment.
    if !envelope.timezone.as_deref().is_none_or(is_timezone) {
        return Err(refusal("/timezone", Say::NotATimezone));
    }
    Ok(())
}

/// The warning about an application that the standard does not list (A1): it is accepted. The warning does not quote the name, which may say
/// something about a person.
pub(super) fn unlisted_app(envelope: &RequestEnvelope) -> Option<Say> {
    match envelope.client.as_ref()?.app {
        App::Web | App::Ios | App::Android => None,
        App::Other(_) => Some(Say::UnlistedApp {
            listed: App::LISTED.join(", "),
        }),
    }
}

/// True if a text can be an id, a name or a key: not empty, not too long, no control characters.
pub(crate) fn is_name(text: &str) -> bool {
    // A character has four bytes at most, so a long text is never counted to its end.
    !text.is_empty()
        && text.len() <= 4 * MEMBER_CHARS_MAX
        && text.chars().count() <= MEMBER_CHARS_MAX
        && !text.contains(char::is_control)
}

/// True if a text is a well-formed locale. An unknown language is accepted, and simply not used.
fn is_locale(text: &str) -> bool {
    let mut tags = text.split(['-', '_']);
    let language = tags.next().unwrap_or_default();
    (2..=8).contains(&language.len())
        && language.bytes().all(|b| b.is_ascii_alphabetic())
        && text.len() <= MEMBER_CHARS_MAX
        && tags.all(|tag| {
            (1..=8).contains(&tag.len()) && tag.bytes().all(|b| b.is_ascii_alphanumeric())
        })
}

fn is_currency(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase())
}

fn is_timezone(text: &str) -> bool {
    text.len() <= MEMBER_CHARS_MAX && TimeZone::get(text).is_ok()
}

fn refusal(pointer: &str, message: Say) -> Stop {
    ErrorBody::new(ErrorCode::InvalidArgument, message)
        .field(pointer)
        .hint(Say::CorrectMember)
        .into()
}

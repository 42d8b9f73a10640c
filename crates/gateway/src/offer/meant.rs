//! The call behind a call of `call_tool`: the same name and the same text that a direct call would have.

use std::borrow::Cow;
use std::sync::Arc;

use countersign::contract::{ErrorBody, ErrorCode, RequestEnvelope, Warning};
use countersign::executor::refusal_of;
use countersign_args::Reading;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Facade, Offer, Own};
use crate::words::Say;

/// A call that was meant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Meant {
    /// A tool was called by its own name.
    Direct,
    /// `call_tool` was called, and this is the call behind it.
    Behind(Behind),
    /// One of the facade's other tools was called, with these arguments.
    Own(Own, Arc<str>),
    /// `call_tool` was called in a way that names no call.
    Nothing(Box<ErrorBody>),
}

/// The call behind a call of `call_tool`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Behind {
    /// Name of the tool.
    pub(crate) name: String,
    /// Arguments as they were written.
    pub(crate) arguments: Arc<str>,
    /// Changes that were needed to read the outer text.
    pub(crate) warnings: Vec<Warning>,
}

/// Reads what a call means. A name that is none of the facade's is a direct call.
pub(crate) fn meant(
    offer: &Offer,
    name: &str,
    arguments: &Arc<str>,
    envelope: &RequestEnvelope,
) -> Meant {
    let is_open = |own: &Own| *own == Own::FetchRest || offer.facade() != Facade::Off;
    match Own::named(name).filter(is_open) {
        None => Meant::Direct,
        Some(Own::CallTool) => match behind(arguments, envelope) {
            Ok(behind) => match Own::named(&behind.name) {
                None => Meant::Behind(behind),
                Some(Own::CallTool) => {
                    let error = ErrorBody::new(ErrorCode::InvalidArgument, Say::CallsItself);
                    Meant::Nothing(Box::new(error.field("/name").hint(Say::NameFoundTool)))
                }
                Some(own) => Meant::Own(own, behind.arguments),
            },
            Err(error) => Meant::Nothing(error),
        },
        Some(own) => Meant::Own(own, arguments.clone()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Called<'a> {
    name: String,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl Called<'_> {
    fn behind(self, warnings: Vec<Warning>) -> Behind {
        Behind {
            name: self.name,
            arguments: self.arguments.map_or_else(|| "{}".into(), text_of),
            warnings,
        }
    }
}

fn behind(text: &str, envelope: &RequestEnvelope) -> Result<Behind, Box<ErrorBody>> {
    // What is well formed outside is not looked at inside: that is for the binder of the tool.
    if let Ok(called) = serde_json::from_str::<Called<'_>>(text) {
        return Ok(called.behind(Vec::new()));
    }
    let reading = Reading::new(envelope.locale.as_deref(), envelope.timezone.as_deref());
    let bound = Own::CallTool.binder().bind_with(text, &reading);
    let Some(arguments) = bound.arguments.filter(|_| bound.status.is_executable()) else {
        return Err(Box::new(refusal_of(bound.issues)));
    };
    match serde_json::from_str::<Called<'_>>(arguments.as_json()) {
        Ok(called) => {
            let warnings = bound.issues.into_iter().map(Warning::Issue);
            Ok(called.behind(warnings.collect()))
        }
        Err(_) => Err(Box::new(refusal_of(bound.issues))),
    }
}

/// The arguments as a model wrote them: the content of a text, the source of anything else, and nothing for null.
fn text_of(arguments: &RawValue) -> Arc<str> {
    let source = arguments.get();
    if source == "null" {
        return "{}".into();
    }
    if source.starts_with('"')
        && let Ok(content) = serde_json::from_str::<Cow<'_, str>>(source)
    {
        return content.into();
    }
    source.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offer::{CatalogView, OfferRules};

    fn read(text: &str) -> Meant {
        let offers = CatalogView::new(OfferRules::default());
        let offer = offers.of(&countersign::Principal::user("u"), None, None);
        let text: Arc<str> = text.into();
        meant(&offer, "call_tool", &text, &RequestEnvelope::default())
    }

    #[track_caller]
    fn check(text: &str, name: &str, arguments: &str) {
        let Meant::Behind(behind) = read(text) else {
            panic!("{text} means {:?}", read(text));
        };
        assert_eq!(
            (behind.name.as_str(), &*behind.arguments),
            (name, arguments)
        );
    }

    /// B7: what typed parsing would lose reaches the binder of the tool.
    #[test]
    fn the_inner_text_stays_as_it_was_written() {
        check(
            r#"{"name":"a.b","arguments":{"price": 1.10, "id": 12345678901234567890123}}"#,
            "a.b",
            r#"{"price": 1.10, "id": 12345678901234567890123}"#,
        );
        check(
            r#"{"name":"a","arguments":{"x":1,"x":2}}"#,
            "a",
            r#"{"x":1,"x":2}"#,
        );
        check(r#"{"name":"a","arguments":"{x: 'y',}"}"#, "a", "{x: 'y',}");
        check(r#"{"name":"a"}"#, "a", "{}");
        check(r#"{"name":"a","arguments":null}"#, "a", "{}");
        check("{name: 'a', arguments: {x: 1},}", "a", r#"{"x":1}"#);
    }

    #[test]
    fn a_call_of_nothing_is_refused() {
        for text in [
            "{}",
            r#"{"name":"call_tool"}"#,
            r#"{"name":"a","text":"b"}"#,
            "nothing",
        ] {
            assert!(matches!(read(text), Meant::Nothing(_)), "{text}");
        }
        assert!(matches!(
            read(r#"{"name":"search_tools","arguments":{"query":"x"}}"#),
            Meant::Own(Own::SearchTools, _)
        ));
    }
}

//! A call as a provider sends it, before anything is known about its tool.

use countersign_contract::{BindStatus, ErrorBody, ErrorCode, Issue, IssueCode, Language, Message};
use serde_json::{Value, json};

use super::{CALLS_MAX, DecodeError};
use crate::words::Say;

/// One call of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderCall {
    /// The provider's id of the call; Gemini and some servers give none.
    pub id: Option<String>,
    /// The tool as the model knows it: its alias.
    pub name: String,
    /// The arguments as the model wrote them, for the binder.
    pub arguments: RawText,
    /// Members that have to be sent back unchanged with the call, as an object; null if there are none.
    pub opaque: Value,
    /// Its place among the calls of the message.
    pub index: usize,
    /// True if the model may have been cut off while it was writing this call.
    pub truncated: bool,
    /// True if the call was found in a text that can also be read otherwise: as another call, or as none.
    pub ambiguous: bool,
}

/// Reason why a call is refused before its arguments are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    CutOff,
    Ambiguous,
}

impl Unreadable {
    /// Status of the binding.
    pub(crate) const fn status(self) -> BindStatus {
        match self {
            Self::CutOff => BindStatus::Incomplete,
            Self::Ambiguous => BindStatus::Refused,
        }
    }

    /// The refusal of the call.
    pub(crate) fn refusal(self, language: Language) -> ErrorBody {
        let (says, hint, code) = match self {
            Self::CutOff => (Say::CutOff, Say::SendWholeCall, IssueCode::Incomplete),
            Self::Ambiguous => (Say::TwoReadings, Say::WriteCallAlone, IssueCode::Ambiguous),
        };
        let message = says.text(language);
        let mut error = ErrorBody::new(ErrorCode::InvalidArgument, says).hint(hint);
        error.details.issues = vec![Issue::new(code, "", message)];
        error.in_language(language)
    }
}

/// Argument text, and its provenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawText {
    /// The text.
    pub text: String,
    /// Provenance of the text.
    pub provenance: Provenance,
}

/// Provenance of a text: exact, or written anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provenance {
    /// Byte for byte.
    AsSent,
    /// Written anew from parsed JSON: spelling, order and doubled members may be gone.
    Reserialised,
}

impl ProviderCall {
    /// A call as a whole message brings it.
    pub(super) fn new(id: Option<String>, name: String, arguments: RawText) -> Self {
        Self {
            id,
            name,
            arguments,
            opaque: Value::Null,
            index: 0,
            truncated: false,
            ambiguous: false,
        }
    }

    /// Adds members that have to be sent back unchanged.
    pub(super) fn with_opaque(mut self, opaque: Value) -> Self {
        self.opaque = opaque;
        self
    }

    /// The refusal of a call that was cut off, or that has two readings; `None` if it may run. Such a call can by chance
    /// look like a whole one.
    pub fn refusal(&self) -> Option<ErrorBody> {
        let unreadable = self.unreadable()?;
        Some(unreadable.refusal(Language::English))
    }

    pub(crate) const fn unreadable(&self) -> Option<Unreadable> {
        match (self.truncated, self.ambiguous) {
            (true, _) => Some(Unreadable::CutOff),
            (false, true) => Some(Unreadable::Ambiguous),
            (false, false) => None,
        }
    }

    /// The id to answer under; made from the place of the call if the provider gave none.
    pub(crate) fn id_or_place(&self) -> String {
        self.id
            .clone()
            .unwrap_or_else(|| format!("call_{}", self.index))
    }

    /// The arguments for a dialect that asks for an object.
    pub(super) fn arguments_object(&self) -> Value {
        match serde_json::from_str(&self.arguments.text) {
            Ok(Value::Object(object)) => Value::Object(object),
            _ => json!({ "INVALID_JSON": self.arguments.text }),
        }
    }

    /// Adds the members that have to be sent back to an object.
    pub(super) fn echo_opaque(&self, into: &mut Value) {
        if let (Value::Object(opaque), Value::Object(into)) = (&self.opaque, into) {
            for (name, value) in opaque {
                into.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }
}

/// Adds a call to those of its message.
pub(super) fn add(
    calls: &mut Vec<ProviderCall>,
    mut call: ProviderCall,
) -> Result<(), DecodeError> {
    if calls.len() == CALLS_MAX {
        return Err(DecodeError::TooManyCalls);
    }
    call.index = calls.len();
    calls.push(call);
    Ok(())
}

/// Marks the last call of a message whose writer was cut off.
pub(super) fn mark_cut(calls: &mut [ProviderCall], stop_reason: Option<&str>) {
    if stop_reason.is_some_and(is_cut)
        && let Some(last) = calls.last_mut()
    {
        last.truncated = true;
    }
}

/// True if a stop reason, of any provider, means that the message was cut off.
pub(super) fn is_cut(stop_reason: &str) -> bool {
    matches!(
        stop_reason,
        "length"
            | "max_tokens"
            | "max_output_tokens"
            | "MAX_TOKENS"
            | "content_filter"
            | "model_context_window_exceeded"
            | "incomplete"
    )
}

//! Names that an agent gives back as it got them: of a cart, a draft order, an address, a mission.

use std::ops::Deref;

use countersign::ArgValue;
use countersign::contract::{Parameter, ValueKind};
use serde::Deserialize;

/// The name of something that was made by an earlier call, as an argument.
///
/// A name that nobody has is not found, whatever it looks like. What no store can look up is refused before it gets
/// there: nothing at all, and control characters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Id(String);

impl Deref for Id {
    type Target = String;

    fn deref(&self) -> &String {
        &self.0
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.0
    }
}

impl ArgValue for Id {
    const KIND: ValueKind = ValueKind::String;

    fn describe(mut parameter: Parameter) -> Parameter {
        parameter.bounds.min_length = Some(1);
        parameter.bounds.max_length = Some(64);
        parameter.bounds.pattern = Some(r"^[^\x00-\x1f\x7f]+$".to_owned());
        parameter
    }
}

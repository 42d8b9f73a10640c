//! Ids that an agent sends back as it got them: of a cart, a draft order, an address, a mission.

use std::ops::Deref;

use countersign::ArgValue;
use countersign::contract::{Parameter, ValueKind};
use serde::Deserialize;

/// The id of something that an earlier call made, as an argument.
///
/// An unknown id is not found, whatever its form. An id that no store can look up is refused before it gets there: the
/// empty one, and one with control characters.
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

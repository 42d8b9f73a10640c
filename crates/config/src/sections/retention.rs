//! `[retention]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::Keep;

/// How long the sealed arguments and answers of calls are kept, by the class that a tool declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// The class `short`: look-ups and refusals, of no use soon.
    pub short: Keep,
    /// The class `standard`: what an order rests on.
    pub standard: Keep,
    /// The class `long`: what a dispute may ask for.
    pub long: Keep,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            short: Keep::days(30),
            standard: Keep::days(90),
            long: Keep::days(730),
        }
    }
}

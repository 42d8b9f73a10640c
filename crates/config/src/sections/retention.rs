//! `[retention]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::Keep;

/// Retention of the sealed arguments and answers of calls, by the class that a tool declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Class `short`: look-ups and refusals.
    pub short: Keep,
    /// Class `standard`: quotes and other answers that orders depend on.
    pub standard: Keep,
    /// Class `long`: orders, payments and other records that a dispute may need.
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

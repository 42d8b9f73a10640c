//! `[log]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::Period;

/// The signed log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// The name of the log, such as `example.com/log`, for a data folder that has none yet. Left out, a random one
    /// is drawn.
    #[schemars(extend("x-flag" = "--log-origin"))]
    pub origin: Option<String>,
    /// The time of silence after which another process may take over the signing.
    pub lease: Period,
    /// The time for which calls are answered while nothing can be signed. After it they are refused.
    pub signing_grace: Period,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            origin: None,
            lease: Period::from_secs(10),
            signing_grace: Period::from_mins(1),
        }
    }
}

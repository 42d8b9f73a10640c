//! `[log]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{CheckpointCopy, Period};

/// The signed evidence log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// Name of the log, such as `example.com/log`. It is used when a new data folder is created. The default is a
    /// random name.
    #[schemars(extend("x-flag" = "--log-origin"))]
    pub origin: Option<String>,
    /// Time after which another process takes over signing from a process that does not answer.
    pub lease: Period,
    /// Time for which calls are still answered while the log cannot be signed. After it, calls are refused.
    pub signing_grace: Period,
    /// Copies of the newest checkpoint at other places: `"file:PATH"` or an `https://` address, such as the checkpoint that a
    /// witness serves. At a start, and in `countersign doctor` and `verify --all`, the log has to continue every one of
    /// them; a log that does not is not started, because its data folder was put back or has a second history. A copy that
    /// cannot be read is a warning. `docs/witness.md`.
    #[schemars(extend("x-path" = "scheme"))]
    pub copies: Vec<CheckpointCopy>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            origin: None,
            lease: Period::from_secs(10),
            signing_grace: Period::from_mins(1),
            copies: Vec::new(),
        }
    }
}

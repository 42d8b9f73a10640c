//! `[keys]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::SecretRef;

/// The master key, which wraps the keys of the users. Left out, it is a file in the data folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    /// The master key: 32 bytes in hexadecimal digits or base64, in a variable (`env:NAME`) or in a file that nobody
    /// else may read (`file:PATH`). Left out, it is `master.key` in the data folder.
    #[schemars(extend("x-env" = "COUNTERSIGN_MASTER_KEY", "x-path" = "scheme"))]
    pub master: Option<SecretRef>,
    /// The master key before, during a rotation.
    #[schemars(extend("x-env" = "COUNTERSIGN_MASTER_KEY_OLD", "x-path" = "scheme"))]
    pub master_old: Option<SecretRef>,
}

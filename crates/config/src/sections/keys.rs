//! `[keys]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::SecretRef;

/// The master key, which encrypts the keys of the users. The default is a file in the data folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    /// Master key: 32 bytes as hexadecimal digits or base64, in a variable (`env:NAME`) or in a file that only this
    /// account can read (`file:PATH`). The default is `master.key` in the data folder.
    #[schemars(extend("x-env" = "COUNTERSIGN_MASTER_KEY", "x-path" = "scheme"))]
    pub master: Option<SecretRef>,
    /// Previous master key, during a rotation.
    #[schemars(extend("x-env" = "COUNTERSIGN_MASTER_KEY_OLD", "x-path" = "scheme"))]
    pub master_old: Option<SecretRef>,
}

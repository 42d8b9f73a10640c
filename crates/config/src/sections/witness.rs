//! `[[witness]]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::WebUrl;

/// A witness that cosigns the checkpoints of the log (C2SP tlog-witness).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WitnessEntry {
    /// Address of the witness, to which `/add-checkpoint` is added. What is sent there is public, and the answer is
    /// signed, so it may be an `http://` address.
    pub url: WebUrl,
    /// Public key of the witness: `NAME+HASH+BASE64` of type 4 (Ed25519) or 6 (ML-DSA-44), as `countersign witness`
    /// prints it. Other signatures are ignored.
    pub key: String,
}

//! `[binder]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on the arguments of a call. Arguments beyond one of them are refused with `INVALID_ARGUMENT` and the name of the limit;
/// `docs/binder.md` has the reasons for the defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Binder {
    /// Maximum size of the arguments of a call, in bytes of JSON. A file in an argument is a third larger as base64. The request has to fit
    /// into `server.body_bytes_max` too.
    #[schemars(range(min = 1024, max = 268_435_456))]
    pub raw_bytes_max: usize,
    /// Maximum nesting of objects and lists.
    #[schemars(range(min = 2, max = 128))]
    pub depth_max: usize,
    /// Maximum number of values. Memory is proportional to it.
    #[schemars(range(min = 16, max = 268_435_456))]
    pub nodes_max: usize,
    /// Maximum number of JSON documents that are tried in one text.
    #[schemars(range(min = 1, max = 1024))]
    pub candidates_max: usize,
    /// Maximum nesting of texts that are decoded as JSON.
    #[schemars(range(max = 16))]
    pub decode_nesting_max: usize,
    /// Maximum distance that is looked ahead to tell a closing quote from an inner one, in bytes.
    #[schemars(range(min = 16, max = 4096))]
    pub lookahead_bytes_max: usize,
    /// Maximum number of such look-aheads in one text.
    #[schemars(range(min = 1, max = 268_435_456))]
    pub lookaheads_max: usize,
    /// Maximum number of branches of unions that are tried, as a multiple of the number of values.
    #[schemars(range(min = 1, max = 1024))]
    pub union_attempts_per_node_max: usize,
    /// Maximum number of issues that a reply lists. The gravest is always listed.
    #[schemars(range(min = 1, max = 65_536))]
    pub issues_max: usize,
    /// Maximum number of digits of a number.
    #[schemars(range(min = 20, max = 65_536))]
    pub number_digits_max: usize,
    /// Maximum number of members of an object.
    #[schemars(range(min = 1, max = 268_435_456))]
    pub members_max: usize,
}

impl Default for Binder {
    fn default() -> Self {
        Self {
            raw_bytes_max: 256 * 1024,
            depth_max: 64,
            nodes_max: 50_000,
            candidates_max: 16,
            decode_nesting_max: 2,
            lookahead_bytes_max: 96,
            lookaheads_max: 100_000,
            union_attempts_per_node_max: 8,
            issues_max: 64,
            number_digits_max: 400,
            members_max: 10_000,
        }
    }
}

//! `[approvals]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{PageUrl, Pause, Period};

/// Approvals: questions that a person answers before a call runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Approvals {
    /// Address of the page on which a user answers, such as `https://shop.example.com/approvals/{id}`; `{id}` is
    /// replaced. The default is the page of the console.
    #[schemars(extend("x-flag" = "--approvals-url"))]
    pub url: Option<PageUrl>,
    /// Time in which an approval can be answered and used. A policy can set another value.
    pub valid_for: Period,
    /// Maximum number of open approvals of one user.
    #[schemars(range(min = 1))]
    pub pending_max: usize,
    /// Maximum time that a caller can wait for an answer.
    pub wait_max: Period,
    /// Maximum number of callers that wait. A further caller gets an answer at once: the user has not answered.
    pub waiting_max: usize,
    /// Maximum number of callers that wait for the same user.
    pub waiting_per_user_max: usize,
    /// Time after a "no" in which the same caller, or the same session, cannot ask a new question about the same
    /// tool; at most one day.
    pub cool_down: Pause,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            url: None,
            valid_for: Period::from_mins(15),
            pending_max: 20,
            wait_max: Period::from_mins(5),
            waiting_max: 64,
            waiting_per_user_max: 4,
            cool_down: Pause::from_mins(2),
        }
    }
}

//! `[approvals]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{PageUrl, Pause, Period};

/// Questions that a user has to answer before a call runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Approvals {
    /// The page on which a user answers, such as `https://shop.example.com/approvals/{id}`; `{id}` is replaced.
    #[schemars(extend("x-flag" = "--approvals-url"))]
    pub url: Option<PageUrl>,
    /// The time in which a question can be answered and its answer be used. A policy may say another.
    pub valid_for: Period,
    /// The most open questions of one user.
    #[schemars(range(min = 1))]
    pub pending_max: usize,
    /// The longest that a caller may wait for an answer.
    pub wait_max: Period,
    /// The most callers that wait at once. One more is told at once that the user has not answered.
    pub waiting_max: usize,
    /// The most callers that wait for the same user.
    pub waiting_per_user_max: usize,
    /// The time after a no in which nothing new is asked about the same tool, by whoever was declined or in the same session; at most a day.
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

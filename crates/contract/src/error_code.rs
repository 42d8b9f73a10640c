//! The closed list of error codes (standard §4.3), from one table.
//!
//! A code is never added here alone: the process is in `docs/rfc/`, and a test compares this enum
//! with the contract files and the pages in `docs/errors/`.

use serde::{Deserialize, Serialize};

/// Retry class: whether, and when, sending the same call again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// The same call may succeed later, unchanged.
    Later,
    /// The call must change first: other arguments, a confirmation, a credential.
    AfterChange,
    /// No retry can help.
    Never,
}

// One row a code: what the code means for the caller, its wire name, HTTP status and retry class.
// The macro makes every accessor from the same row, so a new code cannot update one and miss another.
macro_rules! error_codes {
    ($($(#[doc = $doc:literal])+ $variant:ident => ($wire:literal, $status:literal, $retry:ident),)+) => {
        /// Error code of a call that was refused or failed. Closed: matches over it are exhaustive on purpose.
        ///
        /// # Example
        ///
        /// ```
        /// use countersign_contract::{ErrorCode, Retry};
        ///
        /// assert_eq!(ErrorCode::RateLimited.as_str(), "RATE_LIMITED");
        /// assert_eq!(ErrorCode::RateLimited.http_status(), 429);
        /// assert_eq!(ErrorCode::RateLimited.retry(), Retry::Later);
        /// assert_eq!(ErrorCode::RateLimited.summary(), "A rate limit or a budget is used up.");
        /// assert_eq!("CONFLICT".parse(), Ok(ErrorCode::Conflict));
        /// assert!("EXPIRED".parse::<ErrorCode>().is_err());
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
        pub enum ErrorCode {
            $($(#[doc = $doc])+ #[serde(rename = $wire)] $variant,)+
        }

        impl ErrorCode {
            /// Every code, in the order of the standard.
            pub const ALL: [Self; [$($wire),+].len()] = [$(Self::$variant),+];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)+ }
            }

            /// True if the answer is a question to the user: nothing failed, and nothing has run yet.
            pub const fn is_question(self) -> bool {
                matches!(self, Self::NeedsUserConfirmation)
            }

            /// Returns the meaning of the code, in one sentence.
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)+ }
            }

            /// The HTTP status of a reply with this code.
            pub const fn http_status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// Returns the retry class: whether sending the call again can help.
            pub const fn retry(self) -> Retry {
                match self { $(Self::$variant => Retry::$retry,)+ }
            }
        }
    };
}

error_codes! {
    /// An argument is missing, malformed, of the wrong type or outside its bounds.
    InvalidArgument => ("INVALID_ARGUMENT", 400, AfterChange),
    /// No credential, or one that could not be verified.
    Unauthorized => ("UNAUTHORIZED", 401, AfterChange),
    /// The principal is known and may not do this.
    Forbidden => ("FORBIDDEN", 403, AfterChange),
    /// The tool, or the thing that an argument names, does not exist.
    NotFound => ("NOT_FOUND", 404, AfterChange),
    /// The state, the key or a version does not allow it now; `details.reason` says which.
    Conflict => ("CONFLICT", 409, AfterChange),
    /// A rate limit or a budget is used up.
    RateLimited => ("RATE_LIMITED", 429, Later),
    /// The deadline passed before the answer was there.
    Timeout => ("TIMEOUT", 504, Later),
    /// Something behind the call failed: an upstream, the tool or the gateway (`details.source`).
    UpstreamError => ("UPSTREAM_ERROR", 502, Later),
    /// The user has to confirm first.
    NeedsUserConfirmation => ("NEEDS_USER_CONFIRMATION", 428, AfterChange),
    /// A rule forbids it for this item, destination or person.
    ComplianceBlocked => ("COMPLIANCE_BLOCKED", 451, Never),
    /// The price is no longer the one that the call relied on.
    PriceChanged => ("PRICE_CHANGED", 409, AfterChange),
    /// The item cannot be had in that quantity.
    OutOfStock => ("OUT_OF_STOCK", 409, AfterChange),
    /// The address cannot be delivered to as given; `details.field` names the part.
    AddressInvalid => ("ADDRESS_INVALID", 422, AfterChange),
}

impl Retry {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Later => "later",
            Self::AfterChange => "after_change",
            Self::Never => "never",
        }
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Error for a text that is not one of the thirteen codes, usually because a newer program wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not one of the {n} error codes", n = ErrorCode::ALL.len())]
pub struct UnknownCode(pub String);

impl std::str::FromStr for ErrorCode {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, UnknownCode> {
        Self::ALL
            .into_iter()
            .find(|code| code.as_str() == text)
            .ok_or_else(|| UnknownCode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A10: exactly the thirteen codes of the standard, in its order and spelling.
    #[test]
    fn the_codes_are_those_of_the_standard() {
        let names: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(
            names.join(" "),
            "INVALID_ARGUMENT UNAUTHORIZED FORBIDDEN NOT_FOUND CONFLICT RATE_LIMITED TIMEOUT \
             UPSTREAM_ERROR NEEDS_USER_CONFIRMATION COMPLIANCE_BLOCKED PRICE_CHANGED OUT_OF_STOCK \
             ADDRESS_INVALID"
        );
    }

    /// A11: a text that is not one of the codes cannot become one.
    #[test]
    fn an_unknown_code_is_refused() {
        assert!(serde_json::from_str::<ErrorCode>("\"EXPIRED\"").is_err());
        assert!("expired".parse::<ErrorCode>().is_err());
    }
}

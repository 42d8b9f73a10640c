//! Which standard a path speaks.

/// A standard of agent commerce whose words and rules of idempotency some routes have. What is under `/v1` has
/// our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Agentic Commerce Protocol.
    Acp,
    /// Universal Commerce Protocol.
    Ucp,
}

impl Profile {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Acp, Self::Ucp];

    /// The version that is spoken.
    pub const fn version(self) -> &'static str {
        match self {
            Self::Acp => "2026-04-17",
            Self::Ucp => "2026-04-08",
        }
    }

    /// What its paths begin with.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Acp => "/acp",
            Self::Ucp => "/ucp",
        }
    }

    /// The profile of a path; none where our own words are spoken.
    pub fn of_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| {
            let rest = path.strip_prefix(profile.prefix());
            rest.is_some_and(|rest| rest.starts_with('/'))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_at_most_one_profile() {
        assert_eq!(Profile::of_path("/acp/tools/x"), Some(Profile::Acp));
        assert_eq!(
            Profile::of_path("/ucp/checkout-sessions/1"),
            Some(Profile::Ucp)
        );
        for path in ["/", "/acp", "/acpx/tools", "/v1/tools/acp", "/v1/ucp/x", ""] {
            assert_eq!(Profile::of_path(path), None, "{path}");
        }
    }
}

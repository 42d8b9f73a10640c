//! Profiles: the standard that a path follows.

/// An agent commerce standard whose format and idempotency rules some routes follow. Routes under `/v1` follow
/// our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Agentic Commerce Protocol.
    Acp,
    /// Universal Commerce Protocol.
    Ucp,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 2] = [Self::Acp, Self::Ucp];

    /// Returns the supported version.
    pub const fn version(self) -> &'static str {
        match self {
            Self::Acp => "2026-04-17",
            Self::Ucp => "2026-04-08",
        }
    }

    /// Returns the prefix of its paths.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Acp => "/acp",
            Self::Ucp => "/ucp",
        }
    }

    /// Returns the profile of a path; `None` for our own routes.
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

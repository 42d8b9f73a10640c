//! Idempotency keys that a profile accepts.

use super::profile::Profile;

/// Reason why an idempotency key is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyFault {
    /// The key is missing; every `POST` must have one.
    Missing,
    /// The key is too short, so that it could be guessed or collide.
    TooShort,
    /// The key is longer than is stored.
    TooLong,
}

/// Maximum length of a key, as in ACP; our own limit is the same.
const CHARS_MAX: usize = 255;

/// Minimum length for UCP: 128 bits in base64, the densest usual encoding; a UUID has 36 characters.
const UCP_CHARS_MIN: usize = 22;

/// Checks the idempotency key of a call.
pub(super) fn check(profile: Profile, key: Option<&str>) -> Result<(), KeyFault> {
    let Some(key) = key else {
        return Err(KeyFault::Missing);
    };
    let chars = key.chars().count();
    if chars > CHARS_MAX {
        return Err(KeyFault::TooLong);
    }
    let is_short = match profile {
        Profile::Acp => chars == 0,
        Profile::Ucp => chars < UCP_CHARS_MIN,
    };
    if is_short {
        return Err(KeyFault::TooShort);
    }
    Ok(())
}

impl KeyFault {
    /// Returns the code of the answer; ACP defines the first one, the others are ours.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::Missing => "idempotency_key_required",
            Self::TooShort => "idempotency_key_too_short",
            Self::TooLong => "idempotency_key_too_long",
        }
    }

    /// Returns one sentence for the caller.
    pub(super) fn message(self) -> String {
        match self {
            Self::Missing => "every POST needs the header Idempotency-Key".to_owned(),
            Self::TooShort => format!(
                "the Idempotency-Key has fewer than {UCP_CHARS_MIN} characters, which cannot be 128 bits; send a UUID"
            ),
            Self::TooLong => format!("the Idempotency-Key has more than {CHARS_MAX} characters"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_bounded() {
        let of = |profile, chars: usize| check(profile, Some(&"é".repeat(chars)));
        for profile in Profile::ALL {
            assert_eq!(check(profile, None), Err(KeyFault::Missing));
            assert_eq!(of(profile, 255), Ok(()));
            assert_eq!(of(profile, 256), Err(KeyFault::TooLong));
            assert_eq!(of(profile, 0), Err(KeyFault::TooShort));
        }
        assert_eq!(of(Profile::Acp, 1), Ok(()));
        assert_eq!(of(Profile::Ucp, 21), Err(KeyFault::TooShort));
        assert_eq!(of(Profile::Ucp, 22), Ok(()));
    }
}

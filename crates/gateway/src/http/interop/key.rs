//! Which idempotency keys a profile accepts.

use super::profile::Profile;

/// Why a key is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyFault {
    /// Every `POST` has to have one.
    Missing,
    /// It is easily guessed, or hit by chance.
    TooShort,
    /// It is longer than anybody keeps.
    TooLong,
}

/// The longest key, as ACP says; our own bound is the same.
const CHARS_MAX: usize = 255;

/// What 128 bits take in base64, the densest usual writing; a UUID has 36.
const UCP_CHARS_MIN: usize = 22;

/// Looks at the key of a call.
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
    /// The code of the answer; ACP has a name for the first one, the others are ours.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::Missing => "idempotency_key_required",
            Self::TooShort => "idempotency_key_too_short",
            Self::TooLong => "idempotency_key_too_long",
        }
    }

    /// One sentence for the caller.
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

//! Cache of verified signatures. Verifying one costs more than all the rest of a call's identity, and a client
//! sends the same token with every call.
//!
//! Only two facts are cached: that a key has signed a token, and the token's claims. The validity of the key,
//! the issuer, the audience, the times and the policy is checked for every request: a withdrawn key, a changed
//! policy and an expired token take effect at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Map, Value};

use super::jwks::PublicKey;

/// Maximum number of cached tokens. One more clears the cache, so that those tokens are verified again.
const TOKENS_MAX: usize = 1_024;

/// Claims of a token.
pub(super) type Claims = Map<String, Value>;

/// Tokens with a verified signature, by their digest: the tokens themselves are not kept.
#[derive(Default)]
pub(super) struct Verified {
    tokens: Mutex<HashMap<[u8; 32], Signed>>,
}

#[derive(Clone)]
struct Signed {
    by: Arc<PublicKey>,
    claims: Arc<Claims>,
}

impl Verified {
    /// Returns the claims of a token that one of these keys has signed; `check` is called if that is not
    /// cached.
    pub(super) fn claims(
        &self,
        token: &str,
        keys: &[Arc<PublicKey>],
        check: impl Fn(&PublicKey) -> Option<Claims>,
    ) -> Option<Arc<Claims>> {
        let name = name_of(token);
        let known = self.lock().get(&name).cloned();
        // A set that was fetched again has new key objects, even if the keys are equal.
        if let Some(known) = known
            && keys.iter().any(|key| Arc::ptr_eq(key, &known.by))
        {
            return Some(known.claims);
        }
        let checked = |key: &Arc<PublicKey>| Some((key.clone(), Arc::new(check(key)?)));
        let (by, claims) = keys.iter().find_map(checked)?;
        let mut tokens = self.lock();
        if tokens.len() >= TOKENS_MAX {
            tokens.clear();
        }
        let signed = Signed {
            by,
            claims: claims.clone(),
        };
        tokens.insert(name, signed);
        Some(claims)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Signed>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name_of(token: &str) -> [u8; 32] {
    let mut name = [0; 32];
    let digest = digest(&SHA256, token.as_bytes());
    name.copy_from_slice(digest.as_ref());
    name
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use jsonwebtoken::DecodingKey;

    use super::*;

    fn key() -> Arc<PublicKey> {
        Arc::new(PublicKey {
            id: None,
            algorithms: Vec::new(),
            key: DecodingKey::from_ed_der(&[7; 32]),
        })
    }

    /// A token is verified once for each set of keys, and one with an invalid signature every time.
    #[test]
    fn a_signature_is_checked_once() {
        let (verified, checks) = (Verified::default(), Cell::new(0));
        let (ours, others) = ([key()], [key()]);
        let check = |token: &str, keys: &[Arc<PublicKey>], is_signed: bool| {
            let claims = verified.claims(token, keys, |_| {
                checks.set(checks.get() + 1);
                is_signed.then(Map::new)
            });
            (claims.is_some(), checks.replace(0))
        };
        assert_eq!(check("a", &ours, true), (true, 1));
        assert_eq!(check("a", &ours, true), (true, 0));
        assert_eq!(check("b", &ours, false), (false, 1));
        assert_eq!(check("b", &ours, false), (false, 1));
        // Keys that were fetched again or withdrawn: signatures of the old ones no longer count.
        assert_eq!(check("a", &others, false), (false, 1));
        assert_eq!(check("a", &[], true), (false, 0));
        assert_eq!(check("a", &others, true), (true, 1));
    }

    #[test]
    fn no_more_tokens_are_known_than_there_is_room_for() {
        let (verified, keys) = (Verified::default(), [key()]);
        for token in 0..3 * TOKENS_MAX {
            let claims = verified.claims(&token.to_string(), &keys, |_| Some(Map::new()));
            assert!(claims.is_some());
            assert!(verified.lock().len() <= TOKENS_MAX);
        }
    }
}

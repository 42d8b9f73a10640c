//! Signatures that were checked already. Checking one costs more than all the rest of a call's identity, and a client
//! sends the same token with every call.
//!
//! Kept is nothing but that a key has signed a token, and what the token says. Whether the key still counts, and
//! whether issuer, audience, times and policy still fit, is looked at for every request: a key that its issuer
//! withdraws, a policy that changes and a token that ends count at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Map, Value};

use super::jwks::PublicKey;

/// How many tokens are known. One more ends what was known before: who comes back is checked again.
const TOKENS_MAX: usize = 1_024;

/// What a token says.
pub(super) type Claims = Map<String, Value>;

/// The tokens whose signature was checked, by their digest: the tokens themselves are not kept.
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
    /// What a token says that one of these keys has signed; `check` is asked where that is not known.
    pub(super) fn claims(
        &self,
        token: &str,
        keys: &[Arc<PublicKey>],
        check: impl Fn(&PublicKey) -> Option<Claims>,
    ) -> Option<Arc<Claims>> {
        let name = name_of(token);
        let known = self.lock().get(&name).cloned();
        // A set that was fetched anew has other keys, also where they are the same.
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

    /// A token is checked once for each set of keys, and one that nobody has signed every time.
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
        // Keys that were fetched anew, or withdrawn: what the old ones have signed counts no more.
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

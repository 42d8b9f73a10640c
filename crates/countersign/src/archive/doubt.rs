//! Finding calls that are still open, in doubt or running, by any key that people have at hand: the caller's own, the
//! one that the service was sent, or the digest that lists show.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_evidence::seal::UserKey;

use super::{Archive, Error};
use crate::ledger::{ClaimQuery, ClaimRow, ClaimState, Hex, KeyDigest, Scope};

/// Maximum number of claims of one state that are looked at.
const CLAIMS_MAX: usize = 10_000;

/// Minimum length of the beginning of a digest. Shorter ones would match by chance.
const DIGITS_MIN: usize = 8;

/// A claim with the key that the tool sends to its service.
#[derive(Debug, Clone)]
pub struct KeyedClaim {
    /// The claim.
    pub row: ClaimRow,
    /// The idempotency key that the service of the tool gets for this call; `None` if the user's key is gone.
    pub service_key: Option<String>,
}

impl Archive {
    /// Adds to each claim the key that the service of its tool gets.
    pub async fn keyed(&self, rows: Vec<ClaimRow>) -> Result<Vec<KeyedClaim>, Error> {
        let mut known = BTreeMap::new();
        let mut claims = Vec::with_capacity(rows.len());
        for row in rows {
            let keys = self.keys_among(&mut known, &row.scope.user_id).await?;
            let service_key = match keys {
                Some(keys) => self.service_key(&row.scope, &keys).await?,
                None => None,
            };
            claims.push(KeyedClaim { row, service_key });
        }
        Ok(claims)
    }

    /// Finds the calls that are in doubt or still running by a key: the caller's, the service's, or the digest that
    /// lists show, of which the first eight digits are enough. Only those of this user, if one is given.
    pub async fn unsettled_calls(
        &self,
        key: &str,
        user_id: Option<&str>,
    ) -> Result<Vec<KeyedClaim>, Error> {
        let mut rows = Vec::new();
        for state in [ClaimState::InDoubt, ClaimState::Running] {
            let query = ClaimQuery {
                state: Some(state),
                user_id: user_id.map(str::to_owned),
                limit: CLAIMS_MAX,
                ..ClaimQuery::default()
            };
            rows.extend(self.store.claims(&query).await?);
        }
        self.with_key(rows, key).await
    }

    /// Finds the calls of a caller's key, in whatever state, by the digest that the user's key makes of it. Without a
    /// user it is searched for user by user; with more than a thousand users that fails with
    /// [`Error::NameTheUser`].
    pub async fn of_key(&self, key: &str, user_id: Option<&str>) -> Result<Vec<ClaimRow>, Error> {
        let users = self.users_meant(user_id, key).await?;
        let digests = users
            .into_iter()
            .map(|(user_id, keys)| (user_id, KeyDigest(keys.key_digest(key))));
        let digests: Vec<_> = digests.collect();
        Ok(self.store.claims_of(&digests, CLAIMS_MAX).await?)
    }

    /// Keeps the claims that a key means: the caller's, the service's, or the beginning of the digest.
    pub async fn with_key(&self, rows: Vec<ClaimRow>, key: &str) -> Result<Vec<KeyedClaim>, Error> {
        let mut known = BTreeMap::new();
        let mut meant = Vec::new();
        for row in rows {
            let digest = row.scope.key.to_string();
            let keys = self.keys_among(&mut known, &row.scope.user_id).await?;
            let is_callers = |keys: &Arc<UserKey>| Hex(&keys.key_digest(key)).to_string() == digest;
            let is_named = key.len() >= DIGITS_MIN && digest.starts_with(key)
                || keys.as_ref().is_some_and(is_callers);
            let service_key = match &keys {
                Some(keys) => self.service_key(&row.scope, keys).await?,
                None => None,
            };
            if is_named || service_key.as_deref() == Some(key) {
                meant.push(KeyedClaim { row, service_key });
            }
        }
        Ok(meant)
    }

    /// The key that the service of a tool gets for the arguments that a scope was taken for.
    async fn service_key(&self, scope: &Scope, keys: &UserKey) -> Result<Option<String>, Error> {
        let held = self.store.lookup(scope).await?;
        Ok(held.map(|held| scope.service_key(keys, &held.fingerprint)))
    }

    async fn keys_among(
        &self,
        known: &mut BTreeMap<String, Option<Arc<UserKey>>>,
        user_id: &str,
    ) -> Result<Option<Arc<UserKey>>, Error> {
        if let Some(keys) = known.get(user_id) {
            return Ok(keys.clone());
        }
        let keys = self.vault.existing_key(user_id).await?;
        known.insert(user_id.to_owned(), keys.clone());
        Ok(keys)
    }
}

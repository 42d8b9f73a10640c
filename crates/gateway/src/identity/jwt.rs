//! Tokens of other issuers: JWT access tokens of the issuers that the policy names.
//!
//! The claims of a token count only after its signature, issuer, audience and times have been checked, and the
//! algorithm is one of four: a token never chooses a weaker one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use countersign::Principal;
use countersign::clock::Clock;
use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::jwks::{KeySet, PublicKey, Unfetched};
use super::token_claims;
use super::verified::Verified;
use crate::policy::{IssuerRule, JwksSource};

/// Algorithms that tokens may be signed with.
const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::RS256,
    Algorithm::PS256,
    Algorithm::ES256,
    Algorithm::EdDSA,
];

/// Maximum number of keys that are tried for a token that names none.
const TRIES_MAX: usize = 8;

/// Checks tokens.
pub(super) struct Tokens {
    clock: Arc<dyn Clock>,
    /// Key sets outlive the policy that named them: a reload does not fetch them again.
    sets: Mutex<HashMap<JwksSource, Arc<KeySet>>>,
    verified: Verified,
}

impl Tokens {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            sets: Mutex::default(),
            verified: Verified::default(),
        }
    }

    /// Returns the principal that a token proves; `None` if it is not valid here.
    pub(super) async fn verify(
        &self,
        token: &str,
        issuers: &[IssuerRule],
    ) -> Result<Option<Principal>, Unfetched> {
        #[derive(Deserialize)]
        struct Issued {
            iss: String,
        }
        let Ok(header) = decode_header(token) else {
            return Ok(None);
        };
        // Not verified yet: it only selects the issuer whose keys are tried.
        let Ok(issued) = insecure_decode_claims::<Issued>(token) else {
            return Ok(None);
        };
        if !is_access_token(&header) {
            return Ok(None);
        }
        for rule in issuers.iter().filter(|rule| rule.issuer == issued.iss) {
            let keys = self.set_of(&rule.jwks);
            let keys = keys.find(header.kid.as_deref(), header.alg, rule.jwks_age_max);
            let keys = keys.await?;
            let keys = keys.get(..TRIES_MAX).unwrap_or(&keys);
            let check = |key: &PublicKey| signed(token, header.alg, key);
            let Some(claims) = self.verified.claims(token, keys, check) else {
                continue;
            };
            if self.is_for_us_now(&claims, rule) {
                return Ok(token_claims::principal(&claims, rule));
            }
        }
        Ok(None)
    }

    fn set_of(&self, source: &JwksSource) -> Arc<KeySet> {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || KeySet::new(source.clone(), self.clock.clone());
        sets.entry(source.clone()).or_insert_with(made).clone()
    }

    /// True if issuer, audience and times fit.
    fn is_for_us_now(&self, claims: &Map<String, Value>, rule: &IssuerRule) -> bool {
        let is_from = claims.get("iss").and_then(Value::as_str) == Some(&rule.issuer);
        let is_for_us = match claims.get("aud") {
            Some(Value::String(audience)) => rule.is_audience(audience),
            Some(Value::Array(audiences)) => {
                let mut audiences = audiences.iter().filter_map(Value::as_str);
                audiences.any(|audience| rule.is_audience(audience))
            }
            _ => false,
        };
        let now = self.clock.now().as_second();
        let whole = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        let (skew, life_max) = (whole(rule.clock_skew), whole(rule.token_life_max));
        let is_running = seconds(claims.get("exp")).is_some_and(|end| {
            let left = end.saturating_sub(now);
            left > -skew && left <= life_max.saturating_add(skew)
        });
        let has_begun = ["nbf", "iat"].iter().all(|name| match claims.get(*name) {
            Some(begin) => seconds(Some(begin)).is_some_and(|begin| begin - skew <= now),
            None => true,
        });
        is_from && is_for_us && is_running && has_begun
    }
}

/// True if the token is an access token. The issuer's keys also sign other tokens, such as identity tokens for
/// an application and logout notices. A token that names another type is not a credential (RFC 8725).
fn is_access_token(header: &Header) -> bool {
    let kind = header.typ.as_deref().unwrap_or("jwt");
    let is_known = ["jwt", "at+jwt", "application/at+jwt"]
        .iter()
        .any(|known| kind.eq_ignore_ascii_case(known));
    is_known && header.crit.is_none() && ALGORITHMS.contains(&header.alg)
}

/// Returns the claims of a token if this key has signed it.
fn signed(token: &str, algorithm: Algorithm, key: &PublicKey) -> Option<Map<String, Value>> {
    let mut validation = Validation::new(algorithm);
    // Everything else is checked here, by the gateway's own clock.
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    decode(token, &key.key, &validation)
        .ok()
        .map(|decoded| decoded.claims)
}

/// Reads a time claim, in whole seconds.
fn seconds(value: Option<&Value>) -> Option<i64> {
    const FAR: f64 = 1e12;

    let value = value?;
    let seconds = value.as_f64().filter(|seconds| seconds.abs() < FAR)?;
    value.as_i64().or(Some(seconds as i64))
}

//! Tokens of other issuers: JWT access tokens of the issuers that the policy names.
//!
//! The claims of a token count only after its signature, issuer, audience and times have been checked, and the
//! algorithm is one of four: a token never chooses a weaker one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, SHA512, digest};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use countersign::Principal;
use countersign::clock::Clock;
use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::jwks::{KeySet, PublicKey, Unfetched};
use super::token_claims;
use super::verified::{Claims, Verified};
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
        let Some((header, issuer)) = named_issuer(token) else {
            return Ok(None);
        };
        if !is_access_token(&header) {
            return Ok(None);
        }
        for rule in issuers.iter().filter(|rule| rule.issuer == issuer) {
            let Some(claims) = self.signed_by(token, &header, rule).await? else {
                continue;
            };
            if self.is_for_now(&claims, rule, |audience| rule.is_audience(audience)) {
                return Ok(token_claims::principal(&claims, rule));
            }
        }
        Ok(None)
    }

    /// Checks the identity token that answers to a sign-in (OpenID Connect Core 1.0, section 3.1.3.7): that this issuer has made it for this
    /// client, now, for this very sign-in, and together with this access token.
    pub(super) async fn is_identity(
        &self,
        token: &str,
        issuers: &[IssuerRule],
        meant: &Meant<'_>,
    ) -> Result<bool, Unfetched> {
        let Some((header, issuer)) = named_issuer(token) else {
            return Ok(false);
        };
        let is_plain = header
            .typ
            .as_deref()
            .is_none_or(|typ| typ.eq_ignore_ascii_case("jwt"));
        if !is_plain
            || header.crit.is_some()
            || !ALGORITHMS.contains(&header.alg)
            || issuer != meant.issuer
        {
            return Ok(false);
        }
        for rule in issuers.iter().filter(|rule| rule.issuer == issuer) {
            let Some(claims) = self.signed_by(token, &header, rule).await? else {
                continue;
            };
            let is_ours = self.is_for_now(&claims, rule, |audience| audience == meant.client_id);
            return Ok(is_ours && meant.fits(&claims, header.alg));
        }
        Ok(false)
    }

    /// Returns the claims of a token if one of the issuer's keys has signed it.
    async fn signed_by(
        &self,
        token: &str,
        header: &Header,
        rule: &IssuerRule,
    ) -> Result<Option<Arc<Claims>>, Unfetched> {
        let keys = self.set_of(&rule.jwks);
        let keys = keys.find(header.kid.as_deref(), header.alg, rule.jwks_age_max);
        let keys = keys.await?;
        let keys = keys.get(..TRIES_MAX).unwrap_or(&keys);
        let check = |key: &PublicKey| signed(token, header.alg, key);
        Ok(self.verified.claims(token, keys, check))
    }

    fn set_of(&self, source: &JwksSource) -> Arc<KeySet> {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || KeySet::new(source.clone(), self.clock.clone());
        sets.entry(source.clone()).or_insert_with(made).clone()
    }

    /// True if issuer, audience and times fit.
    fn is_for_now(
        &self,
        claims: &Map<String, Value>,
        rule: &IssuerRule,
        is_audience: impl Fn(&str) -> bool,
    ) -> bool {
        let is_from = claims.get("iss").and_then(Value::as_str) == Some(&rule.issuer);
        let is_for_us = match claims.get("aud") {
            Some(Value::String(audience)) => is_audience(audience),
            Some(Value::Array(audiences)) => {
                let mut audiences = audiences.iter().filter_map(Value::as_str);
                audiences.any(is_audience)
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

/// Facts that an identity token has to confirm.
pub(super) struct Meant<'m> {
    pub(super) issuer: &'m str,
    pub(super) client_id: &'m str,
    pub(super) nonce: &'m str,
    pub(super) access_token: &'m str,
}

impl Meant<'_> {
    fn fits(&self, claims: &Claims, algorithm: Algorithm) -> bool {
        let text = |name: &str| claims.get(name).map(Value::as_str);
        let is_from_us = text("nonce") == Some(Some(self.nonce));
        // With several audiences the token says for which of them it was made.
        let has_many = claims
            .get("aud")
            .and_then(Value::as_array)
            .is_some_and(|it| it.len() > 1);
        let is_client = match text("azp") {
            Some(party) => party == Some(self.client_id),
            None => !has_many,
        };
        let is_beside = text("at_hash")
            .is_none_or(|hash| hash == Some(&half_hash(self.access_token, algorithm)));
        is_from_us && is_client && is_beside
    }
}

/// The left half of a token's hash in base64url, by the algorithm of the token that names it.
fn half_hash(token: &str, algorithm: Algorithm) -> String {
    let hash = match algorithm {
        Algorithm::EdDSA => digest(&SHA512, token.as_bytes()),
        _ => digest(&SHA256, token.as_bytes()),
    };
    let (half, _) = hash.as_ref().split_at(hash.as_ref().len() / 2);
    BASE64_URL_SAFE_NO_PAD.encode(half)
}

/// Returns the header of a token and the issuer that it names. Neither is verified yet: the issuer only selects the keys that are tried.
fn named_issuer(token: &str) -> Option<(Header, String)> {
    #[derive(Deserialize)]
    struct Issued {
        iss: String,
    }
    let header = decode_header(token).ok()?;
    let issued = insecure_decode_claims::<Issued>(token).ok()?;
    Some((header, issued.iss))
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

//! The operator's token: how commands on this machine talk to a server that holds the store.
//!
//! It is drawn when the server starts, stands in a file that only the server's account can read, and ends
//! with the server.

use std::fmt;
use std::sync::Arc;

use countersign::Principal;
use countersign::approve::SCOPE_ANSWER;
use countersign::archive::{SCOPE_ERASE, SCOPE_HOLD, SCOPE_OPEN, SCOPE_RESOLVE};
use countersign::ids::IdSource;
use countersign_evidence::hex;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use zeroize::Zeroizing;

use crate::caller::{Caller, Proof};
use crate::http::SCOPE_CALLS;
use crate::identity::SCOPE_KEYS;

/// What the operator of the machine may do over the wire.
pub const OPERATOR_SCOPES: [&str; 7] = [
    SCOPE_CALLS,
    SCOPE_OPEN,
    SCOPE_ERASE,
    SCOPE_HOLD,
    SCOPE_RESOLVE,
    SCOPE_KEYS,
    SCOPE_ANSWER,
];

/// A token, and who has it.
pub struct Operator {
    token: Zeroizing<String>,
    caller: Caller,
}

impl Operator {
    /// Draws a token for this principal, who gets [`OPERATOR_SCOPES`].
    pub fn draw(ids: &dyn IdSource, mut principal: Principal) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        ids.fill(&mut *secret);
        let mut token = Zeroizing::new(String::from("cs_operator_"));
        token.push_str(&Zeroizing::new(hex::encode(&*secret)));
        for scope in OPERATOR_SCOPES {
            if !principal.holds(scope) {
                principal = principal.scope(scope);
            }
        }
        let caller = Caller {
            principal: Arc::new(principal),
            proof: Proof::Operator,
        };
        Self { token, caller }
    }

    /// The token, for the file.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The operator, where these headers bring the token, and no other credential.
    pub fn caller(&self, headers: &HeaderMap) -> Option<Caller> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(given), None) = (values.next(), values.next()) else {
            return None;
        };
        let given = given.as_bytes();
        let given = given.strip_prefix(b"Bearer ")?;
        let is_same =
            aws_lc_rs::constant_time::verify_slices_are_equal(given, self.token.as_bytes());
        is_same.ok().map(|()| self.caller.clone())
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Operator")
    }
}

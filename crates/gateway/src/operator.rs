//! The operator: the person who works on this machine with the account that the server runs as.
//!
//! The operator comes in by a socket in the data folder ([`socket`]), where the system says which account is on the
//! other side. Where there is no such socket, both sides prove over TCP that they know a secret in the data folder
//! ([`proof`]); the secret itself is never sent. What only the operator may ask for is under `/v1/operator`
//! ([`desk`]), and does not exist for other callers.

use std::fmt;
use std::sync::Arc;

use countersign::Principal;
use countersign::approve::SCOPE_ANSWER;
use countersign::archive::{SCOPE_ERASE, SCOPE_HOLD, SCOPE_OPEN, SCOPE_RESOLVE};
use http::HeaderMap;

use crate::caller::{Caller, Proof};
use crate::http::SCOPE_CALLS;
use crate::identity::SCOPE_KEYS;

pub mod desk;
pub mod proof;
pub(crate) mod routes;
pub mod socket;

pub use desk::{Asked, Lines, Operations};
pub use proof::{Prover, Secret};
pub use socket::{OperatorSocket, SocketError};

/// Scopes of the operator of the machine.
pub const OPERATOR_SCOPES: [&str; 7] = [
    SCOPE_CALLS,
    SCOPE_OPEN,
    SCOPE_ERASE,
    SCOPE_HOLD,
    SCOPE_RESOLVE,
    SCOPE_KEYS,
    SCOPE_ANSWER,
];

/// In the extensions of a request that came by the operator's socket. Nothing on the wire can put it there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AtSocket;

/// The operator of the machine, with the proof that replaces the socket if there is none.
pub struct Operator {
    caller: Caller,
    prover: Option<Prover>,
}

impl Operator {
    /// This principal, who gets [`OPERATOR_SCOPES`]. They come in by the socket only.
    pub fn new(mut principal: Principal) -> Self {
        for scope in OPERATOR_SCOPES {
            if !principal.holds(scope) {
                principal = principal.scope(scope);
            }
        }
        let caller = Caller {
            principal: Arc::new(principal),
            proof: Proof::Operator,
        };
        Self {
            caller,
            prover: None,
        }
    }

    /// Lets them in over TCP as well, where they prove that they know a secret.
    pub fn or_proved_by(mut self, prover: Prover) -> Self {
        self.prover = Some(prover);
        self
    }

    /// Returns the caller at the socket.
    pub(crate) fn at_socket(&self) -> Caller {
        self.caller.clone()
    }

    /// The operator, where these headers bring a proof.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Option<Caller> {
        let prover = self.prover.as_ref()?;
        prover.is_proved(headers).then(|| self.caller.clone())
    }

    /// Returns the prover of the server; `None` if the socket is the only way in.
    pub fn prover(&self) -> Option<&Prover> {
        self.prover.as_ref()
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Operator")
    }
}

//! The sender of a request, as its credential proved.

use std::sync::Arc;

use countersign::Principal;
use countersign::contract::{Actor, ActorType};

/// The sender of a request. The identity layer puts it into the extensions of every request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Identity and rights that the credential proves.
    pub principal: Arc<Principal>,
    /// Kind of proof.
    pub proof: Proof,
}

/// Kind of proof of a caller's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// No proof: a program on the same machine, while no credential is configured.
    Loopback,
    /// An API key of this installation.
    ApiKey,
    /// A token that another issuer has signed.
    Token,
    /// The operator's socket, or the secret of the data folder.
    Operator,
}

/// User id of a local program that names no user.
pub const LOCAL_USER: &str = "u_local";

impl Caller {
    /// A program on this machine. It may name any user. It is an agent, so it cannot confirm calls that a
    /// person has to confirm.
    pub fn local() -> Self {
        let actor = Actor {
            kind: ActorType::Agent,
            id: "local".to_owned(),
        };
        Self {
            principal: Arc::new(Principal::new(actor, LOCAL_USER).acting_for_others()),
            proof: Proof::Loopback,
        }
    }
}

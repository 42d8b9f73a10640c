//! Who sent a request, as its credential proved.

use std::sync::Arc;

use countersign::Principal;
use countersign::contract::{Actor, ActorType};

/// The sender of a request. The identity layer puts it into the extensions of every request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// What the credential proves.
    pub principal: Arc<Principal>,
    /// By what it was proved.
    pub proof: Proof,
}

/// By what a caller was proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// By nothing: a program on this very machine, while no credential is set up.
    Loopback,
    /// By an API key of ours.
    ApiKey,
    /// By a token that somebody else has signed.
    Token,
    /// By the operator's socket, or by the secret of the data folder.
    Operator,
}

/// On whose behalf a program on this machine acts that names nobody.
pub const LOCAL_USER: &str = "u_local";

impl Caller {
    /// A program on this machine. It may name any user, and it is an agent: whatever it asks for that a
    /// person has to confirm, it cannot confirm itself.
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

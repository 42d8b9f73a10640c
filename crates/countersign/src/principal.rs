//! The proved identity of a caller (A3). Only the edge that verified the credential builds it.

use std::fmt;
use std::sync::Arc;

use countersign_contract::{Actor, ActorType, ToolName};

use crate::effects::Effects;
use crate::pattern::ToolPattern;
use crate::realm::Realm;

/// The proved identity behind a call.
///
/// # Example
///
/// ```
/// use countersign::Principal;
/// use countersign::contract::{Actor, ActorType};
///
/// let agent = Principal::new(Actor { kind: ActorType::Agent, id: "a_7".into() }, "u_123")
///     .scope("tools:call");
/// assert!(agent.holds("tools:call") && !agent.may_act_for_others);
/// ```
#[derive(Debug, Clone)]
pub struct Principal {
    /// The actor.
    pub actor: Actor,
    /// The user on whose behalf it acts unless it may act for others. Empty if each call has to name the user.
    pub user_id: String,
    /// True if `user_id` is a person. A program that acts for no user keeps its state under a name of its own.
    pub has_user: bool,
    /// The actors who delegated the right to call, newest first (RFC 8693).
    pub chain: Vec<Actor>,
    /// The scopes of the credential.
    pub scopes: Vec<String>,
    /// True if the envelope may name another actor or user: a trusted backend, not an agent.
    pub may_act_for_others: bool,
    /// The users whom it may name, if it may act for others.
    pub realm: Realm,
    /// The effects that its calls may have, whatever a policy allows.
    pub effects: Effects,
    /// The tools that it may call, whatever a policy allows; `None` if any.
    pub tools: Option<Arc<[ToolPattern]>>,
    /// The credential that proved it; `None` if the embedding program vouches for it.
    pub credential: Option<Credential>,
    /// The token that proved it, for tools that exchange it for one of their own; `None` if it was not a token.
    pub token: Option<BearerToken>,
}

/// Compares everything but the token: a renewed token does not make another principal.
impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            actor,
            user_id,
            has_user,
            chain,
            scopes,
            may_act_for_others,
            realm,
            effects,
            tools,
            credential,
            token: _,
        } = self;
        *actor == other.actor
            && *user_id == other.user_id
            && *has_user == other.has_user
            && *chain == other.chain
            && *scopes == other.scopes
            && *may_act_for_others == other.may_act_for_others
            && *realm == other.realm
            && *effects == other.effects
            && *tools == other.tools
            && *credential == other.credential
    }
}

impl Eq for Principal {}

/// A caller's token. It cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(Arc<str>);

impl BearerToken {
    /// A token as it arrived.
    pub fn new(token: impl Into<Arc<str>>) -> Self {
        Self(token.into())
    }

    /// The token, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[token]")
    }
}

/// A credential as a record names it; never the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// An API key of this gateway.
    ApiKey {
        /// The id of the key.
        id: String,
    },
    /// A token of an issuer.
    Token {
        /// The issuer, as the policy names it.
        issuer: String,
        /// The issuer's id of the token.
        jti: Option<String>,
    },
}

impl Principal {
    /// An actor that acts for one user, without scopes.
    pub fn new(actor: Actor, user_id: impl Into<String>) -> Self {
        Self {
            actor,
            user_id: user_id.into(),
            has_user: true,
            chain: Vec::new(),
            scopes: Vec::new(),
            may_act_for_others: false,
            realm: Realm::Any,
            effects: Effects::ALL,
            tools: None,
            credential: None,
            token: None,
        }
    }

    /// A program that acts for no user.
    ///
    /// ```
    /// use countersign::Principal;
    /// use countersign::contract::{Actor, ActorType};
    ///
    /// let job = Principal::without_user(Actor { kind: ActorType::Agent, id: "nightly".into() });
    /// assert_eq!((job.user_id.as_str(), job.has_user), ("agent/nightly", false));
    /// ```
    pub fn without_user(actor: Actor) -> Self {
        let user_id = format!("{}/{}", actor.kind.as_str(), actor.id);
        Self {
            has_user: false,
            ..Self::new(actor, user_id)
        }
    }

    /// A person who acts for themselves.
    pub fn user(user_id: impl Into<String>) -> Self {
        let user_id = user_id.into();
        let actor = Actor {
            kind: ActorType::User,
            id: user_id.clone(),
        };
        Self::new(actor, user_id)
    }

    /// Sets the actors who delegated the right to call, newest first.
    pub fn delegated_by(mut self, chain: Vec<Actor>) -> Self {
        self.chain = chain;
        self
    }

    /// Adds a scope.
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Allows the envelope to name another actor and user.
    pub fn acting_for_others(mut self) -> Self {
        self.may_act_for_others = true;
        self
    }

    /// Sets the users for whom it may act, if it may act for others.
    pub fn of_realm(mut self, realm: Realm) -> Self {
        self.realm = realm;
        self
    }

    /// Restricts it to tools with these effects.
    pub fn limited_to(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }

    /// Lets it call only tools that fit one of these patterns.
    pub fn offered(mut self, tools: impl Into<Arc<[ToolPattern]>>) -> Self {
        self.tools = Some(tools.into());
        self
    }

    /// True if the tool is one that it may call, as far as its own tools say.
    pub fn has_tool(&self, tool: &ToolName) -> bool {
        let mut tools = self.tools.iter().flat_map(|tools| tools.iter());
        self.tools.is_none() || tools.any(|pattern| pattern.matches(tool))
    }

    /// Sets the credential that proved it.
    pub fn proved_by(mut self, credential: Credential) -> Self {
        self.credential = Some(credential);
        self
    }

    /// Sets the token that proved it.
    pub fn with_token(mut self, token: BearerToken) -> Self {
        self.token = Some(token);
        self
    }

    /// True if the credential grants this scope.
    pub fn holds(&self, scope: &str) -> bool {
        self.scopes.iter().any(|held| held == scope)
    }
}

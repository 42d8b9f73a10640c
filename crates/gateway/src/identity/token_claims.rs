//! The principal that the claims of a token prove.

use countersign::contract::{Actor, ActorType};
use countersign::realm::Realm;
use countersign::{Credential, Principal};
use serde_json::{Map, Value};

use super::api_key::{is_user_name, may_hold};
use crate::policy::{IssuerRule, ScopeName};

/// Maximum number of actors that may have passed a token on.
const CHAIN_MAX: usize = 8;

/// Maximum recorded length of a token's own id, in characters.
const JTI_CHARS_MAX: usize = 255;

/// Maximum number of scopes that are read from a token.
const SCOPES_MAX: usize = 256;

/// Name of an agent whose token does not name its application.
const UNNAMED_CLIENT: &str = "unnamed-client";

/// Returns the principal that verified claims prove; `None` if they name no valid user or actor.
///
/// A client is the application that one of the claims in `client_claims` names.
///
/// | the token has | actor | user |
/// |---|---|---|
/// | `act` (RFC 8693) | the agent in it; those before it are the chain | the user claim |
/// | a client that is the subject itself | that agent | no user |
/// | a client that is not in `user_clients` | that agent | the user claim |
/// | clients, and all of them in `user_clients` | the user | the user claim |
/// | no client | an agent without a name, or the user if the issuer's entry says so | the user claim |
pub(super) fn principal(claims: &Map<String, Value>, rule: &IssuerRule) -> Option<Principal> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let subject = text("sub")?;
    let clients = clients(claims, rule)?;
    // As RFC 9068 says, and as one large vendor does.
    let machine = clients
        .iter()
        .find(|client| subject == **client || subject.strip_suffix("@clients") == Some(**client));
    let realm = rule.realm();
    let user = match text(&rule.user_claim).filter(|_| machine.is_none()) {
        Some(user) => Some(realm.id(user).filter(|id| is_user_name(id))?),
        None => None,
    };
    let mut chain = actors(claims.get("act"), &realm)?;
    let principal = match (user, chain.is_empty()) {
        (Some(user), false) => Principal::new(chain.remove(0), user),
        (None, false) => Principal::without_user(chain.remove(0)),
        (Some(user), true) => match application(&clients, rule) {
            Some(client) => Principal::new(agent(client, &realm)?, user),
            None => Principal::user(user),
        },
        (None, true) => {
            let client = machine.or(clients.first());
            Principal::without_user(agent(client.copied().unwrap_or(subject), &realm)?)
        }
    };
    let mut scopes = scopes(claims.get(&rule.scopes_claim));
    scopes.retain(|scope| rule.may_grant(scope) && may_hold(&principal.actor, scope));
    let others = rule.acts_for_others_scope.as_ref();
    Some(Principal {
        may_act_for_others: others.is_some_and(|scope| scopes.iter().any(|held| **held == **scope)),
        scopes,
        realm,
        credential: Some(Credential::Token {
            issuer: rule.issuer.clone(),
            jti: text("jti").map(|jti| jti.chars().take(JTI_CHARS_MAX).collect()),
        }),
        ..principal.delegated_by(chain)
    })
}

/// Returns the applications that a token names; `None` if one is not a string, because its meaning would be
/// unknown.
fn clients<'a>(claims: &'a Map<String, Value>, rule: &IssuerRule) -> Option<Vec<&'a str>> {
    let named = rule.client_claims.iter().filter_map(|it| claims.get(it));
    named.map(Value::as_str).collect()
}

/// Returns the application that acts for the user; `None` if the person acts alone.
fn application<'a>(clients: &[&'a str], rule: &IssuerRule) -> Option<&'a str> {
    if clients.is_empty() {
        return (!rule.is_user_without_client).then_some(UNNAMED_CLIENT);
    }
    let is_own = |client: &str| rule.user_clients.iter().any(|own| own == client);
    clients.iter().copied().find(|client| !is_own(client))
}

/// Returns the actors in `act`, the newest first; `None` if one has no name.
fn actors(act: Option<&Value>, realm: &Realm) -> Option<Vec<Actor>> {
    let mut chain = Vec::new();
    let mut next = act;
    while let Some(act) = next {
        if chain.len() == CHAIN_MAX {
            return None;
        }
        chain.push(agent(act.get("sub")?.as_str()?, realm)?);
        next = act.get("act");
    }
    Some(chain)
}

fn agent(id: &str, realm: &Realm) -> Option<Actor> {
    Some(Actor {
        kind: ActorType::Agent,
        id: realm.id(id)?,
    })
}

/// Reads the scopes: a string with spaces, or a list. Values that are not scopes are skipped.
fn scopes(claim: Option<&Value>) -> Vec<String> {
    let texts: Vec<&str> = match claim {
        Some(Value::String(text)) => text.split(' ').collect(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let scopes = texts
        .into_iter()
        .filter(|text| ScopeName::new(text).is_some());
    scopes.take(SCOPES_MAX).map(str::to_owned).collect()
}

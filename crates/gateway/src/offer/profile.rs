//! The profile of a caller: which tools they are offered. It only takes away.

use countersign::pattern::{ToolPattern, fits};
use countersign::{Credential, Effects, Principal};

use super::Facade;

/// A profile, and the callers who have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// Its name, for people.
    pub name: String,
    /// API keys, by label or id.
    pub keys: Vec<String>,
    /// Agents, by the id that their credential proves.
    pub agents: Vec<String>,
    /// Scopes of which the credential holds one.
    pub scopes: Vec<String>,
    /// Names that MCP clients give themselves.
    pub clients: Vec<String>,
    /// Tools that are offered; all where there are none.
    pub tools: Vec<ToolPattern>,
    /// Effects of the tools that are offered.
    pub effects: Effects,
    /// The use of the facade, in place of that of all.
    pub facade: Option<Facade>,
    /// The most tools of a list, in place of that of all.
    pub listed_tools_max: Option<usize>,
    /// The most tokens of a list, in place of that of all.
    pub listed_tokens_max: Option<usize>,
    /// Tools that are listed beside the facade, in place of those of all.
    pub pinned: Option<Vec<ToolPattern>>,
    /// The most bytes of an answer, where that is less than for all.
    pub result_bytes_max: Option<usize>,
}

impl Profile {
    /// True if a caller has it: each of its lists of callers that has entries fits.
    pub(super) fn fits(
        &self,
        principal: &Principal,
        label: Option<&str>,
        client: Option<&str>,
    ) -> bool {
        let id = match &principal.credential {
            Some(Credential::ApiKey { id }) => Some(id.as_str()),
            Some(Credential::Token { .. }) | None => None,
        };
        let is_key = any(&self.keys, label) || any(&self.keys, id);
        let holds = |scope: &String| principal.holds(scope);
        (self.keys.is_empty() || is_key)
            && (self.agents.is_empty() || any(&self.agents, Some(&principal.actor.id)))
            && (self.scopes.is_empty() || self.scopes.iter().any(holds))
            && (self.clients.is_empty() || any(&self.clients, client))
    }

    /// The principal as far as it is offered something; `None` if nothing is taken away.
    pub(super) fn narrow(&self, principal: &Principal) -> Option<Principal> {
        if self.tools.is_empty() && self.effects == Effects::ALL {
            return None;
        }
        let mut narrowed = principal.clone();
        narrowed.effects = narrowed.effects.and(self.effects);
        if !self.tools.is_empty() {
            narrowed = narrowed.offered(self.tools.clone());
        }
        Some(narrowed)
    }
}

fn any(patterns: &[String], name: Option<&str>) -> bool {
    name.is_some_and(|name| patterns.iter().any(|pattern| fits(pattern, name)))
}

#[cfg(test)]
mod tests {
    use countersign::contract::{Actor, ActorType};

    use super::*;

    fn agent(id: &str, key: &str) -> Principal {
        let actor = Actor {
            kind: ActorType::Agent,
            id: id.to_owned(),
        };
        let credential = Credential::ApiKey { id: key.to_owned() };
        Principal::new(actor, "u_1")
            .scope("crm")
            .proved_by(credential)
    }

    #[test]
    fn every_list_that_has_entries_has_to_fit() {
        let list = |entries: &[&str]| entries.iter().map(ToString::to_string).collect::<Vec<_>>();
        let principal = agent("support-7", "00ff");
        let check =
            |keys: &[&str], agents: &[&str], scopes: &[&str], clients: &[&str], expected| {
                let profile = Profile {
                    keys: list(keys),
                    agents: list(agents),
                    scopes: list(scopes),
                    clients: list(clients),
                    ..Profile::default()
                };
                let found = profile.fits(&principal, Some("Support desk"), Some("claude-code"));
                assert_eq!(found, expected, "{profile:?}");
            };
        check(&[], &[], &[], &[], true);
        check(&["Support*"], &[], &[], &[], true);
        check(&["00ff"], &[], &[], &[], true);
        check(&["sales*"], &[], &[], &[], false);
        check(&[], &["support-*"], &[], &[], true);
        check(&["Support*"], &["sales-*"], &[], &[], false);
        check(&[], &[], &["erp", "crm"], &[], true);
        check(&[], &[], &["erp"], &[], false);
        check(&[], &[], &[], &["claude-*"], true);
        check(&[], &[], &[], &["cursor"], false);
        let of_clients = Profile {
            clients: list(&["*"]),
            ..Profile::default()
        };
        assert!(!of_clients.fits(&principal, None, None));
    }

    /// A profile only takes away.
    #[test]
    fn nobody_gets_more_by_a_profile() {
        let reads = Effects::of([countersign::contract::Effect::Read]).unwrap();
        let profile = Profile {
            tools: vec![ToolPattern::new("*").unwrap()],
            ..Profile::default()
        };
        let reader = agent("a", "k").limited_to(reads);
        assert_eq!(profile.narrow(&reader).unwrap().effects, reads);
        assert_eq!(Profile::default().narrow(&reader), None);
    }
}

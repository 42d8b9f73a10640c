//! A call that is not made: who would call what, with which arguments.

use std::str::FromStr;

use countersign::authorize::Facts;
use countersign::contract::{Actor, ActorType};
use countersign::{Catalog, Principal};
use countersign_gateway::policy::{Explanation, Policy};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::failure::Failure;

/// A call that is only decided, never made.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Who calls: `agent:ID`, `user:ID` or `system:ID`; without it, the user.
    pub(super) who: Option<Who>,
    /// On whose behalf.
    pub(super) user: Option<String>,
    /// Scopes of the credential.
    pub(super) scopes: Vec<String>,
    /// The tool.
    pub(super) tool: String,
    /// The arguments; without them, rules that need them are left open.
    pub(super) args: Option<String>,
    /// The session.
    pub(super) session: Option<String>,
    /// The currency of the envelope.
    pub(super) currency: Option<String>,
    /// When; without it, now.
    pub(super) at: Option<Timestamp>,
}

/// An actor on the command line and in cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Who(pub(super) Actor);

impl FromStr for Who {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, id) = text.split_once(':').unwrap_or_default();
        let kind = match kind {
            "agent" => ActorType::Agent,
            "user" => ActorType::User,
            "system" => ActorType::System,
            _ => return Err("write agent:ID, user:ID or system:ID".to_owned()),
        };
        if id.is_empty() {
            return Err("the id is missing: write agent:ID, user:ID or system:ID".to_owned());
        }
        let id = id.to_owned();
        Ok(Self(Actor { kind, id }))
    }
}

impl<'de> Deserialize<'de> for Who {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Asked {
    fn principal(&self) -> Result<Principal, Failure> {
        let principal = match (&self.who, &self.user) {
            (Some(Who(actor)), Some(user)) => Principal::new(actor.clone(), user.clone()),
            (None, Some(user)) => Principal::user(user.clone()),
            (Some(Who(actor)), None) => match actor.kind {
                ActorType::User => Principal::user(actor.id.clone()),
                ActorType::Agent | ActorType::System => Principal::without_user(actor.clone()),
            },
            (None, None) => {
                return Err(Failure::new("the caller is missing")
                    .hint("name who calls: as = \"agent:ID\" (--as agent:ID), user = \"ID\" (--user ID), or both"));
            }
        };
        let scopes = self.scopes.iter().map(String::as_str);
        Ok(scopes.fold(principal, Principal::scope))
    }

    /// What a policy decides about it.
    pub(super) fn explain(
        &self,
        policy: &Policy,
        catalog: &Catalog,
        now: Timestamp,
    ) -> Result<Explanation, Failure> {
        let principal = self.principal()?;
        let entry = catalog.get(&self.tool).ok_or_else(|| {
            Failure::new(format!("there is no tool {:?}", self.tool))
                .hint("`countersign tools` lists them")
        })?;
        let arguments = match &self.args {
            None => Value::Null,
            Some(args) => {
                let bound = entry.arguments(args).map_err(|issues| {
                    let first = issues.first().map(|issue| issue.message.clone());
                    let first = first.unwrap_or_default();
                    Failure::new(format!(
                        "{} does not accept the arguments: {first}",
                        self.tool
                    ))
                    .hint("a call with them would be refused before any rule looks at them")
                })?;
                bound.to_value()
            }
        };
        let facts = Facts {
            principal: &principal,
            proved: None,
            user_id: Some(&principal.user_id),
            tool: entry.spec(),
            upstream: entry.tool().upstream(),
            now: self.at.unwrap_or(now),
            session_id: self.session.as_deref(),
            currency: self.currency.as_deref(),
            dry_run: false,
            arguments: &arguments,
            is_exact: true,
        };
        Ok(policy.explain(&facts, self.args.is_some()))
    }
}

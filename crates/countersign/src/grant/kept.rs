//! A grant as the store keeps it: sealed under the key of the user who gave it.

use std::time::Duration;

use countersign_contract::evidence::Link;
use countersign_contract::grant::{GrantAmount, GrantRevocation};
use countersign_contract::tool::AmountUnit;
use countersign_contract::{Actor, Digest, ToolName};
use countersign_evidence::seal::UserKey;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::stored::KIND;
use crate::budget::{Budget, BudgetScope, Currency, Direction, Money, ToolAmount, Unit};
use crate::consent::Writing;
use crate::ids::IdSource;
use crate::ledger::{DocumentKey, DocumentRead, Draw, IndexEntry, PotKey};
use crate::pattern::ToolPattern;

/// A grant, whole.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) v: u8,
    pub(super) id: String,
    pub(super) user_id: String,
    pub(super) to: Actor,
    pub(super) tools: Vec<Covered>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) when: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) calls: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) amount: Option<GrantAmount>,
    pub(super) until: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    pub(super) made_by: Actor,
    pub(super) made_at: Timestamp,
    /// The record of its making, which records of calls rest on.
    pub(super) link: Link,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revoked: Option<GrantRevocation>,
}

/// A tool that a grant covers, as it was declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Covered {
    pub(super) name: ToolName,
    pub(super) definition: Digest,
    /// Place of the amount in its arguments, if the grant has an amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) amount: Option<AmountPlace>,
}

/// Place of an amount in the arguments of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AmountPlace {
    pub(super) at: String,
    pub(super) currency_at: Option<String>,
    pub(super) unit: AmountUnit,
}

/// A grant that was read, and the version of its document.
#[derive(Debug, Clone)]
pub(super) struct Read {
    pub(super) kept: Kept,
    pub(super) version: u64,
}

/// Version of the document.
pub(super) const VERSION: u8 = 1;

/// Length of the window of an amount.
const DAY: Duration = Duration::from_hours(24);

/// ISO 4217 for no currency: calls are counted.
const CALLS: &str = "XXX";

impl Kept {
    /// The tool, if the grant covers it as it is declared.
    pub(super) fn covers(&self, tool: &ToolName, definition: Digest) -> Option<&Covered> {
        let mut tools = self.tools.iter();
        tools.find(|covered| covered.name == *tool && covered.definition == definition)
    }

    /// The draw of one use. It is counted also if the number is not bounded.
    pub(super) fn use_draw(&self) -> Draw {
        Draw {
            pot: PotKey {
                user_id: self.user_id.clone(),
                name: pot_name(&self.id),
                holder: String::new(),
                currency: CALLS.to_owned(),
                window_seconds: 0,
            },
            amount: 1,
            limit: self.calls.map_or(i64::MAX, i64::from),
        }
    }

    /// The amount a day as a budget of the user; `None` if the grant has no amount, or none for this tool.
    pub(super) fn budget(&self, tool: &ToolName) -> Option<Budget> {
        let (limit, currency) = self.limit()?;
        let covered = self.tools.iter().find(|covered| covered.name == *tool)?;
        let place = covered.amount.as_ref()?;
        Some(Budget {
            // No budget of a policy has such a name.
            name: pot_name(&self.id),
            scope: BudgetScope::User,
            limit,
            currency,
            window: Some(DAY),
            tools: vec![ToolAmount {
                tools: ToolPattern::EVERY,
                amount: place.at.clone(),
                currency: place.currency_at.clone(),
                spent: None,
                unit: match place.unit {
                    AmountUnit::Major => Unit::Major,
                    AmountUnit::Minor => Unit::Minor,
                },
                direction: Direction::Spend,
                when: None,
            }],
        })
    }

    /// The amount a day.
    pub(super) fn limit(&self) -> Option<(Money, Currency)> {
        let amount = self.amount.as_ref()?;
        let currency = Currency::new(&amount.currency).ok()?;
        let limit = currency.amount(&amount.limit).ok()?;
        Some((limit, currency))
    }

    /// The pot of the amount a day.
    pub(super) fn amount_pot(&self, currency: &Currency) -> PotKey {
        PotKey {
            user_id: self.user_id.clone(),
            name: pot_name(&self.id),
            holder: String::new(),
            currency: currency.code().to_owned(),
            window_seconds: DAY.as_secs(),
        }
    }

    /// Its document. The id says nothing.
    pub(super) fn place(&self) -> DocumentKey {
        KIND.place(&self.user_id, &self.id)
    }

    /// The write that stores it in the place of a version. One that calls have to find is in the index of its agent.
    pub(super) fn write(
        &self,
        keys: &UserKey,
        version: u64,
        is_found: bool,
        ids: &dyn IdSource,
    ) -> Writing {
        let found = is_found.then(|| given_to(keys, &self.to));
        let writing = Writing::seal(self.place(), version, self, keys, ids);
        writing.tracked(found.into_iter().collect())
    }
}

impl Read {
    pub(super) fn read(&self) -> DocumentRead {
        DocumentRead {
            key: self.kept.place(),
            version: self.version,
        }
    }
}

/// Index entry of all grants to an actor.
pub(super) fn given_to(keys: &UserKey, to: &Actor) -> IndexEntry {
    let to = serde_json::to_string(to).expect("names");
    KIND.index(keys, "to", &to)
}

/// Name of the pots of a grant.
fn pot_name(id: &str) -> String {
    format!("$grant.{id}")
}

//! Lists of grants for people and programs, with their state and their uses.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_contract::grant::GrantUse;
use countersign_contract::{ActorType, Grant, GrantState};
use countersign_evidence::seal::UserKey;
use jiff::Timestamp;

use super::error::Error;
use super::kept::{Kept, Read};
use super::stored::{KIND, StoredGrants};
use crate::budget::Money;
use crate::consent::{sees, sees_all, shown_id};
use crate::ledger::{self, Draw, PotKey, ReserveAnswer};
use crate::principal::Principal;
use crate::vault::SHARED;

/// Filter for grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Only grants of this user; `None` for all users whom the principal may see.
    pub user_id: Option<String>,
    /// Only grants in this state.
    pub state: Option<GrantState>,
    /// Only grants older than this one: the last of the page before, by the time of its making and its id.
    pub before: Option<(Timestamp, String)>,
    /// Maximum number of grants.
    pub limit: usize,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            user_id: None,
            state: None,
            before: None,
            limit: 100,
        }
    }
}

impl StoredGrants {
    /// The grants that a principal may see, newest first: those of its user, or all if it may answer for others. An agent
    /// sees those that were given to it.
    pub async fn list(&self, by: &Principal, wanted: &Wanted) -> Result<Vec<Grant>, Error> {
        let mut users = match &wanted.user_id {
            Some(user_id) if *user_id == by.user_id || sees_all(by) => vec![user_id.clone()],
            // Nobody learns whether somebody else has grants.
            Some(_) => Vec::new(),
            None if sees_all(by) => self.users().await?,
            None => vec![by.user_id.clone()],
        };
        users.retain(|user_id| user_id != SHARED);
        let mut found = Vec::new();
        for user_id in users {
            for read in self.of_user(&user_id).await? {
                if is_seen(&read.kept, by) && is_older(&read.kept, wanted) {
                    found.push(read.kept);
                }
            }
        }
        found.sort_by(|a, b| (b.made_at, &b.id).cmp(&(a.made_at, &a.id)));
        let mut listed = Vec::new();
        for kept in found {
            if listed.len() >= wanted.limit {
                break;
            }
            let Some(keys) = self.vault.existing_key(&kept.user_id).await? else {
                continue;
            };
            let shown = self.shown(&kept, &keys).await?;
            if wanted.state.is_none_or(|state| shown.state == state) {
                listed.push(shown);
            }
        }
        Ok(listed)
    }

    /// One grant.
    pub async fn show(&self, id: &str, by: &Principal) -> Result<Grant, Error> {
        let (grant, keys) = self.visible(id, by).await?;
        Ok(self.shown(&grant.kept, &keys).await?)
    }

    /// A grant that a principal may see.
    pub(super) async fn visible(
        &self,
        id: &str,
        by: &Principal,
    ) -> Result<(Read, Arc<UserKey>), Error> {
        let unknown = || Error::Unknown(shown_id(id));
        let (grant, keys) = self.found(id).await?.ok_or_else(unknown)?;
        if !sees(by, &grant.kept.user_id) || !is_seen(&grant.kept, by) {
            return Err(unknown());
        }
        Ok((grant, keys))
    }

    /// The users who have grants.
    async fn users(&self) -> Result<Vec<String>, ledger::Error> {
        let (mut users, mut after) = (BTreeSet::new(), None);
        while let Some(page) = KIND.next_page(&*self.store, SHARED, &mut after).await? {
            for document in page {
                if let Some((read, _)) = self.found(&document.id).await? {
                    users.insert(read.kept.user_id);
                }
            }
        }
        Ok(users.into_iter().collect())
    }

    async fn of_user(&self, user_id: &str) -> Result<Vec<Read>, ledger::Error> {
        let (mut grants, mut after) = (Vec::new(), None);
        let Some(keys) = self.vault.existing_key(user_id).await? else {
            return Ok(grants);
        };
        while let Some(page) = KIND.next_page(&*self.store, user_id, &mut after).await? {
            for document in page {
                let key = KIND.place(user_id, &document.id);
                let version = document.version;
                let kept = KIND.open(&keys, &key, version, &document.body)?;
                grants.push(Read { kept, version });
            }
        }
        Ok(grants)
    }

    /// A grant as people see it, with its state and its uses.
    pub(super) async fn shown(&self, kept: &Kept, keys: &UserKey) -> Result<Grant, ledger::Error> {
        let now = self.believed_now().await?;
        let read = Read {
            kept: kept.clone(),
            version: 0,
        };
        let chain = self.chain(read, keys).await?;
        let mut state = if chain.is_some() {
            GrantState::Active
        } else {
            GrantState::Revoked
        };
        let mut calls = 0;
        for (index, Read { kept, .. }) in chain.iter().flatten().enumerate() {
            let used = self.used(kept.use_draw().pot).await?;
            if index == 0 {
                calls = used;
            }
            let is_used_up = kept.calls.is_some_and(|most| used >= i64::from(most));
            let own = if kept.revoked.is_some() {
                GrantState::Revoked
            } else if now >= kept.until {
                GrantState::Ended
            } else if is_used_up {
                GrantState::UsedUp
            } else {
                GrantState::Active
            };
            state = graver(state, own);
        }
        let today = match kept.limit() {
            None => None,
            Some((_, currency)) => {
                let used = self.used(kept.amount_pot(&currency)).await?;
                Some(currency.shown(Money(used)))
            }
        };
        let calls = u64::try_from(calls).unwrap_or_default();
        Ok(Grant {
            state,
            used: GrantUse { calls, today },
            ..plain(kept)
        })
    }

    /// The amount that is reserved and spent of a pot. Reading it reserves nothing.
    async fn used(&self, pot: PotKey) -> Result<i64, ledger::Error> {
        // More than any pot has, so that the answer says what it has.
        let draw = Draw {
            pot,
            amount: i64::MAX,
            limit: i64::MAX,
        };
        Ok(match self.store.check(&[draw]).await? {
            ReserveAnswer::Over(over) => i64::MAX - over.left,
            ReserveAnswer::Reserved => 0,
        })
    }
}

/// A grant without its uses, as it is when it was just made.
pub(super) fn plain(kept: &Kept) -> Grant {
    let kept = kept.clone();
    Grant {
        id: kept.id,
        state: match kept.revoked {
            Some(_) => GrantState::Revoked,
            None => GrantState::Active,
        },
        user_id: kept.user_id,
        to: kept.to,
        tools: kept.tools.into_iter().map(|tool| tool.name).collect(),
        when: kept.when,
        calls: kept.calls,
        amount: kept.amount,
        until: kept.until.to_string(),
        parent: kept.parent,
        used: GrantUse::default(),
        made_by: kept.made_by,
        made_at: kept.made_at.to_string(),
        evidence: kept.link.id,
        revoked: kept.revoked,
    }
}

/// The state that says more about why a grant covers nothing.
fn graver(one: GrantState, other: GrantState) -> GrantState {
    let rank = |state: GrantState| match state {
        GrantState::Active => 0,
        GrantState::UsedUp => 1,
        GrantState::Ended => 2,
        GrantState::Revoked => 3,
    };
    if rank(other) > rank(one) { other } else { one }
}

/// True if a principal may see a grant of a user whom it may see.
fn is_seen(grant: &Kept, by: &Principal) -> bool {
    match by.actor.kind {
        ActorType::User | ActorType::System => true,
        ActorType::Agent => grant.to == by.actor,
    }
}

fn is_older(grant: &Kept, wanted: &Wanted) -> bool {
    let before = wanted.before.as_ref();
    before.is_none_or(|(at, id)| (grant.made_at, &grant.id) < (*at, id))
}

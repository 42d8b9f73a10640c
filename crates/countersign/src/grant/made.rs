//! Making and revoking grants. Both are one commit with their record.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_contract::evidence::Link;
use countersign_contract::grant::{GrantAmount, GrantRevocation};
use countersign_contract::tool::Confirmation;
use countersign_contract::{Actor, ActorType, Digest, Grant, NewGrant, ToolName, ToolSpec};
use countersign_evidence::seal::UserKey;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::DEPTH_MAX;
use super::error::{Error, Rule};
use super::kept::{AmountPlace, Covered, Kept, Read, VERSION};
use super::list::plain;
use super::record::{self, Deed, Event};
use super::stored::{COLLECTION, GRANTS_MAX, KIND, StoredGrants};
use crate::budget::Currency;
use crate::catalog::Entry;
use crate::consent::{TRIES_MAX, Writing, check_may_decide, is_id, is_reason, unit};
use crate::ledger::ShapeRead;
use crate::principal::Principal;
use crate::realm::normalized;
use crate::state::document::Stamp;

/// Maximum number of tools of a grant.
const TOOLS_MAX: usize = 32;

/// Maximum length of a grant's time.
const LASTS_MAX: SignedDuration = SignedDuration::from_hours(366 * 24);

/// Maximum number of grants that are put away when one is made, because their time is over.
const PUT_AWAY_MAX: usize = 16;

impl StoredGrants {
    /// Makes a grant. `by` is the proved principal: the user, or who may answer for them. Grant and record are one commit.
    pub async fn make(&self, by: &Principal, new: &NewGrant) -> Result<Grant, Error> {
        let user_id = new.user_id.as_deref().unwrap_or(&by.user_id);
        let user_id = normalized(user_id).ok_or_else(|| Error::invalid("/user_id", Rule::User))?;
        check_may_decide(by, &user_id)?;
        let draft = self.checked(by, new, &user_id)?;
        let keys = self.vault.key(&user_id).await?;
        for _ in 0..TRIES_MAX {
            if let Some(made) = self.try_make(draft.clone(), &keys).await? {
                return Ok(self.shown(&made, &keys).await?);
            }
        }
        Err(KIND.busy().into())
    }

    /// Revokes a grant, and with it all that are derived from it. One that was revoked before stays as it is.
    pub async fn revoke(
        &self,
        id: &str,
        by: &Principal,
        reason: Option<&str>,
    ) -> Result<Grant, Error> {
        let reason = reason.filter(|reason| !reason.is_empty());
        if !reason.is_none_or(is_reason) {
            return Err(Error::Reason);
        }
        for _ in 0..TRIES_MAX {
            let (grant, keys) = self.visible(id, by).await?;
            check_may_decide(by, &grant.kept.user_id)?;
            if grant.kept.revoked.is_some() {
                return Ok(self.shown(&grant.kept, &keys).await?);
            }
            if let Some(revoked) = self.try_revoke(grant, by, reason, &keys).await? {
                return Ok(self.shown(&revoked, &keys).await?);
            }
        }
        Err(KIND.busy().into())
    }

    /// Checks everything of a new grant that does not depend on others.
    fn checked(&self, by: &Principal, new: &NewGrant, user_id: &str) -> Result<Kept, Error> {
        let to = match new.to.kind {
            ActorType::Agent | ActorType::System => normalized(&new.to.id),
            ActorType::User => None,
        };
        let id = to.ok_or_else(|| Error::invalid("/to", Rule::Agent))?;
        let at = self.clock.now();
        let until = new.until.parse::<Timestamp>().ok();
        let last = at.checked_add(LASTS_MAX).unwrap_or(Timestamp::MAX);
        let until = until.filter(|until| *until > at && *until <= last);
        let until = until.ok_or_else(|| Error::invalid("/until", Rule::Until))?;
        if new.calls == Some(0) {
            return Err(Error::invalid("/calls", Rule::Calls));
        }
        let entries = self.entries(new)?;
        let amount = new.amount.as_ref().map(checked_amount).transpose()?;
        let mut tools = Vec::with_capacity(entries.len());
        for entry in &entries {
            tools.push(Covered {
                name: entry.name().clone(),
                definition: entry.digest(),
                amount: match &amount {
                    Some(amount) => Some(self.amount_place(amount, entry.spec())?),
                    None => None,
                },
            });
        }
        if let Some(when) = &new.when {
            let specs: Vec<&ToolSpec> = entries.iter().map(|entry| entry.spec()).collect();
            let language = self.language.as_ref();
            let language = language.ok_or_else(|| Error::invalid("/when", Rule::NoLanguage))?;
            let read = language.read(when, &specs);
            read.map_err(|wrong| Error::Condition { wrong })?;
        }
        Ok(Kept {
            v: VERSION,
            id: self.ids.grant_id(),
            user_id: user_id.to_owned(),
            to: Actor {
                kind: new.to.kind,
                id,
            },
            tools,
            when: new.when.clone(),
            calls: new.calls,
            amount,
            until,
            parent: new.parent.clone(),
            made_by: by.actor.clone(),
            made_at: at,
            // The record of its making replaces the digest.
            link: Link::rests_on(self.ids.snapshot_id(), Digest([0; 32])),
            revoked: None,
        })
    }

    /// The place of the amount in the arguments of a tool: as the grant says, or as the tool declares its terms. If the grant
    /// names no currency, the one that the tool declares beside the amount counts.
    fn amount_place(&self, amount: &GrantAmount, tool: &ToolSpec) -> Result<AmountPlace, Error> {
        let unusable = || Error::invalid("/amount/at", Rule::AmountAt);
        let language = self.language.as_ref();
        let beside = |at: &str| language.and_then(|it| it.currency_beside(tool, at));
        let place = match (&amount.at, &tool.behaviour.confirmation) {
            (Some(at), _) => AmountPlace {
                at: at.clone(),
                currency_at: amount.currency_at.clone().or_else(|| beside(at)),
                unit: amount.unit,
            },
            (None, Confirmation::Terms(terms)) => AmountPlace {
                at: terms.ceiling.amount.clone(),
                currency_at: Some(terms.ceiling.currency.clone()),
                unit: terms.ceiling.unit,
            },
            (None, Confirmation::Never | Confirmation::Always) => return Err(unusable()),
        };
        let has = |pointer: &String| {
            let is_whole = language.is_none_or(|language| language.has(tool, pointer));
            is_whole && has_parameter(tool, pointer)
        };
        let mut pointers = std::iter::once(&place.at).chain(&place.currency_at);
        if !pointers.all(has) {
            return Err(unusable());
        }
        Ok(place)
    }

    /// The tools of a new grant.
    fn entries(&self, new: &NewGrant) -> Result<Vec<Arc<Entry>>, Error> {
        let names: BTreeSet<&str> = new.tools.iter().map(ToolName::as_str).collect();
        let is_fine = names.len() == new.tools.len() && (1..=TOOLS_MAX).contains(&names.len());
        if !is_fine {
            return Err(Error::invalid("/tools", Rule::Tools));
        }
        let find = |(index, name): (usize, &ToolName)| {
            let catalog = self.catalog.as_ref();
            let entry = catalog.and_then(|catalog| catalog.get(name.as_str()));
            let entry = entry.filter(|entry| entry.name() == name);
            entry.ok_or_else(|| Error::invalid(format!("/tools/{index}"), Rule::Tool))
        };
        new.tools.iter().enumerate().map(find).collect()
    }

    /// Writes a new grant. `None` if other grants of the user changed meanwhile.
    async fn try_make(&self, grant: Kept, keys: &UserKey) -> Result<Option<Kept>, Error> {
        let user_id = grant.user_id.clone();
        let now = self.believed_now().await?;
        let mut parents = Vec::new();
        if let Some(parent) = &grant.parent {
            let chain = self.parents(&user_id, parent, keys, now).await?;
            check_is_narrower(&grant, &chain)?;
            // One that is revoked in this moment must not get a child.
            parents.extend(chain.iter().map(Read::read));
        }
        let given = self
            .given_to(&user_id, &grant.to, keys, GRANTS_MAX + PUT_AWAY_MAX)
            .await?;
        let shape = ShapeRead {
            user_id: user_id.clone(),
            collection: COLLECTION.to_owned(),
            shape: given.shape,
        };
        let (over, open): (Vec<Read>, Vec<Read>) = given
            .reads
            .into_iter()
            .partition(|read| now >= read.kept.until);
        let over: Vec<Read> = over.into_iter().take(PUT_AWAY_MAX).collect();
        if open.len() >= GRANTS_MAX {
            return Err(Error::TooMany { most: GRANTS_MAX });
        }
        let record_id = grant.link.id.clone();
        let shown = plain(&grant);
        let mut writings = vec![self.shelf().owner(&grant.id, &grant.place()).await?];
        writings.extend(over.iter().map(|read| {
            let Read { kept, version } = read;
            kept.write(keys, *version, false, &*self.ids)
        }));
        let mut stamps = Writing::stamps(&writings);
        stamps.push(Stamp::to_come(keys, &grant.place(), 0));
        let (entry, link) = record::entry(&Deed {
            event: Event::Granted,
            grant: &shown,
            by: &grant.made_by,
            reason: None,
            at: grant.made_at,
            id: record_id,
            keys,
            ids: &*self.ids,
            retention: &self.retention,
            stamps: &stamps,
        });
        let grant = Kept { link, ..grant };
        writings.push(grant.write(keys, 0, true, &*self.ids));
        let mut commit = unit(writings, entry);
        // A parent that is over is refused above, so no document is read twice.
        commit.reads.extend(parents);
        commit.shapes.push(shape);
        let is_made = self.shelf().commit(&user_id, commit).await?;
        Ok(is_made.then_some(grant))
    }

    /// The parent of a new grant and all that it is derived from, if they are in force.
    async fn parents(
        &self,
        user_id: &str,
        parent: &str,
        keys: &UserKey,
        now: Timestamp,
    ) -> Result<Vec<Read>, Error> {
        let unusable = || Error::invalid("/parent", Rule::Parent);
        if !is_id(parent) {
            return Err(unusable());
        }
        let parent = self.read(user_id, parent, keys).await?;
        let chain = self.chain(parent.ok_or_else(unusable)?, keys).await?;
        let is_in_force = |read: &Read| read.kept.revoked.is_none() && now < read.kept.until;
        let chain = chain.filter(|chain| chain.len() < DEPTH_MAX && chain.iter().all(is_in_force));
        chain.ok_or_else(unusable)
    }

    /// Writes a revocation. `None` if another was faster.
    async fn try_revoke(
        &self,
        grant: Read,
        by: &Principal,
        reason: Option<&str>,
        keys: &UserKey,
    ) -> Result<Option<Kept>, Error> {
        let Read { kept, version } = grant;
        let (at, id) = (self.clock.now(), self.ids.snapshot_id());
        let revoked = Kept {
            revoked: Some(GrantRevocation {
                by: by.actor.clone(),
                at: at.to_string(),
                reason: reason.map(str::to_owned),
                evidence: id.clone(),
            }),
            ..kept
        };
        let shown = plain(&revoked);
        let writing = revoked.write(keys, version, false, &*self.ids);
        let (entry, _) = record::entry(&Deed {
            event: Event::Revoked,
            grant: &shown,
            by: &by.actor,
            reason,
            at,
            id,
            keys,
            ids: &*self.ids,
            retention: &self.retention,
            stamps: &Writing::stamps([&writing]),
        });
        let commit = unit([writing], entry);
        let is_done = self.shelf().commit(&revoked.user_id, commit).await?;
        Ok(is_done.then_some(revoked))
    }
}

/// Refuses a grant that would allow more than one of those that it is derived from. Its condition is not compared: theirs
/// have to hold as well.
fn check_is_narrower(grant: &Kept, chain: &[Read]) -> Result<(), Error> {
    for Read { kept: parent, .. } in chain {
        let has = |tool: &Covered| parent.covers(&tool.name, tool.definition).is_some();
        let is_more = |own: Option<u32>, most: Option<u32>| {
            own.is_some_and(|own| most.is_some_and(|most| own > most))
        };
        let is_wider_amount = match (grant.limit(), parent.limit()) {
            (Some((own, currency)), Some((most, other))) => own > most || currency != other,
            (Some(_) | None, None) | (None, Some(_)) => false,
        };
        let field = if !grant.tools.iter().all(has) {
            "/tools"
        } else if grant.until > parent.until {
            "/until"
        } else if is_more(grant.calls, parent.calls) {
            "/calls"
        } else if is_wider_amount {
            "/amount"
        } else {
            continue;
        };
        return Err(Error::Wider { field });
    }
    Ok(())
}

/// Checks the amount a day.
fn checked_amount(amount: &GrantAmount) -> Result<GrantAmount, Error> {
    let currency = Currency::new(&amount.currency).ok();
    let limit = currency.and_then(|currency| currency.amount(&amount.limit).ok());
    if limit.is_none_or(|limit| limit.minor() <= 0) {
        return Err(Error::invalid("/amount", Rule::Amount));
    }
    Ok(GrantAmount {
        currency: amount.currency.to_ascii_uppercase(),
        ..amount.clone()
    })
}

/// True if a pointer begins with something that a tool may be given. The language of conditions looks at the rest of it.
fn has_parameter(tool: &ToolSpec, pointer: &str) -> bool {
    let Some(rest) = pointer.strip_prefix('/') else {
        return false;
    };
    let first = rest.split('/').next().unwrap_or_default();
    let first = first.replace("~1", "/").replace("~0", "~");
    let schema = tool.input.json_schema();
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    match properties {
        Some(properties) => {
            properties.contains_key(&first) || (!is_closed && properties.is_empty())
        }
        None => !is_closed,
    }
}

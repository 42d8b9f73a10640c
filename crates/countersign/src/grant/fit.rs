//! The grants that cover a call.

use std::sync::{Arc, PoisonError};

use countersign_contract::evidence::Link;
use countersign_contract::{Actor, Digest, ToolName};
use countersign_evidence::seal::UserKey;
use jiff::Timestamp;
use serde_json::Value;

use super::kept::{Kept, Read};
use super::stored::{GRANTS_MAX, StoredGrants};
use crate::authorize::{Clause, Facts};
use crate::budget::{Call, Plan};
use crate::ledger::{DocumentRead, Draw, Error};

/// Maximum number of conditions that stay read.
const CLAUSES_MAX: usize = 1024;

/// A call that has to be confirmed.
pub(crate) struct Sought<'a> {
    pub(crate) user_id: &'a str,
    /// The actor whose credential proves the call.
    pub(crate) principal: &'a Actor,
    pub(crate) keys: &'a UserKey,
    pub(crate) tool: &'a ToolName,
    pub(crate) definition: Digest,
    pub(crate) currency: Option<&'a str>,
    /// The bound arguments, with defaults.
    pub(crate) arguments: &'a Value,
    /// The same call, as conditions look at it.
    pub(crate) facts: Facts<'a>,
}

/// A grant that covers a call, as far as its pots have enough.
#[derive(Debug)]
pub(crate) struct Fit {
    pub(crate) id: String,
    /// The records of its making, and of the making of those that it is derived from.
    pub(crate) links: Vec<Link>,
    /// The documents of all of them, as they were read.
    pub(crate) reads: Vec<DocumentRead>,
    /// One use of each of them, and the amounts.
    pub(crate) draws: Vec<Draw>,
}

impl StoredGrants {
    /// The grants that cover a call, the one that ends first before the others.
    pub(crate) async fn fitting(&self, sought: &Sought<'_>) -> Result<Vec<Fit>, Error> {
        let given = self
            .given_to(sought.user_id, sought.principal, sought.keys, GRANTS_MAX)
            .await?;
        if given.reads.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.believed_now().await?;
        let mut fits = Vec::new();
        for grant in given.reads {
            // Most grants are for other tools, and need no look at what they are derived from.
            if covered(&grant.kept, sought, now).is_none() {
                continue;
            }
            let until = grant.kept.until;
            let Some(chain) = self.chain(grant, sought.keys).await? else {
                continue;
            };
            if let Some(fit) = self.fit(&chain, sought, now) {
                fits.push((until, fit));
            }
        }
        fits.sort_by(|(a, one), (b, other)| (a, &one.id).cmp(&(b, &other.id)));
        Ok(fits.into_iter().map(|(_, fit)| fit).collect())
    }

    /// True if none of these grants was changed: only a revocation changes one.
    pub(crate) async fn are_unchanged(&self, reads: &[DocumentRead]) -> Result<bool, Error> {
        for read in reads {
            if self.store.document(&read.key).await?.version != read.version {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The draws of a call on a grant and on all that it is derived from; `None` if one of them does not cover the call.
    fn fit(&self, chain: &[Read], sought: &Sought<'_>, now: Timestamp) -> Option<Fit> {
        let mut fit = Fit {
            id: chain.first()?.kept.id.clone(),
            links: Vec::new(),
            reads: Vec::new(),
            draws: Vec::new(),
        };
        for grant in chain {
            fit.draws.extend(covered(&grant.kept, sought, now)?);
            if !self.holds(&grant.kept, sought) {
                return None;
            }
            fit.links.push(grant.kept.link.clone());
            fit.reads.push(grant.read());
        }
        Some(fit)
    }

    /// True if the condition of a grant holds. One that cannot be read or decided does not.
    fn holds(&self, grant: &Kept, sought: &Sought<'_>) -> bool {
        let Some(when) = &grant.when else {
            return true;
        };
        let clause = self.clause(when);
        // A name in the envelope opens nothing: the condition has to hold for the proved actor, too.
        let holds = |clause: Arc<dyn Clause>| {
            let mut views = sought.facts.views();
            views.all(|view| clause.holds(&view) == Some(true))
        };
        clause.is_some_and(holds)
    }

    /// A condition, read once; `None` if it cannot be read.
    fn clause(&self, when: &str) -> Option<Arc<dyn Clause>> {
        let language = self.language.as_ref()?;
        let mut clauses = self.clauses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = clauses.get(when) {
            return known.clone();
        }
        // It was checked against the tools when the grant was made, and they are the same.
        let read: Option<Arc<dyn Clause>> = language.read(when, &[]).ok().map(Arc::from);
        if clauses.len() >= CLAUSES_MAX {
            clauses.clear();
        }
        clauses.insert(when.to_owned(), read.clone());
        read
    }
}

/// The draws of a call on one grant; `None` if the grant is not in force, or does not cover the tool or its amount.
fn covered(grant: &Kept, sought: &Sought<'_>, now: Timestamp) -> Option<Vec<Draw>> {
    if grant.revoked.is_some() || now >= grant.until {
        return None;
    }
    grant.covers(sought.tool, sought.definition)?;
    let mut draws = vec![grant.use_draw()];
    if grant.amount.is_some() {
        let budget = grant.budget(sought.tool)?;
        let call = Call {
            user_id: sought.user_id,
            actor: sought.principal,
            session_id: None,
            currency: sought.currency,
            tool: sought.tool,
            arguments: sought.arguments,
            has_key: true,
            is_read: false,
            keys: sought.keys,
        };
        // An amount that cannot be counted is not covered; the user is asked.
        let drawn_on = budget.tools.iter().map(|amount| (&budget, amount));
        let plan = Plan::of(&call, drawn_on).ok()??;
        draws.extend(plan.draws);
    }
    Some(draws)
}

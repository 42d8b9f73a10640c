//! How many there are, and who holds them: one shared document for each thing, so that calls about different
//! things do not wait for each other, and calls about the same thing cannot both take the last one.
//!
//! How many there are says the shop; only what is held is kept here. Nothing personal is in it: a lock is named by
//! its own id, and only its owner knows that.

use countersign::contract::{ConflictReason, ErrorCode};
use countersign::state::Collection;
use countersign::{CallContext, ToolError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shop::Variant;
use crate::words::Say;

const STOCK: Collection = Collection::shared("stock");

/// How many there are of one thing, and who holds some of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stock {
    /// In the warehouse, held or not: as the shop says now, so that it can be filled up.
    #[serde(skip)]
    pub on_hand: u32,
    /// Held for somebody; those that have expired count for nothing.
    pub locks: Vec<Lock>,
}

/// Some of a thing, held for a draft order until a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Its name.
    pub lock_id: String,
    /// How many.
    pub quantity: u32,
    /// When it ends by itself.
    pub expires_at: Timestamp,
}

/// So many of a thing, wanted at this JSON pointer of the arguments.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// What.
    pub sku: &'a str,
    /// How many.
    pub quantity: u32,
    /// The argument that says so.
    pub pointer: &'a str,
}

impl Stock {
    /// What there is of a thing now.
    pub async fn of(ctx: &CallContext, variant: &Variant) -> Result<Self, ToolError> {
        let kept: Option<Self> = ctx.state().get(&STOCK, &variant.sku).await?;
        let mut locks = kept.map(|kept| kept.locks).unwrap_or_default();
        let now = ctx.now();
        locks.retain(|lock| now < lock.expires_at);
        Ok(Self {
            on_hand: variant.stock,
            locks,
        })
    }

    /// How many can still be had.
    pub fn available(&self) -> u32 {
        self.on_hand.saturating_sub(self.held())
    }

    /// Gives back what these locks hold.
    pub fn release(&mut self, lock_ids: &[&str]) {
        let is_held = |lock: &Lock| !lock_ids.contains(&lock.lock_id.as_str());
        self.locks.retain(is_held);
    }

    /// Keeps it with the call.
    pub async fn keep(&self, ctx: &CallContext, sku: &str) -> Result<(), ToolError> {
        ctx.state().put(&STOCK, sku, self).await
    }

    /// Whether so many can be had: not where there are too few, and not now where they are held by others, or by
    /// these locks of the user's own.
    pub fn check(
        &self,
        wanted: Wanted<'_>,
        now: Timestamp,
        own_ids: &[&str],
    ) -> Result<(), ToolError> {
        let Wanted { sku, quantity, .. } = wanted;
        let available = self.available();
        if quantity <= available {
            return Ok(());
        }
        let with = |error: ToolError| {
            error
                .field(wanted.pointer)
                .detail("sku", sku)
                .detail("requested", quantity)
                .detail("available", available)
        };
        if quantity > self.on_hand {
            let message = Say::OutOfStock {
                quantity: quantity.to_string(),
                sku: sku.to_owned(),
                available: available.to_string(),
            };
            let error = ToolError::new(ErrorCode::OutOfStock, message);
            return Err(with(error.hint(Say::TakeFewerOrSearch)));
        }
        let mut without_own = self.clone();
        without_own.release(own_ids);
        let own = self.held().saturating_sub(without_own.held());
        let (count, sku) = (quantity.to_string(), sku.to_owned());
        let (message, hint) = if quantity <= without_own.available() {
            let message = Say::HeldByOwn {
                quantity: count,
                sku,
            };
            (message, Say::PayOther)
        } else {
            let message = Say::HeldByOthers {
                quantity: count,
                sku,
            };
            (message, Say::WaitOrFewer)
        };
        let mut body = ToolError::conflict(ConflictReason::Stock, message)
            .body()
            .clone();
        let wait = self.free_at(quantity).map(|at| at.duration_since(now));
        body.details.retry_after_ms = wait.and_then(|wait| u64::try_from(wait.as_millis()).ok());
        Err(with(ToolError::from(body).hint(hint)).detail("held_by_user", own))
    }

    /// When so many are free, if nobody else comes first: one lock ends after the other.
    fn free_at(&self, quantity: u32) -> Option<Timestamp> {
        let mut locks: Vec<&Lock> = self.locks.iter().collect();
        locks.sort_by_key(|lock| lock.expires_at);
        let mut held = self.held();
        let ends = locks.into_iter().find(|lock| {
            held = held.saturating_sub(lock.quantity);
            self.on_hand.saturating_sub(held) >= quantity
        });
        ends.map(|lock| lock.expires_at)
    }

    fn held(&self) -> u32 {
        let held = self.locks.iter().map(|lock| lock.quantity);
        held.fold(0, u32::saturating_add)
    }
}

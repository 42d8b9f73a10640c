//! Stock and its locks: one shared document for each SKU, so that calls about different items do not wait for each
//! other, and two calls about the same item cannot both take the last one.
//!
//! The shop gives the quantity on hand; only the locks are stored here. Nothing personal is in them: a lock has only
//! its own id, which only its owner knows.

use countersign::contract::{ConflictReason, ErrorCode};
use countersign::state::Collection;
use countersign::{CallContext, ToolError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shop::Variant;
use crate::words::Say;

const STOCK: Collection = Collection::shared("stock");

/// The quantity of one item on hand, and the locks on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stock {
    /// The quantity in the warehouse, locked or not. It is read from the shop each time, so that it can be restocked.
    #[serde(skip)]
    pub on_hand: u32,
    /// The locks; expired ones do not count.
    pub locks: Vec<Lock>,
}

/// A quantity of an item, locked for a draft order until a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// The id of the lock.
    pub lock_id: String,
    /// The locked quantity.
    pub quantity: u32,
    /// The time at which it expires.
    pub expires_at: Timestamp,
}

/// A wanted quantity of an item, with the JSON pointer of the argument.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The SKU.
    pub sku: &'a str,
    /// The quantity.
    pub quantity: u32,
    /// The JSON pointer of the argument that asks for it.
    pub pointer: &'a str,
}

impl Stock {
    /// Reads the current stock of an item, without expired locks.
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

    /// The quantity that is not locked.
    pub fn available(&self) -> u32 {
        self.on_hand.saturating_sub(self.held())
    }

    /// Releases these locks.
    pub fn release(&mut self, lock_ids: &[&str]) {
        let is_held = |lock: &Lock| !lock_ids.contains(&lock.lock_id.as_str());
        self.locks.retain(is_held);
    }

    /// Stores the locks with the call.
    pub async fn keep(&self, ctx: &CallContext, sku: &str) -> Result<(), ToolError> {
        ctx.state().put(&STOCK, sku, self).await
    }

    /// Checks that this quantity is available. It is out of stock if there are too few on hand, and a conflict if
    /// others, or these locks of the same user, hold it at the moment.
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

    /// The time at which this quantity becomes available as locks expire, if no other call takes it first.
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

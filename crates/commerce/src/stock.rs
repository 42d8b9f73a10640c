//! How many there are, and who holds them: one shared document for each thing, so that calls about different
//! things do not wait for each other, and calls about the same thing cannot both take the last one.
//!
//! Nothing personal is in it: a lock is named by its own id, and only its owner knows that.

use countersign::contract::{ConflictReason, ErrorCode};
use countersign::state::Collection;
use countersign::{CallContext, ToolError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shop::Variant;

const STOCK: Collection = Collection::shared("stock");

/// How many there are of one thing, and who holds some of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stock {
    /// In the warehouse, held or not.
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

impl Stock {
    /// What there is of a thing now.
    pub async fn of(ctx: &CallContext, variant: &Variant) -> Result<Self, ToolError> {
        let kept: Option<Self> = ctx.state().get(&STOCK, &variant.sku).await?;
        let mut stock = kept.unwrap_or_else(|| Self {
            on_hand: variant.stock,
            locks: Vec::new(),
        });
        let now = ctx.now();
        stock.locks.retain(|lock| now < lock.expires_at);
        Ok(stock)
    }

    /// How many can still be had.
    pub fn available(&self) -> u32 {
        let held = self.locks.iter().map(|lock| lock.quantity);
        self.on_hand
            .saturating_sub(held.fold(0, u32::saturating_add))
    }

    /// Keeps it with the call.
    pub async fn keep(&self, ctx: &CallContext, sku: &str) -> Result<(), ToolError> {
        ctx.state().put(&STOCK, sku, self).await
    }

    /// Whether so many can be had, at this JSON pointer of the arguments: not where there are too few, and not
    /// now where others hold them.
    pub fn check(
        &self,
        sku: &str,
        quantity: u32,
        now: Timestamp,
        pointer: &str,
    ) -> Result<(), ToolError> {
        let available = self.available();
        if quantity <= available {
            return Ok(());
        }
        let with = |error: ToolError| {
            error
                .field(pointer)
                .detail("sku", sku)
                .detail("requested", quantity)
                .detail("available", available)
        };
        if quantity > self.on_hand {
            let message = format!("{quantity} of {sku} are wanted, {available} are there");
            let error = ToolError::new(ErrorCode::OutOfStock, message);
            return Err(with(
                error.hint("take fewer, or catalog.search_offers for something alike"),
            ));
        }
        let message = format!("{quantity} of {sku} are wanted, and others hold some of them now");
        let mut body = ToolError::conflict(ConflictReason::Stock, message)
            .body()
            .clone();
        let free_at = self.locks.iter().map(|lock| lock.expires_at).min();
        let wait = free_at.map(|at| at.duration_since(now).as_millis());
        body.details.retry_after_ms = wait.and_then(|wait| u64::try_from(wait).ok());
        Err(with(
            ToolError::from(body).hint("try again when a lock has ended, or take fewer"),
        ))
    }
}

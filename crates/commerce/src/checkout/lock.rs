//! `checkout.lock_price_and_stock`: locks all items of a draft order for a while, or none of them. The price is part of
//! the order, and is valid until the lock ends.

use countersign::contract::Behaviour;
use countersign::{CallContext, DryRun, Tool, ToolArgs, ToolError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gate;
use super::order::{Kept, OrderLock};
use super::own::OwnLocks;
use crate::behaviour::{self, LOCK_SECONDS};
use crate::id::Id;
use crate::money::Money;
use crate::shop::Shop;
use crate::stock::{Lock, Stock, Wanted};

/// Locked items and price, with their expiry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Locked {
    /// Id of the draft order.
    pub draft_order_id: String,
    /// Id of the lock; it stays the same while the lock is valid.
    pub lock_id: String,
    /// Expiry of the lock. After it, other buyers can order the items.
    pub expires_at: Timestamp,
    /// Locked items.
    pub items: Vec<LockedItem>,
    /// Locked total, even if prices change.
    pub total: Money,
}

/// A locked item and its quantity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct LockedItem {
    /// Stock keeping unit.
    pub sku: String,
    /// Quantity.
    pub quantity: u32,
}

/// The tool.
pub(super) struct LockPriceAndStock;

/// Arguments.
#[derive(Deserialize, ToolArgs)]
pub(super) struct LockArgs {
    /// `draft_order_id` from `checkout.create_draft_order`.
    #[arg(example = "order_0123456789abcdef")]
    draft_order_id: Id,
}

impl Tool for LockPriceAndStock {
    const NAME: &'static str = "checkout.lock_price_and_stock";
    const DESCRIPTION: &'static str = "Locks the price and all items of a draft order for at most 15 minutes. While the lock is valid, \
        another call returns the same lock.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = LockArgs;
    type Output = Locked;

    // No key is derived: the same call is the same lock only until that one expires.
    fn behaviour() -> Behaviour {
        Behaviour {
            ttl_seconds: Some(LOCK_SECONDS),
            ..behaviour::add()
        }
    }

    async fn call(&self, ctx: &CallContext, args: LockArgs) -> Result<Locked, ToolError> {
        let now = ctx.now();
        let mut kept = Kept::of(ctx, &args.draft_order_id).await?;
        kept.check_valid(ctx).await?;
        let lock = if let Some(lock) = kept.held(now) {
            lock.clone()
        } else {
            let lock = OrderLock {
                lock_id: ctx.new_id("lock_"),
                expires_at: behaviour::later(ctx, LOCK_SECONDS).min(kept.order.expires_at),
            };
            hold(ctx, &kept, &lock).await?;
            kept.lock = Some(lock.clone());
            kept.keep(ctx).await?;
            lock
        };
        let left = lock.expires_at.duration_since(now).as_secs();
        ctx.fresh_for(u32::try_from(left).unwrap_or_default());
        let items = kept.order.items.iter().map(|item| LockedItem {
            sku: item.sku.clone(),
            quantity: item.quantity,
        });
        Ok(Locked {
            lock_id: lock.lock_id,
            expires_at: lock.expires_at,
            items: items.collect(),
            total: kept.order.pricing_breakdown.total.clone(),
            draft_order_id: args.draft_order_id.into(),
        })
    }
}

/// Locks the whole order. If an item is not available, the call fails and nothing is committed: the locks of an older
/// draft order of the same cart are released together with this lock, or not at all.
async fn hold(ctx: &CallContext, kept: &Kept, lock: &OrderLock) -> Result<(), ToolError> {
    let shop = Shop::of(ctx)?;
    let mut own = OwnLocks::of(ctx).await?;
    own.give_back(ctx, &shop, kept).await?;
    let pointer = "/draft_order_id";
    for item in &kept.order.items {
        let (offer, variant) = shop.known(&item.sku, pointer)?;
        let mut stock = Stock::of(ctx, variant).await?;
        let wanted = Wanted {
            sku: &item.sku,
            quantity: item.quantity,
            pointer,
        };
        if let Err(error) = stock.check(wanted, ctx.now(), &own.ids()) {
            let short = (offer, variant);
            return Err(gate::with_alternatives(ctx, &shop, short, item.quantity, error).await?);
        }
        stock.locks.push(Lock {
            lock_id: lock.lock_id.clone(),
            quantity: item.quantity,
            expires_at: lock.expires_at,
        });
        stock.keep(ctx, &item.sku).await?;
    }
    own.remember(ctx, kept, lock).await
}

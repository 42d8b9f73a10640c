//! The current locks of a user: one for each cart. A cart is bought once, so the lock of an older draft order of it is
//! released when a newer one is locked.

use countersign::state::Collection;
use countersign::{CallContext, ToolError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::order::{Kept, OrderLock};
use crate::shop::Shop;
use crate::stock::Stock;

/// The locks of a user, in one document.
const OWN_LOCKS: Collection = Collection::of_user("own_lock");
const DOCUMENT: &str = "held";

/// The maximum number of locks that are tracked. A lock beyond it stays valid until it expires.
const OWN_LOCKS_MAX: usize = 64;

/// The locks that a user holds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct OwnLocks(Vec<OwnLock>);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct OwnLock {
    cart_id: String,
    draft_order_id: String,
    lock_id: String,
    expires_at: Timestamp,
}

impl OwnLocks {
    /// Reads the locks that have not expired.
    pub(super) async fn of(ctx: &CallContext) -> Result<Self, ToolError> {
        let kept: Option<Self> = ctx.state().get(&OWN_LOCKS, DOCUMENT).await?;
        let mut own = kept.unwrap_or_default();
        let now = ctx.now();
        own.0.retain(|lock| now < lock.expires_at);
        Ok(own)
    }

    /// The ids of the locks of this cart.
    pub(super) fn of_cart<'a>(&'a self, cart_id: &str) -> Vec<&'a str> {
        let of_cart = self.0.iter().filter(|lock| lock.cart_id == cart_id);
        of_cart.map(|lock| lock.lock_id.as_str()).collect()
    }

    /// The ids of all locks.
    pub(super) fn ids(&self) -> Vec<&str> {
        self.0.iter().map(|lock| lock.lock_id.as_str()).collect()
    }

    /// Releases the locks of other draft orders of this order's cart.
    pub(super) async fn give_back(
        &mut self,
        ctx: &CallContext,
        shop: &Shop,
        newer: &Kept,
    ) -> Result<(), ToolError> {
        let cart_id = &newer.order.cart_id;
        let (older, others) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|lock| lock.cart_id == *cart_id);
        self.0 = others;
        let older: Vec<OwnLock> = older;
        for lock in older {
            let mut kept = Kept::of(ctx, &lock.draft_order_id).await?;
            for item in &kept.order.items {
                // An item that is no longer sold cannot be bought, so its lock need not be released.
                if let Some((_, variant)) = shop.variant(&item.sku) {
                    let mut stock = Stock::of(ctx, variant).await?;
                    stock.release(&[&lock.lock_id]);
                    stock.keep(ctx, &item.sku).await?;
                }
            }
            kept.lock = None;
            kept.keep(ctx).await?;
        }
        Ok(())
    }

    /// Tracks a new lock, with the call.
    pub(super) async fn remember(
        &mut self,
        ctx: &CallContext,
        kept: &Kept,
        lock: &OrderLock,
    ) -> Result<(), ToolError> {
        self.0.push(OwnLock {
            cart_id: kept.order.cart_id.clone(),
            draft_order_id: kept.order.draft_order_id.clone(),
            lock_id: lock.lock_id.clone(),
            expires_at: lock.expires_at,
        });
        let surplus = self.0.len().saturating_sub(OWN_LOCKS_MAX);
        self.0.drain(..surplus);
        ctx.state().put(&OWN_LOCKS, DOCUMENT, self).await
    }
}

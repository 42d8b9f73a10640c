//! Carts: the items that a user means to buy, and the shipping option. A cart has no prices; those come from answers
//! with a TTL about exactly the items in the cart.

use countersign::catalog::CatalogBuilder;
use countersign::contract::SnapshotId;
use countersign::state::Collection;
use countersign::{CallContext, ToolError};
use serde::{Deserialize, Serialize};

use crate::destination::Destination;
use crate::item::Basket;
use crate::words::Say;

mod change;
mod view;

pub use view::{CartLine, CartView, ChosenShipping};

/// The carts, kept for each user; no other user can find them.
const CARTS: Collection = Collection::of_user("cart");

/// A cart, as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cart {
    /// Version, incremented by each change, so that an answer about an earlier cart is recognised.
    pub version: u64,
    /// The only currency that the total may be in; `None` if the cart was created without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The items.
    pub basket: Basket,
    /// The shipping option; `None` until one is selected. A change of the items clears it, because its price was for
    /// the earlier items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipping: Option<Shipping>,
}

/// The selected shipping option of a cart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shipping {
    /// The evidence of the answer that offered it.
    pub snapshot_id: SnapshotId,
    /// The selected option of that answer.
    pub option_id: String,
    /// The destination.
    pub destination: Destination,
    /// The user's address that it goes to; `None` if only a destination is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_id: Option<String>,
}

impl Cart {
    /// Reads the cart of this user that the argument `cart_id` names. Another user's cart is answered exactly like a
    /// missing one.
    pub async fn of(ctx: &CallContext, cart_id: &str) -> Result<Self, ToolError> {
        let kept = ctx.state().get(&CARTS, cart_id).await?;
        kept.ok_or_else(|| {
            let cart_id = cart_id.to_owned();
            ToolError::not_found(Say::NoCart { cart_id })
                .field("/cart_id")
                .hint(Say::CreateCart)
        })
    }

    /// Stores the cart with the call, as a new version.
    pub async fn keep(&mut self, ctx: &CallContext, cart_id: &str) -> Result<(), ToolError> {
        self.version = self.version.saturating_add(1);
        ctx.state().put(&CARTS, cart_id, self).await
    }

    /// Changes the items and clears the shipping option, which has to be selected again.
    fn refill(&mut self, change: impl FnOnce(&mut Basket)) {
        change(&mut self.basket);
        self.shipping = None;
    }
}

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
        .tool(change::Create)
        .tool(change::AddItem)
        .tool(change::UpdateQuantity)
        .tool(change::RemoveItem)
        .tool(view::Get)
}

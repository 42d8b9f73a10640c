//! Carts: what a user means to buy, and by which way it goes. A cart holds no prices; those come from answers
//! with a window, about exactly what is in the cart.

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

/// Each user has their own; nobody else finds them.
const CARTS: Collection = Collection::of_user("cart");

/// A cart, as it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cart {
    /// Rises with each change, so that an answer about an earlier cart can be told from one about this.
    pub version: u64,
    /// The only currency that its total may be in, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// What is in it.
    pub basket: Basket,
    /// How it goes, once that was chosen. A change of the items drops it: the price was for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipping: Option<Shipping>,
}

/// How the items of a cart go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shipping {
    /// The evidence of the answer that offered it.
    pub snapshot_id: SnapshotId,
    /// Which of the ways that it offered.
    pub option_id: String,
    /// Where it goes.
    pub destination: Destination,
    /// The address of the user that it goes to, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_id: Option<String>,
}

impl Cart {
    /// The cart of this user that the argument `cart_id` names. Whether another user has it is not said.
    pub async fn of(ctx: &CallContext, cart_id: &str) -> Result<Self, ToolError> {
        let kept = ctx.state().get(&CARTS, cart_id).await?;
        kept.ok_or_else(|| {
            let cart_id = cart_id.to_owned();
            ToolError::not_found(Say::NoCart { cart_id })
                .field("/cart_id")
                .hint(Say::CreateCart)
        })
    }

    /// Keeps it with the call, as a new version.
    pub async fn keep(&mut self, ctx: &CallContext, cart_id: &str) -> Result<(), ToolError> {
        self.version = self.version.saturating_add(1);
        ctx.state().put(&CARTS, cart_id, self).await
    }

    /// Changes what is in it; how that goes has to be chosen anew.
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

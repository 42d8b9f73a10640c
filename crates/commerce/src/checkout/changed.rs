//! `PRICE_CHANGED`: the refusal of an order whose promised cost is not valid any more. It names the changed parts and
//! their current cost, so that the user can be shown both.

use countersign::contract::ErrorCode;
use countersign::{CallContext, ToolError};
use serde_json::{Value, json};

use super::again::{Again, Wanted};
use super::grounds::Grounds;
use super::order::DraftOrder;
use super::part::Part;
use super::total::Breakdown;
use crate::cart::Cart;
use crate::pricing::QuoteLine;
use crate::words::Say;

/// The promised cost of an order, and its changes.
pub(super) struct Changed<'a> {
    old: &'a Breakdown,
    lines: &'a [QuoteLine],
    /// The current cost of the current cart; `None` if no shipping option is selected.
    now: Option<Result<Again, ToolError>>,
    expired: Vec<Part>,
    moved: Vec<Part>,
}

impl<'a> Changed<'a> {
    /// Computes the current cost of the cart.
    pub(super) fn of(
        ctx: &CallContext,
        cart: &Cart,
        old: &'a Breakdown,
        grounds: &'a Grounds,
    ) -> Self {
        let now = cart.shipping.as_ref().map(|chosen| {
            let wanted = Wanted {
                basket: &cart.basket,
                currency: &old.total.currency,
                destination: &chosen.destination,
                option_id: &chosen.option_id,
                incoterm: grounds.tax.answer.incoterm,
            };
            Again::of(ctx, &wanted).map_err(|error| error.in_language(ctx.language()))
        });
        Self {
            old,
            lines: &grounds.quote.answer.lines,
            now,
            expired: Vec::new(),
            moved: Vec::new(),
        }
    }

    /// Adds parts whose TTL is over.
    pub(super) fn expired(&mut self, parts: impl IntoIterator<Item = Part>) {
        self.expired.extend(parts);
    }

    /// Adds a part that has changed.
    pub(super) fn moved(&mut self, part: Part) {
        self.moved.push(part);
    }

    /// Adds the parts whose cost has changed. Only useful if the cart is unchanged; otherwise all parts differ.
    pub(super) fn compare(&mut self) {
        let old = self.old;
        let Some(Ok(again)) = &self.now else {
            // If the order is not possible any more, its total has changed too.
            return self.moved.push(Part::Total);
        };
        let new = &again.breakdown;
        let prices = again.priced.moved_since(self.lines);
        let charges =
            |of: &Breakdown| [&of.duty, &of.tax, &of.fees, &of.due_on_delivery].map(Clone::clone);
        let parts = [
            (Part::Quote, old.items == new.items && prices.is_empty()),
            (Part::Shipping, old.shipping == new.shipping),
            (Part::Tax, charges(old) == charges(new)),
        ];
        let moved = parts.into_iter().filter(|(_, is_same)| !is_same);
        self.moved.extend(moved.map(|(part, _)| part));
    }

    /// True if nothing has expired or changed.
    pub(super) fn is_nothing(&self) -> bool {
        self.expired.is_empty() && self.moved.is_empty()
    }

    /// The refusal, at this JSON pointer of the arguments.
    pub(super) fn error(self, pointer: &str) -> ToolError {
        let error = refusal(self.old, self.now.as_ref(), pointer)
            .detail("expired", json!(self.expired))
            .detail("moved", json!(self.moved));
        match self.now {
            Some(Ok(again)) => {
                let prices = again.priced.moved_since(self.lines);
                error.detail("prices", json!(prices))
            }
            Some(Err(_)) | None => error,
        }
    }
}

/// The refusal of an expired order, with its current cost.
pub(super) fn order_expired(ctx: &CallContext, order: &DraftOrder) -> ToolError {
    let now = order.basket().and_then(|basket| {
        let wanted = Wanted {
            basket: &basket,
            currency: &order.pricing_breakdown.total.currency,
            destination: &order.destination,
            option_id: &order.shipping_option_id,
            incoterm: order.tax_summary.incoterm,
        };
        Again::of(ctx, &wanted).map_err(|error| error.in_language(ctx.language()))
    });
    refusal(&order.pricing_breakdown, Some(&now), "/draft_order_id")
        .detail("expired", json!([Part::DraftOrder]))
        .detail("moved", json!([]))
        .detail("expired_at", order.expires_at.to_string())
}

fn refusal(old: &Breakdown, now: Option<&Result<Again, ToolError>>, pointer: &str) -> ToolError {
    let again = now.and_then(|now| now.as_ref().ok());
    let was = &old.total;
    let message = match again.map(|again| &again.breakdown.total) {
        Some(is) if is != was => Say::TotalIsNow {
            was: was.to_string(),
            is: is.to_string(),
        },
        Some(_) => Say::TotalLapsed {
            was: was.to_string(),
        },
        None => Say::TotalGone {
            was: was.to_string(),
        },
    };
    let new = again.map_or(Value::Null, |again| json!(again.breakdown));
    let error = ToolError::new(ErrorCode::PriceChanged, message)
        .field(pointer)
        .hint(Say::AskAgain)
        .detail("old", json!(old))
        .detail("new", new);
    match now {
        Some(Err(reason)) => error.detail("unavailable_because", reason.body().message.as_str()),
        Some(Ok(_)) | None => error,
    }
}

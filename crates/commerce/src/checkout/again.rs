//! The current cost of a cart: the computations of the other areas, repeated with the rules in force.

use countersign::{CallContext, ToolError};

use super::total::{self, Breakdown};
use crate::destination::Destination;
use crate::item::Basket;
use crate::pricing::{self, Priced};
use crate::shipping;
use crate::tax::{self, Incoterm};
use crate::words::Say;

/// The arguments of a repeated computation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) basket: &'a Basket,
    pub(super) currency: &'a str,
    pub(super) destination: &'a Destination,
    pub(super) option_id: &'a str,
    pub(super) incoterm: Incoterm,
}

/// The result of a repeated computation.
#[derive(Debug)]
pub(super) struct Again {
    pub(super) priced: Priced,
    pub(super) breakdown: Breakdown,
}

impl Again {
    /// Computes everything again; an error if the order is not possible any more at any price.
    pub(super) fn of(ctx: &CallContext, wanted: &Wanted<'_>) -> Result<Self, ToolError> {
        let Wanted {
            basket,
            currency,
            destination,
            option_id,
            incoterm,
        } = *wanted;
        let priced = pricing::price(ctx, basket, currency)?;
        let offered = shipping::quote(ctx, basket, destination, currency, None)?;
        let mut options = offered.options.iter();
        let option = options.find(|option| option.option_id == option_id);
        let option = option.ok_or_else(|| {
            ToolError::not_found(Say::NotOffered {
                option_id: option_id.to_owned(),
            })
        })?;
        let tax = tax::again(ctx, &priced, option, destination, incoterm)?;
        let breakdown = total::breakdown(&priced.lines, &priced.subtotal, option, &tax)?;
        Ok(Self { priced, breakdown })
    }
}

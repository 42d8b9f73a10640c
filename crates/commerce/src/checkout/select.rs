//! `checkout.select_shipping_option`: selects the shipping option of a cart.

use countersign::contract::{Behaviour, ErrorCode};
use countersign::{CallContext, DryRun, Tool, ToolArgs, ToolError};
use serde::Deserialize;
use serde_json::json;

use super::address;
use crate::behaviour;
use crate::cart::{Cart, CartView, Shipping};
use crate::ground::{self, EvidenceId, Ground};
use crate::id::Id;
use crate::shipping::{SHIPPING_TOOL, ShippingQuote};
use crate::words::Say;

/// The tool.
pub(super) struct SelectShippingOption;

/// Arguments.
#[derive(Deserialize, ToolArgs)]
#[expect(
    clippy::struct_field_names,
    reason = "these are the names of the arguments"
)]
pub(super) struct SelectArgs {
    /// `cart_id` from `cart.create`.
    #[arg(example = "cart_0123456789abcdef")]
    cart_id: Id,
    /// `evidence.snapshot_id` of `shipping.quote_options` for the items of the cart.
    #[arg(example = "ev_01a1e383-11f7-7cab-a9f3-00c0339b928b")]
    shipping_snapshot_id: EvidenceId,
    /// `option_id` of one of the options in that reply.
    #[arg(
        min_length = 1,
        max_length = 64,
        alias = "option_id",
        example = "halcyon.battery_line"
    )]
    shipping_option_id: String,
    /// `address_id` from `identity.get_user_addresses`, in the country of the options.
    address_id: Option<Id>,
}

impl Tool for SelectShippingOption {
    const NAME: &'static str = "checkout.select_shipping_option";
    const DESCRIPTION: &'static str = "Chooses one of the options of shipping.quote_options for the current items of the cart. A later \
        change of the items removes the choice.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = SelectArgs;
    type Output = CartView;

    fn behaviour() -> Behaviour {
        behaviour::set()
    }

    async fn call(&self, ctx: &CallContext, args: SelectArgs) -> Result<CartView, ToolError> {
        let pointer = "/shipping_snapshot_id";
        let mut cart = Cart::of(ctx, &args.cart_id).await?;
        let offered: Ground<ShippingQuote> =
            ground::read(ctx, pointer, &args.shipping_snapshot_id, SHIPPING_TOOL).await?;
        let quote = &offered.answer;
        let of_cart = quote.cart_id.as_deref();
        if of_cart.is_some_and(|of_cart| of_cart != *args.cart_id) {
            let message = Say::OptionsOfOtherCart;
            return Err(ToolError::invalid(pointer, message).hint(Say::ChooseShipping));
        }
        if quote.basket != cart.basket.digest()? {
            let message = Say::OptionsOfOtherItems;
            return Err(ToolError::invalid(pointer, message).hint(Say::ChooseShipping));
        }
        let mut options = quote.options.iter();
        let option = options.find(|option| option.option_id == args.shipping_option_id);
        let Some(option) = option else {
            let ids = quote.options.iter().map(|option| option.option_id.as_str());
            let ids: Vec<&str> = ids.collect();
            let values = ids.join(", ");
            let option_id = args.shipping_option_id;
            return Err(ToolError::not_found(Say::NoShippingOption { option_id })
                .field("/shipping_option_id")
                .hint(Say::OneOf { values }));
        };
        if !offered.rests(ctx) {
            return Err(ToolError::new(ErrorCode::PriceChanged, Say::QuoteTooOld)
                .field(pointer)
                .hint(Say::ChooseShipping)
                .detail("expired", json!([super::Part::Shipping]))
                .detail("old", json!(option.price)));
        }
        if let Some(address_id) = &args.address_id {
            address::check(ctx, address_id, &quote.destination, "/address_id").await?;
        }
        cart.shipping = Some(Shipping {
            snapshot_id: offered.id.clone(),
            option_id: option.option_id.clone(),
            destination: quote.destination.clone(),
            address_id: args.address_id.map(String::from),
        });
        cart.keep(ctx, &args.cart_id).await?;
        CartView::of(ctx, &args.cart_id, &cart)
    }
}

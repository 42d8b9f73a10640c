//! `pricing.get_realtime_quote`.

use countersign::contract::Behaviour;
use countersign::contract::tool::Replay;
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use jiff::Timestamp;
use serde::Deserialize;

use super::answer::Quote;
use super::price::{Priced, price};
use crate::behaviour::{self, QUOTE_SECONDS};
use crate::fx;
use crate::id::Id;
use crate::item::{Basket, Item};
use crate::money::CurrencyCode;
use crate::shop::Shop;
use crate::words::Say;

/// The tool.
pub(super) struct GetRealtimeQuote;

/// Arguments.
#[derive(Deserialize, ToolArgs)]
pub(super) struct QuoteArgs {
    /// Items to price. Duplicates are added up.
    #[arg(min_items = 1, max_items = 50, example = [{"sku": "SKU-0001-01", "quantity": 2}])]
    items: Vec<Item>,
    /// Currency, such as EUR; by default that of the request, else USD.
    #[arg(example = "EUR")]
    currency: Option<CurrencyCode>,
    /// Id of the cart that the quote is for. It is then valid for that cart only.
    cart_id: Option<Id>,
}

impl Tool for GetRealtimeQuote {
    const NAME: &'static str = super::QUOTE_TOOL;
    const DESCRIPTION: &'static str = "Quotes the current price of items, with promotions, in one currency. Amounts are whole numbers \
        of the smallest unit. A total and a draft order need its evidence.snapshot_id.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = QuoteArgs;
    type Output = Quote;

    fn behaviour() -> Behaviour {
        Behaviour {
            replay: Replay::Pure {
                volatile: vec!["/quote_id".to_owned()],
            },
            ..behaviour::rule(QUOTE_SECONDS)
        }
    }

    async fn call(&self, ctx: &CallContext, args: QuoteArgs) -> Result<Quote, ToolError> {
        let basket = Basket::of(&args.items, "/items")?;
        let shop = Shop::of(ctx)?;
        for (at, item) in args.items.iter().enumerate() {
            shop.known(&item.sku, &format!("/items/{at}/sku"))?;
        }
        let currency = fx::asked(ctx, args.currency.map(|currency| currency.code()));
        let priced = price(ctx, &basket, &currency)?;
        let expires_at = behaviour::later(ctx, QUOTE_SECONDS);
        remark_ends(ctx, &priced, expires_at);
        Ok(Quote {
            quote_id: ctx.new_id("quote_"),
            cart_id: args.cart_id.map(String::from),
            basket: priced.basket,
            currency: priced.currency,
            lines: priced.lines,
            subtotal: priced.subtotal,
            rates: priced.rates,
            expires_at: expires_at.to_string(),
        })
    }
}

/// Adds a remark if a promotion ends before the quote expires, because the price changes then.
fn remark_ends(ctx: &CallContext, priced: &Priced, expires_at: Timestamp) {
    for line in &priced.lines {
        let until = line.promotion.as_ref().map(|promotion| &promotion.until);
        let ends = until.filter(|until| {
            until
                .parse()
                .is_ok_and(|until: Timestamp| until < expires_at)
        });
        if let Some(until) = ends {
            let message = Say::PromotionEnds {
                sku: line.sku.clone(),
                until: until.clone(),
            };
            ctx.remark("PROMOTION_ENDS", message);
        }
    }
}

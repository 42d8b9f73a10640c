//! `catalog.get_offer_variants`.

use std::collections::BTreeMap;

use countersign::contract::Behaviour;
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::card::options;
use crate::fx;
use crate::money::{CurrencyCode, Money};
use crate::pricing::{PriceRules, Pricer};
use crate::shop::{Offer, Variant, means};
use crate::words::Say;

/// The tool.
pub(super) struct GetOfferVariants;

/// Arguments.
#[derive(Deserialize, ToolArgs)]
pub(super) struct VariantsArgs {
    /// `offer_id` from `catalog.search_offers`.
    #[arg(example = "OFR-0003", min_length = 1, max_length = 64)]
    offer_id: String,
    /// Required option values, in English or Chinese, such as {"colour": "navy", "size": "L"}.
    #[arg(example = {"size": "L"})]
    options: Option<BTreeMap<String, String>>,
    /// Currency, such as EUR; by default that of the request, else USD.
    #[arg(example = "EUR")]
    currency: Option<CurrencyCode>,
}

/// The variants of an offer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OfferVariants {
    /// Id of the offer.
    pub offer_id: String,
    /// Title, in the language of the call.
    pub title: String,
    /// Options of the variants, with all values.
    pub options: BTreeMap<String, Vec<String>>,
    /// Matching variants, by name.
    pub variants: Vec<VariantShown>,
}

/// One variant: an item that can be bought.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VariantShown {
    /// Stock keeping unit, the id of the item in all other tools.
    pub sku: String,
    /// Values of its options.
    pub options: BTreeMap<String, String>,
    /// Option values in one line, in the language of the call.
    pub label: String,
    /// List price of one, in the seller's currency, without promotions.
    pub list_price: Money,
    /// Current price of one, in the currency of the answer.
    pub unit_price: Money,
    /// Shipping weight in grams, packing included.
    pub weight_g: u32,
    /// Length, width and height with packing, in millimetres.
    pub dimensions_mm: [u32; 3],
}

impl Tool for GetOfferVariants {
    const NAME: &'static str = "catalog.get_offer_variants";
    const DESCRIPTION: &'static str =
        "Lists the variants of an offer: SKU, current price, weight, size.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = VariantsArgs;
    type Output = OfferVariants;

    fn behaviour() -> Behaviour {
        super::shown()
    }

    async fn call(
        &self,
        ctx: &CallContext,
        args: VariantsArgs,
    ) -> Result<OfferVariants, ToolError> {
        let rules = PriceRules::of(ctx)?;
        let currency = fx::asked(ctx, args.currency.map(|currency| currency.code()));
        let pricer = rules.pricer(ctx, &currency);
        let offer = rules.shop.known_offer(&args.offer_id, "/offer_id")?;
        let options = options(offer);
        let wanted = wanted(&options, args.options.unwrap_or_default())?;
        let fits = |variant: &&Variant| {
            let mut wanted = wanted.iter();
            wanted.all(|(name, value)| variant.options.get(name) == Some(value))
        };
        let variants = offer.variants.iter().filter(fits);
        let shown: Result<Vec<VariantShown>, ToolError> = variants
            .map(|variant| shown(&pricer, offer, variant))
            .collect();
        Ok(OfferVariants {
            offer_id: offer.offer_id.clone(),
            title: offer.title.for_locale(pricer.locale).to_owned(),
            options,
            variants: shown?,
        })
    }
}

fn shown(pricer: &Pricer<'_>, offer: &Offer, variant: &Variant) -> Result<VariantShown, ToolError> {
    Ok(VariantShown {
        sku: variant.sku.clone(),
        options: variant.options.clone(),
        label: variant.label(pricer.locale),
        list_price: Money::new(
            pricer.prices.list_price(variant, pricer.now),
            &offer.currency,
        ),
        unit_price: pricer.unit_price(offer, variant)?,
        weight_g: variant.weight_g,
        dimensions_mm: variant.dimensions_mm,
    })
}

/// The requested options, spelled as the offer spells them. A value that no variant has is refused with the known
/// values: an empty result would look like sold out.
fn wanted(
    options: &BTreeMap<String, Vec<String>>,
    asked: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, ToolError> {
    let mut wanted = BTreeMap::new();
    for (name, value) in asked {
        let mut known = options.iter();
        let found = known.find(|(known, _)| means(&name, known));
        let Some((known_name, values)) = found else {
            let names: Vec<&str> = options.keys().map(String::as_str).collect();
            let (pointer, names) = (pointer(&name), names.join(", "));
            return Err(ToolError::invalid(pointer, Say::NoSuchOption { name })
                .hint(Say::DifferBy { names }));
        };
        let known = values.iter().find(|known| means(&value, known));
        let Some(known) = known else {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            let values = values.join(", ");
            let message = Say::NoVariant {
                option: known_name.clone(),
                value,
            };
            return Err(ToolError::invalid(pointer(&name), message).hint(Say::OneOf { values }));
        };
        wanted.insert(known_name.clone(), known.clone());
    }
    Ok(wanted)
}

fn pointer(name: &str) -> String {
    format!("/options/{}", name.replace('~', "~0").replace('/', "~1"))
}

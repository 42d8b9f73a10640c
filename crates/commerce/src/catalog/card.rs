//! `catalog.get_offer_card`.

use std::collections::BTreeMap;

use countersign::contract::Behaviour;
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::range::PriceRange;
use crate::fx;
use crate::money::CurrencyCode;
use crate::pricing::{PriceRules, PromotionApplied};
use crate::shop::{Battery, Offer, Returns, categories, path_of};

/// The tool.
pub(super) struct GetOfferCard;

/// Arguments.
#[derive(Deserialize, ToolArgs)]
pub(super) struct CardArgs {
    /// `offer_id` from `catalog.search_offers`.
    #[arg(example = "OFR-0001", min_length = 1, max_length = 64)]
    offer_id: String,
    /// Currency, such as EUR; by default that of the request, else USD.
    #[arg(example = "EUR")]
    currency: Option<CurrencyCode>,
}

/// All facts about an offer that a buyer needs before a quote.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OfferCard {
    /// Id of the offer.
    pub offer_id: String,
    /// Title, in the language of the call.
    pub title: String,
    /// Description, in the language of the call.
    pub description: String,
    /// Category, as a path.
    pub category: String,
    /// Names of the categories in that path, in the language of the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub category_names: Vec<String>,
    /// Brand.
    pub brand: String,
    /// Id of the seller.
    pub merchant_id: String,
    /// Country that it ships from.
    pub ships_from: String,
    /// Countries that the seller ships to; empty if the seller ships everywhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ships_to: Vec<String>,
    /// Country of origin.
    pub origin: String,
    /// Customs code: Harmonized System, six digits.
    pub hs_code: String,
    /// Certificates, as the seller states them.
    pub certificates: Vec<String>,
    /// Battery that is included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub battery: Option<Battery>,
    /// Other attributes that rules use.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Value>,
    /// Return terms.
    pub returns: Returns,
    /// Current price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceRange>,
    /// Promotion that the price includes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionApplied>,
    /// Options of the variants, with all values.
    pub options: BTreeMap<String, Vec<String>>,
    /// SKUs of the variants; `catalog.get_offer_variants` describes them.
    pub skus: Vec<String>,
}

impl Tool for GetOfferCard {
    const NAME: &'static str = "catalog.get_offer_card";
    const DESCRIPTION: &'static str = "Shows one offer: description, origin, certificates, battery, return terms, price range, options.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = CardArgs;
    type Output = OfferCard;

    fn behaviour() -> Behaviour {
        super::shown()
    }

    async fn call(&self, ctx: &CallContext, args: CardArgs) -> Result<OfferCard, ToolError> {
        let rules = PriceRules::of(ctx)?;
        let currency = fx::asked(ctx, args.currency.map(|currency| currency.code()));
        let pricer = rules.pricer(ctx, &currency);
        let offer = rules.shop.known_offer(&args.offer_id, "/offer_id")?;
        let promotion = rules.prices.promotion(offer, ctx.now());
        Ok(OfferCard {
            offer_id: offer.offer_id.clone(),
            title: offer.title.for_locale(pricer.locale).to_owned(),
            description: offer.description.for_locale(pricer.locale).to_owned(),
            category: offer.category.clone(),
            category_names: category_names(offer, pricer.locale),
            brand: offer.brand.clone(),
            merchant_id: offer.merchant_id.clone(),
            ships_from: offer.ships_from.clone(),
            ships_to: offer.ships_to.clone(),
            origin: offer.origin.clone(),
            hs_code: offer.hs_code.clone(),
            certificates: offer.certificates.clone(),
            battery: offer.battery.clone(),
            attributes: offer.attributes.clone(),
            returns: offer.returns.clone(),
            price: PriceRange::of(&pricer, offer)?,
            promotion: promotion.map(|promotion| pricer.applied(promotion)),
            options: options(offer),
            skus: offer
                .variants
                .iter()
                .map(|variant| variant.sku.clone())
                .collect(),
        })
    }
}

fn category_names(offer: &Offer, locale: Option<&str>) -> Vec<String> {
    let known = path_of(&offer.category).filter_map(|path| categories().get(path));
    known
        .map(|name| name.for_locale(locale).to_owned())
        .collect()
}

/// The options by which the variants of an offer differ, with all their values in the order of the variants.
pub(super) fn options(offer: &Offer) -> BTreeMap<String, Vec<String>> {
    let mut options: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in offer.variants.iter().flat_map(|variant| &variant.options) {
        let values = options.entry(name.clone()).or_default();
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    options
}

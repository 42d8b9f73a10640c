//! `catalog.search_offers`.

use countersign::contract::Behaviour;
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::PriceRange;
use crate::compliance::Policy;
use crate::destination::Destination;
use crate::fx;
use crate::money::{CurrencyCode, MinorUnits};
use crate::pricing::{PriceRules, Pricer, PromotionApplied};
use crate::shop::{Offer, Shop, is_within};
use crate::words::Say;

/// The tool.
pub(super) struct SearchOffers;

/// Arguments.
#[derive(Deserialize, ToolArgs)]
pub(super) struct SearchArgs {
    /// Search words, in English or Chinese.
    #[arg(example = "wireless earbuds", max_length = 200)]
    query: Option<String>,
    /// Category, such as electronics/audio; its subcategories are included.
    #[arg(example = "electronics/audio", max_length = 100)]
    category: Option<String>,
    /// Minimum price.
    #[arg(example = 1000)]
    min_price: Option<MinorUnits>,
    /// Maximum price.
    #[arg(example = 5000)]
    max_price: Option<MinorUnits>,
    /// Currency, such as EUR; by default that of the request, else USD.
    #[arg(example = "EUR")]
    currency: Option<CurrencyCode>,
    /// Destination country, such as DE; offers that do not ship there are left out.
    #[arg(example = "DE", pattern = "^[A-Za-z]{2}$")]
    ships_to: Option<String>,
    /// Maximum number of offers.
    #[arg(default = 10, min = 1, max = 50, harmless)]
    limit: u32,
    /// `next_offset` of the previous page.
    #[arg(default = 0, min = 0, max = 100_000, harmless)]
    offset: u32,
}

/// One page of search results.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OffersFound {
    /// Number of matching offers.
    pub total: usize,
    /// Offset of this page.
    pub offset: u32,
    /// Offset of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u32>,
    /// Category that was searched, as a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Matching offers, best match first.
    pub offers: Vec<OfferFound>,
}

/// Summary of an offer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OfferFound {
    /// Id of the offer.
    pub offer_id: String,
    /// Title, in the language of the call.
    pub title: String,
    /// Brand.
    pub brand: String,
    /// Category, as a path.
    pub category: String,
    /// Current price.
    pub price: PriceRange,
    /// Promotion that the price includes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionApplied>,
    /// Country that it ships from.
    pub ships_from: String,
    /// Number of variants.
    pub variants: usize,
}

impl Tool for SearchOffers {
    const NAME: &'static str = "catalog.search_offers";
    const DESCRIPTION: &'static str = "Finds offers, the best first. Their prices are not binding: call pricing.get_realtime_quote for a binding price.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = SearchArgs;
    type Output = OffersFound;

    fn behaviour() -> Behaviour {
        super::shown()
    }

    async fn call(&self, ctx: &CallContext, args: SearchArgs) -> Result<OffersFound, ToolError> {
        let least = args.min_price.map(MinorUnits::amount);
        let most = args.max_price.map(MinorUnits::amount);
        if let (Some(min), Some(max)) = (least, most)
            && min > max
        {
            let (min, max) = (min.to_string(), max.to_string());
            let message = Say::NoPriceBetween { min, max };
            return Err(ToolError::invalid("/max_price", message));
        }
        let rules = PriceRules::of(ctx)?;
        let currency = fx::asked(ctx, args.currency.as_ref().map(CurrencyCode::code));
        let pricer = rules.pricer(ctx, &currency);
        let category = category(&rules.shop, args.category.as_deref())?;
        let ships_to = args.ships_to.as_deref();
        let ships_to = ships_to.map(|to| country(ctx, to)).transpose()?;
        let found = found(ctx, &rules.shop, args.query.as_deref());
        let fits = |offer: &&Offer| {
            category.is_none_or(|category| is_within(&offer.category, category))
                && ships_to.as_ref().is_none_or(|to| offer.is_sent_to(to))
        };
        let mut offers = Vec::new();
        for offer in found.into_iter().filter(fits) {
            let price = PriceRange::between(&pricer, offer, least, most)?;
            offers.extend(price.map(|price| (offer, price)));
        }
        let total = offers.len();
        let after = args.offset.saturating_add(args.limit);
        let page = offers
            .into_iter()
            .skip(index(args.offset))
            .take(index(args.limit));
        Ok(OffersFound {
            total,
            offset: args.offset,
            next_offset: (index(after) < total).then_some(after),
            category: category.map(str::to_owned),
            offers: page
                .map(|(offer, price)| brief(&pricer, offer, price))
                .collect(),
        })
    }
}

/// The code of the country that is meant. An unknown country is refused: offers without a list of countries would
/// otherwise match it.
fn country(ctx: &CallContext, named: &str) -> Result<String, ToolError> {
    let meant = Destination {
        country: named.to_owned(),
        region: None,
        postal_code: None,
    };
    let Destination { country, .. } = meant.normal(ctx)?;
    if Policy::of(ctx)?.knows_country(&country) {
        return Ok(country);
    }
    Err(ToolError::invalid("/ships_to", Say::NoCountry { country }).hint(Say::TwoLetters))
}

/// The offers that a query finds, the best first; without a query all offers in the order of their ids.
fn found<'a>(ctx: &CallContext, shop: &'a Shop, query: Option<&str>) -> Vec<&'a Offer> {
    let Some(query) = query.map(str::trim).filter(|query| !query.is_empty()) else {
        return shop.offers.iter().collect();
    };
    let hits = shop.search(query);
    for (word, near) in &hits.corrected {
        ctx.remark(
            "WORD_CORRECTED",
            Say::WordCorrected {
                word: word.clone(),
                near: near.clone(),
            },
        );
    }
    let offers = hits.offers.iter();
    offers.filter_map(|(at, _)| shop.offers.get(*at)).collect()
}

fn category<'a>(shop: &'a Shop, name: Option<&str>) -> Result<Option<&'a str>, ToolError> {
    let Some(name) = name else {
        return Ok(None);
    };
    shop.category(name).map(Some).map_err(|near| {
        let name = name.to_owned();
        let error = ToolError::not_found(Say::NoCategory { name }).field("/category");
        if let Some(near) = near {
            let error = error.hint(Say::IsCategoryMeant {
                near: near.to_string(),
            });
            return error.detail("suggestion", near);
        }
        let top = shop.categories().filter(|path| !path.contains('/'));
        let top: Vec<&str> = top.collect();
        error.hint(Say::CategoryPath {
            top: top.join(", "),
        })
    })
}

fn brief(pricer: &Pricer<'_>, offer: &Offer, price: PriceRange) -> OfferFound {
    let promotion = pricer.prices.promotion(offer, pricer.now);
    OfferFound {
        offer_id: offer.offer_id.clone(),
        title: offer.title.for_locale(pricer.locale).to_owned(),
        brand: offer.brand.clone(),
        category: offer.category.clone(),
        price,
        promotion: promotion.map(|promotion| pricer.applied(promotion)),
        ships_from: offer.ships_from.clone(),
        variants: offer.variants.len(),
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

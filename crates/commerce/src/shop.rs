//! The shop: made-up, plausible offers. It is a rule set like the others, so that its version is in every record and
//! old answers can be computed again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, OnceLock};

use countersign::contract::{Language, Message, Wording};
use countersign::rules::RulesBuilder;
use countersign::{CallContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::money::{AMOUNT_MAX, Money, exponent};
use crate::rulebook::{Book, RuleData};
use crate::words::Say;

mod generate;
mod kinds;
mod landmarks;
mod nearest;
mod search;
mod words;

pub use kinds::{categories, path_of};
use search::{Hits, Index};
pub use words::{means, word};

/// The name of the rule set.
pub const NAME: &str = "shop";

static BOOK: Book<Shop> = Book::new();

/// All offers, made once.
static OFFERS: LazyLock<Result<Vec<Offer>, String>> = LazyLock::new(|| {
    let mut offers = landmarks::offers()?;
    offers.extend(generate::offers(kinds::plan()?, generate::SEED)?);
    Ok(offers)
});

/// The digest of the shop's canonical form. It is a constant so that the shop is made when it is first needed and not
/// at every start of a program. A test computes it, and shows the new digest after a change of the shop.
const VERSION: &str = "sha256:8c894f206bcd0cdf3278e9b47dbbb8bbeedd177f0163481e52fb9d4f5f024505";

/// Adds the made-up shop to the rules.
pub(crate) fn add_to(rules: RulesBuilder) -> RulesBuilder {
    match VERSION.parse() {
        // A shop that cannot be made is empty; the tests would not pass.
        Ok(version) => rules.later(NAME, version, || data().unwrap_or_default()),
        Err(_) => rules,
    }
}

/// The shop as data: the offers that are written by hand, and those that are made from the seed.
pub(crate) fn data() -> Result<Value, String> {
    let offers = OFFERS.as_ref().map_err(Clone::clone)?;
    let offers = serde_json::to_value(offers).map_err(|error| error.to_string())?;
    Ok(json!({ "offers": offers }))
}

/// All offers, with their indexes.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Stock")]
pub struct Shop {
    /// The offers in the order of their ids.
    pub offers: Vec<Offer>,
    by_offer: HashMap<String, usize>,
    by_sku: HashMap<String, (usize, usize)>,
    /// Every category of an offer, with its ancestors.
    categories: BTreeSet<String>,
    /// The search index, made at the first search.
    index: OnceLock<Index>,
}

/// The shop as it is stored.
#[derive(Deserialize)]
struct Stock {
    offers: Vec<Offer>,
}

/// An offer: one product, in one or more variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// The id, such as `OFR-0001`.
    pub offer_id: String,
    /// The title, for people.
    pub title: Text,
    /// The description, for people.
    pub description: Text,
    /// The category path, from the general to the special, such as `electronics/power/power_bank`.
    pub category: String,
    /// The maker's brand.
    pub brand: String,
    /// The merchant that sells it.
    pub merchant_id: String,
    /// The country of dispatch, two letters.
    pub ships_from: String,
    /// The country of origin, two letters.
    pub origin: String,
    /// The currency of its prices.
    pub currency: String,
    /// Harmonized System code, six digits.
    pub hs_code: String,
    /// The certificates, such as `CE` or `UN38.3`.
    #[serde(default)]
    pub certificates: Vec<String>,
    /// The battery in it or with it; `None` if there is none.
    #[serde(default)]
    pub battery: Option<Battery>,
    /// Further facts that rules may ask for, such as `alcohol_percent` or `blade_mm`.
    #[serde(default)]
    pub attributes: BTreeMap<String, Value>,
    /// The return terms.
    pub returns: Returns,
    /// Other names, in both languages; for search only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// The countries that the merchant sends it to, two letters each; empty if it is sent everywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ships_to: Vec<String>,
    /// The variants, each with its own price, weight and stock.
    pub variants: Vec<Variant>,
}

/// A string for people in both languages: a table, or a list of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// English.
    pub en: String,
    /// Chinese.
    pub zh: String,
}

/// A battery, with the facts that carriers and rules need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Battery {
    /// Chemistry.
    pub chemistry: Chemistry,
    /// Packing. Carriers accept or refuse a battery by it.
    pub packing: Packing,
    /// Energy in watt hours; 0 for lithium metal.
    #[serde(default)]
    pub watt_hours: u32,
    /// Lithium content in milligrams; 0 for lithium ion.
    #[serde(default)]
    pub lithium_mg: u32,
}

/// Chemistry of a battery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chemistry {
    /// Lithium ion: rechargeable.
    LithiumIon,
    /// Lithium metal: not rechargeable.
    LithiumMetal,
    /// Alkaline.
    Alkaline,
}

/// Packing of a battery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Packing {
    /// Shipped alone, such as a power bank (UN 3480, UN 3090).
    Alone,
    /// Packed with the equipment, not installed (UN 3481, UN 3091).
    WithEquipment,
    /// Installed in the equipment.
    InEquipment,
}

/// Return terms of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Returns {
    /// Days within which it can be returned; 0 if it cannot.
    pub days: u32,
    /// True if the buyer pays for the return.
    pub buyer_pays: bool,
}

/// One variant of an offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Stock keeping unit, such as `SKU-0001-01`.
    pub sku: String,
    /// The options that distinguish it, such as colour and size.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// The price in the smallest unit of the offer's currency.
    pub price: i64,
    /// The weight with packaging.
    pub weight_g: u32,
    /// Length, width and height with packaging.
    pub dimensions_mm: [u32; 3],
    /// The quantity in the warehouse.
    pub stock: u32,
}

impl RuleData for Shop {
    const NAME: &'static str = NAME;

    fn check(&self) -> Result<(), String> {
        let variants = self.offers.iter().map(|offer| offer.variants.len());
        if self.by_offer.len() != self.offers.len() || self.by_sku.len() != variants.sum::<usize>()
        {
            return Err("an offer_id or a sku is there twice".to_owned());
        }
        self.offers.iter().try_for_each(Offer::check)
    }
}

impl From<Stock> for Shop {
    fn from(stock: Stock) -> Self {
        let mut offers = stock.offers;
        offers.sort_by(|left, right| left.offer_id.cmp(&right.offer_id));
        let mut categories = BTreeSet::new();
        let mut by_offer = HashMap::new();
        let mut by_sku = HashMap::new();
        for (at, offer) in offers.iter().enumerate() {
            by_offer.insert(offer.offer_id.clone(), at);
            categories.extend(path_of(&offer.category).map(str::to_owned));
            for (variant_at, variant) in offer.variants.iter().enumerate() {
                by_sku.insert(variant.sku.clone(), (at, variant_at));
            }
        }
        Self {
            offers,
            by_offer,
            by_sku,
            categories,
            index: OnceLock::new(),
        }
    }
}

impl Shop {
    /// The shop in force; in a replay that of the record.
    pub fn of(ctx: &CallContext) -> Result<Arc<Self>, ToolError> {
        BOOK.get(ctx)
    }

    /// The offer with this id.
    pub fn offer(&self, offer_id: &str) -> Option<&Offer> {
        self.offers.get(*self.by_offer.get(offer_id)?)
    }

    /// The variant with this SKU, and its offer.
    pub fn variant(&self, sku: &str) -> Option<(&Offer, &Variant)> {
        let (offer, variant) = self.by_sku.get(sku)?;
        let offer = self.offers.get(*offer)?;
        Some((offer, offer.variants.get(*variant)?))
    }

    /// The variant with this SKU, and its offer. If there is none, the error names the argument and the nearest SKU.
    pub fn known(&self, sku: &str, pointer: &str) -> Result<(&Offer, &Variant), ToolError> {
        self.variant(sku).ok_or_else(|| {
            let message = Say::NoItem {
                sku: sku.to_owned(),
            };
            let error = ToolError::not_found(message).field(pointer);
            match self.nearest_sku(sku) {
                Some(near) => error
                    .hint(Say::IsItemMeant {
                        near: near.to_string(),
                    })
                    .detail("suggestion", near),
                None => error.hint(Say::FindItems),
            }
        })
    }

    /// The offer with this id. If there is none, the error names the argument and the nearest offer.
    pub fn known_offer(&self, offer_id: &str, pointer: &str) -> Result<&Offer, ToolError> {
        self.offer(offer_id).ok_or_else(|| {
            let message = Say::NoOffer {
                offer_id: offer_id.to_owned(),
            };
            let error = ToolError::not_found(message).field(pointer);
            match self.nearest_offer(offer_id) {
                Some(near) => error
                    .hint(is_meant(near))
                    .detail("suggestion", near.offer_id.as_str()),
                None => error.hint(Say::FindOffers),
            }
        })
    }

    /// Every category of an offer, with its ancestors, in the order of their paths.
    pub fn categories(&self) -> impl Iterator<Item = &str> {
        self.categories.iter().map(String::as_str)
    }

    /// The offers that a query finds, the best first.
    pub(crate) fn search(&self, query: &str) -> Hits {
        let index = self.index.get_or_init(|| Index::of(&self.offers));
        index.search(query)
    }
}

impl Offer {
    /// Checks what the types cannot express.
    fn check(&self) -> Result<(), String> {
        let id = &self.offer_id;
        exponent(&self.currency).map_err(|error| format!("{id}: {error}"))?;
        if self.hs_code.len() != 6 || !self.hs_code.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(format!("{id}: hs_code has to be six digits"));
        }
        let is_country = |code: &String| {
            code.len() == 2 && code.bytes().all(|letter| letter.is_ascii_uppercase())
        };
        let mut countries = [&self.ships_from, &self.origin]
            .into_iter()
            .chain(&self.ships_to);
        if !countries.all(is_country) {
            return Err(format!("{id}: a country has to be two capital letters"));
        }
        if self.variants.is_empty() {
            return Err(format!("{id}: an offer needs at least one variant"));
        }
        for variant in &self.variants {
            let sides = variant.dimensions_mm.map(u64::from);
            let is_real = (1..=AMOUNT_MAX).contains(&variant.price) && variant.weight_g > 0;
            if !is_real || sides.contains(&0) {
                let sku = &variant.sku;
                return Err(format!(
                    "{sku}: price, weight and size have to be above zero"
                ));
            }
        }
        Ok(())
    }

    /// The price of a variant in the offer's own currency, without promotions.
    pub fn price_of(&self, variant: &Variant) -> Money {
        Money::new(variant.price, &self.currency)
    }

    /// True if the merchant sends it to this country.
    pub fn is_sent_to(&self, country: &str) -> bool {
        let mut known = self.ships_to.iter();
        self.ships_to.is_empty() || known.any(|known| known.eq_ignore_ascii_case(country))
    }
}

impl Text {
    /// The text for a locale: Chinese if it starts with `zh`, else English.
    pub fn for_locale(&self, locale: Option<&str>) -> &str {
        match Language::of(locale) {
            Language::Chinese => &self.zh,
            Language::English => &self.en,
        }
    }
}

/// The hint that names the nearest offer, with its title in the reader's language.
fn is_meant(offer: &Offer) -> Wording {
    let [english, chinese] = Language::ALL.map(|language| {
        let title = match language {
            Language::English => &offer.title.en,
            Language::Chinese => &offer.title.zh,
        };
        let meant = Say::IsOfferMeant {
            near: offer.offer_id.clone(),
            title: title.clone(),
        };
        meant.text(language)
    });
    Wording::new(english, chinese)
}

/// True if a category is `ancestor` or below it: `electronics/power` is within `electronics`, `electronics_used` is
/// not.
pub fn is_within(category: &str, ancestor: &str) -> bool {
    let rest = category.strip_prefix(ancestor);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// True if messages for people have to be in Chinese.
pub fn is_chinese(locale: Option<&str>) -> bool {
    Language::of(locale) == Language::Chinese
}

#[cfg(test)]
mod tests;

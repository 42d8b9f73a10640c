//! The kinds of goods that the made-up shop consists of, as `shop/kinds.toml` writes them, and the categories.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use super::{Chemistry, Packing, Text};

const TEXT: &str = include_str!("../../shop/kinds.toml");

static PLAN: LazyLock<Result<Plan, String>> =
    LazyLock::new(|| toml::from_str(TEXT).map_err(|error| error.to_string()));

static CATEGORIES: LazyLock<BTreeMap<String, Text>> = LazyLock::new(|| {
    let mut categories = BTreeMap::new();
    if let Ok(plan) = plan() {
        categories.clone_from(&plan.categories);
        let kinds = plan.kinds.iter();
        categories.extend(kinds.map(|kind| (kind.category.clone(), kind.name.clone())));
    }
    categories
});

/// All categories of the made-up shop, by path, with their names. Rules name the same paths, and `docs/shop.md` lists
/// them.
///
/// # Example
///
/// ```
/// use countersign_commerce::shop::categories;
///
/// assert_eq!(categories()["electronics/power"].en, "Power");
/// assert_eq!(categories()["electronics/power/power_bank"].zh, "移动电源");
/// ```
pub fn categories() -> &'static BTreeMap<String, Text> {
    &CATEGORIES
}

/// A category and its ancestors, the most general first.
pub fn path_of(category: &str) -> impl Iterator<Item = &str> {
    let ends = category.match_indices('/').map(|(end, _)| end);
    let ends = ends.chain([category.len()]);
    ends.filter_map(|end| category.get(..end))
}

/// The plan that the shop is made from; the error is the problem of the file.
pub(super) fn plan() -> Result<&'static Plan, String> {
    PLAN.as_ref().map_err(Clone::clone)
}

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) currencies: BTreeMap<String, PriceSteps>,
    pub(super) groups: BTreeMap<String, Vec<String>>,
    pub(super) sellers: BTreeMap<String, Seller>,
    pub(super) categories: BTreeMap<String, Text>,
    pub(super) kinds: Vec<Kind>,
}

/// The form of list prices in a currency.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceSteps {
    /// Thousandths of the smallest unit for one US cent.
    pub(super) thousandths: u64,
    pub(super) step: u64,
    pub(super) end: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seller {
    pub(super) country: String,
    pub(super) currency: String,
    pub(super) brands: Vec<String>,
    #[serde(default)]
    pub(super) free_returns: bool,
    #[serde(default)]
    pub(super) ships_to: Vec<String>,
}

/// A kind of goods; each of its models becomes an offer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kind {
    pub(super) category: String,
    pub(super) name: Text,
    pub(super) models: Vec<Text>,
    pub(super) about: Text,
    pub(super) keywords: Vec<String>,
    pub(super) hs_code: String,
    /// The price range, from the cheapest model to the dearest.
    pub(super) usd_cents: [u64; 2],
    /// The weight range with packaging, from the lightest model to the heaviest.
    pub(super) weight_g: [u64; 2],
    pub(super) size_mm: [u64; 3],
    pub(super) sellers: Vec<String>,
    /// The countries of origin; the seller's country if empty.
    #[serde(default)]
    pub(super) origins: Vec<String>,
    /// True if sellers and origins belong to single models, as a Bordeaux comes from France.
    #[serde(default)]
    pub(super) is_regional: bool,
    #[serde(default)]
    pub(super) certificates: Vec<String>,
    pub(super) options: Vec<Choice>,
    /// The option that changes price and weight.
    #[serde(default)]
    pub(super) scaled: Option<Scaled>,
    /// The attributes; a list has one value for each model.
    #[serde(default)]
    pub(super) attributes: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) battery: Option<BatteryOf>,
    pub(super) return_days: u32,
    #[serde(default)]
    pub(super) ships_to: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Choice {
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scaled {
    pub(super) by: String,
    pub(super) price_percent: Vec<u64>,
    pub(super) weight_percent: Vec<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BatteryOf {
    pub(super) chemistry: Chemistry,
    pub(super) packing: Packing,
    /// The energy of each model.
    pub(super) watt_hours: Vec<u32>,
    #[serde(default)]
    pub(super) lithium_mg: u32,
}

//! Properties of prices, for any basket, currency and time.

use countersign::rules::Rules;
use countersign_commerce::fx::Rates;
use countersign_commerce::item::{Basket, Item};
use countersign_commerce::money::exponent;
use countersign_commerce::pricing::{Priced, Pricer, Prices, QuoteLine};
use countersign_commerce::rulebook::RuleFiles;
use countersign_commerce::shop::Shop;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rust_decimal::Decimal;
use serde::de::DeserializeOwned;

struct Books {
    shop: Shop,
    prices: Prices,
    rates: Rates,
}

impl Books {
    fn embedded() -> Self {
        let rules = RuleFiles::embedded().unwrap().rules().unwrap();
        Self {
            shop: read(&rules, "shop"),
            prices: read(&rules, "prices"),
            rates: read(&rules, "fx"),
        }
    }

    fn skus(&self) -> Vec<String> {
        let variants = self.shop.offers.iter().flat_map(|offer| &offer.variants);
        variants.map(|variant| variant.sku.clone()).collect()
    }

    fn currencies(&self) -> Vec<String> {
        let known = self.rates.rates.keys().chain([&self.rates.base]);
        known.cloned().collect()
    }

    fn price(&self, items: &[Item], currency: &str, now: Timestamp) -> Priced {
        let pricer = Pricer {
            shop: &self.shop,
            prices: &self.prices,
            rates: &self.rates,
            currency,
            now,
            locale: None,
        };
        pricer.price(&Basket::of(items, "/items").unwrap()).unwrap()
    }

    /// Checks that a price is at most half a smallest unit from the exact one, with whole numbers alone.
    fn check_unit(&self, line: &QuoteLine) {
        let (from, to) = (&line.list_price, &line.unit_price);
        let percent_off = line
            .promotion
            .as_ref()
            .map_or("0", |promotion| &promotion.percent_off);
        let left = Decimal::ONE_HUNDRED - percent_off.parse::<Decimal>().unwrap();
        let (from_rate, to_rate) = (self.rate(&from.currency), self.rate(&to.currency));
        let (from_places, to_places) = (
            exponent(&from.currency).unwrap(),
            exponent(&to.currency).unwrap(),
        );
        // unit = list × left / 100 × to_rate / from_rate × 10^(to_places − from_places)
        let above = i128::from(from.amount)
            * left.mantissa()
            * to_rate.mantissa()
            * ten(from_rate.scale())
            * ten(to_places);
        let below = 100
            * ten(left.scale())
            * from_rate.mantissa()
            * ten(to_rate.scale())
            * ten(from_places);
        let off = (i128::from(to.amount) * below - above).abs();
        assert!(off * 2 <= below, "{line:?}");
    }

    fn rate(&self, currency: &str) -> Decimal {
        if currency == self.rates.base {
            return Decimal::ONE;
        }
        self.rates.rates[currency]
    }
}

fn read<T: DeserializeOwned>(rules: &Rules, name: &str) -> T {
    let set = rules.current(name).unwrap();
    T::deserialize(&set.data).unwrap()
}

fn ten(power: u32) -> i128 {
    10_i128.pow(power)
}

fn start() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

fn check_laws(books: &Books, priced: &Priced) {
    let mut sum = 0;
    for line in &priced.lines {
        assert!(
            line.unit_price.amount >= 0 && line.list_price.amount > 0,
            "{line:?}"
        );
        assert_eq!(
            line.line_total.amount,
            line.unit_price.amount * i64::from(line.quantity)
        );
        assert!(
            line.discount
                .as_ref()
                .is_none_or(|discount| discount.amount >= 0),
            "{line:?}"
        );
        assert_eq!(
            line.discount.is_some(),
            line.promotion.is_some(),
            "{line:?}"
        );
        books.check_unit(line);
        sum += line.line_total.amount;
    }
    assert_eq!(priced.subtotal.amount, sum);
    let of_one = priced
        .lines
        .iter()
        .all(|line| line.unit_price.currency == priced.currency);
    assert!(of_one && priced.subtotal.currency == priced.currency);
}

/// Every item can be priced in every currency that has a rate.
#[test]
fn every_item_in_every_currency() {
    let books = Books::embedded();
    let skus = books.skus();
    for currency in books.currencies() {
        for some in skus.chunks(50) {
            let item = |sku: &String| Item {
                sku: sku.clone(),
                quantity: 3,
            };
            let items: Vec<Item> = some.iter().map(item).collect();
            check_laws(&books, &books.price(&items, &currency, start()));
        }
    }
}

/// Every item and category that the price list names exists.
#[test]
fn the_price_list_names_what_there_is() {
    let books = Books::embedded();
    for changed in &books.prices.overrides {
        assert!(
            books.shop.variant(&changed.sku).is_some(),
            "{}",
            changed.sku
        );
    }
    for promotion in &books.prices.promotions {
        let id = &promotion.promotion_id;
        let offer = promotion.offer_id.as_ref();
        assert!(
            offer.is_none_or(|offer| books.shop.offer(offer).is_some()),
            "{id}"
        );
        let category = promotion.category.as_deref();
        let mut categories = books.shop.categories();
        assert!(
            category.is_none_or(|category| categories.any(|known| known == category)),
            "{id}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// The subtotal is the sum of its lines, nothing is negative, a price is rounded once, and the same question has
    /// the same answer: at any time of the month, in any order, in any currency.
    #[test]
    fn totals_add_up(
        picks in prop::collection::vec((any::<prop::sample::Index>(), 1_u32..=40), 1..20),
        currency in any::<prop::sample::Index>(),
        minutes in -25_000_i64..25_000,
    ) {
        thread_local! {
            static BOOKS: Books = Books::embedded();
        }
        BOOKS.with(|books| {
            let (skus, currencies) = (books.skus(), books.currencies());
            let item = |(at, quantity): &(prop::sample::Index, u32)| Item {
                sku: at.get(&skus).clone(),
                quantity: *quantity,
            };
            let mut items: Vec<Item> = picks.iter().map(item).collect();
            let now = start() + SignedDuration::from_mins(minutes);
            let currency = currency.get(&currencies);
            let priced = books.price(&items, currency, now);
            check_laws(books, &priced);
            items.reverse();
            let again = books.price(&items, &currency.to_lowercase(), now);
            assert_eq!(again, priced);
            assert!(again.moved_since(&priced.lines).is_empty());
        });
    }
}

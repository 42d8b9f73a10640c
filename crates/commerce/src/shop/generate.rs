//! Makes offers from kinds, the same ones for the same seed on every machine: whole numbers and its own random number
//! generator, no clock, no unordered map.

use std::collections::BTreeMap;

use serde_json::Value;

use super::kinds::{Choice, Kind, Plan, PriceSteps, Seller};
use super::{Battery, Offer, Returns, Text, Variant};

/// The seed; another seed makes another shop.
pub(super) const SEED: u64 = 0x00C0_FFEE_2026_1101;

/// The maximum number of variants of an offer.
const VARIANTS_MAX: usize = 8;

/// The first number of a generated offer; lower ones are written by hand.
const FIRST_NUMBER: usize = 1_001;

/// All offers of a plan; the error names what is missing in it.
pub(super) fn offers(plan: &Plan, seed: u64) -> Result<Vec<Offer>, String> {
    let mut offers = Vec::new();
    for (kind_at, kind) in plan.kinds.iter().enumerate() {
        for (model_at, model) in kind.models.iter().enumerate() {
            // Seeded by category and model, so that a new kind leaves the others unchanged.
            let name = format!("{}#{model_at}", kind.category);
            let mut maker = Maker {
                plan,
                kind,
                model_at,
                random: Random::named(seed, &name),
            };
            let number = FIRST_NUMBER + kind_at * 10 + model_at;
            let offer = maker.offer(number, model);
            offers.push(offer.ok_or_else(|| format!("{name} does not fit its plan"))?);
        }
    }
    Ok(offers)
}

struct Maker<'a> {
    plan: &'a Plan,
    kind: &'a Kind,
    model_at: usize,
    random: Random,
}

impl<'a> Maker<'a> {
    fn offer(&mut self, number: usize, model: &Text) -> Option<Offer> {
        let kind = self.kind;
        let merchant_id = if kind.is_regional {
            kind.sellers.get(self.model_at)?
        } else {
            self.random.one_of(&kind.sellers)?
        };
        let seller = self.plan.sellers.get(merchant_id)?;
        let brand = self.random.one_of(&seller.brands)?;
        Some(Offer {
            offer_id: format!("OFR-{number:04}"),
            title: Text {
                en: format!("{brand} {}, {}", kind.name.en, model.en),
                zh: format!("{brand} {} {}", kind.name.zh, model.zh),
            },
            description: self.description(),
            category: kind.category.clone(),
            brand: brand.clone(),
            merchant_id: merchant_id.clone(),
            ships_from: seller.country.clone(),
            origin: self.origin(seller)?.clone(),
            currency: seller.currency.clone(),
            hs_code: kind.hs_code.clone(),
            certificates: self.certificates(),
            battery: self.battery(),
            attributes: self.attributes(),
            returns: Returns {
                days: kind.return_days,
                buyer_pays: kind.return_days == 0 || !seller.free_returns,
            },
            keywords: kind.keywords.clone(),
            ships_to: self.ships_to(seller)?,
            variants: self.variants(number, self.plan.currencies.get(&seller.currency)?)?,
        })
    }

    /// The country of origin: mostly the seller's, if the kind is made there at all.
    fn origin(&mut self, seller: &'a Seller) -> Option<&'a String> {
        let kind = self.kind;
        if kind.is_regional {
            return kind.origins.get(self.model_at);
        }
        let is_home = kind.origins.is_empty() || kind.origins.contains(&seller.country);
        if is_home && self.random.below(4) > 0 {
            return Some(&seller.country);
        }
        Some(self.random.one_of(&kind.origins).unwrap_or(&seller.country))
    }

    fn description(&self) -> Text {
        let Kind {
            about, return_days, ..
        } = self.kind;
        match return_days {
            0 => Text {
                en: format!("{} Cannot be sent back.", about.en),
                zh: format!("{}不支持退货。", about.zh),
            },
            days => Text {
                en: format!("{} Can be sent back within {days} days.", about.en),
                zh: format!("{}{days} 天内可退货。", about.zh),
            },
        }
    }

    /// The certificates; some sellers lack one.
    fn certificates(&mut self) -> Vec<String> {
        let mut certificates = self.kind.certificates.clone();
        if !certificates.is_empty() && self.random.below(7) == 0 {
            certificates.remove(self.random.index(certificates.len()));
        }
        certificates
    }

    fn battery(&self) -> Option<Battery> {
        let battery = self.kind.battery.as_ref()?;
        Some(Battery {
            chemistry: battery.chemistry,
            packing: battery.packing,
            watt_hours: *battery.watt_hours.get(self.model_at)?,
            lithium_mg: battery.lithium_mg,
        })
    }

    fn attributes(&self) -> BTreeMap<String, Value> {
        let of_model = |value: &Value| match value {
            Value::Array(values) => values.get(self.model_at).cloned().unwrap_or_default(),
            other => other.clone(),
        };
        let attributes = self.kind.attributes.iter();
        attributes
            .map(|(name, value)| (name.clone(), of_model(value)))
            .collect()
    }

    fn ships_to(&self, seller: &Seller) -> Option<Vec<String>> {
        let of_kind = Some(&self.kind.ships_to).filter(|countries| !countries.is_empty());
        let mut countries = Vec::new();
        for name in of_kind.unwrap_or(&seller.ships_to) {
            if name.chars().all(char::is_lowercase) {
                countries.extend(self.plan.groups.get(name)?.iter().cloned());
            } else {
                countries.push(name.clone());
            }
        }
        countries.sort();
        Some(countries)
    }

    fn variants(&mut self, number: usize, steps: &PriceSteps) -> Option<Vec<Variant>> {
        let kind = self.kind;
        // Dearer models are heavier and larger.
        let models = u64::try_from(kind.models.len()).ok()?.max(1);
        let place = u64::try_from(self.model_at).ok()? * 100 + self.random.below(60);
        let at = |[low, high]: [u64; 2]| low + high.saturating_sub(low) * place / (models * 100);
        let (usd_cents, weight_g) = (at(kind.usd_cents), at(kind.weight_g));
        let size_percent = 90 + place / 15 + self.random.below(5);
        let size = kind
            .size_mm
            .map(|side| stepped(side * size_percent / 100, 5));
        let chosen: Vec<Vec<(usize, &String)>> = kind
            .options
            .iter()
            .map(|option| self.chosen(option))
            .collect();
        let mut variants = Vec::new();
        for places in combinations(&chosen).into_iter().take(VARIANTS_MAX) {
            let percent = |of: fn(&super::kinds::Scaled) -> &Vec<u64>| {
                let scaled = kind.scaled.as_ref()?;
                let option = kind
                    .options
                    .iter()
                    .position(|option| option.name == scaled.by)?;
                let (at, _) = places.get(option)?;
                of(scaled).get(*at).copied()
            };
            let price = usd_cents * percent(|scaled| &scaled.price_percent).unwrap_or(100) / 100;
            let weight = weight_g * percent(|scaled| &scaled.weight_percent).unwrap_or(100) / 100;
            let names = kind.options.iter().map(|option| option.name.clone());
            variants.push(Variant {
                sku: format!("SKU-{number:04}-{:02}", variants.len() + 1),
                options: names
                    .zip(places.iter().map(|(_, value)| (*value).clone()))
                    .collect(),
                price: i64::try_from(list_price(price, steps)).ok()?,
                weight_g: u32::try_from(stepped(weight, if weight < 1_000 { 5 } else { 10 }))
                    .ok()?,
                dimensions_mm: [side(size, 0)?, side(size, 1)?, side(size, 2)?],
                stock: self.stock(),
            });
        }
        Some(variants)
    }

    /// Some values of an option, at least two if there are two, in their order and with their positions.
    fn chosen<'k>(&mut self, option: &'k Choice) -> Vec<(usize, &'k String)> {
        let mut values: Vec<(usize, &String)> = option.values.iter().enumerate().collect();
        let spare = values.len().saturating_sub(2);
        for _ in 0..self.random.index(spare + 1) {
            values.remove(self.random.index(values.len()));
        }
        values
    }

    fn stock(&mut self) -> u32 {
        let stock = match self.random.below(20) {
            0 => 0,
            1 | 2 => 1 + self.random.below(5),
            _ => 10 + self.random.below(390),
        };
        u32::try_from(stock).unwrap_or_default()
    }
}

fn side(size: [u64; 3], at: usize) -> Option<u32> {
    size.get(at).and_then(|side| u32::try_from(*side).ok())
}

/// Every combination of one value of each list.
fn combinations<T: Copy>(choices: &[Vec<T>]) -> Vec<Vec<T>> {
    let mut ways = vec![Vec::new()];
    for values in choices {
        let longer = ways.iter().flat_map(|way| {
            values.iter().map(move |value| {
                let mut way: Vec<T> = way.clone();
                way.push(*value);
                way
            })
        });
        ways = longer.collect();
    }
    ways
}

/// A price that looks like one: 19.99 and not 20.13.
fn list_price(usd_cents: u64, steps: &PriceSteps) -> u64 {
    let exact = usd_cents * steps.thousandths / 1_000;
    stepped(exact, steps.step) + steps.end
}

/// Rounds down to a whole number of steps, and up to one step at least.
fn stepped(number: u64, step: u64) -> u64 {
    (number / step.max(1)).max(1) * step
}

/// `SplitMix64`: small, fast, and random enough for a shop.
struct Random(u64);

impl Random {
    /// A generator for a seed and a name (FNV-1a), so that each name has its own numbers.
    fn named(seed: u64, name: &str) -> Self {
        let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        Self(seed ^ hash)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn index(&mut self, length: usize) -> usize {
        let end = u64::try_from(length).unwrap_or(u64::MAX);
        usize::try_from(self.below(end)).unwrap_or_default()
    }

    fn one_of<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.index(from.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the published algorithm for the seed 1234567.
    #[test]
    fn random_numbers_are_those_of_split_mix() {
        let mut random = Random(1_234_567);
        let numbers = [random.next(), random.next(), random.next()];
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn prices_look_like_prices() {
        let steps = |thousandths, step, end| PriceSteps {
            thousandths,
            step,
            end,
        };
        assert_eq!(list_price(2_013, &steps(1_000, 100, 99)), 2_099);
        assert_eq!(list_price(2_013, &steps(1_500, 10, 0)), 3_010);
        assert_eq!(list_price(3, &steps(920, 100, 90)), 190);
    }
}

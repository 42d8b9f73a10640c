//! The price of one parcel with one service: the price of its bracket, the remote area, special handling, and fuel.
//! Each part is rounded to the smallest unit of the tariff's currency, and the price is their sum.

use rust_decimal::Decimal;

use super::answer::Parcel;
use super::tariff::{Remote, Service, Tariff, ZoneRates};
use super::weigh::Load;
use crate::money::{Money, MoneyError};

/// The journey of a parcel, as far as its price depends on it.
pub(super) struct Journey<'a> {
    pub(super) zone: &'a str,
    pub(super) rates: &'a ZoneRates,
    pub(super) is_remote: bool,
    /// The sum of the prices of special handling.
    pub(super) handling: Decimal,
}

/// The parcel with its price.
pub(super) fn parcel(
    tariff: &Tariff,
    service: &Service,
    load: &Load<'_>,
    journey: &Journey<'_>,
) -> Result<Parcel, MoneyError> {
    let actual = load.actual_g();
    let volumetric = load.volumetric_g(service.volumetric.as_ref());
    let chargeable = actual.max(volumetric);
    let money = |amount: Decimal| Money::round(amount, &tariff.currency);
    let freight = money(freight(service, journey.rates, chargeable)?)?;
    let remote = match &service.remote {
        Remote::Surcharge { minimum, per_kg } if journey.is_remote => {
            let by_weight = per_kg.checked_mul(Decimal::from(chargeable));
            let by_weight = by_weight.ok_or(MoneyError::TooLarge)? / Decimal::ONE_THOUSAND;
            money(by_weight.max(*minimum))?
        }
        Remote::Surcharge { .. } | Remote::Included {} | Remote::Refused {} => {
            Money::zero(&tariff.currency)
        }
    };
    let handling = money(journey.handling)?;
    let fuel = freight.plus(&remote)?.share(service.fuel_rate)?;
    let price = Money::sum([&freight, &remote, &handling, &fuel], &tariff.currency)?;
    Ok(Parcel {
        merchant_id: load.merchant_id.to_owned(),
        ships_from: load.ships_from.to_owned(),
        zone: journey.zone.to_owned(),
        actual_weight_g: grams(actual),
        volumetric_weight_g: grams(volumetric),
        chargeable_weight_g: grams(chargeable),
        freight,
        remote,
        handling,
        fuel,
        price,
    })
}

/// The price of the first bracket that is wide enough; beyond the last one, a price for each started kilogram.
fn freight(service: &Service, rates: &ZoneRates, grams: u64) -> Result<Decimal, MoneyError> {
    let mut brackets = service.brackets_g.iter().zip(&rates.prices);
    if let Some((_, price)) = brackets.find(|(upper, _)| grams <= **upper) {
        return Ok(*price);
    }
    let last = service.brackets_g.last().copied().unwrap_or_default();
    let further_kg = Decimal::from((grams - last).div_ceil(1_000));
    // A file without it is refused unless nothing can be so heavy.
    let per_kg = rates.per_kg.ok_or(MoneyError::TooLarge)?;
    let beyond = per_kg.checked_mul(further_kg);
    let base = rates.prices.last().copied().unwrap_or_default();
    beyond
        .and_then(|beyond| beyond.checked_add(base))
        .ok_or(MoneyError::TooLarge)
}

/// The weight as `u32`; limits keep it far below the maximum.
fn grams(weight: u64) -> u32 {
    u32::try_from(weight).unwrap_or(u32::MAX)
}

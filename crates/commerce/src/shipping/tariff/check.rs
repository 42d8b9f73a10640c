//! The checks of a tariff file: it is refused for an unresolved name, a price that falls or is missing, or a figure
//! without a source.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::{Remote, Service, Tariff};
use crate::money;
use crate::rulebook::RuleData;
use crate::shipping::goods::{Field, Goods, Test};

impl RuleData for Tariff {
    const NAME: &'static str = "shipping";

    fn check(&self) -> Result<(), String> {
        money::exponent(&self.currency).map_err(|error| error.to_string())?;
        self.check_groups()?;
        let mut kinds = BTreeSet::new();
        for goods in &self.goods {
            if !kinds.insert(goods.id.as_str()) {
                return Err(format!("the goods {} are there twice", goods.id));
            }
            self.check_goods(goods)?;
        }
        let mut names = BTreeSet::new();
        for service in &self.services {
            if !names.insert(service.id.as_str()) {
                return Err(format!("the service {} is there twice", service.id));
            }
            self.check_service(service)
                .map_err(|problem| format!("the service {}: {problem}", service.id))?;
        }
        Ok(())
    }
}

impl Tariff {
    fn check_groups(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for country in self.groups.values().flatten() {
            let is_code = country.len() == 2 && country.bytes().all(|b| b.is_ascii_uppercase());
            if !is_code || !seen.insert(country) {
                return Err(format!(
                    "{country} has to be two capital letters, in one group only"
                ));
            }
        }
        let named = self
            .zones
            .keys()
            .chain(self.zones.values().flat_map(BTreeMap::keys));
        self.check_known(named)?;
        let remote = self
            .remote_areas
            .keys()
            .find(|country| !seen.contains(country));
        remote.map_or(Ok(()), |country| {
            Err(format!("remote areas of {country}, which is in no group"))
        })
    }

    fn check_known<'a>(&self, groups: impl IntoIterator<Item = &'a String>) -> Result<(), String> {
        let mut groups = groups.into_iter();
        let unknown = groups.find(|group| !self.groups.contains_key(*group));
        unknown.map_or(Ok(()), |group| Err(format!("there is no group {group:?}")))
    }

    fn check_goods(&self, goods: &Goods) -> Result<(), String> {
        if goods.source.is_empty() || goods.date.is_empty() {
            return Err(format!("the goods {} need a source and a date", goods.id));
        }
        if goods.any.is_empty() || goods.any.iter().any(Vec::is_empty) {
            return Err(format!("the goods {} need a condition", goods.id));
        }
        for condition in goods.any.iter().flatten() {
            if let Test::InGroup { value } = &condition.test {
                if condition.field != Field::Country {
                    return Err(format!(
                        "the goods {}: only a country is in a group",
                        goods.id
                    ));
                }
                self.check_known([value])?;
            }
        }
        Ok(())
    }

    fn check_service(&self, service: &Service) -> Result<(), String> {
        if !self.carriers.contains_key(service.carrier()) || !service.id.contains('.') {
            return Err("its name has to be a carrier, a dot and a word".to_owned());
        }
        self.check_known(service.from.iter().chain(&service.to))?;
        let handled = service.handles.iter().map(|handling| &handling.goods);
        for goods in service.refuses.iter().chain(handled) {
            if self.goods(goods).is_none() {
                return Err(format!("there are no goods {goods:?}"));
            }
        }
        let remote_prices = match &service.remote {
            Remote::Included {} | Remote::Refused {} => [Decimal::ZERO; 2],
            Remote::Surcharge { minimum, per_kg } => [*minimum, *per_kg],
        };
        let handled = service.handles.iter().map(|handling| handling.price);
        let mut prices = handled.chain(remote_prices).chain([service.fuel_rate]);
        if prices.any(|price| price < Decimal::ZERO) || service.fuel_rate > Decimal::ONE {
            return Err("no price is below zero, and no fuel rate above one".to_owned());
        }
        service.check_brackets()
    }
}

impl Service {
    fn check_brackets(&self) -> Result<(), String> {
        let Some(last) = self.brackets_g.last().copied() else {
            return Err("it needs brackets".to_owned());
        };
        if !self.brackets_g.is_sorted_by(|left, right| left < right) {
            return Err("brackets have to rise".to_owned());
        }
        let mut heaviest = self.limits.weight_max_g;
        if let Some(volumetric) = &self.volumetric {
            if volumetric.divisor_cm3_per_kg == 0 || volumetric.source.is_empty() {
                return Err("a divisor is above zero and has a source".to_owned());
            }
            let volume = self.limits.volume_max_cm3.unwrap_or(u64::MAX);
            let counts = volume.saturating_mul(1_000) / volumetric.divisor_cm3_per_kg;
            heaviest = heaviest.max(counts);
        }
        if self.limits.source.is_empty() {
            return Err("limits need a source".to_owned());
        }
        for (zone, rates) in &self.zones {
            let ordered = [rates.prices.as_slice(), rates.per_kg.as_slice()];
            let is_positive = ordered.concat().iter().all(|price| *price >= Decimal::ZERO);
            if rates.prices.len() != self.brackets_g.len()
                || !rates.prices.is_sorted()
                || !is_positive
            {
                return Err(format!(
                    "{zone} needs a price for each bracket, none of them falling"
                ));
            }
            if rates.per_kg.is_none() && heaviest > last {
                return Err(format!("{zone} has no price for {heaviest} g"));
            }
            if rates.days.0 > rates.days.1 {
                return Err(format!("{zone} takes fewer days at most than at least"));
            }
        }
        Ok(())
    }
}

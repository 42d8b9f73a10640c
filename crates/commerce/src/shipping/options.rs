//! Shipping options: every service is asked for every parcel. An option exists if one service takes all parcels of the
//! basket; its price is the sum of theirs, converted once.

use countersign::ToolError;

use super::answer::{Cause, Excluded, Parcel, ShippingOption, Sla};
use super::price::{self, Journey};
use super::refusal;
use super::tariff::{Remote, Service, Tariff, ZoneRates};
use super::weigh::{self, Load};
use crate::destination::Destination;
use crate::fx::{RateUsed, Rates};
use crate::item::Basket;
use crate::money::Money;
use crate::shop::Shop;

/// The complete input of the computation of options.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The shop.
    pub shop: &'a Shop,
    /// The prices and conditions of the carriers.
    pub tariff: &'a Tariff,
    /// The exchange rates.
    pub rates: &'a Rates,
    /// The items to send.
    pub basket: &'a Basket,
    /// The destination.
    pub destination: &'a Destination,
    /// The currency of the answer.
    pub currency: &'a str,
    /// The locale of reasons and names.
    pub locale: Option<&'a str>,
}

/// The options of a basket.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered {
    /// The options, the cheapest first; at least one.
    pub options: Vec<ShippingOption>,
    /// The services that are not available, each with its reason.
    pub excluded: Vec<Excluded>,
    /// The exchange rate that was used; empty if there was none.
    pub rates: Vec<RateUsed>,
}

impl Question<'_> {
    /// The options for the basket; an error if there are none.
    pub fn answer(&self) -> Result<Offered, ToolError> {
        let loads = weigh::loads(self.shop, self.basket, "/items")?;
        let to = self.destination.country();
        if !self.tariff.serves(&to) {
            return Err(self.unserved());
        }
        let unsent = weigh::not_sent_to(&loads, &to);
        if !unsent.is_empty() {
            return Err(self.not_sent_there(&unsent));
        }
        let mut offered = Offered {
            options: Vec::new(),
            excluded: Vec::new(),
            rates: Vec::new(),
        };
        for service in &self.tariff.services {
            // A service that does not run on this route at all is not worth naming.
            let runs = |load: &Load<'_>| self.lane(service, load, &to).is_some();
            if !loads.iter().any(runs) {
                continue;
            }
            match self.service(service, &loads, &to)? {
                Asked::Taken(parcels) => {
                    let option = self.option(service, parcels, &mut offered.rates)?;
                    offered.options.push(option);
                }
                Asked::Refused(excluded) => offered.excluded.push(excluded),
            }
        }
        if offered.options.is_empty() {
            let could_go_apart = loads.len() > 1 && self.each_could_go(&loads, &to)?;
            return Err(self.nothing(&offered.excluded, could_go_apart));
        }
        offered.options.sort_by(|left, right| {
            let by = |option: &ShippingOption| (option.price.amount, option.sla.days_max);
            by(left)
                .cmp(&by(right))
                .then_with(|| left.option_id.cmp(&right.option_id))
        });
        Ok(offered)
    }

    /// True if each parcel could be sent on its own, with any service.
    fn each_could_go(&self, loads: &[Load<'_>], to: &str) -> Result<bool, ToolError> {
        for load in loads {
            let mut is_taken = false;
            for service in &self.tariff.services {
                let asked = self.service(service, std::slice::from_ref(load), to)?;
                is_taken |= matches!(asked, Asked::Taken(_));
            }
            if !is_taken {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Prices all parcels with one service, or gives the first reason why the service does not take them. A limit is
    /// named only if nothing else is in the way: then a smaller quantity would do.
    fn service(&self, service: &Service, loads: &[Load<'_>], to: &str) -> Result<Asked, ToolError> {
        let mut parcels = Vec::with_capacity(loads.len());
        let mut over = None;
        for load in loads {
            match self.journey(service, load, to) {
                Ok(journey) => {
                    let parcel = price::parcel(self.tariff, service, load, &journey)?;
                    parcels.push((parcel, journey.rates.days));
                }
                Err(excluded) if excluded.cause == Cause::Limit => {
                    over = over.or(Some(excluded));
                }
                Err(excluded) => return Ok(Asked::Refused(excluded)),
            }
        }
        Ok(over.map_or(Asked::Taken(parcels), Asked::Refused))
    }

    /// The lane of a service for a parcel; `None` if it does not run there.
    fn lane<'a>(&'a self, service: &'a Service, load: &Load<'_>, to: &str) -> Option<Lane<'a>> {
        let from_group = self.tariff.group(load.ships_from)?;
        let to_group = self.tariff.group(to)?;
        let zone = self.tariff.zone(load.ships_from, to)?;
        let rates = service.zones.get(zone)?;
        service.runs(from_group, to_group).then_some(Lane {
            to_group,
            zone,
            rates,
        })
    }

    /// The journey of a parcel with a service, or the reason why the service does not take it.
    fn journey<'a>(
        &'a self,
        service: &'a Service,
        load: &Load<'_>,
        to: &str,
    ) -> Result<Journey<'a>, Excluded> {
        let Some(Lane {
            to_group,
            zone,
            rates,
        }) = self.lane(service, load, to)
        else {
            return Err(self.no_way(service, load.ships_from, to));
        };
        let of_goods = |id: &str| -> Vec<String> {
            let goods = self.tariff.goods(id);
            let lines = load.lines.iter().filter(|line| {
                // An undefined kind matches every item, so nothing is taken; files with such a name are not loaded.
                goods.is_none_or(|goods| goods.is(line.offer, to_group, to))
            });
            lines.map(|line| line.variant.sku.clone()).collect()
        };
        for id in &service.refuses {
            let skus = of_goods(id);
            if !skus.is_empty() {
                return Err(self.refused(service, id, skus));
            }
        }
        if let Some(over) = load.over(&service.limits) {
            return Err(self.over(service, &over));
        }
        let postal_code = self.destination.postal_code.as_deref();
        let is_remote = self.tariff.is_remote(to, postal_code) == Some(true);
        if is_remote && service.remote == (Remote::Refused {}) {
            return Err(refusal::excluded(
                service,
                Cause::RemoteArea,
                self.words("it does not go to this remote area", "不承运该偏远地区"),
            ));
        }
        let handled = service.handles.iter();
        let handled = handled.filter(|handling| !of_goods(&handling.goods).is_empty());
        Ok(Journey {
            zone,
            rates,
            is_remote,
            handling: handled.map(|handling| handling.price).sum(),
        })
    }

    fn option(
        &self,
        service: &Service,
        parcels: Vec<(Parcel, (u32, u32))>,
        rates: &mut Vec<RateUsed>,
    ) -> Result<ShippingOption, ToolError> {
        let days_min = parcels.iter().map(|(_, days)| days.0).max();
        let days_max = parcels.iter().map(|(_, days)| days.1).max();
        let parcels: Vec<Parcel> = parcels.into_iter().map(|(parcel, _)| parcel).collect();
        let prices = parcels.iter().map(|parcel| &parcel.price);
        let sum = Money::sum(prices, &self.tariff.currency)?;
        let (price, used) = self.rates.convert(&sum, self.currency)?;
        if let Some(used) = used.filter(|used| !rates.contains(used)) {
            rates.push(used);
        }
        let grams = |of: fn(&Parcel) -> u32| parcels.iter().map(of).fold(0, u32::saturating_add);
        let carrier = self.tariff.carriers.get(service.carrier());
        Ok(ShippingOption {
            option_id: service.id.clone(),
            carrier: carrier.cloned().unwrap_or_default(),
            service: service.name.for_locale(self.locale).to_owned(),
            price,
            sla: Sla {
                days_min: days_min.unwrap_or_default(),
                days_max: days_max.unwrap_or_default(),
                guaranteed: service.guaranteed,
            },
            chargeable_weight_g: grams(|parcel| parcel.chargeable_weight_g),
            actual_weight_g: grams(|parcel| parcel.actual_weight_g),
            volumetric_weight_g: grams(|parcel| parcel.volumetric_weight_g),
            tracked: service.tracked,
            incoterms: service.incoterms.clone(),
            parcels,
            restrictions: self.restrictions(service),
        })
    }

    /// The notes that people should know before they select it.
    fn restrictions(&self, service: &Service) -> Vec<String> {
        let notes = service.notes.iter();
        let mut notes: Vec<String> = notes
            .map(|note| note.for_locale(self.locale).to_owned())
            .collect();
        let postal_code = self.destination.postal_code.as_deref();
        let is_unknown = self
            .tariff
            .is_remote(&self.destination.country(), postal_code)
            .is_none();
        if is_unknown && service.remote != (Remote::Included {}) {
            notes.push(self.words(
                "Without a postal code it is unknown whether this is a remote area, which costs more or is not served.",
                "未提供邮政编码，无法判断是否为偏远地区（可能加收费用或无法送达）。",
            ));
        }
        notes
    }
}

struct Lane<'a> {
    to_group: &'a str,
    zone: &'a str,
    rates: &'a ZoneRates,
}

enum Asked {
    Taken(Vec<(Parcel, (u32, u32))>),
    Refused(Excluded),
}

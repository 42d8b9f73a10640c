//! The facts that rules can ask about an item and its destination. The list is closed, except for the attributes, which
//! the file of the rules declares.

use std::borrow::Cow;

use rust_decimal::Decimal;
use serde_json::Value;

use super::written::AttributeKind;
use crate::compliance::judge::Thing;
use crate::destination::Destination;
use crate::shop::{Battery, Chemistry, Packing};

/// A fact that rules can ask about.
///
/// | name | what it is |
/// |---|---|
/// | `category` | path, from the general to the special |
/// | `hs_code` | six digits |
/// | `origin`, `ships_from` | two letters |
/// | `cross_border` | true if the country of dispatch differs from the destination |
/// | `quantity` | quantity of the offer, over all its variants |
/// | `category_quantity` | quantity of its kind in the basket: `health/supplements` of `health/supplements/vitamin` |
/// | `battery.present` | always known |
/// | `battery.chemistry` | `lithium_ion`, `lithium_metal`, `alkaline`; missing without a battery |
/// | `battery.packing` | `alone`, `with_equipment`, `in_equipment`; missing without a battery |
/// | `battery.watt_hours` | of lithium ion; missing if not given |
/// | `battery.lithium_mg` | of lithium metal; missing if not given |
/// | `destination.country` | always known |
/// | `destination.region`, `destination.postal_code` | missing if not given |
/// | `attributes.NAME` | as the file declares it; missing if the offer does not give it, or in another type |
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fact {
    Category,
    HsCode,
    Origin,
    ShipsFrom,
    CrossBorder,
    Quantity,
    CategoryQuantity,
    BatteryPresent,
    BatteryChemistry,
    BatteryPacking,
    BatteryWattHours,
    BatteryLithiumMg,
    Country,
    Region,
    PostalCode,
    Attribute(String, AttributeKind),
}

/// The type of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Flag,
    Country,
}

/// The value of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known<'a> {
    Text(Cow<'a, str>),
    Number(Decimal),
    Flag(bool),
}

impl Fact {
    const NAMED: [(&'static str, Self); 15] = [
        ("category", Self::Category),
        ("hs_code", Self::HsCode),
        ("origin", Self::Origin),
        ("ships_from", Self::ShipsFrom),
        ("cross_border", Self::CrossBorder),
        ("quantity", Self::Quantity),
        ("category_quantity", Self::CategoryQuantity),
        ("battery.present", Self::BatteryPresent),
        ("battery.chemistry", Self::BatteryChemistry),
        ("battery.packing", Self::BatteryPacking),
        ("battery.watt_hours", Self::BatteryWattHours),
        ("battery.lithium_mg", Self::BatteryLithiumMg),
        ("destination.country", Self::Country),
        ("destination.region", Self::Region),
        ("destination.postal_code", Self::PostalCode),
    ];

    /// The names of all facts except the attributes.
    #[cfg(test)]
    pub(super) fn names() -> Vec<&'static str> {
        Self::NAMED.iter().map(|(name, _)| *name).collect()
    }

    /// The fact of this name; `None` for attributes.
    pub(super) fn named(name: &str) -> Option<Self> {
        let named = Self::NAMED.into_iter().find(|(known, _)| *known == name);
        named.map(|(_, fact)| fact)
    }

    pub(super) fn name(&self) -> String {
        if let Self::Attribute(name, _) = self {
            return format!("attributes.{name}");
        }
        let named = Self::NAMED.into_iter().find(|(_, fact)| fact == self);
        named.map_or_else(String::new, |(name, _)| name.to_owned())
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Category
            | Self::HsCode
            | Self::BatteryChemistry
            | Self::BatteryPacking
            | Self::Region
            | Self::PostalCode
            | Self::Attribute(_, AttributeKind::Text) => Kind::Text,
            Self::Quantity
            | Self::CategoryQuantity
            | Self::BatteryWattHours
            | Self::BatteryLithiumMg
            | Self::Attribute(_, AttributeKind::Number) => Kind::Number,
            Self::CrossBorder | Self::BatteryPresent | Self::Attribute(_, AttributeKind::Flag) => {
                Kind::Flag
            }
            Self::Origin | Self::ShipsFrom | Self::Country => Kind::Country,
        }
    }
}

/// The facts about an item and its destination.
pub(in crate::compliance) struct Facts<'a> {
    thing: &'a Thing<'a>,
    destination: &'a Destination,
}

impl<'a> Facts<'a> {
    pub(in crate::compliance) fn of(thing: &'a Thing<'a>, destination: &'a Destination) -> Self {
        Self { thing, destination }
    }

    pub(in crate::compliance) fn category(&self) -> &str {
        &self.thing.offer.category
    }

    pub(in crate::compliance) fn country(&self) -> &str {
        &self.destination.country
    }

    /// The countries that are involved, each with its role in English and Chinese.
    pub(in crate::compliance) fn countries(&self) -> [(&'static str, &'static str, &str); 3] {
        [
            ("destination", "目的地", &self.destination.country),
            ("origin", "原产国", &self.thing.offer.origin),
            ("sending country", "发货国", &self.thing.offer.ships_from),
        ]
    }

    pub(super) fn has_certificate(&self, wanted: &str) -> bool {
        let held = self.thing.offer.certificates.iter();
        held.map(|name| spelled(name)).any(|name| name == wanted)
    }

    /// The value of a fact; `None` if it is not given, or not in a usable form.
    pub(super) fn known(&self, fact: &Fact) -> Option<Known<'a>> {
        let offer = self.thing.offer;
        let text = |text: &'a str| Some(Known::Text(Cow::Borrowed(text)));
        match fact {
            Fact::Category => text(&offer.category),
            Fact::HsCode => text(&offer.hs_code),
            Fact::Origin => text(&offer.origin),
            Fact::ShipsFrom => text(&offer.ships_from),
            Fact::CrossBorder => Some(Known::Flag(offer.ships_from != self.destination.country)),
            Fact::Quantity => Some(Known::Number(self.thing.quantity.into())),
            Fact::CategoryQuantity => Some(Known::Number(self.thing.category_quantity.into())),
            Fact::BatteryPresent => Some(Known::Flag(offer.battery.is_some())),
            Fact::BatteryChemistry => text(chemistry(offer.battery.as_ref()?)),
            Fact::BatteryPacking => text(packing(offer.battery.as_ref()?)),
            Fact::BatteryWattHours => said(offer.battery.as_ref()?.watt_hours),
            Fact::BatteryLithiumMg => said(offer.battery.as_ref()?.lithium_mg),
            Fact::Country => text(&self.destination.country),
            Fact::Region => text(self.destination.region.as_deref()?),
            Fact::PostalCode => {
                let code = self.destination.postal_code.as_deref()?;
                Some(Known::Text(Cow::Owned(code.trim().to_uppercase())))
            }
            Fact::Attribute(name, kind) => attribute(offer.attributes.get(name)?, *kind),
        }
    }
}

/// The energy or lithium content of a battery; `None` for 0, which means that it is not given.
fn said(amount: u32) -> Option<Known<'static>> {
    (amount > 0).then(|| Known::Number(amount.into()))
}

fn attribute(value: &Value, kind: AttributeKind) -> Option<Known<'_>> {
    match (kind, value) {
        (AttributeKind::Text, Value::String(text)) => Some(Known::Text(Cow::Borrowed(text))),
        (AttributeKind::Flag, Value::Bool(flag)) => Some(Known::Flag(*flag)),
        (AttributeKind::Number, value) => number(value).map(Known::Number),
        (AttributeKind::Text | AttributeKind::Flag, _) => None,
    }
}

/// The value as a number: whole numbers, and decimals as strings.
pub(super) fn number(value: &Value) -> Option<Decimal> {
    match value {
        Value::Number(number) => number.as_i64().map(Decimal::from),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The name of a certificate for comparison, without spaces and in capital letters: `UN 38.3` is `UN38.3`.
pub(super) fn spelled(certificate: &str) -> String {
    let letters = certificate.chars().filter(|letter| !letter.is_whitespace());
    letters.flat_map(char::to_uppercase).collect()
}

fn chemistry(battery: &Battery) -> &'static str {
    match battery.chemistry {
        Chemistry::LithiumIon => "lithium_ion",
        Chemistry::LithiumMetal => "lithium_metal",
        Chemistry::Alkaline => "alkaline",
    }
}

fn packing(battery: &Battery) -> &'static str {
    match battery.packing {
        Packing::Alone => "alone",
        Packing::WithEquipment => "with_equipment",
        Packing::InEquipment => "in_equipment",
    }
}

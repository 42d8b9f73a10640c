//! The conditions of carriers on goods. Fields and operators are closed lists: a rule file with an unknown one cannot
//! be loaded, so no condition is ever skipped.

use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::Value;

use crate::shop::{Battery, Offer, Text};

/// A kind of goods that carriers treat specially.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Goods {
    pub(super) id: String,
    pub(super) source: String,
    pub(super) date: String,
    /// The conditions: one of the lists has to hold, with everything in it.
    pub(super) any: Vec<Vec<Condition>>,
    /// The name of the kind, as the end of "does not take".
    pub(super) message: Text,
    /// The remedies of a buyer.
    #[serde(default)]
    pub(super) mitigations: Vec<Text>,
}

impl Goods {
    /// True if an offer is of this kind on its way to a country of this group.
    pub(super) fn is(&self, offer: &Offer, group: &str, country: &str) -> bool {
        let on_the_way = OnTheWay {
            offer,
            group,
            country,
        };
        let mut lists = self.any.iter();
        lists.any(|all| all.iter().all(|condition| condition.holds(&on_the_way)))
    }
}

/// An offer and its destination.
struct OnTheWay<'a> {
    offer: &'a Offer,
    group: &'a str,
    country: &'a str,
}

/// A test of one field.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Condition {
    pub(super) field: Field,
    #[serde(flatten)]
    pub(super) test: Test,
}

/// A field of an offer or its destination.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum Field {
    Category,
    HsCode,
    BatteryChemistry,
    BatteryPacking,
    BatteryWattHours,
    BatteryLithiumMg,
    Country,
    Attribute(String),
}

impl TryFrom<String> for Field {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Ok(match name.as_str() {
            "category" => Self::Category,
            "hs_code" => Self::HsCode,
            "battery.chemistry" => Self::BatteryChemistry,
            "battery.packing" => Self::BatteryPacking,
            "battery.watt_hours" => Self::BatteryWattHours,
            "battery.lithium_mg" => Self::BatteryLithiumMg,
            "destination.country" => Self::Country,
            other => match other.strip_prefix("attributes.") {
                Some(attribute) if !attribute.is_empty() => Self::Attribute(attribute.to_owned()),
                Some(_) | None => return Err(format!("there is no field {other:?} of goods")),
            },
        })
    }
}

/// The operator of a condition.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Test {
    /// The field is given.
    Exists {},
    /// It equals this value.
    Equals { value: Value },
    /// It equals one of these.
    OneOf { values: Vec<Value> },
    /// It is a number above this one.
    Above { value: Decimal },
    /// It is a number of at least this one.
    AtLeast { value: Decimal },
    /// It is a string that begins so.
    StartsWith { value: String },
    /// It is this category, or one below it.
    Under { value: String },
    /// It is a country of this group.
    InGroup { value: String },
}

impl Condition {
    fn holds(&self, on_the_way: &OnTheWay<'_>) -> bool {
        let Some(found) = self.field.of(on_the_way) else {
            return false;
        };
        match &self.test {
            Test::Exists {} => true,
            Test::Equals { value } => found == *value,
            Test::OneOf { values } => values.contains(&found),
            // A value that should be a number and is not one may be anything: the carrier would not take it unseen.
            Test::Above { value } => number(&found).is_none_or(|found| found > *value),
            Test::AtLeast { value } => number(&found).is_none_or(|found| found >= *value),
            Test::StartsWith { value } => text(&found).starts_with(value),
            Test::Under { value } => text(&found)
                .strip_prefix(value.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            Test::InGroup { value } => on_the_way.group == value,
        }
    }
}

impl Field {
    /// The value of the field; `None` if it is not given.
    fn of(&self, on_the_way: &OnTheWay<'_>) -> Option<Value> {
        let offer = on_the_way.offer;
        let battery = |read: fn(&Battery) -> Option<Value>| offer.battery.as_ref().and_then(read);
        match self {
            Self::Category => Some(offer.category.as_str().into()),
            Self::HsCode => Some(offer.hs_code.as_str().into()),
            Self::BatteryChemistry => {
                battery(|battery| serde_json::to_value(battery.chemistry).ok())
            }
            Self::BatteryPacking => battery(|battery| serde_json::to_value(battery.packing).ok()),
            Self::BatteryWattHours => battery(|battery| Some(battery.watt_hours.into())),
            Self::BatteryLithiumMg => battery(|battery| Some(battery.lithium_mg.into())),
            Self::Country => Some(on_the_way.country.into()),
            Self::Attribute(name) => offer.attributes.get(name).cloned(),
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The value as a number, also if the shop wrote it as a string.
fn number(value: &Value) -> Option<Decimal> {
    match value {
        Value::Number(number) => number.to_string().parse().ok(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

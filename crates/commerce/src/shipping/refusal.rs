//! The reasons why a service is not available, and the answers if none is: in the language of the call, with causes
//! that programs can read.

use std::collections::BTreeSet;

use countersign::ToolError;
use countersign::contract::ErrorCode;
use serde_json::json;

use super::answer::{Cause, Excluded};
use super::options::Question;
use super::tariff::Service;
use super::weigh::{Line, Over};
use crate::shop::is_chinese;
use crate::words::Say;

impl Question<'_> {
    pub(super) fn refused(&self, service: &Service, rule: &str, skus: Vec<String>) -> Excluded {
        let goods = self.tariff.goods(rule);
        let what = goods.map_or(rule, |goods| goods.message.for_locale(self.locale));
        let reason = self.words(
            &format!("it does not take {what}"),
            &format!("不承运{what}"),
        );
        Excluded {
            rule: Some(rule.to_owned()),
            skus,
            ..excluded(service, Cause::Goods, reason)
        }
    }

    pub(super) fn no_way(&self, service: &Service, from: &str, to: &str) -> Excluded {
        let reason = self.words(
            &format!("it does not run from {from} to {to}"),
            &format!("不承运从 {from} 到 {to} 的线路"),
        );
        excluded(service, Cause::Route, reason)
    }

    pub(super) fn over(&self, service: &Service, over: &Over) -> Excluded {
        let limits = &service.limits;
        let max = |limit: Option<u64>| limit.unwrap_or_default();
        let (reason, sku) = match over {
            Over::Weight(grams) => {
                let max = limits.weight_max_g;
                (
                    self.words(
                        &format!("the parcel weighs {grams} g, at most {max} g are taken"),
                        &format!("包裹重 {grams} 克，最多 {max} 克"),
                    ),
                    None,
                )
            }
            Over::Volume(cm3) => {
                let max = max(limits.volume_max_cm3);
                (
                    self.words(
                        &format!("the parcel has {cm3} cm³, at most {max} cm³ are taken"),
                        &format!("包裹体积 {cm3} 立方厘米，最多 {max} 立方厘米"),
                    ),
                    None,
                )
            }
            Over::Side(sku) => {
                let max = limits.side_max_mm;
                (
                    self.words(
                        &format!("a side is longer than {max} mm"),
                        &format!("单边超过 {max} 毫米"),
                    ),
                    Some(sku),
                )
            }
            Over::SidesSum(sku) => {
                let max = max(limits.sides_sum_max_mm);
                (
                    self.words(
                        &format!("length, width and height together are longer than {max} mm"),
                        &format!("长宽高之和超过 {max} 毫米"),
                    ),
                    Some(sku),
                )
            }
            Over::Girth(sku) => {
                let max = max(limits.length_and_girth_max_mm);
                (
                    self.words(
                        &format!("length and girth together are longer than {max} mm"),
                        &format!("长度与周长之和超过 {max} 毫米"),
                    ),
                    Some(sku),
                )
            }
        };
        Excluded {
            skus: sku.cloned().into_iter().collect(),
            ..excluded(service, Cause::Limit, reason)
        }
    }

    /// The text in the language of the call.
    pub(super) fn words(&self, english: &str, chinese: &str) -> String {
        let words = if is_chinese(self.locale) {
            chinese
        } else {
            english
        };
        words.to_owned()
    }

    pub(super) fn unserved(&self) -> ToolError {
        let served: Vec<&str> = self.tariff.served().into_iter().collect();
        let values = served.join(", ");
        ToolError::invalid("/destination/country", Say::NoCarrierToCountry)
            .hint(Say::OneOf { values })
    }

    /// The refusal of items that their seller does not send to the country.
    pub(super) fn not_sent_there(&self, unsent: &[Line<'_>]) -> ToolError {
        let skus: Vec<&str> = unsent
            .iter()
            .map(|line| line.variant.sku.as_str())
            .collect();
        // The countries that all of them are sent to.
        let mut everywhere = self.tariff.served();
        everywhere.retain(|country| unsent.iter().all(|line| line.offer.is_sent_to(country)));
        let everywhere: Vec<&str> = everywhere.into_iter().collect();
        let hint = if everywhere.is_empty() {
            Say::TakeOut
        } else {
            Say::TakeOutOrSendTo {
                countries: everywhere.join(", "),
            }
        };
        ToolError::invalid("/destination/country", Say::SellerDoesNotSend)
            .hint(hint)
            .detail("cause", "not_sent_there")
            .detail("skus", json!(skus))
    }

    /// The refusal of a basket that no service takes. If its parcels could be sent separately, it suggests separate
    /// orders. If a service takes such goods in a smaller quantity, it suggests fewer. Otherwise goods are named first,
    /// because they have remedies.
    pub(super) fn nothing(&self, excluded: &[Excluded], could_go_apart: bool) -> ToolError {
        let has = |cause: Cause| excluded.iter().any(|excluded| excluded.cause == cause);
        // A limit that names an item is about the item's own size, which a smaller quantity does not change.
        let is_parcel =
            |excluded: &Excluded| excluded.cause == Cause::Limit && excluded.skus.is_empty();
        let is_too_much = excluded.iter().any(is_parcel);
        let error = if could_go_apart {
            ToolError::invalid("/items", Say::NoServiceForAll).hint(Say::OrderApart)
        } else if has(Cause::Goods) && !is_too_much {
            let rules: BTreeSet<&str> = excluded
                .iter()
                .filter_map(|excluded| excluded.rule.as_deref())
                .collect();
            let goods = rules.into_iter().filter_map(|rule| self.tariff.goods(rule));
            let mitigations: Vec<String> = goods
                .flat_map(|goods| &goods.mitigations)
                .map(|mitigation| mitigation.for_locale(self.locale).to_owned())
                .collect();
            ToolError::new(ErrorCode::ComplianceBlocked, Say::NoCarrierForGoods)
                .field("/items")
                .hint(Say::TakeOutOrMitigate)
                .detail("mitigations", json!(mitigations))
        } else if has(Cause::Limit) {
            ToolError::invalid("/items", Say::TooHeavy).hint(Say::TakeFewer)
        } else if has(Cause::RemoteArea) {
            ToolError::invalid("/destination/postal_code", Say::NoCarrierToCode)
                .hint(Say::OtherAddress)
        } else {
            return self.unserved();
        };
        error.detail("excluded", json!(excluded))
    }
}

/// A service that is not available, with its cause and no more.
pub(super) fn excluded(service: &Service, cause: Cause, reason: String) -> Excluded {
    Excluded {
        option_id: service.id.clone(),
        reason,
        cause,
        rule: None,
        skus: Vec::new(),
    }
}

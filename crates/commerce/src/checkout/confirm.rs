//! The questions that a buyer has to confirm before paying: made from the order alone, so that they can be repeated in
//! another language.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::order::DraftOrder;
use crate::compliance::Severity;
use crate::shop::is_chinese;
use crate::tax::{Confidence, Incoterm, Method};

/// A topic that the buyer has to confirm.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct ConfirmationItem {
    /// Topic.
    pub kind: ConfirmationKind,
    /// Text for the buyer, in the language of the call.
    pub text: String,
    /// The same topic as data.
    pub details: Value,
}

/// Topics that the buyer has to confirm. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmationKind {
    /// Duties and taxes may differ from the estimate, or are paid to another party.
    TaxUncertainty,
    /// Customs declaration.
    CustomsFields,
    /// The items may be shipped only under conditions.
    ComplianceRisk,
    /// Cost of a return.
    ReturnCost,
    /// Limits of the route.
    RouteLimits,
}

/// A policy that the buyer has to acknowledge before paying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct PolicyAck {
    /// Policy to acknowledge.
    pub policy: Policy,
    /// Text for the buyer, in the language of the call.
    pub text: String,
}

/// Policies that the buyer has to acknowledge. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Duties and taxes are paid to the carrier on delivery.
    ChargesOnDelivery,
    /// Some items are shipped only under conditions.
    ComplianceConditions,
    /// Some items cannot be returned.
    NoReturns,
}

/// The items that the buyer has to confirm.
pub(super) fn items(order: &DraftOrder, locale: Option<&str>) -> Vec<ConfirmationItem> {
    let words = Words {
        order,
        is_chinese: is_chinese(locale),
    };
    let all = [
        words.tax_uncertainty(),
        words.customs_fields(),
        words.compliance_risk(),
        words.return_cost(),
        words.route_limits(),
    ];
    all.into_iter().flatten().collect()
}

/// The policies that the buyer has to acknowledge.
pub(super) fn policies(order: &DraftOrder, locale: Option<&str>) -> Vec<PolicyAck> {
    let words = Words {
        order,
        is_chinese: is_chinese(locale),
    };
    let mut acks = Vec::new();
    let mut add = |policy, text: String| acks.push(PolicyAck { policy, text });
    let due = &order.pricing_breakdown.due_on_delivery;
    if due.amount > 0 {
        let text = words.say(
            &format!("I pay an estimated {due} of duties, taxes and fees to the carrier."),
            &format!("我将向承运人支付预计 {due} 的关税、税款和费用。"),
        );
        add(Policy::ChargesOnDelivery, text);
    }
    // The buyer acknowledges the buyer's own conditions only: those of sellers and carriers are left out.
    let found = order.compliance_summary.findings.iter();
    let asked: BTreeSet<&str> = found
        .filter(|found| found.finding.severity != Severity::Info)
        .flat_map(|found| &found.finding.asked_of_buyer)
        .map(|asked| asked.for_locale(locale))
        .collect();
    if !asked.is_empty() {
        let asked: Vec<&str> = asked.into_iter().collect();
        let text = words.say(
            &format!("For these items I agree to this: {}.", asked.join("; ")),
            &format!("对于这些商品，我同意：{}。", asked.join("；")),
        );
        add(Policy::ComplianceConditions, text);
    }
    let final_sale = order.items.iter().filter(|item| item.returns.days == 0);
    let titles: Vec<&str> = final_sale.map(|item| item.title.as_str()).collect();
    if !titles.is_empty() {
        let text = words.say(
            &format!("I cannot send back: {}.", titles.join(", ")),
            &format!("以下商品不可退货：{}。", titles.join("、")),
        );
        add(Policy::NoReturns, text);
    }
    acks
}

/// The order, and the language of its texts.
pub(super) struct Words<'a> {
    pub(super) order: &'a DraftOrder,
    pub(super) is_chinese: bool,
}

impl Words<'_> {
    /// The text in the buyer's language.
    pub(super) fn say(&self, english: &str, chinese: &str) -> String {
        if self.is_chinese { chinese } else { english }.to_owned()
    }

    fn tax_uncertainty(&self) -> Option<ConfirmationItem> {
        let (tax, costs) = (&self.order.tax_summary, &self.order.pricing_breakdown);
        let charges = [&costs.duty, &costs.tax, &costs.fees];
        let is_free = charges.iter().all(|charge| charge.amount == 0);
        if tax.confidence == Confidence::High && is_free {
            return None;
        }
        let sure = match tax.confidence {
            Confidence::High => self.say(
                "Duties and taxes are an estimate by the published rates.",
                "关税和税款按公布税率估算。",
            ),
            Confidence::Medium => self.say(
                "Duties and taxes are estimated by chapter of the tariff and may come out otherwise.",
                "关税和税款按税则章节估算，实际金额可能不同。",
            ),
            Confidence::Low => self.say(
                "Duties and taxes are a rough estimate: something had to be assumed.",
                "关税和税款仅为粗略估算，部分信息为假设。",
            ),
        };
        let due = &costs.due_on_delivery;
        let paid = match tax.incoterm {
            Incoterm::Dap if due.amount > 0 => self.say(
                &format!(" About {due} are paid to the carrier on delivery."),
                &format!("送达时需向承运人支付约 {due}。"),
            ),
            Incoterm::Dap | Incoterm::Ddp => String::new(),
        };
        Some(ConfirmationItem {
            kind: ConfirmationKind::TaxUncertainty,
            text: format!("{sure}{paid}"),
            details: json!({
                "confidence": tax.confidence,
                "method": tax.method,
                "incoterm": tax.incoterm,
                "due_on_delivery": due,
                "notes": tax.notes,
            }),
        })
    }

    /// The customs declaration of the items that cross a customs border; `None` if there are none.
    fn customs_fields(&self) -> Option<ConfirmationItem> {
        // Within one country or one customs union there is no customs office.
        let method = self.order.tax_summary.method.as_str();
        let inside = [Method::DomesticTaxOnPrice, Method::IntraUnionTaxOnPrice];
        if inside.iter().any(|inside| inside.as_str() == method) {
            return None;
        }
        let to = self.order.destination.country();
        let crossing = self.order.items.iter().filter(|item| item.ships_from != to);
        let fields: Vec<Value> = crossing
            .map(|item| {
                json!({
                    "sku": item.sku,
                    "hs_code": item.hs_code,
                    "origin": item.origin,
                    "quantity": item.quantity,
                    "value": item.line_total,
                })
            })
            .collect();
        (!fields.is_empty()).then(|| ConfirmationItem {
            kind: ConfirmationKind::CustomsFields,
            text: self.say(
                "These goods are declared at customs with their code, origin and value.",
                "以下商品将按其编码、原产地和价值向海关申报。",
            ),
            details: json!({ "declared": fields }),
        })
    }

    fn compliance_risk(&self) -> Option<ConfirmationItem> {
        let summary = &self.order.compliance_summary;
        let found = summary.findings.iter();
        let found: Vec<_> = found
            .filter(|found| found.finding.severity != Severity::Info)
            .collect();
        let messages: Vec<&str> = found.iter().map(|it| it.finding.message.as_str()).collect();
        let rules: Vec<&str> = found.iter().map(|it| it.finding.rule.as_str()).collect();
        (!found.is_empty()).then(|| ConfirmationItem {
            kind: ConfirmationKind::ComplianceRisk,
            text: messages.join(" "),
            details: json!({ "decision": summary.decision, "rules": rules }),
        })
    }

    fn return_cost(&self) -> Option<ConfirmationItem> {
        let costly = self.order.items.iter();
        let costly = costly.filter(|item| item.returns.buyer_pays || item.returns.days == 0);
        let lines: Vec<String> = costly
            .clone()
            .map(|item| {
                let (title, days) = (&item.title, item.returns.days);
                if days == 0 {
                    self.say(
                        &format!("{title} cannot be sent back."),
                        &format!("{title} 不可退货。"),
                    )
                } else {
                    self.say(
                        &format!("{title} can be sent back within {days} days at your own cost."),
                        &format!("{title} 可在 {days} 天内退货，运费自理。"),
                    )
                }
            })
            .collect();
        let returns: Vec<Value> = costly
            .map(|item| json!({ "sku": item.sku, "returns": item.returns }))
            .collect();
        (!lines.is_empty()).then(|| ConfirmationItem {
            kind: ConfirmationKind::ReturnCost,
            text: lines.join(if self.is_chinese { "" } else { " " }),
            details: json!({ "items": returns }),
        })
    }

    fn route_limits(&self) -> Option<ConfirmationItem> {
        let limits = &self.order.route_limits;
        (!limits.is_empty()).then(|| ConfirmationItem {
            kind: ConfirmationKind::RouteLimits,
            text: limits.join(if self.is_chinese { "" } else { " " }),
            details: json!({
                "shipping_option_id": self.order.shipping_option_id,
                "limits": limits,
            }),
        })
    }
}

//! The arguments of every tool, made from the answers of earlier calls.

use serde_json::{Value, json};

use crate::play::Made;
use crate::step::Pick;

/// The baskets and their destinations: two power banks; a watch whose sale ends; the last jacket; a shirt that is sold
/// out; an item whose import is forbidden; an item that may be imported elsewhere; an unknown SKU.
const BASKETS: [(&str, u32, &str, Option<&str>); 7] = [
    ("SKU-0001-01", 2, "DE", Some("10115")),
    ("SKU-0008-01", 1, "DE", Some("10115")),
    ("SKU-0012-02", 1, "DE", None),
    ("SKU-0003-03", 1, "DE", None),
    ("SKU-0001-01", 1, "JP", None),
    ("SKU-0004-01", 1, "GB", None),
    ("SKU-9999-99", 1, "DE", None),
];

/// The calls from nothing to a payment, in this order; the question is answered before the last one.
pub(crate) const WAY: [&str; 13] = [
    "cart.create",
    "cart.add_item",
    "pricing.get_realtime_quote",
    "shipping.quote_options",
    "checkout.select_shipping_option",
    "tax.estimate_duties_and_taxes",
    "compliance.check_item",
    "checkout.compute_total",
    "evidence.create_snapshot",
    "checkout.create_draft_order",
    "checkout.lock_price_and_stock",
    PAYMENT,
    PAYMENT,
];

/// The tool that the user has to confirm.
pub(crate) const PAYMENT: &str = "payment.create_payment_intent";

/// The answers of one user so far.
pub(crate) struct Shelf<'a> {
    /// The calls of the user; empty if unknown ids are wanted.
    pub(crate) made: Vec<&'a Made>,
    pub(crate) pick: Pick,
}

impl Shelf<'_> {
    /// The arguments for a tool. A new tool needs a line here: without one this fails.
    #[expect(clippy::too_many_lines, reason = "one line a tool")]
    pub(crate) fn arguments(&self, tool: &str) -> Value {
        let Pick { basket, which } = self.pick;
        let cart = || self.member("cart.create", "cart_id", "cart_0000000000000000");
        let order = || self.member("checkout.create_draft_order", "draft_order_id", "order_0");
        let evidence = |tool| self.evidence(tool);
        let (sku, quantity, ..) = self.basket();
        match tool {
            "catalog.search_offers" => {
                let query = ["watch", "红色", "power bank"][basket % 3];
                json!({"query": query, "limit": 3})
            }
            "catalog.get_offer_card" | "catalog.get_offer_variants" => {
                json!({"offer_id": format!("OFR-{:04}", basket + 1), "currency": "EUR"})
            }
            "catalog.get_availability" => json!({"skus": [sku]}),
            "pricing.get_realtime_quote" => {
                json!({"items": self.items(), "currency": "EUR"})
            }
            "shipping.quote_options" => {
                json!({"items": self.items(), "destination": self.destination(), "currency": "EUR"})
            }
            "shipping.validate_address" => json!({"address": address(basket)}),
            "tax.estimate_duties_and_taxes" => self.tax(),
            "compliance.check_item" => {
                json!({"items": self.items(), "destination": self.destination()})
            }
            "compliance.policy_ruleset_version"
            | "identity.get_user_profile"
            | "identity.get_user_addresses" => json!({}),
            "knowledge.search" => json!({"query": "can I send a power bank", "limit": 2}),
            "knowledge.get_chunk" => json!({"chunk_id": self.chunk()}),
            "cart.create" => json!({"currency": "EUR"}),
            "cart.add_item" => json!({"cart_id": cart(), "sku": sku, "quantity": quantity}),
            "cart.update_quantity" => {
                json!({"cart_id": cart(), "sku": sku, "quantity": basket % 3})
            }
            "cart.remove_item" => json!({"cart_id": cart(), "sku": sku}),
            "cart.get" => json!({"cart_id": cart()}),
            "checkout.select_shipping_option" => self.select(),
            "checkout.compute_total" => json!({
                "cart_id": cart(),
                "quote_snapshot_id": evidence("pricing.get_realtime_quote"),
                "tax_snapshot_id": evidence("tax.estimate_duties_and_taxes"),
                "compliance_snapshot_id": evidence("compliance.check_item"),
            }),
            "evidence.create_snapshot" => self.bundle(),
            "checkout.create_draft_order" => json!({
                "cart_id": cart(),
                "evidence_snapshot_id": evidence("evidence.create_snapshot"),
            }),
            "checkout.get_draft_order_summary" | "checkout.lock_price_and_stock" => {
                json!({"draft_order_id": order()})
            }
            PAYMENT => self.payment(),
            "evidence.attach_to_draft_order" if which % 2 == 0 => {
                json!({"draft_order_id": order(), "snapshot_id": evidence("compliance.check_item")})
            }
            "evidence.attach_to_draft_order" => {
                let document = json!({"kind": "receipt", "text": format!("paid, {basket}")});
                json!({"draft_order_id": order(), "attachment": document})
            }
            "identity.add_or_update_address" => self.address(),
            "mission.create" => json!({"goal": "a warm jacket", "destination_country": "DE"}),
            "mission.get" => self.mission().unwrap_or_else(|| json!({})),
            "mission.update" => {
                let mut update = self
                    .mission()
                    .unwrap_or_else(|| json!({"mission_id": "mis_0"}));
                update["expected_version"] = json!(1 + basket % 3);
                update["note"] = json!("looked at three");
                update
            }
            "obs.log_event" => json!({"name": "search.no_match", "attributes": {"words": basket}}),
            other => {
                assert_eq!(other, "", "a tool without arguments here");
                Value::Null
            }
        }
    }

    /// An answer of a tool, counted back from the newest by `which`.
    fn answer(&self, tool: &str) -> Option<&Made> {
        self.nth(|made| made.tool == tool)
    }

    fn nth(&self, is_one: impl Fn(&Made) -> bool) -> Option<&Made> {
        let of: Vec<&Made> = (self.made.iter().rev().copied())
            .filter(|made| made.is_real() && is_one(made))
            .collect();
        let count = of.len().max(1);
        of.get(self.pick.which % count).copied()
    }

    fn evidence(&self, tool: &str) -> String {
        let id = self.answer(tool).and_then(Made::evidence);
        id.unwrap_or("ev_nobody").to_owned()
    }

    fn member(&self, tool: &str, name: &str, unknown: &str) -> String {
        let found = self
            .answer(tool)
            .and_then(|made| made.data()[name].as_str());
        found.unwrap_or(unknown).to_owned()
    }

    fn basket(&self) -> (&'static str, u32, &'static str, Option<&'static str>) {
        BASKETS[self.pick.basket % BASKETS.len()]
    }

    fn destination(&self) -> Value {
        let (_, _, country, postal_code) = self.basket();
        match postal_code {
            Some(code) => json!({"country": country, "postal_code": code}),
            None => json!({"country": country}),
        }
    }

    /// The items of the cart as it was last seen; otherwise those of the chosen basket.
    fn items(&self) -> Value {
        let cart = self
            .answer("cart.create")
            .map(|made| &made.data()["cart_id"]);
        let seen = self.made.iter().rev().find_map(|made| {
            let lines = made.data()["lines"].as_array();
            lines.filter(|lines| {
                cart == Some(&made.data()["cart_id"]) && !lines.is_empty() && made.is_real()
            })
        });
        let (sku, quantity, ..) = self.basket();
        let Some(lines) = seen else {
            return json!([{"sku": sku, "quantity": quantity}]);
        };
        let item = |line: &Value| json!({"sku": line["sku"], "quantity": line["quantity"]});
        lines.iter().map(item).collect()
    }

    /// The first option of a shipping quote, counted back from the newest by `which`.
    fn shipping(&self) -> Option<(&Made, &Value)> {
        let shipping = self.answer("shipping.quote_options")?;
        Some((shipping, &shipping.data()["options"][0]))
    }

    fn select(&self) -> Value {
        let cart = self.member("cart.create", "cart_id", "cart_0000000000000000");
        let Some((shipping, option)) = self.shipping() else {
            return json!({
                "cart_id": cart,
                "shipping_snapshot_id": "ev_nobody",
                "shipping_option_id": "none",
            });
        };
        json!({
            "cart_id": cart,
            "shipping_snapshot_id": shipping.evidence(),
            "shipping_option_id": option["option_id"],
        })
    }

    fn tax(&self) -> Value {
        match (self.answer("pricing.get_realtime_quote"), self.shipping()) {
            (Some(quote), Some((shipping, option))) => json!({
                "quote_snapshot_id": quote.evidence(),
                "shipping_snapshot_id": shipping.evidence(),
                "shipping_option_id": option["option_id"],
                "destination": shipping.data()["destination"],
                "incoterm": option["incoterms"][0],
            }),
            (Some(quote), None) => {
                json!({"quote_snapshot_id": quote.evidence(), "destination": self.destination()})
            }
            (None, _) => json!({"items": self.items(), "destination": self.destination()}),
        }
    }

    /// The five answers that an order rests on; otherwise the last answers of any tool.
    fn bundle(&self) -> Value {
        let for_order = [
            "pricing.get_realtime_quote",
            "shipping.quote_options",
            "tax.estimate_duties_and_taxes",
            "compliance.check_item",
            "checkout.compute_total",
        ];
        if self.pick.basket < BASKETS.len() {
            let ids = for_order.map(|tool| self.evidence(tool));
            return json!({"snapshot_ids": ids, "purpose": "draft_order"});
        }
        let any = self.made.iter().rev().skip(self.pick.which);
        let mut ids: Vec<&str> = any.filter_map(|made| made.evidence()).take(6).collect();
        if ids.is_empty() {
            ids.push("ev_nobody");
        }
        let purpose = ["dispute", "review"][self.pick.basket % 2];
        json!({"snapshot_ids": ids, "purpose": purpose})
    }

    fn payment(&self) -> Value {
        let order = self.answer("checkout.create_draft_order");
        let Some(order) = order.map(Made::data) else {
            return json!({"draft_order_id": "order_0", "amount": 100, "currency": "EUR"});
        };
        let total = &order["pricing_breakdown"]["total"];
        // One choice has a wrong amount.
        let more = i64::from(self.pick.basket == 11);
        json!({
            "draft_order_id": order["draft_order_id"],
            "amount": total["amount"].as_i64().unwrap() + more,
            "currency": total["currency"],
        })
    }

    fn address(&self) -> Value {
        let mut arguments = json!({"address": address(self.pick.basket)});
        let kept = self.answer("identity.add_or_update_address");
        if let Some(kept) = kept.filter(|_| self.pick.basket % 2 == 1) {
            let kept = kept.data();
            arguments["address_id"] = kept["address_id"].clone();
            arguments["version"] = kept["version"].clone();
        }
        arguments
    }

    fn mission(&self) -> Option<Value> {
        let made = self.answer("mission.create")?;
        Some(json!({"mission_id": made.data()["mission_id"]}))
    }

    fn chunk(&self) -> String {
        let hits = self.answer("knowledge.search").map(Made::data);
        let found = hits.and_then(|hits| hits["hits"][0]["chunk_id"].as_str());
        found.unwrap_or("nothing.en#1").to_owned()
    }
}

fn address(number: usize) -> Value {
    json!({
        "recipient": "Anna Example",
        "lines": [format!("Invalidenstraße {number}")],
        "postal_code": "10115",
        "city": "Berlin",
        "country": "DE",
    })
}

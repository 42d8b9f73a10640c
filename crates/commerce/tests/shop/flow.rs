//! The way to a draft order, step by step, as an agent goes it. A test can stop at any step and do something else
//! there.

use serde_json::{Value, json};

use crate::world::{World, evidence, ok};

/// The order that a test makes.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) user: String,
    pub(crate) items: Value,
    pub(crate) destination: Value,
    pub(crate) currency: &'static str,
    pub(crate) incoterm: &'static str,
    pub(crate) locale: &'static str,
}

impl Order {
    /// Two power banks for Germany, in euros, duties paid.
    pub(crate) fn new() -> Self {
        Self {
            user: "u_1".to_owned(),
            items: json!([{"sku": "SKU-0001-01", "quantity": 2}]),
            destination: json!({"country": "DE", "postal_code": "10115"}),
            currency: "EUR",
            incoterm: "DDP",
            locale: "en",
        }
    }

    /// An order of one item.
    pub(crate) fn of(sku: &str, quantity: u32) -> Self {
        Self {
            items: json!([{"sku": sku, "quantity": quantity}]),
            ..Self::new()
        }
    }

    pub(crate) fn by(self, user: &str) -> Self {
        Self {
            user: user.to_owned(),
            ..self
        }
    }

    pub(crate) async fn call(&self, world: &World, tool: &str, arguments: Value) -> Value {
        let envelope = json!({"locale": self.locale});
        world.call_as(&self.user, tool, arguments, envelope).await
    }

    /// A cart with the items.
    pub(crate) async fn cart(&self, world: &World) -> String {
        let made = self
            .call(world, "cart.create", json!({"currency": self.currency}))
            .await;
        let cart_id = ok(&made)["cart_id"].as_str().unwrap().to_owned();
        for item in self.items.as_array().unwrap() {
            let mut add = item.clone();
            add["cart_id"] = json!(cart_id);
            ok(&self.call(world, "cart.add_item", add).await);
        }
        cart_id
    }

    /// The price of the items.
    pub(crate) async fn quote(&self, world: &World) -> Value {
        let arguments = json!({"items": self.items, "currency": self.currency});
        self.call(world, "pricing.get_realtime_quote", arguments)
            .await
    }

    /// The shipping options.
    pub(crate) async fn shipping(&self, world: &World) -> Value {
        let arguments = json!({
            "items": self.items,
            "destination": self.destination,
            "currency": self.currency,
        });
        self.call(world, "shipping.quote_options", arguments).await
    }

    /// The cheapest option with the incoterm of the order.
    #[track_caller]
    pub(crate) fn option(&self, shipping: &Value) -> String {
        let option = self.options(shipping).next();
        assert!(
            option.is_some(),
            "nothing for {} in {shipping:#}",
            self.incoterm
        );
        option.unwrap()
    }

    /// True if there is such an option.
    pub(crate) fn has_option(&self, shipping: &Value) -> bool {
        self.options(shipping).next().is_some()
    }

    fn options(&self, shipping: &Value) -> impl Iterator<Item = String> {
        let options = ok(shipping)["options"].as_array().unwrap().iter();
        let fitting = options.filter(|option| {
            let incoterms = option["incoterms"].as_array().unwrap();
            incoterms.contains(&json!(self.incoterm))
        });
        fitting.map(|option| option["option_id"].as_str().unwrap().to_owned())
    }

    pub(crate) async fn tax(&self, world: &World, quote: &Value, shipping: &Value) -> Value {
        let arguments = json!({
            "quote_snapshot_id": evidence(quote),
            "shipping_snapshot_id": evidence(shipping),
            "shipping_option_id": self.option(shipping),
            "destination": self.destination,
            "incoterm": self.incoterm,
        });
        self.call(world, "tax.estimate_duties_and_taxes", arguments)
            .await
    }

    pub(crate) async fn compliance(&self, world: &World) -> Value {
        let arguments = json!({"items": self.items, "destination": self.destination});
        self.call(world, "compliance.check_item", arguments).await
    }

    pub(crate) async fn select(&self, world: &World, cart_id: &str, shipping: &Value) -> Value {
        let arguments = json!({
            "cart_id": cart_id,
            "shipping_snapshot_id": evidence(shipping),
            "shipping_option_id": self.option(shipping),
        });
        self.call(world, "checkout.select_shipping_option", arguments)
            .await
    }

    /// Everything up to the answers that a total rests on, with the shipping option selected.
    pub(crate) async fn prepare(&self, world: &World) -> Prepared {
        let cart_id = self.cart(world).await;
        let quote = self.quote(world).await;
        let shipping = self.shipping(world).await;
        ok(&self.select(world, &cart_id, &shipping).await);
        let tax = self.tax(world, &quote, &shipping).await;
        let compliance = self.compliance(world).await;
        Prepared {
            order: self.clone(),
            cart_id,
            quote: evidence(&quote),
            shipping: evidence(&shipping),
            tax: evidence(&tax),
            compliance: evidence(&compliance),
        }
    }

    /// Everything up to the bundle.
    pub(crate) async fn bundle(&self, world: &World) -> Bundled {
        let prepared = self.prepare(world).await;
        let total = prepared.total(world).await;
        prepared.bundle(world, &total).await
    }

    /// The draft order.
    pub(crate) async fn draft(&self, world: &World) -> Value {
        let bundled = self.bundle(world).await;
        bundled.draft(world).await
    }
}

/// A cart with everything that a total rests on, by its evidence.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) order: Order,
    pub(crate) cart_id: String,
    pub(crate) quote: String,
    pub(crate) shipping: String,
    pub(crate) tax: String,
    pub(crate) compliance: String,
}

impl Prepared {
    pub(crate) async fn total(&self, world: &World) -> Value {
        let arguments = json!({
            "cart_id": self.cart_id,
            "quote_snapshot_id": self.quote,
            "tax_snapshot_id": self.tax,
            "compliance_snapshot_id": self.compliance,
        });
        self.order
            .call(world, "checkout.compute_total", arguments)
            .await
    }

    pub(crate) async fn bundle(self, world: &World, total: &Value) -> Bundled {
        let ids = [
            self.quote.clone(),
            self.shipping.clone(),
            self.tax.clone(),
            self.compliance.clone(),
            evidence(total),
        ];
        let bundle = json!({"snapshot_ids": ids, "purpose": "draft_order"});
        let bundle = self
            .order
            .call(world, "evidence.create_snapshot", bundle)
            .await;
        Bundled {
            total: evidence(total),
            total_data: ok(total).clone(),
            bundle: evidence(&bundle),
            prepared: self,
        }
    }
}

/// All evidence under one id.
#[derive(Debug, Clone)]
pub(crate) struct Bundled {
    pub(crate) prepared: Prepared,
    pub(crate) total: String,
    pub(crate) total_data: Value,
    pub(crate) bundle: String,
}

impl Bundled {
    pub(crate) fn arguments(&self) -> Value {
        json!({"cart_id": self.prepared.cart_id, "evidence_snapshot_id": self.bundle})
    }

    pub(crate) async fn draft(&self, world: &World) -> Value {
        let order = &self.prepared.order;
        order
            .call(world, "checkout.create_draft_order", self.arguments())
            .await
    }
}

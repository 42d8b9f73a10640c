//! A draft order of the shop as a checkout session of other standards, over the wire and by the real command.

use serde_json::{Value, json};

use crate::Running;

/// Page on which the buyer continues.
const PAGE: &str = "https://shop.example.com/orders/{id}";

impl Running {
    /// Calls a tool under a path of ACP, each call with its own key, and returns the reply.
    fn shop(&self, key: &str, tool: &str, arguments: &Value) -> Value {
        let header = format!("idempotency-key: {key}");
        let body = json!({ "arguments": arguments }).to_string();
        let path = format!("/acp/tools/{tool}");
        let (status, reply) = self.ask_with(&header, "POST", &path, &body);
        assert_eq!((status, &reply["ok"]), (200, &json!(true)), "{reply:#}");
        reply
    }

    /// A draft order of one T-shirt for Germany, and its total.
    fn draft(&self) -> (String, Value) {
        let items = json!([{"sku": "SKU-0003-01", "quantity": 1}]);
        let to = json!({"country": "DE", "postal_code": "10115"});
        let evidence = |reply: &Value| reply["evidence"]["snapshot_id"].clone();
        let cart = self.shop("1", "cart.create", &json!({"currency": "EUR"}));
        let cart_id = &cart["data"]["cart_id"];
        let add = json!({"cart_id": cart_id, "sku": "SKU-0003-01", "quantity": 1});
        self.shop("2", "cart.add_item", &add);
        let quote = json!({"items": items, "currency": "EUR"});
        let quote = self.shop("3", "pricing.get_realtime_quote", &quote);
        let ways = json!({"items": items, "destination": to, "currency": "EUR"});
        let ways = self.shop("4", "shipping.quote_options", &ways);
        let way = ways["data"]["options"].as_array().and_then(|options| {
            let is_paid = |option: &&Value| {
                let terms = option["incoterms"].as_array();
                terms.is_some_and(|terms| terms.contains(&json!("DDP")))
            };
            options.iter().find(is_paid)
        });
        let way = &way.expect("something goes there")["option_id"];
        let chosen = json!({
            "cart_id": cart_id,
            "shipping_snapshot_id": evidence(&ways),
            "shipping_option_id": way,
        });
        self.shop("5", "checkout.select_shipping_option", &chosen);
        let tax = json!({
            "quote_snapshot_id": evidence(&quote),
            "shipping_snapshot_id": evidence(&ways),
            "shipping_option_id": way,
            "destination": to,
            "incoterm": "DDP",
        });
        let tax = self.shop("6", "tax.estimate_duties_and_taxes", &tax);
        let allowed = json!({"items": items, "destination": to});
        let allowed = self.shop("7", "compliance.check_item", &allowed);
        let total = json!({
            "cart_id": cart_id,
            "quote_snapshot_id": evidence(&quote),
            "tax_snapshot_id": evidence(&tax),
            "compliance_snapshot_id": evidence(&allowed),
        });
        let total = self.shop("8", "checkout.compute_total", &total);
        let ids: Vec<Value> = [&quote, &ways, &tax, &allowed, &total]
            .map(evidence)
            .to_vec();
        let bundle = json!({"snapshot_ids": ids, "purpose": "draft_order"});
        let bundle = self.shop("9", "evidence.create_snapshot", &bundle);
        let draft = json!({"cart_id": cart_id, "evidence_snapshot_id": evidence(&bundle)});
        let draft = self.shop("10", "checkout.create_draft_order", &draft);
        let id = draft["data"]["draft_order_id"]
            .as_str()
            .expect("it has a name");
        let total = draft["data"]["pricing_breakdown"]["total"].clone();
        (id.to_owned(), total)
    }
}

/// The same order under both paths, with the total that the tool answered; another user's is not there.
#[test]
fn a_draft_order_is_a_session_of_other_standards() {
    let running = Running::start(&["--checkout-url", PAGE]);
    let (id, total) = running.draft();
    for (path, currency) in [
        ("/acp/checkout_sessions", "eur"),
        ("/ucp/checkout-sessions", "EUR"),
    ] {
        let header = "accept-language: zh-CN";
        let (status, page) = running.ask_with(header, "GET", &format!("{path}/{id}"), "");
        assert_eq!(status, 200, "{page:#}");
        assert_eq!(page["id"], *id);
        assert_eq!(page["status"], "requires_escalation");
        assert_eq!(page["currency"], currency);
        assert_eq!(page["continue_url"], PAGE.replace("{id}", &id));
        let totals = page["totals"].as_array().expect("a list");
        let shown = totals.iter().find(|it| it["type"] == "total");
        assert_eq!(shown.expect("a total")["amount"], total["amount"]);
        let asked = page["messages"][0]["content"].as_str();
        assert!(asked.is_some_and(|text| text.contains("买家")), "{page:#}");
        let other = format!("{path}/{id}?user_id=u_2");
        let (_, hidden) = running.ask("GET", &other, "");
        assert!(hidden["totals"].is_null(), "{hidden:#}");
        assert!(hidden.to_string().contains("not_found"), "{hidden:#}");
    }
    for (path, member) in [
        ("/.well-known/acp.json", "/api_base_url"),
        (
            "/.well-known/ucp",
            "/ucp/services/dev.ucp.shopping/0/endpoint",
        ),
    ] {
        let (status, document) = running.ask("GET", path, "");
        assert_eq!(status, 200, "{document:#}");
        assert!(document.pointer(member).is_some(), "{document:#}");
    }
}

//! Places as callers name them: one normal form for every tool, and a refusal of places that do not exist.

use serde_json::{Value, json};

use crate::world::{World, check_error, ok};

const SHIPPING: &str = "shipping.quote_options";
const TAX: &str = "tax.estimate_duties_and_taxes";
const COMPLIANCE: &str = "compliance.check_item";

fn to(destination: &Value) -> Value {
    json!({"items": [{"sku": "SKU-0005-01"}], "destination": destination})
}

/// However a place is written, each tool answers with the same form of it, so that answers agree.
#[tokio::test]
async fn one_form_for_every_tool() {
    let world = World::new();
    let california = json!({"country": "US", "region": "CA", "postal_code": null});
    let in_california = json!({"country": "US", "region": "CA", "postal_code": "94105"});
    let germany = json!({"country": "DE", "region": null, "postal_code": "10115"});
    let london = json!({"country": "GB", "region": null, "postal_code": "SW1A 1AA"});
    let cases = [
        (
            json!({"country": "US", "region": "California"}),
            &california,
        ),
        (json!({"country": "us", "region": "us-ca"}), &california),
        (json!({"country": "USA", "region": " ca "}), &california),
        (
            json!({"country": "US", "postal_code": "９４１０５"}),
            &in_california,
        ),
        (
            json!({"country": "Germany", "postal_code": "D-10115"}),
            &germany,
        ),
        (json!({"country": "UK", "postal_code": "sw1a1aa"}), &london),
    ];
    for (written, expected) in cases {
        for tool in [SHIPPING, TAX, COMPLIANCE] {
            let reply = world.call(tool, to(&written)).await;
            assert_eq!(ok(&reply)["destination"], *expected, "{tool} {written}");
        }
    }
}

/// An impossible place is refused by every tool, with the field and an example, and is not quoted.
#[tokio::test]
async fn what_is_no_place() {
    let world = World::new();
    let cases = [
        (
            json!({"country": "DE", "postal_code": "ABC"}),
            "/destination/postal_code",
            "10115",
        ),
        (
            json!({"country": "US", "region": "OR", "postal_code": "90001"}),
            "/destination/postal_code",
            "94105",
        ),
        (
            json!({"country": "US", "region": "Bavaria"}),
            "/destination/region",
            "CA",
        ),
    ];
    for (written, field, example) in cases {
        for tool in [SHIPPING, TAX, COMPLIANCE] {
            let reply = world.call(tool, to(&written)).await;
            check_error(&reply, "ADDRESS_INVALID", &json!({"field": field}));
            let hint = reply["error"]["details"]["hint"].as_str().unwrap();
            assert!(hint.contains(example), "{hint}");
            assert!(!reply.to_string().contains("Bavaria"), "{reply}");
        }
    }
    let reply = world
        .call(SHIPPING, to(&json!({"country": "Atlantis"})))
        .await;
    check_error(
        &reply,
        "INVALID_ARGUMENT",
        &json!({"field": "/destination/country"}),
    );
}

/// An item that its seller does not send to a country cannot be sent there: the offer names the countries that it is
/// sent to.
#[tokio::test]
async fn what_the_seller_does_not_send_there() {
    let world = World::new();
    let items = json!([{"sku": "SKU-1831-01"}]);
    let there =
        json!({"items": items, "destination": {"country": "GB", "postal_code": "SW1A 1AA"}});
    let reply = world.call(SHIPPING, there).await;
    let expected = json!({
        "field": "/destination/country", "cause": "not_sent_there", "skus": ["SKU-1831-01"],
    });
    check_error(&reply, "INVALID_ARGUMENT", &expected);
}

/// Too large a quantity of goods that a service takes is reported as too much, and not as forbidden.
#[tokio::test]
async fn too_many_power_banks() {
    let world = World::new();
    let items = json!([{"sku": "SKU-0001-01", "quantity": 999}]);
    let reply = world
        .call(
            SHIPPING,
            json!({"items": items, "destination": {"country": "DE"}}),
        )
        .await;
    check_error(&reply, "INVALID_ARGUMENT", &json!({"field": "/items"}));
    let hint = reply["error"]["details"]["hint"].as_str().unwrap();
    assert!(hint.contains("fewer"), "{hint}");
}

/// An unknown country is refused: an empty result would look like nothing for sale.
#[tokio::test]
async fn offers_for_no_country() {
    let world = World::new();
    let search = async |country: &str| {
        let arguments = json!({"query": "power bank", "ships_to": country});
        world.call("catalog.search_offers", arguments).await
    };
    let reply = search("XX").await;
    check_error(&reply, "INVALID_ARGUMENT", &json!({"field": "/ships_to"}));
    let (uk, gb) = (search("UK").await, search("gb").await);
    assert_eq!(ok(&uk)["total"], ok(&gb)["total"]);
}

/// A rate is named once, however many items were converted with it.
#[tokio::test]
async fn a_rate_is_named_once() {
    let world = World::new();
    let items = json!([{"sku": "SKU-0001-01"}, {"sku": "SKU-0002-01"}, {"sku": "SKU-0003-01"}]);
    let arguments = json!({"items": items, "destination": {"country": "DE"}, "currency": "JPY"});
    let reply = world.call(TAX, arguments).await;
    let rates = ok(&reply)["rates"].as_array().unwrap();
    for (at, rate) in rates.iter().enumerate() {
        assert!(!rates[..at].contains(rate), "{rate}");
    }
    assert!(!rates.is_empty());
}

//! Duties and taxes: whole replies, what is refused, and what a recorded estimate becomes under other rules.

use serde_json::json;

use crate::world::{World, check_error, ok};

/// An estimate at list prices, without shipping: it says so, and is not sure of itself.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a whole answer")]
async fn germany_at_list_price() {
    let world = World::new();
    let reply = world
        .call(
            "tax.estimate_duties_and_taxes",
            json!({
                "items": [{"sku": "SKU-0001-01", "quantity": 2}, {"sku": "SKU-0003-01", "quantity": 1}],
                "destination": {"country": "de"},
                "currency": "EUR",
            }),
        )
        .await;
    insta::assert_json_snapshot!(ok(&reply), @r#"
    {
      "basket": "sha256:bfd6ad72181fd1e4eca29b3d9fcaf744db486dc729f0561a125870a534824a99",
      "confidence": "low",
      "currency": "EUR",
      "destination": {
        "country": "DE",
        "postal_code": null,
        "region": null
      },
      "due_on_delivery": {
        "amount": 0,
        "currency": "EUR"
      },
      "due_to_seller": {
        "amount": 2190,
        "currency": "EUR"
      },
      "duty": {
        "amount": 300,
        "currency": "EUR"
      },
      "fees": {
        "amount": 0,
        "currency": "EUR"
      },
      "goods_value": {
        "amount": 9648,
        "currency": "EUR"
      },
      "incoterm": "DDP",
      "lines": [
        {
          "customs_value": {
            "amount": 7158,
            "currency": "EUR"
          },
          "duty": {
            "amount": 300,
            "currency": "EUR"
          },
          "duty_rate": "0",
          "goods_value": {
            "amount": 7158,
            "currency": "EUR"
          },
          "hs_code": "850760",
          "method": "low_value_flat_duty",
          "origin": "CN",
          "rules": [
            "EU/regime/low-value",
            "EU/duty/flat/low-value",
            "DE/vat/standard"
          ],
          "shipping_share": {
            "amount": 0,
            "currency": "EUR"
          },
          "ships_from": "CN",
          "sku": "SKU-0001-01",
          "tax": {
            "amount": 1417,
            "currency": "EUR"
          },
          "tax_base": {
            "amount": 7458,
            "currency": "EUR"
          },
          "tax_rate": "0.19"
        },
        {
          "customs_value": {
            "amount": 0,
            "currency": "EUR"
          },
          "duty": {
            "amount": 0,
            "currency": "EUR"
          },
          "duty_rate": "0",
          "goods_value": {
            "amount": 2490,
            "currency": "EUR"
          },
          "hs_code": "610910",
          "method": "intra_union_tax_on_price",
          "origin": "PT",
          "rules": [
            "DE/vat/standard"
          ],
          "shipping_share": {
            "amount": 0,
            "currency": "EUR"
          },
          "ships_from": "PT",
          "sku": "SKU-0003-01",
          "tax": {
            "amount": 473,
            "currency": "EUR"
          },
          "tax_base": {
            "amount": 2490,
            "currency": "EUR"
          },
          "tax_rate": "0.19"
        }
      ],
      "method": "several",
      "notes": [
        "Shipping is not known yet, so it is not part of the values: name a shipping option for a surer estimate.",
        "Up to 150 euros the duty is 3 euros for each tariff code in the parcel, and the seller takes the VAT of the destination (IOSS).",
        "Duties, taxes and fees are paid with the order (DDP)."
      ],
      "rates": [
        {
          "date": "2026-10-30",
          "from": "USD",
          "rate": "0.8950948801",
          "source": "European Central Bank, euro foreign exchange reference rates",
          "to": "EUR"
        }
      ],
      "shipping_cost": {
        "amount": 0,
        "currency": "EUR"
      },
      "tax": {
        "amount": 1890,
        "currency": "EUR"
      },
      "total": {
        "amount": 2190,
        "currency": "EUR"
      }
    }
    "#);
}

#[tokio::test]
async fn a_country_without_rules_is_refused() {
    let world = World::new();
    let reply = world
        .call(
            "tax.estimate_duties_and_taxes",
            json!({"items": [{"sku": "SKU-0001-01"}], "destination": {"country": "XK"}}),
        )
        .await;
    let details = json!({"field": "/destination/country"});
    check_error(&reply, "INVALID_ARGUMENT", &details);
}

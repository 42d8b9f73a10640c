//! What may go where: whole replies, and what the landmarks of the shop are decided.

use serde_json::{Value, json};

use crate::world::{World, evidence, ok};

const TOOL: &str = "compliance.check_item";

/// A power bank to Germany, as a model would ask: one item without its list, the country in small letters.
#[tokio::test]
async fn a_power_bank_to_germany() {
    let world = World::new();
    let arguments = json!({"items": {"sku": "SKU-0001-01"}, "destination": {"country": "de"}});
    let reply = world.call(TOOL, arguments).await;
    insta::assert_json_snapshot!(without_digests(reply), @r#"
    {
      "data": {
        "basket": "sha256:…",
        "decision": "conditional",
        "destination": {
          "country": "DE",
          "postal_code": null,
          "region": null
        },
        "lines": [
          {
            "category": "electronics/power/power_bank",
            "decision": "conditional",
            "findings": [
              {
                "message": "Lithium batteries that are shipped alone are not allowed on passenger aircraft and only charged to 30 % on cargo aircraft.",
                "mitigations": [
                  "carrier: use a service that takes UN 3480 or UN 3090",
                  "seller: ship at 30 % charge with the lithium battery mark"
                ],
                "rule": "battery.alone_by_air",
                "severity": "warning",
                "source": "ICAO Technical Instructions, special provisions A201 and A331; IATA DGR packing instructions 965 and 968 (2016-04-01)"
              },
              {
                "message": "Who sells batteries into the EU from outside is registered as a producer in the country of sale, and the battery carries the symbol for separate collection.",
                "mitigations": [
                  "seller: register through an authorised representative and pay for collection"
                ],
                "rule": "eu.battery.epr",
                "severity": "warning",
                "source": "Regulation (EU) 2023/1542 on batteries, articles 13(4), 55 and 56 (2025-08-18)"
              },
              {
                "message": "A consumer product from outside the EU needs a responsible person in the EU, named on it and in the offer.",
                "mitigations": [
                  "seller: name the responsible person in the EU and show name and address",
                  "buyer: accept that customs may stop the parcel until then"
                ],
                "rule": "eu.gpsr.responsible_person",
                "severity": "warning",
                "source": "Regulation (EU) 2023/988 on general product safety, articles 16 and 19; Regulation (EU) 2019/1020, article 4 (2024-12-13)"
              }
            ],
            "sku": "SKU-0001-01"
          }
        ],
        "ruleset_version": "sha256:…"
      },
      "evidence": {
        "snapshot_id": "ev_1",
        "sources": [
          {
            "hash": "sha256:…",
            "name": "compliance.check_item",
            "ts": "2026-11-16T12:00:00Z",
            "type": "tool"
          },
          {
            "hash": "sha256:…",
            "name": "compliance",
            "ts": "2026-11-16T12:00:00Z",
            "type": "rule_set"
          },
          {
            "hash": "sha256:…",
            "name": "shop",
            "ts": "2026-11-16T12:00:00Z",
            "type": "rule_set"
          }
        ]
      },
      "ok": true,
      "request_id": "req_1",
      "ttl_seconds": 3600,
      "warnings": [
        {
          "before": "[redacted]",
          "code": "SCALAR_WRAPPED",
          "message": "a lone value was made a list of one",
          "path": "/items",
          "severity": "retyped",
          "span": [
            40,
            61
          ]
        }
      ]
    }
    "#);
}

/// Every landmark to six countries, each decision reasoned in the comment beside it.
#[tokio::test]
async fn every_landmark_has_its_decision() {
    let world = World::new();
    for (sku, expected) in LANDMARKS {
        for (country, expected) in ["DE", "US", "GB", "JP", "CN", "AU"].iter().zip(expected) {
            let arguments = json!({"items": [{"sku": sku}], "destination": {"country": country}});
            let reply = world.call(TOOL, arguments).await;
            let decision = &ok(&reply)["decision"];
            assert_eq!(decision, expected, "{sku} to {country}: {reply:#}");
            evidence(&reply);
        }
    }
}

const A: &str = "allowed";
const C: &str = "conditional";
const B: &str = "blocked";

/// To DE, US, GB, JP, CN, AU.
const LANDMARKS: [(&str, [&str; 6]); 12] = [
    // A power bank from CN with CE, FCC, UN38.3, RoHS. Shipped alone it is a warning wherever it crosses a
    // border; DE besides: no responsible person, no registered producer. JP wants PSE, CN CCC, AU the RCM.
    ("SKU-0001-01", [C, C, C, B, B, B]),
    // Earbuds from CN with CE, FCC, UN38.3, RoHS, UKCA, the battery inside. DE: responsible person, producer.
    // They are radio: JP wants TELEC, CN SRRC; AU the RCM.
    ("SKU-0002-01", [C, A, A, B, B, B]),
    // A T-shirt from PT: within the EU no responsible person is asked for; labels are information.
    ("SKU-0003-01", [A, A, A, A, A, A]),
    // A bag of bovine leather from IT: no protected species.
    ("SKU-0004-01", [A, A, A, A, A, A]),
    // A cup from JP with a declaration for food contact, which DE, GB and US ask for. DE: responsible person.
    ("SKU-0005-01", [C, A, A, A, A, A]),
    // Perfume, 80 % alcohol, from IT with CPNP: by road within the EU. By air it is dangerous goods everywhere
    // else; US besides: not listed; CN: not filed; GB: not notified, which blocks.
    ("SKU-0006-01", [A, C, B, C, C, C]),
    // A kitchen knife of 210 mm from JP. DE: responsible person; GB and AU: of age; CN: above 150 mm.
    ("SKU-0007-01", [C, A, C, A, C, C]),
    // A smartwatch from CN with CE, FCC, UN38.3, RoHS, SRRC. JP wants TELEC, AU the RCM; CN has its SRRC.
    ("SKU-0008-01", [C, A, A, B, A, B]),
    // A wooden train from DE with CE and EN71, from three years. US: no CPC; JP: under six; CN: wooden toys
    // need no CCC; AU: wood is inspected, and three is not under three.
    ("SKU-0009-01", [A, B, A, C, A, C]),
    // Vitamin drops from NO. DE: notification; US: prior notice; CN: health food; AU: therapeutic goods. One
    // bottle is less than two months in JP; in GB the label is information.
    ("SKU-0010-01", [C, C, A, A, C, C]),
    // Green tea of CN. DE and GB: residues; US: prior notice; JP: for oneself; CN: at home; AU: biosecurity.
    ("SKU-0011-01", [C, C, C, A, A, C]),
    // A down jacket from NO, which is in the EEA; labels in US and CN are information; AU: down is inspected.
    ("SKU-0012-01", [A, A, A, A, A, C]),
];

/// Fails closed: a country that is none is blocked, whatever goes there.
#[tokio::test]
async fn a_country_that_is_none_is_blocked() {
    let world = World::new();
    let arguments = json!({"items": [{"sku": "SKU-0003-01"}], "destination": {"country": "XX"}});
    let reply = world.call(TOOL, arguments).await;
    let report = ok(&reply);
    assert_eq!(report["decision"], B);
    let rule = &report["lines"][0]["findings"][0]["rule"];
    assert_eq!(*rule, Value::from("closed.unknown_country"));
}

/// Digests of the shop and of the rules change with every edit of them; that they are there is what counts.
fn without_digests(mut value: Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::String(text) if text.starts_with("sha256:") => "sha256:…".clone_into(text),
            Value::Array(items) => items.iter_mut().for_each(walk),
            Value::Object(members) => members.values_mut().for_each(walk),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    walk(&mut value);
    value
}

//! The evidence tools: bundles that cannot be forged, and attachments of an order.

use countersign::contract::Digest;
use serde_json::{Value, json};

use crate::flow::Order;
use crate::world::{World, check_error, evidence, ok};

const BUNDLE: &str = "evidence.create_snapshot";
const ATTACH: &str = "evidence.attach_to_draft_order";

/// Each answer is named with its tool, its leaf and its TTL; nothing is copied.
#[tokio::test]
async fn a_bundle_names_its_parts() {
    let world = World::new();
    let order = Order::new();
    let quote = evidence(&order.quote(&world).await);
    world.advance_seconds(100);
    let check = evidence(&order.compliance(&world).await);
    let ids = json!({"snapshot_ids": [quote, check, quote], "purpose": "review"});
    let bundle = world.call(BUNDLE, ids).await;
    let data = ok(&bundle);
    assert_eq!(data["purpose"], "review");
    assert_eq!(
        data["valid_until"], "2026-11-16T12:05:00Z",
        "the first to end"
    );
    let entries = data["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "each once");
    assert_eq!(entries[0]["tool"], "pricing.get_realtime_quote");
    assert_eq!(entries[0]["valid_until"], "2026-11-16T12:05:00Z");
    assert_eq!(entries[1]["tool"], "compliance.check_item");
    assert_eq!(entries[1]["valid_until"], "2026-11-16T13:01:40Z");
    // The leaf of each is the one in the log, and the record of the bundle links both.
    let record = world.record(&evidence(&bundle)).await;
    for (at, entry) in entries.iter().enumerate() {
        let link = json!({"id": entry["snapshot_id"], "leaf": entry["leaf"], "role": "looked_at"});
        assert_eq!(record["links"][at], link);
        let named = world.record(entry["snapshot_id"].as_str().unwrap()).await;
        assert_eq!(entry["commitment"], named["reply"]["commitment"]);
        assert_eq!(entry["at"], named["at"]);
    }
    assert_eq!(record["retention"], "long");
    // Expired answers can be bundled, for a dispute for instance, with a warning.
    world.advance_seconds(200);
    let late = world
        .call(
            BUNDLE,
            json!({"snapshot_ids": [quote], "purpose": "dispute"}),
        )
        .await;
    assert_eq!(ok(&late)["purpose"], "dispute");
    assert_eq!(late["warnings"][0]["code"], "EVIDENCE_EXPIRED");
}

/// A bundle takes only real calls of the same user that the gateway has recorded.
#[tokio::test]
async fn a_bundle_takes_nothing_forged() {
    let world = World::new();
    let order = Order::new();
    let own = evidence(&order.quote(&world).await);
    let foreign = evidence(&order.clone().by("u_2").quote(&world).await);
    let quote = json!({"items": order.items});
    let tool = "pricing.get_realtime_quote";
    let dry = world
        .call_as("u_1", tool, quote, json!({"dry_run": true}))
        .await;
    let failed = world
        .call(tool, json!({"items": [{"sku": "SKU-9999-99"}]}))
        .await;
    let check = async |id: &str, code: &str| {
        let ids = json!({"snapshot_ids": [own, id]});
        let refused = world.call(BUNDLE, ids).await;
        check_error(&refused, code, &json!({"field": "/snapshot_ids/1"}));
    };
    check("ev_forged", "NOT_FOUND").await;
    check(&foreign, "NOT_FOUND").await;
    check("made-up", "INVALID_ARGUMENT").await;
    check(&evidence(&dry), "INVALID_ARGUMENT").await;
    check(&evidence(&failed), "INVALID_ARGUMENT").await;
    let none = world.call(BUNDLE, json!({"snapshot_ids": []})).await;
    check_error(
        &none,
        "INVALID_ARGUMENT",
        &json!({"field": "/snapshot_ids"}),
    );
}

async fn drafted(world: &World) -> Value {
    let draft = Order::new().draft(world).await;
    ok(&draft)["draft_order_id"].clone()
}

/// A document is stored unchanged and sealed; the answer and the record have its digest.
#[tokio::test]
async fn a_mandate_is_kept_verbatim_and_sealed() {
    let world = World::new();
    let id = drafted(&world).await;
    let mandate = "eyJhbGciOiJFUzI1NiJ9.eyJ2Y3QiOiJtYW5kYXRlLnBheW1lbnQuMSJ9.c2ln~WyJzYWx0Il0~";
    let attach = json!({
        "draft_order_id": id,
        "attachment": {"kind": "payment_mandate", "text": mandate},
    });
    let attached = world.call(ATTACH, attach.clone()).await;
    let data = ok(&attached);
    assert_eq!(
        data["digest"],
        Digest::of_bytes(mandate.as_bytes()).to_string()
    );
    assert_eq!(data["bytes"], mandate.len());
    assert_eq!(data["kind"], "payment_mandate");
    // The record has the kind of the attachment, and not its text (A21).
    let record = world.record(&evidence(&attached)).await;
    let public = json!({"attachment": {"kind": "payment_mandate"}});
    assert_eq!(record["arguments"]["public"], public);
    assert!(!record.to_string().contains("eyJ"), "{record:#}");
    assert_eq!(record["retention"], "long");
    // The same once more is the same, without a key.
    assert_eq!(ok(&world.call(ATTACH, attach).await), data);
    let summary = json!({"draft_order_id": id});
    let summary = world
        .call("checkout.get_draft_order_summary", summary)
        .await;
    assert_eq!(ok(&summary)["attachments"], json!([data]));
}

/// Another answer is attached by its evidence, and linked.
#[tokio::test]
async fn an_answer_is_attached_by_its_name() {
    let world = World::new();
    let id = drafted(&world).await;
    let quote = evidence(&Order::new().quote(&world).await);
    let attach = json!({"draft_order_id": id, "snapshot_id": quote});
    let attached = world.call(ATTACH, attach).await;
    assert_eq!(ok(&attached)["snapshot_id"], quote);
    let record = world.record(&evidence(&attached)).await;
    let link = json!({"id": quote, "leaf": attached["data"]["digest"], "role": "looked_at"});
    assert_eq!(record["links"], json!([link]));
}

#[tokio::test]
async fn what_cannot_be_attached_is_refused() {
    let world = World::new();
    let id = drafted(&world).await;
    let foreign = evidence(&Order::new().by("u_2").quote(&world).await);
    let large = "猫".repeat(30_000);
    let too_long = "x".repeat(65_537);
    let cases = [
        (json!({}), "INVALID_ARGUMENT", "/attachment"),
        (
            json!({"snapshot_id": foreign, "attachment": {"kind": "other", "text": "x"}}),
            "INVALID_ARGUMENT",
            "/attachment",
        ),
        (json!({"snapshot_id": foreign}), "NOT_FOUND", "/snapshot_id"),
        (
            json!({"snapshot_id": "ev_forged"}),
            "NOT_FOUND",
            "/snapshot_id",
        ),
        (
            json!({"attachment": {"kind": "evidence", "text": "x"}}),
            "INVALID_ARGUMENT",
            "/attachment/kind",
        ),
        (
            json!({"attachment": {"kind": "other", "text": large}}),
            "INVALID_ARGUMENT",
            "/attachment/text",
        ),
        (
            json!({"attachment": {"kind": "other", "text": too_long}}),
            "INVALID_ARGUMENT",
            "/attachment/text",
        ),
        (
            json!({"attachment": {"kind": "other", "text": ""}}),
            "INVALID_ARGUMENT",
            "/attachment/text",
        ),
    ];
    for (mut arguments, code, field) in cases {
        arguments["draft_order_id"] = id.clone();
        let reply = world.call(ATTACH, arguments).await;
        check_error(&reply, code, &json!({"field": field}));
    }
    let other = json!({"draft_order_id": id, "attachment": {"kind": "other", "text": "x"}});
    let other = world.call_as("u_2", ATTACH, other, json!({})).await;
    check_error(&other, "NOT_FOUND", &json!({"field": "/draft_order_id"}));
    let summary = json!({"draft_order_id": id});
    let summary = world
        .call("checkout.get_draft_order_summary", summary)
        .await;
    assert_eq!(ok(&summary)["attachments"], Value::Null);
}

/// A9, A14: with the answer anyone can compute the hash that its evidence names.
#[tokio::test]
async fn the_hash_of_every_key_answer_can_be_recomputed() {
    let world = World::new();
    let order = Order::new();
    let quote = order.quote(&world).await;
    let shipping = order.shipping(&world).await;
    let tax = order.tax(&world, &quote, &shipping).await;
    let compliance = order.compliance(&world).await;
    let prepared = order.prepare(&world).await;
    let total = prepared.total(&world).await;
    let draft = prepared.bundle(&world, &total).await.draft(&world).await;
    let query = json!({"query": "lithium batteries by air"});
    let found = world.call("knowledge.search", query).await;
    let replies = [
        ("pricing.get_realtime_quote", quote),
        ("shipping.quote_options", shipping),
        ("tax.estimate_duties_and_taxes", tax),
        ("compliance.check_item", compliance),
        ("checkout.compute_total", total),
        ("checkout.create_draft_order", draft),
        ("knowledge.search", found),
    ];
    for (tool, reply) in replies {
        let sources = reply["evidence"]["sources"].as_array().unwrap().iter();
        let own: Vec<&Value> = sources.filter(|source| source["name"] == tool).collect();
        assert_eq!(own.len(), 1, "{reply:#}");
        let expected = Digest::of_canonical(ok(&reply)).unwrap().to_string();
        assert_eq!(own[0]["hash"], expected, "{tool}");
    }
}

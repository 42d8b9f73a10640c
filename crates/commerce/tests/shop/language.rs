//! The texts of the shop for a caller whose locale is Chinese. Codes, fields and ids stay unchanged.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::world::{World, ok};

/// `tool: CODE message | hint`, then the remarks.
async fn said(world: &World, tool: &str, arguments: Value) -> String {
    let envelope = json!({ "locale": "zh-CN" });
    let reply = world.call_as("u_1", tool, arguments, envelope).await;
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let error = &reply["error"];
    let hint = &error["details"]["hint"];
    let mut lines = vec![format!(
        "{tool}: {} {} | {}",
        text(&error["code"]),
        text(&error["message"]),
        text(hint)
    )];
    for warning in reply["warnings"].as_array().into_iter().flatten() {
        lines.push(format!(
            "{} {}",
            text(&warning["code"]),
            text(&warning["message"])
        ));
    }
    lines.join("\n")
}

async fn all(world: &World, calls: Vec<(&str, Value)>) -> String {
    let mut lines = Vec::new();
    for (tool, arguments) in calls {
        lines.push(said(world, tool, arguments).await);
    }
    lines.join("\n")
}

/// A cart that is missing, empty or full; items that are not sold.
#[tokio::test]
async fn carts_and_catalog() {
    let world = World::new();
    let made = world.call("cart.create", json!({})).await;
    let cart_id = ok(&made)["cart_id"].clone();
    let calls = vec![
        ("cart.get", json!({"cart_id": "cart_none"})),
        (
            "cart.add_item",
            json!({"cart_id": cart_id, "sku": "SKU-0001-99"}),
        ),
        (
            "cart.add_item",
            json!({"cart_id": cart_id, "sku": "nothing like it"}),
        ),
        (
            "cart.remove_item",
            json!({"cart_id": cart_id, "sku": "SKU-0001-01"}),
        ),
        (
            "cart.add_item",
            json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": 999}),
        ),
        (
            "cart.add_item",
            json!({"cart_id": cart_id, "sku": "SKU-0001-01", "quantity": 1}),
        ),
        (
            "cart.remove_item",
            json!({"cart_id": cart_id, "sku": "SKU-0003-02"}),
        ),
        (
            "catalog.search_offers",
            json!({"query": "powr bank", "category": "electronic"}),
        ),
        (
            "catalog.search_offers",
            json!({"min_price": 500, "max_price": 100}),
        ),
        ("catalog.get_offer_card", json!({"offer_id": "OFR-001"})),
        (
            "catalog.get_offer_variants",
            json!({"offer_id": "OFR-0003", "options": {"size": "XXXL"}}),
        ),
        ("catalog.get_availability", json!({})),
    ];
    assert_snapshot!(all(&world, calls).await, @r#"
    cart.get: NOT_FOUND 该用户没有购物车 "cart_none" | 请用 cart.create 创建购物车，它会返回 cart_id
    cart.add_item: NOT_FOUND 没有商品 "SKU-0001-99" | 您是否指 SKU-0001-01？catalog.get_offer_variants 可列出商品
    cart.add_item: NOT_FOUND 没有商品 "nothing like it" | catalog.search_offers 可搜索商品，catalog.get_offer_variants 可查看规格
    cart.remove_item: NOT_FOUND 购物车中没有 "SKU-0001-01" | 购物车是空的
    cart.add_item: - - | -
    cart.add_item: INVALID_ARGUMENT 已有 999 件 SKU-0001-01，增至 1000 件超出上限 | 同一商品最多 999 件
    cart.remove_item: NOT_FOUND 购物车中没有 "SKU-0003-02" | 购物车中有 SKU-0001-01
    catalog.search_offers: NOT_FOUND 没有类目 "electronic" | 您是否指 electronics？
    catalog.search_offers: INVALID_ARGUMENT 没有价格既不低于 500 又不高于 100 | -
    catalog.get_offer_card: NOT_FOUND 没有在售商品 "OFR-001" | 您是否指 OFR-0001（VoltPeak 20000 毫安时移动电源）？
    catalog.get_offer_variants: INVALID_ARGUMENT 没有 size 为 "XXXL" 的规格 | 可选值：M, L, XL
    catalog.get_availability: INVALID_ARGUMENT 没有指定要查询的商品 | 请提供 items 或 skus
    "#);
}

/// The answers that an order rests on: evidence, places, carriers and taxes.
#[tokio::test]
async fn grounds_of_an_order() {
    let world = World::new();
    let items = json!([{"sku": "SKU-0002-01"}]);
    let made = world.call("cart.create", json!({})).await;
    let cart_id = ok(&made)["cart_id"].clone();
    let evidence = made["evidence"]["snapshot_id"].clone();
    let options =
        json!({"cart_id": cart_id, "shipping_snapshot_id": evidence, "shipping_option_id": "x"});
    let total = json!({"cart_id": cart_id, "quote_snapshot_id": evidence, "tax_snapshot_id": evidence,
        "compliance_snapshot_id": evidence});
    let calls = vec![
        ("checkout.select_shipping_option", options),
        ("checkout.compute_total", total),
        (
            "checkout.get_draft_order_summary",
            json!({"draft_order_id": "order_none"}),
        ),
        (
            "shipping.quote_options",
            json!({"items": items, "destination": {"country": "AQ"}}),
        ),
        (
            "tax.estimate_duties_and_taxes",
            json!({"destination": {"country": "US"}, "incoterm": "DDP"}),
        ),
        (
            "tax.estimate_duties_and_taxes",
            json!({"items": items, "incoterm": "DDP",
            "destination": {"country": "US", "region": "Atlantis"}}),
        ),
        (
            "evidence.create_snapshot",
            json!({"purpose": "review", "snapshot_ids": ["ev_none"]}),
        ),
    ];
    assert_snapshot!(all(&world, calls).await, @r#"
    checkout.select_shipping_option: INVALID_ARGUMENT 这是 cart.create 的证据，而不是 shipping.quote_options 的证据 | 请调用 shipping.quote_options，并提供其回复中的 evidence.snapshot_id
    checkout.compute_total: INVALID_ARGUMENT 该购物车中没有商品 | 请用 cart.add_item 加入商品
    checkout.get_draft_order_summary: NOT_FOUND 该用户没有草稿订单 "order_none" | 请用 checkout.create_draft_order 生成订单，它会返回 draft_order_id
    shipping.quote_options: INVALID_ARGUMENT 没有承运商送达该国家或地区 | 可选值：AT, AU, BE, BG, CA, CH, CN, CY, CZ, DE, DK, EE, ES, FI, FR, GB, GR, HK, HR, HU, IE, IT, JP, KR, LT, LU, LV, MT, NL, NO, NZ, PL, PT, RO, SE, SG, SI, SK, US
    tax.estimate_duties_and_taxes: INVALID_ARGUMENT items 和 quote_snapshot_id 均未提供 | 请提供 items，或 pricing.get_realtime_quote 的 evidence.snapshot_id
    tax.estimate_duties_and_taxes: ADDRESS_INVALID 该国家或地区没有此省州 | 例如 CA
    evidence.create_snapshot: NOT_FOUND 该用户没有证据 ev_none | 请提供给该用户的回复中的 evidence.snapshot_id
    "#);
}

/// Everything else: missions, addresses, texts and events.
#[tokio::test]
async fn the_rest() {
    let world = World::new();
    let calls = vec![
        ("mission.get", json!({"mission_id": "mis_none"})),
        (
            "mission.create",
            json!({"goal": "earbuds", "deadline": "2020-01-01T00:00:00Z"}),
        ),
        ("knowledge.get_chunk", json!({"chunk_id": "nothing#1"})),
        (
            "knowledge.search",
            json!({"query": "milk", "language": "tlh"}),
        ),
        (
            "obs.log_event",
            json!({"name": "seen", "attributes": {"list": [1]}}),
        ),
    ];
    assert_snapshot!(all(&world, calls).await, @r#"
    mission.get: NOT_FOUND 该用户没有任务 "mis_none" | 不带 mission_id 调用 mission.get 可列出进行中的任务
    mission.create: INVALID_ARGUMENT 截止时间 2020-01-01T00:00:00Z 已过，现在是 2026-11-16T12:00:00Z | 请指定一个未来的时间
    knowledge.get_chunk: NOT_FOUND 没有段落 "nothing#1" | knowledge.search 可查找 chunk_id
    knowledge.search: INVALID_ARGUMENT 没有语言为 "tlh" 的文本 | 可选值：en, zh，也可省略
    obs.log_event: INVALID_ARGUMENT 属性 list 不是文本、数字或布尔值 | 事件只说明发生了什么；数据请留在原处，只给出其标识
    "#);
}

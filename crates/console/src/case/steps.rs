//! What the tools of the reference shop do and what its rules are about, in words for a reader who never saw a tool's name.
//!
//! A tool that isn't listed is shown by its name. The shop's tools write amounts in the smallest unit of the currency.

use countersign::contract::Language;

/// A tool, and what a call of it is, in English and in Chinese.
const TOOLS: &[(&str, &str, &str)] = &[
    ("catalog.search_offers", "Search for offers", "搜索商品"),
    ("catalog.get_offer_card", "Look at an offer", "查看商品"),
    (
        "catalog.get_offer_variants",
        "Look at the variants of an offer",
        "查看商品规格",
    ),
    (
        "catalog.get_availability",
        "Question about the stock",
        "查询库存",
    ),
    ("pricing.get_realtime_quote", "Price quote", "报价"),
    (
        "shipping.quote_options",
        "Quote of the ways of shipping",
        "配送方式与运费报价",
    ),
    (
        "shipping.validate_address",
        "Check of an address",
        "核对地址",
    ),
    (
        "tax.estimate_duties_and_taxes",
        "Estimate of duties and taxes",
        "关税和税费估算",
    ),
    (
        "compliance.check_item",
        "Check whether the goods may go there",
        "检查商品能否运往目的地",
    ),
    ("cart.create", "New cart", "新建购物车"),
    ("cart.add_item", "Item for the cart", "加入购物车"),
    (
        "cart.update_quantity",
        "Another quantity in the cart",
        "修改购物车数量",
    ),
    ("cart.remove_item", "Item out of the cart", "移出购物车"),
    ("cart.get", "Look at the cart", "查看购物车"),
    (
        "checkout.select_shipping_option",
        "Choice of the shipping",
        "选择配送方式",
    ),
    (
        "checkout.compute_total",
        "Computation of the total",
        "计算总价",
    ),
    (
        "evidence.create_snapshot",
        "Answers so far under one name",
        "将此前的答复合并为一份依据",
    ),
    ("checkout.create_draft_order", "Draft order", "订单草稿"),
    (
        "checkout.get_draft_order_summary",
        "Summary of the order for the buyer",
        "向买家概述订单",
    ),
    (
        "checkout.lock_price_and_stock",
        "Hold on price and stock",
        "锁定价格和库存",
    ),
    (
        "payment.create_payment_intent",
        "Preparation of the payment",
        "准备付款",
    ),
    (
        "evidence.attach_to_draft_order",
        "Document for the order",
        "为订单附加文件",
    ),
    (
        "knowledge.search",
        "Search in the texts of the shop",
        "检索店铺资料",
    ),
    (
        "knowledge.get_chunk",
        "Look at a text of the shop",
        "阅读店铺资料",
    ),
    (
        "identity.get_user_profile",
        "Look at the user's profile",
        "读取用户资料",
    ),
    (
        "identity.get_user_addresses",
        "Look at the user's addresses",
        "读取用户地址",
    ),
    (
        "identity.add_or_update_address",
        "Address of the user",
        "保存用户地址",
    ),
    ("mission.create", "New task", "新建任务"),
    ("mission.get", "Look at a task", "查看任务"),
    ("mission.update", "Change of a task", "更新任务"),
    ("obs.log_event", "Note of an event", "记录事件"),
];

/// A rule set, and what it is about, in English and in Chinese.
const RULES: &[(&str, &str, &str)] = &[
    ("addresses", "Forms of addresses", "地址格式"),
    ("compliance", "What may be sent where", "进出口合规规则"),
    (
        "compliance.policy_ruleset_version",
        "What may be sent where",
        "进出口合规规则",
    ),
    ("fx", "Exchange rates", "汇率"),
    ("knowledge", "Texts of the shop", "店铺资料"),
    ("prices", "Prices", "价格"),
    ("shipping", "Shipping rates", "运费"),
    ("shop", "Offers of the shop", "店铺商品"),
    ("tax", "Duties and taxes", "关税和税费"),
    ("vat", "Value-added tax", "增值税"),
];

/// Members that people look for, in Chinese; in English their names are words already.
const LABELS: &[(&str, &str)] = &[
    ("amount", "金额"),
    ("carrier", "承运商"),
    ("compliance", "合规结论"),
    ("confidence", "把握程度"),
    ("decision", "结论"),
    ("draft_order_id", "订单草稿编号"),
    ("due_on_delivery", "收货时应付"),
    ("due_to_seller", "应付卖家"),
    ("duty", "关税"),
    ("expires_at", "有效期至"),
    ("fees", "费用"),
    ("goods_value", "货值"),
    ("incoterm", "贸易术语"),
    ("items", "商品"),
    ("line_total", "小计"),
    ("method", "方法"),
    ("payment_intent_id", "付款编号"),
    ("price", "价格"),
    ("purpose", "用途"),
    ("quantity", "数量"),
    ("requires_user_action", "需要用户操作"),
    ("service", "服务"),
    ("shipping", "运费"),
    ("shipping_cost", "运费"),
    ("status", "状态"),
    ("subtotal", "小计"),
    ("tax", "税"),
    ("title", "名称"),
    ("total", "总额"),
    ("unit_price", "单价"),
    ("valid_until", "有效期至"),
];

/// The name of a member as words: `line_total` is `Line total`.
pub(super) fn label(name: &str, language: Language) -> String {
    let known = match language {
        Language::English => None,
        Language::Chinese => LABELS.iter().find(|(known, _)| *known == name),
    };
    if let Some((_, chinese)) = known {
        return (*chinese).to_owned();
    }
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// Title of a call of this tool; `None` for tools outside of the shop.
pub(super) fn title(tool: &str, language: Language) -> Option<&'static str> {
    said(TOOLS, tool, language)
}

/// Subject of a rule set; its own name if it isn't one of the shop's.
pub(super) fn rule(name: &str, language: Language) -> String {
    said(RULES, name, language).map_or_else(|| name.to_owned(), str::to_owned)
}

/// True if the tool is one of the shop's, whose amounts count in the smallest unit.
pub(super) fn is_of_the_shop(tool: &str) -> bool {
    TOOLS.iter().any(|(known, _, _)| *known == tool)
}

fn said(
    table: &[(&str, &'static str, &'static str)],
    name: &str,
    language: Language,
) -> Option<&'static str> {
    let (_, english, chinese) = table.iter().find(|(known, _, _)| *known == name)?;
    Some(match language {
        Language::English => english,
        Language::Chinese => chinese,
    })
}

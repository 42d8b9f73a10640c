//! `checkout.get_draft_order_summary`: a draft order for the buyer.

use countersign::contract::Behaviour;
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::confirm::{self, ConfirmationItem, PolicyAck, Words};
use super::order::{DraftOrder, Kept, OrderLock, OrderState};
use crate::behaviour;
use crate::evidence::Attached;
use crate::id::Id;
use crate::money::Money;
use crate::payment::PaymentIntent;
use crate::shop::{Shop, is_chinese};

/// A draft order with its current state and texts for the buyer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct OrderSummary {
    /// Id of the draft order.
    pub draft_order_id: String,
    /// Status.
    pub state: OrderState,
    /// Text for the buyer, line by line, in the language of the call.
    pub text: Vec<String>,
    /// Total that the buyer pays.
    pub total: Money,
    /// Expiry: the order can be paid for until then.
    pub expires_at: Timestamp,
    /// Policies that the buyer has to acknowledge, in the language of the call.
    pub policy_ack_required: Vec<PolicyAck>,
    /// Topics that the buyer has to confirm, in the language of the call.
    pub must_confirm: Vec<ConfirmationItem>,
    /// Lock on price and stock, while it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<OrderLock>,
    /// Open payment, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment_intent: Option<PaymentIntent>,
    /// Attachments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attached>,
    /// Id of the call that made the order; use it to find the evidence.
    pub created_by_request_id: String,
    /// The order, exactly as it was made.
    pub draft_order: DraftOrder,
}

/// The tool.
pub(super) struct GetDraftOrderSummary;

/// Arguments.
#[derive(Deserialize, ToolArgs)]
pub(super) struct SummaryArgs {
    /// `draft_order_id` from `checkout.create_draft_order`.
    #[arg(example = "order_0123456789abcdef")]
    draft_order_id: Id,
}

impl Tool for GetDraftOrderSummary {
    const NAME: &'static str = super::SUMMARY_TOOL;
    const DESCRIPTION: &'static str =
        "Shows a draft order to the person who pays for it: price, state, and what to confirm.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = SummaryArgs;
    type Output = OrderSummary;

    fn behaviour() -> Behaviour {
        behaviour::read()
    }

    async fn call(&self, ctx: &CallContext, args: SummaryArgs) -> Result<OrderSummary, ToolError> {
        let now = ctx.now();
        let kept = Kept::of(ctx, &args.draft_order_id).await?;
        let locale = ctx.request().locale.as_deref();
        let state = kept.state(now);
        let shop = Shop::of(ctx)?;
        let order = &localized(&shop, &kept.order, locale);
        Ok(OrderSummary {
            state,
            text: text(order, state, locale),
            total: order.pricing_breakdown.total.clone(),
            expires_at: order.expires_at,
            policy_ack_required: confirm::policies(order, locale),
            must_confirm: confirm::items(order, locale),
            lock: kept.held(now).cloned(),
            payment_intent: kept.payable(now).cloned(),
            attachments: kept.attached,
            created_by_request_id: kept.request_id,
            draft_order: kept.order,
            draft_order_id: args.draft_order_id.into(),
        })
    }
}

/// The order with the titles of its items in the language of the call; items that are no longer sold keep theirs.
fn localized(shop: &Shop, order: &DraftOrder, locale: Option<&str>) -> DraftOrder {
    let mut order = order.clone();
    for item in &mut order.items {
        if let Some((offer, _)) = shop.variant(&item.sku) {
            offer.title.for_locale(locale).clone_into(&mut item.title);
        }
    }
    order
}

fn text(order: &DraftOrder, state: OrderState, locale: Option<&str>) -> Vec<String> {
    let words = Words {
        order,
        is_chinese: is_chinese(locale),
    };
    let costs = &order.pricing_breakdown;
    let items = order.items.iter();
    let mut text: Vec<String> = items
        .map(|item| format!("{} × {}: {}", item.quantity, item.title, item.line_total))
        .collect();
    let (way, price) = (
        format!("{} {}", order.carrier, order.service),
        &costs.shipping,
    );
    let (days_min, days_max) = (order.sla.days_min, order.sla.days_max);
    text.push(words.say(
        &format!("{way}, {days_min} to {days_max} working days: {price}"),
        &format!("{way}，{days_min} 至 {days_max} 个工作日：{price}"),
    ));
    let (duty, tax, fees) = (&costs.duty, &costs.tax, &costs.fees);
    text.push(words.say(
        &format!("Duty {duty}, tax {tax}, fees {fees}"),
        &format!("关税 {duty}，税款 {tax}，费用 {fees}"),
    ));
    let (total, due) = (&costs.total, &costs.due_on_delivery);
    text.push(words.say(
        &format!("To pay now: {total}"),
        &format!("现在支付：{total}"),
    ));
    if due.amount > 0 {
        text.push(words.say(
            &format!("To pay on delivery: {due}"),
            &format!("送达时支付：{due}"),
        ));
    }
    let until = order.expires_at;
    text.push(match state {
        OrderState::Open => words.say(
            &format!("Open until {until}; nothing is held yet."),
            &format!("有效期至 {until}；尚未锁定价格和库存。"),
        ),
        OrderState::Locked => words.say("Price and items are held.", "价格和库存已锁定。"),
        OrderState::IntentCreated => words.say(
            "Ready to be paid for, by you only.",
            "等待您本人付款；他人无法代付。",
        ),
        OrderState::Expired => words.say("This order has expired.", "该订单已过期。"),
    });
    text
}

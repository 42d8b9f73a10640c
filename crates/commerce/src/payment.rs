//! Payments, as far as an agent may go: it can prepare one. A person makes it, elsewhere; no tool here takes money, and
//! none ever will (A13).

use countersign::catalog::CatalogBuilder;
use countersign::contract::tool::{AmountUnit, Ceiling, Confirmation, Payment, Terms};
use countersign::contract::{Behaviour, ConflictReason, ErrorCode, Retention};
use countersign::{CallContext, DryRun, Question, Tool, ToolArgs, ToolError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::behaviour;
use crate::checkout::{Grounds, Kept, OrderItem, Pointers};
use crate::id::Id;
use crate::identity::KeptAddress;
use crate::money::{CurrencyCode, MinorUnits, Money};
use crate::words::Say;

/// A payment that a person can make while the order is locked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct PaymentIntent {
    /// Id of the payment.
    pub payment_intent_id: String,
    /// Id of the draft order.
    pub draft_order_id: String,
    /// Id of the lock. The payment ends with the lock.
    pub lock_id: String,
    /// Exact amount.
    pub amount: Money,
    /// Status.
    pub status: PaymentStatus,
    /// Always true: the buyer has to complete the payment.
    pub requires_user_action: bool,
    /// Expiry of the payment.
    pub expires_at: Timestamp,
}

/// Status of a payment, as far as the shop knows. There is no later status: the payment itself is between the buyer and the payment service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentStatus {
    /// The buyer has to pay.
    RequiresUserAction,
}

/// The tool.
struct CreatePaymentIntent;

/// Arguments.
#[derive(Deserialize, ToolArgs)]
struct CreatePaymentIntentArgs {
    /// `draft_order_id` from `checkout.create_draft_order`. The order has to be locked with `checkout.lock_price_and_stock`.
    #[arg(example = "order_0123456789abcdef")]
    draft_order_id: Id,
    /// Total of the order.
    #[arg(example = 21_131)]
    amount: MinorUnits,
    /// Currency of the order.
    #[arg(example = "EUR")]
    currency: CurrencyCode,
}

impl Tool for CreatePaymentIntent {
    const NAME: &'static str = "payment.create_payment_intent";
    const DESCRIPTION: &'static str = "Prepares the payment of a locked draft order. The user has to confirm the amount first, and pays \
        elsewhere: this tool takes no money.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = CreatePaymentIntentArgs;
    type Output = PaymentIntent;

    // No key is derived: an intent ends with its lock, and a later one is another intent. As long as one can be
    // paid, the order has no second one.
    fn behaviour() -> Behaviour {
        Behaviour {
            confirmation: Confirmation::Terms(Terms {
                exact: vec!["/draft_order_id".to_owned()],
                ceiling: Ceiling {
                    amount: "/amount".to_owned(),
                    currency: "/currency".to_owned(),
                    unit: AmountUnit::Minor,
                },
            }),
            payment: Payment::Intent,
            retention: Retention::Long,
            ..behaviour::add()
        }
    }

    async fn call(
        &self,
        ctx: &CallContext,
        args: CreatePaymentIntentArgs,
    ) -> Result<PaymentIntent, ToolError> {
        let now = ctx.now();
        let mut kept = Kept::of(ctx, &args.draft_order_id).await?;
        kept.check_valid(ctx).await?;
        same_total(
            &kept,
            &Money::new(args.amount.amount(), &args.currency.code()),
        )?;
        recompute(ctx, &kept).await?;
        let Some(lock) = kept.held(now) else {
            return Err(ToolError::conflict(ConflictReason::Stock, Say::NothingHeld)
                .field("/draft_order_id")
                .hint(Say::LockFirst));
        };
        if let Some(intent) = kept.payable(now) {
            return Ok(intent.clone());
        }
        let intent = PaymentIntent {
            payment_intent_id: ctx.new_id("pi_"),
            draft_order_id: args.draft_order_id.into(),
            lock_id: lock.lock_id.clone(),
            amount: kept.order.pricing_breakdown.total.clone(),
            status: PaymentStatus::RequiresUserAction,
            requires_user_action: true,
            expires_at: lock.expires_at,
        };
        kept.intent = Some(intent.clone());
        kept.keep(ctx).await?;
        Ok(intent)
    }

    async fn question(
        &self,
        ctx: &CallContext,
        args: CreatePaymentIntentArgs,
    ) -> Result<Option<Question>, ToolError> {
        let kept = Kept::of(ctx, &args.draft_order_id).await?;
        let order = &kept.order;
        let total = order.pricing_breakdown.total.to_string();
        let mut question = Question::new(Say::PreparePayment {
            total: total.clone(),
        });
        for item in &order.items {
            let label = format!("{} × {}", item.quantity, item.title);
            question = question.line(label, item.line_total.to_string());
        }
        let method = format!("{} {}", order.carrier, order.service);
        question = question
            .line(Say::LabelTotal, total)
            .line(Say::LabelShipping, method)
            .line(Say::LabelRecipient, recipient(ctx, &kept).await?);
        if let Some(lock) = kept.held(ctx.now()) {
            question = question.line(Say::LabelPayUntil, lock.expires_at.to_string());
        }
        let is_final = |item: &&OrderItem| item.returns.days == 0;
        for item in order.items.iter().filter(is_final) {
            let title = item.title.clone();
            question = question.irreversible(Say::CannotBeReturned { title });
        }
        Ok(Some(question.irreversible(Say::PaymentIsElsewhere)))
    }
}

/// The recipient of the order: the lines of the label if the order names an address, otherwise what is known of the
/// destination.
async fn recipient(ctx: &CallContext, kept: &Kept) -> Result<String, ToolError> {
    if let Some(address_id) = &kept.order.address_id {
        let address = KeptAddress::load(ctx, address_id, "/draft_order_id").await?;
        return Ok(address.formatted.join(", "));
    }
    let to = &kept.order.destination;
    let parts = [to.postal_code.clone(), to.region(), Some(to.country())];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    Ok(parts.join(", "))
}

/// Checks that the confirmed amount is exactly the total of the order.
fn same_total(kept: &Kept, confirmed: &Money) -> Result<(), ToolError> {
    let total = &kept.order.pricing_breakdown.total;
    if confirmed == total {
        return Ok(());
    }
    let field = if confirmed.currency == total.currency {
        "/amount"
    } else {
        "/currency"
    };
    let message = Say::OrderCosts {
        total: total.to_string(),
        confirmed: confirmed.to_string(),
    };
    Err(ToolError::new(ErrorCode::PriceChanged, message)
        .field(field)
        .hint(Say::LetUserConfirmTotal)
        .detail("old", json!(confirmed))
        .detail("new", json!(total)))
}

/// Computes the total again, from the answers that the order rests on; they become links of this call's record.
async fn recompute(ctx: &CallContext, kept: &Kept) -> Result<(), ToolError> {
    const AT: Pointers = Pointers::all("/draft_order_id");
    let order = &kept.order;
    let grounds = Grounds::read(ctx, &order.grounds, &AT).await?;
    let option = grounds.option(&order.shipping_option_id, &AT)?;
    let again = grounds.breakdown(option)?;
    if again == order.pricing_breakdown {
        return Ok(());
    }
    Err(
        ToolError::new(ErrorCode::PriceChanged, Say::OrderDoesNotFollow)
            .field("/draft_order_id")
            .hint(Say::NewOrder)
            .detail("old", json!(order.pricing_breakdown))
            .detail("new", json!(again)),
    )
}

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder.tool(CreatePaymentIntent)
}

//! `checkout.compute_total`: the total of a cart, from four answers that are fresh and agree with each other.

use countersign::contract::{Behaviour, Digest};
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::changed::Changed;
use super::gate;
use super::grounds::{Grounds, Pointers, Subject};
use super::part::{GroundIds, Part};
use super::total::Breakdown;
use crate::behaviour::{self, TOTAL_SECONDS};
use crate::cart::Cart;
use crate::compliance::Decision;
use crate::destination::Destination;
use crate::ground::EvidenceId;
use crate::id::Id;
use crate::tax::Incoterm;
use crate::words::Say;

/// Total of a cart. It is valid until `expires_at`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct Total {
    /// Id of the cart.
    pub cart_id: String,
    /// Version of the cart. The total is not valid after a change of the cart.
    pub cart_version: u64,
    /// Digest of the items.
    pub basket: Digest,
    /// Currency of the total.
    pub currency: String,
    /// Destination.
    pub destination: Destination,
    /// Id of the chosen shipping option.
    pub shipping_option_id: String,
    /// Payer of duties and taxes.
    pub incoterm: Incoterm,
    /// Price breakdown.
    pub breakdown: Breakdown,
    /// Compliance decision for the destination.
    pub compliance: Decision,
    /// Evidence ids of the answers that it was computed from.
    #[serde(flatten)]
    pub grounds: GroundIds,
    /// Expiry, RFC 3339.
    pub expires_at: String,
}

/// The tool.
pub(super) struct ComputeTotal;

/// Arguments.
#[derive(Deserialize, ToolArgs)]
#[expect(
    clippy::struct_field_names,
    reason = "these are the names of the arguments"
)]
pub(super) struct ComputeTotalArgs {
    /// `cart_id` of a cart with a chosen shipping option.
    #[arg(example = "cart_0123456789abcdef")]
    cart_id: Id,
    /// `evidence.snapshot_id` of `pricing.get_realtime_quote`.
    #[arg(example = "ev_01a1e383-11f7-7cab-a9f3-00c0339b928b")]
    quote_snapshot_id: EvidenceId,
    /// `evidence.snapshot_id` of `tax.estimate_duties_and_taxes`.
    #[arg(example = "ev_01a1e383-11f7-7cab-a9f3-00c0339b928b")]
    tax_snapshot_id: EvidenceId,
    /// `evidence.snapshot_id` of `compliance.check_item`.
    #[arg(example = "ev_01a1e383-11f7-7cab-a9f3-00c0339b928b")]
    compliance_snapshot_id: EvidenceId,
}

const AT: Pointers = Pointers {
    quote: "/quote_snapshot_id",
    shipping: "/cart_id",
    tax: "/tax_snapshot_id",
    compliance: "/compliance_snapshot_id",
};

impl Tool for ComputeTotal {
    const NAME: &'static str = super::TOTAL_TOOL;
    const DESCRIPTION: &'static str = "Computes the total of a cart: items, shipping, duty, tax, fees, and the amount due on delivery. \
        The quote, the taxes, the compliance check and the chosen shipping option must be valid and \
        belong to this cart.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = ComputeTotalArgs;
    type Output = Total;

    fn behaviour() -> Behaviour {
        behaviour::asks(TOTAL_SECONDS)
    }

    async fn call(&self, ctx: &CallContext, args: ComputeTotalArgs) -> Result<Total, ToolError> {
        let now = ctx.now();
        let cart = Cart::of(ctx, &args.cart_id).await?;
        if cart.basket.is_empty() {
            return Err(ToolError::invalid("/cart_id", Say::NothingInCart).hint(Say::AddItem));
        }
        let Some(chosen) = &cart.shipping else {
            let message = Say::NoShippingChosen;
            return Err(ToolError::invalid("/cart_id", message).hint(Say::ChooseShipping));
        };
        let ids = GroundIds {
            quote_snapshot_id: named(&args.quote_snapshot_id, AT.quote, Part::Quote)?,
            shipping_snapshot_id: chosen.snapshot_id.clone(),
            tax_snapshot_id: named(&args.tax_snapshot_id, AT.tax, Part::Tax)?,
            compliance_snapshot_id: named(
                &args.compliance_snapshot_id,
                AT.compliance,
                Part::Compliance,
            )?,
        };
        let grounds = Grounds::read(ctx, &ids, &AT).await?;
        let subject = Subject {
            cart_id: &args.cart_id,
            basket: cart.basket.digest()?,
            currency: cart.currency.as_deref(),
            destination: &chosen.destination,
            option_id: &chosen.option_id,
        };
        grounds.check(&subject, &AT)?;
        let breakdown = grounds.breakdown(grounds.option(&chosen.option_id, &AT)?)?;
        gate::may_go(&grounds.compliance.answer, AT.compliance)?;
        let expired = grounds.expired(ctx);
        if !expired.is_empty() {
            let pointer = pointer_of(expired.first().copied());
            let mut changed = Changed::of(ctx, &cart, &breakdown, &grounds);
            changed.expired(expired);
            return Err(changed.error(pointer));
        }
        let seconds = left(&grounds, now);
        ctx.fresh_for(seconds);
        let tax = &grounds.tax.answer;
        Ok(Total {
            cart_version: cart.version,
            basket: subject.basket,
            currency: breakdown.total.currency.clone(),
            destination: chosen.destination.clone(),
            shipping_option_id: chosen.option_id.clone(),
            incoterm: tax.incoterm,
            compliance: grounds.compliance.answer.decision,
            breakdown,
            grounds: ids,
            expires_at: behaviour::later(ctx, seconds).to_string(),
            cart_id: args.cart_id.into(),
        })
    }
}

/// The TTL of a total, in seconds: at most that of the answers that it rests on.
fn left(grounds: &Grounds, now: Timestamp) -> u32 {
    let left = grounds.valid_until().map(|until| until.duration_since(now));
    let seconds = left.map_or(i64::MAX, |left| left.as_secs());
    u32::try_from(seconds.max(0))
        .unwrap_or(u32::MAX)
        .min(TOTAL_SECONDS)
}

/// The JSON pointer of the argument that names an answer.
fn pointer_of(part: Option<Part>) -> &'static str {
    match part {
        Some(Part::Quote) => AT.quote,
        Some(Part::Tax) => AT.tax,
        Some(Part::Compliance) => AT.compliance,
        Some(Part::Shipping | Part::Total | Part::Cart | Part::DraftOrder) | None => AT.shipping,
    }
}

/// The id of evidence in an argument; an error if it does not have the form of one.
fn named(
    id: &EvidenceId,
    pointer: &str,
    part: Part,
) -> Result<countersign::contract::SnapshotId, ToolError> {
    id.as_str().parse().map_err(|_| {
        let tool = part.tool().to_owned();
        ToolError::invalid(pointer, Say::NoEvidenceName).hint(Say::GiveEvidenceOf { tool })
    })
}

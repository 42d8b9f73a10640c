//! The delivery address of an order: one of the user's own, and the same place as the destination of the quotes.

use countersign::contract::ErrorCode;
use countersign::{CallContext, ToolError};

use super::grounds;
use crate::destination::Destination;
use crate::identity::KeptAddress;
use crate::words::Say;

/// Checks that this address of the user is at the destination of the shipping options, and returns its version. The
/// pointer names the argument.
pub(super) async fn check(
    ctx: &CallContext,
    address_id: &str,
    quoted: &Destination,
    pointer: &str,
) -> Result<u32, ToolError> {
    let kept = KeptAddress::load(ctx, address_id, pointer).await?;
    let address = kept.destination();
    let (problem, message) = if address.country() != quoted.country() {
        ("country", Say::OtherCountryThanAddress)
    } else if is_other_region(&address, quoted) {
        ("region", Say::OtherRegionThanAddress)
    } else if !grounds::has_code_of(&address, quoted) {
        ("postal_code", Say::OtherCodeThanAddress)
    } else {
        return Ok(kept.version);
    };
    // Names the part that differs, but not its value: that is personal.
    Err(ToolError::new(ErrorCode::AddressInvalid, message)
        .field(pointer)
        .hint(Say::QuoteForAddress)
        .detail("differs", problem))
}

/// The current version of one of the user's addresses; `None` if it was removed.
pub(super) async fn version(ctx: &CallContext, address_id: &str) -> Result<Option<u32>, ToolError> {
    let kept = KeptAddress::get(ctx, address_id).await?;
    Ok(kept.map(|kept| kept.version))
}

/// The refusal of an order whose address has changed: its prices, taxes and rules are those of the old one.
pub(super) fn moved() -> ToolError {
    ToolError::new(ErrorCode::AddressInvalid, Say::AddressMoved)
        .field("/draft_order_id")
        .hint(Say::AskForNewAddress)
}

/// True if both have a region and these differ. Regions are often left out, because the postal code implies them.
fn is_other_region(address: &Destination, quoted: &Destination) -> bool {
    let regions = address.region().zip(quoted.region());
    regions.is_some_and(|(address, quoted)| address != quoted)
}

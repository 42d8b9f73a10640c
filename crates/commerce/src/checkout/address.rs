//! The address that an order goes to: one of the user's own, and where the rates and rules were asked for.

use countersign::contract::ErrorCode;
use countersign::{CallContext, ToolError};

use super::grounds;
use crate::destination::Destination;
use crate::identity::KeptAddress;
use crate::words::Say;

/// Whether this address of the user is where the shipping options are for; the pointer names the argument. Its
/// version is answered.
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
    // Which part, and not what it says: that is personal.
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

/// Regions are often left out, where the postal code says it.
fn is_other_region(address: &Destination, quoted: &Destination) -> bool {
    let regions = address.region().zip(quoted.region());
    regions.is_some_and(|(address, quoted)| address != quoted)
}

//! The user: profile and addresses.
//!
//! Both are state of the user: sealed under the user's key, erased with the user, and never in an id, a log or the text
//! of an error. Another user's address is answered exactly like a missing one.

use countersign::catalog::CatalogBuilder;

mod add_or_update_address;
mod addresses;
mod get_user_addresses;
mod get_user_profile;
mod profile;

pub use addresses::{ADDRESSES_MAX, KeptAddress};
pub use profile::Profile;

/// Adds the tools of this area.
pub(crate) fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    builder
        .tool(get_user_profile::GetUserProfile)
        .tool(get_user_addresses::GetUserAddresses)
        .tool(add_or_update_address::AddOrUpdateAddress)
}

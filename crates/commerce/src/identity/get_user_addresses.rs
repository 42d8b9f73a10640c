//! The tool that lists a user's addresses.

use countersign::{CallContext, Tool, ToolError};
use schemars::JsonSchema;
use serde::Serialize;

use super::addresses::KeptAddress;
use super::profile::Profile;

/// Lists the addresses of the user of the call.
pub(super) struct GetUserAddresses;

/// A user's addresses, the default one first.
#[derive(Serialize, JsonSchema)]
pub(super) struct UserAddresses {
    addresses: Vec<ListedAddress>,
}

#[derive(Serialize, JsonSchema)]
struct ListedAddress {
    #[serde(flatten)]
    kept: KeptAddress,
    is_default: bool,
}

impl Tool for GetUserAddresses {
    const NAME: &'static str = "identity.get_user_addresses";
    const DESCRIPTION: &'static str =
        "Lists the stored addresses of the user, each with its id, the default one first.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = ();
    type Output = UserAddresses;

    async fn call(&self, ctx: &CallContext, (): ()) -> Result<UserAddresses, ToolError> {
        let default = Profile::of(ctx).await?.default_address_id;
        let kept = KeptAddress::all(ctx).await?;
        let listed = kept.into_iter().map(|kept| ListedAddress {
            is_default: default.as_ref() == Some(&kept.address_id),
            kept,
        });
        let mut addresses: Vec<ListedAddress> = listed.collect();
        addresses.sort_by_key(|address| !address.is_default);
        Ok(UserAddresses { addresses })
    }
}

//! The tool that returns the user's profile.

use countersign::{CallContext, Tool, ToolError};
use schemars::JsonSchema;
use serde::Serialize;

use super::addresses::KeptAddress;
use super::profile::Profile;
use crate::destination::Destination;

/// Returns the profile of the user of the call.
pub(super) struct GetUserProfile;

/// Profile of a user; unknown values are missing.
#[derive(Serialize, JsonSchema)]
pub(super) struct UserProfile {
    user_id: String,
    #[serde(flatten)]
    profile: Profile,
    /// Destination of the default address.
    #[serde(skip_serializing_if = "Option::is_none")]
    default_destination: Option<Destination>,
}

impl Tool for GetUserProfile {
    const NAME: &'static str = "identity.get_user_profile";
    const DESCRIPTION: &'static str =
        "Shows the user's profile: language, currency, time zone, default address.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = ();
    type Output = UserProfile;

    async fn call(&self, ctx: &CallContext, (): ()) -> Result<UserProfile, ToolError> {
        let profile = Profile::of(ctx).await?;
        let address = match &profile.default_address_id {
            Some(address_id) => KeptAddress::get(ctx, address_id).await?,
            None => None,
        };
        Ok(UserProfile {
            user_id: ctx.user_id().to_owned(),
            profile,
            default_destination: address.map(|address| address.destination()),
        })
    }
}

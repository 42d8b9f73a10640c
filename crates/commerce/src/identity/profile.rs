//! The profile of a user.

use countersign::state::Collection;
use countersign::{CallContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const PROFILES: Collection = Collection::of_user("profile");

/// The id of the only profile of a user.
const ID: &str = "profile";

/// Profile of a user, from the last call that stored something. Values that were never sent are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Profile {
    /// Language, BCP 47.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// Currency, ISO 4217.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Time zone, an IANA name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Id of the default address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_address_id: Option<String>,
    /// Creation time, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

impl Profile {
    /// The user's profile, with the locale, currency and time zone of the call's envelope in place of stored ones.
    pub async fn of(ctx: &CallContext) -> Result<Self, ToolError> {
        let kept: Option<Self> = ctx.state().get(&PROFILES, ID).await?;
        let kept = kept.unwrap_or_default();
        let request = ctx.request();
        Ok(Self {
            locale: request.locale.clone().or(kept.locale),
            currency: request.currency.clone().or(kept.currency),
            timezone: request.timezone.clone().or(kept.timezone),
            ..kept
        })
    }

    /// Stores the profile with the call.
    pub(super) async fn keep(mut self, ctx: &CallContext) -> Result<(), ToolError> {
        self.created_at.get_or_insert_with(|| ctx.now().to_string());
        ctx.state().put(&PROFILES, ID, &self).await
    }
}

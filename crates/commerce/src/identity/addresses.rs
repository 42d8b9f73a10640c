//! The stored addresses of a user.

use std::fmt;

use countersign::state::Collection;
use countersign::{CallContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::destination::Destination;
use crate::shipping::address::Address;
use crate::words::Say;

const ADDRESSES: Collection = Collection::of_user("address").scanned();

/// The maximum number of addresses of a user.
pub const ADDRESSES_MAX: usize = 50;

/// A stored address of a user, in normal form.
///
/// The rules that it was checked by may change after it was kept; what is kept stays as it was checked.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct KeptAddress {
    /// Id of the address.
    pub address_id: String,
    /// Label that the user chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Version number, from 1; each change raises it.
    pub version: u32,
    /// The address in normal form.
    pub address: Address,
    /// Lines of the address as on a label.
    pub formatted: Vec<String>,
    /// Time of the last change, RFC 3339.
    pub updated_at: String,
}

impl KeptAddress {
    /// Reads an address of the user of this call; the pointer names the argument with its id.
    pub async fn load(
        ctx: &CallContext,
        address_id: &str,
        pointer: &str,
    ) -> Result<Self, ToolError> {
        let kept = Self::get(ctx, address_id).await?;
        kept.ok_or_else(|| {
            ToolError::not_found(Say::NoAddress)
                .field(pointer)
                .hint(Say::ListAddresses)
        })
    }

    /// The destination, as far as rates and rules need it.
    pub fn destination(&self) -> Destination {
        self.address.destination()
    }

    pub(crate) async fn get(
        ctx: &CallContext,
        address_id: &str,
    ) -> Result<Option<Self>, ToolError> {
        ctx.state().get(&ADDRESSES, address_id).await
    }

    /// All addresses, in the order of their ids.
    pub(super) async fn all(ctx: &CallContext) -> Result<Vec<Self>, ToolError> {
        let found = ctx.state().scan(&ADDRESSES, "", ADDRESSES_MAX).await?;
        Ok(found.into_iter().map(|(_, kept)| kept).collect())
    }

    pub(super) async fn keep(&self, ctx: &CallContext) -> Result<(), ToolError> {
        ctx.state().put(&ADDRESSES, &self.address_id, self).await
    }
}

/// Shows the id and version only: the rest is personal.
impl fmt::Debug for KeptAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptAddress")
            .field("address_id", &self.address_id)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

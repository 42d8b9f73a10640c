//! The tool that stores an address.

use countersign::contract::{Behaviour, ConflictReason};
use countersign::{CallContext, DryRun, Tool, ToolArgs, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::addresses::{ADDRESSES_MAX, KeptAddress};
use super::profile::Profile;
use crate::behaviour;
use crate::destination::Destination;
use crate::id::Id;
use crate::shipping::address::{self, Address, Checked};
use crate::words::Say;

/// Stores a new address, or changes one.
pub(super) struct AddOrUpdateAddress;

#[derive(Deserialize, ToolArgs)]
pub(super) struct AddOrUpdateAddressArgs {
    /// Id of the address to change. Without it, a new address is stored.
    address_id: Option<Id>,
    /// The `version` of that address as last read. The change is refused if the address was changed since.
    #[arg(min = 1)]
    version: Option<u32>,
    /// The whole address; members that are left out are not kept.
    #[arg(example = {"recipient": "Anna Example", "lines": ["Invalidenstraße 117"], "postal_code": "10115", "city": "Berlin", "country": "DE"})]
    address: Address,
    /// Label, such as home.
    #[arg(max_length = 64, sensitive = "personal")]
    label: Option<String>,
    /// True to make it the default address. The first address is always the default.
    #[arg(default = false, alias = "default")]
    is_default: bool,
}

/// The stored address.
#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    #[serde(flatten)]
    kept: KeptAddress,
    destination: Destination,
    is_default: bool,
    /// True if it is a new address.
    is_new: bool,
}

impl Tool for AddOrUpdateAddress {
    const NAME: &'static str = "identity.add_or_update_address";
    const DESCRIPTION: &'static str = "Stores an address of the user after checking it, or changes one by its address_id. An address \
        that is stored already is not stored twice.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    // All changes are in its state, which a dry run does not commit.
    const DRY_RUN: DryRun = DryRun::Simulate;
    type Args = AddOrUpdateAddressArgs;
    type Output = Answer;

    /// No key is derived from the arguments: changing an address to another one and back is three calls, two of which
    /// have the same arguments.
    fn behaviour() -> Behaviour {
        behaviour::set()
    }

    async fn call(
        &self,
        ctx: &CallContext,
        args: AddOrUpdateAddressArgs,
    ) -> Result<Answer, ToolError> {
        let checked = address::of(ctx, &args.address, "/address")?;
        let mut profile = Profile::of(ctx).await?;
        let (before, is_new) = match &args.address_id {
            Some(address_id) => {
                let kept = KeptAddress::load(ctx, address_id, "/address_id").await?;
                (Some(kept), false)
            }
            None => match known(ctx, &checked).await? {
                Some(kept) => {
                    ctx.remark("ADDRESS_KNOWN", Say::AddressKnown);
                    (Some(kept), false)
                }
                None => (None, true),
            },
        };
        let kept = next(ctx, before, &args, checked)?;
        kept.keep(ctx).await?;
        if args.is_default || profile.default_address_id.is_none() {
            profile.default_address_id = Some(kept.address_id.clone());
        }
        let is_default = profile.default_address_id.as_ref() == Some(&kept.address_id);
        profile.keep(ctx).await?;
        Ok(Answer {
            destination: kept.destination(),
            kept,
            is_default,
            is_new,
        })
    }
}

/// The same address, if the user has it already; an error if there is no room for another one.
async fn known(ctx: &CallContext, checked: &Checked) -> Result<Option<KeptAddress>, ToolError> {
    let mut all = KeptAddress::all(ctx).await?;
    if let Some(at) = all.iter().position(|kept| kept.address == checked.address) {
        return Ok(Some(all.swap_remove(at)));
    }
    if all.len() >= ADDRESSES_MAX {
        let most = ADDRESSES_MAX.to_string();
        let message = Say::AddressesFull { most };
        return Err(ToolError::invalid("/address", message).hint(Say::ChangeAddress));
    }
    Ok(None)
}

/// The address as it will be stored.
fn next(
    ctx: &CallContext,
    before: Option<KeptAddress>,
    args: &AddOrUpdateAddressArgs,
    checked: Checked,
) -> Result<KeptAddress, ToolError> {
    let held = before.as_ref().map_or(0, |kept| kept.version);
    if args.version.is_some_and(|version| version != held) {
        return Err(
            ToolError::conflict(ConflictReason::Version, Say::AddressVersion)
                .field("/version")
                .hint(Say::ReadAddressAgain)
                .detail("current_version", held),
        );
    }
    let label = args.label.clone();
    Ok(match before {
        // Nothing has changed: the version stays, so that a retry changes nothing.
        Some(kept)
            if kept.address == checked.address
                && kept.formatted == checked.formatted
                && (label.is_none() || label == kept.label) =>
        {
            kept
        }
        Some(kept) => KeptAddress {
            address_id: kept.address_id,
            label: label.or(kept.label),
            version: kept.version.saturating_add(1),
            address: checked.address,
            formatted: checked.formatted,
            updated_at: ctx.now().to_string(),
        },
        None => KeptAddress {
            address_id: ctx.new_id("addr_"),
            label,
            version: 1,
            address: checked.address,
            formatted: checked.formatted,
            updated_at: ctx.now().to_string(),
        },
    })
}

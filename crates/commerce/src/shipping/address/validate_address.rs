//! The tool that checks an address.

use std::fmt;

use countersign::contract::Behaviour;
use countersign::contract::tool::Replay;
use countersign::{CallContext, Tool, ToolArgs, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{Checked, check};
use super::fault::Change;
use super::formats::AddressRules;
use super::{Address, text};
use crate::behaviour;
use crate::destination::Destination;
use crate::shipping::tariff::Tariff;
use crate::shop::is_chinese;
use crate::words::Say;

/// Checks an address.
pub(in crate::shipping) struct ValidateAddress;

#[derive(Deserialize, ToolArgs)]
pub(in crate::shipping) struct ValidateAddressArgs {
    /// Address to check.
    #[arg(example = {"recipient": "Anna Example", "lines": ["Invalidenstraße 117"], "postal_code": "10115", "city": "Berlin", "country": "DE"})]
    address: Address,
}

/// An address that can be printed on a label.
#[derive(Clone, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct ValidAddress {
    /// The address in normal form.
    pub address: Address,
    /// Lines of the address as on a label, in the order of its country.
    pub formatted: Vec<String>,
    /// Value for the `destination` of other tools.
    pub destination: Destination,
    /// Deliverability.
    pub deliverability: Deliverability,
    /// Changes to the address as sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// Shows the deliverability only: the rest is personal.
impl fmt::Debug for ValidAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValidAddress")
            .field("deliverability", &self.deliverability)
            .finish_non_exhaustive()
    }
}

/// Deliverability of an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Deliverability {
    /// Always `format`: the form of the address was checked, not whether the house exists.
    pub checked: String,
    /// Kind of place.
    pub kind: Kind,
    /// True if a carrier delivers to the country.
    pub is_served: bool,
    /// True if carriers call it a remote area; missing if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_remote_area: Option<bool>,
    /// Notes for the buyer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Kind of place of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Street address.
    Street,
    /// Post office box; only postal services deliver there.
    PostOfficeBox,
    /// Military post.
    Military,
}

impl Tool for ValidateAddress {
    const NAME: &'static str = "shipping.validate_address";
    const DESCRIPTION: &'static str = "Checks the form of an address against the rules of its country and normalizes it. It does not \
        know whether the house exists.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = ValidateAddressArgs;
    type Output = ValidAddress;

    fn behaviour() -> Behaviour {
        Behaviour {
            replay: Replay::Pure {
                volatile: Vec::new(),
            },
            ..behaviour::read()
        }
    }

    async fn call(
        &self,
        ctx: &CallContext,
        args: ValidateAddressArgs,
    ) -> Result<ValidAddress, ToolError> {
        let checked = of(ctx, &args.address, "/address")?;
        let (rules, tariff) = (AddressRules::of(ctx)?, Tariff::of(ctx)?);
        let locale = ctx.request().locale.as_deref();
        Ok(ValidAddress {
            deliverability: deliverability(&rules, &tariff, &checked, locale),
            destination: checked.address.destination(),
            address: checked.address,
            formatted: checked.formatted,
            changes: checked.changes,
        })
    }
}

/// Checks the address at this JSON pointer of a call's arguments, and adds a remark for each change.
pub(crate) fn of(
    ctx: &CallContext,
    address: &Address,
    pointer: &str,
) -> Result<Checked, ToolError> {
    let rules = AddressRules::of(ctx)?;
    let checked = check(&rules, address, pointer, ctx.request().locale.as_deref())?;
    remark(ctx, &checked.changes);
    Ok(checked)
}

/// Adds a remark for each change, without the text: that is personal.
pub(super) fn remark(ctx: &CallContext, changes: &[Change]) {
    for Change { field, change } in changes {
        let field = field.clone();
        ctx.remark(change, Say::FieldRewritten { field });
    }
}

fn deliverability(
    rules: &AddressRules,
    tariff: &Tariff,
    checked: &Checked,
    locale: Option<&str>,
) -> Deliverability {
    let address = &checked.address;
    let kind = if checked.is_military {
        Kind::Military
    } else if is_post_office_box(rules, address) {
        Kind::PostOfficeBox
    } else {
        Kind::Street
    };
    let note = match kind {
        Kind::Street => None,
        Kind::PostOfficeBox => Some(("Only the post delivers to a box.", "仅邮政可投递至信箱。")),
        Kind::Military => Some((
            "Only the post delivers to field post.",
            "仅邮政可投递至军邮地址。",
        )),
    };
    let note = note.map(|(en, zh)| if is_chinese(locale) { zh } else { en });
    Deliverability {
        checked: "format".to_owned(),
        kind,
        is_served: tariff.serves(&address.country),
        is_remote_area: tariff.is_remote(&address.country, address.postal_code.as_deref()),
        notes: note.map(str::to_owned).into_iter().collect(),
    }
}

fn is_post_office_box(rules: &AddressRules, address: &Address) -> bool {
    address.lines.iter().any(|line| {
        let words = text::words(line);
        let mut boxes = rules.po_box.iter();
        let mut parts = rules.po_box_parts.iter();
        boxes.any(|name| words.contains(&text::words(name)))
            || parts.any(|part| line.contains(part.as_str()))
    })
}

//! A pure tool: the same arguments and the same version of its rules give the same answer, so that a recorded call can
//! be replayed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::contract::canonical;
use crate::contract::tool::{EvidenceRule, Replay};
use crate::contract::{Behaviour, ErrorCode};
use crate::rules::Rules;
use crate::words::Say;
use crate::{CallContext, Tool, ToolArgs, ToolError};

/// `sample.vat`: the tax in a net amount, by the rule set `vat`.
#[derive(Debug, Clone, Copy)]
pub struct Vat;

/// Arguments of `sample.vat`.
#[derive(Debug, Clone, Deserialize, ToolArgs)]
pub struct VatArgs {
    /// Two letters, such as DE.
    #[arg(example = "DE")]
    pub country: String,
    /// The amount without tax, in cents.
    #[arg(example = 10000, min = 0, max = 100_000_000_000)]
    pub net_cents: u64,
}

/// Answer of `sample.vat`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VatAnswer {
    /// The rate in basis points: 1900 is 19 %.
    pub rate_bp: u64,
    /// The tax in cents, half a cent rounded up.
    pub vat_cents: u64,
    /// Sum of net amount and tax.
    pub gross_cents: u64,
}

impl Vat {
    /// The rule set that it uses, in two versions; the second is in force.
    pub fn rules() -> Result<Rules, canonical::Error> {
        let rules = Rules::builder()
            .version("vat", json!({"DE": 1600, "FR": 2000, "JP": 1000}))?
            .version("vat", json!({"DE": 1900, "FR": 2000, "JP": 1000}))?;
        Ok(rules.build())
    }
}

impl Tool for Vat {
    const NAME: &'static str = "sample.vat";
    const DESCRIPTION: &'static str = "Computes the value added tax of a net amount.";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Args = VatArgs;
    type Output = VatAnswer;

    fn behaviour() -> Behaviour {
        Behaviour {
            evidence: EvidenceRule::Required,
            replay: Replay::Pure {
                volatile: Vec::new(),
            },
            ttl_seconds: Some(600),
            ..Behaviour::default()
        }
    }

    async fn call(&self, ctx: &CallContext, args: VatArgs) -> Result<VatAnswer, ToolError> {
        let rules = ctx.rules("vat")?;
        let rate = rules.data.get(args.country.to_uppercase());
        let rate_bp = rate
            .and_then(serde_json::Value::as_u64)
            .ok_or_else(|| ToolError::new(ErrorCode::NotFound, Say::NoRate).field("/country"))?;
        let scaled = args.net_cents.saturating_mul(rate_bp);
        let vat_cents = scaled.saturating_add(5_000) / 10_000;
        Ok(VatAnswer {
            rate_bp,
            vat_cents,
            gross_cents: args.net_cents.saturating_add(vat_cents),
        })
    }
}

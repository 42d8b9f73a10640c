//! The reference tools: a cross-border shopping agent that can account for its draft orders.
//!
//! They use only the public interface of `countersign`, and they are the main job of `countersign serve`. Prices, rates
//! and rules are **reference data**: real public figures with their source and date if a file names one, made up where
//! the shop is made up. They are not tax or legal advice.
//!
//! Read the modules in this order:
//!
//! 1. [`money`], [`fx`], [`item`], [`destination`]: the types that all tools share; [`behaviour`]: their behaviours;
//! 2. [`rulebook`]: rules are files, and the digest of a file is its version; [`shop`]: the offers;
//! 3. [`catalog`], [`stock`], [`pricing`], [`shipping`], [`tax`], [`compliance`]: the answers that a draft order rests on;
//! 4. [`ground`]: links from one answer to another; [`cart`], [`checkout`], [`payment`], [`evidence`]: the
//!    way to a draft order, and no further: no tool here can take money;
//!    [`interop`]: a draft order in other standards;
//! 5. [`identity`], [`knowledge`], [`mission`], [`obs`]: the tools around it.

pub mod behaviour;
pub mod cart;
pub mod catalog;
pub mod checkout;
pub mod compliance;
pub mod destination;
pub mod evidence;
pub mod fx;
pub mod ground;
pub mod id;
pub mod identity;
pub mod interop;
pub mod item;
pub mod knowledge;
pub mod mission;
pub mod money;
pub mod obs;
pub mod payment;
pub mod pricing;
pub mod rulebook;
pub mod shipping;
pub mod shop;
pub mod stock;
pub mod tax;
mod words;

use countersign::archive::KnownThing;
use countersign::catalog::CatalogBuilder;

/// The kinds of things whose ids lead to the records of the calls that made them.
pub const KNOWN_THINGS: [KnownThing; 1] = [checkout::RECORD_OF_ORDER];

/// Adds all tools to a catalog.
///
/// # Example
///
/// ```
/// use countersign::{Catalog, Executor};
/// use countersign_commerce::rulebook::RuleFiles;
///
/// let catalog = countersign_commerce::tools(Catalog::builder()).build()?;
/// let executor = Executor::builder(catalog)
///     .rules(RuleFiles::embedded()?.rules()?)
///     .build();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tools(builder: CatalogBuilder) -> CatalogBuilder {
    let areas = [
        catalog::tools,
        pricing::tools,
        shipping::tools,
        tax::tools,
        compliance::tools,
        knowledge::tools,
        cart::tools,
        checkout::tools,
        payment::tools,
        evidence::tools,
        identity::tools,
        mission::tools,
        obs::tools,
    ];
    areas.iter().fold(builder, |builder, add| add(builder))
}

//! `countersign demo`: a shopping agent's order from sloppy arguments to an erased user, on the real store, with a
//! real kill -9. Every step checks what it claims.

mod ask;
mod stage;
mod story;
pub(crate) mod worker;
mod world;

use std::path::Path;

use crate::failure::Failure;
use crate::rules::RuleOptions;
use crate::terminal::Terminal;
use stage::Stage;
pub(crate) use stage::Tally;
use story::{consent, crash, erase, grounds, once, order, proof, rules};
use world::World;

/// Number of steps.
const STEPS: usize = 15;

/// User who buys.
const ANNA: &str = "u_anna";

/// Another user.
const BEN: &str = "u_ben";

/// Item that is bought.
const SKU: &str = "SKU-0002-01";

/// Quantity that is bought.
const QUANTITY: u32 = 3;

/// Country that the order is sent to.
const DESTINATION: &str = "DE";

/// Country that the item may not be sent to.
const FORBIDDEN: &str = "JP";

/// Plays all steps in this folder, which is made.
pub(crate) fn play(
    data: &Path,
    options: &RuleOptions,
    is_slow: bool,
    terminal: &mut Terminal,
) -> Result<Tally, Failure> {
    let mut stage = Stage::new(terminal, STEPS, is_slow);
    match steps(data, options, &mut stage) {
        // What the story could not go on without is among the checks that failed.
        Err(failure) if !stage.has_failed() => Err(failure),
        Ok(()) | Err(_) => Ok(stage.tally()),
    }
}

fn steps(data: &Path, options: &RuleOptions, stage: &mut Stage<'_>) -> Result<(), Failure> {
    let world = World::enter(data, options)?;
    let grounds = grounds::play(&world, stage)?;
    let order = order::play(&world, stage, &grounds)?;
    once::again(&world, stage, &order)?;
    once::dry_run(&world, stage, &order)?;
    consent::lock(&world, stage, &order)?;
    consent::pay(&world, stage, &order)?;
    let cart = crash::prepare(&world, stage)?;
    // A file has one owner: the process that will be killed.
    world.leave()?;
    let killed = crash::kill(data, cart)?;
    let mut world = World::enter(data, options)?;
    crash::count(&world, stage, &killed)?;
    let proved = proof::Proved {
        evidence: &order.evidence,
        amount: &order.total,
        tools: &[
            "checkout.create_draft_order",
            "checkout.compute_total",
            "compliance.check_item",
            "tax.estimate_duties_and_taxes",
            "shipping.quote_options",
            "pricing.get_realtime_quote",
        ],
    };
    let bundle = proof::play(&mut world, stage, &proved)?;
    rules::play(&mut world, stage, &grounds)?;
    erase::play(&mut world, stage, &order, &bundle)?;
    world.leave()
}

//! A user is forgotten, and every proof still holds.

use std::path::Path;

use countersign::archive::Content;

use super::order::{Order, summary};
use super::proof::{verify, verify_log};
use crate::demo::ANNA;
use crate::demo::stage::Stage;
use crate::demo::world::{World, record_id};
use crate::failure::Failure;
use crate::place::{archive_failed, operator, operator_name};

/// Erases the user, and looks at what is left.
pub(in crate::demo) fn play(
    world: &mut World,
    stage: &mut Stage<'_>,
    order: &Order,
    bundle: &Path,
) -> Result<(), Failure> {
    stage.begin("erase", "The user is forgotten, the proofs stay")?;
    let was_there = world.ask(summary(order)).is_ok();
    let (archive, by) = (world.archive(), operator(&operator_name()));
    let erased = archive.erase(ANNA, &by, "asked by the user");
    let erased = world.place.runtime.block_on(erased);
    let erased = erased.map_err(archive_failed)?.erased;
    world.sign()?;
    stage.value("payloads gone", &erased.payloads.to_string())?;
    stage.value("documents gone", &erased.documents.to_string())?;
    let id = record_id(&order.evidence)?;
    let opened = archive.open(&id, &by, "looking for what is left");
    let opened = world.place.runtime.block_on(opened);
    let opened = opened.map_err(archive_failed)?;
    stage.check(
        matches!(opened.content, Content::Erased),
        "what was sent and answered cannot be opened any more, not even by the operator",
    )?;
    let gone = world.ask(summary(order));
    stage.call(&gone)?;
    stage.check(
        was_there && gone.code() == Some("NOT_FOUND"),
        "the order itself is gone, too",
    )?;
    world.sign()?;
    let whole = verify_log(world)?;
    stage.check(
        whole.is_valid() && whole.payloads_gone > 0,
        format!("all {} records of the log are still proved", whole.size),
    )?;
    let report = verify(world, &std::fs::read_to_string(bundle)?)?;
    stage.check(
        report.is_valid(),
        "and so is the bundle that was exported before",
    )?;
    stage.end()
}

//! Evidence of the order in one file, checked without the store; one changed byte is found.

use std::path::PathBuf;

use countersign::archive;
use countersign::archive::verify::{Verification, VerifyReport};
use countersign_commerce::money::Money;
use countersign_evidence::bundle::{Bundle, Report};

use crate::demo::stage::Stage;
use crate::demo::world::{World, record_id};
use crate::failure::Failure;
use crate::journal::CHECKPOINT;
use crate::place::{archive_failed, operator, operator_name};

/// Subject of the proof.
pub(in crate::demo) struct Proved<'a> {
    /// The evidence of an answer.
    pub(in crate::demo) evidence: &'a str,
    /// An amount in it.
    pub(in crate::demo) amount: &'a Money,
    /// The tool of that answer, and the tools of some answers that it rests on.
    pub(in crate::demo) tools: &'a [&'a str],
}

/// Exports, verifies, tampers.
pub(in crate::demo) fn play(
    world: &mut World,
    stage: &mut Stage<'_>,
    proved: &Proved<'_>,
) -> Result<PathBuf, Failure> {
    stage.begin(
        "proof",
        "Evidence that a stranger can check, and one changed byte",
    )?;
    world.sign()?;
    let by = operator(&operator_name());
    let content = archive::Export::Opened {
        by: &by,
        reason: "shown in the demo",
    };
    let archive = world.archive();
    let ids = [record_id(proved.evidence)?];
    let exported = world
        .place
        .runtime
        .block_on(archive.export(&ids, content, None));
    let text = exported.map_err(archive_failed)?.to_json();
    let path = world.file("bundle.json");
    std::fs::write(&path, &text)?;
    let report = verify(world, &std::fs::read_to_string(&path)?)?;
    let tools = report
        .records
        .iter()
        .filter_map(|record| record.tool.as_deref());
    let tools: Vec<&str> = tools.collect();
    stage.value(
        "in the bundle",
        &format!("{} records", report.records.len()),
    )?;
    for tool in &tools {
        stage.value("", tool)?;
    }
    stage.check(
        report.is_valid() && report.records.iter().all(|record| record.included),
        "the order and everything that it rests on are proved to be in the signed log",
    )?;
    stage.check(
        proved.tools.iter().all(|tool| tools.contains(tool)),
        "from the draft order back to the quote: nothing is missing in between",
    )?;
    tamper(world, stage, proved.amount, &text)?;
    let whole = verify_log(world)?;
    stage.check(
        whole.is_valid(),
        format!(
            "the whole log holds: {} records, every payload looked at",
            whole.size
        ),
    )?;
    stage.fact("bundle", path.display().to_string());
    stage.fact("log_key", world.place.log_key.to_string());
    stage.end()?;
    Ok(path)
}

/// Changes one digit of an amount, as a forger would, and verifies the bundle.
fn tamper(world: &World, stage: &mut Stage<'_>, amount: &Money, text: &str) -> Result<(), Failure> {
    let found = format!("\"amount\": {}", amount.amount);
    let at = text.find(&found).map(|at| at + found.len() - 1);
    let at = stage.need(at, "the amount in the bundle")?;
    let mut bytes = text.as_bytes().to_vec();
    if let Some(digit) = bytes.get_mut(at) {
        *digit = if *digit == b'0' { b'1' } else { *digit - 1 };
    }
    let changed = String::from_utf8_lossy(&bytes).into_owned();
    let path = world.file("tampered.json");
    std::fs::write(&path, &changed)?;
    let report = verify(world, &changed)?;
    stage.say(&format!(
        "an attacker changes byte {at} of the file: a digit of {amount}"
    ))?;
    for finding in report.findings.iter().take(2) {
        stage.value("found", &finding.to_string())?;
    }
    stage.check(
        !report.is_valid() && !report.findings.is_empty(),
        "it is caught, and the record is named",
    )?;
    stage.fact("tampered", path.display().to_string());
    stage.fact("tampered_byte", at);
    Ok(())
}

/// Verifies a bundle as a third party does who has the public key of the log.
pub(in crate::demo) fn verify(world: &World, text: &str) -> Result<Report, Failure> {
    let bundle = Bundle::parse(text)?;
    Ok(bundle.verify(Some(&world.place.log_key), None))
}

/// Every record of the log, against the checkpoint that is kept outside of the store.
pub(in crate::demo) fn verify_log(world: &World) -> Result<VerifyReport, Failure> {
    let verification = Verification {
        held: world.place.folder.read(CHECKPOINT)?,
        is_held_beside: true,
        ..Verification::default()
    };
    let archive = world.archive();
    let report = archive.verify_all(&verification, |_, _| {});
    world.place.runtime.block_on(report).map_err(archive_failed)
}

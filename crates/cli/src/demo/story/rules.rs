//! Recorded answers are computed again: with the rules of then, and with rules that were changed since.

use std::ops::Range;
use std::path::PathBuf;

use countersign::replay::{Replayer, RulesAt, Verdict};
use countersign::rules::Rules;
use countersign_commerce::money::Money;
use serde_json::Value;

use super::grounds::Grounds;
use crate::catalog;
use crate::demo::stage::Stage;
use crate::demo::world::{World, record_id};
use crate::failure::Failure;
use crate::rules::RuleOptions;
use crate::table::Table;

/// Section and key of the destination's tax rate in its file, the new rate, and another one in case the new one is there already.
const SECTION: &str = "[countries.DE.tax]";
const RATE: &str = "standard = \"";
const RATE_NEW: &str = "0.21";
const RATE_OTHER: &str = "0.23";

/// Computes again, then against a changed rule set.
pub(in crate::demo) fn play(
    world: &mut World,
    stage: &mut Stage<'_>,
    grounds: &Grounds,
) -> Result<(), Failure> {
    stage.begin(
        "replay",
        "Computed again: with the rules of then, and with others",
    )?;
    let all = [
        ("pricing.get_realtime_quote", &grounds.quote),
        ("shipping.quote_options", &grounds.shipping),
        ("tax.estimate_duties_and_taxes", &grounds.tax),
        ("compliance.check_item", &grounds.compliance),
    ];
    let mut identical = 0;
    for (tool, id) in all {
        let verdict = replay(world, world.rules.clone(), RulesAt::Recorded, id)?;
        identical += usize::from(verdict == Verdict::Identical);
        stage.value(tool, verdict.as_str())?;
    }
    stage.check(
        identical == all.len(),
        format!(
            "{identical} of {} recorded answers come out the same",
            all.len()
        ),
    )?;
    let (folder, rate) = write_changed(world, stage)?;
    let changed = RuleOptions::of(Some(folder)).known(Some(&world.place.folder))?;
    let old = world.rules.current("tax").map(|set| set.version);
    let is_kept = old.is_some_and(|old| changed.rules.version("tax", old).is_some());
    stage.check(is_kept, "the old version stays loadable")?;
    let verdict = replay(world, changed.rules, RulesAt::InForce, &grounds.tax)?;
    let differences = verdict.into_differences();
    let mut table = Table::new(["WHERE", "RECORDED", &format!("WITH {rate}")]);
    for one in &differences {
        let shown = |value: &Option<Value>| shown(&one.path, value.as_ref());
        table.row([&one.path, &shown(&one.recorded), &shown(&one.computed)]);
    }
    stage.table(&table)?;
    let differs = |path: &str| differences.iter().any(|one| one.path == path);
    stage.check(
        differs("/tax/amount") && differs("/total/amount") && !differs("/goods_value/amount"),
        "tax and total would differ, the goods would not",
    )?;
    world.sign()?;
    stage.end()
}

/// A value of an answer; its amounts are in euros.
fn shown(path: &str, value: Option<&Value>) -> String {
    let amount = value.filter(|_| path.ends_with("/amount"));
    match (amount.and_then(Value::as_i64), value) {
        (Some(amount), _) => Money::new(amount, "EUR").to_string(),
        (None, Some(Value::String(text))) => text.clone(),
        (None, Some(value)) => value.to_string(),
        (None, None) => String::new(),
    }
}

fn replay(world: &World, rules: Rules, at: RulesAt, id: &str) -> Result<Verdict, Failure> {
    let place = &world.place;
    let replayer = Replayer::new(place.store(), place.vault(), place.by.clone())?;
    let replayer = replayer.with(place.clock.clone(), place.ids.clone());
    let target = replayer.local(catalog::program()?, rules, at);
    let id = record_id(id)?;
    let done = place.runtime.block_on(replayer.replay(&id, &target))?;
    Ok(done.verdict)
}

/// A folder with another version of the taxes that are in force, and the rate that the destination has in it.
fn write_changed(world: &World, stage: &mut Stage<'_>) -> Result<(PathBuf, &'static str), Failure> {
    let known = RuleOptions::default().known(Some(&world.place.folder))?;
    // Of the world, not of the program: whoever plays may have brought rules.
    let in_force = world.rules.current("tax").map(|set| set.version);
    let current = known
        .versions
        .iter()
        .find(|one| one.name == "tax" && Some(one.digest) == in_force);
    let current = stage.need(current, "a rule set tax")?;
    let text = known.text(current)?;
    let at = stage.need(rate_at(&text), "a rate of the destination")?;
    let rate = text.get(at.clone()).unwrap_or_default().to_owned();
    let rate_new = if rate == RATE_NEW {
        RATE_OTHER
    } else {
        RATE_NEW
    };
    let mut changed = text;
    changed.replace_range(at, rate_new);
    let folder = world.file("changed-rules");
    std::fs::create_dir_all(folder.join("tax"))?;
    std::fs::write(folder.join("tax/2027-01-01.toml"), changed)?;
    stage.say(&format!(
        "an operator writes tax/2027-01-01.toml: a rate of {rate_new} instead of {rate} in Germany"
    ))?;
    Ok((folder, rate_new))
}

/// Finds the standard rate of the destination in the file; `None` if it is not there.
fn rate_at(text: &str) -> Option<Range<usize>> {
    let section = text.find(SECTION)?;
    let begin = section + text.get(section..)?.find(RATE)? + RATE.len();
    let end = begin + text.get(begin..)?.find('"')?;
    Some(begin..end)
}

//! A record as people read it: one sentence, its phases, its evidence.

use std::collections::BTreeMap;

use countersign::contract::evidence::{LinkRole, RecordedActor, RecordedReply};
use countersign::contract::record::{BindSummary, PhaseTimes};
use countersign::contract::{ActorType, EvidenceRecord, RecordKind};
use jiff::Timestamp;
use serde_json::Value;

use super::ShownRecord;
use crate::shown::{self, Decision, Line};
use crate::words::Words;

/// The record that the page is about, for people.
pub(super) struct View {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) code: &'static str,
    pub(super) tone: &'static str,
    pub(super) sentence: String,
    pub(super) moment: String,
    pub(super) actor: String,
    pub(super) tags: Vec<(&'static str, &'static str)>,
    pub(super) phases: Vec<Phase>,
    pub(super) total: String,
    /// Times of the question to a person and of the answer.
    pub(super) waited: Option<(String, String)>,
    pub(super) public: Vec<Line>,
    pub(super) key: Option<(String, u32, String)>,
    /// The call whose answer was given again, where this one is a repeat.
    pub(super) first: Option<String>,
    pub(super) proof: &'static str,
    pub(super) is_proved: bool,
    /// Further facts about the evidence, name and value.
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) links: Vec<(String, &'static str)>,
    pub(super) act: Vec<Line>,
    pub(super) can_open: bool,
    pub(super) bindings: Vec<(String, u32)>,
}

/// A phase of the bar, in the units of its box.
pub(super) struct Phase {
    pub(super) kind: &'static str,
    pub(super) name: &'static str,
    pub(super) took: String,
    pub(super) x: u64,
    pub(super) width: u64,
}

/// A record of the same call.
pub(super) struct Step {
    pub(super) id: String,
    pub(super) moment: String,
    pub(super) text: String,
    pub(super) tone: &'static str,
}

/// Ranks records by how much they tell about their call; a higher number tells more.
pub(super) fn weight(record: &EvidenceRecord) -> u8 {
    match record.kind {
        RecordKind::Call => 3,
        RecordKind::Denial => 2,
        RecordKind::Approval | RecordKind::Intent | RecordKind::Resolution => 1,
        RecordKind::Access | RecordKind::Erasure | RecordKind::Config | RecordKind::Checkpoint => 0,
    }
}

/// A record for people.
pub(super) fn view(shown: &ShownRecord, w: &'static Words) -> View {
    let record = &shown.record;
    let code = code_of(record.reply.as_ref());
    let phases = record.phases.unwrap_or_default();
    let none = BTreeMap::new();
    let lines = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Vec::new(),
        Some(value) => shown::lines(value, &none),
    };
    let (proof, is_proved) = match shown.proof.get("state").and_then(Value::as_str) {
        Some("signed") => (w.proof_signed, true),
        Some("not_included") => (w.proof_not_included, false),
        Some(_) | None => (w.proof_waiting, true),
    };
    let issues = record.binding.iter().flat_map(|binding| &binding.issues);
    let named =
        |actor: &RecordedActor| format!("{} {}", kind_of(actor.kind, w), shown::short(&actor.id));
    let key = record.idempotency.as_ref();
    View {
        id: record.id.to_string(),
        tool: record
            .tool
            .as_ref()
            .map(|tool| tool.name.clone())
            .unwrap_or_default(),
        code,
        tone: tone(code),
        sentence: sentence(record, w),
        moment: shown::moment(&record.at),
        actor: record.actor.as_ref().map(named).unwrap_or_default(),
        tags: tags(record, w),
        phases: bar(&phases, shown.decision.as_ref(), w),
        total: shown::took(own_us(&phases)),
        waited: shown.decision.as_ref().map(|decision| {
            let at = |time: Timestamp| shown::moment(&time.to_string());
            (at(decision.asked_at), at(decision.answered_at))
        }),
        public: lines(record.arguments.as_ref().map(|given| &given.public)),
        key: key.map(|key| (shown::short(&key.key), key.attempt, key.state.clone())),
        first: key
            .filter(|key| key.state == "replayed")
            .and_then(|_| record.links.first())
            .map(|link| link.id.to_string()),
        proof,
        is_proved,
        facts: facts(shown, w),
        links: record
            .links
            .iter()
            .map(|link| (link.id.to_string(), role(link.role, w)))
            .collect(),
        act: lines(Some(&record.act)),
        can_open: shown.has_payload,
        bindings: issues
            .map(|(code, count)| (code.as_str().to_owned(), *count))
            .collect(),
    }
}

/// Further facts about the evidence.
fn facts(shown: &ShownRecord, w: &'static Words) -> Vec<(&'static str, String)> {
    let record = &shown.record;
    let tool = record.tool.as_ref();
    let size = shown.proof.get("size").and_then(Value::as_u64);
    let place = shown.index.map(|index| match size {
        Some(size) => format!("{} / {}", shown::number(index), shown::number(size)),
        None => shown::number(index),
    });
    let build = tool.and_then(|tool| tool.build);
    let until = record
        .reply
        .as_ref()
        .and_then(|reply| reply.valid_until.as_deref());
    let known = [
        (w.snapshot, Some(record.id.to_string())),
        (w.place_in_log, place),
        (w.version, tool.and_then(|tool| tool.version.clone())),
        (w.build, build.map(|build| shown::short(&build.to_string()))),
        (
            w.policy,
            record.policy_revision.as_deref().map(shown::short),
        ),
        (w.valid_until, until.map(shown::moment)),
    ];
    let rules = record.rules.iter();
    let rules = rules.map(|(name, version)| (w.rules, format!("{name} {}", shown::short(version))));
    let known = known
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    known.chain(rules).collect()
}

fn role(role: Option<LinkRole>, w: &Words) -> &'static str {
    match role {
        Some(LinkRole::RestsOn) | None => w.rests_on,
        Some(LinkRole::LookedAt) => w.looked_at,
    }
}

/// An actor in one word.
pub(crate) fn kind_of(kind: ActorType, w: &Words) -> &'static str {
    match kind {
        ActorType::User => w.a_person,
        ActorType::Agent => w.an_agent,
        ActorType::System => w.a_program,
    }
}

fn code_of(reply: Option<&RecordedReply>) -> &'static str {
    reply
        .and_then(|reply| reply.code)
        .map_or("OK", |code| code.as_str())
}

/// The colour of a code.
fn tone(code: &str) -> &'static str {
    match code {
        "OK" => "ok",
        "NEEDS_USER_CONFIRMATION" => "warn",
        _ => "bad",
    }
}

fn tags(record: &EvidenceRecord, w: &'static Words) -> Vec<(&'static str, &'static str)> {
    let mut tags = Vec::new();
    if record.dry_run {
        tags.push(("info", w.dry_run));
    }
    let state = record.idempotency.as_ref().map(|key| key.state.as_str());
    if state == Some("replayed") {
        tags.push(("", w.replayed));
    }
    if state == Some("in_doubt") {
        tags.push(("bad", w.in_doubt));
    }
    let binding = record.binding.as_ref();
    if binding.is_some_and(BindSummary::is_repaired) {
        tags.push(("warn", w.repaired));
    }
    tags
}

/// The call in one sentence.
fn sentence(record: &EvidenceRecord, w: &'static Words) -> String {
    let tool = record.tool.as_ref().map_or("", |tool| tool.name.as_str());
    let code = code_of(record.reply.as_ref());
    let time = shown::took(own_us(&record.phases.unwrap_or_default()));
    let state = record.idempotency.as_ref().map(|key| key.state.as_str());
    let form = match (record.kind, code) {
        (RecordKind::Call, "OK") if record.dry_run => w.said_dry_run,
        (RecordKind::Call, "OK") if state == Some("replayed") => w.said_replayed,
        (RecordKind::Call, "OK") => w.said_ok,
        (RecordKind::Call, _) if state == Some("in_doubt") => w.said_in_doubt,
        (RecordKind::Call | RecordKind::Denial, "NEEDS_USER_CONFIRMATION") => w.said_waits,
        (RecordKind::Call, _) => w.said_failed,
        (RecordKind::Denial, _) => w.said_refused,
        (RecordKind::Approval, _) => w.said_approval,
        (RecordKind::Access, _) => w.said_access,
        (RecordKind::Erasure, _) => w.said_erasure,
        (RecordKind::Config, _) => w.said_config,
        (RecordKind::Intent, _) => w.said_intent,
        (RecordKind::Resolution, _) => w.said_resolution,
        (RecordKind::Checkpoint, _) => w.said_checkpoint,
    };
    form.replace("{tool}", tool)
        .replace("{code}", code)
        .replace("{took}", &time)
}

/// A record in the history of its call.
pub(super) fn step(record: &EvidenceRecord, w: &'static Words) -> Step {
    Step {
        id: record.id.to_string(),
        moment: shown::moment(&record.at),
        text: sentence(record, w),
        tone: tone(code_of(record.reply.as_ref())),
    }
}

/// Duration of the call without waiting for a person. Looking for an answer that is not there belongs to it.
fn own_us(phases: &PhaseTimes) -> u64 {
    let waited = shown::noticed(phases.awaiting_approval_us);
    phases.worked_us() + waited.map_or(phases.awaiting_approval_us, |_| 0)
}

/// Width of the bar and of the gap behind the time that a person took, in the units of its box.
const WIDTH: u64 = 1_000;
const APART: u64 = 26;
const PERSON: u64 = 240;

/// The phases beside each other: each has room for its name, the rest goes by time. The time that a person took stands apart, because
/// minutes beside milliseconds would leave no room for them.
fn bar(phases: &PhaseTimes, decision: Option<&Decision>, w: &'static Words) -> Vec<Phase> {
    const LEAST: u64 = 90;
    let in_call = shown::noticed(phases.awaiting_approval_us);
    let looked_us = in_call.map_or(phases.awaiting_approval_us, |_| 0);
    let waited_us = decision.map(Decision::took_us).or(in_call);
    let all = [
        ("queued", w.phase_queued, phases.queued_us + looked_us),
        ("ran", w.phase_ran, phases.executing_us),
        ("settled", w.phase_settled, phases.settling_us),
    ];
    let there: Vec<_> = all.into_iter().filter(|(_, _, us)| *us > 0).collect();
    let from = waited_us.map_or(0, |_| PERSON + APART);
    let sum: u64 = there.iter().map(|(_, _, us)| us).sum();
    let rest = (WIDTH - from).saturating_sub(LEAST * there.len() as u64);
    let mut x = from;
    let last = there.len().saturating_sub(1);
    let phase = |(at, (kind, name, us)): (usize, (&'static str, &'static str, u64))| {
        let width = if at == last {
            WIDTH - x
        } else {
            LEAST + rest * us / sum.max(1)
        };
        let phase = Phase {
            kind,
            name,
            took: shown::took(us),
            x,
            width,
        };
        x += width;
        phase
    };
    let own: Vec<Phase> = there.into_iter().enumerate().map(phase).collect();
    let waited = waited_us.map(|us| Phase {
        kind: "waited",
        name: w.phase_waited,
        took: shown::took(us),
        x: 0,
        width: PERSON,
    });
    waited.into_iter().chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_fill_the_bar() {
        let phases = PhaseTimes {
            queued_us: 100,
            awaiting_approval_us: 0,
            executing_us: 12_000,
            settling_us: 800,
        };
        let w = crate::words::of(countersign::contract::Language::English);
        let bar = bar(&phases, None, w);
        let kinds: Vec<_> = bar.iter().map(|phase| phase.kind).collect();
        assert_eq!(kinds, ["queued", "ran", "settled"]);
        let width: u64 = bar.iter().map(|phase| phase.width).sum();
        assert_eq!(width, 1_000);
    }

    /// B17: the minutes of a person stand apart; looking for an answer that is not there is none of them.
    #[test]
    fn waiting_for_a_person_stands_apart() {
        let w = crate::words::of(countersign::contract::Language::English);
        let phases = PhaseTimes {
            queued_us: 100,
            awaiting_approval_us: 900,
            executing_us: 12_000,
            settling_us: 800,
        };
        let kinds = |bar: &[Phase]| bar.iter().map(|phase| phase.kind).collect::<Vec<_>>();
        let looked = bar(&phases, None, w);
        assert_eq!(kinds(&looked), ["queued", "ran", "settled"]);
        assert_eq!(looked[0].took, "1.0\u{a0}ms");
        let decision = serde_json::json!({
            "asked_at": "2026-11-17T12:00:00Z", "answered_at": "2026-11-17T12:04:18Z", "evidence": "ev_1",
        });
        let decision: Decision = serde_json::from_value(decision).unwrap();
        let decided = bar(&phases, Some(&decision), w);
        assert_eq!(kinds(&decided), ["waited", "queued", "ran", "settled"]);
        assert_eq!(decided[0].took, "4\u{a0}min 18\u{a0}s");
        assert_eq!(decided[1].x, PERSON + APART);
        assert_eq!(decided[3].x + decided[3].width, WIDTH);
        assert_eq!(own_us(&phases), 13_800);
        let in_call = PhaseTimes {
            awaiting_approval_us: 2_000_000,
            ..phases
        };
        assert_eq!(
            kinds(&bar(&in_call, None, w)),
            ["waited", "queued", "ran", "settled"]
        );
        assert_eq!(own_us(&in_call), 12_900);
    }
}

//! A case as people read it: who quoted what, by which rules, what a person was shown and confirmed, and who looked at it later.
//!
//! [`tell`] makes a [`Story`] of the records of a case and of what was opened of them. The page of the console, the command and the
//! file for a dispute show the same story. It decides nothing, and it shows no content that the bundle it is given does not open.

mod amount;
mod file;
mod steps;
mod story;
mod words;
mod zip;

use std::collections::{BTreeMap, BTreeSet};

use countersign::archive::CasePart;
use countersign::contract::evidence::{Opening, RecordedActor};
use countersign::contract::{ActorType, EvidenceRecord, Language, RecordKind};
use countersign_evidence::bundle::{Bundle, Opened};
use countersign_gateway::http::cases::{ShownCase, ShownPart};
use jiff::Timestamp;
use serde_json::Value;

pub use amount::Line;
pub use file::html;
pub use story::{Look, Material, Question, RuleLine, RuleVersion, Step, Story};
pub use zip::{Archived, ZipError, zip};

pub(crate) use words::Says;

/// Tells a case.
pub fn tell(material: Material<'_>, language: Language) -> Story {
    let says = words::of(language);
    let teller = Teller {
        material,
        says,
        opened: opened_by_id(material.bundle),
    };
    let case = material.case;
    let is_look = |part: &&ShownPart| part.part == CasePart::Looked;
    let steps: Vec<Step> = case
        .records
        .iter()
        .filter(|part| !is_look(part))
        .map(|part| teller.step(part))
        .collect();
    let looks = case.records.iter().filter(is_look);
    Story {
        title: teller.title(),
        facts: teller.facts(&steps),
        rules: teller.rules(),
        looks: looks.map(|part| teller.look(part)).collect(),
        notes: teller.notes(&steps),
        is_opened: material.bundle.is_some(),
        is_erased: is_erased(material.case),
        steps,
        language,
    }
}

/// True if the user of a case was erased.
fn is_erased(case: &ShownCase) -> bool {
    let mut records = case.records.iter();
    records.any(|part| part.record.kind == RecordKind::Erasure)
}

struct Teller<'a> {
    material: Material<'a>,
    says: &'static Says,
    opened: BTreeMap<String, &'a Opened>,
}

impl Teller<'_> {
    fn title(&self) -> String {
        let case = self.material.case;
        let name = case.things.first().unwrap_or(&case.name);
        self.says.title.replace("{}", name)
    }

    fn step(&self, part: &ShownPart) -> Step {
        let record = &part.record;
        let tool = record.tool.as_ref().map_or("", |tool| tool.name.as_str());
        let opened = self.opened.get(record.id.as_str()).copied();
        let (title, tone, outcome) = self.happened(record, tool);
        let is_minor = steps::is_of_the_shop(tool);
        let value = |opening: fn(&Opened) -> Option<&Opening>| value_of(opening(opened?)?);
        let data = value(|opened| opened.data.as_ref());
        let asked = value(|opened| opened.arguments.as_ref());
        let shown = value(|opened| opened.shown.as_ref());
        let max = self.material.details_max;
        let mut details = Vec::new();
        for (lead, value) in [(self.says.asked, &asked), (self.says.answered, &data)] {
            if let Some(value) = value {
                details.extend(amount::details(value, lead, is_minor, max, self.says));
            }
        }
        let lines = match record.kind {
            // What a person was shown is told as they saw it.
            RecordKind::Approval => Vec::new(),
            RecordKind::Call
            | RecordKind::Denial
            | RecordKind::Access
            | RecordKind::Erasure
            | RecordKind::Config
            | RecordKind::Intent
            | RecordKind::Resolution
            | RecordKind::Checkpoint => {
                let of = data.as_ref().or(asked.as_ref());
                of.map_or_else(Vec::new, |value| {
                    amount::highlights(value, is_minor, self.says)
                })
            }
        };
        Step {
            id: record.id.to_string(),
            at: record.at.clone(),
            moment: self.moment(&record.at),
            part: part.part,
            tone,
            title,
            tool: tool.to_owned(),
            by: self.by(record),
            outcome,
            lines,
            shown: shown.as_ref().and_then(|shown| {
                let is_checked = record.act.get("shown_checked") == Some(&Value::Bool(true));
                let asked = question(shown, self.says)?;
                Some(Question {
                    is_checked,
                    ..asked
                })
            }),
            details,
            rules: self.rules_of(record),
            proof: self.proof(part),
            is_sealed: part.has_payload && opened.is_none(),
            is_folded: false,
            is_wanted: false,
        }
    }

    /// Describes the event, its severity and its outcome.
    fn happened(&self, record: &EvidenceRecord, tool: &str) -> (String, &'static str, String) {
        let says = self.says;
        let event = record.act.get("event").and_then(Value::as_str);
        let with_tool = |form: &str| form.replace("{tool}", tool);
        match record.kind {
            RecordKind::Call | RecordKind::Denial => {
                let title = steps::title(tool, says.language);
                let title = title.map_or_else(|| with_tool(says.called), str::to_owned);
                let code = record.reply.as_ref().and_then(|reply| reply.code);
                let (tone, outcome) = match code.map(countersign::contract::ErrorCode::as_str) {
                    None if record.dry_run => ("ok", says.dry_run.to_owned()),
                    None => ("ok", String::new()),
                    Some("NEEDS_USER_CONFIRMATION") => ("warn", says.waits.to_owned()),
                    Some(code) => ("bad", says.refused.replace("{code}", code)),
                };
                (title, tone, outcome)
            }
            RecordKind::Approval => {
                let (form, tone) = match event {
                    Some("asked") => (says.event_asked, "warn"),
                    Some("confirmed") => (says.event_confirmed, "ok"),
                    Some("approved") => (says.event_approved, "ok"),
                    Some("denied") => (says.event_denied, "bad"),
                    Some("used") => (says.event_used, "ok"),
                    Some("refused") => (says.event_refused, "bad"),
                    Some(_) | None => (says.event_other, "warn"),
                };
                (with_tool(form), tone, String::new())
            }
            RecordKind::Access => (says.looked.to_owned(), "warn", String::new()),
            RecordKind::Erasure => (says.erased.to_owned(), "bad", String::new()),
            RecordKind::Config => (says.config.to_owned(), "ok", String::new()),
            RecordKind::Intent => (with_tool(says.intent), "ok", String::new()),
            RecordKind::Resolution => (with_tool(says.resolved), "warn", String::new()),
            RecordKind::Checkpoint => (says.checkpoint.to_owned(), "ok", String::new()),
        }
    }

    fn by(&self, record: &EvidenceRecord) -> String {
        let Some(actor) = &record.actor else {
            return String::new();
        };
        let RecordedActor { kind, id } = actor;
        let case = self.material.case;
        let is_user = record.subject.as_ref() == Some(id) || *id == case.user_id;
        match kind {
            ActorType::User if is_user && case.user_id.is_empty() => self.says.the_user.to_owned(),
            ActorType::User if is_user => self.says.the_user_named.replace("{}", &case.user_id),
            ActorType::User => self.says.a_person.replace("{}", &crate::shown::short(id)),
            ActorType::Agent => self.says.an_agent.replace("{}", &crate::shown::short(id)),
            ActorType::System => match id.strip_prefix("operator/") {
                Some(name) => self.says.an_operator.replace("{}", name),
                None => self.says.a_program.replace("{}", &crate::shown::short(id)),
            },
        }
    }

    fn look(&self, part: &ShownPart) -> Look {
        let record = &part.record;
        let event = record.act.get("event").and_then(Value::as_str);
        Look {
            id: record.id.to_string(),
            moment: self.moment(&record.at),
            by: self.by(record),
            what: match event {
                Some("export") => self.says.look_export,
                Some("replay") => self.says.look_replay,
                Some(_) | None => self.says.look_open,
            }
            .to_owned(),
        }
    }

    fn facts(&self, steps: &[Step]) -> Vec<Line> {
        let says = self.says;
        let case = self.material.case;
        let mut facts = Vec::new();
        let mut fact = |label: &str, value: String| {
            if !value.is_empty() {
                facts.push(Line::new(label, value));
            }
        };
        fact(says.fact_about, case.things.join(", "));
        fact(says.fact_user, case.user_id.clone());
        let times = (steps.first(), steps.last());
        if let (Some(first), Some(last)) = times {
            fact(
                says.fact_time,
                format!("{} – {}", first.moment, last.moment),
            );
        }
        let last_total = steps.iter().rev().find_map(|step| {
            let mut lines = step.lines.iter();
            lines
                .find(|line| line.is_total)
                .map(|line| line.value.clone())
        });
        fact(says.fact_total, last_total.unwrap_or_default());
        let answers = case.records.iter().zip(self.answers());
        for (part, answer) in answers {
            if let Some(form) = answer {
                let moment = self.moment(&part.record.at);
                fact(form, format!("{} · {moment}", self.by(&part.record)));
            }
        }
        let signed = case
            .records
            .iter()
            .filter_map(|part| part.signed_size)
            .max();
        let count = case
            .records
            .iter()
            .filter(|part| part.signed_size.is_some())
            .count();
        let proof = signed.map(|size| {
            let form = says.proof_all.replace("{count}", &count.to_string());
            form.replace("{size}", &crate::shown::number(size))
        });
        fact(says.fact_proof, proof.unwrap_or_default());
        facts
    }

    /// For each record, the label of an answer that a person gave, or of the erasure of the user.
    fn answers(&self) -> impl Iterator<Item = Option<&'static str>> {
        self.material.case.records.iter().map(|part| {
            let event = part.record.act.get("event").and_then(Value::as_str);
            match (part.record.kind, event) {
                (RecordKind::Approval, Some("approved" | "confirmed")) => Some(self.says.fact_yes),
                (RecordKind::Approval, Some("denied")) => Some(self.says.fact_no),
                (RecordKind::Erasure, _) => Some(self.says.fact_erased),
                (_, _) => None,
            }
        })
    }

    fn notes(&self, steps: &[Step]) -> Vec<String> {
        let says = self.says;
        let case = self.material.case;
        let is_tampered = case.records.iter().any(|part| !part.is_intact);
        let is_erased = is_erased(case);
        let is_step = |part: &&ShownPart| part.part != CasePart::Looked;
        let mut steps_only = case.records.iter().filter(is_step);
        let is_waiting = steps_only.any(|part| part.signed_size.is_none());
        let notes = [
            (is_tampered, says.note_tampered),
            (is_erased, says.note_erased),
            // What is left of an erased user cannot be opened for any reason.
            (
                !is_erased && steps.iter().any(|step| step.is_sealed),
                says.note_sealed,
            ),
            (is_waiting && !is_tampered, says.note_waiting),
            (case.is_cut, says.note_cut),
        ];
        let there = notes.into_iter().filter(|(is_there, _)| *is_there);
        there.map(|(_, note)| note.to_owned()).collect()
    }

    fn rules(&self) -> Vec<RuleLine> {
        let records = self.material.case.records.iter();
        let used: BTreeSet<(&String, &String)> =
            records.flat_map(|part| &part.record.rules).collect();
        let line = |(name, version): (&String, &String)| RuleLine {
            name: steps::rule(name, self.says.language),
            label: self.label(name, version).unwrap_or_default(),
            version: version.clone(),
        };
        used.into_iter().map(line).collect()
    }

    fn rules_of(&self, record: &EvidenceRecord) -> Vec<String> {
        let rule = |(name, version): (&String, &String)| {
            let said = steps::rule(name, self.says.language);
            match self.label(name, version) {
                Some(label) => format!("{said} ({label})"),
                None => format!("{said} ({})", crate::shown::short(version)),
            }
        };
        record.rules.iter().map(rule).collect()
    }

    fn label(&self, name: &str, version: &str) -> Option<String> {
        let mut known = self.material.rules.iter();
        let found = known.find(|rule| rule.name == name && rule.version == version);
        found.and_then(|rule| rule.label.clone())
    }

    fn proof(&self, part: &ShownPart) -> String {
        match (part.is_intact, part.index) {
            (false, _) => self.says.proof_wrong.to_owned(),
            (true, Some(index)) if part.signed_size.is_some() => self
                .says
                .proof_signed
                .replace("{}", &crate::shown::number(index)),
            (true, _) => self.says.proof_waiting.to_owned(),
        }
    }

    fn moment(&self, text: &str) -> String {
        let form = self.says.moment;
        match text.parse::<Timestamp>() {
            Ok(at) => at.strftime(form).to_string(),
            Err(_) => text.to_owned(),
        }
    }
}

/// Opened content, by the id of its record.
fn opened_by_id(bundle: Option<&Bundle>) -> BTreeMap<String, &Opened> {
    let records = bundle.into_iter().flat_map(|bundle| &bundle.records);
    let opened = records.filter_map(|bundled| {
        let opened = bundled.opened.as_ref()?;
        let record: EvidenceRecord = serde_json::from_str(&bundled.leaf).ok()?;
        Some((record.id.to_string(), opened))
    });
    opened.collect()
}

/// An opened value. A text that isn't canonical JSON (an integer that no double holds) stays text, with all digits.
fn value_of(opening: &Opening) -> Option<Value> {
    match (&opening.value, &opening.text) {
        (Some(value), _) => Some(value.clone()),
        (None, Some(text)) => Some(Value::String(text.clone())),
        (None, None) => None,
    }
}

/// The question in what a person was shown.
fn question(shown: &Value, says: &'static Says) -> Option<Question> {
    let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
    let list = |value: &Value, name: &str| value.get(name).and_then(Value::as_array).cloned();
    let Some(asked) = shown.get("question").filter(|asked| asked.is_object()) else {
        // A tool without words of its own: its description and the arguments are what was shown.
        let lines = amount::flat(shown.get("arguments")?, false, says);
        let title = text(shown, "title").or_else(|| text(shown, "description"))?;
        return Some(Question {
            is_checked: false,
            title,
            lines,
            irreversible: Vec::new(),
        });
    };
    let lines = list(asked, "lines").unwrap_or_default();
    let line = |line: &Value| {
        let value = text(line, "value")?;
        let value = amount::time(&value, says).unwrap_or(value);
        Some(Line::new(&text(line, "label")?, value))
    };
    let irreversible = list(asked, "irreversible").unwrap_or_default();
    Some(Question {
        is_checked: false,
        title: text(asked, "title")?,
        lines: lines.iter().filter_map(line).collect(),
        irreversible: irreversible
            .iter()
            .filter_map(|what| what.as_str().map(str::to_owned))
            .collect(),
    })
}

#[cfg(test)]
mod tests;

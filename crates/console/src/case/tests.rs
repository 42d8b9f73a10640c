//! Stories of made-up cases: sealed, opened, and as a ZIP.

use countersign::contract::SnapshotId;
use countersign::contract::evidence::{RecordedReply, RecordedTool};
use countersign_evidence::bundle::BundledRecord;
use countersign_gateway::http::cases::ShownCase;
use serde_json::json;

use super::*;

fn record(kind: RecordKind, id: &str, tool: &str) -> EvidenceRecord {
    let mut record =
        EvidenceRecord::new(kind, SnapshotId::new(id).unwrap(), "2026-11-17T10:00:00Z");
    record.tool = Some(RecordedTool {
        name: tool.to_owned(),
        version: Some("1".to_owned()),
        definition: None,
        build: None,
    });
    record.subject = Some("s1".to_owned());
    record.reply = Some(RecordedReply {
        code: None,
        commitment: None,
        ttl_seconds: None,
        valid_until: None,
    });
    record
}

fn part(part: CasePart, record: EvidenceRecord) -> ShownPart {
    ShownPart {
        part,
        record,
        index: Some(4),
        has_payload: true,
        signed_size: Some(9),
        is_intact: true,
    }
}

fn actor(kind: ActorType, id: &str) -> RecordedActor {
    let id = id.to_owned();
    RecordedActor { kind, id }
}

fn case() -> ShownCase {
    let mut quote = record(RecordKind::Call, "ev_quote", "pricing.get_realtime_quote");
    quote.actor = Some(actor(ActorType::Agent, "shopper"));
    quote
        .rules
        .insert("prices".to_owned(), "sha256:aa".to_owned());
    let mut other = record(RecordKind::Call, "ev_other", "crm.note");
    other.actor = Some(actor(ActorType::System, "backend"));
    let mut yes = record(
        RecordKind::Approval,
        "ev_yes",
        "payment.create_payment_intent",
    );
    yes.act = json!({"event": "approved", "approval": "ap_1"});
    yes.actor = Some(actor(ActorType::User, "s1"));
    let mut look = record(RecordKind::Access, "ev_look", "");
    look.tool = None;
    look.act = json!({"event": "export", "records": ["ev_quote"]});
    look.actor = Some(actor(ActorType::System, "operator/tester"));
    ShownCase {
        name: "order_1".to_owned(),
        things: vec!["order_1".to_owned()],
        user_id: "u_7".to_owned(),
        is_cut: false,
        records: vec![
            part(CasePart::Ground, quote),
            part(CasePart::Named, other),
            part(CasePart::Followed, yes),
            part(CasePart::Looked, look),
        ],
    }
}

fn bundle() -> Bundle {
    let opening = |value: Value| {
        Some(Opening {
            salt: String::new(),
            value: Some(value),
            text: None,
        })
    };
    let bundled = |record: &EvidenceRecord, opened: Opened| {
        let leaf = serde_json::to_string(record).unwrap();
        BundledRecord::new(0, leaf, &[]).with_opened(opened)
    };
    let case = case();
    let data = json!({"items": [{"title": "Earbuds <3", "quantity": 3,
        "line_total": {"amount": 5_997, "currency": "EUR"}}], "total": {"amount": 5_997, "currency": "EUR"}});
    let shown = json!({"question": {"title": "Pay EUR 59.97", "lines": [{"label": "Total", "value": "EUR 59.97"},
        {"label": "Until", "value": "2026-11-18T09:46:14.86Z"}],
        "irreversible": ["Cannot be returned"]}});
    Bundle {
        format: String::new(),
        summary: String::new(),
        public_key: "log+key".to_owned(),
        checkpoint: String::new(),
        earlier: None,
        records: vec![
            bundled(
                &case.records[0].record,
                Opened {
                    data: opening(data),
                    ..Opened::default()
                },
            ),
            bundled(
                &case.records[1].record,
                Opened {
                    data: opening(json!({"price": {"amount": 1_999, "currency": "EUR"}})),
                    arguments: Some(Opening {
                        salt: String::new(),
                        value: None,
                        text: Some("{\"n\":1000000000000000000001}".to_owned()),
                    }),
                    ..Opened::default()
                },
            ),
            bundled(
                &case.records[2].record,
                Opened {
                    shown: opening(shown),
                    ..Opened::default()
                },
            ),
        ],
    }
}

fn told(bundle: Option<&Bundle>, language: Language) -> Story {
    let case = case();
    let rules = [RuleVersion {
        name: "prices".to_owned(),
        version: "sha256:aa".to_owned(),
        label: Some("2026-07-01".to_owned()),
    }];
    let material = Material {
        case: &case,
        bundle,
        rules: &rules,
        details_max: 50,
    };
    tell(material, language)
}

/// N5: a case is written for people: steps, who, rules with their dates, who looked; what is sealed stays sealed.
#[test]
fn a_sealed_case_is_told_without_its_content() {
    let story = told(None, Language::English);
    let titles: Vec<&str> = story.steps.iter().map(|step| step.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "Price quote",
            "Call of the tool crm.note",
            "The question was answered: yes"
        ]
    );
    let by: Vec<&str> = story.steps.iter().map(|step| step.by.as_str()).collect();
    assert_eq!(
        by,
        ["the agent shopper", "the program backend", "the user u_7"]
    );
    assert_eq!(story.steps[0].rules, ["Prices (2026-07-01)"]);
    assert!(
        story
            .steps
            .iter()
            .all(|step| step.is_sealed && step.lines.is_empty() && step.details.is_empty())
    );
    assert_eq!(story.looks.len(), 1);
    assert_eq!(story.looks[0].by, "the operator tester");
    assert_eq!(
        story.looks[0].what,
        "opened records, to read or to export them"
    );
    assert_eq!(story.notes.len(), 1);
    let yes = story
        .facts
        .iter()
        .find(|fact| fact.label == "Confirmed by")
        .unwrap();
    assert_eq!(yes.value, "the user u_7 · 17 Nov 2026, 10:00:00 UTC");
}

/// N5, N6: what was opened is shown with amounts as people write them and with what the person was shown; a number that no double
/// holds keeps its digits, and texts of others stay text.
#[test]
fn an_opened_case_has_amounts_and_what_was_shown() {
    let bundle = bundle();
    let story = told(Some(&bundle), Language::English);
    let line = |step: usize, at: usize| {
        let line = &story.steps[step].lines[at];
        (line.label.as_str(), line.value.as_str())
    };
    assert_eq!(line(0, 0), ("3 × Earbuds <3", "EUR 59.97"));
    assert_eq!(line(0, 1), ("Total", "EUR 59.97"));
    // A tool of somebody else may count in any unit.
    assert_eq!(line(1, 0), ("Price", "EUR 1999"));
    assert_eq!(
        story.steps[1].details[0].value,
        "{\"n\":1000000000000000000001}"
    );
    let shown = story.steps[2].shown.as_ref().unwrap();
    assert_eq!(shown.title, "Pay EUR 59.97");
    assert_eq!(shown.irreversible, ["Cannot be returned"]);
    assert_eq!(shown.lines[1].value, "18 Nov 2026, 09:46:14 UTC");
    let total = story
        .facts
        .iter()
        .find(|fact| fact.label == "Total")
        .unwrap();
    assert_eq!(total.value, "EUR 59.97");
    let page = html(&story).unwrap();
    assert!(
        page.contains("3 × Earbuds &#60;3")
            && !page.contains("Earbuds <3")
            && !page.contains("<script")
    );
    let chinese = html(&told(Some(&bundle), Language::Chinese)).unwrap();
    assert!(chinese.contains("报价") && chinese.contains("lang=\"zh\""));
}

/// A22: that a person was shown something is said only where the record proves it; else it is the question.
#[test]
fn what_was_shown_is_said_only_where_it_is_proved() {
    let (proved, open) = ("What the person was shown", "no proof that");
    for (checked, says, hides) in [
        (json!(true), proved, open),
        (json!(false), open, proved),
        (json!("true"), open, proved),
        (Value::Null, open, proved),
    ] {
        let (mut case, bundle) = (case(), bundle());
        case.records[2].record.act["shown_checked"] = checked.clone();
        let material = Material {
            case: &case,
            bundle: Some(&bundle),
            rules: &[],
            details_max: 1,
        };
        let page = html(&tell(material, Language::English)).unwrap();
        let has = (page.contains(says), page.contains(hides));
        assert_eq!(has, (true, false), "{checked}: {page}");
    }
}

/// A19: the case of an erased user says so, by whom and when, beside the answer that was given.
#[test]
fn an_erasure_is_told() {
    let mut case = case();
    case.user_id.clear();
    let mut erasure = record(RecordKind::Erasure, "ev_gone", "");
    erasure.tool = None;
    erasure.act = json!({"event": "erase"});
    erasure.actor = Some(actor(ActorType::System, "operator/tester"));
    case.records.push(part(CasePart::Followed, erasure));
    let material = Material {
        case: &case,
        bundle: None,
        rules: &[],
        details_max: 1,
    };
    let story = tell(material, Language::English);
    let fact = |label: &str| {
        let found = story.facts.iter().find(|fact| fact.label == label);
        found.map(|fact| fact.value.as_str())
    };
    let at = "17 Nov 2026, 10:00:00 UTC";
    assert_eq!(fact("Confirmed by"), Some(&*format!("the user · {at}")));
    let by = format!("the operator tester · {at}");
    assert_eq!(fact("User erased by"), Some(&*by));
    assert!(story.notes.iter().any(|note| note.contains("was erased")));
    assert!(story.is_erased);
    let offers = |note: &String| note.contains("gives a reason");
    assert!(!story.notes.iter().any(offers), "{:?}", story.notes);
}

/// N5: the ZIP has the case in both languages, the bundle, the verifier as it is, and what to do.
#[test]
fn the_zip_has_everything() {
    let (case, bundle) = (case(), bundle());
    let material = Material {
        case: &case,
        bundle: Some(&bundle),
        rules: &[],
        details_max: 1,
    };
    let made = zip(material, &bundle, "2026-11-17T10:00:00Z".parse().unwrap()).unwrap();
    assert_eq!(made.name, "case-order_1.zip");
    let mut archive = ::zip::ZipArchive::new(std::io::Cursor::new(made.bytes)).unwrap();
    let mut read = |name: &str| {
        let mut text = String::new();
        let mut file = archive.by_name(&format!("case-order_1/{name}")).unwrap();
        std::io::Read::read_to_string(&mut file, &mut text).unwrap();
        text
    };
    assert_eq!(read("verify.html"), countersign_evidence::page::VERIFIER);
    assert_eq!(read("bundle.json"), bundle.to_json());
    // The access that made the bundle came after it: the page counts and shows what the bundle has.
    let page = read("case.html");
    assert!(page.contains("3 records are in the signed log"), "{page}");
    assert!(!page.contains("ev_look"), "{page}");
    assert!(read("case.html").contains("EUR 59.97") && read("case.zh.html").contains("案卷"));
    let readme = read("README.txt");
    assert!(readme.contains("log+key") && readme.contains("如何核验") && !readme.contains("{key}"));
}

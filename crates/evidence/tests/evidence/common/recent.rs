//! The same log after an update of the program: records of version 2 follow those of version 1.

use std::collections::{BTreeMap, BTreeSet};

use countersign_contract::evidence::{
    CountedRefusals, EvidenceRecord, Exact, Freshness, Link, Opening, Payload, RecordKind,
    RecordedActor, RecordedArguments, RecordedCredential, RecordedKey, RecordedReply, RecordedTool,
    Retention, VERSION,
};
use countersign_contract::record::{BindSummary, PhaseTimes};
use countersign_contract::{
    ActorType, BindStatus, Digest, ErrorCode, IssueCode, RequestId, SnapshotId, canonical,
};
use countersign_evidence::bundle::Opened;
use countersign_evidence::hex;
use countersign_evidence::seal::{
    DOMAIN_ARGUMENTS, DOMAIN_DATA, DOMAIN_RAW, DOMAIN_SHOWN, commit, salt_of,
};
use serde_json::{Value, json};

use super::sample::{Leaf, Log, QUOTE, link_to, log, seal, text_of, tool, user_key};

/// Indexes of the records of version 2.
pub(crate) const OFFER: usize = 8;
pub(crate) const FREIGHT: usize = 9;
pub(crate) const ASKED: usize = 10;
pub(crate) const DRAFT: usize = 11;
pub(crate) const LATE: usize = 12;
pub(crate) const PAYMENT: usize = 13;
pub(crate) const DISPUTE: usize = 14;
pub(crate) const COUNTED: usize = 15;

/// End of the offer's window.
pub(crate) const OFFER_UNTIL: &str = "2026-11-16T09:05:00.25Z";

/// Sixteen leaves: the seven of version 1 and nine of version 2.
pub(crate) fn upgraded() -> Log {
    let mut log = log();
    let mut upgrade = record("ev_upgraded", RecordKind::Config, "2026-11-16T08:59:00Z");
    upgrade.act = json!({"started": "0.2.0"});
    log.leaves.push(leaf(upgrade, &Said::default()));
    for next in [
        offer, freight, asked, draft, late, payment, dispute, counted,
    ] {
        let leaf = next(&log);
        log.leaves.push(leaf);
    }
    log
}

/// A link to a record that the call relies on, with the claim that it was fresh at that time.
pub(crate) fn fresh(leaf: &Leaf, at: &str, until: &str) -> Link {
    let Link { id, leaf, .. } = link_to(leaf);
    let mut link = Link::rests_on(id, leaf);
    link.fresh = Some(Freshness {
        at: at.to_owned(),
        until: until.to_owned(),
    });
    link
}

/// A link to a record that the call relies on and that has no window.
pub(crate) fn rests_on(leaf: &Leaf) -> Link {
    let Link { id, leaf, .. } = link_to(leaf);
    Link::rests_on(id, leaf)
}

/// A link to a record that the call looked at.
pub(crate) fn looked_at(leaf: &Leaf) -> Link {
    let Link { id, leaf, .. } = link_to(leaf);
    Link::looked_at(id, leaf)
}

/// A quote: repaired from the caller's text, with a quantity that its declaration makes public.
fn offer(_: &Log) -> Leaf {
    let mut record = record("ev_offer", RecordKind::Call, "2026-11-16T09:00:00.25Z");
    of_user(&mut record, "pricing.get_quote");
    record.request_id = Some(user_key().request_id(&RequestId::new("erika.1").expect("valid")));
    record.arguments = Some(arguments(json!({"quantity": 2})));
    record.binding = Some(BindSummary {
        status: Some(BindStatus::Repaired),
        issues: BTreeMap::from([(IssueCode::FenceStripped, 1)]),
    });
    record.rules = BTreeMap::from([("fx".to_owned(), Digest([1; 32]).to_string())]);
    record.reply = Some(reply(None, Some(OFFER_UNTIL)));
    let said = Said {
        arguments: Some(r#"{"quantity":2,"sku":"A-1"}"#),
        raw: Some("```json\n{quantity: '2', sku: 'A-1',}\n```"),
        data: Some(r#"{"currency":"USD","rate":1.085,"total":"39.80"}"#),
        shown: None,
    };
    leaf(record, &said)
}

fn freight(_: &Log) -> Leaf {
    let mut record = record("ev_freight", RecordKind::Call, "2026-11-16T09:00:01Z");
    of_user(&mut record, "shipping.estimate");
    record.arguments = Some(arguments(Value::Null));
    record.dry_run = true;
    record.reply = Some(reply(None, Some("2026-11-16T09:05:01Z")));
    let said = Said {
        arguments: Some(r#"{"to":{"country":"DE","postcode":"10115"}}"#),
        data: Some(r#"{"days":[2,4]}"#),
        ..Said::default()
    };
    leaf(record, &said)
}

/// A question that a person answered, with the text that they saw.
fn asked(_: &Log) -> Leaf {
    let mut record = record("ev_allowed", RecordKind::Approval, "2026-11-16T09:04:00Z");
    record.subject = Some(user_key().subject("user-1"));
    record.act = json!({"decision": "approved"});
    let said = Said {
        shown: Some(r#"{"summary":"Order 2 of A-1 for 39.80 USD"}"#),
        ..Said::default()
    };
    leaf(record, &said)
}

/// An order that relies on fresh answers: one was used in the last instant of its window.
fn draft(log: &Log) -> Leaf {
    let mut record = record("ev_draft", RecordKind::Call, "2026-11-16T09:05:00Z");
    of_user(&mut record, "order.create_draft");
    record.principal = Some(actor(ActorType::Agent, "web-shop"));
    record.delegation = vec![
        actor(ActorType::Agent, "broker"),
        actor(ActorType::User, "a1b2"),
    ];
    record.credential = Some(RecordedCredential::Token {
        issuer: "https://id.example.com".to_owned(),
        id: Some(user_key().chosen("jti", "token-1")),
    });
    record.policy_revision = Some(Digest([2; 32]).to_string());
    record.arguments = Some(arguments(Value::Null));
    record.inherited_rules = BTreeMap::from([(
        "fx".to_owned(),
        BTreeSet::from([Digest([1; 32]).to_string(), Digest([3; 32]).to_string()]),
    )]);
    record.idempotency = Some(RecordedKey {
        key: Digest([4; 32]).to_string(),
        attempt: 1,
        state: "succeeded".to_owned(),
    });
    record.reply = Some(reply(None, None));
    record.phases = Some(PhaseTimes {
        queued_us: 210,
        awaiting_approval_us: 60_000_000,
        executing_us: 1_200,
        settling_us: 900,
    });
    record.links = vec![
        fresh(&log.leaves[OFFER], OFFER_UNTIL, OFFER_UNTIL),
        fresh(
            &log.leaves[FREIGHT],
            "2026-11-16T09:05:00.2Z",
            "2026-11-16T09:05:01Z",
        ),
        rests_on(&log.leaves[ASKED]),
    ];
    let said = Said {
        arguments: Some(r#"{"note":"für Ünal 🎁","quote":"ev_offer"}"#),
        data: Some(r#"{"order_id":"o-2"}"#),
        ..Said::default()
    };
    leaf(record, &said)
}

/// A refusal because the offer is no longer fresh: the call looked at it, and its arguments were not bound.
fn late(log: &Log) -> Leaf {
    let mut record = record("ev_late", RecordKind::Call, "2026-11-16T09:30:00Z");
    of_user(&mut record, "order.create_draft");
    record.arguments = Some(arguments(Value::Null));
    record.reply = Some(reply(Some(ErrorCode::PriceChanged), None));
    record.links = vec![looked_at(&log.leaves[OFFER])];
    let said = Said {
        raw: Some("{quote: ev_offer"),
        ..Said::default()
    };
    leaf(record, &said)
}

/// A payment long after the offer, with an integer that no double holds.
fn payment(log: &Log) -> Leaf {
    let mut record = record("ev_payment", RecordKind::Call, "2026-11-16T09:31:00Z");
    of_user(&mut record, "payment.charge");
    record.credential = Some(RecordedCredential::ApiKey {
        id: "key_7".to_owned(),
    });
    record.arguments = Some(arguments(Value::Null));
    record.reply = Some(reply(None, None));
    record.links = vec![rests_on(&log.leaves[DRAFT]), looked_at(&log.leaves[OFFER])];
    let said = Said {
        arguments: Some(r#"{"amount_minor":1000000000000000000001}"#),
        data: Some(r#"{"payment_id":"p-1"}"#),
        ..Said::default()
    };
    leaf(record, &said)
}

/// Evidence for a dispute, collected a day later from records of both versions. It answers `null`.
fn dispute(log: &Log) -> Leaf {
    let mut record = record("ev_dispute", RecordKind::Call, "2026-11-17T09:00:00Z");
    of_user(&mut record, "evidence.create_snapshot");
    record.retention = Retention::Long;
    record.arguments = Some(arguments(Value::Null));
    record.reply = Some(reply(None, None));
    let linked = [QUOTE, OFFER, DRAFT].map(|place| looked_at(&log.leaves[place]));
    record.links = linked.to_vec();
    let said = Said {
        arguments: Some("{}"),
        data: Some("null"),
        ..Said::default()
    };
    leaf(record, &said)
}

/// Refusals of one caller that have one record together; nothing was sealed.
fn counted(_: &Log) -> Leaf {
    let mut record = record("ev_counted", RecordKind::Denial, "2026-11-17T10:00:59.5Z");
    record.subject = Some(user_key().subject("user-1"));
    record.actor = Some(actor(ActorType::Agent, "web-shop"));
    record.credential = Some(RecordedCredential::ApiKey {
        id: "k1".to_owned(),
    });
    record.tool = Some(RecordedTool {
        version: None,
        ..tool("pricing.get_quote")
    });
    record.reply = Some(RecordedReply {
        code: Some(ErrorCode::RateLimited),
        commitment: None,
        ttl_seconds: None,
        valid_until: None,
    });
    record.retention = Retention::Short;
    let (from, to) = ("2026-11-17T10:00:00.25Z", "2026-11-17T10:00:59.5Z");
    let mut refusals = CountedRefusals::new(19_998, from, to);
    refusals.reason = Some("user".to_owned());
    refusals.first = SnapshotId::new("ev_limited").ok();
    record.act = serde_json::to_value(refusals).expect("names and a number");
    Leaf {
        text: text_of(&record),
        payload: None,
        opened: None,
    }
}

fn record(id: &str, kind: RecordKind, at: &str) -> EvidenceRecord {
    EvidenceRecord::new(kind, SnapshotId::new(id).expect("valid"), at)
}

fn actor(kind: ActorType, id: &str) -> RecordedActor {
    let id = id.to_owned();
    RecordedActor { kind, id }
}

/// Sets the fields that every call of the user has.
fn of_user(record: &mut EvidenceRecord, name: &str) {
    record.subject = Some(user_key().subject("user-1"));
    record.request_id = Some(RequestId::new(format!("req_{}", record.id)).expect("valid"));
    record.actor = Some(actor(ActorType::Agent, "shopper"));
    record.tool = Some(tool(name));
}

fn arguments(public: Value) -> RecordedArguments {
    RecordedArguments {
        commitment: None,
        raw: None,
        public,
        redacted: Value::Null,
    }
}

fn reply(code: Option<ErrorCode>, until: Option<&str>) -> RecordedReply {
    RecordedReply {
        code,
        commitment: None,
        ttl_seconds: until.map(|_| 300),
        valid_until: until.map(str::to_owned),
    }
}

/// Values that were sent, shown and answered: the texts of the commitments.
#[derive(Default)]
struct Said {
    arguments: Option<&'static str>,
    raw: Option<&'static str>,
    data: Option<&'static str>,
    shown: Option<&'static str>,
}

/// Builds the leaf of a record, with the commitments to the values, and its payload.
fn leaf(mut record: EvidenceRecord, said: &Said) -> Leaf {
    let salt = Digest::of_bytes(record.id.as_str().as_bytes()).0;
    let committed = |domain, text: Option<&str>| {
        let salt = salt_of(&salt, domain);
        let committed = text.map(|text| {
            let commitment = commit(domain, &salt, text.as_bytes());
            (commitment, opening(domain, &salt, text))
        });
        committed.unzip()
    };
    let (sent, arguments) = committed(DOMAIN_ARGUMENTS, said.arguments);
    let (raw, raw_opening) = committed(DOMAIN_RAW, said.raw);
    let (answered, data) = committed(DOMAIN_DATA, said.data);
    let (shown, shown_opening) = committed(DOMAIN_SHOWN, said.shown);
    if let Some(arguments) = &mut record.arguments {
        (arguments.commitment, arguments.raw) = (sent, raw);
    }
    if let Some(reply) = &mut record.reply {
        reply.commitment = answered;
    }
    record.shown = shown;
    let opened = Opened {
        arguments,
        data,
        raw: raw_opening,
        shown: shown_opening,
    };
    let sealed = (opened != Opened::default()).then(|| {
        let exact = |text: Option<&str>| {
            text.map(|text| Exact::new(text.to_owned()).expect("the sample is JSON"))
        };
        let payload = Payload {
            v: VERSION,
            salt: hex::encode(&salt),
            user_id: "user-1".to_owned(),
            arguments: exact(said.arguments),
            raw: said.raw.map(str::to_owned),
            data: exact(said.data),
            shown: exact(said.shown),
            ..Payload::default()
        };
        let plain = serde_json::to_vec(&payload).expect("a payload is JSON");
        seal(record.id.as_str(), &plain)
    });
    record.payload = sealed.as_deref().map(Digest::of_bytes);
    Leaf {
        text: text_of(&record),
        opened: sealed.is_some().then_some(opened),
        payload: sealed,
    }
}

/// Builds the opening of a commitment: the value if the text is its canonical JSON, else the text itself.
fn opening(domain: &str, salt: &[u8; 32], text: &str) -> Opening {
    let is_canonical = canonical::from_json_text(text).is_ok_and(|canonical| canonical == text);
    let value = (domain != DOMAIN_RAW && is_canonical)
        .then(|| serde_json::from_str(text).expect("canonical JSON is JSON"));
    Opening {
        salt: hex::encode(salt),
        text: value.is_none().then(|| text.to_owned()),
        value,
    }
}

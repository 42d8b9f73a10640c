//! A small log of version 1 with a decision in it: two look-ups, the order that relies on them, and later
//! records.

use countersign_contract::evidence::{
    EvidenceRecord, Link, Opening, RecordKind, RecordedActor, RecordedArguments, RecordedReply,
    RecordedTool,
};
use countersign_contract::{ActorType, Digest, ErrorCode, RequestId, SnapshotId, canonical};
use countersign_evidence::bundle::{Bundle, BundledRecord, Opened};
use countersign_evidence::checkpoint::Checkpoint;
use countersign_evidence::hex;
use countersign_evidence::note::{SigningKey, VerifyingKey};
use countersign_evidence::seal::{DOMAIN_ARGUMENTS, DOMAIN_DATA, UserKey, commit};
use countersign_evidence::tile::{TileMap, TileWriter};
use countersign_evidence::tree::{self, Frontier, Hash};
use serde::Serialize;
use serde_json::{Value, json};

pub(crate) const ORIGIN: &str = "log.example.com/orders";

/// Indexes of the records that the cases are about.
pub(crate) const QUOTE: usize = 1;
pub(crate) const SHIPPING: usize = 2;
pub(crate) const ORDER: usize = 4;
pub(crate) const DENIAL: usize = 5;

pub(crate) fn log_key() -> SigningKey {
    SigningKey::from_seed(ORIGIN, &[11; 32]).expect("the name is valid")
}

pub(crate) fn public_key() -> VerifyingKey {
    log_key().verifying_key()
}

pub(crate) fn user_key() -> UserKey {
    UserKey::from_bytes(&[12; 32])
}

/// A leaf with its sealed payload and its openings.
#[derive(Clone)]
pub(crate) struct Leaf {
    pub(crate) text: String,
    pub(crate) payload: Option<Vec<u8>>,
    pub(crate) opened: Option<Opened>,
}

/// A log that was written at once.
#[derive(Clone)]
pub(crate) struct Log {
    pub(crate) leaves: Vec<Leaf>,
}

impl Log {
    fn hashes(&self) -> Vec<Hash> {
        let hash = |leaf: &Leaf| tree::leaf_hash(leaf.text.as_bytes());
        self.leaves.iter().map(hash).collect()
    }

    fn tiles(&self) -> TileMap {
        TileWriter::new()
            .append(&self.hashes())
            .into_iter()
            .collect()
    }

    /// Returns the signed checkpoint of the first `size` leaves.
    pub(crate) fn checkpoint(&self, size: usize) -> String {
        let mut frontier = Frontier::new();
        for hash in &self.hashes()[..size] {
            frontier.push(*hash);
        }
        let checkpoint = Checkpoint::new(ORIGIN, size as u64, frontier.root());
        checkpoint
            .sign(&log_key())
            .expect("the key has the name of the log")
    }

    /// Bundles these records with all their content, proved against the whole log.
    pub(crate) fn bundle(&self, indices: &[usize]) -> Bundle {
        let (size, tiles) = (self.leaves.len(), self.tiles());
        let record = |index: &usize| {
            let leaf = &self.leaves[*index];
            let proof = tree::inclusion_proof(*index as u64, size as u64, &tiles);
            let mut record =
                BundledRecord::new(*index as u64, &leaf.text, &proof.expect("it is in the log"));
            if let Some(sealed) = &leaf.payload {
                record = record.with_payload(sealed);
            }
            match &leaf.opened {
                Some(opened) => record.with_opened(opened.clone()),
                None => record,
            }
        };
        let records = indices.iter().map(record).collect();
        Bundle::new(&public_key(), self.checkpoint(size), records).expect("the checkpoint is ours")
    }

    /// Returns the consistency proof from the first `size` leaves.
    pub(crate) fn growth_from(&self, size: usize) -> Vec<Hash> {
        let new = self.leaves.len() as u64;
        tree::consistency_proof(size as u64, new, &self.tiles()).expect("the log has grown")
    }

    /// Replaces a leaf: the log itself lies.
    pub(crate) fn with_leaf(&self, index: usize, text: impl Into<String>) -> Self {
        let mut log = self.clone();
        log.leaves[index] = Leaf {
            text: text.into(),
            payload: None,
            opened: None,
        };
        log
    }
}

/// Parses the record of a leaf.
pub(crate) fn record_of(leaf: &Leaf) -> EvidenceRecord {
    serde_json::from_str(&leaf.text).expect("the sample consists of records")
}

/// Formats the leaf of a record.
pub(crate) fn text_of(record: &EvidenceRecord) -> String {
    let value = serde_json::to_value(record).expect("a record is JSON");
    canonical::to_string(&value).expect("a record has a canonical form")
}

/// A link of version 1: without a role.
pub(crate) fn link_to(leaf: &Leaf) -> Link {
    Link {
        id: record_of(leaf).id,
        leaf: Digest(tree::leaf_hash(leaf.text.as_bytes())),
        role: None,
        fresh: None,
    }
}

/// Seven leaves, as programs of version 1 wrote them.
pub(crate) fn log() -> Log {
    let quote = called(
        "ev_quote",
        "pricing.get_quote",
        "2026-11-15T12:00:00.25Z",
        &json!({"quantity": 2, "sku": "A-1"}),
        &json!({"currency": "USD", "rate": 1.085, "total": "39.80"}),
        &[],
    );
    let shipping = called(
        "ev_shipping",
        "shipping.estimate",
        "2026-11-15T12:00:01Z",
        &json!({"to": {"country": "DE", "postcode": "10115"}}),
        &json!({"days": [2, 4]}),
        &[],
    );
    let order = called(
        "ev_order",
        "order.create_draft",
        "2026-11-15T12:01:00Z",
        &json!({"note": "für Ünal 🎁", "quote": "ev_quote"}),
        &json!({"order_id": "o-1"}),
        &[&quote, &shipping],
    );
    let leaves = vec![
        act(
            "ev_start",
            RecordKind::Config,
            "2026-11-15T11:59:00Z",
            json!({"started": "0.1.0"}),
        ),
        quote,
        shipping,
        act(
            "ev_asked",
            RecordKind::Approval,
            "2026-11-15T12:00:30Z",
            json!({"decision": "approved"}),
        ),
        order,
        denial(),
        act(
            "ev_erased",
            RecordKind::Erasure,
            "2026-11-15T13:00:00Z",
            json!({"payloads": 3}),
        ),
    ];
    Log { leaves }
}

/// An empty record of version 1.
fn first(id: &str, kind: RecordKind, at: &str) -> EvidenceRecord {
    let mut record = EvidenceRecord::new(kind, SnapshotId::new(id).expect("valid"), at);
    record.v = 1;
    record
}

fn act(id: &str, kind: RecordKind, at: &str, act: Value) -> Leaf {
    let mut record = first(id, kind, at);
    record.act = act;
    Leaf {
        text: text_of(&record),
        payload: None,
        opened: None,
    }
}

fn denial() -> Leaf {
    let mut record = first("ev_denied", RecordKind::Denial, "2026-11-15T12:02:00Z");
    record.tool = Some(tool("payment.charge"));
    record.reply = Some(RecordedReply {
        code: Some(ErrorCode::Forbidden),
        commitment: None,
        ttl_seconds: None,
        valid_until: None,
    });
    Leaf {
        text: text_of(&record),
        payload: None,
        opened: None,
    }
}

pub(crate) fn tool(name: &str) -> RecordedTool {
    RecordedTool {
        name: name.to_owned(),
        version: Some("1.0.0".to_owned()),
        definition: None,
        build: None,
    }
}

/// The payload of version 1: every value has a salt of its own.
#[derive(Serialize)]
struct FirstPayload<'a> {
    v: u8,
    user_id: &'a str,
    arguments: &'a Opening,
    data: &'a Opening,
}

/// A call with its payload: salts and nonces are derived from the id, so that they never change.
fn called(
    id: &str,
    name: &str,
    at: &str,
    arguments: &Value,
    data: &Value,
    rests_on: &[&Leaf],
) -> Leaf {
    let opening = |domain: &str, value: &Value| {
        let salt = Digest::of_bytes(format!("{id} {domain}").as_bytes()).0;
        let text = canonical::to_vec(value).expect("the sample has a canonical form");
        let opening = Opening {
            salt: hex::encode(&salt),
            value: Some(value.clone()),
            text: None,
        };
        (commit(domain, &salt, &text), opening)
    };
    let (sent, arguments) = opening(DOMAIN_ARGUMENTS, arguments);
    let (answered, data) = opening(DOMAIN_DATA, data);
    let payload = FirstPayload {
        v: 1,
        user_id: "user-1",
        arguments: &arguments,
        data: &data,
    };
    let sealed = seal(
        id,
        &serde_json::to_vec(&payload).expect("a payload is JSON"),
    );

    let mut record = first(id, RecordKind::Call, at);
    record.subject = Some(user_key().subject("user-1"));
    record.request_id = Some(RequestId::new(format!("req_{id}")).expect("valid"));
    record.actor = Some(RecordedActor {
        kind: ActorType::Agent,
        id: "shopper".to_owned(),
    });
    record.tool = Some(tool(name));
    record.arguments = Some(RecordedArguments {
        commitment: Some(sent),
        raw: None,
        public: Value::Null,
        redacted: Value::Null,
    });
    record.reply = Some(RecordedReply {
        code: None,
        commitment: Some(answered),
        ttl_seconds: Some(60),
        valid_until: Some("2026-11-15T12:01:00.25Z".to_owned()),
    });
    record.links = rests_on.iter().map(|leaf| link_to(leaf)).collect();
    record.payload = Some(Digest::of_bytes(&sealed));
    Leaf {
        text: text_of(&record),
        payload: Some(sealed),
        opened: Some(Opened {
            arguments: Some(arguments),
            data: Some(data),
            ..Opened::default()
        }),
    }
}

/// Seals the payload of a record.
pub(crate) fn seal(id: &str, plain: &[u8]) -> Vec<u8> {
    let nonce = Digest::of_bytes(id.as_bytes()).0;
    let place = [b"payload", "user-1".as_bytes(), id.as_bytes()].join(&0);
    user_key().seal(*nonce.first_chunk().expect("32 bytes"), &place, plain)
}

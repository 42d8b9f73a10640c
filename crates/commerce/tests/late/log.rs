//! Watches a log grow: after each step the log is verified, new records are read, and bundles are made and verified.

use std::collections::HashMap;

use countersign::archive::verify::{Progress, Verification};
use countersign::archive::{Export, SCOPE_OPEN};
use countersign::contract::{EvidenceRecord, SnapshotId};
use countersign::{Principal, contract::Digest};
use countersign_evidence::bundle::{Bundle, Consistency, Content, NotChecked, Verdict};
use countersign_evidence::note::{SigningKey, VerifyingKey};
use countersign_evidence::tree::leaf_hash;
use serde_json::Value;

use crate::laws::{self, Laws};
use crate::place::Place;
use crate::play::Made;

/// The state of the log as seen so far.
#[derive(Default)]
pub(crate) struct Watch {
    records: HashMap<SnapshotId, Logged>,
    size: u64,
    progress: Option<Progress>,
    /// The newest checkpoint of the step before.
    held: Option<String>,
    /// Replies whose evidence was not looked up yet.
    named: Vec<(String, Value)>,
    laws: Laws,
}

/// A record and its position in the log.
pub(crate) struct Logged {
    pub(crate) index: u64,
    pub(crate) leaf: Digest,
    pub(crate) record: EvidenceRecord,
}

impl Watch {
    /// Remembers a reply that names its evidence, so that its record is looked up.
    pub(crate) fn named(&mut self, made: &Made) {
        assert!(made.evidence().is_some(), "no evidence in {:#}", made.reply);
        self.named.push((made.tool.clone(), made.reply.clone()));
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Checks all new records, or the whole log, and bundles of these records.
    pub(crate) async fn look(
        &mut self,
        place: &mut Place,
        proved: Vec<SnapshotId>,
        is_whole: bool,
    ) {
        place.sign().await;
        self.read(place).await;
        self.verify(place, is_whole).await;
        for (tool, reply) in std::mem::take(&mut self.named) {
            self.check_named(&tool, &reply);
        }
        if !proved.is_empty() {
            self.prove(place, &proved).await;
        }
        self.held = place.held();
    }

    async fn read(&mut self, place: &Place) {
        loop {
            let leaves = place.now().store.leaves(self.size, 256).await.unwrap();
            if leaves.is_empty() {
                return;
            }
            for leaf in leaves {
                assert_eq!(leaf.index, self.size);
                let text = std::str::from_utf8(&leaf.bytes).unwrap();
                let logged = Logged {
                    index: leaf.index,
                    leaf: Digest(leaf_hash(&leaf.bytes)),
                    record: EvidenceRecord::from_leaf(text).unwrap(),
                };
                self.laws.check(&logged, &self.records);
                let id = logged.record.id.clone();
                let other = self.records.insert(id, logged);
                assert!(other.is_none(), "two records of one name: {text}");
                self.size += 1;
            }
        }
    }

    async fn verify(&mut self, place: &Place, is_whole: bool) {
        let verification = Verification {
            from: self.progress.take().filter(|_| !is_whole),
            held: self.held.clone(),
            ..Verification::default()
        };
        let archive = &place.now().archive;
        let report = archive.verify_all(&verification, |_, _| {}).await.unwrap();
        assert!(report.is_valid(), "{:#?}", report.findings);
        assert_eq!(report.size, self.size);
        assert_eq!(
            report.signed.unwrap_or_default(),
            self.size,
            "all of it is signed"
        );
        self.progress = Some(report.progress);
    }

    fn check_named(&self, tool: &str, reply: &Value) {
        let id: SnapshotId =
            serde_json::from_value(reply["evidence"]["snapshot_id"].clone()).unwrap();
        let logged = self.records.get(&id);
        assert!(logged.is_some(), "no record of {reply:#}");
        let record = &logged.unwrap().record;
        laws::agrees(record, tool, reply);
    }

    /// Makes bundles, with and without payloads, and verifies them as an auditor with the key and an older checkpoint
    /// does.
    async fn prove(&self, place: &mut Place, ids: &[SnapshotId]) {
        let auditor = Principal::user("auditor").scope(SCOPE_OPEN);
        let opened = Export::Opened {
            by: &auditor,
            reason: "an audit",
        };
        for export in [Export::Records, opened] {
            let is_opened = matches!(export, Export::Opened { .. });
            let archive = &place.now().archive;
            let held = self.held.as_deref();
            let bundle = archive.export(ids, export, held).await.unwrap();
            let bundle = Bundle::parse(bundle.to_json()).unwrap();
            let report = bundle.verify(Some(&public_key()), held);
            assert_eq!(report.verdict, Verdict::Valid, "{:#?}", report.findings);
            for open in &report.not_checked {
                let is_expected = match open {
                    NotChecked::AbsentContent => true,
                    NotChecked::SealedPayloads => is_opened,
                    NotChecked::Rewriting => held.is_none(),
                    NotChecked::Signer
                    | NotChecked::FurtherSignatures
                    | NotChecked::LinksOutside
                    | NotChecked::Freshness => false,
                };
                assert!(is_expected, "{open:?} of {:#?}", report.records);
            }
            let is_grown = matches!(report.consistency, Consistency::Same | Consistency::Grown);
            assert_eq!(is_grown, held.is_some());
            for record in &report.records {
                let id = record.id.as_ref().unwrap().parse().unwrap();
                let is_kept = archive.show(&id).await.unwrap().has_payload;
                let expected = match (is_opened, is_kept) {
                    (true, true) => [Content::Opened, Content::Nothing],
                    (true, false) | (false, _) => [Content::Absent, Content::Nothing],
                };
                assert!(expected.contains(&record.content), "{record:#?}");
            }
        }
        place.sign().await;
    }
}

fn public_key() -> VerifyingKey {
    let key = SigningKey::from_seed("example.com/late", &[7; 32]).unwrap();
    key.verifying_key()
}

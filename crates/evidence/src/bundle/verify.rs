//! The checks, in the order of a reader's questions: the log's key, inclusion, then content and links.

use std::collections::{BTreeSet, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_contract::evidence::{EvidenceRecord, LeafError, Link, Opening};
use countersign_contract::{Digest, canonical};

use crate::bundle::{
    Bundle, BundledRecord, Consistency, Content, Fault, Finding, LEAF_BYTES_MAX, NotChecked,
    RecordReport, Report, Trust, Value, Verdict, summary,
};
use crate::checkpoint::Checkpoint;
use crate::freshness;
use crate::hex;
use crate::note::{Note, VerifyingKey};
use crate::seal::commit;
use crate::tree::{self, Hash};

pub(super) fn verify(
    bundle: &Bundle,
    trusted: Option<&VerifyingKey>,
    held: Option<&str>,
) -> Report {
    let mut checker = Checker {
        bundle,
        findings: Vec::new(),
        not_checked: BTreeSet::new(),
    };
    let key = checker.key(trusted);
    let log = key.as_ref().and_then(|key| checker.checkpoint(key));
    let read = checker.leaves();
    let mut records = Vec::new();
    for (bundled, record) in bundle.records.iter().zip(&read) {
        records.push(checker.record(bundled, record.as_ref(), log.as_ref()));
    }
    checker.links(&read, &mut records);
    let consistency = checker.growth(key.as_ref(), log.as_ref(), held);
    checker.summary(log.as_ref());
    let further_signatures = further_signatures(&bundle.checkpoint, key.as_ref());
    let open = [
        (NotChecked::Signer, trusted.is_none()),
        (NotChecked::Rewriting, held.is_none() || log.is_none()),
        (NotChecked::FurtherSignatures, further_signatures > 0),
    ];
    let open = open.into_iter().filter(|(_, is_open)| *is_open);
    checker.not_checked.extend(open.map(|(what, _)| what));
    Report {
        verdict: match (checker.findings.is_empty(), trusted) {
            (false, _) => Verdict::Invalid,
            (true, Some(_)) => Verdict::Valid,
            (true, None) => Verdict::Consistent,
        },
        not_checked: checker.not_checked.into_iter().collect(),
        summary: bundle.summary.clone(),
        public_key: key.as_ref().map_or_else(String::new, ToString::to_string),
        trust: trusted.map_or(Trust::Bundle, |_| Trust::Given),
        further_signatures,
        consistency,
        records,
        findings: checker.findings,
    }
}

struct Checker<'a> {
    bundle: &'a Bundle,
    findings: Vec<Finding>,
    not_checked: BTreeSet<NotChecked>,
}

/// A leaf that is a record.
struct Read {
    record: EvidenceRecord,
    leaf: Digest,
    index: u64,
}

impl Checker<'_> {
    fn find(&mut self, fault: Fault) {
        let record = None;
        self.findings.push(Finding { record, fault });
    }

    fn find_in(&mut self, bundled: &BundledRecord, read: Option<&Read>, fault: Fault) {
        let id = read.map(|read| read.record.id.to_string());
        let record = Some((bundled.index, id));
        self.findings.push(Finding { record, fault });
    }

    /// Returns the key that everything is checked with: the trusted one, or else the bundle's own.
    fn key(&mut self, trusted: Option<&VerifyingKey>) -> Option<VerifyingKey> {
        let found: Option<VerifyingKey> = self.bundle.public_key.parse().ok();
        match (&found, trusted) {
            (None, _) => self.find(Fault::KeyMalformed),
            (Some(found), Some(expected)) if found != expected => self.find(Fault::KeyOther {
                expected: expected.to_string(),
                found: found.to_string(),
            }),
            (Some(_), _) => {}
        }
        trusted.cloned().or(found)
    }

    fn checkpoint(&mut self, key: &VerifyingKey) -> Option<Checkpoint> {
        Checkpoint::open(&self.bundle.checkpoint, key)
            .map_err(|error| self.find(Fault::Checkpoint(error)))
            .ok()
    }

    /// Reads every leaf, and checks that the records are in order and have unique ids.
    fn leaves(&mut self) -> Vec<Option<Read>> {
        let bundle = self.bundle;
        let mut previous = None;
        let mut names = HashMap::new();
        let mut all = Vec::new();
        for bundled in &bundle.records {
            let read = match record_of(&bundled.leaf) {
                Ok(record) => {
                    let leaf = Digest(tree::leaf_hash(bundled.leaf.as_bytes()));
                    let index = bundled.index;
                    Some(Read {
                        record,
                        leaf,
                        index,
                    })
                }
                Err(fault) => {
                    self.find_in(bundled, None, fault);
                    None
                }
            };
            if let Some(previous) = previous.filter(|previous| *previous >= bundled.index) {
                self.find_in(bundled, read.as_ref(), Fault::Order { previous });
            }
            previous = Some(bundled.index);
            if let Some(known) = &read {
                let other = names.insert(known.record.id.clone(), bundled.index);
                if let Some(other) = other {
                    self.find_in(bundled, read.as_ref(), Fault::IdTwice { other });
                }
            }
            all.push(read);
        }
        all
    }

    /// Checks the proofs of a single record.
    fn record(
        &mut self,
        bundled: &BundledRecord,
        read: Option<&Read>,
        log: Option<&Checkpoint>,
    ) -> RecordReport {
        let included = match included(bundled, log) {
            Ok(included) => included,
            Err(fault) => {
                self.find_in(bundled, read, fault);
                false
            }
        };
        let content = read.map_or(Content::Absent, |read| self.content(bundled, read));
        let record = read.map(|read| &read.record);
        let reply = record.and_then(|record| record.reply.as_ref());
        RecordReport {
            index: bundled.index,
            id: record.map(|record| record.id.to_string()),
            kind: record.map(|record| record.kind),
            at: record.map(|record| record.at.clone()),
            tool: record.and_then(|record| Some(record.tool.as_ref()?.name.clone())),
            code: reply.and_then(|reply| reply.code),
            replied: reply.is_some(),
            included,
            content,
            links: Vec::new(),
            not_included: Vec::new(),
        }
    }

    /// Checks the sent and answered values against the commitments of the record.
    fn content(&mut self, bundled: &BundledRecord, read: &Read) -> Content {
        let record = &read.record;
        let opened = bundled.opened.as_ref();
        let values = Value::ALL.map(|value| {
            let opening = opened.and_then(|opened| opened.of(value));
            (value, value.commitment(record), opening)
        });
        let before = self.findings.len();
        if let Some(payload) = &bundled.payload
            && let Err(fault) = check_payload(payload, record.payload)
        {
            self.find_in(bundled, Some(read), fault);
        }
        for (value, commitment, opening) in values {
            if let Some(opening) = opening
                && let Err(fault) = check_opening(value, opening, commitment)
            {
                self.find_in(bundled, Some(read), fault);
            }
        }
        let has_rest = record.payload.is_some()
            || (values.iter())
                .any(|(_, committed, opening)| committed.is_some() && opening.is_none());
        if bundled.payload.is_some() {
            self.not_checked.insert(NotChecked::SealedPayloads);
        } else if has_rest {
            self.not_checked.insert(NotChecked::AbsentContent);
        }
        if self.findings.len() > before {
            return Content::Mismatch;
        }
        let shown = values.iter().filter(|(_, _, opening)| opening.is_some());
        let committed = values
            .iter()
            .filter(|(_, commitment, _)| commitment.is_some());
        match (shown.count(), committed.count(), &bundled.payload) {
            (0, _, Some(_)) => Content::Sealed,
            (0, 0, None) if record.payload.is_none() => Content::Nothing,
            (0, _, None) => Content::Absent,
            (shown, committed, _) if shown == committed => Content::Opened,
            (1.., _, _) => Content::PartlyOpened,
        }
    }

    /// Checks that linked records match those of the bundle and come earlier, and checks the claims about their
    /// freshness.
    fn links(&mut self, all: &[Option<Read>], records: &mut [RecordReport]) {
        let bundle = self.bundle;
        let known = || all.iter().flatten();
        let by_id: HashMap<_, _> = known().map(|read| (&read.record.id, read)).collect();
        let by_leaf: HashMap<_, _> = known().map(|read| (read.leaf, read)).collect();
        for ((bundled, from), report) in bundle.records.iter().zip(all).zip(records) {
            let Some(from) = from else { continue };
            for link in &from.record.links {
                let target = by_id.get(&link.id).or_else(|| by_leaf.get(&link.leaf));
                let target = target.copied();
                let holds = check_link(from, link, target);
                match (&holds, target) {
                    (_, None) => {
                        report.not_included.push(link.id.to_string());
                        self.not_checked.insert(NotChecked::LinksOutside);
                    }
                    (Ok(()), Some(_)) => report.links.push(link.id.to_string()),
                    (Err(_), Some(_)) => {}
                }
                if freshness::is_unclaimed(link, target.map(|target| &target.record)) {
                    self.not_checked.insert(NotChecked::Freshness);
                }
                if let Err(fault) = holds {
                    self.find_in(bundled, Some(from), fault);
                }
            }
        }
    }

    /// Checks the older checkpoint of the bundle, and the held one.
    fn growth(
        &mut self,
        key: Option<&VerifyingKey>,
        log: Option<&Checkpoint>,
        held: Option<&str>,
    ) -> Consistency {
        let not_shown = match held {
            Some(_) => Consistency::NotShown,
            None => Consistency::NotAsked,
        };
        let (Some(key), Some(log)) = (key, log) else {
            return not_shown;
        };
        let earlier = self.earlier(key, log);
        let Some(held) = held else { return not_shown };
        let held = match Checkpoint::open(held, key) {
            Ok(held) => held,
            Err(error) => {
                self.find(Fault::Held(error));
                return not_shown;
            }
        };
        // Every checkpoint that is known to be of this log; every log was empty once.
        let empty = Checkpoint::new(key.name(), 0, tree::empty_root());
        let mut shown = [Some(log), earlier.as_ref(), Some(&empty)]
            .into_iter()
            .flatten();
        let at_size = shown.find(|shown| shown.size == held.size);
        match at_size {
            Some(same) if same.root != held.root => {
                self.find(Fault::Forked { size: held.size });
                not_shown
            }
            Some(same) if same.size == log.size => Consistency::Same,
            Some(_) => Consistency::Grown,
            None => {
                let (held, size) = (held.size, log.size);
                self.find(Fault::HeldNotShown { held, size });
                not_shown
            }
        }
    }

    fn earlier(&mut self, key: &VerifyingKey, log: &Checkpoint) -> Option<Checkpoint> {
        let earlier = self.bundle.earlier.as_ref()?;
        let grown = || {
            let old = Checkpoint::open(&earlier.checkpoint, key).map_err(Fault::Earlier)?;
            let malformed = |position| Fault::EarlierMalformed { position };
            let proof = hashes(&earlier.proof).map_err(malformed)?;
            tree::verify_consistency(old.size, &old.root, log.size, &log.root, &proof)
                .map_err(Fault::EarlierNotGrown)?;
            Ok(old)
        };
        grown().map_err(|fault| self.find(fault)).ok()
    }

    fn summary(&mut self, log: Option<&Checkpoint>) {
        let other = |log| summary::of(log, &self.bundle.records) != self.bundle.summary;
        if log.is_some_and(other) {
            self.find(Fault::SummaryOther);
        }
    }
}

/// Parses the record in a leaf, which must be canonical JSON.
pub(crate) fn record_of(leaf: &str) -> Result<EvidenceRecord, Fault> {
    let found = leaf.len();
    if found > LEAF_BYTES_MAX {
        return Err(Fault::LeafTooLong { found });
    }
    EvidenceRecord::from_leaf(leaf).map_err(|error| match error {
        LeafError::NotCanonical(error) => Fault::LeafNotCanonical(error),
        error @ (LeafError::UnknownVersion { .. }
        | LeafError::Shape { .. }
        | LeafError::Foreign { .. }
        | LeafError::Missing { .. }
        | LeafError::Spelling) => Fault::LeafNotARecord(error),
    })
}

/// True if the log has the leaf. False if there is no checkpoint to prove it against.
fn included(bundled: &BundledRecord, log: Option<&Checkpoint>) -> Result<bool, Fault> {
    let malformed = |position| Fault::ProofMalformed { position };
    let proof = hashes(&bundled.proof).map_err(malformed)?;
    let Some(log) = log else { return Ok(false) };
    let leaf = tree::leaf_hash(bundled.leaf.as_bytes());
    tree::verify_inclusion(&leaf, bundled.index, log.size, &proof, &log.root)
        .map_err(Fault::Inclusion)?;
    Ok(true)
}

fn check_payload(payload: &str, expected: Option<Digest>) -> Result<(), Fault> {
    let sealed = STANDARD
        .decode(payload)
        .map_err(|_| Fault::PayloadMalformed)?;
    let expected = expected.ok_or(Fault::PayloadUnexpected)?;
    let found = Digest::of_bytes(&sealed);
    if found == expected {
        return Ok(());
    }
    Err(Fault::PayloadOther { expected, found })
}

fn check_opening(value: Value, opening: &Opening, commitment: Option<Digest>) -> Result<(), Fault> {
    let expected = commitment.ok_or(Fault::OpenedUnexpected(value))?;
    let salt = hex::decode(&opening.salt).ok_or(Fault::SaltMalformed(value))?;
    let text = match (&opening.value, &opening.text) {
        // A bundle is read through its canonical text, so each value in it has a canonical form.
        (Some(value), None) => canonical::to_vec(value).unwrap_or_default(),
        (None, Some(text)) => text.as_bytes().to_vec(),
        (Some(_), Some(_)) | (None, None) => return Err(Fault::OpeningMalformed(value)),
    };
    let found = commit(value.domain(), &salt, &text);
    if found == expected {
        return Ok(());
    }
    Err(Fault::OpenedOther {
        value,
        expected,
        found,
    })
}

/// Checks one link, as far as the bundle has the linked record.
fn check_link(from: &Read, link: &Link, target: Option<&Read>) -> Result<(), Fault> {
    let id = || link.id.to_string();
    if let Some(target) = target {
        if target.leaf != link.leaf || target.record.id != link.id {
            return Err(Fault::LinkOther {
                id: id(),
                expected: link.leaf,
                found: target.leaf,
            });
        }
        if target.index >= from.index {
            let target = target.index;
            return Err(Fault::LinkLater { id: id(), target });
        }
    }
    let record = target.map(|target| &target.record);
    freshness::check(link, record).map_err(|fault| Fault::Freshness { id: id(), fault })
}

/// Decodes the hashes of a proof; the error is the position of the first malformed one.
fn hashes(texts: &[String]) -> Result<Vec<Hash>, usize> {
    let hash = |(position, text): (usize, &String)| {
        let bytes = STANDARD.decode(text).map_err(|_| position)?;
        bytes.try_into().map_err(|_| position)
    };
    texts.iter().enumerate().map(hash).collect()
}

fn further_signatures(note: &str, key: Option<&VerifyingKey>) -> usize {
    let Ok(note) = Note::parse(note) else {
        return 0;
    };
    let all = note.signatures.len();
    key.map_or(all, |key| note.signatures_of_others(key))
}

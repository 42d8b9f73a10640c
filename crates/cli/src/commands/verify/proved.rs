//! Verification of one record with its proof in the formats of others: C2SP tlog-proof and SCITT statement.

use std::io::Write as _;

use countersign::contract::{Digest, EvidenceRecord, SnapshotId};
use countersign_evidence::bundle::Verdict;
use countersign_evidence::note::VerifyingKey;
use countersign_evidence::proof::{PROOF_HEADER, TlogProof};
use countersign_evidence::receipt::verify_statement;
use serde::Serialize;

use super::write_verdict;
use crate::answer::write_json;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::table::visible;
use crate::terminal::Terminal;

/// A tagged COSE message with one signature begins with this byte. No text does.
const COSE_SIGN1: u8 = 0xd2;

/// Format of a file that is not a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Format {
    TlogProof,
    Scitt,
}

impl Format {
    /// Returns the format of a file by its first bytes; `None` if it can only be a bundle.
    pub(super) fn of(file: &[u8]) -> Option<Self> {
        if file.first() == Some(&COSE_SIGN1) {
            return Some(Self::Scitt);
        }
        file.starts_with(PROOF_HEADER.as_bytes())
            .then_some(Self::TlogProof)
    }

    /// Returns the record that the file proves, or the reason why it does not.
    fn verify(self, file: &[u8], key: &VerifyingKey) -> Result<Proved, String> {
        match self {
            Self::Scitt => {
                let verified = verify_statement(file, key).map_err(|fault| fault.to_string())?;
                Ok(Proved {
                    evidence: verified.record.id,
                    index: verified.index,
                    size: verified.size,
                    root: Digest(verified.root),
                })
            }
            Self::TlogProof => {
                let text = str::from_utf8(file).map_err(|error| error.to_string())?;
                let proof: TlogProof = text.parse().map_err(|fault| said(&fault))?;
                let (leaf, checkpoint) = proof.verify_carried(key).map_err(|fault| said(&fault))?;
                let leaf = str::from_utf8(leaf).map_err(|error| error.to_string())?;
                let record = EvidenceRecord::from_leaf(leaf).map_err(|error| error.to_string())?;
                Ok(Proved {
                    evidence: record.id,
                    index: proof.index,
                    size: checkpoint.size,
                    root: Digest(checkpoint.root),
                })
            }
        }
    }
}

fn said(fault: &countersign_evidence::proof::ProofFault) -> String {
    fault.to_string()
}

/// A record and its place in the log.
#[derive(Serialize)]
struct Proved {
    evidence: SnapshotId,
    index: u64,
    size: u64,
    root: Digest,
}

#[derive(Serialize)]
struct Report {
    verdict: Verdict,
    valid: bool,
    format: Format,
    #[serde(flatten)]
    proved: Option<Proved>,
    findings: Vec<String>,
}

/// Verifies the file with the key, without which nothing in it can be believed.
pub(super) fn verify(
    format: Format,
    file: &[u8],
    key: Option<&VerifyingKey>,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    let Some(key) = key else {
        return Err(Failure::new("this format needs the public key of the log")
            .hint("give it with --key; `countersign evidence key` shows the one of this log"));
    };
    let outcome = format.verify(file, key);
    let verdict = match &outcome {
        Ok(_) => Verdict::Valid,
        Err(_) => Verdict::Invalid,
    };
    if terminal.is_for_programs() {
        let (proved, findings) = match outcome {
            Ok(proved) => (Some(proved), Vec::new()),
            Err(finding) => (None, vec![finding]),
        };
        let report = Report {
            verdict,
            valid: findings.is_empty(),
            format,
            proved,
            findings,
        };
        write_json(terminal, &report)?;
        return Ok(verdict.into());
    }
    match outcome {
        Ok(proved) => {
            let out = terminal.data();
            writeln!(out, "record: {}", proved.evidence)?;
            let (index, size) = (proved.index, proved.size);
            writeln!(out, "index: {index} of {size} records")?;
            writeln!(out, "log key: {}", visible(&key.to_string()))?;
        }
        Err(finding) => {
            let wrong = terminal.paint().bad("wrong:");
            writeln!(terminal.data(), "{wrong} {}", visible(&finding))?;
        }
    }
    write_verdict(terminal, verdict)?;
    Ok(verdict.into())
}

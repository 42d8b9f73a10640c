//! One record with its proof in the formats of others: C2SP tlog-proof, COSE receipt, SCITT statement.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::archive::CoseForm;
use countersign::contract::SnapshotId;
use countersign_evidence::receipt::{RECEIPT_TYPE, STATEMENT_TYPE};
use serde_json::json;

use crate::answer::write_json;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::{Place, archive_failed};
use crate::terminal::Terminal;

/// Writes a COSE message in base64, because what a command writes is text; [`decode`] undoes it where the file is written.
pub(super) fn write(
    id: &SnapshotId,
    form: CoseForm,
    place: &Place,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    let archive = place.signing_archive()?;
    let made = place.runtime.block_on(archive.cose(id, form));
    let encoded = STANDARD.encode(made.map_err(archive_failed)?);
    let media_type = match form {
        CoseForm::Receipt => RECEIPT_TYPE,
        CoseForm::Statement => STATEMENT_TYPE,
    };
    if terminal.is_for_programs() {
        let value = json!({"evidence": id, "media_type": media_type, "base64": encoded});
        write_json(terminal, &value)?;
    } else {
        writeln!(terminal.data(), "{encoded}")?;
    }
    terminal.say(format_args!("{id} as {media_type}"))?;
    Ok(Exit::Ok)
}

/// Decodes what [`write`] wrote for people.
pub(super) fn decode(encoded: &[u8]) -> Result<Vec<u8>, Failure> {
    let decoded = STANDARD.decode(encoded.trim_ascii());
    decoded.map_err(|error| {
        Failure::from(anyhow::Error::new(error).context("the export arrived damaged"))
            .hint("use the command of the same version as the server")
    })
}

/// Writes the proof as text, with the record as its extra data.
pub(super) fn write_proof(
    id: &SnapshotId,
    place: &Place,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    let proof = place.runtime.block_on(place.archive().proof(id));
    let mut proof = proof.map_err(archive_failed)?;
    let witnesses = place.served.as_ref();
    if let Some(witnesses) = witnesses.and_then(|served| served.gateway.witnesses()) {
        proof.note = witnesses.cosigned(proof.note);
    }
    let text = proof.into_tlog_proof().to_string();
    if terminal.is_for_programs() {
        write_json(terminal, &json!({"evidence": id, "tlog_proof": text}))?;
    } else {
        write!(terminal.data(), "{text}")?;
    }
    terminal.say(format_args!("{id} as c2sp.org/tlog-proof@v1"))?;
    Ok(Exit::Ok)
}

//! The summary of a bundle: three lines that depend only on the checkpoint and the records.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use countersign_contract::evidence::{EvidenceRecord, RecordKind};

use crate::bundle::BundledRecord;
use crate::checkpoint::Checkpoint;

/// Builds the summary of these records. Leaves that are not records are counted and not described.
pub(super) fn of(log: &Checkpoint, records: &[BundledRecord]) -> String {
    let known: Vec<EvidenceRecord> = records.iter().filter_map(BundledRecord::record).collect();
    let count = |kind: RecordKind| known.iter().filter(|record| record.kind == kind).count();
    let kinds: Vec<String> = RecordKind::ALL
        .into_iter()
        .filter(|kind| count(*kind) > 0)
        .map(|kind| format!("{} {}", kind.as_str(), count(kind)))
        .collect();
    let tools: BTreeSet<String> = known
        .iter()
        .filter_map(|record| record.tool.as_ref())
        .map(|tool| plain(&tool.name))
        .collect();

    let mut text = format!("Log: {}, {} leaves\n", plain(&log.origin), log.size);
    let _ = write!(text, "Records: {}", records.len());
    if let (Some(first), Some(last)) = (known.first(), known.last()) {
        let (kinds, first, last) = (kinds.join(", "), plain(&first.at), plain(&last.at));
        let _ = write!(text, " ({kinds}), {first} to {last}");
    }
    let tools: Vec<String> = tools.into_iter().collect();
    if !tools.is_empty() {
        let _ = write!(text, "\nTools: {}", tools.join(", "));
    }
    text.push('\n');
    text
}

/// Replaces everything but printable ASCII: strings come from models and third-party tools, and a summary is
/// shown on terminals.
fn plain(text: &str) -> String {
    let visible = |c: char| if (' '..='~').contains(&c) { c } else { '?' };
    text.chars().map(visible).collect()
}

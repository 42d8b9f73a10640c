//! The checks that a verification of the whole log leaves out. A verdict counts for the rest only.

use std::fmt;

use serde::Serialize;

/// A check that a verification of the whole log did not make. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotChecked {
    /// Records with their rows, payloads and links: only the tree and the signatures were looked at.
    Records,
    /// Records that the previous run checked.
    EarlierRun,
    /// Rewriting or cutting of the log: no checkpoint was given that an auditor kept.
    Rewriting,
    /// Rollback of the whole folder: the kept checkpoint is stored beside the log.
    Rollback,
    /// A kept checkpoint of an earlier log: records under it are lost.
    HeldEarlier,
    /// Signatures of others under the checkpoints, such as witnesses.
    FurtherSignatures,
    /// Freshness of linked answers: their records do not claim it (version 1 never does).
    Freshness,
    /// The content of payloads: their digest was compared, they were not opened.
    SealedPayloads,
    /// Payloads that were pruned or erased.
    PayloadsGone,
    /// The user of a record that was erased, or whose key the master key does not open.
    Owners,
    /// The rest of the store, which isn't part of the log.
    State,
}

impl NotChecked {
    /// Everything that can be left unchecked.
    pub const ALL: [Self; 11] = [
        Self::Records,
        Self::EarlierRun,
        Self::Rewriting,
        Self::Rollback,
        Self::HeldEarlier,
        Self::FurtherSignatures,
        Self::Freshness,
        Self::SealedPayloads,
        Self::PayloadsGone,
        Self::Owners,
        Self::State,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::EarlierRun => "earlier_run",
            Self::Rewriting => "rewriting",
            Self::Rollback => "rollback",
            Self::HeldEarlier => "held_earlier",
            Self::FurtherSignatures => "further_signatures",
            Self::Freshness => "freshness",
            Self::SealedPayloads => "sealed_payloads",
            Self::PayloadsGone => "payloads_gone",
            Self::Owners => "owners",
            Self::State => "state",
        }
    }

    /// Explains it in words, with the way to check it.
    pub const fn explained(self) -> &'static str {
        match self {
            Self::Records => "rows, payloads and links of records: leave out --quick",
            Self::EarlierRun => "records that the earlier run looked at: leave out --resume",
            Self::Rewriting => {
                "whether the log was rewritten or cut: give a checkpoint that was kept with --held"
            }
            Self::Rollback => {
                "whether the whole folder was rolled back: give a checkpoint that was kept elsewhere \
                 with --held"
            }
            Self::HeldEarlier => {
                "the kept checkpoint: it is of an earlier log, and some of the records under it are lost"
            }
            Self::FurtherSignatures => "signatures of others under the checkpoints",
            Self::Freshness => "freshness of linked answers whose record makes no claim about it",
            Self::SealedPayloads => "what is in the payloads: only their digest was compared",
            Self::PayloadsGone => "payloads that were pruned or erased",
            Self::Owners => {
                "the user of some records: erased, or the master key does not open the user's key"
            }
            Self::State => {
                "the rest of the store: money that waits for a call, and documents that no record names"
            }
        }
    }
}

impl fmt::Display for NotChecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.explained())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_on_the_wire_are_those_of_the_type() {
        for what in NotChecked::ALL {
            assert_eq!(serde_json::json!(what), what.as_str());
        }
    }
}

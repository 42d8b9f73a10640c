//! The verdict on a bundle, and what it leaves open.

use std::fmt;

use serde::Serialize;

/// The outcome of a verification. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every check passed, and the trusted key signed the log.
    Valid,
    /// Every check passed, but the signer was not checked: no trusted key was given.
    Consistent,
    /// Something is wrong; the findings say what.
    Invalid,
}

impl Verdict {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Consistent => "consistent",
            Self::Invalid => "invalid",
        }
    }

    /// The line that a program for people ends with.
    pub const fn line(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Consistent => "consistent, signer not checked",
            Self::Invalid => "not valid",
        }
    }

    /// The exit code of a program that verifies: 0, 4 or 3.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::Consistent => 4,
            Self::Invalid => 3,
        }
    }
}

/// Something that a verification did not check. Closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotChecked {
    /// Who signed the log: no trusted key was given.
    Signer,
    /// Whether the log was rewritten: no checkpoint was given that somebody kept.
    Rewriting,
    /// The signatures of others under the checkpoint.
    FurtherSignatures,
    /// Linked records that the bundle does not have.
    LinksOutside,
    /// Whether linked answers were fresh: the records do not claim it (version 1 never does).
    Freshness,
    /// The rest of sealed payloads: their digest was compared, they were not opened.
    SealedPayloads,
    /// Content that the bundle has neither sealed nor opened.
    AbsentContent,
}

impl NotChecked {
    /// Everything that can be left unchecked.
    pub const ALL: [Self; 7] = [
        Self::Signer,
        Self::Rewriting,
        Self::FurtherSignatures,
        Self::LinksOutside,
        Self::Freshness,
        Self::SealedPayloads,
        Self::AbsentContent,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Signer => "signer",
            Self::Rewriting => "rewriting",
            Self::FurtherSignatures => "further_signatures",
            Self::LinksOutside => "links_outside",
            Self::Freshness => "freshness",
            Self::SealedPayloads => "sealed_payloads",
            Self::AbsentContent => "absent_content",
        }
    }

    /// In words, with what would check it.
    pub const fn explained(self) -> &'static str {
        match self {
            Self::Signer => "who signed the log: give the log's key with --key",
            Self::Rewriting => {
                "whether the log was rewritten: give a checkpoint that you kept with --held"
            }
            Self::FurtherSignatures => "signatures of others under the checkpoint",
            Self::LinksOutside => "linked records that are not in the bundle",
            Self::Freshness => "freshness of linked answers whose record makes no claim about it",
            Self::SealedPayloads => {
                "what else is in sealed payloads: only their digest was compared"
            }
            Self::AbsentContent => "content that the bundle does not have",
        }
    }
}

impl fmt::Display for NotChecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.explained())
    }
}

//! The verdict on a bundle, and the aspects that were not checked.

use std::fmt;

use serde::Serialize;

/// Verdict of a verification. The enum is exhaustive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every check passed, and the trusted key signed the log.
    Valid,
    /// Every check passed, but the signer was not checked: no trusted key was given.
    Consistent,
    /// At least one check failed; the findings say which.
    Invalid,
}

impl Verdict {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Consistent => "consistent",
            Self::Invalid => "invalid",
        }
    }

    /// Returns the last line of a program's output for people.
    pub const fn line(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Consistent => "consistent, signer not checked",
            Self::Invalid => "not valid",
        }
    }

    /// Returns the exit code of a program that verifies: 0, 4 or 3.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::Consistent => 4,
            Self::Invalid => 3,
        }
    }
}

/// An aspect that a verification did not check. The enum is exhaustive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotChecked {
    /// Identity of the signer: no trusted key was given.
    Signer,
    /// Rewriting of the log: no held checkpoint was given.
    Rewriting,
    /// Signatures of other parties under the checkpoint.
    FurtherSignatures,
    /// Linked records that the bundle does not have.
    LinksOutside,
    /// Freshness of linked answers: the records do not claim it (version 1 never does).
    Freshness,
    /// Content of sealed payloads: only their digest was compared.
    SealedPayloads,
    /// Content that the bundle has neither sealed nor opened.
    AbsentContent,
}

impl NotChecked {
    /// All aspects that can be left unchecked.
    pub const ALL: [Self; 7] = [
        Self::Signer,
        Self::Rewriting,
        Self::FurtherSignatures,
        Self::LinksOutside,
        Self::Freshness,
        Self::SealedPayloads,
        Self::AbsentContent,
    ];

    /// Returns the name on the wire.
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

    /// Explains the aspect, and how to check it.
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

//! Claims of a record about the freshness of the answers that it links.
//!
//! A verifier never judges freshness itself: whether an earlier answer could still be used was the tool's
//! decision at the time of the call. It checks that the claim contradicts neither itself nor the linked record.

use countersign_contract::evidence::{EvidenceRecord, Link, LinkRole};

/// Reason why a claim of freshness is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FreshnessFault {
    /// The record claims freshness although the call only looked at the linked record.
    /// Usually another program wrote the record.
    #[error("and does not rest on it")]
    Unexpected,
    /// A time that has to be compared is malformed. Usually another program wrote the record.
    #[error("with {text:?}, which isn't a time of the form 2026-11-15T12:00:00Z")]
    TimeMalformed {
        /// Text in the claim.
        text: String,
    },
    /// The claim contradicts itself: the answer was used after the end of its window. Usually the record was forged, or made by a gateway that
    /// does not check freshness.
    #[error("and used it at {at}, after {until}")]
    Expired {
        /// Time at which the call used the linked answer.
        at: String,
        /// End of the window.
        until: String,
    },
    /// The linked answer has another window than the claim. Usually one of the two records was altered.
    #[error("until {claimed}, and that record says {}", found.as_deref().unwrap_or("nothing"))]
    WindowOther {
        /// End of the window in the claim.
        claimed: String,
        /// `reply.valid_until` of the linked record; `None` if it has no window.
        found: Option<String>,
    },
}

impl FreshnessFault {
    /// Returns the code of the fault, the same in every implementation.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unexpected => "link_claim_unexpected",
            Self::TimeMalformed { .. } => "time_malformed",
            Self::Expired { .. } => "link_expired",
            Self::WindowOther { .. } => "link_window_other",
        }
    }
}

/// Checks the claim of a link. `target` is the linked record, `None` if the verifier does not have it.
///
/// # Example
///
/// ```
/// use countersign_contract::evidence::{Freshness, Link};
/// use countersign_contract::{Digest, SnapshotId};
/// use countersign_evidence::freshness;
///
/// let mut link = Link::rests_on(SnapshotId::new("ev_1")?, Digest([0; 32]));
/// link.fresh = Some(Freshness {
///     at: "2026-11-15T12:00:00Z".to_owned(),
///     until: "2026-11-15T12:00:00.5Z".to_owned(),
/// });
/// assert!(freshness::check(&link, None).is_ok());
/// # Ok::<(), countersign_contract::id::InvalidId>(())
/// ```
pub fn check(link: &Link, target: Option<&EvidenceRecord>) -> Result<(), FreshnessFault> {
    let Some(fresh) = &link.fresh else {
        return Ok(());
    };
    if link.role != Some(LinkRole::RestsOn) {
        return Err(FreshnessFault::Unexpected);
    }
    let malformed = |text: &String| FreshnessFault::TimeMalformed { text: text.clone() };
    let until = instant(&fresh.until).ok_or_else(|| malformed(&fresh.until))?;
    let at = instant(&fresh.at).ok_or_else(|| malformed(&fresh.at))?;
    if at > until {
        return Err(FreshnessFault::Expired {
            at: fresh.at.clone(),
            until: fresh.until.clone(),
        });
    }
    match target.map(window) {
        Some(found) if found != Some(&fresh.until) => Err(FreshnessFault::WindowOther {
            claimed: fresh.until.clone(),
            found: found.cloned(),
        }),
        Some(_) | None => Ok(()),
    }
}

/// True if, as far as the records say, the call may have relied on an answer after its window: they claim
/// nothing, and the linked answer has a window or is unknown.
pub fn is_unclaimed(link: &Link, target: Option<&EvidenceRecord>) -> bool {
    link.fresh.is_none()
        && link.role != Some(LinkRole::LookedAt)
        && target.is_none_or(|target| window(target).is_some())
}

fn window(record: &EvidenceRecord) -> Option<&String> {
    record.reply.as_ref()?.valid_until.as_ref()
}

/// Parses a time into a comparable form: its seconds as text, and nine digits of the fraction.
fn instant(text: &str) -> Option<(&str, String)> {
    let (seconds, rest) = text.strip_suffix('Z')?.split_at_checked(19)?;
    let shape = "0000-00-00T00:00:00".bytes();
    let fits = |(byte, pattern): (u8, u8)| match pattern {
        b'0' => byte.is_ascii_digit(),
        exact => byte == exact,
    };
    let digits = match rest {
        "" => "",
        rest => rest.strip_prefix('.').filter(|digits| !digits.is_empty())?,
    };
    let well_formed = seconds.bytes().zip(shape).all(fits)
        && digits.len() <= 9
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    well_formed.then(|| (seconds, format!("{digits:0<9}")))
}

//! Requirements of an operator's act, and the records of callers who were denied it.

use countersign_contract::SnapshotId;

use super::{Archive, Error, reason};
use crate::denials::{Denial, Denials};
use crate::principal::Principal;

impl Archive {
    /// The recorder of denials about this log.
    pub fn denials(&self) -> &Denials {
        &self.denials
    }

    /// Records that a caller was denied an existing record that they may not see.
    pub async fn deny_sight(&self, event: &'static str, by: &Principal, id: &SnapshotId) {
        let denial = Denial::new(event, by, "not_theirs").about(id.as_str());
        self.denials.note(denial).await;
    }

    /// Records that a caller was denied a record that does not exist. It costs what [`deny_sight`](Self::deny_sight)
    /// costs, so that a caller cannot tell the two apart.
    pub async fn deny_nothing(&self, event: &'static str, by: &Principal) {
        self.denials.note(Denial::new(event, by, "no_record")).await;
    }

    /// Checks the scope that an act needs; a denial is recorded.
    pub(super) async fn needs(
        &self,
        by: &Principal,
        scope: &'static str,
        event: &'static str,
        about: Option<&SnapshotId>,
    ) -> Result<(), Error> {
        if by.holds(scope) {
            return Ok(());
        }
        self.deny(event, by, "missing_scope", about).await?;
        Err(Error::MissingScope { scope })
    }

    /// Checks the reason of an act; a missing one is recorded.
    pub(super) async fn reasoned(
        &self,
        reason: &str,
        by: &Principal,
        event: &'static str,
        about: Option<&SnapshotId>,
    ) -> Result<String, Error> {
        match reason::checked(reason) {
            Ok(reason) => Ok(reason),
            Err(error) => {
                self.deny(event, by, "no_reason", about).await?;
                Err(error)
            }
        }
    }

    /// Records a denial. Only an existing record is named in it: a caller can make up any other id.
    async fn deny(
        &self,
        event: &'static str,
        by: &Principal,
        why: &'static str,
        about: Option<&SnapshotId>,
    ) -> Result<(), Error> {
        let mut denial = Denial::new(event, by, why);
        if let Some(id) = about
            && self.store.record(id).await?.is_some()
        {
            denial = denial.about(id.as_str());
        }
        self.denials.note(denial).await;
        Ok(())
    }
}

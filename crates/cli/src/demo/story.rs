//! The steps of the demo, one file an act.

pub(super) mod consent;
pub(super) mod crash;
pub(super) mod erase;
pub(super) mod grounds;
pub(super) mod once;
pub(super) mod order;
pub(super) mod proof;
pub(super) mod rules;

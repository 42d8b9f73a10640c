//! The executor's rules, each shown by whole envelopes: time stands still, ids count from one, and
//! everything is in memory.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod approvals;
mod budgets;
mod catalog;
mod claims;
mod counted;
mod dry_run;
mod evidence;
mod flow;
mod grant_laws;
mod grants;
mod handlers;
mod hostile;
mod informed;
mod keys;
mod language;
mod limits;
mod narrowed;
mod observe;
mod record;
mod recovery;
mod refusals;
mod replay;
mod run;
mod state;
mod truth;
mod unkeyed;
mod unreadable;
mod world;

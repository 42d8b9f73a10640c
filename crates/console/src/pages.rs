//! One file a page. A page asks the API, makes a value of what it says, and is HTML or JSON.

pub(crate) mod approvals;
pub(crate) mod call;
pub(crate) mod calls;
pub(crate) mod case;
pub(crate) mod docs;
pub(crate) mod doubts;
pub(crate) mod errors;
pub(crate) mod evidence;
pub(crate) mod grants;
pub(crate) mod keep;
pub(crate) mod notifications;
pub(crate) mod overview;
pub(crate) mod policy;
pub(crate) mod search;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod tool;
pub(crate) mod tools;
pub(crate) mod upstreams;

/// The last part of a path, without the mark of the JSON twin.
pub(crate) fn named(part: &str) -> &str {
    part.strip_suffix(".json").unwrap_or(part)
}

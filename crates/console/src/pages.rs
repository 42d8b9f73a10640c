//! One file a page. A page asks the API, makes a value of what it says, and is HTML or JSON.

use axum::response::Response;

use crate::answer::see_other;
use crate::session::Visit;

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

/// The page that a form belongs to, by the address that the form is sent to.
pub(crate) fn page_of(path: &str) -> String {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match parts.as_slice() {
        ["evidence", "reasons"] => "/evidence".to_owned(),
        ["evidence", id, "open" | "check"] | ["calls", id, "again"] => format!("/calls/{id}"),
        ["cases", id, "open" | "zip"] => format!("/cases/{id}"),
        ["approvals", id, "open"] => format!("/approvals/{id}"),
        ["in-doubt", "settle"] => "/in-doubt".to_owned(),
        ["upstreams", _, "test"] => "/upstreams".to_owned(),
        ["grants", _, "revoke"] => "/grants".to_owned(),
        ["holds" | "erasures"] => "/calls".to_owned(),
        _ => path.to_owned(),
    }
}

/// Leads from the address of a form to its page, when a browser asks for that address: in another language, or from its history.
pub(crate) async fn back(visit: Visit) -> Response {
    see_other(&page_of(&visit.path))
}

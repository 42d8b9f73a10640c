//! Pages in the formats of other standards, made from the answers of tools.

use countersign_commerce::interop::{self, Reader, SUMMARY_ARGUMENT, SUMMARY_TOOL, Session};
use countersign_gateway::http::interop::{Page, Profile, View};
use serde_json::Value;

/// All pages: a draft order as a checkout session, under the path that each standard has for it.
pub(crate) fn all() -> Vec<View> {
    let view = |profile, resource, body: fn(&Session, &Reader<'_>) -> Written| {
        let page = move |data: &Value, page: &Page| {
            let reader = Reader {
                locale: page.locale.as_deref(),
                continue_url: page.continue_url.as_deref(),
            };
            Ok(body(&Session::read(data)?, &reader)?)
        };
        View::new(profile, resource, SUMMARY_TOOL, SUMMARY_ARGUMENT, page)
    };
    vec![
        view(Profile::Acp, "checkout_sessions", interop::acp::session),
        view(Profile::Ucp, "checkout-sessions", interop::ucp::checkout),
    ]
}

type Written = Result<Value, interop::Unbalanced>;

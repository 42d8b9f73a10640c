//! The console: pages on which a person sees what their agents did, and answers what they ask.
//!
//! The credential behind the browser session proves the caller. Pages ask the same routes as over HTTP, from within
//! ([`Inside`]), so they show what the API shows to the same caller.
//! Pages are HTML that works without a script; every page is also JSON (`.json`, or `Accept: application/json`).
//!
//! | module | what is in it |
//! |---|---|
//! | `session` | signing in and out, and who looks |
//! | `ask` | questions to the API from within |
//! | `answer` | HTML or JSON, and the headers of every answer |
//! | `assets` | stylesheet, script and icon |
//! | `frame` | what surrounds every page |
//! | `pages` | one file a page |
//! | [`case`] | an order or a call told step by step, also as a file and a ZIP |
//! | `form` | a form drawn from a declaration, and what was filled in |
//! | `shown` | times, durations and JSON as people read them |
//! | `words` | one table a language |

use std::fmt;
use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{MethodRouter, get, post};
use axum::{Router, middleware};
use countersign_gateway::Gateway;
use countersign_gateway::routes::Inside;
use serde::Serialize;
use tokio::sync::Semaphore;

mod answer;
mod ask;
mod assets;
pub mod case;
mod form;
mod frame;
mod pages;
mod session;
mod shown;
mod words;

/// Maximum number of live pages at once.
const STREAMS_MAX: usize = 64;

/// A setting in force, for the page of settings.
#[derive(Debug, Clone, Serialize)]
pub struct Setting {
    /// Its key in the configuration.
    pub key: String,
    /// Its value, without secrets; `-` where there is none.
    pub value: String,
    /// The origin of the value: a file and its line, a variable, a flag, or the default.
    pub origin: String,
}

/// State that all pages share.
pub(crate) struct Console {
    pub(crate) gateway: Gateway,
    pub(crate) inside: Inside,
    pub(crate) settings: Vec<Setting>,
    pub(crate) rules: Vec<case::RuleVersion>,
    pub(crate) streams: Arc<Semaphore>,
}

pub(crate) type Shared = Arc<Console>;

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Console")
    }
}

/// The pages of a gateway. They stand at `/`, beside the API. `rules` are the rule sets that are known here, for their labels.
pub fn pages(gateway: &Gateway, settings: Vec<Setting>, rules: Vec<case::RuleVersion>) -> Router {
    let console = Arc::new(Console {
        gateway: gateway.clone(),
        inside: Inside::new(gateway),
        settings,
        rules,
        streams: Arc::new(Semaphore::new(STREAMS_MAX)),
    });
    let known = middleware::from_fn_with_state(console.clone(), session::layer);
    let for_people = signed_in().layer(known);
    Router::new()
        .merge(for_people)
        .merge(session::routes())
        .merge(assets::routes())
        .layer(middleware::from_fn(answer::headers))
        .with_state(console)
}

/// The route of a form that is not a page itself.
fn form<H, T>(handler: H) -> MethodRouter<Shared>
where
    H: Handler<T, Shared>,
    T: 'static,
{
    get(pages::back).post(handler)
}

/// Pages of a person who has signed in.
fn signed_in() -> Router<Shared> {
    use pages::{approvals, call, calls, errors, evidence, overview, policy, search, settings};
    use pages::{
        case, docs, doubts, grants, keep, notifications, sessions, tool, tools, upstreams,
    };
    let twins = [
        ("/", "/overview.json", get(overview::show)),
        ("/tools", "/tools.json", get(tools::show)),
        ("/calls", "/calls.json", get(calls::show)),
        (
            "/approvals",
            "/approvals.json",
            get(approvals::list).post(approvals::answer_all),
        ),
        (
            "/grants",
            "/grants.json",
            get(grants::list).post(grants::make),
        ),
        ("/in-doubt", "/in-doubt.json", get(doubts::show)),
        (
            "/notifications",
            "/notifications.json",
            get(notifications::show),
        ),
        ("/evidence", "/evidence.json", get(evidence::show)),
        ("/upstreams", "/upstreams.json", get(upstreams::show)),
        ("/policy", "/policy.json", get(policy::show)),
        ("/errors", "/errors.json", get(errors::list)),
        ("/settings", "/settings.json", get(settings::show)),
        ("/docs", "/docs.json", get(docs::list)),
        ("/search", "/search.json", get(search::find)),
        (
            "/policy/explain",
            "/policy/explain.json",
            get(policy::explain),
        ),
        ("/policy/report", "/policy/report.json", get(policy::report)),
    ];
    let mut router = Router::new();
    for (page, twin, handler) in twins {
        router = router.route(page, handler.clone()).route(twin, handler);
    }
    router
        .route("/tools/{name}", get(tool::show).post(tool::call))
        .route("/calls/live", get(calls::live))
        .route("/calls/{id}", get(call::show))
        .route("/cases/{id}", get(case::show))
        .route("/cases/{id}/open", form(case::open))
        .route("/cases/{id}/zip", form(case::zip))
        .route("/calls/{id}/again", form(call::again))
        .route("/sessions/{id}", get(sessions::show))
        .route("/evidence/reasons", form(evidence::reasons))
        .route("/evidence/tile/{*path}", get(evidence::tile))
        .route("/evidence/{id}/open", form(call::open))
        .route("/evidence/{id}/check", form(call::check))
        .route("/evidence/{id}/bundle", get(call::bundle))
        .route(
            "/approvals/{id}",
            get(approvals::one).post(approvals::answer),
        )
        .route("/approvals/{id}/open", form(approvals::open))
        .route("/upstreams/{name}/test", form(upstreams::test))
        .route("/in-doubt/settle", form(doubts::settle))
        .route("/holds", form(keep::hold))
        .route("/erasures", form(keep::erase))
        .route("/grants/{id}/revoke", form(grants::revoke))
        .route("/errors/{code}", get(errors::one))
        .route("/docs/{*name}", get(docs::one))
        .route("/sign-out", post(session::sign_out))
}

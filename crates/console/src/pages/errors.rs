//! `/errors`: the closed codes, what each means, and the latest calls that were answered with it.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use countersign::contract::ErrorCode;
use jiff::SignedDuration;
use serde::Serialize;

use super::calls::CallRow;
use super::{docs, named};
use crate::answer::{self, Stop};
use crate::frame::Frame;
use crate::session::Visit;
use crate::shown;
use crate::words::codes::summary;

/// Period in which calls with a code are looked for.
const LOOKED_BACK: SignedDuration = SignedDuration::from_hours(24);

/// Maximum number of listed kinds of failures.
const LISTED_FAILURES: usize = 50;

/// Maximum calls on the page of a code.
const LISTED: usize = 10;

#[derive(Template, Serialize)]
#[template(path = "errors.html")]
struct List {
    #[serde(skip)]
    frame: Frame,
    codes: Vec<Row>,
    /// Errors by code, tool and version since `counted_since`; there for operators.
    failures: Vec<Failed>,
    /// Time since which errors are counted: that of the oldest of the newest 20,000 records at the start of the server.
    counted_since: String,
    #[serde(skip)]
    since_text: String,
}

/// Errors of one code, tool and version.
#[derive(Serialize)]
struct Failed {
    code: &'static str,
    tool: String,
    version: String,
    count: u64,
    /// Failures of the last hour.
    last_hour: u64,
    /// Time of the first after the last six hours without one.
    since: String,
    last: String,
    #[serde(skip)]
    since_text: String,
    #[serde(skip)]
    since_moment: String,
    #[serde(skip)]
    last_text: String,
}

#[derive(Serialize)]
struct Row {
    code: &'static str,
    http_status: u16,
    retry: &'static str,
    summary: &'static str,
    /// The same as HTML, its code as code.
    #[serde(skip)]
    summary_html: String,
    /// Since `counted_since`; there for operators.
    count: u64,
    #[serde(skip)]
    count_text: String,
}

#[derive(Template, Serialize)]
#[template(path = "error.html")]
struct One {
    #[serde(skip)]
    frame: Frame,
    code: &'static str,
    #[serde(skip)]
    html: String,
    calls: Vec<CallRow>,
}

pub(crate) async fn list(visit: Visit) -> Result<Response, Stop> {
    let frame = visit.frame(visit.words.errors, "errors").await;
    let now = visit.console.gateway.executor().now();
    let figures = frame
        .is_operator
        .then(|| visit.console.gateway.pulse().figures(now));
    let figures = figures.unwrap_or_default();
    let counts = figures.codes;
    let failures = figures.failures.into_iter().take(LISTED_FAILURES);
    let failures = failures.map(|one| Failed {
        code: one.code,
        tool: one.tool,
        version: one.version,
        count: one.count,
        last_hour: one.last_hour,
        since_text: shown::brief(&one.first.to_string(), now),
        since_moment: shown::moment(&one.first.to_string()),
        last_text: shown::distance(&one.last.to_string(), now, visit.words),
        since: one.first.to_string(),
        last: one.last.to_string(),
    });
    let failures = failures.collect();
    let language = visit.words.language();
    let row = |code: ErrorCode| {
        let count = counts.get(code.as_str()).copied().unwrap_or_default();
        Row {
            code: code.as_str(),
            http_status: code.http_status(),
            retry: code.retry().as_str(),
            summary: summary(code, language),
            summary_html: docs::line(summary(code, language)),
            count,
            count_text: shown::number(count),
        }
    };
    let codes = ErrorCode::ALL.into_iter().map(row).collect();
    let since = visit.console.gateway.counted_since().to_string();
    let counted = visit.words.counted_since;
    let page = List {
        frame,
        since_text: counted.replace("{}", &shown::moment(&since)),
        counted_since: since,
        codes,
        failures,
    };
    answer::page(&visit, &page)
}

pub(crate) async fn one(visit: Visit, Path(code): Path<String>) -> Result<Response, Stop> {
    let code: ErrorCode = named(&code).parse().map_err(|_| Stop::not_found(&visit))?;
    // A code that is seldom answered would be looked for through everything that there is.
    let now = visit.console.gateway.executor().now();
    let since = now.saturating_sub(LOOKED_BACK).unwrap_or(now).to_string();
    let options = [("code", code.as_str()), ("since", &since)];
    let calls = visit.calls(&options, LISTED).await?.calls;
    let page = One {
        frame: visit.frame(code.as_str(), "errors").await,
        code: code.as_str(),
        html: docs::rendered(text(code), "errors"),
        calls,
    };
    answer::page(&visit, &page)
}

/// The page of a code. A new code does not compile without one.
fn text(code: ErrorCode) -> &'static str {
    macro_rules! page {
        ($name:literal) => {
            include_str!(concat!("../../docs/errors/", $name, ".md"))
        };
    }
    match code {
        ErrorCode::InvalidArgument => page!("INVALID_ARGUMENT"),
        ErrorCode::Unauthorized => page!("UNAUTHORIZED"),
        ErrorCode::Forbidden => page!("FORBIDDEN"),
        ErrorCode::NotFound => page!("NOT_FOUND"),
        ErrorCode::Conflict => page!("CONFLICT"),
        ErrorCode::RateLimited => page!("RATE_LIMITED"),
        ErrorCode::Timeout => page!("TIMEOUT"),
        ErrorCode::UpstreamError => page!("UPSTREAM_ERROR"),
        ErrorCode::NeedsUserConfirmation => page!("NEEDS_USER_CONFIRMATION"),
        ErrorCode::ComplianceBlocked => page!("COMPLIANCE_BLOCKED"),
        ErrorCode::PriceChanged => page!("PRICE_CHANGED"),
        ErrorCode::OutOfStock => page!("OUT_OF_STOCK"),
        ErrorCode::AddressInvalid => page!("ADDRESS_INVALID"),
    }
}

//! `/cases/{id}`: an order, a call or a record for readers who are not engineers: what happened, who confirmed it, who looked at it.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use countersign_evidence::bundle::Bundle;
use countersign_gateway::http::cases::ShownCase;
use http::header::CONTENT_DISPOSITION;
use http::{HeaderValue, Method};
use serde::Serialize;
use serde_json::json;

use super::{keep, named};
use crate::answer::{self, Stop};
use crate::ask::segment;
use crate::case::{self, Material, Story};
use crate::frame::Frame;
use crate::session::{Posted, Visit};

mod fold;

use fold::Window;

/// Number of lines of a step's details on the page; the JSON twin and the bundle have the rest.
const DETAILS_MAX: usize = 30;

#[derive(Template, Serialize)]
#[template(path = "case.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    #[serde(skip)]
    s: &'static case::Says,
    #[serde(skip)]
    name: String,
    /// Target of the links of records.
    #[serde(skip)]
    link: &'static str,
    case: ShownCase,
    story: Story,
    /// The steps that the page shows; JSON has all of them.
    #[serde(skip)]
    window: Window,
    /// The reason that was given, to open the rest.
    #[serde(skip)]
    reason: String,
    /// True if a hold covers a record of the case.
    is_held: bool,
}

pub(crate) async fn show(visit: Visit, Path(id): Path<String>) -> Result<Response, Stop> {
    let from = visit.asked("from").unwrap_or_default();
    let wanted = Wanted { from, step: "" };
    let page = page(&visit, named(&id), None, &wanted).await?;
    answer::page(&visit, &page)
}

/// Opens what is sealed. The API writes down who opens it and why before it shows anything.
pub(crate) async fn open(Path(id): Path<String>, posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let reason = posted.get("reason").trim();
    let bundle = bundle(visit, &id, Some(reason)).await?;
    // The button of the next page names its own beginning.
    let from = match posted.get("next") {
        "" => posted.get("from"),
        next => next,
    };
    let step = posted.get("step");
    let mut page = page(visit, &id, Some(&bundle), &Wanted { from, step }).await?;
    reason.clone_into(&mut page.reason);
    answer::page(visit, &page)
}

/// The case, its evidence and the page that verifies it, in one file.
pub(crate) async fn zip(Path(id): Path<String>, posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let is_opened = posted.get("content") == "opened";
    let reason = is_opened.then(|| posted.get("reason"));
    let bundle = bundle(visit, &id, reason).await?;
    let case = shown(visit, &id).await?;
    let material = Material {
        case: &case,
        bundle: is_opened.then_some(&bundle),
        rules: &visit.console.rules,
        details_max: DETAILS_MAX,
    };
    let now = visit.console.gateway.executor().now();
    let made = case::zip(material, &bundle, now).map_err(|error| {
        tracing::error!(%error, "a case could not be written");
        Stop::broken()
    })?;
    let mut response = answer::typed(made.bytes, "application/zip");
    let kept = HeaderValue::try_from(format!("attachment; filename=\"{}\"", made.name));
    let kept = kept.map_err(|_| Stop::broken())?;
    response.headers_mut().insert(CONTENT_DISPOSITION, kept);
    Ok(response)
}

async fn shown(visit: &Visit, name: &str) -> Result<ShownCase, Stop> {
    visit.get(&format!("/v1/cases/{}", segment(name))).await
}

/// One bundle of the case; with a reason its content is opened.
async fn bundle(visit: &Visit, name: &str, reason: Option<&str>) -> Result<Bundle, Stop> {
    let path = format!("/v1/cases/{}/bundle", segment(name));
    let body = reason.map_or_else(|| json!({}), |reason| json!({"reason": reason.trim()}));
    let answered = visit.ask(Method::POST, &path, Some(&body)).await?;
    if !answered.status.is_success() {
        return Err(Stop::of(answered.status, &answered.body));
    }
    Bundle::parse(&answered.body).map_err(|_| Stop::broken())
}

/// The part of a case that a reader asks for.
struct Wanted<'a> {
    /// Number of steps before the page, as it was sent.
    from: &'a str,
    /// Id of the step whose details are wanted.
    step: &'a str,
}

async fn page(
    visit: &Visit,
    name: &str,
    bundle: Option<&Bundle>,
    wanted: &Wanted<'_>,
) -> Result<Page, Stop> {
    let case = shown(visit, name).await?;
    let language = visit.words.language();
    let material = Material {
        case: &case,
        bundle,
        rules: &visit.console.rules,
        details_max: DETAILS_MAX,
    };
    let mut story = case::tell(material, language);
    let window = if visit.wants_json {
        Window::whole()
    } else {
        fold::fold(
            &mut story,
            wanted.from.parse().unwrap_or_default(),
            wanted.step,
        )
    };
    let own = case.records.iter().map(|part| part.record.id.as_str());
    let own: Vec<&str> = own.collect();
    let is_held = !case.user_id.is_empty() && keep::held(visit, Some(&case.user_id), &own).await;
    Ok(Page {
        is_held,
        frame: visit.frame(&story.title, "calls").await,
        s: story.says(),
        name: name.to_owned(),
        link: "/calls/",
        case,
        story,
        window,
        reason: String::new(),
    })
}

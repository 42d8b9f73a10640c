//! `/tools/{name}`: a tool's declaration, what each model sees of it, and a form to call it.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use countersign::contract::envelope::Warning;
use countersign::contract::{Issue, ReplyEnvelope, ToolSpec};
use countersign_gateway::caller::LOCAL_USER;
use http::Method;
use serde::Serialize;
use serde_json::{Value, json};

use super::tools::Badges;
use super::{docs, named};
use crate::answer::{self, Stop};
use crate::ask::segment;
use crate::form::{self, Field, digits};
use crate::frame::Frame;
use crate::session::{Posted, Visit};
use crate::shown::{self, Line};

mod copy;

/// The forms in which a tool is listed for a model, with their names for people.
const FORMATS: [(&str, &str); 6] = [
    ("openai", "OpenAI"),
    ("openai-responses", "OpenAI Responses"),
    ("anthropic", "Anthropic"),
    ("gemini", "Gemini"),
    ("mcp", "MCP"),
    ("jsonschema", "JSON Schema"),
];

#[derive(Template, Serialize)]
#[template(path = "tool.html")]
struct Page {
    #[serde(skip)]
    frame: Frame,
    spec: ToolSpec,
    #[serde(skip)]
    badges: Badges,
    #[serde(skip)]
    declaration: String,
    #[serde(skip)]
    description_html: String,
    seen: Vec<Seen>,
    #[serde(skip)]
    work: Work,
}

/// A tool as a model is shown it.
#[derive(Serialize)]
struct Seen {
    name: &'static str,
    tokens: Option<u64>,
    text: String,
}

/// The form and what came of it.
struct Work {
    fields: Vec<Field>,
    raw: String,
    is_raw: bool,
    dry_run: bool,
    user: String,
    key: String,
    may_name_user: bool,
    reply: Option<Reply>,
    /// The same call in other languages, each with its name.
    copies: Vec<(&'static str, String)>,
}

/// A reply, taken apart for people.
#[expect(
    clippy::struct_excessive_bools,
    reason = "four facts that a page shows, each by itself"
)]
struct Reply {
    ok: bool,
    code: String,
    message: String,
    hint: Option<String>,
    is_dry_run: bool,
    replayed: bool,
    request_id: String,
    approval: Option<String>,
    changes: Vec<Change>,
    data: Vec<Line>,
    is_cut: bool,
}

/// One thing that the binder did or refused, before → after.
struct Change {
    path: String,
    before: String,
    after: String,
    message: String,
}

pub(crate) async fn show(visit: Visit, Path(name): Path<String>) -> Result<Response, Stop> {
    let spec: ToolSpec = visit
        .get(&format!("/v1/tools/{}", segment(named(&name))))
        .await?;
    let filled = Filled {
        arguments: example(&spec),
        raw: None,
        dry_run: spec.behaviour.effect.changes_something(),
        user: usual_user(&visit),
        key: String::new(),
    };
    let page = page(&visit, spec, filled, None).await?;
    answer::page(&visit, &page)
}

/// Initial user of the form: the user of the credential or, as on the command line, the user of this machine. Empty if the credential names the user.
fn usual_user(visit: &Visit) -> String {
    if !visit.caller.principal.may_act_for_others {
        return String::new();
    }
    match visit.caller.principal.user_id.as_str() {
        "" => LOCAL_USER.to_owned(),
        user => user.to_owned(),
    }
}

/// Makes the call. It goes through the same route as every other one, and is recorded like it.
pub(crate) async fn call(Path(name): Path<String>, posted: Posted) -> Result<Response, Stop> {
    let visit = &posted.visit;
    let path = format!("/v1/tools/{}", segment(&name));
    let spec: ToolSpec = visit.get(&path).await?;
    let filled = Filled {
        arguments: form::arguments(&posted.fields),
        raw: (posted.get("mode") == "raw").then(|| posted.get("raw").to_owned()),
        dry_run: posted.get("dry_run") == "on",
        user: posted.get("user").trim().to_owned(),
        key: posted.get("key").trim().to_owned(),
    };
    // What the form says now, to copy it: nothing is called.
    if posted.get("look") == "copies" {
        return answer::html(&page(visit, spec, filled, None).await?);
    }
    let mut body = copy::body(&filled);
    if let Some(members) = body.as_object_mut() {
        members.insert("locale".to_owned(), visit.words.tag.into());
    }
    let answered = visit.ask(Method::POST, &path, Some(&body)).await?;
    let reply: ReplyEnvelope = serde_json::from_slice(&answered.body)
        .map_err(|_| Stop::of(answered.status, &answered.body))?;
    if visit.wants_json {
        return answer::json(&reply);
    }
    answer::html(&page(visit, spec, filled, Some(reply)).await?)
}

/// Values in the form.
struct Filled {
    arguments: Value,
    /// The text, where it counts instead of the fields.
    raw: Option<String>,
    dry_run: bool,
    /// User for whom the call is made; empty if the credential names the user.
    user: String,
    /// Idempotency key; empty where there is none.
    key: String,
}

async fn page(
    visit: &Visit,
    spec: ToolSpec,
    filled: Filled,
    reply: Option<ReplyEnvelope>,
) -> Result<Page, Stop> {
    let status = visit.status().await;
    let issues = reply.as_ref().map(issues_of).unwrap_or_default();
    let arguments = match &filled.raw {
        Some(raw) => digits::read(raw).unwrap_or_default(),
        None => filled.arguments.clone(),
    };
    let raw = filled.raw.clone();
    let work = Work {
        fields: form::fields(&spec.json_schema(), &arguments, &at_fields(&issues)),
        raw: raw.unwrap_or_else(|| digits::pretty(&filled.arguments)),
        is_raw: filled.raw.is_some(),
        dry_run: filled.dry_run,
        user: filled.user.clone(),
        key: filled.key.clone(),
        may_name_user: visit.caller.principal.may_act_for_others,
        copies: copy::all(&spec, &filled, &visit.url, status.wants_credential()),
        reply: reply.map(|reply| taken_apart(&reply, &issues)),
    };
    Ok(Page {
        frame: visit.framed(spec.name.as_str(), "tools", &status),
        badges: Badges::of(&spec),
        description_html: docs::line(&spec.description),
        declaration: serde_json::to_string_pretty(&spec).unwrap_or_default(),
        seen: seen(visit, spec.name.as_str()).await?,
        spec,
        work,
    })
}

async fn seen(visit: &Visit, name: &str) -> Result<Vec<Seen>, Stop> {
    let mut seen = Vec::with_capacity(FORMATS.len());
    for (format, title) in FORMATS {
        let path = format!("/v1/tools/{}?format={format}", segment(name));
        let answered = visit.ask(Method::GET, &path, None).await?;
        // A tool that a provider cannot be told of says so in its place.
        let value: Value = serde_json::from_slice(&answered.body).unwrap_or_default();
        seen.push(Seen {
            name: title,
            tokens: answered.tokens,
            text: pretty(&value),
        });
    }
    Ok(seen)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Arguments to begin with: the examples of the declaration, also those within objects and lists.
fn example(spec: &ToolSpec) -> Value {
    let schema = spec.json_schema();
    example_of(&schema, &schema, 0).unwrap_or_else(|| json!({}))
}

fn example_of(schema: &Value, root: &Value, depth: usize) -> Option<Value> {
    /// Maximum depth at which examples are looked for.
    const DEPTH_MAX: usize = 6;
    if depth > DEPTH_MAX {
        return None;
    }
    let reference = schema.get("$ref").and_then(Value::as_str);
    if let Some(place) = reference.and_then(|text| text.strip_prefix('#')) {
        return example_of(root.pointer(place)?, root, depth + 1);
    }
    let listed = schema.get("examples").and_then(|examples| examples.get(0));
    if let Some(example) = listed.or_else(|| schema.get("example")) {
        return Some(example.clone());
    }
    if let Some(items) = schema.get("items") {
        return Some(json!([example_of(items, root, depth + 1)?]));
    }
    let members = schema.get("properties").and_then(Value::as_object)?;
    let given = members
        .iter()
        .filter_map(|(name, member)| Some((name.clone(), example_of(member, root, depth + 1)?)));
    let given: serde_json::Map<String, Value> = given.collect();
    (!given.is_empty()).then_some(Value::Object(given))
}

fn issues_of(reply: &ReplyEnvelope) -> Vec<Issue> {
    let warned = reply.warnings.iter().filter_map(|warning| match warning {
        Warning::Issue(issue) => Some(issue.clone()),
        Warning::Remark { .. } => None,
    });
    let refused = reply
        .error
        .iter()
        .flat_map(|error| error.details.issues.clone());
    warned.chain(refused).collect()
}

fn at_fields(issues: &[Issue]) -> BTreeMap<String, Vec<String>> {
    let mut at: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for issue in issues {
        at.entry(issue.path.clone()).or_default().push(told(issue));
    }
    at
}

/// An issue in one line.
pub(crate) fn told(issue: &Issue) -> String {
    let change = match (&issue.before, &issue.after) {
        (Some(before), Some(after)) => format!("{before} → {after}: "),
        (Some(before), None) => format!("{before}: "),
        (None, Some(after)) => format!("→ {after}: "),
        (None, None) => String::new(),
    };
    let more = issue.suggestion.as_ref().map(|more| format!("; {more}"));
    format!("{change}{}{}", issue.message, more.unwrap_or_default())
}

fn taken_apart(reply: &ReplyEnvelope, issues: &[Issue]) -> Reply {
    let (data, is_cut) = shown::cut(match &reply.data {
        Value::Null => Vec::new(),
        data => shown::lines(data, &BTreeMap::new()),
    });
    let error = reply.error.as_ref();
    let approval = error.and_then(|error| error.details.extra.get("approval_id"));
    Reply {
        ok: reply.ok,
        code: error.map_or("OK".to_owned(), |error| error.code.to_string()),
        message: error
            .map(|error| error.message.to_string())
            .unwrap_or_default(),
        hint: error
            .and_then(|error| error.details.hint.as_ref())
            .map(ToString::to_string),
        is_dry_run: reply.dry_run,
        replayed: reply.replayed,
        request_id: reply.request_id.to_string(),
        approval: approval.and_then(Value::as_str).map(str::to_owned),
        changes: issues.iter().map(changed).collect(),
        data,
        is_cut,
    }
}

fn changed(issue: &Issue) -> Change {
    Change {
        path: issue.path.clone(),
        before: issue.before.clone().unwrap_or_default(),
        after: issue
            .after
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        message: issue.message.clone(),
    }
}

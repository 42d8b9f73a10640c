//! `/openapi.json`: the description of all calls, built from the catalog (`OpenAPI` 3.1).
//!
//! There is one path for each tool, with the schemas of its arguments and of its answer. Parts that are the
//! same for every server are in `openapi/paths.json`, and the envelopes come from the files in `contracts/`.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use countersign::contract::{ErrorCode, ToolSpec};
use serde_json::{Map, Value, json};

use super::answer::{self, Refusal};
use crate::caller::Caller;
use crate::gateway::Gateway;

/// Paths that every server has.
const PATHS: &str = include_str!("openapi/paths.json");

/// Schemas of answers in the form of other standards.
const INTEROP: &str = include_str!("openapi/interop.json");

/// Schemas that every answer refers to, by their names here.
const SCHEMAS: [(&str, &str); 9] = [
    (
        "Approval",
        include_str!("../../contracts/approval.schema.json"),
    ),
    ("Grant", include_str!("../../contracts/grant.schema.json")),
    (
        "NewGrant",
        include_str!("../../contracts/new-grant.schema.json"),
    ),
    (
        "RequestEnvelope",
        include_str!("../../contracts/request-envelope.schema.json"),
    ),
    (
        "ReplyEnvelope",
        include_str!("../../contracts/reply-envelope.schema.json"),
    ),
    (
        "ErrorBody",
        include_str!("../../contracts/error-body.schema.json"),
    ),
    (
        "EvidencePayload",
        include_str!("../../contracts/evidence-payload.schema.json"),
    ),
    (
        "EvidenceRecord",
        include_str!("../../contracts/evidence-record.schema.json"),
    ),
    (
        "ToolSpec",
        include_str!("../../contracts/tool-spec.schema.json"),
    ),
];

pub(super) async fn serve(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refusal> {
    let entries = gateway.executor().list(&caller.principal).await?;
    let specs: Vec<&ToolSpec> = entries.iter().map(|entry| entry.spec()).collect();
    let url = gateway.settings().public_url.as_deref();
    Ok(answer::json(&document(&specs, url)))
}

/// Builds the document for these tools. Without a public URL its addresses are relative to its own.
pub fn document(specs: &[&ToolSpec], public_url: Option<&str>) -> Value {
    // The files are checked in, and a test reads the whole document.
    let mut schemas: Map<String, Value> = serde_json::from_str(INTEROP).unwrap_or_default();
    for (name, text) in SCHEMAS {
        let schema = serde_json::from_str(text).unwrap_or_default();
        schemas.insert(name.to_owned(), embedded(schema, name));
    }
    let mut paths = Map::new();
    for spec in specs {
        let arguments = format!("{}.arguments", spec.name);
        schemas.insert(arguments.clone(), embedded(spec.json_schema(), &arguments));
        let answer = spec.output.as_ref().map(|output| {
            let answer = format!("{}.data", spec.name);
            schemas.insert(answer.clone(), embedded(output.clone(), &answer));
            answer
        });
        let path = format!("/v1/tools/{}", spec.name);
        paths.insert(
            path,
            json!({"post": operation(spec, &arguments, answer.as_deref())}),
        );
    }
    let fixed: Map<String, Value> = serde_json::from_str(PATHS).unwrap_or_default();
    paths.extend(fixed);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Countersign",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Tools for agents: bound to declared types, run once, answered in one envelope, proved later.",
            "license": {"name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT"},
        },
        "servers": [{"url": public_url.unwrap_or("/")}],
        "security": [{"bearer": []}, {}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": error_responses(),
            "headers": headers(),
            "securitySchemes": {"bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "An API key or a JWT. A server that only its own machine can reach may need none.",
            }},
        },
    })
}

/// Builds the operation of one tool.
fn operation(spec: &ToolSpec, arguments: &str, answer: Option<&str>) -> Value {
    let mut properties: Map<String, Value> = ENVELOPE_MEMBERS
        .iter()
        .map(|name| {
            let path = format!("#/components/schemas/RequestEnvelope/properties/{name}");
            ((*name).to_owned(), json!({"$ref": path}))
        })
        .collect();
    let of_arguments = json!({"$ref": reference(arguments)});
    properties.insert(
        "arguments".to_owned(),
        json!({
            "description": "An object, or a string with the text that a model wrote.",
            "anyOf": [of_arguments, {"type": "string"}],
        }),
    );
    let reply = match answer {
        None => json!({"$ref": reference("ReplyEnvelope")}),
        Some(answer) => json!({
            "allOf": [{"$ref": reference("ReplyEnvelope")}],
            "if": {"properties": {"ok": {"const": true}}},
            "then": {"properties": {"data": {"$ref": reference(answer)}}},
        }),
    };
    let mut responses = Map::new();
    responses.insert(
        "200".to_owned(),
        json!({
            "description": "What the tool answered.",
            "headers": {
                "X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"},
                "Idempotent-Replayed": {"$ref": "#/components/headers/Idempotent-Replayed"},
            },
            "content": {"application/json": {"schema": reply}},
        }),
    );
    for status in by_status().keys() {
        let path = format!("#/components/responses/{status}");
        responses.insert(status.to_string(), json!({"$ref": path}));
    }
    json!({
        "operationId": countersign::alias::alias(&spec.name),
        "summary": spec.title.as_deref().unwrap_or(spec.name.as_str()),
        "description": spec.description,
        "tags": ["tools"],
        "parameters": [
            {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"},
             "description": "The same as idempotency_key in the body."},
            {"name": "X-Request-Id", "in": "header", "schema": {"type": "string"},
             "description": "The request_id where the body has none; one for each call. GET /v1/calls/{request_id} \
                 finds the call by it; records and logs only have a digest of it."},
            {"name": "traceparent", "in": "header", "schema": {"type": "string"},
             "description": "W3C trace context; carried on to everything that the tool calls."},
        ],
        "requestBody": {
            "content": {
                "application/json": {"schema": {
                    "type": "object",
                    "properties": properties,
                    "additionalProperties": false,
                }},
                "text/plain": {"schema": {
                    "type": "string",
                    "description": "The argument text itself.",
                }},
            },
        },
        "responses": responses,
    })
}

/// Members that a body has besides `arguments`.
const ENVELOPE_MEMBERS: [&str; 11] = [
    "request_id",
    "actor",
    "user_id",
    "session_id",
    "locale",
    "currency",
    "timezone",
    "client",
    "dry_run",
    "idempotency_key",
    "trace",
];

fn reference(schema: &str) -> String {
    format!("#/components/schemas/{schema}")
}

/// Embeds a schema in this document: its internal references are moved to its new place.
fn embedded(mut schema: Value, name: &str) -> Value {
    if let Value::Object(members) = &mut schema {
        members.remove("$schema");
        members.remove("$id");
    }
    rebase(&mut schema, name);
    schema
}

fn rebase(schema: &mut Value, name: &str) {
    match schema {
        Value::Object(members) => {
            for (member, value) in members {
                match value {
                    Value::String(target) if member == "$ref" => {
                        if let Some(rest) = target.strip_prefix('#') {
                            *target = format!("{}{rest}", reference(name));
                        }
                    }
                    value => rebase(value, name),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the codes of each status.
fn by_status() -> BTreeMap<u16, Vec<ErrorCode>> {
    let mut by_status: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
    for code in ErrorCode::ALL {
        by_status.entry(code.http_status()).or_default().push(code);
    }
    by_status
}

fn error_responses() -> Value {
    let response = |(status, codes): (u16, Vec<ErrorCode>)| {
        let lines = codes
            .iter()
            .map(|code| format!("`{code}`: {}", code.summary()));
        let mut response = json!({
            "description": lines.collect::<Vec<_>>().join("\n\n"),
            "content": {"application/json": {"schema": {"$ref": reference("ReplyEnvelope")}}},
        });
        if codes.contains(&ErrorCode::RateLimited)
            && let Value::Object(members) = &mut response
        {
            let header = json!({"$ref": "#/components/headers/Retry-After"});
            members.insert("headers".to_owned(), json!({"Retry-After": header}));
        }
        (status.to_string(), response)
    };
    Value::Object(by_status().into_iter().map(response).collect())
}

fn headers() -> Value {
    json!({
        "X-Request-Id": {
            "description": "The name of the call; GET /v1/calls/{request_id} finds it again.",
            "schema": {"type": "string"},
        },
        "Idempotent-Replayed": {
            "description": "`true` where this is the stored answer of an earlier call with the same key.",
            "schema": {"const": "true"},
        },
        "Retry-After": {
            "description": "Seconds to wait, rounded up.",
            "schema": {"type": "integer", "minimum": 0},
        },
    })
}

//! Records as API Activity events of OCSF 1.2.0, for systems that read no other form.
//!
//! The whole record stands in `raw_data`, so that its leaf hash can be computed and its proof be asked for. An event has nothing that the
//! record does not have: no network address (`src_endpoint` is the log that tells of it), and no word on whether a call read or
//! changed something, because a record does not say so.

use countersign_contract::ActorType;
use countersign_contract::evidence::{RecordKind, RecordedActor, RecordedCredential};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::TrailEntry;

/// Version of the schema.
const VERSION: &str = "1.2.0";

/// Name of product and vendor.
const PRODUCT: &str = "Countersign";

/// Class `API Activity` of the category `Application Activity`.
const CLASS: u32 = 6003;
const CATEGORY: u32 = 6;

/// Activity of an event: its number in the class, and its name.
const fn activity(kind: RecordKind) -> (u32, &'static str) {
    match kind {
        RecordKind::Call => (99, "Call"),
        RecordKind::Denial => (99, "Denial"),
        RecordKind::Intent => (99, "Intent"),
        RecordKind::Approval => (99, "Approval"),
        RecordKind::Checkpoint => (99, "Checkpoint"),
        RecordKind::Access => (2, "Read"),
        RecordKind::Config | RecordKind::Resolution => (3, "Update"),
        RecordKind::Erasure => (4, "Delete"),
    }
}

/// Status of an event: its number, its name, and the severity of the event.
fn status(entry: &TrailEntry) -> (u32, &'static str, u32, &'static str) {
    let is_denied = entry.record.act.get("denied").is_some();
    if entry.is_question() {
        (99, "Waiting for approval", 1, "Informational")
    } else if is_denied || entry.record.kind == RecordKind::Denial || entry.code().is_some() {
        (2, "Failure", 2, "Low")
    } else {
        (1, "Success", 1, "Informational")
    }
}

/// Returns the event of a record.
pub(super) fn event(entry: &TrailEntry, origin: &str) -> Value {
    let record = &entry.record;
    let (activity_id, activity_name) = activity(record.kind);
    let (status_id, status, severity_id, severity) = status(entry);
    let tool = record.tool.as_ref();
    let operation = tool.map(|tool| tool.name.as_str()).or(entry.event());
    let operation = operation.unwrap_or(record.kind.as_str());
    let at: Option<Timestamp> = record.at.parse().ok();
    let mut event = json!({
        "class_uid": CLASS,
        "class_name": "API Activity",
        "category_uid": CATEGORY,
        "category_name": "Application Activity",
        "activity_id": activity_id,
        "activity_name": activity_name,
        "type_uid": CLASS * 100 + activity_id,
        "type_name": format!("API Activity: {activity_name}"),
        "severity_id": severity_id,
        "severity": severity,
        "status_id": status_id,
        "status": status,
        "time": at.map_or(0, Timestamp::as_millisecond),
        "message": message(entry, operation),
        "metadata": {
            "version": VERSION,
            "product": {
                "name": PRODUCT,
                "vendor_name": PRODUCT,
                "version": env!("CARGO_PKG_VERSION"),
            },
            "uid": record.id,
            "sequence": entry.index,
            "log_name": origin,
            "original_time": record.at,
            "event_code": record.kind.as_str(),
        },
        "actor": actor(entry),
        "api": api(entry, operation),
        "src_endpoint": {"svc_name": origin},
        "raw_data": entry.leaf,
    });
    if let Some(members) = event.as_object_mut() {
        add_optional(members, entry);
    }
    event
}

/// Adds what only some records have.
fn add_optional(members: &mut Map<String, Value>, entry: &TrailEntry) {
    let record = &entry.record;
    if let Some(code) = entry.code() {
        members.insert("status_code".to_owned(), json!(code.as_str()));
    }
    if let Some(phases) = &record.phases {
        let milliseconds = phases.worked_us() / 1_000;
        members.insert("duration".to_owned(), json!(milliseconds));
    }
    if let Some(count) = record.act.get("count").and_then(Value::as_u64) {
        members.insert("count".to_owned(), json!(count));
    }
    if let Some(tool) = &record.tool {
        let mut resource = Map::new();
        resource.insert("name".to_owned(), json!(tool.name));
        resource.insert("type".to_owned(), json!("tool"));
        for (name, value) in [
            ("version", tool.version.clone()),
            ("uid", tool.definition.map(|digest| digest.to_string())),
        ] {
            if let Some(value) = value {
                resource.insert(name.to_owned(), json!(value));
            }
        }
        members.insert("resources".to_owned(), json!([resource]));
    }
}

/// Describes the event in one line.
fn message(entry: &TrailEntry, operation: &str) -> String {
    let kind = if entry.is_question() {
        "question"
    } else {
        entry.record.kind.as_str()
    };
    let what = if operation == kind {
        kind.to_owned()
    } else {
        format!("{kind} {operation}")
    };
    match entry.code() {
        Some(code) => format!("{what}: {}", code.as_str()),
        None => what,
    }
}

/// The program or person who acted, and the user on whose behalf.
fn actor(entry: &TrailEntry) -> Value {
    let record = &entry.record;
    let mut actor = Map::new();
    let acting = record.actor.as_ref();
    match acting {
        Some(RecordedActor {
            kind: ActorType::Agent | ActorType::System,
            id,
        }) => {
            actor.insert("app_uid".to_owned(), json!(id));
        }
        Some(RecordedActor {
            kind: ActorType::User,
            ..
        }) => {}
        // The gateway itself did it.
        None => {
            actor.insert("app_name".to_owned(), json!(PRODUCT));
        }
    }
    let person = acting.filter(|acting| acting.kind == ActorType::User);
    let digest = record.subject.as_ref().or(person.map(|person| &person.id));
    if let Some(uid) = entry.user_id.as_ref().or(digest) {
        let mut user = Map::new();
        user.insert("uid".to_owned(), json!(uid));
        user.insert("type_id".to_owned(), json!(1));
        user.insert("type".to_owned(), json!("User"));
        if entry.user_id.is_some()
            && let Some(digest) = digest
        {
            user.insert("uid_alt".to_owned(), json!(digest));
        }
        if let Some(credential) = credential(record.credential.as_ref()) {
            user.insert("credential_uid".to_owned(), json!(credential));
        }
        actor.insert("user".to_owned(), Value::Object(user));
    }
    Value::Object(actor)
}

fn credential(credential: Option<&RecordedCredential>) -> Option<String> {
    match credential? {
        RecordedCredential::ApiKey { id } => Some(id.clone()),
        RecordedCredential::Token { issuer, id } => {
            Some(id.clone().unwrap_or_else(|| issuer.clone()))
        }
    }
}

fn api(entry: &TrailEntry, operation: &str) -> Value {
    let mut api = Map::new();
    api.insert("operation".to_owned(), json!(operation));
    api.insert("service".to_owned(), json!({"name": PRODUCT}));
    if let Some(id) = &entry.record.request_id {
        api.insert("request".to_owned(), json!({"uid": id}));
    }
    if entry.record.reply.is_some() {
        let mut response = Map::new();
        match entry.code() {
            Some(code) => {
                response.insert("error".to_owned(), json!(code.as_str()));
                response.insert("error_message".to_owned(), json!(code.summary()));
            }
            None => {
                response.insert("message".to_owned(), json!("OK"));
            }
        }
        if entry.record.dry_run {
            response.insert("flags".to_owned(), json!(["dry_run"]));
        }
        api.insert("response".to_owned(), Value::Object(response));
    }
    Value::Object(api)
}

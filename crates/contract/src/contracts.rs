//! The contract files in `contracts/`: JSON Schema of every wire type and the table of error codes,
//! made from the types themselves, for readers that are not written in Rust.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::evidence::Payload;
use crate::recording;
use crate::{
    Approval, CallRecord, ErrorBody, ErrorCode, EvidenceRecord, Grant, Issue, NewGrant, Parameter,
    ReplyEnvelope, RequestEnvelope, ToolSpec, canonical,
};

/// Every contract file: its name in `contracts/` and its text.
///
/// # Example
///
/// ```
/// let files = countersign_contract::contracts::files();
/// assert!(files.iter().any(|file| file.name == "request-envelope.schema.json"));
/// ```
pub fn files() -> Vec<ContractFile> {
    let settings = SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(first_paragraphs as fn(&mut Schema)));
    let read = settings.clone().for_deserialize();
    let written = settings.for_serialize();
    vec![
        schema::<RequestEnvelope>("request-envelope.schema.json", &read),
        schema::<ReplyEnvelope>("reply-envelope.schema.json", &written),
        schema::<ErrorBody>("error-body.schema.json", &written),
        schema::<ToolSpec>("tool-spec.schema.json", &read),
        schema::<Parameter>("parameter.schema.json", &read),
        schema::<Issue>("issue.schema.json", &written),
        schema::<CallRecord>("call-record.schema.json", &written),
        schema::<EvidenceRecord>("evidence-record.schema.json", &written),
        schema::<Payload>("evidence-payload.schema.json", &written),
        schema::<Approval>("approval.schema.json", &written),
        schema::<Grant>("grant.schema.json", &written),
        schema::<NewGrant>("new-grant.schema.json", &read),
        schema::<recording::Line>("recording-line.schema.json", &read),
        ContractFile::new("error-codes.json", &error_codes()),
    ]
}

/// One file in `contracts/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractFile {
    /// The name in the folder.
    pub name: &'static str,
    /// The whole text, with a line end last.
    pub text: String,
}

impl ContractFile {
    fn new(name: &'static str, value: &Value) -> Self {
        // Through the canonical form, so that the order of members is the same in every build.
        let sorted: Value = canonical::to_string(value)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .expect("a schema has no large numbers and little depth");
        Self {
            name,
            text: format!("{sorted:#}\n"),
        }
    }
}

fn schema<T: JsonSchema>(name: &'static str, settings: &SchemaSettings) -> ContractFile {
    let schema = settings
        .clone()
        .into_generator()
        .into_root_schema_for::<T>();
    ContractFile::new(name, schema.as_value())
}

/// Cuts a description where its sections for Rust programmers begin.
fn first_paragraphs(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description")
        && let Some(end) = description.find("\n\n# ")
    {
        description.truncate(end);
    }
}

fn error_codes() -> Value {
    ErrorCode::ALL
        .into_iter()
        .map(|code| {
            json!({
                "code": code.as_str(),
                "http_status": code.http_status(),
                "retry": code.retry().as_str(),
                "summary": code.summary(),
            })
        })
        .collect()
}

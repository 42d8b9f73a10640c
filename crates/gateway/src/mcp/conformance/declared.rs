//! The declarations of the fixture tools.

use rmcp::model::Tool;
use serde_json::{Value, json};

/// Tools without arguments, and what they do.
const PLAIN: [(&str, &str); 24] = [
    ("test_audio_content", "Answers with audio."),
    ("test_elicitation_sep1034_defaults", "Asks with defaults."),
    ("test_elicitation_sep1330_enums", "Asks with enums."),
    (
        "test_embedded_resource",
        "Answers with an embedded resource.",
    ),
    ("test_error_handling", "Answers with an error."),
    ("test_image_content", "Answers with an image."),
    (
        "test_input_required_result_capabilities",
        "Asks only what the client can answer.",
    ),
    ("test_input_required_result_elicitation", "Asks for a name."),
    ("test_input_required_result_list_roots", "Asks for roots."),
    ("test_input_required_result_multi_round", "Asks twice."),
    (
        "test_input_required_result_multiple_inputs",
        "Asks three things at once.",
    ),
    (
        "test_input_required_result_request_state",
        "Asks, and keeps its state with the client.",
    ),
    ("test_input_required_result_sampling", "Asks a model."),
    (
        "test_input_required_result_tampered_state",
        "Asks, and refuses a forged state.",
    ),
    ("test_logging_tool", "Logs where the request wants it."),
    ("test_missing_capability", "Needs a client that can sample."),
    (
        "test_multiple_content_types",
        "Answers with several kinds of content.",
    ),
    ("test_reconnection", "Takes a moment."),
    ("test_simple_text", "Answers with a text."),
    ("test_streaming_elicitation", "Asks in a stream."),
    ("test_tool_with_logging", "Logs while it runs."),
    ("test_tool_with_progress", "Reports progress."),
    ("test_trigger_prompt_change", "Changes the list of prompts."),
    ("test_trigger_tool_change", "Changes the list of tools."),
];

/// The tool with an argument that is also sent as a header.
pub(super) const IN_HEADER: &str = "test_custom_header";

/// Every fixture tool.
pub(super) fn tools() -> Vec<Tool> {
    let plain = PLAIN
        .iter()
        .filter_map(|(name, description)| tool(name, description, &json!({})));
    let text = |name: &str| json!({ name: { "type": "string" } });
    let asking = [
        tool("test_elicitation", "Asks the user.", &text("message")),
        tool("test_sampling", "Asks a model.", &text("prompt")),
    ];
    let asking = asking.into_iter().flatten();
    let region = json!({ "region": { "type": "string", "x-mcp-header": "Region" } });
    let in_header = tool(IN_HEADER, "Has an argument that is a header too.", &region);
    plain
        .chain(asking)
        .chain(in_header)
        .chain(keywords())
        .collect()
}

fn tool(name: &str, description: &str, properties: &Value) -> Option<Tool> {
    let schema = json!({
        "name": name,
        "description": description,
        "inputSchema": { "type": "object", "properties": properties, "additionalProperties": false },
    });
    serde_json::from_value(schema).ok()
}

/// A tool whose schema has every keyword that must survive a listing.
fn keywords() -> Option<Tool> {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    let tool = json!({
        "name": "json_schema_2020_12_tool",
        "description": "Shows the keywords of JSON Schema 2020-12.",
        "inputSchema": schema,
    });
    serde_json::from_value(tool).ok()
}

//! Fixed answers, and notifications on the way to one.

use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ServerNotification};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use super::made;

/// Time between two notifications, so that a client sees them one by one.
pub(super) const STEP: Duration = Duration::from_millis(50);

/// A red dot.
pub(super) const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// A moment of silence.
const AUDIO: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// A result with one text.
pub(super) fn text(text: &str) -> Value {
    json!({ "resultType": "complete", "isError": false, "content": [{ "type": "text", "text": text }] })
}

/// The answer of a tool that always gives the same one.
pub(super) fn fixed(name: &str) -> Option<Value> {
    let image = json!({ "type": "image", "data": IMAGE, "mimeType": "image/png" });
    let content = match name {
        "test_simple_text" => json!([
            { "type": "text", "text": "This is a simple text response for testing." },
        ]),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([
            { "type": "audio", "data": AUDIO, "mimeType": "audio/wav" },
        ]),
        "test_embedded_resource" => json!([embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )]),
        "test_multiple_content_types" => json!([
            { "type": "text", "text": "Multiple content types test:" },
            image,
            embedded(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#,
            ),
        ]),
        "test_error_handling" => json!([
            { "type": "text", "text": "This tool intentionally returns an error for testing" },
        ]),
        _ => return None,
    };
    let is_error = name == "test_error_handling";
    Some(json!({ "resultType": "complete", "isError": is_error, "content": content }))
}

/// An embedded resource.
pub(super) fn embedded(uri: &str, mime_type: &str, text: &str) -> Value {
    let resource = json!({ "uri": uri, "mimeType": mime_type, "text": text });
    json!({ "type": "resource", "resource": resource })
}

/// Reports three steps, where the client asked for them.
pub(super) async fn progress(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    let token = context.meta.get_progress_token();
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = &token {
            let param = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
            let told = context.peer.notify_progress(param).await;
            told.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        tokio::time::sleep(STEP).await;
    }
    Ok(())
}

/// Logs three lines, where the client wants them.
pub(super) async fn log(
    context: &RequestContext<RoleServer>,
    is_wanted: bool,
) -> Result<(), ErrorData> {
    let lines = [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ];
    for line in lines {
        if is_wanted {
            let message: ServerNotification = made(json!({
                "method": "notifications/message",
                "params": { "level": "info", "logger": "conformance", "data": line },
            }))?;
            let told = context.peer.send_notification(message).await;
            told.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        tokio::time::sleep(STEP).await;
    }
    Ok(())
}

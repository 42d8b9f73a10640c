//! Resources.

use rmcp::ErrorData;
use rmcp::model::{ListResourcesResult, ReadResourceResult, ResourceTemplate};
use serde_json::json;

use super::{content, made};

/// Every resource.
pub(in super::super) fn list() -> Result<ListResourcesResult, ErrorData> {
    let resource = |name: &str, mime_type: &str| {
        json!({
            "uri": format!("test://{name}"),
            "name": name,
            "description": "A fixture.",
            "mimeType": mime_type,
        })
    };
    let resources = json!([
        resource("static-text", "text/plain"),
        resource("static-binary", "image/png"),
        resource("watched-resource", "text/plain"),
    ]);
    made(json!({ "resultType": "complete", "resources": resources }))
}

/// The template.
pub(in super::super) fn templates() -> Result<Vec<ResourceTemplate>, ErrorData> {
    made(json!([{
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "A fixture.",
        "mimeType": "application/json",
    }]))
}

/// One resource; `None` if it isn't a fixture.
pub(in super::super) fn read(uri: &str) -> Option<Result<ReadResourceResult, ErrorData>> {
    let contents = match uri {
        "test://static-text" => json!({
            "uri": uri,
            "mimeType": "text/plain",
            "text": "This is the content of the static text resource.",
        }),
        "test://static-binary" => {
            json!({ "uri": uri, "mimeType": "image/png", "blob": content::IMAGE })
        }
        "test://watched-resource" => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "It does not change." })
        }
        _ => {
            let id = uri
                .strip_prefix("test://template/")?
                .strip_suffix("/data")?;
            let data = format!("Data for ID: {id}");
            let text = json!({ "id": id, "templateTest": true, "data": data }).to_string();
            json!({ "uri": uri, "mimeType": "application/json", "text": text })
        }
    };
    Some(made(
        json!({ "resultType": "complete", "contents": [contents] }),
    ))
}

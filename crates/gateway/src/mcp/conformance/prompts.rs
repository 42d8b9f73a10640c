//! Prompts and completions.

use rmcp::ErrorData;
use rmcp::model::{
    CompleteResult, GetPromptRequestParams, GetPromptResponse, InputRequiredResult,
    ListPromptsResult,
};
use serde_json::{Value, json};

use super::{asks, content, made};

/// Every prompt.
pub(in super::super) fn list() -> Result<ListPromptsResult, ErrorData> {
    let argument = |name: &str| json!({ "name": name, "description": name, "required": true });
    let prompts = json!([
        { "name": "test_simple_prompt", "description": "A text." },
        {
            "name": "test_prompt_with_arguments",
            "description": "A text with arguments.",
            "arguments": [argument("arg1"), argument("arg2")],
        },
        {
            "name": "test_prompt_with_embedded_resource",
            "description": "A text with a resource.",
            "arguments": [argument("resourceUri")],
        },
        { "name": "test_prompt_with_image", "description": "A text with an image." },
        { "name": "test_input_required_result_prompt", "description": "Asks for its context." },
    ]);
    made(json!({ "resultType": "complete", "prompts": prompts }))
}

/// One prompt.
pub(in super::super) fn get(
    request: &GetPromptRequestParams,
) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        let value = arguments.and_then(|arguments| arguments.get(name)?.as_str());
        value.unwrap_or_default()
    };
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            vec![text(&format!(
                "Prompt with arguments: arg1='{first}', arg2='{second}'"
            ))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = argument("resourceUri");
            let resource =
                content::embedded(uri, "text/plain", "Embedded resource content for testing.");
            vec![
                message(&resource),
                text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => {
            let image = json!({ "type": "image", "data": content::IMAGE, "mimeType": "image/png" });
            vec![message(&image), text("Please analyze the image above.")]
        }
        "test_input_required_result_prompt" => {
            let answers = request.input_responses.as_ref();
            let Some(answer) = answers.and_then(|answers| answers.get("user_context")) else {
                let question =
                    asks::form("What context should the prompt use?", "context", "string");
                let requests = made(json!({ "user_context": question }))?;
                return Ok(InputRequiredResult::from_input_requests(requests).into());
            };
            vec![text(&format!("Context: {}", answer["content"]))]
        }
        other => {
            let message = format!("there is no prompt {other:?}");
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    let result = json!({ "resultType": "complete", "messages": messages });
    made(result).map(GetPromptResponse::Complete)
}

/// Completions of an argument: always the same.
pub(in super::super) fn complete() -> Result<CompleteResult, ErrorData> {
    let completion = json!({ "values": ["paris", "park", "party"], "total": 3, "hasMore": false });
    made(json!({ "resultType": "complete", "completion": completion }))
}

fn message(content: &Value) -> Value {
    json!({ "role": "user", "content": content })
}

fn text(text: &str) -> Value {
    message(&json!({ "type": "text", "text": text }))
}

//! Fixtures that ask the client something: by `input_required` in the newer era, by a request of the
//! server's own in the older ones.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, InputRequiredResult,
    InputResponses, RequestStateCodec, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};

use super::{content, made};

/// Runs a fixture that asks.
pub(super) async fn call(
    name: &str,
    request: CallToolRequestParams,
    arguments: &Value,
    codec: &RequestStateCodec,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if let Some(question) = of_older_eras(name, arguments) {
        return ask_now(question, context).await;
    }
    if name == "test_missing_capability" {
        if !declares(context, "sampling") {
            let needed: ClientCapabilities = made(json!({ "sampling": {} }))?;
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        return complete("the client can sample");
    }
    let responses = request.input_responses.unwrap_or_default();
    let round = match &request.request_state {
        None => 0,
        Some(state) => opened(codec, state, name)?,
    };
    let (questions, keeps_state) = questions(name, round, context)?;
    let Some(questions) = questions else {
        return complete("state-ok: every question has been answered");
    };
    if is_answered(&questions, &responses) {
        if name != "test_input_required_result_multi_round" || round > 0 {
            return complete(&format!("Hello, {}!", first_text(&responses)));
        }
        let (next, _) = self::questions(name, round + 1, context)?;
        return ask_later(
            next.unwrap_or_default(),
            Some(sealed(codec, round + 1, name)),
        );
    }
    ask_later(questions, keeps_state.then(|| sealed(codec, round, name)))
}

fn complete(text: &str) -> Result<CallToolResponse, ErrorData> {
    made(content::text(text)).map(CallToolResponse::Complete)
}

fn sealed(codec: &RequestStateCodec, round: u8, name: &str) -> String {
    codec.seal(format!("{round}:{name}").as_bytes())
}

/// The round that a state belongs to. All forged ones are refused alike.
fn opened(codec: &RequestStateCodec, state: &str, name: &str) -> Result<u8, ErrorData> {
    let opened = codec.open(state).ok();
    let text = opened.and_then(|bytes| String::from_utf8(bytes).ok());
    let round = text.as_deref().and_then(|text| text.split_once(':'));
    round
        .filter(|(_, of)| *of == name)
        .and_then(|(round, _)| round.parse().ok())
        .ok_or_else(|| ErrorData::invalid_params("the requestState is not valid", None))
}

/// Questions of a round; true if the state is kept with the client.
fn questions(
    name: &str,
    round: u8,
    context: &RequestContext<RoleServer>,
) -> Result<(Option<Map<String, Value>>, bool), ErrorData> {
    let (asked, keeps_state) = match (name, round) {
        ("test_input_required_result_elicitation" | "test_streaming_elicitation", _) => (
            json!({ "user_name": form("What is your name?", "name", "string") }),
            false,
        ),
        ("test_input_required_result_sampling", _) => (
            json!({ "capital_question": sampling("What is the capital of France?", 100) }),
            false,
        ),
        ("test_input_required_result_list_roots", _) => (json!({ "client_roots": roots() }), false),
        (
            "test_input_required_result_request_state"
            | "test_input_required_result_tampered_state",
            _,
        ) => (
            json!({ "confirm": form("Please confirm", "ok", "boolean") }),
            true,
        ),
        ("test_input_required_result_multiple_inputs", _) => {
            let all = json!({
                "user_name": form("What is your name?", "name", "string"),
                "greeting": sampling("Generate a greeting", 50),
                "client_roots": roots(),
            });
            (all, true)
        }
        ("test_input_required_result_multi_round", 0) => (
            json!({ "step1": form("Step 1: What is your name?", "name", "string") }),
            true,
        ),
        ("test_input_required_result_multi_round", _) => {
            let message = "Step 2: What is your favorite color?";
            (json!({ "step2": form(message, "color", "string") }), true)
        }
        ("test_input_required_result_capabilities", _) => (answerable(context), false),
        _ => {
            let message = format!("there is no tool {name:?}");
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    Ok((asked.as_object().cloned(), keeps_state))
}

/// True if the client has declared this capability.
fn declares(context: &RequestContext<RoleServer>, capability: &str) -> bool {
    let declared = json!(context.client_capabilities());
    declared
        .get(capability)
        .is_some_and(|settings| !settings.is_null())
}

/// One question for each thing that the client has said it can answer.
fn answerable(context: &RequestContext<RoleServer>) -> Value {
    let mut asked = Map::new();
    if declares(context, "elicitation") {
        let question = form("What is your name?", "name", "string");
        asked.insert("user_name".to_owned(), question);
    }
    if declares(context, "sampling") {
        asked.insert("greeting".to_owned(), sampling("Generate a greeting", 50));
    }
    if declares(context, "roots") {
        asked.insert("client_roots".to_owned(), roots());
    }
    Value::Object(asked)
}

/// True if every question has an answer of the right form; further answers do not matter.
fn is_answered(questions: &Map<String, Value>, responses: &InputResponses) -> bool {
    questions.iter().all(|(key, question)| {
        let Some(Value::Object(answer)) = responses.get(key) else {
            return false;
        };
        match question["method"].as_str() {
            Some("elicitation/create") => answer.get("action").is_some_and(Value::is_string),
            Some("sampling/createMessage") => answer.contains_key("content"),
            Some(_) | None => answer.get("roots").is_some_and(Value::is_array),
        }
    })
}

fn first_text(responses: &InputResponses) -> String {
    let content = responses.values().next().map(|answer| &answer["content"]);
    content.map_or_else(String::new, Value::to_string)
}

fn ask_later(
    questions: Map<String, Value>,
    state: Option<String>,
) -> Result<CallToolResponse, ErrorData> {
    let requests = made(Value::Object(questions))?;
    Ok(InputRequiredResult::new(Some(requests), state).into())
}

/// A form with one question.
pub(super) fn form(message: &str, name: &str, kind: &str) -> Value {
    let schema = json!({
        "type": "object", "properties": { name: { "type": kind } }, "required": [name],
    });
    elicitation(message, &schema)
}

fn elicitation(message: &str, schema: &Value) -> Value {
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    json!({ "method": "elicitation/create", "params": params })
}

fn sampling(prompt: &str, tokens_max: u32) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    let params = json!({ "messages": [message], "maxTokens": tokens_max });
    json!({ "method": "sampling/createMessage", "params": params })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

/// Questions of the older fixtures.
fn of_older_eras(name: &str, arguments: &Value) -> Option<Value> {
    let argument = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    match name {
        "test_sampling" => Some(sampling(&argument("prompt"), 100)),
        "test_elicitation" => {
            let schema = json!({
                "type": "object",
                "properties": {
                    "username": { "type": "string", "description": "User's response" },
                    "email": { "type": "string", "description": "User's email address" },
                },
                "required": ["username", "email"],
            });
            Some(elicitation(&argument("message"), &schema))
        }
        "test_elicitation_sep1034_defaults" => {
            let schema = json!({ "type": "object", "properties": {
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": {
                    "type": "string", "enum": ["active", "inactive", "pending"], "default": "active",
                },
                "verified": { "type": "boolean", "default": true },
            }});
            Some(elicitation("Please review the defaults", &schema))
        }
        "test_elicitation_sep1330_enums" => Some(elicitation("Please choose", &enums())),
        _ => None,
    }
}

fn enums() -> Value {
    let titled = |last: &str| {
        json!([
            { "const": "value1", "title": format!("First {last}") },
            { "const": "value2", "title": format!("Second {last}") },
            { "const": "value3", "title": format!("Third {last}") },
        ])
    };
    let options = json!(["option1", "option2", "option3"]);
    json!({ "type": "object", "properties": {
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    }})
}

/// Asks the client at once and waits for its answer, which only a connection can.
async fn ask_now(
    question: Value,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let request: ServerRequest = made(question)?;
    let answer = context.peer.send_request(request).await;
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    complete(&format!("User response: {}", json!(answer)))
}

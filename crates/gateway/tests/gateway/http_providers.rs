//! A model's message in, its tool messages out, in each provider's format.

use serde_json::{Value, json};

use crate::http_client::{get, post, send};
use crate::world::World;

/// Returns one note in a provider's format.
fn message(provider: &str, text: &str) -> Value {
    match provider {
        "openai" => json!({"role": "assistant", "tool_calls": [{"id": "c_1", "type": "function",
            "function": {"name": "notes_add", "arguments": format!("{{text: '{text}',}}")}}]}),
        "openai-responses" => json!({"output": [{"type": "function_call", "call_id": "c_1",
            "name": "notes_add", "arguments": format!("{{\"text\": \"{text}\"}}")}]}),
        "anthropic" => json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c_1",
            "name": "notes_add", "input": {"text": text}}]}),
        "gemini" => json!({"role": "model", "parts": [{"functionCall":
            {"id": "c_1", "name": "notes_add", "args": {"text": text}}}]}),
        "text" => json!(format!(
            "I write it down.\n<tool_call>\n<function=notes_add>\n<parameter=text>\n{text}\n</parameter>\n</function>\n</tool_call>"
        )),
        other => panic!("{other}"),
    }
}

async fn notes(world: &World) -> usize {
    let reply = post(world, "/v1/tools/notes.list", "{}").await;
    reply.json()["data"].as_array().unwrap().len()
}

/// B15, B16: the same note over every provider, added once, however often its message is sent.
#[tokio::test]
async fn a_message_that_comes_again_runs_nothing_twice() {
    let world = World::start().await;
    for (number, provider) in ["openai", "openai-responses", "anthropic", "gemini", "text"]
        .into_iter()
        .enumerate()
    {
        let path = format!("/v1/providers/{provider}/calls");
        let message = message(provider, provider);
        let body =
            json!({"message": message, "envelope": {"idempotency_key": provider}}).to_string();
        let first = post(&world, &path, &body).await;
        assert_eq!(first.status, 200, "{first:?}");
        let id = if provider == "text" { "call_" } else { "c_1" };
        assert!(first.body.contains(id), "{first:?}");
        let again = send(
            &world,
            "POST",
            &path,
            &[("idempotency-key", provider)],
            &message.to_string(),
        )
        .await;
        assert!(again.body.contains("stored answer"), "{again:?}");
        assert_eq!(notes(&world).await, number + 1, "{provider}");
    }
}

/// B15: several calls in one text, in the answer of a server that does not parse them; one that was cut off is answered and
/// not run, and thinking without its end is refused.
#[tokio::test]
async fn calls_that_are_written_as_text_are_run() {
    let world = World::start().await;
    let answer = |content: &str| {
        json!({"model": "qwen-x", "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": content}}]})
        .to_string()
    };
    let both = "<think>two things</think>\n<tool_call>{\"name\": \"memory_search\", \"arguments\": {query: 'milk'}}</tool_call>\n\
        <tool_call>{\"name\": \"nothing_such\", \"arguments\": {}}</tool_call>";
    let path = "/v1/providers/text/calls";
    let messages = post(&world, path, &answer(both)).await.json();
    let content =
        |messages: &Value, at: usize| messages[at]["content"].as_str().unwrap().to_owned();
    assert!(content(&messages, 0).contains("buy milk"), "{messages}");
    assert_eq!(messages[0]["name"], "memory_search");
    assert!(content(&messages, 1).contains("NOT_FOUND"), "{messages}");

    let cut = "<invoke name=\"notes_add\">\n<parameter name=\"text\">half a no";
    let messages = post(&world, path, &answer(cut)).await.json();
    assert!(
        content(&messages, 0).contains("INVALID_ARGUMENT"),
        "{messages}"
    );
    assert_eq!(notes(&world).await, 0);

    let thinking = post(&world, path, &answer("<think>I could call notes_add with")).await;
    assert_eq!(thinking.status, 400, "{thinking:?}");
    assert!(thinking.body.contains("INVALID_ARGUMENT"), "{thinking:?}");
    let prose = post(
        &world,
        path,
        &json!({"text": "There is nothing to do."}).to_string(),
    )
    .await;
    assert_eq!(prose.json(), json!([]));
    let metrics = get(&world, "/metrics").await.body;
    let line = "countersign_bindings_total{tool=\"memory.search\",client=\"local\",model=\"qwen-x\",outcome=\"repaired\"} 1";
    assert!(metrics.contains(line), "{metrics}");
    // B19: thinking without its end is counted.
    let line = "countersign_bindings_total{tool=\"unknown\",client=\"unknown\",model=\"qwen-x\",outcome=\"incomplete\"} 1";
    assert!(metrics.contains(line), "{metrics}");
}

/// B15: a message whose calls its server has not read is not answered with nothing.
#[tokio::test]
async fn calls_in_the_text_of_another_dialect_are_pointed_out() {
    let world = World::start().await;
    let call = "<tool_call>{\"name\": \"memory_search\", \"arguments\": {\"query\": \"milk\"}}</tool_call>";
    for (content, is_warned) in [(call, true), ("There is nothing to do.", false)] {
        let body = json!({"role": "assistant", "content": content}).to_string();
        let answer = post(&world, "/v1/providers/openai/calls", &body).await;
        assert_eq!(answer.json(), json!([]));
        assert_eq!(answer.header("warning").is_some(), is_warned, "{answer:?}");
    }
}

/// The complete official form of a provider's answer, not only the message inside it.
#[tokio::test]
async fn a_whole_answer_is_read() {
    let world = World::start().await;
    let answer = json!({"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": [
    {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": null, "tool_calls": [
        {"id": "c_1", "type": "function", "function": {"name": "memory_search", "arguments": "{\"query\": \"milk\"}"}},
        {"id": "c_2", "type": "function", "function": {"name": "nothing_such", "arguments": "{}"}},
    ]}}]});
    let body = json!({"message": answer, "envelope": {"request_id": "r_9", "user_id": "u_7"}});
    let messages = post(&world, "/v1/providers/openai/calls", &body.to_string())
        .await
        .json();
    assert_eq!(messages[0]["tool_call_id"], "c_1");
    assert!(
        messages[0]["content"]
            .as_str()
            .unwrap()
            .contains("buy milk")
    );
    assert!(
        messages[1]["content"]
            .as_str()
            .unwrap()
            .contains("NOT_FOUND")
    );
    let recorded = get(&world, "/v1/calls/r_9.1").await.json();
    assert_eq!(
        recorded["records"][0]["record"]["tool"]["name"],
        "memory.search"
    );
    let calls = get(&world, "/v1/calls?user=u_7").await.json();
    assert_eq!(calls["calls"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_message_without_calls_has_no_tool_messages() {
    let world = World::start().await;
    let body = r#"{"role": "assistant", "content": "hello"}"#;
    let answer = post(&world, "/v1/providers/openai/calls", body).await;
    assert_eq!((answer.status, answer.json()), (200, json!([])));
}

#[tokio::test]
async fn mistakes_are_explained() {
    let world = World::start().await;
    let check = async |path: &str, body: &str| post(&world, path, body).await.told();
    let openai = "/v1/providers/openai/calls";
    insta::assert_snapshot!(check("/v1/providers/opnai/calls", "{}").await, @r#"404 NOT_FOUND : there is no provider "opnai"; did you mean openai?"#);
    insta::assert_snapshot!(check("/v1/providers/mcp/calls", "{}").await, @r#"404 NOT_FOUND : there is no provider "mcp"; allowed are: openai, openai-responses, anthropic, gemini, text"#);
    insta::assert_snapshot!(check(openai, "{]").await, @"400 INVALID_ARGUMENT : the message is not JSON, see line 1 column 2; send the message as the API of openai has returned it");
    insta::assert_snapshot!(check(openai, r#"{"envelope": {}}"#).await, @r#"400 INVALID_ARGUMENT : there is an envelope and no message; send the message alone, or {"message": …, "envelope": {…}}"#);
    insta::assert_snapshot!(check(openai, r#"{"envelope": {}, "message": {}, "key": 1}"#).await, @r#"400 INVALID_ARGUMENT : "key" stands beside the message and its envelope; send the message alone, or {"message": …, "envelope": {…}}"#);
    insta::assert_snapshot!(check(openai, r#"{"envelope": {"usr": 1}, "message": {}}"#).await, @r#"400 INVALID_ARGUMENT /envelope/usr: "usr" is not a member of a call; did you mean user_id?"#);
    insta::assert_snapshot!(check(openai, r#"{"envelope": {"user_id": 1}, "message": {}}"#).await, @"400 INVALID_ARGUMENT /envelope/user_id: user_id is not a string; correct it, leave it out, or send null");
    insta::assert_snapshot!(check(openai, r#"{"role": "assistant", "tool_calls": 7}"#).await, @r#"400 INVALID_ARGUMENT /tool_calls: "/tool_calls" should be a list and is a number; send the message as the API of openai has returned it"#);
}

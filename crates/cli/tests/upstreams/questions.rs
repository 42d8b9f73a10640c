//! Questions of a real server of an older era, the TypeScript SDK, for a client of 2026-07-28: the call waits between two requests of the client.

use serde_json::{Value, json};

use super::installation::{Installation, NEW, Served, message, result_of};

/// A gateway in front of the server of the SDK.
fn serve(own: &Installation, rest: &str) -> Served {
    let folder = std::env::var("COUNTERSIGN_TEST_MCP_NODE").unwrap_or_else(|_| {
        panic!("COUNTERSIGN_TEST_MCP_NODE is not set; `cargo xtask test` installs what it names, see xtask/src/clients.rs")
    });
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../upstream/tests/mcp/sdk_server.mjs"
    );
    let command = json!(["node", script, folder]);
    let text = format!(
        "[[upstream]]\nname = 'ts'\nkind = 'mcp'\ntrust = 'first_use'\nconnections.start_ms = 120000\ncommand = {command}\n{rest}"
    );
    std::fs::write(own.path("countersign.toml"), text).unwrap();
    let served = own.serve();
    // The watchdog ends a wait that does not end.
    while !served.ask("GET", "/v1/tools", &[], "").contains("ts.ask") {
        std::thread::yield_now();
    }
    served
}

/// Asks a question through the tool; or goes on with a call that waits, with an answer if there is one.
fn ask(served: &Served, question: &str, state: Option<&Value>, answer: Option<Value>) -> String {
    let mut params = json!({
        "_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}},
        "name": "ts_ask", "arguments": {"question": question},
    });
    if let Some(state) = state {
        params["requestState"] = state.clone();
    }
    if let Some(answer) = answer {
        params["inputResponses"] = json!({ "question": answer });
    }
    let (headers, body) = message(NEW, "tools/call", &params);
    served.ask("POST", "/mcp", &headers, &body)
}

/// The state that comes with the question of the server.
fn asked(served: &Served, question: &str) -> Value {
    let mut result = result_of(&ask(served, question, None, None));
    assert_eq!(result["resultType"], "input_required", "{result}");
    let request = &result["inputRequests"]["question"];
    assert_eq!(request["method"], "elicitation/create", "{result}");
    assert_eq!(request["params"]["message"], question, "{result}");
    let schema = &request["params"]["requestedSchema"];
    assert_eq!(schema["required"], json!(["name"]), "{result}");
    result["requestState"].take()
}

/// Each question reaches the client as `input_required`, its answer reaches the server, and the call runs once. If the client declines, or comes back
/// without an answer, the server gets a refusal.
#[test]
fn a_question_of_an_older_server_is_answered_with_the_next_request() {
    let own = Installation::new();
    let served = serve(&own, "");
    let accepted = json!({"action": "accept", "content": {"name": "Ann"}});
    for (question, answer, told) in [
        ("Your name?", Some(accepted), "run 1: accept Ann"),
        (
            "And hers?",
            Some(json!({"action": "decline"})),
            "run 2: decline ",
        ),
        ("And his?", None, "run 3: decline "),
    ] {
        let state = asked(&served, question);
        let result = result_of(&ask(&served, question, Some(&state), answer.clone()));
        assert_eq!(result["resultType"], "complete", "{result}");
        assert_eq!(result["isError"], false, "{result}");
        assert_eq!(result["content"][0]["text"], told, "{result}");
        // The state counts once.
        let again = ask(&served, question, Some(&state), answer);
        assert!(again.contains("-32602"), "{again}");
    }
}

/// A client that comes back too late gets the error of its call, which has ended by its own time limit. The effect is in doubt, so the same call does not
/// run again.
#[test]
fn a_question_that_is_answered_too_late_has_timed_out() {
    let own = Installation::new();
    let served = serve(&own, "timeouts.attempt_ms = 3000\n");
    let state = asked(&served, "Your name?");
    // The watchdog ends a wait that does not end.
    while !served
        .ask("GET", "/v1/calls?tool=ts.ask", &[], "")
        .contains("TIMEOUT")
    {
        std::thread::yield_now();
    }
    let accepted = json!({"action": "accept", "content": {"name": "Ann"}});
    let result = result_of(&ask(&served, "Your name?", Some(&state), Some(accepted)));
    let code = |result: &Value| result["_meta"]["dev.countersign/error"]["code"].clone();
    assert_eq!(code(&result), "TIMEOUT", "{result}");
    assert_eq!(result["isError"], true, "{result}");
    let again = result_of(&ask(&served, "Your name?", None, None));
    assert_eq!(code(&again), "CONFLICT", "{again}");
}

/// An address that the user of a server of an older era has to visit first reaches a client of 2026-07-28 as a question, and the call is made when the
/// client comes back.
#[test]
fn an_address_is_visited_before_the_call() {
    let own = Installation::new();
    let mut words = own.server_words();
    words.push("--offers".to_owned());
    let text = format!(
        "[[upstream]]\nname = 'plain'\nkind = 'mcp'\ntrust = 'first_use'\ncommand = {}\n",
        json!(words)
    );
    std::fs::write(own.path("countersign.toml"), text).unwrap();
    let served = own.serve();
    // The watchdog ends a wait that does not end.
    while !served
        .ask("GET", "/v1/tools", &[], "")
        .contains("plain.visit")
    {
        std::thread::yield_now();
    }
    let visit = |more: Value| {
        let mut params = json!({
            "_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}}},
            "name": "plain_visit", "arguments": {},
        });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let (headers, body) = message(NEW, "tools/call", &params);
        result_of(&served.ask("POST", "/mcp", &headers, &body))
    };
    let asked = visit(json!({}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let request = &asked["inputRequests"]["grant-1"];
    assert_eq!(request["params"]["mode"], "url", "{asked}");
    assert_eq!(
        request["params"]["url"], "https://example.com/grant",
        "{asked}"
    );
    std::fs::write(own.path("world/visited"), "").unwrap();
    let answers = json!({"grant-1": {"action": "accept"}});
    let done = visit(json!({"requestState": asked["requestState"], "inputResponses": answers}));
    assert_eq!(done["content"][0]["text"], "welcome", "{done}");
}

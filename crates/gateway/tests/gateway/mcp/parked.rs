//! Questions of a server of an older era, for a client of the newest one: the call waits between two requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::dialogue::Dialogue;
use countersign::{CallContext, Tool, ToolArgs, ToolError, tool};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Modern;
use crate::world::World;

/// A tool that asks while it runs, as the tools of a server of the older eras do.
struct Greet {
    runs: Arc<AtomicUsize>,
}

#[derive(Deserialize, ToolArgs)]
struct GreetArgs {
    /// Questions to ask.
    questions: Vec<String>,
}

impl Tool for Greet {
    const NAME: &'static str = "hall.greet";
    const DESCRIPTION: &'static str = "Greets by the answers.";
    type Args = GreetArgs;
    type Output = Vec<String>;

    async fn call(&self, ctx: &CallContext, args: GreetArgs) -> Result<Vec<String>, ToolError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let dialogue = ctx.extension::<Arc<Dialogue>>().cloned();
        let mut told = Vec::new();
        for question in args.questions {
            let request = json!({"method": "elicitation/create", "params": {
                "mode": "form", "message": question,
                "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
            }});
            let answer = match &dialogue {
                Some(dialogue) => dialogue.ask(request).await,
                None => None,
            };
            told.push(answer.map_or("declined".to_owned(), |answer| {
                answer["content"]["name"]
                    .as_str()
                    .unwrap_or("none")
                    .to_owned()
            }));
        }
        Ok(told)
    }
}

fn greet(questions: &[&str], state: Option<&Value>, name: Option<&str>) -> Value {
    let mut params = json!({
        "_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}},
        "name": "hall_greet", "arguments": {"questions": questions},
    });
    if let Some(state) = state {
        params["requestState"] = state.clone();
    }
    if let Some(name) = name {
        let answer = json!({"action": "accept", "content": {"name": name}});
        params["inputResponses"] = json!({ "question": answer });
    }
    params
}

async fn world() -> (World, Arc<AtomicUsize>) {
    let world = World::start().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let own = Greet { runs: runs.clone() };
    let catalog = world.gateway.executor().catalog();
    catalog.add(tool::erase(own).unwrap()).unwrap();
    (world, runs)
}

/// The message of the question, and the state that comes with it.
fn asked(answer: &Value) -> (&Value, &Value) {
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let question = &result["inputRequests"]["question"]["params"]["message"];
    (question, &result["requestState"])
}

/// A call asks twice, is answered twice, and runs once.
#[tokio::test]
async fn a_call_asks_over_several_requests_and_runs_once() {
    let (world, runs) = world().await;
    let client = Modern::new(&world);
    let questions = ["Your name?", "And hers?"];
    let (_, first) = client
        .ask("tools/call", greet(&questions, None, None))
        .await;
    let (question, state) = asked(&first);
    assert_eq!(question, "Your name?");
    let (_, second) = client
        .ask("tools/call", greet(&questions, Some(state), Some("Ann")))
        .await;
    let (question, state) = asked(&second);
    assert_eq!(question, "And hers?");
    // Another call does not get the answer, and the one that waits is not disturbed.
    let (_, refused) = client
        .ask("tools/call", greet(&["Other?"], Some(state), Some("Eve")))
        .await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let (_, done) = client
        .ask("tools/call", greet(&questions, Some(state), Some("Bea")))
        .await;
    assert_eq!(
        done["result"]["content"][0]["text"], r#"["Ann","Bea"]"#,
        "{done}"
    );
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    // The state counts once: the call has ended.
    let (_, again) = client
        .ask("tools/call", greet(&questions, Some(state), Some("Bea")))
        .await;
    assert_eq!(again["error"]["code"], -32602, "{again}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// A client that comes back without an answer declines.
#[tokio::test]
async fn a_question_without_an_answer_is_declined() {
    let (world, _) = world().await;
    let client = Modern::new(&world);
    let (_, first) = client
        .ask("tools/call", greet(&["Your name?"], None, None))
        .await;
    let (_, state) = asked(&first);
    let (_, done) = client
        .ask("tools/call", greet(&["Your name?"], Some(state), None))
        .await;
    assert_eq!(
        done["result"]["content"][0]["text"], r#"["declined"]"#,
        "{done}"
    );
}

//! Questions and messages of a server while a call runs; its resources and prompts.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign::dialogue::{Asks, Dialogue, Left, Said};
use countersign::offer::{Asked, Listed, Offers as _, Refused, Request};
use countersign::{Principal, ToolCall};
use countersign_testkit::patience::within;
use serde_json::{Value, json};

use crate::world::{World, folder, plain};

async fn world(rest: &str) -> World {
    let folder = folder();
    let manifest = plain(folder.path(), ", '--offers'", rest);
    World::new(folder, &manifest).await
}

/// A question of a server reaches the caller of the call, and the answer reaches the server; messages reach the caller as well. A caller who
/// cannot be asked declines.
#[tokio::test]
async fn a_question_reaches_the_caller_and_the_answer_the_server() {
    let world = world("").await;
    let (dialogue, mut said) = Dialogue::new(json!({"elicitation": {}})).line(Asks::Now);
    let call = ToolCall::new("plain.ask", "{}", Principal::user("ann"));
    let running = world.executor.execute(call.extension(Arc::new(dialogue)));
    let caller = async {
        let mut messages = Vec::new();
        while let Some(own) = said.recv().await {
            match own {
                Said::Message(message) => messages.push(message["params"]["data"].clone()),
                Said::Question(question, answer) => {
                    assert_eq!(question["method"], "elicitation/create", "{question}");
                    assert_eq!(question["params"]["message"], "Your name?");
                    let given = json!({"action": "accept", "content": {"name": "Ann"}});
                    answer.send(given).unwrap();
                }
            }
        }
        messages
    };
    let (reply, messages) = within(async { tokio::join!(running, caller) }).await;
    assert!(reply.ok, "{reply:#?}");
    let told: Value = serde_json::from_str(reply.data.as_str().unwrap()).unwrap();
    assert_eq!(
        told,
        json!({"action": "accept", "content": {"name": "Ann"}})
    );
    assert_eq!(messages, [json!("asking")]);

    let told = world.data("plain.ask", "{}").await;
    let told: Value = serde_json::from_str(told.as_str().unwrap()).unwrap();
    assert_eq!(told, json!({"action": "decline"}));
    world.upstreams.close().await;
}

/// Resources and prompts are listed with the server's name in front, and what is asked for reaches it under its own name; a caller who may call
/// none of its tools sees none of them.
#[tokio::test]
async fn resources_and_prompts_have_the_prefix() {
    let world = world("").await;
    let ann = Principal::user("ann");
    let ann = world.executor.context_outside_calls(&ann).await.unwrap();
    let tools: BTreeSet<String> = ["plain.say".to_owned()].into();
    let ask = async |tools: &BTreeSet<String>, asked: Asked, params: Value| {
        let request = Request {
            context: &ann,
            tools,
            dialogue: None,
            asked,
            params,
        };
        within(world.upstreams.ask(request)).await
    };
    let list = |kind: Listed, key: &str| {
        let listed = world.upstreams.list(kind, &tools);
        let texts = listed
            .iter()
            .map(|item| item[key].as_str().unwrap().to_owned());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(
        list(Listed::Resources, "uri"),
        ["upstream://plain/notes://today"]
    );
    assert_eq!(list(Listed::Resources, "name"), ["plain.today"]);
    assert_eq!(
        list(Listed::Templates, "uriTemplate"),
        ["upstream://plain/notes://{day}"]
    );
    assert_eq!(list(Listed::Prompts, "name"), ["plain.greet"]);

    let uri = json!({"uri": "upstream://plain/notes://monday"});
    let read = ask(&tools, Asked::Read, uri.clone()).await.unwrap();
    let expected =
        json!([{"uri": "upstream://plain/notes://monday", "text": "the text of notes://monday"}]);
    assert_eq!(read["contents"], expected, "{read}");
    let params = json!({"name": "plain.greet", "arguments": {"who": "Ann"}});
    let prompt = ask(&tools, Asked::Prompt, params).await.unwrap();
    assert_eq!(
        prompt["messages"][0]["content"]["text"], "greet Ann",
        "{prompt}"
    );
    let params = json!({"ref": {"type": "ref/prompt", "name": "plain.greet"}, "argument": {"name": "who", "value": "A"}});
    let completed = ask(&tools, Asked::Complete, params).await.unwrap();
    let values = completed["completion"]["values"][0].as_str().unwrap();
    assert!(values.contains("\"greet\""), "{completed}");

    let none = BTreeSet::new();
    assert_eq!(
        world.upstreams.list(Listed::Resources, &none),
        [Value::Null; 0]
    );
    assert_eq!(ask(&none, Asked::Read, uri).await, Err(Refused::Unknown));
    let other = json!({"uri": "upstream://other/notes://monday"});
    assert_eq!(ask(&tools, Asked::Read, other).await, Err(Refused::Unknown));
    world.upstreams.close().await;
}

/// B17: the lists of a server whose credential is the user's own are made with the gateway's, and what is read is read with the token of the
/// user who asks. A user without a token gets an error, and nothing is sent.
#[tokio::test]
async fn resources_are_read_with_the_users_own_token() {
    let world = world("user_env = 'TOKEN'\n").await;
    let tools: BTreeSet<String> = ["plain.say".to_owned()].into();
    let listed = world.upstreams.list(Listed::Resources, &tools);
    assert_eq!(listed[0]["uri"], "upstream://plain/notes://today");
    let read = async |user: &str| {
        let user = Principal::user(user);
        let context = world.executor.context_outside_calls(&user).await.unwrap();
        let request = Request {
            context: &context,
            tools: &tools,
            dialogue: None,
            asked: Asked::Read,
            params: json!({"uri": "upstream://plain/notes://today"}),
        };
        within(world.upstreams.ask(request)).await
    };
    for (user, token) in [("ann", "anns-token-7f3a"), ("bob", "bobs-token-91c2")] {
        let arguments = json!({"upstream": "plain", "token": token}).to_string();
        let kept = world
            .call_of(user, "upstream.store_token", &arguments, None)
            .await;
        assert!(kept.ok, "{kept:?}");
        let answer = read(user).await.unwrap();
        let text = answer["contents"][0]["text"].as_str().unwrap();
        assert_eq!(text, "the text of notes://today");
    }
    assert_eq!(world.lines("read"), ["anns-token-7f3a", "bobs-token-91c2"]);
    let refused = read("cleo").await.unwrap_err();
    let Refused::Protocol { message, .. } = &refused else {
        panic!("{refused:?}");
    };
    assert!(message.contains("has not stored a token"), "{message}");
    assert_eq!(world.lines("read").len(), 2);
    world.upstreams.close().await;
}

/// One server can do without a prefix; the names of its tools are its own.
#[tokio::test]
async fn one_server_can_do_without_a_prefix() {
    let world = world("prefix = false\n[[tool]]\nname = 'say'\neffect = 'read'\n").await;
    assert_eq!(world.data("say", r#"{"text": "hi"}"#).await, json!("hi"));
    let effect = world.catalog.get("say").unwrap().spec().behaviour.effect;
    assert_eq!(effect.as_str(), "read");
    let tools: BTreeSet<String> = ["say".to_owned()].into();
    let listed = world.upstreams.list(Listed::Resources, &tools);
    assert_eq!(listed[0]["uri"], "notes://today", "{listed:?}");
    world.upstreams.close().await;
}

/// A resource that an answer or a prompt links to, or embeds, has the address that the caller can read it by. An address of the web stays.
#[tokio::test]
async fn links_in_answers_can_be_read() {
    let world = world("").await;
    let data = world.data("plain.links", "{}").await;
    let blocks = data["content"].as_array().unwrap();
    assert_eq!(blocks[1]["uri"], "upstream://plain/notes://today", "{data}");
    let embedded = &blocks[2]["resource"];
    assert_eq!(embedded["uri"], "upstream://plain/notes://monday", "{data}");
    assert_eq!(blocks[3]["uri"], "https://example.com/a", "{data}");

    let ann = Principal::user("ann");
    let ann = world.executor.context_outside_calls(&ann).await.unwrap();
    let tools: BTreeSet<String> = ["plain.say".to_owned()].into();
    let ask = async |asked: Asked, params: Value| {
        let request = Request {
            context: &ann,
            tools: &tools,
            dialogue: None,
            asked,
            params,
        };
        within(world.upstreams.ask(request)).await.unwrap()
    };
    let params = json!({"name": "plain.greet", "arguments": {"who": "links"}});
    let prompt = ask(Asked::Prompt, params).await;
    let links = prompt["messages"].as_array().unwrap().iter();
    let links: Vec<&Value> = links.map(|message| &message["content"]).collect();
    assert_eq!(links[0]["uri"], "upstream://plain/notes://today");
    assert_eq!(
        links[1]["resource"]["uri"],
        "upstream://plain/notes://monday"
    );
    assert_eq!(links[2]["uri"], "https://example.com/a");
    let read = ask(Asked::Read, json!({"uri": links[0]["uri"]})).await;
    assert_eq!(read["contents"][0]["text"], "the text of notes://today");
    world.upstreams.close().await;
}

/// A server of an older era that needs its user to visit an address first: the client gets the error with the address in its own era, and the
/// address as a question in the newest one. A client that cannot show an address gets neither.
#[tokio::test]
async fn an_address_to_visit_reaches_the_client() {
    let world = world("").await;
    let visit = async |dialogue: Dialogue| {
        let dialogue = Arc::new(dialogue);
        let call = ToolCall::new("plain.visit", "{}", Principal::user("ann"));
        let call = call.extension(dialogue.clone());
        let reply = within(world.executor.execute(call)).await;
        assert!(!reply.ok, "{reply:?}");
        dialogue.take()
    };
    let able = json!({"elicitation": {"url": {}}});
    let asked = json!({"mode": "url", "elicitationId": "grant-1", "url": "https://example.com/grant", "message": "Grant it."});
    let (older, _said) = Dialogue::new(able.clone()).line(Asks::Now);
    let Some(Left::Refusal { code, data, .. }) = visit(older).await else {
        panic!("no error");
    };
    assert_eq!(code, -32_042);
    assert_eq!(data, Some(json!({ "elicitations": [asked] })));

    let (newer, _said) = Dialogue::new(able).line(Asks::Later);
    let Some(Left::Questions(questions)) = visit(newer).await else {
        panic!("no question");
    };
    let expected = json!({"method": "elicitation/create", "params": asked});
    assert_eq!(
        questions.requests,
        [("grant-1".to_owned(), expected)].into()
    );

    let unable = json!({"elicitation": {"form": {}}});
    assert_eq!(visit(Dialogue::new(unable)).await, None);
    world.upstreams.close().await;
}

/// A caller hears from the server that the user has done what an address asked for.
#[tokio::test]
async fn a_caller_hears_that_an_address_was_visited() {
    let world = world("").await;
    std::fs::write(world.folder.path().join("visited"), "").unwrap();
    let (dialogue, mut said) = Dialogue::new(json!({"elicitation": {"url": {}}})).line(Asks::Now);
    let call = ToolCall::new("plain.ask", "{}", Principal::user("ann"));
    let running = world.executor.execute(call.extension(Arc::new(dialogue)));
    let caller = async {
        let mut heard = Vec::new();
        while let Some(own) = said.recv().await {
            match own {
                Said::Message(message) => heard.push(message),
                Said::Question(_, answer) => answer.send(json!({"action": "decline"})).unwrap(),
            }
        }
        heard
    };
    let (reply, heard) = within(async { tokio::join!(running, caller) }).await;
    assert!(reply.ok, "{reply:?}");
    let visited = json!({
        "method": "notifications/elicitation/complete", "params": {"elicitationId": "grant-1"},
    });
    assert!(heard.contains(&visited), "{heard:?}");
    world.upstreams.close().await;
}

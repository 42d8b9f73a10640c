//! Confirmations by a user, asked over the protocol (A13).

use std::sync::Arc;

use countersign::approve::{Response, Wanted};
use countersign::contract::tool::{AmountUnit, Ceiling, Confirmation, Narrowing, Terms};
use countersign::contract::{Actor, ActorType, Behaviour};
use countersign::{CallContext, Principal, Question, Tool, ToolArgs, ToolError, tool};
use countersign_gateway::Settings;
use countersign_gateway::caller::{Caller, Proof};
use insta::assert_json_snapshot;
use serde::Deserialize;
use serde_json::{Value, json};

use super::lines::Lines;
use crate::world::World;

/// A tool that runs only if the user has confirmed.
struct Wipe;

#[derive(Deserialize, ToolArgs)]
struct WipeArgs {
    /// What to wipe.
    disk: String,
}

impl Tool for Wipe {
    const NAME: &'static str = "disk.wipe";
    const DESCRIPTION: &'static str = "Wipes a disk.";
    type Args = WipeArgs;
    type Output = String;

    fn behaviour() -> Behaviour {
        Behaviour {
            confirmation: Confirmation::Always,
            ..Behaviour::default()
        }
    }

    async fn call(&self, _: &CallContext, args: WipeArgs) -> Result<String, ToolError> {
        Ok(format!("{} is empty", args.disk))
    }
}

/// A tool that spends, in cents.
struct Buy;

#[derive(Deserialize, ToolArgs)]
struct BuyArgs {
    /// How much, in the smallest unit.
    amount: i64,
    /// Of which currency.
    currency: String,
}

impl Tool for Buy {
    const NAME: &'static str = "shop.buy";
    const DESCRIPTION: &'static str = "Buys it.";
    type Args = BuyArgs;
    type Output = String;

    fn behaviour() -> Behaviour {
        Behaviour {
            confirmation: Confirmation::Terms(Terms {
                exact: Vec::new(),
                ceiling: Ceiling {
                    amount: "/amount".to_owned(),
                    currency: "/currency".to_owned(),
                    unit: AmountUnit::Minor,
                },
            }),
            ..Behaviour::default()
        }
    }

    async fn call(&self, _: &CallContext, args: BuyArgs) -> Result<String, ToolError> {
        Ok(format!("{} {}", args.amount, args.currency))
    }
}

/// A tool whose amount an approver may lower.
struct Give;

#[derive(Deserialize, ToolArgs)]
struct GiveArgs {
    /// How much.
    #[arg(min = 1, max = 1000)]
    amount: i64,
}

impl Tool for Give {
    const NAME: &'static str = "alms.give";
    const DESCRIPTION: &'static str = "Gives it away.";
    type Args = GiveArgs;
    type Output = String;

    fn behaviour() -> Behaviour {
        Behaviour {
            confirmation: Confirmation::Always,
            narrowing: vec![Narrowing::lower("/amount")],
            ..Behaviour::default()
        }
    }

    async fn call(&self, _: &CallContext, args: GiveArgs) -> Result<String, ToolError> {
        Ok(format!("{} given", args.amount))
    }

    async fn question(
        &self,
        _: &CallContext,
        args: GiveArgs,
    ) -> Result<Option<Question>, ToolError> {
        let question = Question::new(format!("Give {} away", args.amount));
        Ok(Some(
            question
                .line("To", "the poor")
                .irreversible("given is given"),
        ))
    }
}

/// A tool with a list from which an approver may remove items.
struct Invite;

#[derive(Deserialize, ToolArgs)]
struct InviteArgs {
    /// Whom.
    #[arg(max_items = 5)]
    guests: Vec<String>,
    /// How many each may bring.
    #[arg(min = 0, max = 9)]
    bring: i64,
}

impl Tool for Invite {
    const NAME: &'static str = "party.invite";
    const DESCRIPTION: &'static str = "Invites guests.";
    type Args = InviteArgs;
    type Output = String;

    fn behaviour() -> Behaviour {
        Behaviour {
            confirmation: Confirmation::Always,
            narrowing: vec![Narrowing::fewer("/guests"), Narrowing::lower("/bring")],
            ..Behaviour::default()
        }
    }

    async fn call(&self, _: &CallContext, args: InviteArgs) -> Result<String, ToolError> {
        Ok(format!(
            "{} with {} each",
            args.guests.join(", "),
            args.bring
        ))
    }
}

/// A13: a form has no field for a list, so the question says where items can be removed, and that works.
#[tokio::test]
async fn a_user_is_told_where_lists_are_narrowed() {
    let (world, mut lines) = connect(ActorType::User).await;
    let invite = || {
        let mut invite = wipe("");
        invite["name"] = json!("party_invite");
        invite["arguments"] = json!({ "guests": ["ann", "bob"], "bring": 2 });
        invite
    };
    let asked = lines.ask("tools/call", invite()).await;
    let form = &asked["result"]["inputRequests"]["confirmation"]["params"];
    let fields = form["requestedSchema"]["properties"].as_object().unwrap();
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["/bring", "confirm"]);
    let user = Principal::user("u_1");
    let approvals = world.gateway.executor().approvals();
    let open = approvals.list(&user, &Wanted::default()).await.unwrap();
    let id = &open[0].id;
    let expected = format!(
        "this form cannot reduce /guests. To reduce them, do not confirm here; use `countersign approvals approve {id} --narrow POINTER=VALUE`, or POST /v1/approvals/{id} with `narrowed`"
    );
    let told = form["message"].as_str().unwrap().lines().last();
    assert_eq!(told, Some(expected.as_str()));
    let fewer = Response {
        narrowed: [("/guests".to_owned(), json!(["bob"]))].into(),
        ..Response::approve()
    };
    approvals.decide(id, &user, &fewer).await.unwrap();
    let done = lines.ask("tools/call", invite()).await;
    let text = done["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("bob with 2 each"), "{done}");
}

fn give(amount: i64) -> Value {
    let mut give = wipe("");
    give["name"] = json!("alms_give");
    give["arguments"] = json!({ "amount": amount });
    give
}

/// U2: the form shows the tool's text, and has a field for the amount that may be lowered; the call runs with
/// the lower value.
#[tokio::test]
async fn a_user_lowers_an_amount() {
    let (_world, mut lines) = connect(ActorType::User).await;
    let asked = lines.ask("tools/call", give(150)).await;
    let form = &asked["result"]["inputRequests"]["confirmation"]["params"];
    assert_eq!(
        form["message"],
        "alms.give: Gives it away.\nGive 150 away\nTo: the poor\ncannot be undone: given is given\n{\"amount\":150}"
    );
    let field = &form["requestedSchema"]["properties"]["/amount"];
    assert_eq!(
        (&field["type"], &field["maximum"]),
        (&json!("number"), &json!(150.0))
    );
    // A higher value than requested is not an answer.
    let more = answered(
        give(150),
        &asked,
        &json!({ "confirm": true, "/amount": 151 }),
    );
    let told = lines.ask("tools/call", more).await;
    let code = &told["result"]["_meta"]["dev.countersign/error"]["code"];
    assert_eq!(code, "NEEDS_USER_CONFIRMATION", "{told}");
    let asked = lines.ask("tools/call", give(150)).await;
    let less = answered(
        give(150),
        &asked,
        &json!({ "confirm": true, "/amount": 100 }),
    );
    let done = lines.ask("tools/call", less).await;
    let text = done["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("100 given"), "{done}");
}

/// The older eras have the same form.
#[tokio::test]
async fn a_user_of_the_older_eras_lowers_an_amount() {
    let (_world, mut lines) = connect(ActorType::User).await;
    lines.initialize(json!({ "elicitation": {} })).await;
    let call = json!({ "name": "alms_give", "arguments": { "amount": 150 } });
    let id = lines.send("tools/call", call).await;
    let question = lines.next().await;
    let answer = json!({ "action": "accept", "content": { "confirm": true, "/amount": 20 } });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
    lines.write(&answer).await;
    let done = lines.answer_to(id).await;
    let text = done["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("20 given"), "{done}");
}

pub(super) async fn connect(kind: ActorType) -> (World, Lines) {
    connect_to(World::start().await, kind)
}

fn connect_to(world: World, kind: ActorType) -> (World, Lines) {
    let catalog = world.gateway.executor().catalog();
    catalog.add(tool::erase(Wipe).unwrap()).unwrap();
    catalog.add(tool::erase(Buy).unwrap()).unwrap();
    catalog.add(tool::erase(Give).unwrap()).unwrap();
    catalog.add(tool::erase(Invite).unwrap()).unwrap();
    let actor = Actor {
        kind,
        id: "u_1".to_owned(),
    };
    let caller = Caller {
        principal: Arc::new(Principal::new(actor, "u_1")),
        proof: Proof::ApiKey,
    };
    let lines = Lines::open(&world, caller);
    (world, lines)
}

fn wipe(disk: &str) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    json!({ "_meta": meta, "name": "disk_wipe", "arguments": { "disk": disk } })
}

fn answered(mut params: Value, asked: &Value, content: &Value) -> Value {
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] =
        json!({ "confirmation": { "action": "accept", "content": content } });
    params
}

/// The question is in the language of the call.
#[tokio::test]
async fn a_question_follows_the_locale() {
    let (_world, mut lines) = connect(ActorType::User).await;
    let mut call = wipe("sda");
    call["_meta"]["dev.countersign/locale"] = json!("zh-CN");
    let asked = lines.ask("tools/call", call).await;
    let asked = &asked["result"]["inputRequests"]["confirmation"]["params"];
    let confirm = &asked["requestedSchema"]["properties"]["confirm"];
    assert_json_snapshot!(confirm, @r#"
    {
      "description": "是否允许进行一次此调用",
      "title": "确认",
      "type": "boolean"
    }
    "#);
}

#[tokio::test]
async fn a_user_confirms_with_the_next_request() {
    let (_world, mut lines) = connect(ActorType::User).await;
    let asked = lines.ask("tools/call", wipe("sda")).await;
    assert_json_snapshot!(asked["result"]["inputRequests"], @r#"
    {
      "confirmation": {
        "method": "elicitation/create",
        "params": {
          "message": "disk.wipe: Wipes a disk.\n{\"disk\":\"sda\"}",
          "mode": "form",
          "requestedSchema": {
            "properties": {
              "confirm": {
                "description": "Allow this call once",
                "title": "Confirm",
                "type": "boolean"
              }
            },
            "required": [
              "confirm"
            ],
            "type": "object"
          }
        }
      }
    }
    "#);
    let yes = answered(wipe("sda"), &asked, &json!({ "confirm": true }));
    let done = lines.ask("tools/call", yes.clone()).await;
    assert_eq!(
        done["result"]["content"][0]["text"], "sda is empty",
        "{done}"
    );
    // Once: the same answer again does not count, and the call alone asks again.
    let repeated = lines.ask("tools/call", yes).await;
    let code = &repeated["result"]["_meta"]["dev.countersign/error"]["code"];
    assert_eq!(code, "NEEDS_USER_CONFIRMATION", "{repeated}");
    let again = lines.ask("tools/call", wipe("sda")).await;
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
}

/// The form shows the amount in a readable form.
#[tokio::test]
async fn a_user_reads_the_most_that_it_may_cost() {
    let (_world, mut lines) = connect(ActorType::User).await;
    let mut buy = wipe("");
    buy["name"] = json!("shop_buy");
    buy["arguments"] = json!({"amount": 21131, "currency": "EUR"});
    let asked = lines.ask("tools/call", buy).await;
    let form = &asked["result"]["inputRequests"]["confirmation"]["params"];
    assert_eq!(
        form["message"],
        "shop.buy: Buys it.\nat most EUR 211.31\n{\"amount\":21131,\"currency\":\"EUR\"}"
    );
}

#[tokio::test]
async fn a_user_declines() {
    let (_world, mut lines) = connect(ActorType::User).await;
    let asked = lines.ask("tools/call", wipe("sda")).await;
    let no = answered(wipe("sda"), &asked, &json!({ "confirm": false }));
    let refused = lines.ask("tools/call", no).await;
    let code = &refused["result"]["_meta"]["dev.countersign/error"]["code"];
    assert_eq!(code, "FORBIDDEN", "{refused}");
}

/// A confirmation for one disk does not count for another, and a state is bound to its caller.
#[tokio::test]
async fn a_state_counts_for_one_call_only() {
    let (_world, mut lines) = connect(ActorType::User).await;
    let asked = lines.ask("tools/call", wipe("sda")).await;
    let other = answered(wipe("sdb"), &asked, &json!({ "confirm": true }));
    let refused = lines.ask("tools/call", other).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let mut forged = answered(wipe("sda"), &asked, &json!({ "confirm": true }));
    forged["requestState"] = json!("rs1.forged");
    let refused = lines.ask("tools/call", forged).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let open = lines.ask("tools/call", wipe("sda")).await;
    assert_eq!(open["result"]["resultType"], "input_required", "{open}");
}

/// An agent can never approve: if its client can open a page it is sent there, and its own answer changes
/// nothing.
#[tokio::test]
async fn an_agent_is_sent_to_the_user() {
    let settings = Settings {
        approvals_url: Some("https://tools.example.com/approvals/{id}".to_owned()),
        ..Settings::default()
    };
    let (_world, mut lines) = connect_to(World::with(settings).await, ActorType::Agent);
    let mut params = wipe("sda");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "elicitation": { "form": {}, "url": {} } });
    let asked = lines.ask("tools/call", params.clone()).await;
    let question = &asked["result"]["inputRequests"]["confirmation"]["params"];
    assert_eq!(question["mode"], "url", "{asked}");
    let url = question["url"].as_str().unwrap();
    assert!(
        url.starts_with("https://tools.example.com/approvals/ap_"),
        "{url}"
    );
    let yes = answered(params, &asked, &json!({ "confirm": true }));
    // Asked once: a caller that comes back without the user's answer is told where the user answers.
    let again = lines.ask("tools/call", yes).await;
    let text = again["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("NEEDS_USER_CONFIRMATION"), "{again}");
    assert!(text.contains("Tell the user to confirm ap_"), "{text}");
    assert!(text.contains(url), "{text}");
}

/// Without a page it gets the id of the approval.
#[tokio::test]
async fn an_agent_is_told_whom_to_ask() {
    let (_world, mut lines) = connect(ActorType::Agent).await;
    let told = lines.ask("tools/call", wipe("sda")).await;
    assert_eq!(told["result"]["isError"], true, "{told}");
    let error = &told["result"]["_meta"]["dev.countersign/error"];
    assert_eq!(error["code"], "NEEDS_USER_CONFIRMATION");
    assert!(error["approval_id"].is_string(), "{error}");
}

#[tokio::test]
async fn a_user_of_the_older_eras_is_asked_at_once() {
    let (_world, mut lines) = connect(ActorType::User).await;
    lines.initialize(json!({ "elicitation": {} })).await;
    let call = json!({ "name": "disk_wipe", "arguments": { "disk": "sda" } });
    let id = lines.send("tools/call", call).await;
    let question = lines.next().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let answer = json!({ "action": "accept", "content": { "confirm": true } });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
    lines.write(&answer).await;
    let done = lines.answer_to(id).await;
    assert_eq!(
        done["result"]["content"][0]["text"], "sda is empty",
        "{done}"
    );
}

/// A form without a yes or no confirms nothing, and the text says what is missing.
#[tokio::test]
async fn a_malformed_form_is_explained() {
    let (_world, mut lines) = connect(ActorType::User).await;
    for content in [json!({ "confirm": "perhaps" }), json!({}), json!(null)] {
        let asked = lines.ask("tools/call", wipe("sda")).await;
        let told = lines
            .ask("tools/call", answered(wipe("sda"), &asked, &content))
            .await;
        let text = told["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("NEEDS_USER_CONFIRMATION"), "{text}");
        assert!(text.contains("without `confirm`"), "{text}");
    }
    let (_world, mut lines) = connect(ActorType::User).await;
    lines.initialize(json!({ "elicitation": {} })).await;
    let call = json!({ "name": "disk_wipe", "arguments": { "disk": "sda" } });
    let id = lines.send("tools/call", call).await;
    let question = lines.next().await;
    let answer = json!({ "action": "accept", "content": { "confirm": 1 } });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
    lines.write(&answer).await;
    let told = lines.answer_to(id).await;
    let text = told["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("without `confirm`"), "{text}");
}

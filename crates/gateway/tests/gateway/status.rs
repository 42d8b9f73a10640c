//! `GET /v1/status`: the state of the server and its problems, as far as they concern the caller.

use std::sync::Arc;

use countersign::contract::ActorType::{Agent, System, User};
use countersign::contract::{Input, ToolSpec};
use countersign::ledger::Outcome;
use countersign::sample::ClearNotes;
use countersign::{Arguments, BoxFuture, CallContext, Catalog, DynTool, Reply, ToolError};
use countersign_gateway::identity::{Identity, NewKey};
use countersign_gateway::policy::{LivePolicy, Reloaded};
use countersign_testkit::ledger::build::{claimed, request, scope, settle};
use countersign_testkit::postgres::shared_postgres;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::identity::{key_of, operator};
use crate::parts::{Parts, Server};

const POLICY: &str = r#"
revision = "one"
[defaults]
unlisted = "allow"
[limits.user]
calls = 5
per = "366d"
SHARED
[limits.agent]
calls = 100
per = "366d"
[limits.tools."notes.add"]
calls = 3
per = "366d"
SHARED
[[budgets]]
name = "mine"
scope = "user"
limit = "20.00"
currency = "EUR"
[[budgets.tools]]
match = "notes.add"
amount = "/text"
[[budgets]]
name = "ours"
scope = "global"
limit = "100.00"
currency = "EUR"
per = "1d"
[[budgets.tools]]
match = "notes.add"
amount = "/text"
"#;

// The rest for Ann, for an inactive user, for Ann's agent, and as an operator sees it for Ann.
const OWN: &str = r#""user"  3 of 5
"tool" notes.add 1 of 3
"mine" "5.00 EUR" of "20.00 EUR"
"ours" null of "100.00 EUR""#;

const OTHER: &str = r#""user"  5 of 5
"mine" "20.00 EUR" of "20.00 EUR"
"ours" null of "100.00 EUR""#;

const AGENT: &str = r#""user"  3 of 5
"agent"  99 of 100
"tool" notes.add 1 of 3
"mine" "5.00 EUR" of "20.00 EUR"
"ours" null of "100.00 EUR""#;

const ALL: &str = r#""user"  3 of 5
"tool" notes.add 1 of 3
"mine" "5.00 EUR" of "20.00 EUR"
"ours" "85.00 EUR" of "100.00 EUR""#;

/// A server with this policy file, and keys.
struct Place {
    parts: Parts,
    server: Server,
    policy: Arc<LivePolicy>,
    folder: tempfile::TempDir,
}

impl Place {
    async fn new(parts: Parts, shared: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.toml");
        let is_shared = format!("shared = {shared}");
        std::fs::write(&path, POLICY.replace("SHARED", &is_shared)).unwrap();
        let policy = Arc::new(LivePolicy::open(&path).unwrap());
        policy.announce(&parts.recorder()).await.unwrap();
        let identity = Identity::new(parts.clock(), policy.clone()).api_keys(parts.api_keys());
        let server = parts.serve(identity).await;
        Self {
            parts,
            server,
            policy,
            folder,
        }
    }

    async fn key(&self, new: NewKey, scopes: &[&str]) -> String {
        let scopes = scopes.iter().map(ToString::to_string).collect();
        let new = NewKey { scopes, ..new };
        let made = self.parts.api_keys().create(new, &operator()).await;
        made.unwrap().token.to_string()
    }

    async fn status(&self, key: &str, query: &str) -> Value {
        let path = format!("/v1/status{query}");
        let (status, _, body) = self.server.send("GET", &path, Some(key), None).await;
        assert_eq!(status, 200, "{body}");
        body
    }

    async fn spend(&self, key: &str, amount: &str) {
        let body = json!({"arguments": {"text": amount}});
        let (status, _, reply) = self
            .server
            .send("POST", "/v1/tools/notes.add", Some(key), Some(body))
            .await;
        assert_eq!(status, 200, "{reply}");
    }
}

/// Formats the rest of limits and budgets in short lines.
fn left(status: &Value) -> String {
    let mut lines = Vec::new();
    for limit in status["limits"].as_array().unwrap() {
        let tool = limit["tool"].as_str().unwrap_or_default();
        lines.push(format!(
            "{} {tool} {} of {}",
            limit["limit"], limit["left"], limit["calls"]
        ));
    }
    for budget in status["budgets"].as_array().unwrap() {
        lines.push(format!(
            "{} {} of {}",
            budget["name"], budget["left"], budget["limit"]
        ));
    }
    lines.join("\n")
}

#[expect(clippy::too_many_lines, reason = "one server, and everybody who looks")]
async fn everybody_sees_what_concerns_them_on(parts: Parts, shared: bool) {
    let kind = parts.store.vitals().await.unwrap().kind.as_str();
    let place = Place::new(parts, shared).await;
    let ann = place.key(key_of(User, "ann"), &[]).await;
    let bob = place.key(key_of(User, "bob"), &[]).await;
    let auditor = place.key(key_of(User, "auditor"), &["calls:read"]).await;
    let shopper = NewKey {
        user_id: Some("ann".to_owned()),
        ..key_of(Agent, "shopper")
    };
    let shopper = place.key(shopper, &["calls:read"]).await;
    let backend = NewKey {
        acts_for_others: true,
        ..key_of(System, "web-shop")
    };
    let backend = place.key(backend, &[]).await;
    place.spend(&ann, "12.50").await;
    place.spend(&shopper, "2.50").await;

    let own = place.status(&ann, "").await;
    assert_eq!(left(&own), OWN);
    assert_eq!(own.get("server"), None, "{own:#}");
    assert_eq!(own["program"].get("build"), None);
    assert_eq!(own["problems"], json!([]));
    assert_eq!(own["caller"]["approvals_open"], 0);
    assert_eq!(
        (&own["caller"]["user_id"], &own["caller"]["tools"]),
        (&json!("ann"), &json!(2))
    );
    assert_eq!(own["caller"]["credentials_required"], true);
    let text = own.to_string();
    assert!(
        !text.contains("bob") && !text.contains("auditor") && !text.contains("policy.toml"),
        "{text}"
    );
    assert_eq!(left(&place.status(&bob, "").await), OTHER);
    // An agent sees its user's figures and its own, whatever its scopes.
    let agent = place.status(&shopper, "").await;
    assert_eq!(agent.get("server"), None);
    assert_eq!(left(&agent), AGENT);
    for (key, query) in [(&bob, "?user=ann"), (&shopper, "?user=bob")] {
        let path = format!("/v1/status{query}");
        let (status, _, body) = place.server.send("GET", &path, Some(key), None).await;
        assert_eq!((status, &body["error"]["code"]), (403, &json!("FORBIDDEN")));
    }
    // A backend asks about the users that it may name, and sees nothing of the server.
    let named = place.status(&backend, "?user=ann").await;
    assert_eq!(named.get("server"), None);
    assert!(left(&named).contains("\"mine\" \"5.00 EUR\""), "{named:#}");

    let all = place.status(&auditor, "?user=ann").await;
    assert_eq!(left(&all), ALL);
    // An agent's own figures are shown to an operator who names it, and to nobody else.
    let of_agent = place.status(&auditor, "?user=ann&agent=shopper").await;
    assert!(
        left(&of_agent).contains("\"agent\"  99 of 100"),
        "{of_agent:#}"
    );
    let path = "/v1/status?agent=shopper";
    let (status, _, body) = place.server.send("GET", path, Some(&bob), None).await;
    assert_eq!((status, &body["error"]["code"]), (403, &json!("FORBIDDEN")));
    let server = &all["server"];
    assert_eq!(server["store"]["kind"], kind);
    assert_eq!(server["store"]["is_writable"], true);
    // Five keys, a policy, two notes.
    assert_eq!(server["store"]["records"], 8, "{server:#}");
    assert_eq!(all["signing"]["unsigned_records"], 8);
    assert_eq!(server["keys"], json!({"active": 5, "ended": 0}));
    assert_eq!(
        (&server["tools"], &server["calls_in_doubt"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(
        (&server["approvals_open"], &server["upstreams"]),
        (&json!(0), &json!([]))
    );
    assert_eq!(all["policy"]["is_file_in_force"], true);
    assert_eq!(all["policy"]["since"], "2026-11-16T12:00:00Z");
}

/// N3: a caller sees their own figures, an operator everything, and no one another user's, in every store.
#[tokio::test]
async fn everybody_sees_what_concerns_them() {
    everybody_sees_what_concerns_them_on(Parts::new(), false).await;
    let folder = tempfile::tempdir().unwrap();
    everybody_sees_what_concerns_them_on(Parts::on_sqlite(folder.path()), true).await;
    let url = shared_postgres().fresh_database();
    everybody_sees_what_concerns_them_on(Parts::on_postgres(&url).await, true).await;
}

/// N3: problems come first, for those who can resolve them; N10: and there are metrics for alarms.
#[tokio::test]
async fn what_is_wrong_comes_first() {
    let place = Place::new(Parts::new(), false).await;
    let ann = place.key(key_of(User, "ann"), &[]).await;
    let auditor = place.key(key_of(User, "auditor"), &["calls:read"]).await;
    for _ in 0..3 {
        place.spend(&ann, "4.00").await;
    }
    let store = &*place.parts.store;
    let claim = claimed(store, &request(&scope("k"))).await.unwrap();
    store
        .commit(settle(&claim, Outcome::InDoubt, "ev_1"))
        .await
        .unwrap();
    std::fs::write(place.folder.path().join("policy.toml"), "[[tols]]").unwrap();
    for _ in 0..3 {
        let reloaded = place.policy.reload(&place.parts.recorder()).await;
        assert!(!matches!(reloaded, Reloaded::Accepted(_)), "{reloaded:?}");
    }
    let problems = |status: &Value| {
        let problems = status["problems"].as_array().unwrap().iter();
        let told = problems.map(|problem| format!("{}: {}", problem["code"], problem["message"]));
        told.collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(problems(&place.status(&ann, "").await), @r#""limit_used_up": "the rate limit of 3 calls for notes.add is reached""#);
    let all = place.status(&auditor, "").await;
    assert_snapshot!(problems(&all), @r#"
    "policy_rejected": "the policy file was rejected: line 1, column 3: unknown field `tols`, expected one of `revision`, `mode`, `defaults`, `tools`, `agents`, `rules`, `issuers`, `approvals`, `limits`, `breaker`, `budgets`; one@49ccdc7b6733 stays in force"
    "calls_in_doubt": "calls in doubt, whose effect may or may not have happened: 1"
    "#);
    let url = format!("http://{}/v1/status", place.server.address);
    let asked = reqwest::Client::new()
        .get(url)
        .bearer_auth(&auditor)
        .header("accept-language", "zh-CN");
    let told: Value = asked.send().await.unwrap().json().await.unwrap();
    let doubts = told["problems"].as_array().unwrap().last().unwrap();
    assert_eq!(doubts["code"], "calls_in_doubt");
    assert_eq!(doubts["message"], "效果可能已经发生、尚无定论的调用：1");
    assert_eq!(all["policy"]["rejected"]["count"], 1);
    assert_eq!(all["policy"]["is_file_in_force"], false);
    let url = format!("http://{}/metrics", place.server.address);
    let text = reqwest::get(url).await.unwrap().text().await.unwrap();
    let figures: Vec<&str> = text
        .lines()
        .filter(|line| {
            [
                "calls_in_doubt",
                "policy_",
                "log_unsigned",
                "store_writable",
                "approvals_pending",
            ]
            .iter()
            .any(|name| line.starts_with(&format!("countersign_{name}")))
        })
        .collect();
    assert_snapshot!(figures.join("\n"), @r"
    countersign_policy_rejections_total 1
    countersign_policy_file_in_force 0
    countersign_approvals_pending 0
    countersign_log_unsigned_records 7
    countersign_calls_in_doubt 1
    countersign_store_writable 1
    ");
}

/// Everything that needs a person is one list, for those who can settle it; settled items are gone.
#[tokio::test]
async fn attention_lists_what_a_person_has_to_settle() {
    let place = Place::new(Parts::new(), false).await;
    let ann = place.key(key_of(User, "ann"), &[]).await;
    let bob = place.key(key_of(User, "bob"), &[]).await;
    let auditor = place
        .key(key_of(User, "auditor"), &["calls:read", "approvals:answer"])
        .await;
    let asking = Catalog::builder().tool(ClearNotes).build().unwrap();
    let tool = asking.get("notes.clear").unwrap().tool().clone();
    let executor = place.server.gateway.executor();
    executor.catalog().add(tool).unwrap();
    let attention = async |key: &str| {
        let sent = place.server.send("GET", "/v1/attention", Some(key), None);
        let (status, _, body) = sent.await;
        assert_eq!(status, 200, "{body}");
        let items = body["items"].as_array().unwrap().iter();
        let lines =
            items.map(|item| format!("{} of {}: {}", item["kind"], item["user_id"], item["page"]));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(attention(&auditor).await, "");
    let clear = place
        .server
        .send("POST", "/v1/tools/notes.clear", Some(&ann), Some(json!({})))
        .await;
    let id = clear.2["error"]["details"]["approval_id"].clone();
    let id = id.as_str().unwrap_or_else(|| unreachable!("{:#}", clear.2));
    let store = &*place.parts.store;
    let claim = claimed(store, &request(&scope("k"))).await.unwrap();
    let doubt = settle(&claim, Outcome::InDoubt, "ev_1");
    store.commit(doubt).await.unwrap();
    std::fs::write(place.folder.path().join("policy.toml"), "[[tols]]").unwrap();
    for _ in 0..3 {
        place.policy.reload(&place.parts.recorder()).await;
    }
    let question = format!(r#""question" of "ann": "/approvals/{id}""#);
    let all = attention(&auditor).await;
    let expected = format!(
        "\"policy_rejected\" of null: \"/policy\"\n\"call_in_doubt\" of \"u_1\": \"/in-doubt\"\n{question}"
    );
    assert_eq!(all, expected);
    assert_eq!(attention(&ann).await, question);
    assert_eq!(
        attention(&bob).await,
        "",
        "another user's items are not shown"
    );
    let answer = json!({"decision": "deny"});
    let path = format!("/v1/approvals/{id}");
    let denied = place.server.send("POST", &path, Some(&ann), Some(answer));
    assert_eq!(denied.await.0, 200);
    assert_eq!(attention(&ann).await, "");
}

/// N3: an operator sees the budgets of users and of agents that are spent or nearly spent; a user sees their own.
#[tokio::test]
async fn attention_lists_budgets_of_users_and_agents() {
    let place = Place::new(Parts::new(), false).await;
    let path = place.folder.path().join("policy.toml");
    let agents = r#"
[[budgets]]
name = "each"
scope = "agent"
limit = "20.00"
currency = "EUR"
per = "1d"
[[budgets.tools]]
match = "notes.add"
amount = "/text"
"#;
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text + agents).unwrap();
    for _ in 0..3 {
        place.policy.reload(&place.parts.recorder()).await;
    }
    let ann = place.key(key_of(User, "ann"), &["notes:write"]).await;
    let bob = place.key(key_of(User, "bob"), &["notes:write"]).await;
    let shopper = NewKey {
        user_id: Some("cid".to_owned()),
        ..key_of(Agent, "shopper")
    };
    let shopper = place.key(shopper, &["notes:write"]).await;
    let auditor = place.key(key_of(User, "auditor"), &["calls:read"]).await;
    let attention = async |key: &str| {
        let sent = place.server.send("GET", "/v1/attention", Some(key), None);
        let (status, _, body) = sent.await;
        assert_eq!(status, 200, "{body}");
        let items = body["items"].as_array().unwrap().iter();
        let lines = items.map(|item| {
            let member = |name: &str| item[name].as_str().unwrap_or("-").to_owned();
            let (kind, what) = (member("kind"), member("what"));
            format!(
                "{kind}: {what} ({}, {})",
                member("user_id"),
                member("agent")
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    place.spend(&bob, "1.00").await;
    assert_eq!(attention(&auditor).await, "");
    place.spend(&ann, "20.00").await;
    place.spend(&shopper, "19.00").await;
    assert_snapshot!(attention(&auditor).await, @r"
    budget_used_up: the budget each is used up (ann, -)
    budget_used_up: the budget mine is used up (ann, -)
    budget_nearly_used_up: the budget each is nearly used up: 1.00 EUR of 20.00 EUR left (-, shopper)
    budget_nearly_used_up: the budget mine is nearly used up: 1.00 EUR of 20.00 EUR left (cid, -)
    ");
    assert_snapshot!(attention(&ann).await, @"budget_used_up: the budget mine is used up (-, -)");
    assert_eq!(attention(&bob).await, "");
}

/// A tool that is declared otherwise than before.
struct Redeclared(ToolSpec);

impl DynTool for Redeclared {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a CallContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        Box::pin(std::future::ready(Ok(arguments.to_value().into())))
    }
}

/// A3: a tool that the policy does not fit any more is listed for the operator, until it fits again.
#[tokio::test]
async fn attention_lists_a_policy_that_does_not_fit_a_changed_tool() {
    let place = Place::new(Parts::new(), false).await;
    let path = place.folder.path().join("policy.toml");
    let rule = "[[rules]]\nname = \"long\"\nmatch = \"notes.add\"\n\
        when = \"has(args.text) && size(args.text) > 1000\"\nthen = \"deny\"\n";
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text + rule).unwrap();
    for _ in 0..3 {
        place.policy.reload(&place.parts.recorder()).await;
    }
    let catalog = place.server.gateway.executor().catalog();
    place.policy.check_against(catalog).unwrap();
    let ann = place.key(key_of(User, "ann"), &["notes:write"]).await;
    let auditor = place.key(key_of(User, "auditor"), &["calls:read"]).await;
    let attention = async |key: &str| {
        let sent = place.server.send("GET", "/v1/attention", Some(key), None);
        let (status, _, body) = sent.await;
        assert_eq!(status, 200, "{body}");
        let items = body["items"].as_array().unwrap().iter();
        let lines =
            items.map(|item| format!("{}: {} ({})", item["kind"], item["what"], item["page"]));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(attention(&auditor).await, "");
    let entry = catalog.get("notes.add").unwrap();
    let before = entry.tool().clone();
    let schema = json!({"type": "object", "properties": {"note": {"type": "string"}}, "additionalProperties": false});
    let changed = entry.spec().clone().input(Input::Schema(schema));
    catalog.replace(Arc::new(Redeclared(changed))).unwrap();
    assert_snapshot!(attention(&auditor).await, @r#""policy_misfit": "the policy does not fit tools that have changed, and their calls are refused: long (line 36): notes.add has no args.text: there is no \"text\", but note; [[budgets]] mine (line 23): notes.add has no /text: there is no \"text\", but note; [[budgets]] ours (line 32): notes.add has no /text: there is no \"text\", but note" ("/policy")"#);
    assert_eq!(attention(&ann).await, "", "it is the operator's");
    let body = json!({"arguments": {"note": "milk"}});
    let (status, _, reply) = place
        .server
        .send("POST", "/v1/tools/notes.add", Some(&ann), Some(body))
        .await;
    assert_eq!(status, 403, "{reply}");
    catalog.replace(before).unwrap();
    assert_eq!(attention(&auditor).await, "");
    place.spend(&ann, "1.00").await;
}

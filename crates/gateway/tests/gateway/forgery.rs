//! A3: the caller's identity is proved, not claimed. Forged actors, other people's users and keys, over a real
//! socket.

use countersign::Principal;
use countersign::contract::ActorType::{self, Agent, System, User};
use countersign::contract::RecordKind;
use countersign::ledger::LogQuery;
use countersign_gateway::identity::{ApiKeys, Identity, NewKey, SCOPE_KEYS};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::identity::{actor, policy};
use crate::parts::{Parts, Server};

struct Shop {
    parts: Parts,
    keys: ApiKeys,
    server: Server,
}

impl Shop {
    async fn open(rules: &str) -> Self {
        let parts = Parts::new();
        let keys = parts.api_keys();
        let identity = Identity::new(parts.clock(), policy(rules)).api_keys(keys.clone());
        let server = parts.serve(identity).await;
        Self {
            parts,
            keys,
            server,
        }
    }

    async fn key(&self, kind: ActorType, id: &str, user: Option<&str>, scopes: &[&str]) -> String {
        let new = NewKey {
            label: String::new(),
            actor: actor(kind, id),
            user_id: user.map(str::to_owned),
            acts_for_others: user.is_none() && kind != User,
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            effects: None,
            expires_at: None,
        };
        let operator = Principal::new(actor(System, "operator"), "").scope(SCOPE_KEYS);
        self.keys
            .create(new, &operator)
            .await
            .unwrap()
            .token
            .to_string()
    }

    /// Returns status and code of `notes.add` with this envelope, and the identity in the newest record.
    async fn check(&self, key: &str, envelope: Value) -> String {
        let mut body = json!({"arguments": {"text": "buy milk"}});
        for (name, value) in envelope.as_object().unwrap() {
            body[name] = value.clone();
        }
        self.parts.clock.advance(std::time::Duration::from_secs(1));
        let answer = self
            .server
            .send("POST", "/v1/tools/notes.add", Some(key), Some(body));
        let (status, challenge, reply) = answer.await;
        let code = reply["error"]["code"].as_str().unwrap_or("OK");
        let field = reply["error"]["details"]["field"].as_str();
        let field = field.map_or_else(String::new, |field| format!("{field} "));
        let record = self.newest().await;
        let name = |value: &Value| match value {
            Value::Null => "-".to_owned(),
            value if value["type"] == "user" => "user".to_owned(),
            value => format!(
                "{}:{}",
                value["type"].as_str().unwrap(),
                value["id"].as_str().unwrap()
            ),
        };
        format!(
            "{status} {code} {field}| actor {}, principal {}{}",
            name(&record["actor"]),
            name(&record["principal"]),
            challenge.map_or_else(String::new, |challenge| format!(" | {challenge}")),
        )
    }

    async fn newest(&self) -> Value {
        self.parts.store.flush().await.unwrap();
        let mut newest = None;
        for kind in [RecordKind::Call, RecordKind::Denial] {
            let query = LogQuery {
                kind: Some(kind),
                limit: 1,
                ..LogQuery::default()
            };
            let rows = self.parts.store.records(&query).await.unwrap();
            newest = newest.max(rows.first().map(|row| (row.at, row.id.clone())));
        }
        let (_, id) = newest.unwrap();
        let stored = self.parts.store.record(&id).await.unwrap().unwrap();
        serde_json::from_slice(&stored.leaf).unwrap()
    }
}

/// A credential acts for the user it was created for; only one that may act for others names another user, and
/// the record then has both the named and the real actor.
#[tokio::test]
async fn an_envelope_names_nobody_but_the_proved_caller() {
    let shop = Shop::open("defaults = { unlisted = \"allow\" }").await;
    let user = shop.key(User, "u_1", None, &[]).await;
    let agent = shop.key(Agent, "a_7", Some("u_1"), &[]).await;
    let backend = shop.key(System, "web", None, &[]).await;
    let hired = shop.key(Agent, "broker", None, &[]).await;
    let a_user = |id: &str| json!({"type": "user", "id": id});
    let told = [
        shop.check(&user, json!({})).await,
        shop.check(&user, json!({"user_id": "u_1", "actor": a_user("u_1")}))
            .await,
        shop.check(&user, json!({"user_id": "u_2"})).await,
        shop.check(&agent, json!({})).await,
        shop.check(&agent, json!({"actor": a_user("u_1")})).await,
        shop.check(&agent, json!({"actor": {"type": "agent", "id": "a_8"}}))
            .await,
        shop.check(&agent, json!({"user_id": "u_2"})).await,
        shop.check(&backend, json!({})).await,
        shop.check(&backend, json!({"user_id": "u_2", "actor": a_user("u_2")}))
            .await,
        shop.check(&hired, json!({"user_id": "u_2"})).await,
        shop.check(&hired, json!({"user_id": "u_2", "actor": a_user("u_2")}))
            .await,
    ];
    assert_snapshot!(told.join("\n"), @r"
    200 OK | actor user, principal -
    200 OK | actor user, principal -
    403 FORBIDDEN /user_id | actor user, principal -
    200 OK | actor agent:a_7, principal -
    403 FORBIDDEN /actor | actor agent:a_7, principal -
    403 FORBIDDEN /actor | actor agent:a_7, principal -
    403 FORBIDDEN /user_id | actor agent:a_7, principal -
    400 INVALID_ARGUMENT /user_id | actor system:web, principal -
    200 OK | actor user, principal system:web
    200 OK | actor agent:broker, principal -
    200 OK | actor user, principal agent:broker
    ");
}

/// A list and a call use the same decision, and the challenge names every needed scope.
#[tokio::test]
async fn a_missing_scope_is_named() {
    let rules = "[[tools]]\nmatch = \"*\"\nscopes = [\"tools:call\"]\n\
                 [[tools]]\nmatch = \"notes.add\"\nscopes = [\"notes:write\", \"admin\"]\n\
                 [[agents]]\nid = \"reader\"\ndeny = [\"notes.add\"]";
    let shop = Shop::open(rules).await;
    let list = async |key: &str| {
        let (_, _, tools) = shop.server.send("GET", "/v1/tools", Some(key), None).await;
        let tools = tools.as_array().unwrap().clone();
        let names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        names.join(" ")
    };
    let mut told = Vec::new();
    for scopes in [
        &[][..],
        &["tools:call"],
        &["admin"],
        &["tools:call", "admin"],
    ] {
        let key = shop.key(User, "u_1", None, scopes).await;
        let called = shop.check(&key, json!({})).await;
        told.push(format!(
            "{scopes:?} lists {:?}\n  {called}",
            list(&key).await
        ));
    }
    let reader = shop
        .key(Agent, "reader", Some("u_1"), &["tools:call", "admin"])
        .await;
    let called = shop.check(&reader, json!({})).await;
    told.push(format!(
        "reader lists {:?}\n  {called}",
        list(&reader).await
    ));
    assert_snapshot!(told.join("\n"), @r#"
    [] lists ""
      403 FORBIDDEN | actor user, principal - | Bearer error="insufficient_scope", scope="tools:call notes:write"
    ["tools:call"] lists "notes.list"
      403 FORBIDDEN | actor user, principal - | Bearer error="insufficient_scope", scope="tools:call notes:write"
    ["admin"] lists ""
      403 FORBIDDEN | actor user, principal - | Bearer error="insufficient_scope", scope="tools:call admin"
    ["tools:call", "admin"] lists "notes.add notes.list"
      200 OK | actor user, principal -
    reader lists "notes.list"
      403 FORBIDDEN | actor agent:reader, principal -
    "#);
}

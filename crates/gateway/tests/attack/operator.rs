//! The operator's way in: the token of a run, which only the data folder has.

use countersign_gateway::Settings;
use countersign_gateway::identity::Identity;
use countersign_gateway::operator::Operator;
use countersign_gateway::policy::{LivePolicy, Policy};
use serde_json::json;
use std::sync::Arc;

use crate::case::{Case, Expected, FORBIDDEN, Request, Tally, UNAUTHORIZED, case};
use crate::tools::catalog;
use crate::world::{Backing, World};

const HARM: &str = "a right of the operator";

/// A3: nothing but the token itself is the operator's, and the operator is nobody's user.
pub(crate) async fn attack(backing: Backing) -> Tally {
    let world = World::start(backing).await;
    let mut tally = Tally::new("operator");
    tally.run(&world, "the token", token(&world)).await;
    tally.run(&world, "what it is for", uses(&world)).await;
    alone(&world, &mut tally).await;
    tally
}

fn token(world: &World) -> Vec<Case> {
    let token = &world.operator;
    let keys = || Request::get("/v1/keys");
    let with = |value: String| keys().with("authorization", value);
    let nobody = |name: &str, request: Request| case(name, request, UNAUTHORIZED, HARM);
    let secret = token.trim_start_matches("cs_operator_");
    let other = Operator::draw(&*world.parts.ids, crate::world::operator());
    vec![
        nobody("the prefix alone", keys().by("cs_operator_")),
        nobody("without its prefix", keys().by(secret)),
        nobody("a character less", keys().by(&token[..token.len() - 1])),
        nobody("a character more", keys().by(&format!("{token}0"))),
        nobody("in capitals", keys().by(&token.to_uppercase())),
        nobody(
            "zeros",
            keys().by(&format!("cs_operator_{}", "0".repeat(64))),
        ),
        nobody("of another run", keys().by(other.token())),
        nobody("twice", keys().by(&format!("{token} {token}"))),
        nobody("in two headers", keys().by(token).by(token)),
        nobody("by another scheme", with(format!("Basic {token}"))),
        nobody("without a scheme", with(token.clone())),
        nobody(
            "in the query",
            Request::get(format!("/v1/keys?token={token}")),
        ),
        nobody(
            "in a cookie",
            keys().with("cookie", format!("operator={token}")),
        ),
        nobody(
            "in another header",
            keys().with("x-operator-token", token.clone()),
        ),
        case(
            "from a page",
            keys().by(token).with("origin", "https://evil.example"),
            FORBIDDEN,
            HARM,
        ),
    ]
}

/// The operator has no user, and becomes none.
fn uses(world: &World) -> Vec<Case> {
    let token = &world.operator;
    let add = |more: serde_json::Value| {
        let mut body = json!({"arguments": {"text": "forged"}});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        Request::call("notes.add", &body).by(token)
    };
    let list = |more: serde_json::Value| Request::call("notes.list", &more).by(token);
    vec![
        case("a call for nobody", list(json!({})), UNAUTHORIZED, HARM),
        case("a call for ann", list(json!({"user_id": "ann"})), FORBIDDEN, HARM),
        case("a call as ann", add(json!({"user_id": "ann", "actor": {"type": "user", "id": "ann"}})), FORBIDDEN, HARM),
        case(
            "a call for ann (MCP)",
            Request::mcp("tools/call", json!({"name": "notes_list", "arguments": {}, "_meta": {"dev.countersign/user_id": "ann"}})).by(token),
            Expected::Tool("FORBIDDEN"),
            HARM,
        ),
        case("a name that ends the program", Request::post("/v1/stop", "").by(token), crate::case::NOT_FOUND, HARM),
    ]
}

/// A server that is there for the commands of this machine lets nobody else in, whatever they bring.
async fn alone(world: &World, tally: &mut Tally) {
    let policy = Policy::parse("[defaults]\nunlisted = \"allow\"").unwrap();
    let policy = Arc::new(LivePolicy::fixed(policy));
    let operator = Operator::draw(&*world.parts.ids, crate::world::operator());
    let token = operator.token().to_owned();
    let identity = Identity::new(world.parts.clock(), policy)
        .api_keys(world.keys.clone())
        .with_operator_token(operator)
        .operators_only();
    let catalog = catalog(&world.deeds);
    let server = world
        .parts
        .serve_tools(identity, Settings::default(), catalog)
        .await;
    let status = async |path: &str, credential: Option<&str>| {
        let (status, _, _) = server.send("GET", path, credential, None).await;
        status
    };
    let home = world.issuers.by_home(&json!({}));
    for (name, credential) in [
        ("a key", Some(world.cast.ann.as_str())),
        ("the key of who makes keys", Some(world.cast.root.as_str())),
        ("a token", Some(home.as_str())),
        ("the token of the other run", Some(world.operator.as_str())),
        ("nothing", None),
    ] {
        tally.check(
            &format!("{name} where only the operator is let in"),
            status("/v1/tools", credential).await,
            401,
        );
    }
    tally.check("the operator", status("/v1/keys", Some(&token)).await, 200);
}

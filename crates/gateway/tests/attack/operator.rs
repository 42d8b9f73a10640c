//! Access for the operator: a socket that only the server's account can open, and a proof over TCP if there is
//! no socket.

use std::sync::Arc;

use countersign_gateway::Settings;
use countersign_gateway::identity::Identity;
use countersign_gateway::operator::proof::{Exchange, Role, authorization, draw_nonce};
use countersign_gateway::operator::{Operator, Prover, Secret};
use countersign_gateway::policy::{LivePolicy, Policy};
use serde_json::{Value, json};

use crate::case::{
    Case, FORBIDDEN, INVALID, NOT_FOUND, Request, Tally, UNAUTHORIZED, case, message,
};
use crate::parts::Server;
use crate::tools::catalog;
use crate::world::{Backing, World, operator};

const HARM: &str = "a right of the operator";

/// A3: only a fresh proof for this server and for this request is the operator's, and the operator is no user.
pub(crate) async fn attack(backing: Backing) -> Tally {
    let mut world = World::start(backing).await;
    let mut tally = Tally::new("operator");
    tally
        .run(
            &world,
            "nothing for operators beside a socket",
            closed(&world),
        )
        .await;
    let secret = Secret::draw(&*world.parts.ids);
    let server = proving(&world, &secret).await;
    world.address = server.address;
    let url = format!("http://{}", server.address);
    let proofs = Proofs { secret, url };
    tally.run(&world, "challenges", challenges(&world)).await;
    let cases = forged(&world, &proofs).await;
    tally.run(&world, "proofs", cases).await;
    once(&world, &proofs, &mut tally).await;
    tally
}

/// Starts a server for the operator alone, who proves a secret.
async fn proving(world: &World, secret: &Secret) -> Server {
    let policy = Policy::parse("[defaults]\nunlisted = \"allow\"").unwrap();
    let policy = Arc::new(LivePolicy::fixed(policy));
    let prover = Prover::new(secret.clone(), world.parts.ids.clone());
    let identity = Identity::new(world.parts.clock(), policy)
        .api_keys(world.keys.clone())
        .with_operator(Operator::new(operator()).or_proved_by(prover));
    let catalog = catalog(&world.deeds);
    let server = world
        .parts
        .serve_tools(identity, Settings::default(), catalog)
        .await;
    let url = format!("http://{}", server.address);
    server.gateway.identity().prover().unwrap().listens_at(&url);
    server
}

/// Secret and address that an operator knows.
struct Proofs {
    secret: Secret,
    url: String,
}

impl Proofs {
    /// Returns a nonce, and the server's ticket for it.
    async fn ticket(&self, world: &World) -> (String, String) {
        let nonce = draw_nonce(&*world.parts.ids);
        let asked = json!({"nonce": nonce}).to_string();
        let proved = message(
            &world
                .honest(&Request::post("/v1/operator/prove", asked))
                .await,
        );
        let ticket = proved["ticket"].as_str().unwrap().to_owned();
        let exchange = Exchange {
            url: &self.url,
            nonce: &nonce,
            ticket: &ticket,
        };
        let proof = proved["proof"].as_str().unwrap();
        assert!(self.secret.is_proved(Role::Server, exchange, proof));
        (nonce, ticket)
    }

    /// Returns a valid proof for one request.
    async fn credential(&self, world: &World) -> String {
        let (nonce, ticket) = self.ticket(world).await;
        authorization(
            &self.secret,
            Exchange {
                url: &self.url,
                nonce: &nonce,
                ticket: &ticket,
            },
        )
    }
}

/// With a socket, the operator's paths do not exist over TCP.
fn closed(world: &World) -> Vec<Case> {
    let nonce = json!({"nonce": "0".repeat(64)}).to_string();
    let root = &world.cast.root;
    vec![
        case(
            "the operator's path",
            Request::get("/v1/operator").by(root),
            NOT_FOUND,
            HARM,
        ),
        case(
            "an operation",
            Request::post("/v1/operator/evidence.erase", "{}").by(root),
            NOT_FOUND,
            HARM,
        ),
        case(
            "an operation with a path in it",
            Request::post("/v1/operator/..%2fkeys", "{}").by(root),
            NOT_FOUND,
            HARM,
        ),
        case(
            "an operation of an agent",
            Request::post("/v1/operator/keys.create", "{}").by(&world.cast.greedy),
            NOT_FOUND,
            HARM,
        ),
        case(
            "a proof where there is none",
            Request::post("/v1/operator/prove", nonce),
            NOT_FOUND,
            HARM,
        ),
        case(
            "the scheme of a proof",
            Request::get("/v1/keys").with("authorization", "Operator a.b.c"),
            UNAUTHORIZED,
            HARM,
        ),
    ]
}

fn challenges(world: &World) -> Vec<Case> {
    let prove = |body: &str| Request::post("/v1/operator/prove", body);
    let upper = json!({"nonce": "A".repeat(64)}).to_string();
    let nonce = json!({"nonce": "0".repeat(64)}).to_string();
    let bodies = [
        "",
        "{}",
        "[]",
        r#"{"nonce": "x"}"#,
        r#"{"nonce": 7}"#,
        r#"{"nonce": null}"#,
        &upper,
    ];
    let mut cases: Vec<Case> = bodies
        .map(|body| case(format!("the challenge {body}"), prove(body), INVALID, HARM))
        .into();
    cases.push(case(
        "a challenge of a page",
        prove(&nonce).with("origin", "https://evil.example"),
        FORBIDDEN,
        HARM,
    ));
    cases.push(case(
        "an operation by a key",
        Request::post("/v1/operator/evidence.erase", "{}").by(&world.cast.root),
        NOT_FOUND,
        HARM,
    ));
    cases
}

async fn forged(world: &World, proofs: &Proofs) -> Vec<Case> {
    let keys = |value: String| Request::get("/v1/keys").with("authorization", value);
    let nobody = |name: &str, value: String| case(name, keys(value), UNAUTHORIZED, HARM);
    let (nonce, ticket) = proofs.ticket(world).await;
    let with = |secret: &Secret, url: &str, nonce: &str, ticket: &str| {
        authorization(secret, Exchange { url, nonce, ticket })
    };
    let (secret, url) = (&proofs.secret, proofs.url.as_str());
    let other = Secret::draw(&*world.parts.ids);
    let zeros = "0".repeat(64);
    let reflected = secret.prove(
        Role::Server,
        Exchange {
            url,
            nonce: &nonce,
            ticket: &ticket,
        },
    );
    let text = secret.text().to_string();
    let good = proofs.credential(world).await;
    vec![
        nobody("another secret", with(&other, url, &nonce, &ticket)),
        nobody(
            "another address",
            with(secret, "http://127.0.0.1:1", &nonce, &ticket),
        ),
        nobody("another nonce", with(secret, url, &zeros, &ticket)),
        nobody(
            "a ticket that nobody gave",
            with(secret, url, &nonce, &zeros),
        ),
        nobody(
            "the server's own proof",
            format!("Operator {nonce}.{ticket}.{reflected}"),
        ),
        nobody("no proof", format!("Operator {nonce}.{ticket}.")),
        nobody(
            "a proof of zeros",
            format!("Operator {nonce}.{ticket}.{zeros}"),
        ),
        nobody("the secret itself", format!("Operator {text}")),
        nobody("the secret as a bearer", format!("Bearer {text}")),
        case(
            "beside another credential",
            keys(good).by(&world.cast.bob),
            UNAUTHORIZED,
            HARM,
        ),
    ]
}

/// A proof is valid for one request, and does not make its holder a user.
async fn once(world: &World, proofs: &Proofs, tally: &mut Tally) {
    let status = async |request: Request, value: &str| {
        world
            .honest(&request.with("authorization", value))
            .await
            .status
    };
    let list = |more: Value| Request::call("notes.list", &more);
    let good = proofs.credential(world).await;
    tally.check(
        "a good proof",
        status(Request::get("/v1/keys"), &good).await,
        200,
    );
    tally.check(
        "the same proof again",
        status(Request::get("/v1/keys"), &good).await,
        401,
    );
    let good = proofs.credential(world).await;
    let in_capitals = good.to_uppercase();
    tally.check(
        "a proof in capitals",
        status(Request::get("/v1/keys"), &in_capitals).await,
        401,
    );
    let nobody = status(list(json!({})), &proofs.credential(world).await).await;
    tally.check("a call for nobody", nobody, 401);
    let ann = status(
        list(json!({"user_id": "ann"})),
        &proofs.credential(world).await,
    )
    .await;
    tally.check("a call for ann", ann, 403);
    tally.stands(world, "proofs").await;
}

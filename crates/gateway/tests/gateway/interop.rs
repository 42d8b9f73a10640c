//! The same calls in the formats of ACP and UCP, over real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use countersign::contract::{Behaviour, ConflictReason, Effect, ErrorBody, ErrorCode, FaultSource};
use countersign::schemars::{self, JsonSchema};
use countersign::{CallContext, Catalog, Tool, ToolArgs, ToolError};
use countersign_gateway::Settings;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::http_client::{Answer, send};
use crate::world::World;

mod closed;
mod codes;
mod keys;
mod storage;
mod views;

/// A key of 128 bits.
const UUID: &str = "550e8400-e29b-41d4-a716-446655440000";

/// Counts its runs, and can be made to wait.
#[derive(Clone, Default)]
struct Place {
    runs: Arc<AtomicU32>,
    /// Notified when the tool has begun, if it waits.
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
}

#[derive(Deserialize, ToolArgs)]
struct PlaceArgs {
    /// What.
    sku: String,
    /// How many.
    #[arg(default = 1)]
    quantity: u32,
    /// Anything to say.
    note: Option<String>,
    /// Whether to wait until the test says so.
    #[arg(default = false)]
    waits: bool,
}

#[derive(Serialize, JsonSchema)]
struct Placed {
    run: u32,
    sku: String,
    quantity: u32,
    note: Option<String>,
}

impl Place {
    fn runs(&self) -> u32 {
        self.runs.load(Ordering::SeqCst)
    }

    async fn place(&self, args: PlaceArgs) -> Placed {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        if args.waits {
            self.begun.notify_one();
            self.go_on.notified().await;
        }
        Placed {
            run,
            sku: args.sku,
            quantity: args.quantity,
            note: args.note,
        }
    }
}

/// An order that is placed elsewhere: its idempotency key is claimed before it runs.
impl Tool for Place {
    const NAME: &'static str = "orders.place";
    const DESCRIPTION: &'static str = "Places an order elsewhere.";
    type Args = PlaceArgs;
    type Output = Placed;

    fn behaviour() -> Behaviour {
        let mut behaviour = Behaviour {
            effect: Effect::External,
            ..Behaviour::default()
        };
        // The second caller is refused at once, and does not wait for the first.
        behaviour.idempotency.join_ms = 0;
        behaviour
    }

    async fn call(&self, _: &CallContext, args: PlaceArgs) -> Result<Placed, ToolError> {
        Ok(self.place(args).await)
    }
}

/// The same as a write: its idempotency key is taken with the commit.
struct Note(Place);

impl Tool for Note {
    const NAME: &'static str = "orders.note";
    const DESCRIPTION: &'static str = "Writes an order down.";
    type Args = PlaceArgs;
    type Output = Placed;

    fn behaviour() -> Behaviour {
        Behaviour {
            effect: Effect::Write,
            ..Behaviour::default()
        }
    }

    async fn call(&self, _: &CallContext, args: PlaceArgs) -> Result<Placed, ToolError> {
        Ok(self.0.place(args).await)
    }
}

/// Answers the requested error.
struct Fail;

#[derive(Deserialize, ToolArgs)]
struct FailArgs {
    /// The error's body.
    #[arg(max_length = 4096)]
    body: String,
}

impl Tool for Fail {
    const NAME: &'static str = "test.fail";
    const DESCRIPTION: &'static str = "Fails.";
    type Args = FailArgs;
    type Output = Value;

    async fn call(&self, _: &CallContext, args: FailArgs) -> Result<Value, ToolError> {
        let body: ErrorBody = serde_json::from_str(&args.body).unwrap();
        Err(body.into())
    }
}

async fn world(place: &Place) -> World {
    World::made(Settings::default(), catalog(place), |builder| builder).await
}

fn catalog(place: &Place) -> Catalog {
    let builder = Catalog::builder()
        .tool(place.clone())
        .tool(Note(place.clone()))
        .tool(Fail);
    builder.build().unwrap()
}

/// Makes one call with a key.
async fn call(world: &World, path: &str, key: &str, arguments: &str) -> Answer {
    let headers = [("idempotency-key", key), ("request-id", "r_1")];
    let body = format!("{{\"arguments\": {arguments}}}");
    send(world, "POST", path, &headers, &body).await
}

//! The process that the demo kills: it adds one item after the other to a cart, several at once, each with a key of its own, and reports on
//! stdout each write that begins and each that was acknowledged.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ask::Ask;
use super::world::World;
use super::{ANNA, SKU};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::rules::RuleOptions;
use crate::victim::{end_with_parent, say};

/// Name of the subcommand that the demo starts.
pub(crate) const COMMAND: &str = "demo-worker";

/// Number of concurrent writes, so that one is in flight at any moment.
const AT_ONCE: u32 = 4;

/// Maximum number of writes, after which a process that was not killed ends by itself.
const WRITES_MAX: u32 = 400;

/// Line of JSON that the process writes about a write.
#[derive(Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub(super) enum Line {
    Begin { key: String },
    Done { key: String, data: Value },
}

/// The process that `countersign demo` kills
#[derive(Debug, clap::Args)]
pub(crate) struct Worker {
    #[arg(long)]
    cart: String,

    #[arg(long)]
    prefix: String,
}

/// Builds the call that adds one more item.
pub(super) fn add(cart: &str, key: &str) -> Ask {
    let arguments = json!({"cart_id": cart, "sku": SKU, "quantity": 1});
    Ask::new(ANNA, "cart.add_item", arguments.to_string()).key(key)
}

impl Worker {
    pub(crate) fn run(&self, data: Option<&Path>) -> Result<Exit, Failure> {
        let Some(data) = data else {
            return Err(Failure::new("the demo starts this itself"));
        };
        let world = World::enter(data, &RuleOptions::default())?;
        end_with_parent();
        let next = Arc::new(AtomicU32::new(0));
        let tasks: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                let (executor, next) = (world.executor().clone(), next.clone());
                let (cart, prefix) = (self.cart.clone(), self.prefix.clone());
                world.place.runtime.spawn(async move {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= WRITES_MAX {
                            return Ok(());
                        }
                        let key = format!("{prefix}{number:04}");
                        tell(&Line::Begin { key: key.clone() })?;
                        let reply = executor.execute(add(&cart, &key).call()).await;
                        if reply.ok {
                            let data = serde_json::to_value(&reply.data)?;
                            tell(&Line::Done { key, data })?;
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            let ended: Result<(), Failure> = world.place.runtime.block_on(task)?;
            ended?;
        }
        Ok(Exit::Ok)
    }
}

/// Writes a line about a write.
fn tell(line: &Line) -> Result<(), Failure> {
    say(&serde_json::to_string(line)?)
}

//! A process is killed in the middle of a write, by the signal that cannot be caught. Acknowledged writes are there, the others happen now,
//! and nothing happens twice.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::demo::ANNA;
use crate::demo::ask::Ask;
use crate::demo::stage::Stage;
use crate::demo::worker::{self, Line};
use crate::demo::world::World;
use crate::failure::Failure;
use crate::victim;

/// Number of writes that are acknowledged before the process is killed.
const DONE_MIN: usize = 24;

/// Maximum number of attempts to kill the process while a write is in flight.
const ROUNDS_MAX: usize = 10;

/// The signal that cannot be caught.
const SIGKILL: i32 = 9;

/// Writes that the killed processes had begun, and those that they had acknowledged.
#[derive(Default)]
pub(in crate::demo) struct Killed {
    cart: String,
    begun: Vec<String>,
    done: BTreeMap<String, Value>,
    in_flight: usize,
    rounds: usize,
    signal: Option<i32>,
}

/// Makes the cart that the processes fill.
pub(in crate::demo) fn prepare(world: &World, stage: &mut Stage<'_>) -> Result<String, Failure> {
    stage.begin("crash", "kill -9 in the middle of a write")?;
    let made = world.ask(Ask::new(ANNA, "cart.create", "{}").key("crash-cart"));
    stage.need(made.text("/cart_id"), "a cart")
}

/// Starts this program as a process of its own that adds one thing after the other, and kills it while it writes. No other process may be
/// in the folder.
pub(in crate::demo) fn kill(data: &Path, cart: String) -> Result<Killed, Failure> {
    let mut killed = Killed {
        cart,
        ..Killed::default()
    };
    while killed.in_flight == 0 && killed.rounds < ROUNDS_MAX {
        killed.rounds += 1;
        killed.round(data)?;
    }
    Ok(killed)
}

impl Killed {
    fn round(&mut self, data: &Path) -> Result<(), Failure> {
        let prefix = format!("crash-{}-", self.rounds);
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(worker::COMMAND);
        command.args(["--cart", &self.cart, "--prefix", &prefix, "--data"]);
        command.arg(data);
        let (begun_before, done_before) = (self.begun.len(), self.done.len());
        let ended = victim::kill_when(&mut command, |line| {
            let is_begin = self.hear(line);
            is_begin && self.done.len() - done_before >= DONE_MIN
        })?;
        self.signal = ended.signal();
        let begun = self.begun.len() - begun_before;
        self.in_flight = begun - (self.done.len() - done_before);
        Ok(())
    }

    /// Takes in a line of the process; true if it says that a write begins.
    fn hear(&mut self, line: &str) -> bool {
        match serde_json::from_str(line) {
            Ok(Line::Begin { key }) => {
                self.begun.push(key);
                true
            }
            Ok(Line::Done { key, data }) => {
                self.done.insert(key, data);
                false
            }
            // A line that the signal cut off says nothing.
            Err(_) => false,
        }
    }
}

/// Outcomes of the keys that were sent again, counted.
#[derive(Default)]
struct Counts {
    kept: usize,
    lost: usize,
    finished: usize,
    made_now: usize,
    refused: usize,
}

/// Sends every key again and counts.
pub(in crate::demo) fn count(
    world: &World,
    stage: &mut Stage<'_>,
    killed: &Killed,
) -> Result<(), Failure> {
    let (begun, done) = (killed.begun.len(), killed.done.len());
    stage.say(&format!(
        "another process adds one item a call, each with its own key; killed after {done} acknowledged, {} in flight",
        killed.in_flight
    ))?;
    let is_killed = killed.signal == Some(SIGKILL) && killed.in_flight > 0;
    stage.check(is_killed, "it died by signal 9 while writes were running")?;
    let knows = world.place.backend.was_lost();
    stage.check(
        knows,
        "the store is whole, and knows that the last shutdown was not clean",
    )?;
    let mut counts = Counts::default();
    for key in &killed.begun {
        let again = world.ask(worker::add(&killed.cart, key));
        let data = again.reply.get("data");
        match (again.is_ok(), killed.done.get(key)) {
            (true, Some(acknowledged)) if again.is_replayed() && data == Some(acknowledged) => {
                counts.kept += 1;
            }
            (true, Some(_)) => counts.lost += 1,
            (true, None) if again.is_replayed() => counts.finished += 1,
            (true, None) => counts.made_now += 1,
            (false, _) => counts.refused += 1,
        }
    }
    stage.say(&format!("started again, every key sent again: {begun}"))?;
    stage.value("acknowledged, kept", &counts.kept.to_string())?;
    stage.value("in flight, was done", &counts.finished.to_string())?;
    stage.value("in flight, done now", &counts.made_now.to_string())?;
    stage.check(
        counts.kept == done && counts.lost == 0 && counts.refused == 0,
        format!("nothing lost: {done} of {done} acknowledged writes answer as before"),
    )?;
    let arguments = json!({"cart_id": killed.cart}).to_string();
    let cart = world.ask(Ask::new(ANNA, "cart.get", arguments));
    stage.call(&cart)?;
    let quantity = cart.data("/lines/0/quantity").and_then(Value::as_u64);
    stage.value("in the cart", &quantity.unwrap_or_default().to_string())?;
    stage.check(
        quantity == u64::try_from(begun).ok(),
        format!("nothing doubled: {begun} keys, {begun} items"),
    )?;
    stage.fact("begun", begun);
    stage.fact("acknowledged", done);
    stage.fact("in_flight", killed.in_flight);
    stage.fact("signal", killed.signal);
    stage.fact("quantity", quantity);
    stage.end()
}

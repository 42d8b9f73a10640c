//! Clients that call a server with new and with earlier keys, and remember what it has answered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use countersign_testkit::patience::comes_true;
use serde_json::{Value, json};

use super::server::ask;
use crate::driver::Dice;

/// Everything that the clients were told.
#[derive(Debug, Default)]
pub struct Told {
    /// The keys that were called, with the first success of each.
    pub keys: BTreeMap<Key, Option<Success>>,
    /// Evidence ids of reads that were answered.
    pub reads: Vec<String>,
    /// Number of answers of any kind.
    pub answers: usize,
    /// Answers that are none of a server that cannot write, and two answers for one key.
    pub wrong: Vec<String>,
}

/// A key of a user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The user, one for each client and round.
    pub user: String,
    /// Number of the key.
    pub n: u32,
}

/// The first success of a key.
#[derive(Debug, Clone, PartialEq)]
pub struct Success {
    /// Data of the answer.
    pub data: Value,
    /// Id of its record.
    pub evidence: Option<String>,
}

impl Key {
    /// Text of the note that the call with this key adds.
    pub fn text(&self) -> String {
        format!("{} {}", self.user, self.n)
    }

    /// Calls with this key.
    pub fn call(&self, address: &str) -> anyhow::Result<(u16, Value)> {
        let body = json!({
            "arguments": {"text": self.text()},
            "user_id": self.user,
            "idempotency_key": format!("k{}", self.n),
        });
        ask(address, "POST", "/v1/tools/notes.add", &body.to_string())
    }
}

/// Clients at work.
#[derive(Debug)]
pub struct Load {
    clients: Vec<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
    answers: Arc<AtomicUsize>,
    told: Arc<Mutex<Told>>,
}

impl Load {
    /// Starts clients, each a user of its own.
    pub fn start(address: &str, clients: u32, round: u32, seed: u64) -> Self {
        let mut load = Self {
            clients: Vec::new(),
            is_over: Arc::default(),
            answers: Arc::default(),
            told: Arc::default(),
        };
        for client in 0..clients {
            let one = Client {
                address: address.to_owned(),
                user: format!("u_{round}_{client}"),
                keys: 0,
                dice: Dice((seed ^ (u64::from(round) << 20) ^ u64::from(client) << 8) | 1),
                told: load.told.clone(),
            };
            let (is_over, answers) = (load.is_over.clone(), load.answers.clone());
            load.clients.push(std::thread::spawn(move || {
                one.run(&is_over, &answers);
            }));
        }
        load
    }

    /// Waits for so many further answers, or until the time is over.
    pub fn wait_for(&self, answers: usize, at_most: Duration) {
        let until = self.answers.load(Ordering::SeqCst) + answers;
        comes_true(at_most, || self.answers.load(Ordering::SeqCst) >= until);
    }

    /// Stops the clients and returns what they were told.
    pub fn stop(self) -> Told {
        self.is_over.store(true, Ordering::SeqCst);
        for client in self.clients {
            // A client that has panicked has told what it could.
            client.join().ok();
        }
        std::mem::take(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Client {
    address: String,
    user: String,
    keys: u32,
    dice: Dice,
    told: Arc<Mutex<Told>>,
}

/// Maximum number of keys of a user: there are as many notes.
const KEYS_MAX: u32 = 400;

impl Client {
    fn run(mut self, is_over: &AtomicBool, answers: &AtomicUsize) {
        while !is_over.load(Ordering::SeqCst) {
            if self.dice.below(4) == 0 {
                self.read();
            } else {
                self.write();
            }
            answers.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn read(&self) {
        let body = json!({"arguments": {"query": "agent"}, "user_id": self.user}).to_string();
        let answer = ask(&self.address, "POST", "/v1/tools/memory.search", &body);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.answers += 1;
        let Ok((status, reply)) = answer else { return };
        if reply.get("ok") == Some(&Value::Bool(true)) {
            told.reads.extend(evidence(&reply));
        } else if !is_honest(&reply) {
            told.wrong.push(format!("a read: {status} {reply}"));
        }
    }

    fn write(&mut self) {
        let n = if self.keys > 0 && (self.dice.below(4) == 0 || self.keys >= KEYS_MAX) {
            self.dice.below(self.keys)
        } else {
            self.keys += 1;
            self.keys - 1
        };
        let key = Key {
            user: self.user.clone(),
            n,
        };
        let answer = key.call(&self.address);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.answers += 1;
        let first = told.keys.entry(key.clone()).or_default();
        // A connection that was cut says nothing of the call.
        let Ok((status, reply)) = answer else { return };
        if let Some(wrong) = judge(first, &reply) {
            let wrong = format!("{}: {status} {wrong}", key.text());
            told.wrong.push(wrong);
        }
    }
}

/// Compares an answer with the first success of its key, and keeps it if it is the first. Returns what is wrong with it.
pub(super) fn judge(first: &mut Option<Success>, reply: &Value) -> Option<String> {
    if reply.get("ok") != Some(&Value::Bool(true)) {
        let is_late = first.is_some() && reason(reply) == Some("in_doubt");
        return (!is_honest(reply) || is_late).then(|| reply.to_string());
    }
    let data = reply.get("data").cloned().unwrap_or_default();
    match first {
        Some(first) if first.data != data => Some(format!("answered {} and {data}", first.data)),
        Some(_) => None,
        None => {
            *first = Some(Success {
                data,
                evidence: evidence(reply),
            });
            None
        }
    }
}

fn evidence(reply: &Value) -> Option<String> {
    let id = reply.pointer("/evidence/snapshot_id")?.as_str()?;
    Some(id.to_owned())
}

fn reason(reply: &Value) -> Option<&str> {
    reply.pointer("/error/details/reason")?.as_str()
}

/// True for an error that says that the store did not take or give something, or that the key is in use.
fn is_honest(reply: &Value) -> bool {
    match reply.pointer("/error/code").and_then(Value::as_str) {
        Some("UPSTREAM_ERROR" | "TIMEOUT" | "RATE_LIMITED") => true,
        Some("CONFLICT") => matches!(reason(reply), Some("in_flight" | "version" | "in_doubt")),
        Some(_) | None => false,
    }
}

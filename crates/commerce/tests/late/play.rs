//! Plays steps, and keeps all calls and replies.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use countersign::approve::Wanted;
use countersign::archive::{Error, SCOPE_ERASE, SCOPE_HOLD};
use countersign::contract::{ApprovalState, RequestEnvelope, SnapshotId};
use countersign::{Catalog, Principal, ToolCall, ledger};
use serde_json::{Value, json};

use crate::log::Watch;
use crate::place::Place;
use crate::shop::{PAYMENT, Shelf, WAY};
use crate::step::{Act, Answer, Call, Change, Fault, How, Pick, Step, USERS};

/// A call that was made.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) user: usize,
    pub(crate) tool: String,
    /// The arguments as they were sent.
    text: String,
    envelope: Value,
    pub(crate) reply: Value,
}

impl Made {
    /// True if it succeeded and was no dry run.
    pub(crate) fn is_real(&self) -> bool {
        self.reply["ok"] == true && self.reply["dry_run"] != true
    }

    pub(crate) fn data(&self) -> &Value {
        &self.reply["data"]
    }

    pub(crate) fn evidence(&self) -> Option<&str> {
        self.reply["evidence"]["snapshot_id"].as_str()
    }
}

/// A place, all calls made there, and the watcher of its log.
pub(crate) struct Play {
    place: Place,
    watch: Watch,
    made: Vec<Made>,
    tools: Vec<String>,
    /// The holds of each user: single records, or `None` for everything.
    holds: [Vec<Option<SnapshotId>>; USERS.len()],
    tally: Tally,
    /// The number of steps between two checks of the log, and the steps since the last one.
    looks: (usize, usize),
}

impl Play {
    pub(crate) fn new(place: Place) -> Self {
        Self {
            tools: catalog(),
            place,
            watch: Watch::default(),
            made: Vec::new(),
            holds: Default::default(),
            tally: Tally::default(),
            looks: (1, 0),
        }
    }

    /// Checks the log only after this many steps.
    pub(crate) fn looking_every(mut self, steps: usize) -> Self {
        self.looks.0 = steps;
        self
    }

    /// Plays a step, and checks the log.
    pub(crate) async fn step(&mut self, step: &Step) {
        let user = step.user;
        let mut is_whole = false;
        match step.act {
            Act::Call(call) => self.call(user, call).await,
            Act::Way {
                basket,
                calls,
                late,
                pause,
            } => self.way((user, basket), calls, (late, pause)).await,
            Act::Repeat { which, change } => self.repeat(user, which, change).await,
            Act::Answer { which, answer } => self.answer(user, which, answer).await,
            Act::Wait(seconds) => self.place.clock.advance(Duration::from_secs(seconds)),
            Act::Hold(which) => self.hold(user, which).await,
            Act::Release => self.release(user).await,
            Act::Erase => {
                self.erase(user).await;
                is_whole = true;
            }
            Act::Restart { rules, is_unclean } => {
                self.place.restart(rules, is_unclean).await;
                self.tally.count("restart", "done");
                is_whole = true;
            }
            Act::Maintain => {
                // The waits of a play are longer than a clock may jump.
                let archive = &self.place.now().archive;
                let by = operator();
                let trusted = archive.trust_clock(&by, "a play waits for long");
                trusted.await.unwrap();
                let done = self.place.now().sequencer.maintain().await.unwrap();
                let is_pruned = done.disposal.disposed().payloads > 0;
                let what = if is_pruned { "pruned" } else { "nothing" };
                self.tally.count("maintain", what);
                is_whole = true;
            }
        }
        self.looks.1 += 1;
        if is_whole || self.looks.1 >= self.looks.0 {
            self.looks.1 = 0;
            self.look(is_whole).await;
        }
    }

    /// Erases all users and checks everything once more.
    pub(crate) async fn end(mut self) -> Tally {
        for user in [1, 0] {
            self.release(user).await;
            self.erase(user).await;
            self.look(true).await;
        }
        self.tally.records = self.watch.size();
        self.tally
    }

    async fn look(&mut self, is_whole: bool) {
        let proved = [
            "checkout.create_draft_order",
            PAYMENT,
            "evidence.create_snapshot",
        ];
        let proved = proved.iter().filter_map(|tool| {
            let mut newest = self.made.iter().rev();
            newest.find(|made| made.tool == *tool && made.is_real())
        });
        let proved = proved.filter_map(Made::evidence).map(id).collect();
        self.watch.look(&mut self.place, proved, is_whole).await;
    }

    async fn call(&mut self, user: usize, call: Call) {
        let tool = self.tools[call.tool % self.tools.len()].clone();
        let owner = match call.fault {
            Fault::Foreign => Some(1 - user),
            Fault::Unknown => None,
            Fault::Nothing | Fault::Prose | Fault::Empty | Fault::Types => Some(user),
        };
        let arguments = self.arguments(owner, &tool, call.pick);
        let text = match call.fault {
            Fault::Nothing | Fault::Foreign | Fault::Unknown => arguments.to_string(),
            Fault::Prose => "Sure, I will do that.".to_owned(),
            Fault::Empty => "{}".to_owned(),
            Fault::Types => retyped(arguments).to_string(),
        };
        let envelope = match call.how {
            How::Plain => json!({}),
            How::DryRun => json!({"dry_run": true}),
            How::Key(key) => json!({"idempotency_key": format!("key-{key}")}),
        };
        self.send(user, &tool, text, envelope).await;
    }

    /// The arguments of a call, made from the answers to `owner`.
    fn arguments(&self, owner: Option<usize>, tool: &str, pick: Pick) -> Value {
        let of_owner = self.made.iter().filter(|made| Some(made.user) == owner);
        let made = of_owner.collect();
        Shelf { made, pick }.arguments(tool)
    }

    async fn way(&mut self, by: (usize, usize), calls: usize, (late, pause): (usize, u64)) {
        let (user, basket) = by;
        for (at, tool) in WAY.iter().enumerate().take(calls + 1) {
            if at == late {
                self.place.clock.advance(Duration::from_secs(pause));
            }
            if at + 1 == WAY.len() {
                self.answer(user, 0, Answer::Yes).await;
            }
            let arguments = self.arguments(Some(user), tool, Pick { which: 0, basket });
            self.send(user, tool, arguments.to_string(), json!({}))
                .await;
        }
    }

    async fn repeat(&mut self, user: usize, which: usize, change: Change) {
        let count = self.made.len().max(1);
        let newest = self.made.iter().rev().nth(which % count);
        let Some(mut made) = newest.cloned() else {
            return;
        };
        let mut by = made.user;
        match change {
            Change::Nothing => {}
            Change::DryRun => made.envelope["dry_run"] = json!(true),
            Change::OtherKey => made.envelope["idempotency_key"] = json!("key-other"),
            Change::OtherArguments => {
                let other = self.made.iter().find(|it| it.tool == made.tool);
                made.text = other.map_or(made.text, |other| other.text.clone());
            }
            Change::OtherUser => by = user,
        }
        self.send(by, &made.tool, made.text, made.envelope).await;
    }

    async fn send(&mut self, user: usize, tool: &str, text: String, envelope: Value) {
        let read: RequestEnvelope = serde_json::from_value(envelope.clone()).unwrap();
        let call = ToolCall::new(tool, text.clone(), Principal::user(USERS[user]));
        let executor = &self.place.now().executor;
        let reply = executor.execute(call.envelope(read)).await;
        let made = Made {
            user,
            tool: tool.to_owned(),
            text,
            envelope,
            reply: serde_json::to_value(reply).unwrap(),
        };
        let code = made.reply["error"]["code"].as_str().unwrap_or("ok");
        self.tally.count(tool, code);
        self.watch.named(&made);
        self.made.push(made);
    }

    async fn answer(&mut self, user: usize, which: usize, answer: Answer) {
        let approvals = self.place.now().executor.approvals();
        let owner = Principal::user(USERS[user]);
        let listed = approvals.list(&owner, &Wanted::default()).await.unwrap();
        let is_open = |state| state == ApprovalState::Pending;
        // Open ones first; if there are none, an answered or expired one.
        let open = listed.iter().filter(|it| is_open(it.state));
        let closed = listed.iter().filter(|it| !is_open(it.state));
        let questions: Vec<_> = open.chain(closed).collect();
        let Some(question) = questions.get(which % questions.len().max(1)) else {
            return;
        };
        let by = match answer {
            Answer::Yes | Answer::No => owner,
            Answer::Foreign => Principal::user(USERS[1 - user]),
        };
        let answered = match answer {
            Answer::Yes | Answer::Foreign => approvals.approve(&question.id, &by, None).await,
            Answer::No => approvals.deny(&question.id, &by, None).await,
        };
        let is_foreign = matches!(answer, Answer::Foreign);
        assert_eq!(
            answered.is_ok(),
            is_open(question.state) && !is_foreign,
            "{answer:?} to {question:?}: {answered:?}"
        );
        let what = format!("{answer:?} to {}", question.state.as_str());
        self.tally.count("approval", &what);
    }

    async fn hold(&mut self, user: usize, which: Option<usize>) {
        let of_user = self.made.iter().rev().filter(|made| made.user == user);
        let evidence: Vec<&str> = of_user.filter_map(Made::evidence).collect();
        let record = which.and_then(|which| evidence.get(which % evidence.len().max(1)));
        let record = record.map(|record| id(record));
        let archive = &self.place.now().archive;
        let by = operator();
        let held = archive.hold(USERS[user], record.as_ref(), &by, "a dispute");
        match held.await {
            Ok(_) if self.holds[user].contains(&record) => {}
            Ok(_) => self.holds[user].push(record),
            // The user was erased since, so the owner of the record is unknown.
            Err(Error::NoRecord { .. }) if record.is_some() => {}
            Err(error) => assert_eq!(error.to_string(), "", "a hold"),
        }
        self.tally.count("hold", "placed");
    }

    async fn release(&mut self, user: usize) {
        let archive = &self.place.now().archive;
        for record in std::mem::take(&mut self.holds[user]) {
            let by = operator();
            let lifted = archive.release_hold(USERS[user], record.as_ref(), &by, "settled");
            assert!(lifted.await.unwrap().is_some(), "{record:?} was held");
            self.tally.count("hold", "released");
        }
    }

    async fn erase(&mut self, user: usize) {
        let archive = &self.place.now().archive;
        let by = operator();
        let erased = archive.erase(USERS[user], &by, "the user has asked");
        let what = match erased.await {
            Ok(_) => "done",
            Err(Error::Store(ledger::Error::UnderHold { .. })) => "under hold",
            Err(error) => {
                assert_eq!(error.to_string(), "", "an erasure");
                ""
            }
        };
        let is_held = !self.holds[user].is_empty();
        assert_eq!(what == "under hold", is_held, "{:?}", self.holds);
        self.tally.count("erase", what);
    }
}

fn operator() -> Principal {
    Principal::user("operator")
        .scope(SCOPE_HOLD)
        .scope(SCOPE_ERASE)
}

fn id(text: &str) -> SnapshotId {
    text.parse().unwrap()
}

/// The names of all tools.
fn catalog() -> Vec<String> {
    let catalog = countersign_commerce::tools(Catalog::builder()).build();
    let entries = catalog.unwrap().list();
    let names = entries.iter().map(|entry| entry.name().to_string());
    names.collect()
}

/// The arguments, each with another type.
fn retyped(arguments: Value) -> Value {
    let Value::Object(members) = arguments else {
        return arguments;
    };
    let other = |value: &Value| match value {
        Value::String(_) | Value::Bool(_) | Value::Null => json!([{"x": 1}]),
        Value::Number(_) => json!("many"),
        Value::Array(_) | Value::Object(_) => json!(7),
    };
    let members = members.iter().map(|(name, value)| (name, other(value)));
    members.map(|(name, value)| (name.clone(), value)).collect()
}

/// The counts of actions and their outcomes.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: BTreeMap<(String, String), usize>,
    pub(crate) records: u64,
}

impl Tally {
    fn count(&mut self, what: &str, end: &str) {
        let key = (what.to_owned(), end.to_owned());
        *self.counts.entry(key).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.records += other.records;
        for (key, count) in other.counts {
            *self.counts.entry(key).or_default() += count;
        }
    }

    /// True if this action had this outcome at least once.
    pub(crate) fn has(&self, what: &str, end: &str) -> bool {
        let key = (what.to_owned(), end.to_owned());
        self.counts.contains_key(&key)
    }

    /// Fails if a tool of the catalog was never called.
    pub(crate) fn check_called(&self) {
        for tool in catalog() {
            let is_called = self.counts.keys().any(|(what, _)| *what == tool);
            assert!(is_called, "{tool} was never called");
        }
    }

    /// Fails if a tool of the catalog never succeeded.
    pub(crate) fn check_worked(&self) {
        for tool in catalog() {
            assert!(self.has(&tool, "ok"), "{tool} never worked");
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} records", self.records)?;
        for ((what, end), count) in &self.counts {
            writeln!(f, "{count:7} {what}: {end}")?;
        }
        Ok(())
    }
}

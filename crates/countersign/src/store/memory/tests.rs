//! The rules of a store, without an executor around it.

use countersign_contract::record::{BindSummary, PhaseTimes};
use countersign_contract::{Actor, ActorType, ReplyEnvelope, ToolName};
use serde_json::Value;

use super::*;

/// A store, and a present that moves by hand.
struct Desk {
    store: MemoryStore,
    at: Timestamp,
}

impl Desk {
    fn new(store: MemoryStore) -> Self {
        Self {
            store,
            at: Timestamp::UNIX_EPOCH,
        }
    }

    fn request(&self, key: &str, arguments: u8, effect: Effect) -> ClaimRequest {
        ClaimRequest {
            scope: Scope {
                user_id: "u_1".to_owned(),
                tool: ToolName::new("a.b").unwrap(),
                key: key.to_owned(),
            },
            fingerprint: Digest([arguments; 32]),
            effect,
            at: self.at,
            lease: Duration::from_secs(10),
            retention: Duration::from_hours(1),
        }
    }

    fn claim(&self, key: &str, arguments: u8, effect: Effect) -> Result<Claim, HeldState> {
        match self
            .store
            .take(&self.request(key, arguments, effect))
            .unwrap()
        {
            ClaimAnswer::Ours(claim) => Ok(claim),
            ClaimAnswer::Held(held) => Err(held.state),
        }
    }

    fn settle(&self, claim: Claim, outcome: Outcome) -> Result<(), Error> {
        self.store
            .end(Settle::new(claim, outcome, record(), self.at))
    }

    fn wait(&mut self, by: SignedDuration) {
        self.at += by;
    }
}

fn record() -> Box<CallRecord> {
    Box::new(CallRecord {
        request_id: RequestId::new("req_1").unwrap(),
        tool: "a.b".to_owned(),
        tool_version: None,
        actor: Actor {
            kind: ActorType::User,
            id: "u_1".to_owned(),
        },
        user_id: "u_1".to_owned(),
        session_id: None,
        policy_revision: None,
        trace: None,
        snapshot_id: None,
        at: String::new(),
        code: None,
        dry_run: false,
        replayed: false,
        arguments_digest: None,
        arguments_redacted: Value::Null,
        data_digest: None,
        binding: BindSummary::default(),
        phases: PhaseTimes::default(),
    })
}

fn success() -> Outcome {
    let reply = ReplyEnvelope::success(RequestId::new("req_1").unwrap(), Value::Null);
    let at = Timestamp::UNIX_EPOCH;
    Outcome::Succeeded(Arc::new(StoredReply { reply, at }))
}

/// An owner that was overtaken changes nothing any more; what it did late is still recorded.
#[test]
fn an_overtaken_owner_is_fenced() {
    let mut desk = Desk::new(MemoryStore::new());
    let first = desk.claim("k", 1, Effect::Write).unwrap();
    desk.wait(SignedDuration::from_secs(10));
    let second = desk.claim("k", 1, Effect::Write).unwrap();
    assert!(second.attempt > first.attempt);
    for outcome in [success(), Outcome::Released, Outcome::InDoubt] {
        let fenced = desk.settle(first.clone(), outcome);
        assert!(matches!(fenced, Err(Error::Fenced { attempt }) if attempt == first.attempt));
    }
    assert_eq!(desk.store.records().len(), 3);
    desk.settle(second.clone(), success()).unwrap();
    assert!(matches!(
        desk.claim("k", 1, Effect::Write),
        Err(HeldState::Succeeded(_))
    ));
    assert!(
        desk.settle(second, Outcome::Released).is_err(),
        "a settled claim is settled"
    );
}

/// An owner that was only thought lost may still say what happened.
#[test]
fn doubt_ends_when_its_owner_comes_back() {
    let mut desk = Desk::new(MemoryStore::new());
    let first = desk.claim("k", 1, Effect::External).unwrap();
    desk.wait(SignedDuration::from_secs(10));
    assert_eq!(
        desk.claim("k", 1, Effect::External),
        Err(HeldState::InDoubt)
    );
    desk.settle(first, success()).unwrap();
    assert!(matches!(
        desk.claim("k", 1, Effect::External),
        Err(HeldState::Succeeded(_))
    ));
}

/// A released key stays bound to the arguments that it was first used for.
#[test]
fn a_released_key_keeps_its_arguments() {
    let desk = Desk::new(MemoryStore::new());
    let first = desk.claim("k", 1, Effect::Write).unwrap();
    desk.settle(first, Outcome::Released).unwrap();
    assert_eq!(desk.claim("k", 2, Effect::Write), Err(HeldState::Released));
    assert_eq!(
        desk.claim("k", 1, Effect::Write).map(|claim| claim.attempt),
        Ok(2)
    );
}

/// A20: a key is refused for thirty days after its answer is gone, and only then forgotten.
#[test]
fn a_tombstone_makes_room_after_its_time() {
    let mut desk = Desk::new(MemoryStore::new().keys_max(1));
    let first = desk.claim("k", 1, Effect::Write).unwrap();
    desk.settle(first, success()).unwrap();
    desk.wait(SignedDuration::from_hours(30 * 24));
    assert_eq!(desk.claim("k", 1, Effect::Write), Err(HeldState::Expired));
    let other = desk.request("other", 1, Effect::Write);
    assert!(matches!(
        desk.store.take(&other),
        Err(Error::Full { limit: 1 })
    ));
    desk.wait(SignedDuration::from_hours(1));
    assert_eq!(
        desk.claim("other", 1, Effect::Write)
            .map(|claim| claim.attempt),
        Ok(1)
    );
}

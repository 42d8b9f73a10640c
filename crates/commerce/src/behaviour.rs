//! The behaviours of the shop's tools, defined once.

use countersign::CallContext;
use countersign::contract::tool::{Change, EvidenceRule, KeyRule, Replay};
use countersign::contract::{Behaviour, Effect};
use jiff::{SignedDuration, Timestamp};

/// TTL of a quote.
pub const QUOTE_SECONDS: u32 = 300;

/// TTL of shipping options.
pub const SHIPPING_SECONDS: u32 = 300;

/// TTL of an estimate of duties and taxes.
pub const TAX_SECONDS: u32 = 300;

/// TTL of a compliance decision.
pub const COMPLIANCE_SECONDS: u32 = 3_600;

/// TTL of a total.
pub const TOTAL_SECONDS: u32 = 60;

/// TTL of a draft order.
pub const DRAFT_ORDER_SECONDS: u32 = 1_800;

/// Duration for which a lock holds the price and stock of a draft order.
pub const LOCK_SECONDS: u32 = 900;

/// The time of this call plus this many seconds; [`Timestamp::MAX`] if there is no later one.
pub fn later(ctx: &CallContext, seconds: u32) -> Timestamp {
    let after = SignedDuration::from_secs(seconds.into());
    ctx.now().checked_add(after).unwrap_or(Timestamp::MAX)
}

/// A read: the call changes nothing.
pub fn read() -> Behaviour {
    Behaviour::default()
}

/// A read of something that changes, such as a price or stock. Its answer may be relied on for this TTL.
pub fn asks(ttl_seconds: u32) -> Behaviour {
    Behaviour {
        evidence: EvidenceRule::Required,
        ttl_seconds: Some(ttl_seconds),
        ..Behaviour::default()
    }
}

/// A rule: the same arguments, versions and time give the same answer, so that it can be computed again.
pub fn rule(ttl_seconds: u32) -> Behaviour {
    Behaviour {
        replay: Replay::Pure {
            volatile: Vec::new(),
        },
        ..asks(ttl_seconds)
    }
}

/// A write: changes the tool's state. Everything else about the call is committed with that change.
pub fn write() -> Behaviour {
    Behaviour {
        effect: Effect::Write,
        evidence: EvidenceRule::Required,
        ..Behaviour::default()
    }
}

/// A write that adds to the tool's state.
pub fn add() -> Behaviour {
    Behaviour {
        change: Change::Adds,
        ..write()
    }
}

/// An idempotent write: the same call again changes nothing more.
pub fn set() -> Behaviour {
    Behaviour {
        change: Change::Sets,
        ..write()
    }
}

/// A write that costs money if it happens twice. Without an idempotency key the call gets one from its user, tool and
/// arguments, so that the same call is the same order.
pub fn write_once() -> Behaviour {
    let mut behaviour = add();
    behaviour.idempotency.key = KeyRule::Derive;
    behaviour
}

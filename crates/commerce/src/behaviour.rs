//! How the tools of the shop behave, said once.

use countersign::CallContext;
use countersign::contract::tool::{Change, EvidenceRule, KeyRule, Replay};
use countersign::contract::{Behaviour, Effect};
use jiff::{SignedDuration, Timestamp};

/// A quote holds so long.
pub const QUOTE_SECONDS: u32 = 300;

/// So do shipping options and estimates of duties and taxes.
pub const SHIPPING_SECONDS: u32 = 300;

/// An estimate of duties and taxes holds so long.
pub const TAX_SECONDS: u32 = 300;

/// A decision about compliance holds so long.
pub const COMPLIANCE_SECONDS: u32 = 3_600;

/// A total holds so long.
pub const TOTAL_SECONDS: u32 = 60;

/// A draft order is valid so long.
pub const DRAFT_ORDER_SECONDS: u32 = 1_800;

/// Prices and stock are held for a draft order so long.
pub const LOCK_SECONDS: u32 = 900;

/// So many seconds after this call; the end of time where there is no later one.
pub fn later(ctx: &CallContext, seconds: u32) -> Timestamp {
    let after = SignedDuration::from_secs(seconds.into());
    ctx.now().checked_add(after).unwrap_or(Timestamp::MAX)
}

/// Looks something up.
pub fn read() -> Behaviour {
    Behaviour::default()
}

/// Asks the world, and its answer may be built on for so long: a price, stock.
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

/// Changes what the tool keeps; everything else about it is committed with that.
pub fn write() -> Behaviour {
    Behaviour {
        effect: Effect::Write,
        evidence: EvidenceRule::Required,
        ..Behaviour::default()
    }
}

/// Adds something to what the tool keeps.
pub fn add() -> Behaviour {
    Behaviour {
        change: Change::Adds,
        ..write()
    }
}

/// Sets something: the same call again changes nothing more.
pub fn set() -> Behaviour {
    Behaviour {
        change: Change::Sets,
        ..write()
    }
}

/// A write of which a second one would cost somebody something: without a key it gets one from its user,
/// tool and arguments, so that the same call is the same order.
pub fn write_once() -> Behaviour {
    let mut behaviour = add();
    behaviour.idempotency.key = KeyRule::Derive;
    behaviour
}

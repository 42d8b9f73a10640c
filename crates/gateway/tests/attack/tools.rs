//! Tools that count their effects, so that every effect of an attack is seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use countersign::contract::Behaviour;
use countersign::contract::tool::{
    AmountUnit, Ceiling, Confirmation, Effect, EvidenceRule, Recovery, Terms,
};
use countersign::sample::{AddNote, ClearNotes, ListNotes};
use countersign::{CallContext, Catalog, Tool, ToolArgs, ToolError};
use serde::Deserialize;
use tokio::sync::{Notify, Semaphore};

/// Effects of the tools.
#[derive(Default)]
pub(crate) struct Deeds {
    /// Number of wiped disks.
    pub(crate) wiped: AtomicU64,
    /// Number of prepared payments, and their total in cents.
    pub(crate) paid: AtomicU64,
    pub(crate) cents: AtomicU64,
    /// Notified when a call of `test.hold` runs; the call goes on when it is released.
    pub(crate) holding: Notify,
    pub(crate) release: Semaphores,
}

/// A gate that is closed at first.
pub(crate) struct Semaphores(pub(crate) Semaphore);

impl Default for Semaphores {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

pub(crate) fn catalog(deeds: &Arc<Deeds>) -> Catalog {
    let builder = Catalog::builder()
        .tool(AddNote)
        .tool(ListNotes)
        .tool(ClearNotes)
        .tool(Wipe(deeds.clone()))
        .tool(Launch(deeds.clone()))
        .tool(Pay(deeds.clone()))
        .tool(Hold(deeds.clone()));
    builder.build().unwrap()
}

/// Wipes a disk, once the user has confirmed it.
struct Wipe(Arc<Deeds>);

#[derive(Deserialize, ToolArgs)]
struct WipeArgs {
    /// What to wipe.
    #[expect(dead_code, reason = "it is what the user agrees to")]
    disk: String,
}

impl Tool for Wipe {
    const NAME: &'static str = "disk.wipe";
    const DESCRIPTION: &'static str = "Wipes a disk.";
    type Args = WipeArgs;
    type Output = String;

    fn behaviour() -> Behaviour {
        Behaviour {
            effect: Effect::External,
            confirmation: Confirmation::Always,
            evidence: EvidenceRule::Required,
            recovery: Recovery::Retry,
            ..Behaviour::default()
        }
    }

    async fn call(&self, _: &CallContext, _: WipeArgs) -> Result<String, ToolError> {
        let count = self.0.wiped.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(format!("disk {count} is empty"))
    }
}

/// A disk wipe for which the policy requires two approvers.
struct Launch(Arc<Deeds>);

impl Tool for Launch {
    const NAME: &'static str = "disk.launch";
    const DESCRIPTION: &'static str = "Launches a disk.";
    type Args = WipeArgs;
    type Output = String;

    fn behaviour() -> Behaviour {
        Behaviour {
            confirmation: Confirmation::Never,
            ..Wipe::behaviour()
        }
    }

    async fn call(&self, ctx: &CallContext, args: WipeArgs) -> Result<String, ToolError> {
        Wipe(self.0.clone()).call(ctx, args).await
    }
}

/// Buys something for at most the confirmed amount.
struct Pay(Arc<Deeds>);

#[derive(Deserialize, ToolArgs)]
struct PayArgs {
    /// Where.
    #[expect(dead_code, reason = "it is what the user agrees to")]
    shop: String,
    /// How much, in the smallest unit.
    amount: u32,
    /// Of which currency.
    #[expect(dead_code, reason = "it is what the user agrees to")]
    currency: String,
}

impl Tool for Pay {
    const NAME: &'static str = "shop.buy";
    const DESCRIPTION: &'static str = "Buys it.";
    type Args = PayArgs;
    type Output = String;

    fn behaviour() -> Behaviour {
        Behaviour {
            effect: Effect::External,
            confirmation: Confirmation::Terms(Terms {
                exact: vec!["/shop".to_owned()],
                ceiling: Ceiling {
                    amount: "/amount".to_owned(),
                    currency: "/currency".to_owned(),
                    unit: AmountUnit::Minor,
                },
            }),
            evidence: EvidenceRule::Required,
            recovery: Recovery::Retry,
            ..Behaviour::default()
        }
    }

    async fn call(&self, _: &CallContext, args: PayArgs) -> Result<String, ToolError> {
        self.0.paid.fetch_add(1, Ordering::SeqCst);
        self.0.cents.fetch_add(args.amount.into(), Ordering::SeqCst);
        Ok("bought".to_owned())
    }
}

/// Reports that it runs, and waits until it is released.
struct Hold(Arc<Deeds>);

#[derive(Deserialize, ToolArgs)]
struct HoldArgs {}

impl Tool for Hold {
    const NAME: &'static str = "test.hold";
    const DESCRIPTION: &'static str = "Waits.";
    type Args = HoldArgs;
    type Output = bool;

    fn behaviour() -> Behaviour {
        Behaviour {
            effect: Effect::Write,
            evidence: EvidenceRule::Required,
            ..Behaviour::default()
        }
    }

    async fn call(&self, _: &CallContext, _: HoldArgs) -> Result<bool, ToolError> {
        self.0.holding.notify_one();
        let let_go = self.0.release.0.acquire().await;
        let_go.map(tokio::sync::SemaphorePermit::forget).ok();
        Ok(true)
    }
}

//! A small log: a quote, an order that rests on it, a refusal and a call that is in doubt.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::archive::{Archive, SCOPE_ERASE, SCOPE_HOLD, SCOPE_OPEN, SCOPE_RESOLVE};
use countersign::budget::{Budget, BudgetScope, Budgets, Currency, ToolAmount, Unit};
use countersign::clock::ManualClock;
use countersign::contract::{Actor, ActorType, ErrorCode, Input, SnapshotId};
use countersign::ids::SequentialIds;
use countersign::ledger::{MemoryStore, Store};
use countersign::newest::NewestCheckpoint;
use countersign::pattern::ToolPattern;
use countersign::sequencer::{LastStop, Sequencer};
use countersign::state::Collection;
use countersign::vault::Vault;
use countersign::{Catalog, Executor, Principal, ToolError};
use countersign_evidence::note::SigningKey;
use countersign_evidence::seal::MasterKey;
use serde_json::{Value, json};

use crate::world::{Probe, call};

pub(crate) const CANARY: &str = "canary@example.com";
pub(crate) const ORIGIN: &str = "example.com/log";

pub(crate) struct Shop {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) executor: Executor,
    pub(crate) archive: Archive,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ids: Arc<SequentialIds>,
    pub(crate) newest: NewestCheckpoint,
    /// The key that `mail.send` has sent to its service last.
    pub(crate) sent_key: SentKey,
}

/// A key that a tool has sent to its service.
pub(crate) type SentKey = Arc<Mutex<Option<String>>>;

/// The ids of the records that [`Shop::busy`] has left in the log.
pub(crate) struct Day {
    pub(crate) quote: SnapshotId,
    pub(crate) order: SnapshotId,
}

impl Shop {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::starting_at(
            "2026-11-15T12:00:00Z".parse().unwrap(),
        ));
        let ids = Arc::new(SequentialIds::new());
        let store = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
        let newest = NewestCheckpoint::new();
        let sent_key = SentKey::default();
        let executor = Executor::builder(catalog(&sent_key))
            .clock(clock.clone())
            .ids(ids.clone())
            .store(store.clone())
            .kms(Arc::new(MasterKey::from_bytes(&[9; 32])))
            .newest_checkpoint(newest.clone())
            .budgets(Arc::new(budgets()))
            .build();
        let archive = Archive::new(
            store.clone(),
            executor.vault().clone(),
            clock.clone(),
            ids.clone(),
            signing_key().verifying_key(),
        );
        Self {
            store,
            executor,
            archive,
            clock,
            ids,
            newest,
            sent_key,
        }
    }

    /// A shop with a signed log.
    pub(crate) async fn busy() -> (Self, Day) {
        let shop = Self::new();
        let quote = shop.send("price.quote", &json!({"to": CANARY}), "").await;
        let quote = snapshot_of(&quote);
        let rests_on = json!({"quote": quote.as_str()});
        let order = shop.send("order.draft", &rests_on, "order-1").await;
        let order = snapshot_of(&order);
        shop.send("no.such_tool", &json!({}), "").await;
        shop.send("mail.send", &json!({"to": CANARY}), "mail-1")
            .await;
        shop.sign().await;
        (shop, Day { quote, order })
    }

    pub(crate) async fn send(&self, tool: &str, arguments: &Value, key: &str) -> Value {
        let envelope = match key {
            "" => json!({}),
            key => json!({"idempotency_key": key}),
        };
        let reply = self
            .executor
            .execute(call(tool, arguments, &envelope))
            .await;
        serde_json::to_value(reply).unwrap()
    }

    /// Takes everything into the tree and signs it; gives the note.
    pub(crate) async fn sign(&self) -> String {
        let mut sequencer = self.sequencer(None).await.unwrap();
        sequencer.tick().await.unwrap();
        self.note().await
    }

    pub(crate) async fn sequencer(
        &self,
        held: Option<&str>,
    ) -> Result<Sequencer, countersign::sequencer::Error> {
        let stop = LastStop {
            held,
            is_unclean: false,
        };
        Sequencer::builder(self.store.clone(), signing_key())
            .clock(self.clock.clone())
            .ids(self.ids.clone())
            .newest(self.newest.clone())
            .start(stop)
            .await
    }

    pub(crate) async fn note(&self) -> String {
        use countersign::ledger::Log as _;
        self.store.checkpoint().await.unwrap().unwrap()
    }

    /// The same archive in front of another store.
    pub(crate) fn archive_of(&self, store: Arc<dyn Store>) -> Archive {
        let vault = Vault::new(
            store.clone(),
            Arc::new(MasterKey::from_bytes(&[9; 32])),
            self.clock.clone(),
            self.ids.clone(),
        );
        Archive::new(
            store,
            Arc::new(vault),
            self.clock.clone(),
            self.ids.clone(),
            signing_key().verifying_key(),
        )
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

pub(crate) fn signing_key() -> SigningKey {
    SigningKey::from_seed(ORIGIN, &[7; 32]).unwrap()
}

/// An operator with all scopes.
pub(crate) fn operator() -> Principal {
    [SCOPE_OPEN, SCOPE_ERASE, SCOPE_HOLD, SCOPE_RESOLVE]
        .into_iter()
        .fold(nobody(), Principal::scope)
}

/// The same without any scope.
pub(crate) fn nobody() -> Principal {
    let actor = Actor {
        kind: ActorType::User,
        id: "op_7".to_owned(),
    };
    Principal::new(actor, "op_7")
}

pub(crate) fn snapshot_of(reply: &Value) -> SnapshotId {
    let id = reply["evidence"]["snapshot_id"].as_str();
    SnapshotId::new(id.unwrap_or_else(|| panic!("no evidence in {reply:#}"))).unwrap()
}

/// Budgets of what is paid: a user's day, and everything.
fn budgets() -> Budgets {
    let currency = Currency::new("EUR").unwrap();
    let tools = vec![ToolAmount {
        unit: Unit::Minor,
        ..ToolAmount::spends(ToolPattern::new("pay.*").unwrap(), "/amount")
    }];
    let budget = |name: &str, scope, window| Budget {
        name: name.to_owned(),
        scope,
        limit: currency.amount("1000").unwrap(),
        currency: currency.clone(),
        window,
        tools: tools.clone(),
    };
    let day = Some(Duration::from_hours(24));
    let all = vec![
        budget("daily", BudgetScope::User, day),
        budget("all", BudgetScope::Global, None),
    ];
    Budgets::new(all).unwrap()
}

fn amount() -> Input {
    Input::Schema(json!({
        "type": "object",
        "properties": {"amount": {"type": "integer"}},
        "required": ["amount"],
    }))
}

/// Documents of a user, and of all users.
const NOTES: Collection = Collection::of_user("notes");
const LAST: Collection = Collection::shared("last");

fn catalog(sent_key: &SentKey) -> Catalog {
    let sent_key = sent_key.clone();
    let quote = Probe::read("price.quote")
        .input(to())
        .body(|ctx, arguments| {
            ctx.fresh_for(60);
            Box::pin(async move { Ok(json!({"total_cents": 250, "for": arguments["to"]}).into()) })
        });
    let order = Probe::write("order.draft").body(|ctx, arguments| {
        Box::pin(async move {
            let id = arguments["quote"].as_str().unwrap_or_default();
            let linked = ctx.link(&SnapshotId::new(id).unwrap()).await?;
            Ok(json!({"order": "o_1", "total": linked.data["total_cents"]}).into())
        })
    });
    let firm = Probe::write("order.firm").body(|ctx, arguments| {
        Box::pin(async move {
            let id = arguments["quote"].as_str().unwrap_or_default();
            let linked = ctx.link(&SnapshotId::new(id).unwrap()).await?;
            let stale = |stale: countersign::state::Stale| {
                ToolError::new(ErrorCode::PriceChanged, stale.to_string())
            };
            ctx.rest_on(&linked).map_err(stale)?;
            Ok(json!({"order": "o_2"}).into())
        })
    });
    let clear = Probe::write("notes.clear").confirmed();
    let mail = Probe::external("mail.send")
        .input(to())
        .body(move |ctx, _| {
            *sent_key.lock().unwrap() = ctx.downstream_key().map(str::to_owned);
            Box::pin(async { Err(ToolError::upstream("GONE", "the line went dead")) })
        });
    let keep = Probe::write("notes.keep").body(|ctx, arguments| {
        Box::pin(async move {
            ctx.state().put(&NOTES, "n_1", &arguments).await?;
            ctx.state().put(&LAST, "note", &json!(1)).await?;
            Ok(json!({}).into())
        })
    });
    let pay = Probe::external("pay.now")
        .input(amount())
        .body(|_, arguments| {
            Box::pin(async move { Ok(json!({"paid": arguments["amount"]}).into()) })
        });
    [quote, order, firm, clear, keep, mail, pay]
        .into_iter()
        .fold(Catalog::builder(), |all, probe| {
            all.dyn_tool(Arc::new(probe))
        })
        .build()
        .unwrap()
}

/// A person's address, which the record must not show.
fn to() -> Input {
    let to = json!({"type": "string", "x-sensitivity": "personal"});
    Input::Schema(json!({"type": "object", "properties": {"to": to}}))
}

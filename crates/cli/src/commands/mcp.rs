//! `countersign mcp`: the tools for an MCP client that starts them as a program of its own.

use std::sync::Arc;

use countersign::archive::Archive;
use countersign::clock::{Clock, SystemClock};
use countersign::contract::{Actor, ActorType};
use countersign::executor::ExecutorBuilder;
use countersign::ids::{IdSource, RandomIds};
use countersign::ledger::{MemoryStore, Store};
use countersign::sample::Vat;
use countersign::{Executor, Principal};
use countersign_evidence::note::SigningKey;
use countersign_gateway::caller::{Caller, LOCAL_USER, Proof};
use countersign_gateway::identity::Identity;
use countersign_gateway::telemetry::Telemetry;
use countersign_gateway::{Gateway, Settings, mcp};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::place::PlaceOptions;
use crate::samples;
use crate::telemetry::{FLUSH_WAIT, TelemetryOptions};
use crate::terminal::Terminal;

/// Serve the tools to one MCP client over standard input and output
///
/// Ends when the client hangs up. Whoever calls is an agent: what a user has to confirm, it cannot.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign mcp --user u_123
  claude mcp add notes -- countersign mcp")]
pub(crate) struct Mcp {
    /// On whose behalf the client acts
    #[arg(long, value_name = "USER", default_value = LOCAL_USER)]
    user: String,

    #[command(flatten)]
    telemetry: TelemetryOptions,
}

impl Mcp {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        if options.is_memory()? {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()?;
            let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
            let telemetry = self.watch(&runtime, terminal, clock.clone())?;
            let gateway = in_memory(clock, &telemetry)?;
            let served = runtime.block_on(self.serve(&gateway));
            runtime.block_on(telemetry.flush(FLUSH_WAIT));
            return served.map(|()| Exit::Ok);
        }
        let place = options.open_or_make(terminal)?;
        let journal = Journal::start(&place)?;
        let telemetry = self.watch(&place.runtime, terminal, place.clock.clone())?;
        let executor = place.executor_builder(samples::catalog()?)?;
        let executor = watched(executor, &telemetry).build();
        let archive = place.archive_with(executor.vault().clone());
        let gateway = Gateway::new(
            executor,
            archive,
            place.ids.clone(),
            Identity::loopback(),
            Settings::default(),
        );
        let (end, ended) = oneshot::channel::<()>();
        let signing = journal.run(async { drop(ended.await) });
        let serving = async {
            let served = self.serve(&gateway).await;
            drop(end);
            served
        };
        // Whatever happens to the client, what it did gets into the signed log.
        let (served, signed) = place
            .runtime
            .block_on(async { tokio::join!(serving, signing) });
        place.runtime.block_on(telemetry.flush(FLUSH_WAIT));
        served?;
        signed.map(|()| Exit::Ok)
    }

    /// The log is on stderr, which clients keep; stdout is theirs.
    fn watch(
        &self,
        runtime: &Runtime,
        terminal: &Terminal,
        clock: Arc<dyn Clock>,
    ) -> Result<Telemetry, Failure> {
        let nobody_counts = Arc::default();
        self.telemetry
            .start(runtime, terminal, clock, nobody_counts)
    }

    async fn serve(&self, gateway: &Gateway) -> Result<(), Failure> {
        let actor = Actor {
            kind: ActorType::Agent,
            id: "local".to_owned(),
        };
        let caller = Caller {
            principal: Arc::new(Principal::new(actor, self.user.as_str()).acting_for_others()),
            proof: Proof::Loopback,
        };
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        // It lives as long as the command, so it need not be on the stack.
        let serving = Box::pin(mcp::serve_stdio(gateway, caller, input, output));
        serving.await.map_err(Failure::from)
    }
}

/// With traces of its calls, where somebody wants them.
fn watched(executor: ExecutorBuilder, telemetry: &Telemetry) -> ExecutorBuilder {
    match telemetry.traces() {
        Some(traces) => executor.observer(traces),
        None => executor,
    }
}

/// Nothing outlives the command.
fn in_memory(clock: Arc<dyn Clock>, telemetry: &Telemetry) -> Result<Gateway, Failure> {
    let ids: Arc<dyn IdSource> = Arc::new(RandomIds::new(clock.clone()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
    let executor = Executor::builder(samples::catalog()?)
        .store(store.clone())
        .clock(clock.clone())
        .ids(ids.clone())
        .rules(Vat::rules()?);
    let executor = watched(executor, telemetry).build();
    let mut seed = [0; 32];
    ids.fill(&mut seed);
    let key = SigningKey::from_seed("countersign.invalid/memory", &seed)?;
    let vault = executor.vault().clone();
    let archive = Archive::new(store, vault, clock, ids.clone(), key.verifying_key());
    let identity = Identity::loopback();
    Ok(Gateway::new(
        executor,
        archive,
        ids,
        identity,
        Settings::default(),
    ))
}

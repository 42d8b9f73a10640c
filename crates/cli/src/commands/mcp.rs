//! `countersign mcp`: the tools for an MCP client that starts them as a program of its own.

use std::sync::Arc;

use countersign::archive::Archive;
use countersign::clock::{Clock, SystemClock};
use countersign::contract::{Actor, ActorType};
use countersign::executor::ExecutorBuilder;
use countersign::ids::{IdSource, RandomIds};
use countersign::ledger::{MemoryStore, Store};
use countersign::recording::Player;
use countersign::{Catalog, Executor, Principal};
use countersign_config::{Given, sections};
use countersign_evidence::note::SigningKey;
use countersign_gateway::caller::{Caller, LOCAL_USER, Proof};
use countersign_gateway::identity::Identity;
use countersign_gateway::policy::{LivePolicy, Policy};
use countersign_gateway::recorder::Recorder;
use countersign_gateway::telemetry::Telemetry;
use countersign_gateway::{Gateway, Server, mcp};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;

use crate::catalog::FirstUses;
use crate::config::parts;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::place::{Place, PlaceOptions};
use crate::recording::{Played, RecordingOptions};
use crate::rules::RuleOptions;
use crate::running::About;
use crate::served::Door;
use crate::telemetry::{FLUSH_WAIT, TelemetryOptions};
use crate::terminal::Terminal;
use crate::{catalog, policy, telemetry};

/// Serve the tools to one MCP client over stdin and stdout
///
/// Ends when the client closes the connection. The client acts as an agent, so it cannot answer approvals: answer them
/// with `countersign approvals` in another terminal.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign mcp --user u_123
  countersign mcp --from-recording calls.jsonl
  claude mcp add notes -- countersign mcp")]
pub(crate) struct Mcp {
    /// User for whom the client acts
    #[arg(long, value_name = "USER", default_value = LOCAL_USER)]
    user: String,

    #[command(flatten)]
    recording: RecordingOptions,

    #[command(flatten)]
    telemetry: TelemetryOptions,

    #[command(flatten)]
    rules: RuleOptions,
}

impl Mcp {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let options = &options.with(self.given()?)?;
        let telemetry = &options.config().telemetry;
        if let Some(played) = self.recording.read(options.loaded(), terminal)? {
            return self.play(options, &played, terminal);
        }
        if options.is_memory()? {
            return self.run_in_memory(options, terminal);
        }
        let place = options.open_or_make(terminal)?;
        let journal = Journal::start(&place)?;
        let telemetry = watch(telemetry, &place.runtime, terminal, place.clock.clone())?;
        let rules = RuleOptions::configured(&options.config().rules);
        let rules = rules.in_place(&place.folder, terminal)?;
        let (catalog, upstreams) = catalog::ready_with_upstreams(options.loaded())?;
        let recorder = Recorder::new(place.store(), place.clock.clone(), place.ids.clone());
        upstreams.set_witness(Arc::new(FirstUses(recorder)));
        catalog::ask(&upstreams, &catalog, &place.runtime);
        let _following = {
            let _inside = place.runtime.enter();
            upstreams.follow(&catalog)
        };
        let executor = place.executor_builder(catalog.clone(), rules);
        let executor = policy::decide(executor, options.loaded(), &catalog)?;
        let executor = watched(executor, &telemetry).build();
        let archive = place.archive();
        // Nobody needs it where others can open the store as well.
        let door = if place.backend.is_alone() {
            Some(Door::make(&place)?)
        } else {
            None
        };
        let gateway = Gateway::new(
            executor,
            archive,
            place.ids.clone(),
            operators_only(&place, door.as_ref()),
            parts::settings(options.config()),
        );
        gateway.set_offers(upstreams.clone());
        let mut about = About::here(&place.folder, &place.store_name, None)?;
        let commands = match door {
            Some(door) => door.open_alone(&place, &gateway, &mut about, terminal)?,
            None => None,
        };
        let (end, ended) = oneshot::channel::<()>();
        let signing = journal.run(async { drop(ended.await) });
        let serving = async {
            let served = self.serve_beside(&gateway, commands).await;
            drop(end);
            served
        };
        // Whatever happens to the client, what it did gets into the signed log.
        let (served, signed) = place
            .runtime
            .block_on(async { tokio::join!(serving, signing) });
        place.runtime.block_on(upstreams.close());
        about.withdraw(&place.folder)?;
        place.runtime.block_on(telemetry.flush(FLUSH_WAIT));
        served?;
        signed.map(|()| Exit::Ok)
    }

    /// Answers with tools and nothing that outlives the command.
    fn run_in_memory(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let runtime = runtime()?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let telemetry = watch(
            &options.config().telemetry,
            runtime.handle(),
            terminal,
            clock.clone(),
        )?;
        let (catalog, upstreams) = catalog::ready_with_upstreams(options.loaded())?;
        catalog::ask(&upstreams, &catalog, runtime.handle());
        let _following = {
            let _inside = runtime.enter();
            upstreams.follow(&catalog)
        };
        let gateway = in_memory(clock, options, catalog, &telemetry, None)?;
        gateway.set_offers(upstreams.clone());
        let served = runtime.block_on(self.serve(&gateway));
        runtime.block_on(upstreams.close());
        runtime.block_on(telemetry.flush(FLUSH_WAIT));
        served.map(|()| Exit::Ok)
    }

    /// Answers from a recording; no upstream is asked, and nothing outlives the command.
    fn play(
        &self,
        options: &PlaceOptions,
        played: &Played,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let runtime = runtime()?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let telemetry = &options.config().telemetry;
        let telemetry = watch(telemetry, runtime.handle(), terminal, clock.clone())?;
        let catalog = played.catalog.clone();
        let answers = Some(played.player.clone());
        let gateway = in_memory(clock, options, catalog, &telemetry, answers)?;
        let served = runtime.block_on(self.serve(&gateway));
        runtime.block_on(telemetry.flush(FLUSH_WAIT));
        served?;
        played.say_end(terminal)
    }

    /// Returns the settings that the flags give.
    fn given(&self) -> Result<Vec<Given>, Failure> {
        let mut given = self.telemetry.given()?;
        given.extend(self.rules.given()?);
        Ok(given)
    }

    /// Serves the client, and the commands of this machine as long as it is there.
    async fn serve_beside(&self, gateway: &Gateway, door: Option<Server>) -> Result<(), Failure> {
        let (hung_up, has_hung_up) = oneshot::channel::<()>();
        let client = async {
            let served = self.serve(gateway).await;
            drop(hung_up);
            served
        };
        let commands = async {
            if let Some(door) = door {
                door.run(async { drop(has_hung_up.await) }).await;
            }
        };
        tokio::join!(client, commands).0
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
        let served = serving.await;
        gateway.executor().write_counted_refusals().await;
        served.map_err(Failure::from)
    }
}

/// The log is on stderr, which clients keep; stdout is theirs.
fn watch(
    telemetry: &sections::Telemetry,
    runtime: &Handle,
    terminal: &Terminal,
    clock: Arc<dyn Clock>,
) -> Result<Telemetry, Failure> {
    let nobody_counts = Arc::default();
    telemetry::start(telemetry, runtime, terminal, clock, nobody_counts)
}

/// Accepts the operator only, who comes in by the door.
fn operators_only(place: &Place, door: Option<&Door>) -> Identity {
    let policy = Arc::new(LivePolicy::fixed(Policy::allow_all()));
    let identity = Identity::new(place.clock.clone(), policy)
        .api_keys(place.api_keys())
        .operators_only();
    match door {
        Some(door) => identity.with_operator(door.operator(place)),
        None => identity,
    }
}

/// Adds traces of the calls, if telemetry is configured to send them.
fn watched(executor: ExecutorBuilder, telemetry: &Telemetry) -> ExecutorBuilder {
    match telemetry.traces() {
        Some(traces) => executor.observer(traces),
        None => executor,
    }
}

/// Builds a gateway on a store in memory, of which nothing is kept.
fn in_memory(
    clock: Arc<dyn Clock>,
    options: &PlaceOptions,
    catalog: Catalog,
    telemetry: &Telemetry,
    player: Option<Arc<Player>>,
) -> Result<Gateway, Failure> {
    let ids: Arc<dyn IdSource> = Arc::new(RandomIds::new(clock.clone()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock.clone()).keeping_log());
    let (loaded, config) = (options.loaded(), options.config());
    let rules = RuleOptions::configured(&config.rules).known(None)?.rules;
    let deciding = catalog.clone();
    let executor = Executor::builder(catalog)
        .retention(parts::retention_plan(&config.retention))
        .approval_limits(parts::approval_limits(&config.approvals))
        .store(store.clone())
        .clock(clock.clone())
        .ids(ids.clone())
        .rules(rules);
    let executor = policy::decide(executor, loaded, &deciding)?;
    let executor = match player {
        Some(player) => executor.player(player),
        None => executor,
    };
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
        parts::settings(config),
    ))
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
}

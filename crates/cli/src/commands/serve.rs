//! `countersign serve`: answers calls over the network until it is told to stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use countersign::clock::SystemClock;
use countersign::executor::ExecutorBuilder;
use countersign::observe::Observer;
use countersign::sequencer::{self, Sequencer};
use countersign_gateway::identity::{self, Identity};
use countersign_gateway::metrics::Metrics;
use countersign_gateway::policy::{Keeper, LivePolicy, Policy};
use countersign_gateway::recorder::Recorder;
use countersign_gateway::server::Stopped;
use countersign_gateway::telemetry::Telemetry;
use countersign_gateway::{Gateway, Server, Settings};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use crate::backend::StoreName;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal;
use crate::place::{Place, PlaceOptions, store_failed};
use crate::rules::RuleOptions;
use crate::running::About;
use crate::served::Door;
use crate::telemetry::{FLUSH_WAIT, TelemetryOptions};
use crate::terminal::Terminal;
use crate::{catalog, policy, views};

mod address;
mod check;
mod welcome;

use address::address;
use welcome::{can_try, say_where};

/// How long the end waits for what hangs outside of calls.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(5);

/// Answer calls over HTTP and MCP until told to stop
///
/// Ctrl-C or SIGTERM stops it: what has begun is finished, and the log is signed to its end. A second one
/// does not wait for what has begun.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign serve
  countersign serve --listen 127.0.0.1:9000 --policy policy.toml
  countersign serve --policy policy.toml --check
  curl http://127.0.0.1:8787/v1/tools/catalog.search_offers -d '{\"arguments\": {\"query\": \"earbuds\"}}'")]
pub(crate) struct Serve {
    /// Where to listen, or only the port on 127.0.0.1; a port of 0 takes any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787", value_parser = address)]
    listen: SocketAddr,

    /// Under which address clients reach it, such as <https://tools.example.com>
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,

    /// How many MCP clients of the eras before 2026-07-28 may hold a session, so that their users can be asked there; they
    /// have to come back to the same process
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 0,
        hide_short_help = true
    )]
    mcp_sessions: usize,

    /// The page on which a user answers approvals, such as <https://shop.example.com/approvals/{id}>
    #[arg(long, value_name = "URL", hide_short_help = true)]
    approvals_url: Option<String>,

    /// The page on which a user goes on with a draft order, such as <https://shop.example.com/orders/{id}>
    #[arg(long, value_name = "URL", hide_short_help = true)]
    checkout_url: Option<String>,

    /// Who may call what [default: everybody everything]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// Only look at the policy: who may call what, and what in it looks like a mistake
    #[arg(long)]
    check: bool,

    /// Let programs on this machine in without a credential, also when there are keys or issuers
    #[arg(long, hide_short_help = true)]
    allow_anonymous_loopback: bool,

    /// Also offer the fixtures of the MCP conformance suite; never for real use
    #[arg(long, hide_short_help = true)]
    conformance: bool,

    #[command(flatten)]
    rules: RuleOptions,

    #[command(flatten)]
    telemetry: TelemetryOptions,
}

impl Serve {
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let policy = Arc::new(self.policy()?);
        if self.check {
            return check::check(terminal, &policy.current());
        }
        self.check_before_making(options, &policy)?;
        let mut place = options.open_or_make(terminal)?;
        keep_policies(&policy, &place)?;
        let rules = self.rules.in_place(&place.folder, terminal)?;
        let door = Door::make(&place)?;
        let metrics = Arc::new(Metrics::with_clock(place.clock.clone()));
        let (clock, dropped) = (place.clock.clone(), metrics.spans_dropped());
        let telemetry = self
            .telemetry
            .start(&place.runtime, terminal, clock, dropped)?;
        let identity = self.identity(&place, &policy)?;
        let identity = identity.with_operator(door.operator(&place));
        let executor = place.executor_builder(catalog::all()?, rules);
        let gateway = self.gateway(&place, executor, &policy, identity, metrics, &telemetry);
        let mut sequencer = journal::sequencer(&place, |builder| builder)?;
        announce_policy(&place, &policy)?;
        // The first reply carries a checkpoint like every other.
        let signed = place.runtime.block_on(sequencer.tick());
        signed.map_err(journal::failed)?;

        // Whoever can connect can also have told it to stop: signals are heard before anything listens.
        let signals = place.runtime.block_on(async { signals() })?;
        let bound = place
            .runtime
            .block_on(Server::bind(gateway.clone(), self.listen));
        let server = bound.map_err(|error| {
            let context = format!("cannot listen on {}", self.listen);
            Failure::from(anyhow::Error::new(error).context(context))
                .hint("another program may use the port; --listen 127.0.0.1:0 takes a free one")
        })?;
        let url = format!("http://{}", server.address()?);
        let about = About::here(&place.folder, &place.store_name, Some(url.clone()))?;
        let server = door.open(&place, &gateway, server, &about)?;
        let can_try = place.runtime.block_on(can_try(&gateway, &policy));
        let named = (self.policy.as_deref(), &*policy);
        say_where(terminal, (&url, about.pid), named, can_try)?;

        let ended = place
            .runtime
            .block_on(serve(&gateway, server, sequencer, signals));
        let withdrawn = about.withdraw(&place.folder);
        place.runtime.block_on(telemetry.flush(FLUSH_WAIT));
        drop((gateway, telemetry));
        // Whatever still hangs somewhere must not keep the process from ending.
        if let Some(runtime) = place.owned.take() {
            runtime.shutdown_timeout(SHUTDOWN_WAIT);
        }
        withdrawn?;
        let (stopped, signed) = ended?;
        match stopped {
            Stopped::Drained => terminal.say("stopped")?,
            Stopped::CutOff => terminal.say("stopped; some calls were cut off")?,
        }
        signed.map_err(journal::failed)?;
        Ok(Exit::Ok)
    }

    /// Which credentials are accepted. Without any, only this machine may reach the server.
    fn identity(&self, place: &Place, policy: &Arc<LivePolicy>) -> Result<Identity, Failure> {
        let clock = place.clock.clone();
        let identity = Identity::new(clock, policy.clone()).api_keys(place.api_keys());
        let identity = self.with_options(identity);
        self.check_address(&place.runtime, &identity)?;
        Ok(identity)
    }

    /// Where there is no store yet, there are no keys either: what would be refused then is refused before
    /// anything is made.
    fn check_before_making(
        &self,
        options: &PlaceOptions,
        policy: &Arc<LivePolicy>,
    ) -> Result<(), Failure> {
        let has_no_keys = match options.names()?.1 {
            StoreName::Sqlite(path) => !path.exists(),
            StoreName::Memory => true,
            // Others may have made some there.
            StoreName::Postgres(_) => false,
        };
        if !has_no_keys {
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let clock = Arc::new(SystemClock::new());
        self.check_address(
            runtime.handle(),
            &self.with_options(Identity::new(clock, policy.clone())),
        )
    }

    fn with_options(&self, identity: Identity) -> Identity {
        if self.allow_anonymous_loopback {
            identity.allow_anonymous_loopback()
        } else {
            identity
        }
    }

    fn check_address(&self, runtime: &Handle, identity: &Identity) -> Result<(), Failure> {
        let public_url = self.public_url.as_deref();
        let may = runtime.block_on(identity::may_listen(self.listen, public_url, identity));
        may.map_err(|refused| {
            let hint = refused.hint();
            Failure::from(refused).hint(hint)
        })
    }

    fn policy(&self) -> Result<LivePolicy, Failure> {
        match &self.policy {
            None => Ok(LivePolicy::fixed(Policy::allow_all())),
            Some(path) => policy::open(path),
        }
    }

    fn gateway(
        &self,
        place: &Place,
        executor: ExecutorBuilder,
        policy: &Arc<LivePolicy>,
        identity: Identity,
        metrics: Arc<Metrics>,
        telemetry: &Telemetry,
    ) -> Gateway {
        let mut observers: Vec<Arc<dyn Observer>> = vec![metrics.clone()];
        if let Some(traces) = telemetry.traces() {
            observers.push(traces);
        }
        let builder = executor
            .authorizer(policy.clone())
            .observer(Arc::new(observers));
        let executor = policy.controls().install(builder).build();
        let settings = Settings {
            public_url: self.public_url.clone(),
            approvals_url: self.approvals_url.clone(),
            mcp_sessions_max: self.mcp_sessions,
            checkout_url: self.checkout_url.clone(),
            conformance: self.conformance,
            ..Settings::default()
        };
        let archive = place.archive();
        let ids = place.ids.clone();
        let gateway = Gateway::new(executor, archive, ids, identity, settings);
        gateway.with_views(views::all()).with_metrics(metrics)
    }
}

/// Answers until a signal comes; how that ended, and whether everything is signed.
async fn serve(
    gateway: &Gateway,
    server: Server,
    sequencer: Sequencer,
    mut signals: watch::Receiver<u32>,
) -> Result<(Stopped, Result<(), sequencer::Error>), Failure> {
    let mut again = signals.clone();
    let (end, ended) = oneshot::channel::<()>();
    let health = gateway.clone();
    let signing = tokio::spawn(async move {
        let signed = sequencer.run(async { drop(ended.await) }).await;
        if let Err(error) = &signed {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "nothing is signed any more"
            );
            health.health().log_stopped();
        }
        signed
    });
    let stop = async move {
        // The one who sends lives as long as the process.
        let _ = signals.wait_for(|count| *count > 0).await;
    };
    let stopped = tokio::select! {
        stopped = server.run(stop) => stopped,
        _ = again.wait_for(|count| *count > 1) => Stopped::CutOff,
    };
    drop(end);
    Ok((stopped, signing.await?))
}

/// How often the process was told to stop.
fn signals() -> Result<watch::Receiver<u32>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (count, counted) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            count.send_modify(|count| *count += 1);
        }
    });
    Ok(counted)
}

/// Keeps every policy in the data folder before it is in force.
fn keep_policies(policy: &LivePolicy, place: &Place) -> Result<(), Failure> {
    let folder = place.folder.clone();
    Ok(policy.keep_with(Keeper::new(move |digest, text| {
        let kept = policy::keep(&folder, digest, text);
        kept.map_err(|failure| std::io::Error::other(failure.error))
    }))?)
}

/// Writes down which policy is in force, and looks at its file from now on.
fn announce_policy(place: &Place, policy: &Arc<LivePolicy>) -> Result<(), Failure> {
    let recorder = Recorder::new(place.store(), place.clock.clone(), place.ids.clone());
    place
        .runtime
        .block_on(policy.announce(&recorder))
        .map_err(store_failed)?;
    place.runtime.spawn(policy.clone().watch(recorder));
    Ok(())
}

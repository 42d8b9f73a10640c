//! `countersign serve`: answers calls over the network until a signal stops it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use countersign::clock::SystemClock;
use countersign::executor::ExecutorBuilder;
use countersign::observe::Observer;
use countersign::sequencer::{self, Sequencer};
use countersign_config::value::Listen;
use countersign_config::{Config, Given};
use countersign_console::Setting;
use countersign_evidence::cosignature::WitnessKey;
use countersign_gateway::identity::{self, Identity};
use countersign_gateway::metrics::Metrics;
use countersign_gateway::notify::{Notifier, Target};
use countersign_gateway::policy::{Keeper, LivePolicy};
use countersign_gateway::pulse::Pulse;
use countersign_gateway::recorder::Recorder;
use countersign_gateway::server::Stopped;
use countersign_gateway::telemetry::Telemetry;
use countersign_gateway::{Gateway, Server};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::policy::check::check;
use crate::backend::StoreName;
use crate::catalog::FirstUses;
use crate::config::{self, parts};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal;
use crate::place::{Place, PlaceFlags, PlaceOptions, store_failed};
use crate::recording::RecordingOptions;
use crate::rules::RuleOptions;
use crate::running::About;
use crate::served::Door;
use crate::telemetry::{FLUSH_WAIT, TelemetryOptions};
use crate::terminal::Terminal;
use crate::{catalog, copies, notify, policy, sign_in, telemetry, views, witnesses};

mod play;
mod reload;
mod welcome;

use reload::Reload;
use welcome::{can_try, say_where};

/// Timeout at shutdown for tasks outside of calls that hang.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(5);

/// Run the server: HTTP, MCP and the console
///
/// Ctrl-C or SIGTERM stops the server: running calls are finished, and the log is signed. A second signal stops it
/// without waiting for running calls.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign serve
  countersign serve --config countersign.toml
  countersign serve --listen 127.0.0.1:9000 --policy policy.toml
  countersign serve --policy policy.toml --check
  countersign serve --from-recording calls.jsonl
  curl http://127.0.0.1:8787/v1/tools/catalog.search_offers -d '{\"arguments\": {\"query\": \"earbuds\"}}'")]
pub(crate) struct Serve {
    /// Listen address, or only a port on 127.0.0.1; port 0 takes a free one [default: 127.0.0.1:8787]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Listen>,

    /// URL under which clients reach the server, such as <https://tools.example.com>
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,

    /// Maximum number of sessions for MCP clients older than 2026-07-28; with a session the server can ask their users,
    /// but a client has to return to the same process [default: 0]
    #[arg(long, value_name = "COUNT", hide_short_help = true)]
    mcp_sessions: Option<usize>,

    /// Page where users answer approvals, such as <https://shop.example.com/approvals/{id}>
    #[arg(long, value_name = "URL", hide_short_help = true)]
    approvals_url: Option<String>,

    /// Page where users continue a draft order, such as <https://shop.example.com/orders/{id}>
    #[arg(long, value_name = "URL", hide_short_help = true)]
    checkout_url: Option<String>,

    /// Policy file: who may call which tools [default: every caller may call every tool]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    #[command(flatten)]
    recording: RecordingOptions,

    /// Only check the policy: show who may call which tools, and likely mistakes
    #[arg(long)]
    check: bool,

    /// Accept programs on this machine without a credential, even if there are keys or issuers
    #[arg(long, hide_short_help = true)]
    allow_anonymous_loopback: bool,

    /// Also serve the test tools of the MCP conformance suite; never in production
    #[arg(long, hide_short_help = true)]
    conformance: bool,

    #[command(flatten)]
    rules: RuleOptions,

    #[command(flatten)]
    telemetry: TelemetryOptions,
}

impl Serve {
    pub(crate) fn run(&self, flags: &PlaceFlags, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let options = &self.options(flags, terminal)?;
        let (loaded, config) = (options.loaded(), options.config());
        let policy = Arc::new(policy::open(loaded)?);
        if self.check {
            return check(terminal, &policy.current(), loaded);
        }
        if let Some(played) = self.recording.read(loaded, terminal)? {
            return play::play(&played, options, &policy, terminal);
        }
        let (catalog, upstreams) = catalog::ready_with_upstreams(loaded)?;
        let fits = policy.check_against(&catalog);
        fits.map_err(|error| policy::refused(loaded, error))?;
        let others = check_before_making(options, &policy)?;
        let mut place = options.open_or_make(terminal)?;
        keep_policies(&policy, &place)?;
        let rules = RuleOptions::configured(&config.rules).in_place(&place.folder, terminal)?;
        let door = Door::make(&place)?;
        let metrics = Arc::new(Metrics::with_clock(place.clock.clone()));
        let (clock, dropped) = (place.clock.clone(), metrics.spans_dropped());
        let log = &config.telemetry;
        let telemetry = telemetry::start(log, &place.runtime, terminal, clock, dropped)?;
        let identity = identity_of(&place, &policy)?;
        let identity = identity.with_operator(door.operator(&place));
        upstreams.set_witness(Arc::new(FirstUses(recorder_of(&place))));
        catalog::ask(&upstreams, &catalog, &place.runtime);
        let executor = place.executor_builder(catalog, rules);
        let gateway = gateway_of(&place, executor, &policy, identity, metrics, &telemetry)?;
        gateway.set_offers(upstreams.clone());
        let mut sequencer = sequencer_of(&place, &gateway)?;
        let recorder = announce_policy(&place, &policy)?;
        let live = reload::Parts {
            gateway: gateway.clone(),
            policy: policy.clone(),
            filter: telemetry.filter(),
            recorder,
        };
        if let Some(reload) = Reload::begin(&place, loaded, upstreams.clone(), live)? {
            place.runtime.spawn(reload.watch());
        }
        // The first reply carries a checkpoint like every other.
        let signed = place.runtime.block_on(sequencer.tick());
        signed.map_err(journal::failed)?;

        // Whoever can connect can also have told it to stop: signals are heard before anything listens.
        let signals = place.runtime.block_on(async { signals() })?;
        let server = bind(&place, &gateway, config)?;
        let url = format!("http://{}", server.address()?);
        let about = About::here(&place.folder, &place.store_name, Some(url.clone()))?;
        let server = door.open(&place, &gateway, server, &about)?;
        start_sending(&place, &gateway, others, &url);
        let can_try = place.runtime.block_on(can_try(&gateway, &policy));
        let file = policy::file_of(loaded);
        let named = (file.as_deref(), &*policy);
        say_where(terminal, (&url, about.pid), named, can_try)?;

        let ended = place
            .runtime
            .block_on(serve(&gateway, server, sequencer, signals));
        place.runtime.block_on(upstreams.close());
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
            Stopped::CutOff => terminal.say("stopped; some calls were interrupted")?,
        }
        signed.map_err(journal::failed)?;
        Ok(Exit::Ok)
    }

    /// The configuration with the flags. From here on everything is said in the form of the log.
    fn options(
        &self,
        flags: &PlaceFlags,
        terminal: &mut Terminal,
    ) -> Result<PlaceOptions, Failure> {
        let options = flags.read_unannounced()?.with(self.given()?)?;
        telemetry::say_in(&options.config().telemetry, terminal);
        if flags.finds_file() {
            config::announce(terminal)?;
        }
        Ok(options)
    }

    /// Returns the settings that the flags give.
    fn given(&self) -> Result<Vec<Given>, Failure> {
        let mut given = self.telemetry.given()?;
        given.extend(self.rules.given()?);
        given.extend(config::path_flag(
            "policy",
            "--policy",
            self.policy.as_ref(),
        )?);
        let listen = self.listen.map(|listen| listen.to_string());
        let texts = [
            ("server.listen", "--listen", &listen),
            ("server.public_url", "--public-url", &self.public_url),
            ("approvals.url", "--approvals-url", &self.approvals_url),
            ("shop.checkout_url", "--checkout-url", &self.checkout_url),
        ];
        for (key, name, text) in texts {
            let text = text.as_deref();
            given.extend(text.map(|text| Given::flag(key, name, text)));
        }
        let sessions = self.mcp_sessions;
        given.extend(sessions.map(|n| Given::flag("mcp.sessions_max", "--mcp-sessions", n)));
        let anonymous = "--allow-anonymous-loopback";
        for (key, name, is_set) in [
            (
                "server.allow_anonymous_loopback",
                anonymous,
                self.allow_anonymous_loopback,
            ),
            ("mcp.conformance", "--conformance", self.conformance),
        ] {
            given.extend(is_set.then(|| Given::flag(key, name, true)));
        }
        Ok(given)
    }
}

/// Binds the address that the configuration names.
fn bind(place: &Place, gateway: &Gateway, config: &Config) -> Result<Server, Failure> {
    let listen = *config.server.listen;
    let bound = place
        .runtime
        .block_on(Server::bind(gateway.clone(), listen));
    bound.map_err(|error| cannot_listen(listen, error))
}

pub(super) fn cannot_listen(listen: SocketAddr, error: std::io::Error) -> Failure {
    let context = format!("cannot listen on {listen}");
    Failure::from(anyhow::Error::new(error).context(context))
        .hint("another program may use the port; --listen 127.0.0.1:0 picks a free one")
}

/// Builds the identity check: the credentials that are accepted. Without any, the server may listen on this machine only.
fn identity_of(place: &Place, policy: &Arc<LivePolicy>) -> Result<Identity, Failure> {
    let clock = place.clock.clone();
    let identity = Identity::new(clock, policy.clone()).api_keys(place.api_keys());
    let identity = with_options(identity, place.config());
    check_address(&place.runtime, &identity, place.config())?;
    let client = sign_in::client(&place.config().sign_in, &policy.current())?;
    Ok(match client {
        Some(client) => identity.with_issuer_client(client),
        None => identity,
    })
}

/// Checks the listen address before anything is made. A store that does not exist yet has no API keys either, so a start that would be
/// refused later is refused here. Returns those that the server sends to.
fn check_before_making(
    options: &PlaceOptions,
    policy: &Arc<LivePolicy>,
) -> Result<Others, Failure> {
    sign_in::client(&options.config().sign_in, &policy.current())?;
    let others = Others {
        targets: notify::targets(options.loaded()).map_err(config::wrong)?,
        witnesses: witnesses::configured(options.loaded()).map_err(config::wrong)?,
    };
    let has_no_keys = match options.names()?.1 {
        StoreName::Sqlite(path) => !path.exists(),
        StoreName::Memory => true,
        // Others may have made some there.
        StoreName::Postgres(_) => false,
    };
    if !has_no_keys {
        return Ok(others);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let clock = Arc::new(SystemClock::new());
    let identity = with_options(Identity::new(clock, policy.clone()), options.config());
    check_address(runtime.handle(), &identity, options.config())?;
    Ok(others)
}

fn with_options(identity: Identity, config: &Config) -> Identity {
    if config.server.allow_anonymous_loopback {
        identity.allow_anonymous_loopback()
    } else {
        identity
    }
}

fn check_address(runtime: &Handle, identity: &Identity, config: &Config) -> Result<(), Failure> {
    let public_url = config.server.public_url.as_ref().map(ToString::to_string);
    let listen = *config.server.listen;
    let may = identity::may_listen(listen, public_url.as_deref(), identity);
    runtime.block_on(may).map_err(|refused| {
        let hint = refused.hint();
        Failure::from(refused).hint(hint)
    })
}

fn gateway_of(
    place: &Place,
    executor: ExecutorBuilder,
    policy: &Arc<LivePolicy>,
    identity: Identity,
    metrics: Arc<Metrics>,
    telemetry: &Telemetry,
) -> Result<Gateway, Failure> {
    let pulse = Arc::new(Pulse::default());
    let mut observers: Vec<Arc<dyn Observer>> = vec![metrics.clone(), pulse.clone()];
    if let Some(traces) = telemetry.traces() {
        observers.push(traces);
    }
    let builder = executor
        .authorizer(policy.clone())
        .observer(Arc::new(observers));
    let executor = policy.controls().install(builder).build();
    let settings = parts::settings(place.config());
    let archive = place.signing_archive()?;
    let ids = place.ids.clone();
    let gateway = Gateway::new(executor, archive, ids, identity, settings);
    let settings = settings_of(place);
    let rules = super::case::rule_labels(place);
    Ok(gateway
        .with_views(views::all())
        .with_metrics(metrics)
        .with_pulse(pulse)
        .with_pages(move |gateway| {
            countersign_console::pages(gateway, settings.clone(), rules.clone())
        }))
}

/// Builds the sequencer, after the log was compared with the copies of its checkpoint.
fn sequencer_of(place: &Place, gateway: &Gateway) -> Result<Sequencer, Failure> {
    if let Some(unread) = copies::check(place)? {
        gateway.metrics().set_copies_unread(unread);
    }
    journal::sequencer(place, |builder| builder)
}

/// Receivers that the server contacts by itself.
struct Others {
    /// Receivers of notifications.
    targets: Vec<Target>,
    /// Witnesses of the log.
    witnesses: Vec<(String, WitnessKey)>,
}

/// Sends new checkpoints and notifications from now on, these with links to the public address of the server. Answers of calls that wait
/// for their user have the same link, unless the address is that of all interfaces, which no browser can open.
fn start_sending(place: &Place, gateway: &Gateway, others: Others, url: &str) {
    witnesses::start(place, gateway, others.witnesses);
    gateway.set_notify(others.targets);
    let server = &place.config().server;
    let pages = server.public_url.as_ref();
    let can_follow = pages.is_some() || !server.listen.ip().is_unspecified();
    let pages = pages.map_or_else(|| url.to_owned(), ToString::to_string);
    if can_follow {
        gateway.set_pages_address(&pages);
    }
    let notifier = Notifier::new(gateway.clone(), pages);
    place.runtime.spawn(notifier.run());
}

/// The settings that the console shows: those that the server was started with, without secrets.
fn settings_of(place: &Place) -> Vec<Setting> {
    let setting = |row: countersign_config::Row| Setting {
        value: match &row.value {
            serde_json::Value::Null => "-".to_owned(),
            value => value.to_string(),
        },
        origin: row.origin.to_string(),
        key: row.key,
    };
    place.loaded().rows().into_iter().map(setting).collect()
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
                "the evidence log is no longer signed"
            );
            health.health().log_stopped();
        }
        signed
    });
    let recalling = gateway.clone();
    tokio::spawn(async move {
        if let Err(error) = recalling.recall().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the console counts errors and sessions from this start on: older records could not be read"
            );
        }
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

/// Counts the signals that tell the process to stop.
pub(super) fn signals() -> Result<watch::Receiver<u32>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // Whoever reads a file again listens too, a little later; until then it must not end the process.
    let mut hangup = signal(SignalKind::hangup())?;
    let (count, counted) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hangup.recv() => continue,
            }
            count.send_modify(|count| *count += 1);
        }
    });
    Ok(counted)
}

/// Keeps every policy in the data folder before it is in force.
fn keep_policies(policy: &LivePolicy, place: &Place) -> Result<(), Failure> {
    let (folder, kept_in) = (place.folder.clone(), place.folder.clone());
    let keeper = Keeper::new(move |digest, text| {
        let kept = policy::keep(&folder, digest, text);
        kept.map_err(|failure| std::io::Error::other(failure.error))
    });
    let keeper = keeper.finding(move |revision| {
        let kept = policy::kept(&kept_in, revision).ok().flatten();
        kept.map(|(policy, _)| policy)
    });
    Ok(policy.keep_with(keeper)?)
}

fn recorder_of(place: &Place) -> Recorder {
    Recorder::new(place.store(), place.clock.clone(), place.ids.clone())
}

/// Writes down which policy is in force, and looks at its file from now on.
fn announce_policy(place: &Place, policy: &Arc<LivePolicy>) -> Result<Recorder, Failure> {
    let recorder = recorder_of(place);
    place
        .runtime
        .block_on(policy.announce(&recorder))
        .map_err(store_failed)?;
    let watching = policy.clone().watch(recorder.clone());
    place.runtime.spawn(watching);
    Ok(recorder)
}

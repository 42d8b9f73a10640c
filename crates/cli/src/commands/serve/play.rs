//! `countersign serve --from-recording`: a server whose answers come from a file.
//!
//! It has a folder, keys, a store and a log of its own, which end with it: nothing of such a run can get into the log of
//! an installation, or look like a part of it.

use std::sync::Arc;

use countersign::rules::Rules;
use countersign_config::Given;
use countersign_gateway::Server;
use countersign_gateway::metrics::Metrics;
use countersign_gateway::policy::LivePolicy;
use countersign_gateway::server::Stopped;

use super::welcome::say_where;
use super::{SHUTDOWN_WAIT, gateway_of, identity_of, serve, signals};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::journal;
use crate::keys;
use crate::place::PlaceOptions;
use crate::policy;
use crate::recording::Played;
use crate::running::About;
use crate::served::Door;
use crate::telemetry::{self, FLUSH_WAIT};
use crate::terminal::Terminal;

/// The name of a log that ends with its process.
const ORIGIN: &str = "countersign.invalid/recording";

/// Answers from the recording until a signal stops it.
pub(super) fn play(
    played: &Played,
    options: &PlaceOptions,
    policy: &Arc<LivePolicy>,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    let folder = tempfile::Builder::new()
        .prefix("countersign-recording-")
        .tempdir()?;
    let options = &own_place(options, folder.path())?;
    let (loaded, config) = (options.loaded(), options.config());
    let mut place = options.open_or_make_quietly()?;
    let door = Door::make(&place)?;
    let metrics = Arc::new(Metrics::with_clock(place.clock.clone()));
    let (clock, dropped) = (place.clock.clone(), metrics.spans_dropped());
    let telemetry = telemetry::start(&config.telemetry, &place.runtime, terminal, clock, dropped)?;
    let identity = identity_of(&place, policy)?;
    let identity = identity.with_operator(door.operator(&place));
    let executor = place.executor_builder(played.catalog.clone(), Rules::default());
    let executor = executor.player(played.player.clone());
    let gateway = gateway_of(&place, executor, policy, identity, metrics, &telemetry)?;
    let mut sequencer = journal::sequencer(&place, |builder| builder)?;
    let signed = place.runtime.block_on(sequencer.tick());
    signed.map_err(journal::failed)?;
    let signals = place.runtime.block_on(async { signals() })?;
    let listen = *config.server.listen;
    let bound = place
        .runtime
        .block_on(Server::bind(gateway.clone(), listen));
    let server = bound.map_err(|error| super::cannot_listen(listen, error))?;
    let url = format!("http://{}", server.address()?);
    let about = About::here(&place.folder, &place.store_name, Some(url.clone()))?;
    let server = door.open(&place, &gateway, server, &about)?;
    let file = policy::file_of(loaded);
    if !terminal.is_for_programs() {
        terminal.say(format_args!(
            "answering from a recording: {} calls of {} tools; no tool runs, and nothing is stored",
            played.player.counts().calls,
            played.tools
        ))?;
    }
    let named = (file.as_deref(), &**policy);
    say_where(terminal, (&url, about.pid), named, false)?;
    let ended = place
        .runtime
        .block_on(serve(&gateway, server, sequencer, signals));
    let withdrawn = about.withdraw(&place.folder);
    place.runtime.block_on(telemetry.flush(FLUSH_WAIT));
    drop((gateway, telemetry));
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
    played.write_end(terminal)?;
    played.say_end(terminal)
}

/// The configuration with a place that ends with the process, whatever place it names.
fn own_place(options: &PlaceOptions, path: &std::path::Path) -> Result<PlaceOptions, Failure> {
    let folder = Folder::make(path.to_owned())?;
    let ids = countersign::ids::RandomIds::new(Arc::new(countersign::clock::SystemClock::new()));
    keys::make_master(&folder, keys::MASTER, &ids)?;
    let text = |path: &std::path::Path| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| Failure::new("the path of the temporary folder is not UTF-8"))
    };
    let name = "--from-recording";
    let master = format!("file:{}", text(&folder.file(keys::MASTER))?);
    options.with(vec![
        Given::flag("store.data", name, text(path)?),
        Given::flag("store.url", name, "memory"),
        Given::flag("log.origin", name, ORIGIN),
        Given::flag("keys.master", name, master),
    ])
}

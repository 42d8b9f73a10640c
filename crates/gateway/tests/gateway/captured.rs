//! Everything that this process logs at the most verbose level: in the server's format, and in that of a plain
//! subscriber for the workspace's own events.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use countersign::clock::SystemClock;
use countersign_gateway::telemetry::{Lines, LogFormat, LogLayer};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{EnvFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) struct Captured {
    written: Sink,
    lines: Lines,
    plain: Sink,
}

/// Set up once for the whole program; every test may log into it.
pub(crate) static CAPTURED: LazyLock<Captured> = LazyLock::new(|| {
    let (written, plain) = (Sink::default(), Sink::default());
    let lines = Lines::to(Box::new(written.clone()), LogFormat::Json);
    let layer = LogLayer::new(LogFormat::Json, lines.clone(), Arc::new(SystemClock::new()));
    let sink = plain.clone();
    let ours = Targets::new().with_target("countersign", tracing::Level::TRACE);
    let raw = tracing_subscriber::fmt::layer()
        .with_writer(move || sink.clone())
        .with_filter(ours);
    let subscriber = tracing_subscriber::registry()
        .with(EnvFilter::new("trace"))
        .with(layer)
        .with(raw);
    tracing::subscriber::set_global_default(subscriber).unwrap();
    Captured {
        written,
        lines,
        plain,
    }
});

impl Captured {
    /// Returns the log in the server's format.
    pub(crate) async fn written(&self) -> Vec<u8> {
        assert!(self.lines.flush(Duration::from_secs(30)).await);
        self.written.0.lock().unwrap().clone()
    }

    /// Returns the workspace's own events without the last guard.
    pub(crate) fn plain(&self) -> Vec<u8> {
        self.plain.0.lock().unwrap().clone()
    }
}

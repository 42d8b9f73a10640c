//! Log lines about panics: their place, never their message. A tool's panic may quote the values of its call.

use std::io::Write as _;
use std::panic::PanicHookInfo;

/// Environment variable; if it is set to anything, panics are shown completely, as Rust does, and causes of
/// failures are logged.
const SHOW_CAUSES: &str = "COUNTERSIGN_SHOW_CAUSES";

/// True if panics and causes are shown, for tool authors.
pub(super) fn are_shown() -> bool {
    std::env::var_os(SHOW_CAUSES).is_some()
}

/// Installs the hook: a panic becomes one log line with its thread and its place, unless
/// `COUNTERSIGN_SHOW_CAUSES` is set, for tool authors.
pub fn install_panic_hook() {
    if !are_shown() {
        std::panic::set_hook(Box::new(report));
    }
}

fn report(info: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let place = info.location().map(ToString::to_string);
    let place = place.as_deref().unwrap_or("an unknown place");
    if tracing::dispatcher::has_been_set() {
        tracing::error!(thread, place, "a thread panicked");
    } else {
        let _gone = writeln!(std::io::stderr(), "a thread panicked: {thread} at {place}");
    }
}

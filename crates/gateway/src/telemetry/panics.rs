//! What is said of a panic: where, never what. A tool's panic may quote the values of its call.

use std::io::Write as _;
use std::panic::PanicHookInfo;

/// Set to anything, panics are shown whole, as Rust does.
const SHOW_PANICS: &str = "COUNTERSIGN_SHOW_PANICS";

/// From now on a panic is one line in the log with its thread and its place; unless
/// `COUNTERSIGN_SHOW_PANICS` is set, for those who write tools.
pub fn install_panic_hook() {
    if std::env::var_os(SHOW_PANICS).is_none() {
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

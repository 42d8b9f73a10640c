//! What is said of a panic: where, never what. A tool's panic may quote the values of its call.

use std::io::Write as _;
use std::panic::PanicHookInfo;

/// Set to anything, panics are shown whole, as Rust does, and causes of failures are logged.
const SHOW_CAUSES: &str = "COUNTERSIGN_SHOW_CAUSES";

/// Whether somebody writes tools here and wants to see what they say.
pub(super) fn are_shown() -> bool {
    std::env::var_os(SHOW_CAUSES).is_some()
}

/// From now on a panic is one line in the log with its thread and its place; unless
/// `COUNTERSIGN_SHOW_CAUSES` is set, for those who write tools.
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

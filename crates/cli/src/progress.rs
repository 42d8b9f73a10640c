//! How far something is that takes time: a bar on stderr, for people only.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar up to `total`; nothing at all where stderr is no terminal.
pub(crate) fn bar(total: u64, what: &'static str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    let style =
        ProgressStyle::with_template("{msg} {bar:32} {human_pos}/{human_len} {per_sec} {eta}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}

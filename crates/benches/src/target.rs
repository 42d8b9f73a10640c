//! Figures beside their targets.

/// The word for a figure that meets its target, or does not.
pub fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

/// A row of a table of targets: the figure's name, its value, its target, and the verdict.
///
/// # Example
///
/// ```
/// use countersign_benches::target::row;
///
/// assert_eq!(row("start", "22 ms", "≤ 200 ms", true), "start\t22 ms\t≤ 200 ms\tmet");
/// assert!(row("start", "1 s", "≤ 200 ms", false).ends_with("MISSED"));
/// ```
pub fn row(what: &str, measured: &str, target: &str, is_met: bool) -> String {
    format!("{what}\t{measured}\t{target}\t{}", verdict(is_met))
}

/// True if memory is flat: what it has grown by is at most a twentieth of what it was, or 5 MB. Both are in bytes.
///
/// # Example
///
/// ```
/// use countersign_benches::target::is_flat;
///
/// assert!(is_flat(40_000_000, 45_000_000));
/// assert!(!is_flat(40_000_000, 46_000_000));
/// assert!(is_flat(200_000_000, 209_000_000));
/// ```
pub fn is_flat(first: u64, last: u64) -> bool {
    let grown = last.saturating_sub(first);
    grown <= 5_000_000 || grown * 20 <= first
}

/// The load of the machine, as the kernel tells it: a figure beside other work is another figure.
pub fn machine_load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages: Vec<&str> = load.split_whitespace().take(3).collect();
    averages.join(" ")
}

//! Checks that the command makes itself: configuration, policy, upstreams, port, and what the server says of itself.

use std::net::TcpListener;

use serde_json::Value;

use super::{Found, Points, Standing};
use crate::commands::counted;
use crate::commands::lint::{self, Finding, Severity};
use crate::config;
use crate::place::{PlaceFlags, PlaceOptions};
use crate::running::Running;

/// Problems of a server that have a point of their own.
const POINTS_OF_THEIR_OWN: [&str; 3] = ["calls_in_doubt", "config_refused", "disk_low"];

/// Checks the configuration file with everything behind it.
pub(super) fn configuration(flags: &PlaceFlags, is_to_connect: bool, points: &mut Points) {
    let Some(path) = config::path(flags.config.as_deref()) else {
        points.add("configuration", Found::ok("no file: the defaults are used"));
        points.add("policy", Found::ok("no policy: every tool may be called"));
        points.add("upstreams", Found::ok("none"));
        return;
    };
    let shown = path.display().to_string();
    let (findings, upstreams) = match lint::examine(path, flags, is_to_connect) {
        Ok((findings, _)) => (findings.0, upstreams_of(flags)),
        Err(failure) => return points.add("configuration", failure.into()),
    };
    let of = |wanted: Part| {
        findings
            .iter()
            .filter(move |finding| part(finding) == wanted)
    };
    let advice = format!("correct it; `countersign lint {shown}` lists all findings");
    let found = |wanted: Part, fine: String| {
        let findings: Vec<&Finding> = of(wanted).collect();
        worst(&findings, fine, &advice)
    };
    points.add("configuration", found(Part::File, shown.clone()));
    let policy = match policy_of(flags) {
        Some(file) => file,
        None => "no policy: every tool may be called".to_owned(),
    };
    points.add("policy", found(Part::Policy, policy));
    let reached = match (upstreams, is_to_connect) {
        (0, _) => "none".to_owned(),
        (count, true) => format!("{} answered", counted(count, "upstream", "upstreams")),
        (count, false) => format!(
            "{}, not connected to",
            counted(count, "upstream", "upstreams")
        ),
    };
    points.add("upstreams", found(Part::Upstreams, reached));
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    File,
    Policy,
    Upstreams,
}

/// The part of the configuration that a finding is about.
fn part(finding: &Finding) -> Part {
    let key = finding.mistake.key.as_str();
    match key.split(['.', '[']).next() {
        Some("policy") => Part::Policy,
        Some("upstream" | "tool") => Part::Upstreams,
        Some(_) | None => Part::File,
    }
}

/// The gravest finding, with the number of the others.
fn worst(findings: &[&Finding], fine: String, advice: &str) -> Found {
    let Some(first) = findings.first() else {
        return Found::ok(fine);
    };
    let state = match first.severity {
        Severity::Error => Standing::Wrong,
        Severity::Warning => Standing::Note,
    };
    let others = match findings.len() {
        1 => String::new(),
        all => format!(" (and {} more)", all - 1),
    };
    let found = format!("{}{others}", first.mistake);
    Found::new(state, found, Some(advice.to_owned()))
}

fn policy_of(flags: &PlaceFlags) -> Option<String> {
    let options = flags.read_quietly().ok()?;
    let file = crate::policy::file_of(options.loaded())?;
    Some(file.display().to_string())
}

fn upstreams_of(flags: &PlaceFlags) -> usize {
    let options = flags.read_quietly();
    options.map_or(0, |options| options.config().upstream.len())
}

/// Checks the address that a server listens at: free, or the server's own.
pub(super) fn port(options: &PlaceOptions, running: Option<&Running>, points: &mut Points) {
    let address = *options.config().server.listen;
    if running.is_some() {
        return;
    }
    points.add(
        "port",
        match TcpListener::bind(address) {
            Ok(_) => Found::ok(format!("{address} is free")),
            Err(error) => Found::note(
                format!("a server cannot listen at {address}: {error}"),
                "stop the program that listens there, or set another address: `countersign serve --listen` or server.listen",
            ),
        },
    );
}

/// Checks the running server, with the problems that it reports.
pub(super) fn server(running: &Running, options: &PlaceOptions, points: &mut Points) {
    let place = format!(
        "works at {} (process {})",
        running.place(),
        running.about.pid
    );
    let asked = running.ask("/v1/status");
    let status = asked.and_then(|text| Ok(serde_json::from_str::<Value>(&text)?));
    let status = match status {
        Ok(status) => status,
        Err(failure) => {
            let Found { what, advice, .. } = failure.into();
            let found = format!("{place}: {what}");
            return points.add("server", Found::new(Standing::Wrong, found, advice));
        }
    };
    let ours = env!("CARGO_PKG_VERSION");
    let theirs = running.about.version.as_str();
    points.add(
        "server",
        if ours == theirs {
            Found::ok(place)
        } else {
            Found::note(
                format!("{place} has version {theirs}, this command {ours}"),
                "restart the server with this version, or use the command of its version",
            )
        },
    );
    if let Ok(policy) = crate::policy::read(options.loaded())
        && let Some(other) = crate::policy::other_in_force(running, &policy)
    {
        points.add(
            "policy",
            Found::note(
                format!("the server runs under another policy, {other}, than commands that are started here"),
                "write `policy = \"FILE\"` into countersign.toml instead of starting the server with --policy",
            ),
        );
    }
    let problems = status.get("problems").and_then(Value::as_array);
    for problem in problems.into_iter().flatten() {
        let text = |member: &str| problem.get(member).and_then(Value::as_str);
        let code = text("code").unwrap_or_default();
        if POINTS_OF_THEIR_OWN.contains(&code) {
            continue;
        }
        let what = match code {
            "policy_rejected" => "policy",
            "signing_stopped" | "signing_late" => "signing",
            _ => "server",
        };
        let message = text("message").unwrap_or_default();
        points.add(
            what,
            Found::wrong(message, text("hint").unwrap_or_default()),
        );
    }
}

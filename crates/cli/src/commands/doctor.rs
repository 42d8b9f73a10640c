//! `countersign doctor`: checks an installation point by point, and says what to do about each fault.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::answer::write_table;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::operations::Operation;
use crate::place::{Place, PlaceFlags, PlaceOptions};
use crate::table::Table;
use crate::terminal::Terminal;

mod data;
mod local;

/// Check the installation, and say what to do about each fault
///
/// Checks configuration, policy, upstreams, port, server, data folder, keys, rules, disk, store, clock, writes, removals,
/// log, signing, copies, witnesses and calls in doubt. Works with and without a running server. Changes nothing. Exit code 1 if something is wrong.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign doctor
  countersign doctor --offline
  countersign doctor --json | jq '.[] | select(.state != \"ok\")'")]
pub(crate) struct Doctor {
    /// Do not connect to upstreams
    #[arg(long)]
    offline: bool,
}

/// State of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    Ok,
    /// Worth knowing.
    Note,
    /// Has to be looked at.
    Wrong,
}

/// One checked point.
#[derive(Serialize, Deserialize)]
struct Point {
    what: Cow<'static, str>,
    state: Standing,
    found: String,
    /// Recommended action; `None` if there is nothing to do.
    #[serde(rename = "do", default, skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

/// The result of one check.
struct Found {
    state: Standing,
    what: String,
    advice: Option<String>,
}

impl Found {
    fn ok(found: impl Into<String>) -> Self {
        Self::new(Standing::Ok, found, None)
    }

    fn note(found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Standing::Note, found, Some(advice.into()))
    }

    fn wrong(found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Standing::Wrong, found, Some(advice.into()))
    }

    fn new(state: Standing, found: impl Into<String>, advice: Option<String>) -> Self {
        Self {
            state,
            what: found.into(),
            advice,
        }
    }
}

impl From<Failure> for Found {
    /// A check that could not be made.
    fn from(failure: Failure) -> Self {
        let mut found = format!("{:#}", failure.error);
        for line in &failure.lines {
            found = format!("{found}; {line}");
        }
        Self::new(Standing::Wrong, found, failure.hint)
    }
}

/// The points that were checked, in their order.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Points(Vec<Point>);

impl Points {
    fn add(&mut self, what: impl Into<Cow<'static, str>>, found: Found) {
        self.0.push(Point {
            what: what.into(),
            state: found.state,
            found: found.what,
            advice: found.advice,
        });
    }

    /// Adds a point. A check that could not be made is wrong.
    fn check(&mut self, what: &'static str, found: Result<Found, Failure>) {
        self.add(what, found.unwrap_or_else(Found::from));
    }

    fn write(self, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut table = Table::new(["STATE", "WHAT", "FOUND"]);
        for point in &self.0 {
            let state = match point.state {
                Standing::Ok => "ok",
                Standing::Note => "note",
                Standing::Wrong => "WRONG",
            };
            table.row([state, &point.what, &point.found]);
            if let Some(advice) = &point.advice {
                table.row(["", "", &format!("→ {}", terminal.placed(advice))]);
            }
        }
        let is_wrong = |point: &Point| point.state == Standing::Wrong;
        let exit = if self.0.iter().any(is_wrong) {
            Exit::Refused
        } else {
            Exit::Ok
        };
        write_table(terminal, &self, table, "")?;
        Ok(exit)
    }
}

impl Doctor {
    pub(crate) fn run(&self, flags: &PlaceFlags, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut before = Points::default();
        local::configuration(flags, !self.offline, &mut before);
        // Without the file nobody knows where the data is.
        let Ok(options) = flags.read_quietly() else {
            return before.write(terminal);
        };
        examine(&options, before, terminal)
    }
}

/// Checks the place, by its server where one runs.
fn examine(
    options: &PlaceOptions,
    mut before: Points,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    let (folder, store) = options.names()?;
    let running = match options.running() {
        Ok(running) => running,
        // The listener in the folder is not its server.
        Err(failure) => {
            before.add("server", failure.into());
            if let Ok(folder) = Folder::existing(folder) {
                data::folder(&folder, &options.config().keys, &mut before);
            }
            return before.write(terminal);
        }
    };
    local::port(options, running.as_ref(), &mut before);
    let folder = match Folder::existing(folder) {
        Ok(folder) => folder,
        Err(failure) => {
            let found = format!("{}: nothing was stored yet", failure.error);
            let advice = "on a first start there is nothing to do: the first `countersign call` or `countersign serve` creates it; \
                if you expected data here, name its folder with --data";
            before.add("data folder", Found::note(found, advice));
            return before.write(terminal);
        }
    };
    let store = store.to_string();
    if let Some(running) = running {
        local::server(&running, options, &mut before);
        return running.perform(&Asked { before, store }, terminal);
    }
    data::folder(&folder, &options.config().keys, &mut before);
    before.add("store", Found::ok(store));
    match options.open() {
        Ok(place) => data::store(&place, &mut before),
        Err(failure) => before.add("store opens", failure.into()),
    }
    before.write(terminal)
}

/// The operation at a server, with what the command has checked already.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    before: Points,
    /// The store, as the command line names it.
    store: String,
}

impl Operation for Asked {
    const NAME: &'static str = "doctor";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let mut points = Points::default();
        for point in &self.before.0 {
            let found = Found::new(point.state, &*point.found, point.advice.clone());
            points.add(point.what.clone(), found);
        }
        data::folder(&place.folder, &place.config().keys, &mut points);
        points.add("store", Found::ok(&*self.store));
        data::store(place, &mut points);
        points.write(terminal)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Args as _, Command};

    use super::*;

    /// The points that are checked, and the word of the help for each.
    const POINTS: [(&str, &str); 22] = [
        ("configuration", "configuration"),
        ("policy", "policy"),
        ("upstreams", "upstreams"),
        ("port", "port"),
        ("server", "server"),
        ("data folder", "data folder"),
        ("master key", "keys"),
        ("old master key", "keys"),
        ("log key", "keys"),
        ("kept rules", "rules"),
        ("disk", "disk"),
        ("store", "store"),
        ("store opens", "store"),
        ("clock", "clock"),
        ("writes", "writes"),
        ("removals", "removals"),
        ("log", "log"),
        ("signing", "signing"),
        ("copies", "copies"),
        ("copy", "copies"),
        ("witness", "witnesses"),
        ("in doubt", "calls in doubt"),
    ];

    /// The help names everything that is checked.
    #[test]
    fn the_help_names_every_point() {
        let command = Doctor::augment_args(Command::new("doctor"));
        let help = command.get_long_about().unwrap().to_string();
        let help = help.replace('\n', " ");
        let sources = [
            include_str!("doctor.rs"),
            include_str!("doctor/data.rs"),
            include_str!("doctor/local.rs"),
        ];
        let mut found = BTreeSet::new();
        for source in sources {
            let code = source.split("mod tests {").next().unwrap_or_default();
            for call in [".add(", ".check("] {
                let calls = code.split(call).skip(1);
                let names = calls.filter_map(|rest| rest.trim_start().strip_prefix('"'));
                found.extend(names.filter_map(|rest| rest.split('"').next()));
            }
        }
        for name in &found {
            let point = POINTS.iter().find(|(point, _)| point == name);
            let (_, word) = point.unwrap_or_else(|| panic!("{name} is not in this table"));
            assert!(help.contains(word), "{word}: {help}");
        }
        assert_eq!(found.len(), POINTS.len(), "{found:?}");
    }
}

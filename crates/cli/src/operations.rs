//! Operations of an operator on an installation, the same with and without a server.
//!
//! An operation is a value that can be sent, works on a [`Place`], and writes to a [`Terminal`].
//! [`PlaceOptions::perform`](crate::place::PlaceOptions::perform) carries it out in this process if no server has the store. If a server
//! has it, the same value goes over the operator's socket, the server carries out the very same function on its own place (its store, its
//! vault, its API keys, its approvals, the policy of its calls), and its output comes back line by line and is written here. So output,
//! records and exit code are the same.
//!
//! # A new operation
//!
//! 1. Give the options of the command `Serialize` and `Deserialize`, or make a struct of what has to be sent. Files
//!    that the command line names are read by the command and written by it: the server may see other ones.
//! 2. Implement [`Operation`] for it: everything that needs the store is in `perform`. Take the operator from
//!    `place.by`, never from the environment. What changes something begins with `Journal::start(place)` and ends
//!    with `journal.sign(place)`. What only reads and may take long waits with `place.wait(…)`, which gives up when
//!    the command that asked has ended; everything else waits with `place.runtime.block_on(…)` and is done to its end. Show how
//!    far it is with `terminal.bar(…)`.
//! 3. Add its line to [`ALL`], and a case to `tests/beside.rs`.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::commands::{
    approvals, call, calls, case, claims, console, doctor, evidence, grants, keys, notify, policy,
    record, replay, store, top, upstreams, verify,
};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::place::Place;
use crate::terminal::Terminal;

/// An operation that an operator can ask for.
pub(crate) trait Operation: Serialize + DeserializeOwned {
    /// Name of the operation at the socket.
    const NAME: &'static str;

    /// Carries it out.
    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure>;
}

/// An operation that was asked for elsewhere.
pub(crate) type Perform = fn(&RawValue, &Place, &mut Terminal) -> Result<Exit, Failure>;

/// Everything that a server can be asked for.
const ALL: &[(&str, Perform)] = &[
    entry::<approvals::Asked>(),
    entry::<call::Asked>(),
    entry::<calls::Calls>(),
    entry::<calls::CallShow>(),
    entry::<case::Asked>(),
    entry::<claims::List>(),
    entry::<claims::Resolve>(),
    entry::<claims::forget::Forget>(),
    entry::<console::Asked>(),
    entry::<doctor::Asked>(),
    entry::<evidence::List>(),
    entry::<evidence::Show>(),
    entry::<evidence::Open>(),
    entry::<evidence::export::Asked>(),
    entry::<evidence::trail::Trail>(),
    entry::<evidence::key::Key>(),
    entry::<evidence::hold::HoldCommand>(),
    entry::<evidence::hold::Release>(),
    entry::<evidence::hold::Holds>(),
    entry::<evidence::hold::Erase>(),
    entry::<grants::Asked>(),
    entry::<keys::create::Asked>(),
    entry::<keys::list::List>(),
    entry::<keys::change::Asked>(),
    entry::<keys::change::Revoke>(),
    entry::<keys::master::RotateMaster>(),
    entry::<notify::List>(),
    entry::<notify::Retry>(),
    entry::<policy::recorded::Recorded>(),
    entry::<policy::replay::Asked>(),
    entry::<policy::report::Report>(),
    entry::<record::Asked>(),
    entry::<replay::Asked>(),
    entry::<verify::Asked>(),
    entry::<store::backup::Backup>(),
    entry::<store::clock::TrustClock>(),
    entry::<top::Asked>(),
    entry::<upstreams::Approval>(),
];

/// The operation of this name.
pub(crate) fn find(name: &str) -> Option<Perform> {
    let found = ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, perform)| *perform)
}

const fn entry<O: Operation>() -> (&'static str, Perform) {
    (O::NAME, perform::<O>)
}

fn perform<O: Operation>(
    request: &RawValue,
    place: &Place,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    let operation: O = serde_json::from_str(request.get()).map_err(|error| {
        let context = format!("the server does not understand the request {}", O::NAME);
        Failure::from(anyhow::Error::new(error).context(context))
            .hint("use the command of the same version as the server, or restart the server")
    })?;
    operation.perform(place, terminal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_there_once() {
        let mut names: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
        assert!(names.len() >= 20);
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}

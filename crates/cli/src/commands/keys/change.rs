//! `countersign keys rotate` and `countersign keys revoke`.

use std::time::Duration;

use countersign_gateway::policy::Period;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::create::{period, show_once};
use super::shelf::{in_store, issued};
use crate::answer::write_json;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions};
use crate::terminal::Terminal;

/// Replace an API key with a new one; its secret is shown only once
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign keys rotate 4f6c0b1a2d3e4f50
  countersign keys rotate 4f6c0b1a2d3e4f50 --grace 24h

`countersign keys rotate-master` replaces the master key of the installation.")]
pub(super) struct Rotate {
    /// Id of the key
    #[arg(value_name = "KEY")]
    id: String,

    /// Time for which the old key still works, such as 24h [default: it ends at once]
    #[arg(long, value_name = "PERIOD", value_parser = period)]
    grace: Option<Period>,
}

impl Rotate {
    pub(super) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let asked = Asked {
            id: checked(&self.id)?.to_owned(),
            grace: self.grace.map_or(Duration::ZERO, Period::duration),
        };
        options.perform(&asked, terminal)
    }
}

/// The rotation that is asked for: the id of the key, and the grace period of the old secret.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    id: String,
    grace: Duration,
}

impl Operation for Asked {
    const NAME: &'static str = "keys.rotate";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let made = in_store(place, async |keys, by| {
            let made = keys.rotate(&self.id, self.grace, &by).await?;
            Ok(issued(&made))
        })?;
        show_once(terminal, &made)
    }
}

/// Revoke an API key
///
/// A running server refuses the key at once; other servers on the same store refuse it within five seconds.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub(crate) struct Revoke {
    /// Id of the key
    #[arg(value_name = "KEY")]
    id: String,
}

impl Revoke {
    pub(super) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        checked(&self.id)?;
        options.perform(self, terminal)
    }
}

impl Operation for Revoke {
    const NAME: &'static str = "keys.revoke";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let id = checked(&self.id)?;
        let ended = in_store(place, async |keys, by| {
            let key = keys.revoke(id, &by).await?;
            Ok(json!({"key": key}))
        })?;
        if terminal.is_for_programs() {
            write_json(terminal, &ended)?;
        } else {
            terminal.say(format_args!("ok: key {id} revoked"))?;
        }
        Ok(Exit::Ok)
    }
}

/// Checks that it is the id of a key, which is safe in a URL. The error explains it to an operator who gives the whole key.
fn checked(id: &str) -> Result<&str, Failure> {
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id {
        return Ok(id);
    }
    Err(Failure::new("this is not the id of a key")
        .hint("the id is the part between the two underscores of a key; `countersign keys list` lists all ids"))
}

//! `countersign console`: a link that opens the console of the running server.

use std::io::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::answer::write_json;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::operations::Operation;
use crate::place::{Place, PlaceOptions};
use crate::terminal::Terminal;

/// Print a sign-in link for the console of the running server
///
/// The link works once, within ten minutes. It signs in as the operator, so do not pass it on.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  countersign console
  xdg-open \"$(countersign console)\"")]
pub(crate) struct Console {}

/// The request to the server.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Address that the server listens on.
    url: String,
}

impl Console {
    #[expect(clippy::unused_self, reason = "every command is run alike")]
    pub(crate) fn run(
        &self,
        options: &PlaceOptions,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let Some(running) = options.running()? else {
            return Err(Failure::new("no server runs on this data folder")
                .hint("start one with `countersign serve`"));
        };
        let Some(url) = running.about.url.clone() else {
            return Err(Failure::new("the running server has no console")
                .hint("start one with `countersign serve`"));
        };
        running.perform(&Asked { url }, terminal)
    }
}

impl Operation for Asked {
    const NAME: &'static str = "console.link";

    fn perform(&self, place: &Place, terminal: &mut Terminal) -> Result<Exit, Failure> {
        let Some(served) = &place.served else {
            return Err(Failure::new("only a running server has a console"));
        };
        let gateway = &served.gateway;
        let link = gateway
            .sessions()
            .link(place.by.clone(), gateway.executor().now());
        let public = gateway.settings().public_url.as_deref();
        let url = public.unwrap_or(&self.url).trim_end_matches('/');
        let link = format!("{url}/sign-in?link={link}");
        if terminal.is_for_programs() {
            write_json(terminal, &json!({"url": link}))?;
        } else {
            writeln!(terminal.data(), "{link}")?;
        }
        Ok(Exit::Ok)
    }
}

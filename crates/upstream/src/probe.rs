//! Asking an upstream whether it is there.

use std::time::{Duration, Instant};

use countersign::offer::{Known, Probe};

use crate::Upstreams;
use crate::http::Service;
use crate::mcp::Server;

mod definitions;

/// Timeout of a question.
const PATIENCE: Duration = Duration::from_secs(10);

impl Upstreams {
    /// Asks one: an MCP server for its tools, any other for the head of its base address, without a credential.
    pub(crate) async fn probed(&self, name: &str) -> Option<Probe> {
        let begun = Instant::now();
        let asked = async {
            match (self.server(name), self.service(name)) {
                (Some(server), _) => Some(of_server(server).await),
                (None, Some(service)) => Some(of_service(service).await),
                (None, None) => None,
            }
        };
        let late = || Probe {
            said: format!("it does not answer within {} seconds", PATIENCE.as_secs()),
            ..Probe::default()
        };
        let asked = tokio::time::timeout(PATIENCE, asked).await;
        let probe = asked.unwrap_or_else(|_| Some(late()))?;
        let took = begun.elapsed().as_micros();
        Some(Probe {
            took_us: u64::try_from(took).unwrap_or(u64::MAX),
            ..probe
        })
    }

    /// Returns the facts about an upstream that are known without a request: the last list of an MCP server, and that a service could not be reached.
    pub(crate) fn known_of(&self, name: &str) -> Option<Known> {
        match (self.server(name), self.service(name)) {
            (Some(server), _) => Some(Known {
                ago: server.asked_ago()?,
                probe: seen_of(server),
            }),
            (None, Some(service)) => service.is_left_alone().then(|| Known {
                ago: Duration::ZERO,
                probe: Probe {
                    said: "the last calls did not reach it; it is left alone for a moment"
                        .to_owned(),
                    ..Probe::default()
                },
            }),
            (None, None) => None,
        }
    }
}

async fn of_server(server: &Server) -> Probe {
    let listed = server.discover().await;
    let probe = seen_of(server);
    match listed {
        Ok(_) => probe,
        Err(error) => Probe {
            is_up: false,
            said: error.why,
            ..probe
        },
    }
}

/// A server as it was when it was asked last.
fn seen_of(server: &Server) -> Probe {
    let state = server.state();
    let is_up = state.trouble.is_none() && state.listed.is_some();
    let count = state.listed.unwrap_or_default();
    let said = state.trouble.clone();
    let names = state.differences.iter().map(|one| one.tool.clone());
    Probe {
        is_up,
        said: said.unwrap_or_else(|| format!("it lists {count} tools")),
        listed: state.listed.filter(|_| is_up),
        approved: Some(state.approved),
        pin: state.pin.map(|pin| pin.to_string()),
        differences: names.collect(),
        changes: definitions::changes(
            server.pin().as_ref(),
            server.listed().as_deref().unwrap_or_default(),
            &state.differences,
        ),
        took_us: 0,
    }
}

async fn of_service(service: &Service) -> Probe {
    let (is_up, said) = match service.head().await {
        Ok(status) => (true, format!("it answers with status {status}")),
        Err(error) => (false, error.without_url().to_string()),
    };
    Probe {
        is_up,
        said,
        ..Probe::default()
    }
}

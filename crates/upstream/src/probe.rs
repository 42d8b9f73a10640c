//! Asking an upstream whether it is there.

use std::time::{Duration, Instant};

use countersign::offer::Probe;

use crate::Upstreams;
use crate::http::Service;
use crate::mcp::Server;

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
}

async fn of_server(server: &Server) -> Probe {
    let listed = server.discover().await;
    let state = server.state();
    let (is_up, said) = match &listed {
        Ok(listed) => (true, format!("it lists {} tools", listed.len())),
        Err(error) => (false, error.why.clone()),
    };
    let names = state.differences.iter().map(|one| one.tool.clone());
    Probe {
        is_up,
        said,
        listed: state.listed.filter(|_| is_up),
        approved: Some(state.approved),
        pin: state.pin.map(|pin| pin.to_string()),
        differences: names.collect(),
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

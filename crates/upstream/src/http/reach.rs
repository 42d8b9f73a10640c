//! Reachability check of an upstream, for `countersign lint`.

use std::error::Error;
use std::time::Duration;

use super::service::Service;

/// The longest that it is waited for.
const WAIT: Duration = Duration::from_secs(10);

impl Service {
    /// Asks for the head of the service's address, without a credential. Any answer shows that it is there; the error is the cause.
    pub async fn reach(&self) -> Result<(), String> {
        let asked = self.client.head(self.base.clone()).timeout(WAIT);
        let answered = asked.send().await;
        answered.map(drop).map_err(|error| {
            let error = error.without_url();
            let mut text = error.to_string();
            let mut cause = error.source();
            while let Some(next) = cause {
                text = format!("{text}: {next}");
                cause = next.source();
            }
            text
        })
    }
}

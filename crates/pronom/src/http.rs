//! The client that fetches over HTTP and HTTPS.

use crate::latest::Fetch;
use std::time::Duration;

/// A blocking HTTP client with limits on time and size.
#[derive(Debug)]
pub struct Http {
    agent: ureq::Agent,
}

impl Default for Http {
    fn default() -> Http {
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(Duration::from_secs(20)))
            .timeout_global(Some(Duration::from_secs(300)))
            .user_agent(concat!("pronom/", env!("CARGO_PKG_VERSION")))
            .build();
        Http { agent: config.into() }
    }
}

impl Fetch for Http {
    fn get(&self, url: &str, limit_bytes: u64) -> Result<Vec<u8>, String> {
        let response = self.agent.get(url).call().map_err(|e| e.to_string())?;
        let body = response.into_body().into_with_config().limit(limit_bytes);
        body.read_to_vec().map_err(|e| e.to_string())
    }
}

//! The addresses of servers: a name is looked up now and then, not before each call.
//!
//! ureq by itself looks the name up before each call, in a new thread, also if a connection to the server is open.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error};

/// How long an address is used. A server that moves is found again after this time.
const FRESH: Duration = Duration::from_secs(30);

/// The addresses that were found, by host and port, and when.
#[derive(Debug, Default)]
struct Addresses(Mutex<HashMap<String, (Instant, Vec<SocketAddr>)>>);

impl Addresses {
    fn known(&self) -> MutexGuard<'_, HashMap<String, (Instant, Vec<SocketAddr>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Resolver for Addresses {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let parts = uri.scheme().zip(uri.authority());
        let name = parts.and_then(|(scheme, host)| DefaultResolver::host_and_port(scheme, host));
        let name = name.unwrap_or_default();
        if let Some((at, known)) = self.known().get(&name)
            && at.elapsed() < FRESH
        {
            let mut addresses = self.empty();
            known.iter().for_each(|address| addresses.push(*address));
            return Ok(addresses);
        }
        let found = DefaultResolver::default().resolve(uri, config, timeout)?;
        self.known().insert(name, (Instant::now(), found.to_vec()));
        Ok(found)
    }
}

/// Returns an agent with these settings.
pub(crate) fn agent(config: Config) -> Agent {
    Agent::with_parts(config, DefaultConnector::default(), Addresses::default())
}

#[cfg(test)]
mod tests {
    use ureq::Timeout;

    use super::*;

    #[test]
    fn a_name_is_looked_up_once() {
        let (addresses, config) = (Addresses::default(), Config::default());
        let uri: Uri = "http://localhost:81/v1".parse().unwrap();
        let resolve = |after: Duration| {
            let (after, reason) = (after.into(), Timeout::Resolve);
            let timeout = NextTimeout { after, reason, ..NextTimeout::default() };
            addresses.resolve(&uri, &config, timeout).map(|found| found.to_vec())
        };
        let found = resolve(Duration::from_secs(20)).unwrap();
        assert!(found.iter().all(|it| it.port() == 81 && it.ip().is_loopback()), "{found:?}");
        // There is no time to look it up again.
        assert_eq!(resolve(Duration::ZERO).unwrap(), found);
    }
}

//! The network egress of a sandboxed program: an HTTP proxy that lets it reach the hosts of a list.
//!
//! A name is resolved by the proxy, once per connection, and the connection goes to exactly the address that
//! was checked. TLS is passed on unopened, except to hosts for which the proxy inserts a secret
//! ([`Secrets`]), and only if it starts with the name of the allowed host, because many hosts share an
//! address. [`Proxy::serve`] handles one connection of the program over any stream; it knows nothing of
//! sandboxes.

mod dial;
mod exchange;
mod grants;
mod hello;
mod intercept;
mod journal;
mod message;
mod refusals;
mod secrets;
mod traffic;

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use self::exchange::Exchange;
use self::journal::Journal;
use super::Guard;
use sepal_core::domain::{AllowedHosts, Timestamp};

pub use self::grants::{Grant, Grants};
pub use self::journal::HostMask;
pub use self::refusals::{Refusals, Witness};
pub use self::secrets::{AUTHORITY_VARIABLE, AuthorityError, EdgeSecret, Secrets};

/// The most bytes of a request head.
const MAX_HEAD_BYTES: usize = 32 << 10;
/// The time limit of a request head.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// The time without traffic after which a connection counts as idle.
const IDLE_LIMIT: Duration = Duration::from_mins(5);
/// The time limit for resolving a name and connecting, together.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);

/// The owner of the list, which decides about private addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The operator: a host that is listed by its exact name may have a private address.
    Private,
    /// A tenant: public addresses only, and the exceptions that the operator named.
    Public,
}

/// The hosts that one program may reach. Clones share the list of refusals.
#[derive(Debug, Clone)]
pub struct Egress {
    /// The allowed hosts, by name and port.
    pub hosts: Arc<AllowedHosts>,
    pub reach: Reach,
    /// Blocks private addresses.
    pub guard: Guard,
    /// The list of refused hosts.
    pub refusals: Refusals,
    /// The secrets to insert; `None` = TLS to every host is passed on unopened.
    pub secrets: Option<Arc<Secrets>>,
    /// The secrets that the program knows, which are masked in reports of its hosts.
    pub mask: HostMask,
    /// The hosts that a session was granted for its own sandbox; `None` = the program belongs to no session.
    pub grants: Option<Grants>,
}

impl Egress {
    /// Allows the given hosts; nobody is told of refusals.
    pub fn new(hosts: AllowedHosts, reach: Reach, guard: Guard) -> Self {
        Self {
            hosts: Arc::new(hosts),
            reach,
            guard,
            refusals: Refusals::default(),
            secrets: None,
            mask: HostMask::default(),
            grants: None,
        }
    }

    /// Returns true if connections to the host may carry any protocol.
    fn is_raw(&self, target: &dial::Target) -> bool {
        let is_listed = self
            .hosts
            .iter()
            .any(|host| host.is_raw() && host.finds(&target.host, target.port).is_some());
        let grants = self.grants.as_ref();
        is_listed || grants.is_some_and(|grants| grants.is_raw(&target.host, target.port))
    }

    /// Returns once an open host may no longer be reached; never for a host of the list.
    async fn withdrawn(&self, target: &dial::Target) {
        let is_listed = self.hosts.find(&target.host, target.port).is_some();
        match self.grants.as_ref().filter(|_| !is_listed) {
            Some(grants) => grants.withdrawn(&target.host, target.port).await,
            None => pending().await,
        }
    }
}

/// The proxy of one program. Clones share its state.
#[derive(Debug, Clone)]
pub struct Proxy {
    egress: Egress,
    journal: Journal,
    /// Tasks of the connections to hosts, which end with their streams.
    tasks: TaskTracker,
}

impl Proxy {
    /// Creates the proxy for the named server; `lines` receives the lines of its log.
    pub fn new(egress: Egress, server: &str, lines: mpsc::Sender<String>) -> Self {
        Self {
            journal: Journal::new(server, lines, egress.mask.clone()),
            egress,
            tasks: TaskTracker::new(),
        }
    }

    /// Handles one connection of the program until either side ends it.
    pub async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        let exchange = Exchange::new(&self.egress, &self.journal, &self.tasks);
        let answering = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_LIMIT)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(
                TokioIo::new(stream),
                service_fn(|request| exchange.answer(request)),
            )
            .with_upgrades();
        // Invalid HTTP harms only the program itself.
        if let Err(error) = answering.await {
            tracing::debug!(%error, "A sandboxed program speaks no HTTP to its proxy");
        }
        exchange.pass_on().await;
    }

    /// Reports that the program has too many connections.
    pub fn refuse_crowd(&self) {
        self.journal.crowded();
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = since.map_or(0, |since| since.as_millis());
    Timestamp(i64::try_from(ms).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;

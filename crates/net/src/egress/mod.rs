//! The way out of a sandboxed program: an HTTP proxy that lets it reach the hosts of a list.
//!
//! A name is resolved here, once for each connection, and the connection goes to exactly the address
//! that was judged. TLS passes unopened, but for the hosts of a secret that the proxy puts in ([`Secrets`]),
//! and only where it begins with the name of that host: many hosts share an address.
//! [`Proxy::serve`] speaks to one connection of the program,
//! whatever stream that comes by; it knows nothing of sandboxes.

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

/// The most that a request may say before its body.
const MAX_HEAD_BYTES: usize = 32 << 10;
/// How long that may take.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// How long a connection may be without a byte.
const IDLE_LIMIT: Duration = Duration::from_mins(5);
/// How long a name and a connection may take together.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);

/// Whose list it is, which decides about private addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The operator's: a host that is listed by its own name may be at a private address.
    Private,
    /// A tenant's: public addresses only, and those that the operator has named as exceptions.
    Public,
}

/// What one program may reach. Clones share what was refused.
#[derive(Debug, Clone)]
pub struct Egress {
    /// The hosts, by name and port.
    pub hosts: Arc<AllowedHosts>,
    pub reach: Reach,
    /// Keeps private addresses out.
    pub guard: Guard,
    /// Where refused hosts are noted.
    pub refusals: Refusals,
    /// What goes in on the way; `None` = TLS of every host passes unopened.
    pub secrets: Option<Arc<Secrets>>,
    /// Secrets that the program knows, which are kept out of what is told of its hosts.
    pub mask: HostMask,
    /// What a session was allowed for its own sandbox beside the hosts; `None` = this is no session's.
    pub grants: Option<Grants>,
}

impl Egress {
    /// Those hosts, with nobody who wants to know what was refused.
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

    /// Whether connections to that host may carry any protocol.
    fn is_raw(&self, target: &dial::Target) -> bool {
        let is_listed = self
            .hosts
            .iter()
            .any(|host| host.is_raw() && host.finds(&target.host, target.port).is_some());
        let grants = self.grants.as_ref();
        is_listed || grants.is_some_and(|grants| grants.is_raw(&target.host, target.port))
    }

    /// Comes back when a host that is open may not be reached any more; never for one of the list.
    async fn withdrawn(&self, target: &dial::Target) {
        let is_listed = self.hosts.find(&target.host, target.port).is_some();
        match self.grants.as_ref().filter(|_| !is_listed) {
            Some(grants) => grants.withdrawn(&target.host, target.port).await,
            None => pending().await,
        }
    }
}

/// The proxy of one program. Clones share its work.
#[derive(Debug, Clone)]
pub struct Proxy {
    egress: Egress,
    journal: Journal,
    /// Connections onwards, which end with their streams.
    tasks: TaskTracker,
}

impl Proxy {
    /// For the server of that name; `lines` gets what its log shows.
    pub fn new(egress: Egress, server: &str, lines: mpsc::Sender<String>) -> Self {
        Self {
            journal: Journal::new(server, lines, egress.mask.clone()),
            egress,
            tasks: TaskTracker::new(),
        }
    }

    /// Answers what comes by one connection of the program, until either side ends it.
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
        // What a program says that is no HTTP is its own affair.
        if let Err(error) = answering.await {
            tracing::debug!(%error, "A sandboxed program speaks no HTTP to its proxy");
        }
        exchange.pass_on().await;
    }

    /// Says that the program has more connections than it may.
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

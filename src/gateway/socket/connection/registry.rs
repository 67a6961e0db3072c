//! Registers all connections of this gateway: counts, finds and dismisses them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::{Connection, End, Shows};
use crate::agent::limit_reached;
use crate::domain::{Holder, Resource, Share, Shares};
use crate::gateway::socket::SocketSettings;
use crate::session::Refusal;
use crate::telemetry::{Present, instruments};
use crate::tenancy::network;

/// The limit on open sockets.
const SOCKETS: Resource = Resource {
    name: "sockets",
    plural: "open connections",
    remedy: "close some tabs",
    total: "runtime.limits.sockets",
    setting: "runtime.limits.sockets",
};

/// The open connections.
pub(in crate::gateway::socket) struct Connections {
    numbers: AtomicUsize,
    /// The registered connections. The lock is never held across an await.
    taken: Mutex<Taken>,
    sockets: Arc<Shares>,
    /// The maximum number of waiting commands of one socket.
    pub(super) commands: Option<usize>,
    pub(super) bytes_per_socket: Option<usize>,
    /// The bytes of waiting commands.
    pub(super) waiting: Arc<Shares>,
    failures: Option<DefaultKeyedRateLimiter<IpAddr>>,
}

/// The registered connections.
#[derive(Default)]
pub(super) struct Taken {
    by_number: HashMap<usize, Weak<Connection>>,
    /// The connections that show a session list, by its user.
    pub(super) lists: HashMap<Holder, HashMap<usize, Weak<Connection>>>,
    /// The refusal that every connection from now on gets immediately.
    farewell: Option<Refusal>,
}

/// The permit of a counted connection; dropping it unregisters the connection.
pub(in crate::gateway::socket) struct ConnectionPermit {
    pub(super) connections: Arc<Connections>,
    pub(super) number: usize,
    _share: Share,
    _counted: Present,
}

impl Connections {
    pub(in crate::gateway::socket) fn new(settings: &SocketSettings) -> Self {
        let per_minute = settings.connects_per_minute.and_then(NonZeroU32::new);
        Self {
            numbers: AtomicUsize::new(0),
            taken: Mutex::default(),
            sockets: Shares::new(settings.sockets),
            commands: settings.commands_per_socket,
            bytes_per_socket: settings.waiting_bytes_per_socket,
            waiting: Shares::new(settings.waiting_bytes),
            failures: per_minute.map(|most| RateLimiter::keyed(Quota::per_minute(most))),
        }
    }

    /// Counts a connection, or returns the limit that is reached.
    pub(in crate::gateway::socket) fn take(
        self: &Arc<Self>,
        holder: Holder,
    ) -> Result<ConnectionPermit, Refusal> {
        let share = self.sockets.take(holder, 1);
        let share = share.map_err(|reached| limit_reached(&SOCKETS, reached))?;
        Ok(ConnectionPermit {
            connections: Arc::clone(self),
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            _share: share,
            _counted: instruments().socket_opened(),
        })
    }

    pub(super) fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the connection, so that it can be found.
    pub(in crate::gateway::socket) fn add(&self, connection: &Arc<Connection>) {
        let mut taken = self.taken();
        if let Some(farewell) = &taken.farewell {
            connection.ends.push(End::Told(farewell.clone()));
        }
        let number = connection.place.number;
        if let Shows::List { .. } = connection.shows {
            let lists = taken.lists.entry(connection.entered.caller.holder());
            lists
                .or_default()
                .insert(number, Arc::downgrade(connection));
        }
        taken.by_number.insert(number, Arc::downgrade(connection));
    }

    /// Returns the connections that show the session list of `holder`.
    pub(in crate::gateway::socket) fn lists_of(&self, holder: &Holder) -> Vec<Arc<Connection>> {
        let taken = self.taken();
        let lists = taken.lists.get(holder).into_iter().flatten();
        lists
            .filter_map(|(_, connection)| connection.upgrade())
            .collect()
    }

    /// Returns the connections that show any session list.
    pub(in crate::gateway::socket) fn all_lists(&self) -> Vec<Arc<Connection>> {
        let taken = self.taken();
        let lists = taken.lists.values().flatten();
        lists
            .filter_map(|(_, connection)| connection.upgrade())
            .collect()
    }

    /// Returns the connections whose number `is_wanted` accepts. None of them may be dropped while the lock
    /// is held, because dropping the last reference takes the lock.
    pub(in crate::gateway::socket) fn all(
        &self,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Vec<Arc<Connection>> {
        let taken = self.taken();
        let wanted = taken.by_number.iter();
        let wanted = wanted.filter(|(number, _)| is_wanted(**number));
        wanted
            .filter_map(|(_, connection)| connection.upgrade())
            .collect()
    }

    /// Ends all connections, including those that are registered later.
    pub(in crate::gateway::socket) fn dismiss(&self, farewell: &Refusal) {
        self.taken().farewell = Some(farewell.clone());
        for connection in self.all(|_| true) {
            connection.ends.push(End::Told(farewell.clone()));
        }
    }

    /// Counts a failed handshake; returns true if the address has failed too often.
    pub(in crate::gateway::socket) fn count_failure(&self, peer: IpAddr) -> bool {
        let Some(failures) = &self.failures else {
            return false;
        };
        if failures.len() > 10_000 {
            failures.retain_recent();
        }
        failures.check_key(&network(peer)).is_err()
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.connections.taken().by_number.remove(&self.number);
    }
}

//! Limits the open connections or requests of each client address, and of all addresses together.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::tenancy::network;

/// Counts open connections or requests by address; an IPv6 address counts as its /64 network.
#[derive(Debug)]
pub struct Addresses {
    most: Option<usize>,
    per_address: Option<usize>,
    /// The counters. The lock is never held across an await.
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crowd {
    /// The limit of this address.
    Address(usize),
    /// The limit of all addresses together.
    All(usize),
}

impl Crowd {
    /// The name of the limit in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Address(_) => "address",
            Self::All(_) => "all",
        }
    }

    /// Returns the text of the refusal of a connection: the limit that is reached, and what to do.
    pub fn refusal_of_connection(self) -> String {
        match self {
            Self::Address(most) => format!(
                "this address has {most} connections, as many as one may; close some, or have the \
                 operator raise `runtime.limits.connections_per_address`, or name the proxy that all \
                 come through in `runtime.http.trusted_proxies`"
            ),
            Self::All(most) => format!(
                "this gateway has {most} connections, as many as it may; try again later, or have \
                 the operator raise `runtime.limits.connections`"
            ),
        }
    }

    /// Returns the text of the refusal of a request that came through a trusted proxy.
    pub fn refusal_of_request(self) -> String {
        match self {
            Self::Address(most) => format!(
                "this address has {most} requests running, as many as one client may; wait until some have \
                 ended, or have the operator raise `runtime.limits.connections_per_address`"
            ),
            Self::All(most) => format!(
                "this gateway has {most} requests running, as many as it may; try again later, or have \
                 the operator raise `runtime.limits.connections`"
            ),
        }
    }
}

impl Addresses {
    /// Creates the limits in all and for each address; `None` means no limit.
    pub fn new(most: Option<usize>, per_address: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            most,
            per_address,
            open: Mutex::default(),
        })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more for an address, or returns the limit that is reached. Without an address, only the
    /// total counts.
    pub fn take(self: &Arc<Self>, address: Option<IpAddr>) -> Result<AddressShare, Crowd> {
        let address = address.map(network).filter(|_| self.per_address.is_some());
        let mut open = self.open();
        if let Some(address) = address {
            let own = open.by_address.get(&address).copied().unwrap_or_default();
            if let Some(most) = self.per_address.filter(|most| own >= *most) {
                return Err(Crowd::Address(most));
            }
        }
        if let Some(most) = self.most.filter(|most| open.all >= *most) {
            return Err(Crowd::All(most));
        }
        open.all += 1;
        if let Some(address) = address {
            *open.by_address.entry(address).or_default() += 1;
        }
        drop(open);
        Ok(AddressShare {
            addresses: Arc::clone(self),
            address,
        })
    }
}

/// A counted connection or request; dropping it reduces the counters.
#[derive(Debug)]
#[must_use]
pub struct AddressShare {
    addresses: Arc<Addresses>,
    address: Option<IpAddr>,
}

impl Drop for AddressShare {
    fn drop(&mut self) {
        let mut open = self.addresses.open();
        open.all = open.all.saturating_sub(1);
        let Some(address) = &self.address else { return };
        if let Some(own) = open.by_address.get_mut(address) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                open.by_address.remove(address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{Addresses, Crowd};

    #[test]
    fn one_address_leaves_the_rest_to_the_others() {
        let addresses = Addresses::new(Some(4), Some(2));
        let mut held = Vec::new();
        let mut check = |address: Option<&str>, expected: Result<(), Crowd>| {
            let address = address.map(|text| text.parse::<IpAddr>().unwrap());
            let taken = addresses.take(address);
            assert_eq!(taken.as_ref().map(drop).map_err(|crowd| *crowd), expected);
            held.extend(taken);
        };
        check(Some("192.0.2.1"), Ok(()));
        check(Some("192.0.2.1"), Ok(()));
        check(Some("::ffff:192.0.2.1"), Err(Crowd::Address(2)));
        // One IPv6 /64 network is one client.
        check(Some("2001:db8::1"), Ok(()));
        check(None, Ok(()));
        check(None, Err(Crowd::All(4)));
        check(Some("2001:db8::2"), Err(Crowd::All(4)));
        held.clear();
        let open = addresses.open();
        assert_eq!((open.all, open.by_address.len()), (0, 0));
    }

    #[test]
    fn without_limits_nobody_is_remembered() {
        let addresses = Addresses::new(None, None);
        let address = "192.0.2.1".parse().unwrap();
        let held: Vec<_> = (0..100).map(|_| addresses.take(Some(address))).collect();
        assert!(held.iter().all(Result::is_ok));
        assert!(addresses.open().by_address.is_empty());
    }
}

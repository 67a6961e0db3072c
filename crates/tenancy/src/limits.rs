//! Limits attempts to sign in: per address and name, per address, and per browser in which the person signed in
//! before.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock as _;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use sha2::{Digest as _, Sha256};

use super::device::Device;
use super::{Clock, Error};

/// Attempts on one name from one address: 10 at once, then one every 12 s.
const NAME_BURST: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
const NAME_EVERY: Duration = Duration::from_secs(12);

/// Attempts on any names from one address: 60 at once, then one every 2 s.
const PEER_BURST: NonZeroU32 = NonZeroU32::MIN.saturating_add(59);
const PEER_EVERY: Duration = Duration::from_secs(2);

/// The number of remembered keys above which fully recovered ones are dropped.
const MAX_KEYS: usize = 10_000;

type Limiter = RateLimiter<String, DashMapStateStore<String>, Ticks, NoOpMiddleware<Duration>>;

/// The rate limiters.
pub(super) struct Limits {
    clock: Ticks,
    by_name: Limiter,
    by_peer: Limiter,
    by_device: Limiter,
}

impl Limits {
    pub(super) fn new(clock: &Clock) -> Self {
        let limiter = |every, burst| {
            let quota = Quota::with_period(every).unwrap_or_else(|| Quota::per_minute(burst));
            let state = DashMapStateStore::default();
            RateLimiter::new(quota.allow_burst(burst), state, Ticks(clock.clone()))
        };
        Self {
            clock: Ticks(clock.clone()),
            by_name: limiter(NAME_EVERY, NAME_BURST),
            by_peer: limiter(PEER_EVERY, PEER_BURST),
            by_device: limiter(NAME_EVERY, NAME_BURST),
        }
    }

    /// Counts an attempt from an address on a name (with its tenant).
    pub(super) fn attempt(&self, peer: IpAddr, name: &str) -> Result<(), Error> {
        let peer = network(peer).to_string();
        // Check the address first: an attacker can invent names, but not addresses.
        self.check(&self.by_peer, &peer)?;
        self.check(&self.by_name, &key(&peer, name))
    }

    /// Counts an attempt of a browser in which somebody signed in before. Attempts of others from its address do
    /// not count against it.
    pub(super) fn attempt_from(&self, device: &Device) -> Result<(), Error> {
        self.check(&self.by_device, &device.id)
    }

    /// Counts an attempt from an address with an invalid link.
    pub(super) fn attempt_link(&self, peer: IpAddr) -> Result<(), Error> {
        self.check(&self.by_peer, &network(peer).to_string())
    }

    /// Counts a person's attempt where it is known whose it is, such as one on their own old password.
    pub(super) fn attempt_of(&self, user: &str) -> Result<(), Error> {
        self.check(&self.by_name, &user.to_owned())
    }

    fn check(&self, limiter: &Limiter, key: &String) -> Result<(), Error> {
        if limiter.len() > MAX_KEYS {
            limiter.retain_recent();
        }
        limiter
            .check_key(key)
            .map_err(|until| Error::TooManyAttempts(until.wait_time_from(self.clock.now())))
    }
}

/// Returns a short key for an attempt, however long the name is.
fn key(peer: &str, name: &str) -> String {
    let name = Sha256::digest(name.to_lowercase().as_bytes());
    format!("{peer} {}", hex::encode(name))
}

/// Returns the /64 network of an IPv6 address, because one client usually has a whole one; an IPv4 address is
/// unchanged.
pub fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let bits = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(bits))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// Adapts the service's clock to governor.
#[derive(Debug, Clone)]
struct Ticks(Clock);

impl governor::clock::Clock for Ticks {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.now().0).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::{Limits, key, network};
    use crate::device::Device;
    use crate::{Clock, Error};
    use sepal_core::domain::{Timestamp, UserId};

    #[test]
    fn a_name_then_an_address_is_slowed_down_and_time_heals() {
        let time = Arc::new(AtomicI64::new(1_000_000));
        let shown = Arc::clone(&time);
        let limits = Limits::new(&Clock::new(move || {
            Timestamp(shown.load(Ordering::Relaxed))
        }));
        let peer: IpAddr = "192.0.2.1".parse().unwrap();
        let tries = |peer, name: &str| {
            let name = name.to_owned();
            (0..100)
                .take_while(|_| limits.attempt(peer, &name).is_ok())
                .count()
        };
        assert_eq!(tries(peer, "default/ann"), 10);
        assert_eq!(tries(peer, "default/ANN"), 0);
        assert_eq!(tries(peer, "default/bob"), 10);
        assert_eq!(tries("192.0.2.2".parse().unwrap(), "default/ann"), 10);
        time.fetch_add(12_000, Ordering::Relaxed);
        assert_eq!(tries(peer, "default/ann"), 1);
        let refusal = limits.attempt(peer, "default/ann").unwrap_err();
        assert!(matches!(refusal, Error::TooManyAttempts(wait) if wait.as_secs() <= 12));
        let names = (0..100).map(|n| format!("default/{n}"));
        let other: IpAddr = "192.0.2.3".parse().unwrap();
        assert_eq!(
            names
                .take_while(|name| limits.attempt(other, name).is_ok())
                .count(),
            60
        );
    }

    #[test]
    fn strangers_at_the_same_address_do_not_count_against_a_known_browser() {
        let time = Arc::new(AtomicI64::new(1_000_000));
        let shown = Arc::clone(&time);
        let limits = Limits::new(&Clock::new(move || {
            Timestamp(shown.load(Ordering::Relaxed))
        }));
        let peer: IpAddr = "192.0.2.1".parse().unwrap();
        let device = |id: &str| Device {
            user: UserId::from_bits(1),
            id: id.to_owned(),
        };
        let tries = |id: &str| {
            let device = device(id);
            (0..100)
                .take_while(|_| limits.attempt_from(&device).is_ok())
                .count()
        };
        for n in 0..100 {
            let _ = limits.attempt(peer, "default/ann");
            let _ = limits.attempt(peer, &format!("default/{n}"));
        }
        assert!(limits.attempt(peer, "default/ann").is_err());
        assert_eq!(tries("a"), 10);
        assert_eq!(tries("b"), 10, "another browser of the person");
        time.fetch_add(24_000, Ordering::Relaxed);
        assert_eq!(tries("a"), 2);
    }

    #[test]
    fn a_stranger_cannot_make_it_remember_much() {
        let limits = Limits::new(&Clock::new(|| Timestamp(1_000_000)));
        let peer: IpAddr = "192.0.2.1".parse().unwrap();
        for n in 0..1_000 {
            let _ = limits.attempt(peer, &format!("default/{n}"));
        }
        assert!(limits.by_name.len() <= 60, "{}", limits.by_name.len());
        assert!(key("192.0.2.1", &"n".repeat(1 << 20)).len() < 100);
        assert_ne!(key("192.0.2.1", "ann"), key("192.0.2.1", "bob"));
    }

    #[test]
    fn a_peer_is_its_ipv4_address_or_its_ipv6_network() {
        let check = |peer: &str, expected: &str| {
            assert_eq!(network(peer.parse().unwrap()).to_string(), expected);
        };
        check("192.0.2.1", "192.0.2.1");
        check("::ffff:192.0.2.1", "192.0.2.1");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
        check("::1", "::");
    }
}

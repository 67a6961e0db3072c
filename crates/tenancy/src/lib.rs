//! Decides who may enter and what they may do: setup, sign-in, keys, tickets, and the checks before every
//! command. Knows nothing of HTTP; the gateway turns its results into cookies and codes.

mod admin;
mod credential;
mod error;
mod gesture;
mod limits;
mod password;
mod secret;
mod setup;
mod sign_in;
mod tickets;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::broadcast;

pub use admin::{Administration, CreatedKey, NewPerson, Person};
pub use credential::{AuthenticatedCaller, Credential, Revocation};
pub use error::Error;
pub use gesture::{
    GestureError, Gestures, LIFE_MS as GESTURE_LIFE_MS, MOST_CALLS, Passkeys, Proof, RelyingParty,
    Ways,
};
pub use limits::network;
pub use secret::{csrf_of, hash as secret_hash, key_prefix, random as random_secret};
pub use setup::{Link, Setup};
pub use sign_in::SignedIn;

use sepal_core::domain::{Caller, Timestamp};
use sepal_store::{DataDir, Records, Store, clock};

/// The tenant of a client that names none.
pub const DEFAULT_TENANT: &str = "default";

/// The most revocations that a slow socket may lag behind before it has to check everybody.
const REVOCATIONS: usize = 256;

/// The time of day; a test passes its own clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self::new(clock::now)
    }

    /// Makes a clock that returns the function's time.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// The service. Clones share everything.
#[derive(Clone)]
pub struct Tenancy {
    parts: Arc<Parts>,
}

struct Parts {
    records: Records,
    dir: DataDir,
    clock: Clock,
    passwords: password::Passwords,
    limits: limits::Limits,
    checked: credential::CredentialCache,
    tickets: tickets::Tickets,
    revoked: broadcast::Sender<Revocation>,
}

impl Tenancy {
    /// Makes a service on the records of a store.
    pub fn new(store: &Store, clock: Clock) -> Self {
        Self {
            parts: Arc::new(Parts {
                records: store.records(),
                dir: store.dir().clone(),
                passwords: password::Passwords::new(),
                limits: limits::Limits::new(&clock),
                checked: credential::CredentialCache::default(),
                tickets: tickets::Tickets::default(),
                revoked: broadcast::channel(REVOCATIONS).0,
                clock,
            }),
        }
    }

    /// Subscribes to ended accesses, so that their sockets close. A receiver that lagged behind calls
    /// [`Self::check_still_valid`] for everybody.
    pub fn revocations(&self) -> broadcast::Receiver<Revocation> {
        self.parts.revoked.subscribe()
    }

    /// Changes tenants, people and keys.
    pub fn administration(&self) -> Administration<'_> {
        Administration(self)
    }

    /// Sets up the installation, and lets people in by links.
    pub fn setup(&self) -> Setup<'_> {
        Setup(self)
    }

    /// Counts an invalid link, which slows down guessing.
    pub fn count_wrong_link(&self, peer: IpAddr) -> Result<(), Error> {
        self.parts.limits.attempt_link(peer)
    }

    /// Returns the caller's gestures at the requested address; `None` = browsers offer no passkeys there.
    pub fn gestures<'a>(
        &'a self,
        caller: &'a Caller,
        party: Option<&'a RelyingParty>,
    ) -> Gestures<'a> {
        Gestures::new(self, caller, party)
    }

    /// Returns the caller's passkeys at the requested address; `None` = browsers offer none there.
    pub fn passkeys<'a>(
        &'a self,
        entered: &'a AuthenticatedCaller,
        party: Option<&'a RelyingParty>,
    ) -> Passkeys<'a> {
        Passkeys::new(self.gestures(&entered.caller, party), entered)
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    fn records(&self) -> &Records {
        &self.parts.records
    }
}

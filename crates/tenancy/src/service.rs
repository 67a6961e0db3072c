//! The service that doors ask who may enter.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use tokio::sync::broadcast;

use sepal_core::domain::{Caller, TenantId, Timestamp};
use sepal_store::{DataDir, Records, Store};

use crate::admin::Administration;
use crate::clock::Clock;
use crate::credential::{AuthenticatedCaller, CredentialCache, Revocation};
use crate::device::DeviceKey;
use crate::error::Error;
use crate::gesture::{Gestures, Passkeys, RelyingParty};
use crate::limits::Limits;
use crate::password::Passwords;
use crate::refusals::Refusals;
use crate::setup::Setup;
use crate::tickets::Tickets;

/// The most revocations that a slow socket may lag behind before it has to check everybody.
const REVOCATIONS: usize = 256;

/// The service. Clones share everything.
#[derive(Clone)]
pub struct Tenancy {
    pub(crate) parts: Arc<Parts>,
}

pub(crate) struct Parts {
    pub(crate) records: Records,
    pub(crate) dir: DataDir,
    pub(crate) clock: Clock,
    pub(crate) passwords: Passwords,
    pub(crate) limits: Limits,
    /// The key of device cookies; empty in commands beside the server.
    pub(crate) device_key: OnceLock<DeviceKey>,
    pub(crate) checked: CredentialCache,
    pub(crate) tickets: Tickets,
    pub(crate) refusals: Refusals,
    pub(crate) revoked: broadcast::Sender<Revocation>,
    pub(crate) groups: OnceLock<GroupWatch>,
}

/// Called with the tenant whose groups have changed.
pub(crate) type GroupWatch = Box<dyn Fn(&TenantId) + Send + Sync>;

impl Tenancy {
    /// Makes a service on the records of a store.
    pub fn new(store: &Store, clock: Clock) -> Self {
        Self {
            parts: Arc::new(Parts {
                records: store.records(),
                dir: store.dir().clone(),
                passwords: Passwords::new(),
                limits: Limits::new(&clock),
                device_key: OnceLock::new(),
                checked: CredentialCache::default(),
                tickets: Tickets::default(),
                refusals: Refusals::default(),
                revoked: broadcast::channel(REVOCATIONS).0,
                groups: OnceLock::new(),
                clock,
            }),
        }
    }

    /// Subscribes to ended accesses, so that their sockets close. A receiver that lagged behind calls
    /// [`Self::check_still_valid`] for everybody.
    pub fn revocations(&self) -> broadcast::Receiver<Revocation> {
        self.parts.revoked.subscribe()
    }

    /// Calls `watch` whenever members of groups, or what groups name, have changed here, before the change is
    /// acknowledged. Only the first call of this counts.
    pub fn watch_groups(&self, watch: impl Fn(&TenantId) + Send + Sync + 'static) {
        // The first watch stays.
        let _ = self.parts.groups.set(Box::new(watch));
    }

    /// Tells that groups of a tenant have changed.
    pub(crate) fn groups_changed(&self, tenant: &TenantId) {
        if let Some(watch) = self.parts.groups.get() {
            watch(tenant);
        }
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

    pub(crate) fn records(&self) -> &Records {
        &self.parts.records
    }
}

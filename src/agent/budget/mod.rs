//! Enforces budgets of model requests: reserves before a request is sent and while its answer streams, and
//! returns the rest when it ends. Does nothing if no budget is set.

mod access;
mod gate;
mod gauge;
mod paced;
mod probing;
mod words;

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

pub use access::{BudgetChange, BudgetError, BudgetView, BudgetWhose};
pub(in crate::agent) use gate::{Ceiling, Gate, Warn};
pub(in crate::agent) use paced::PacedProvider;
pub use probing::{Probe, ProbeError};

use crate::domain::{Budget, BudgetLevel, MicroUsd, Need, TenantId, Timestamp};
use crate::store::clock::now;
use crate::store::records::{Payer, ReservationOutcome};
use crate::store::{Error, Records};

/// The time for which a reservation lasts without a renewal.
const LEASE: Duration = Duration::from_secs(45);
/// The interval at which a running request renews its lease.
const RENEW: Duration = Duration::from_secs(15);
/// The longest time for which a request's reservation still counts after its end: by then its usage rows are
/// stored.
const GRACE_MS: i64 = 10_000;
/// The interval at which the set budgets are looked up, because another gateway may have set the first one.
const REFRESH_EVERY: Duration = Duration::from_secs(10);
/// The most concurrent reservations of one gateway: they wait for each other anyway, and must not take every
/// database connection.
const STEPS: usize = 4;

/// The budget settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BudgetSettings {
    /// The cost limit of one turn; `None` = no limit.
    pub turn: Option<MicroUsd>,
    /// The cost limit of one session, unless an admin of its tenant sets another.
    pub session: Option<MicroUsd>,
    /// The amount that a request of unknown price counts; `None` = it is refused if a hard budget applies.
    pub unpriced_request: Option<MicroUsd>,
}

/// A reservation to return.
struct Return {
    payer: Payer,
    /// True if the request used nothing.
    is_unused: bool,
}

/// The budgets of the installation. Cheap to clone.
#[derive(Clone)]
pub struct Budgets(Arc<Shared>);

struct Shared {
    records: Records,
    settings: BudgetSettings,
    /// The budgets from the settings.
    defaults: Vec<Budget>,
    /// Tenants that have a budget set. The lock is never held across an await.
    tenants: RwLock<HashSet<TenantId>>,
    steps: Semaphore,
    returns: mpsc::UnboundedSender<Return>,
}

impl Budgets {
    /// Reads the set budgets. The returned task returns the reservations of ended requests, until `stop`.
    pub async fn open(
        records: Records,
        settings: BudgetSettings,
        stop: CancellationToken,
    ) -> Result<(Self, impl Future<Output = ()> + Send + 'static), Error> {
        let (returns, returned) = mpsc::unbounded_channel();
        let of = |level, limit: Option<MicroUsd>| limit.map(|it| Budget::of_settings(level, it));
        let defaults = [
            of(BudgetLevel::Turn, settings.turn),
            of(BudgetLevel::Session, settings.session),
        ];
        let budgets = Self(Arc::new(Shared {
            records,
            settings,
            defaults: defaults.into_iter().flatten().collect(),
            tenants: RwLock::default(),
            steps: Semaphore::new(STEPS),
            returns,
        }));
        budgets.refresh().await?;
        let keeping = budgets.clone().keep(returned, stop);
        Ok((budgets, keeping))
    }

    /// Returns reservations as they come in, and looks up regularly which tenants have a budget set.
    async fn keep(self, mut returned: mpsc::UnboundedReceiver<Return>, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(REFRESH_EVERY);
        loop {
            tokio::select! {
                biased;
                back = returned.recv() => match back {
                    Some(back) => self.give_back(&back).await,
                    None => return,
                },
                () = stop.cancelled() => return,
                _ = ticks.tick() => if let Err(error) = self.refresh().await {
                    tracing::warn!(%error, "Budgets cannot be looked up");
                }
            }
        }
    }

    async fn give_back(&self, back: &Return) {
        let until = (!back.is_unused).then(|| Timestamp(now().0.saturating_add(GRACE_MS)));
        let budgets = self.0.records.budgets();
        if let Err(error) = budgets.give_back(&back.payer, until).await {
            // The lease expires in any case.
            tracing::warn!(%error, "What a request held of budgets is given back later");
        }
    }

    /// Looks up whether a tenant has a budget that another gateway set. Unlike [`Self::refresh`] it forgets no
    /// tenant, so a budget that is set meanwhile stays in force.
    pub async fn look_up(&self, tenant: &TenantId) -> Result<(), Error> {
        let found = self.0.records.budgets().tenants().await?;
        if found.iter().any(|it| it == tenant) {
            self.note(tenant);
        }
        Ok(())
    }

    async fn refresh(&self) -> Result<(), Error> {
        let found = self.0.records.budgets().tenants().await?;
        let tenants = self.0.tenants.write();
        let mut tenants = tenants.unwrap_or_else(PoisonError::into_inner);
        *tenants = found.into_iter().collect();
        Ok(())
    }

    /// Records that a tenant now has a budget set.
    fn note(&self, tenant: &TenantId) {
        let tenants = self.0.tenants.write();
        let mut tenants = tenants.unwrap_or_else(PoisonError::into_inner);
        tenants.insert(tenant.clone());
    }

    /// Returns true if a budget may apply to people of the tenant.
    pub fn has_any(&self, tenant: &TenantId) -> bool {
        let tenants = self.0.tenants.read();
        let tenants = tenants.unwrap_or_else(PoisonError::into_inner);
        !self.0.defaults.is_empty() || tenants.contains(tenant)
    }

    /// The amount that budgets count for a request of unknown price.
    pub(in crate::agent) fn charge(&self) -> Option<MicroUsd> {
        self.0.settings.unpriced_request
    }

    /// Returns the gate of a model request; `None` if no budget applies.
    pub(in crate::agent) fn gate(&self, payer: Payer) -> Option<Arc<Gate>> {
        (payer.assistant.is_some() || self.has_any(&payer.key.tenant))
            .then(|| Arc::new(Gate::new(self.clone(), payer)))
    }

    /// Reserves once for a request.
    async fn reserve(&self, payer: &Payer, need: Need) -> Result<ReservationOutcome, Error> {
        // Nothing closes this semaphore.
        let _turn = self.0.steps.acquire().await;
        let budgets = self.0.records.budgets();
        let settings = self.0.defaults.as_slice();
        budgets.reserve(payer, settings, need, now(), LEASE).await
    }
}

//! Budgets of model requests: what each may use is reserved before it is sent, more while its answer
//! streams, and given back when it is over. Where nobody set a budget, nothing of this runs.

mod access;
mod ceiling;
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
pub(in crate::agent) use ceiling::Ceiling;
pub(in crate::agent) use gate::{Gate, Warn};
pub(in crate::agent) use paced::Paced;
pub use probing::{Probe, Unanswered};

use crate::domain::{Budget, BudgetLevel, MicroUsd, Need, TenantId, Timestamp};
use crate::store::clock::now;
use crate::store::records::{Payer, Reserved};
use crate::store::{Error, Records};

/// How long a request holds what it reserved without a sign of life.
const LEASE: Duration = Duration::from_secs(45);
/// How often a running request gives one.
const RENEW: Duration = Duration::from_secs(15);
/// How long what a request held is counted after its end, at most: until then its rows have come.
const GRACE_MS: i64 = 10_000;
/// How often what was set is looked up, because another gateway may have set the first budget.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Steps of one gateway at once: they wait for each other anyway, and must not take every connection.
const STEPS: usize = 4;

/// What the settings say of budgets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BudgetSettings {
    /// What one turn may cost; none = no limit.
    pub turn: Option<MicroUsd>,
    /// What one session may cost, unless an admin of its tenant says otherwise.
    pub session: Option<MicroUsd>,
    /// What a request counts whose price is unknown; none = it is refused where a hard budget holds.
    pub unpriced_request: Option<MicroUsd>,
}

/// What is given back.
struct Return {
    payer: Payer,
    /// Whether the request used nothing.
    is_unused: bool,
}

/// The budgets of the installation. Cheap to clone.
#[derive(Clone)]
pub struct Budgets(Arc<Shared>);

struct Shared {
    records: Records,
    settings: BudgetSettings,
    /// Those of the settings as budgets.
    defaults: Vec<Budget>,
    /// Tenants in which something was set. Never held across an await.
    tenants: RwLock<HashSet<TenantId>>,
    steps: Semaphore,
    returns: mpsc::UnboundedSender<Return>,
}

impl Budgets {
    /// Reads what was set; the task's work gives back what ended requests held, until `stop`.
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
        budgets.look().await?;
        let keeping = budgets.clone().keep(returned, stop);
        Ok((budgets, keeping))
    }

    /// Gives back what comes in, and looks now and then in which tenants something was set.
    async fn keep(self, mut returned: mpsc::UnboundedReceiver<Return>, stop: CancellationToken) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                biased;
                back = returned.recv() => match back {
                    Some(back) => self.give_back(&back).await,
                    None => return,
                },
                () = stop.cancelled() => return,
                _ = looks.tick() => if let Err(error) = self.look().await {
                    tracing::warn!(%error, "Budgets cannot be looked up");
                }
            }
        }
    }

    async fn give_back(&self, back: &Return) {
        let until = (!back.is_unused).then(|| Timestamp(now().0.saturating_add(GRACE_MS)));
        let budgets = self.0.records.budgets();
        if let Err(error) = budgets.give_back(&back.payer, until).await {
            // Its lease ends in any case.
            tracing::warn!(%error, "What a request held of budgets is given back later");
        }
    }

    async fn look(&self) -> Result<(), Error> {
        let found = self.0.records.budgets().tenants().await?;
        let tenants = self.0.tenants.write();
        let mut tenants = tenants.unwrap_or_else(PoisonError::into_inner);
        *tenants = found.into_iter().collect();
        Ok(())
    }

    /// From now on something is set in that tenant.
    fn note(&self, tenant: &TenantId) {
        let tenants = self.0.tenants.write();
        let mut tenants = tenants.unwrap_or_else(PoisonError::into_inner);
        tenants.insert(tenant.clone());
    }

    /// Whether any budget may be in force for the people of a tenant.
    pub fn has_any(&self, tenant: &TenantId) -> bool {
        let tenants = self.0.tenants.read();
        let tenants = tenants.unwrap_or_else(PoisonError::into_inner);
        !self.0.defaults.is_empty() || tenants.contains(tenant)
    }

    /// What budgets count for a request whose price is unknown.
    pub(in crate::agent) fn charge(&self) -> Option<MicroUsd> {
        self.0.settings.unpriced_request
    }

    /// What a model request has to pass; none where there is no budget.
    pub(in crate::agent) fn gate(&self, payer: Payer) -> Option<Arc<Gate>> {
        self.has_any(&payer.key.tenant)
            .then(|| Arc::new(Gate::new(self.clone(), payer)))
    }

    /// One step of a request.
    async fn reserve(&self, payer: &Payer, need: Need) -> Result<Reserved, Error> {
        // Closed by nobody.
        let _turn = self.0.steps.acquire().await;
        let budgets = self.0.records.budgets();
        let settings = self.0.defaults.as_slice();
        budgets
            .reserve(payer, (settings, need), (now(), LEASE))
            .await
    }
}

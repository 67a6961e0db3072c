//! Reserves budget for one model request of a turn: before the model is asked, and more while the answer
//! streams. Stops the request when no budget is left.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::gauge::Gauge;
use super::words::{covers, exhausted, held, limited, unpriced, warning};
use super::{Budgets, RENEW, Return};
use crate::domain::{BudgetStanding, Code, Grant, MicroUsd, Need};
use crate::llm::ModelEvent;
use crate::llm::catalogue::Model;
use crate::session::Refusal;
use crate::store::records::{Payer, ReservationOutcome};

/// The time for which a request waits for budget that other requests have reserved.
const PATIENCE: Duration = Duration::from_mins(1);
/// The pause between two tries.
const AGAIN: Duration = Duration::from_millis(200);

/// The reason a request is stopped.
pub(in crate::agent) type GateRefusal = Refusal;

/// Warns people that a budget is about to run out.
pub(in crate::agent) type Warn<'a> = &'a (dyn Fn(String) + Send + Sync);

/// Holds the budget reservations of one model request of a turn, and returns them when it is dropped.
pub(in crate::agent) struct Gate {
    budgets: Budgets,
    payer: Payer,
    /// The usage of the running attempt. The lock is never held across an await.
    gauge: Mutex<Option<Gauge>>,
    /// The amount reserved so far for the whole request.
    paid: watch::Sender<MicroUsd>,
    /// Notified when more has to be reserved.
    low: Notify,
    /// True once a model was asked.
    is_used: AtomicBool,
}

impl Gate {
    pub(super) fn new(budgets: Budgets, payer: Payer) -> Self {
        Self {
            budgets,
            payer,
            gauge: Mutex::default(),
            paid: watch::Sender::default(),
            low: Notify::new(),
            is_used: AtomicBool::new(false),
        }
    }

    /// Reserves the cost of asking this model, in addition to that of earlier attempts. Waits for budget that
    /// other requests have reserved. Returns the hard budget with the least left, if there is one.
    pub(in crate::agent) async fn admit(
        &self,
        model: Arc<Model>,
        input_tokens: u64,
        earlier: MicroUsd,
        warn: Warn<'_>,
    ) -> Result<Option<BudgetStanding>, GateRefusal> {
        let name = model.id.clone();
        let gauge = Gauge::new(model, self.budgets.charge(), input_tokens, earlier);
        let Some(gauge) = gauge else {
            return self.admit_unpriced(&name, earlier, warn).await;
        };
        let need = Need {
            begins: true,
            ..gauge.need()
        };
        *self.gauge() = Some(gauge);
        let since = Instant::now();
        loop {
            let step = self
                .reserve(need, warn)
                .await
                .map_err(|error| away(&error))?;
            match step.grant {
                Grant::Given(amount) => {
                    self.paid.send_replace(amount);
                    return Ok(step.tightest);
                }
                Grant::Exhausted(standing) => return Err(exhausted(&standing, need)),
                Grant::Held(standing) if since.elapsed() > PATIENCE => return Err(held(&standing)),
                // Spread the retries, or the same requests would collide again and again.
                Grant::Held(_) => {
                    let jitter = AGAIN.mul_f32(rand::random());
                    tokio::time::sleep(AGAIN / 2 + jitter).await;
                }
            }
        }
    }

    /// Admits a request whose cost is unknown only if no hard budget refuses it.
    async fn admit_unpriced(
        &self,
        model: &str,
        earlier: MicroUsd,
        warn: Warn<'_>,
    ) -> Result<Option<BudgetStanding>, GateRefusal> {
        *self.gauge() = None;
        let need = Need {
            least: earlier,
            usual: earlier,
            begins: false,
        };
        let step = self
            .reserve(need, warn)
            .await
            .map_err(|error| away(&error))?;
        if step.tightest.is_some() {
            return Err(unpriced(model));
        }
        Ok(None)
    }

    /// Returns the limit on the answer if the budget covers less than the longest one. The provider is told,
    /// so that it generates nothing beyond. Reservations of other requests may come back, so they shorten
    /// nothing.
    pub(in crate::agent) fn ceiling(
        &self,
        tightest: Option<BudgetStanding>,
        longest: u32,
    ) -> Option<Ceiling> {
        let standing = tightest?;
        let gauge = self.gauge();
        let tokens = gauge.as_ref()?.covered(standing.left_at_most(), longest)?;
        Some(Ceiling { tokens, standing })
    }

    async fn reserve(
        &self,
        need: Need,
        warn: Warn<'_>,
    ) -> Result<ReservationOutcome, crate::store::Error> {
        let step = self.budgets.reserve(&self.payer, need).await?;
        for standing in &step.warnings {
            warn(warning(standing));
        }
        Ok(step)
    }

    /// Prepares for a retry of the same request after a failed attempt. `earlier` is the cost of all attempts
    /// so far.
    pub(in crate::agent) fn again(&self, earlier: MicroUsd) {
        if let Some(gauge) = self.gauge().as_mut() {
            gauge.again(earlier);
        }
    }

    /// Counts a piece of the answer.
    pub(super) fn hear(&self, event: &ModelEvent) {
        let mut place = self.gauge();
        let Some(gauge) = place.as_mut() else {
            return;
        };
        if let ModelEvent::Usage(usage) = event {
            gauge.report(*usage);
        } else if let ModelEvent::Text(piece)
        | ModelEvent::Reasoning(piece)
        | ModelEvent::CallArguments { json: piece, .. } = event
        {
            gauge.hear(piece.len());
        }
        if gauge.is_low(self.paid()) {
            self.low.notify_one();
        }
    }

    /// Waits until the usage so far is reserved. [`Gate::cover`] meanwhile reserves more, or ends the
    /// request.
    pub(super) async fn be_paid(&self) {
        self.is_used.store(true, Ordering::Relaxed);
        let is_over = |paid: MicroUsd| {
            let gauge = self.gauge();
            gauge.as_ref().is_some_and(|gauge| gauge.is_over(paid))
        };
        if is_over(self.paid()) {
            self.low.notify_one();
            let mut paid = self.paid.subscribe();
            // Cannot fail: `self` owns the sender.
            let _ = paid.wait_for(|paid| !is_over(*paid)).await;
        }
    }

    /// Waits for an answer while its budgets last.
    pub(in crate::agent) async fn cover<T>(
        &self,
        answer: impl Future<Output = T>,
        warn: Warn<'_>,
    ) -> Result<T, GateRefusal> {
        tokio::select! {
            biased;
            answer = answer => Ok(answer),
            refusal = self.watch(warn) => Err(refusal),
        }
    }

    /// Reserves more when needed and renews the lease, until the request has to stop.
    async fn watch(&self, warn: Warn<'_>) -> GateRefusal {
        let mut pause = RENEW;
        loop {
            tokio::select! {
                () = self.low.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            let gauge = self.gauge().clone();
            let Some(gauge) = gauge else {
                pause = RENEW;
                continue;
            };
            let (need, is_over) = (gauge.need(), gauge.is_over(self.paid()));
            // Boxed: most requests end before the reservation has to be renewed.
            pause = match Box::pin(self.reserve(need, warn)).await {
                Ok(step) => match step.grant {
                    Grant::Given(amount) => {
                        self.paid.send_replace(amount);
                        RENEW
                    }
                    Grant::Exhausted(standing) if is_over => return exhausted(&standing, need),
                    Grant::Held(standing) if is_over => return held(&standing),
                    // The reservation is not used up yet.
                    Grant::Exhausted(_) | Grant::Held(_) => AGAIN,
                },
                Err(error) if is_over => return away(&error),
                Err(_) => AGAIN,
            };
        }
    }

    fn paid(&self) -> MicroUsd {
        *self.paid.borrow()
    }

    fn gauge(&self) -> MutexGuard<'_, Option<Gauge>> {
        self.gauge.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let back = Return {
            payer: self.payer.clone(),
            is_unused: !self.is_used.load(Ordering::Relaxed),
        };
        // If the receiver is gone, the lease expires.
        let _ = self.budgets.0.returns.send(back);
    }
}

/// The refusal when the store is down: no model is asked whose cost cannot be counted.
fn away(error: &crate::store::Error) -> GateRefusal {
    tracing::warn!(?error, "A model request cannot reserve what it may cost");
    Refusal::new(
        Code::StoreUnavailable,
        "budgets cannot be read, because the database does not answer",
    )
}

/// The longest answer that a budget covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agent) struct Ceiling {
    /// The length in tokens, including hidden reasoning.
    pub(in crate::agent) tokens: u32,
    /// The budget before the request.
    pub(super) standing: BudgetStanding,
}

impl Ceiling {
    /// The notice for people when the request is sent.
    pub(in crate::agent) fn words(&self) -> String {
        covers(&self.standing, self.tokens)
    }

    /// The refusal that explains why the answer ended there.
    pub(in crate::agent) fn refusal(&self) -> Refusal {
        limited(&self.standing, self.tokens)
    }
}

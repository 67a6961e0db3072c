//! What one model request of a turn has to pass: it reserves before a model is asked, reserves more while
//! the answer streams, and says when the request may not go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::ceiling::Ceiling;
use super::gauge::Gauge;
use super::words::{exhausted, held, unpriced, warning};
use super::{Budgets, RENEW, Return};
use crate::domain::{BudgetStanding, Code, Grant, MicroUsd, Need};
use crate::llm::ModelEvent;
use crate::llm::catalogue::Model;
use crate::session::Refusal;
use crate::store::records::{Payer, Reserved};

/// How long a request waits for what other requests hold.
const PATIENCE: Duration = Duration::from_mins(1);
/// Between two tries.
const AGAIN: Duration = Duration::from_millis(200);

/// Why a request may not go on.
pub(in crate::agent) type Stopped = Refusal;

/// Who tells people that a budget is about to bite.
pub(in crate::agent) type Warn<'a> = &'a (dyn Fn(String) + Send + Sync);

/// What one model request of a turn has to pass. What it holds goes back when it is dropped.
pub(in crate::agent) struct Gate {
    budgets: Budgets,
    payer: Payer,
    /// What the attempt that is under way uses. Never held across an await.
    gauge: Mutex<Option<Gauge>>,
    /// What the request may use in all.
    paid: watch::Sender<MicroUsd>,
    /// Rung when it is time to ask for more.
    low: Notify,
    /// Whether anything was asked.
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

    /// Reserves what it takes to ask this model, beside what earlier attempts cost. Waits for what other
    /// requests hold. The hard budget that leaves the least, if there is one.
    pub(in crate::agent) async fn admit(
        &self,
        (model, input_tokens): (Model, u64),
        earlier: MicroUsd,
        warn: Warn<'_>,
    ) -> Result<Option<BudgetStanding>, Stopped> {
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
                // Not all at once, or they would meet again and again.
                Grant::Held(_) => {
                    let jitter = AGAIN.mul_f32(rand::random());
                    tokio::time::sleep(AGAIN / 2 + jitter).await;
                }
            }
        }
    }

    /// What costs nobody knows how much is asked only where nothing is refused.
    async fn admit_unpriced(
        &self,
        model: &str,
        earlier: MicroUsd,
        warn: Warn<'_>,
    ) -> Result<Option<BudgetStanding>, Stopped> {
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

    /// Where the budget ends the answer, if it covers less than the longest one: the provider is told, so
    /// that nothing is thought or said beyond. What other requests hold may come back, and shortens nothing.
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

    async fn reserve(&self, need: Need, warn: Warn<'_>) -> Result<Reserved, crate::store::Error> {
        let step = self.budgets.reserve(&self.payer, need).await?;
        for standing in &step.warnings {
            warn(warning(standing));
        }
        Ok(step)
    }

    /// An attempt failed, and the same is asked once more. `earlier` is what all of them cost so far.
    pub(in crate::agent) fn again(&self, earlier: MicroUsd) {
        if let Some(gauge) = self.gauge().as_mut() {
            gauge.again(earlier);
        }
    }

    /// Takes in a piece of the answer.
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

    /// Waits until what was used is paid for. Who watches meanwhile pays, or ends the request.
    pub(super) async fn be_paid(&self) {
        self.is_used.store(true, Ordering::Relaxed);
        let is_over = |paid: MicroUsd| {
            let gauge = self.gauge();
            gauge.as_ref().is_some_and(|gauge| gauge.is_over(paid))
        };
        if is_over(self.paid()) {
            self.low.notify_one();
            let mut paid = self.paid.subscribe();
            // Never an error: the sender is here.
            let _ = paid.wait_for(|paid| !is_over(*paid)).await;
        }
    }

    /// Waits for an answer, as long as its budgets last.
    pub(in crate::agent) async fn cover<T>(
        &self,
        answer: impl Future<Output = T>,
        warn: Warn<'_>,
    ) -> Result<T, Stopped> {
        tokio::select! {
            biased;
            answer = answer => Ok(answer),
            refusal = self.watch(warn) => Err(refusal),
        }
    }

    /// Reserves more whenever that is needed, and holds on to what is reserved, until the request may not
    /// go on.
    async fn watch(&self, warn: Warn<'_>) -> Stopped {
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
            pause = match self.reserve(need, warn).await {
                Ok(step) => match step.grant {
                    Grant::Given(amount) => {
                        self.paid.send_replace(amount);
                        RENEW
                    }
                    Grant::Exhausted(standing) if is_over => return exhausted(&standing, need),
                    Grant::Held(standing) if is_over => return held(&standing),
                    // There is something left of what it has.
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
        // Where nobody is left to take it, its lease ends.
        let _ = self.budgets.0.returns.send(back);
    }
}

/// Nothing is asked that cannot be counted.
fn away(error: &crate::store::Error) -> Stopped {
    tracing::warn!(?error, "A model request cannot reserve what it may cost");
    Refusal::new(
        Code::StoreUnavailable,
        "budgets cannot be read, because the database does not answer",
    )
}

//! Asks again where asking again can help (S0.47): transient faults only, no sooner than the
//! provider wants, and never once a tool call has come whole. A part of each pause is left to
//! chance, so that those who failed together do not come back together.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::stream::StreamExt;

use crate::{Answer, Collector, Error, ModelEvent, ModelStream, Provider, Request};
use sepal_core::domain::{Code, Fault};

/// A provider that wants a longer pause than this is not waited for: the person decides.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_mins(2);

/// How often, and how soon again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryConfig {
    /// Attempts after the first.
    pub max_retries: u32,
    pub initial_backoff: Duration,
    pub max_backoff: Duration,
    /// How much longer each pause is than the one before; below 1 counts as 1.
    pub backoff_multiplier: f32,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_retries: 3,
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(30),
            backoff_multiplier: 2.0,
        }
    }
}

impl RetryConfig {
    fn pauses(&self) -> ExponentialBackoff {
        ExponentialBuilder::new()
            .with_min_delay(self.initial_backoff.min(self.max_backoff))
            .with_max_delay(self.max_backoff)
            .with_factor(self.backoff_multiplier.max(1.0))
            .with_max_times(self.max_retries as usize)
            .build()
    }
}

/// One half of a pause holds, the other half is shortened by chance (from 0 to 1); what the provider
/// wants is waited for in any case.
fn jittered(pause: Duration, wanted: Duration, chance: f32) -> Duration {
    let half = pause / 2;
    half.max(wanted) + half.mul_f32(chance.clamp(0.0, 1.0))
}

/// A request that failed for good.
#[derive(Debug)]
pub struct Failed {
    /// Why its last attempt failed.
    pub error: Error,
    /// What that attempt had brought.
    pub so_far: SoFar,
}

/// What an attempt brought before it failed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SoFar {
    /// As far as it came.
    pub answer: Box<Answer>,
    /// Whether a call of it was whole: nobody may be asked for such an answer again.
    pub has_whole_call: bool,
}

impl SoFar {
    fn of(collector: Collector) -> Self {
        Self {
            has_whole_call: collector.has_whole_call(),
            answer: Box::new(collector.finish()),
        }
    }
}

/// What happens while a model is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// An attempt begins.
    Begins,
    /// The model said something.
    Event(ModelEvent),
    /// An attempt failed; what it said so far is void, and text begins at offset 0 again.
    Retry {
        /// The attempt that comes next; the first was 1.
        attempt: u32,
        /// The last attempt that there will be.
        max_attempts: u32,
        /// The pause before it.
        delay: Duration,
        /// Why the last one failed.
        code: Code,
        /// The same for people.
        reason: String,
        /// What it had brought.
        so_far: SoFar,
    },
}

/// Asks a model and asks again, and waits for the whole answer; `on` is told what happens on the
/// way. Dropping it ends the request or the pause.
pub async fn ask(
    provider: Arc<dyn Provider>,
    request: Request,
    retry: RetryConfig,
    on: impl FnMut(Progress) + Send,
) -> Result<Answer, Failed> {
    ask_with(provider, request, (retry, rand::random), on).await
}

/// The same with a chance of one's own.
async fn ask_with(
    provider: Arc<dyn Provider>,
    request: Request,
    (retry, chance): (RetryConfig, fn() -> f32),
    mut on: impl FnMut(Progress) + Send,
) -> Result<Answer, Failed> {
    let max_attempts = retry.max_retries.saturating_add(1);
    let mut pauses = retry.pauses();
    let mut attempt = 1_u32;
    loop {
        on(Progress::Begins);
        let mut collector = Collector::default();
        let Err(error) = answer(&*provider, request.clone(), &mut collector, &mut on).await else {
            return Ok(collector.finish());
        };
        let so_far = SoFar::of(collector);
        let wanted = error.retry_after().unwrap_or_default();
        let pause = may_be_repeated(&error, so_far.has_whole_call)
            .then(|| pauses.next())
            .flatten();
        let Some(pause) = pause else {
            return Err(Failed { error, so_far });
        };
        let delay = jittered(pause, wanted, chance());
        attempt = attempt.saturating_add(1);
        on(Progress::Retry {
            attempt,
            max_attempts,
            delay,
            code: error.code(),
            reason: error.to_string(),
            so_far,
        });
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }
}

/// One attempt, into `collector`.
async fn answer(
    provider: &dyn Provider,
    request: Request,
    collector: &mut Collector,
    on: &mut (impl FnMut(Progress) + Send),
) -> Result<(), Error> {
    let mut stream: ModelStream = provider.stream(request).await?;
    while let Some(event) = stream.next().await {
        let event = event?;
        let is_end = matches!(event, ModelEvent::Finished(_));
        collector.push(&event);
        on(Progress::Event(event));
        if is_end {
            return Ok(());
        }
    }
    Err(Error::Cut {
        provider: provider.id().to_owned(),
        source: None,
    })
}

fn may_be_repeated(error: &Error, has_whole_call: bool) -> bool {
    match error.fault() {
        Fault::Transient => {}
        Fault::Validation | Fault::External | Fault::Internal => return false,
    }
    // Whoever is out is not asked before its time.
    let is_out = matches!(error, Error::Out { .. });
    let wanted = error.retry_after().unwrap_or_default();
    !is_out && !has_whole_call && wanted <= LONGEST_PAUSE
}

#[cfg(test)]
mod tests;

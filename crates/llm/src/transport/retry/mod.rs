//! Retries requests that may succeed later (S0.47): only after transient faults, no sooner than the provider
//! asks, and never after a complete tool call. A part of each pause is random, so that requests that failed
//! together are not retried together.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::stream::StreamExt;

use crate::{Answer, Collector, Error, ModelEvent, ModelStream, Provider, Request};
use sepal_core::domain::{Code, Fault};

/// The longest pause that a request waits for. If the provider asks for more, the request fails and the
/// person decides.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_mins(2);

/// The retry policy: number of attempts and backoff.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryConfig {
    /// The most attempts after the first.
    pub max_retries: u32,
    pub initial_backoff: Duration,
    pub max_backoff: Duration,
    /// The factor between consecutive pauses; values below 1 count as 1.
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

/// Adds jitter: half of the pause is fixed, and the other half is multiplied by `chance` (0 to 1). The fixed
/// part is never shorter than the pause that the provider wants.
fn jittered(pause: Duration, wanted: Duration, chance: f32) -> Duration {
    let half = pause / 2;
    half.max(wanted) + half.mul_f32(chance.clamp(0.0, 1.0))
}

/// A request that failed after its last attempt.
#[derive(Debug)]
pub struct Failed {
    /// The error of the last attempt.
    pub error: Error,
    /// The partial answer of the last attempt.
    pub so_far: SoFar,
}

/// The partial answer of a failed attempt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SoFar {
    /// The part of the answer that arrived.
    pub answer: Box<Answer>,
    /// True if a call was complete; such an answer must not be requested again.
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

/// The progress of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// An attempt starts.
    Begins,
    /// An event of the model's answer.
    Event(ModelEvent),
    /// An attempt failed. Its text is void; the text of the next attempt starts at offset 0.
    Retry {
        /// The number of the next attempt, counted from 1.
        attempt: u32,
        /// The number of the last possible attempt.
        max_attempts: u32,
        /// The pause before the next attempt.
        delay: Duration,
        /// The error code of the failed attempt.
        code: Code,
        /// The error message for people.
        reason: String,
        /// The partial answer of the failed attempt.
        so_far: SoFar,
    },
}

/// Requests an answer with retries and waits until it is complete; `on` receives the progress. Dropping the
/// future ends the request or the pause.
pub async fn ask(
    provider: Arc<dyn Provider>,
    request: Request,
    retry: RetryConfig,
    on: impl FnMut(Progress) + Send,
) -> Result<Answer, Failed> {
    ask_with(provider, request, (retry, rand::random), on).await
}

/// Like [`ask`], with a given source of randomness.
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

/// Runs one attempt and collects its events.
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
    // A provider whose breaker is open is not retried before its pause is over.
    let is_out = matches!(error, Error::Out { .. });
    let wanted = error.retry_after().unwrap_or_default();
    !is_out && !has_whole_call && wanted <= LONGEST_PAUSE
}

#[cfg(test)]
mod tests;

//! A circuit breaker: pauses a provider that keeps failing, so that an outage costs a few requests instead of
//! one per person. Each provider and key has its own breaker.
//!
//! Only transient faults and timeouts count. A refused request shows that the provider works. A rate limit
//! counts only if the provider asks for a longer pause than a request would wait.

mod guarded;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::transport::retry::LONGEST_PAUSE;
use super::{Error, ProviderKind};
use sepal_telemetry::{Present, instruments};

pub use self::guarded::Guarded;

/// The most doublings of the pause while the provider stays out.
const MOST_DOUBLINGS: u32 = 4;
/// The longest pause that a provider can ask for.
const LONGEST_WANTED: Duration = Duration::from_hours(1);
/// The most characters of the provider's error message that are shown to others.
const MAX_SAID: usize = 200;

/// The conditions under which a provider counts as out, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Consecutive faults that open the breaker; 0 = only a pause that the provider asks for opens it.
    pub faults: u32,
    /// The first pause; it doubles with each trial request that fails.
    pub pause: Duration,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            faults: 5,
            pause: Duration::from_secs(30),
        }
    }
}

/// The outage of a provider, with a message that suits every requester.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outage {
    /// The start of the outage.
    pub since: Timestamp,
    /// The provider's last error message.
    pub said: String,
    /// The time of the next trial request.
    pub next_try: Timestamp,
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |time: Timestamp| time.strftime("%Y-%m-%dT%H:%M:%SZ");
        let (since, next) = (of(self.since), of(self.next_try));
        write!(
            f,
            "has been out since {since} and is asked again at {next}; its last words: {}",
            self.said
        )
    }
}

/// The result of one request, as evidence of the provider's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign<'a> {
    /// The provider answered.
    Answers,
    /// The provider works, but did not fulfil the request.
    Lives,
    /// The request failed, with this message.
    Fails(&'a str),
    /// The request timed out.
    Silent(&'a str),
    /// The provider asked for a pause of this length.
    WantsPause(&'a str, Duration),
    /// No evidence: the request was not sent, or its requester went away.
    Nothing,
}

impl<'a> Sign<'a> {
    fn of(error: &'a Error) -> Self {
        let said = error.said();
        match error {
            Error::TimedOut { .. } => Self::Silent(said),
            Error::RateLimited {
                retry_after: Some(wanted),
                ..
            } if *wanted > LONGEST_PAUSE => Self::WantsPause(said, (*wanted).min(LONGEST_WANTED)),
            Error::RateLimited { .. }
            | Error::Overflow { .. }
            | Error::Rejected { .. }
            | Error::BadAnswer { .. } => Self::Lives,
            Error::Unavailable { .. } | Error::Cut { .. } => Self::Fails(said),
            Error::Key { .. } | Error::Misconfigured { .. } | Error::Out { .. } => Self::Nothing,
        }
    }
}

/// A change of the breaker's state; logged once.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Out(Outage),
    Back(Timestamp),
}

/// The breaker of one provider and key.
#[derive(Debug)]
struct Breaker {
    config: BreakerConfig,
    kind: ProviderKind,
    /// Never locked across an await.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Faults since the last answer.
    faults: u32,
    /// The number of answers so far. A timeout counts less if the provider answered other requests meanwhile.
    answers: u64,
    out: Option<Out>,
}

#[derive(Debug)]
struct Out {
    outage: Outage,
    due: Instant,
    /// The number of failed trial requests.
    tries: u32,
    /// True while a trial request is running.
    is_tried: bool,
    /// Counts the outage in the metrics while it lasts.
    _figure: Present,
}

/// The permission for one request. It is returned with the result.
#[derive(Debug, Clone, Copy)]
struct Leave {
    /// The number of answers when the request started.
    answers: u64,
    is_try: bool,
}

impl Breaker {
    fn new(config: BreakerConfig, kind: ProviderKind) -> Self {
        Self {
            config,
            kind,
            state: Mutex::default(),
        }
    }

    /// Permits a request, or returns the outage. After the pause of an outage, one trial request at a time is
    /// permitted.
    fn admit(&self) -> Result<Leave, Outage> {
        let mut state = self.state();
        let answers = state.answers;
        let Some(out) = &mut state.out else {
            return Ok(Leave {
                answers,
                is_try: false,
            });
        };
        if out.is_tried || Instant::now() < out.due {
            return Err(out.outage.clone());
        }
        out.is_tried = true;
        Ok(Leave {
            answers,
            is_try: true,
        })
    }

    /// The current outage, if any.
    fn outage(&self) -> Option<Outage> {
        self.state().out.as_ref().map(|out| out.outage.clone())
    }

    /// Permits the next trial request at once.
    fn hasten(&self) {
        if let Some(out) = &mut self.state().out {
            out.due = Instant::now();
        }
    }

    /// Records the result of a request.
    fn saw(&self, leave: Leave, sign: Sign<'_>) -> Option<Change> {
        let mut state = self.state();
        match sign {
            Sign::Answers => {
                state.answers += 1;
                state.lives()
            }
            // A request that started before the outage is no evidence that it is over.
            Sign::Lives if leave.is_try || state.out.is_none() => state.lives(),
            Sign::Lives => None,
            Sign::Nothing => {
                if let Some(out) = state.out.as_mut().filter(|_| leave.is_try) {
                    out.is_tried = false;
                }
                None
            }
            Sign::Fails(_) | Sign::Silent(_) if self.config.faults == 0 => None,
            Sign::Fails(said) => {
                state.faults = state.faults.saturating_add(1);
                let is_out = state.faults >= self.config.faults;
                self.fails(&mut state, leave, said, is_out, None)
            }
            Sign::Silent(said) => {
                state.faults = state.faults.saturating_add(1);
                let is_out = state.faults >= self.config.faults || state.answers == leave.answers;
                self.fails(&mut state, leave, said, is_out, None)
            }
            Sign::WantsPause(said, wanted) => {
                self.fails(&mut state, leave, said, true, Some(wanted))
            }
        }
    }

    fn fails(
        &self,
        state: &mut State,
        leave: Leave,
        said: &str,
        is_out: bool,
        wanted: Option<Duration>,
    ) -> Option<Change> {
        let pause = |tries: u32| {
            let doubled = self.config.pause * 2_u32.pow(tries.min(MOST_DOUBLINGS));
            wanted.unwrap_or(doubled)
        };
        let said: String = said.chars().take(MAX_SAID).collect();
        if let Some(out) = &mut state.out {
            out.outage.said = said;
            if leave.is_try {
                out.tries = out.tries.saturating_add(1);
                out.is_tried = false;
                out.wait(pause(out.tries));
            }
            return None;
        }
        if !is_out {
            return None;
        }
        let now = Timestamp::now();
        let mut out = Out {
            outage: Outage {
                since: now,
                said,
                next_try: now,
            },
            due: Instant::now(),
            tries: 0,
            is_tried: false,
            _figure: instruments().provider_out(self.kind.as_str()),
        };
        out.wait(pause(0));
        let change = Change::Out(out.outage.clone());
        state.out = Some(out);
        Some(change)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn lives(&mut self) -> Option<Change> {
        self.faults = 0;
        let out = self.out.take()?;
        Some(Change::Back(out.outage.since))
    }
}

impl Out {
    fn wait(&mut self, pause: Duration) {
        self.due = Instant::now() + pause;
        let next = Timestamp::now().checked_add(pause);
        self.outage.next_try = next.unwrap_or(Timestamp::MAX);
    }
}

#[cfg(test)]
mod tests;

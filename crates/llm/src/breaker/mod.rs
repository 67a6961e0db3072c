//! A provider that fails again and again is not asked for a while (a circuit breaker), so that its
//! outage costs a few requests and not one for each person. There is one for each provider and key.
//!
//! Only what the provider cannot do counts: faults that pass, and silence. A refusal shows that it
//! lives. A limit counts where the provider wants a longer pause than anybody waits for.

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

/// How often a pause is doubled while the provider stays out.
const MOST_DOUBLINGS: u32 = 4;
/// The longest pause that a provider's own word makes.
const LONGEST_WANTED: Duration = Duration::from_hours(1);
/// Characters of the provider's words that others are told.
const MAX_SAID: usize = 200;

/// When a provider counts as out, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Faults in a row; 0 = it never counts as out.
    pub faults: u32,
    /// How long it is not asked; twice as long each time that it fails again.
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

/// That a provider is out, in words that hold for whoever wants to ask it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outage {
    /// Since when.
    pub since: Timestamp,
    /// What it said last.
    pub said: String,
    /// When it is asked again.
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

/// What one request told of its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign<'a> {
    /// It answers.
    Answers,
    /// It lives, though it did not do what was asked.
    Lives,
    /// It failed, with these words.
    Fails(&'a str),
    /// It was silent for as long as one waits.
    Silent(&'a str),
    /// It wants to be left alone for so long.
    WantsPause(&'a str, Duration),
    /// Nothing: it was not asked, or whoever asked went away.
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

/// What became other with a sign; said once in the log.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Out(Outage),
    Back(Timestamp),
}

/// The memory of one provider and key.
#[derive(Debug)]
struct Breaker {
    config: BreakerConfig,
    kind: ProviderKind,
    /// Never held across an await.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Faults since it last answered.
    faults: u32,
    /// Answers so far: silence says less of a provider that answered others meanwhile.
    answers: u64,
    out: Option<Out>,
}

#[derive(Debug)]
struct Out {
    outage: Outage,
    due: Instant,
    /// Tries that failed.
    tries: u32,
    /// Whether a try is under way.
    is_tried: bool,
    /// Counted as long as it lasts.
    _figure: Present,
}

/// The leave to ask once. It brings back what was seen, or nothing.
#[derive(Debug, Clone, Copy)]
struct Leave {
    /// Answers when the request began.
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

    /// Lets a request through, or says why not. While the provider is out, one request at a time tries
    /// whether it is back, none before its time.
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

    /// What the provider's outage is, while it is out.
    fn outage(&self) -> Option<Outage> {
        self.state().out.as_ref().map(|out| out.outage.clone())
    }

    /// Lets the next request try, whatever the pause was to be.
    fn hasten(&self) {
        if let Some(out) = &mut self.state().out {
            out.due = Instant::now();
        }
    }

    /// Takes what a request saw.
    fn saw(&self, leave: Leave, sign: Sign<'_>) -> Option<Change> {
        let mut state = self.state();
        match sign {
            Sign::Answers => {
                state.answers += 1;
                state.lives()
            }
            // What began before the outage says nothing of its end.
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
                self.fails(&mut state, leave, said, (is_out, None))
            }
            Sign::Silent(said) => {
                state.faults = state.faults.saturating_add(1);
                let is_out = state.faults >= self.config.faults || state.answers == leave.answers;
                self.fails(&mut state, leave, said, (is_out, None))
            }
            Sign::WantsPause(said, wanted) => {
                self.fails(&mut state, leave, said, (true, Some(wanted)))
            }
        }
    }

    fn fails(
        &self,
        state: &mut State,
        leave: Leave,
        said: &str,
        (is_out, wanted): (bool, Option<Duration>),
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

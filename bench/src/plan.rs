//! Describes an answer: the client writes the plan into its message, and the upstream executes it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// One answer of the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    /// The number of tokens.
    pub(crate) tokens: usize,
    /// Microseconds between two tokens; 0 means as fast as they can be written.
    pub(crate) gap_us: u64,
    /// The offset in microseconds of each token from a multiple of the gap, by the clock of [`now_ns`]:
    /// conversations with different offsets never send at the same time, whenever they began.
    #[serde(default)]
    pub(crate) phase_us: u64,
    /// The number of tool calls before the answer.
    #[serde(default)]
    pub(crate) calls: usize,
}

impl Plan {
    /// Tokens that arrive together.
    pub(crate) const fn burst(tokens: usize) -> Self {
        Self {
            tokens,
            gap_us: 0,
            phase_us: 0,
            calls: 0,
        }
    }

    /// Tokens that arrive one by one: those of conversation `index` of `count` in its own part of the gap.
    pub(crate) fn paced(tokens: usize, gap: Duration, index: usize, count: usize) -> Self {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let part = index as f64 / count as f64;
        Self {
            tokens,
            gap_us: micros(gap),
            phase_us: micros(gap.mul_f64(part)),
            calls: 0,
        }
    }

    /// Returns the time until the first token.
    pub(crate) fn until_first(self) -> Duration {
        let gap = self.gap_us.max(1);
        let into = (now_ns() / 1_000) % gap;
        Duration::from_micros((gap + self.phase_us - into) % gap)
    }

    /// Calls that need decisions, then a short answer.
    pub(crate) const fn calls(calls: usize) -> Self {
        Self {
            tokens: 3,
            gap_us: 0,
            phase_us: 0,
            calls,
        }
    }

    /// Returns the plan as the text of a message.
    pub(crate) fn text(self) -> anyhow::Result<String> {
        Ok(serde_json::to_string(&self)?)
    }
}

/// Returns the nanoseconds of the monotonic clock that all processes of a machine share.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let rest = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds * 1_000_000_000 + rest
}

/// Returns a token: the time of its sending, between two characters that JSON never escapes.
pub(crate) fn token() -> String {
    format!("@{}@ ", now_ns())
}

/// Returns the sending times of the tokens in a text.
pub(crate) fn sent_at(text: &str) -> impl Iterator<Item = u64> + '_ {
    text.split('@').filter_map(|part| {
        let is_time = part.len() > 6 && part.bytes().all(|byte| byte.is_ascii_digit());
        is_time.then(|| part.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::{now_ns, sent_at, token};

    #[test]
    fn tokens_say_when_they_were_sent() {
        let before = now_ns();
        let text = format!(r#"42["agent:delta","{}{}"]"#, token(), token());
        let times: Vec<u64> = sent_at(&text).collect();
        assert_eq!(times.len(), 2);
        assert!(times.iter().all(|time| *time >= before));
    }
}

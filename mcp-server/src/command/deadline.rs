//! Time that a command may take, without the time in which the whole sandbox was paused from outside:
//! its clock went on, and nothing in it could.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How often we look at the clock. A busy machine keeps us from it for a part of a second.
const TICK: Duration = Duration::from_millis(250);
/// Who looks that much too late was paused.
const PAUSED: Duration = Duration::from_secs(2);

/// The end of a time that is counted while we run.
#[derive(Debug)]
pub(super) struct Deadline {
    end: Instant,
    /// When we meant to look at the clock.
    next: Instant,
}

impl Deadline {
    pub(super) fn after(time: Duration) -> Self {
        let now = Instant::now();
        Self {
            end: now + time,
            next: now + TICK.min(time),
        }
    }

    /// Resolves at the end. May be given up and asked again.
    pub(super) async fn passed(&mut self) {
        loop {
            sleep_until(self.next).await;
            let now = Instant::now();
            let late = now - self.next;
            if late >= PAUSED {
                self.end += late;
            }
            if now >= self.end {
                return;
            }
            self.next = (now + TICK).min(self.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn it_ends_in_time_however_often_it_is_asked() {
        let began = Instant::now();
        let mut deadline = Deadline::after(SECOND * 3);
        for _ in 0..20 {
            assert!(timeout(SECOND / 10, deadline.passed()).await.is_err());
        }
        deadline.passed().await;
        assert_eq!(began.elapsed().as_secs(), 3);
        let mut short = Deadline::after(SECOND / 5);
        short.passed().await;
        assert_eq!(began.elapsed(), SECOND * 3 + SECOND / 5);
    }

    /// A pause is a jump of the clock between two looks.
    #[tokio::test(start_paused = true)]
    async fn a_pause_is_not_counted() {
        let began = Instant::now();
        let mut deadline = Deadline::after(SECOND * 3);
        assert!(timeout(SECOND, deadline.passed()).await.is_err());
        advance(SECOND * 100).await;
        assert!(timeout(SECOND, deadline.passed()).await.is_err());
        deadline.passed().await;
        let took = began.elapsed().as_secs();
        assert!((102..=103).contains(&took), "{took}");
    }
}

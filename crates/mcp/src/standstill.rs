//! Stops the clock of a call while its server is paused from outside.

use std::future::pending;
use std::time::Duration;

use futures::future::select_all;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// Reports when a server is paused through no fault of its own.
#[derive(Debug, Clone)]
pub struct Standstill {
    /// True while the server is paused.
    pub is_still: watch::Receiver<bool>,
    /// The progress text of a call during the pause.
    pub words: &'static str,
}

/// Resolves after `limit`, not counting the time in which any of `pauses` is true.
pub(super) async fn passed(limit: Duration, mut pauses: Vec<watch::Receiver<bool>>) {
    let mut left = limit;
    loop {
        let mut kept = Vec::with_capacity(pauses.len());
        for mut pause in pauses {
            // A pause whose sender is gone no longer counts.
            if pause.wait_for(|is_still| !is_still).await.is_ok() {
                kept.push(pause);
            }
        }
        pauses = kept;
        let since = Instant::now();
        tokio::select! {
            () = sleep(left) => return,
            () = any_begins(&mut pauses) => {}
        }
        left = left.saturating_sub(since.elapsed());
    }
}

/// Resolves when one of the pauses begins.
async fn any_begins(pauses: &mut [watch::Receiver<bool>]) {
    let begins = pauses.iter_mut().map(|pause| {
        Box::pin(async {
            if pause.wait_for(|is_still| *is_still).await.is_err() {
                pending::<()>().await;
            }
        })
    });
    let begins: Vec<_> = begins.collect();
    if begins.is_empty() {
        pending::<()>().await;
    }
    select_all(begins).await;
}

/// Resolves each time that the server is paused, with the progress text.
pub(super) async fn begins(standstill: &mut Option<Standstill>) -> &'static str {
    if let Some(Standstill { is_still, words }) = standstill {
        loop {
            if is_still.changed().await.is_err() {
                break;
            }
            if *is_still.borrow_and_update() {
                return words;
            }
        }
    }
    pending().await
}

#[cfg(test)]
mod tests {
    use tokio_util::task::TaskTracker;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_standstill_costs_no_time() {
        let (told, is_still) = watch::channel(false);
        let mut standstill = Some(Standstill {
            is_still,
            words: "paused",
        });
        let began = Instant::now();
        let passing = TaskTracker::new().spawn(passed(
            SECOND * 10,
            vec![standstill.clone().unwrap().is_still],
        ));
        sleep(SECOND * 4).await;
        told.send_replace(true);
        assert_eq!(begins(&mut standstill).await, "paused");
        sleep(SECOND * 100).await;
        assert!(!passing.is_finished());
        told.send_replace(false);
        passing.await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 110);
    }

    #[tokio::test(start_paused = true)]
    async fn without_one_time_passes_as_ever() {
        let began = Instant::now();
        passed(SECOND * 10, Vec::new()).await;
        let (told, is_still) = watch::channel(true);
        drop(told);
        passed(SECOND * 10, vec![is_still]).await;
        assert_eq!(began.elapsed().as_secs(), 20);
    }
}

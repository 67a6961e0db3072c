//! New output lines as MCP progress notifications, never faster than a person can follow.

use std::{fmt::Write, future::pending, time::Duration};

use rmcp::{
    Peer, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
};
use tokio::time::{Instant, sleep_until, timeout};

/// The time between two notifications.
const PACE: Duration = Duration::from_millis(100);
/// The most text of one notification; what comes above that between two of them is skipped.
const MAX_MESSAGE_BYTES: usize = 4 * 1024;
/// A client that does not read for this long gets no more progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// Gathers output and tells it when it is time. Does nothing without a token.
pub(crate) struct Progress {
    to: Option<(ProgressToken, Peer<RoleServer>)>,
    waiting: Vec<u8>,
    skipped: usize,
    /// All bytes of output so far: a number that only grows, as the protocol asks.
    seen: usize,
    next: Instant,
}

impl Progress {
    pub(crate) fn new(token: Option<ProgressToken>, peer: Peer<RoleServer>) -> Self {
        Self {
            to: token.map(|token| (token, peer)),
            waiting: Vec::new(),
            skipped: 0,
            seen: 0,
            next: Instant::now(),
        }
    }

    /// Takes new output; sends at once when the last time is long enough ago.
    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        if self.to.is_none() {
            return;
        }
        self.seen += bytes.len();
        let room = MAX_MESSAGE_BYTES.saturating_sub(self.waiting.len());
        let (kept, skipped) = bytes.split_at(room.min(bytes.len()));
        self.waiting.extend(kept);
        self.skipped += skipped.len();
        if self.has_whole_line() && Instant::now() >= self.next {
            self.send().await;
        }
    }

    /// Resolves when something waits and it is time to send it.
    pub(crate) async fn due(&self) {
        if self.has_whole_line() {
            sleep_until(self.next).await;
        } else {
            pending::<()>().await;
        }
    }

    /// Sends what waits: whole lines, or everything when it is too long for that.
    pub(crate) async fn send(&mut self) {
        let Some((token, peer)) = self.to.as_ref().filter(|_| !self.waiting.is_empty()) else {
            return;
        };
        let length = match self.waiting.iter().rposition(|byte| *byte == b'\n') {
            Some(position) if self.skipped == 0 => position + 1,
            _ => self.waiting.len(),
        };
        let rest = self.waiting.split_off(length);
        let mut message = String::from_utf8_lossy(&self.waiting).trim_end().to_owned();
        if self.skipped > 0 {
            let _ = write!(message, "\n[… {} bytes skipped …]", self.skipped);
        }
        #[expect(clippy::cast_precision_loss, reason = "the protocol counts in floats")]
        let seen = self.seen as f64;
        let note = ProgressNotificationParam::new(token.clone(), seen).with_message(message);
        if !matches!(
            timeout(PATIENCE, peer.notify_progress(note)).await,
            Ok(Ok(()))
        ) {
            self.to = None;
        }
        self.waiting = rest;
        self.skipped = 0;
        self.next = Instant::now() + PACE;
    }

    fn has_whole_line(&self) -> bool {
        self.to.is_some() && (self.skipped > 0 || self.waiting.contains(&b'\n'))
    }
}

//! How long a session stays in memory, and whether it may come into being.

use std::time::Duration;

use tokio::time::Instant;

use super::LiveSession;
use crate::domain::{Actor, Holder};
use crate::session::{Command, Refusal};
use crate::store::clock::now;

/// How long a session stays in memory that nobody has told anything: long enough for a first message
/// that comes at once.
const UNTOLD_FOR: Duration = Duration::from_millis(50);

impl LiveSession {
    /// Whose session it is, or would be once it is stored.
    pub(crate) fn owner(&self) -> &Actor {
        let owner = self.state.control.owner.as_ref();
        owner.unwrap_or(&self.genesis.owner)
    }

    /// The first command stores a session for good: there may be only so many in a minute.
    pub(crate) fn may_be_created(&self) -> Result<(), Refusal> {
        if self.state.control.version > 0 {
            return Ok(());
        }
        self.creation_limit.count(&Holder {
            tenant: self.key.tenant.clone(),
            user: self.owner().id.clone(),
        })
    }

    /// When the running turn has gone on for as long as it may without a person (S0.58); `None` where
    /// another gateway runs it.
    pub(crate) fn overdue_at(&self) -> Option<Instant> {
        let limit = self.agent.turn_limit?;
        let control = &self.state.control;
        let turn = control
            .turn
            .as_ref()
            .filter(|_| control.is_run_by(&self.life));
        let alone = Duration::from_millis(now().since_ms(turn?.alone_since()?));
        Instant::now().checked_add(limit.saturating_sub(alone))
    }

    /// What was to be done at a time of its own: to look what became of a commit, or to end a turn.
    pub(crate) async fn wake(&mut self) {
        if self.unsettled.is_some() {
            return self.settle().await;
        }
        let turn = self.state.control.turn.as_ref().map(|turn| turn.id);
        let is_due = self.overdue_at().is_some_and(|at| at <= Instant::now());
        let (Some(turn), Some(limit), true) = (turn, self.agent.turn_limit, is_due) else {
            return;
        };
        tracing::warn!(session.id = %self.key.session, turn, limit_s = limit.as_secs_f64(), "A turn took too long and is stopped");
        if self.running.has_model() {
            // Nothing of the answer may be shown after the event that ends the turn.
            self.running.stop_model();
            self.feed.end_answer();
        }
        self.outcome(Command::TimeOut { turn, limit }, None).await;
        self.look().await;
    }

    /// Whether nothing goes on, and nothing that takes time to begin anew is kept for it.
    pub(crate) fn can_rest(&self) -> bool {
        let has_servers = self.agent.tools.idle_limit().is_some();
        self.running.is_empty() && self.unsettled.is_none() && !has_servers
    }

    /// A live sandbox is kept longer than a mere state, and a session that nobody has told anything
    /// hardly at all: whoever has joined it waits for its feed alone.
    pub(crate) fn idle_after(&self) -> Duration {
        let state = match self.state.control.version {
            0 => self.idle_after.min(UNTOLD_FOR),
            _ => self.idle_after,
        };
        self.agent.tools.idle_limit().unwrap_or(state)
    }
}

//! Tracks the state of a task that a gateway follows, and waits for the person at the client.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::inputs;
use crate::domain::Timestamp;
use crate::gateway::mcp::approval::{DoorReply, PATIENCE, form_of_call, form_of_question};
use crate::gateway::mcp::notices::Notices;
use crate::gateway::mcp::question::{Door, Ending, News};
use crate::session::{Call, Elicitation, ElicitationAnswer, Refusal};

/// The known state of a task.
#[derive(Debug, Clone, Default)]
pub(super) struct WatchedState {
    pub(super) created_at: Option<Timestamp>,
    pub(super) updated_at: Option<Timestamp>,
    /// The latest news as text.
    pub(super) said: Option<String>,
    /// The end of the task, if it has ended.
    pub(super) ending: Option<Result<Ending, Refusal>>,
    /// True if the events before this gateway followed the task were read.
    is_caught_up: bool,
}

/// A task that this gateway follows.
#[derive(Debug, Default)]
pub(super) struct WatchedTask {
    seen: watch::Sender<WatchedState>,
    /// The keys of requests that the person at the client cancelled.
    put_away: watch::Sender<HashSet<String>>,
    /// The notices to the client that waits, if one does. The lock is never held across an await.
    notices: Mutex<Option<Arc<Notices>>>,
    /// Stops the turn.
    stop: CancellationToken,
}

impl WatchedTask {
    /// Waits until the task's state is known, and returns it; if the gateway stops, returns the state so
    /// far.
    pub(super) async fn seen(&self, stop: &CancellationToken) -> WatchedState {
        let mut seen = self.seen.subscribe();
        tokio::select! {
            // The sender is a field of `self`, so the wait cannot fail.
            _ = seen.wait_for(|seen| {
                seen.ending.is_some() || (seen.is_caught_up && seen.created_at.is_some())
            }) => {}
            () = stop.cancelled() => {}
        }
        seen.borrow().clone()
    }

    /// Subscribes to the changes of the state.
    pub(super) fn changes(&self) -> watch::Receiver<WatchedState> {
        self.seen.subscribe()
    }

    /// Sets the client that gets notices from now on; `None` if no client waits.
    pub(super) fn notify(&self, notices: Option<Arc<Notices>>) {
        *self.notices.lock().unwrap_or_else(PoisonError::into_inner) = notices;
    }

    /// The token that stops the turn when it is cancelled.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Marks a request as cancelled by the person at the client, so that the next way of approval is used.
    pub(super) fn put_away(&self, name: String) {
        self.put_away.send_modify(|names| {
            names.insert(name);
        });
    }

    pub(super) fn is_put_away(&self, name: &str) -> bool {
        self.put_away.borrow().contains(name)
    }

    /// Waits until the person at the client cancels the request, for at most [`PATIENCE`].
    async fn wait_for_client(&self, name: &str) {
        let mut put_away = self.put_away.subscribe();
        let waiting = put_away.wait_for(|names| names.contains(name));
        // A response ends the wait from outside, because the call is decided then.
        let _ = tokio::time::timeout(PATIENCE, waiting).await;
    }
}

/// The door of a task: nobody is connected, but the person at the client may respond when the client polls.
pub(super) struct TaskDoor {
    watched: Arc<WatchedTask>,
    /// True if the client can show a form.
    has_forms: bool,
}

impl TaskDoor {
    pub(super) fn new(watched: &Arc<WatchedTask>, has_forms: bool) -> Self {
        Self {
            watched: Arc::clone(watched),
            has_forms,
        }
    }

    /// The token that stops the turn.
    pub(super) fn stop(&self) -> CancellationToken {
        self.watched.stop.clone()
    }

    /// Records the end of the task.
    pub(super) fn end(&self, ending: Result<Ending, Refusal>) {
        self.watched
            .seen
            .send_modify(|seen| seen.ending = Some(ending));
    }
}

#[async_trait]
impl Door for TaskDoor {
    async fn decide(&self, call: &Call) -> DoorReply {
        if !self.has_forms {
            return DoorReply::Nobody;
        }
        match form_of_call(call) {
            Ok(Some(_)) => {
                self.watched
                    .wait_for_client(&inputs::name_of_call(call))
                    .await;
                DoorReply::Nobody
            }
            Ok(None) => DoorReply::Nobody,
            Err(too_long) => too_long,
        }
    }

    async fn fill_in(&self, asked: &Elicitation) -> Option<ElicitationAnswer> {
        if self.has_forms && form_of_question(asked).is_some() {
            self.watched
                .wait_for_client(&inputs::name_of_question(asked))
                .await;
        }
        None
    }

    fn seen(&self, at: Timestamp) {
        self.watched.seen.send_modify(|seen| {
            seen.created_at.get_or_insert(at);
            seen.updated_at = Some(at);
        });
    }

    fn caught_up(&self) {
        self.watched
            .seen
            .send_modify(|seen| seen.is_caught_up = true);
    }

    async fn report(&self, news: News<'_>) {
        let words = news.words();
        self.watched
            .seen
            .send_modify(|seen| seen.said = Some(words));
        let notices = self.watched.notices.lock();
        let notices = notices.unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(notices) = notices {
            notices.report(news).await;
        }
    }
}

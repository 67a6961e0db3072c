//! Runs a call at its server: as requests that are answered, or as a task that is followed to its end.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::model::ProgressToken;
use tokio::sync::mpsc;

use super::call::done;
use super::rounds::{Advance, Rounds};
use super::task::{self, Told};
use super::{Connection, ToolCall};
use crate::elicitation::HeardCall;
use crate::error::Error;
use crate::tools::result::ToolAnswer;

/// A running call.
pub(super) struct Work<'a> {
    connection: &'a Connection,
    call: &'a ToolCall,
    tell: mpsc::Sender<Told>,
    at: At<'a>,
    /// The progress token. Progress of a task uses the token of the request that created the task.
    token: Option<ProgressToken>,
}

enum At<'a> {
    Asked(Box<Rounds<'a>>),
    Task {
        id: String,
        following: BoxFuture<'a, Result<ToolAnswer, Error>>,
    },
}

impl<'a> Work<'a> {
    /// Calls the tool, or picks up the task that an earlier call created. Messages about a task go to `tell`.
    pub(super) async fn begin(
        connection: &'a Connection,
        call: &'a ToolCall,
        tell: mpsc::Sender<Told>,
    ) -> Result<Self, Error> {
        let picked_up = call.task.as_ref().and_then(|terms| terms.picked_up.clone());
        let (at, token) = if let Some(id) = picked_up {
            let following = task::pick_up(connection, id.clone(), tell.clone()).boxed();
            (At::Task { id, following }, None)
        } else {
            let rounds = Rounds::begin(connection, call).await?;
            let token = rounds.progress_token();
            (At::Asked(Box::new(rounds)), Some(token))
        };
        Ok(Self {
            connection,
            call,
            tell,
            at,
            token,
        })
    }

    /// Returns the current progress token; `None` for a task that was picked up.
    pub(super) fn progress_token(&self) -> Option<ProgressToken> {
        self.token.clone()
    }

    /// Returns the time limit.
    pub(super) fn limit(&self) -> Duration {
        match (&self.at, &self.call.task) {
            (At::Task { .. }, Some(terms)) => terms.limit,
            (At::Task { .. } | At::Asked(_), _) => self.call.limit,
        }
    }

    /// Returns true if cancelling the call leaves its task running at the server, for another gateway to
    /// follow.
    fn is_let_go(&self) -> bool {
        let terms = self.call.task.as_ref();
        matches!(self.at, At::Task { .. }) && terms.is_some_and(|terms| terms.let_go.is_cancelled())
    }

    /// Returns the answer, or `None` if the call goes on. Cancel safe: dropping the future loses nothing.
    pub(super) async fn advance(&mut self) -> Result<Option<ToolAnswer>, Error> {
        let rounds = match &mut self.at {
            At::Task { following, .. } => return following.await.map(Some),
            At::Asked(rounds) => rounds,
        };
        match rounds.advance().await? {
            Advance::Done(answer) => return Ok(Some(answer)),
            Advance::GoesOn => self.token = Some(rounds.progress_token()),
            Advance::Task(created) => {
                let id = created.id.clone();
                let terms = self.call.task.as_ref();
                let told = (terms, self.tell.clone());
                let following = task::begin(self.connection, created, told).boxed();
                self.at = At::Task { id, following };
            }
        }
        Ok(None)
    }

    /// Tells the server to stop, and waits for its last message; `None` if none came, so the call may still
    /// run.
    async fn stop(&mut self, reason: &str) -> Option<Result<ToolAnswer, Error>> {
        match &mut self.at {
            At::Asked(rounds) => rounds.stop(reason).await,
            At::Task { id, .. } => task::cancel(self.connection, id).await,
        }
    }

    /// Assigns questions that belong to the call's task to this call.
    pub(super) fn is_heard(&self, heard: &HeardCall<'_>) {
        if let At::Task { id, .. } = &self.at {
            heard.is_task(id);
        }
    }

    /// Ends a call that was cancelled.
    pub(super) async fn cancelled(&mut self) -> Result<ToolAnswer, Error> {
        if self.is_let_go() {
            return Err(Error::Cancelled {
                is_confirmed: false,
            });
        }
        let last = self.stop("stopped by the person").await;
        let is_confirmed = last.is_some();
        done(last).ok_or(Error::Cancelled { is_confirmed })
    }

    /// Ends a call that exceeded its time limit.
    pub(super) async fn timed_out(&mut self, after: Duration) -> Result<ToolAnswer, Error> {
        let last = self.stop("time limit").await;
        let is_confirmed = last.is_some();
        done(last).ok_or(Error::Timeout {
            after,
            is_confirmed,
        })
    }
}

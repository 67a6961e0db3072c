//! Defines the mailbox messages of a session's task, and refusals that do not need a session.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::oneshot;

use super::checkpoints::Checkpoints;
use super::cluster::message::SessionUpdate;
use super::feed::{Feed, QueueView, SessionSubscription};
use super::request::Submission;
use crate::domain::{Code, MicroUsd, ReachedLimit, Resource, Role, SandboxId, UserId};
use crate::servers::LiveConnection;
use crate::session::{Command, Refusal, SessionRules};
use crate::telemetry::instruments;

/// The acknowledgement of a command whose changes are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgement {
    /// `seq` of the first event that the command caused; for a repeat, that of the original; otherwise that
    /// of the head.
    pub seq: u64,
}

/// A request to a server other than a tool call: its method and parameters, in the form that rules read.
pub(super) struct ServerQuestion<'a> {
    pub(super) server: &'a str,
    pub(super) method: &'a str,
    pub(super) args: Value,
    /// The rules given in the session, and the session's cost so far.
    pub(super) rules: (&'a SessionRules, MicroUsd),
}

/// Gives access to a session's servers for requests that are not tool calls.
#[async_trait]
pub(super) trait ServerDoor: Send + Sync {
    /// Returns the session's connection, opened if necessary, and the time limit for an answer. Refuses if a
    /// rule denies the request.
    async fn reach(
        &self,
        question: &ServerQuestion<'_>,
    ) -> Result<(LiveConnection, Duration), Refusal>;
}

/// The parts of a request to a session's servers: the servers, and the rules and cost that may forbid it.
pub(super) struct ToolsNow {
    pub(super) tools: Arc<dyn ServerDoor>,
    /// The rules given in the session.
    pub(super) rules: Arc<SessionRules>,
    /// The session's cost so far.
    pub(super) cost: MicroUsd,
    pub(super) feed: Arc<Feed>,
    /// Keeps the session in memory, and its connections open.
    pub(super) guest: Arc<()>,
}

/// Gives the owner access to a session's files. The session stays in memory while this value lives.
#[async_trait]
pub(super) trait WorkspaceDoor: Send + Sync {
    /// Returns true if the session certainly has no files, so that nothing has to be started to find out.
    async fn is_unused(&self) -> bool;
    /// Returns the server in the session's sandbox, started if necessary.
    async fn open(&self) -> Result<LiveConnection, Refusal>;
    /// The size limit of the workspace in bytes.
    fn room(&self) -> u64;
    /// The checkpoints of the workspace.
    fn checkpoints(&self) -> &Checkpoints;
}

/// A message to the session's task. Large parts are boxed, because a mailbox has room for many messages.
pub(super) enum Message {
    Submit {
        submission: Box<Submission>,
        reply: oneshot::Sender<Result<Acknowledgement, Refusal>>,
    },
    Join {
        by: UserId,
        reply: oneshot::Sender<Result<SessionSubscription, Refusal>>,
    },
    /// Asks for access to the files, for the owner to read or change them.
    Files {
        by: UserId,
        reply: oneshot::Sender<Result<Box<dyn WorkspaceDoor>, Refusal>>,
    },
    /// Asks for the queue as of journal version `version` or later.
    Queue {
        version: u64,
        by: UserId,
        role: Role,
        reply: oneshot::Sender<Result<QueueView, Refusal>>,
    },
    /// Asks for access to the session's servers.
    Tools {
        by: UserId,
        reply: oneshot::Sender<Result<ToolsNow, Refusal>>,
    },
    /// An effect ended.
    Outcome {
        command: Box<Command>,
        /// The epoch in which the effect was started.
        epoch: u64,
    },
    /// Updates from other gateways.
    Updates(Vec<SessionUpdate>),
    /// Updates may have been missed: read the journal, and check which gateway runs the session.
    Refresh,
    /// The person who began the turn may no longer act, so the turn ends.
    EndTurn,
    /// Another session needs the memory: unload if nobody uses this session.
    Evict,
    /// The session is being deleted: stop everything and unload for good.
    Delete {
        by: UserId,
        reply: oneshot::Sender<Result<Option<SandboxId>, Refusal>>,
    },
}

impl Message {
    pub(super) fn refuse(self, refusal: &Refusal) {
        match self {
            Self::Submit { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Join { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Files { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Queue { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Tools { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Delete { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Outcome { .. }
            | Self::Updates(_)
            | Self::Refresh
            | Self::EndTurn
            | Self::Evict => {}
        }
    }
}

pub(super) fn store_away() -> Refusal {
    Refusal::new(
        Code::StoreUnavailable,
        "not saved: the database does not answer; try again",
    )
}

/// The refusal for a session whose stored data cannot be read. It is permanent: a retry does not help.
pub fn damaged() -> Refusal {
    Refusal::new(
        Code::SessionUnreadable,
        "what is stored of this session is damaged, so it cannot be opened; other sessions are not \
         affected: start a new one, or have the operator look into the log",
    )
}

/// The refusal for a reached limit of the installation; says which limit, its value, and what to do. Counts
/// the refusal in the metrics.
pub fn limit_reached(of: &Resource, reached: ReachedLimit) -> Refusal {
    instruments().limit_reached(of.name, reached.whose.as_str());
    Refusal::new(Code::TooManyRequests, of.refusal(reached))
}

pub(super) fn stopping() -> Refusal {
    Refusal::new(
        Code::ServerStopping,
        "the server is stopping; connect again in a moment",
    )
}

pub(super) fn deleted() -> Refusal {
    Refusal::new(Code::SessionNotFound, "the session was deleted")
}

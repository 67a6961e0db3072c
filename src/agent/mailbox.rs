//! Defines the mailbox messages of a session's task, and refusals that do not need a session.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::oneshot;

use super::checkpoints::Checkpoints;
use super::cluster::message::SessionUpdate;
use super::feed::{Feed, QueueView, SessionSubscription};
use crate::domain::{
    Actor, BlobId, CallId, Code, Gesture, MicroUsd, ReachedLimit, Resource, ResourceRef, Role,
    SandboxId, ToolRef, UserId,
};
use crate::providers::WantedModel;
use crate::servers::LiveConnection;
use crate::session::{Command, Decision, Refusal, SessionRules, ViewOrigin};
use crate::store::records::SecretHash;
use crate::telemetry::instruments;

/// A request that a door sends to a session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionRequest {
    /// A command, passed on unchanged.
    Command(Command),
    /// A message with attachments, which are looked up before the session receives it.
    Say {
        say: Command,
        attached: Vec<BlobId>,
        /// Resources of MCP servers that are read and attached.
        resources: Vec<ResourceRef>,
        /// Contexts that views add to the message.
        views: Vec<ViewContext>,
    },
    /// Switches to another model. The session resolves the choice to a provider and model.
    Choose(WantedModel),
    /// A decision whose changed arguments still have to be looked up and validated.
    Decide {
        /// The decision; its `edit` is filled in here.
        decision: Decision,
        args: Option<Value>,
    },
    /// A call that a view asks for. The view and the tool are looked up before the session receives the call.
    CallByView(Box<ViewRequest>),
    /// A decision with the secret of a fresh gesture. The secret is used up before the session receives the
    /// decision.
    WithProof {
        decision: Box<SessionRequest>,
        proof: SecretHash,
    },
    /// A decision with the gesture that came with it.
    WithGesture {
        decision: Box<SessionRequest>,
        gesture: Gesture,
    },
}

/// The context that a call's view gives the model with the next message of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewContext {
    /// The call that the view belongs to.
    pub call: CallId,
    /// The text as the person saw it.
    pub text: String,
}

/// A tool call that a view asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewRequest {
    /// The tool, by its server's own name. The server named here is ignored: it is always that of the view's
    /// call.
    pub at: ToolRef,
    pub args: Value,
    /// The view that asks, and the call that it belongs to.
    pub origin: ViewOrigin,
    pub by: Actor,
}

impl SessionRequest {
    /// Returns true if the request is a message of a person.
    pub(super) fn says(&self) -> bool {
        match self {
            Self::Say { .. } | Self::Command(Command::Say { .. }) => true,
            Self::Command(_)
            | Self::Choose(_)
            | Self::CallByView(_)
            | Self::Decide { .. }
            | Self::WithProof { .. }
            | Self::WithGesture { .. } => false,
        }
    }

    /// Returns true if the request begins a turn that a model answers.
    pub(super) fn begins_turn(&self) -> bool {
        self.says() || matches!(self, Self::Command(Command::Retry))
    }

    /// Returns true if the request may cause a call to run.
    pub(super) fn approves(&self) -> bool {
        match self {
            Self::Decide { decision, .. } | Self::Command(Command::Decide(decision)) => {
                decision.approved
            }
            Self::Command(Command::DecideAll { approved, .. }) => *approved,
            Self::WithProof { decision, .. } | Self::WithGesture { decision, .. } => {
                decision.approves()
            }
            // A view's call and a dry run depend on the current rules and the tools that are offered now.
            Self::CallByView(_) | Self::Command(Command::DryRun { .. }) => true,
            Self::Command(_) | Self::Choose(_) | Self::Say { .. } => false,
        }
    }
}

impl SessionRequest {
    /// Returns the named calls that the request decides or dry-runs, and the role of the person. Returns
    /// `None` for any other request.
    pub(super) fn decides(&self) -> Option<(&[CallId], Option<Role>)> {
        match self {
            Self::Decide { decision, .. } | Self::Command(Command::Decide(decision)) => {
                Some((std::slice::from_ref(&decision.call), decision.role))
            }
            Self::Command(Command::DecideAll { call_ids, role, .. }) => {
                Some((call_ids.as_deref()?, *role))
            }
            Self::Command(
                Command::DryRun { call, role, .. } | Command::DropDryRun { call, role, .. },
            ) => Some((std::slice::from_ref(call), *role)),
            Self::WithProof { decision, .. } | Self::WithGesture { decision, .. } => {
                decision.decides()
            }
            Self::Command(_) | Self::Choose(_) | Self::Say { .. } | Self::CallByView(_) => None,
        }
    }
}

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
        request: Box<SessionRequest>,
        by: UserId,
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

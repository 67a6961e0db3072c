//! What a session's task is told, and the answers that need no session.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::oneshot;

use super::checkpoints::Checkpoints;
use super::cluster::message::SessionUpdate;
use super::feed::{Feed, Joined, QueueView};
use crate::domain::{
    Actor, BlobId, CallId, Code, Gesture, MicroUsd, Reached, Resource, ResourceRef, Role,
    SandboxId, ToolRef, UserId,
};
use crate::providers::Wanted;
use crate::servers::Held;
use crate::session::{Command, Decision, Refusal, SessionRules, ViewOrigin};
use crate::store::records::SecretHash;
use crate::telemetry::instruments;

/// What a door asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionRequest {
    /// A command as it is.
    Command(Command),
    /// A message with what is attached to it, which is looked up before the session is told.
    Say {
        say: Command,
        attached: Vec<BlobId>,
        /// Resources of servers that are read and attached.
        resources: Vec<ResourceRef>,
        /// What views let the model know with it.
        views: Vec<ViewContext>,
    },
    /// Let another model answer; which one serves the wish is looked up here.
    Choose(Wanted),
    /// A decision whose changed arguments still have to be looked up and validated.
    Decide {
        /// The decision; its `edit` is filled in here.
        decision: Decision,
        args: Option<Value>,
    },
    /// A call that a view asks for. Whose view it is, and what its call is, is looked up before the
    /// session is told.
    CallByView(Box<ViewRequest>),
    /// A decision with the secret of a fresh gesture, which is used up before the session is told.
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

/// What the view of a call lets the model know with the next message of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewContext {
    /// The call whose view it is.
    pub call: CallId,
    /// As the person was shown it.
    pub text: String,
}

/// What a view asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewRequest {
    /// The tool, by its server's own name. The server is that of the view's call, whatever stands here.
    pub at: ToolRef,
    pub args: Value,
    /// Which view asks, of which call.
    pub origin: ViewOrigin,
    pub by: Actor,
}

impl SessionRequest {
    /// Whether it is a message of a person.
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

    /// Whether a model answers it.
    pub(super) fn begins_turn(&self) -> bool {
        self.says() || matches!(self, Self::Command(Command::Retry))
    }

    /// Whether something may run by it.
    pub(super) fn approves(&self) -> bool {
        match self {
            Self::Decide { decision, .. } | Self::Command(Command::Decide(decision)) => {
                decision.approved
            }
            Self::Command(Command::DecideAll { approved, .. }) => *approved,
            Self::WithProof { decision, .. } | Self::WithGesture { decision, .. } => {
                decision.approves()
            }
            // By the rules of now, and of the tools that are offered now.
            Self::CallByView(_) | Self::Command(Command::DryRun { .. }) => true,
            Self::Command(_) | Self::Choose(_) | Self::Say { .. } => false,
        }
    }
}

impl SessionRequest {
    /// The calls that it decides or has tried, of those named, and the role of whoever decides; none for anything
    /// else.
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

/// A command was decided, and what it changed is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// `seq` of the first event that it caused; of the earlier one for a repeat; else of the head.
    pub seq: u64,
}

/// What is asked of a server that is no call of a tool: its method and its parameters, as rules see them.
pub(super) struct ServerQuestion<'a> {
    pub(super) server: &'a str,
    pub(super) method: &'a str,
    pub(super) args: Value,
    /// Those that were given in the session, and what the session has cost.
    pub(super) rules: (&'a SessionRules, MicroUsd),
}

/// The way to the servers of a session for what is no call of a tool.
#[async_trait]
pub(super) trait ServerDoor: Send + Sync {
    /// The session's open connection, made if need be, and how long an answer may take; unless a rule
    /// denies the question.
    async fn reach(&self, question: &ServerQuestion<'_>) -> Result<(Held, Duration), Refusal>;
}

/// What the servers of a session are reached by, and what forbids it.
pub(super) struct ToolsNow {
    pub(super) tools: Arc<dyn ServerDoor>,
    /// Those that were given in the session.
    pub(super) rules: Arc<SessionRules>,
    /// What the session has cost.
    pub(super) cost: MicroUsd,
    pub(super) feed: Arc<Feed>,
}

/// The files of a session, for its owner. While it lives, the session stays in memory.
#[async_trait]
pub(super) trait WorkspaceDoor: Send + Sync {
    /// Whether the session certainly has no files, so that nothing has to be started to say so.
    async fn is_unused(&self) -> bool;
    /// The server in the session's sandbox, started if need be.
    async fn open(&self) -> Result<Held, Refusal>;
    /// Bytes that the workspace may have in all.
    fn room(&self) -> u64;
    /// The history of the workspace.
    fn checkpoints(&self) -> &Checkpoints;
}

/// What the session's task is told. Small, because a mailbox has room for many: what is large is in
/// a box.
pub(super) enum Message {
    Tell {
        request: Box<SessionRequest>,
        by: UserId,
        reply: oneshot::Sender<Result<Accepted, Refusal>>,
    },
    Join {
        by: UserId,
        reply: oneshot::Sender<Result<Joined, Refusal>>,
    },
    /// The files, to be looked at or changed by the owner.
    Files {
        by: UserId,
        reply: oneshot::Sender<Result<Box<dyn WorkspaceDoor>, Refusal>>,
    },
    /// What waits, as the journal says at that version or later.
    Queue {
        version: u64,
        by: UserId,
        role: Role,
        reply: oneshot::Sender<Result<QueueView, Refusal>>,
    },
    /// What the session's servers are reached by.
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
    /// News from other gateways.
    Updates(Vec<SessionUpdate>),
    /// Something may have been missed: read on, and look who runs the session.
    Look,
    /// Whoever began the turn may no longer act: it ends.
    EndTurn,
    /// Somebody needs its room: leave memory, should nobody need it.
    Rest,
    /// The session is to be deleted: stop everything and leave for good.
    Leave {
        by: UserId,
        reply: oneshot::Sender<Result<Option<SandboxId>, Refusal>>,
    },
}

impl Message {
    pub(super) fn refuse(self, refusal: &Refusal) {
        match self {
            Self::Tell { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Join { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Files { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Queue { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Tools { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Leave { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Outcome { .. } | Self::Updates(_) | Self::Look | Self::EndTurn | Self::Rest => {}
        }
    }
}

pub(super) fn store_away() -> Refusal {
    Refusal::new(
        Code::StoreUnavailable,
        "not saved: the database does not answer; try again",
    )
}

/// Why a session that cannot be read is refused: for good, as no repetition helps.
pub fn damaged() -> Refusal {
    Refusal::new(
        Code::SessionUnreadable,
        "what is stored of this session is damaged, so it cannot be opened; other sessions are not \
         affected: start a new one, or have the operator look into the log",
    )
}

/// A limit of the installation is reached: which, how much it is, and what to do. Counted here.
pub fn limit_reached(of: &Resource, reached: Reached) -> Refusal {
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

//! Defines what a door sends to a session, and what the session's mailbox takes.
//!
//! A [`SessionRequest`] names things: attachments, resources, the proof of a gesture. `Sessions::complete` checks
//! that the caller may act, looks these things up and validates them, once, which gives a [`Submission`]. Only a
//! submission enters a mailbox. The session's task adds what its state alone can say, such as the call that a
//! decision changes, which gives the [`Command`].

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::domain::{Actor, BlobId, CallId, Gesture, ResourceRef, Role, ToolRef, UserId};
use crate::providers::WantedModel;
use crate::session::{Command, Decision, ViewOrigin};
use crate::store::records::SecretHash;

/// A request that a door sends to a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRequest {
    /// The action that is asked for.
    pub action: SessionAction,
    /// The options of the action.
    pub options: SubmitOptions,
}

/// An action that a session is asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionAction {
    /// A command, passed on unchanged.
    Command(Command),
    /// Switches to another model. The session resolves the choice to a provider and model.
    Choose(WantedModel),
    /// A decision. The session validates changed arguments, and makes the decision's `edit` of them.
    Decide {
        decision: Decision,
        args: Option<Value>,
    },
    /// A call that a view asks for.
    CallByView(Box<ViewRequest>),
    /// Takes the newest version of the session's assistant into use. The session looks it up.
    UpdateAssistant { by: Actor },
}

/// The options of an action. They are looked up or used up before the session receives the action.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SubmitOptions {
    /// Uploaded files that a message attaches.
    pub attached: Vec<BlobId>,
    /// Resources of MCP servers that are read and attached to a message.
    pub resources: Vec<ResourceRef>,
    /// Contexts that views add to a message.
    pub views: Vec<ViewContext>,
    /// The secret of a fresh gesture, which proves that the person who decides is there.
    pub proof: Option<SecretHash>,
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

/// A complete request, which a session's mailbox takes.
#[derive(Debug, Clone)]
pub(super) struct Submission {
    /// The person who asks. The session's task checks that they may.
    pub(super) by: UserId,
    /// The servers that the person's key is limited to.
    pub(super) servers: Option<Arc<BTreeSet<String>>>,
    pub(super) action: SessionAction,
    /// The fresh gesture that came with a decision.
    pub(super) gesture: Option<Gesture>,
}

impl From<SessionAction> for SessionRequest {
    fn from(action: SessionAction) -> Self {
        Self {
            action,
            options: SubmitOptions::default(),
        }
    }
}

impl From<Command> for SessionRequest {
    fn from(command: Command) -> Self {
        SessionAction::Command(command).into()
    }
}

impl SubmitOptions {
    /// Returns true if something comes with a message.
    pub(super) fn adds_to_message(&self) -> bool {
        !(self.attached.is_empty() && self.resources.is_empty() && self.views.is_empty())
    }
}

impl SessionAction {
    /// Returns true if the action is a message of a person.
    pub(super) fn says(&self) -> bool {
        matches!(self, Self::Command(Command::Say { .. }))
    }

    /// Returns true if the action begins a turn that a model answers.
    fn begins_turn(&self) -> bool {
        self.says() || matches!(self, Self::Command(Command::Retry))
    }

    /// Returns true if the action chooses or asks a model, so that it counts for whom that is open.
    pub(super) fn asks_model(&self) -> bool {
        self.begins_turn() || matches!(self, Self::Choose(_))
    }

    /// Returns true if the action may cause a call to run.
    pub(super) fn approves(&self) -> bool {
        match self {
            Self::Decide { decision, .. } | Self::Command(Command::Decide(decision)) => {
                decision.approved
            }
            Self::Command(Command::DecideAll { approved, .. }) => *approved,
            // A view's call and a dry run depend on the current rules and the tools that are offered now.
            Self::CallByView(_) | Self::Command(Command::DryRun { .. }) => true,
            Self::Command(_) | Self::Choose(_) | Self::UpdateAssistant { .. } => false,
        }
    }

    /// Returns the named calls that the action decides or dry-runs, and the role of the person. Returns
    /// `None` for any other action.
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
            Self::Command(_)
            | Self::Choose(_)
            | Self::CallByView(_)
            | Self::UpdateAssistant { .. } => None,
        }
    }
}

impl Submission {
    /// Returns true if the session is going to begin a turn that a model answers.
    pub(super) fn begins_turn(&self) -> bool {
        self.action.begins_turn()
    }
}

//! Follows a request from a door to the session's decision: what a door sends, how the registry authorizes and
//! completes it, and the command that the session's task makes of it.
//!
//! A [`SessionRequest`] names things: attachments, resources, the proof of a gesture. [`Sessions`] checks that
//! the caller may act, looks these things up and validates them, once, which gives a [`Submission`]. Only a
//! submission enters a mailbox. The session's task adds what its state alone can say, such as the call that a
//! decision changes, which gives the [`Command`].

use serde_json::Value;

use super::attachments::MAX_OF_MESSAGE;
use super::effects::Running;
use super::effects::model_request::meter::seen;
use super::effects::tool_call::proposal::propose_for_view;
use super::feed::running_answer::RunningAnswer;
use super::mailbox::store_away;
use super::session::Replica;
use super::sessions::offers::{SessionOffers, calls, context};
use super::sessions::{Sessions, may_act};
use crate::domain::{
    Actor, Attachment, BlobId, CallId, Caller, Code, Gesture, ResourceRef, Role, SessionKey,
    ToolRef, TurnId, UserId,
};
use crate::mcp::Form;
use crate::providers::Wanted;
use crate::session::{
    Command, Decision, Edit, ElicitationAction, ElicitationReply, Refusal, ViewCall, ViewOrigin,
};
use crate::store::clock::now;
use crate::store::records::SecretHash;

/// A request that a door sends to a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRequest {
    /// What the session is asked to do.
    pub action: SessionAction,
    /// What comes with it.
    pub options: SubmitOptions,
}

/// What a session is asked to do.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionAction {
    /// A command, passed on unchanged.
    Command(Command),
    /// Switches to another model. The session resolves the choice to a provider and model.
    Choose(Wanted),
    /// A decision. The session validates changed arguments, and makes the decision's `edit` of them.
    Decide {
        decision: Decision,
        args: Option<Value>,
    },
    /// A call that a view asks for.
    CallByView(Box<ViewRequest>),
}

/// What comes with an action, and is looked up or used up before the session receives the action.
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
    fn adds_to_message(&self) -> bool {
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

    /// Returns true if the action may cause a call to run.
    pub(super) fn approves(&self) -> bool {
        match self {
            Self::Decide { decision, .. } | Self::Command(Command::Decide(decision)) => {
                decision.approved
            }
            Self::Command(Command::DecideAll { approved, .. }) => *approved,
            // A view's call and a dry run depend on the current rules and the tools that are offered now.
            Self::CallByView(_) | Self::Command(Command::DryRun { .. }) => true,
            Self::Command(_) | Self::Choose(_) => false,
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
            Self::Command(_) | Self::Choose(_) | Self::CallByView(_) => None,
        }
    }
}

impl Submission {
    /// Returns true if the session is going to begin a turn that a model answers.
    pub(super) fn begins_turn(&self) -> bool {
        self.action.begins_turn()
    }
}

impl Sessions {
    /// Checks that the caller may act, and completes their request: the one way into a session's mailbox.
    pub(super) async fn complete(
        &self,
        key: &SessionKey,
        caller: &Caller,
        request: SessionRequest,
    ) -> Result<Submission, Refusal> {
        may_act(caller)?;
        let SessionRequest {
            mut action,
            options,
        } = request;
        let mut gesture = None;
        if let Some(proof) = &options.proof {
            gesture = self.use_proof(key, caller, proof).await?;
        }
        match &mut action {
            SessionAction::Command(Command::Say { attachments, .. })
                if options.adds_to_message() =>
            {
                self.admit(key, caller).await?;
                *attachments = self.gather_attachments(key, caller, &options).await?;
            }
            SessionAction::CallByView(asked) => {
                calls::find_view(self, key, caller, asked).await?;
            }
            SessionAction::Command(_) | SessionAction::Choose(_) | SessionAction::Decide { .. } => {
            }
        }
        Ok(Submission {
            by: caller.user.id.clone(),
            action,
            gesture,
        })
    }

    /// Returns everything that comes with a message, as its attachments.
    async fn gather_attachments(
        &self,
        key: &SessionKey,
        caller: &Caller,
        options: &SubmitOptions,
    ) -> Result<Vec<Attachment>, Refusal> {
        let mut all = self.attachments().find(key, &options.attached).await?;
        for resource in &options.resources {
            all.extend(Box::pin(SessionOffers::of(self).read(key, caller, resource)).await?);
        }
        all.extend(Box::pin(context::keep(self, key, caller, &options.views)).await?);
        if all.len() > MAX_OF_MESSAGE {
            let text = format!(
                "a message may have {MAX_OF_MESSAGE} attachments, resources and words of views"
            );
            return Err(Refusal::of_field(Code::InvalidArguments, "resources", text));
        }
        Ok(all)
    }

    /// Uses up the proof of a fresh gesture, whatever the result of the decision. Without a valid proof the
    /// session decides whether it requires one.
    async fn use_proof(
        &self,
        key: &SessionKey,
        caller: &Caller,
        proof: &SecretHash,
    ) -> Result<Option<Gesture>, Refusal> {
        let whose = (&caller.tenant.id, &caller.user.id);
        let gestures = self.records().gestures();
        let taken = gestures.take_proof(whose, (proof, &key.session), now());
        taken.await.map_err(|_| store_away())
    }
}

impl Submission {
    /// Makes the command, with what the session's state and running effects say about the action. Refuses
    /// what only the session can refuse.
    pub(super) fn into_command(
        self,
        replica: &Replica,
        running: &mut Running,
    ) -> Result<Command, Refusal> {
        let command = to_command(self.action, replica, running)?;
        Ok(match self.gesture {
            Some(gesture) => Command::WithGesture {
                gesture,
                decision: Box::new(command),
            },
            None => command,
        })
    }
}

/// Makes the command of an action.
pub(super) fn to_command(
    action: SessionAction,
    replica: &Replica,
    running: &mut Running,
) -> Result<Command, Refusal> {
    let command = match action {
        SessionAction::Choose(wanted) => {
            let providers = &replica.agent.parts.providers;
            let current = Some(replica.choice());
            let whose = (&replica.key.tenant, &replica.owner().id);
            let model = providers.choose(whose, &wanted, current)?;
            Command::ChooseModel { model }
        }
        SessionAction::Decide { decision, args } => {
            Command::Decide(with_edit(decision, args, replica))
        }
        SessionAction::CallByView(asked) => called_by_view(*asked, replica),
        SessionAction::Command(Command::AnswerElicitation(reply)) => {
            let invalid = problem_with(&reply, replica);
            Command::AnswerElicitation(ElicitationReply { invalid, ..reply })
        }
        SessionAction::Command(Command::Stop { turn, .. }) => stop(turn, replica, running),
        SessionAction::Command(command) => command,
    };
    can_be_answered(&command, replica)?;
    Ok(command)
}

/// Fills in the edit that changed arguments make of a call.
fn with_edit(mut decision: Decision, args: Option<Value>, replica: &Replica) -> Decision {
    let control = &replica.state.control;
    let call = control.call(&decision.call);
    let is_repeat = call.zip(args.as_ref()).is_some_and(|(call, args)| {
        !call.is_pending() && call.original_args.is_some() && call.args == *args
    });
    if is_repeat {
        // The digest that came with it is that of the unchanged call, so drop it. A call that was taken back
        // is shown anew.
        decision.digest = None;
    }
    decision.edit = args.and_then(|args| match call {
        Some(call) => (call.args != args).then(|| replica.agent.tools.edit(call, args)),
        None => control
            .past_decision(&decision.call)
            .map(|past| Edit::of_past(past, args)),
    });
    decision
}

/// Stops the model request that runs here, and makes the command with its answer so far and its usage.
fn stop(turn: Option<TurnId>, replica: &Replica, running: &mut Running) -> Command {
    let now = replica.state.control.turn.as_ref();
    let is_this = now.is_some_and(|now| turn.is_none_or(|turn| turn == now.id));
    // If the model runs at another gateway, take the text that people here have seen.
    let mut said = replica.feed.running_answer().filter(|_| is_this);
    let mut meter = None;
    if is_this && running.has_model() {
        // Nothing of the answer may be shown after the event that ends the turn.
        meter = running.stop_model();
        said = replica.feed.end_answer();
    }
    let (said_so_far, thought_so_far) = said.map_or((None, None), RunningAnswer::into_parts);
    let seen = seen(said_so_far.as_deref(), thought_so_far.as_ref());
    let spent = is_this.then(|| replica.spent(meter.as_deref(), &seen));
    Command::Stop {
        turn,
        said_so_far,
        thought_so_far,
        spent: spent.unwrap_or_default(),
    }
}

/// Makes the command for a view's call, with its tool as it is now.
fn called_by_view(asked: ViewRequest, replica: &Replica) -> Command {
    let proposal = propose_for_view(&replica.agent.tools, &asked.at, asked.args);
    Command::CallByView(Box::new(ViewCall {
        origin: asked.origin,
        proposal,
        by: asked.by,
    }))
}

/// Checks an answer to a server's elicitation against the requested form, and returns the problem.
fn problem_with(reply: &ElicitationReply, replica: &Replica) -> Option<String> {
    let mut asked = replica.state.control.elicitations();
    let asked = asked.find(|asked| asked.id == reply.id)?;
    let is_page = asked.url.is_some();
    match &reply.answer.content {
        Some(_) if is_page => Some("a page takes no `content`".to_owned()),
        Some(content) => Form::problem_with(&asked.schema, content),
        None if !is_page && reply.answer.action == ElicitationAction::Accept => {
            Some("`accept` needs `content`".to_owned())
        }
        None => None,
    }
}

/// Refuses to begin a turn that no provider can answer; a running turn continues.
fn can_be_answered(command: &Command, replica: &Replica) -> Result<(), Refusal> {
    let begins = matches!(command, Command::Say { .. } | Command::Retry);
    if !begins || replica.state.control.is_active() {
        return Ok(());
    }
    let providers = &replica.agent.parts.providers;
    let missing = providers.missing_key(&replica.key.tenant, replica.choice());
    missing.map_or(Ok(()), Err)
}

//! Turns commands into events: the rules of the approval queue, of turns and of recovery.

mod consent;
mod elicitation;
mod fork;
mod import;
mod queue;
mod recovery;
mod refusal;
mod rules;
mod sampling;
mod title;
mod turn;
mod views;

pub use fork::Fork;
pub use import::{Import, SaidElsewhere, Speaker};
pub use turn::overdue;

use super::command::{Command, Genesis, Refusal};
use super::event::Event;
use super::policy::Rules;
use super::state::Control;
use crate::domain::{Code, EngineId, GatewayId, Gesture, Timestamp};

/// The deciding gateway.
#[derive(Debug, Clone, Copy)]
pub struct Gateway<'a> {
    /// The gateway process; effects that it starts end with it.
    pub id: &'a GatewayId,
    /// The engine that its sandboxes run on.
    pub engine: Option<&'a EngineId>,
    /// True if the session's runner is believed to be alive. Only a hint.
    pub is_runner_alive: bool,
    /// For the outcome of an effect: the [`Control::epoch`] in which the effect was started.
    pub epoch: Option<u64>,
}

/// The inputs of `decide` beside state and command.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    pub gateway: Gateway<'a>,
    /// The rules in force.
    pub rules: &'a Rules,
    /// The time of the decision.
    pub now: Timestamp,
    /// The properties to create the session with, if this is its first command.
    pub genesis: &'a Genesis,
}

/// Decides a sequence of commands as one decision: returns the events of all, or the refusal of the first
/// refused command. No events mean success without a change (repeats, or outcomes that came too late).
pub fn decide<'c>(
    control: &Control,
    commands: impl IntoIterator<Item = &'c Command>,
    inputs: Inputs<'_>,
) -> Result<Vec<Event>, Refusal> {
    let mut draft = Draft::new(control, inputs);
    // An effect of an earlier epoch was taken over, so its outcome is dropped.
    let is_late = inputs
        .gateway
        .epoch
        .is_some_and(|epoch| epoch != control.runner.epoch);
    if !is_late {
        for command in commands {
            draft.follow(command)?;
        }
    }
    Ok(draft.events)
}

/// The events of a decision so far, with the control state that they lead to.
struct Draft<'a> {
    control: Control,
    events: Vec<Event>,
    inputs: Inputs<'a>,
    /// The gesture of the current decision.
    gesture: Option<Gesture>,
}

impl<'a> Draft<'a> {
    fn new(control: &Control, inputs: Inputs<'a>) -> Self {
        Self {
            control: control.clone(),
            events: Vec::new(),
            inputs,
            gesture: None,
        }
    }

    fn push(&mut self, event: Event) {
        self.control.evolve(&event, self.inputs.now);
        self.events.push(event);
    }

    /// Records the creation of a session that is not stored yet.
    fn create(&mut self) {
        if self.control.version > 0 || self.control.journal.is_some() {
            return;
        }
        let Genesis {
            journal,
            owner,
            sandbox,
            model,
        } = self.inputs.genesis.clone();
        self.push(Event::Created {
            journal,
            owner,
            sandbox,
            model,
        });
    }

    fn follow(&mut self, command: &Command) -> Result<(), Refusal> {
        match command {
            Command::Open { title } => self.open(title.as_deref())?,
            Command::Say {
                text,
                author,
                client_message_id,
                effort,
                attachments,
            } => self.say(
                (text, attachments),
                author,
                client_message_id.as_deref(),
                *effort,
            )?,
            Command::Decide(_) | Command::DecideAll { .. } | Command::WithGesture { .. } => {
                self.decided_by_person(command)?;
            }
            Command::DryRun { .. } | Command::DropDryRun { .. } | Command::DryRunEnded { .. } => {
                queue::dry_run::follow(self, command)?;
            }
            Command::StopCall { .. } | Command::Stop { .. } | Command::TimeOut { .. } => {
                self.end_early(command)?;
            }
            Command::ResolveUnknown { call, happened, by } => {
                recovery::resolve_unknown(self, call, *happened, by)?;
            }
            Command::Retry => self.retry()?,
            Command::Withdraw { client_message_id } => self.withdraw(client_message_id)?,
            Command::ResetContext => self.reset_context()?,
            Command::Rename { title } => title::rename(self, title)?,
            Command::ChooseModel { .. }
            | Command::ChooseWindow { .. }
            | Command::ChooseCompaction { .. } => self.choose(command)?,
            Command::GiveRule { .. } | Command::TakeRuleBack { .. } | Command::HostRefused(_) => {
                rules::keep(self, command)?;
            }
            Command::Answered { .. }
            | Command::ModelFailed { .. }
            | Command::Overflowed { .. }
            | Command::AttachmentPlaced { .. }
            | Command::Titled { .. }
            | Command::Reviewed { .. }
            | Command::TaskCreated { .. }
            | Command::CallEnded { .. } => self.effect_told(command),
            Command::Elicit(_)
            | Command::AnswerElicitation(_)
            | Command::OpenElicitation { .. }
            | Command::CompleteElicitation { .. }
            | Command::WithdrawElicitation { .. }
            | Command::Sampled { .. } => elicitation::follow(self, command)?,
            Command::CallByView(_) | Command::CloseView { .. } => views::follow(self, command)?,
            Command::WorkspaceCopied { outcome } => fork::workspace_copied(self, *outcome),
            Command::ReviewCalls => rules::review_calls(self),
            Command::TakeOver { from } => recovery::take_over(self, from.as_ref()),
        }
        Ok(())
    }

    /// Stops a call or a turn.
    fn end_early(&mut self, command: &Command) -> Result<(), Refusal> {
        if let Command::StopCall { call } = command {
            self.stop_call(call)?;
        } else if let Command::Stop {
            turn,
            said_so_far,
            thought_so_far,
            spent,
        } = command
        {
            let (said, thought) = (said_so_far.as_deref(), thought_so_far.as_ref());
            self.stop(*turn, said, thought, spent);
        } else if let Command::TimeOut { turn, limit, spent } = command {
            self.time_out(*turn, *limit, spent);
        }
        Ok(())
    }

    /// Follows a person's decision about one or several calls, perhaps with a fresh gesture.
    fn decided_by_person(&mut self, command: &Command) -> Result<(), Refusal> {
        if let Command::Decide(decision) = command {
            self.decide_call(decision)?;
        } else if let Command::DecideAll {
            call_ids,
            approved,
            reason,
            by,
            role,
        } = command
        {
            let who = (by, *role);
            self.decide_all(call_ids.as_deref(), *approved, reason.as_deref(), who)?;
        } else if let Command::WithGesture { gesture, decision } = command {
            self.gesture = Some(gesture.clone());
            let decided = self.decided_by_person(decision);
            self.gesture = None;
            decided?;
        }
        Ok(())
    }

    /// Follows a person's choice of a session setting.
    fn choose(&mut self, command: &Command) -> Result<(), Refusal> {
        if let Command::ChooseModel { model } = command {
            self.choose_model(model);
        } else if let Command::ChooseWindow { whole } = command {
            self.choose_window(*whole);
        } else if let Command::ChooseCompaction { strategies } = command {
            self.choose_compaction(strategies.as_deref())?;
        }
        Ok(())
    }

    /// Follows the outcome of an effect, or a model request's placing of an attachment.
    fn effect_told(&mut self, command: &Command) {
        if let Command::Answered { request, answer } = command {
            self.answered(*request, answer);
        } else if let Command::ModelFailed { request, failure } = command {
            self.model_failed(*request, failure);
        } else if let Command::Overflowed {
            request,
            cut,
            spent,
        } = command
        {
            self.overflowed(*request, *cut, spent);
        } else if let Command::AttachmentPlaced {
            request,
            id,
            name,
            path,
        } = command
        {
            self.attachment_placed(*request, id, (name, path));
        } else if let Command::Titled { title, spent } = command {
            title::titled(self, title.as_deref(), spent);
        } else if let Command::Reviewed {
            call,
            review,
            spent,
        } = command
        {
            rules::reviewed(self, call, (review, spent));
        } else if let Command::TaskCreated { call, task } = command {
            recovery::task_created(self, call, task);
        } else if let Command::CallEnded {
            call,
            outcome,
            duration_ms,
        } = command
        {
            self.call_ended(call, outcome, *duration_ms);
        }
    }

    /// Makes the deciding gateway the runner, which starts a new epoch.
    fn claim(&mut self) {
        let Gateway { id, engine, .. } = self.inputs.gateway;
        self.push(Event::OwnerChanged {
            runner: id.clone(),
            engine: engine.cloned(),
        });
    }

    /// Makes the deciding gateway the runner of work that starts while nothing runs, so that the work does
    /// not depend on another process, unless another living gateway's engine holds the session's files. The
    /// runner claims again if it has got an engine meanwhile, so that later work keeps its files there. No
    /// claim happens while a view's call is running, because a new epoch would drop the call's outcome.
    fn claim_work(&mut self) {
        let (control, gateway) = (&self.control, &self.inputs.gateway);
        if control.views.calls.iter().any(|call| call.is_executing()) {
            return;
        }
        let has_files_here = control
            .engine
            .as_ref()
            .is_none_or(|engine| Some(engine) == gateway.engine);
        let is_mine = control.is_run_by(gateway.id);
        let has_new_engine = control.runner.engine.is_none() && gateway.engine.is_some();
        let may_claim = if is_mine {
            has_new_engine
        } else {
            has_files_here || !gateway.is_runner_alive
        };
        if may_claim {
            self.claim();
        }
    }

    fn open(&mut self, title: Option<&str>) -> Result<(), Refusal> {
        if self.control.version > 0 {
            return Ok(());
        }
        if let Some(title) = title {
            return title::rename(self, title);
        }
        self.create();
        Ok(())
    }
}

fn nothing_to_do(message: &str) -> Refusal {
    Refusal::new(Code::NothingToDo, message)
}

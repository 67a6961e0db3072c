//! Turns commands into events: the rules of the approval queue, of turns and of recovery.

mod assistant;
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

use self::consent::Person;
use self::queue::dry_run;
use super::call::ElicitationEnd;
use super::command::{Command, Genesis};
use super::event::Event;
use super::policy::Rules;
use super::refusal::Refusal;
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
            assistant,
            servers,
        } = self.inputs.genesis.clone();
        self.push(Event::Created {
            journal,
            owner,
            sandbox,
            model,
            assistant,
            servers,
        });
    }

    /// Follows one command. A new command gets its arm here, which calls one function.
    #[expect(clippy::too_many_lines, reason = "one flat match over all commands")]
    fn follow(&mut self, command: &Command) -> Result<(), Refusal> {
        match command {
            Command::Open { title } => self.open(title.as_deref())?,
            Command::Say {
                text,
                author,
                client_message_id,
                effort,
                attachments,
            } => {
                let id = client_message_id.as_deref();
                self.say(text, attachments, author, id, *effort)?;
            }
            Command::Decide(decision) => self.decide_call(decision)?,
            Command::DecideAll {
                call_ids,
                approved,
                reason,
                by,
                role,
            } => {
                let person = Person::new(by, *role);
                self.decide_all(call_ids.as_deref(), *approved, reason.as_deref(), person)?;
            }
            Command::WithGesture { gesture, decision } => {
                self.gesture = Some(gesture.clone());
                let decided = self.follow(decision);
                self.gesture = None;
                decided?;
            }
            Command::DryRun {
                call,
                digest,
                by,
                role,
            } => {
                let person = Person::new(by, *role);
                dry_run::begin(self, call, digest.as_ref(), person)?;
            }
            Command::DropDryRun { call, by, role } => {
                let person = Person::new(by, *role);
                dry_run::discard(self, call, person)?;
            }
            Command::DryRunEnded { call, report } => dry_run::ended(self, call, report),
            Command::StopCall { call } => self.stop_call(call)?,
            Command::ResolveUnknown { call, happened, by } => {
                recovery::resolve_unknown(self, call, *happened, by)?;
            }
            Command::Stop {
                turn,
                said_so_far,
                thought_so_far,
                spent,
            } => {
                let (said, thought) = (said_so_far.as_deref(), thought_so_far.as_ref());
                self.stop(*turn, said, thought, spent);
            }
            Command::TimeOut { turn, limit, spent } => self.time_out(*turn, *limit, spent),
            Command::Retry => self.retry()?,
            Command::Withdraw { client_message_id } => self.withdraw(client_message_id)?,
            Command::ResetContext => self.reset_context()?,
            Command::Rename { title } => title::rename(self, title)?,
            Command::ChooseModel { model } => self.choose_model(model)?,
            Command::UpdateAssistant { assistant, by } => {
                assistant::update(self, assistant, by)?;
            }
            Command::ChooseWindow { whole } => self.choose_window(*whole),
            Command::ChooseCompaction { strategies } => {
                self.choose_compaction(strategies.as_deref())?;
            }
            Command::Answered { request, answer } => self.answered(*request, answer),
            Command::ModelFailed { request, failure } => self.model_failed(*request, failure),
            Command::Overflowed {
                request,
                cut,
                spent,
            } => self.overflowed(*request, *cut, spent),
            Command::AttachmentPlaced {
                request,
                id,
                name,
                path,
            } => self.attachment_placed(*request, id, name, path),
            Command::Titled { title, spent } => title::titled(self, title.as_deref(), spent),
            Command::Reviewed {
                call,
                review,
                spent,
            } => rules::reviewed(self, call, review, spent),
            Command::WorkspaceCopied { outcome } => fork::workspace_copied(self, *outcome),
            Command::CallEnded {
                call,
                outcome,
                duration_ms,
            } => self.call_ended(call, outcome, *duration_ms),
            Command::CallByView(asked) => views::call(self, asked)?,
            Command::CloseView { view, request } => views::close(self, view, request.as_deref()),
            Command::TaskCreated { call, task } => recovery::task_created(self, call, task),
            Command::Elicit(asked) => elicitation::ask(self, asked),
            Command::AnswerElicitation(reply) => elicitation::answer(self, reply)?,
            Command::OpenElicitation { id, by } => elicitation::go_to_page(self, id, by)?,
            Command::CompleteElicitation { id } => {
                elicitation::close_one(self, id, ElicitationEnd::Completed);
            }
            Command::WithdrawElicitation { id } => {
                elicitation::close_one(self, id, ElicitationEnd::Withdrawn);
            }
            Command::Sampled {
                id,
                turn,
                result,
                spent,
            } => {
                self.spend(*turn, spent);
                let failed = sampling::sampled(self, id, result);
                let failed = failed.into_iter().collect();
                elicitation::close(self, failed, ElicitationEnd::Failed);
            }
            Command::GiveRule { rule, by } => rules::give_rule(self, rule, by)?,
            Command::TakeRuleBack { id, by } => rules::take_rule_back(self, id, by)?,
            Command::HostRefused(refusal) => rules::host_refused(self, refusal),
            Command::ReviewCalls => rules::review_calls(self),
            Command::TakeOver { from } => recovery::take_over(self, from.as_ref()),
        }
        Ok(())
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

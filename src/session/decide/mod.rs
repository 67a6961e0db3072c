//! Commands to events: the rules of the approval queue, of turns, and of recovery.

mod queue;
mod recovery;
mod turn;

use super::command::{Command, Genesis, Refusal};
use super::event::Event;
use super::policy::Rules;
use super::state::Control;
use crate::domain::{Code, Timestamp};

/// What `decide` may look at beside state and command.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The rules in force.
    pub rules: &'a Rules,
    /// The time of the decision.
    pub now: Timestamp,
    /// What the session is created with, should this be its first command.
    pub genesis: &'a Genesis,
}

/// Decides what happens. No events = the command changes nothing and is answered with success
/// (a repeat, or an outcome that came too late).
pub fn decide(
    control: &Control,
    command: &Command,
    inputs: Inputs<'_>,
) -> Result<Vec<Event>, Refusal> {
    let mut draft = Draft::new(control, inputs);
    match command {
        Command::Open { title } => draft.open(title.as_deref()),
        Command::Say {
            text,
            author,
            client_message_id,
        } => {
            draft.say(text, author, client_message_id.as_deref())?;
        }
        Command::Decide(decision) => draft.decide_call(decision)?,
        Command::DecideAll {
            call_ids,
            approved,
            reason,
            by,
        } => {
            draft.decide_all(call_ids.as_deref(), *approved, reason.as_deref(), by)?;
        }
        Command::StopCall { call } => draft.stop_call(call)?,
        Command::Settle { call, happened, by } => draft.settle(call, *happened, by)?,
        Command::Stop { turn, said_so_far } => draft.stop(*turn, said_so_far.as_deref()),
        Command::Retry => draft.retry()?,
        Command::Withdraw { client_message_id } => draft.withdraw(client_message_id)?,
        Command::ResetContext => draft.reset_context()?,
        Command::Rename { title } => draft.rename(title)?,
        Command::ChooseModel { model } => draft.choose_model(model),
        Command::Answered {
            turn,
            iteration,
            answer,
        } => draft.answered(*turn, *iteration, answer),
        Command::ModelFailed {
            turn,
            iteration,
            failure,
        } => {
            draft.model_failed(*turn, *iteration, failure);
        }
        Command::Overflowed {
            turn,
            iteration,
            kept,
            before,
            after,
        } => draft.overflowed((*turn, *iteration), *kept, (*before, *after)),
        Command::CallEnded {
            call,
            outcome,
            duration_ms,
        } => {
            draft.call_ended(call, outcome, *duration_ms);
        }
        Command::TakeOver { owner } => draft.take_over(owner),
    }
    Ok(draft.events)
}

/// Events in the making, with the control state that they lead to.
struct Draft<'a> {
    control: Control,
    events: Vec<Event>,
    inputs: Inputs<'a>,
}

impl<'a> Draft<'a> {
    fn new(control: &Control, inputs: Inputs<'a>) -> Self {
        Self {
            control: control.clone(),
            events: Vec::new(),
            inputs,
        }
    }

    fn push(&mut self, event: Event) {
        self.control.evolve(&event, self.inputs.now);
        self.events.push(event);
    }

    /// The first event of a session that is not stored yet.
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

    fn open(&mut self, title: Option<&str>) {
        if self.control.version > 0 {
            return;
        }
        self.create();
        if let Some(title) = title {
            self.push(Event::TitleSet {
                title: title.to_owned(),
            });
        }
    }
}

fn nothing_to_do(message: &str) -> Refusal {
    Refusal::new(Code::NothingToDo, message)
}

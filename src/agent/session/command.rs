//! Makes the command of a submission: adds what only the session's task knows, and refuses what only the session
//! can refuse.

use serde_json::Value;

use super::replica::Replica;
use crate::agent::assistants;
use crate::agent::effects::Running;
use crate::agent::effects::model_request::meter::seen;
use crate::agent::effects::tool_call::proposal::propose_for_view;
use crate::agent::feed::running_answer::RunningAnswer;
use crate::agent::request::{SessionAction, Submission, ViewRequest};
use crate::domain::TurnId;
use crate::mcp::Form;
use crate::session::{
    Command, Decision, Edit, ElicitationAction, ElicitationReply, Refusal, ViewCall,
};

/// Makes the command of a submission, with what the session's state and running effects say about its action.
/// Refuses what only the session can refuse.
pub(super) fn of_submission(
    submission: Submission,
    replica: &Replica,
    running: &mut Running,
) -> Result<Command, Refusal> {
    let command = of_action(submission.action, replica, running)?;
    Ok(match submission.gesture {
        Some(gesture) => Command::WithGesture {
            gesture,
            decision: Box::new(command),
        },
        None => command,
    })
}

/// Makes the command of an action.
pub(super) fn of_action(
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
        // The task looks the version up first, and asks with a command.
        SessionAction::UpdateAssistant { .. } => return Err(assistants::no_assistant()),
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
    let tenant = &replica.key.tenant;
    providers.check_open((tenant, &replica.owner().id), replica.choice())?;
    let missing = providers.missing_key(tenant, replica.choice());
    missing.map_or(Ok(()), Err)
}

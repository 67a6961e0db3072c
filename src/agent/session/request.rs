//! Turns a door's request into a command: adds what only the session knows, and refuses what only the session
//! can refuse.

use super::replica::Replica;
use crate::agent::effects::Running;
use crate::agent::effects::model_request::meter::seen;
use crate::agent::effects::tool_call::proposal::propose_for_view;
use crate::agent::feed::running_answer::RunningAnswer;
use crate::agent::mailbox::{SessionRequest, ViewRequest};
use crate::mcp::Form;
use crate::session::{Command, Edit, ElicitationAction, ElicitationReply, Refusal, ViewCall};

/// Completes the request, or refuses it.
pub(super) fn prepare(
    request: SessionRequest,
    replica: &Replica,
    running: &mut Running,
) -> Result<Command, Refusal> {
    let command = match request {
        SessionRequest::Choose(wanted) => {
            let providers = &replica.agent.providers;
            let current = Some(replica.choice());
            let whose = (&replica.key.tenant, &replica.owner().id);
            let model = providers.choose(whose, &wanted, current)?;
            Command::ChooseModel { model }
        }
        SessionRequest::Decide { mut decision, args } => {
            let call = replica.state.control.call(&decision.call);
            let is_repeat = call.zip(args.as_ref()).is_some_and(|(call, args)| {
                !call.is_pending() && call.original_args.is_some() && call.args == *args
            });
            if is_repeat {
                // The digest that came with it is that of the unchanged call, so drop it. A call that was
                // taken back is shown anew.
                decision.digest = None;
            }
            decision.edit = args.and_then(|args| match call {
                Some(call) => (call.args != args).then(|| replica.agent.tools.edit(call, args)),
                None => replica
                    .state
                    .control
                    .past_decision(&decision.call)
                    .map(|past| Edit::of_past(past, args)),
            });
            Command::Decide(decision)
        }
        SessionRequest::Command(Command::AnswerElicitation(reply)) => {
            let invalid = problem_with(&reply, replica);
            Command::AnswerElicitation(ElicitationReply { invalid, ..reply })
        }
        SessionRequest::Command(Command::Stop { turn, .. }) => {
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
            let (said_so_far, thought_so_far) =
                said.map_or((None, None), RunningAnswer::into_parts);
            let seen = seen(said_so_far.as_deref(), thought_so_far.as_ref());
            let spent = is_this.then(|| replica.spent(meter.as_deref(), &seen));
            Command::Stop {
                turn,
                said_so_far,
                thought_so_far,
                spent: spent.unwrap_or_default(),
            }
        }
        SessionRequest::CallByView(asked) => called_by_view(*asked, replica),
        SessionRequest::WithGesture { decision, gesture } => Command::WithGesture {
            gesture,
            decision: Box::new(prepare(*decision, replica, running)?),
        },
        // The proof was used up before the request came here.
        SessionRequest::WithProof { decision, .. } => prepare(*decision, replica, running)?,
        SessionRequest::Command(command) | SessionRequest::Say { say: command, .. } => command,
    };
    can_be_answered(&command, replica)?;
    Ok(command)
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
    let providers = &replica.agent.providers;
    let missing = providers.missing_key(&replica.key.tenant, replica.choice());
    missing.map_or(Ok(()), Err)
}

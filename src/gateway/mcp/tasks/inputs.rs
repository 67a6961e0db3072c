//! Builds the requests of a task for input (`inputRequests` of `tasks/get`), and reads the responses
//! (`inputResponses` of `tasks/update`): approvals of calls, and the forms of servers.

use std::sync::Arc;

use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, InputRequest, InputRequests, InputResponses,
};

use crate::agent::{QueueState, SessionRequest};
use crate::config::ApprovalWay;
use crate::domain::{Caller, KeyScope};
use crate::gateway::mcp::Exposure;
use crate::gateway::mcp::approval::{answer_of, form_of_call, form_of_question, verdict_of};
use crate::gateway::mcp::missing::Missing;
use crate::gateway::mcp::question::decision;
use crate::session::{Call, Command, Elicitation, ElicitationReply, SamplingReply};

/// A request for input from the person at the client.
pub(super) struct PersonInput {
    /// The key of the request, which is never reused for another one.
    pub(super) name: String,
    form: ElicitRequestParams,
    about: About,
}

enum About {
    Call(Arc<Call>),
    Question(Arc<Elicitation>),
}

/// The key of a request, and the request to the session that its response leads to; `None` if the form was
/// cancelled.
type InputResponse = (String, Option<SessionRequest>);

/// The key contains the digest, because an approval is for the call as it was shown.
pub(super) fn name_of_call(call: &Call) -> String {
    let digest = call.digest().map(|digest| digest.as_str().to_owned());
    format!("{}/{}", call.id, digest.unwrap_or_default())
}

pub(super) fn name_of_question(asked: &Elicitation) -> String {
    asked.id.to_string()
}

/// Returns the requests that wait for the caller, if `agent.approval` lets the client ask.
pub(super) fn asked(exposure: &Exposure, caller: &Caller, queue: &QueueState) -> Vec<PersonInput> {
    if !lets_ask(exposure) || !caller.has_scope(KeyScope::Decide) {
        return Vec::new();
    }
    let waits_for_caller = |call: &&Arc<Call>| {
        let is_theirs = match Missing::of(caller, call) {
            Some(missing) => exposure.has_page && !missing.is_for_page(),
            None => true,
        };
        // A caller who has approved already waits for somebody else.
        let has_said = call.consents.iter().any(|it| it.by.id == caller.user.id);
        // Calls of views are decided in the page.
        call.is_pending() && call.origin.is_none() && is_theirs && !has_said
    };
    let calls = queue.calls.iter().filter(waits_for_caller);
    let calls = calls.filter_map(|call| {
        Some(PersonInput {
            name: name_of_call(call),
            form: form_of_call(call).ok().flatten()?,
            about: About::Call(Arc::clone(call)),
        })
    });
    let questions = queue.elicitations.iter().filter_map(|asked| {
        Some(PersonInput {
            name: name_of_question(asked),
            form: form_of_question(asked)?,
            about: About::Question(Arc::clone(asked)),
        })
    });
    calls.chain(questions).collect()
}

/// True if `elicit` precedes any way that decides by itself or leaves everything to the page.
fn lets_ask(exposure: &Exposure) -> bool {
    for way in &exposure.approval {
        match way {
            ApprovalWay::Elicit => return true,
            ApprovalWay::Web if exposure.has_page => return false,
            ApprovalWay::Deny | ApprovalWay::Auto => return false,
            ApprovalWay::Web => {}
        }
    }
    false
}

/// Converts the requests to the form of the protocol.
pub(super) fn requests(asked: Vec<PersonInput>) -> InputRequests {
    let forms = asked.into_iter().map(|asked| {
        let form = InputRequest::Elicitation(ElicitRequest::new(asked.form));
        (asked.name, form)
    });
    forms.collect()
}

/// Reads responses, and ignores those without a pending request. The error names the response that cannot be
/// read.
pub(super) fn read(
    asked: &[PersonInput],
    caller: &Caller,
    answers: InputResponses,
) -> Result<Vec<InputResponse>, String> {
    let mut said = Vec::new();
    for (name, answer) in answers {
        let Some(asked) = asked.iter().find(|asked| asked.name == name) else {
            tracing::info!(%name, "An answer of a client came too late, or to no question");
            continue;
        };
        let answer: ElicitResult = serde_json::from_value(answer)
            .map_err(|error| format!("`{name}` is no result of an elicitation: {error}"))?;
        let request = match &asked.about {
            About::Call(call) => verdict_of(&answer).map(|verdict| decision(call, verdict, caller)),
            About::Question(question) => answer_of(question, answer)
                .map_err(|problem| format!("`{name}` does not fit its form: {problem}"))?
                .map(|answer| {
                    Command::AnswerElicitation(ElicitationReply {
                        id: question.id.clone(),
                        answer,
                        by: caller.actor(),
                        invalid: None,
                        sampling: SamplingReply::default(),
                    })
                    .into()
                }),
        };
        said.push((name, request));
    }
    Ok(said)
}

//! What a task wants to know (`inputRequests` of `tasks/get`), and the answers to it (`inputResponses`
//! of `tasks/update`): whether calls may run, and the forms of servers.

use std::sync::Arc;

use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, InputRequest, InputRequests, InputResponses,
};

use crate::agent::{QueueState, SessionRequest};
use crate::config::ApprovalWay;
use crate::domain::Caller;
use crate::gateway::mcp::Exposure;
use crate::gateway::mcp::approval::{answer_of, form_of_call, form_of_question, verdict_of};
use crate::gateway::mcp::missing::Missing;
use crate::gateway::mcp::question::decision;
use crate::session::{Call, Command, Elicitation, ElicitationReply, SamplingReply};

/// Something that the person at the client is asked.
pub(super) struct Asked {
    /// Its key, never used again for anything else.
    pub(super) name: String,
    form: ElicitRequestParams,
    about: About,
}

enum About {
    Call(Arc<Call>),
    Question(Arc<Elicitation>),
}

/// What the session is told for the answer to something, by its name; none = it was put away.
type Said = (String, Option<SessionRequest>);

/// The digest belongs to the key: a yes is for the call as it was shown.
pub(super) fn name_of_call(call: &Call) -> String {
    let digest = call.digest().map(|digest| digest.as_str().to_owned());
    format!("{}/{}", call.id, digest.unwrap_or_default())
}

pub(super) fn name_of_question(asked: &Elicitation) -> String {
    asked.id.to_string()
}

/// What waits for the caller, as far as `agent.approval` lets the client ask.
pub(super) fn asked(exposure: &Exposure, caller: &Caller, queue: &QueueState) -> Vec<Asked> {
    if !lets_ask(exposure) {
        return Vec::new();
    }
    let waits_for_caller = |call: &&Arc<Call>| {
        let is_theirs = match Missing::of(caller, call) {
            Some(missing) => exposure.has_page && !missing.is_for_page(),
            None => true,
        };
        // Whoever has said yes waits for somebody else.
        let has_said = call.consents.iter().any(|it| it.by.id == caller.user.id);
        // What a view asks for is the page's.
        call.is_pending() && call.origin.is_none() && is_theirs && !has_said
    };
    let calls = queue.calls.iter().filter(waits_for_caller);
    let calls = calls.filter_map(|call| {
        Some(Asked {
            name: name_of_call(call),
            form: form_of_call(call).ok().flatten()?,
            about: About::Call(Arc::clone(call)),
        })
    });
    let questions = queue.elicitations.iter().filter_map(|asked| {
        Some(Asked {
            name: name_of_question(asked),
            form: form_of_question(asked)?,
            about: About::Question(Arc::clone(asked)),
        })
    });
    calls.chain(questions).collect()
}

/// Whether `elicit` comes before whatever decides by itself or leaves everything to the page.
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

/// The forms, as the client is given them.
pub(super) fn requests(asked: Vec<Asked>) -> InputRequests {
    let forms = asked.into_iter().map(|asked| {
        let form = InputRequest::Elicitation(ElicitRequest::new(asked.form));
        (asked.name, form)
    });
    forms.collect()
}

/// Reads answers; what nobody asks (any more) is left out. An error says which answer cannot be read.
pub(super) fn read(
    asked: &[Asked],
    caller: &Caller,
    answers: InputResponses,
) -> Result<Vec<Said>, String> {
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
                    SessionRequest::Command(Command::AnswerElicitation(ElicitationReply {
                        id: question.id.clone(),
                        answer,
                        by: caller.actor(),
                        invalid: None,
                        sampling: SamplingReply::default(),
                    }))
                }),
        };
        said.push((name, request));
    }
    Ok(said)
}

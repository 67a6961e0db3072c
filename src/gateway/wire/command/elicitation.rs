//! A person's answer to what a server asks.

use serde::Deserialize;
use serde_json::Value;

use super::{Parsed, body, tell};
use crate::domain::{Caller, Code, ElicitationId};
use crate::session::{Command, ElicitationAction, ElicitationAnswer, ElicitationReply, Refusal};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    elicitation_id: String,
    action: ElicitationAction,
    content: Option<Value>,
}

/// The values are checked by the session, which has the form.
pub(super) fn answer(caller: &Caller, args: &[Value]) -> Result<Parsed, Refusal> {
    let body: Answer = body(args)?;
    let wrong = |field, text: &str| Refusal::of_field(Code::InvalidArguments, field, text);
    let Some(id) = ElicitationId::parse(&body.elicitation_id) else {
        return Err(wrong("elicitationId", "`elicitationId` is not one of ours"));
    };
    let content = match (body.action, body.content) {
        (ElicitationAction::Accept, None) => {
            return Err(wrong("content", "`accept` needs `content`"));
        }
        (ElicitationAction::Accept, content) => content,
        (ElicitationAction::Decline | ElicitationAction::Cancel, _) => None,
    };
    Ok(tell(Command::AnswerElicitation(ElicitationReply {
        id,
        answer: ElicitationAnswer {
            action: body.action,
            content,
        },
        by: caller.actor(),
        invalid: None,
    })))
}

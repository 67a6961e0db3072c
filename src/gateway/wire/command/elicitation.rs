//! Parses a person's answer to a server's request.

use serde::Deserialize;
use serde_json::Value;

use super::{ParsedCommand, body, submit};
use crate::domain::{Caller, Code, Digest, ElicitationId};
use crate::session::{
    Command, ElicitationAction, ElicitationAnswer, ElicitationReply, Refusal, SamplingReply,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    elicitation_id: String,
    action: Action,
    content: Option<Value>,
    digest: Option<String>,
    review: Option<bool>,
}

/// The actions of a person: those of MCP, and opening a page.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Action {
    Open,
    Accept,
    Decline,
    Cancel,
}

/// Parses an answer. The session checks its values, because the session has the form.
pub(super) fn answer(caller: &Caller, args: &[Value]) -> Result<ParsedCommand, Refusal> {
    let body: Answer = body(args)?;
    let wrong = |field, text: &str| Refusal::of_field(Code::InvalidArguments, field, text);
    let Some(id) = ElicitationId::parse(&body.elicitation_id) else {
        return Err(wrong("elicitationId", "`elicitationId` is not one of ours"));
    };
    let (action, content) = match body.action {
        Action::Open => {
            let by = caller.actor();
            return Ok(submit(Command::OpenElicitation { id, by }));
        }
        Action::Accept => (ElicitationAction::Accept, body.content),
        Action::Decline => (ElicitationAction::Decline, None),
        Action::Cancel => (ElicitationAction::Cancel, None),
    };
    Ok(submit(Command::AnswerElicitation(ElicitationReply {
        id,
        answer: ElicitationAnswer { action, content },
        by: caller.actor(),
        invalid: None,
        sampling: SamplingReply {
            digest: body.digest.map(Digest::from_wire),
            skips_review: body.review == Some(false),
        },
    })))
}

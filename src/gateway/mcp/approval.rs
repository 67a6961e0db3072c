//! Asks the person at an MCP client by elicitation: about approving a call, and for a server's elicitation.

use std::time::Duration;

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use rmcp::service::{ElicitationMode, Peer, RoleServer};
use serde_json::{Value, json};

use super::shown::shown;
use crate::domain::CallId;
use crate::mcp::Form;
use crate::session::{self, Call, Elicitation, ElicitationAnswer};

/// The time that a person has to answer, before the next way of approval is used.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);
/// The maximum number of characters of a call in a form. A form is not suited for long text, and nobody sees
/// the part that a client cuts off: longer calls are not asked there.
const MOST_SHOWN: usize = 8_000;

/// The decision about a call by a person at the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// True if the call may run.
    pub approved: bool,
    /// The reason, which the model reads.
    pub reason: Option<String>,
}

/// The result of asking a person at the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoorReply {
    /// The person decided.
    Verdict(Verdict),
    /// Nobody can be asked there, or the client left.
    Nobody,
    /// The call is too long to be shown there as a whole.
    TooLong {
        chars: usize,
        /// The maximum number of characters that can be shown.
        most: usize,
    },
}

/// Marks a request whose client is sent its answer alone: requests of the server would not reach the client.
#[derive(Debug, Clone, Copy)]
pub(super) struct HearsOnlyAnswers;

/// Asks the person at the client; [`DoorReply::Nobody`] if the client cannot ask or sent no usable answer.
pub(super) async fn elicit(peer: &Peer<RoleServer>, call: &Call) -> DoorReply {
    let modes = peer.supported_elicitation_modes();
    if !modes.contains(&ElicitationMode::Form) {
        return DoorReply::Nobody;
    }
    match form_of_call(call) {
        Ok(Some(form)) => match heard(peer, &call.id, form).await {
            Some(answer) => verdict_of(&answer).map_or(DoorReply::Nobody, DoorReply::Verdict),
            None => DoorReply::Nobody,
        },
        Ok(None) => DoorReply::Nobody,
        Err(too_long) => too_long,
    }
}

/// Passes a server's form to the client. An answer that does not match the schema declines, because the
/// person has already closed the form.
pub(super) async fn pass_on(
    peer: &Peer<RoleServer>,
    asked: &Elicitation,
) -> Option<ElicitationAnswer> {
    if !peer
        .supported_elicitation_modes()
        .contains(&ElicitationMode::Form)
    {
        return None;
    }
    let form = form_of_question(asked)?;
    let answer = heard(peer, &asked.call, form).await?;
    answer_of(asked, answer).unwrap_or_else(|problem| {
        tracing::info!(call.id = %asked.call, %problem, "The client's answer does not fit");
        Some(DECLINED)
    })
}

const DECLINED: ElicitationAnswer = ElicitationAnswer {
    action: session::ElicitationAction::Decline,
    content: None,
};

/// Builds the form that asks whether a call may run, with the whole call. `None` if the schema cannot be
/// built; an error if the call is too long to be shown.
pub(super) fn form_of_call(call: &Call) -> Result<Option<ElicitRequestParams>, DoorReply> {
    let message = message(call).map_err(|chars| DoorReply::TooLong {
        chars,
        most: MOST_SHOWN,
    })?;
    Ok(
        schema().map(|schema| ElicitRequestParams::FormElicitationParams {
            meta: None,
            message,
            requested_schema: schema,
        }),
    )
}

/// Builds the form of a server's elicitation. `None` for a page, which is opened where Sepal shows its whole
/// address, and for a sampling request, which is allowed where Sepal shows the whole request.
pub(super) fn form_of_question(asked: &Elicitation) -> Option<ElicitRequestParams> {
    if asked.url.is_some() || asked.sampling.is_some() {
        return None;
    }
    let schema = serde_json::from_value::<ElicitationSchema>(asked.schema.clone());
    let mut schema = schema
        .inspect_err(|error| tracing::error!(%error, "A form of a server cannot be passed on"))
        .ok()?;
    schema.property_order = Some(asked.order.clone());
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!(
            "The MCP server {} asks, in its own words:\n\n{}",
            asked.server, asked.message
        ),
        requested_schema: schema,
    })
}

/// Reads the answer to the form of a call; `None` if the form was cancelled.
pub(super) fn verdict_of(answer: &ElicitResult) -> Option<Verdict> {
    match answer.action {
        ElicitationAction::Accept => Some(accepted(answer.content.as_ref())),
        ElicitationAction::Decline => Some(Verdict {
            approved: false,
            reason: Some("the person at the client declined".to_owned()),
        }),
        // An unknown action of a later revision does not decide either.
        ElicitationAction::Cancel | _ => None,
    }
}

/// Reads the answer to a server's form; `None` if the form was cancelled, and an error if the content does
/// not match the schema.
pub(super) fn answer_of(
    asked: &Elicitation,
    answer: ElicitResult,
) -> Result<Option<ElicitationAnswer>, String> {
    match (answer.action, answer.content) {
        (ElicitationAction::Accept, Some(content)) => {
            if let Some(problem) = Form::problem_with(&asked.schema, &content) {
                return Err(problem);
            }
            Ok(Some(ElicitationAnswer {
                action: session::ElicitationAction::Accept,
                content: Some(content),
            }))
        }
        (ElicitationAction::Accept | ElicitationAction::Decline, _) => Ok(Some(DECLINED)),
        // An unknown action of a later revision is no answer either.
        (ElicitationAction::Cancel | _, _) => Ok(None),
    }
}

async fn heard(
    peer: &Peer<RoleServer>,
    call: &CallId,
    request: ElicitRequestParams,
) -> Option<ElicitResult> {
    let asked = peer.create_elicitation_with_timeout(request, Some(PATIENCE));
    let answer = asked.await;
    answer
        .inspect_err(|error| {
            tracing::info!(call.id = %call, %error, "The client was asked and did not answer");
        })
        .ok()
}

fn accepted(content: Option<&Value>) -> Verdict {
    let field = |name: &str| content.and_then(|content| content.get(name));
    let reason = field("reason").and_then(Value::as_str).map(str::trim);
    Verdict {
        // Accepting the form without checking `approve` is not an approval.
        approved: field("approve").and_then(Value::as_bool) == Some(true),
        reason: reason
            .filter(|reason| !reason.is_empty())
            .map(str::to_owned),
    }
}

/// Formats the whole call; the error is its number of characters if it is too long.
fn message(call: &Call) -> Result<String, usize> {
    let text = format!("{}\nMay it run?", shown(call));
    let chars = text.chars().count();
    if chars > MOST_SHOWN {
        return Err(chars);
    }
    Ok(text)
}

fn schema() -> Option<ElicitationSchema> {
    let schema = json!({
        "type": "object",
        "properties": {
            "approve": { "type": "boolean", "title": "Let it run" },
            "reason": { "type": "string", "title": "Why not", "description": "The model reads it." },
        },
        "required": ["approve"],
    });
    let Value::Object(schema) = schema else {
        return None;
    };
    ElicitationSchema::from_json_schema(schema)
        .inspect_err(|error| tracing::error!(%error, "The form of approvals is wrong"))
        .ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{accepted, schema};

    #[test]
    fn only_a_plain_yes_is_a_yes() {
        assert!(schema().is_some());
        for (content, approved, reason) in [
            (json!({"approve": true}), true, None),
            (json!({"approve": true, "reason": " "}), true, None),
            (json!({"approve": false, "reason": "no"}), false, Some("no")),
            (json!({"approve": "true"}), false, None),
            (json!({}), false, None),
        ] {
            let verdict = accepted(Some(&content));
            assert_eq!(verdict.approved, approved, "{content}");
            assert_eq!(verdict.reason.as_deref(), reason, "{content}");
        }
        assert!(!accepted(None).approved);
    }
}

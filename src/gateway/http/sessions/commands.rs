//! The commands of the socket by POST, read by the same parser. The answer means "durable".

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::key_of;
use super::offers::ReadResourceRequest;
use crate::domain::{Caller, Code, Effort, SessionId};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, SessionPath};
use crate::gateway::wire::{self, Parsed};

/// A command was taken, as an acknowledgement of the socket says it.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct CommandAccepted {
    /// Always true.
    ok: bool,
    /// `seq` of the first event that it caused.
    seq: u64,
}

/// A message.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct SendMessageRequest {
    /// What to say; 256 KiB at most. It may be blank where something is attached.
    #[schema(max_length = 262_144)]
    text: String,
    /// Ids that uploads to this session gave.
    #[schema(max_items = 10)]
    attachments: Option<Vec<String>>,
    /// Resources of MCP servers that are read now and attached.
    #[schema(max_items = 10)]
    resources: Option<Vec<ReadResourceRequest>>,
    /// What views let the model know with it.
    #[schema(max_items = 4)]
    view_contexts: Option<Vec<ViewContextRequest>>,
    /// A repeat with the same id changes nothing; 128 bytes at most.
    #[schema(max_length = 128)]
    client_message_id: Option<String>,
    /// How much the model may think in the turn that takes it: `off`, `minimal`, `low`, `medium`,
    /// `high`, `max`, or tokens; none = what the session says.
    #[schema(value_type = Option<String>)]
    effort: Option<Effort>,
}

/// What the view of a call lets the model know.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct ViewContextRequest {
    /// The call whose view it is.
    call_id: String,
    /// As the person was shown it; 16 KiB at most.
    #[schema(min_length = 1, max_length = 16_384)]
    text: String,
}

/// A decision about one call or about several.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) enum DecideCallRequest {
    /// About one.
    One(DecideOne),
    /// About several.
    Several(DecideSeveral),
}

/// A decision about one call.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct DecideOne {
    /// The call.
    call_id: String,
    /// Whether it may run; `false` takes an approval back while nothing has started.
    approved: bool,
    /// In the person's words, 256 KiB at most; the model reads them.
    #[schema(max_length = 262_144)]
    reason: Option<String>,
    /// Changed arguments.
    #[schema(value_type = Option<Object>)]
    args: Option<Value>,
    /// The same as JSON text, for whoever cannot write its whole numbers exactly.
    args_text: Option<String>,
    /// With `approved: false`: only takes an approval back, however often it is sent.
    take_back: Option<bool>,
    /// What was shown.
    digest: Option<String>,
    /// With `approved: true`: the `result` of the call's dry run, which it then has without running.
    #[schema(max_length = 128)]
    dry_run: Option<String>,
    /// What `POST /api/gestures` gave for this call, where a rule wants a fresh gesture.
    #[schema(max_length = 128)]
    gesture: Option<String>,
}

/// A decision about several calls at once.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct DecideSeveral {
    /// The calls; without them all that are pending, which a rejection alone may mean.
    call_ids: Option<Vec<String>>,
    /// Whether they may run.
    approved: bool,
    /// In the person's words, 256 KiB at most; the model reads them.
    #[schema(max_length = 262_144)]
    reason: Option<String>,
    /// What `POST /api/gestures` gave for these calls, where a rule wants a fresh gesture.
    #[schema(max_length = 128)]
    gesture: Option<String>,
}

/// Say something to the agent.
#[utoipa::path(post, path = "/api/sessions/{id}/messages", tag = "sessions",
    params(("id" = String, Path)), request_body = SendMessageRequest,
    responses((status = 202, body = CommandAccepted), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn send_message(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    tell(&state, &caller, session, ("message", body)).await
}

/// Decide one call or several.
#[utoipa::path(post, path = "/api/sessions/{id}/approvals", tag = "sessions",
    params(("id" = String, Path)), request_body = DecideCallRequest,
    responses((status = 202, body = CommandAccepted), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn decide_call(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    let name = match (body.get("callId"), body.get("callIds")) {
        (Some(_), Some(_)) => {
            let text = "`callId` and `callIds` exclude each other";
            return Err(ApiError::of_field(Code::InvalidArguments, "callIds", text));
        }
        (Some(_), None) => "tool:approval",
        (None, _) => "tool:approval_all",
    };
    tell(&state, &caller, session, (name, body)).await
}

/// A call to be tried.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct DryRunRequest {
    /// The call, which waits for a decision.
    call_id: String,
    /// What was shown.
    digest: Option<String>,
}

/// Try a waiting call in a copy of the workspace. The call goes on waiting; what came of it stands on its
/// card, as `tool:queue` tells it.
#[utoipa::path(post, path = "/api/sessions/{id}/dry-runs", tag = "sessions",
    params(("id" = String, Path)), request_body = DryRunRequest,
    responses((status = 202, body = CommandAccepted), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 429, body = Problem)),
)]
pub(in crate::gateway::http) async fn begin_dry_run(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    tell(&state, &caller, session, ("tool:dry_run", body)).await
}

/// End the dry run of a call, or put its result away.
#[utoipa::path(delete, path = "/api/sessions/{id}/dry-runs/{callId}", tag = "sessions",
    params(("id" = String, Path), ("callId" = String, Path)),
    responses((status = 202, body = CommandAccepted), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn drop_dry_run(
    State(state): State<GatewayState>,
    caller: Caller,
    Path((session, call)): Path<(String, String)>,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    let unknown = || ApiError::new(Code::SessionNotFound, "there is no such session");
    let session = SessionId::parse(&session).ok_or_else(unknown)?;
    let body = serde_json::json!({ "callId": call });
    tell(&state, &caller, session, ("tool:dry_run_drop", body)).await
}

/// An answer to what a server asks.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct AnswerElicitationRequest {
    /// The question, as `elicitation:required` names it.
    #[schema(pattern = "^elc_[0-9a-f]{32}$")]
    elicitation_id: String,
    /// Of a form: `accept` with the values, `decline` to say nothing, `cancel` to close the form. Of a page:
    /// `open` when you go there, which goes on until the server says that all is done or you say it with
    /// `accept`; `decline` or `cancel` to leave it. Of a completion (`mode: sampling`): `accept` with its
    /// `digest` lets the model be asked, and, once it has answered, the server get the answer; `decline` or
    /// `cancel` refuses either.
    #[schema(pattern = "^(open|accept|decline|cancel)$")]
    action: String,
    /// A value for each field, with `accept` of a form; 64 KiB at most. They go to the server, and not to the model.
    #[schema(value_type = Option<Object>)]
    content: Option<Value>,
    /// Of a completion, with `accept`: what was shown, the `digest` of the request or of the answer.
    digest: Option<String>,
    /// Of a completion, with `accept` of the request: `false` lets the server have the answer without
    /// showing it to you first.
    review: Option<bool>,
}

/// Answer what a server asks while a call of it runs. The first answer counts.
#[utoipa::path(post, path = "/api/sessions/{id}/elicitations", tag = "sessions",
    params(("id" = String, Path)), request_body = AnswerElicitationRequest,
    responses((status = 202, body = CommandAccepted), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn answer_elicitation(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    tell(&state, &caller, session, ("elicitation:answer", body)).await
}

/// Begin a new context: the model reads nothing from before, the transcript stays.
#[utoipa::path(post, path = "/api/sessions/{id}/reset", tag = "sessions",
    params(("id" = String, Path)),
    responses((status = 202, body = CommandAccepted), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn reset_context(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    let nothing = Value::Object(serde_json::Map::new());
    tell(&state, &caller, session, ("history:reset", nothing)).await
}

async fn tell(
    state: &GatewayState,
    caller: &Caller,
    session: SessionId,
    (name, body): (&str, Value),
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    let Parsed::Tell(ask) = wire::parse(caller, name, &[body])? else {
        return Err(ApiError::new(
            Code::Internal,
            format!("`{name}` tells a session nothing"),
        ));
    };
    let accepted = state
        .sessions
        .tell(&key_of(caller, session), caller, *ask)
        .await?;
    Ok((
        StatusCode::ACCEPTED,
        Json(CommandAccepted {
            ok: true,
            seq: accepted.seq,
        }),
    ))
}

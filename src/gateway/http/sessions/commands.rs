//! Accepts the socket's commands by POST, with the same parser. A success means that the command is durable.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::key_of;
use super::offers::ReadResourceRequest;
use crate::domain::{Caller, Code, Effort, SessionId, StrategyName};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, CallPath, OptionalBody, SessionPath, required};
use crate::gateway::idempotency::RequestKey;
use crate::gateway::wire::{self, ParsedCommand};

/// An accepted command, in the form of an acknowledgement of the socket.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct CommandAccepted {
    /// Always true.
    ok: bool,
    /// The `seq` of the first event that the command caused.
    seq: u64,
}

/// A message to the agent.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct SendMessageRequest {
    /// The text, at most 256 KiB. It may be blank if something is attached.
    #[schema(max_length = 262_144)]
    text: String,
    /// The ids that uploads to this session returned.
    #[schema(max_items = 10)]
    attachments: Option<Vec<String>>,
    /// Resources of MCP servers to read now and attach.
    #[schema(max_items = 10)]
    resources: Option<Vec<ReadResourceRequest>>,
    /// The contexts that views give the model with this message.
    #[schema(max_items = 4)]
    view_contexts: Option<Vec<ViewContextRequest>>,
    /// An idempotency key, at most 128 bytes: a repeat with the same id changes nothing.
    #[schema(max_length = 128)]
    client_message_id: Option<String>,
    /// The reasoning effort of the turn that takes the message: `off`, `minimal`, `low`, `medium`, `high`,
    /// `max`, or a number of tokens; if absent, the session's.
    #[schema(value_type = Option<String>)]
    effort: Option<Effort>,
}

/// The context that the view of a call gives the model.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct ViewContextRequest {
    /// The id of the call whose view it is.
    call_id: String,
    /// The context, as the person was shown it, at most 16 KiB.
    #[schema(min_length = 1, max_length = 16_384)]
    text: String,
}

/// A decision about one call or several calls.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) enum DecideCallRequest {
    /// A decision about one call.
    One(DecideOne),
    /// A decision about several calls.
    Several(DecideSeveral),
}

/// A decision about one call.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct DecideOne {
    /// The call's id.
    call_id: String,
    /// True to approve the call. False rejects a pending call. For an approved call that has not started,
    /// false takes the approval back or, with a `reason`, rejects the call.
    approved: bool,
    /// The reason in the person's words, at most 256 KiB. The model reads it.
    #[schema(max_length = 262_144)]
    reason: Option<String>,
    /// Changed arguments; not together with `argsText`.
    #[schema(value_type = Option<Object>)]
    args: Option<Value>,
    /// Changed arguments as JSON text, for clients that cannot write large integers exactly; not together
    /// with `args`.
    args_text: Option<String>,
    /// With `approved: false`: only takes an approval back and never rejects the call, so that the request
    /// may be repeated.
    take_back: Option<bool>,
    /// The digest of the call as it was shown. A decision with another digest is refused.
    digest: Option<String>,
    /// With `approved: true`: the `result` of the call's dry run. The call gets this result and does not run.
    #[schema(max_length = 128)]
    dry_run: Option<String>,
    /// The gesture that `POST /api/gestures` returned for this call, if a rule needs a fresh gesture.
    #[schema(max_length = 128)]
    gesture: Option<String>,
}

/// A decision about several calls at once.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct DecideSeveral {
    /// The ids of the calls; required for an approval. If absent, all pending calls are rejected.
    call_ids: Option<Vec<String>>,
    /// True to approve the calls, false to reject them.
    approved: bool,
    /// The reason in the person's words, at most 256 KiB. The model reads it.
    #[schema(max_length = 262_144)]
    reason: Option<String>,
    /// The gesture that `POST /api/gestures` returned for these calls, if a rule needs a fresh gesture.
    #[schema(max_length = 128)]
    gesture: Option<String>,
}

/// Sends a message to the agent.
#[utoipa::path(post, path = "/api/sessions/{id}/messages", tag = "sessions",
    params(("id" = String, Path)), request_body = SendMessageRequest,
    responses((status = 202, body = CommandAccepted), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn send_message(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    request_key: Option<Extension<RequestKey>>,
    Body(mut body): Body<Value>,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    // A request that a crash interrupted is carried out again, and must not say the same twice.
    if let (Some(Extension(key)), Some(message)) = (request_key, body.as_object_mut()) {
        let given = message.entry("clientMessageId").or_insert(Value::Null);
        if given.is_null() {
            *given = Value::String(key.message_id());
        }
    }
    submit(&state, &caller, session, "message", body).await
}

/// Decides one call or several calls.
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
    submit(&state, &caller, session, name, body).await
}

/// A call to try.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct DryRunRequest {
    /// The id of a call that waits for a decision.
    call_id: String,
    /// The digest of the call as it was shown. A request with another digest is refused.
    digest: Option<String>,
}

/// Tries a waiting call in a copy of the workspace.
///
/// The call continues to wait. The result appears on its card, in `tool:queue`.
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
    submit(&state, &caller, session, "tool:dry_run", body).await
}

/// Ends the dry run of a call, or discards its result.
#[utoipa::path(delete, path = "/api/sessions/{id}/dry-runs/{callId}", tag = "sessions",
    params(("id" = String, Path), ("callId" = String, Path)),
    responses((status = 202, body = CommandAccepted), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn drop_dry_run(
    State(state): State<GatewayState>,
    caller: Caller,
    CallPath { session, call }: CallPath,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    let body = json!({ "callId": call });
    submit(&state, &caller, session, "tool:dry_run_drop", body).await
}

/// An answer to a question of a server.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct AnswerElicitationRequest {
    /// The question's id, as in `elicitation:required`.
    #[schema(pattern = "^elc_[0-9a-f]{32}$")]
    elicitation_id: String,
    /// The person's action, which depends on the kind of question:
    ///
    /// - A form: `accept` sends the values, `decline` refuses to give them, `cancel` closes the form.
    /// - A page: `open` says that the person goes there. The question then stays open until the server
    ///   reports that the page is completed, or until `accept`. `decline` or `cancel` leaves the page.
    /// - A completion (`mode: sampling`): `accept` with the `digest` of the request lets the model be asked,
    ///   and `accept` with the `digest` of the answer gives the answer to the server. `decline` or `cancel`
    ///   refuses either.
    #[schema(pattern = "^(open|accept|decline|cancel)$")]
    action: String,
    /// With `accept` of a form: a value for each field, at most 64 KiB. The values go to the server, not to
    /// the model.
    #[schema(value_type = Option<Object>)]
    content: Option<Value>,
    /// With `accept` of a completion: the `digest` of the request or answer that was shown.
    digest: Option<String>,
    /// With `accept` of a completion's request: `false` gives the answer to the server without showing it to
    /// the person first.
    review: Option<bool>,
}

/// Answers a question that a server asks while one of its calls runs. The first answer counts.
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
    submit(&state, &caller, session, "elicitation:answer", body).await
}

/// Begins a new context: the model reads nothing from before, and the transcript stays.
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
    submit(&state, &caller, session, "history:reset", json!({})).await
}

/// The turn to stop.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct StopTurnRequest {
    /// The turn's number, as its events have it: a turn that began since then is not stopped. If absent, the
    /// running turn.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    turn: Option<u64>,
}

/// Stops the running turn and its calls.
#[utoipa::path(post, path = "/api/sessions/{id}/stop", tag = "sessions",
    params(("id" = String, Path)), request_body = Option<StopTurnRequest>,
    responses((status = 202, body = CommandAccepted), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn stop_turn(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    OptionalBody(body): OptionalBody<Value>,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    let body = body.unwrap_or_else(|| json!({}));
    submit(&state, &caller, session, "agent:cancel", body).await
}

/// Asks the model again for its last answer.
#[utoipa::path(post, path = "/api/sessions/{id}/retry", tag = "sessions",
    params(("id" = String, Path)),
    responses((status = 202, body = CommandAccepted), (status = 403, body = Problem),
        (status = 404, body = Problem),
        (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn retry_turn(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    submit(&state, &caller, session, "turn:retry", json!({})).await
}

/// A message to take back.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct WithdrawMessageRequest {
    /// The id that the client gave the message.
    #[schema(max_length = 128)]
    client_message_id: String,
}

/// Takes back a message that waits for the next model request.
#[utoipa::path(post, path = "/api/sessions/{id}/messages/withdraw", tag = "sessions",
    params(("id" = String, Path)), request_body = WithdrawMessageRequest,
    responses((status = 202, body = CommandAccepted), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn withdraw_message(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    submit(&state, &caller, session, "message:withdraw", body).await
}

/// Stops one running call.
#[utoipa::path(post, path = "/api/sessions/{id}/calls/{call}/stop", tag = "sessions",
    params(("id" = String, Path), ("call" = String, Path)),
    responses((status = 202, body = CommandAccepted), (status = 404, body = Problem),
        (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn stop_call(
    State(state): State<GatewayState>,
    caller: Caller,
    CallPath { session, call }: CallPath,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    let body = json!({ "callId": call });
    submit(&state, &caller, session, "tool:cancel", body).await
}

/// The person's word on a call of unknown outcome.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway::http) struct ResolveCallRequest {
    /// True if the call ran.
    happened: Option<bool>,
}

/// Says whether a call of unknown outcome ran.
#[utoipa::path(post, path = "/api/sessions/{id}/calls/{call}/outcome", tag = "sessions",
    params(("id" = String, Path), ("call" = String, Path)), request_body = ResolveCallRequest,
    responses((status = 202, body = CommandAccepted), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn resolve_call(
    State(state): State<GatewayState>,
    caller: Caller,
    CallPath { session, call }: CallPath,
    Body(body): Body<ResolveCallRequest>,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    let happened = required("happened", body.happened)?;
    let body = json!({ "callId": call, "happened": happened });
    submit(&state, &caller, session, "tool:outcome", body).await
}

/// A call that a view asks for.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct ViewCallRequest {
    /// The call whose view asks.
    call_id: String,
    /// The client's own id of this showing of the view.
    #[schema(min_length = 1, max_length = 128)]
    view_id: String,
    /// The client's own id of the request: a repeat with the same id changes nothing.
    #[schema(min_length = 1, max_length = 128)]
    request_id: String,
    /// The tool, by its server's own name.
    #[schema(min_length = 1, max_length = 128)]
    name: String,
    /// The arguments, at most 64 KiB.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Value>,
}

/// Asks for a call in the place of a view. It is decided like every call.
#[utoipa::path(post, path = "/api/sessions/{id}/view-calls", tag = "sessions",
    params(("id" = String, Path)), request_body = ViewCallRequest,
    responses((status = 202, body = CommandAccepted), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem)),
)]
pub(in crate::gateway::http) async fn call_for_view(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    submit(&state, &caller, session, "view:call", body).await
}

/// A view that is no longer shown.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct CloseViewRequest {
    /// The client's own id of this showing of the view.
    #[schema(min_length = 1, max_length = 128)]
    view_id: String,
    /// The request whose call is taken back; if absent, all calls of the view.
    #[schema(min_length = 1, max_length = 128)]
    request_id: Option<String>,
}

/// Takes back those calls of a view that nobody has let run.
#[utoipa::path(post, path = "/api/sessions/{id}/view-calls/close", tag = "sessions",
    params(("id" = String, Path)), request_body = CloseViewRequest,
    responses((status = 202, body = CommandAccepted), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn close_view(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    submit(&state, &caller, session, "view:close", body).await
}

/// What answers in a session; at least one of the fields.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct ChooseModelRequest {
    /// The model.
    #[schema(max_length = 256)]
    model: Option<String>,
    /// The name of the model's provider; if absent, the provider that serves the model.
    provider: Option<String>,
    /// The reasoning effort: `off`, `minimal`, `low`, `medium`, `high`, `max`, or a number of tokens. `null`
    /// chooses what the settings say of the model; if absent, it stays.
    #[schema(value_type = Option<String>)]
    effort: Option<Effort>,
}

/// Chooses the model that answers from the next model request on.
#[utoipa::path(put, path = "/api/sessions/{id}/model", tag = "sessions",
    params(("id" = String, Path)), request_body = ChooseModelRequest,
    responses((status = 202, body = CommandAccepted), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn choose_model(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    submit(&state, &caller, session, "session:model", body).await
}

/// Takes the newest version of the session's assistant into use, from the next model request on.
#[utoipa::path(post, path = "/api/sessions/{id}/assistant", tag = "sessions",
    params(("id" = String, Path)),
    responses((status = 202, body = CommandAccepted), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn update_session_assistant(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    submit(&state, &caller, session, "session:assistant", json!({})).await
}

/// How much of the conversation the model reads.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct ChooseWindowRequest {
    /// True for as much as the model's window holds, false for as much as the settings say.
    whole: bool,
}

/// Chooses how much of the conversation the model reads from the next model request on.
#[utoipa::path(put, path = "/api/sessions/{id}/window", tag = "sessions",
    params(("id" = String, Path)), request_body = ChooseWindowRequest,
    responses((status = 202, body = CommandAccepted), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn choose_window(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    submit(&state, &caller, session, "session:window", body).await
}

/// What leaves the context if earlier turns do not fit.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `wire::parse` reads")]
pub(in crate::gateway::http) struct ChooseCompactionRequest {
    /// The strategies, applied one after the other until the rest fits, or `none` alone. Empty chooses those
    /// of the settings.
    #[schema(value_type = Vec<String>)]
    strategies: Vec<StrategyName>,
}

/// Chooses what leaves the context of a session if earlier turns do not fit.
#[utoipa::path(put, path = "/api/sessions/{id}/compaction", tag = "sessions",
    params(("id" = String, Path)), request_body = ChooseCompactionRequest,
    responses((status = 202, body = CommandAccepted), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(in crate::gateway::http) async fn choose_compaction(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    submit(&state, &caller, session, "session:compaction", body).await
}

async fn submit(
    state: &GatewayState,
    caller: &Caller,
    session: SessionId,
    name: &str,
    body: Value,
) -> Result<(StatusCode, Json<CommandAccepted>), ApiError> {
    let ParsedCommand::Submit(ask) = wire::parse(caller, name, &[body])? else {
        return Err(ApiError::new(
            Code::Internal,
            format!("`{name}` is no command to a session"),
        ));
    };
    let accepted = state
        .sessions
        .submit(&key_of(caller, session), caller, *ask)
        .await?;
    Ok((
        StatusCode::ACCEPTED,
        Json(CommandAccepted {
            ok: true,
            seq: accepted.seq,
        }),
    ))
}

//! Fresh gestures (`/api/gestures`): a passkey or the password proves that the person themselves approves.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::request::Parts;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::{CallId, Caller, Code, Digest, GestureCall, SessionId};
use crate::gateway::GatewayState;
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, required};
use crate::tenancy::{GESTURE_LIFE_MS, MOST_CALLS, Proof};

/// A call that the gesture approves, as it was shown.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ShownCall {
    #[schema(required, nullable = false, pattern = "^ses_[0-9a-f]{32}$")]
    session_id: Option<String>,
    #[schema(required, nullable = false, max_length = 128)]
    call_id: Option<String>,
    /// The digest of its card.
    #[schema(required, nullable = false, max_length = 128)]
    digest: Option<String>,
    /// Changed arguments, if it is approved with some.
    #[schema(value_type = Option<Object>)]
    args: Option<Value>,
    /// The same as JSON text, for whoever cannot write its whole numbers exactly.
    args_text: Option<String>,
}

/// What is to be approved.
#[derive(Deserialize, ToSchema)]
struct ChallengeGestureRequest {
    /// The calls; none = the gesture changes my own passkeys.
    #[schema(max_items = 256)]
    #[serde(default)]
    calls: Vec<ShownCall>,
}

/// By what I can make the gesture.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ChallengeGestureResponse {
    /// For `navigator.credentials.get`, as the JSON form of WebAuthn; `null` = I have no passkey that
    /// works at this address. Good for two minutes and one answer.
    #[schema(value_type = Option<Object>)]
    public_key: Option<Value>,
    /// Whether I have a password.
    password: bool,
    /// How long the challenge is good for.
    expires_in_seconds: u32,
}

/// What I show: the answer of a passkey, or my password with the calls that it approves.
#[derive(Deserialize, ToSchema)]
struct MakeGestureRequest {
    /// The answer of the passkey, as its JSON form. The calls are those of its challenge.
    #[schema(value_type = Option<Object>)]
    credential: Option<Value>,
    /// The password.
    #[schema(value_type = Option<String>)]
    password: Option<SecretString>,
    /// With a password: the calls; none = the gesture changes my own passkeys.
    #[schema(max_items = 256)]
    #[serde(default)]
    calls: Vec<ShownCall>,
}

/// Gestures, to be sent with decisions.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MakeGestureResponse {
    /// One for each session.
    gestures: Vec<MadeGesture>,
    /// How long they are good for.
    expires_in_seconds: u32,
}

/// A gesture for the calls of one session. It counts once.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MadeGesture {
    /// `null` = it changes my own passkeys.
    session_id: Option<String>,
    /// The `gesture` of the decision.
    gesture: String,
}

/// The routes of gestures.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(challenge_gesture))
        .routes(routes!(make_gesture))
}

/// Ask for a fresh gesture that approves calls as they were shown.
#[utoipa::path(post, path = "/api/gestures/challenge", tag = "gestures",
    request_body = ChallengeGestureRequest,
    responses((status = 200, body = ChallengeGestureResponse), (status = 400, body = Problem),
        (status = 403, body = Problem)))]
async fn challenge_gesture(
    State(state): State<GatewayState>,
    caller: Caller,
    parts: Parts,
    Body(body): Body<ChallengeGestureRequest>,
) -> Result<Json<ChallengeGestureResponse>, ApiError> {
    let calls = calls(body.calls)?;
    let relying = state.access.relying_party(&parts);
    let gestures = state.tenancy.gestures(&caller, relying.as_ref());
    let ways = gestures.challenge(&calls).await?;
    Ok(Json(ChallengeGestureResponse {
        public_key: ways.passkey,
        password: ways.has_password,
        expires_in_seconds: GESTURE_LIFE_MS / 1_000,
    }))
}

/// Make a fresh gesture. It counts once, for two minutes, and for exactly those calls.
#[utoipa::path(post, path = "/api/gestures", tag = "gestures",
    request_body = MakeGestureRequest,
    responses((status = 201, body = MakeGestureResponse), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 429, body = Problem)))]
async fn make_gesture(
    State(state): State<GatewayState>,
    caller: Caller,
    parts: Parts,
    Body(body): Body<MakeGestureRequest>,
) -> Result<(StatusCode, Json<MakeGestureResponse>), ApiError> {
    let relying = state.access.relying_party(&parts);
    let gestures = state.tenancy.gestures(&caller, relying.as_ref());
    let proofs = match (body.credential, body.password) {
        (Some(credential), None) => gestures.by_passkey(&credential).await?,
        (None, Some(password)) => {
            let calls = calls(body.calls)?;
            let peer = state.access.peer(&parts).address;
            gestures.by_password(&password, &calls, peer).await?
        }
        (Some(_), Some(_)) | (None, None) => {
            let text = "either `credential` or `password`";
            return Err(ApiError::of_field(
                Code::InvalidArguments,
                "credential",
                text,
            ));
        }
    };
    let made = MakeGestureResponse {
        gestures: proofs.into_iter().map(made).collect(),
        expires_in_seconds: GESTURE_LIFE_MS / 1_000,
    };
    Ok((StatusCode::CREATED, Json(made)))
}

fn made(proof: Proof) -> MadeGesture {
    MadeGesture {
        session_id: proof.session.map(|session| session.to_string()),
        gesture: proof.secret.expose_secret().to_owned(),
    }
}

fn calls(shown: Vec<ShownCall>) -> Result<Vec<GestureCall>, ApiError> {
    if shown.len() > MOST_CALLS {
        let text = format!("a gesture approves {MOST_CALLS} calls at most");
        return Err(ApiError::of_field(Code::TooLarge, "calls", text));
    }
    shown.into_iter().map(call).collect()
}

fn call(shown: ShownCall) -> Result<GestureCall, ApiError> {
    let wrong = |field, text: String| ApiError::of_field(Code::InvalidArguments, field, text);
    let session = required("sessionId", shown.session_id)?;
    let session = SessionId::parse(&session).ok_or_else(|| {
        wrong(
            "sessionId",
            "`sessionId` is not an id of a session".to_owned(),
        )
    })?;
    let args =
        match (shown.args, shown.args_text) {
            (args, None) => args,
            (None, Some(text)) => Some(serde_json::from_str(&text).map_err(|error| {
                wrong("argsText", format!("changed arguments are JSON: {error}"))
            })?),
            (Some(_), Some(_)) => {
                return Err(wrong("argsText", "either `args` or `argsText`".to_owned()));
            }
        };
    let (call, digest) = (
        required("callId", shown.call_id)?,
        required("digest", shown.digest)?,
    );
    for (field, text) in [("callId", &call), ("digest", &digest)] {
        if text.len() > MAX_TEXT_BYTES {
            return Err(wrong(field, format!("`{field}` is too long")));
        }
    }
    Ok(GestureCall {
        session,
        call: CallId::from_wire(call),
        digest: Digest::from_wire(digest),
        edited: args.as_ref().map(Digest::of_json),
    })
}

/// The longest call id or digest, in bytes.
const MAX_TEXT_BYTES: usize = 128;

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

/// A call to approve, as it was shown to the person.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ShownCall {
    /// The id of the call's session.
    #[schema(required, nullable = false, pattern = "^ses_[0-9a-f]{32}$")]
    session_id: Option<String>,
    /// The call's id.
    #[schema(required, nullable = false, max_length = 128)]
    call_id: Option<String>,
    /// The digest of the call's card.
    #[schema(required, nullable = false, max_length = 128)]
    digest: Option<String>,
    /// The changed arguments, if the call is approved with changes; not together with `argsText`.
    #[schema(value_type = Option<Object>)]
    args: Option<Value>,
    /// The changed arguments as JSON text, for clients that cannot write large integers exactly; not together
    /// with `args`.
    args_text: Option<String>,
}

/// The calls that a gesture is to approve.
#[derive(Deserialize, ToSchema)]
struct ChallengeGestureRequest {
    /// The calls. If absent or empty, the gesture is for changes of the caller's own passkeys.
    #[schema(max_items = 256)]
    #[serde(default)]
    calls: Vec<ShownCall>,
}

/// The ways in which the caller can make the gesture.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ChallengeGestureResponse {
    /// The options for `navigator.credentials.get`, in the JSON form of WebAuthn, valid for two minutes and
    /// one answer; `null` if the caller has no passkey that works at this address.
    #[schema(value_type = Option<Object>)]
    public_key: Option<Value>,
    /// True if the caller has a password.
    password: bool,
    /// The lifetime of the challenge in seconds.
    expires_in_seconds: u32,
}

/// The proof of presence: either the answer of a passkey, or the password with the calls that it approves.
#[derive(Deserialize, ToSchema)]
struct MakeGestureRequest {
    /// The passkey's answer, in the JSON form of WebAuthn. It approves the calls of its challenge.
    #[schema(value_type = Option<Object>)]
    credential: Option<Value>,
    /// The caller's password.
    #[schema(value_type = Option<String>)]
    password: Option<SecretString>,
    /// With a password: the calls that it approves. If absent or empty, the gesture is for changes of the
    /// caller's own passkeys.
    #[schema(max_items = 256)]
    #[serde(default)]
    calls: Vec<ShownCall>,
}

/// The gestures that were made, to be sent with decisions.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MakeGestureResponse {
    /// One gesture for each session.
    gestures: Vec<MadeGesture>,
    /// The lifetime of the gestures in seconds.
    expires_in_seconds: u32,
}

/// A gesture for the calls of one session. It works once.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MadeGesture {
    /// The session's id; `null` if the gesture is for changes of the caller's own passkeys.
    session_id: Option<String>,
    /// The value to send as `gesture` with the decision.
    gesture: String,
}

/// The routes of gestures.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(challenge_gesture))
        .routes(routes!(make_gesture))
}

/// Creates a challenge for a fresh gesture that approves calls as they were shown.
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

/// Makes a fresh gesture from a passkey's answer or a password.
///
/// The gesture works once, within two minutes, and only for exactly these calls.
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

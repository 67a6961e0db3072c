//! Fresh gestures (`/api/gestures`): a passkey, the password or a new sign-in at the person's OpenID provider proves
//! that the person themselves approves.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::response::IntoResponse;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::oidc::{self, FinishOidcRequest, OidcDoor};
use crate::domain::{CallId, Caller, Code, Digest, GestureCall, SessionId};
use crate::gateway::api_router::{ApiRouter, routes};
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Body, required};
use crate::gateway::{GatewayState, auth};
use crate::oidc::{Answer, Demand};
use crate::store::records::AccountName;
use crate::tenancy::{Confirmation, GESTURE_LIFE_MS, MOST_CALLS, Proof};

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
    /// The name of the OpenID provider at which the caller can confirm; `null` if they have a passkey or a password,
    /// or no account at a provider.
    provider: Option<String>,
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

/// The calls that are confirmed at the caller's OpenID provider.
#[derive(Deserialize, ToSchema)]
struct BeginStepUpRequest {
    /// The calls.
    #[schema(max_items = 256)]
    #[serde(default)]
    calls: Vec<ShownCall>,
}

/// The page on which the caller confirms.
#[derive(Serialize, ToSchema)]
struct BeginStepUpResponse {
    /// The address to open, at the provider.
    url: String,
}

/// The routes of gestures.
pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(challenge_gesture))
        .routes(routes!(make_gesture))
        .routes(routes!(begin_step_up))
        .routes(routes!(finish_step_up))
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
    let knows = |issuer: &str| door_of(&state, issuer).is_some();
    let ways = gestures.challenge(&calls, &knows).await?;
    let provider = ways.issuer.and_then(|issuer| door_of(&state, &issuer));
    Ok(Json(ChallengeGestureResponse {
        public_key: ways.passkey,
        password: ways.has_password,
        provider: provider.map(|(_, door)| door.name.clone()),
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
            gestures.by_password(&password, &calls).await?
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

/// Begins a confirmation at the caller's OpenID provider, for callers who have neither a passkey nor a password.
///
/// It has to end within 10 minutes, in the same browser. The provider checks anew who they are. API keys cannot do
/// this.
#[utoipa::path(post, path = "/api/gestures/provider", tag = "gestures",
    request_body = BeginStepUpRequest,
    responses((status = 200, body = BeginStepUpResponse), (status = 400, body = Problem),
        (status = 403, body = Problem), (status = 429, body = Problem),
        (status = 502, body = Problem), (status = 503, body = Problem)))]
async fn begin_step_up(
    State(state): State<GatewayState>,
    caller: Caller,
    parts: Parts,
    Body(body): Body<BeginStepUpRequest>,
) -> Result<impl IntoResponse, ApiError> {
    let calls = calls(body.calls)?;
    let gestures = state.tenancy.gestures(&caller, None);
    let knows = |issuer: &str| door_of(&state, issuer).is_some();
    let issuer = gestures.issuer(&knows).await?;
    let (id, door) = door_of(&state, &issuer).ok_or_else(no_provider)?;
    let callback = oidc::callback(&state, &parts, id)?;
    let peer = state.access.peer(&parts);
    let browser = auth::flow_cookie(&parts.headers, peer);
    let begun = gestures.begin_at_provider(id, browser, calls).await?;
    let demand = Demand::Anew {
        acr_values: &door.step_up_acr,
    };
    let url = door
        .provider
        .authorization_url(&callback, &oidc::secrets(begun.secrets), demand)
        .await
        .map_err(|error| oidc::failed(id, &error))?;
    let cookie = auth::set_flow_cookie(&begun.browser, peer)?;
    let url = BeginStepUpResponse { url: url.into() };
    Ok(([(SET_COOKIE, cookie)], Json(url)))
}

/// Makes a fresh gesture from the answer of the caller's OpenID provider, which works once, and only in the browser that
/// began.
#[utoipa::path(post, path = "/api/gestures/provider/finish", tag = "gestures",
    request_body = FinishOidcRequest,
    responses((status = 201, body = MakeGestureResponse), (status = 400, body = Problem),
        (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 502, body = Problem), (status = 503, body = Problem)))]
async fn finish_step_up(
    State(state): State<GatewayState>,
    caller: Caller,
    parts: Parts,
    Body(body): Body<FinishOidcRequest>,
) -> Result<(StatusCode, Json<MakeGestureResponse>), ApiError> {
    let peer = state.access.peer(&parts);
    let gestures = state.tenancy.gestures(&caller, None);
    let browser = auth::flow_cookie(&parts.headers, peer).unwrap_or_default();
    let flow_state = required("state", body.state)?;
    let resumed = gestures.resume_at_provider(&browser, flow_state).await?;
    let id = resumed.provider.as_str();
    let door = state.oidc.get(id).ok_or_else(no_provider)?;
    if let Some(error) = body.error {
        return Err(oidc::reported(id, &error));
    }
    let answer = Answer {
        code: required("code", body.code)?,
        issuer: body.iss,
    };
    let callback = oidc::callback(&state, &parts, id)?;
    let secrets = oidc::secrets(resumed.secrets);
    let claims = door.provider.redeem(&answer, &callback, &secrets).await;
    let claims = claims.map_err(|error| oidc::failed(id, &error))?;
    let confirmation = Confirmation {
        account: AccountName {
            issuer: claims.issuer,
            subject: claims.subject,
        },
        auth_time_s: claims.auth_time_s,
        acr: claims.acr,
    };
    let proofs = gestures
        .by_provider(&confirmation, &door.step_up_acr, &resumed.calls)
        .await?;
    let made = MakeGestureResponse {
        gestures: proofs.into_iter().map(made).collect(),
        expires_in_seconds: GESTURE_LIFE_MS / 1_000,
    };
    Ok((StatusCode::CREATED, Json(made)))
}

/// The provider with this issuer, and its id.
fn door_of<'s>(state: &'s GatewayState, issuer: &str) -> Option<(&'s str, &'s OidcDoor)> {
    let mut doors = state.oidc.iter();
    let (id, door) = doors.find(|(_, door)| door.provider.is_issuer(issuer))?;
    Some((id.as_str(), door))
}

fn no_provider() -> ApiError {
    let text = "your account's provider is not known here any more: add a passkey in the settings";
    ApiError::of_field(Code::GestureRequired, "provider", text)
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

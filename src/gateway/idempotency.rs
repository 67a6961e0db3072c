//! Answers a request that is sent again with its `Idempotency-Key` as the first time, and does nothing more
//! (draft-ietf-httpapi-idempotency-key-header).

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};
use tracing::Instrument as _;

use super::GatewayState;
use super::error::{self, ApiError};
use super::extract::is_json;
use crate::domain::{Caller, Code, KeyGrant, RequestId, Timestamp};
use crate::store::audit::acting;
use crate::store::clock::now;
use crate::store::records::{IdempotencyKeys, KeptAnswer, KeyOutcome, KeyedRequest, MOST_KEYS};

/// The header with the client's key.
pub(super) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header of an answer that was given before.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The longest key, in bytes.
const MAX_KEY: usize = 255;
/// The largest answer that is kept, in bytes. Larger ones are those of reads, which may run again.
const MAX_ANSWER: usize = 48 * 1024;
/// The time after which a request whose gateway is gone may run again.
const LEASE: Duration = Duration::from_mins(1);
/// The interval at which a running request extends its lease.
const EXTENDED_EVERY: Duration = Duration::from_secs(20);

/// Carries out a `POST` with a key at most once, as far as its answer says that it was done.
pub(super) async fn idempotent(
    State(state): State<GatewayState>,
    request: Request,
    next: Next,
) -> Response {
    if request.method() != Method::POST
        || !takes_key(request.uri().path())
        || !request.headers().contains_key(KEY)
    {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let caller = match Caller::from_request_parts(&mut parts, &state).await {
        Ok(caller) => caller,
        // Operations that need no sign-in take no key.
        Err(error) if error.code() == Code::Unauthorized => {
            return next.run(Request::from_parts(parts, body)).await;
        }
        Err(error) => return error.into_response(),
    };
    let body = match read(&state, &parts, body).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    let key = match key(&parts.headers) {
        Ok(key) => key,
        Err(error) => return error.into_response(),
    };
    let keyed = KeyedRequest {
        tenant: caller.tenant.id,
        owner: caller.user.id,
        key,
        fingerprint: fingerprint(&parts, &body, caller.grant.as_deref()),
        runner: format!("{:032x}", rand::random::<u128>()),
    };
    parts.extensions.insert(RequestKey::of(&keyed));
    match state.idempotency_keys.begin(&keyed, now(), lease()).await {
        Ok(KeyOutcome::Begun) => {}
        Ok(KeyOutcome::Answered(answer)) => return replayed(answer),
        Ok(KeyOutcome::Running) => return running().into_response(),
        Ok(KeyOutcome::Interrupted) => return interrupted().into_response(),
        Ok(KeyOutcome::OfOther) => return of_other().into_response(),
        Ok(KeyOutcome::TooMany) => return too_many().into_response(),
        Err(error) => return ApiError::from(error).into_response(),
    }
    // A task, because the request goes on if its client leaves, and its answer is kept for the next attempt.
    let keys = state.idempotency_keys.clone();
    let request = Request::from_parts(parts, Body::from(body));
    let work = async move { carry_out(keys, keyed, next.run(request)).await };
    let work = acting::carried(work).in_current_span();
    let carried_out = state.live.tasks().spawn(work);
    carried_out.await.unwrap_or_else(|_| {
        ApiError::new(Code::Internal, "a request with a key ended early").into_response()
    })
}

async fn carry_out(
    keys: IdempotencyKeys,
    keyed: KeyedRequest,
    answering: impl Future<Output = Response>,
) -> Response {
    acting::set_request(Some(keyed.clone()));
    let mut answering = std::pin::pin!(answering);
    let mut ticks = tokio::time::interval(EXTENDED_EVERY);
    ticks.tick().await;
    let response = loop {
        tokio::select! {
            response = &mut answering => break response,
            _ = ticks.tick() => warn(keys.extend(&keyed, lease()).await),
        }
    };
    // What goes on after the answer is told elsewhere.
    acting::set_request(None);
    keep(&keys, &keyed, response).await
}

/// Keeps an answer that says what was done; another one may be different next time.
async fn keep(keys: &IdempotencyKeys, keyed: &KeyedRequest, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let refused = parts.extensions.get::<ApiError>().cloned();
    let bytes = match &refused {
        // Its request id is that of the answer.
        Some(refused) => {
            error::document(refused.clone(), &RequestId::from_bits(rand::random())).into()
        }
        None => match to_bytes(body, usize::MAX).await {
            Ok(bytes) => bytes,
            Err(_) => return ApiError::new(Code::Internal, "an answer broke off").into_response(),
        },
    };
    let text = std::str::from_utf8(&bytes).ok();
    let text = text.filter(|text| text.len() <= MAX_ANSWER);
    let kept = match may_run_again(keys, keyed, parts.status).await {
        Ok(true) => Ok(()),
        Err(error) => Err(error),
        // A large answer is that of a read.
        Ok(false) => match text {
            None => keys.forget_unchanged(keyed).await.map(drop),
            Some(text) => {
                let kind = match &refused {
                    Some(_) => Some("application/problem+json".to_owned()),
                    None => header(&parts.headers, &CONTENT_TYPE).map(ToOwned::to_owned),
                };
                let answer = KeptAnswer {
                    status: parts.status.as_u16(),
                    content_type: kind,
                    body: text.to_owned(),
                };
                keys.answer(keyed, &answer).await
            }
        },
    };
    warn(kept);
    if refused.is_some() {
        // The guard renders it, with the id of this request.
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, Body::from(bytes))
}

/// Returns true if the request may run again, and forgets it then. Most refusals depend on what else happens, and did
/// nothing. A failure may come after a change; then it is the answer.
async fn may_run_again(
    keys: &IdempotencyKeys,
    keyed: &KeyedRequest,
    status: StatusCode,
) -> Result<bool, crate::store::Error> {
    let may_change = [
        StatusCode::UNAUTHORIZED,
        StatusCode::FORBIDDEN,
        StatusCode::NOT_FOUND,
        StatusCode::CONFLICT,
        StatusCode::PRECONDITION_FAILED,
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    if status.is_server_error() {
        return keys.forget_unchanged(keyed).await;
    }
    let may_run_again = may_change.contains(&status);
    if may_run_again {
        keys.forget(keyed).await?;
    }
    Ok(may_run_again)
}

fn replayed(answer: KeptAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let mut response = (status, answer.body).into_response();
    let headers = response.headers_mut();
    headers.remove(CONTENT_TYPE);
    let kind = answer
        .content_type
        .and_then(|kind| HeaderValue::try_from(kind).ok());
    if let Some(kind) = kind {
        headers.insert(CONTENT_TYPE, kind);
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

/// Reads a body that can be compared. Uploads are known by their content, so they need no key.
async fn read(
    state: &GatewayState,
    parts: &Parts,
    body: Body,
) -> Result<axum::body::Bytes, ApiError> {
    let text =
        "only requests with JSON take an `Idempotency-Key`; an upload is known by its content";
    // Before an upload is read.
    if parts.headers.contains_key(CONTENT_TYPE) && !is_json(&parts.headers) {
        return Err(wrong(text));
    }
    let bytes = to_bytes(body, state.body_limit).await;
    let bytes = bytes.map_err(|_| {
        let text = "the body is larger than the limit, or did not come whole";
        ApiError::new(Code::TooLarge, text)
    })?;
    if !bytes.is_empty() && !is_json(&parts.headers) {
        return Err(wrong(text));
    }
    Ok(bytes)
}

/// Returns the key: a quoted string, or the bare text.
fn key(headers: &HeaderMap) -> Result<String, ApiError> {
    let text = header(headers, &KEY).unwrap_or_default().trim();
    let bare = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let key = bare.unwrap_or(text);
    let is_key = (1..=MAX_KEY).contains(&key.len())
        && key
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'"');
    if is_key && headers.get_all(KEY).iter().count() == 1 {
        return Ok(key.to_owned());
    }
    Err(wrong(
        "`Idempotency-Key` is one key of 1 to 255 printable characters, such as a UUID",
    ))
}

/// Names a request with a key for its handler. Another request has another name, even with the same key on another
/// day.
#[derive(Clone)]
pub(super) struct RequestKey(String);

impl RequestKey {
    fn of(keyed: &KeyedRequest) -> Self {
        let text = format!("{} {}", keyed.fingerprint, keyed.key);
        Self(hex::encode(Sha256::digest(text)))
    }

    /// Returns the id of the message that the request sends, if it names none itself.
    pub(super) fn message_id(&self) -> String {
        format!("key_{}", self.0)
    }

    /// Returns the name of the session that the request makes. No client's name has a colon.
    pub(super) fn session_name(&self) -> String {
        format!("key:{}", self.0)
    }
}

/// True if a POST to this path may have a key. Those with passwords may not: the hash of a request is stored, and
/// answers of sign-ins are more than their body.
pub(super) fn takes_key(path: &str) -> bool {
    let is_gesture = path == "/api/gestures" || path.starts_with("/api/gestures/provider");
    !path.starts_with("/api/auth/") && !is_gesture
}

fn header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Names a request. A key with limits is not answered what another one asked.
fn fingerprint(parts: &Parts, body: &[u8], grant: Option<&KeyGrant>) -> String {
    let address = parts.uri.path_and_query().map_or("", |it| it.as_str());
    let limits = grant.map(|grant| format!("{grant:?}"));
    let asked = [parts.method.as_str().as_bytes(), address.as_bytes(), body];
    let limits = limits.iter().map(String::as_bytes);
    let mut hash = Sha256::new();
    for part in asked.into_iter().chain(limits) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

fn lease() -> Timestamp {
    Timestamp(now().0 + i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX))
}

fn warn(kept: Result<(), crate::store::Error>) {
    if let Err(error) = kept {
        tracing::warn!(%error, "The answer to a request with a key was not kept");
    }
}

fn wrong(text: &'static str) -> ApiError {
    ApiError::of_field(Code::InvalidArguments, "Idempotency-Key", text)
}

fn running() -> ApiError {
    let text = "the request with this key is still being carried out; send it again in a moment";
    ApiError::of_field(Code::KeyInUse, "Idempotency-Key", text)
}

fn interrupted() -> ApiError {
    let text = "the gateway that carried out this request stopped before it answered, and the request may have \
                changed something: read the state, and send what is missing with a new key";
    ApiError::of_field(Code::KeyInUse, "Idempotency-Key", text)
}

fn of_other() -> ApiError {
    let text = "this key belongs to another request: take a new key";
    let error = ApiError::of_field(Code::KeyInUse, "Idempotency-Key", text);
    error.with_status(StatusCode::UNPROCESSABLE_ENTITY)
}

fn too_many() -> ApiError {
    let text = format!("{MOST_KEYS} requests with a key are kept for a day; send this one without");
    ApiError::of_field(Code::TooManyRequests, "Idempotency-Key", text)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::key;

    #[test]
    fn a_key_is_one_printable_text() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("idempotency-key", HeaderValue::from_str(text).unwrap());
            key(&headers).ok()
        };
        assert_eq!(read("abc"), Some("abc".into()));
        assert_eq!(read("\"8e03978e-40d5\""), Some("8e03978e-40d5".into()));
        for wrong in ["", "\"\"", "a b", "a\"b", &"x".repeat(256)] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        let mut two = HeaderMap::new();
        two.append("idempotency-key", HeaderValue::from_static("a"));
        two.append("idempotency-key", HeaderValue::from_static("b"));
        assert!(key(&two).is_err());
    }
}

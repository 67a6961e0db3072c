//! Extracts bodies, queries and ids from requests; errors name the invalid field.

use axum::body::{Bytes, HttpBody as _};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use utoipa::{IntoParams, ToSchema};

use super::bounds::Bounds;
use super::error::ApiError;
use crate::domain::{Code, SessionId, mend_surrogates};

/// A JSON body that was checked against the bounds of its description.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned + ToSchema + 'static, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        // A foreign page can send a form without a CORS preflight, but not JSON.
        if !is_json(request.headers()) {
            let text = "the body has to be `application/json`";
            let error = ApiError::of_field(Code::InvalidArguments, "Content-Type", text);
            return Err(error.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let bytes =
            Bytes::from_request(request, state)
                .await
                .map_err(|rejection| match rejection.status() {
                    StatusCode::PAYLOAD_TOO_LARGE => {
                        ApiError::new(Code::TooLarge, "the body is larger than the limit")
                    }
                    _ => ApiError::new(Code::InvalidArguments, "the body did not arrive whole"),
                })?;
        // serde would fill a struct from a JSON array by position.
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            let text = "the body has to be a JSON object";
            return Err(ApiError::new(Code::InvalidArguments, text));
        }
        let bytes = mended(bytes);
        let mut json = serde_json::Deserializer::from_slice(&bytes);
        let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            // If the text is not JSON at all, there is no field to name.
            let path = error.inner().is_data().then(|| error.path().to_string());
            wrong(path, &error.into_inner())
        })?;
        json.end()
            .map_err(|error| ApiError::new(Code::InvalidArguments, error.to_string()))?;
        let whole = serde_json::from_slice(&bytes)
            .map_err(|error| ApiError::new(Code::InvalidArguments, error.to_string()))?;
        Bounds::of_body::<T>().check(&whole)?;
        Ok(Self(read))
    }
}

/// Replaces half characters, which JavaScript writes for a text that was cut inside of an emoji.
fn mended(bytes: Bytes) -> Bytes {
    let text = std::str::from_utf8(&bytes).ok();
    text.and_then(mend_surrogates).map_or(bytes, Bytes::from)
}

/// An optional JSON body.
pub(super) struct OptionalBody<T>(pub(super) Option<T>);

impl<T: DeserializeOwned + ToSchema + 'static, S: Send + Sync> FromRequest<S> for OptionalBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        if request.body().is_end_stream() {
            return Ok(Self(None));
        }
        let Body(body) = Body::from_request(request, state).await?;
        Ok(Self(Some(body)))
    }
}

/// The query of the address, checked against the bounds of its description.
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned + IntoParams + 'static, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        let read = serde_path_to_error::deserialize(serde_urlencoded::Deserializer::new(pairs));
        let read =
            read.map_err(|error| wrong(Some(error.path().to_string()), &error.into_inner()))?;
        Bounds::of_query::<T>().check_query(pairs)?;
        Ok(Self(read))
    }
}

/// The session of `/api/sessions/{id}`. An invalid id is answered like an unknown session.
pub(super) struct SessionPath(pub(super) SessionId);

impl<S: Send + Sync> FromRequestParts<S> for SessionPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let id = Path::<String>::from_request_parts(parts, state).await.ok();
        let id = id.and_then(|Path(id)| SessionId::parse(&id));
        let unknown = || ApiError::new(Code::SessionNotFound, "there is no such session");
        id.map(Self).ok_or_else(unknown)
    }
}

/// The session and the call of an address such as `/api/sessions/{id}/calls/{call}/stop`.
pub(super) struct CallPath {
    pub(super) session: SessionId,
    pub(super) call: String,
}

impl<S: Send + Sync> FromRequestParts<S> for CallPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let ids = Path::<(String, String)>::from_request_parts(parts, state).await;
        let found = ids.ok().and_then(|Path((session, call))| {
            let session = SessionId::parse(&session)?;
            Some(Self { session, call })
        });
        let unknown = || ApiError::new(Code::SessionNotFound, "there is no such session");
        found.ok_or_else(unknown)
    }
}

/// Unwraps a required field. Required fields are `Option`s for serde, because serde's own error for a
/// missing field does not name its path.
pub(super) fn required<T>(field: &'static str, value: Option<T>) -> Result<T, ApiError> {
    let missing = || {
        ApiError::of_field(
            Code::InvalidArguments,
            field,
            format!("`{field}` is missing"),
        )
    };
    value.ok_or_else(missing)
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let kind = value
        .and_then(|value| value.split(';').next())
        .unwrap_or_default()
        .trim();
    kind.eq_ignore_ascii_case("application/json")
}

fn wrong(path: Option<String>, error: &impl ToString) -> ApiError {
    match path.filter(|path| path != ".") {
        Some(path) => ApiError::of_field(Code::InvalidArguments, path, error.to_string()),
        None => ApiError::new(Code::InvalidArguments, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;

    use super::mended;

    #[test]
    fn half_an_emoji_in_a_body_loses_nothing_else() {
        for (body, expected) in [
            (r#"{"text":"cut \ud83d"}"#, r#"{"text":"cut \ufffd"}"#),
            (r#"{"text":"\ud83d\ude00"}"#, r#"{"text":"\ud83d\ude00"}"#),
        ] {
            assert_eq!(mended(Bytes::from(body)), expected);
        }
        assert_eq!(
            mended(Bytes::from_static(b"\xff\\ud83d")),
            &b"\xff\\ud83d"[..]
        );
    }
}

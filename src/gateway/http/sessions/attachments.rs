//! Uploads attachments to a session, and serves their content to callers who may see the session.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::key_of;
use crate::domain::{Attachment, BlobId, Caller, Code, ResourceRef, SessionId};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::{Query, SessionPath};

/// The content security policy: nothing in the file may run or load, whatever type a browser assumes.
pub(super) const POLICY: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";
/// Immutable, because the address names the content; private, because the content is nobody else's.
const CACHE: &str = "private, max-age=31536000, immutable";

/// An attachment of a session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct AttachmentItem {
    /// The SHA-256 of the stored content, in hex. A message names it in `attachments`.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    id: String,
    /// The file name for people.
    name: String,
    /// The media type, determined from the bytes: `image/png`, `image/jpeg`, `application/pdf` or
    /// `text/plain`; for content from a server also `audio/wav`, `audio/mpeg`, `audio/ogg`, `audio/flac` or
    /// `application/octet-stream`.
    media_type: &'static str,
    /// The size of the stored content in bytes.
    bytes: u64,
    /// The width of an image in pixels; `null` for anything else.
    width: Option<u32>,
    /// The height of an image in pixels; `null` for anything else.
    height: Option<u32>,
    /// The resource of an MCP server that the content was read from; absent if it was not read from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<ResourceSource>,
}

/// The resource that an attachment was read from.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct ResourceSource {
    /// The server's name.
    server: String,
    /// The resource's address at the server.
    uri: String,
}

impl AttachmentItem {
    pub(super) fn of(attachment: Attachment) -> Self {
        Self {
            id: attachment.id.to_string(),
            name: attachment.name,
            media_type: attachment.media_type.as_str(),
            bytes: attachment.bytes,
            width: attachment.width,
            height: attachment.height,
            source: attachment.source.map(|source| {
                let ResourceRef { server, uri } = *source;
                ResourceSource { server, uri }
            }),
        }
    }
}

/// The name of an attachment.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct AttachmentQuery {
    /// The file name. It does not affect the media type, which is determined from the bytes.
    #[param(max_length = 1024)]
    name: Option<String>,
}

/// Attaches a file to a session: a PNG, JPEG, GIF or WebP image, a PDF, or UTF-8 text, as the body.
#[utoipa::path(post, path = "/api/sessions/{id}/attachments", tag = "sessions",
    params(("id" = String, Path), AttachmentQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream",
        description = "The file."),
    responses((status = 201, body = AttachmentItem), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 413, body = Problem)),
)]
pub(in crate::gateway::http) async fn attach_file(
    State(state): State<GatewayState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    Query(query): Query<AttachmentQuery>,
    mut request: Request,
) -> Result<(StatusCode, Json<AttachmentItem>), ApiError> {
    let key = key_of(&caller, session);
    let upload = state.sessions.attach(&key, &caller).await?;
    DefaultBodyLimit::max(upload.limit()).apply(&mut request);
    let bytes = Bytes::from_request(request, &state).await;
    let bytes = bytes.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::from(upload.too_large()),
        _ => ApiError::new(Code::InvalidArguments, "the body did not arrive whole"),
    })?;
    let name = query.name.unwrap_or_default();
    let attachment = upload.finish(&name, bytes.into()).await?;
    let item = AttachmentItem::of(attachment);
    Ok((StatusCode::CREATED, Json(item)))
}

/// Returns the content of an attachment. Browsers show images and save everything else.
#[utoipa::path(get, path = "/api/sessions/{id}/attachments/{blob}", tag = "sessions",
    params(("id" = String, Path), ("blob" = String, Path)),
    responses((status = 200, description = "The content.", content_type = "application/octet-stream",
        body = Vec<u8>), (status = 404, body = Problem)),
)]
pub(in crate::gateway::http) async fn read_attachment(
    State(state): State<GatewayState>,
    caller: Caller,
    Path((session, blob)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let session = SessionId::parse(&session);
    let session =
        session.ok_or_else(|| ApiError::new(Code::SessionNotFound, "there is no such session"))?;
    let missing = || ApiError::new(Code::NotFound, "this session has no such attachment");
    let blob = BlobId::parse(&blob).ok_or_else(missing)?;
    let key = key_of(&caller, session);
    let found = state.sessions.attachment(&key, &caller, &blob).await?;
    let (attachment, content) = found.ok_or_else(missing)?;
    Ok(served(&attachment, content))
}

fn served(attachment: &Attachment, content: Vec<u8>) -> Response {
    let kind = match attachment.media_type.as_str() {
        "text/plain" => "text/plain; charset=utf-8",
        kind => kind,
    };
    let way = if attachment.media_type.is_image() {
        "inline"
    } else {
        "attachment"
    };
    let name = utf8_percent_encode(&attachment.name, NON_ALPHANUMERIC);
    let disposition = format!("{way}; filename*=UTF-8''{name}");
    let mut response = content.into_response();
    let headers = response.headers_mut();
    for (header, value) in [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, CACHE),
    ] {
        headers.insert(header, HeaderValue::from_static(value));
    }
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    response
}

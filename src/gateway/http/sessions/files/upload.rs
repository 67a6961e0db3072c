//! Uploads files into the workspace, and deletes entries from it.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, ETAG};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::super::key_of;
use super::address::FileAddress;
use crate::agent::{FilePurpose, SessionFiles};
use crate::domain::{Caller, Code};
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::Query;
use crate::gateway::versioned::if_match;
use crate::mcp::{FILE_PART, UploadPart, UploadedFile};

/// The files that an upload may replace.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct PutFileQuery {
    /// True to replace an existing file of that name, whatever its content. Without it and without
    /// `If-Match`, no file is replaced.
    overwrite: Option<bool>,
}

/// A file that was uploaded.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct PutFileResponse {
    /// The path below the workspace.
    path: String,
    /// The size of the file in bytes.
    bytes: u64,
    /// The version of the content, for `If-Match`.
    version: String,
}

/// Uploads a file into the workspace, and creates missing folders.
///
/// The file appears once it has arrived completely. Links are not followed, and only files are replaced.
#[utoipa::path(put, path = "/api/sessions/{id}/files/{*path}", tag = "sessions",
    params(("id" = String, Path), ("path" = String, Path,
        description = "From the workspace down, as the list of files names it."), PutFileQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream",
        description = "The file."),
    responses((status = 201, body = PutFileResponse), (status = 200, body = PutFileResponse),
        (status = 400, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 413, body = Problem), (status = 503, body = Problem)),
)]
pub(in crate::gateway::http) async fn put_file(
    State(state): State<GatewayState>,
    caller: Caller,
    FileAddress { session, path }: FileAddress,
    Query(query): Query<PutFileQuery>,
    request: Request,
) -> Result<Response, ApiError> {
    let (Parts { headers, .. }, body) = request.into_parts();
    let overwrites = query.overwrite.unwrap_or(false);
    let replaces = if_match(&headers)?.or_else(|| overwrites.then(|| "*".to_owned()));
    let key = key_of(&caller, session);
    let files = SessionFiles::open(&state.sessions, &key, &caller, FilePurpose::Change).await?;
    if files.upload_limit() == 0 {
        let text = "uploads are switched off here (`runtime.limits.upload_mb`)";
        return Err(ApiError::new(Code::NotAllowed, text));
    }
    let announced = headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|value| value.to_str().ok()?.parse().ok());
    let upload = Upload {
        files: &files,
        id: format!("{:032x}", rand::random::<u128>()),
        path: &path,
        replaces: replaces.as_deref(),
        bytes: announced.unwrap_or(0),
    };
    let done = upload.take(body).await?;
    let status = if done.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let etag = HeaderValue::from_str(&format!("\"{}\"", done.version));
    let UploadedFile { version, bytes, .. } = done;
    let answer = PutFileResponse {
        path,
        bytes,
        version,
    };
    let mut response = (status, Json(answer)).into_response();
    if let Ok(etag) = etag {
        response.headers_mut().insert(ETAG, etag);
    }
    Ok(response)
}

/// An upload in progress; only one part of it is in memory.
struct Upload<'a> {
    files: &'a SessionFiles,
    id: String,
    path: &'a str,
    replaces: Option<&'a str>,
    /// The announced length in bytes; 0 if none was announced.
    bytes: u64,
}

impl Upload<'_> {
    async fn take(&self, body: Body) -> Result<UploadedFile, ApiError> {
        self.check_size(self.bytes)?;
        let mut stream = body.into_data_stream();
        let (mut part, mut sent) = (Vec::new(), 0_u64);
        while let Some(piece) = stream.next().await {
            let mut piece: Bytes = piece.map_err(|_| {
                ApiError::new(Code::InvalidArguments, "the body did not arrive whole")
            })?;
            self.check_size(sent + (part.len() + piece.len()) as u64)?;
            while part.len() + piece.len() > FILE_PART {
                part.extend_from_slice(&piece.split_to(FILE_PART - part.len()));
                self.send(sent, &part, false).await?;
                sent += part.len() as u64;
                part.clear();
            }
            part.extend_from_slice(&piece);
        }
        let done = self.send(sent, &part, true).await?;
        let lost = || {
            ApiError::new(
                Code::SandboxUnavailable,
                "the sandbox told nothing of the file",
            )
        };
        done.ok_or_else(lost)
    }

    async fn send(
        &self,
        offset: u64,
        data: &[u8],
        is_last: bool,
    ) -> Result<Option<UploadedFile>, ApiError> {
        let part = UploadPart {
            id: &self.id,
            path: self.path,
            offset,
            data,
            is_last,
            bytes: self.bytes,
            replaces: self.replaces,
            room: 0,
        };
        Ok(self.files.put(part).await?)
    }

    fn check_size(&self, bytes: u64) -> Result<(), ApiError> {
        let most = self.files.upload_limit();
        if bytes <= most {
            return Ok(());
        }
        let text = format!(
            "an uploaded file may have {} MiB; send a smaller one, or have the operator raise \
             `runtime.limits.upload_mb`",
            most / (1024 * 1024)
        );
        Err(ApiError::of_field(Code::TooLarge, "file", text))
    }
}

/// The way in which an entry is deleted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct DeleteFileQuery {
    /// True to delete a folder with everything in it.
    recursive: Option<bool>,
}

/// Deletes a file, link or folder of the workspace. The target of a link is not deleted.
#[utoipa::path(delete, path = "/api/sessions/{id}/files/{*path}", tag = "sessions",
    params(("id" = String, Path), ("path" = String, Path,
        description = "From the workspace down, as the list of files names it."), DeleteFileQuery),
    responses((status = 204), (status = 400, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem), (status = 503, body = Problem)),
)]
pub(in crate::gateway::http) async fn delete_file(
    State(state): State<GatewayState>,
    caller: Caller,
    FileAddress { session, path }: FileAddress,
    Query(query): Query<DeleteFileQuery>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let version = if_match(&headers)?.filter(|version| version != "*");
    let key = key_of(&caller, session);
    let files = SessionFiles::open(&state.sessions, &key, &caller, FilePurpose::Change).await?;
    let is_recursive = query.recursive.unwrap_or(false);
    files
        .remove(&path, version.as_deref(), is_recursive)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
